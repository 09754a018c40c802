//! Runs the simulator: many seeds, one seed again, every point at which a process can die. `cargo
//! xtask sim` builds and runs it.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "what it finds is what it is for")]
#![allow(clippy::disallowed_methods, reason = "how long it takes is told in real time")]

use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use clap::Parser;
use talaria_testkit::sim::crash::{self, SCENARIOS, Scenario, Told};
use talaria_testkit::sim::{self, Backing, Invariant, Keeps, Outcome, Problem};

#[derive(Parser)]
#[command(about = "Runs the gateway in a simulated world")]
struct Options {
    /// How many seeds
    #[arg(long, default_value_t = 2000)]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Only this seed, with everything that happens in it
    #[arg(long)]
    seed: Option<u64>,
    /// Every point at which the process can die in every story, instead of seeds
    #[arg(long)]
    points: bool,
    /// Every pair of such points, the second in the life after the first
    #[arg(long)]
    pairs: bool,
    /// One pair in so many
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Only this story
    #[arg(long)]
    scenario: Option<String>,
    /// Only on this platform
    #[arg(long)]
    platform: Option<String>,
    /// Die at these points of the first lives, and print everything that happens
    #[arg(long, value_delimiter = ',')]
    die: Option<Vec<usize>>,
    /// How many at once
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Stop at the first failure, and say it in one line
    #[arg(long)]
    hunt: bool,
}

/// One seed in so many runs on a real store.
const REAL: u64 = 200;

/// One seed in so many runs twice, to see whether it is the same both times.
const TWICE: u64 = 20;

/// How many failures are told in full.
const TOLD: usize = 20;

fn main() -> ExitCode {
    quiet_panics();
    let options = Options::parse();
    let failed = if let Some(seed) = options.seed {
        let outcome = run(seed, Keeps::Everything);
        println!("{}", outcome.report(usize::MAX));
        usize::from(!outcome.problems.is_empty())
    } else if let Some(at) = &options.die {
        die(&options, at)
    } else if options.hunt {
        hunt(&options)
    } else if options.points || options.pairs {
        points(&options)
    } else {
        seeds(&options)
    };
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Does this to everything, with several at once, until it says that it is enough.
fn side_by_side<T: Sync>(jobs: usize, all: &[T], each: impl Fn(&T) -> Going + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(item) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if each(item) == Going::Enough {
                        next.store(all.len(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
}

#[derive(PartialEq, Eq)]
enum Going {
    On,
    Enough,
}

fn seeds(options: &Options) -> usize {
    let began = Instant::now();
    let all: Vec<u64> = (options.from..options.from + options.seeds).collect();
    let totals = Mutex::new(Totals::default());
    side_by_side(options.jobs, &all, |seed| {
        let outcome = run_checked(*seed);
        let mut totals = totals.lock().expect("nobody panics with it");
        totals.add(&outcome);
        if !outcome.problems.is_empty() && totals.failed <= TOLD {
            println!("seed {seed} fails:\n{}", run(*seed, Keeps::Everything).report(30));
        }
        Going::On
    });
    let totals = totals.into_inner().expect("nobody panics with it");
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{} seeds, {} failed; {} messages, {} faults, {} deaths, {} events; {seconds:.1} s, {:.0} seeds/s",
        totals.seeds,
        totals.failed,
        totals.messages,
        totals.faults,
        totals.deaths,
        totals.events,
        totals.seeds as f64 / seconds,
    );
    totals.failed
}

fn run_checked(seed: u64) -> Outcome {
    let mut outcome = run(seed, Keeps::Last);
    if seed.is_multiple_of(TWICE) && run(seed, Keeps::Last).digest != outcome.digest {
        let what = "the same seed does not do the same".to_owned();
        outcome.problems.push(Problem { breaks: Invariant::Integrity, what });
    }
    outcome
}

fn run(seed: u64, keeps: Keeps) -> Outcome {
    let backing = if seed % REAL == REAL - 1 { Backing::Sqlite } else { Backing::Memory };
    sim::run(seed, keeps, backing)
}

/// The stories and platforms that are asked for.
fn stories(options: &Options) -> Vec<(&'static Scenario, &'static str)> {
    let wanted = |name: &str, only: &Option<String>| only.as_ref().is_none_or(|only| only == name);
    SCENARIOS
        .iter()
        .filter(|scenario| wanted(scenario.name, &options.scenario))
        .flat_map(|scenario| crash::platforms().map(move |platform| (scenario, platform)))
        .filter(|(_, platform)| wanted(platform, &options.platform))
        .collect()
}

fn points(options: &Options) -> usize {
    let began = Instant::now();
    let stories = stories(options);
    let told = Mutex::new((0_usize, 0_usize, 0_usize));
    let judge = |story: &Told| {
        let mut told = told.lock().expect("nobody panics with it");
        if story.problems.is_empty() {
            return;
        }
        told.2 += 1;
        if told.2 <= TOLD {
            println!("{} fails:", story.death);
            story.problems.iter().take(5).for_each(|problem| println!("  {problem}"));
            println!("again: cargo xtask sim {}", story.death);
        }
    };
    side_by_side(options.jobs, &stories, |(scenario, platform)| {
        judge(&scenario.tell(platform, &[], Keeps::Last));
        for first in 0.. {
            let story = scenario.tell(platform, &[first], Keeps::Last);
            if story.died == 0 {
                assert!(first > 8, "there are points to die at");
                break;
            }
            told.lock().expect("nobody panics with it").0 += 1;
            judge(&story);
            if !options.pairs {
                continue;
            }
            for second in (first % options.every..).step_by(options.every) {
                let story = scenario.tell(platform, &[first, second], Keeps::Last);
                if story.died < 2 {
                    break;
                }
                told.lock().expect("nobody panics with it").1 += 1;
                judge(&story);
            }
        }
        Going::On
    });
    let (points, pairs, failed) = told.into_inner().expect("nobody panics with it");
    println!(
        "{} stories on {} platforms: {points} points, {pairs} pairs, {failed} failed; {:.1} s",
        SCENARIOS.len(),
        crash::platforms().count(),
        began.elapsed().as_secs_f64()
    );
    failed
}

fn die(options: &Options, at: &[usize]) -> usize {
    let mut failed = 0;
    for (scenario, platform) in stories(options) {
        let story = scenario.tell(platform, at, Keeps::Everything);
        story.log.iter().for_each(|line| println!("  {line}"));
        story.problems.iter().for_each(|problem| println!("{problem}"));
        failed += usize::from(!story.problems.is_empty());
    }
    failed
}

/// The first thing that is wrong, wherever it is.
fn hunt(options: &Options) -> usize {
    let found = Mutex::new(None);
    let catch = |by: String, problems: &[Problem]| match problems.first() {
        None => Going::On,
        Some(problem) => {
            found.lock().expect("nobody panics with it").get_or_insert((by, problem.clone()));
            Going::Enough
        }
    };
    let is_found = || found.lock().expect("nobody panics with it").is_some();
    let die_everywhere = |stories: &[(&'static Scenario, &'static str)]| {
        side_by_side(options.jobs, stories, |(scenario, platform)| {
            for first in 0.. {
                let story = scenario.tell(platform, &[first], Keeps::Last);
                if catch(story.death.to_string(), &story.problems) == Going::Enough {
                    return Going::Enough;
                }
                if story.died == 0 || is_found() {
                    break;
                }
            }
            Going::On
        });
    };
    let run_all = |seeds: Range<u64>| {
        side_by_side(options.jobs, &seeds.collect::<Vec<_>>(), |seed| {
            catch(format!("--seed {seed}"), &run(*seed, Keeps::Last).problems)
        });
    };
    // What finds most is tried first: each story on one platform, some seeds, then all the rest.
    let stories = stories(options);
    let platforms = crash::platforms().count();
    let some: Vec<_> = stories.iter().copied().step_by(platforms + 1).collect();
    let (begin, end) = (options.from, options.from + options.seeds);
    let middle = end.min(begin + 500);
    die_everywhere(&some);
    if !is_found() {
        run_all(begin..middle);
    }
    if !is_found() {
        die_everywhere(&stories);
    }
    if !is_found() {
        run_all(middle..end);
    }
    match found.into_inner().expect("nobody panics with it") {
        None => {
            println!("nothing found");
            0
        }
        Some((by, problem)) => {
            println!("{by}\t{problem}");
            1
        }
    }
}

#[derive(Default)]
struct Totals {
    seeds: u64,
    failed: usize,
    messages: usize,
    faults: usize,
    events: u64,
    deaths: u32,
}

impl Totals {
    fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.failed += usize::from(!outcome.problems.is_empty());
        self.messages += outcome.messages;
        self.faults += outcome.faults;
        self.events += outcome.events;
        self.deaths += outcome.deaths;
    }
}

/// Breakdowns that the simulation asks for are not news.
fn quiet_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.to_string().contains("the test says so") {
            usual(panic);
        }
    }));
}
