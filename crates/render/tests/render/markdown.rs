//! Adding to Markdown.

use proptest::prelude::*;
use talaria_render::{append, literal, parse, plain};

#[test]
fn a_paragraph_goes_behind_the_text_and_not_into_its_code() {
    assert_eq!(append("", "note"), "note");
    assert_eq!(append("text\n", "note"), "text\n\nnote");
    assert_eq!(append("```\ncode\n```", "note"), "```\ncode\n```\n\nnote");
    assert_eq!(append("~~~sh\ncode\n", "note"), "~~~sh\ncode\n~~~\n\nnote");
    assert_eq!(append("- ````\n  code", "note"), "- ````\n  code\n  ````\n\nnote");
}

#[test]
fn literal_text_is_easy_on_the_eye() {
    assert_eq!(literal("report.pdf, 2.1 MB (new)!"), "report.pdf, 2.1 MB (new)!");
    assert_eq!(literal("1. *a*_b\n\t[c]"), "1\\. \\*a\\*\\_b \\[c\\]");
}

proptest! {
    #![proptest_config(crate::same_every_time())]

    #[test]
    fn literal_text_shows_itself(text in "[a-z0-9 !-/:-@\\[-`{-~\n]{0,30}") {
        let shown = plain(&parse(&format!("1. {}", literal(&text))));
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let expect = format!("1. {words}");
        prop_assert_eq!(shown.trim_end(), expect.trim_end());
    }
}
