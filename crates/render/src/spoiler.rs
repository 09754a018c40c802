//! Finds what is hidden between double pipes, as chats write it.

use std::ops::Range;

/// Where the hidden texts between their marks are, in order. They have a word in them: `||x||` is a
/// norm, and `a || b || c` is a program.
pub(crate) fn spoilers(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if !text.contains('|') {
        return found;
    }
    let mut open: Option<usize> = None;
    for (mark, _) in text.match_indices("||") {
        match open.take() {
            Some(start) if is_hidden(text, start, mark) => found.push(start..mark),
            _ => open = may_open(text, mark).then_some(mark + 2),
        }
    }
    found
}

fn may_open(text: &str, mark: usize) -> bool {
    let before = text[..mark].chars().next_back();
    let after = text[mark + 2..].chars().next();
    before.is_none_or(|c| !c.is_alphanumeric() && c != '|')
        && after.is_some_and(|c| !c.is_whitespace() && c != '|')
}

fn is_hidden(text: &str, start: usize, end: usize) -> bool {
    let hidden = &text[start..end];
    let has_word = hidden
        .split(|c: char| !c.is_alphabetic())
        .any(|word| word.len() > 4 || word.chars().count() > 2);
    let after = text[end + 2..].chars().next();
    has_word
        && !hidden.ends_with(char::is_whitespace)
        && after.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '|' | '_' | '^'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_hidden_and_programs_are_not() {
        for (text, expect) in [
            ("||the butler did it||", vec!["the butler did it"]),
            ("He ||dies|| and ||comes back||.", vec!["dies", "comes back"]),
            ("||凶手是管家||", vec!["凶手是管家"]),
            ("||x|| and ||x - y||_2", vec![]),
            ("if (a || b || c)", vec![]),
            ("done||failed||skipped", vec![]),
            ("|| spaced ||", vec![]),
            ("||||word||||", vec![]),
            ("||open", vec![]),
        ] {
            let found: Vec<_> = spoilers(text).into_iter().map(|range| &text[range]).collect();
            assert_eq!(found, expect, "{text}");
        }
    }
}
