//! Telling thoughts from speech.

use proptest::prelude::*;
use talaria_render::{Thoughts, Told};

/// What was said, and what was thought.
fn tell(pieces: &[&str]) -> (String, String) {
    let mut thoughts = Thoughts::default();
    let mut told: Vec<Told> = pieces.iter().flat_map(|piece| thoughts.feed(piece)).collect();
    told.extend(thoughts.finish());
    let (mut said, mut thought) = (String::new(), String::new());
    for piece in told {
        match piece {
            Told::Said(text) => said.push_str(&text),
            Told::Thought(text) => thought.push_str(&text),
        }
    }
    (said, thought)
}

#[track_caller]
fn check(pieces: &[&str], said: &str) {
    assert_eq!(tell(pieces).0, said, "{pieces:?}");
    let whole = pieces.concat();
    let one_by_one: Vec<String> = whole.chars().map(String::from).collect();
    let one_by_one: Vec<&str> = one_by_one.iter().map(String::as_str).collect();
    assert_eq!(tell(&one_by_one).0, said, "{whole:?}, letter by letter");
}

#[test]
fn thoughts_are_not_said() {
    check(&["<think>a</think>hello"], "hello");
    check(&["hi <think> x"], "hi <think> x");
    check(&["x\n<thi", "nk>secret</th", "ink>\nok"], "x\n\nok");
    check(&["</think>ok"], "ok");
    check(&["  <reasoning>r</reasoning> y"], "   y");
    check(&["a<thought>b</thought>"], "a<thought>b");
    check(&["<THINK>q</THINK>z"], "z");
}

#[test]
fn every_tag_is_known_in_any_case() {
    for name in ["think", "thinking", "thought", "reasoning", "REASONING_SCRATCHPAD", "Thinking"] {
        assert_eq!(
            tell(&[&format!("<{name}>a\n\nb</{}>c", name.to_lowercase())]),
            ("c".to_owned(), "a\n\nb".to_owned())
        );
    }
    assert_eq!(tell(&["<think>a</think><thought>b</thought>c"]).0, "c");
}

#[test]
fn what_only_looks_like_a_tag_is_said() {
    for text in
        ["<thi", "</thin", "<", "<b>bold</b>", "1 < 2", "<thinker>x", "<thé", "<think", "< think>a"]
    {
        check(&[text], text);
    }
    check(&["<think", "er> is a word"], "<thinker> is a word");
}

#[test]
fn a_sentence_about_tags_stays_a_sentence() {
    check(&["Write <think> before, as in `<think>`."], "Write <think> before, as in `<think>`.");
    check(&["It ends with `</think>`, always."], "It ends with `</think>`, always.");
    check(&["- <think> is a tag"], "- <think> is a tag");
    check(&["> <think>\n"], "> <think>\n");
}

#[test]
fn a_thought_without_an_end_is_a_thought_to_the_end() {
    assert_eq!(
        tell(&["<think>a <b> </thoughts> </thi"]),
        (String::new(), "a <b> </thoughts> </thi".to_owned())
    );
}

#[test]
fn any_of_the_tags_ends_a_thought() {
    assert_eq!(tell(&["<think>a</thinking>b</think>c"]), ("bc".to_owned(), "a".to_owned()));
    assert_eq!(tell(&["<think>a<think>b</think>c</think>d"]).0, "cd");
}

#[test]
fn tags_in_a_code_block_are_text() {
    for block in [
        "so:\n```xml\n<think>a</think>\n```\nand",
        "~~~\n<think>\n</think>\n~~~\n",
        "````md\n```\n<think>a</think>\n```\n````\nend",
        "```\n<think>never closed",
    ] {
        check(&[block], block);
    }
    check(&["```\nx\n```\n<think>a</think>b"], "```\nx\n```\nb");
    check(&["<think>```</think>\n<think>a</think>b"], "\nb");
}

#[test]
fn nothing_is_held_back_longer_than_needed() {
    let mut thoughts = Thoughts::default();
    let said = |text: &str| vec![Told::Said(text.to_owned())];
    assert_eq!(thoughts.feed("one <"), said("one "));
    assert_eq!(thoughts.feed("t two"), said("<t two"));
    assert_eq!(thoughts.feed("\n</reasoning_scratchpa"), said("\n"));
    assert_eq!(thoughts.feed("x"), said("</reasoning_scratchpax"));
    assert_eq!(thoughts.feed("<think"), said("<think"));
}

proptest! {
    #![proptest_config(crate::same_every_time())]

    #[test]
    fn where_the_text_is_cut_makes_no_difference(
        pieces in prop::collection::vec(prop_oneof![
            Just("<think>"), Just("</think>"), Just("<Thinking>"), Just("</thinking>"), Just("<"),
            Just("</"), Just("th"), Just("```"), Just("`"), Just("~~~"), Just("\n"), Just(" "),
            Just("é😀"), Just("word"),
        ], 0..24),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let text = pieces.concat();
        let mut cuts: Vec<usize> = cuts
            .iter()
            .map(|cut| text.floor_char_boundary(cut.index(text.len() + 1)))
            .chain([0, text.len()])
            .collect();
        cuts.sort_unstable();
        let pieces: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
        prop_assert_eq!(tell(&pieces), tell(&[&text]));
    }
}
