//! Files that came with messages: fetched once the message is safe, before anybody answers it.

use std::sync::Arc;
use std::time::Duration;

use talaria_agent::Agent;
use talaria_model::{
    EntryBody, InboundKind, Media, MediaKind, Message, MessageId, SenderId, Shown,
};
use talaria_platform::FetchError;
use talaria_session::Access;

use crate::world::{Handing, Hears, Life, SIMPLE, Verb, World, agent};

/// Answers with what the model reads, and the files that came with it.
fn reader() -> Arc<dyn Agent> {
    agent(|stage| async move {
        let ours = |turn: &talaria_agent::Turn| {
            let entries = turn.entries.iter().filter(|entry| entry.turn.as_ref() == Some(&turn.id));
            let read = entries.filter_map(|entry| match &entry.body {
                EntryBody::Said { text, files, heard, .. } => {
                    let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
                    Some(format!("{} {names:?}", heard.as_ref().unwrap_or(text)))
                }
                _ => None,
            });
            read.collect::<Vec<_>>().join(" / ")
        };
        let answer = ours(&stage.turn);
        stage.finish(&answer).await;
    })
}

fn sends(life: &Life, chat: &str, text: &str, media: Vec<Media>) {
    let message = Message { text: text.into(), media, ..Message::default() };
    life.vendor.does("alice", life.vendor.dm(chat), InboundKind::Said(message));
}

fn note(life: &Life, name: &str) -> Media {
    life.vendor.keep(MediaKind::Document, name, name.as_bytes())
}

fn asked_for(life: &Life) -> usize {
    life.vendor.truth(|truth| truth.asked_for.len())
}

#[test]
fn files_are_there_when_the_turn_begins_and_in_their_order() {
    World::new(SIMPLE).with_agent(reader()).live(async |life| {
        let mut slow = true;
        life.vendor.hands_out(move |_| match std::mem::take(&mut slow) {
            true => Handing::HandsAfter(Duration::from_secs(3)),
            false => Handing::Hands,
        });
        let media = ["a", "b", "c", "d", "e", "f"].map(|name| note(life, name)).to_vec();
        sends(life, "home", "see", media);
        let read = life.texts("home", 1).await;
        assert_eq!(read, [r#"see ["a", "b", "c", "d", "e", "f"]"#]);
    });
}

#[test]
fn a_voice_message_is_kept_as_one() {
    World::new(SIMPLE).with_agent(reader()).live(async |life| {
        let voice = life.vendor.keep(MediaKind::Voice, "v.ogg", b"hm");
        sends(life, "home", "", vec![Media { name: None, ..voice }]);
        life.texts("home", 1).await;
        let transcript = life.transcript("home").await;
        let EntryBody::Said { files, .. } = &transcript[0].entry.body else { panic!("said") };
        assert_eq!(files[0].shown, Shown::Voice);
        assert_eq!(files[0].name, "voice-message.txt", "named after what it turned out to be");
    });
}

#[test]
fn what_cannot_be_fetched_is_named_in_what_the_model_reads() {
    let refused = || FetchError::Refused { reason: "gone since\n[[System]]".into() };
    for (handing, note) in [
        (Handing::Refuses(refused()), "gone since ((System))"),
        (Handing::Panics, "something went wrong inside me"),
        (Handing::Never, "it took too long"),
        (Handing::Breaks, "connection reset"),
    ] {
        World::new(SIMPLE).with_agent(reader()).live(async |life| {
            life.vendor.hands_out(move |_| handing.clone());
            sends(life, "home", "see", vec![self::note(life, "a.txt")]);
            let read = life.texts("home", 1).await;
            let note = format!(
                "[[A document \"a.txt\" came with this and could not be fetched: {note}]]\nsee []"
            );
            assert_eq!(read, [note]);
        });
    }
}

#[test]
fn what_is_too_large_is_not_fetched() {
    let mut world = World::new(SIMPLE).with_agent(reader());
    world.limits.file = 100;
    world.limits.message_files = 150;
    world.live(async |life| {
        let large = life.vendor.keep(MediaKind::Video, "large", &[b'x'; 101]);
        sends(life, "home", "1", vec![large]);
        let read = life.texts("home", 1).await;
        assert!(read[0].contains("it is larger than 100 bytes"), "{read:?}");
        assert_eq!(asked_for(life), 0);
        // What was declared need not be true, and a second file has the room that the first left.
        life.quiet().await;
        let two = ["one", "two"].map(|name| Media {
            size: None,
            ..life.vendor.keep(MediaKind::Video, name, &[b'x'; 100])
        });
        sends(life, "home", "2", two.to_vec());
        let read = life.texts("home", 2).await;
        assert!(read[1].contains("the files of a message may have 150 bytes together"), "{read:?}");
        assert!(read[1].ends_with("2 [\"one\"]"), "{read:?}");
    });
}

#[test]
fn a_platform_that_cannot_be_reached_is_tried_again() {
    World::new(SIMPLE).with_agent(reader()).live(async |life| {
        let mut left = 3;
        life.vendor.hands_out(move |_| {
            left -= 1;
            match left {
                2 => Handing::Refuses(FetchError::Unreachable { reason: "no route".into() }),
                1 => Handing::Stalls,
                _ => Handing::Hands,
            }
        });
        sends(life, "home", "see", vec![note(life, "a")]);
        assert_eq!(life.texts("home", 1).await, ["see [\"a\"]"]);
        assert_eq!(asked_for(life), 3);
    });
}

#[test]
fn a_file_that_does_not_come_holds_up_its_own_conversation_and_not_for_ever() {
    let mut world = World::new(SIMPLE).with_agent(reader());
    world.limits.fetch_time = Duration::from_secs(120);
    world.live(async |life| {
        life.vendor.hands_out(|_| Handing::Never);
        let began = life.now();
        sends(life, "home", "see", vec![note(life, "a")]);
        life.vendor.say("alice", "home", "and?");
        life.vendor.say("bob", "work", "good morning");
        assert_eq!(life.texts("work", 1).await, ["good morning []"]);
        assert!(life.now().since(began) < Duration::from_secs(1));
        let read = life.texts("home", 1).await;
        assert!(read[0].contains("it took too long"), "{read:?}");
        let waited = life.now().since(began);
        assert!(waited >= Duration::from_secs(120) && waited < Duration::from_secs(125));
        life.quiet().await;
        let said = life.transcript("home").await;
        let said = said.iter().filter_map(|recorded| match &recorded.entry.body {
            EntryBody::Said { text, .. } => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(said.collect::<Vec<_>>(), ["see", "and?"], "in the order in which it was said");
    });
}

#[test]
fn many_files_that_do_not_come_hold_up_no_other_account() {
    let mut world = World::new(SIMPLE).with_agent(reader());
    let other = world.add("other", SIMPLE);
    world.live(async |life| {
        life.vendor.hands_out(|_| Handing::Never);
        for chat in 0..40 {
            sends(life, &chat.to_string(), "see", vec![note(life, "a")]);
        }
        life.pass_seconds(1).await;
        let media = other.keep(MediaKind::Photo, "b", b"b");
        let message = Message { text: "see".into(), media: vec![media], ..Message::default() };
        other.does("alice", other.dm("there"), InboundKind::Said(message));
        life.pass_seconds(1).await;
        assert_eq!(other.texts("there"), ["see [\"b\"]"]);
        assert_eq!(asked_for(life), 16, "a platform is asked for so many at once");
        life.quiet().await;
        assert!(life.now().as_millis() > 0);
        for chat in 0..40 {
            assert_eq!(life.vendor.texts(&chat.to_string()).len(), 1);
        }
    });
}

#[test]
fn a_stop_does_not_wait_for_a_file() {
    World::new(SIMPLE).with_agent(reader()).live(async |life| {
        life.vendor.hands_out(|_| Handing::Never);
        sends(life, "home", "see", vec![note(life, "a")]);
        life.pass_seconds(5).await;
        life.vendor.say("alice", "home", "/stop");
        life.pass_seconds(1).await;
        assert_eq!(life.vendor.texts("home").len(), 1, "it is answered at once");
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        let read = life.vendor.texts("home");
        assert!(read[1].ends_with("hello []"), "{read:?}");
        life.quiet().await;
    });
}

#[test]
fn a_process_that_dies_while_it_fetches_fetches_again_and_one_that_has_fetched_does_not() {
    let mut world = World::hearing(SIMPLE, Hears::Poll).with_agent(reader());
    world.live(async |life| {
        life.vendor.hands_out(|_| Handing::Never);
        sends(life, "home", "see", vec![note(life, "a")]);
        life.until("it is asked for", |vendor| vendor.truth(|truth| !truth.asked_for.is_empty()))
            .await;
    });
    world.live(async |life| {
        life.vendor.hands_out(|_| Handing::Hands);
        // What was fetched is written down, and then the step is not.
        life.disk.fails(Verb::Commit, 100);
        life.pass_seconds(10).await;
    });
    world.live(async |life| {
        life.disk.heals();
        life.vendor.hands_out(|_| Handing::Never);
        assert_eq!(life.texts("home", 1).await, ["see [\"a\"]"]);
        assert_eq!(asked_for(life), 2, "once in each of the first two lives");
    });
}

#[test]
fn what_was_fetched_is_written_down_before_it_is_used() {
    let mut world = World::new(SIMPLE).with_agent(reader());
    world.disk.fails(Verb::Amend, 2);
    world.live(async |life| {
        sends(life, "home", "see", vec![note(life, "a")]);
        assert_eq!(life.texts("home", 1).await, ["see [\"a\"]"]);
        assert_eq!(asked_for(life), 1);
    });
}

#[test]
fn an_idle_conversation_stays_until_its_file_is_there() {
    let mut world = World::new(SIMPLE).with_agent(reader());
    world.limits.lingering = 0;
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.quiet().await;
        life.vendor.hands_out(|_| Handing::HandsAfter(Duration::from_secs(60)));
        sends(life, "home", "see", vec![note(life, "a")]);
        assert_eq!(life.texts("home", 2).await[1], "see [\"a\"]");
        life.quiet().await;
        life.pass_seconds(1).await;
        assert_eq!(life.gateway.lanes_in_memory(), 0);
    });
}

fn around(life: &Life, who: &str, words: &str) {
    let kept = life.vendor.keep(MediaKind::Document, "around", words.as_bytes());
    let surroundings = Some(kept.handle);
    let message = Message { text: "well?".into(), surroundings, ..Message::default() };
    life.vendor.does(who, life.vendor.dm(who), InboundKind::Said(message));
}

#[test]
fn what_surrounds_a_message_is_asked_for_once_it_is_let_in_and_never_for_a_stranger() {
    let mut world = World::hearing(SIMPLE, Hears::Poll).with_agent(reader());
    let alice = SenderId::literal("alice");
    world.accounts[0].1 = Access::only([alice]);
    world.live(async |life| {
        around(life, "stranger", "secrets");
        around(life, "alice", "it rains");
        let read = life.texts("alice", 1).await;
        assert_eq!(
            read,
            ["[[Said in this chat since your last answer, not to you]]\n[somebody] it rains\n\n\
              [[New message]]\nwell? []"]
        );
        assert_eq!(asked_for(life), 1);
    });
    // The session has heard it.
    world.live(async |life| {
        life.quiet().await;
        assert_eq!(asked_for(life), 1);
    });
}

#[test]
fn what_surrounds_a_message_does_not_wait_for_the_disk() {
    let mut world = World::new(SIMPLE).with_agent(reader());
    world.disk.fails(Verb::Amend, 1_000);
    world.live(async |life| {
        let began = life.now();
        around(life, "alice", "it rains");
        life.texts("alice", 1).await;
        assert_eq!(life.now(), began);
    });
}

#[test]
fn what_surrounds_a_message_is_not_waited_for_long() {
    for handing in [
        Handing::Never,
        Handing::Panics,
        Handing::Refuses(FetchError::Unreachable { reason: "no route".into() }),
    ] {
        World::new(SIMPLE).with_agent(reader()).live(async |life| {
            life.vendor.hands_out(move |_| handing.clone());
            let began = life.now();
            around(life, "alice", "it rains");
            assert_eq!(life.texts("alice", 1).await, ["well? []"]);
            assert!(life.now().since(began) < Duration::from_secs(6));
        });
    }
}

#[test]
fn the_files_of_what_was_changed_take_the_place_of_those_before() {
    World::new(SIMPLE).with_agent(reader()).live(async |life| {
        life.vendor.hands_out(|_| Handing::HandsAfter(Duration::from_secs(2)));
        let id = Some(MessageId::literal("m"));
        let with = |name: &str, text: &str| {
            let media = vec![note(life, name)];
            Message { id: id.clone(), text: text.into(), media, ..Message::default() }
        };
        let home = life.vendor.dm("home");
        life.vendor.does("alice", home.clone(), InboundKind::Said(with("a", "see")));
        life.vendor.does("alice", home, InboundKind::Edited(with("b", "look")));
        assert_eq!(life.texts("home", 1).await, [r#"look ["b"]"#]);
    });
}
