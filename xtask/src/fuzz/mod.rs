//! `cargo xtask fuzz`: the fuzz targets on a stable compiler, without a guide through the code.
//!
//! Mutates the corpus in `fuzz/corpus/<target>` from a seed. Under a nightly compiler
//! `cargo fuzz run <target>` drives the same bodies with coverage; both find, save and replay the same
//! kind of input.
#![allow(clippy::disallowed_methods, reason = "a fuzzer is given so much real time")]

mod mutate;

use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use talaria_fuzz::{TARGETS, Target};

use mutate::Mutator;

/// How long each target runs unless somebody says otherwise.
const SECONDS: u64 = 20;

/// The seed of the inputs that are known to be harmless.
const KNOWN_SEED: u64 = 1;

/// How many targets run at the same time.
const AT_ONCE: usize = 2;

#[derive(Args)]
pub(crate) struct Options {
    /// Only these targets
    targets: Vec<String>,
    /// How long each target runs
    #[arg(long, default_value_t = SECONDS)]
    seconds: u64,
    /// What chance is drawn from; a fresh one if left out
    #[arg(long)]
    seed: Option<u64>,
    /// Run the target on this file alone, as it was saved when it failed
    #[arg(long)]
    input: Option<PathBuf>,
}

/// What became of one target.
struct Ran {
    target: &'static Target,
    executions: u64,
    slowest: Duration,
    failed: Option<Failed>,
}

struct Failed {
    input: Vec<u8>,
    message: String,
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let chosen: Vec<&Target> = match options.targets.as_slice() {
        [] => TARGETS.iter().collect(),
        names => {
            let find = |name: &String| {
                talaria_fuzz::target(name).with_context(|| format!("there is no target {name}"))
            };
            names.iter().map(find).collect::<Result<_>>()?
        }
    };
    if let Some(path) = &options.input {
        let [target] = chosen[..] else { bail!("name the target that the input is for") };
        let input =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        (target.run)(&input);
        println!("{}: nothing wrong with {}", target.name, path.display());
        return Ok(());
    }
    try_all(root, &chosen, options.seed, options.seconds)
}

/// What CI runs: the same inputs every time, so that what it finds is the change's. New ones are looked
/// for with `cargo xtask fuzz`.
pub(crate) fn run_all_targets(root: &Path) -> Result<()> {
    try_all(root, &TARGETS.iter().collect::<Vec<_>>(), Some(KNOWN_SEED), SECONDS)
}

fn try_all(root: &Path, chosen: &[&'static Target], seed: Option<u64>, seconds: u64) -> Result<()> {
    let seed = seed.unwrap_or_else(rand::random);
    eprintln!("fuzz: {} targets, {seconds} s each, --seed {seed}", chosen.len());
    let ran = quietly(|| run_all(root, chosen, seed, Duration::from_secs(seconds)))?;
    report(root, &ran)
}

/// For as long as this runs, a panic is a finding and is told once, at the end.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(|panicked| {
        let place = panicked.location().map(ToString::to_string).unwrap_or_default();
        LAST.with_borrow_mut(|last| *last = place);
    }));
    let done = work();
    panic::set_hook(usual);
    done
}

thread_local! {
    /// Where this thread panicked last.
    static LAST: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

fn run_all(root: &Path, chosen: &[&'static Target], seed: u64, time: Duration) -> Result<Vec<Ran>> {
    let left = Mutex::new(chosen.iter().copied());
    let take = || left.lock().ok().and_then(|mut left| left.next());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    let mut ran = Vec::new();
                    while let Some(target) = take() {
                        ran.push(fuzz(target, &corpus(root, target.name)?, seed, time));
                    }
                    anyhow::Ok(ran)
                })
            })
            .collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| anyhow::anyhow!("a worker panicked"))??);
        }
        Ok(all)
    })
}

/// The inputs that a target begins with.
fn corpus(root: &Path, target: &str) -> Result<Vec<Vec<u8>>> {
    let folder = root.join("fuzz/corpus").join(target);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .with_context(|| format!("there is no corpus in {}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    paths.sort();
    Ok(paths.iter().map(std::fs::read).collect::<std::io::Result<_>>()?)
}

/// The corpus as it is, then changed in every way until the time is over or something is found.
fn fuzz(target: &'static Target, corpus: &[Vec<u8>], seed: u64, time: Duration) -> Ran {
    let begun = Instant::now();
    let mut mutator = Mutator::new(seed, corpus, target.words);
    let mut ran = Ran { target, executions: 0, slowest: Duration::ZERO, failed: None };
    let mut whole = corpus.iter().cloned();
    while begun.elapsed() < time {
        let input = whole.next().unwrap_or_else(|| mutator.next());
        let started = Instant::now();
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
        ran.executions += 1;
        ran.slowest = ran.slowest.max(started.elapsed());
        if let Err(panicked) = outcome {
            let text = panicked.downcast_ref::<String>().map(String::as_str);
            let text =
                text.or_else(|| panicked.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            let place = LAST.with_borrow(Clone::clone);
            ran.failed = Some(Failed { input, message: format!("{place}: {text}") });
            break;
        }
    }
    ran
}

fn report(root: &Path, ran: &[Ran]) -> Result<()> {
    let mut found = Vec::new();
    for Ran { target, executions, slowest, failed } in ran {
        let verdict = if failed.is_some() { "FAILED" } else { "ok" };
        println!("{:<17} {verdict:<7} {executions:>9} inputs, slowest {slowest:.1?}", target.name);
        let Some(failed) = failed else { continue };
        let folder = root.join("fuzz/artifacts").join(target.name);
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("stable-{:016x}", digest(&failed.input)));
        std::fs::write(&path, &failed.input)?;
        found.push(format!(
            "{}: it must hold that {}\n{}\nreplay: cargo xtask fuzz {} --input {}",
            target.name,
            target.holds,
            failed.message.chars().take(2000).collect::<String>(),
            target.name,
            path.strip_prefix(root).unwrap_or(&path).display()
        ));
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!("{}", found.join("\n\n"))
}

/// Names an input.
fn digest(input: &[u8]) -> u64 {
    input.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
