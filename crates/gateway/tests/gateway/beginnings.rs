//! An agent begins to think while the step that begins its turn is still being written. Nobody sees
//! or hears anything of it before that is durable, and if it never is, it has never been.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use talaria_agent::Agent;
use talaria_clock::{Clock, SystemClock};
use talaria_model::{Act, EntryBody};
use talaria_store::Store;

use crate::questions::question;
use crate::world::{EDITING, End, SIMPLE, Stage, Verb, World, agent, echo};

/// How long a commit takes here.
const SLOW: Duration = Duration::from_secs(5);

type Count = Arc<AtomicUsize>;

/// What an agent does in a turn, and how often it began.
fn counting(
    begun: &Count,
    play: impl Fn(Stage) -> futures::future::BoxFuture<'static, ()> + Send + Sync + 'static,
) -> Arc<dyn Agent> {
    let begun = begun.clone();
    agent(move |stage| {
        begun.fetch_add(1, Ordering::Relaxed);
        play(stage)
    })
}

fn times(count: &Count) -> usize {
    count.load(Ordering::Relaxed)
}

#[test]
fn an_agent_thinks_while_its_beginning_is_written_and_answers_once_it_is() {
    let begun = Count::default();
    let quick = counting(&begun, |stage| {
        Box::pin(async move {
            let answer = stage.echo();
            stage.finish(&answer).await;
        })
    });
    World::new(SIMPLE).with_agent(quick).live(async |life| {
        life.disk.begins_late(Verb::Commit, SLOW);
        life.vendor.say("alice", "home", "hello");
        life.pass(SLOW / 2).await;
        assert_eq!(times(&begun), 1, "it thinks already");
        assert_eq!(life.transcript("home").await.len(), 0, "nothing is written yet");
        life.disk.begins_late(Verb::Commit, Duration::ZERO);
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["echo: hello"]);
        assert_eq!(times(&begun), 1);
        let transcript = life.transcript("home").await;
        let bodies: Vec<_> = transcript.iter().map(|recorded| &recorded.entry.body).collect();
        assert!(
            matches!(bodies[..], [EntryBody::Said { .. }, EntryBody::Answered { .. }]),
            "{bodies:?}"
        );
    });
}

#[test]
fn a_beginning_that_cannot_be_written_never_was_whatever_the_agent_did_meanwhile() {
    for (what, shown) in [
        ("answers", "echo: hello"),
        ("asks", "Sure?"),
        ("panics", "Something went wrong inside me; the log has the details."),
        ("ends", "The agent ended without an answer."),
        ("steps", "echo: hello"),
    ] {
        for failures in [1, 3] {
            let begun = Count::default();
            let hasty = counting(&begun, move |mut stage| {
                Box::pin(async move {
                    let answer = stage.echo();
                    match what {
                        "asks" => _ = stage.ask(question("Sure?")).await,
                        "panics" => panic!("the test says so"),
                        "ends" => {}
                        "steps" => {
                            stage.step(&answer).await;
                            stage.finish("").await;
                        }
                        _ => stage.finish(&answer).await,
                    }
                })
            });
            World::new(SIMPLE).with_agent(hasty).live(async |life| {
                life.disk.begins_late(Verb::Commit, SLOW);
                life.disk.fails(Verb::Commit, failures);
                life.vendor.say("alice", "home", "hello");
                life.pass(SLOW / 2).await;
                life.disk.begins_late(Verb::Commit, Duration::ZERO);
                life.pass_seconds(600).await;
                let texts = life.vendor.texts("home");
                assert!(
                    texts.len() == 1 && texts[0].starts_with(shown),
                    "{what}, {failures} failures: {texts:?}"
                );
                assert_eq!(times(&begun), 2, "{what}: a model is not asked for every failure");
                let said = life
                    .transcript("home")
                    .await
                    .into_iter()
                    .filter(|recorded| matches!(recorded.entry.body, EntryBody::Said { .. }));
                assert_eq!(said.count(), 1, "{what}");
            });
        }
    }
}

#[test]
fn a_lane_that_breaks_down_while_a_beginning_is_written_begins_it_again() {
    let begun = Count::default();
    let quick = counting(&begun, |stage| {
        Box::pin(async move {
            let answer = stage.echo();
            stage.finish(&answer).await;
        })
    });
    World::new(SIMPLE).with_agent(quick).live(async |life| {
        life.disk.begins_late(Verb::Commit, SLOW);
        life.disk.panics(Verb::Commit, 1);
        life.vendor.say("alice", "home", "hello");
        life.pass(SLOW / 2).await;
        life.disk.begins_late(Verb::Commit, Duration::ZERO);
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["echo: hello"]);
        assert_eq!(times(&begun), 2);
    });
}

#[test]
fn nothing_is_shown_of_a_turn_whose_beginning_is_not_durable() {
    let telling = agent(|stage| async move {
        stage.show("Words enough for a preview, and some more of them");
        SystemClock.sleep(3 * SLOW).await;
        stage.finish("The end.").await;
    });
    World::new(EDITING).with_agent(telling).live(async |life| {
        life.disk.begins_late(Verb::Commit, SLOW);
        life.vendor.say("alice", "home", "hello");
        life.pass(SLOW - Duration::from_millis(1)).await;
        assert_eq!(life.vendor.truth(|truth| truth.acts.len()), 0);
        life.disk.begins_late(Verb::Commit, Duration::ZERO);
        life.pass_seconds(2).await;
        assert_eq!(life.vendor.texts("home").len(), 1, "then it is shown");
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["The end."]);
    });
}

#[test]
fn a_turn_that_reports_before_its_beginning_is_durable_is_shown_growing_afterwards() {
    let hasty = agent(|stage| async move {
        stage.step("First things first.").await;
        stage.show("Words enough for a preview, and some more of them");
        SystemClock.sleep(3 * SLOW).await;
        stage.finish("The end.").await;
    });
    World::new(EDITING).with_agent(hasty).live(async |life| {
        life.disk.begins_late(Verb::Commit, SLOW);
        life.vendor.say("alice", "home", "hello");
        life.pass(SLOW / 2).await;
        life.disk.begins_late(Verb::Commit, Duration::ZERO);
        life.pass(SLOW).await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[1].starts_with("Words enough"), "{texts:?}");
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["First things first.", "The end."]);
    });
}

#[test]
fn a_stop_while_a_beginning_is_written_stops_the_turn() {
    let deaf = agent(|_| std::future::pending());
    let quick = echo();
    // One that was through with it before it could be told has answered.
    for (agent, shown) in [(deaf, "Stopped."), (quick, "echo: hello")] {
        World::new(SIMPLE).with_agent(agent).live(async |life| {
            life.disk.begins_late(Verb::Commit, SLOW);
            life.vendor.say("alice", "home", "hello");
            life.pass(SLOW / 2).await;
            life.vendor.press_stop("alice", "home");
            life.pass_seconds(1).await;
            life.disk.begins_late(Verb::Commit, Duration::ZERO);
            life.quiet().await;
            let texts = life.vendor.texts("home");
            assert_eq!(texts, [shown]);
        });
    }
}

#[test]
fn what_the_agent_is_given_is_what_is_recorded() {
    type Given = Arc<Mutex<Vec<Vec<u32>>>>;
    for (history, there, back) in
        [(400, SLOW, Duration::ZERO), (400, Duration::ZERO, SLOW), (3, SLOW, Duration::ZERO)]
    {
        let given = Given::default();
        let seen = given.clone();
        let reading = agent(move |stage| {
            let numbers = stage.turn.entries.iter().map(|entry| entry.number).collect();
            seen.lock().unwrap().push(numbers);
            async move { stage.finish("Read.").await }
        });
        let mut world = World::new(SIMPLE).with_agent(reading);
        world.limits.history = history;
        world.live(async |life| {
            life.disk.begins_late(Verb::Commit, there);
            life.disk.answers_late(Verb::Commit, back);
            for turn in 1..=4_u32 {
                life.vendor.say("alice", "home", &turn.to_string());
                life.quiet().await;
                life.pass_seconds(60).await;
                // What was said and what was answered, turn for turn, up to what was said last.
                let mut all: Vec<u32> = (1..2 * turn).collect();
                all.drain(..all.len().saturating_sub(history));
                assert_eq!(given.lock().unwrap().last(), Some(&all));
            }
        });
    }
}

#[test]
fn what_a_lane_remembers_is_what_the_store_has() {
    let told = |lingering: usize, history: usize| {
        let given = Arc::new(Mutex::new(Vec::new()));
        let seen = given.clone();
        let reading = agent(move |stage| {
            let text = |body: &EntryBody| match body {
                EntryBody::Said { text, .. } | EntryBody::Answered { text, .. } => text.clone(),
                EntryBody::Aside { text, .. } | EntryBody::Noticed { text, .. } => text.clone(),
                EntryBody::Returned { output, .. } => output.clone(),
                EntryBody::Summary { text, .. } => text.clone(),
            };
            let entries = stage.turn.entries.iter();
            let entries: Vec<_> = entries.map(|entry| (entry.number, text(&entry.body))).collect();
            seen.lock().unwrap().push(entries);
            async move { stage.finish("Read.").await }
        });
        let mut world = World::new(SIMPLE).with_agent(reading);
        world.limits.lingering = lingering;
        world.limits.history = history;
        let long = "long ".repeat(5_000);
        world.live(async |life| {
            for line in [
                "one",
                "two",
                "/undo",
                "three",
                "/branch",
                "four",
                "/title four",
                "/new",
                "five",
                "six",
                "/resume four",
                "seven",
                "/retry",
                "eight",
                "/compress",
                "nine",
                "/new",
                "ten",
                &long,
                "eleven",
                "/stop",
                "twelve",
            ] {
                life.vendor.say("alice", "home", line);
                life.quiet().await;
            }
        });
        std::mem::take(&mut *given.lock().unwrap())
    };
    for history in [400, 4] {
        let read = told(0, history);
        assert!(read.len() > 12, "{}", read.len());
        assert_eq!(told(256, history), read);
    }
}

#[test]
fn a_process_that_dies_while_a_beginning_is_written_begins_it_again() {
    let mut world = World::new(SIMPLE);
    world.disk.begins_late(Verb::Commit, SLOW);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass(SLOW / 2).await;
    });
    world.disk.begins_late(Verb::Commit, Duration::ZERO);
    world.live(async |life| {
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["echo: hello"]);
    });
}

#[test]
fn a_message_that_kills_the_process_before_its_beginning_is_durable_is_set_aside() {
    let mut world = World::new(SIMPLE);
    let (points, quick) = (world.ground.points.clone(), echo());
    let deadly = agent(move |stage| {
        let (points, quick) = (points.clone(), quick.clone());
        async move {
            if stage.said().contains("poison") {
                points.die();
                return std::future::pending().await;
            }
            let mut running = quick.start(stage.turn.clone());
            while let Some(event) = futures::StreamExt::next(&mut running.events).await {
                stage.emit(event).await;
            }
        }
    });
    world.agent = deadly;
    world.disk.begins_late(Verb::Commit, Duration::from_millis(10));
    world.vendor().say("alice", "home", "poison");
    let mut deaths = 0;
    while world.live_dangerously(async |life| life.quiet().await) == End::Died {
        deaths += 1;
        assert!(deaths < 10, "it goes on forever");
    }
    assert!(deaths >= 3, "{deaths}");
    world.live(async |life| {
        life.quiet().await;
        assert_eq!(life.disk.counts().await.unwrap().quarantined, 1);
        let texts = life.vendor.texts("home");
        assert!(texts.len() == 1 && texts[0].contains("set it aside"), "{texts:?}");
        life.vendor.say("alice", "home", "hello");
        let texts = life.texts("home", 3).await;
        assert!(texts[1].contains("This is a new conversation"), "{texts:?}");
        assert_eq!(texts[2], "echo: hello");
    });
}

#[test]
fn nobody_is_typing_before_the_beginning_is_durable() {
    let can = talaria_model::Capabilities {
        typing: talaria_model::Typing::Fades(Duration::from_secs(5)),
        ..SIMPLE
    };
    World::new(can).with_agent(agent(|_| std::future::pending())).live(async |life| {
        life.disk.begins_late(Verb::Commit, SLOW);
        life.vendor.say("alice", "home", "hello");
        life.pass(SLOW / 2).await;
        assert_eq!(life.vendor.truth(|truth| truth.acts.len()), 0);
        life.pass(SLOW).await;
        let first = life.vendor.truth(|truth| truth.acts.first().cloned());
        assert!(first.is_some_and(|(_, outbound)| outbound.act == Act::Typing));
    });
}
