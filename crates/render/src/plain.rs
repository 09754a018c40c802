//! The dialect of platforms that show characters and nothing else: readable text without marks.

use unicode_width::UnicodeWidthStr;

use crate::columns::{fit, labels, natural, padding};
use crate::document::{
    Align, Block, Cell, Document, Inline, Item, Marker, Spacing, Task, shows_address,
};

/// Wider tables would be broken by a telephone, so that they become lists.
const WIDEST_TABLE: usize = 48;

const BETWEEN_COLUMNS: &str = "  ";

/// The document as text. Code is kept as it is, a link becomes `text (address)`.
pub fn plain(document: &Document) -> String {
    blocks(document.blocks(), Spacing::Loose).join("\n")
}

fn blocks(blocks: &[Block], spacing: Spacing) -> Vec<String> {
    let mut lines = Vec::new();
    for one in blocks {
        if spacing == Spacing::Loose && !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(block(one));
    }
    lines
}

fn block(block: &Block) -> Vec<String> {
    match block {
        Block::Paragraph(text) | Block::Heading { text, .. } => {
            running_text(text).split('\n').map(str::to_owned).collect()
        }
        Block::List { marker, spacing, items } => list(*marker, *spacing, items),
        Block::Quote(inner) => blocks(inner, Spacing::Loose)
            .into_iter()
            .map(|line| if line.is_empty() { ">".to_owned() } else { format!("> {line}") })
            .collect(),
        Block::Code { text, .. } => text.split('\n').map(str::to_owned).collect(),
        Block::Table { columns, head, rows } => {
            aligned(columns, head, rows).unwrap_or_else(|| records(head, rows))
        }
        Block::Rule => vec!["———".to_owned()],
    }
}

fn list(marker: Marker, spacing: Spacing, items: &[Item]) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if spacing == Spacing::Loose && index > 0 {
            lines.push(String::new());
        }
        let sign = match (item.task, marker) {
            (Some(Task::Open), _) => "☐ ".to_owned(),
            (Some(Task::Done), _) => "☑ ".to_owned(),
            (None, Marker::Bullet) => "• ".to_owned(),
            (None, Marker::Number(first)) => format!("{}. ", first.saturating_add(index as u64)),
        };
        lines.extend(hung(&sign, blocks(&item.blocks, spacing)));
    }
    lines
}

/// The lines with a sign before the first and as much room before the others.
fn hung(sign: &str, lines: Vec<String>) -> Vec<String> {
    let room = " ".repeat(sign.width());
    let mut lines = lines.into_iter();
    let first = format!("{sign}{}", lines.next().unwrap_or_default());
    let others = lines.map(|line| if line.is_empty() { line } else { format!("{room}{line}") });
    std::iter::once(first.trim_end().to_owned()).chain(others).collect()
}

fn aligned(columns: &[Align], head: &[Cell], rows: &[Vec<Cell>]) -> Option<Vec<String>> {
    let cells = |row: &[Cell]| row.iter().map(|cell| one_line(cell)).collect::<Vec<_>>();
    let table: Vec<Vec<String>> =
        std::iter::once(head).chain(rows.iter().map(Vec::as_slice)).map(cells).collect();
    let natural =
        natural(columns.len(), table.iter().map(|row| row.iter().map(|cell| cell.width())));
    fit(&natural, BETWEEN_COLUMNS.len(), WIDEST_TABLE).filter(|fitted| *fitted == natural)?;

    let line = |row: &Vec<String>| {
        let cells: Vec<String> = std::iter::zip(row, std::iter::zip(columns, &natural))
            .map(|(cell, (align, width))| {
                let (before, after) = padding(*align, cell.width(), *width);
                format!("{}{cell}{}", " ".repeat(before), " ".repeat(after))
            })
            .collect();
        cells.join(BETWEEN_COLUMNS).trim_end().to_owned()
    };
    let under: Vec<String> = natural.iter().map(|width| "-".repeat(*width)).collect();
    let mut lines: Vec<String> = table.iter().map(line).collect();
    lines.insert(1, under.join(BETWEEN_COLUMNS));
    Some(lines)
}

/// One item per row, its values below each other under the titles of their columns.
fn records(head: &[Cell], rows: &[Vec<Cell>]) -> Vec<String> {
    let labels = labels(head, rows);
    let titles = labels.is_none().then_some(head);
    let mut lines = Vec::new();
    for row in titles.into_iter().chain(rows.iter().map(Vec::as_slice)) {
        let mut values = Vec::new();
        for (column, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            let label = labels.as_ref().and_then(|labels| labels.get(column));
            values.push(match label {
                Some(label) if !label.is_empty() => format!("{label}: {}", one_line(cell)),
                _ => one_line(cell),
            });
        }
        if !values.is_empty() {
            lines.extend(hung("• ", values));
        }
    }
    lines
}

fn one_line(cell: &[Inline]) -> String {
    running_text(cell).replace('\n', " ")
}

fn running_text(inlines: &[Inline]) -> String {
    let mut text = String::new();
    write(inlines, &mut text);
    text
}

fn write(inlines: &[Inline], out: &mut String) {
    for inline in inlines {
        match inline {
            Inline::Text(text) | Inline::Code(text) => out.push_str(text),
            Inline::Strong(inner) | Inline::Emphasis(inner) | Inline::Strike(inner) => {
                write(inner, out);
            }
            Inline::Link { to, text } => {
                write(text, out);
                if !shows_address(text, to) {
                    out.push_str(" (");
                    out.push_str(to);
                    out.push(')');
                }
            }
            Inline::Break => out.push('\n'),
        }
    }
}
