//! What people say when they mean us, as a regular expression. A search takes time in proportion to the
//! text, whatever the expression.

use std::fmt;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

/// The longest expression.
const LONGEST: usize = 500;

/// How much memory an expression may take.
const LARGEST: usize = 1 << 20;

/// A regular expression that does not mind upper and lower case.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

/// Not a regular expression, or too large a one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a regular expression, or a very large one")]
pub struct PatternError;

impl Pattern {
    /// Reads an expression.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if text.trim().is_empty() || text.len() > LONGEST {
            return Err(PatternError);
        }
        let regex = Regex::builder()
            .configure(Regex::config().nfa_size_limit(Some(LARGEST)))
            .syntax(syntax::Config::new().case_insensitive(true))
            .build(text)
            .map_err(|_| PatternError)?;
        Ok(Self { text: text.to_owned(), regex })
    }

    /// Whether it is somewhere in a text.
    pub fn is_in(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.text).finish()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_found_anywhere_and_in_any_case() {
        let hey = Pattern::new(r"^\s*(hey|ok) tally\b").unwrap();
        for (text, expected) in [
            ("Hey Tally, what now?", true),
            ("ok tally", true),
            ("he said hey tally", false),
            ("hey tallyho", false),
        ] {
            assert_eq!(hey.is_in(text), expected, "{text}");
        }
        assert!(Pattern::new("[").is_err());
        assert!(Pattern::new(" ").is_err());
        assert!(Pattern::new(r"(\w{1000}){1000}").is_err());
    }
}
