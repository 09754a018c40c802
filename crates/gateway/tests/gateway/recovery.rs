//! What a run leaves, the next one takes up.

use std::sync::Arc;
use std::time::Duration;

use talaria_agent::Agent;
use talaria_clock::{Clock, SystemClock};
use talaria_gateway::{Drain, Standing};
use talaria_model::{AgentEvent, CallId, Cost, EntryBody, ToolCall, Usage};
use talaria_platform::ConnectError;
use talaria_session::ResumeReason;
use talaria_store::Store;

use crate::questions::question;
use crate::world::{Conduct, MARK, SIMPLE, Vendor, Verb, World, agent, echo, finished, key, keyed};

/// Works for twenty minutes on what it is told.
fn slow() -> Arc<dyn Agent> {
    agent(|stage| async move {
        SystemClock.sleep(Duration::from_secs(20 * 60)).await;
        let answer = stage.echo();
        stage.finish(&answer).await;
    })
}

/// What somebody reads whose turn was not finished in time.
const LEFT: &str = "⏸️ I am being switched off and have not finished this yet; I go on with it when I am \
                    started again.";

#[test]
fn a_message_that_was_only_journalled_is_answered_by_the_next_run() {
    let mut world = World::new(SIMPLE);
    world.disk.answers_late(Verb::Admit, Duration::from_secs(60));
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
    });
    world.disk.answers_late(Verb::Admit, Duration::ZERO);
    world.live(async |life| {
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
        life.quiet().await;
        assert_eq!(life.vendor.texts("home").len(), 1, "its redelivery is recognised");
    });
}

#[test]
fn a_turn_in_hand_goes_on_in_the_next_run() {
    let mut world = World::new(SIMPLE).with_agent(slow());
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(60).await;
    });
    world.agent = echo();
    world.live(async |life| {
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
    });
}

#[test]
fn more_sessions_than_can_be_taken_up_at_once_are_taken_up_in_turn_and_before_what_is_new() {
    let chats: Vec<String> = (0..9).map(|n| format!("chat-{n}")).collect();
    let mut world = World::new(SIMPLE).with_agent(slow());
    world.live(async |life| {
        for chat in &chats {
            life.vendor.say("alice", chat, "old");
        }
        life.pass_seconds(60).await;
    });
    world.limits.turns_at_once = 2;
    world.agent = agent(|stage| async move {
        SystemClock.sleep(Duration::from_secs(10)).await;
        let answer = stage.echo();
        stage.finish(&answer).await;
    });
    world.live(async |life| {
        life.pass_seconds(5).await;
        for chat in &chats {
            life.vendor.say("alice", chat, "new");
        }
        life.quiet().await;
        for chat in &chats {
            let texts = life.vendor.texts(chat).join(" ").replace("echo: ", "").replace(" / ", " ");
            assert_eq!(texts, "old new", "{chat}");
        }
    });
}

#[test]
fn who_takes_sessions_up_and_breaks_down_goes_on_where_it_was() {
    // More than are read at once.
    let chats: Vec<String> = (0..510).map(|n| format!("chat-{n}")).collect();
    let mut world = World::new(SIMPLE).with_agent(slow());
    world.live(async |life| {
        for chat in &chats {
            life.vendor.say("alice", chat, "old");
        }
        life.until("everything is heard", |vendor| vendor.is_heard()).await;
        life.pass_seconds(60).await;
    });
    world.limits.turns_at_once = 2;
    world.agent = echo();
    world.live(async |life| {
        life.disk.panics(Verb::Restless, 1);
        let is_answered = |vendor: &Vendor| chats.iter().all(|chat| vendor.texts(chat).len() == 1);
        life.until("everybody is answered", is_answered).await;
    });
}

#[test]
fn what_a_turn_had_done_is_not_done_again() {
    let working = agent(|stage| async move {
        let done = stage.turn.entries.iter().any(
            |entry| matches!(&entry.body, EntryBody::Returned { output, .. } if output == "found"),
        );
        if !done {
            let call = CallId::literal("c1");
            let calls =
                vec![ToolCall { id: call.clone(), tool: "t".into(), arguments: "{}".into() }];
            let (text, usage) = ("Let me look.".to_owned(), Usage::default());
            let (files, reasoning, cost) = (vec![], None, Cost::FREE);
            stage.emit(AgentEvent::Stepped { text, files, calls, reasoning, usage, cost }).await;
            let output = "found".to_owned();
            let (files, sends) = (vec![], vec![]);
            stage
                .emit(AgentEvent::Called {
                    call,
                    output,
                    files,
                    sends,
                    failed: false,
                    refused: None,
                })
                .await;
            std::future::pending::<()>().await;
        }
        stage.finish("Found it.").await;
    });
    let mut world = World::new(SIMPLE).with_agent(working);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.pass_seconds(1).await;
    });
    world.live(async |life| {
        assert_eq!(life.texts("home", 2).await, ["Let me look.", "Found it."]);
        life.quiet().await;
        assert_eq!(life.vendor.texts("home").len(), 2);
    });
}

#[test]
fn messages_that_waited_for_the_turn_are_answered_after_it() {
    let mut world = World::new(SIMPLE).with_agent(slow());
    world.rules.room = 4;
    world.limits.inbox = 4;
    world.live(async |life| {
        for n in 1..=20 {
            life.vendor.say("alice", "home", &n.to_string());
        }
        life.until("everything is heard", |vendor| vendor.is_heard()).await;
        life.pass_seconds(60).await;
    });
    world.agent = echo();
    world.live(async |life| {
        life.vendor.say("alice", "home", "21");
        life.quiet().await;
        let texts = life.vendor.texts("home").join(" / ").replace("echo: ", "");
        let said: Vec<String> = (1..=21).map(|n| n.to_string()).collect();
        assert_eq!(texts, said.join(" / "));
    });
}

#[test]
fn what_was_heard_before_comes_before_what_is_heard_now() {
    for lag in [0, 5, 50] {
        let mut world = World::new(SIMPLE);
        world.disk.answers_late(Verb::Admit, Duration::from_secs(60));
        world.live(async |life| {
            for n in 1..=3 {
                life.vendor.say("alice", "home", &n.to_string());
            }
            life.pass_seconds(1).await;
        });
        world.vendor().say("alice", "home", "4");
        world.disk.answers_late(Verb::Admit, Duration::ZERO);
        world.disk.lags(Duration::from_millis(lag));
        world.disk.answers_late(Verb::Restless, Duration::from_millis(10 * lag));
        world.live(async |life| {
            life.quiet().await;
            let texts = life.vendor.texts("home").join(" / ").replace("echo: ", "");
            assert_eq!(texts, "1 / 2 / 3 / 4", "with a lag of {lag} ms");
        });
    }
}

#[test]
fn what_was_decided_before_comes_before_what_is_decided_now() {
    for lag in [0, 5, 50] {
        let mut world = World::new(SIMPLE);
        world.vendor().behaves(|_| {
            let after = Duration::from_secs(30);
            Conduct::Refuses(talaria_platform::SendError::Throttled { after })
        });
        world.live(async |life| {
            life.vendor.say("alice", "home", "/nope-1");
            life.vendor.say("alice", "home", "/nope-2");
            life.pass_seconds(1).await;
            // The third is in the journal, and nobody has looked at it.
            life.disk.answers_late(Verb::Admit, Duration::from_secs(60));
            life.vendor.say("alice", "home", "/nope-3");
            life.pass_seconds(1).await;
        });
        world.vendor().behaves(|_| Conduct::Shows);
        world.disk.answers_late(Verb::Admit, Duration::ZERO);
        world.disk.lags(Duration::from_millis(lag));
        world.disk.answers_late(Verb::Undelivered, Duration::from_millis(20 * lag));
        world.live(async |life| {
            let texts = life.texts("home", 3).await;
            for (n, text) in (1..).zip(&texts) {
                assert!(text.contains(&format!("nope-{n}")), "a lag of {lag} ms: {texts:?}");
            }
        });
    }
}

#[test]
fn a_parcel_that_never_left_is_sent_by_the_next_run_without_a_mark() {
    let mut world = World::new(SIMPLE).with_agent(slow());
    let away = || ConnectError::Unreachable { reason: "away".into() };
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(60).await;
        life.vendor.hangs_up(std::iter::repeat_with(away).take(50));
        life.pass_seconds(30 * 60).await;
    });
    world.vendor().truth(|truth| assert!(truth.shown.is_empty()));
    world.live(async |life| {
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
    });
}

#[test]
fn a_parcel_that_was_leaving_is_sent_by_the_next_run_marked_or_under_its_key() {
    for (can, marked) in [(SIMPLE, true), (keyed(SIMPLE), false)] {
        let mut world = World::new(can);
        world.vendor().first([Conduct::ShowsAfter(Duration::from_secs(30))]);
        world.live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.pass_seconds(10).await;
        });
        world.live(async |life| {
            let texts = life.texts("home", 1).await;
            assert!(texts[0].contains("echo: hello"));
            assert_eq!(texts[0].contains(MARK), marked, "{texts:?}");
        });
    }
}

#[test]
fn after_part_three_of_seven_only_four_to_seven_are_sent() {
    let long = agent(|stage| async move {
        let text: Vec<String> = (0..600).map(|n| format!("word{n:04}")).collect();
        stage.finish(&text.join(" ")).await;
    });
    let mut world = World::new(SIMPLE).with_agent(long);
    world.vendor().first([
        Conduct::Shows,
        Conduct::Shows,
        Conduct::Shows,
        Conduct::Refuses(talaria_platform::SendError::Throttled { after: Duration::from_secs(60) }),
    ]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 3).await;
        life.pass_seconds(1).await;
    });
    world.live(async |life| {
        life.quiet().await;
        let texts = life.vendor.texts("home");
        let words: Vec<&str> = texts.iter().flat_map(|text| text.split_whitespace()).collect();
        let expected: Vec<String> = (0..600).map(|n| format!("word{n:04}")).collect();
        assert_eq!(words, expected);
    });
}

#[test]
fn a_wait_that_a_vendor_asked_for_is_kept_over_a_restart() {
    let mut world = World::new(SIMPLE);
    let after = Duration::from_secs(1000);
    world.vendor().first([Conduct::Refuses(talaria_platform::SendError::Throttled { after })]);
    let said = world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(60).await;
        life.now()
    });
    world.live(async |life| {
        life.texts("home", 1).await;
        assert!(life.now().since(said) >= Duration::from_secs(900));
    });
}

#[test]
fn a_clean_stop_lets_turns_finish_within_the_grace() {
    let mut world = World::new(SIMPLE).with_agent(agent(|stage| async move {
        SystemClock.sleep(Duration::from_secs(10)).await;
        let answer = stage.echo();
        stage.finish(&answer).await;
    }));
    world.vendor().behaves(|_| Conduct::ShowsAfter(Duration::from_secs(5)));
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        let asked = life.now();
        life.gateway.stop(Duration::from_secs(60)).await;
        assert_eq!(life.vendor.texts("home"), ["echo: hello"], "sent and not only thought");
        let took = life.now().since(asked);
        assert!(took < Duration::from_secs(20), "no longer than needed: {took:?}");
    });
    world.live(async |life| {
        life.quiet().await;
        assert_eq!(life.vendor.texts("home").len(), 1);
    });
}

#[test]
fn a_stopping_gateway_takes_in_what_is_said_and_the_next_run_answers() {
    let mut world = World::new(SIMPLE).with_agent(slow());
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        let stopping = life.gateway.stop(Duration::from_secs(30));
        let saying = async {
            life.pass_seconds(1).await;
            life.vendor.say("bob", "work", "too late");
            life.until("it is taken in", |vendor| vendor.is_heard()).await;
            assert_eq!(life.gateway.turns().len(), 1, "no turn begins");
            life.pass_seconds(27).await;
            life.vendor.say("carol", "garden", "much too late");
        };
        tokio::join!(stopping, saying);
        assert!(life.vendor.is_heard());
    });
    let farewells = |chat: &str| world.vendor().texts(chat);
    assert_eq!(farewells("home"), [LEFT], "cut off");
    assert_eq!(farewells("work"), [LEFT], "has waited for long");
    assert!(farewells("garden").is_empty(), "hardly waits yet");
    world.agent = echo();
    world.live(async |life| {
        assert_eq!(life.texts("home", 2).await[1], "echo: hello");
        assert_eq!(life.texts("work", 2).await[1], "echo: too late");
        assert_eq!(life.texts("garden", 1).await, ["echo: much too late"]);
    });
}

/// Asks whoever says "ask", and works for ten seconds on everything.
fn ten_seconds() -> Arc<dyn Agent> {
    agent(|mut stage| async move {
        if stage.said() == "ask" {
            stage.ask(question("Sure?")).await;
        }
        SystemClock.sleep(Duration::from_secs(10)).await;
        let answer = stage.echo();
        stage.finish(&answer).await;
    })
}

#[test]
fn a_turn_that_waits_for_a_place_is_left_to_the_next_run_and_holds_up_nothing() {
    let mut world = World::new(SIMPLE).with_agent(ten_seconds());
    world.limits.turns_at_once = 1;
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        life.vendor.say("bob", "work", "waits for long");
        life.pass_seconds(6).await;
        life.vendor.say("carol", "garden", "hardly waits");
        life.pass_seconds(1).await;
        let session = life.disk.load(&key(&life.vendor.dm("work"))).await.unwrap().unwrap();
        let turn = session.hand().expect("it waits").turn.clone();
        let looking = async {
            life.pass_seconds(1).await;
            let standing = life.gateway.standing(&turn, &life.vendor.account());
            assert_eq!(standing, Standing::LeftToNextRun);
        };
        let draining = life.gateway.drain(Drain::within(Duration::from_secs(600)));
        let (drained, ()) = tokio::join!(draining, looking);
        assert!(drained.waited < Duration::from_secs(5), "only for what works: {drained:?}");
        assert_eq!((drained.left.len(), drained.clean), (2, true), "{drained:?}");
    });
    assert_eq!(world.vendor().texts("home"), ["echo: hello"], "what works is finished");
    assert_eq!(world.vendor().texts("work"), [LEFT], "has waited for long");
    assert!(world.vendor().texts("garden").is_empty(), "hardly waits yet");
    world.live(async |life| {
        assert_eq!(life.texts("work", 2).await[1], "echo: waits for long");
        assert_eq!(life.texts("garden", 1).await, ["echo: hardly waits"]);
    });
}

#[test]
fn an_answer_that_finds_no_place_while_the_gateway_ends_is_used_by_the_next_run() {
    let mut world = World::new(SIMPLE).with_agent(ten_seconds());
    world.limits.turns_at_once = 1;
    world.live(async |life| {
        life.vendor.say("alice", "home", "ask");
        life.texts("home", 1).await;
        life.vendor.say("bob", "work", "takes the only place");
        life.pass_seconds(1).await;
        let answering = async {
            life.pass_seconds(1).await;
            life.vendor.say("alice", "home", "yes");
        };
        let draining = life.gateway.drain(Drain::within(Duration::from_secs(600)));
        let (drained, ()) = tokio::join!(draining, answering);
        assert!(drained.waited < Duration::from_secs(10), "only for what works: {drained:?}");
        assert_eq!(drained.left.len(), 1, "{drained:?}");
    });
    assert_eq!(world.vendor().texts("work"), ["echo: takes the only place"]);
    world.live(async |life| {
        let texts = life.texts("home", 3).await;
        assert_eq!(texts[1..], [LEFT, "echo: ask"], "it was not asked again: {texts:?}");
    });
}

#[test]
fn a_turn_without_a_place_can_be_stopped_while_the_gateway_ends() {
    let mut world = World::new(SIMPLE).with_agent(ten_seconds());
    world.limits.turns_at_once = 1;
    world.live(async |life| {
        life.vendor.say("bob", "work", "takes the only place");
        life.pass_seconds(1).await;
        life.vendor.say("alice", "home", "waits");
        life.pass_seconds(1).await;
        let stopping = async {
            life.pass_seconds(1).await;
            life.vendor.say("alice", "home", "/stop");
            life.texts("home", 1).await;
        };
        let draining = life.gateway.drain(Drain::within(Duration::from_secs(600)));
        let (drained, ()) = tokio::join!(draining, stopping);
        assert!(drained.left.is_empty(), "{drained:?}");
    });
    world.live(async |life| {
        life.quiet().await;
        assert_eq!(life.vendor.texts("home").len(), 1, "{:?}", life.vendor.texts("home"));
    });
}

#[test]
fn what_is_left_is_in_writing_before_it_is_cut_off() {
    let mut world = World::new(SIMPLE).with_agent(slow());
    world.vendor().say("alice", "home", "hello");
    // The process is killed each time after it has been told to end, and before it has: no death.
    for other in ["attic", "cellar", "garden", "yard"] {
        world.live(async |life| {
            // Somebody is told each time; who was told once is not told again.
            life.vendor.say("bob", other, "hello");
            life.pass_seconds(10).await;
            life.vendor.behaves(|_| Conduct::ShowsAfter(Duration::from_secs(5)));
            let drained = life.gateway.drain(Drain::within(Duration::from_secs(1)));
            tokio::select! {
                _ = drained => panic!("it had something to say"),
                () = life.pass_seconds(3) => {}
            }
        });
    }
    world.vendor().behaves(|_| Conduct::Shows);
    world.agent = echo();
    world.live(async |life| {
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts.last().map(String::as_str), Some("echo: hello"), "{texts:?}");
    });
}

#[test]
fn whoever_is_in_a_hurry_waits_for_nothing_and_leaves_nothing_unwritten() {
    let mut world = World::new(SIMPLE).with_agent(slow());
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        let how = Drain::within(Duration::from_secs(600));
        let hurried = how.hurried.clone();
        let asked = life.now();
        let hurry = async {
            life.pass_seconds(2).await;
            hurried.cancel();
        };
        let (drained, ()) = tokio::join!(life.gateway.drain(how), hurry);
        assert!(life.now().since(asked) < Duration::from_secs(3));
        assert_eq!((drained.left.len(), drained.clean), (1, true), "{drained:?}");
        assert!(life.vendor.texts("home").is_empty(), "there is no time for that");
    });
    world.agent = echo();
    world.live(async |life| assert_eq!(life.texts("home", 1).await, ["echo: hello"]));
}

#[test]
fn who_is_told_why_a_turn_is_left_is_told_what_was_decided_last() {
    for changed in [false, true] {
        let mut world = World::new(SIMPLE).with_agent(slow());
        world.live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.pass_seconds(1).await;
            let reason = ResumeReason::RestartTimeout;
            let how = Drain { reason, ..Drain::within(Duration::from_secs(60)) };
            let for_good = how.for_good.clone();
            let stop = async {
                life.pass_seconds(10).await;
                if changed {
                    for_good.cancel();
                }
            };
            tokio::join!(life.gateway.drain(how), stop);
            let texts = life.vendor.texts("home");
            assert_eq!(texts[0] == LEFT, changed, "{texts:?}");
        });
    }
}

#[test]
fn what_has_to_wait_does_not_hold_up_a_stop() {
    let throttled = || {
        let after = Duration::from_secs(3600);
        Conduct::Refuses(talaria_platform::SendError::Throttled { after })
    };
    let mut world = World::new(SIMPLE);
    world.vendor().behaves(move |_| throttled());
    world.live(async |life| {
        for n in 0..5 {
            life.vendor.say("alice", "home", &format!("/nope-{n}"));
        }
        life.pass_seconds(10).await;
        let asked = life.now();
        life.gateway.stop(Duration::from_secs(600)).await;
        assert!(life.now().since(asked) < Duration::from_secs(1));
    });
    let mut world = World::new(SIMPLE);
    world.live(async |life| {
        life.vendor.say("alice", "home", "/nope");
        life.until("it is heard", |vendor| vendor.is_heard()).await;
        let away = || ConnectError::Unreachable { reason: "away".into() };
        life.vendor.hangs_up(std::iter::repeat_with(away).take(50));
        life.pass_seconds(10).await;
        let asked = life.now();
        life.gateway.stop(Duration::from_secs(600)).await;
        assert!(life.now().since(asked) < Duration::from_secs(1));
    });
}

#[test]
fn a_question_does_not_hold_up_a_stop() {
    let mut world = World::new(SIMPLE).with_agent(agent(|mut stage| async move {
        stage.ask(crate::questions::question("Sure?")).await;
    }));
    world.vendor().say("alice", "home", "hello");
    // The second run finds the question open.
    for _ in 0..2 {
        world.live(async |life| {
            life.texts("home", 1).await;
            life.pass_seconds(10).await;
            let asked = life.now();
            life.gateway.stop(Duration::from_secs(600)).await;
            assert!(life.now().since(asked) < Duration::from_secs(1));
        });
    }
}

#[test]
fn a_turn_that_a_clean_stop_cut_off_is_not_a_death() {
    let mut world = World::new(SIMPLE).with_agent(slow());
    world.vendor().say("alice", "home", "hello");
    for _ in 0..6 {
        world.live(async |life| {
            life.pass_seconds(10).await;
            life.gateway.stop(Duration::from_secs(1)).await;
        });
    }
    world.agent = echo();
    world.live(async |life| {
        assert_eq!(life.texts("home", 2).await, [LEFT, "echo: hello"], "they are told once");
    });
}

#[test]
fn three_deaths_during_one_turn_set_it_aside_and_the_next_message_works() {
    let mut world = World::new(SIMPLE).with_agent(slow());
    world.vendor().say("alice", "home", "poison");
    for _ in 0..3 {
        world.live(async |life| life.pass_seconds(10).await);
        world.vendor().truth(|truth| assert!(truth.shown.is_empty()));
    }
    world.live(async |life| {
        let texts = life.texts("home", 1).await;
        assert!(texts[0].contains("interrupted three times"), "{texts:?}");
        life.quiet().await;
        assert_eq!(life.disk.counts().await.unwrap().quarantined, 1);
        life.gateway.set_agent(echo());
        life.vendor.say("alice", "home", "hello");
        let texts = life.texts("home", 3).await;
        assert!(texts[1].contains("This is a new conversation"), "{texts:?}");
        assert_eq!(texts[2], "echo: hello");
    });
}

#[test]
fn other_sessions_survive_the_deaths_of_one() {
    let mut world = World::new(SIMPLE).with_agent(slow());
    world.vendor().say("alice", "home", "poison");
    world.live(async |life| life.pass_seconds(10).await);
    world.live(async |life| life.pass_seconds(10).await);
    world.vendor().say("bob", "work", "hello");
    world.live(async |life| life.pass_seconds(10).await);
    world.agent = echo();
    world.live(async |life| {
        assert_eq!(life.texts("work", 1).await, ["echo: hello"]);
        assert!(life.texts("home", 1).await[0].contains("interrupted three times"));
    });
}

#[test]
fn five_deaths_during_recovery_change_nothing() {
    let mut world = World::new(SIMPLE).with_agent(slow());
    world.live(async |life| {
        life.vendor.say("alice", "home", "/nope");
        life.until("it is heard", |vendor| vendor.is_heard()).await;
        let away = || ConnectError::Unreachable { reason: "away".into() };
        life.vendor.hangs_up(std::iter::repeat_with(away).take(1));
        life.pass(Duration::from_millis(100)).await;
    });
    for _ in 0..5 {
        let away = ConnectError::Unreachable { reason: "away".into() };
        world.vendor().hangs_up([away]);
        world.live(async |life| life.pass(Duration::from_millis(100)).await);
    }
    world.live(async |life| {
        let texts = life.texts("home", 1).await;
        assert!(texts[0].contains("no command") && !texts[0].contains(MARK), "{texts:?}");
    });
}

#[test]
fn a_gateway_whose_store_cannot_be_read_does_not_start_and_leaves_nothing_running() {
    let mut world = World::new(SIMPLE);
    world.disk.fails(Verb::Restless, 1);
    let vendor = world.vendor();
    vendor.say("alice", "home", "hello");
    let started = world.try_start(Duration::from_secs(60));
    assert!(started.is_err());
    vendor.truth(|truth| {
        assert!(truth.connected.is_empty(), "nobody listens");
        assert!(truth.acts.is_empty());
    });
    world.live(async |life| {
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
    });
}

#[test]
fn an_answer_is_an_answer_although_the_process_died_right_after_it_was_decided() {
    let mut world = World::new(SIMPLE).with_agent(agent(|stage| async move {
        let answer = stage.echo();
        stage.emit(finished(&answer)).await;
    }));
    world.disk.answers_late(Verb::Commit, Duration::from_secs(3600));
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(2 * 3600 - 60).await;
    });
    world.disk.answers_late(Verb::Commit, Duration::ZERO);
    world.live(async |life| {
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
        life.quiet().await;
        assert_eq!(life.vendor.texts("home").len(), 1);
    });
}

#[test]
fn a_start_that_fails_is_not_a_death() {
    let mut world = World::new(SIMPLE).with_agent(slow());
    world.vendor().say("alice", "home", "hello");
    for _ in 0..4 {
        world.live(async |life| {
            life.pass_seconds(10).await;
            life.gateway.stop(Duration::from_secs(1)).await;
        });
        world.disk.fails(Verb::Restless, 1);
        assert!(world.try_start(Duration::from_secs(1)).is_err());
    }
    world.agent = echo();
    world.live(async |life| assert_eq!(life.texts("home", 2).await[1], "echo: hello"));
}
