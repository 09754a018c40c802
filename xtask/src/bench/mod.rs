//! `cargo xtask bench`: how fast and how small the release binary is, beside a floor that is measured
//! in the same run.
//!
//! The model and the vendor live in this process; the gateway and the floor are processes of their
//! own, measured from outside in the same way. Rounds of both take turns, so that a noisy machine is
//! noisy for both, and medians are compared.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

mod figures;
mod flood;
mod floor;
mod gateway;
mod guesses;
mod language;
mod machine;
mod platforms;
mod report;
mod restart;
mod sample;
mod search;
mod serving;
mod steps;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use talaria_testkit::FakeLlm;

use crate::shell;
use figures::{Figures, Round};
use floor::Floor;
use gateway::Bench;
use report::Row;

/// Turns at the same time in the throughput rounds.
const CROWD: usize = 64;

/// Turns of one round, one after the other.
const ALONE_TURNS: usize = 400;

/// Turns of one round, `CROWD` at a time.
const CROWD_TURNS: usize = 6000;

/// Rounds of each kind.
const ROUNDS: usize = 5;

#[derive(Args)]
pub(crate) struct Options {
    /// Measure this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Fail when a target is missed, as a single benchmark always does
    #[arg(long)]
    check: bool,
    /// Write docs/performance.md
    #[arg(long)]
    write: bool,
    #[command(subcommand)]
    inner: Option<Inner>,
}

#[derive(Subcommand)]
enum Inner {
    /// Only keep a gateway busy, for a profiler to look at
    Drive(Drive),
    /// Only Telegram, Discord and Slack
    Platforms(platforms::Options),
    /// Only what people notice of a restart
    Restart,
    /// Only how people are served while strangers flood the HTTP listener
    Flood,
    /// Only how people are answered while strangers guess pairing codes
    Guesses(guesses::Options),
    /// The strangers, in a process of their own
    #[command(hide = true)]
    Strangers(flood::Options),
    /// The floor, in a process of its own
    #[command(hide = true)]
    Floor(floor::Options),
}

#[derive(Args)]
struct Drive {
    /// How many turns
    #[arg(long, default_value_t = 20_000)]
    turns: usize,
    /// How many at a time
    #[arg(long, default_value_t = CROWD)]
    at_once: usize,
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    if let Some(Inner::Floor(options)) = &options.inner {
        return floor::run(options);
    }
    if let Some(Inner::Strangers(options)) = &options.inner {
        return flood::run(options);
    }
    let is_small = match &options.inner {
        Some(Inner::Platforms(options)) => options.small,
        Some(Inner::Guesses(options)) => options.is_small(),
        _ => false,
    };
    if cfg!(debug_assertions) && !is_small {
        return again_optimised(root);
    }
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None if is_small => shell::built(root, "debug"),
        None => build(root)?,
    };
    let runtime = tokio::runtime::Runtime::new()?;
    if let Some(Inner::Drive(drive)) = &options.inner {
        return runtime.block_on(keep_busy(root, &binary, drive));
    }
    if let Some(Inner::Platforms(platforms)) = &options.inner {
        return runtime.block_on(platforms_only(root, &binary, platforms));
    }
    if matches!(options.inner, Some(Inner::Restart)) {
        return runtime.block_on(restart_only(root, &binary));
    }
    if matches!(options.inner, Some(Inner::Flood)) {
        return runtime.block_on(flood_only(root, &binary));
    }
    if let Some(Inner::Guesses(guesses)) = &options.inner {
        return runtime.block_on(guesses_only(root, &binary, guesses));
    }
    let figures = runtime.block_on(measure(root, &binary))?;
    let table = report::table(&figures);
    show(&table);
    if options.write {
        let page = root.join("docs/performance.md");
        std::fs::write(&page, report::page(&table, &machine::description(root)))?;
        println!("written: docs/performance.md");
    }
    if options.check { judge(&table) } else { Ok(()) }
}

/// Fails when a target is missed.
fn judge(rows: &[Row]) -> Result<()> {
    let missed: Vec<&str> =
        rows.iter().filter(|row| row.is_missed()).map(|row| row.what.as_str()).collect();
    ensure!(missed.is_empty(), "missed: {}", missed.join(", "));
    Ok(())
}

fn show(rows: &[Row]) {
    println!("\n{}", report::aligned(rows));
}

/// Shows what a single benchmark found, and fails when it missed a target.
fn conclude(rows: &[Row]) -> Result<()> {
    show(rows);
    judge(rows)
}

fn build(root: &Path) -> Result<PathBuf> {
    shell::run(&mut shell::cargo(root, &["build", "--release", "--package", "talaria"]))?;
    Ok(target(root).join("release/talaria"))
}

/// The same command, built in earnest: peers built for debugging would be slower than what they
/// measure.
fn again_optimised(root: &Path) -> Result<()> {
    shell::run(&mut shell::cargo(root, &["build", "--release", "--package", "xtask"]))?;
    let mut command = Command::new(target(root).join("release/xtask"));
    shell::run(command.args(std::env::args_os().skip(1)))
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn folder(root: &Path) -> Result<PathBuf> {
    // On the disk that the project is on: a folder in memory would make every commit free.
    let folder = target(root).join("bench");
    std::fs::create_dir_all(&folder).context("no place for the benchmark's files")?;
    Ok(folder)
}

async fn keep_busy(root: &Path, binary: &Path, drive: &Drive) -> Result<()> {
    let folder = folder(root)?;
    let llm = FakeLlm::open().await?;
    let bench = Bench::new(binary, &folder, &llm);
    let gateway = bench.open().await?;
    eprintln!("process {}", gateway.pid());
    let sample = bench.round(&gateway, drive.turns, drive.at_once).await?;
    eprintln!("{sample}");
    gateway.end().await
}

async fn restart_only(root: &Path, binary: &Path) -> Result<()> {
    let folder = folder(root)?;
    let llm = FakeLlm::open().await?;
    let restart = restart::measure(&Bench::new(binary, &folder, &llm)).await?;
    conclude(&[report::through_a_restart(&restart)])
}

async fn flood_only(root: &Path, binary: &Path) -> Result<()> {
    let folder = folder(root)?;
    let llm = FakeLlm::open().await?;
    let flood = flood::measure(&Bench::new(binary, &folder, &llm)).await?;
    conclude(&report::in_a_flood(&flood))
}

async fn guesses_only(root: &Path, binary: &Path, options: &guesses::Options) -> Result<()> {
    let folder = folder(root)?;
    let llm = FakeLlm::open().await?;
    let guesses = guesses::measure(&Bench::new(binary, &folder, &llm), options.guesses).await?;
    eprintln!("quiet: {}; meanwhile: {}", guesses.quiet, guesses.guessed);
    let rows = report::under_guesses(&guesses);
    // What is smaller than in earnest proves nothing about targets.
    if options.is_small() {
        show(&rows);
        return Ok(());
    }
    conclude(&rows)
}

async fn platforms_only(root: &Path, binary: &Path, options: &platforms::Options) -> Result<()> {
    let folder = folder(root)?;
    let mut figures = Figures::default();
    platforms::measure(binary, &folder, &mut figures, options.size()).await?;
    let rows = report::on_platforms(&figures);
    if options.small {
        show(&rows);
        return Ok(());
    }
    conclude(&rows)
}

async fn measure(root: &Path, binary: &Path) -> Result<Figures> {
    let folder = folder(root)?;
    let llm = FakeLlm::open().await?;
    let bench = Bench::new(binary, &folder, &llm);
    let mut figures = Figures::default();

    eprintln!("cold start and idle memory");
    bench.start_cold(&mut figures).await?;

    eprintln!("turns, one at a time and {CROWD} at a time, in turns with the floor");
    let gateway = bench.open().await?;
    bench.warm_up(&gateway).await?;
    let floor = Floor::start(&folder, &llm).await?;
    for round in 0..ROUNDS {
        for (turns, at_once) in [(ALONE_TURNS, 1), (CROWD_TURNS, CROWD)] {
            // Whoever goes first has the warmer machine, so they swap.
            let (floor, ours) = if round % 2 == 0 {
                let floor = floor.round(turns, at_once).await?;
                (floor, bench.round(&gateway, turns, at_once).await?)
            } else {
                let ours = bench.round(&gateway, turns, at_once).await?;
                (floor.round(turns, at_once).await?, ours)
            };
            eprintln!("  {at_once:>2} at a time: floor {floor}; ours {ours}");
            let rounds = if at_once == 1 { &mut figures.alone } else { &mut figures.crowded };
            rounds.push(Round { floor, ours });
        }
    }
    drop(floor);
    gateway.end().await?;

    eprintln!("memory with many known sessions");
    bench.know_many(&mut figures).await?;
    eprintln!("1,000 turns in flight");
    bench.fly_many(&llm, &mut figures).await?;
    eprintln!("killed with 50 in flight");
    bench.kill_in_flight(&llm, &mut figures).await?;
    eprintln!("a restart under load");
    figures.restart = Some(restart::measure(&bench).await?);
    eprintln!("a flood of strangers");
    figures.flood = Some(flood::measure(&bench).await?);
    eprintln!("a million guesses");
    figures.guesses = Some(guesses::measure(&bench, guesses::USUAL).await?);
    platforms::measure(binary, &folder, &mut figures, platforms::Size::FULL).await?;
    eprintln!("steps of a session");
    figures.steps = steps::take()?;
    eprintln!("searching a million entries");
    figures.searches = search::ask(&folder).await?;
    Ok(figures)
}
