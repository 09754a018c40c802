//! The dialect of Telegram: text, and entities that the Bot API takes.

use proptest::prelude::*;
use talaria_render::{Dialect, Entity, EntityKind, Rendered, parse, render};

use crate::support::{Tables, any_markdown, comparable, readable, written_markdown};

fn telegram(source: &str) -> Rendered {
    render(&parse(source), Dialect::TelegramEntities)
}

/// The entities with what they hold, in short.
fn entities(source: &str) -> Vec<String> {
    let Rendered { text, entities } = telegram(source);
    let units: Vec<u16> = text.encode_utf16().collect();
    entities
        .iter()
        .map(|entity| {
            let inside = &units[entity.offset..entity.offset + entity.length];
            format!("{:?} {}", entity.kind, String::from_utf16(inside).expect("whole characters"))
        })
        .collect()
}

#[track_caller]
fn check(source: &str, text: &str, expect: &[&str]) {
    assert_eq!(telegram(source).text, text, "{source:?}");
    assert_eq!(entities(source), expect, "{source:?}");
}

#[test]
fn every_form_has_its_entity() {
    check("**a** *b* ~~c~~ `d`", "a b c d", &["Bold a", "Italic b", "Strikethrough c", "Code d"]);
    check("# A *b*", "A b", &["Bold A b", "Italic b"]);
    check("||the butler||", "the butler", &["Spoiler the butler"]);
    check("> a\n> b", "a\nb", &["Blockquote a\nb"]);
    check(
        "```rust\nfn a() {\n\tb\n}\n```",
        "fn a() {\n    b\n}",
        &["Pre { language: Some(\"rust\") } fn a() {\n    b\n}"],
    );
    check("- a\n  - b\n- [ ] c\n\n2. d", "• a\n  • b\n☐ c\n\n2. d", &[]);
    check("[a](https://b.example)", "a", &["TextLink { url: \"https://b.example\" } a"]);
    check("https://b.example", "https://b.example", &[]);
    check(
        "|Name|Age|\n|-|-:|\n|Ann|7|",
        "Name  Age\n----  ---\nAnn     7",
        &["Pre { language: None } Name  Age\n----  ---\nAnn     7"],
    );
}

#[test]
fn offsets_count_utf16_units() {
    let Rendered { entities, .. } = telegram("😀é **b👨‍👩‍👧‍👦**");
    assert_eq!(entities, [Entity { kind: EntityKind::Bold, offset: 4, length: 12 }]);
}

#[test]
fn code_and_links_are_not_mixed() {
    check("**a `b` c**", "a b c", &["Bold a", "Code b", "Bold c"]);
    check("[`a`](https://b.example)", "a", &["TextLink { url: \"https://b.example\" } a"]);
    check(
        "**a [b](https://c.example) d**",
        "a b d",
        &["Bold a b d", "TextLink { url: \"https://c.example\" } b"],
    );
    check(
        "[a **b**](https://c.example)",
        "a b",
        &["TextLink { url: \"https://c.example\" } a b", "Bold b"],
    );
}

#[test]
fn an_address_that_would_be_refused_is_text() {
    check("[a](http://localhost:3000)", "a (http://localhost:3000)", &[]);
    check("[a](mailto:b@c.example)", "a (mailto:b@c.example)", &[]);
    check("<b@c.example>", "b@c.example", &[]);
    check("[a](tg://user?id=1)", "a (tg://user?id=1)", &[]);
}

#[test]
fn a_quote_holds_no_quote_and_a_long_one_is_folded() {
    check("> a\n>\n> > b", "a\n\n> b", &["Blockquote a\n\n> b"]);
    let long = "> line\n".repeat(13);
    assert!(entities(&long)[0].starts_with("ExpandableBlockquote line"));
    check("> ```\n> a\n> ```", "a", &["Blockquote a", "Pre { language: None } a"]);
}

#[test]
fn code_in_a_list_begins_at_the_edge() {
    check(
        "1. a\n   ```sh\n   ls\n     -l\n   ```",
        "1. a\nls\n  -l",
        &["Pre { language: Some(\"sh\") } ls\n  -l"],
    );
}

#[test]
fn entities_are_written_as_the_bot_api_wants_them() {
    let Rendered { entities, .. } =
        telegram("**a** [b](https://c.example)\n\n```sh\nd\n```\n\n```\ne\n```");
    assert_eq!(
        serde_json::to_value(&entities).expect("it can be written"),
        serde_json::json!([
            { "type": "bold", "offset": 0, "length": 1 },
            { "type": "text_link", "url": "https://c.example", "offset": 2, "length": 1 },
            { "type": "pre", "language": "sh", "offset": 5, "length": 1 },
            { "type": "pre", "offset": 8, "length": 1 },
        ])
    );
}

/// What the Bot API says about entities.
pub(crate) fn are_valid(Rendered { text, entities }: &Rendered) -> Result<(), String> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let is_blank = |unit: &u16| *unit == u16::from(b' ') || *unit == u16::from(b'\n');
    if units.last().is_some_and(is_blank) {
        return Err("a blank at the end".into());
    }
    let first = entities.first().map_or(units.len(), |entity| entity.offset);
    if first > 0 && units.first().is_some_and(is_blank) {
        return Err("a blank at the start".into());
    }
    let is_form = |kind: &EntityKind| {
        matches!(
            kind,
            EntityKind::Bold | EntityKind::Italic | EntityKind::Strikethrough | EntityKind::Spoiler
        )
    };
    let is_quote = |kind: &EntityKind| {
        matches!(kind, EntityKind::Blockquote | EntityKind::ExpandableBlockquote)
    };
    let is_code = |kind: &EntityKind| matches!(kind, EntityKind::Code | EntityKind::Pre { .. });
    for (index, entity) in entities.iter().enumerate() {
        let end = entity.offset + entity.length;
        if entity.length == 0 || end > units.len() {
            return Err(format!("{entity:?} of {}", units.len()));
        }
        let inside = &units[entity.offset..end];
        if String::from_utf16(inside).is_err() {
            return Err(format!("{entity:?} cuts a character"));
        }
        let is_block = matches!(entity.kind, EntityKind::Pre { .. }) || is_quote(&entity.kind);
        if inside.last().is_some_and(is_blank)
            || (!is_block && inside.first().is_some_and(is_blank))
        {
            return Err(format!("{entity:?} has a blank at an edge"));
        }
        for other in &entities[index + 1..] {
            if other.offset < entity.offset {
                return Err("not in order".into());
            }
            if other.offset >= end {
                continue;
            }
            if other.offset + other.length > end {
                return Err(format!("{entity:?} and {other:?} cross"));
            }
            let (outer, inner) = (&entity.kind, &other.kind);
            let may = match (outer, inner) {
                _ if is_code(outer) => false,
                _ if is_code(inner) => is_quote(outer),
                _ if is_quote(inner) => false,
                _ if is_quote(outer) => true,
                (EntityKind::TextLink { .. }, EntityKind::TextLink { .. }) => false,
                _ => is_form(outer) || is_form(inner),
            };
            if !may {
                return Err(format!("{inner:?} in {outer:?}"));
            }
        }
        if let EntityKind::TextLink { url } = &entity.kind {
            let rest = url.split_once("://").map(|(_, rest)| rest).unwrap_or_default();
            let host = rest.split(['/', '?', '#', ':']).next().unwrap_or_default();
            if !url.to_lowercase().starts_with("http") || !host.contains('.') {
                return Err(format!("{url:?}"));
            }
        }
    }
    Ok(())
}

/// The text with the addresses of links behind them.
fn with_addresses(Rendered { text, entities }: &Rendered) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    let mut out = String::new();
    let mut done = 0;
    let mut spoilers: Vec<usize> = Vec::new();
    let mut marks: Vec<(usize, String)> = Vec::new();
    for entity in entities {
        let end = entity.offset + entity.length;
        match &entity.kind {
            EntityKind::TextLink { url } => marks.push((end, format!("({url})"))),
            EntityKind::Spoiler => {
                marks.push((entity.offset, "||".into()));
                spoilers.push(end);
            }
            _ => {}
        }
    }
    marks.extend(spoilers.into_iter().map(|end| (end, "||".into())));
    marks.sort_by_key(|(at, _)| *at);
    for (at, mark) in marks {
        out.push_str(&String::from_utf16(&units[done..at]).expect("whole characters"));
        out.push_str(&mark);
        done = at;
    }
    out + &String::from_utf16(&units[done..]).expect("whole characters")
}

#[test]
fn the_corpus_is_valid() {
    for (name, answer) in crate::corpus::answers() {
        let rendered = telegram(&answer);
        assert_eq!(are_valid(&rendered), Ok(()), "{name}");
        if !answer.contains("|--") {
            assert_eq!(
                comparable(&with_addresses(&rendered)),
                comparable(&readable(&parse(&answer))),
                "{name}"
            );
        }
    }
}

proptest! {
    #![proptest_config(crate::same_every_time())]

    #[test]
    fn every_entity_is_valid(source in prop_oneof![written_markdown(Tables::Some), any_markdown()]) {
        let rendered = telegram(&source);
        prop_assert_eq!(are_valid(&rendered), Ok(()), "{:?}", rendered);
    }

    #[test]
    fn the_text_says_everything(source in written_markdown(Tables::None)) {
        let rendered = telegram(&source);
        prop_assert_eq!(
            comparable(&with_addresses(&rendered)), comparable(&readable(&parse(&source)))
        );
    }
}
