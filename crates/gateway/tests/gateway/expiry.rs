//! A conversation that is over by its reset policy is put away.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use talaria_gateway::Finalizer;
use talaria_model::{SessionId, Timestamp};
use talaria_store::Store;

use crate::world::{Disk, Life, SIMPLE, Verb, World, key};

/// What somebody does who is to let go of a conversation.
#[derive(Clone, Copy)]
enum Lets {
    Go,
    NotGo,
    GoTheSecondTime,
    Hang,
    Panic,
}

struct Keeper {
    lets: Lets,
    asked: Arc<Mutex<Vec<SessionId>>>,
}

#[async_trait]
impl Finalizer for Keeper {
    async fn finalize(&self, life: &SessionId) -> Result<(), String> {
        let times = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(life.clone());
            asked.len()
        };
        match self.lets {
            Lets::Go => Ok(()),
            Lets::GoTheSecondTime if times == 2 => Ok(()),
            Lets::NotGo | Lets::GoTheSecondTime => Err("it is still needed".into()),
            Lets::Hang => std::future::pending().await,
            Lets::Panic => panic!("the test says so"),
        }
    }
}

/// A world in which conversations are over after two minutes, and who is asked to let go of them.
fn world(lets: Lets) -> (World, Arc<Mutex<Vec<SessionId>>>) {
    let mut world = World::new(SIMPLE);
    world.rules.reset.idle = Duration::from_secs(120);
    let asked = Arc::new(Mutex::new(Vec::new()));
    world.finalizers = vec![Arc::new(Keeper { lets, asked: asked.clone() })];
    (world, asked)
}

async fn stands(life: &Life) -> talaria_session::Life {
    let session = life.disk.load(&key(&life.vendor.dm("home"))).await;
    session.expect("the store answers").expect("there is one").life
}

/// Seconds until a conversation is put away in which one thing was said.
async fn put_away_after(life: &Life) -> u64 {
    let begun: Timestamp = life.now();
    life.vendor.say("alice", "home", "hello");
    life.texts("home", 1).await;
    while stands(life).await != talaria_session::Life::Finalized {
        life.pass_seconds(10).await;
        assert!(life.now().since(begun) < Duration::from_secs(3600), "it is never put away");
    }
    life.now().since(begun).as_secs()
}

#[test]
fn a_conversation_is_put_away_when_everybody_lets_go_or_had_three_tries() {
    // The first look comes after a minute, when it is not over, and then one every five minutes.
    for (lets, tries, minutes) in [
        (Lets::Go, 1, 6),
        (Lets::GoTheSecondTime, 2, 11),
        (Lets::NotGo, 3, 16),
        (Lets::Panic, 3, 16),
        (Lets::Hang, 3, 17),
    ] {
        let (mut world, asked) = world(lets);
        world.live(async |life| {
            let seconds = put_away_after(life).await;
            assert_eq!(seconds / 60, minutes, "{tries} tries");
            assert_eq!(asked.lock().unwrap().len(), tries);
            life.pass_seconds(1200).await;
            assert_eq!(asked.lock().unwrap().len(), tries, "what is put away stays so");
        });
    }
}

/// How many of these conversations are put away.
async fn put_away(life: &Life, chats: &[&str]) -> usize {
    let mut many = 0;
    for chat in chats {
        let session = life.disk.kept.load(&key(&life.vendor.dm(chat))).await.unwrap().unwrap();
        many += usize::from(session.life == talaria_session::Life::Finalized);
    }
    many
}

#[test]
fn a_conversation_that_cannot_be_read_is_no_reason_to_keep_the_others() {
    let breaks: [fn(&Disk); 2] =
        [|disk| disk.is_damaged(Verb::Load, 1), |disk| disk.panics(Verb::Load, 1)];
    for breaks in breaks {
        let (mut world, _) = world(Lets::Go);
        world.live(async |life| {
            let chats = ["one", "two", "three"];
            for chat in chats {
                life.vendor.say("alice", chat, "hello");
                life.texts(chat, 1).await;
            }
            // The look after six minutes is the first one at which they are over.
            life.pass_seconds(350).await;
            breaks(&life.disk);
            life.pass_seconds(20).await;
            assert_eq!(put_away(life, &chats).await, 2);
            life.pass_seconds(300).await;
            assert_eq!(put_away(life, &chats).await, 3, "it is looked at again");
        });
    }
}

#[test]
fn who_puts_conversations_away_and_breaks_down_begins_again() {
    let (mut world, _) = world(Lets::Go);
    world.disk.panics(Verb::Watched, 1);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.pass_seconds(600).await;
        assert_eq!(put_away(life, &["home"]).await, 1);
    });
}

#[test]
fn who_forgets_what_is_old_and_breaks_down_begins_again() {
    let (mut world, _) = world(Lets::Go);
    world.limits.keep = Duration::from_secs(60);
    world.disk.panics(Verb::Prune, 1);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        // It looks every hour, and breaks down at the first look.
        life.pass_seconds(2 * 3600 + 300).await;
        let left = life.disk.kept.prune(Timestamp::from_millis(i64::MAX)).await;
        assert_eq!(left.unwrap(), 0, "everything was forgotten already");
    });
}

#[test]
fn a_conversation_in_which_something_is_said_is_not_put_away() {
    let (mut world, asked) = world(Lets::Go);
    world.live(async |life| {
        for round in 0..10 {
            life.vendor.say("alice", "home", "hello");
            life.texts("home", round + 1).await;
            life.pass_seconds(100).await;
        }
        assert_eq!(asked.lock().unwrap().len(), 0);
    });
}

#[test]
fn what_is_said_after_a_conversation_was_put_away_begins_another() {
    let (mut world, asked) = world(Lets::Go);
    world.live(async |life| {
        put_away_after(life).await;
        life.vendor.say("alice", "home", "again");
        let texts = life.texts("home", 3).await;
        assert!(texts[1].starts_with("◐ This is a new conversation"), "{texts:?}");
        assert_eq!(texts[2], "echo: again");
        life.pass_seconds(900).await;
        let asked = asked.lock().unwrap();
        assert!(asked.len() == 2 && asked[0] != asked[1], "{asked:?}");
    });
}
