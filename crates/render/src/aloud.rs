//! What of a document can be read aloud: words and no marks.
//!
//! Code is for the eyes and left out, and so is what somebody hid until it is asked for. An address is
//! said by the name of its host.

use crate::document::{Block, Document, Inline, shows_address};

/// The words of a document, as somebody would read them to another, with at most `longest`
/// characters. Empty where there is nothing to be said.
pub fn aloud(document: &Document, longest: usize) -> String {
    let mut lines = Vec::new();
    say_blocks(document.blocks(), &mut lines);
    cut(&lines.join("\n"), longest)
}

fn say_blocks(blocks: &[Block], lines: &mut Vec<String>) {
    for block in blocks {
        match block {
            Block::Paragraph(text) | Block::Heading { text, .. } => say(text, lines),
            Block::List { items, .. } => {
                items.iter().for_each(|item| say_blocks(&item.blocks, lines));
            }
            Block::Quote(inner) => say_blocks(inner, lines),
            Block::Table { rows, .. } => {
                for row in rows {
                    let cells: Vec<String> = row.iter().map(|cell| spoken(cell)).collect();
                    let said = cells.iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty());
                    finish(&said.collect::<Vec<_>>().join(", "), lines);
                }
            }
            Block::Code { .. } | Block::Rule => {}
        }
    }
}

fn say(text: &[Inline], lines: &mut Vec<String>) {
    finish(&spoken(text), lines);
}

/// A line of its own that sounds as if it ended.
fn finish(text: &str, lines: &mut Vec<String>) {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().any(char::is_alphanumeric) {
        let stop = if text.ends_with(|c: char| c.is_alphanumeric() || c == ')') { "." } else { "" };
        lines.push(format!("{text}{stop}"));
    }
}

fn spoken(inlines: &[Inline]) -> String {
    let mut text = String::new();
    for inline in inlines {
        match inline {
            Inline::Text(words) | Inline::Code(words) => text.push_str(words),
            Inline::Math(formula) => text.push_str(formula.trim_matches('$')),
            Inline::Strong(inner) | Inline::Emphasis(inner) => text.push_str(&spoken(inner)),
            Inline::Strike(_) | Inline::Spoiler(_) => {}
            Inline::Link { to, text: shown } if shows_address(shown, to) => {
                text.push_str(host(to));
            }
            Inline::Link { text: shown, .. } => text.push_str(&spoken(shown)),
            Inline::Break => text.push(' '),
        }
    }
    text
}

/// What people call an address.
fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let rest = rest.strip_prefix("mailto:").unwrap_or(rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    host.strip_prefix("www.").unwrap_or(host)
}

/// The beginning of a text, up to the end of a sentence, else of a word.
fn cut(text: &str, longest: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(longest) else { return text.to_owned() };
    let begin = &text[..end];
    let sentence = begin
        .rfind(['\n', '.', '!', '?', '。', '！', '？'])
        .map(|at| at + begin[at..].chars().next().map_or(0, char::len_utf8));
    let word = begin.rfind(char::is_whitespace);
    let kept = sentence.filter(|at| *at > end / 2).or(word).unwrap_or(end);
    begin[..kept].trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(markdown: &str, expected: &str) {
        assert_eq!(aloud(&crate::parse(markdown), 1000), expected, "{markdown:?}");
    }

    #[test]
    fn marks_are_not_read_aloud() {
        check("# Hello\n\n**So** it `is`, *indeed*", "Hello.\nSo it is, indeed.");
        check("- one\n- [ ] two\n\n1. three!", "one.\ntwo.\nthree!");
        check("> quoted\n\n---\n\nend", "quoted.\nend.");
        check("~~no~~ yes, $x^2$", "yes, x^2.");
        check("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | |", "1, 2.\n3.");
    }

    #[test]
    fn code_and_what_is_hidden_are_left_out() {
        check("Do this:\n\n```sh\nrm -rf /\n```\n\nthen wait", "Do this:\nthen wait.");
        check("```\nonly code\n```", "");
        check("he is ||the murderer||", "he is.");
        check("👍 …", "");
    }

    #[test]
    fn a_link_is_its_words_and_an_address_its_host() {
        check("see [the page](https://a.example/x)", "see the page.");
        check("see <https://www.a.example/x?y=1>", "see a.example.");
    }

    #[test]
    fn a_long_text_ends_with_a_sentence_or_at_least_with_a_word() {
        let long = |longest| aloud(&crate::parse("One two. Three four five"), longest);
        assert_eq!(long(12), "One two.");
        assert_eq!(long(17), "One two. Three");
        assert_eq!(long(100), "One two. Three four five.");
        assert_eq!(aloud(&crate::parse("日本語日本語"), 2), "日本");
    }
}
