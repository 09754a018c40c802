//! For tests: a disk under SQLite that can lose power and fail.
//!
//! SQLite reaches its files through a table of C functions. The one registered here forwards to the
//! operating system's own and writes down, for the folders that a test watches, every write and every
//! sync. From that tape it makes the files as a power cut at any moment could have left them, and on
//! request it makes calls fail as a broken or full disk does. Other folders are not touched, so the
//! program under test runs unchanged and in one process with other tests.
//!
//! It knows nothing of what is stored. It takes for granted that whoever syncs a file gets it synced,
//! that a sector is written whole or not at all, and that bytes nobody writes to stay as they are.
#![cfg(unix)]

mod dice;
mod disk;
mod fault;
mod loss;
mod tape;
#[cfg(test)]
mod tests;
mod vfs;

pub use dice::Dice;
pub use disk::Disk;
pub use fault::{Errno, Fault, Files, Op, Span, Trouble};
pub use loss::{Image, Lie, Loss, Pattern};
pub use tape::{Event, FileNo, Tape};
