//! What each command does and prints. One file or folder each.

/// Prints a line, or returns why it cannot.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::commands::write(format_args!("{}\n", format_args!($($words)*)))?
    };
}

pub(crate) mod approvals;
pub(crate) mod backup;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod control;
pub(crate) mod doctor;
mod export;
pub(crate) mod hooks;
pub(crate) mod logs;
pub(crate) mod model;
pub(crate) mod open;
pub(crate) mod pair;
pub(crate) mod people;
pub(crate) mod platforms;
pub(crate) mod service;
pub(crate) mod sessions;
pub(crate) mod setup;
pub(crate) mod status;
mod table;
pub(crate) mod why;

use std::fmt;
use std::io::{ErrorKind, Write};

use serde::Serialize;

use crate::exit::Halt;

/// Writes to standard output. A reader that has seen enough and closed the pipe is no failure.
pub(crate) fn write(text: fmt::Arguments<'_>) -> Result<(), Halt> {
    let mut out = std::io::stdout().lock();
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Halt::failed(format_args!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a value for programs to read.
fn print_json(value: &impl Serialize) -> Result<(), Halt> {
    let text = serde_json::to_string_pretty(value).map_err(Halt::failed)?;
    say!("{text}");
    Ok(())
}
