//! This machine as the gateway touches it: programs that it starts and ends, files that are for one user,
//! the door through which commands reach it, signals, the terminal, and whoever starts services.
//!
//! No other crate asks which operating system this is. Each folder here is one idea with one promise,
//! kept by `unix.rs` and by `windows.rs`. It knows nothing of what the programs do and what the files are.
#![deny(unsafe_code)]
#![cfg_attr(unix, forbid(unsafe_code))]

pub mod door;
mod environment;
mod folder;
mod identity;
mod pipe;
mod private;
mod process;
mod program;
mod replace;
mod room;
pub mod service;
mod signals;
mod started;
pub mod terminal;

#[cfg(windows)]
mod windows;

pub use environment::{PASSED_ON, SCRATCH, environment, keep_to_ourselves};
pub use folder::Folder;
pub use identity::{Identity, disk, has_one_name};
pub use pipe::{Output, output};
pub use private::{
    Doubt, Mode, Private, belongs_to_us, close, close_command, create_for_us, doubt, make_for_us,
    open_to, replaceable_in,
};
#[cfg(unix)]
pub use private::{belongs_to, user_called, user_number};
pub use process::{Process, Told, command_line, parent};
pub use program::{
    Again, PYTHON, become_program, find_program, is_program, make_program, program_in,
};
pub use replace::{Outlasts, replace, replace_to, sync_folder};
pub use room::{Room, room};
pub use signals::{Heard, Nudge, Signals, Wish, nudges};
pub use started::Started;
