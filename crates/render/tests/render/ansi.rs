//! The dialect of terminals.

use proptest::prelude::*;
use talaria_render::{Colour, Style, ansi, parse};
use unicode_width::UnicodeWidthStr;

fn coloured(source: &str) -> String {
    ansi(&parse(source), Style { width: 80, colour: Colour::On })
}

fn uncoloured(source: &str, width: usize) -> String {
    ansi(&parse(source), Style { width, colour: Colour::Off })
}

#[test]
fn every_form_has_its_look() {
    for (source, expect) in [
        ("", ""),
        ("one\ntwo\n\nthree", "one\ntwo\n\nthree"),
        ("# A", "\x1b[1;4mA\x1b[0m"),
        ("## A *b*", "\x1b[1mA \x1b[0m\x1b[1;3mb\x1b[0m"),
        ("**a** *b* ~~c~~ `d`", "\x1b[1ma\x1b[0m \x1b[3mb\x1b[0m \x1b[9mc\x1b[0m \x1b[36md\x1b[0m"),
        ("- a\n  - b", "\x1b[36m• \x1b[0ma\n  \x1b[36m• \x1b[0mb"),
        ("3. a\n4. b", "\x1b[36m3. \x1b[0ma\n\x1b[36m4. \x1b[0mb"),
        ("- [ ] a\n- [x] b", "\x1b[36m☐ \x1b[0ma\n\x1b[36m☑ \x1b[0mb"),
        ("> a\n> b", "\x1b[2m▎ \x1b[0ma\n\x1b[2m▎ \x1b[0mb"),
        (
            "```sh\nls  -l\n\n\tx\n```",
            "\x1b[2m  │ \x1b[0mls  -l\n\x1b[2m  │ \x1b[0m\n\x1b[2m  │ \x1b[0m    x",
        ),
        ("[a](https://b.example)", "\x1b[4ma\x1b[0m\x1b[2m (https://b.example)\x1b[0m"),
        ("https://b.example", "\x1b[4mhttps://b.example\x1b[0m"),
        (
            "|a|b|\n|-|-:|\n|x|10|",
            "\x1b[1ma\x1b[0m\x1b[2m │ \x1b[0m \x1b[1mb\x1b[0m\n\x1b[2m──┼───\x1b[0m\nx\x1b[2m │ \x1b[0m10",
        ),
    ] {
        assert_eq!(coloured(source), expect, "{source:?}");
    }
}

#[test]
fn without_colour_there_are_only_characters() {
    assert_eq!(
        uncoloured("# A\n\n- **b** [c](https://d.example)\n\n```\ne\n```", 80),
        "A\n\n• b c (https://d.example)\n\n  │ e"
    );
}

#[test]
fn text_is_wrapped_and_hangs_under_its_sign() {
    assert_eq!(
        uncoloured("- one two three four five\n\n> one two three four five", 20),
        "• one two three four\n  five\n\n▎ one two three four\n▎ five"
    );
    assert_eq!(uncoloured("```\n0123456789abcdefghij\n```", 20), "  │ 0123456789abcdef\n  │ ghij");
}

#[test]
fn a_table_gives_way_until_it_is_a_list() {
    assert_eq!(
        uncoloured("|Key|Meaning|\n|-|-|\n|a|one two three four|", 20),
        "Key │ Meaning\n────┼───────────────\na   │ one two three\n    │ four"
    );
    assert_eq!(
        uncoloured("|Alpha|Beta|Gamma|\n|-|-|-|\n|one thing|another thing|a third thing|", 24),
        "• Alpha: one thing\n  Beta: another thing\n  Gamma: a third thing"
    );
}

#[test]
fn what_a_model_writes_cannot_drive_the_terminal() {
    for source in [
        "\u{1b}[2Jgone",
        "\u{1b}]0;title\u{7}x",
        "`\u{1b}[31m`",
        "```\n\u{1b}]52;c;eA==\u{7}\n```",
        "&#27;[31m &#x9b;31m &#7;",
        "[x](http://a/\u{1b}[31m)",
        "[\u{9b}31m](http://a/&#27;)",
        "a\rb",
        "a\u{8}\u{8}b",
        "|\u{1b}[1m|\n|-|\n|&#27;c|",
        "x \u{202e}evil\u{202c}",
    ] {
        let shown = uncoloured(source, 80);
        let is_obeyed =
            |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}');
        assert!(!shown.contains(is_obeyed), "{source:?} became {shown:?}");
    }
}

proptest! {
    #![proptest_config(crate::same_every_time())]

    #[test]
    fn lines_fit_the_terminal(
        lines in prop::collection::vec(
            "([-*>] |[0-9]\\. |# |    )?[a-z家é👍|*`_ ]{0,60}", 0..12,
        ),
        width in 20_usize..100,
    ) {
        let shown = uncoloured(&lines.join("\n"), width);
        for line in shown.lines() {
            prop_assert!(line.width() <= width, "{line:?} is wider than {width}");
        }
    }

    #[test]
    fn only_attributes_are_ever_set(source in "(.|\\PC|[\u{1b}\u{9b}\u{7}\\[\\]m0-9;&#x*`|\n-]){0,80}") {
        let shown = coloured(&source);
        let mut pieces = shown.split('\u{1b}');
        let first = pieces.next().unwrap_or_default();
        prop_assert!(!first.contains(|c: char| c.is_control() && c != '\n'));
        for piece in pieces {
            let (sequence, text) = piece.split_once('m').expect("a sequence ends in m");
            let codes = sequence.strip_prefix('[').expect("a sequence begins with a bracket");
            prop_assert!(codes.chars().all(|c| c.is_ascii_digit() || c == ';'), "{:?}", codes);
            prop_assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{:?}", text);
        }
    }
}
