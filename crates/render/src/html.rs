//! The dialect of browsers. Safe by construction: the tags and attributes written here are the only
//! ones there are, and everything that comes from the document is escaped.

use std::fmt::Write;

use crate::document::{
    Align, Block, Cell, Document, Inline, Item, Marker, Spacing, Task, shows_address,
};
use crate::parse::starts_with_scheme;
use crate::visible::turns_text_around;

/// The document as HTML that needs no further cleaning. Links lead to `http`, `https` and `mailto`
/// only; any other address is shown as text. There are no images, styles, scripts or ids.
pub fn html(document: &Document) -> String {
    html_blocks(document.blocks())
}

pub(crate) fn html_blocks(document: &[Block]) -> String {
    let mut out = String::new();
    blocks(document, &mut out);
    out
}

fn blocks(blocks: &[Block], out: &mut String) {
    for one in blocks {
        block(one, out);
    }
}

fn block(block: &Block, out: &mut String) {
    match block {
        Block::Paragraph(text) => element("p", text, out),
        Block::Heading { level, text } => {
            let tag = ["h1", "h2", "h3", "h4", "h5", "h6"][usize::from(*level).clamp(1, 6) - 1];
            element(tag, text, out);
        }
        Block::List { marker, spacing, items } => list(*marker, *spacing, items, out),
        Block::Quote(inner) => {
            out.push_str("<blockquote>");
            blocks(inner, out);
            out.push_str("</blockquote>");
        }
        Block::Code { language, text } => {
            out.push_str("<pre><code");
            if let Some(language) = language {
                out.push_str(" class=\"language-");
                escape(language, out);
                out.push('"');
            }
            out.push('>');
            escape(text, out);
            out.push_str("</code></pre>");
        }
        Block::Table { columns, head, rows } => {
            out.push_str("<div class=\"table\"><table><thead>");
            row("th", columns, head, out);
            out.push_str("</thead>");
            if !rows.is_empty() {
                out.push_str("<tbody>");
                for cells in rows {
                    row("td", columns, cells, out);
                }
                out.push_str("</tbody>");
            }
            out.push_str("</table></div>");
        }
        Block::Rule => out.push_str("<hr>"),
    }
}

fn element(tag: &str, text: &[Inline], out: &mut String) {
    out.push('<');
    out.push_str(tag);
    out.push('>');
    inlines(text, out);
    out.push_str("</");
    out.push_str(tag);
    out.push('>');
}

fn list(marker: Marker, spacing: Spacing, items: &[Item], out: &mut String) {
    let end = match marker {
        Marker::Bullet => {
            out.push_str("<ul>");
            "</ul>"
        }
        Marker::Number(1) => {
            out.push_str("<ol>");
            "</ol>"
        }
        Marker::Number(first) => {
            write!(out, "<ol start=\"{first}\">").expect("writing to a string does not fail");
            "</ol>"
        }
    };
    for item in items {
        out.push_str(match item.task {
            None => "<li>",
            Some(Task::Open) => "<li class=\"task\">☐ ",
            Some(Task::Done) => "<li class=\"task\">☑ ",
        });
        match item.blocks.split_first() {
            Some((Block::Paragraph(text), rest)) if spacing == Spacing::Tight => {
                inlines(text, out);
                blocks(rest, out);
            }
            _ => blocks(&item.blocks, out),
        }
        out.push_str("</li>");
    }
    out.push_str(end);
}

fn row(tag: &str, columns: &[Align], cells: &[Cell], out: &mut String) {
    out.push_str("<tr>");
    for (column, cell) in columns.iter().zip(cells) {
        out.push('<');
        out.push_str(tag);
        out.push_str(match column {
            Align::Left => ">",
            Align::Center => " class=\"center\">",
            Align::Right => " class=\"right\">",
        });
        inlines(cell, out);
        out.push_str("</");
        out.push_str(tag);
        out.push('>');
    }
    out.push_str("</tr>");
}

fn inlines(text: &[Inline], out: &mut String) {
    for inline in text {
        match inline {
            Inline::Text(text) => escape(text, out),
            Inline::Math(text) => {
                for (index, line) in text.split('\n').enumerate() {
                    if index > 0 {
                        out.push_str("<br>");
                    }
                    escape(line, out);
                }
            }
            Inline::Strong(inner) => element("strong", inner, out),
            Inline::Emphasis(inner) => element("em", inner, out),
            Inline::Strike(inner) => element("del", inner, out),
            Inline::Spoiler(inner) => {
                out.push_str("||");
                inlines(inner, out);
                out.push_str("||");
            }
            Inline::Code(text) => {
                out.push_str("<code>");
                escape(text, out);
                out.push_str("</code>");
            }
            Inline::Link { to, text } => link(to, text, out),
            Inline::Break => out.push_str("<br>"),
        }
    }
}

fn link(to: &str, text: &[Inline], out: &mut String) {
    if may_be_followed(to) {
        out.push_str("<a href=\"");
        escape(to, out);
        out.push_str("\" rel=\"noopener noreferrer nofollow\" target=\"_blank\">");
        inlines(text, out);
        out.push_str("</a>");
    } else {
        inlines(text, out);
        if !shows_address(text, to) {
            out.push_str(" (");
            escape(to, out);
            out.push(')');
        }
    }
}

/// The scheme has to stand at the very beginning: browsers skip blanks and control characters there,
/// so an address that begins with anything else may have a scheme that we do not see.
fn may_be_followed(to: &str) -> bool {
    ["http://", "https://", "mailto:"].iter().any(|scheme| starts_with_scheme(to, scheme))
        && !to.contains(turns_text_around)
}

fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(character),
        }
    }
}
