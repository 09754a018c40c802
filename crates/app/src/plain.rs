//! What others said, where an operator reads it.

use std::borrow::Cow;

/// The text on one line: what would end that, tell a terminal to do something or turn text around is written
/// out.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    written_out(text, is_obeyed, |c, plain| plain.extend(c.escape_default()))
}

/// The same for a text of several lines, which stay lines.
pub(crate) fn plain_lines(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c| c != '\n' && c != '\t' && is_obeyed(c);
    written_out(text, is_obeyed, |c, plain| plain.extend(c.escape_default()))
}

/// The same for JSON, which means the same afterwards. It has no control characters in its strings but some
/// that older terminals obey.
pub(crate) fn plain_json(json: &str) -> Cow<'_, str> {
    let is_obeyed = |c| c != '\n' && is_obeyed(c);
    written_out(json, is_obeyed, |c, plain| plain.push_str(&format!("\\u{:04x}", u32::from(c))))
}

fn written_out(
    text: &str,
    is_obeyed: impl Fn(char) -> bool,
    write_out: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if !text.contains(&is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match is_obeyed(c) {
            true => write_out(c, &mut plain),
            false => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

fn is_obeyed(c: char) -> bool {
    c.is_control() || turns_text(c)
}

/// Whether a character turns text around, or ends a line for some.
pub(crate) const fn turns_text(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_is_obeyed() {
        assert_eq!(plain("plain é 漢"), "plain é 漢");
        let evil = "a\u{1b}[2J\nb\r\u{7f}\u{9b}c\u{202e}d\u{2028}e\u{7}\u{1b}]52;c;x\u{7}";
        let shown = plain(evil).into_owned();
        assert!(!shown.contains(|c: char| c.is_control() || turns_text(c)), "{shown:?}");
        assert!(shown.starts_with("a\\u{1b}[2J\\nb\\r"), "{shown}");
        let lines = plain_lines(evil).into_owned();
        assert_eq!(lines.lines().count(), 2, "{lines:?}");
        assert_eq!(lines.replace('\n', "\\n"), shown);
    }

    #[test]
    fn json_means_the_same_and_nothing_in_it_is_obeyed() {
        let value = serde_json::json!({ "a\u{9b}": "\u{1b}\u{202e}\u{7f}\n", "b": ["é"] });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let shown = plain_json(&text).into_owned();
        assert!(!shown.contains(|c| c != '\n' && is_obeyed(c)), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
