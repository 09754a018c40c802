//! Calls that the operator never lets be made.

use serde_json::Value;

use crate::approval::canonical;

/// What is never called, whoever asks and whoever would approve it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refused {
    patterns: Vec<(String, Option<String>)>,
}

impl Refused {
    /// From `tool` or `tool:pattern`, in which `*` stands for anything. The pattern is held against
    /// every text among the arguments, and against all of them as JSON.
    pub fn new<'a>(written: impl IntoIterator<Item = &'a str>) -> Self {
        let divided = written.into_iter().map(|line| match line.split_once(':') {
            Some((tool, pattern)) => (tool.to_owned(), Some(pattern.to_owned())),
            None => (line.to_owned(), None),
        });
        Self { patterns: divided.collect() }
    }

    /// Whether a call is among it.
    pub(crate) fn holds(&self, tool: &str, arguments: &Value) -> bool {
        self.patterns.iter().any(|(of, pattern)| {
            fits(of, tool)
                && pattern.as_ref().is_none_or(|pattern| {
                    fits(pattern, &canonical(arguments)) || in_any(pattern, arguments)
                })
        })
    }
}

fn in_any(pattern: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => fits(pattern, text),
        Value::Array(items) => items.iter().any(|item| in_any(pattern, item)),
        Value::Object(fields) => fields.values().any(|value| in_any(pattern, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a text is what a pattern says, capital letters or not. Takes time in proportion to both.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.to_lowercase().chars().collect(), text.to_lowercase().chars().collect());
    let (mut at, mut read) = (0, 0);
    // The last star, and how much of the text it stands for.
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at, read));
            at += 1;
        } else if pattern.get(at) == Some(&text[read]) {
            at += 1;
            read += 1;
        } else if let Some((place, upto)) = star {
            star = Some((place, upto + 1));
            (at, read) = (place + 1, upto + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|character| *character == '*')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_star_stands_for_anything_and_nothing_else_does() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "abcd", false),
            ("*b*", "abc", true),
            ("*b", "abc", false),
            ("*ab", "aab", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("a?c", "abc", false),
            ("[a]", "a", false),
            ("ABC", "abc", true),
            ("a.c", "abc", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern:?} and {text:?}");
        }
    }

    #[test]
    fn a_call_is_refused_by_its_tool_or_by_any_text_in_it() {
        let refused = Refused::new(["wipe", "run_*:*rm*", "send:{\"to\":\"all\"}"]);
        for (tool, arguments, expected) in [
            ("wipe", json!({}), true),
            ("wiper", json!({}), false),
            ("run_program", json!({ "args": ["-r", "/bin/rm"] }), true),
            ("run_program", json!({ "args": ["ls"] }), false),
            ("run_program", json!({ "deep": { "deeper": [1, "RM"] } }), true),
            ("pay", json!({ "args": ["rm"] }), false),
            ("send", json!({ "to": "all" }), true),
            ("send", json!({ "to": "bob" }), false),
        ] {
            assert_eq!(refused.holds(tool, &arguments), expected, "{tool} {arguments}");
        }
        assert!(!Refused::default().holds("wipe", &json!({})));
    }
}
