//! The project's own commands, one each: `cargo xtask test`, `cargo xtask docs`, `cargo xtask bench`.
#![forbid(unsafe_code)]

mod attack;
mod bench;
mod browser;
mod deny;
mod docs;
mod fuzz;
mod installed;
mod mutants;
mod planted;
mod platform;
mod platform_pages;
mod real_servers;
mod shell;
mod sim;
mod soak;
mod stage;
mod test;
mod tidy;
mod torture;
mod trio;
mod windows;

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
    /// Try every case of the attack list against the binary, and write the table
    Attack(attack::Options),
    /// Measure the release binary beside a floor that is measured in the same run
    Bench(bench::Options),
    /// Run the gateway in a simulated world: seeds, and every point at which it can die
    Sim(sim::Options),
    /// Switch on bugs that were planted on purpose, one by one, and look whether each is found
    Planted(planted::Options),
    /// Change the code that decides who may do what in small ways, and look whether a test notices
    Mutants(mutants::Options),
    /// Begin a platform
    #[command(subcommand)]
    Platform(platform::Action),
    /// Take power from the store at every sync, break its disk and damage its files
    Torture(torture::Options),
    /// Run the fuzz targets on this compiler, each for a while
    Fuzz(fuzz::Options),
    /// Kill the release binary again and again under load, and look what was lost
    Soak(soak::Options),
    /// Run the binary against servers that nobody here wrote: models, Slack, Discord, Telegram
    Servers(real_servers::Options),
    /// Run the release binary with Telegram, Discord and Slack at once, and let everything go wrong
    Trio(trio::Options),
    /// Build for Windows, and try that under Wine
    Windows(windows::Options),
}

fn main() -> Result<()> {
    // A gateway refuses state that others can read, and some of it is written here.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
    let root = shell::root()?;
    match Cli::parse().command {
        Command::Test(options) => test::run(&root, &options),
        Command::Tidy => tidy::run(&root),
        Command::Docs => docs::write(&root),
        Command::Attack(options) => attack::run(&root, &options),
        Command::Bench(options) => bench::run(&root, &options),
        Command::Sim(options) => sim::run(&root, &options),
        Command::Planted(options) => planted::run(&root, &options),
        Command::Mutants(options) => mutants::run(&root, &options),
        Command::Platform(action) => platform::run(&root, &action),
        Command::Torture(options) => torture::run(&root, &options),
        Command::Fuzz(options) => fuzz::run(&root, &options),
        Command::Soak(options) => soak::run(&root, &options),
        Command::Servers(options) => real_servers::run(&root, &options),
        Command::Trio(options) => trio::run(&root, &options),
        Command::Windows(options) => windows::run(&root, &options),
    }
}
