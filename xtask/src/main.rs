//! The project's own commands, one each: `cargo xtask test`, `cargo xtask docs`, `cargo xtask bench`.
#![forbid(unsafe_code)]

mod bench;
mod browser;
mod deny;
mod docs;
mod installed;
mod real_servers;
mod shell;
mod stage;
mod test;
mod tidy;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything: formatting, lints, every test, real servers, the browser
    Test(test::Options),
    /// Check the shape of the workspace: who may depend on whom
    Tidy,
    /// Write the generated documents again
    Docs,
    /// Measure the release binary beside a floor that is measured in the same run
    Bench(bench::Options),
}

fn main() -> Result<()> {
    let root = shell::root()?;
    match Cli::parse().command {
        Command::Test(options) => test::run(&root, &options),
        Command::Tidy => tidy::run(&root),
        Command::Docs => docs::write(&root),
        Command::Bench(options) => bench::run(&root, &options),
    }
}
