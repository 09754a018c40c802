//! The attack list, case by case, against the binary over real sockets. A case that belongs to a part which
//! is not built says to which; nothing is skipped in silence.

#![allow(clippy::disallowed_methods, reason = "attackers live in real time")]

mod approvals;
mod backups;
mod cases;
mod codes;
mod doors;
mod errands;
mod field;
mod hooks;
mod keeping;
mod market;
mod office;
mod people;
mod refusals;
mod table;
mod wire;
mod words;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::shell;
use cases::CASES;
use field::Field;
pub(crate) use table::page;

/// No case takes this long unless something hangs.
const HANGS: Duration = Duration::from_secs(120);

/// Which cases are run, against what.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The binary to attack; without it, the one that is released is built
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Only these cases, such as 28 or 148
    #[arg(long)]
    only: Vec<u16>,
    /// Also run the tests that stand for cases inside of the workspace
    #[arg(long)]
    tests: bool,
}

/// One case of the list.
pub(crate) struct Case {
    /// Its number: `ATK-001` is 1.
    pub(crate) number: u16,
    /// What is tried.
    pub(crate) attack: &'static str,
    /// How it is shown to fail.
    pub(crate) shown: Shown,
}

/// How an attack is shown to fail.
#[derive(Clone, Copy)]
pub(crate) enum Shown {
    /// Tried against the running binary.
    Live(Probe),
    /// Tried against the running binary, and these tests of the workspace try what is not seen from outside.
    Both(Probe, &'static [&'static str]),
    /// Tried by these tests of the workspace, because it cannot be seen from outside.
    Tests(&'static [&'static str]),
    /// There is nothing to attack by design; why.
    Absent(&'static str),
    /// The part that it attacks is not built; which.
    Later(&'static str),
}

/// Tries an attack. An error is what the attacker got.
pub(crate) type Probe = for<'a> fn(&'a Field) -> BoxFuture<'a, Result<()>>;

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            shell::run(&mut shell::cargo(root, &["build", "--release", "--package", "talaria"]))?;
            shell::built(root, "release")
        }
    };
    if options.tests {
        run_tests(root)?;
    }
    denied(&try_all(root, &binary, &options.only)?)
}

/// What CI runs, with a binary that is there. The tests run by themselves.
pub(crate) fn run_all(root: &Path, binary: &Path) -> Result<()> {
    denied(&try_all(root, binary, &[])?)
}

fn try_all(root: &Path, binary: &Path, only: &[u16]) -> Result<Vec<Outcome>> {
    let known = table::tests_in(root)?;
    let outcomes = tokio::runtime::Runtime::new()?.block_on(attack(binary, only, &known))?;
    println!("\n{}", table::sum(&outcomes));
    Ok(outcomes)
}

fn denied(outcomes: &[Outcome]) -> Result<()> {
    let failed = outcomes.iter().filter(|outcome| outcome.failure.is_some()).count();
    ensure!(failed == 0, "{failed} attacks were not denied");
    Ok(())
}

/// What came of a case.
pub(crate) struct Outcome {
    pub(crate) case: &'static Case,
    pub(crate) failure: Option<String>,
    pub(crate) took: Duration,
}

async fn attack(binary: &Path, only: &[u16], known: &table::Known) -> Result<Vec<Outcome>> {
    let field = Field::open(binary).await.context("the gateway to attack does not start")?;
    let mut outcomes = Vec::new();
    for case in CASES.iter().filter(|case| only.is_empty() || only.contains(&case.number)) {
        let begun = Instant::now();
        let failure = match case.shown {
            Shown::Live(probe) => tried(probe, &field).await,
            Shown::Tests(names) => missing(names, known),
            Shown::Both(probe, names) => match missing(names, known) {
                None => tried(probe, &field).await,
                missing => missing,
            },
            Shown::Absent(_) | Shown::Later(_) => None,
        };
        let outcome = Outcome { case, failure, took: begun.elapsed() };
        table::print(&outcome);
        outcomes.push(outcome);
    }
    // Whatever was tried, it still answers.
    if let Err(error) = field.is_well().await {
        bail!("after the attacks the gateway is not well: {error:#}\n{}", field.output());
    }
    Ok(outcomes)
}

/// What an attacker got.
async fn tried(probe: Probe, field: &Field) -> Option<String> {
    let tried = std::panic::AssertUnwindSafe(probe(field)).catch_unwind();
    match tokio::time::timeout(HANGS, tried).await {
        Ok(Ok(Ok(()))) => None,
        Ok(Ok(Err(error))) => Some(format!("{error:#}")),
        Ok(Err(_)) => Some("the attack itself panicked".to_owned()),
        Err(_) => Some(format!("it took longer than {} s", HANGS.as_secs())),
    }
}

/// The first test that is named and not there.
fn missing(names: &[&str], known: &table::Known) -> Option<String> {
    let missing = names.iter().find(|name| !known.contains(**name));
    missing.map(|name| format!("there is no test {name}"))
}

/// Runs the tests that stand for cases.
fn run_tests(root: &Path) -> Result<()> {
    let names = CASES.iter().filter_map(|case| match case.shown {
        Shown::Tests(names) | Shown::Both(_, names) => Some(names),
        Shown::Live(_) | Shown::Absent(_) | Shown::Later(_) => None,
    });
    let wanted: Vec<_> = names.flatten().map(|name| format!("test(/{name}$/)")).collect();
    let expression = wanted.join(" | ");
    shell::run(&mut shell::cargo(root, &["nextest", "run", "--workspace", "-E", &expression]))
}
