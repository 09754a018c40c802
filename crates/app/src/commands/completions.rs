//! `talaria completions`: a script for the shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::{Exit, Halt};

pub(crate) fn completions(shell: Shell) -> Result<Exit, Halt> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "talaria", &mut script);
    super::write(format_args!("{}", String::from_utf8_lossy(&script)))?;
    Ok(Exit::Done)
}
