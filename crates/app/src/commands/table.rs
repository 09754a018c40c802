//! Columns that line up, of cells that nobody else can break out of.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

use crate::plain::plain;

/// Rows of the same number of cells, printed with two spaces between the columns.
pub(super) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<Cow<'_, str>>> =
        rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
    let widths: Vec<usize> = header
        .iter()
        .enumerate()
        .map(|(column, title)| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
            cells.chain([title.width()]).max().unwrap_or(0)
        })
        .collect();
    let titles: Vec<Cow<'_, str>> = header.iter().map(|title| Cow::Borrowed(*title)).collect();
    let mut text = String::new();
    for row in std::iter::once(&titles).chain(&rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width.saturating_sub(cell.width()) + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_the_letters_are() {
        let rows = [vec!["日本".to_owned(), "x".to_owned()], vec!["a".to_owned(), "y".to_owned()]];
        assert_eq!(table(&["name", "v"], &rows), "name  v\n日本  x\na     y\n");
    }

    #[test]
    fn a_cell_is_one_line_and_tells_a_terminal_nothing() {
        let rows = [vec!["a\u{1b}[2J\nb".to_owned()]];
        assert_eq!(table(&["name"], &rows), "name\na\\u{1b}[2J\\nb\n");
    }
}
