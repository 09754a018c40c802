//! What nobody is to know any more, or ever: pairing codes that were told, and secrets of ours that others repeat.
//! Nothing that is kept has them.

use std::sync::Arc;
use std::time::Duration;

use talaria_model::{AccountId, Act, InboundKind, MediaKind, Message, SenderId, WITHHELD};
use talaria_platform::{FetchError, SendError};
use talaria_session::{Access, Strangers};
use talaria_store::{MemoryStore, Store};

use crate::supervision::{Keeper, SECRET};
use crate::world::{Conduct, EDITING, End, Handing, Life, World};

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

/// A world whose secret nobody is to be told. Also all that is kept, to look through.
fn discreet() -> (World, MemoryStore) {
    let mut world = World::new(EDITING);
    world.steward = Arc::new(Keeper::default());
    let store = MemoryStore::new();
    world.disk.kept = Arc::new(store.clone());
    (world, store)
}

#[test]
fn a_platform_that_repeats_our_secret_is_not_repeated() {
    type Failure = fn(String) -> SendError;
    let failures: [(Failure, usize); 3] = [
        (|reason| SendError::Rejected { reason }, 1),
        (|reason| SendError::Gone { reason }, 1),
        (|reason| SendError::Unconfirmed { reason }, 3),
    ];
    for (failure, times) in failures {
        let (mut world, store) = discreet();
        world.live(async |life| {
            let said = format!("Bad Request: {SECRET} is wrong");
            life.vendor.first((0..times).map(|_| Conduct::Refuses(failure(said.clone()))));
            life.vendor.say("alice", "home", "hello");
            life.quiet().await;
            life.vendor.say("alice", "home", "are you there?");
            life.quiet().await;
            let told = life.vendor.texts("home").concat();
            let notice = "1 earlier message could not be delivered";
            assert!(told.contains(notice) && told.contains("hidden"), "{told}");
            assert!(!told.contains(SECRET) && !store.mentions(SECRET), "{told}");
        });
    }
}

#[test]
fn what_a_platform_says_at_length_is_cut_once_its_secrets_are_out() {
    for ahead in [480, 490, 495, 499] {
        let (mut world, store) = discreet();
        world.live(async |life| {
            let reason = format!("{}{}", "x".repeat(ahead), SECRET.repeat(100));
            life.vendor.first([Conduct::Refuses(SendError::Rejected { reason })]);
            life.vendor.say("alice", "home", "hello");
            life.quiet().await;
            assert!(store.mentions(&"x".repeat(ahead)), "it is told as far as there is room");
            assert!(!store.mentions(&SECRET[..6]), "{ahead}");
        });
    }
}

#[test]
fn a_secret_in_the_name_of_a_file_or_in_why_it_is_not_there_is_taken_out() {
    for refused in [true, false] {
        let (mut world, store) = discreet();
        world.live(async |life| {
            let reason = format!("no file at bot{SECRET}/getFile");
            life.vendor.hands_out(move |_| match refused {
                true => Handing::Refuses(FetchError::Refused { reason: reason.clone() }),
                false => Handing::Hands,
            });
            let media = life.vendor.keep(MediaKind::Document, &format!("{SECRET}.txt"), b"hello");
            let message = Message { text: "see".into(), media: vec![media], ..Message::default() };
            life.vendor.does("alice", life.vendor.dm("home"), InboundKind::Said(message));
            life.quiet().await;
            assert_eq!(life.vendor.texts("home").len(), 1);
            assert!(!store.mentions(SECRET), "refused: {refused}");
        });
    }
}
