//! The dialect that the source is written in: adding to Markdown without breaking it.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use crate::parse::{extensions, is_tame};

/// Indented further, a fence is code.
const MAX_FENCE_INDENT: usize = 3;

/// Puts a paragraph behind a text, and not into a code block that the text may have left open.
pub fn append(markdown: &str, paragraph: &str) -> String {
    let text = markdown.trim_end();
    if text.is_empty() {
        return paragraph.to_owned();
    }
    let closing = closing(text).unwrap_or_default();
    format!("{text}{closing}\n\n{paragraph}")
}

/// What closes the code block that the end of a text leaves open.
fn closing(text: &str) -> Option<String> {
    if !is_tame(text) {
        return None;
    }
    let block = Parser::new_ext(text, extensions())
        .into_offset_iter()
        .filter(|(event, _)| {
            matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))))
        })
        .map(|(_, range)| range)
        .last()
        .filter(|range| range.end >= text.len())?;
    let line = text[..block.start].rfind('\n').map_or(0, |newline| newline + 1);
    let fence = text[block.start..].trim_start();
    let mark = fence.chars().next()?;
    let length = fence.len() - fence.trim_start_matches(mark).len();
    let blank_unless_quote = |c: char| if c == '>' || c == '\t' { c } else { ' ' };
    let lead: String =
        text[line..text.len() - fence.len()].chars().map(blank_unless_quote).collect();
    let (_, last) = fence.rsplit_once('\n').unwrap_or_default();
    let is_closed = {
        let last = without_lead(last, &lead);
        let marks = last.trim_start_matches(' ');
        last.len() - marks.len() <= MAX_FENCE_INDENT
            && marks.len() - marks.trim_start_matches(mark).len() >= length
            && marks.trim_start_matches(mark).trim().is_empty()
    };
    (!is_closed).then(|| format!("\n{lead}{}", String::from(mark).repeat(length)))
}

/// A line without the quote marks and blanks that the first line of its block begins with.
fn without_lead<'a>(line: &'a str, lead: &str) -> &'a str {
    if lead.contains('>') {
        return line.trim_start_matches([' ', '\t', '>']);
    }
    let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[blanks.min(lead.len())..]
}

/// Text as Markdown that shows exactly this text, on one line.
pub fn literal(text: &str) -> String {
    let text = text.split(|c: char| c.is_control() || c.is_whitespace());
    let text = text.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let number = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mut markdown = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        let is_mark = match character {
            '[' if begins_formula(&text[at + 1..]) => {
                markdown.push_str("&#91;");
                continue;
            }
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '~' | '|' | '&' | '#' | '$' => true,
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

/// Whether `\[` before this could be read as the beginning of a formula.
fn begins_formula(text: &str) -> bool {
    let inner = text.split(']').next().unwrap_or_default();
    !inner.chars().all(|c| c.is_alphabetic() || matches!(c, ' ' | '.' | ',' | ':' | '-' | '\''))
}
