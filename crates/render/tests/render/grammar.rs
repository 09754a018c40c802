//! Every answer of the corpus under the grammar of each dialect: whole, while it grows, and in parts.

use talaria_model::{TextLimit, Unit};
use talaria_render::{Dialect, Rendered, length, parse, render, split_in};

use crate::corpus::answers;
use crate::support::DIALECTS;
use crate::{hostile, slack, telegram};

/// How many beginnings of an answer are looked at.
const BEGINNINGS: usize = 12;

fn check(rendered: &Rendered, dialect: Dialect) -> Result<(), String> {
    match dialect {
        Dialect::Html => hostile::check(&rendered.text),
        Dialect::TelegramEntities => telegram::are_valid(rendered),
        Dialect::Discord => fences_are_closed(&rendered.text),
        Dialect::SlackMrkdwn => slack::shown(&rendered.text).map(drop),
        Dialect::Plain | Dialect::Markdown => Ok(()),
    }
}

/// Discord knows one kind of fence, and each line that begins with it opens or closes a block.
fn fences_are_closed(text: &str) -> Result<(), String> {
    let fences = text.lines().filter(|line| line.starts_with("```")).count();
    if fences % 2 == 0 { Ok(()) } else { Err(format!("{fences} fences")) }
}

/// Beginnings of a text, evenly spread, as a preview would show them.
fn beginnings(text: &str) -> impl Iterator<Item = &str> {
    (0..BEGINNINGS).map(|part| &text[..text.floor_char_boundary(text.len() * part / BEGINNINGS)])
}

#[test]
fn an_answer_is_valid_however_far_it_has_come() {
    for (name, answer) in answers() {
        for text in beginnings(&answer).chain([answer.as_str()]) {
            let document = parse(text);
            for dialect in DIALECTS {
                let rendered = render(&document, dialect);
                assert_eq!(check(&rendered, dialect), Ok(()), "{name}, {dialect:?}: {text:?}");
            }
        }
    }
}

#[test]
fn a_preview_never_takes_words_back() {
    let text = "Look:\n\n```rust\nfn main() {}\n```\n\n| a | b |\n|---|---|\n| **c** | `d` |\n\n- e\n  1. f";
    for dialect in DIALECTS {
        let mut letters = 0;
        for (end, _) in text.char_indices() {
            let shown = render(&parse(&text[..end]), dialect).text;
            let now =
                ["Look", "fn main() {}", "c", "d"].iter().filter(|w| shown.contains(*w)).count();
            assert!(now >= letters, "{dialect:?}: {shown}");
            letters = now;
        }
    }
}

#[test]
fn every_part_of_an_answer_is_valid_and_fits() {
    let limits = [
        TextLimit { max: 300, unit: Unit::Bytes },
        TextLimit { max: 500, unit: Unit::Utf16 },
        TextLimit { max: 2000, unit: Unit::Chars },
    ];
    for (name, answer) in answers() {
        for (limit, dialect) in limits.iter().flat_map(|limit| DIALECTS.map(|it| (*limit, it))) {
            for part in split_in(&answer, limit, dialect) {
                let rendered = render(&parse(&part), dialect);
                assert_eq!(check(&rendered, dialect), Ok(()), "{name}, {dialect:?}: {part}");
                let length = length(&rendered.text, limit.unit);
                assert!(length <= limit.max as usize, "{name}, {dialect:?}: {length}: {part}");
            }
        }
    }
}
