//! Markdown as text and entities.

use proptest::prelude::*;
use talaria_model::{Content, Unit};

use super::super::encode::shown as rendered;
use super::*;

/// The text, and each entity as its kind and what it covers.
fn shown(markdown: &str) -> (String, Vec<String>) {
    let rendered = rendered(&Content::text(markdown));
    let units: Vec<u16> = rendered.text.encode_utf16().collect();
    let entities = json!(rendered.entities);
    let entities = entities.as_array().unwrap().iter().map(|entity| {
        let (from, length) =
            (entity["offset"].as_u64().unwrap(), entity["length"].as_u64().unwrap());
        let covered = &units[from as usize..(from + length) as usize];
        let covered = String::from_utf16(covered).unwrap();
        let more = entity.get("url").or(entity.get("language")).and_then(Value::as_str);
        let more = more.map(|more| format!(" {more}")).unwrap_or_default();
        format!("{}{more}: {covered}", entity["type"].as_str().unwrap())
    });
    (rendered.text, entities.collect())
}

fn check(markdown: &str, text: &str, entities: &[&str]) {
    let (found, found_entities) = shown(markdown);
    assert_eq!(found, text, "{markdown}");
    assert_eq!(found_entities, entities, "{markdown}");
}

#[test]
fn formatting_stands_beside_the_text() {
    check(
        "😀 **bold *and italic***, ~~no~~ and `code`",
        "😀 bold and italic, no and code",
        &["bold: bold and italic", "italic: and italic", "strikethrough: no", "code: code"],
    );
    check("# Title\n\ntext", "Title\n\ntext", &["bold: Title"]);
    check(
        "```rust\nfn main() {\n\tok()\n}\n```",
        "fn main() {\n    ok()\n}",
        &["pre rust: fn main() {\n    ok()\n}"],
    );
    check("> said\n> > before", "said\n\n> before", &["blockquote: said\n\n> before"]);
    check("- a\n- b\n  1. c\n  2. d", "• a\n• b\n  1. c\n  2. d", &[]);
    check("- [x] done\n- [ ] open", "☑ done\n☐ open", &[]);
    check("| a | b |\n|---|---|\n| 1 | 2 |", "a  b\n-  -\n1  2", &["pre: a  b\n-  -\n1  2"]);
}

#[test]
fn only_addresses_that_telegram_takes_become_links() {
    check("[here](https://example.org/a)", "here", &["text_link https://example.org/a: here"]);
    check("<https://example.org>", "https://example.org", &[]);
    for (link, text) in [
        ("[a](ftp://example.org)", "a (ftp://example.org)"),
        ("[a](http://localhost:8080/)", "a (http://localhost:8080/)"),
        ("[a](#below)", "a (#below)"),
        ("[a](docs/x)", "a (docs/x)"),
        ("[a](mailto:b@example.org)", "a (mailto:b@example.org)"),
        ("[a](javascript:alert(1))", "a (javascript:alert(1))"),
    ] {
        check(link, text, &[]);
    }
}

proptest! {
    #[test]
    fn every_entity_covers_whole_characters(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "*", "**", "`", "```", "\n", "\n\n", "> ", "- ", "1. ", "# ", "~~", "[", "](https://a.b)",
            "😀", "ä", "word ", "|", "\t", "<", "&",
        ]), 0..40),
    ) {
        let markdown = pieces.concat();
        let (text, _) = shown(&markdown);
        prop_assert!(talaria_render::length(&text, Unit::Utf16) <= 4096);
    }
}
