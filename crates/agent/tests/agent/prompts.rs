//! What a model is asked: the same for the same transcript, growing at its end only, and always such
//! that a provider can read it.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use serde_json::json;
use talaria_agent::{Automatic, EffectClass, History, Part, Prompt, PromptMessage};
use talaria_model::{
    CallId, Cost, EntryBody, Extent, FileId, OutboundId, Owner, SessionId, Shown, ToolCall, TurnId,
    Usage,
};

use crate::stage::{Files, Model, Stage, alice, call, calls, file, said, says};

fn answered(text: &str, calls: Vec<ToolCall>) -> EntryBody {
    EntryBody::Answered {
        text: text.into(),
        files: vec![],
        calls,
        reasoning: None,
        usage: Usage::default(),
        cost: Cost::UNKNOWN,
        sent: None,
        extent: Extent::Whole,
    }
}

fn returned(call: &'static str, output: &str) -> EntryBody {
    let call = CallId::literal(call);
    EntryBody::Returned { call, output: output.into(), files: vec![], failed: false }
}

fn noticed(text: &str) -> EntryBody {
    let sent = OutboundId { session: SessionId::literal("s"), delivery: 9, part: 0 };
    EntryBody::Noticed { text: text.into(), choices: vec![], files: vec![], sent }
}

fn aside(text: &str) -> EntryBody {
    EntryBody::Aside { from: alice(), text: text.into(), files: vec![], message: None }
}

/// What the model is asked first when the newest turn is played.
async fn prompt(stage: &mut Stage) -> Prompt {
    stage.settings.budget.automatic = Automatic::Off;
    let mut running = stage.start();
    stage.next(&mut running).await;
    stage.model.prompts().remove(0)
}

fn user(text: &str) -> PromptMessage {
    PromptMessage::User(vec![Part::Text(text.into())])
}

#[tokio::test(start_paused = true)]
async fn equal_transcripts_make_equal_prompts() {
    let stage = || {
        let mut stage = Stage::new(Model::new([says("x")])).with("look", EffectClass::Pure);
        stage.say("one");
        stage.record(answered("", vec![call("c1", "look", json!({ "b": 1, "a": 2 }))]));
        stage.record(returned("c1", "seen"));
        stage.record(answered("two", vec![]));
        stage.say("three");
        stage
    };
    let (one, other) = (prompt(&mut stage()).await, prompt(&mut stage()).await);
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
}

#[tokio::test(start_paused = true)]
async fn a_prompt_begins_with_the_prompts_before_it() {
    let wants = |id| calls(vec![call(id, "look", json!({}))]);
    let replies = [
        says("one"),
        wants("c1"),
        wants("c2"),
        says("two"),
        says("three"),
        wants("c3"),
        says("four"),
    ];
    let mut stage = Stage::new(Model::new(replies)).with("look", EffectClass::Pure);
    for text in ["a", "b", "c", "d"] {
        stage.say(text);
        stage.play().await;
        stage.record(noticed("a notice in between"));
    }
    let prompts = stage.model.prompts();
    assert_eq!(prompts.len(), 7);
    for pair in prompts.windows(2) {
        assert!(pair[1].messages.starts_with(&pair[0].messages), "{pair:#?}");
        assert_eq!(pair[0].system, pair[1].system);
        assert_eq!(pair[0].tools, pair[1].tools);
    }
}

#[tokio::test(start_paused = true)]
async fn words_taken_up_in_a_turn_stand_where_they_were_taken_up() {
    let wants = calls(vec![call("c1", "look", json!({}))]);
    let mut stage = Stage::new(Model::new([wants, says("Done."), says("Yes.")]))
        .with("look", EffectClass::Pure);
    stage.say("look");
    let mut running = stage.start();
    stage.next(&mut running).await;
    stage.steer(&running, 5, "and hurry");
    stage.finish(&mut running).await;
    stage.say("ready?");
    stage.play().await;
    let prompts = stage.model.prompts();
    assert!(prompts[2].messages.starts_with(&prompts[1].messages));
}

#[tokio::test(start_paused = true)]
async fn commands_and_notices_are_not_for_the_model() {
    let mut stage = Stage::new(Model::new([says("x")]));
    stage.record(aside("/status"));
    stage.record(noticed("idle"));
    stage.say("hello");
    assert_eq!(prompt(&mut stage).await.messages, [user("hello")]);
}

#[tokio::test(start_paused = true)]
async fn calls_that_were_cut_off_are_closed() {
    let mut stage = Stage::new(Model::new([says("x")]));
    stage.say("look");
    let wanted = vec![call("c1", "look", json!({})), call("c2", "look", json!({}))];
    stage.record(answered("", wanted));
    stage.record(returned("c1", "seen"));
    stage.say("never mind");
    let messages = prompt(&mut stage).await.messages;
    let PromptMessage::ToolResult { call, failed: true, output } = &messages[3] else {
        panic!("{messages:#?}")
    };
    assert_eq!(call.as_str(), "c2");
    assert!(output.contains("interrupted"), "{output}");
    assert_eq!(messages[4], user("never mind"));
}

#[tokio::test(start_paused = true)]
async fn an_old_conversation_is_cut_at_something_a_person_said() {
    // A window of 1,200 tokens: a little more than two thousand characters are kept.
    let mut stage = Stage::new(Model::new([says("x")]).with_window(1200));
    for n in 0..40 {
        stage.say(&format!("question {n}"));
        stage.record(answered("", vec![call("c1", "look", json!({}))]));
        stage.record(returned("c1", &"seen ".repeat(20)));
        stage.record(answered(&format!("answer {n}"), vec![]));
    }
    stage.say("the last question");
    let messages = prompt(&mut stage).await.messages;
    assert!(messages.len() < 100, "{}", messages.len());
    assert!(messages.len() > 8, "{}", messages.len());
    assert!(matches!(&messages[0], PromptMessage::User(_)), "{:?}", messages[0]);
    assert_eq!(*messages.last().unwrap(), user("the last question"));
    well_formed(&messages).unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_cut_stays_where_it_is_for_many_turns() {
    let mut beginnings: Vec<PromptMessage> = Vec::new();
    for turns in 100..140 {
        let mut stage = Stage::new(Model::new([says("x")]).with_window(1200));
        for n in 0..turns {
            stage.say(&format!("question {n}"));
            stage.record(answered(&format!("answer {n}"), vec![]));
        }
        stage.say("the last question");
        beginnings.push(prompt(&mut stage).await.messages.remove(0));
    }
    beginnings.dedup();
    assert!(beginnings.len() <= 4, "moved {} times in 40 turns", beginnings.len());
}

#[tokio::test(start_paused = true)]
async fn a_transcript_that_does_not_begin_at_its_beginning_is_cut_the_same_way() {
    // As a gateway hands it over that reads no more than the newest 400 entries.
    let mut beginnings: Vec<PromptMessage> = Vec::new();
    for turns in 200..240 {
        let mut stage = Stage::new(Model::new([says("x")]));
        for n in 0..turns {
            stage.say(&format!("question {n}"));
            stage.record(answered(&format!("answer {n}"), vec![]));
        }
        stage.say("the last question");
        stage.history = History::Newest;
        let old = stage.entries.len().saturating_sub(400);
        stage.entries.drain(..old);
        let messages = prompt(&mut stage).await.messages;
        assert!(matches!(&messages[0], PromptMessage::User(_)), "{:?}", messages[0]);
        beginnings.push(messages[0].clone());
    }
    beginnings.dedup();
    assert!(beginnings.len() <= 4, "moved {} times in 40 turns", beginnings.len());
}

#[tokio::test(start_paused = true)]
async fn where_something_was_taken_back_nothing_else_is_missing() {
    let mut stage = Stage::new(Model::new([says("x")]));
    for n in 0..40 {
        stage.say(&format!("question {n}"));
        stage.record(answered(&format!("answer {n}"), vec![]));
    }
    stage.entries.drain(..2);
    stage.say("the last question");
    let messages = prompt(&mut stage).await.messages;
    assert_eq!(messages[0], user("question 1"));
    assert_eq!(messages.len(), 79);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_goes_on_is_never_cut_itself() {
    let mut stage =
        Stage::new(Model::new([says("x")]).with_window(1200)).with("look", EffectClass::Pure);
    stage.say("an old question");
    stage.record(answered(&"old ".repeat(100), vec![]));
    stage.say("the question");
    stage.record(answered("", vec![call("c1", "look", json!({}))]));
    stage.record(returned("c1", &"a lot ".repeat(1000)));
    stage.record(answered("", vec![call("c2", "look", json!({}))]));
    let mut running = stage.start();
    let event = stage.next(&mut running).await.unwrap();
    assert_eq!(crate::stage::brief(&event), "c2: look is done", "the open call is made");
    stage.finish(&mut running).await;
    let messages = stage.model.prompts().remove(0).messages;
    assert!(messages.contains(&user("the question")), "{messages:#?}");
    well_formed(&messages).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_message_longer_than_the_window_is_still_asked() {
    let mut stage = Stage::new(Model::new([says("x")]).with_window(100));
    stage.say("before");
    stage.record(answered("yes", vec![]));
    stage.say(&"long ".repeat(1000));
    let messages = prompt(&mut stage).await.messages;
    assert_eq!(messages, [user(&"long ".repeat(1000))]);
}

#[tokio::test(start_paused = true)]
async fn a_text_file_is_read_a_picture_is_seen_and_anything_else_is_named() {
    let mut stage = Stage::new(Model::new([says("x")]).seeing());
    let bytes = |name: &'static str, bytes: &[u8]| (FileId::literal(name), bytes.to_vec());
    stage.files = Arc::new(Files(HashMap::from([
        bytes("notes.md", b"# Notes\n```\ncode\n```"),
        bytes("cat.png", b"\x89PNG"),
        bytes("blob", b"\x00\xff"),
    ])));
    stage.say_with(
        "look",
        vec![
            file("notes.md", "text/markdown", 20),
            file("cat.png", "image/png", 4),
            file("blob", "application/octet-stream", 2),
            file("gone", "text/plain", 2),
        ],
    );
    let messages = prompt(&mut stage).await.messages;
    let [PromptMessage::User(parts)] = &messages[..] else { panic!("{messages:#?}") };
    let Part::Text(notes) = &parts[0] else { panic!("{parts:#?}") };
    assert!(notes.contains("````\n# Notes"), "a fence the text cannot close: {notes}");
    assert!(matches!(&parts[1], Part::Image { mime, .. } if mime == "image/png"));
    for (part, name) in [(&parts[2], "blob"), (&parts[3], "gone")] {
        let Part::Text(text) = part else { panic!("{part:?}") };
        assert!(text.contains(name) && text.contains("cannot be shown"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_does_not_see_is_told_of_a_picture_and_nobody_listens_to_a_voice() {
    let mut stage = Stage::new(Model::new([says("x")]));
    let files = [("cat.png", "image/png"), ("v.ogg", "audio/ogg"), ("song.mp3", "audio/mpeg")];
    // Even where the bytes happen to be text.
    let bytes = files.map(|(name, _)| (FileId::literal(name), b"text".to_vec()));
    stage.files = Arc::new(Files(HashMap::from(bytes)));
    let mut files = files.map(|(name, mime)| file(name, mime, 4)).to_vec();
    files[1].shown = Shown::Voice;
    stage.say_with("look", files);
    let messages = prompt(&mut stage).await.messages;
    let [PromptMessage::User(parts)] = &messages[..] else { panic!("{messages:#?}") };
    let texts: Vec<&str> = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Image { .. } => panic!("nobody sees it"),
        })
        .collect();
    assert_eq!(
        texts,
        [
            "[Attached file: cat.png, image/png, 4 bytes; its content cannot be shown to you]",
            "[Voice message: v.ogg, audio/ogg, 4 bytes; you cannot listen to it]",
            "[Attached file: song.mp3, audio/mpeg, 4 bytes; its content cannot be shown to you]",
            "look",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_is_told_which_files_are_not_the_senders() {
    let mut stage = Stage::new(Model::new([says("x")]));
    let named = ["own.txt", "answered.txt", "shown.txt"];
    let bytes = named.map(|name| (FileId::literal(name), b"obey me".to_vec()));
    stage.files = Arc::new(Files(HashMap::from(bytes)));
    let mut files = named.map(|name| file(name, "text/plain", 7)).to_vec();
    (files[1].owner, files[2].owner) = (Owner::Answered, Owner::Shown);
    stage.say_with("look", files);
    let messages = prompt(&mut stage).await.messages;
    let [PromptMessage::User(parts)] = &messages[..] else { panic!("{messages:#?}") };
    let first_lines: Vec<&str> = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.lines().next().unwrap_or_default(),
            Part::Image { .. } => panic!("there is none"),
        })
        .collect();
    assert_eq!(
        first_lines,
        [
            "Attached file `own.txt`:",
            "[[The next file came with the message that this one answers, and is its author's]]",
            "Attached file `answered.txt`:",
            "[[The next file came with another message, which this one shows, and is its author's]]",
            "Attached file `shown.txt`:",
            "look",
        ]
    );
}

/// What every provider demands: each call has exactly one result, right behind its message, and no
/// result is there without its call.
fn well_formed(messages: &[PromptMessage]) -> Result<(), String> {
    let mut waiting: Vec<CallId> = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        match message {
            PromptMessage::ToolResult { call, .. } => {
                let Some(at) = waiting.iter().position(|waiting| waiting == call) else {
                    return Err(format!("{place}: a result of {call} without its call"));
                };
                waiting.remove(at);
            }
            PromptMessage::User(_) | PromptMessage::Assistant { .. } if !waiting.is_empty() => {
                return Err(format!("{place}: {waiting:?} have no result"));
            }
            PromptMessage::Assistant { calls, .. } => {
                waiting = calls.iter().map(|call| call.id.clone()).collect();
            }
            PromptMessage::User(_) => {}
        }
    }
    if waiting.is_empty() { Ok(()) } else { Err(format!("at the end: {waiting:?} have no result")) }
}

/// Anything that could stand in a transcript, in any order: as crashes, other agents and a window
/// may leave it.
fn any_entry() -> impl Strategy<Value = EntryBody> {
    let id = || prop::sample::select(vec!["c1", "c2", "c3", "c4"]);
    prop_oneof![
        3 => "[a-z]{0,8}".prop_map(|text| said(&text, vec![])),
        3 => ("[a-z]{0,8}", prop::collection::vec(id(), 0..4)).prop_map(|(text, ids)| {
            answered(&text, ids.into_iter().map(|id| call(id, "look", json!({}))).collect())
        }),
        4 => (id(), "[a-z]{0,300}").prop_map(|(id, output)| returned(id, &output)),
        1 => Just(noticed("n")),
        1 => Just(aside("/x")),
    ]
}

fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap()
}

proptest! {
    #![proptest_config(Config {
        cases: 400,
        rng_seed: RngSeed::Fixed(20261115),
        failure_persistence: None,
        ..Config::default()
    })]

    /// Whatever a transcript looks like: every call has exactly one result right behind it, and no
    /// result is there without its call; in the first prompt and in those that follow.
    #[test]
    fn every_prompt_is_well_formed(
        old in prop::collection::vec((any_entry(), 0..3u32), 0..40),
        ours in prop::collection::vec(any_entry(), 0..8),
        window in prop::sample::select(vec![None, Some(100u64), Some(500)]),
        automatic in prop::sample::select(vec![Automatic::On, Automatic::Off]),
    ) {
        let prompts = runtime().block_on(async {
            let again = calls(vec![call("c9", "look", json!({}))]);
            let mut model = Model::new([again, says("x"), says("x"), says("x")]);
            if let Some(window) = window {
                model = model.with_window(window);
            }
            let mut stage = Stage::new(model).with("look", EffectClass::Pure);
            stage.settings.max_steps = 50;
            stage.settings.budget.automatic = automatic;
            stage.settings.budget.keep_last = 6;
            for (body, turn) in old {
                stage.record(body);
                let session = SessionId::literal("s");
                let id = (turn > 0).then_some(TurnId { session, number: turn });
                stage.entries.last_mut().unwrap().turn = id;
            }
            for _ in 0..3 {
                stage.say("now");
            }
            for body in ours {
                stage.record(body);
            }
            stage.play().await;
            stage.model.prompts()
        });
        prop_assert!(!prompts.is_empty());
        for prompt in &prompts {
            if let Err(problem) = well_formed(&prompt.messages) {
                prop_assert!(false, "{problem}: {:#?}", prompt.messages);
            }
            prop_assert!(prompt.messages.iter().any(|message| matches!(message, PromptMessage::User(_))));
        }
    }
}
