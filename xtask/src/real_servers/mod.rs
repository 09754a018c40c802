//! The real binary against servers that nobody here wrote: an API of models, and emulators of Slack,
//! Discord and Telegram. Where an emulator lacks a way in, `fronts` adds it, and nothing else. What the
//! platforms ask for is also compared with what is published about it.
#![allow(clippy::disallowed_methods, reason = "peers live in real time")]

mod clock;
mod discord;
mod models;
mod rig;
mod schemas;
mod slack;
mod systemd;
mod telegram;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::shell;

#[derive(Args)]
pub(crate) struct Options {
    /// Only this server
    #[arg(long)]
    only: Option<Server>,
    /// Use this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// A server that nobody here wrote.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Server {
    /// An API of models
    Models,
    /// Slack, by socket and by signed requests
    Slack,
    /// Discord
    Discord,
    /// Telegram, by poll and by webhook
    Telegram,
    /// None: what the three are asked for, beside what is published about them
    Schemas,
    /// systemd, which reads the unit of the service
    Systemd,
    /// None: the wall clock, set back while the gateway works
    Clock,
}

impl Server {
    const ALL: [Self; 7] = [
        Self::Models,
        Self::Slack,
        Self::Discord,
        Self::Telegram,
        Self::Schemas,
        Self::Systemd,
        Self::Clock,
    ];
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            shell::run(&mut shell::cargo(root, &["build", "--locked", "--package", "talaria"]))?;
            shell::built(root, "debug")
        }
    };
    let all = options.only.map_or_else(|| Server::ALL.to_vec(), |one| vec![one]);
    all.into_iter().try_for_each(|server| meet(root, &binary, server))
}

/// What CI runs, with a binary that is there.
pub(crate) fn run_all(root: &Path, binary: &Path) -> Result<()> {
    Server::ALL.into_iter().try_for_each(|server| meet(root, binary, server))
}

fn meet(root: &Path, binary: &Path, server: Server) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    match server {
        Server::Models => models::run(root, binary),
        Server::Schemas => schemas::run(root),
        Server::Systemd => systemd::run(binary),
        Server::Clock => runtime.block_on(clock::run(binary)),
        Server::Slack => runtime.block_on(async {
            slack::by_socket(root, binary).await?;
            slack::by_requests(root, binary).await
        }),
        Server::Discord => runtime.block_on(discord::run(root, binary)),
        Server::Telegram => runtime.block_on(async {
            telegram::by_poll(root, binary).await?;
            telegram::by_webhook(root, binary).await
        }),
    }
}
