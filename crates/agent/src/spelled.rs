//! A text on one line in which every character is seen for what it is: what has no sign of its own, what
//! turns the direction of others, and what would end the text are written as `\u{…}`.

use std::fmt::Write;
use std::sync::LazyLock;

use regex_automata::meta::Regex;

use crate::tool::Reads;

/// So many marks may stand upon one letter. No script needs more, and a heap of them covers other lines.
const MOST_MARKS: usize = 4;

/// What can be seen: letters, digits, punctuation and symbols, but for what is not drawn. Controls, formats,
/// blanks, private use and what is not assigned are none of these.
static SIGN: LazyLock<Regex> =
    LazyLock::new(|| class(r"[[\p{L}\p{N}\p{P}\p{S}]--\p{Default_Ignorable_Code_Point}]"));

/// What stands upon a letter or beside it. Marks that strike through a letter or enclose it are none of these: they
/// say that it is not meant.
static MARK: LazyLock<Regex> = LazyLock::new(|| {
    class(r"[[\p{Mn}\p{Mc}]--[\p{Default_Ignorable_Code_Point}\x{334}-\x{338}\x{20d0}-\x{20ff}]]")
});

static EMOJI: LazyLock<Regex> =
    LazyLock::new(|| class(r"[\p{Extended_Pictographic}\x{1f3fb}-\x{1f3ff}]"));

fn class(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a class of characters that tests have read")
}

fn is(class: &Regex, character: char) -> bool {
    class.is_match(&*character.encode_utf8(&mut [0; 4]))
}

/// JSON, shown. In JSON no backslash stands before `u{`, so this is read back as exactly one text.
pub(crate) fn json(json: &str, reads: Reads) -> String {
    spelled(json, reads, |_| false)
}

/// Any other text, shown so that it is read back as exactly one.
pub(crate) fn text(text: &str, reads: Reads) -> String {
    spelled(text, reads, |character| character == '\\')
}

fn spelled(text: &str, reads: Reads, is_ambiguous: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut seen = Seen::default();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_plain = match reads {
            Reads::Signs => is_plain(character),
            Reads::Prose => seen.shows(character, characters.peek().copied()),
        };
        if is_plain && !is_ambiguous(character) {
            shown.push(character);
            seen.stands(character);
        } else {
            // A string takes all that is written to it.
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
            seen = Seen::default();
        }
    }
    shown
}

/// Whether a character stands for itself among signs that a program takes one by one.
fn is_plain(character: char) -> bool {
    match character {
        ' '..='~' => character != '`',
        // Letters, digits and signs that stand for themselves. Everything that is a control, a blank, a
        // mark upon another, a format character, a variation or not assigned does not.
        _ => character.is_alphanumeric() && !is_hidden(character),
    }
}

/// What cannot be seen though Unicode counts it among letters, marks and symbols: fillers of Hangul, Khmer and
/// Khitan, blanks of Braille, of Egyptian and of music, a joiner of Brahmi, a place for an object. And a sign that
/// becomes a backtick when a text is normalised, which would end what is shown.
fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{1fef}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{ffa0}'
            | '\u{fffc}'
            | '\u{1107f}'
            | '\u{13441}'
            | '\u{13442}'
            | '\u{16fe4}'
            | '\u{1d159}'
    )
}

/// What stands before a character and was shown as it is.
#[derive(Default)]
struct Seen {
    last: Option<char>,
    before: Option<char>,
    /// How many marks stand upon the last letter.
    marks: usize,
}

impl Seen {
    fn stands(&mut self, character: char) {
        self.marks = if is(&MARK, character) { self.marks + 1 } else { 0 };
        self.before = self.last.replace(character);
    }

    /// Whether a character is seen for what it is in what people write.
    fn shows(&self, character: char, next: Option<char>) -> bool {
        match character {
            ' '..='~' => character != '`',
            '\u{200c}' => self.follows_virama(next) || self.parts_arabic(next),
            '\u{200d}' => self.follows_virama(next) || self.joins_emoji(next),
            // An emoji rather than a sign of a text.
            '\u{fe0f}' => match self.last {
                Some('0'..='9' | '#' | '*') => next == Some('\u{20e3}'),
                last => last.is_some_and(|last| is(&EMOJI, last)),
            },
            // A digit on a key.
            '\u{20e3}' => {
                self.last == Some('\u{fe0f}') && matches!(self.before, Some('0'..='9' | '#' | '*'))
            }
            _ if is_hidden(character) => false,
            // Upon a sign that ends a text, or upon what is spelled out, it would change how that looks.
            _ if is(&MARK, character) => {
                let is_upon = self.last.is_some_and(|last| last.is_alphabetic() || is(&MARK, last));
                is_upon && self.marks < MOST_MARKS
            }
            _ => is(&SIGN, character),
        }
    }

    /// Whether emoji are made one.
    fn joins_emoji(&self, next: Option<char>) -> bool {
        let is_behind = match self.last {
            Some('\u{fe0f}') => true,
            last => last.is_some_and(|last| is(&EMOJI, last)),
        };
        is_behind && next.is_some_and(|next| is(&EMOJI, next) && is(&SIGN, next))
    }

    /// Whether it is chosen how two consonants of an Indian script are joined.
    fn follows_virama(&self, next: Option<char>) -> bool {
        let is_behind = matches!(
            self.last,
            Some(
                '\u{94d}'
                    | '\u{9cd}'
                    | '\u{a4d}'
                    | '\u{acd}'
                    | '\u{b4d}'
                    | '\u{bcd}'
                    | '\u{c4d}'
                    | '\u{ccd}'
                    | '\u{d4d}'
                    | '\u{dca}'
            )
        );
        is_behind && matches!(next, Some('\u{904}'..='\u{dc6}'))
    }

    /// Whether two letters are kept apart as Persian does within a word.
    fn parts_arabic(&self, next: Option<char>) -> bool {
        let is_letter = |letter: Option<char>| {
            matches!(letter, Some('\u{620}'..='\u{64a}' | '\u{671}'..='\u{6d3}'))
        };
        is_letter(self.last) && is_letter(next)
    }
}

/// The text that this shows.
#[cfg(test)]
pub(crate) fn read_back(shown: &str) -> String {
    let mut text = String::new();
    let mut rest = shown;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix("u{").and_then(|spelled| spelled.split_once('}')) {
            Some((number, behind)) => {
                let number = u32::from_str_radix(number, 16).unwrap();
                text.push(char::from_u32(number).unwrap());
                rest = behind;
            }
            // An escape of JSON, with what it escapes.
            None => {
                let escaped = rest.chars().next().unwrap();
                text.push('\\');
                text.push(escaped);
                rest = &rest[escaped.len_utf8()..];
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn signs(text: &str) -> String {
        super::text(text, Reads::Signs)
    }

    fn prose(text: &str) -> String {
        super::text(text, Reads::Prose)
    }

    #[test]
    fn nothing_hides_among_the_signs_that_a_program_is_given() {
        for (hidden, seen) in [
            ("a\nb", r"a\u{a}b"),
            ("a\u{1b}[2Kb", r"a\u{1b}[2Kb"),
            ("a\u{202e}b", r"a\u{202e}b"),
            ("a\u{200b}b\u{feff}", r"a\u{200b}b\u{feff}"),
            ("a```b", r"a\u{60}\u{60}\u{60}b"),
            ("a\u{a0}b\u{3000}", r"a\u{a0}b\u{3000}"),
            ("e\u{301}", r"e\u{301}"),
            ("\u{3164}\u{115f}\u{2800}", r"\u{3164}\u{115f}\u{2800}"),
            ("\u{e0041}\u{fe0f}", r"\u{e0041}\u{fe0f}"),
            ("a–b“👍", r"a\u{2013}b\u{201c}\u{1f44d}"),
            ("naïve 東京 42", "naïve 東京 42"),
        ] {
            assert_eq!(signs(hidden), seen);
        }
    }

    #[test]
    fn what_people_write_is_shown_as_they_read_it() {
        for text in [
            "Dinner – at “eight” … or 20:00‽ 5 € · ½ × √2 → ✓",
            "晚饭八点,好吗?《家》。「はい」、・",
            "नमस्ते, क्या आप ठीक हैं? हिन्दी में क्‍ष।",
            "தமிழ் ไทยน้ำ עִבְרִית العَرَبِيَّة می‌خواهم",
            "e\u{301} Vie\u{302}\u{323}t",
            "👍🏽 👨‍👩‍👧 🏳️‍🌈 ❤️ 👩🏽‍💻 🇩🇪 1️⃣ #️⃣ ♀️",
        ] {
            assert_eq!(prose(text), text);
        }
    }

    #[test]
    fn nothing_hides_in_what_people_write() {
        for (hidden, seen) in [
            ("a\u{202e}b\u{2066}", r"a\u{202e}b\u{2066}"),
            (
                "a\u{200b}\u{200e}\u{61c}\u{feff}\u{2060}",
                r"a\u{200b}\u{200e}\u{61c}\u{feff}\u{2060}",
            ),
            ("a\u{200d}b\u{200c}c", r"a\u{200d}b\u{200c}c"),
            ("😀\u{200d}a", r"😀\u{200d}a"),
            ("😀\u{200d}\u{200d}😀", r"😀\u{200d}\u{200d}😀"),
            ("😀\u{200d}\u{1fbff}", r"😀\u{200d}\u{1fbff}"),
            ("a\u{fe0f}1\u{fe0f}1\u{20e3}", r"a\u{fe0f}1\u{fe0f}1\u{20e3}"),
            ("😀\u{fe0f}\u{fe0f}\u{fe0e}", "😀\u{fe0f}\\u{fe0f}\\u{fe0e}"),
            ("\u{1f3f4}\u{e0067}\u{e007f}", "\u{1f3f4}\\u{e0067}\\u{e007f}"),
            (
                "\u{115f}\u{1160}\u{3164}\u{ffa0}\u{2800}",
                r"\u{115f}\u{1160}\u{3164}\u{ffa0}\u{2800}",
            ),
            ("\u{a0}\u{2003}\u{3000}\u{2028}", r"\u{a0}\u{2003}\u{3000}\u{2028}"),
            ("\u{e000}\u{378}\u{ad}\u{34f}\u{180e}", r"\u{e000}\u{378}\u{ad}\u{34f}\u{180e}"),
            ("`\u{1fef}", r"\u{60}\u{1fef}"),
            // Upon what does not stand for itself, a mark does not either.
            ("\u{301}\"\u{301}\u{200b}\u{301}", "\\u{301}\"\\u{301}\\u{200b}\\u{301}"),
            ("n\u{336}o\u{338}x\u{20e0}", r"n\u{336}o\u{338}x\u{20e0}"),
            (
                "a\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}",
                "a\u{301}\u{302}\u{303}\u{304}\\u{305}\\u{306}",
            ),
        ] {
            assert_eq!(prose(hidden), seen);
        }
    }

    /// What deceives whoever reads it, wherever it stands.
    fn deceives(character: char) -> bool {
        matches!(character,
            '\0'..='\u{1f}' | '\u{7f}'..='\u{a0}' | '`' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'
            | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{1fef}'
            | '\u{2000}'..='\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202f}'
            | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{e000}'..='\u{f8ff}'
            | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffc}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}')
    }

    #[test]
    fn whatever_deceives_is_spelled_out_alone() {
        // Of the planes for private use, some.
        let is_tried = |character: &char| {
            *character < '\u{e1000}' || u32::from(*character).is_multiple_of(997)
        };
        for character in ('\0'..=char::MAX).filter(is_tried).filter(|one| deceives(*one)) {
            for shown in [signs(&format!("a{character}b")), prose(&format!("a{character}b"))] {
                assert_eq!(shown, format!("a\\u{{{:x}}}b", u32::from(character)));
            }
        }
    }

    fn characters() -> impl Strategy<Value = String> {
        let apt = "a1#*\\u{}\"ے می☎❤😀🏽क्षे\u{94d}\u{301}\u{336}\u{20e3}\u{200c}\u{200d}\u{fe0f}\u{202e}\u{200b}`";
        let apt: Vec<char> = apt.chars().collect();
        prop::collection::vec(
            prop_oneof![3 => prop::sample::select(apt), 1 => any::<char>()],
            0..40,
        )
        .prop_map(|characters| characters.into_iter().collect())
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back_as_exactly_one_text(text in characters()) {
            for shown in [signs(&text), prose(&text)] {
                prop_assert_eq!(read_back(&shown), text.clone());
            }
        }

        #[test]
        fn nothing_that_deceives_stands_for_itself(text in characters()) {
            for shown in [signs(&text), prose(&text)] {
                prop_assert!(!shown.contains(deceives), "{shown:?}");
            }
            let shown: Vec<char> = prose(&text).chars().collect();
            for pair in shown.windows(2) {
                let is_invisible = matches!(pair[1], '\u{200c}' | '\u{200d}' | '\u{fe0f}');
                prop_assert!(!is_invisible || !pair[0].is_ascii_punctuation() || pair[0] == '#' || pair[0] == '*');
                prop_assert!(!is_invisible || !pair[0].is_ascii_alphabetic());
            }
        }
    }
}
