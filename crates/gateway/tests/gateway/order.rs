//! One turn at a time and in order within a session; side by side across sessions; bounded always.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use talaria_clock::{Clock, SystemClock};
use talaria_gateway::{Standing, TurnState, TurnStatus};
use talaria_model::{Failure, Word};
use talaria_store::Store;

use crate::world::{Conduct, SIMPLE, Verb, World, agent, key};

/// How many turns run at the moment, and how many did at most.
#[derive(Clone, Default)]
struct Crowd {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Crowd {
    fn enter(&self) -> Place {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        Place(self.clone())
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

struct Place(Crowd);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Echoes after so many seconds, without listening in the meantime.
fn slow(seconds: u64, crowd: &Crowd) -> Arc<dyn talaria_agent::Agent> {
    let crowd = crowd.clone();
    agent(move |stage| {
        let place = crowd.enter();
        async move {
            SystemClock.sleep(Duration::from_secs(seconds)).await;
            drop(place);
            let answer = stage.echo();
            stage.finish(&answer).await;
        }
    })
}

#[test]
fn messages_of_one_session_are_answered_one_turn_at_a_time_and_in_order() {
    let crowd = Crowd::default();
    let mut world = World::new(SIMPLE).with_agent(slow(10, &crowd));
    world.live(async |life| {
        for n in 1..=4 {
            life.vendor.say("alice", "home", &n.to_string());
            life.pass_seconds(4).await;
        }
        let texts = life.texts("home", 3).await;
        assert_eq!(texts, ["echo: 1", "echo: 2 / 3", "echo: 4"]);
        assert_eq!(crowd.most(), 1);
    });
}

#[test]
fn sessions_do_not_wait_for_each_other() {
    let crowd = Crowd::default();
    let mut world = World::new(SIMPLE).with_agent(slow(10, &crowd));
    world.live(async |life| {
        for n in 0..50 {
            life.vendor.say("alice", &format!("chat-{n}"), "hello");
        }
        life.pass_seconds(11).await;
        assert_eq!(life.vendor.truth(|truth| truth.shown.len()), 50);
        assert_eq!(crowd.most(), 50);
    });
}

#[test]
fn no_more_turns_run_at_once_than_there_are_places() {
    let crowd = Crowd::default();
    let mut world = World::new(SIMPLE).with_agent(slow(10, &crowd));
    world.limits.turns_at_once = 3;
    world.live(async |life| {
        for n in 0..20 {
            life.vendor.say("alice", &format!("chat-{n}"), "hello");
        }
        life.pass_seconds(35).await;
        assert_eq!(life.vendor.truth(|truth| truth.shown.len()), 9);
        life.quiet().await;
        assert_eq!(life.vendor.truth(|truth| truth.shown.len()), 20);
        assert_eq!(crowd.most(), 3);
    });
}

#[test]
fn a_turn_that_waits_for_a_place_is_told_apart_from_one_that_works() {
    let crowd = Crowd::default();
    let mut world = World::new(SIMPLE).with_agent(slow(10, &crowd));
    world.limits.turns_at_once = 1;
    world.live(async |life| {
        let standing = async |chat: &str| {
            let session = life.disk.load(&key(&life.vendor.dm(chat))).await.unwrap().unwrap();
            let turn = &session.hand().expect("a turn in hand").turn;
            life.gateway.standing(turn, &life.vendor.account())
        };
        for chat in ["home", "work", "garden"] {
            life.vendor.say("alice", chat, "hello");
            life.pass_seconds(2).await;
        }
        let waits = |ahead: usize| Standing::WaitsForPlace { working: 1, ahead };
        assert_eq!(standing("home").await, Standing::Works);
        assert_eq!(standing("work").await, waits(0));
        assert_eq!(standing("garden").await, waits(1));
        let turns = life.gateway.turns();
        let count = |state| TurnStatus::count(&turns, state).0;
        assert_eq!((count(TurnState::Working), count(TurnState::Waiting)), (1, 2));
        life.pass_seconds(6).await;
        assert_eq!(standing("work").await, Standing::Works);
        assert_eq!(standing("garden").await, waits(0));
        let turns = life.gateway.turns();
        let since = |state| TurnStatus::count(&turns, state).1.expect("one of them");
        assert!(since(TurnState::Working) > since(TurnState::Waiting), "not the time it waited");
    });
}

/// Five hundred messages to a busy session, with little room and a disk that takes its time.
fn flood(lag: Duration) -> Vec<String> {
    let crowd = Crowd::default();
    let mut world = World::new(SIMPLE).with_agent(slow(1, &crowd));
    world.limits.inbox = 16;
    world.limits.outbox = 4;
    world.rules.room = 8;
    world.disk.lags(lag);
    let texts = world.live(async |life| {
        for n in 0..500 {
            life.vendor.say("alice", "home", &format!("m{n}"));
            life.pass(Duration::from_millis(n % 7)).await;
        }
        life.quiet().await;
        life.vendor.texts("home")
    });
    assert_eq!(crowd.most(), 1);
    texts
}

#[track_caller]
fn each_once_in_order(texts: &[String]) {
    let answered: Vec<&str> = texts
        .iter()
        .flat_map(|text| text.strip_prefix("echo: ").expect("an echo").split(" / "))
        .collect();
    let said: Vec<String> = (0..500).map(|n| format!("m{n}")).collect();
    assert_eq!(answered, said);
}

#[test]
fn five_hundred_messages_to_a_busy_session_are_all_answered_once_and_in_order() {
    each_once_in_order(&flood(Duration::ZERO));
}

#[test]
fn a_flood_on_a_slow_disk_is_answered_once_and_in_order() {
    each_once_in_order(&flood(Duration::from_millis(3)));
}

#[test]
fn what_arrives_while_the_journal_is_being_read_is_not_forgotten() {
    let mut world = World::new(SIMPLE).with_agent(slow(1, &Crowd::default()));
    world.limits.inbox = 1;
    world.rules.room = 1;
    world.disk.answers_late(Verb::Unread, Duration::from_millis(500));
    world.live(async |life| {
        for n in 1..=4 {
            life.vendor.say("alice", "home", &n.to_string());
        }
        // The first has its turn, and the others are being fetched from the journal.
        life.pass(Duration::from_millis(250)).await;
        life.vendor.say("alice", "home", "5");
        life.quiet().await;
        let texts = life.vendor.texts("home").join(" / ");
        assert_eq!(texts.replace("echo: ", ""), "1 / 2 / 3 / 4 / 5");
    });
}

#[test]
fn what_is_decided_while_the_outbox_is_being_read_is_not_forgotten() {
    let mut world = World::new(SIMPLE);
    world.limits.outbox = 1;
    world.disk.answers_late(Verb::Parcels, Duration::from_millis(500));
    world.vendor().behaves(|_| Conduct::ShowsAfter(Duration::from_millis(200)));
    world.live(async |life| {
        for n in 1..=3 {
            life.vendor.say("alice", "home", &format!("/nope-{n}"));
        }
        // Two have been sent, and the third is being fetched from the outbox.
        life.pass(Duration::from_millis(600)).await;
        life.vendor.say("alice", "home", "/nope-4");
        life.quiet().await;
        let texts = life.vendor.texts("home");
        let expected: Vec<String> = (1..=4)
            .map(|n| format!("There is no command `/nope-{n}`. `/help` lists what there is."))
            .collect();
        assert_eq!(texts, expected);
    });
}

#[test]
fn a_stop_overtakes_what_waits() {
    let deaf = agent(|stage| async move {
        if stage.turn.id.number == 1 {
            std::future::pending::<()>().await;
        }
        let answer = stage.echo();
        stage.finish(&answer).await;
    });
    let mut world = World::new(SIMPLE).with_agent(deaf);
    world.limits.inbox = 16;
    world.rules.room = 8;
    world.live(async |life| {
        for n in 0..200 {
            life.vendor.say("alice", "home", &format!("m{n}"));
        }
        life.pass_seconds(60).await;
        let stopped = life.now();
        life.vendor.say("alice", "home", "/stop");
        life.until("a stop", |vendor| vendor.texts("home").iter().any(|text| text == "Stopped."))
            .await;
        assert!(life.now().since(stopped) <= Duration::from_secs(1));
        life.quiet().await;
    });
}

#[test]
fn many_stops_at_once_are_all_dealt_with() {
    let deaf = agent(|_| std::future::pending());
    World::new(SIMPLE).with_agent(deaf).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        for _ in 0..50 {
            life.vendor.press_stop("alice", "home");
        }
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts.iter().filter(|text| *text == "Stopped.").count(), 1, "{texts:?}");
    });
}

#[test]
fn a_message_that_steers_a_turn_and_is_taken_becomes_part_of_it() {
    let listening = agent(|mut stage| async move {
        let Word::Steer(steer) = stage.hear().await else {
            return stage.fail(Failure::Stopped).await;
        };
        stage.took(vec![steer.seq]).await;
        let answer = format!("{} + {}", stage.echo(), steer.message.text);
        stage.finish(&answer).await;
    });
    World::new(SIMPLE).with_agent(listening).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        life.vendor.say("alice", "home", "in French");
        assert_eq!(life.texts("home", 1).await, ["echo: hello + in French"]);
        life.quiet().await;
        assert_eq!(life.vendor.texts("home").len(), 1, "it does not get a turn of its own");
    });
}

#[test]
fn a_message_that_steers_a_turn_and_is_not_taken_gets_the_next_turn() {
    let crowd = Crowd::default();
    World::new(SIMPLE).with_agent(slow(10, &crowd)).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        life.vendor.say("alice", "home", "in French");
        assert_eq!(life.texts("home", 2).await, ["echo: hello", "echo: in French"]);
    });
}

#[test]
fn a_message_that_could_not_be_told_to_the_turn_is_not_overtaken_by_later_ones() {
    // Takes whatever it has been told, twice, and answers with all of it.
    let twice = agent(|mut stage| async move {
        let mut answer = stage.said();
        if stage.turn.id.number == 1 {
            for _ in 0..2 {
                SystemClock.sleep(Duration::from_secs(10)).await;
                let mut seqs = Vec::new();
                while let Ok(Word::Steer(steer)) = stage.words.try_recv() {
                    answer.push_str(&format!(" / {}", steer.message.text));
                    seqs.push(steer.seq);
                }
                stage.took(seqs).await;
            }
        }
        stage.finish(&format!("echo: {answer}")).await;
    });
    World::new(SIMPLE).with_agent(twice).live(async |life| {
        life.vendor.say("alice", "home", "m0");
        life.pass_seconds(1).await;
        for n in 1..50 {
            life.vendor.say("alice", "home", &format!("m{n}"));
        }
        life.pass_seconds(12).await;
        for n in 50..60 {
            life.vendor.say("alice", "home", &format!("m{n}"));
        }
        life.quiet().await;
        let texts = life.vendor.texts("home").join(" / ");
        let answered: Vec<&str> =
            texts.split(" / ").map(|text| text.trim_start_matches("echo: ")).collect();
        let said: Vec<String> = (0..60).map(|n| format!("m{n}")).collect();
        assert_eq!(answered, said);
    });
}

#[test]
fn an_idle_session_leaves_memory_and_comes_back() {
    World::new(SIMPLE).live(async |life| {
        for n in 0..20 {
            life.vendor.say("alice", &format!("chat-{n}"), "hello");
        }
        life.quiet().await;
        assert_eq!(life.gateway.lanes_in_memory(), 20);
        life.pass_seconds(11).await;
        assert_eq!(life.gateway.lanes_in_memory(), 0);
        life.vendor.say("alice", "chat-7", "still there?");
        assert_eq!(life.texts("chat-7", 2).await[1], "echo: still there?");
    });
}

#[test]
fn beyond_the_limit_idle_sessions_leave_at_once() {
    let mut world = World::new(SIMPLE);
    world.limits.lingering = 5;
    world.live(async |life| {
        for n in 0..100 {
            life.vendor.say("alice", &format!("chat-{n}"), "hello");
        }
        life.quiet().await;
        life.pass(Duration::from_millis(10)).await;
        assert!(life.gateway.lanes_in_memory() <= 5, "{}", life.gateway.lanes_in_memory());
        life.pass_seconds(11).await;
        assert_eq!(life.gateway.lanes_in_memory(), 0);
    });
}

#[test]
fn a_message_that_is_read_before_it_is_handed_over_is_answered_once() {
    let mut world = World::new(SIMPLE).with_agent(slow(1, &Crowd::default()));
    world.limits.inbox = 2;
    // The row is in the journal long before its lane is told.
    world.disk.answers_late(Verb::Admit, Duration::from_millis(300));
    world.live(async |life| {
        for n in 0..40 {
            life.vendor.say("alice", "home", &n.to_string());
            life.pass(Duration::from_millis(70)).await;
        }
        life.quiet().await;
        life.pass_seconds(20).await;
        let answered = life.vendor.texts("home").join(" / ").replace("echo: ", "");
        let said: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        assert_eq!(answered, said.join(" / "));
    });
}

#[test]
fn an_answer_that_is_read_before_it_is_handed_over_is_sent_once() {
    for (outbox, shows, gap) in [(1, 400, 1300), (1, 350, 1300), (2, 400, 1300), (2, 300, 2500)] {
        let mut world = World::new(SIMPLE);
        world.limits.outbox = outbox;
        // The parcel is in the outbox long before its chat is told.
        world.disk.answers_late(Verb::Commit, Duration::from_millis(300));
        world.vendor().behaves(move |_| Conduct::ShowsAfter(Duration::from_millis(shows)));
        world.live(async |life| {
            for burst in 0..20 {
                for n in 0..(burst % 7) {
                    life.vendor.say("alice", "home", &format!("/nope-{burst}-{n}"));
                }
                life.pass(Duration::from_millis(gap)).await;
            }
            life.quiet().await;
            life.pass_seconds(20).await;
            let texts = life.vendor.texts("home");
            let different: std::collections::BTreeSet<_> = texts.iter().collect();
            assert_eq!(different.len(), texts.len(), "outbox {outbox}, {shows} ms, {gap} ms");
        });
    }
}
