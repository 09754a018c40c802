//! The terminal that the person sits at: its size, its mode, and what it can show.

use std::io::{self, IsTerminal};
use std::time::Duration;

use rustyline::DefaultEditor;
use talaria_clock::Clock;
use talaria_machine::terminal;
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
    if !io::stdout().is_terminal() || !terminal::understands_sequences() {
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
    _keyboard: terminal::Quiet,
}

impl Quiet {
    pub(super) fn begin() -> io::Result<Self> {
        Ok(Self { _keyboard: terminal::Quiet::begin()? })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        write(DO_NOT_MARK_PASTES);
    }
}

/// Completes when there is something to read from the keyboard, and leaves it there.
pub(super) async fn key_pressed(clock: &dyn Clock) {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    while !terminal::key_is_pressed() {
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
