//! What each command prints. One file each.

/// Prints a line. A reader that has seen enough and closed the pipe is no failure.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::commands::write(format_args!("{}\n", format_args!($($words)*)))
    };
}

pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod control;
pub(crate) mod model;
pub(crate) mod open;
pub(crate) mod platforms;
pub(crate) mod sessions;
pub(crate) mod status;
mod table;

use std::fmt;
use std::io::Write;

use serde::Serialize;

use crate::exit::Halt;

fn write(text: fmt::Arguments<'_>) {
    // Nobody is left to be told that nobody reads.
    let _ = std::io::stdout().lock().write_fmt(text);
}

/// Prints a value for programs to read.
fn print_json(value: &impl Serialize) -> Result<(), Halt> {
    let text = serde_json::to_string_pretty(value).map_err(Halt::failed)?;
    say!("{text}");
    Ok(())
}
