//! The dialect that the source is written in: adding to Markdown without breaking it.

use talaria_model::Unit;

use crate::layout::{Fence, Layout};
use crate::length::Limit;

/// Puts a paragraph behind a text, and not into a code block that the text may have left open.
pub fn append(markdown: &str, paragraph: &str) -> String {
    let text = markdown.trim_end();
    if text.is_empty() {
        return paragraph.to_owned();
    }
    let unlimited = Limit { max: usize::MAX, unit: Unit::Bytes };
    let layout = Layout::of(text, unlimited);
    let closing = layout.left_open(text).map(Fence::closing).unwrap_or_default();
    format!("{text}{closing}\n\n{paragraph}")
}

/// Text as Markdown that shows exactly this text, on one line.
pub fn literal(text: &str) -> String {
    let text = text.split(|c: char| c.is_control() || c.is_whitespace());
    let text = text.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let number = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mut markdown = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        let is_mark = match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '~' | '|' | '&' | '#' => true,
            '-' | '+' => at == 0,
            '.' | ')' => number > 0 && at == number,
            _ => false,
        };
        if is_mark {
            markdown.push('\\');
        }
        markdown.push(character);
    }
    markdown
}
