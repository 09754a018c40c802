//! Taking a document apart in a dialect.

use proptest::prelude::*;
use talaria_model::{TextLimit, Unit};
use talaria_render::{Dialect, length, parse, render, split_in};

use crate::support::{Tables, any_dialect, any_markdown, any_unit, readable, written_markdown};

fn shown(part: &str, dialect: Dialect) -> String {
    render(&parse(part), dialect).text
}

fn joined(parts: &[String]) -> String {
    parts.iter().map(|part| readable(&parse(part))).collect()
}

fn holds(source: &str, limit: TextLimit, dialect: Dialect) -> Result<(), TestCaseError> {
    let parts = split_in(source, limit, dialect);
    for part in &parts {
        // Markdown is sent as it is written.
        let text = match dialect {
            Dialect::Markdown => part.clone(),
            _ => shown(part, dialect),
        };
        prop_assert!(length(&text, limit.unit) <= limit.max as usize, "{part}\n---\n{text}");
        prop_assert!(!text.trim().is_empty());
    }
    prop_assert_eq!(joined(&parts), readable(&parse(source)), "{:#?}", parts);
    Ok(())
}

fn chars(max: u32) -> TextLimit {
    TextLimit { max, unit: Unit::Chars }
}

fn in_markdown(text: &str, limit: TextLimit) -> Vec<String> {
    split_in(text, limit, Dialect::Markdown)
}

#[track_caller]
fn check(text: &str, max: u32, expect: &[&str]) {
    assert_eq!(in_markdown(text, chars(max)), expect, "{text:?} at {max}");
}

#[test]
fn a_text_that_fits_comes_back_untouched() {
    check("  as it is \n\n", 20, &["  as it is \n\n"]);
    check("```\nleft open", 20, &["```\nleft open"]);
}

#[test]
fn a_text_without_words_has_no_parts() {
    check("", 10, &[]);
    check(" \n\t\n ", 10, &[]);
    check(" \n\t\n ", 2, &[]);
}

#[test]
fn a_blank_line_is_better_than_a_line_and_a_line_better_than_a_sentence() {
    check("One. Two.\nThree.\n\nFour five six", 25, &["One. Two.\nThree.", "Four five six"]);
    check("One. Two.\nThree. Four five six", 20, &["One. Two.", "Three. Four five six"]);
    check("One is. Two is three four", 14, &["One is.", "Two is three", "four"]);
    check("He said \"no.\" And left us", 18, &["He said \"no.\"", "And left us"]);
}

#[test]
fn a_break_in_the_first_half_does_not_make_a_short_part() {
    check("Hi.\n\none two three four five six", 24, &["Hi.\n\none two three four", "five six"]);
}

#[test]
fn long_words_are_cut_where_nothing_else_is_left() {
    check(&"a".repeat(30), 20, &[&"a".repeat(20), &"a".repeat(10)]);
    check("see aaaaaaaaaaaaaaaaaaaa", 12, &["see", "aaaaaaaaaaaa", "aaaaaaaa"]);
    check(&"word ".repeat(10), 24, &["word word word word word", "word word word word word"]);
}

#[test]
fn scripts_without_spaces_are_cut_at_their_own_punctuation() {
    check("今天天气很好。我们去公园，好吗", 10, &["今天天气很好。", "我们去公园，好吗"]);
    check("今天天气很好，我们去公园好吗", 10, &["今天天气很好，", "我们去公园好吗"]);
}

#[test]
fn clusters_stay_whole_unless_one_alone_is_too_long() {
    let family = "👨‍👩‍👧‍👦";
    check(&family.repeat(3), 9, &[family, family, family]);
    assert_eq!(in_markdown(family, chars(2)).concat(), family);
    assert_eq!(
        in_markdown(&"e\u{301}".repeat(4), chars(5)),
        ["e\u{301}e\u{301}", "e\u{301}e\u{301}"]
    );
}

#[test]
fn each_unit_has_its_own_measure() {
    let text = "😀😀😀😀";
    for (max, unit, first) in
        [(8, Unit::Bytes, "😀😀"), (6, Unit::Utf16, "😀😀😀"), (3, Unit::Chars, "😀😀😀")]
    {
        assert_eq!(in_markdown(text, TextLimit { max, unit })[0], first, "{unit:?}");
    }
}

#[test]
fn a_code_block_is_closed_and_opened_again() {
    check(
        "```py\nprint(1)\nprint(2)\nprint(3)\n```\nend",
        30,
        &["```py\nprint(1)\nprint(2)\n```", "```py\nprint(3)\n```\n\nend"],
    );
}

#[test]
fn a_code_block_that_fits_into_one_part_stays_in_one() {
    check(
        "Look at this:\n\n```\nab\ncd\nef\ngh\n```\n\nThat is all.",
        28,
        &["Look at this:", "```\nab\ncd\nef\ngh\n```", "That is all."],
    );
}

#[test]
fn a_fence_is_never_left_with_nothing_in_it() {
    let text = "```rust\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nb\n```\n\nend";
    for max in 24..60 {
        for part in in_markdown(text, chars(max)) {
            assert!(!part.contains("```rust\n```"), "{max}: {part}");
        }
    }
}

#[test]
fn a_block_with_fences_in_it_gets_longer_ones() {
    check(
        "~~~~\n```\none two\n```\nthree\n~~~~",
        24,
        &["````\n```\none two\n````", "````\n```\nthree\n````"],
    );
}

#[test]
fn a_block_in_a_quote_is_opened_again_in_a_quote() {
    check(
        "> ```\n> one two\n> three\n> ```\nend",
        24,
        &["> ```\n> one two\n> ```", "> ```\n> three\n> ```\n\nend"],
    );
}

#[test]
fn a_block_in_a_list_moves_to_the_margin_when_it_fits_there() {
    check(
        "10. do:\n    ```sh\n    one --two\n      three\n    ```\n    then\n11. rest",
        40,
        &["10. do:", "```sh\none --two\n  three\n```\n\nthen", "11. rest"],
    );
}

#[test]
fn a_nested_list_moves_to_the_margin_when_its_parent_is_gone() {
    check(
        "- one\n  - two\n  - three\n    - four\n- five",
        16,
        &["- one\n  - two", "- three\n  - four", "- five"],
    );
}

#[test]
fn an_indented_code_block_stays_code() {
    check(
        "Text:\n\n    one(two, three)\n    four(five)\n    six(seven)",
        40,
        &["Text:\n\n```\none(two, three)\n```", "```\nfour(five)\nsix(seven)\n```"],
    );
}

#[test]
fn links_and_code_spans_stay_whole_and_bold_goes_on_in_bold() {
    check(
        "Please read [the fine manual](http://a.example/b) now",
        40,
        &["Please read", "[the fine manual](http://a.example/b)", "now"],
    );
    check("Run `cargo test --all` at once", 20, &["Run", "`cargo test --all`", "at once"]);
    check("This is **very much so** indeed", 20, &["This is **very**", "**much so** indeed"]);
}

#[test]
fn a_sign_is_not_left_without_its_item() {
    check("words words\n- item one", 14, &["words words", "- item one"]);
    check("1. aaaaaaaaaa", 8, &["1. aaaaa", "aaaaa"]);
}

#[test]
fn rows_of_a_table_stay_whole() {
    let text =
        "| a | b |\n| --- | --- |\n| one two | three |\n| four five | six |\n| seven | eight |";
    let head = "| a | b |\n| --- | --- |\n";
    let first = format!("{head}| one two | three |\n| four five | six |");
    check(text, 64, &[&first, &format!("{head}| seven | eight |")]);
    let records = ["- **a:** one two\n  **b:** three", "- **a:** four five\n  **b:** six"];
    check(&text[..text.len() - 18], 32, &records);
}

#[test]
fn nothing_but_blanks_between_two_words_is_no_obstacle() {
    let text = format!("a{}b", " ".repeat(1000));
    check(&text, 10, &["a", "b"]);
    let text = format!("{}a b", "\u{3000}".repeat(1000));
    check(&text, 2, &["a", "b"]);
}

#[test]
fn limits_too_small_for_anything_still_end() {
    let text = "```rust\nlet 家 = \"👨‍👩‍👧‍👦\";\n```\n[a](b)";
    for unit in [Unit::Bytes, Unit::Utf16, Unit::Chars] {
        for max in 0..40 {
            let all = in_markdown(text, TextLimit { max, unit });
            assert!(!all.is_empty() && all.len() < 100, "{max} {unit:?}");
        }
    }
}

#[test]
fn hostile_texts_take_linear_time() {
    for text in [
        ">".repeat(25_000),
        "[".repeat(25_000),
        "**a ".repeat(8_000),
        "`".repeat(25_000),
        "- ".repeat(10_000),
        " ".repeat(25_000) + "x",
        "```\n".repeat(8_000),
        format!("{}a\n{}", ">".repeat(25_000), "a\n".repeat(10_000)),
    ] {
        let limit = TextLimit { max: 4_000, unit: Unit::Utf16 };
        assert!(in_markdown(&text, limit).iter().all(|part| length(part, Unit::Utf16) <= 4_000));
    }
}

proptest! {
    #![proptest_config(crate::same_every_time())]

    #[test]
    fn every_part_fits_and_nothing_is_lost(
        source in written_markdown(Tables::None),
        max in 60_u32..600, unit in any_unit(), dialect in any_dialect(),
    ) {
        holds(&source, TextLimit { max, unit }, dialect)?;
    }

    #[test]
    fn tables_are_taken_apart_by_rows(
        source in written_markdown(Tables::Some),
        max in 400_u32..900, unit in any_unit(), dialect in any_dialect(),
    ) {
        holds(&source, TextLimit { max, unit }, dialect)?;
    }

    #[test]
    fn any_text_under_any_limit_ends_and_fits(
        source in any_markdown(), max in 0_u32..60, unit in any_unit(), dialect in any_dialect(),
    ) {
        // What one character can take: `<p>&quot;</p>`.
        const SMALLEST: usize = 16;
        for part in split_in(&source, TextLimit { max, unit }, dialect) {
            let text = shown(&part, dialect);
            prop_assert!(length(&text, unit) <= (max as usize).max(SMALLEST), "{part:?} {text:?}");
        }
    }
}
