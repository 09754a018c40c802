//! The splitter.

use proptest::prelude::*;
use talaria_model::{TextLimit, Unit};
use talaria_render::{Block, length, parse, parts, split};

fn chars(max: u32) -> TextLimit {
    TextLimit { max, unit: Unit::Chars }
}

#[track_caller]
fn check(text: &str, max: u32, expect: &[&str]) {
    assert_eq!(split(text, chars(max)), expect, "{text:?} at {max}");
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
    check("One. Two!!\nThree. Four five six", 20, &["One. Two!!", "Three. Four five six"]);
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
    assert_eq!(split(family, chars(2)).concat(), family);
    assert_eq!(split(&"e\u{301}".repeat(4), chars(5)), ["e\u{301}e\u{301}", "e\u{301}e\u{301}"]);
}

#[test]
fn each_unit_has_its_own_measure() {
    let text = "😀😀😀😀";
    for (max, unit, first) in
        [(8, Unit::Bytes, "😀😀"), (6, Unit::Utf16, "😀😀😀"), (3, Unit::Chars, "😀😀😀")]
    {
        assert_eq!(split(text, TextLimit { max, unit })[0], first, "{unit:?}");
    }
}

#[test]
fn a_code_block_is_closed_and_opened_again() {
    check(
        "```py\nprint(1)\nprint(2)\nprint(3)\n```\nend",
        30,
        &["```py\nprint(1)\nprint(2)\n```", "```py\nprint(3)\n```\nend"],
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
        for part in split(text, chars(max)) {
            assert!(!part.contains("```rust\n```"), "{max}: {part}");
        }
    }
}

#[test]
fn a_fence_with_a_long_info_string_is_opened_again_without_it() {
    check(
        "```title=\"a very long name\"\none two\nthree four\n```",
        48,
        &["```title=\"a very long name\"\none two\n```", "```\nthree four\n```"],
    );
}

#[test]
fn a_block_marked_by_tildes_or_more_ticks_keeps_its_marks() {
    check(
        "~~~~\n```\none two\n```\nthree\n~~~~",
        24,
        &["~~~~\n```\none two\n~~~~", "~~~~\n```\nthree\n~~~~"],
    );
}

#[test]
fn a_block_in_a_quote_is_opened_again_in_a_quote() {
    check(
        "> ```\n> one two\n> three\n> ```\nend",
        24,
        &["> ```\n> one two\n> ```", "> ```\n> three\n> ```\nend"],
    );
}

#[test]
fn a_block_in_a_list_is_opened_again_at_the_margin() {
    check(
        "10. do:\n    ```sh\n    one --two\n      three\n    ```\n    then\n11. rest",
        40,
        &["10. do:\n    ```sh\n    one --two\n    ```", "```sh\n  three\n```\nthen\n11. rest"],
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
        &["Text:\n\n    one(two, three)", "    four(five)\n    six(seven)"],
    );
}

#[test]
fn links_code_spans_and_emphasis_stay_whole() {
    check(
        "Please read [the fine manual](http://a.example/b) now",
        40,
        &["Please read", "[the fine manual](http://a.example/b)", "now"],
    );
    check("Run `cargo test --all` at once", 20, &["Run", "`cargo test --all`", "at once"]);
    check("This is **very much so** indeed", 20, &["This is", "**very much so**", "indeed"]);
}

#[test]
fn a_sign_is_not_left_without_its_item() {
    check("words words\n- item one", 14, &["words words", "- item one"]);
    check("1. aaaaaaaaaa", 8, &["1. aaaaa", "aaaaa"]);
}

#[test]
fn rows_of_a_table_stay_whole() {
    let text = "|a|b|\n|-|-|\n|one two|three|\n|four five|six|";
    check(text, 32, &["|a|b|\n|-|-|\n|one two|three|", "|four five|six|"]);
}

#[test]
fn nothing_but_blanks_between_two_words_is_no_obstacle() {
    let text = format!("a{}b", " ".repeat(1000));
    check(&text, 10, &["a", "b"]);
    let text = format!("```\na\n{}b\n```", " \n".repeat(1000));
    check(&text, 20, &["```\na\n```", "```\nb\n```"]);
    let text = format!("{}a b", "\u{3000}".repeat(1000));
    check(&text, 2, &["a", "b"]);
}

#[test]
fn limits_too_small_for_anything_still_end() {
    let text = "```rust\nlet 家 = \"👨‍👩‍👧‍👦\";\n```\n[a](b)";
    for unit in [Unit::Bytes, Unit::Utf16, Unit::Chars] {
        for max in 0..40 {
            let all = split(text, TextLimit { max, unit });
            assert!(!all.is_empty() && all.len() < 100, "{max} {unit:?}");
        }
    }
}

#[test]
fn parts_are_made_one_at_a_time() {
    let text = "word ".repeat(2_000_000);
    assert_eq!(parts(&text, chars(9)).take(2).collect::<Vec<_>>(), ["word word", "word word"]);
}

#[test]
fn hostile_texts_take_linear_time() {
    for text in [
        ">".repeat(100_000),
        "[".repeat(100_000),
        "**a ".repeat(30_000),
        "`".repeat(100_000),
        "- ".repeat(40_000),
        " ".repeat(100_000) + "x",
        "```\n".repeat(30_000),
        format!("{}a\n{}", ">".repeat(100_000), "a\n".repeat(40_000)),
    ] {
        let limit = TextLimit { max: 16_000, unit: Unit::Utf16 };
        assert!(split(&text, limit).iter().all(|part| length(part, Unit::Utf16) <= 16_000));
    }
}

/// Words, marks, blanks and long clusters, in any order.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,12}",
        4 => Just(" ".to_owned()),
        2 => Just("\n".to_owned()),
        1 => Just("\n\n".to_owned()),
        1 => Just("\r\n".to_owned()),
        1 => "[-*+>#] ",
        1 => "[0-9]{1,2}\\. ",
        1 => " {1,8}",
        1 => "[.!?。，]",
        1 => "[*_\\[\\]()<>|&\\\\!-]{1,4}",
        1 => Just("👨‍👩‍👧‍👦".to_owned()),
        1 => "e\u{301}{1,6}",
        1 => "[家日本語]{1,6}",
        1 => Just("[text](http://a.example/b)".to_owned()),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat().replace(['`', '~'], ""))
}

/// Paragraphs, lists and code blocks as a model writes them.
fn written_text() -> impl Strategy<Value = String> {
    let line = "[a-z]{1,8}( [a-z]{1,8}){0,8}[.!?]?";
    let code = prop::collection::vec("( {0,6}[a-z(){};=]{1,20}( [a-z=]{1,6}){0,4})?", 0..12);
    let block = prop_oneof![
        3 => prop::collection::vec(line, 1..4).prop_map(|lines| lines.join("\n")),
        1 => prop::collection::vec(line, 1..6)
            .prop_map(|lines| lines.iter().map(|line| format!("- {line}\n")).collect()),
        2 => ("(```|~~~|`````)", "[a-z]{0,4}", code, "( {0,3}|1\\. )").prop_map(
            |(mark, info, code, lead)| {
                let indent = " ".repeat(lead.len());
                let body: String = code.iter().map(|line| format!("{indent}{line}\n")).collect();
                format!("{lead}{mark}{info}\n{body}{indent}{mark}")
            }
        ),
    ];
    (prop::collection::vec(block, 1..8), prop::option::of("```[a-z]{0,3}\n([a-z]{1,9}\n){0,20}"))
        .prop_map(|(blocks, unfinished)| {
            blocks.into_iter().chain(unfinished).collect::<Vec<_>>().join("\n\n")
        })
}

fn any_unit() -> impl Strategy<Value = Unit> {
    prop_oneof![Just(Unit::Bytes), Just(Unit::Utf16), Just(Unit::Chars)]
}

fn smallest(unit: Unit) -> usize {
    match unit {
        Unit::Bytes => 4,
        Unit::Utf16 => 2,
        Unit::Chars => 1,
    }
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}

fn without_fences(text: &str) -> String {
    let is_fence = |line: &str| {
        let line = line.trim_start_matches("1. ").trim_start();
        line.starts_with("```") || line.starts_with("~~~")
    };
    text.lines().filter(|line| !is_fence(line)).flat_map(str::split_whitespace).collect()
}

/// Whether a paragraph behind the text would be one, and not code in a block left open.
fn is_balanced(text: &str) -> bool {
    let after = format!("{text}\n\nafter");
    matches!(parse(&after).blocks().last(), Some(Block::Paragraph(_)))
}

/// Everything that is shown as code, without blanks.
fn code(text: &str) -> String {
    fn collect(blocks: &[Block], into: &mut String) {
        for block in blocks {
            match block {
                Block::Code { text, .. } => into.extend(text.split_whitespace()),
                Block::Quote(inner) => collect(inner, into),
                Block::List { items, .. } => {
                    items.iter().for_each(|item| collect(&item.blocks, into));
                }
                _ => {}
            }
        }
    }
    let mut found = String::new();
    collect(parse(text).blocks(), &mut found);
    found
}

proptest! {
    #![proptest_config(crate::same_every_time())]

    #[test]
    fn every_part_fits_and_nothing_is_lost(
        text in any_text(), max in 0_u32..60, unit in any_unit(),
    ) {
        let limit = TextLimit { max, unit };
        let parts = split(&text, limit);
        let longest = (max as usize).max(smallest(unit));
        for part in &parts {
            prop_assert!(length(part, unit) <= longest, "{part:?}");
            prop_assert!(!part.trim().is_empty());
            prop_assert_eq!(split(part, limit), std::slice::from_ref(part));
        }
        prop_assert_eq!(without_blanks(&parts.concat()), without_blanks(&text));
    }

    #[test]
    fn code_blocks_are_whole_in_every_part(
        text in written_text(), max in 44_u32..160, unit in any_unit(),
    ) {
        let limit = TextLimit { max, unit };
        let parts = split(&text, limit);
        for part in &parts {
            prop_assert!(length(part, unit) <= max as usize);
            prop_assert!(parts.len() == 1 || is_balanced(part), "{part}");
        }
        prop_assert_eq!(without_fences(&parts.join("\n")), without_fences(&text));
        prop_assert_eq!(parts.iter().map(|part| code(part)).collect::<String>(), code(&text));
    }

    #[test]
    fn any_string_at_all_can_be_split(text in ".{0,200}", max in 0_u32..50, unit in any_unit()) {
        for part in split(&text, TextLimit { max, unit }) {
            prop_assert!(length(&part, unit) <= (max as usize).max(smallest(unit)));
        }
    }

    #[test]
    fn fences_under_any_limit_end_and_fit(
        text in written_text(), max in 0_u32..44, unit in any_unit(),
    ) {
        for part in split(&text, TextLimit { max, unit }) {
            prop_assert!(length(&part, unit) <= (max as usize).max(smallest(unit)));
        }
    }
}
