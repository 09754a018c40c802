//! The terminal that a person sits at: whether what is typed is shown, and whether something was.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

use std::io;

/// While this lives, what is typed is not shown, and a line still ends with Enter.
pub struct Curtain {
    _before: system::Before,
}

impl Curtain {
    /// Hides what is typed from here on.
    pub fn draw() -> io::Result<Self> {
        Ok(Self { _before: system::hide()? })
    }
}

/// While this lives, what is typed is not shown and not held back until Enter: it stays with the
/// terminal until somebody reads it. Ctrl-C still interrupts.
pub struct Quiet {
    _before: system::Before,
}

impl Quiet {
    /// Quiet from here on.
    pub fn begin() -> io::Result<Self> {
        Ok(Self { _before: system::hush()? })
    }
}

/// Whether there is something to read from the keyboard. It stays there.
pub fn key_is_pressed() -> bool {
    system::key_is_pressed()
}

/// Whether the terminal behind standard output moves its cursor and changes its colours when it is written
/// the sequences for that. Asked only where there is one.
pub fn understands_sequences() -> bool {
    system::understands_sequences()
}
