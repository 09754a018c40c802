//! What will never arrive is recorded with its reason, and people are told once, as soon as they can
//! be told anything.

use std::time::Duration;

use talaria_clock::{Clock, SystemClock};
use talaria_platform::SendError;
use talaria_store::{ParcelState, Store, Told};

use crate::questions::question;
use crate::world::{Conduct, EDITING, End, Life, SIMPLE, Verb, World, agent};

fn gone() -> Conduct {
    Conduct::Refuses(SendError::Gone { reason: "kicked".into() })
}

fn rejected() -> Conduct {
    Conduct::Refuses(SendError::Rejected { reason: "too rude".into() })
}

const NOTICE: &str = "could not be delivered";

fn notices(life: &Life) -> Vec<String> {
    let texts = life.vendor.texts("home");
    texts.into_iter().filter(|text| text.contains(NOTICE)).collect()
}

async fn say(life: &Life, text: &str) {
    life.vendor.say("alice", "home", text);
    life.quiet().await;
}

#[test]
fn a_lost_message_is_recorded_with_its_reason() {
    let mut world = World::new(SIMPLE);
    world.vendor().behaves(|_| gone());
    world.live(async |life| {
        say(life, "hello").await;
        let failed = life.disk.failed(10).await.unwrap();
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].state, ParcelState::Undeliverable);
        assert_eq!(failed[0].reason, "the chat is gone: kicked");
        assert_eq!(failed[0].told, Told::No);
    });
}

#[test]
fn people_are_told_once_when_something_reaches_them_again() {
    let mut world = World::new(SIMPLE);
    world.vendor().first([gone(), rejected()]);
    world.live(async |life| {
        say(life, "one").await;
        say(life, "two").await;
        assert_eq!(life.vendor.texts("home"), Vec::<String>::new());
        for n in 3..=6 {
            say(life, &n.to_string()).await;
        }
        let texts = life.vendor.texts("home");
        assert_eq!(
            texts,
            [
                "echo: 3",
                "2 earlier messages could not be delivered (refused: too rude).",
                "echo: 4",
                "echo: 5",
                "echo: 6",
            ]
        );
        let failed = life.disk.failed(10).await.unwrap();
        assert!(failed.iter().all(|failed| failed.told == Told::Yes), "{failed:?}");
    });
}

#[test]
fn people_are_told_after_a_restart_too() {
    let mut world = World::new(SIMPLE);
    world.vendor().first([gone()]);
    world.live(async |life| say(life, "one").await);
    world.live(async |life| {
        say(life, "two").await;
        assert_eq!(
            life.vendor.texts("home"),
            ["echo: two", "1 earlier message could not be delivered (the chat is gone: kicked)."]
        );
    });
    world.live(async |life| {
        say(life, "three").await;
        assert_eq!(notices(life).len(), 1);
    });
}

#[test]
fn whenever_the_process_dies_people_are_told_and_never_twice_unmarked() {
    for moment in 0.. {
        let mut world = World::new(SIMPLE);
        let mut first = Some(gone());
        world.vendor().behaves(move |_| first.take().unwrap_or(Conduct::Shows));
        let died = world.live_and_die(moment, async |life| {
            say(life, "one").await;
            say(life, "two").await;
        });
        if died == End::Over {
            assert!(moment > 12);
            break;
        }
        world.live(async |life| {
            life.quiet().await;
            say(life, "three").await;
            say(life, "four").await;
            let lost = life.disk.failed(10).await.unwrap().len();
            let unmarked = notices(life).iter().filter(|text| !text.contains("sent again")).count();
            let marked = notices(life).len() - unmarked;
            assert!(unmarked <= lost && (unmarked + marked >= lost), "dead at {moment}");
            assert!(unmarked + marked <= 2, "dead at {moment}: {:?}", notices(life));
        });
    }
}

#[test]
fn a_chat_that_stays_gone_costs_one_try_a_message_and_no_notice() {
    let mut world = World::new(SIMPLE);
    world.vendor().behaves(|_| gone());
    world.live(async |life| {
        for n in 0..20 {
            say(life, &n.to_string()).await;
        }
        life.pass_seconds(24 * 60 * 60).await;
        assert_eq!(life.vendor.truth(|truth| truth.acts.len()), 20);
        assert_eq!(life.disk.failed(100).await.unwrap().len(), 20);
    });
}

#[test]
fn a_notice_that_is_lost_itself_is_not_told_of() {
    let mut world = World::new(SIMPLE);
    world.vendor().behaves(|outbound| match &outbound.act {
        talaria_model::Act::Post(content) if content.text.contains(NOTICE) => rejected(),
        talaria_model::Act::Post(content) if content.text.contains("bad") => rejected(),
        _ => Conduct::Shows,
    });
    world.live(async |life| {
        say(life, "bad").await;
        for n in 0..5 {
            say(life, &n.to_string()).await;
        }
        assert_eq!(life.vendor.truth(|truth| truth.acts.len()), 7, "one notice was tried");
        assert_eq!(life.disk.failed(100).await.unwrap().len(), 2);
    });
}

#[test]
fn one_notice_is_for_all_parts_of_an_answer_that_were_lost() {
    let long = agent(|stage| async move {
        let text: Vec<String> = (0..500).map(|n| format!("word{n:04}")).collect();
        stage.finish(&text.join(" ")).await;
    });
    let mut world = World::new(SIMPLE).with_agent(long);
    world.vendor().first([Conduct::Shows, rejected(), Conduct::Shows, rejected()]);
    world.live(async |life| {
        say(life, "hello").await;
        assert_eq!(
            notices(life),
            ["2 earlier messages could not be delivered (refused: too rude)."]
        );
        let last = life.vendor.texts("home").pop().unwrap();
        assert!(last.contains(NOTICE), "after all that did arrive");
    });
}

#[test]
fn other_chats_hear_nothing_of_it() {
    let mut world = World::new(SIMPLE);
    world.vendor().first([gone()]);
    world.live(async |life| {
        say(life, "one").await;
        life.vendor.say("bob", "work", "hello");
        life.quiet().await;
        assert_eq!(life.vendor.texts("work"), ["echo: hello"]);
        assert_eq!(notices(life), Vec::<String>::new());
    });
}

#[test]
fn a_notice_that_cannot_be_stored_waits_for_the_next_message() {
    let mut world = World::new(SIMPLE);
    world.vendor().first([gone()]);
    world.live(async |life| {
        say(life, "one").await;
        life.disk.fails(Verb::Tell, 1);
        say(life, "two").await;
        assert_eq!(notices(life).len(), 0);
        say(life, "three").await;
        assert_eq!(notices(life).len(), 1);
    });
}

#[test]
fn what_a_platform_says_cannot_forge_formatting() {
    let mut world = World::new(SIMPLE);
    let reason = "[click](http://evil.example)".to_owned();
    world.vendor().first([Conduct::Refuses(SendError::Rejected { reason })]);
    world.live(async |life| {
        say(life, "one").await;
        say(life, "two").await;
        let notice = notices(life).remove(0);
        assert!(notice.contains("\\[click\\]"), "{notice}");
    });
}

#[test]
fn a_notice_does_not_tear_an_answer_apart() {
    for can in [SIMPLE, EDITING] {
        let talkative = agent(|stage| async move {
            if stage.said() != "look" {
                return stage.finish(&stage.echo()).await;
            }
            stage.step("Let me look.").await;
            SystemClock.sleep(Duration::from_secs(10)).await;
            stage.step("Still looking.").await;
            SystemClock.sleep(Duration::from_secs(10)).await;
            stage.finish("Found it.").await;
        });
        let mut world = World::new(can).with_agent(talkative);
        world.vendor().first([gone()]);
        world.live(async |life| {
            say(life, "one").await;
            say(life, "look").await;
            let notice = "1 earlier message could not be delivered (the chat is gone: kicked).";
            let all = ["Let me look.", "Still looking.", "Found it.", notice];
            assert_eq!(life.vendor.texts("home"), all);
        });
    }
}

#[test]
fn a_question_does_not_hold_a_notice_back() {
    let curious = agent(|mut stage| async move {
        if stage.said() != "ask" {
            return stage.finish(&stage.echo()).await;
        }
        stage.step("One thing.").await;
        stage.ask(question("Which one?")).await;
        stage.finish("Thanks.").await;
    });
    let mut world = World::new(SIMPLE).with_agent(curious);
    world.vendor().first([gone()]);
    world.live(async |life| {
        say(life, "one").await;
        say(life, "ask").await;
        assert_eq!(notices(life).len(), 1);
    });
}
