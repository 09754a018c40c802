//! Whoever runs services on this machine, if it started this process: what it is told, and what it asks.

#[cfg(windows)]
pub mod installed;
#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

use std::io;
use std::time::Duration;

#[cfg(windows)]
pub(crate) use system::{Orders, orders};

/// Ends like this are not the last: whoever runs services starts the program again, unless it is one that
/// another start does not mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It ended because it was to end.
    Done,
    /// It ended like this and is to be left alone.
    LeftAlone(u8),
    /// It ended like this and is to be started again.
    StartedAgain(u8),
}

/// How a person ends a service for good whose process hangs.
pub const STOPPED_BY: &str = system::STOPPED_BY;

/// A part of the start is over.
pub fn starting(status: &str) {
    system::starting(status);
}

/// It serves.
pub fn ready(status: &str) {
    system::ready(status);
}

/// It is ending, and takes no longer than this.
pub fn stopping(status: &str, longest: Duration) {
    system::stopping(status, longest);
}

/// How often there has to be a sign of life, if anybody waits for one.
pub fn watchdog() -> Option<Duration> {
    system::watchdog()
}

/// A sign of life.
pub fn alive() {
    system::alive();
}

/// Whether whoever runs services started this process, and starts it again when it ends and is not done.
pub fn restarts_us() -> bool {
    system::restarts_us()
}

/// Runs this as the service of this name, in a process that whoever runs services has started for it, and
/// returns when it is over. An error says that nobody has.
///
/// Only Windows starts services in a way in which they have to say that they are one.
pub fn serve_as(name: &str, body: fn() -> Outcome) -> io::Result<()> {
    system::serve_as(name, body)
}
