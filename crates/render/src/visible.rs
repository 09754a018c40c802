//! Takes out of a text what a terminal would obey instead of show.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::CharIndices;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';
const STRING_TERMINATOR: char = '\u{9c}';

/// The text without control characters and without the sequences they begin (ECMA-48: colours, cursor
/// movement, window titles, clipboard access). Tabs stay; every kind of line break becomes `\n`.
pub fn visible(text: &str) -> String {
    shown(text).into_owned()
}

/// [`visible`], without a copy of a text that is visible as it is.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if !has_control(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(without_control(text))
}

/// Whether a text has control characters that are neither line breaks nor tabs.
pub(crate) fn has_control(text: &str) -> bool {
    // Most text has none, and in bytes that is seen at once, many at a time: below the blank, and the
    // control characters above ASCII, which all begin with the same byte.
    let may_be = |byte: u8| {
        (byte < b' ') & (byte != b'\n') & (byte != b'\t') | (byte == 0x7f) | (byte == 0xc2)
    };
    let is_suspect = |bytes: &[u8]| bytes.iter().fold(false, |found, byte| found | may_be(*byte));
    text.as_bytes().chunks(256).any(is_suspect)
        && text.contains(|c: char| c.is_control() && c != '\n' && c != '\t')
}

fn without_control(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let last_terminator = text.rfind([BELL, STRING_TERMINATOR]).max(text.rfind("\u{1b}\\"));
    let mut rest = text.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        match character {
            '\n' | '\t' => shown.push(character),
            '\r' => {
                rest.next_if(|(_, next)| *next == '\n');
                shown.push('\n');
            }
            ESCAPE => match rest.peek().map(|(_, next)| *next) {
                Some('[') => {
                    rest.next();
                    skip_parameters(&mut rest);
                }
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    rest.next();
                    skip_string(&mut rest, at, last_terminator);
                }
                Some(' '..='/') => {
                    while rest.next_if(|(_, next)| matches!(next, ' '..='/')).is_some() {}
                    rest.next_if(|(_, next)| matches!(next, '0'..='~'));
                }
                Some('0'..='~') => {
                    rest.next();
                }
                _ => {}
            },
            '\u{9b}' => skip_parameters(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => {
                skip_string(&mut rest, at, last_terminator);
            }
            _ if character.is_control() => {}
            _ => shown.push(character),
        }
    }
    shown
}

/// Behind a control sequence introducer: parameters, intermediates and one final character.
fn skip_parameters(rest: &mut Peekable<CharIndices<'_>>) {
    while rest.next_if(|(_, next)| matches!(next, ' '..='?')).is_some() {}
    rest.next_if(|(_, next)| matches!(next, '@'..='~'));
}

/// Behind the introducer of a control string: everything up to its terminator. A string that never
/// ends loses only its introducer, so that it cannot hide the rest of a text; and because one that
/// ends is skipped whole, no character is looked at twice.
fn skip_string(rest: &mut Peekable<CharIndices<'_>>, at: usize, last_terminator: Option<usize>) {
    if last_terminator.is_none_or(|last| last < at) {
        return;
    }
    while let Some((_, character)) = rest.next() {
        match character {
            BELL | STRING_TERMINATOR => return,
            ESCAPE if rest.next_if(|(_, next)| *next == '\\').is_some() => return,
            _ => {}
        }
    }
}

/// Whether a character changes the direction of the text around it, so that what is read is not what
/// is written.
pub(crate) fn turns_text_around(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Whether nothing of a text can be seen.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| {
        c.is_whitespace()
            || turns_text_around(c)
            || matches!(
                c,
                '\u{ad}' | '\u{180e}' | '\u{200b}'
                    ..='\u{200d}' | '\u{2060}' | '\u{2800}' | '\u{feff}'
            )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_go_and_words_stay() {
        for (text, expect) in [
            ("plain ☕ text\n\tindented", "plain ☕ text\n\tindented"),
            ("a\r\nb\rc", "a\nb\nc"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{9b}2Jcleared", "cleared"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{9d}52;c;aGk=\u{9c}clip", "clip"),
            ("\u{1b}(0lines", "lines"),
            ("\u{1b}creset", "reset"),
            ("bell\u{7} null\0 del\u{7f} nel\u{85}", "bell null del nel"),
            ("ends in \u{1b}", "ends in "),
            ("ends in \u{1b}[12", "ends in "),
        ] {
            assert_eq!(visible(text), expect, "{text:?}");
        }
    }

    #[test]
    fn a_string_without_an_end_hides_nothing() {
        assert_eq!(visible("\u{1b}]0;all of \\ this"), "0;all of \\ this");
        assert_eq!(visible(&"\u{1b}]".repeat(100_000)), "");
    }
}
