//! termios(3).

use std::io;
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{self, InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios};

/// How the terminal was, and is again when this is dropped.
pub(super) struct Before(Termios);

impl Drop for Before {
    fn drop(&mut self) {
        // There is nothing left to tell anybody if it fails.
        let _ = termios::tcsetattr(io::stdin(), SetArg::TCSADRAIN, &self.0);
    }
}

fn change(change: impl FnOnce(&mut Termios)) -> io::Result<Before> {
    let before = termios::tcgetattr(io::stdin())?;
    let mut changed = before.clone();
    change(&mut changed);
    termios::tcsetattr(io::stdin(), SetArg::TCSADRAIN, &changed)?;
    Ok(Before(before))
}

pub(super) fn hide() -> io::Result<Before> {
    change(|terminal| {
        terminal.local_flags &= !LocalFlags::ECHO;
        terminal.local_flags |= LocalFlags::ECHONL;
    })
}

pub(super) fn hush() -> io::Result<Before> {
    change(|terminal| {
        terminal.local_flags &= !(LocalFlags::ECHO | LocalFlags::ICANON);
        // Enter has to arrive as itself, because Ctrl-J means something else.
        terminal.input_flags &= !InputFlags::ICRNL;
        terminal.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        terminal.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
    })
}

pub(super) fn key_is_pressed() -> bool {
    let stdin = io::stdin();
    let mut keyboard = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    // Whatever else can happen to a terminal is also something to read.
    poll(&mut keyboard, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

pub(super) fn understands_sequences() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb" && !term.is_empty())
}
