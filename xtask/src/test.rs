//! `cargo xtask test`: everything that has to hold, in the order in which it fails fastest.
#![allow(clippy::disallowed_methods, reason = "it says how long each part took")]

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::{
    attack, browser, deny, docs, fuzz, planted, real_servers, shell, sim, soak, tidy, trio, windows,
};

#[derive(Args)]
pub(crate) struct Options {
    /// Leave out what has to be installed first: the browser, the servers, cargo-deny
    #[arg(long)]
    quick: bool,
    /// Only this part
    #[arg(long)]
    only: Option<Part>,
}

/// A part of the tests.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Formatting, the shape of the workspace, lints, generated documents
    Lint,
    /// Every test that needs nothing but Rust
    Rust,
    /// The program for Windows, as far as a compiler can tell
    Windows,
    /// Licences, sources and banned crates of everything that is built in
    Deny,
    /// Two thousand seeds of the simulator, every point to die at, and the bugs that it has to find
    Sim,
    /// Every fuzz target for a while
    Fuzz,
    /// The binary, killed again and again under load, and with much waiting when it starts
    Soak,
    /// The binary with Telegram, Discord and Slack at once while everything goes wrong
    Trio,
    /// The attack list against the binary
    Attack,
    /// Models and platforms against servers that nobody here wrote
    Servers,
    /// The web chat in Chromium
    Browser,
}

impl Part {
    const ALL: [Self; 11] = [
        Self::Lint,
        Self::Rust,
        Self::Windows,
        Self::Deny,
        Self::Sim,
        Self::Fuzz,
        Self::Soak,
        Self::Trio,
        Self::Attack,
        Self::Servers,
        Self::Browser,
    ];
    const QUICK: [Self; 2] = [Self::Lint, Self::Rust];
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let parts = match (options.only, options.quick) {
        (Some(part), _) => vec![part],
        (None, true) => Part::QUICK.to_vec(),
        (None, false) => Part::ALL.to_vec(),
    };
    let begun = Instant::now();
    for part in parts {
        let (name, began) = (part.to_possible_value(), Instant::now());
        test(root, part)?;
        let (took, in_all) = (began.elapsed().as_secs(), begun.elapsed().as_secs());
        let name = name.as_ref().map_or("part", |name| name.get_name());
        eprintln!("test: {name} passed in {took} s, {in_all} s in all");
    }
    Ok(())
}

fn test(root: &Path, part: Part) -> Result<()> {
    match part {
        Part::Lint => {
            shell::run(&mut shell::cargo(root, &["fmt", "--all", "--check"]))?;
            tidy::run(root)?;
            let clippy =
                ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
            shell::run(&mut shell::cargo(root, &clippy))?;
            docs::check(root)
        }
        Part::Rust => {
            // nextest runs each test in a process of its own and is faster; cargo's own runner will do.
            let tests: &[&str] = if shell::exists("cargo-nextest") {
                &["nextest", "run", "--workspace", "--locked", "--no-fail-fast"]
            } else {
                &["test", "--workspace", "--locked", "--no-fail-fast"]
            };
            shell::run(&mut shell::cargo(root, tests))
        }
        Part::Windows => windows::check(root),
        Part::Deny => deny::run(root),
        Part::Sim => {
            sim::check(root)?;
            planted::run_all(root)
        }
        Part::Fuzz => fuzz::run_all_targets(root),
        Part::Soak => {
            build(root)?;
            soak::run_short(root, &shell::built(root, "debug"))
        }
        Part::Trio => {
            build(root)?;
            trio::run_short(root, &shell::built(root, "debug"))
        }
        Part::Attack => {
            // What people install: what the optimiser and missing assertions change is attacked, too.
            shell::run(&mut shell::cargo(
                root,
                &["build", "--release", "--locked", "--package", "talaria"],
            ))?;
            attack::run_all(root, &shell::built(root, "release"))
        }
        Part::Servers => {
            build(root)?;
            real_servers::run_all(root, &shell::built(root, "debug"))
        }
        Part::Browser => {
            build(root)?;
            browser::run(root, &shell::built(root, "debug"))
        }
    }
}

fn build(root: &Path) -> Result<()> {
    shell::run(&mut shell::cargo(root, &["build", "--locked", "--package", "talaria"]))
}
