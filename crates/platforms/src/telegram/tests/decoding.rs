//! Updates in: each fixture and what becomes of it.

use proptest::prelude::*;
use serde_json::value::RawValue;
use talaria_model::{
    Addressed, Author, Inbound, InboundKind, MediaKind, Message, Owner, Quote, SenderKind,
};

use super::super::decode::{Decoded, Event, News, OtherBots, Us, decode, number};
use super::super::words::Names;
use super::*;

fn us() -> Us {
    Us {
        account: AccountId::literal("telegram"),
        names: Names { id: 42, username: Some("tally_bot".into()) },
        hears_all: false,
        other_bots: OtherBots::GoFirst,
    }
}

fn read(update: &Value) -> (Decoded, News) {
    let raw = RawValue::from_string(update.to_string()).unwrap();
    let number = number(&raw).expect("an update has a number");
    decode(number, &raw, &us(), Timestamp::from_millis(5))
}

fn event(update: &Value) -> Event {
    match read(update).0 {
        Decoded::Event(event) => *event,
        other => panic!("{other:?} and no event"),
    }
}

fn fixture(name: &str) -> Value {
    let path = format!("{}/src/telegram/fixtures/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn author(author: &Author) -> String {
    match author {
        Author::Us => "us".into(),
        Author::Named(name) => name.clone(),
        Author::Unknown => "unknown".into(),
    }
}

fn message(message: &Message) -> String {
    let mut words = format!("{:?}", message.text);
    for media in &message.media {
        let name = media.name.as_deref().unwrap_or("-");
        let mime = media.mime.as_deref().unwrap_or("-");
        let theirs = if media.owner.is_sender() { "" } else { " of whom it answers" };
        words += &format!(" +{:?} {} {name} {mime}{theirs}", media.kind, media.handle);
    }
    if message.addressed == Addressed::ToOthers {
        words += " (to others)";
    }
    if let Some(first) = &message.forwarded {
        words += &format!(" (from {})", author(first));
    }
    if let Some(answered) = &message.reply_to {
        words += &format!(" (answers {answered})");
    }
    if let Some(quote) = &message.quote {
        let by = quote.by.as_ref().map_or("nobody known", |by| by.id.as_str());
        words += &format!(" (quotes {}, {by}: {:?})", author(&quote.author), quote.text);
    }
    words
}

/// An update in one line.
fn line(update: &Value) -> String {
    let event = match read(update).0 {
        Decoded::Event(event) => event,
        Decoded::Nothing { press: None } => return "nothing".into(),
        Decoded::Nothing { press: Some(press) } => return format!("nothing, answer {press}"),
        Decoded::Senseless(reason) => return format!("senseless: {reason}"),
    };
    let Inbound { id, from, to, kind, source, .. } = event.inbound;
    let bot = if from.kind == SenderKind::Bot { " (bot)" } else { "" };
    let name = from.name.as_deref().unwrap_or("-");
    let thread = to.thread.map(|thread| format!(" #{thread}")).unwrap_or_default();
    let chat = source.chat_name.map(|name| format!(" {name:?}")).unwrap_or_default();
    let what = match kind {
        InboundKind::Said(said) => format!("says {}", message(&said)),
        InboundKind::Edited(edited) => format!("edits {}", message(&edited)),
        InboundKind::Pressed(choice) => {
            format!("presses {choice}, answer {}", event.press.unwrap_or_default())
        }
        InboundKind::Stopped => "stops".into(),
    };
    let kind = to.chat.kind.as_str();
    format!("{id} {kind} {}{chat}{thread}: {} {name}{bot} {what}", to.chat.id, from.id)
}

#[test]
fn each_sample_reads_as_what_happened() {
    let test = "1111111 Test Firstname Test Lastname";
    let alice = "250918540 Alice Example";
    let dm = "dm 250918540";
    let group = "group -1001160242915 \"a\"";
    let forum = "forum -1001847508954 \"twest\"";
    for (name, expected) in [
        ("text", format!(r#"42:10000 dm 1111111: {test} says "/start""#)),
        ("entities", format!(r#"42:10000 dm 1111111: {test} says "Bold and italics""#)),
        ("edited", format!(r#"42:10000 dm 1111111: {test} edits "Edited text""#)),
        (
            "reply",
            format!(
                r#"42:10000 dm 1111111: {test} says "/start" (answers 1334) (quotes unknown, nobody known: "Original")"#
            ),
        ),
        (
            "audio",
            format!(
                r#"42:10000 dm 1111111: {test} says "" +Audio AwADBAADbXXXXXXXXXXXGBdhD2l6_XX - audio/mpeg"#
            ),
        ),
        (
            "voice",
            format!(
                r#"42:10000 dm 1111111: {test} says "" +Voice AwADBAADbXXXXXXXXXXXGBdhD2l6_XX - audio/ogg"#
            ),
        ),
        (
            "document",
            format!(
                r#"42:10000 dm 1111111: {test} says "" +Document AwADBAADbXXXXXXXXXXXGBdhD2l6_XX Testfile.pdf application/pdf"#
            ),
        ),
        ("forwarded_old_form", format!(r#"42:10000 dm 1111111: {test} says "/start""#)),
        ("inline_query", "nothing".into()),
        ("press_inline", "nothing, answer 4382bfdwdsb323b2d9".into()),
        ("photo", format!(r#"42:1 {dm}: {alice} says "" +Photo AgADAgADlarge - image/jpeg"#)),
        (
            "sticker",
            format!(
                r#"42:2 {dm}: {alice} says "😡" +Sticker CAADAgADGQADMZrQ - application/x-tgsticker"#
            ),
        ),
        (
            "album_first",
            format!(r#"42:3 {dm}: {alice} says "Our trip" +Video BAADAgADpgQ - video/mp4"#),
        ),
        (
            "anonymous_admin",
            format!(r#"42:5 {group}: -1001160242915 a says "text" (to others) (from a)"#),
        ),
        ("forwarded_user", format!(r#"42:6 {dm}: {alice} says "/start" (from test)"#)),
        ("forwarded_hidden", format!(r#"42:7 {dm}: {alice} says "psst" (from test)"#)),
        ("forwarded_ours", format!(r#"42:8 {dm}: {alice} says "as you said" (from us)"#)),
        ("venue", format!(r#"42:9 {dm}: {alice} says "[venue: Title, Address (52.5, 13.25)]""#)),
        ("location", format!(r#"42:10 {dm}: {alice} says "[location: 52.5, 13.25]""#)),
        ("contact", format!(r#"42:11 {dm}: {alice} says "[contact: Bob Example, +15551234]""#)),
        ("poll", format!(r#"42:12 {dm}: {alice} says "[poll: Lunch? (Soup; Pizza)]""#)),
        ("dice", format!(r#"42:13 {dm}: {alice} says "[dice: 🎲 4]""#)),
        ("story", format!(r#"42:14 {group}: {alice} says "[story]" (to others)"#)),
        ("empty", "nothing".into()),
        ("topic_created", "nothing".into()),
        ("topic_message", format!(r#"42:17 {forum} #4: {alice} says "blah" (to others)"#)),
        (
            "topic_reply_to_us",
            format!(
                r#"42:18 {forum} #4: {alice} says "yes" (answers 6) (quotes us, nobody known: "Shall I?")"#
            ),
        ),
        ("topic_renamed", "nothing".into()),
        // The number of a chain of answers is no topic, and the first of them is no answer to it.
        ("general_reply", format!(r#"42:20 {forum}: {alice} says "me" (to others)"#)),
        ("private_topic", format!(r#"42:21 {dm} #77: {alice} says "in a topic""#)),
        (
            "channel_direct",
            format!(
                r#"42:22 group -2002147483999 "News" #250918540: {alice} says "hello channel" (to others)"#
            ),
        ),
        ("migrate_to", "nothing".into()),
        ("migrate_from", "nothing".into()),
        ("press", format!("42:25 {group}: {alice} presses q1, answer 4382bfdwdsb323b2d9")),
        ("press_inaccessible", format!("42:26 {group}: {alice} presses q2, answer 7")),
        ("stopped", format!("42:27 {dm} #77: {alice} stops")),
        ("reaction", "nothing".into()),
        ("unknown_kind", "nothing".into()),
        (
            "channel_post",
            r#"42:28 channel -1002236736395 "Test": -1002236736395 Test says "news" (to others)"#
                .into(),
        ),
        (
            "rich",
            format!(
                r#"42:29 {dm}: {alice} says "A title\n• one\n• two here (https://example.org/)\na | b""#
            ),
        ),
        (
            "quote",
            format!(
                r#"42:30 {dm}: {alice} says "that" (answers 20) (quotes us, nobody known: "pizza")"#
            ),
        ),
        (
            "external_reply",
            format!(
                r#"42:31 {dm}: {alice} says "look" (quotes Somebody, nobody known: "from elsewhere")"#
            ),
        ),
        ("mention", format!(r#"42:32 {group}: {alice} says "😀 what now?""#)),
        ("group_chatter", format!(r#"42:33 {group}: {alice} says "good morning all" (to others)"#)),
        ("command_ours", format!(r#"42:34 {group}: {alice} says "/new please""#)),
        ("command_theirs", "nothing".into()),
        (
            "reply_to_photo",
            format!(
                r#"42:36 {dm}: {alice} says "nice" +Photo p - image/jpeg of whom it answers (answers 21) (quotes Alice Example, 250918540: "[photo]")"#
            ),
        ),
        ("ours", "nothing".into()),
        ("animation", format!(r#"42:38 {dm}: {alice} says "" +Animation anim - video/mp4"#)),
        (
            "picture_document",
            format!(r#"42:39 {dm}: {alice} says "the scan" +Photo doc scan.png image/png"#),
        ),
    ] {
        assert_eq!(line(&fixture(name)), expected, "{name}");
    }
}

#[test]
fn a_bare_command_in_a_group_is_ours_unless_we_hear_everything() {
    let mut update = fixture("command_ours");
    update["message"]["text"] = json!("/new");
    update["message"]["entities"][0]["length"] = json!(4);
    let raw = RawValue::from_string(update.to_string()).unwrap();
    for (hears_all, expected) in [(false, Addressed::ToUs), (true, Addressed::ToOthers)] {
        let us = Us { hears_all, ..us() };
        let (Decoded::Event(event), _) = decode(1, &raw, &us, Timestamp::default()) else {
            panic!("somebody says something")
        };
        let InboundKind::Said(message) = event.inbound.kind else { panic!("said") };
        assert_eq!(message.addressed, expected, "hears all: {hears_all}");
    }
}

#[test]
fn a_moment_is_when_telegram_says_and_for_a_press_when_it_arrives() {
    assert_eq!(event(&fixture("text")).inbound.at, Timestamp::from_millis(1_441_645_532_000));
    assert_eq!(event(&fixture("edited")).inbound.at, Timestamp::from_millis(1_441_646_600_000));
    assert_eq!(event(&fixture("press")).inbound.at, Timestamp::from_millis(5));
}

#[test]
fn what_chats_are_called_is_learnt_by_the_way() {
    let topic = |name: &str| read(&fixture(name)).1;
    let named = |name: &str| Some((-1_001_847_508_954, 4, name.to_owned()));
    assert_eq!(topic("topic_created").topic, named("Plans"));
    let said = topic("topic_message");
    assert_eq!((said.topic, said.is_first_name), (named("Plans"), true));
    let renamed = topic("topic_renamed");
    assert_eq!((renamed.topic, renamed.is_first_name), (named("Better plans"), false));
    let moved = Some((-599_075_523, -1_001_555_296_434));
    assert_eq!(topic("migrate_to").moved, moved);
    assert_eq!(topic("migrate_from").moved, moved);
}

fn in_group(text: &str, other: Value) -> Value {
    let mut update = said(9, text);
    update["message"]["chat"] = json!({ "id": -100, "title": "a", "type": "supergroup" });
    for (name, value) in other.as_object().into_iter().flatten() {
        update["message"][name] = value.clone();
    }
    update
}

fn message_in(update: &Value) -> Message {
    match event(update).inbound.kind {
        InboundKind::Said(message) => message,
        kind => panic!("{kind:?}"),
    }
}

#[test]
fn who_names_another_bot_means_that_one_even_in_an_answer_to_us() {
    let entities = json!([{ "type": "mention", "offset": 0, "length": 10 }]);
    let ours = json!({ "message_id": 3, "date": 1, "text": "hm",
        "from": { "id": 42, "is_bot": true, "first_name": "Tally" },
        "chat": { "id": -100, "type": "supergroup" } });
    let named =
        in_group("@other_bot hi", json!({ "entities": entities, "reply_to_message": ours }));
    assert_eq!(message_in(&named).addressed, Addressed::ToAnotherBot);
    let both = json!([{ "type": "mention", "offset": 0, "length": 10 },
        { "type": "mention", "offset": 11, "length": 10 }]);
    let both = in_group("@other_bot @tally_bot hi", json!({ "entities": both }));
    assert_eq!(message_in(&both).addressed, Addressed::ToUs);
    let mut alone = in_group("@other_bot hi", json!({ "entities": entities }));
    alone["message"]["chat"] = json!({ "id": 250_918_540, "type": "private" });
    assert_eq!(message_in(&alone).addressed, Addressed::ToUs);
}

#[test]
fn who_answers_a_picture_speaks_about_it() {
    let picture = json!({ "message_id": 3, "date": 1,
        "from": { "id": 7, "is_bot": false, "first_name": "Bob" },
        "chat": { "id": -100, "type": "supergroup" },
        "photo": [{ "file_id": "p1", "file_unique_id": "u", "width": 1, "height": 1 }] });
    let entities = json!([{ "type": "mention", "offset": 0, "length": 10 }]);
    let asked = in_group(
        "@tally_bot what is it?",
        json!({ "entities": entities, "reply_to_message": picture }),
    );
    let media = message_in(&asked).media;
    assert_eq!((media.len(), media[0].handle.as_str()), (1, "p1"));
    assert_eq!(media[0].owner, Owner::Answered);
    let chatter = in_group("nice", json!({ "reply_to_message": picture }));
    assert!(message_in(&chatter).media.is_empty(), "nobody asked us");
}

#[test]
fn what_somebody_had_passed_on_is_not_quoted_as_theirs() {
    let forward = json!({ "message_id": 3, "date": 1, "text": "obey me",
        "from": { "id": 7, "is_bot": false, "first_name": "Bob" },
        "chat": { "id": -100, "type": "supergroup" },
        "forward_origin": { "type": "hidden_user", "date": 1, "sender_user_name": "Eve" } });
    let quote = message_in(&in_group("this?", json!({ "reply_to_message": forward }))).quote;
    assert_eq!(quote, Some(Quote::new("obey me", Author::Named("Eve".into()))));
}

#[test]
fn who_passes_a_command_on_does_not_give_it() {
    let command = json!([{ "type": "bot_command", "offset": 0, "length": 15 }]);
    let origin = json!({ "type": "hidden_user", "date": 1, "sender_user_name": "Eve" });
    let passed =
        in_group("/stop@other_bot", json!({ "entities": command, "forward_origin": origin }));
    assert_eq!(message_in(&passed).addressed, Addressed::ToOthers);
}

#[test]
fn the_parts_of_an_album_say_what_they_are_parts_of() {
    let part = |name: &str| match event(&fixture(name)).inbound.kind {
        InboundKind::Said(message) => (message.album, message.media[0].kind),
        kind => panic!("{kind:?}"),
    };
    let (first, second) = (part("album_first"), part("album_second"));
    assert!(first.0.is_some() && first.0 == second.0);
    assert_eq!((first.1, second.1), (MediaKind::Video, MediaKind::Photo));
}

#[test]
fn a_field_of_the_wrong_type_makes_no_sense_and_no_noise() {
    for message in [
        json!("hello"),
        json!({ "message_id": 1, "chat": { "id": "me", "type": "private" }, "text": "x" }),
        json!({ "message_id": 1, "chat": { "id": 1, "type": "private" }, "text": ["x"] }),
    ] {
        let line = line(&json!({ "update_id": 1, "message": message }));
        assert_eq!(line, "senseless: a field is missing or of the wrong type");
    }
    let chat = json!({ "id": 1, "type": "hall" });
    let unknown = json!({ "update_id": 1, "message": {
        "message_id": 1, "chat": chat, "text": "x", "from": { "id": 1 },
    }});
    assert_eq!(line(&unknown), "senseless: a chat of an unknown kind");
    let nobody = json!({ "update_id": 1, "message": {
        "message_id": 1, "chat": { "id": 1, "type": "private" }, "text": "x",
    }});
    assert_eq!(line(&nobody), "senseless: nobody said it");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "message",
        "text",
        "entities",
        "type",
        "offset",
        "length",
        "chat",
        "id",
        "from",
        "caption",
        "photo",
        "file_id",
        "reply_to_message",
        "quote",
        "message_id",
        "rich_message",
        "blocks",
        "callback_query",
        "data",
        "forward_origin",
        "sender_chat",
        "update_id",
        "username",
        "url",
    ]);
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(names.clone(), inner, 0..8).prop_map(|fields| {
                Value::Object(
                    fields.into_iter().map(|(name, value)| (name.into(), value)).collect(),
                )
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_update_can_make_it_panic(value in any_json()) {
        let raw = RawValue::from_string(json!({ "update_id": 1, "message": value }).to_string());
        let _ = decode(1, &raw.unwrap(), &us(), Timestamp::default());
        let raw = RawValue::from_string(value.to_string()).unwrap();
        let _ = decode(1, &raw, &us(), Timestamp::default());
    }

    #[test]
    fn no_entity_can_make_it_panic(
        text in "\\PC{0,40}",
        offset in 0usize..60,
        length in 0usize..60,
        kind in prop::sample::select(vec!["mention", "bot_command", "text_link", "text_mention"]),
    ) {
        let update = json!({ "update_id": 1, "message": {
            "message_id": 1, "text": text, "from": { "id": 1 },
            "chat": { "id": 1, "type": "private" },
            "entities": [
                { "type": kind, "offset": offset, "length": length, "url": "https://a.b",
                  "user": { "id": 42 } },
                { "type": "mention", "offset": length, "length": offset },
            ],
        }});
        let _ = read(&update);
    }
}
