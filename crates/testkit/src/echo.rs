//! How an answer shows which message it answers, and whether it is whole.
//!
//! Every message carries a token. The model says `echo`, then what it heard, some words, then `done`
//! and what it heard again. So a reader knows which messages an answer answers, and a text that was
//! cut lacks its end.

use std::fmt;

/// What the end of an answer begins with.
const END: &str = " done: ";

/// Names one message of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tok{:07}", self.0)
    }
}

/// A whole answer to what was said, with `filler` words in the middle.
pub fn echo(said: &str, filler: usize) -> String {
    let mut text = format!("echo: {said}");
    for n in 0..filler {
        text.push_str([" and", " so", " the", " story", " goes", " on"][n % 6]);
    }
    text.push_str(END);
    text.push_str(said);
    text
}

/// The tokens that a text mentions, in order.
pub fn mentioned(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (at, _) in text.match_indices("tok") {
        let digits = text.get(at + 3..at + 10).unwrap_or_default();
        if digits.len() == 7
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(number) = digits.parse()
        {
            let token = Token(number);
            if !tokens.contains(&token) {
                tokens.push(token);
            }
        }
    }
    tokens
}

/// The tokens whose answer ends in this text.
pub fn complete(text: &str) -> Vec<Token> {
    text.rsplit_once(END.trim_start()).map(|(_, end)| mentioned(end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_names_what_it_answers_and_a_cut_one_is_not_complete() {
        let whole = echo("hello tok0000012 / tok0000013", 3);
        assert_eq!(mentioned(&whole), [Token(12), Token(13)]);
        assert_eq!(complete(&whole), [Token(12), Token(13)]);
        let cut = &whole[..whole.len() - 20];
        assert_eq!(mentioned(cut), [Token(12), Token(13)]);
        assert_eq!(complete(cut), []);
        assert_eq!(mentioned("token tok12 tok"), []);
    }
}
