//! Messages to other chats: held until a person has approved exactly that, and sent with the result or not
//! at all.

use std::sync::{Arc, Mutex};

use serde_json::json;
use talaria_agent::tools::SendMessage;
use talaria_agent::{AsksFirst, Destination, Elsewhere};
use talaria_model::{
    AccountId, Address, AgentEvent, Answer, Attended, CallId, Chat, ChatId, ChatKind, Consent,
    Sending, Word,
};

use crate::stage::{Model, Stage, briefs, call, calls, says};

fn chat(id: &'static str) -> Address {
    let chat = Chat { id: ChatId::literal(id), kind: ChatKind::Group };
    Address { account: AccountId::literal("club"), chat, thread: None }
}

fn place(name: &str, to: &'static str, asks: AsksFirst) -> Destination {
    Destination { name: name.into(), about: None, to: chat(to), asks }
}

type Places = Arc<Mutex<Vec<Destination>>>;

/// A stage on which the model wants to tell the family something, and where it may.
fn telling(places: Vec<Destination>) -> (Stage, Places) {
    let wants =
        calls(vec![call("c1", "send_message", json!({ "to": "family", "text": "Dinner!" }))]);
    let model = Model::new([wants, says("So be it.")]);
    let mut stage = Stage::new(model).with_tool(SendMessage);
    let places = Arc::new(Mutex::new(places));
    let known = places.clone();
    stage.elsewhere = Elsewhere::by(move || known.lock().unwrap().clone());
    stage.say("tell them");
    (stage, places)
}

/// What was sent by these events.
fn sent(events: &[AgentEvent]) -> Vec<Sending> {
    let sends = |event: &AgentEvent| match event {
        AgentEvent::Called { sends, .. } => sends.clone(),
        _ => Vec::new(),
    };
    events.iter().flat_map(sends).collect()
}

fn dinner(to: &'static str) -> Sending {
    Sending { to: chat(to), text: "Dinner!".into() }
}

/// Plays a turn and answers its question, after something else has happened.
async fn answered(stage: &mut Stage, meanwhile: impl FnOnce(), consents: bool) -> Vec<AgentEvent> {
    let mut running = stage.start();
    let question = loop {
        match stage.next(&mut running).await.expect("it asks") {
            AgentEvent::Asked(question) => break question,
            event => assert_eq!(sent(&[event]), [], "nothing leaves before it is approved"),
        }
    };
    meanwhile();
    assert!(question.text.contains("`sends a message to family`"), "{}", question.text);
    assert!(question.text.contains(r#""text":"Dinner!""#), "{}", question.text);
    let digest = question.approval.unwrap().digest;
    let answer = match consents {
        true => Answer::Approved { digest, consent: Consent::Once },
        false => Answer::Denied { reason: String::new() },
    };
    let to = CallId::literal("c1");
    running.control.try_send(Word::Answer { to, answer, files: vec![] }).unwrap();
    stage.finish(&mut running).await
}

#[tokio::test]
async fn a_message_is_held_until_exactly_it_is_approved() {
    let family = || vec![place("family", "one", AsksFirst::Yes)];
    let (mut stage, _) = telling(family());
    assert_eq!(sent(&answered(&mut stage, || {}, true).await), [dinner("one")]);
    let (mut stage, _) = telling(family());
    assert_eq!(sent(&answered(&mut stage, || {}, false).await), []);
}

#[tokio::test]
async fn a_name_that_stands_for_another_chat_by_then_is_not_what_was_approved() {
    let (mut stage, places) = telling(vec![place("family", "one", AsksFirst::Yes)]);
    let moves = || *places.lock().unwrap() = vec![place("family", "two", AsksFirst::Yes)];
    let events = answered(&mut stage, moves, true).await;
    assert_eq!(sent(&events), []);
    assert!(briefs(&events)[0].contains("is not what the person was asked about"), "{events:?}");
}

#[tokio::test]
async fn what_is_taken_away_while_somebody_thinks_is_not_sent() {
    let (mut stage, places) = telling(vec![place("family", "one", AsksFirst::Yes)]);
    let events = answered(&mut stage, || places.lock().unwrap().clear(), true).await;
    assert_eq!(sent(&events), []);
    assert!(briefs(&events)[0].contains("may not send messages to other chats"), "{events:?}");
}

#[tokio::test]
async fn where_the_operator_wants_nobody_asked_nobody_is() {
    let (mut stage, _) = telling(vec![place("family", "one", AsksFirst::No)]);
    let events = stage.play().await;
    assert_eq!(sent(&events), [dinner("one")]);
    assert!(!events.iter().any(|event| matches!(event, AgentEvent::Asked(_))));
}

#[tokio::test]
async fn a_model_that_names_another_place_is_told_which_there_are_and_nobody_is_asked() {
    let club = Destination {
        about: Some("the chess club".into()),
        ..place("club", "two", AsksFirst::Yes)
    };
    let (mut stage, _) = telling(vec![club, place("work", "three", AsksFirst::Yes)]);
    let events = stage.play().await;
    assert_eq!(sent(&events), []);
    let told = briefs(&events).join("\n");
    for part in ["no chat \"family\"", "\"club\": the chess club", "\"work\", on club"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(!events.iter().any(|event| matches!(event, AgentEvent::Asked(_))));
}

#[tokio::test]
async fn nothing_that_must_be_asked_about_leaves_where_nobody_is_there() {
    let (mut stage, _) = telling(vec![place("family", "one", AsksFirst::Yes)]);
    stage.attended = Attended::No;
    assert_eq!(sent(&stage.play().await), []);
}

#[tokio::test]
async fn an_empty_or_endless_message_is_none() {
    for text in [" \n".to_owned(), "x".repeat(8_001)] {
        let wants =
            calls(vec![call("c1", "send_message", json!({ "to": "family", "text": text }))]);
        let mut stage = Stage::new(Model::new([wants, says("ok")])).with_tool(SendMessage);
        let family = place("family", "one", AsksFirst::No);
        stage.elsewhere = Elsewhere::by(move || vec![family.clone()]);
        stage.say("tell them");
        let events = stage.play().await;
        assert_eq!(sent(&events), []);
        assert!(briefs(&events)[1].contains("c1 failed: the arguments do not fit"), "{events:?}");
    }
}
