//! What others said, where an operator reads it.

use std::borrow::Cow;

/// The text on one line: what would end that, tell a terminal to do something or turn text around is written
/// out.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| c.is_control() || turns_text(c);
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match is_obeyed(c) {
            true => plain.extend(c.escape_default()),
            false => plain.push(c),
        }
    }
    Cow::Owned(plain)
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
    }
}
