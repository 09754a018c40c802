//! From a message to its answer, and what is not let in.

use std::time::Duration;

use talaria_model::{
    AccountId, EntryBody, EventId, Inbound, InboundKind, Message, Sender, SenderId, Source,
    Timestamp,
};
use talaria_platform::Verdict;
use talaria_session::Access;
use talaria_store::Store;

use crate::world::{Hears, SIMPLE, Verb, World, agent};

#[test]
fn a_message_is_answered_in_its_chat() {
    World::new(SIMPLE).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.vendor.say("bob", "work", "good morning");
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
        assert_eq!(life.texts("work", 1).await, ["echo: good morning"]);
        life.quiet().await;
        assert_eq!(life.vendor.truth(|truth| truth.shown.len()), 2);
    });
}

#[test]
fn a_conversation_is_remembered_from_turn_to_turn() {
    let count = agent(|stage| async move {
        let said = stage.turn.entries.iter();
        let said = said.filter(|entry| matches!(entry.body, EntryBody::Said { .. })).count();
        stage.finish(&format!("{said} so far")).await;
    });
    World::new(SIMPLE).with_agent(count).live(async |life| {
        for n in 1..=3 {
            life.vendor.say("alice", "home", "hello");
            assert_eq!(life.texts("home", n).await[n - 1], format!("{n} so far"));
            life.quiet().await;
        }
    });
}

#[test]
fn an_account_that_hears_by_requests_answers_too() {
    World::hearing(SIMPLE, Hears::Requests).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
    });
}

#[test]
fn the_sender_is_told_only_after_the_commit() {
    for hears in [Hears::Stream, Hears::Requests] {
        let mut world = World::hearing(SIMPLE, hears);
        world.disk.answers_late(Verb::Admit, Duration::from_secs(5));
        world.live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.pass_seconds(4).await;
            let told = || life.vendor.truth(|truth| truth.batches[0].verdicts.is_some());
            assert!(!told(), "{hears:?}: told before it is safe");
            life.pass_seconds(2).await;
            assert!(told(), "{hears:?}: not told although it is safe");
        });
    }
}

#[test]
fn a_request_that_cannot_be_stored_is_not_acknowledged_and_the_next_one_is() {
    let mut world = World::hearing(SIMPLE, Hears::Requests);
    world.disk.fails(Verb::Admit, 1);
    world.live(async |life| {
        life.vendor.say("alice", "home", "lost");
        life.vendor.say("alice", "home", "kept");
        assert_eq!(life.texts("home", 1).await, ["echo: kept"]);
        let told = life.vendor.truth(|truth| {
            truth.batches.iter().map(|batch| batch.verdicts.is_some()).collect::<Vec<_>>()
        });
        assert_eq!(told, [false, true]);
        assert_eq!(life.vendor.truth(|truth| truth.connected.len()), 1, "it stays connected");
    });
}

#[test]
fn a_stream_that_cannot_be_stored_is_heard_again_from_its_last_position() {
    let mut world = World::new(SIMPLE);
    world.live(async |life| {
        life.vendor.say("alice", "home", "first");
        life.texts("home", 1).await;
        life.disk.fails(Verb::Admit, 3);
        life.vendor.say("alice", "home", "second");
        assert_eq!(life.texts("home", 2).await, ["echo: first", "echo: second"]);
        life.quiet().await;
        let positions = life.vendor.truth(|truth| truth.connected.clone());
        let first = || Some("1".to_owned());
        assert_eq!(positions, [None, first(), first(), first()]);
    });
}

#[test]
fn a_repeated_event_is_one_turn() {
    let mut world = World::new(SIMPLE);
    world.live(async |life| {
        let hello = life.vendor.say("alice", "home", "hello");
        life.vendor.repeat(&hello);
        life.texts("home", 1).await;
        life.vendor.repeat(&hello);
        life.quiet().await;
        let verdicts = life.vendor.truth(|truth| {
            let told = truth.batches.iter().flat_map(|batch| batch.verdicts.clone().unwrap());
            told.filter(|verdict| *verdict == Verdict::Repeated).count()
        });
        assert_eq!(verdicts, 2);
        assert_eq!(life.vendor.texts("home"), ["echo: hello"]);
    });
    let repeated = world.vendor().truth(|truth| truth.happened[0].id.clone());
    world.live(async |life| {
        life.vendor.repeat(&repeated);
        life.vendor.say("alice", "home", "again");
        assert_eq!(life.texts("home", 2).await, ["echo: hello", "echo: again"]);
    });
}

#[test]
fn a_sender_who_is_not_listed_is_recorded_and_starts_nothing() {
    let mut world = World::new(SIMPLE);
    world.accounts[0].1 = Access::only([SenderId::literal("alice")]);
    world.live(async |life| {
        life.vendor.say("mallory", "home", "let me in");
        life.vendor.say("mallory", "home", "/stop");
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
        life.quiet().await;
        let told: Vec<_> = life.vendor.truth(|truth| {
            truth.batches.iter().flat_map(|batch| batch.verdicts.clone().unwrap()).collect()
        });
        assert_eq!(told[..2], [Verdict::Denied, Verdict::Denied]);
        assert_eq!(life.disk.counts().await.unwrap().denied, 2);
        assert_eq!(life.vendor.texts("home"), ["echo: hello"]);
    });
}

#[test]
fn an_event_for_another_account_is_refused_and_each_event_gets_its_own_verdict() {
    World::new(SIMPLE).live(async |life| {
        let mut stray = said(life.vendor.dm("home"), "stray", "for somebody else");
        stray.to.account = AccountId::literal("another");
        let stray = Inbound { id: EventId::literal("stray"), ..stray };
        life.vendor.deliver(stray);
        life.vendor.deliver(said(life.vendor.dm("home"), "ours", "hello"));
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
        life.quiet().await;
        life.vendor.truth(|truth| {
            for batch in &truth.batches {
                let verdicts = batch.verdicts.as_ref().expect("an acknowledgement");
                assert_eq!(verdicts.len(), batch.events.len(), "one verdict for each event");
                for (event, verdict) in batch.events.iter().zip(verdicts) {
                    let journalled = matches!(verdict, Verdict::Journalled(_));
                    assert_eq!(journalled, event.as_str() == "ours", "{event}: {verdict:?}");
                }
            }
            assert_eq!(truth.shown.len(), 1);
        });
        // It is counted where it came in: nobody can make up accounts.
        let tallies = life.gateway.tallies();
        assert_eq!(tallies.keys().map(AccountId::as_str).collect::<Vec<_>>(), ["main"]);
        assert_eq!(tallies[&AccountId::literal("main")].denied, 1);
    });
}

#[test]
fn a_message_that_is_too_long_is_recorded_as_refused() {
    World::new(SIMPLE).live(async |life| {
        life.vendor.say("alice", "home", &"x".repeat(300 * 1024));
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
        life.quiet().await;
        assert_eq!(life.disk.counts().await.unwrap().denied, 1);
    });
}

#[test]
fn a_command_is_answered_without_a_turn() {
    World::new(SIMPLE).live(async |life| {
        life.vendor.say("alice", "home", "/status");
        life.vendor.say("alice", "home", "/nope");
        let texts = life.texts("home", 2).await;
        assert!(texts[0].contains("idle"), "{texts:?}");
        assert!(texts[1].contains("/help"), "{texts:?}");
        life.quiet().await;
        let summary = life.disk.conversations(None, 1).await.unwrap().remove(0);
        assert_eq!(summary.turns, 0);
    });
}

#[test]
fn accounts_do_not_see_each_other() {
    let mut world = World::new(SIMPLE);
    let other = world.add("other", SIMPLE);
    world.live(async |life| {
        life.vendor.say("alice", "home", "on main");
        other.say("alice", "home", "on other");
        assert_eq!(life.texts("home", 1).await, ["echo: on main"]);
        life.quiet().await;
        life.pass_seconds(1).await;
        assert_eq!(other.texts("home"), ["echo: on other"]);
        assert_eq!(life.vendor.texts("home"), ["echo: on main"]);
    });
}

fn said(to: talaria_model::Address, id: &'static str, text: &str) -> Inbound {
    Inbound {
        id: EventId::literal(id),
        at: Timestamp::default(),
        from: Sender::new(SenderId::literal("alice")),
        to,
        kind: InboundKind::Said(Message { text: text.into(), ..Message::default() }),
        source: Source::default(),
    }
}

#[test]
fn a_hundred_thousand_messages_of_strangers_leave_a_bounded_trace() {
    let mut world = World::new(SIMPLE);
    world.accounts[0].1 = Access::only([SenderId::literal("alice")]);
    let vendor = world.vendor();
    for n in 0..100_000 {
        vendor.say(&format!("stranger-{n}"), &format!("chat-{n}"), "let me in");
    }
    vendor.say("alice", "home", "hello");
    world.live(async |life| {
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
        let counts = life.disk.counts().await.unwrap();
        assert_eq!(counts.denied, 1000);
        assert_eq!(life.disk.conversations(None, 10).await.unwrap().len(), 1);
        assert_eq!(life.gateway.lanes_in_memory(), 1);
        let verdicts = life.vendor.truth(|truth| {
            let told = truth.batches.iter().filter_map(|batch| batch.verdicts.clone());
            told.flatten().filter(|verdict| *verdict == Verdict::Denied).count()
        });
        assert_eq!(verdicts, 100_000, "all of them are acknowledged");
        life.pass_seconds(9 * 24 * 60 * 60).await;
        assert_eq!(life.disk.counts().await.unwrap().denied, 0, "and forgotten in time");
        life.vendor.say("stranger-1", "chat-1", "again");
        life.until("it is heard", |vendor| vendor.is_heard()).await;
        assert_eq!(life.disk.counts().await.unwrap().denied, 1, "another day");
    });
}
