//! Texts without the secrets that are in them.

use std::borrow::Cow;
use std::sync::Arc;

use crate::Secret;

/// What stands in the place of a secret.
const HIDDEN: &str = "(hidden)";

/// Knows secrets, and takes them out of texts: as they are, and as they are written inside of JSON and of
/// an address.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Arc<[Secret]>,
    /// The bytes of the longest word in any of them.
    longest_word: usize,
}

impl Redactor {
    /// Takes these out. Whoever knows the shortest that guards anything leaves shorter ones away.
    pub fn of(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut written: Vec<Secret> = secrets.into_iter().flat_map(|it| forms(&it)).collect();
        // One may be part of another.
        written.sort_by(|a, b| {
            let (a, b) = (a.expose(), b.expose());
            b.len().cmp(&a.len()).then_with(|| a.cmp(b))
        });
        written.dedup_by(|a, b| a.expose() == b.expose());
        let words = written.iter().flat_map(|secret| secret.expose().split(is_break));
        let longest_word = words.map(str::len).max().unwrap_or_default();
        Self { secrets: written.into(), longest_word }
    }

    /// Takes out what either of the two does.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self::of(self.secrets.iter().chain(other.secrets.iter()).cloned())
    }

    /// The text without secrets.
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in self.secrets.iter() {
            if text.contains(secret.expose()) {
                text = Cow::Owned(text.replace(secret.expose(), HIDDEN));
            }
        }
        text
    }

    /// The beginning of a text without secrets, while more of it is to come: what may be the first part of
    /// one is left away.
    ///
    /// The word at its end is left away whatever it is. If only the beginnings of secrets were, whoever has us
    /// write one guess after the other would see which letter is right.
    pub fn clean_so_far<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let clean = self.clean(text);
        let begins = clean.rfind(is_break).map_or(0, |at| at + width(&clean[at..]));
        let word = clean.len() - begins;
        let end = begins + word.saturating_sub(self.longest_word);
        // Of a secret of several words, whole ones may stand in front of it, which nobody guesses letter by letter.
        let words = match end == begins {
            true => self.words_at_the_end(&clean[..end]),
            false => 0,
        };
        match end - words {
            end if end == clean.len() => clean,
            end => Cow::Owned(clean[..end].to_owned()),
        }
    }

    /// How many bytes at the end of a text are the first words of a secret with more of them.
    fn words_at_the_end(&self, text: &str) -> usize {
        let begun = |secret: &Secret| {
            let secret = secret.expose();
            let after = secret.match_indices(is_break).map(|(at, found)| at + found.len());
            after.rev().find(|after| text.ends_with(&secret[..*after]))
        };
        self.secrets.iter().filter_map(begun).max().unwrap_or_default()
    }
}

/// Whether a character ends a word. Tokens and keys have none of these in them; what people write in most scripts
/// has.
fn is_break(c: char) -> bool {
    !c.is_ascii_graphic()
}

/// The bytes of the first character.
fn width(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// A secret as it can stand in a text.
fn forms(secret: &Secret) -> Vec<Secret> {
    let text = secret.expose();
    if text.is_empty() {
        return Vec::new();
    }
    let mut in_json = String::new();
    let mut in_address = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => in_json.extend(['\\', c]),
            '\n' => in_json.push_str("\\n"),
            '\r' => in_json.push_str("\\r"),
            '\t' => in_json.push_str("\\t"),
            c if c.is_control() => in_json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => in_json.push(c),
        }
        match c {
            c if c.is_ascii_alphanumeric() || "-._~".contains(c) => in_address.push(c),
            c => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    in_address.push_str(&format!("%{byte:02X}"));
                }
            }
        }
    }
    let mut forms = vec![secret.clone()];
    forms.extend([in_json, in_address].into_iter().filter(|form| form != text).map(Secret::new));
    forms
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn redactor(secrets: &[&str]) -> Redactor {
        Redactor::of(secrets.iter().map(|secret| Secret::new(*secret)))
    }

    #[test]
    fn of_a_text_that_grows_no_beginning_of_a_secret_is_shown() {
        let redactor = redactor(&["sk-canary-1", "sk-other", "correct horse bättery", "a\nb\nc"]);
        let whole = "use sk-canary-1, as ever, or correct horse bättery: sk-";
        for (end, _) in whole.char_indices() {
            let shown = redactor.clean_so_far(&whole[..end]);
            assert!(!shown.contains("sk-") && !shown.contains("correct"), "{shown}");
        }
        for (so_far, shown) in [
            (whole, "use (hidden), as ever, or (hidden): "),
            ("it is sk-canary", "it is "),
            ("it is sk-cat", "it is "),
            ("it is sk-cat ", "it is sk-cat "),
            ("it is correct horse b", "it is "),
            ("it is correct hors", "it is "),
            ("it is correct and", "it is "),
            ("it is correct and so", "it is correct and "),
            ("so a\nb", "so "),
            ("schön", "schö"),
            ("もう少し", "もう少し"),
            ("", ""),
        ] {
            assert_eq!(redactor.clean_so_far(so_far), shown, "{so_far}");
        }
        let long = format!("it is {}", "x".repeat(30));
        assert_eq!(
            redactor.clean_so_far(&long),
            &long[..long.len() - "correct%20horse%20b%C3%A4ttery".len()]
        );
        assert!(matches!(
            Redactor::default().clean_so_far("it is sk-"),
            Cow::Borrowed("it is sk-")
        ));
    }

    #[test]
    fn secrets_are_taken_out_however_they_are_written() {
        let redactor = redactor(&["42:AbC-d_e", "pass\"wörd\\", "42:AbC-d_e-longer", ""]);
        for (text, clean) in [
            ("nothing here", "nothing here"),
            ("GET /bot42:AbC-d_e/getMe", "GET /bot(hidden)/getMe"),
            ("GET /bot42%3AAbC-d_e/getMe", "GET /bot(hidden)/getMe"),
            ("42:AbC-d_e-longer 42:AbC-d_e", "(hidden) (hidden)"),
            (r#"{"p":"pass\"wörd\\"}"#, r#"{"p":"(hidden)"}"#),
            (r#"pass"wörd\"#, "(hidden)"),
            ("p=pass%22w%C3%B6rd%5C&x", "p=(hidden)&x"),
        ] {
            assert_eq!(redactor.clean(text), clean);
        }
        assert!(matches!(redactor.clean("nothing"), Cow::Borrowed(_)));
        let both = redactor.and(&super::tests::redactor(&["another"]));
        assert_eq!(both.clean("another 42:AbC-d_e"), "(hidden) (hidden)");
        assert_eq!(Redactor::default().clean("anything"), "anything");
    }

    proptest! {
        #[test]
        fn what_grows_does_not_tell_how_much_of_a_guess_is_right(
            one in "[a-z0-9]{8}",
            other in "[a-z0-9]{8}",
            right in 0..8usize,
            around in "[ a-zö]{0,12}",
        ) {
            let guess = format!("{around}{}", &one[..right]);
            for (end, _) in guess.char_indices().chain([(guess.len(), ' ')]) {
                let so_far = &guess[..end];
                prop_assert_eq!(
                    redactor(&[&one]).clean_so_far(so_far),
                    redactor(&[&other]).clean_so_far(so_far)
                );
            }
        }

        #[test]
        fn no_secret_survives(
            secrets in prop::collection::vec("[a-zA-Z0-9:/+\"\\\\ é-]{6,20}", 1..5),
            between in prop::collection::vec(".{0,10}", 6),
        ) {
            let redactor = Redactor::of(secrets.iter().map(Secret::new));
            let text: String =
                between.iter().enumerate().map(|(at, word)| format!("{word}{}", secrets[at % secrets.len()])).collect();
            let clean = redactor.clean(&text);
            for secret in &secrets {
                // What takes its place is made of words, too.
                let left = clean.replace(HIDDEN, "\0");
                prop_assert!(!left.contains(secret.as_str()), "{}", left);
            }
        }
    }
}
