//! Discord's own examples, read.

use proptest::prelude::*;
use serde_json::{Value, json};
use talaria_model::{
    AccountId, Act, Address, Addressed, Author, Chat, ChatId, ChatKind, Content, Inbound,
    InboundKind, MediaKind, Message, Outbound, OutboundId, Reading, SenderKind, SessionId,
    Timestamp,
};
use talaria_platform::Platform;

use crate::discord::decode::{Concern, Found, Place, Reader, concern};
use crate::discord::places::Places;
use crate::discord::settings::Settings;
use crate::discord::snowflake::Snowflake;
use crate::discord::text::{Names, readable};
use crate::discord::{Discord, api, encode, refusal};

const US: Snowflake = Snowflake(290_926_444_748_734_465);

fn fixture(name: &str) -> Value {
    let text = match name {
        "message" => include_str!("../fixtures/message.json"),
        "message_create" => include_str!("../fixtures/message_create.json"),
        "forward" => include_str!("../fixtures/forward.json"),
        "reply" => include_str!("../fixtures/reply.json"),
        "button" => include_str!("../fixtures/button.json"),
        "command" => include_str!("../fixtures/command.json"),
        "thread" => include_str!("../fixtures/thread.json"),
        "dm" => include_str!("../fixtures/dm.json"),
        "ready" => include_str!("../fixtures/ready.json"),
        "attachment" => include_str!("../fixtures/attachment.json"),
        "gateway_bot" => include_str!("../fixtures/gateway_bot.json"),
        "rate_limited" => include_str!("../fixtures/rate_limited.json"),
        "invalid_form" => include_str!("../fixtures/invalid_form.json"),
        name => panic!("no fixture {name}"),
    };
    serde_json::from_str(text).unwrap()
}

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn with_reader<T>(us: Snowflake, read: impl FnOnce(&Reader<'_>) -> T) -> T {
    let settings: Settings = parse(json!({ "token": "t" }));
    let account = AccountId::literal("discord");
    let places = Places::new(&[]);
    read(&Reader { account: &account, us, settings: &settings, places: &places })
}

fn said(message: Value) -> Option<(Inbound, Message)> {
    let message: api::Message = parse(message);
    assert_eq!(concern(&message, US), Concern::Said);
    let place = Place::told(message.channel_id, message.guild_id, message.channel_type);
    let found = Found { place, ..Found::default() };
    let inbound = with_reader(US, |reader| reader.said(&message, found))?;
    let InboundKind::Said(said) = inbound.kind.clone() else { panic!("said") };
    Some((inbound, said))
}

#[test]
fn the_example_message_is_read() {
    let (inbound, message) = said(fixture("message")).unwrap();
    assert_eq!(message.text, "Supa Hot");
    assert_eq!(inbound.from.name.as_deref(), Some("Mason"));
    assert_eq!(inbound.at, Timestamp::from_millis(1_499_794_044_250), "its id tells when");
}

#[test]
fn a_captured_event_is_read() {
    let event = fixture("message_create");
    let frame = event.to_string();
    let frame: api::Frame<'_> = serde_json::from_str(&frame).unwrap();
    assert_eq!((frame.op, frame.s, frame.t.as_deref()), (0, Some(4), Some("MESSAGE_CREATE")));
    let (inbound, message) = said(event["d"].clone()).unwrap();
    assert_eq!(message.text, "Message with text and sticker!\n[sticker: sticker1]");
    assert_eq!(message.media[0].kind, MediaKind::Sticker);
    assert_eq!(message.media[0].handle, "s:1490687750288965813:2");
    assert_eq!(inbound.from.name.as_deref(), Some("AT"));
    assert_eq!((inbound.from.kind, inbound.to.chat.kind), (SenderKind::Person, ChatKind::Group));
    assert_eq!(message.addressed, Addressed::ToOthers);
    assert_eq!(inbound.source.space.as_deref(), Some("705745250815311942"));
}

#[test]
fn a_forward_says_what_was_passed_on_and_not_by_whom() {
    let (_, message) = said(fixture("forward")).unwrap();
    assert_eq!(message.forwarded, Some(Author::Unknown));
    assert_eq!((message.text.as_str(), message.reply_to), ("", None));
    let picture = &message.media[0];
    assert_eq!((picture.kind, picture.size), (MediaKind::Photo, Some(517_431)));
    assert_eq!(picture.name.as_deref(), Some("IMG_7203.jpg"));
    assert_eq!(
        picture.handle, "a:1072828564317159465:1494732685992530114:1494732685631946782",
        "found through the message that passes it on"
    );
}

#[test]
fn a_reply_is_read_with_what_it_answers() {
    let mut reply = fixture("reply");
    reply["id"] = json!("987995248808427521");
    reply["channel_id"] = json!("654355510669344798");
    reply["author"] = json!({ "id": "1", "username": "somebody" });
    reply["content"] = json!("C");
    let (_, message) = said(reply).unwrap();
    let quote = message.quote.unwrap();
    assert_eq!((quote.text.as_str(), quote.author), ("B", Author::Named("davfsa".into())));
    assert_eq!(message.reply_to.unwrap().as_str(), "987995227254054952");
}

#[test]
fn every_field_of_a_file_is_known() {
    let mut message = fixture("message");
    message["content"] = json!("");
    message["attachments"] = json!([fixture("attachment")]);
    let (_, message) = said(message).unwrap();
    assert_eq!(message.text, "[IMG.jpg: description]");
    assert_eq!(message.media[0].mime.as_deref(), Some("image/png"));
    assert_eq!(message.media[0].size, Some(660_521));
}

#[test]
fn the_kind_of_a_file_is_what_people_see() {
    let kind = |name: &str, mime: Value, flags: u64| {
        let mut message = fixture("message");
        message["flags"] = json!(flags);
        message["attachments"] = json!([{ "id": "1", "filename": name, "content_type": mime }]);
        said(message).unwrap().1.media[0].kind
    };
    assert_eq!(kind("a.png", json!("image/png"), 0), MediaKind::Photo);
    assert_eq!(kind("a.png", Value::Null, 0), MediaKind::Photo, "by its name");
    assert_eq!(kind("a.gif", json!("image/gif"), 0), MediaKind::Animation);
    assert_eq!(kind("a.mp4", json!("video/mp4"), 0), MediaKind::Video);
    assert_eq!(kind("a.mp3", json!("audio/mpeg"), 0), MediaKind::Audio);
    assert_eq!(kind("a.ogg", json!("audio/ogg"), 1 << 13), MediaKind::Voice);
    assert_eq!(kind("a.pdf", json!("application/pdf"), 0), MediaKind::Document);
    assert_eq!(kind("a", Value::Null, 0), MediaKind::Document);
}

#[test]
fn polls_and_embeds_of_programs_become_words() {
    let mut poll = fixture("message");
    poll["content"] = json!("");
    poll["poll"] = json!({ "question": { "text": "Lunch?" },
        "answers": [{ "answer_id": 1, "poll_media": { "text": "Soup" } },
            { "answer_id": 2, "poll_media": { "text": "Pizza" } }] });
    assert_eq!(said(poll).unwrap().1.text, "[poll: Lunch? (Soup / Pizza)]");
    let mut hook = fixture("message");
    hook["content"] = json!("");
    hook["webhook_id"] = json!("12");
    hook["embeds"] = json!([{ "title": "Build 7", "description": "failed" }]);
    let (inbound, message) = said(hook).unwrap();
    assert_eq!((message.text.as_str(), inbound.from.kind), ("Build 7\nfailed", SenderKind::Bot));
}

#[test]
fn the_example_button_is_ours_only_if_the_message_is() {
    let button: api::Interaction = parse(fixture("button"));
    let found = || Found {
        place: Place::told(button.channel_id.unwrap(), button.guild_id, None),
        ..Found::default()
    };
    let pressed = with_reader(US, |reader| reader.interaction(&button, found()));
    assert_eq!(pressed, None, "Mason's own button");
    let mason = Snowflake(53_908_232_506_183_680);
    let pressed = with_reader(mason, |reader| reader.interaction(&button, found())).unwrap();
    let InboundKind::Pressed(choice) = &pressed.kind else { panic!("pressed") };
    assert_eq!((choice.as_str(), pressed.id.as_str()), ("click_one", "i:846462639134605312"));
    assert_eq!(pressed.from.name.as_deref(), Some("Mason"));
    let mut menu = fixture("button");
    menu["data"] =
        json!({ "component_type": 3, "custom_id": "favorite_bug", "values": ["butterfly"] });
    let menu: api::Interaction = parse(menu);
    let chosen = with_reader(mason, |reader| reader.interaction(&menu, found())).unwrap();
    assert!(matches!(&chosen.kind, InboundKind::Pressed(choice) if choice.as_str() == "butterfly"));
}

#[test]
fn the_example_command_is_read() {
    let command: api::Interaction = parse(fixture("command"));
    let place = Place::told(command.channel_id.unwrap(), command.guild_id, None);
    let found = Found { place, ..Found::default() };
    let given = with_reader(US, |reader| reader.interaction(&command, found)).unwrap();
    let InboundKind::Said(said) = &given.kind else { panic!("said") };
    assert_eq!(said.text, "/cardsearch The Gitrog Monster");
}

#[test]
fn places_and_sessions_are_read() {
    let thread: api::Channel = parse(fixture("thread"));
    assert_eq!((thread.kind, thread.name.as_str()), (11, "don't buy dota-2"));
    assert_eq!(thread.last_message_id, Some(Snowflake(155_117_677_105_512_449)));
    let dm: api::Channel = parse(fixture("dm"));
    assert_eq!((dm.kind, dm.guild_id), (1, None));
    let ready: api::Ready = parse(fixture("ready")["d"].clone());
    assert_eq!(ready.session_id, "bf8eb88e4939e52df093261f3abbc638");
    assert_eq!(ready.resume_gateway_url, "wss://gateway-us-east1-c.discord.gg");
    assert_eq!(ready.guilds.len(), 1);
    let gateway: api::GatewayBot = parse(fixture("gateway_bot"));
    assert_eq!((gateway.shards, gateway.session_start_limit.unwrap().remaining), (9, 999));
}

#[test]
fn refusals_are_read() {
    let answer = |status: u16, name: &str| crate::wire::http::Reply {
        status: reqwest::StatusCode::from_u16(status).unwrap(),
        headers: reqwest::header::HeaderMap::new(),
        body: fixture(name).to_string().into_bytes(),
    };
    let refusal::RestError::Throttled { after, everything } =
        refusal::read(answer(429, "rate_limited")).unwrap_err()
    else {
        panic!("later")
    };
    assert_eq!((after.as_millis(), everything), (64_570, false));
    let refusal::RestError::Refused(refusal) =
        refusal::read(answer(400, "invalid_form")).unwrap_err()
    else {
        panic!("no")
    };
    assert_eq!((refusal.code, refusal.fields), (50035, vec!["access_token".to_owned()]));
}

#[test]
fn markdown_becomes_discords() {
    for (markdown, discord) in [
        ("good *morning* ☀", "good *morning* ☀"),
        ("__bold__ and ~~gone~~", "**bold** and ~~gone~~"),
        ("# One\n\n#### Four", "# One\n\n**Four**"),
        ("- a\n- b\n  1. c\n  2. d", "- a\n- b\n  1. c\n  2. d"),
        ("> quoted", "> quoted"),
        ("```rust\nlet a_b = 1;\n```", "```rust\nlet a_b = 1;\n```"),
        ("[text](https://example.org/a_b)", "[text](https://example.org/a_b)"),
        ("<https://example.org/a_b>", "https://example.org/a_b"),
        ("[https://x.example](https://y.example)", "https://x.example (https://y.example)"),
        ("snake_case 2 \\* 3", "snake\\_case 2 \\* 3"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "```\na  b\n-  -\n1  2\n```"),
        ("- [x] done\n- [ ] open", "- ☑ done\n- ☐ open"),
        ("<@123> hello", "<@123> hello"),
    ] {
        assert_eq!(encode::words(&Content::text(markdown)), discord, "{markdown:?}");
    }
}

#[test]
fn text_that_is_to_be_read_as_it_is_has_no_marks() {
    let plain = |text: &str| Content { reading: Reading::AsItIs, ..Content::text(text) };
    assert_eq!(encode::words(&plain("a*b*c\n`d` __e__")), "a\\*b\\*c\n\\`d\\` \\_\\_e\\_\\_");
    let starry = "*".repeat(encode::LONGEST - 10);
    assert_eq!(encode::words(&plain(&starry)), starry, "what fits only so goes without escapes");
}

#[test]
fn names_of_files_and_threads_are_what_discord_takes() {
    for (name, kept) in
        [("a b.txt", "a_b.txt"), ("../../etc/passwd", "etc_passwd"), ("ü", "file"), ("", "file")]
    {
        let cleaned = encode::file_name(name);
        assert!(!cleaned.contains('/'), "{cleaned}");
        if name != "../../etc/passwd" {
            assert_eq!(cleaned, kept);
        }
    }
    assert_eq!(encode::title("## Plans for\nlater"), "Plans for");
    assert_eq!(encode::title(""), "New Post");
    assert_eq!(encode::title(&"x".repeat(300)).chars().count(), 100);
    assert_eq!(crate::discord::decode::thread_name(""), "Conversation");
    assert!(crate::discord::decode::thread_name(&"wort ".repeat(50)).chars().count() <= 80);
}

/// JSON of any shape, with the field names that are read.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[0-9]{1,20}".prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    let field = prop_oneof![
        Just("id"),
        Just("channel_id"),
        Just("author"),
        Just("content"),
        Just("type"),
        Just("mentions"),
        Just("attachments"),
        Just("referenced_message"),
        Just("message_reference"),
        Just("message_snapshots"),
        Just("message"),
        Just("guild_id"),
        Just("member"),
        Just("flags"),
        Just("data"),
        Just("options"),
        Just("token"),
        Just("edited_timestamp"),
        Just("poll"),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((field.clone(), inner), 0..8)
                .prop_map(|fields| fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn reading_never_panics(mut what in anything(), content in ".{0,60}") {
        if what.is_object() && what["id"].is_null() {
            what["id"] = json!("5");
            what["channel_id"] = json!("6");
            what["author"] = json!({ "id": "7", "username": "x" });
            what["content"] = json!(content);
        }
        if let Ok(message) = serde_json::from_value::<api::Message>(what.clone()) {
            let place = || Place::told(message.channel_id, message.guild_id, message.channel_type);
            with_reader(US, |reader| {
                reader.said(&message, Found { place: place(), ..Found::default() });
                let now = Timestamp::from_millis(0);
                reader.edited(&message, Found { place: place(), ..Found::default() }, now);
            });
        }
        if let Ok(interaction) = serde_json::from_value::<api::Interaction>(what) {
            with_reader(US, |reader| reader.interaction(&interaction, Found::default()));
        }
    }

    #[test]
    fn a_text_without_brackets_stays_as_it_is(text in "[^<]{0,80}") {
        let places = Places::new(&[]);
        let names = Names { us: US, guild: None, people: &[], places: &places };
        prop_assert_eq!(readable(&text, &names), text.trim());
    }

    #[test]
    fn brackets_never_break_a_text(text in "[<>@!&#:/ta0-9é]{0,40}") {
        let places = Places::new(&[]);
        readable(&text, &Names { us: US, guild: None, people: &[], places: &places });
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn what_is_sent_fits(text in "\\PC{0,3000}") {
        let to = Address {
            account: AccountId::literal("discord"),
            chat: Chat { id: ChatId::literal("6"), kind: ChatKind::Dm },
            thread: None,
        };
        let id = OutboundId { session: SessionId::literal("s"), delivery: 1, part: 0 };
        let whole = Outbound { id, to, act: Act::Post(Content::text(text)) };
        for part in talaria_platform::lower(whole, &Discord::SPEC.capabilities) {
            let Act::Post(content) = part.act else { panic!("a post becomes posts") };
            prop_assert!(encode::words(&content).chars().count() <= encode::LONGEST);
        }
    }
}
