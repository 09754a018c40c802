//! The talaria binary: the only crate that names both a contract and its implementation.
#![forbid(unsafe_code)]

mod again;
mod aside;
mod backup;
mod boot;
mod chat;
mod cli;
mod client;
mod commands;
mod desk;
mod discretion;
mod ending;
mod exit;
mod forensics;
mod home;
mod homes;
mod hooks;
mod init;
mod instance;
mod instruments;
mod last_good;
mod locks;
mod logging;
mod model;
mod orders;
mod paused;
mod people;
mod plain;
mod plans;
mod programs;
mod quick;
mod reload;
mod rules;
mod run;
mod signals;
mod start;
mod state_file;
mod steward;
mod upkeep;
mod voice;
mod web_link;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use talaria_clock::{Clock, Mark, SystemClock};
use talaria_machine::service::{self, Outcome};

use crate::cli::{Cli, Command, RunOptions};
use crate::exit::{Exit, Halt};
use crate::home::Home;

/// How long what runs beside everything else gets when everything else is over.
const LAST_WORDS: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let begun = SystemClock.mark();
    talaria_machine::keep_to_ourselves();
    let command = said();
    match &command {
        Command::Run(RunOptions { as_service: Some(name), .. }) => serve_as(name).into(),
        _ => live(command, begun).into(),
    }
}

/// What the words of this process ask for.
fn said() -> Command {
    Cli::parse().command.unwrap_or(Command::Run(RunOptions::default()))
}

/// Is a service for as long as it runs.
fn serve_as(name: &str) -> Exit {
    let body = || match live(said(), SystemClock.mark()) {
        Exit::Done => Outcome::Done,
        exit @ Exit::Unmendable => Outcome::LeftAlone(exit.code()),
        exit => Outcome::StartedAgain(exit.code()),
    };
    match service::serve_as(name, body) {
        Ok(()) => Exit::Done,
        Err(error) => {
            let problem = format!("nobody has started it as a service: {error}");
            eprintln!("{}", Halt::new(Exit::Misused, problem).hint("use `talaria run`"));
            Exit::Misused
        }
    }
}

/// Does what was asked for, and says how it ended.
fn live(command: Command, begun: Mark) -> Exit {
    let is_gateway = matches!(command, Command::Run(_));
    let ended = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Halt::failed(format_args!("no runtime: {error}")))
        .and_then(|runtime| {
            let ended = runtime.block_on(carry_out(command, begun));
            // A thread that hangs in the operating system is not waited for.
            runtime.shutdown_timeout(LAST_WORDS);
            ended
        });
    match ended {
        Ok(exit) => exit,
        Err(halt) => {
            let halt = if is_gateway { halt.of_a_gateway() } else { halt };
            eprintln!("{halt}");
            halt.exit
        }
    }
}

async fn carry_out(command: Command, begun: Mark) -> Result<Exit, Halt> {
    // One TLS provider in the whole process, chosen before anything can ask for one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let home = match &command {
        Command::Run(RunOptions { home: Some(folder), .. }) => Home::at(folder),
        _ => Home::find()?,
    };
    instance::starts::hold_up(backup::settle(&home)).await?;
    match command {
        Command::Run(options) => run::run(&home, options, begun).await,
        Command::Chat(options) => commands::chat::chat(&home, options).await,
        Command::Setup(options) => commands::setup::setup(&home, *options).await,
        Command::Open => commands::open::open(&home).await,
        Command::Model(options) => commands::model::model(&home, options).await,
        Command::Status(options) => commands::status::status(&home, options).await,
        Command::Doctor(options) => commands::doctor::doctor(&home, options).await,
        Command::Sessions(command) => commands::sessions::sessions(&home, command).await,
        Command::Pair(command) => commands::pair::pair(&home, command).await,
        Command::People(output) => commands::people::people(&home, output).await,
        Command::Audit(options) => commands::pair::audit(&home, options).await,
        Command::Approvals(command) => commands::approvals::approvals(&home, command).await,
        Command::Config(command) => commands::config::config(&home, command).await,
        Command::Logs(options) => commands::logs::logs(&home, options).await,
        Command::Platforms(options) => commands::platforms::platforms(&home, options).await,
        Command::Hooks(command) => commands::hooks::hooks(&home, command).await,
        Command::Why(options) => commands::why::why(&home, options).await,
        Command::Metrics => commands::control::metrics(&home).await,
        Command::Backup(command) => commands::backup::backup(&home, command),
        Command::Reload(output) => commands::control::reload(&home, output).await,
        Command::Stop => commands::control::stop(&home).await,
        Command::Restart => commands::control::restart(&home).await,
        Command::Service(command) => commands::service::service(&home, command).await,
        Command::Completions { shell } => commands::completions::completions(shell),
    }
}
