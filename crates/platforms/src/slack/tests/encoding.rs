//! Our acts as requests, exactly.

use proptest::prelude::*;
use serde_json::json;
use talaria_model::{ChatKind, Choice, ChoiceId, Content, Outbound, Reading};

use super::super::encode::{self, Broadcast, Marked, mrkdwn};
use super::{at, post};

fn outbound(text: &str) -> Outbound {
    post(at("C1", ChatKind::Group, Some("1.000001")), 3, text)
}

fn choice(number: usize, label: &str) -> Choice {
    Choice { id: ChoiceId::new(format!("call.{number}")).unwrap(), label: label.into() }
}

#[test]
fn a_post() {
    let outbound = outbound("Hello **there**");
    let content = Content::text("Hello **there**");
    assert_eq!(
        encode::post(&outbound, "C1", &content, Marked::Yes, Broadcast::No),
        json!({
            "channel": "C1",
            "text": "Hello *there*",
            "unfurl_links": false,
            "unfurl_media": false,
            "thread_ts": "1.000001",
            "metadata": {
                "event_type": "talaria_delivery",
                "event_payload": { "id": "20261115_093000_0badcafe/3.0" },
            },
        })
    );
    let broadcast = encode::post(&outbound, "C1", &content, Marked::No, Broadcast::Yes);
    assert_eq!(broadcast["reply_broadcast"], json!(true));
    assert!(broadcast["metadata"].is_null());
    let later = Outbound { id: outbound.id.with_part(1), ..outbound };
    let part = encode::post(&later, "C1", &content, Marked::No, Broadcast::Yes);
    assert!(part["reply_broadcast"].is_null(), "only the first part is shown twice");
}

#[test]
fn text_that_is_to_be_read_as_it_is_has_no_marks() {
    let plain = Content { reading: Reading::AsItIs, ..Content::text("a*b*c `d` <@U1> & e") };
    let post = encode::post(&outbound(""), "C1", &plain, Marked::No, Broadcast::No);
    assert_eq!(post["mrkdwn"], json!(false));
    assert_eq!(post["text"], "a*b*c `d` &lt;@U1&gt; &amp; e");
    // An edit cannot say that there are none; signs that look alike are none.
    let edit = encode::edit("C1", "1.1", &plain);
    let text = edit["text"].as_str().unwrap();
    assert!(!text.contains('`'), "{text}");
    let formatted =
        encode::post(&outbound(""), "C1", &Content::text("*a*"), Marked::No, Broadcast::No);
    assert!(formatted["mrkdwn"].is_null());
}

#[test]
fn a_question() {
    let content = Content {
        choices: vec![choice(0, "Approve"), choice(1, &"x".repeat(80))],
        ..Content::text("Run `rm`?")
    };
    let post = encode::post(&outbound(""), "C1", &content, Marked::No, Broadcast::No);
    assert_eq!(post["text"], "Run `rm`?");
    assert_eq!(
        post["blocks"],
        json!([
            { "type": "section", "text": { "type": "mrkdwn", "text": "Run `rm`?" } },
            { "type": "actions", "elements": [
                { "type": "button", "action_id": "talaria:0", "value": "call.0",
                  "text": { "type": "plain_text", "text": "Approve", "emoji": true } },
                { "type": "button", "action_id": "talaria:1", "value": "call.1",
                  "text": { "type": "plain_text", "text": format!("{}…", "x".repeat(74)), "emoji": true } },
            ] },
        ])
    );
    let wordless = Content { text: String::new(), ..content };
    let post = encode::post(&outbound(""), "C1", &wordless, Marked::No, Broadcast::No);
    assert_eq!(post["blocks"].as_array().unwrap().len(), 1, "an empty section is refused");
    assert!(post["text"].as_str().unwrap().starts_with("Approve / "));
}

#[test]
fn the_rest() {
    assert_eq!(
        encode::edit("C1", "2.000001", &Content::text("*hm*")),
        json!({ "channel": "C1", "ts": "2.000001", "text": "_hm_", "parse": "none" })
    );
    assert_eq!(encode::delete("C1", "2.000001"), json!({ "channel": "C1", "ts": "2.000001" }));
    assert_eq!(
        encode::reaction("C1", "2.000001", "eyes"),
        json!({ "channel": "C1", "timestamp": "2.000001", "name": "eyes" })
    );
    assert_eq!(
        encode::status("C1", "2.000001", "is thinking..."),
        json!({ "channel_id": "C1", "thread_ts": "2.000001", "status": "is thinking..." })
    );
    let files = [("F1".to_owned(), "a.png".to_owned())];
    assert_eq!(
        encode::share(&outbound(""), "C1", &files, "**Look**"),
        json!({ "files": [{ "id": "F1", "title": "a.png" }], "channel_id": "C1",
            "thread_ts": "1.000001", "initial_comment": "*Look*" })
    );
}

#[test]
fn markdown_becomes_mrkdwn() {
    for (markdown, expected) in [
        ("**bold** and *it*", "*bold* and _it_"),
        ("# Head", "*Head*"),
        ("[l](http://x.y/a_b)", "<http://x.y/a_b|l>"),
        ("- a\n- b", "• a\n• b"),
        ("1. one!\n2. two", "1. one!\n2. two"),
        ("> q", "> q"),
        ("a_b_c (x) #1", "a_b_c (x) #1"),
        ("~~s~~", "~s~"),
        ("***bi***", "*_bi_*"),
        ("1 < 2 && 3 > 2", "1 &lt; 2 &amp;&amp; 3 &gt; 2"),
        ("<!channel> <@U1> in <#C1>", "&lt;!channel&gt; <@U1> in <#C1>"),
        ("<!subteam^S1> <!everyone|x>", "&lt;!subteam^S1&gt; &lt;!everyone|x&gt;"),
        ("`<!here>`", "`&lt;!here&gt;`"),
        ("```rust\nlet a = &b;\n```", "```\nlet a = &amp;b;\n```"),
        ("[x](javascript:alert(1))", "x (javascript:alert(1))"),
        ("[a|b](https://x.y/?a|b&c)", "<https://x.y/?a%7Cb&amp;c|a|b>"),
        ("un**believ**able", "un\u{200b}*believ*\u{200b}able"),
        ("2 \\* 3 \\* 4", "2 * 3 * 4"),
        ("- a\n  - b", "• a\n  • b"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "```\na  b\n-  -\n1  2\n```"),
    ] {
        assert_eq!(mrkdwn(markdown), expected, "{markdown:?}");
    }
}

proptest! {
    /// Slack calls people for what stands between angle brackets: one person may stand there, a channel
    /// and a link, and nothing that calls everybody.
    #[test]
    fn nothing_that_a_model_writes_calls_everybody(
        text in "(<!|<@|<#|U1|C1|[<>!@#a-zUC1|\\[\\]()`*_~&:/ \n-]){0,80}",
    ) {
        let written = mrkdwn(&text);
        for inside in written.split('<').skip(1) {
            let allowed = ["https://", "http://", "mailto:", "@U", "#C", "#U", "@C"];
            let is_allowed = allowed.iter().any(|start| inside.starts_with(start));
            prop_assert!(is_allowed, "{:?} of {:?}", written, text);
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Slack shows each section by itself.
    #[test]
    fn code_in_a_long_question_is_code_in_every_section(lines in 100usize..600) {
        let text = format!("Run it?\n\n```\n{}```", "let wörd = 1;\n".repeat(lines));
        let content = Content { choices: vec![choice(0, "Yes")], ..Content::text(text) };
        let post = encode::post(&outbound(""), "C1", &content, Marked::No, Broadcast::No);
        for block in post["blocks"].as_array().unwrap() {
            let section = block["text"]["text"].as_str().unwrap_or_default();
            prop_assert_eq!(section.matches("```").count() % 2, 0);
        }
    }

    #[test]
    fn a_long_question_is_cut_into_sections_that_fit(words in 0usize..2000, line in 1usize..200) {
        let text: String = (0..words).map(|n| if n % line == 0 { "wörd\n" } else { "wörd " }).collect();
        let content = Content { choices: vec![choice(0, "Yes")], ..Content::text(text) };
        let post = encode::post(&outbound(""), "C1", &content, Marked::No, Broadcast::No);
        let blocks = post["blocks"].as_array().unwrap();
        prop_assert!(blocks.len() <= 50);
        let mut shown = 0;
        for block in &blocks[..blocks.len() - 1] {
            let section = block["text"]["text"].as_str().unwrap();
            prop_assert!(!section.is_empty() && section.len() <= 3_000);
            shown += section.matches("wörd").count();
        }
        prop_assert_eq!(shown, words);
    }
}
