//! A stop ends a turn within a second, whatever the agent is doing.

use std::sync::Arc;
use std::time::Duration;

use talaria_agent::Agent;
use talaria_clock::{Clock, SystemClock};
use talaria_model::{ChoiceId, Failure, Word};

use crate::questions::question;
use crate::world::{EDITING, Life, SIMPLE, Verb, World, agent};

/// Says `/stop` in a chat and waits for the word that it has stopped, at most a second.
async fn stop(life: &Life, chat: &str) {
    let asked = life.now();
    life.vendor.say("alice", chat, "/stop");
    life.until("a stop", |vendor| vendor.texts(chat).iter().any(|text| text.contains("Stopped.")))
        .await;
    let took = life.now().since(asked);
    assert!(took <= Duration::from_secs(1), "it took {took:?}");
}

fn deaf() -> Arc<dyn Agent> {
    agent(|_| std::future::pending())
}

#[test]
fn an_agent_that_ignores_a_stop_is_stopped_all_the_same() {
    World::new(SIMPLE).with_agent(deaf()).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(5).await;
        stop(life, "home").await;
        life.quiet().await;
    });
}

#[test]
fn an_agent_that_listens_stops_at_once() {
    let obedient = agent(|mut stage| async move {
        loop {
            if stage.hear().await == Word::Stop {
                return stage.fail(Failure::Stopped).await;
            }
        }
    });
    World::new(SIMPLE).with_agent(obedient).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(5).await;
        let asked = life.now();
        stop(life, "home").await;
        assert_eq!(life.now(), asked);
    });
}

#[test]
fn what_was_said_before_a_stop_stays() {
    let halfway = agent(|stage| async move {
        stage.show("Once upon a time");
        std::future::pending::<()>().await;
    });
    for can in [SIMPLE, EDITING] {
        World::new(can).with_agent(halfway.clone()).live(async |life| {
            life.vendor.say("alice", "home", "a story");
            life.pass_seconds(5).await;
            stop(life, "home").await;
            life.quiet().await;
            assert_eq!(life.vendor.texts("home"), ["Once upon a time\n\n*Stopped.*"]);
        });
    }
}

#[test]
fn a_turn_that_waits_for_a_place_can_be_stopped() {
    let mut world = World::new(SIMPLE).with_agent(deaf());
    world.limits.turns_at_once = 1;
    world.live(async |life| {
        life.vendor.say("bob", "work", "takes the only place");
        life.pass_seconds(1).await;
        life.vendor.say("alice", "home", "waits");
        life.pass_seconds(1).await;
        stop(life, "home").await;
    });
}

#[test]
fn a_turn_that_waits_for_a_place_after_its_question_was_answered_can_be_stopped() {
    let asking = agent(|mut stage| async move {
        if stage.said().contains("ask") {
            stage.ask(question("Sure?")).await;
        }
        std::future::pending::<()>().await;
    });
    let mut world = World::new(SIMPLE).with_agent(asking);
    world.limits.turns_at_once = 1;
    world.live(async |life| {
        life.vendor.say("alice", "home", "ask");
        life.texts("home", 1).await;
        life.vendor.say("bob", "work", "takes the only place");
        life.pass_seconds(1).await;
        life.vendor.say("alice", "home", "yes");
        life.pass_seconds(1).await;
        stop(life, "home").await;
    });
}

#[test]
fn a_turn_that_asks_can_be_stopped() {
    let asking = agent(|mut stage| async move {
        stage.ask(question("Sure?")).await;
    });
    World::new(SIMPLE).with_agent(asking).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        stop(life, "home").await;
        life.quiet().await;
        life.vendor.press("alice", "home", &ChoiceId::literal("q1"));
        let texts = life.texts("home", 3).await;
        assert_eq!(texts[2], "That question is not open any more.");
    });
}

#[test]
fn a_turn_that_uses_a_tool_can_be_stopped() {
    World::new(SIMPLE).with_model().live(async |life| {
        life.vendor.say("alice", "home", "hang yourself up");
        life.pass_seconds(60).await;
        stop(life, "home").await;
        life.quiet().await;
    });
}

#[test]
fn a_stop_drops_what_waits_and_the_next_message_is_answered() {
    let first_deaf = agent(|stage| async move {
        if stage.turn.id.number == 1 {
            std::future::pending::<()>().await;
        }
        let answer = stage.echo();
        stage.finish(&answer).await;
    });
    World::new(SIMPLE).with_agent(first_deaf).live(async |life| {
        life.vendor.say("alice", "home", "one");
        life.pass_seconds(1).await;
        life.vendor.say("alice", "home", "two");
        life.pass_seconds(1).await;
        stop(life, "home").await;
        life.vendor.say("alice", "home", "three");
        let texts = life.texts("home", 3).await;
        assert_eq!(
            texts,
            ["Stopping. One message that was waiting is dropped.", "Stopped.", "echo: three"]
        );
    });
}

#[test]
fn a_stop_that_comes_with_the_answer_loses_neither() {
    // However the two race: exactly one visible end, and the session goes on.
    for delay in [0, 1, 999, 1000, 1001] {
        let slow = agent(|stage| async move {
            SystemClock.sleep(Duration::from_secs(1)).await;
            let answer = stage.echo();
            stage.finish(&answer).await;
        });
        World::new(SIMPLE).with_agent(slow).live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.pass(Duration::from_millis(delay)).await;
            life.vendor.say("alice", "home", "/stop");
            life.quiet().await;
            let texts = life.vendor.texts("home");
            let dropped = "Nothing is running. One message that was waiting is dropped.";
            let ends = ["echo: hello", "Stopped.", dropped];
            let ended = texts.iter().filter(|text| ends.contains(&text.as_str())).count();
            assert_eq!(ended, 1, "after {delay} ms: {texts:?}");
            life.vendor.say("alice", "home", "again");
            life.until("an answer", |vendor| {
                vendor.texts("home").last().is_some_and(|text| text == "echo: again")
            })
            .await;
        });
    }
}

#[test]
fn a_new_conversation_ends_the_turn_at_once_and_begins_empty() {
    let first_deaf = agent(|stage| async move {
        if stage.said() == "hello" {
            std::future::pending::<()>().await;
        }
        let entries = stage.turn.entries.len();
        stage.finish(&format!("{entries} entries")).await;
    });
    World::new(SIMPLE).with_agent(first_deaf).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(5).await;
        life.vendor.say("alice", "home", "/new");
        life.texts("home", 2).await;
        life.vendor.say("alice", "home", "who am I?");
        let texts = life.texts("home", 3).await;
        assert_eq!(texts[0], "Stopped.");
        assert_eq!(texts[2], "2 entries", "a notice and the message");
    });
}

#[test]
fn a_stop_that_is_found_in_the_journal_first_does_not_wait_behind_what_stands_there() {
    let mut world = World::new(SIMPLE).with_agent(deaf());
    world.rules.room = 2;
    world.vendor().say("alice", "home", "hello");
    world.live(async |life| life.pass_seconds(1).await);
    for text in ["one", "two", "three", "/stop"] {
        world.vendor().say("alice", "home", text);
    }
    // The session looks into the journal while the word that something was stored there is on its
    // way.
    world.disk.answers_late(Verb::Load, Duration::from_millis(100));
    world.disk.answers_late(Verb::Admit, Duration::from_millis(500));
    world.live(async |life| {
        life.until("a stop", |vendor| vendor.texts("home").iter().any(|text| text == "Stopped."))
            .await;
        assert!(life.now().since(life.gateway.started()) <= Duration::from_millis(1500));
    });
}
