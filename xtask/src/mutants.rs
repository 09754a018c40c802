//! Small changes to the code that keeps others out: wherever no test notices one, a test is missing.
//!
//! Which files, and which changes make no difference for which reason, is in `.cargo/mutants.toml`.

use std::path::Path;

use anyhow::Result;
use clap::Args;

use crate::{installed, shell};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// What cargo-mutants is told besides, such as `--file crates/fetch/src/rules.rs`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let program = installed::cargo_mutants(root)?;
    let output = installed::tools(root).join("mutants");
    std::fs::create_dir_all(&output)?;
    let mut command = std::process::Command::new(program);
    command
        .current_dir(root)
        .args(["mutants", "--workspace", "--no-shuffle", "--output"])
        .arg(output);
    // Hundreds of builds that nobody looks into with a debugger.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").env_remove("CARGO_TARGET_DIR");
    shell::run(command.args(&options.arguments))
}
