//! The talaria binary: the only crate that names both a contract and its implementation.
#![forbid(unsafe_code)]

mod again;
mod chat;
mod cli;
mod client;
mod commands;
mod discretion;
mod exit;
mod home;
mod homes;
mod locks;
mod logging;
mod model;
mod people;
mod programs;
mod quick;
mod replace;
mod rules;
mod run;
mod start;
mod steward;
mod upkeep;
mod voice;
mod web_link;

use std::process::ExitCode;

use clap::Parser;
use talaria_clock::{Clock, SystemClock};

use crate::cli::{Cli, Command};
use crate::exit::{Exit, Halt};
use crate::home::Home;

fn main() -> ExitCode {
    let begun = SystemClock.now();
    keep_to_ourselves();
    let cli = Cli::parse();
    let ended = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Halt::failed(format_args!("no runtime: {error}")))
        .and_then(|runtime| runtime.block_on(carry_out(cli, begun)));
    match ended {
        Ok(exit) => exit.into(),
        Err(halt) => {
            eprintln!("{halt}");
            halt.exit.into()
        }
    }
}

/// Whatever is written is for this user alone, and what is in memory is not written down when we die.
fn keep_to_ourselves() {
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
    // Where the system does not let us, it is no reason not to run.
    let _ = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0);
}

async fn carry_out(cli: Cli, begun: talaria_model::Timestamp) -> Result<Exit, Halt> {
    // One TLS provider in the whole process, chosen before anything can ask for one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let home = Home::find()?;
    match cli.command.unwrap_or(Command::Run) {
        Command::Run => run::run(&home, begun).await,
        Command::Chat(options) => commands::chat::chat(&home, options).await,
        Command::Setup(options) => commands::setup::setup(&home, *options).await,
        Command::Open => commands::open::open(&home).await,
        Command::Model(options) => commands::model::model(&home, options).await,
        Command::Status(output) => commands::status::status(&home, output).await,
        Command::Sessions(command) => commands::sessions::sessions(&home, command).await,
        Command::Pair(command) => commands::pair::pair(&home, command).await,
        Command::People(output) => commands::people::people(&home, output).await,
        Command::Audit(options) => commands::pair::audit(&home, options).await,
        Command::Approvals(command) => commands::approvals::approvals(&home, command).await,
        Command::Config(command) => commands::config::config(&home, command).await,
        Command::Platforms(output) => commands::platforms::platforms(output),
        Command::Reload(output) => commands::control::reload(&home, output).await,
        Command::Stop => commands::control::stop(&home).await,
        Command::Completions { shell } => commands::completions::completions(shell),
    }
}
