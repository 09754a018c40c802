//! The process dies before and after everything that survives it or that others can see. Whatever the
//! moment: no message is lost, none is answered twice without saying so, order is kept, and nothing
//! that cannot be undone is done twice. `cargo xtask sim --points` and `--pairs` tell the same stories.

use std::time::Duration;

use talaria_clock::{Clock, SystemClock};
use talaria_platform::SendError;

use crate::world::crash::{self, SCENARIOS, Told};
use crate::world::{
    Circumstances, Conduct, EDITING, End, Keeps, SIMPLE, Verb, World, agent, keyed, problems,
};

/// One first death in so many is followed by a second here; all pairs are tried by hand.
const SAMPLED: usize = 11;

/// Each story is told on two of the platforms here, and on all of them by `cargo xtask sim --points`.
fn platforms(number: usize) -> impl Iterator<Item = &'static str> {
    let all: Vec<_> = crash::platforms().collect();
    [number % all.len(), (number + 3) % all.len()].into_iter().map(move |place| all[place])
}

fn judge(told: &Told) {
    assert!(told.problems.is_empty(), "{}: {:#?}", told.death, told.problems);
}

#[test]
fn every_story_ends_well_without_a_death_and_with_one_anywhere() {
    for (number, scenario) in SCENARIOS.iter().enumerate() {
        for platform in platforms(number) {
            judge(&scenario.tell(platform, &[], Keeps::Last));
            for moment in 0.. {
                let told = scenario.tell(platform, &[moment], Keeps::Last);
                judge(&told);
                if told.died == 0 {
                    assert!(moment > 8, "there are moments to die at");
                    break;
                }
            }
        }
    }
}

#[test]
fn a_second_death_during_recovery_changes_nothing() {
    for (number, scenario) in SCENARIOS.iter().enumerate() {
        for platform in platforms(number).take(1) {
            for first in (number % SAMPLED..).step_by(SAMPLED) {
                if scenario.tell(platform, &[first], Keeps::Last).died == 0 {
                    break;
                }
                for second in (first % 9..).step_by(9) {
                    let told = scenario.tell(platform, &[first, second], Keeps::Last);
                    judge(&told);
                    if told.died < 2 {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn a_preview_that_is_due_just_as_the_answer_is_decided_survives_every_death() {
    // The first try is refused, the second is due at two seconds; the commit of the answer is on disk
    // by then, and nobody knows it yet.
    let hasty = agent(|stage| async move {
        let text = format!("{} and so on to the very end, done: so", stage.echo());
        stage.show(&text);
        SystemClock.sleep(Duration::from_millis(1990)).await;
        stage.finish(&text).await;
    });
    let begin = |can| {
        let world = World::new(can).with_agent(hasty.clone());
        world.disk.answers_late(Verb::Commit, Duration::from_millis(50));
        let after = Duration::from_secs(1);
        world.vendor().first([Conduct::Refuses(SendError::Throttled { after })]);
        world.vendor().say("alice", "home", "sunrise");
        world
    };
    for can in [SIMPLE, keyed(SIMPLE), EDITING, keyed(EDITING)] {
        for first in 0.. {
            for second in [None, Some(first / 2), Some(first), Some(first + 3)] {
                let mut world = begin(can);
                let mut deaths = 0;
                for moment in std::iter::once(first).chain(second) {
                    let end = world.live_and_die(moment, async |life| life.quiet().await);
                    deaths += u32::from(end == End::Died);
                }
                world.live(async |life| life.quiet().await);
                let circumstances = Circumstances { deaths, ..Circumstances::default() };
                let found = problems(&world, &circumstances);
                assert!(found.is_empty(), "dead at {first}, then {second:?}: {found:#?}");
            }
            let mut world = begin(can);
            if world.live_and_die(first, async |life| life.quiet().await) == End::Over {
                assert!(first > 8, "there are moments to die at");
                break;
            }
        }
    }
}
