//! What each command does and prints. One file or folder each.

/// Prints a line, or returns why it cannot. Whatever others said in it is shown and not obeyed.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::commands::print(format_args!("{}\n", format_args!($($words)*)))?
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
use crate::plain::{plain_json, plain_lines};

/// Prints for a person to read.
pub(crate) fn print(text: fmt::Arguments<'_>) -> Result<(), Halt> {
    write(format_args!("{}", plain_lines(&text.to_string())))
}

/// Writes to standard output as it is. A reader that has seen enough and closed the pipe is no failure.
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
    write(format_args!("{}\n", plain_json(&text)))
}

/// The same on one line.
fn print_json_line(value: &impl Serialize) -> Result<(), Halt> {
    let text = serde_json::to_string(value).map_err(Halt::failed)?;
    write(format_args!("{}\n", plain_json(&text)))
}
