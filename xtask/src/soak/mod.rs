//! `cargo xtask soak`: the release binary under load and `kill -9`, and under a backlog.
//!
//! Three processes: this one supervises and kills; a driver plays people, platforms and model over
//! real sockets and keeps the truth; the gateway lives and dies between them. At the end everything
//! heals, the world comes to rest, and the driver judges. A run that breaks a promise fails with the
//! history of the message concerned.
#![allow(clippy::disallowed_methods, reason = "a soak lives in real time and in tasks of its own")]

mod backlog;
pub(crate) mod book;
pub(crate) mod check;
pub(crate) mod database;
mod driver;
mod mischief;
pub(crate) mod model;
mod people;
pub(crate) mod protocol;
mod supervise;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};

use crate::shell;
use backlog::Backlog;
use supervise::{Outcome, Plan};

/// More than this part of all messages set aside would make a run prove little.
const MOST_SET_ASIDE: f64 = 0.10;

/// The most megabytes a gateway may use, however much waits for it.
const CEILING: u64 = 400;

#[derive(Args)]
pub(crate) struct Options {
    /// How often the gateway is killed
    #[arg(long, default_value_t = 300)]
    kills: u32,
    /// Messages a second
    #[arg(long, default_value_t = 50)]
    rate: u32,
    /// What chance is drawn from; a fresh one if left out
    #[arg(long)]
    seed: Option<u64>,
    /// Use this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Instead of killing: let this many messages wait when the gateway starts
    #[arg(long)]
    backlog: Option<u64>,
    /// In how many conversations they wait
    #[arg(long, default_value_t = 10_000)]
    sessions: u64,
    /// The most megabytes the gateway may use while it works them off
    #[arg(long, default_value_t = CEILING)]
    ceiling: u64,
    #[command(subcommand)]
    inner: Option<Inner>,
}

#[derive(Subcommand)]
enum Inner {
    /// The process that keeps the truth
    #[command(hide = true)]
    Driver(driver::Options),
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    if let Some(Inner::Driver(options)) = &options.inner {
        return tokio::runtime::Runtime::new()?.block_on(driver::run(options));
    }
    if options.binary.is_none() && cfg!(debug_assertions) {
        return again_optimised(root);
    }
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => build(root)?,
    };
    match options.backlog {
        None => kill(root, &binary, options.kills, options.rate, options.seed),
        Some(rows) => {
            let backlog = Backlog { rows, sessions: options.sessions, ceiling: options.ceiling };
            work_off(root, &binary, backlog)
        }
    }
}

/// What CI runs, with a binary that is there.
pub(crate) fn run_short(root: &Path, binary: &Path) -> Result<()> {
    kill(root, binary, 40, 40, None)?;
    work_off(root, binary, Backlog { rows: 20_000, sessions: 500, ceiling: CEILING })
}

fn work_off(root: &Path, binary: &Path, backlog: Backlog) -> Result<()> {
    let folder = folder(root)?;
    eprintln!("soak: {} rows of {} sessions wait", backlog.rows, backlog.sessions);
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(backlog::run(binary, &folder, backlog))?.print(backlog);
    Ok(())
}

fn kill(root: &Path, binary: &Path, kills: u32, rate: u32, seed: Option<u64>) -> Result<()> {
    let seed = seed.unwrap_or_else(rand::random);
    let folder = folder(root)?;
    eprintln!("soak: {kills} kills at {rate} messages a second, --seed {seed}");
    let plan = Plan { binary, folder: &folder, kills, rate, seed };
    let outcome = tokio::runtime::Runtime::new()?.block_on(supervise::run(&plan))?;
    print(&outcome);
    let verdict = &outcome.verdict;
    let aside = verdict.set_aside as f64 / verdict.messages.max(1) as f64;
    ensure!(aside <= MOST_SET_ASIDE, "{:.0} % of all messages were set aside", aside * 100.0);
    ensure!(verdict.answers > 0, "nothing was answered");
    if !verdict.violations.is_empty() {
        let list = verdict.violations.join("\n\n");
        bail!("{} promises were broken, --seed {seed}\n\n{list}", verdict.violations.len());
    }
    println!("nothing lost, nothing repeated unmarked, nothing out of order, nothing misplaced");
    Ok(())
}

fn print(outcome: &Outcome) {
    let Outcome { verdict, kills, killing, took } = outcome;
    let mut recoveries = verdict.recoveries.clone();
    recoveries.sort_unstable();
    let at =
        |part: usize| recoveries.get(recoveries.len() * part / 100).copied().unwrap_or_default();
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "kills              {kills}, {:.2} a second",
        f64::from(*kills) / killing.as_secs_f64()
    );
    println!("messages           {} and {} commands and presses", verdict.messages, verdict.others);
    println!("answers            {} whole ones", verdict.answers);
    println!("marked repeats     {}", verdict.marked);
    println!("set aside          {}, each after three deaths and with a notice", verdict.set_aside);
    println!("given up           {} parcels, each seen by then", verdict.given_up);
    println!("faults besides     {} of platforms and model", verdict.faults);
    println!(
        "start to first act p50 {:.0} ms, p95 {:.0} ms, over {} lives",
        millis(at(50)),
        millis(at(95)),
        recoveries.len()
    );
    println!("took               {:.0} s", took.as_secs_f64());
}

fn build(root: &Path) -> Result<PathBuf> {
    shell::run(&mut shell::cargo(root, &["build", "--release", "--package", "talaria"]))?;
    Ok(shell::built(root, "release"))
}

/// The same command, built in earnest: a slow driver would put less load on the gateway.
fn again_optimised(root: &Path) -> Result<()> {
    shell::run(&mut shell::cargo(root, &["build", "--release", "--package", "xtask"]))?;
    let xtask = shell::built(root, "release").with_file_name("xtask");
    shell::run(Command::new(xtask).args(std::env::args_os().skip(1)))
}

fn folder(root: &Path) -> Result<PathBuf> {
    // On the disk that the project is on: in memory, every commit would be free and nothing would be
    // caught in the middle of one.
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let folder = target.join("soak");
    std::fs::create_dir_all(&folder).context("no place for the soak's files")?;
    Ok(folder)
}
