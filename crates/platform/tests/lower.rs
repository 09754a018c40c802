//! What becomes of an act on platforms of every kind.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use talaria_model::{
    AccountId, Act, Address, Capabilities, Chat, ChatId, ChatKind, Choice, ChoiceId, Choices,
    Content, Deletes, Draft, Drafts, Edits, FileId, FileRef, Files, Idempotency, Marks, Markup,
    MessageId, Outbound, OutboundId, Pace, Privacy, Reactions, Reading, SenderId, SessionId,
    TextLimit, Typing, Unit, Whispers,
};
use talaria_platform::{lower, plainly};
use talaria_render::{Dialect, length, parse, plain, render};

const OFTEN: Duration = Duration::from_secs(1);

/// A platform that can do everything, with messages of 40 characters.
const RICH: Capabilities = Capabilities {
    text: TextLimit { max: 40, unit: Unit::Chars },
    markup: Markup::Markdown,
    edits: Edits::Every(OFTEN),
    drafts: Drafts::Every(OFTEN),
    deletes: Deletes::Anytime,
    choices: Choices::Buttons { max: 2, id: 64 },
    reactions: Reactions::Emoji,
    marks: Marks::Shown,
    whispers: Whispers::Shown,
    pace: Pace::FREE,
    typing: Typing::Fades(OFTEN),
    files: Files::UpTo(1_000_000),
    reply_within: None,
    idempotency: Idempotency::None,
};

#[test]
fn what_concerns_one_person_is_for_everybody_where_nobody_can_whisper() {
    let alice = Some(SenderId::literal("alice"));
    let choice = Choice { id: ChoiceId::literal("a"), label: "A".into() };
    let notice = Content { whispered_to: alice.clone(), ..Content::text("word ".repeat(20)) };
    let question = Content { choices: vec![choice], ..notice.clone() };
    let silent = Capabilities { whispers: Whispers::Never, ..RICH };
    for (content, can, expected) in
        [(&notice, RICH, alice), (&notice, silent, None), (&question, RICH, None)]
    {
        let lowered = lower(outbound(Act::Post(content.clone())), &can);
        assert!(lowered.len() > 1, "{lowered:?}");
        for part in lowered {
            let Act::Post(part) = part.act else { panic!("{part:?}") };
            assert_eq!(part.whispered_to, expected);
        }
    }
}

fn outbound(act: Act) -> Outbound {
    numbered(0, act)
}

fn numbered(part: u16, act: Act) -> Outbound {
    Outbound {
        id: OutboundId { session: SessionId::literal("s"), delivery: 3, part },
        to: Address {
            account: AccountId::literal("a"),
            chat: Chat { id: ChatId::literal("c"), kind: ChatKind::Dm },
            thread: None,
        },
        act,
    }
}

fn message() -> MessageId {
    MessageId::literal("m")
}

fn choices(labels: &[&str]) -> Vec<Choice> {
    let choice = |(index, label): (usize, &&str)| Choice {
        id: ChoiceId::new(index.to_string()).expect("a number is an id"),
        label: (*label).to_owned(),
    };
    labels.iter().enumerate().map(choice).collect()
}

fn file(name: &str, size: u64) -> FileRef {
    FileRef::new(FileId::literal("f"), name, "text/plain", size)
}

fn acts(act: Act, can: &Capabilities) -> Vec<Act> {
    lower(outbound(act), can).into_iter().map(|outbound| outbound.act).collect()
}

fn texts(content: Content, can: &Capabilities) -> Vec<String> {
    let text = |act| match act {
        Act::Post(content) => content.text,
        other => panic!("{other:?}"),
    };
    acts(Act::Post(content), can).into_iter().map(text).collect()
}

#[test]
fn what_fits_goes_out_as_it_is() {
    for act in [
        Act::Post(Content {
            text: "**hi** there".into(),
            files: Vec::new(),
            choices: choices(&["Yes", "No"]),
            reply_to: Some(message()),
            ..Content::default()
        }),
        Act::Post(Content { files: vec![file("a.txt", 10)], ..Content::default() }),
        Act::Post(Content { choices: choices(&["Yes"]), ..Content::default() }),
        Act::Edit { message: message(), content: Content::text("hi") },
        Act::Draft(Content::text("hi").into()),
        Act::Delete { message: message() },
        Act::React { message: message(), emoji: "👍".into() },
        Act::Typing,
    ] {
        assert_eq!(lower(outbound(act.clone()), &RICH), [outbound(act)]);
    }
}

#[test]
fn what_a_platform_cannot_do_it_is_not_asked_to_do() {
    for act in [
        Act::Edit { message: message(), content: Content::text("hi") },
        Act::Draft(Content::text("hi").into()),
        Act::Delete { message: message() },
        Act::React { message: message(), emoji: "👍".into() },
        Act::Typing,
    ] {
        assert_eq!(lower(outbound(act.clone()), &Capabilities::PLAIN), [], "{act:?}");
    }
}

#[test]
fn nothing_to_say_is_not_said() {
    let blank = Content { reply_to: Some(message()), ..Content::text(" \n") };
    for act in [Act::Post(blank.clone()), Act::Edit { message: message(), content: blank.clone() }]
    {
        assert_eq!(lower(outbound(act), &RICH), []);
    }
}

#[test]
fn a_draft_without_words_takes_the_draft_back() {
    for blank in [Content::default(), Content { reply_to: Some(message()), ..Content::text(" \n") }]
    {
        assert_eq!(acts(Act::Draft(blank.into()), &RICH), [Act::Draft(Draft::default())]);
    }
}

#[test]
fn a_long_post_becomes_parts_with_the_reply_first_and_the_rest_last() {
    let content = Content {
        text: "The first paragraph is this.\n\nThe second paragraph is this.".into(),
        files: vec![file("a.txt", 10)],
        choices: choices(&["Yes", "No"]),
        reply_to: Some(message()),
        ..Content::default()
    };
    assert_eq!(
        lower(
            numbered(4, Act::Post(content.clone())),
            &Capabilities { edits: Edits::Never, ..RICH }
        ),
        [
            numbered(
                4,
                Act::Post(Content {
                    reply_to: Some(message()),
                    ..Content::text("The first paragraph is this.")
                })
            ),
            numbered(
                5,
                Act::Post(Content {
                    text: "The second paragraph is this.".into(),
                    reply_to: None,
                    ..content
                })
            ),
        ]
    );
}

#[test]
fn every_part_of_what_is_confidential_is() {
    let content =
        Content { files: vec![file("a", 1)], ..Content::confidential("word ".repeat(20)) };
    let forms = [
        Act::Post(content.clone()),
        Act::Edit { message: message(), content: content.clone() },
        Act::Draft(content.into()),
    ];
    for (form, least) in forms.into_iter().zip([3, 3, 1]) {
        let parts = acts(form, &RICH);
        assert!(parts.len() >= least, "{parts:?}");
        assert!(parts.iter().all(|part| part.privacy() == Privacy::Confidential), "{parts:?}");
    }
}

#[test]
fn a_long_edit_goes_on_in_posts() {
    let text = "The first paragraph is this.\n\nThe second paragraph is this.";
    assert_eq!(
        acts(Act::Edit { message: message(), content: Content::text(text) }, &RICH),
        [
            Act::Edit {
                message: message(),
                content: Content::text("The first paragraph is this.")
            },
            Act::Post(Content::text("The second paragraph is this.")),
        ]
    );
}

#[test]
fn a_draft_shows_as_much_text_as_fits() {
    let short = |text: &str| match acts(Act::Draft(Content::text(text).into()), &RICH).remove(0) {
        Act::Draft(draft) => draft.content.text,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        short("The first paragraph is this.\n\nThe second paragraph is this."),
        "The first paragraph is this.…"
    );
    assert_eq!(
        short("```sh\none two three\nfour five six\nseven eight nine\n```"),
        "```sh\none two three\nfour five six\n```\n…"
    );
    let loaded = Content {
        files: vec![file("a.txt", 1)],
        choices: choices(&["Yes"]),
        ..Content::text("hi")
    };
    assert_eq!(acts(Act::Draft(loaded.into()), &RICH), [Act::Draft(Content::text("hi").into())]);
    let wordless = Act::Draft(Draft { doing: Some("searching".into()), ..Draft::default() });
    assert_eq!(acts(wordless.clone(), &RICH), [wordless]);
}

#[test]
fn choices_without_buttons_are_numbered() {
    let question =
        |labels: &[&str]| Content { choices: choices(labels), ..Content::text("**Go on?**") };
    let list = "1. Yes\n2. No\n\nAnswer with a number.";
    assert_eq!(
        texts(question(&["Yes", "No"]), &Capabilities::PLAIN),
        [format!("Go on?\n\n{list}")]
    );
    assert_eq!(
        texts(
            question(&["Yes", "No"]),
            &Capabilities { markup: Markup::Markdown, ..Capabilities::PLAIN }
        ),
        [format!("**Go on?**\n\n{list}")]
    );
    let wide = Capabilities { text: TextLimit { max: 400, unit: Unit::Chars }, ..RICH };
    assert_eq!(
        texts(question(&["*A*", "2. B", "C\nD"]), &wide),
        ["**Go on?**\n\n1. \\*A\\*\n2. 2\\. B\n3. C D\n\nAnswer with a number."]
    );
    assert_eq!(
        texts(Content { text: String::new(), ..question(&["Yes", "No"]) }, &Capabilities::PLAIN),
        [list]
    );
}

#[test]
fn files_that_cannot_be_sent_are_named() {
    let text = TextLimit { max: 400, unit: Unit::Chars };
    let wide = Capabilities { text, edits: Edits::Never, ..RICH };
    let small = file("small.txt", 1_000_000);
    let content = Content {
        files: vec![file("report.pdf", 2_100_000), small.clone()],
        ..Content::text("Here:")
    };
    assert_eq!(
        acts(Act::Post(content.clone()), &wide),
        [Act::Post(Content {
            files: vec![small],
            ..Content::text("Here:\n\n(attachment not sent here: report.pdf, 2.1 MB)")
        })]
    );
    assert_eq!(
        texts(content, &Capabilities::PLAIN),
        ["Here:\n\n(attachments not sent here: report.pdf, 2.1 MB; small.txt, 1 MB)"]
    );
    let only = Content { files: vec![file("a_b.bin", 999)], ..Content::default() };
    assert_eq!(
        texts(only.clone(), &Capabilities::PLAIN),
        ["(attachment not sent here: a_b.bin, 999 B)"]
    );
    assert_eq!(
        texts(only, &Capabilities { files: Files::Never, ..wide }),
        ["(attachment not sent here: a\\_b.bin, 999 B)"]
    );
}

#[test]
fn a_note_does_not_end_up_in_code_that_was_left_open() {
    let wide = Capabilities { text: TextLimit { max: 400, unit: Unit::Chars }, ..RICH };
    let content = Content { choices: choices(&["A", "B", "C"]), ..Content::text("```\ncode") };
    assert_eq!(
        texts(content, &wide),
        ["```\ncode\n```\n\n1. A\n2. B\n3. C\n\nAnswer with a number."]
    );
}

#[test]
fn plain_text_is_measured_as_it_is_sent() {
    let can =
        Capabilities { text: TextLimit { max: 12, unit: Unit::Chars }, ..Capabilities::PLAIN };
    assert_eq!(texts(Content::text("**one** *two* `six`"), &can), ["one two six"]);
    assert_eq!(
        texts(Content::text("[a](http://b.example/c)"), &can),
        ["a", "(http://b.ex", "ample/c)"]
    );
}

#[test]
fn a_text_without_end_is_cut_short_and_says_so() {
    let parts = texts(Content::text("word ".repeat(10_000)), &RICH);
    assert_eq!(parts.len(), 200);
    assert_eq!(parts.last().map(String::as_str), Some("(The rest is too long to be sent here.)"));
}

#[test]
fn part_numbers_do_not_run_over() {
    let long = Act::Post(Content::text("word ".repeat(100)));
    let numbers: Vec<u16> = lower(numbered(u16::MAX - 2, long), &RICH)
        .into_iter()
        .map(|outbound| outbound.id.part)
        .collect();
    assert_eq!(numbers, [u16::MAX - 2, u16::MAX - 1, u16::MAX]);
}

fn any_content() -> impl Strategy<Value = Content> {
    let word = prop_oneof![
        6 => "[a-z]{1,10}",
        1 => "\\*\\*[a-z]{1,9}\\*\\*",
        1 => Just("[a](http://b.example/c)".to_owned()),
        1 => "[家語😀é]{1,5}",
        1 => Just("\n\n".to_owned()),
        1 => Just("\n- ".to_owned()),
    ];
    (
        prop::collection::vec(word, 0..40).prop_map(|words| words.join(" ")),
        prop::collection::vec(("[a-z_*]{1,9}\\.[a-z]{3}", 0_u64..2_000_000), 0..4),
        prop::collection::vec("[a-zA-Z*_1. ]{1,12}", 0..5),
        any::<bool>(),
    )
        .prop_map(|(text, files, labels, replies)| Content {
            text,
            files: files.iter().map(|(name, size)| file(name, *size)).collect(),
            choices: choices(&labels.iter().map(String::as_str).collect::<Vec<_>>()),
            reply_to: replies.then(message),
            ..Content::default()
        })
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => any_content().prop_map(Act::Post),
        2 => any_content().prop_map(|content| Act::Edit { message: message(), content }),
        2 => any_content().prop_map(|content| Act::Draft(content.into())),
        1 => Just(Act::Delete { message: message() }),
        1 => Just(Act::React { message: message(), emoji: "👍".into() }),
        1 => Just(Act::Typing),
    ]
}

fn any_capabilities() -> impl Strategy<Value = Capabilities> {
    let unit = prop_oneof![Just(Unit::Bytes), Just(Unit::Utf16), Just(Unit::Chars)];
    let choices = prop_oneof![
        Just(Choices::Numbered),
        (0_u8..6).prop_map(|max| Choices::Buttons { max, id: 64 })
    ];
    let files = prop_oneof![Just(Files::Never), (0_u64..2_000_000).prop_map(Files::UpTo)];
    let markup = prop_oneof![Just(Markup::Plain), any_formatted()];
    (60_u32..300, unit, markup, choices, files, any::<[bool; 5]>()).prop_map(
        |(max, unit, markup, choices, files, [edits, drafts, deletes, reactions, typing])| {
            Capabilities {
                text: TextLimit { max, unit },
                markup,
                edits: if edits { Edits::Every(OFTEN) } else { Edits::Never },
                drafts: if drafts { Drafts::Every(OFTEN) } else { Drafts::Never },
                deletes: if deletes { Deletes::Anytime } else { Deletes::Never },
                choices,
                reactions: if reactions { Reactions::Emoji } else { Reactions::Never },
                typing: if typing { Typing::Fades(OFTEN) } else { Typing::Never },
                files,
                ..Capabilities::PLAIN
            }
        },
    )
}

fn any_formatted() -> impl Strategy<Value = Markup> {
    prop::sample::select(vec![
        Markup::Markdown,
        Markup::Entities,
        Markup::Discord,
        Markup::Mrkdwn,
        Markup::Html,
    ])
}

/// What people see of a part, as the platform counts it.
fn seen(text: &str, markup: Markup) -> String {
    match markup {
        Markup::Plain => text.to_owned(),
        formatted => render(&parse(text), Dialect::from(formatted)).text,
    }
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

fn content(act: &Act) -> Option<&Content> {
    match act {
        Act::Post(content) | Act::Edit { content, .. } | Act::Draft(Draft { content, .. }) => {
            Some(content)
        }
        Act::Delete { .. } | Act::React { .. } | Act::Mark { .. } => None,
        Act::Typing | Act::Rest => None,
    }
}

fn knows(can: &Capabilities, act: &Act) -> bool {
    match act {
        Act::Post(_) => true,
        Act::Edit { .. } => can.edits != Edits::Never,
        Act::Draft(_) => can.drafts != Drafts::Never,
        Act::Delete { .. } => can.deletes != Deletes::Never,
        Act::React { .. } => can.reactions != Reactions::Never,
        Act::Mark { .. } => can.marks != Marks::Never,
        Act::Typing => can.typing != Typing::Never,
        Act::Rest => matches!(can.typing, Typing::Stays(_)),
    }
}

fn may_send(can: &Capabilities, file: &FileRef) -> bool {
    match can.files {
        Files::Never => false,
        Files::UpTo(most) => file.size <= most,
    }
}

fn shows_buttons(can: &Capabilities, count: usize) -> bool {
    match can.choices {
        Choices::Numbered => count == 0,
        Choices::Buttons { max, .. } => count <= usize::from(max),
    }
}

proptest! {
    #![proptest_config(Config {
        rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..Config::default()
    })]

    #[test]
    fn every_act_fits_the_platform(
        act in any_act(), can in any_capabilities(), part in any::<u16>(),
    ) {
        let before = numbered(part, act);
        let mut ids = std::collections::BTreeSet::new();
        for (index, after) in lower(before.clone(), &can).into_iter().enumerate() {
            prop_assert!(knows(&can, &after.act));
            prop_assert_eq!(&after.to, &before.to);
            prop_assert_eq!(&after.id.session, &before.id.session);
            prop_assert_eq!(after.id.delivery, before.id.delivery);
            prop_assert_eq!(usize::from(after.id.part), usize::from(part) + index);
            prop_assert!(ids.insert(after.id.clone()));
            if let Some(content) = content(&after.act) {
                let seen = seen(&content.text, can.markup);
                prop_assert!(length(&seen, can.text.unit) <= can.text.max as usize);
                prop_assert!(shows_buttons(&can, content.choices.len()));
                prop_assert!(content.files.iter().all(|file| may_send(&can, file)));
                let is_empty = content.text.trim().is_empty()
                    && content.files.is_empty()
                    && content.choices.is_empty();
                prop_assert!(!is_empty || after.act == Act::Draft(Draft::default()));
            }
        }
    }

    #[test]
    fn lowering_again_changes_nothing(
        act in any_act(), can in any_capabilities(), markup in any_formatted(),
    ) {
        let can = Capabilities { markup, ..can };
        for once in lower(outbound(act), &can) {
            prop_assert_eq!(lower(once.clone(), &can), [once]);
        }
    }

    #[test]
    fn nothing_that_the_platform_can_show_is_lost(
        content in any_content(), can in any_capabilities(),
    ) {
        let all = acts(Act::Post(content.clone()), &can);
        let after: Vec<&Content> = all.iter().filter_map(crate::content).collect();

        let files: Vec<_> = after.iter().flat_map(|content| &content.files).collect();
        let sendable: Vec<_> =
            content.files.iter().filter(|file| may_send(&can, file)).collect();
        prop_assert_eq!(files, sendable);

        let buttons: Vec<_> = after.iter().flat_map(|content| &content.choices).collect();
        if shows_buttons(&can, content.choices.len()) {
            prop_assert_eq!(buttons, content.choices.iter().collect::<Vec<_>>());
        } else {
            prop_assert!(buttons.is_empty());
        }

        let shown = |text: &str| match can.markup {
            Markup::Plain => letters(text),
            _ => letters(&plain(&parse(text))),
        };
        let text: String = after.iter().map(|content| shown(&content.text)).collect();
        let is_cut_short = after.len() == 200;
        let before = letters(&plain(&parse(&content.text)));
        prop_assert!(is_cut_short || text.starts_with(&before), "{text}\n{before}");
        if let Some(first) = after.first() {
            prop_assert_eq!(&first.reply_to, &content.reply_to);
            prop_assert!(after[1..].iter().all(|content| content.reply_to.is_none()));
        }
        let last = after.len().saturating_sub(1);
        prop_assert!(after[..last].iter().all(|content| content.files.is_empty()));
        // Files that are a message of their own stand behind the one with the buttons.
        let speaks = after.iter().rposition(|content| !content.text.is_empty()).unwrap_or(last);
        prop_assert!(after[..speaks].iter().all(|content| content.choices.is_empty()));
    }
}

#[test]
fn files_follow_a_message_that_may_have_grown() {
    let said = Act::Post(Content { files: vec![file("a.png", 1)], ..Content::text("Here it is.") });
    let grown = acts(said.clone(), &RICH);
    let shown: Vec<_> = grown.iter().filter_map(content).collect();
    let shown: Vec<_> = shown.iter().map(|it| (it.text.as_str(), it.files.len())).collect();
    assert_eq!(shown, [("Here it is.", 0), ("", 1)]);
    let still = Capabilities { edits: Edits::Never, ..RICH };
    assert_eq!(acts(said, &still).len(), 1);
}

#[test]
fn what_was_refused_for_its_form_has_none_left() {
    let content = Content {
        text: "Run `rm *.o` in **src**?".into(),
        choices: choices(&["Yes, *all*", "No"]),
        reply_to: Some(message()),
        ..Content::default()
    };
    let can = Capabilities { text: TextLimit { max: 400, ..RICH.text }, ..RICH };
    let plain = plainly(content, &can);
    assert_eq!(plain.reading, Reading::AsItIs);
    assert_eq!(plain.choices, []);
    assert_eq!(plain.reply_to, Some(message()));
    let expected = "Run rm *.o in src?\n\n1. Yes, *all*\n2. No\n\nAnswer with a number.";
    assert_eq!(plain.text, expected);
}

#[test]
fn a_list_of_choices_is_never_cut_short() {
    for unit in [Unit::Bytes, Unit::Chars, Unit::Utf16] {
        let text = TextLimit { max: 100, unit };
        let can = Capabilities { text, ..RICH };
        let content =
            Content { choices: choices(&["Yes", "No"]), ..Content::text("ä𝄞 ".repeat(60)) };
        let plain = plainly(content, &can).text;
        assert!(talaria_render::length(&plain, unit) <= 100, "{plain}");
        assert!(plain.ends_with("…\n\n1. Yes\n2. No\n\nAnswer with a number."), "{plain}");
    }
}

#[test]
fn an_id_that_does_not_fit_on_a_button_becomes_its_digest() {
    let id = ChoiceId::new("call_".repeat(30)).expect("an id");
    let choice = Choice { id: id.clone(), label: "Yes".into() };
    let content = Content { choices: vec![choice], ..Content::text("Sure?") };
    let [Act::Post(lowered)] = &acts(Act::Post(content), &RICH)[..] else { panic!("one post") };
    let button = &lowered.choices[0].id;
    assert!(button.as_str().len() <= 64 && id.is_named(button), "{button}");
}
