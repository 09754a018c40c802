//! One seed: a story with everything that happens in it, told once, and judged.

mod hooks;
mod people;
mod plan;
mod play;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use talaria_store::Store;
use talaria_store_sqlite::SqliteStore;

use super::check::{Circumstances, Invariant, Problem, problems};
use super::{Keeps, World};
use crate::Dice;

pub(super) use hooks::DROPPED_BY_HOOK;
use plan::Plan;
use play::{Story, Turnout};

/// What the disk of a world is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// The store in memory.
    Memory,
    /// SQLite in a folder of its own. Its threads are waited for where they are asked, so a seed does
    /// the same on it every time.
    Sqlite,
}

/// What became of a seed.
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Equal for equal runs.
    pub digest: u64,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// What was switched on.
    pub weather: String,
    /// What happened, as far as it was kept.
    pub log: Vec<String>,
    /// How much was said.
    pub messages: usize,
    /// How often something was made to go wrong on purpose.
    pub faults: usize,
    /// How many things happened.
    pub events: u64,
    /// How often the process died.
    pub deaths: u32,
}

/// How long everything may take to come to rest once it has healed.
const REST: Duration = Duration::from_secs(4 * 60 * 60);

/// Runs a seed.
pub fn run(seed: u64, keeps: Keeps, backing: Backing) -> Outcome {
    let mut dice = Dice::seeded(seed);
    let mut plan = Plan::throw(&mut dice);
    let mut world = World::empty(keeps).with_model();
    let folder = (backing == Backing::Sqlite).then(|| tempfile::tempdir().expect("a folder"));
    if let Some(folder) = &folder {
        let path = folder.path().to_owned();
        let open = move || -> Arc<dyn Store> {
            Arc::new(SqliteStore::open(&path).expect("a folder of its own"))
        };
        world.opens = Some(Arc::new(open));
    }
    plan.furnish(&mut world, &mut dice);
    let weather = plan.weather.to_string();
    let mut story = Story::new(plan, dice.split());
    let rested = tell(&mut world, &mut story);
    let circumstances = story.circumstances();
    let mut problems = problems(&world, &circumstances);
    if let Err(problem) = rested {
        problems.insert(0, problem);
    }
    // What follows from something that did not come to rest is not worth reading first.
    Outcome {
        seed,
        digest: world.ground.log.digest(),
        problems,
        weather,
        log: world.ground.log.lines(),
        messages: circumstances.said.len(),
        faults: story.faults(),
        events: world.ground.log.len(),
        deaths: circumstances.deaths,
    }
}

/// Life after life until the story is over and everything rests, and one more in which nothing may
/// happen.
fn tell(world: &mut World, story: &mut Story) -> Result<(), Problem> {
    let stuck = |what: String| Problem { breaks: Invariant::Live, what };
    let model = world.model.clone();
    let clock = world.clock.clone();
    let mut lives = 0;
    loop {
        lives += 1;
        if lives > 60 {
            return Err(stuck("the process dies again and again".into()));
        }
        let mut turnout = Turnout::Died;
        world.live_dangerously(async |life| turnout = story.play(life, &clock).await);
        match turnout {
            Turnout::Died => story.died(),
            Turnout::Stopped => story.stopped(),
            Turnout::Over => {
                // It is cut off like all the others.
                story.died();
                break;
            }
        }
        let rest = story.between_lives();
        world.sleep(rest);
    }
    let mut seen = None;
    for round in 0..2 {
        loop {
            lives += 1;
            if lives > 60 {
                return Err(stuck("the process dies again and again".into()));
            }
            let mut outcome = None;
            let end = world.live_dangerously(async |life| {
                story.heal(life, &model);
                outcome = Some(story.rest(life, REST).await);
                life.gateway.stop(Duration::from_secs(5)).await;
            });
            match (end, outcome) {
                (super::End::Died, _) => story.died(),
                (super::End::Over, Some(Err(counts))) => {
                    return Err(stuck(format!("no rest after {REST:?}: {counts}")));
                }
                (super::End::Over, _) => break,
            }
        }
        let shown: usize =
            world.accounts.iter().map(|(vendor, _)| vendor.truth(|truth| truth.shown.len())).sum();
        if round == 1 && seen != Some(shown) {
            return Err(Problem {
                breaks: Invariant::NoSilentDuplicate,
                what: format!("a restart at rest shows more: {shown} messages, {seen:?} before"),
            });
        }
        seen = Some(shown);
    }
    Ok(())
}

impl Outcome {
    /// What to tell somebody who wants to understand it: what is wrong, the command that repeats it, and
    /// the end of what happened.
    pub fn report(&self, tail: usize) -> String {
        let mut text = String::new();
        for problem in self.problems.iter().take(8) {
            _ = writeln!(text, "  {problem}");
        }
        if self.problems.len() > 8 {
            _ = writeln!(text, "  and {} more", self.problems.len() - 8);
        }
        _ = writeln!(text, "  {}", self.weather);
        let from = self.log.len().saturating_sub(tail);
        for line in &self.log[from..] {
            _ = writeln!(text, "  {line}");
        }
        _ = writeln!(text, "again: cargo xtask sim --seed {}", self.seed);
        text
    }
}

impl Story {
    fn circumstances(&self) -> Circumstances {
        Circumstances {
            said: self.people.said.clone(),
            deaths: self.deaths,
            stops: self.stops,
            disk_lied: self.plan.weather.disk_lies,
            model_failed: self.plan.weather.model_garbles || self.plan.weather.model_fails,
            hooks: self.plan.weather.hooks,
        }
    }
}
