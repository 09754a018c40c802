//! `cargo xtask test`: everything that has to hold, in the order in which it fails fastest.

use std::path::Path;

use anyhow::Result;
use clap::Args;

use crate::{browser, docs, real_servers, shell, tidy};

#[derive(Args)]
pub(crate) struct Options {
    /// Leave out the browser and the servers that have to be installed first
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    shell::run(&mut shell::cargo(root, &["fmt", "--all", "--check"]))?;
    tidy::run(root)?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    shell::run(&mut shell::cargo(root, &clippy))?;
    shell::run(&mut shell::cargo(root, &["build", "--locked", "--package", "talaria"]))?;
    docs::check(root)?;
    // nextest runs each test in a process of its own and is faster; cargo's own runner will do.
    let tests: &[&str] = if shell::exists("cargo-nextest") {
        &["nextest", "run", "--workspace", "--locked", "--no-fail-fast"]
    } else {
        &["test", "--workspace", "--locked", "--no-fail-fast"]
    };
    shell::run(&mut shell::cargo(root, tests))?;
    if options.quick {
        eprintln!("left out: the browser and the installed servers");
        return Ok(());
    }
    let binary = shell::built(root, "debug");
    real_servers::run(root, &binary)?;
    browser::run(root, &binary)
}
