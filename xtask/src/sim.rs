//! `cargo xtask sim`: builds the simulator for speed and runs it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::shell;

#[derive(Args)]
pub(crate) struct Options {
    /// What the simulator is told; `-- --help` shows what it understands
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let arguments: Vec<&str> = options.arguments.iter().map(String::as_str).collect();
    tell(root, &[&arguments])
}

/// What has to hold before anything is merged: many seeds, every point to die at, and some pairs.
pub(crate) fn check(root: &Path) -> Result<()> {
    tell(root, &[&["--seeds", "2000"], &["--points"], &["--pairs", "--every", "20"]])
}

fn tell(root: &Path, runs: &[&[&str]]) -> Result<()> {
    let binary = build(root, &target(root))?;
    runs.iter().try_for_each(|arguments| shell::run(Command::new(&binary).args(*arguments)))
}

/// Builds the simulator of a workspace into a folder.
pub(crate) fn build(workspace: &Path, target: &Path) -> Result<PathBuf> {
    let mut cargo = shell::cargo(
        workspace,
        &["build", "--locked", "--profile", "sim", "--package", "talaria-testkit", "--bin", "sim"],
    );
    shell::run(cargo.arg("--target-dir").arg(target))?;
    Ok(target.join("sim").join("sim"))
}

/// Where things are built.
pub(crate) fn target(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| root.join("target"))
}
