//! A turn that ends without a word leaves nothing behind that looks as if it still went on.

use std::sync::Arc;
use std::time::Duration;

use talaria_agent::Agent;
use talaria_clock::{Clock, SystemClock};
use talaria_model::{Act, Capabilities, Deletes, Drafts, Failure};
use talaria_platform::SendError;
use talaria_store::Store;

use crate::world::{Conduct, EDITING, Life, SIMPLE, Vendor, World, agent, keyed};

const DELETING: Capabilities = Capabilities { deletes: Deletes::Anytime, ..EDITING };

const DRAFTING: Capabilities =
    Capabilities { drafts: Drafts::Every(Duration::from_secs(1)), ..SIMPLE };

const DOING: &str = "looking through all of your conversations";

/// Says something, then does something for a while, and has nothing to say about it.
fn wordless() -> Arc<dyn Agent> {
    agent(|stage| async move {
        // After a crash it knows what it has said.
        if stage.turn.entries.len() == 1 {
            stage.step("Let me look.").await;
        }
        stage.does(DOING);
        SystemClock.sleep(Duration::from_secs(10)).await;
        stage.finish("").await;
    })
}

fn shows_status(vendor: &Vendor) -> bool {
    vendor.texts("home").iter().any(|text| text.contains(DOING))
}

fn drafted(vendor: &Vendor) -> bool {
    vendor.truth(|truth| truth.acts.iter().any(|(_, act)| matches!(act.act, Act::Draft(_))))
}

async fn until_status(life: &Life) {
    life.vendor.say("alice", "home", "hello");
    life.until("a status", shows_status).await;
}

#[test]
fn a_status_is_removed_or_replaced_when_no_words_follow() {
    for (can, left) in [
        (EDITING, vec!["Let me look.", "(done)"]),
        (DELETING, vec!["Let me look."]),
        (keyed(EDITING), vec!["Let me look.", "(done)"]),
    ] {
        World::new(can).with_agent(wordless()).live(async |life| {
            until_status(life).await;
            life.quiet().await;
            assert_eq!(life.vendor.texts("home"), left);
            assert_eq!(life.disk.counts().await.unwrap().failed, 0);
        });
    }
}

#[test]
fn a_draft_is_taken_back_when_no_words_follow() {
    World::new(DRAFTING).with_agent(wordless()).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.until("a draft", drafted).await;
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["Let me look."]);
        assert!(life.vendor.truth(|truth| truth.drafts.is_empty()), "it is no message");
    });
}

#[test]
fn a_turn_of_which_nothing_was_seen_ends_without_a_trace() {
    let hasty = agent(|stage| async move {
        stage.step("Let me look.").await;
        stage.finish("").await;
    });
    for can in [SIMPLE, EDITING, DELETING, DRAFTING] {
        World::new(can).with_agent(hasty.clone()).live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.quiet().await;
            assert_eq!(life.vendor.texts("home"), ["Let me look."]);
            assert_eq!(life.vendor.truth(|truth| truth.acts.len()), 1);
        });
    }
}

#[test]
fn a_status_is_replaced_by_the_reason_for_which_a_turn_ended() {
    let stopped = agent(|stage| async move {
        stage.does(DOING);
        std::future::pending::<()>().await;
    });
    let failing = agent(|stage| async move {
        stage.does(DOING);
        SystemClock.sleep(Duration::from_secs(5)).await;
        stage.fail(Failure::Model("The model is asleep.".into())).await;
    });
    let empty = agent(|stage| async move {
        stage.does(DOING);
        SystemClock.sleep(Duration::from_secs(5)).await;
        stage.finish("").await;
    });
    for can in [EDITING, DELETING, DRAFTING] {
        for (agent, reason) in [
            (&stopped, "Stopped."),
            (&failing, "The model is asleep."),
            (&empty, "The model returned an empty answer."),
        ] {
            World::new(can).with_agent(agent.clone()).live(async |life| {
                life.vendor.say("alice", "home", "hello");
                life.pass_seconds(3).await;
                if reason == "Stopped." {
                    life.vendor.press_stop("alice", "home");
                }
                life.quiet().await;
                assert_eq!(life.vendor.texts("home"), [reason]);
            });
        }
    }
}

#[test]
fn a_status_from_before_a_crash_is_removed_or_replaced_too() {
    for (can, left) in [(EDITING, vec!["(done)"]), (DELETING, vec![]), (DRAFTING, vec![])] {
        // Said what it had to say before it died; the second time it only looks.
        let resumed = agent(|stage| async move {
            let spoke = stage.turn.entries.len() > 1;
            if !spoke {
                stage.step("Let me look.").await;
                stage.does(DOING);
                std::future::pending::<()>().await;
            }
            stage.finish("").await;
        });
        let mut world = World::new(can).with_agent(resumed);
        world.live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.until("a status", |vendor| shows_status(vendor) || drafted(vendor)).await;
            life.pass_seconds(1).await;
        });
        world.live(async |life| {
            life.quiet().await;
            let texts = life.vendor.texts("home");
            assert_eq!(texts[0], "Let me look.");
            assert_eq!(texts[1..], left);
            assert!(life.vendor.truth(|truth| truth.drafts.is_empty()));
        });
    }
}

#[test]
fn a_crash_before_a_status_is_taken_away_leaves_that_to_the_next_run() {
    for can in [EDITING, DELETING] {
        let mut moment = 0;
        loop {
            let mut world = World::new(can).with_agent(wordless());
            let died = world.live_and_die(moment, async |life| {
                life.vendor.say("alice", "home", "hello");
                life.quiet().await;
            });
            if died == crate::world::End::Over {
                break;
            }
            world.live(async |life| {
                life.quiet().await;
                // One whose name died with the process can only be followed by the word that it is over.
                let texts = life.vendor.texts("home");
                let over = texts.last().is_some_and(|last| last == "(done)");
                assert!(over || !shows_status(&life.vendor), "dead at {moment}: {texts:?}");
            });
            moment += 1;
        }
        assert!(moment > 8);
    }
}

#[test]
fn a_status_that_may_have_arrived_is_followed_by_the_word_that_it_is_over() {
    for (can, conduct) in [
        (EDITING, Conduct::ShowsSilently),
        (EDITING, Conduct::ShowsNameless),
        (keyed(EDITING), Conduct::ShowsSilently),
        (keyed(DELETING), Conduct::ShowsSilently),
    ] {
        let mut world = World::new(can).with_agent(wordless());
        world.vendor().first([Conduct::Shows, conduct.clone()]);
        world.live(async |life| {
            until_status(life).await;
            life.quiet().await;
            let texts = life.vendor.texts("home");
            if can == keyed(DELETING) {
                assert_eq!(texts, ["Let me look."], "{conduct:?}");
            } else {
                assert_eq!(texts.last().unwrap(), "(done)", "{conduct:?}: {texts:?}");
            }
            if can == keyed(EDITING) {
                assert!(!shows_status(&life.vendor), "{texts:?}");
            }
        });
    }
}

#[test]
fn a_status_that_cannot_be_taken_away_is_no_lost_message() {
    for can in [EDITING, DELETING] {
        let mut world = World::new(can).with_agent(wordless());
        world.vendor().behaves(|outbound| match outbound.act {
            Act::Edit { .. } | Act::Delete { .. } => {
                Conduct::Refuses(SendError::Rejected { reason: "too old".into() })
            }
            _ => Conduct::Shows,
        });
        world.live(async |life| {
            until_status(life).await;
            life.quiet().await;
            assert_eq!(life.disk.counts().await.unwrap().failed, 0);
            life.vendor.say("alice", "home", "/nope");
            life.quiet().await;
            let texts = life.vendor.texts("home");
            assert!(!texts.iter().any(|text| text.contains("could not be")), "{texts:?}");
        });
    }
}

#[test]
fn an_answer_whose_preview_somebody_removed_is_said_anew() {
    let telling = agent(|stage| async move {
        stage.show("Words enough for a preview, and some more of them");
        SystemClock.sleep(Duration::from_secs(5)).await;
        stage.finish("The whole answer.").await;
    });
    // Where repeats are not recognised, nobody can be sure that the preview is gone.
    let marked =
        "*(sent again after an interruption; you may have seen this)*\n\nThe whole answer.";
    for (can, said) in [(EDITING, marked), (keyed(EDITING), "The whole answer.")] {
        World::new(can).with_agent(telling.clone()).live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.texts("home", 1).await;
            life.vendor.wipe();
            life.quiet().await;
            assert_eq!(life.vendor.texts("home"), [said]);
            assert_eq!(life.disk.counts().await.unwrap().failed, 0);
        });
    }
}
