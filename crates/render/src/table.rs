//! Tables where text is all there is: columns if they fit, else one item per row.

use unicode_width::UnicodeWidthStr;

use crate::columns::{fit, labels, natural, padding};
use crate::document::{Align, Block, Cell, Inline, Item, shows_address};

const BETWEEN_COLUMNS: &str = "  ";

/// A table of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table<'a> {
    pub(crate) columns: &'a [Align],
    pub(crate) head: &'a [Cell],
    pub(crate) rows: &'a [Vec<Cell>],
}

impl Table<'_> {
    pub(crate) fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.head.iter().chain(self.rows.iter().flatten())
    }
}

/// The lines of a table whose columns fit.
pub(crate) fn columns(table: &Table<'_>, widest: usize) -> Option<Vec<String>> {
    let cells = |row: &[Cell]| row.iter().map(|cell| on_one_line(cell)).collect::<Vec<_>>();
    let all = std::iter::once(table.head).chain(table.rows.iter().map(Vec::as_slice));
    let texts: Vec<Vec<String>> = all.map(cells).collect();
    let natural =
        natural(table.columns.len(), texts.iter().map(|row| row.iter().map(|cell| cell.width())));
    fit(&natural, BETWEEN_COLUMNS.len(), widest).filter(|fitted| *fitted == natural)?;

    let line = |row: &Vec<String>| {
        let cells: Vec<String> = std::iter::zip(row, std::iter::zip(table.columns, &natural))
            .map(|(cell, (align, width))| {
                let (before, after) = padding(*align, cell.width(), *width);
                format!("{}{cell}{}", " ".repeat(before), " ".repeat(after))
            })
            .collect();
        cells.join(BETWEEN_COLUMNS).trim_end().to_owned()
    };
    let under: Vec<String> = natural.iter().map(|width| "-".repeat(*width)).collect();
    let mut lines: Vec<String> = texts.iter().map(line).collect();
    lines.insert(1, under.join(BETWEEN_COLUMNS));
    Some(lines)
}

/// One item per row, its values below each other behind the titles of their columns.
pub(crate) fn records(table: &Table<'_>) -> Vec<Item> {
    let labels = labels(table.head, table.rows);
    let titles = labels.is_none().then_some(table.head);
    let mut items = Vec::new();
    for row in titles.into_iter().chain(table.rows.iter().map(Vec::as_slice)) {
        let mut text = Vec::new();
        for (column, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            if !text.is_empty() {
                text.push(Inline::Break);
            }
            let label = labels.as_ref().and_then(|labels| labels.get(column));
            if let Some(label) = label.filter(|label| !label.is_empty()) {
                text.push(Inline::Strong(vec![Inline::Text(format!("{label}:"))]));
                text.push(Inline::Text(" ".to_owned()));
            }
            text.extend(cell.iter().cloned());
        }
        if !text.is_empty() {
            items.push(Item { task: None, blocks: vec![Block::Paragraph(text)] });
        }
    }
    items
}

/// A cell as it stands in a column: its words, and the addresses that would be lost.
fn on_one_line(cell: &[Inline]) -> String {
    fn write(inlines: &[Inline], out: &mut String) {
        for inline in inlines {
            match inline {
                Inline::Text(text) | Inline::Code(text) => out.push_str(text),
                Inline::Math(text) => out.push_str(&text.replace('\n', " ")),
                Inline::Strong(inner) | Inline::Emphasis(inner) | Inline::Strike(inner) => {
                    write(inner, out);
                }
                Inline::Spoiler(inner) => {
                    out.push_str("||");
                    write(inner, out);
                    out.push_str("||");
                }
                Inline::Link { to, text } => {
                    write(text, out);
                    if !shows_address(text, to) {
                        out.push_str(" (");
                        out.push_str(to);
                        out.push(')');
                    }
                }
                Inline::Break => out.push(' '),
            }
        }
    }
    let mut text = String::new();
    write(cell, &mut text);
    text
}
