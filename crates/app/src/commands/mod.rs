//! What each command prints. One file each.
#![expect(clippy::print_stdout, reason = "printing is what commands are for")]

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

use serde::Serialize;

use crate::exit::Halt;

/// Prints a value for programs to read.
fn print_json(value: &impl Serialize) -> Result<(), Halt> {
    let text = serde_json::to_string_pretty(value).map_err(Halt::failed)?;
    println!("{text}");
    Ok(())
}
