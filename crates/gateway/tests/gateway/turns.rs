//! A turn of the agent, when the agent fails and when it keeps its word.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use talaria_agent::{Agent, Running, Turn};
use talaria_clock::{Clock, SystemClock};
use talaria_model::{
    AgentEvent, CallId, Capabilities, Cost, Deletes, EntryBody, Failure, InboundKind, Message,
    ToolCall, Usage, Word,
};
use talaria_session::{Busy, Phase};

use crate::questions::question;
use crate::world::{EDITING, SIMPLE, World, agent, echo, key};

#[test]
fn an_agent_that_panics_reaches_the_person_as_a_sentence_and_the_next_message_works() {
    let clumsy = agent(|stage| async move {
        assert!(stage.said() != "trip", "the test says so");
        let answer = stage.echo();
        stage.finish(&answer).await;
    });
    World::new(SIMPLE).with_agent(clumsy).live(async |life| {
        life.vendor.say("alice", "home", "trip");
        let texts = life.texts("home", 1).await;
        assert_eq!(texts, ["Something went wrong inside me; the log has the details."]);
        life.vendor.say("alice", "home", "walk");
        assert_eq!(life.texts("home", 2).await[1], "echo: walk");
    });
}

#[test]
fn an_agent_that_panics_before_it_begins_is_no_different() {
    struct Stillborn;
    impl Agent for Stillborn {
        fn start(&self, _: Turn) -> Running {
            panic!("the test says so")
        }
    }
    World::new(SIMPLE).with_agent(Arc::new(Stillborn)).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        let asked = life.now();
        let texts = life.texts("home", 1).await;
        assert_eq!(texts, ["Something went wrong inside me; the log has the details."]);
        assert!(life.now().since(asked) < Duration::from_secs(1));
        life.gateway.set_agent(echo());
        life.vendor.say("alice", "home", "again");
        assert_eq!(life.texts("home", 2).await[1], "echo: again");
    });
}

#[test]
fn what_was_said_before_a_panic_stays() {
    let clumsy = agent(|stage| async move {
        stage.show("Once upon a time");
        SystemClock.sleep(Duration::from_secs(3)).await;
        panic!("the test says so");
    });
    for can in [SIMPLE, EDITING] {
        World::new(can).with_agent(clumsy.clone()).live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.quiet().await;
            let texts = life.vendor.texts("home");
            assert_eq!(texts.len(), 1, "{texts:?}");
            assert!(texts[0].starts_with("Once upon a time\n\n*Something went wrong"), "{texts:?}");
        });
    }
}

#[test]
fn an_agent_that_ends_without_a_word_reaches_the_person_as_a_sentence() {
    let silent = agent(|stage| async move {
        if stage.said() == "speak" {
            stage.finish("here").await;
        }
    });
    World::new(SIMPLE).with_agent(silent).live(async |life| {
        life.vendor.say("alice", "home", "be quiet");
        assert_eq!(life.texts("home", 1).await, ["The agent ended without an answer."]);
        life.vendor.say("alice", "home", "speak");
        assert_eq!(life.texts("home", 2).await[1], "here");
    });
}

#[test]
fn a_failure_of_the_model_reaches_the_person_as_its_sentence() {
    let failing = agent(|stage| async move {
        stage.fail(Failure::Model("The model is asleep.".into())).await;
    });
    World::new(SIMPLE).with_agent(failing).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["The model is asleep."]);
    });
}

#[test]
fn one_session_that_fails_does_not_hurt_another() {
    let clumsy = agent(|stage| async move {
        assert!(stage.said() != "trip", "the test says so");
        SystemClock.sleep(Duration::from_secs(5)).await;
        let answer = stage.echo();
        stage.finish(&answer).await;
    });
    World::new(SIMPLE).with_agent(clumsy).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.vendor.say("bob", "work", "trip");
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
    });
}

#[test]
fn everything_an_agent_reports_is_durable_before_it_goes_on() {
    let mut world = World::new(SIMPLE);
    world.disk.lags(Duration::from_millis(10));
    let disk = world.disk.kept.clone();
    let at = world.vendor().dm("home");
    let ran = Arc::new(AtomicBool::new(false));
    let reached = ran.clone();
    let problems = Arc::new(Mutex::new(Vec::new()));
    let noted = problems.clone();
    world.agent = agent(move |mut stage| {
        let (disk, key, reached, noted) = (disk.clone(), key(&at), reached.clone(), noted.clone());
        async move {
            let recorded = async || disk.transcript(&key, None, 100).await.unwrap();
            let newest = async || recorded().await.pop().unwrap().entry.body;
            let session = async || disk.load(&key).await.unwrap().unwrap();
            let check = |holds: bool, what: &str| {
                if !holds {
                    noted.lock().unwrap().push(what.to_owned());
                }
            };
            let call = CallId::literal("c1");
            let calls =
                vec![ToolCall { id: call.clone(), tool: "t".into(), arguments: "{}".into() }];
            let text = "Let me look.".to_owned();
            let usage = Usage::default();
            let (files, reasoning, cost) = (vec![], None, Cost::FREE);
            stage.emit(AgentEvent::Stepped { text, files, calls, reasoning, usage, cost }).await;
            let answered =
                |body| matches!(body, EntryBody::Answered { calls, .. } if calls.len() == 1);
            check(answered(newest().await), "a step");
            check(disk.counts().await.unwrap().undelivered <= 1, "what it said is in the outbox");

            stage.emit(AgentEvent::Calling { call: call.clone(), unasked: None }).await;
            let started = session().await.hand().unwrap().started.clone();
            check(started == [call.clone()], "a call that begins");

            let output = "seen".to_owned();
            let (files, sends) = (vec![], vec![]);
            stage
                .emit(AgentEvent::Called {
                    call,
                    output,
                    files,
                    sends,
                    failed: false,
                    refused: None,
                })
                .await;
            check(matches!(newest().await, EntryBody::Returned { .. }), "a result");
            check(session().await.hand().unwrap().started.is_empty(), "a call that ended");

            stage.emit(AgentEvent::Asked(question("Sure?"))).await;
            check(matches!(session().await.phase, Phase::Asking { .. }), "a question");
            let Word::Answer { .. } = stage.hear().await else { panic!("an answer") };

            let Word::Steer(steer) = stage.hear().await else { panic!("a steer") };
            stage.took(vec![steer.seq]).await;
            let said = |body| matches!(body, EntryBody::Said { text, .. } if text == "and this");
            check(said(newest().await), "words taken up");

            reached.store(true, Ordering::SeqCst);
            stage.finish("done").await;
        }
    });
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 2).await;
        life.vendor.say("alice", "home", "yes");
        life.pass_seconds(1).await;
        life.vendor.say("alice", "home", "and this");
        assert_eq!(life.texts("home", 3).await[2], "done");
        life.quiet().await;
    });
    assert!(ran.load(Ordering::SeqCst));
    assert_eq!(*problems.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn a_turn_past_its_limit_is_ended_and_the_next_message_works() {
    let deaf = agent(|stage| async move {
        if stage.turn.id.number == 1 {
            std::future::pending::<()>().await;
        }
        let answer = stage.echo();
        stage.finish(&answer).await;
    });
    World::new(SIMPLE).with_agent(deaf).live(async |life| {
        let asked = life.now();
        life.vendor.say("alice", "home", "hello");
        let texts = life.texts("home", 1).await;
        assert_eq!(texts, ["I stopped after 30 minutes, the limit for one answer."]);
        let took = life.now().since(asked);
        assert!(took <= Duration::from_secs(30 * 60 + 5), "{took:?}");
        life.vendor.say("alice", "home", "again");
        assert_eq!(life.texts("home", 2).await[1], "echo: again");
    });
}

#[test]
fn an_agent_that_keeps_to_its_limit_has_the_last_word() {
    // Whatever it has by then is kept: the session must not cut it off at the same moment.
    let punctual = agent(|stage| async move {
        stage.show("What I found so far");
        SystemClock.sleep(stage.turn.limit).await;
        let failure = Failure::TimedOut { minutes: 30 };
        let said = "What I found so far".to_owned();
        let (usage, cost) = (Usage::default(), Cost::UNKNOWN);
        stage.emit(AgentEvent::Failed { failure, said, usage, cost }).await;
    });
    World::new(SIMPLE).with_agent(punctual).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        let texts = life.texts("home", 1).await;
        assert!(texts[0].starts_with("What I found so far"), "{texts:?}");
        assert!(texts[0].contains("30 minutes"), "{texts:?}");
    });
}

#[test]
fn another_agent_answers_from_the_next_turn_on() {
    let slow = agent(|stage| async move {
        SystemClock.sleep(Duration::from_secs(5)).await;
        stage.finish("the old one").await;
    });
    World::new(SIMPLE).with_agent(slow).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        life.gateway.set_agent(echo());
        assert_eq!(life.texts("home", 1).await, ["the old one"]);
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 2).await[1], "echo: hello");
    });
}

#[test]
fn an_agent_that_goes_on_after_its_end_is_not_listened_to() {
    let chatty = agent(|stage| async move {
        stage.finish("the end").await;
        stage.finish("one more thing").await;
    });
    World::new(SIMPLE).with_agent(chatty).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.quiet().await;
        life.pass_seconds(60).await;
        assert_eq!(life.vendor.texts("home"), ["the end"]);
    });
}

#[test]
fn what_is_said_before_the_tools_run_is_a_message_of_its_own() {
    let chatty = agent(|stage| async move {
        stage.step("Let me look.").await;
        stage.step("").await;
        stage.finish("Found it.").await;
    });
    World::new(SIMPLE).with_agent(chatty).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 2).await, ["Let me look.", "Found it."]);
    });
}

#[test]
fn an_agent_hears_of_the_skills_of_a_chat_and_of_being_alone() {
    let curious = agent(|stage| async move {
        let (skills, attended) = (stage.turn.skills.join(" "), stage.turn.attended);
        stage.finish(&format!("skills: {skills}; attended: {attended:?}")).await;
    });
    World::new(SIMPLE).with_agent(curious).live(async |life| {
        let say = |text: &str| {
            let (text, skills) = (text.to_owned(), vec!["review".to_owned()]);
            let message = Message { text, skills, ..Message::default() };
            life.vendor.does("alice", life.vendor.dm("home"), InboundKind::Said(message));
        };
        say("hello");
        assert_eq!(life.texts("home", 1).await, ["skills: review; attended: Yes"]);
        say("again");
        assert_eq!(life.texts("home", 2).await[1], "skills: ; attended: Yes");
        say("/background look into it");
        let texts = life.texts("home", 4).await;
        assert!(texts[3].ends_with("attended: No"), "{texts:?}");
    });
}

#[test]
fn a_text_that_arrives_in_two_pieces_is_answered_once_and_whole() {
    let thoughtful = agent(|mut stage| async move {
        let said = |body: &EntryBody| match body {
            EntryBody::Said { text, heard, .. } => Some(heard.clone().unwrap_or(text.clone())),
            _ => None,
        };
        let entries = stage.turn.entries.iter();
        let read: Vec<String> = entries.filter_map(|entry| said(&entry.body)).collect();
        stage.show("I begin to answer the first piece");
        tokio::select! {
            biased;
            _ = stage.hear() => stage.fail(Failure::Stopped).await,
            () = SystemClock.sleep(Duration::from_secs(10)) => stage.finish(&read.join(" + ")).await,
        }
    });
    let can = Capabilities { deletes: Deletes::Anytime, ..EDITING };
    let mut world = World::new(can).with_agent(thoughtful);
    world.rules.busy = Busy::Interrupt;
    world.live(async |life| {
        life.vendor.say("alice", "home", "one");
        life.pass(Duration::from_millis(2_700)).await;
        assert_eq!(life.vendor.texts("home"), ["I begin to answer the first piece ▉"]);
        life.vendor.say("alice", "home", "two");
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["one + two"]);
    });
}
