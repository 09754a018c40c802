//! A store that is not there for a while: nothing is lost, nothing is done twice.

use std::time::Duration;

use talaria_clock::{Clock, SystemClock};
use talaria_store::Store;

use crate::world::{EDITING, Hears, MARK, SIMPLE, Verb, World, agent};

#[test]
fn a_step_that_cannot_be_stored_is_taken_again_and_answered_once() {
    World::new(SIMPLE).live(async |life| {
        for times in [1, 3, 7] {
            life.disk.fails(Verb::Commit, times);
            let before = life.vendor.texts("home").len();
            life.vendor.say("alice", "home", "hello");
            let texts = life.texts("home", before + 1).await;
            life.quiet().await;
            assert_eq!(texts.last().unwrap(), "echo: hello");
            assert_eq!(life.vendor.texts("home").len(), before + 1, "{times} failures");
        }
    });
}

#[test]
fn an_agents_report_that_cannot_be_stored_holds_the_agent_and_no_more() {
    let steps = agent(|stage| async move {
        stage.step("one").await;
        SystemClock.sleep(Duration::from_secs(1)).await;
        stage.step("two").await;
        stage.finish("three").await;
    });
    World::new(SIMPLE).with_agent(steps).live(async |life| {
        life.vendor.say("alice", "home", "count");
        life.until("the first", |vendor| vendor.texts("home").len() == 1).await;
        life.disk.fails(Verb::Commit, 4);
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["one", "two", "three"]);
        let entries = life.transcript("home").await.len();
        assert_eq!(entries, 4, "what was said, and three answers");
    });
}

#[test]
fn a_session_that_cannot_be_loaded_at_first_is_loaded_later() {
    World::new(SIMPLE).live(async |life| {
        life.disk.fails(Verb::Load, 3);
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
    });
}

#[test]
fn a_transcript_that_cannot_be_read_at_first_is_read_later() {
    World::new(SIMPLE).live(async |life| {
        life.disk.fails(Verb::History, 3);
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
    });
}

#[test]
fn a_journal_that_cannot_be_read_at_first_is_read_later() {
    let mut world = World::new(SIMPLE);
    world.limits.inbox = 1;
    world.live(async |life| {
        life.disk.fails(Verb::Unread, 3);
        for n in 1..=5 {
            life.vendor.say("alice", "home", &n.to_string());
        }
        life.quiet().await;
        let texts = life.vendor.texts("home").join(" / ").replace("echo: ", "");
        assert_eq!(texts, "1 / 2 / 3 / 4 / 5");
    });
}

#[test]
fn an_outbox_that_cannot_be_read_at_first_is_read_later() {
    let mut world = World::new(SIMPLE);
    world.limits.outbox = 1;
    world.live(async |life| {
        life.disk.fails(Verb::Parcels, 3);
        for n in 1..=5 {
            life.vendor.say("alice", "home", &format!("/nope-{n}"));
        }
        assert_eq!(life.texts("home", 5).await.len(), 5);
    });
}

#[test]
fn a_preview_that_cannot_be_stored_is_not_shown_and_the_answer_is() {
    let growing = agent(|stage| async move {
        for n in 1..10 {
            stage.show(&"a growing answer ".repeat(n));
            SystemClock.sleep(Duration::from_secs(1)).await;
        }
        stage.finish("the answer").await;
    });
    World::new(EDITING).with_agent(growing).live(async |life| {
        life.disk.fails(Verb::Preview, 100);
        life.vendor.say("alice", "home", "hello");
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["the answer"]);
        assert_eq!(life.vendor.truth(|truth| truth.acts.len()), 1);
    });
}

#[test]
fn a_damaged_session_does_not_hurt_the_others() {
    World::new(SIMPLE).live(async |life| {
        life.disk.is_damaged(Verb::Load, 1);
        life.vendor.say("alice", "home", "hello");
        life.until("it is heard", |vendor| vendor.is_heard()).await;
        life.pass_seconds(1).await;
        life.vendor.say("bob", "work", "hello");
        assert_eq!(life.texts("work", 1).await, ["echo: hello"]);
        assert_eq!(life.disk.counts().await.unwrap().unread, 1, "it stays in the journal");
    });
}

#[test]
fn a_store_that_is_away_for_an_hour_costs_an_hour() {
    let mut world = World::new(SIMPLE);
    world.live(async |life| {
        life.vendor.say("alice", "home", "before");
        life.texts("home", 1).await;
        for verb in [Verb::Admit, Verb::Commit, Verb::Attempt, Verb::Settle, Verb::Load] {
            life.disk.fails(verb, 1_000_000);
        }
        for n in 0..20 {
            life.vendor.say("alice", "home", &format!("m{n}"));
            life.vendor.say("bob", "work", &format!("m{n}"));
        }
        life.pass_seconds(3600).await;
        assert_eq!(life.vendor.truth(|truth| truth.shown.len()), 1);
        for verb in [Verb::Admit, Verb::Commit, Verb::Attempt, Verb::Settle, Verb::Load] {
            life.disk.fails(verb, 0);
        }
        life.quiet().await;
        let said: Vec<String> = (0..20).map(|n| format!("m{n}")).collect();
        for (chat, skip) in [("home", 1), ("work", 0)] {
            let texts = life.vendor.texts(chat)[skip..].join(" / ").replace("echo: ", "");
            assert_eq!(texts, said.join(" / "));
        }
    });
}

#[test]
fn a_store_that_breaks_down_in_the_middle_of_anything_loses_nothing() {
    for verb in [
        Verb::Load,
        Verb::Commit,
        Verb::Unread,
        Verb::History,
        Verb::Attempt,
        Verb::Settle,
        Verb::Parcels,
        Verb::Admit,
    ] {
        for times in [1, 2] {
            let mut world = World::new(SIMPLE);
            world.limits.inbox = 1;
            world.limits.outbox = 1;
            world.live(async |life| {
                life.vendor.say("alice", "home", "before");
                life.texts("home", 1).await;
                life.pass_seconds(60).await;
                life.disk.panics(verb, times);
                for n in 1..=4 {
                    life.vendor.say("alice", "home", &n.to_string());
                }
                life.pass_seconds(600).await;
                life.vendor.say("alice", "home", "5");
                life.pass_seconds(600).await;
                let texts = life.vendor.texts("home");
                let answered: Vec<&str> = texts[1..]
                    .iter()
                    .filter(|text| !text.contains(MARK))
                    .flat_map(|text| text.split(['/', ':', ' ']))
                    .filter(|word| word.parse::<u32>().is_ok())
                    .collect();
                let sorry = texts.iter().any(|text| text.contains("Something went wrong"));
                assert!(
                    sorry || answered == ["1", "2", "3", "4", "5"] || texts.join("").contains(MARK),
                    "{verb:?} {times}: {texts:?}"
                );
                let counts = life.disk.counts().await.unwrap();
                let open = counts.unread + counts.turns_in_hand + counts.undelivered;
                assert_eq!(open, 0, "{verb:?} {times}: {counts:?}, {texts:?}");
            });
        }
    }
}

#[test]
fn what_was_stored_although_the_store_denied_it_is_answered_at_once_and_once() {
    for hears in [Hears::Stream, Hears::Requests, Hears::Poll, Hears::Envelopes] {
        World::hearing(SIMPLE, hears).live(async |life| {
            life.disk.lies(Verb::Admit, 1);
            life.vendor.say("alice", "home", "hello");
            life.pass_seconds(1).await;
            life.quiet().await;
            assert_eq!(life.vendor.texts("home"), ["echo: hello"], "{hears:?}");
        });
    }
}
