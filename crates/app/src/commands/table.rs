//! Columns that line up.

use unicode_width::UnicodeWidthStr;

/// Rows of the same number of cells, printed with two spaces between the columns.
pub(super) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = header
        .iter()
        .enumerate()
        .map(|(column, title)| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
            cells.chain([title.width()]).max().unwrap_or(0)
        })
        .collect();
    let titles: Vec<String> = header.iter().map(|title| (*title).to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&titles).chain(rows) {
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
}
