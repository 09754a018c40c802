//! A message to another chat is held until somebody has approved exactly that, with the real binary.

use talaria_testkit::{Asked, Reply, ScriptedCall, Truth, VendorSettings};

use crate::rig::{Rig, run};

const SECTIONS: &str = "\
destinations:\n  family: {account: bench, chat: family, kind: dm, about: everybody at home}\n\
people: {ben: {identities: [bench/ben-person], role: friend}}\n\
roles: {friend: {destinations: []}}\n";

/// A model that wants to tell the family something, once, and then says what came of it.
fn wants(asked: &Asked) -> Reply {
    match asked.returned() {
        None if asked.said().contains("tell them") => Reply::Calls(
            String::new(),
            vec![ScriptedCall {
                tool: "send_message".into(),
                arguments: r#"{"to":"family","text":"Dinner at **eight**"}"#.into(),
            }],
        ),
        None => Reply::Says(format!("I read: {}", asked.said())),
        Some(answer) => Reply::Says(format!("It came to this: {answer}")),
    }
}

async fn rig() -> Rig {
    let account = ["buttons: 4", "allow: [ann-person, ben-person]"];
    let mut rig = Rig::configured(VendorSettings::default(), &account, SECTIONS).await;
    rig.llm.script(wants);
    rig.start().await;
    rig
}

/// Whether somebody can read this in a chat.
fn reads(chat: &str, text: &str) -> impl Fn(&Truth) -> bool {
    let (chat, text) = (chat.to_owned(), text.to_owned());
    move |truth| truth.shown_in(&chat).any(|shown| shown.text.contains(&text))
}

/// Asks for it as far as the question, and returns the buttons.
async fn asks(rig: &Rig) -> Vec<(String, String)> {
    rig.vendor.say_plainly("ann", "tell them");
    rig.until("the question", reads("ann", "May I call `send_message`?")).await;
    rig.vendor.read(|truth| {
        let shown = truth.shown();
        let asked = shown.iter().rfind(|shown| !shown.choices.is_empty()).unwrap();
        for part in ["sends a message to family", "Dinner at **eight**", r#""id":"family""#] {
            assert!(asked.text.contains(part), "{}", asked.text);
        }
        asked.choices.iter().map(|choice| (choice.label.clone(), choice.id.clone())).collect()
    })
}

async fn press(rig: &Rig, choices: &[(String, String)], label: &str) {
    let (_, id) = choices.iter().find(|(known, _)| known == label).unwrap();
    rig.vendor.press("ann", id);
    rig.until("the end", reads("ann", "It came to this")).await;
}

#[tokio::test]
async fn a_message_is_held_through_a_crash_and_sent_once_after_a_yes() {
    let mut rig = rig().await;
    let choices = asks(&rig).await;
    rig.kill().await;
    rig.start().await;
    assert!(!rig.vendor.read(reads("family", "Dinner")), "nothing before the yes");
    press(&rig, &choices, "Approve once").await;
    rig.until("it arrives", reads("family", "Dinner at")).await;
    // Whoever answers there is understood.
    rig.vendor.say_plainly("family", "I will be there");
    rig.until("the answer", reads("family", "I will be there")).await;
    let read = String::from_utf8(rig.llm.last_request()).unwrap();
    assert!(read.contains("you have sent this to this chat"), "{read}");
    let many = rig.vendor.read(|truth| {
        truth.shown_in("family").filter(|shown| shown.text.starts_with("Dinner")).count()
    });
    assert_eq!(many, 1, "{}", rig.vendor.transcript());
    let (_, record) = run(rig.home.path(), &["audit"]).await;
    assert!(record.contains("send_message") && record.contains("bench:ann-person"), "{record}");
    rig.end().await;
}

#[tokio::test]
async fn nothing_is_sent_after_a_no() {
    let mut rig = rig().await;
    let choices = asks(&rig).await;
    press(&rig, &choices, "Deny").await;
    rig.end().await;
    assert!(!rig.vendor.read(reads("family", "Dinner")), "{}", rig.vendor.transcript());
}

#[tokio::test]
async fn nothing_is_sent_to_another_chat_than_was_asked_about() {
    let mut rig = rig().await;
    let choices = asks(&rig).await;
    let written = std::fs::read_to_string(rig.home.file("config.yaml")).unwrap();
    rig.home.write("config.yaml", &written.replace("chat: family", "chat: strangers")).unwrap();
    let (ended, told) = run(rig.home.path(), &["reload"]).await;
    assert!(ended.success(), "{told}");
    press(&rig, &choices, "Approve once").await;
    rig.until("why not", reads("ann", "not what the person was asked about")).await;
    rig.end().await;
    for chat in ["family", "strangers"] {
        assert!(!rig.vendor.read(reads(chat, "Dinner")), "{}", rig.vendor.transcript());
    }
}

#[tokio::test]
async fn who_has_no_destination_is_not_offered_the_tool_and_cannot_use_it() {
    let mut rig = rig().await;
    rig.vendor.say_plainly("ben", "tell them");
    rig.until("a refusal", reads("ben", "does not let them use this tool")).await;
    let request: serde_json::Value = serde_json::from_slice(&rig.llm.last_request()).unwrap();
    let tools = request["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool["function"]["name"] != "send_message"), "{tools:?}");
    assert!(!rig.vendor.read(reads("family", "Dinner")), "{}", rig.vendor.transcript());
    rig.end().await;
}
