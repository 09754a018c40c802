//! The terminal that the person sits at: its size, its mode, and what it can show.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{self, InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios};
use rustyline::DefaultEditor;
use talaria_clock::Clock;
use talaria_render::Colour;

use super::live::Size;
use super::paper::Display;
use crate::commands;

/// Asks terminals to mark what is pasted, so that its line breaks are not taken for Enter.
const MARK_PASTES: &str = "\x1b[?2004h";
const DO_NOT_MARK_PASTES: &str = "\x1b[?2004l";

/// What standard output can show.
pub(super) fn display() -> Display {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    if dumb || !io::stdout().is_terminal() {
        return Display::Plain;
    }
    let colour = if set("NO_COLOR") { Colour::Off } else { Colour::On };
    Display::Rich { size: size(), colour }
}

fn size() -> Size {
    let found = DefaultEditor::new().ok().and_then(|mut editor| editor.dimensions());
    let (columns, rows) = found.unwrap_or((80, 24));
    Size { columns: columns.into(), rows: rows.into() }
}

/// Whether a person sits at both ends.
pub(super) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// While this lives, what is typed is not shown and not held back until Enter: it stays with the
/// terminal until somebody reads it. Ctrl-C still interrupts.
pub(super) struct Quiet {
    before: Termios,
}

impl Quiet {
    pub(super) fn begin() -> io::Result<Self> {
        let before = termios::tcgetattr(io::stdin())?;
        let mut quiet = before.clone();
        quiet.local_flags &= !(LocalFlags::ECHO | LocalFlags::ICANON);
        // Enter has to arrive as itself, because Ctrl-J means something else.
        quiet.input_flags &= !InputFlags::ICRNL;
        quiet.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        quiet.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        termios::tcsetattr(io::stdin(), SetArg::TCSADRAIN, &quiet)?;
        Ok(Self { before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        write(DO_NOT_MARK_PASTES);
        // There is nothing left to tell anybody if it fails.
        let _ = termios::tcsetattr(io::stdin(), SetArg::TCSADRAIN, &self.before);
    }
}

/// Completes when there is something to read from the keyboard, and leaves it there.
pub(super) async fn key_pressed(clock: &dyn Clock) {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    let is_there = || {
        let stdin = io::stdin();
        let mut keyboard = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        // Whatever else can happen to a terminal is also something to read.
        poll(&mut keyboard, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    };
    while !is_there() {
        clock.sleep(LOOK_EVERY).await;
    }
}

/// Has what is pasted while nobody reads marked as pasted.
pub(super) fn mark_pastes() {
    write(MARK_PASTES);
}

/// Writes at once and as a whole, so that nothing flickers.
pub(super) fn write(text: &str) {
    // A terminal that is gone ends the chat by its own signal.
    let _ = commands::write(format_args!("{text}"));
}
