//! `talaria completions`: a script for the shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::{Exit, Halt};

pub(crate) fn completions(shell: Shell) -> Result<Exit, Halt> {
    clap_complete::generate(shell, &mut Cli::command(), "talaria", &mut std::io::stdout());
    Ok(Exit::Done)
}
