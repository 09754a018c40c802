//! What an answer means when it says nothing, and what is put under it.

use talaria_model::{Cost, Usage};

/// Longer texts are never meant as silence.
const LONGEST: usize = 64;

/// What a model writes when it has nothing to say.
const MARKERS: [&str; 4] = ["[silent]", "silent", "no_reply", "no reply"];

/// What may stand around a marker without changing it. Brackets are a part of it.
fn is_edge(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '.' | ',' | '!' | '?' | ';' | ':' | '*' | '_' | '~' | '`' | '"' | '\'' | '(' | ')'
        )
}

/// Whether a whole answer says that there is nothing to say.
pub fn is_silence(answer: &str) -> bool {
    let bare = answer.trim_matches(is_edge).to_lowercase();
    answer.trim().chars().count() <= LONGEST && MARKERS.contains(&bare.as_str())
}

/// Whether an answer that is still growing may turn out to be silence, so that it is not shown yet.
pub fn may_be_silence(so_far: &str) -> bool {
    let bare = so_far.trim_matches(is_edge).to_lowercase();
    !bare.is_empty()
        && so_far.trim().chars().count() <= LONGEST
        && MARKERS.iter().any(|marker| marker.starts_with(&bare))
}

/// Whether a text that is sent somewhere only tells of silence.
pub fn tells_of_silence(text: &str) -> bool {
    let text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '~' | '`'));
    let lower = text.to_lowercase();
    let dots = !text.is_empty() && text.chars().all(|c| matches!(c, '.' | '…'));
    text.chars().count() <= LONGEST
        && (dots || matches!(lower.as_str(), "(silent)" | "(no reply)" | "no reply" | "🔇"))
}

/// Whether what a schedule produced says that it is not to be sent: by the marker alone, before a
/// remark, or at the end.
pub fn withholds(text: &str) -> bool {
    let upper = text.trim().to_uppercase();
    let last = upper.lines().next_back().map(str::trim);
    matches!(upper.as_str(), "NO_REPLY" | "NO REPLY" | "SILENT")
        || upper.starts_with("[SILENT]")
        || last == Some("[SILENT]")
}

/// A text with a line of ours under it. A block of code that is still open ends before that.
pub(crate) fn under(text: &str, line: &str) -> String {
    let text = text.trim_end();
    match open_fence(text) {
        Some(fence) => format!("{text}\n{fence}\n\n{line}"),
        None => format!("{text}\n\n{line}"),
    }
}

/// What closes the block of code that a text leaves open.
fn open_fence(text: &str) -> Option<String> {
    let mut open: Option<(char, usize)> = None;
    for line in text.lines() {
        let body = line.trim_start_matches(' ');
        let marks = |mark: char| body.chars().take_while(|c| *c == mark).count();
        let indented = line.len() - body.len() > 3;
        match open {
            Some((mark, length)) => {
                let rest = body.trim_start_matches(mark).trim();
                if !indented && marks(mark) >= length && rest.is_empty() {
                    open = None;
                }
            }
            None if indented => {}
            None => {
                let fence = ['`', '~'].map(|mark| (mark, marks(mark)));
                open = fence.into_iter().find(|(mark, length)| {
                    // Backticks after backticks are code within a line.
                    let rest = &body[*length..];
                    *length >= 3 && !(*mark == '`' && rest.contains('`'))
                });
            }
        }
    }
    open.map(|(mark, length)| mark.to_string().repeat(length))
}

/// The line under an answer that says what it used.
pub(crate) fn footer(usage: Usage, cost: Cost, model: Option<&str>) -> String {
    let model = model.map(|model| format!("{model} · ")).unwrap_or_default();
    format!("*{model}{} in · {} out · {cost}*", count(usage.prompt()), count(usage.output))
}

/// A number of tokens as people read it.
pub(crate) fn count(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}.{}k", tokens / 1_000, tokens % 1_000 / 100),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_told_from_words_about_silence() {
        // Whether it is silence, may become silence, tells of silence, and is withheld.
        for (text, expected) in [
            ("NO_REPLY", [true, true, false, true]),
            ("no reply", [true, true, true, true]),
            ("[SILENT]", [true, true, false, true]),
            (".NO_REPLY", [true, true, false, false]),
            ("*NO_REPLY*", [true, true, false, false]),
            ("[SILENT", [false, true, false, false]),
            ("(silent)", [true, true, true, false]),
            ("*(silent)*", [true, true, true, false]),
            ("🔇", [false, false, true, false]),
            ("...", [false, false, true, false]),
            ("[SILENT] nothing", [false, false, false, true]),
            ("done\n[SILENT]", [false, false, false, true]),
            ("SILENT mode on", [false; 4]),
            ("NO_REPLY now", [false; 4]),
            ("", [false; 4]),
        ] {
            let seen =
                [is_silence(text), may_be_silence(text), tells_of_silence(text), withholds(text)];
            assert_eq!(seen, expected, "{text:?}");
        }
        let padded = format!("NO_REPLY{}", ".".repeat(80));
        assert!(!is_silence(&padded), "nobody who means silence writes that much");
    }

    #[test]
    fn an_answer_that_only_begins_like_silence_is_shown_as_soon_as_it_differs() {
        assert!(may_be_silence("No"));
        assert!(may_be_silence("no r"));
        assert!(!may_be_silence("No, that"));
        assert!(!may_be_silence("Nothing"));
    }

    #[test]
    fn what_stands_under_a_text_is_never_part_of_its_code() {
        for (text, expected) in [
            ("Hello ", "Hello\n\n*x*"),
            ("```\nlet", "```\nlet\n```\n\n*x*"),
            ("```rust\nlet\n```", "```rust\nlet\n```\n\n*x*"),
            ("````\n```\na", "````\n```\na\n````\n\n*x*"),
            ("~~~\n```", "~~~\n```\n~~~\n\n*x*"),
            ("a ```b``` c\n```d```", "a ```b``` c\n```d```\n\n*x*"),
            ("    ```", "    ```\n\n*x*"),
        ] {
            assert_eq!(under(text, "*x*"), expected, "{text:?}");
        }
    }

    #[test]
    fn a_footer_says_what_an_answer_used() {
        let usage = Usage { input: 900, cache_read: 11_400, output: 210, ..Usage::default() };
        assert_eq!(
            footer(usage, Cost::known(4_200), Some("m")),
            "*m · 12.3k in · 210 out · $0.0042*"
        );
        assert_eq!(footer(Usage::default(), Cost::FREE, None), "*0 in · 0 out · free*");
    }
}
