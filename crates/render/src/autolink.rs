//! Finds web addresses that were written without any marks, as people and models do.

use std::ops::Range;

/// Where the addresses in a text are, in order. An address begins where a word could begin, and does
/// not take along the punctuation of the sentence around it.
pub(crate) fn addresses(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    if !text.contains(':') {
        return found;
    }
    for (colon, _) in text.match_indices("://") {
        let Some(start) = ["https", "http"].iter().find_map(|scheme| {
            let start = colon.checked_sub(scheme.len())?;
            text.get(start..colon)?.eq_ignore_ascii_case(scheme).then_some(start)
        }) else {
            continue;
        };
        let inside_another = found.last().is_some_and(|last| start < last.end);
        if inside_another || text[..start].ends_with(is_part_of_word) {
            continue;
        }
        let host = colon + "://".len();
        let end = host + without_punctuation(until_outside(&text[host..])).len();
        if text[host..end].starts_with(|c: char| c.is_alphanumeric() || c == '[') {
            found.push(start..end);
        }
    }
    found
}

/// In scripts that put no spaces between words, a word could begin anywhere.
fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() && !matches!(c, '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}')
}

fn until_outside(text: &str) -> &str {
    let outside = |c: char| {
        c.is_whitespace()
            || matches!(c, '<' | '>' | '"' | '`' | '|' | '\\' | '^' | '{' | '}')
            || matches!(c, '\u{3001}'..='\u{3002}' | '\u{3008}'..='\u{3011}')
            || matches!(c, '！' | '（' | '）' | '，' | '：' | '；' | '？' | '“' | '”')
    };
    text.find(outside).map_or(text, |end| &text[..end])
}

fn without_punctuation(mut address: &str) -> &str {
    // A closing bracket belongs to the address only if the address opened it, as in
    // `https://en.wikipedia.org/wiki/Mercury_(planet)`.
    let mut unmatched = address.matches(')').count().saturating_sub(address.matches('(').count());
    loop {
        address =
            address.trim_end_matches(['.', ',', ':', ';', '!', '?', '*', '_', '~', '\'', '…']);
        match address.strip_suffix(')') {
            Some(shorter) if unmatched > 0 => {
                address = shorter;
                unmatched -= 1;
            }
            _ => return address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_ends_where_the_sentence_goes_on() {
        for (text, expect) in [
            ("see https://a.example/b?c=d#e.", vec!["https://a.example/b?c=d#e"]),
            ("(http://a.example)", vec!["http://a.example"]),
            ("((http://a.example).)", vec!["http://a.example"]),
            ("https://a.example/M_(p) x", vec!["https://a.example/M_(p)"]),
            ("HTTP://LOCALHOST:8080/!", vec!["HTTP://LOCALHOST:8080/"]),
            ("在 https://a.example/b。好", vec!["https://a.example/b"]),
            ("请看https://a.example/b。", vec!["https://a.example/b"]),
            ("http://a.example, http://b.example", vec!["http://a.example", "http://b.example"]),
            ("http://a.example/?u=http://b.example", vec!["http://a.example/?u=http://b.example"]),
            ("xhttp://a.example ftp://b.example http:// http://. éhttp://x", vec![]),
        ] {
            let found: Vec<_> = addresses(text).into_iter().map(|range| &text[range]).collect();
            assert_eq!(found, expect, "{text}");
        }
    }
}
