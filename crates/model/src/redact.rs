//! Texts without the secrets that are in them.

use std::borrow::Cow;
use std::sync::Arc;

use crate::Secret;

/// What stands in the place of a secret.
const HIDDEN: &str = "(hidden)";

/// Of what is still being written, this much may be seen of what could become a secret: it would otherwise
/// stop at every letter that one begins with.
const GLIMPSE: usize = 3;

/// Knows secrets, and takes them out of texts: as they are, and as they are written inside of JSON and of
/// an address.
#[derive(Clone, Default)]
pub struct Redactor(Arc<[Secret]>);

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
        Self(written.into())
    }

    /// Takes out what either of the two does.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self::of(self.0.iter().chain(other.0.iter()).cloned())
    }

    /// The text without secrets.
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in self.0.iter() {
            if text.contains(secret.expose()) {
                text = Cow::Owned(text.replace(secret.expose(), HIDDEN));
            }
        }
        text
    }

    /// The beginning of a text without secrets, while more of it is to come: what may be the first part of
    /// one is left away.
    pub fn clean_so_far<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let clean = self.clean(text);
        let begun = |secret: &Secret| {
            let secret = secret.expose();
            let parts = secret.char_indices().map(|(at, _)| at).rev();
            parts.take_while(|at| *at > GLIMPSE).find(|at| clean.ends_with(&secret[..*at]))
        };
        match self.0.iter().filter_map(begun).max() {
            Some(begun) => Cow::Owned(clean[..clean.len() - begun].to_owned()),
            None => clean,
        }
    }
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
        let redactor = redactor(&["sk-canary-1", "sk-other"]);
        let whole = "use sk-canary-1, as ever: sk-";
        for (end, _) in whole.char_indices() {
            let shown = redactor.clean_so_far(&whole[..end]);
            assert!(!shown.contains("sk-c"), "{shown}");
        }
        assert_eq!(redactor.clean_so_far(whole), "use (hidden), as ever: sk-");
        assert_eq!(redactor.clean_so_far("it is sk-canary"), "it is ");
        assert_eq!(redactor.clean_so_far("it is sk-cat"), "it is sk-cat", "none begins like this");
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
