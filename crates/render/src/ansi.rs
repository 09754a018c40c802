//! The dialect of terminals.

use unicode_width::UnicodeWidthStr;

use crate::columns::{fit, labels, natural, padding};
use crate::document::{
    Align, Block, Cell, Document, Inline, Item, Marker, Spacing, Task, shows_address,
};
use crate::visible::turns_text_around;
use crate::wrap::{Line, Look, Span, cut, wrap};

/// How a terminal wants its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns. Less than 20 counts as 20, and more than 400 as 400: a line that long is not read, and
    /// padding a table to it costs memory.
    pub width: usize,
    /// Whether escape sequences are written at all.
    pub colour: Colour,
}

/// Whether text may be coloured, bold and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Yes.
    On,
    /// No: the same layout, characters only.
    Off,
}

/// Text is not squeezed into less than this, however deep it is nested; such lines are longer.
const NARROWEST_TEXT: usize = 10;

const BETWEEN_COLUMNS: &str = " │ ";

/// The document for a terminal, without a final line break. Apart from the sequences that set and
/// reset attributes, nothing in it can move the cursor or change the terminal.
pub fn ansi(document: &Document, style: Style) -> String {
    let lines = blocks(document.blocks(), Spacing::Loose, style.width.clamp(20, 400));
    let mut out = String::new();
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        for span in &line.spans {
            if style.colour == Colour::Off || span.look == Look::PLAIN {
                out.push_str(&span.text);
            } else {
                out.push_str("\x1b[");
                out.push_str(&span.look.parameters());
                out.push('m');
                out.push_str(&span.text);
                out.push_str("\x1b[0m");
            }
        }
    }
    out
}

fn blocks(blocks: &[Block], spacing: Spacing, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for one in blocks {
        if spacing == Spacing::Loose && !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(block(one, width));
    }
    lines
}

fn block(block: &Block, width: usize) -> Vec<Line> {
    match block {
        Block::Paragraph(text) => wrap(&spans(text, Look::PLAIN), width),
        Block::Heading { level: 1, text } => {
            wrap(&spans(text, Look::BOLD.and(Look::UNDERLINE)), width)
        }
        Block::Heading { text, .. } => wrap(&spans(text, Look::BOLD), width),
        Block::List { marker, spacing, items } => list(*marker, *spacing, items, width),
        Block::Quote(inner) => {
            let bar = Line::of("▎ ", Look::DIM);
            let inside = blocks(inner, Spacing::Loose, inner_width(width, &bar));
            hung(&bar, &bar, inside)
        }
        Block::Code { text, .. } => {
            let gutter = Line::of("  │ ", Look::DIM);
            let code = span(&text.replace('\t', "    "), Look::PLAIN);
            hung(&gutter, &gutter, cut(&code, inner_width(width, &gutter)))
        }
        Block::Table { columns, head, rows } => {
            aligned(columns, head, rows, width).unwrap_or_else(|| records(head, rows, width))
        }
        Block::Rule => vec![Line::of(&"─".repeat(width.min(40)), Look::DIM)],
    }
}

fn inner_width(width: usize, before: &Line) -> usize {
    width.saturating_sub(before.width).max(NARROWEST_TEXT)
}

/// The lines with something before the first and something before each other one.
fn hung(first: &Line, others: &Line, lines: Vec<Line>) -> Vec<Line> {
    lines
        .into_iter()
        .enumerate()
        .map(|(index, line)| {
            let mut whole = if index == 0 { first.clone() } else { others.clone() };
            whole.append(line);
            whole
        })
        .collect()
}

fn list(marker: Marker, spacing: Spacing, items: &[Item], width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if spacing == Spacing::Loose && index > 0 {
            lines.push(Line::default());
        }
        let sign = match (item.task, marker) {
            (Some(Task::Open), _) => "☐ ".to_owned(),
            (Some(Task::Done), _) => "☑ ".to_owned(),
            (None, Marker::Bullet) => "• ".to_owned(),
            (None, Marker::Number(first)) => format!("{}. ", first.saturating_add(index as u64)),
        };
        let sign = Line::of(&sign, Look::CYAN);
        let room = Line::of(&" ".repeat(sign.width), Look::PLAIN);
        let mut inside = blocks(&item.blocks, spacing, inner_width(width, &sign));
        if inside.is_empty() {
            inside.push(Line::default());
        }
        lines.extend(hung(&sign, &room, inside));
    }
    lines
}

fn aligned(
    columns: &[Align],
    head: &[Cell],
    rows: &[Vec<Cell>],
    width: usize,
) -> Option<Vec<Line>> {
    let cells = |row: &[Cell], look| row.iter().map(|cell| spans(cell, look)).collect::<Vec<_>>();
    let head = cells(head, Look::BOLD);
    let rows: Vec<_> = rows.iter().map(|row| cells(row, Look::PLAIN)).collect();
    let all = std::iter::once(&head).chain(&rows);
    let natural = natural(columns.len(), all.map(|row| row.iter().map(|cell| text_width(cell))));
    let widths = fit(&natural, BETWEEN_COLUMNS.width(), width)?;

    let under: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    let mut lines = row(&head, columns, &widths);
    lines.push(Line::of(&under.join("─┼─"), Look::DIM));
    for cells in &rows {
        lines.extend(row(cells, columns, &widths));
    }
    Some(lines)
}

/// One row, as many lines high as its highest cell.
fn row(cells: &[Vec<Span>], columns: &[Align], widths: &[usize]) -> Vec<Line> {
    let wrapped: Vec<Vec<Line>> =
        std::iter::zip(cells, widths).map(|(cell, width)| wrap(cell, *width)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(1);
    (0..height)
        .map(|index| {
            let mut line = Line::default();
            for (column, cell) in wrapped.iter().enumerate() {
                if column > 0 {
                    line.push(BETWEEN_COLUMNS, Look::DIM);
                }
                let text = cell.get(index).cloned().unwrap_or_default();
                let (before, after) = padding(columns[column], text.width, widths[column]);
                line.push_blanks(before);
                line.append(text);
                if column + 1 < wrapped.len() {
                    line.push_blanks(after);
                }
            }
            line
        })
        .collect()
}

/// One item per row, its values below each other under the titles of their columns.
fn records(head: &[Cell], rows: &[Vec<Cell>], width: usize) -> Vec<Line> {
    let labels = labels(head, rows);
    let titles = labels.is_none().then_some(head);
    let sign = Line::of("• ", Look::CYAN);
    let room = Line::of("  ", Look::PLAIN);
    let mut lines = Vec::new();
    for row in titles.into_iter().chain(rows.iter().map(Vec::as_slice)) {
        let mut values = Vec::new();
        for (column, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            let mut text = Vec::new();
            if let Some(label) = labels.as_ref().and_then(|labels| labels.get(column))
                && !label.is_empty()
            {
                text.push(span(&format!("{label}: "), Look::BOLD));
            }
            text.extend(spans(cell, Look::PLAIN));
            values.extend(wrap(&text, inner_width(width, &sign)));
        }
        lines.extend(hung(&sign, &room, values));
    }
    lines
}

fn text_width(spans: &[Span]) -> usize {
    let text: String = spans.iter().map(|span| span.text.as_str()).collect();
    text.split('\n').map(UnicodeWidthStr::width).max().unwrap_or(0)
}

fn spans(inlines: &[Inline], look: Look) -> Vec<Span> {
    let mut out = Vec::new();
    write(inlines, look, &mut out);
    out
}

fn write(inlines: &[Inline], look: Look, out: &mut Vec<Span>) {
    for inline in inlines {
        match inline {
            Inline::Text(text) | Inline::Math(text) => out.push(span(text, look)),
            Inline::Code(text) => out.push(span(text, look.and(Look::CYAN))),
            Inline::Break => out.push(span("\n", look)),
            Inline::Strong(inner) => write(inner, look.and(Look::BOLD), out),
            Inline::Emphasis(inner) => write(inner, look.and(Look::ITALIC), out),
            Inline::Strike(inner) => write(inner, look.and(Look::STRIKE), out),
            Inline::Spoiler(inner) => {
                out.push(span("||", look));
                write(inner, look, out);
                out.push(span("||", look));
            }
            Inline::Link { to, text } => {
                write(text, look.and(Look::UNDERLINE), out);
                if !shows_address(text, to) {
                    out.push(span(&format!(" ({to})"), look.and(Look::DIM)));
                }
            }
        }
    }
}

/// Terminals that know bidirectional text would show it in an order nobody wrote.
fn span(text: &str, look: Look) -> Span {
    Span { text: text.replace(turns_text_around, ""), look }
}
