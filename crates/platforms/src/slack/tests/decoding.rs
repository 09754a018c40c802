//! Slack's own examples, decoded.

use proptest::prelude::*;
use serde_json::{Value, json};
use talaria_model::{
    AccountId, Addressed, Author, Below, ChatKind, Inbound, InboundKind, MediaKind, Message, Owner,
    Quote, SenderKind, Timestamp,
};

use super::super::decode::{self, Commands, Habits, Heard, Person, Room, Scene, Senseless, Us};
use super::super::text::Names;
use super::super::wire::{
    Envelope, Interaction, MessageEvent, Outer, SessionStopped, SlashCommand,
};
use super::item;

/// What is known, unless a test says otherwise.
struct Known {
    account: AccountId,
    us: Us,
    habits: Habits,
}

fn known() -> Known {
    Known {
        account: AccountId::literal("work"),
        us: Us {
            team: "T111".into(),
            user: "UBOT".into(),
            bot: "BBOT".into(),
            app: Some("A_OURS".into()),
        },
        habits: Habits {
            reply_in_thread: true,
            threads_in_dms: true,
            slash_command: "talaria".into(),
            commands: Commands::of(&[
                item("stop", &["cancel"]),
                item("title", &[]),
                item("set-home", &[]),
            ]),
        },
    }
}

impl Known {
    fn scene(&self) -> Scene<'_> {
        Scene {
            account: &self.account,
            us: &self.us,
            home: "T111",
            habits: &self.habits,
            names: Names {
                people: [("U043H11ES4V".to_owned(), "Jane".to_owned())].into(),
                rooms: Default::default(),
            },
            person: Person::default(),
            room: Room::default(),
            has_spoken: false,
            is_shared: false,
            now: Timestamp::from_millis(1_700_000_000_000),
        }
    }
}

fn message_event(fixture: &str) -> MessageEvent {
    let outer: Outer<'_> = serde_json::from_str(fixture).unwrap();
    serde_json::from_str(outer.event.unwrap().get()).unwrap()
}

fn heard(fixture: &str, known: &Known) -> Heard {
    decode::message(&message_event(fixture), &known.scene()).unwrap()
}

fn event(fixture: &str) -> Inbound {
    match heard(fixture, &known()) {
        Heard::Event(inbound) => *inbound,
        other => panic!("{other:?}"),
    }
}

fn said(fixture: &str) -> Message {
    match event(fixture).kind {
        InboundKind::Said(message) => message,
        kind => panic!("{kind:?}"),
    }
}

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".json"))
    };
}

#[test]
fn a_message_in_a_channel() {
    let inbound = event(fixture!("message"));
    assert_eq!(inbound.id.as_str(), "C111:1596183880.004200");
    assert_eq!(inbound.at, Timestamp::from_millis(1_596_183_880_004));
    assert_eq!(inbound.from.id.as_str(), "W111");
    assert_eq!(inbound.to.chat.kind, ChatKind::Group);
    assert_eq!(inbound.to.thread.as_ref().unwrap().as_str(), "1596183880.004200");
    assert_eq!(inbound.source.space.as_deref(), Some("T111"));
    let message = said(fixture!("message"));
    assert_eq!((message.text.as_str(), message.addressed), ("Hello World!", Addressed::ToOthers));
    assert_eq!(message.id.unwrap().as_str(), "1596183880.004200");
    assert_eq!(message.reply_to, None);
}

#[test]
fn a_mention() {
    let mut known = known();
    known.us.user = "W111".into();
    let Heard::Event(inbound) = heard(fixture!("mention_shared_channel"), &known) else { panic!() };
    let InboundKind::Said(message) = inbound.kind else { panic!() };
    assert_eq!((message.text.as_str(), message.addressed), ("Hi there!", Addressed::ToUs));
}

#[test]
fn a_direct_message() {
    let inbound = event(fixture!("direct"));
    assert_eq!(inbound.to.chat.kind, ChatKind::Dm);
    assert_eq!(said(fixture!("direct")).addressed, Addressed::ToUs);
    let mut known = known();
    known.habits.threads_in_dms = false;
    let Heard::Event(inbound) = heard(fixture!("direct"), &known) else { panic!() };
    assert_eq!(inbound.to.thread, None);
}

#[test]
fn a_message_in_the_thread_of_an_agent() {
    let inbound = event(fixture!("agent_thread"));
    assert_eq!(inbound.to.thread.as_ref().unwrap().as_str(), "1726133698.626339");
    assert_eq!(inbound.from.id.as_str(), "W222", "nobody else is in a chat of two");
    let message = said(fixture!("agent_thread"));
    assert_eq!(message.reply_to.unwrap().as_str(), "1726133698.626339");
}

#[test]
fn a_reply_that_is_shown_in_the_channel_too() {
    let inbound = event(fixture!("thread_broadcast"));
    assert_eq!(inbound.to.thread.as_ref().unwrap().as_str(), "1633663824.000500");
    assert_eq!(said(fixture!("thread_broadcast")).text, "Hi there!");
}

#[test]
fn marks_in_a_text_become_readable() {
    assert_eq!(
        said(fixture!("rich_text")).text,
        "#general :cat: @Jane https://google.com text text text"
    );
}

#[test]
fn files_are_named_and_not_fetched() {
    let message = said(fixture!("files"));
    let [media] = &message.media[..] else { panic!("{:?}", message.media) };
    assert_eq!(media.handle, "T111/F111");
    assert_eq!(media.kind, MediaKind::Photo);
    assert_eq!(media.name.as_deref(), Some("file.png"));
    assert_eq!((media.mime.as_deref(), media.size), (Some("image/png"), Some(92_582)));
    let message = said(fixture!("file_of_another_team"));
    assert_eq!(
        message.media[0].handle, "T111/F12345678",
        "Slack is asked about it when it is fetched"
    );
}

#[test]
fn each_kind_of_file_is_what_it_is_to_people() {
    let kind = |file: Value| {
        let event = json!({ "type": "message", "channel": "D1", "channel_type": "im", "user": "U1",
            "ts": "1.000001", "subtype": "file_share", "files": [file] });
        let event: MessageEvent = serde_json::from_value(event).unwrap();
        let Ok(Heard::Event(inbound)) = decode::message(&event, &known().scene()) else { panic!() };
        let InboundKind::Said(message) = inbound.kind else { panic!() };
        message
    };
    for (file, expected, mime) in [
        (json!({ "id": "F1", "mimetype": "image/gif" }), MediaKind::Animation, "image/gif"),
        (
            json!({ "id": "F1", "mimetype": "video/mp4", "subtype": "slack_video" }),
            MediaKind::Video,
            "video/mp4",
        ),
        (
            json!({ "id": "F1", "mimetype": "video/webm", "subtype": "slack_audio" }),
            MediaKind::Voice,
            "audio/mp4",
        ),
        (
            json!({ "id": "F1", "mimetype": "audio/mp4", "name": "audio_message.m4a" }),
            MediaKind::Voice,
            "audio/mp4",
        ),
        (
            json!({ "id": "F1", "mimetype": "audio/mpeg", "name": "song.mp3" }),
            MediaKind::Audio,
            "audio/mpeg",
        ),
        (
            json!({ "id": "F1", "mimetype": "text/x-rust", "mode": "snippet" }),
            MediaKind::Document,
            "text/x-rust",
        ),
    ] {
        let message = kind(file.clone());
        assert_eq!(message.media[0].kind, expected, "{file}");
        assert_eq!(message.media[0].mime.as_deref(), Some(mime), "{file}");
    }
    for file in [
        json!({ "id": "F1", "mode": "external", "is_external": true, "name": "plan.gdoc" }),
        json!({ "id": "F1", "mode": "tombstone", "name": "plan.gdoc" }),
        json!({ "id": "../F1", "name": "plan.gdoc" }),
    ] {
        let message = kind(file);
        assert!(message.media.is_empty());
        assert_eq!(message.text, "");
        assert_eq!(message.unfetched[0].name.as_deref(), Some("plan.gdoc"));
    }
}

#[test]
fn a_forwarded_message_says_whose_it_was() {
    let message = said(fixture!("forward"));
    assert_eq!(message.text, "123");
    assert_eq!(message.forwarded, Some(Author::Named("lev".into())));
    let with_comment = fixture!("forward").replacen(r#""text": """#, r#""text": "look""#, 1);
    let message = said(&with_comment);
    assert_eq!((message.text.as_str(), message.forwarded), ("look", None));
    assert_eq!(message.cited, [Quote::new("123", Author::Named("lev".into()))]);
    // A recording of somebody else may be all that is passed on.
    let recording = r#""files": [{ "id": "F9", "subtype": "slack_audio" }], "mrkdwn_in""#;
    let without_words = fixture!("forward").replace(r#""text": "123""#, r#""text": """#).replacen(
        r#""mrkdwn_in""#,
        recording,
        1,
    );
    let message = said(&without_words);
    assert_eq!((message.text.as_str(), message.forwarded), ("", Some(Author::Named("lev".into()))));
    assert_eq!(message.media[0].owner, Owner::Sender);
}

#[test]
fn an_edit_has_the_name_of_the_message_and_one_of_its_own() {
    let inbound = event(fixture!("changed"));
    assert_eq!(inbound.id.as_str(), "C111:1665102338.901939:e:1665102362.000000");
    let InboundKind::Edited(message) = inbound.kind else { panic!("{:?}", inbound.kind) };
    assert_eq!(message.text, "updated message");
    assert_eq!(message.id.unwrap().as_str(), "1665102338.901939");
}

#[test]
fn programs_are_programs() {
    for fixture in [fixture!("bot"), fixture!("bot_classic")] {
        let inbound = event(fixture);
        assert_eq!(inbound.from.kind, SenderKind::Bot);
        assert!(inbound.from.name.is_some());
    }
    assert_eq!(event(fixture!("bot")).from.id.as_str(), "UB111");
    assert_eq!(event(fixture!("bot_classic")).from.id.as_str(), "B888");
}

#[test]
fn what_a_program_puts_into_blocks_is_read() {
    let event = json!({ "type": "message", "subtype": "bot_message", "channel": "C1", "bot_id": "B1",
        "ts": "1.000001", "text": "", "blocks": [
            { "type": "header", "text": { "type": "plain_text", "text": "Build 7" } },
            { "type": "section", "fields": [{ "type": "mrkdwn", "text": "*red*" }], "text": null },
            { "type": "divider" }, { "type": "future", "text": 7 }],
        "attachments": [{ "title": "Log", "text": "it &lt;broke&gt;" }] });
    let event: MessageEvent = serde_json::from_value(event).unwrap();
    let Ok(Heard::Event(inbound)) = decode::message(&event, &known().scene()) else { panic!() };
    let InboundKind::Said(message) = inbound.kind else { panic!() };
    assert_eq!(message.text, "Build 7\n\n*red*\n\nLog\nit <broke>");
}

#[test]
fn what_we_said_ourselves_is_an_echo() {
    for change in ["user", "bot", "app"] {
        let mut known = known();
        match change {
            "user" => known.us.user = "UB111".into(),
            "bot" => known.us.bot = "B999".into(),
            _ => known.us.app = Some("A222".into()),
        }
        let heard = heard(fixture!("bot"), &known);
        let Heard::Echo(echo) = heard else { panic!("{change}: {heard:?}") };
        assert_eq!((echo.chat.as_str(), echo.ts.as_str()), ("C111", "1610261539.000900"));
    }
}

#[test]
fn what_nobody_says_is_nothing() {
    let mut known = known();
    known.us.user = "W111".into();
    for fixture in [fixture!("join"), fixture!("deleted"), fixture!("title_changed")] {
        assert_eq!(heard(fixture, &known), Heard::Nothing);
    }
    let unfurled = fixture!("changed").replace("original message", "updated message");
    assert_eq!(heard(&unfurled, &known), Heard::Nothing, "only a link was shown");
}

#[test]
fn a_reply_says_whose_thread_it_is_in_and_is_to_us_only_by_a_mention() {
    let event: MessageEvent = serde_json::from_value(json!({ "type": "message", "channel": "C1",
        "channel_type": "channel", "user": "U1", "ts": "2.000001", "thread_ts": "1.000001",
        "parent_user_id": "UBOT", "text": "why?" }))
    .unwrap();
    let other = MessageEvent { parent_user_id: Some("U2".into()), ..event.clone() };
    let known = known();
    let said = |event: &MessageEvent, has_spoken| {
        let scene = Scene { has_spoken, ..known.scene() };
        let Ok(Heard::Event(inbound)) = decode::message(event, &scene) else { panic!() };
        let InboundKind::Said(message) = inbound.kind else { panic!() };
        (message.addressed, inbound.source.below)
    };
    let first = MessageEvent { thread_ts: None, parent_user_id: None, ..event.clone() };
    let mention = MessageEvent { text: "<@UBOT> why?".into(), ..other.clone() };
    let (others, us) = (Addressed::ToOthers, Addressed::ToUs);
    assert_eq!(said(&event, false), (others, Some(Below::Us)), "we began the thread");
    assert_eq!(said(&other, false), (others, Some(Below::Others)));
    assert_eq!(said(&other, true), (others, Some(Below::Us)));
    assert_eq!(said(&mention, false), (us, Some(Below::Others)));
    assert_eq!(said(&first, false), (others, None));
}

#[test]
fn typed_commands_begin_with_an_exclamation_mark() {
    let text = |typed: &str| {
        let event: MessageEvent =
            serde_json::from_value(json!({ "type": "message", "channel": "D1",
            "channel_type": "im", "user": "U1", "ts": "2.000001", "text": typed }))
            .unwrap();
        let Ok(Heard::Event(inbound)) = decode::message(&event, &known().scene()) else { panic!() };
        let InboundKind::Said(message) = inbound.kind else { panic!() };
        message.text
    };
    for (typed, expected) in [
        ("!stop", "/stop"),
        ("!title A new day", "/title A new day"),
        ("!Cancel", "/Cancel"),
        ("!set_home", "/set_home"),
        ("<@UBOT> !stop", "/stop"),
        ("!important: read this", "!important: read this"),
        ("/stop", "/stop"),
        ("!", "!"),
        ("!!", "!!"),
        ("! stop", "! stop"),
        ("!(x)", "!(x)"),
        ("what a day!", "what a day!"),
    ] {
        assert_eq!(text(typed), expected);
    }
}

#[test]
fn slash_commands_arrive_as_typed() {
    let base: SlashCommand = serde_json::from_str(fixture!("slash")).unwrap();
    let text = |command: &str, text: &str| {
        let command = SlashCommand { command: command.into(), text: text.into(), ..base.clone() };
        let inbound = decode::slash(&command, None, &known().scene()).unwrap();
        let InboundKind::Said(message) = inbound.kind else { panic!() };
        message.text
    };
    for (command, arguments, expected) in [
        ("/hello-socket-mode", "", "/hello-socket-mode"),
        ("/title", "A &amp; B", "/title A & B"),
        ("/talaria", "", "/help"),
        ("/talaria", "stop", "/stop"),
        ("/talaria", "/title  A new day ", "/title  A new day"),
        ("/talaria", "!stop", "/stop"),
        ("/talaria", "what's up?", "what's up?"),
        ("/talaria", "what is it", "what is it"),
        ("/ask", "<@U043H11ES4V|jane> in <#C1|general>", "/ask @Jane in #general"),
    ] {
        assert_eq!(text(command, arguments), expected);
    }
    let inbound = decode::slash(&base, Some("1.000001"), &known().scene()).unwrap();
    assert_eq!(inbound.id.as_str(), "slash:111.222.xxx");
    assert_eq!(inbound.to.thread.unwrap().as_str(), "1.000001");
    assert_eq!(inbound.from.name.as_deref(), Some("seratch"));
}

#[test]
fn a_press_of_somebody_else_s_button_is_nothing() {
    let interaction: Interaction = serde_json::from_str(fixture!("press")).unwrap();
    assert_eq!(decode::press(&interaction, &known().scene()), Ok(None));
    let ours = fixture!("press").replace(r#""action_id": "a""#, r#""action_id": "talaria:0""#);
    let interaction: Interaction = serde_json::from_str(&ours).unwrap();
    let inbound = decode::press(&interaction, &known().scene()).unwrap().unwrap();
    assert_eq!(
        inbound.kind,
        InboundKind::Pressed(talaria_model::ChoiceId::literal("click_me_123"))
    );
    assert_eq!(inbound.from.id.as_str(), "W111");
    let elsewhere = ours.replacen(r#""team_id": "T111""#, r#""team_id": "T999""#, 1);
    let interaction: Interaction = serde_json::from_str(&elsewhere).unwrap();
    let inbound = decode::press(&interaction, &known().scene()).unwrap().unwrap();
    assert_eq!(inbound.from.id.as_str(), "T999:W111", "the same id in another workspace");
}

#[test]
fn slack_s_own_stop_button_stops() {
    let outer: Outer<'_> = serde_json::from_str(fixture!("session_stopped")).unwrap();
    let stopped: SessionStopped = serde_json::from_str(outer.event.unwrap().get()).unwrap();
    let inbound = decode::stopped(&stopped, outer.event_id.as_deref(), &known().scene()).unwrap();
    assert_eq!(inbound.kind, InboundKind::Stopped);
    assert_eq!(inbound.to.thread.unwrap().as_str(), "1782234671.392669");
    assert_eq!(inbound.id.as_str(), "Ev111");
}

#[test]
fn in_a_shared_channel_nobody_is_taken_for_one_of_ours() {
    let event: MessageEvent = serde_json::from_value(json!({ "type": "message", "channel": "C1",
        "user": "U1", "ts": "2.000001", "text": "hi" }))
    .unwrap();
    let known = known();
    let from = |event: &MessageEvent, team: Option<&str>, is_shared| {
        let person = Person { team: team.map(str::to_owned), ..Person::default() };
        let scene = Scene { person, is_shared, ..known.scene() };
        let Ok(Heard::Event(inbound)) = decode::message(event, &scene) else { panic!() };
        inbound.from.id.to_string()
    };
    assert_eq!(from(&event, None, false), "U1");
    assert_eq!(from(&event, Some("T111"), true), "U1");
    assert_eq!(from(&event, Some("T999"), true), "T999:U1");
    assert_eq!(from(&event, None, true), "unknown:U1");
    let told = MessageEvent { user_team: Some("T999".into()), ..event };
    assert_eq!(from(&told, Some("T111"), true), "T999:U1", "what the event says counts first");
}

#[test]
fn a_message_without_a_place_or_a_time_makes_no_sense() {
    for (event, expected) in [
        (json!({ "type": "message", "ts": "1.0" }), Senseless::Missing("channel")),
        (json!({ "type": "message", "channel": "C1" }), Senseless::Missing("ts")),
        (
            json!({ "type": "message", "channel": "C1", "ts": "soon", "user": "U1" }),
            Senseless::Wrong("ts"),
        ),
    ] {
        let event: MessageEvent = serde_json::from_value(event).unwrap();
        assert_eq!(decode::message(&event, &known().scene()), Err(expected));
    }
}

/// Any JSON, with names that mean something mixed in.
fn anything() -> impl Strategy<Value = Value> {
    let names = "(type|subtype|ts|thread_ts|channel|channel_type|user|text|blocks|files|attachments|\
                 message|previous_message|edited|metadata|event_payload|is_share|id|name|mode|[a-z]{1,6})";
    let words = "(message|message_changed|file_share|im|C1|U1|UBOT|1\\.000001|<@UBOT>|<@U1\\||!x|\\PC{0,12})";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_slack_could_send_is_more_than_an_error(value in anything()) {
        let text = value.to_string();
        let known = known();
        let scene = known.scene();
        let _ = serde_json::from_str::<Envelope<'_>>(&text);
        let _ = serde_json::from_str::<Outer<'_>>(&text);
        if let Ok(event) = serde_json::from_str::<MessageEvent>(&text)
            && let Ok(Heard::Event(inbound)) = decode::message(&event, &scene)
        {
            prop_assert_eq!(&inbound.to.account, scene.account);
        }
        if let Ok(interaction) = serde_json::from_str::<Interaction>(&text) {
            let _ = decode::press(&interaction, &scene);
        }
        if let Ok(command) = serde_json::from_str::<SlashCommand>(&text) {
            let _ = decode::slash(&command, None, &scene);
        }
    }

    #[test]
    fn a_text_is_read_whatever_stands_in_it(text in "\\PC{0,64}|[<>@#!|&;a-zU1^ ]{0,64}") {
        use super::super::text;
        let _ = text::readable(&text, &Names::default());
        let _ = text::unnamed(&text);
        let left = text::unaddressed(&text, "U1");
        prop_assert!(text.contains(left));
    }
}
