//! What becomes of pairing codes once they were told: nothing that is kept has them.

use std::sync::Arc;
use std::time::Duration;

use talaria_model::{AccountId, Act, SenderId, WITHHELD};
use talaria_platform::SendError;
use talaria_session::{Access, Strangers};
use talaria_store::{MemoryStore, Store};

use crate::world::{Conduct, EDITING, End, Life, World};

/// Strangers are given codes, and Alice is listed. Also all that is kept, to look through.
fn world() -> (World, MemoryStore) {
    let mut world = World::new(EDITING);
    world.accounts[0].1 =
        Access { strangers: Strangers::Pair, ..Access::only([SenderId::literal("alice")]) };
    let store = MemoryStore::new();
    world.disk.kept = Arc::new(store.clone());
    (world, store)
}

/// All codes that anybody was shown in a chat.
fn codes(life: &Life, chat: &str) -> Vec<String> {
    let shown = life.vendor.texts(chat).into_iter();
    shown.filter_map(|text| code_in(&text)).collect()
}

/// The code that a text tells, if it does.
fn code_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("airing code")?;
    Some(rest.split('`').nth(1).expect("a code is marked").to_owned())
}

#[test]
fn a_code_waits_until_it_is_told_and_is_nowhere_kept_after_that() {
    let (mut world, store) = world();
    world.live(async |life| {
        life.vendor.behaves(|_| {
            let after = Duration::from_secs(60);
            Conduct::Refuses(SendError::Throttled { after })
        });
        life.vendor.say("alice", "home", "/pair");
        life.vendor.say("ann", "ann", "hello");
        let tried = |vendor: &crate::world::Vendor| {
            let acts = vendor.truth(|truth| truth.acts.clone());
            let text = |act: &Act| match act {
                Act::Post(content) => code_in(&content.text),
                _ => None,
            };
            acts.iter().filter_map(|(_, outbound)| text(&outbound.act)).collect::<Vec<_>>()
        };
        life.until("both are tried", |vendor| tried(vendor).len() >= 2).await;
        for code in tried(&life.vendor) {
            assert!(store.mentions(&code), "it could not be said after a restart");
        }
        life.vendor.behaves(|_| Conduct::Shows);
        let (mine, theirs) = (life.texts("home", 1).await, life.texts("ann", 1).await);
        life.quiet().await;
        let codes = [codes(life, "home"), codes(life, "ann")].concat();
        assert_eq!(codes.len(), 2, "{mine:?} {theirs:?}");
        for code in &codes {
            assert!(!store.mentions(code));
        }
        let transcript = life.transcript("home").await;
        let transcript = format!("{transcript:?}");
        assert!(transcript.contains(&format!("Pairing code: `{WITHHELD}`")), "{transcript}");
        let acts = life.vendor.truth(|truth| truth.acts.clone());
        let grew = acts
            .iter()
            .filter(|(_, outbound)| matches!(outbound.act, Act::Draft(_) | Act::Edit { .. }));
        assert_eq!(grew.count(), 0, "it is said at once: {acts:?}");
        // What was told is good: the digest of it is kept.
        life.vendor.say("ben", "ben", &codes[0]);
        assert!(life.texts("ben", 1).await[0].starts_with("Paired!"));
        assert!(!store.mentions(&codes[0]), "nor who says it");
    });
}

#[test]
fn a_code_that_is_never_taken_is_given_up_with_its_words() {
    let (mut world, store) = world();
    world.live(async |life| {
        let gone = || Conduct::Refuses(SendError::Gone { reason: "no such chat".into() });
        life.vendor.behaves(move |_| gone());
        life.vendor.say("ann", "ann", "hello");
        life.quiet().await;
        let acts = life.vendor.truth(|truth| truth.acts.clone());
        let Act::Post(content) = &acts[0].1.act else { panic!("{acts:?}") };
        let code = code_in(&content.text).expect("a code was tried");
        assert!(!store.mentions(&code));
    });
}

#[test]
fn a_code_that_is_approved_in_a_chat_is_nowhere_kept_whatever_comes_of_it() {
    let (mut world, store) = world();
    world.live(async |life| {
        life.vendor.say("ann", "ann", "hello");
        life.texts("ann", 1).await;
        let code = codes(life, "ann").remove(0);
        for (place, typed) in ["AAAAAAAA", &code].into_iter().enumerate() {
            life.vendor.say("alice", "home", &format!("/pair approve {typed}"));
            life.texts("home", place + 1).await;
        }
        life.quiet().await;
        let told = life.vendor.texts("home");
        assert!(told[0].contains("No open request") && told[1].contains("is let in"), "{told:?}");
        for typed in ["AAAAAAAA", &code] {
            assert!(!store.mentions(typed), "{typed}");
        }
    });
}

#[test]
fn whenever_the_process_dies_a_code_that_counts_is_told_and_then_nowhere_kept() {
    for moment in 0.. {
        let (mut world, store) = world();
        world.vendor().say("alice", "home", "/pair");
        world.vendor().say("ann", "ann", "hello");
        let end = world.live_and_die(moment, async |life| life.quiet().await);
        world.live(async |life| {
            life.texts("home", 1).await;
            life.quiet().await;
            let (mine, theirs) = (codes(life, "home"), codes(life, "ann"));
            for code in mine.iter().chain(&theirs) {
                assert!(!store.mentions(code), "moment {moment}");
            }
            let told = life.vendor.texts("home");
            let is_answered =
                !mine.is_empty() || told.iter().any(|text| text.contains("cut that off"));
            assert!(is_answered, "moment {moment}: {told:?}");
            let account = AccountId::literal("main");
            let book = life.disk.guests(&account).await.expect("reads").book;
            let asking = book.requests(life.now()).count();
            assert_eq!(asking > 0, !theirs.is_empty(), "moment {moment}: {theirs:?}");
            assert!(end == End::Died || (mine.len(), theirs.len()) == (1, 1));
        });
        if end == End::Over {
            assert!(moment > 8, "there were moments to die at: {moment}");
            return;
        }
    }
}
