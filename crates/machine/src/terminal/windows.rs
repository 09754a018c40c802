//! The console.

use std::io;

use winapi_util::HandleRef;
use winapi_util::console::{Console, mode, set_mode};
use windows_sys::Win32::System::Console::{
    CONSOLE_MODE, ENABLE_ECHO_INPUT, ENABLE_LINE_INPUT, ENABLE_PROCESSED_INPUT,
};

/// How the console was, and is again when this is dropped.
pub(super) struct Before(CONSOLE_MODE);

impl Drop for Before {
    fn drop(&mut self) {
        // There is nothing left to tell anybody if it fails.
        let _ = set_mode(HandleRef::stdin(), self.0);
    }
}

fn without(bits: CONSOLE_MODE) -> io::Result<Before> {
    let before = mode(HandleRef::stdin())?;
    // Ctrl-C is no key to be read.
    set_mode(HandleRef::stdin(), (before & !bits) | ENABLE_PROCESSED_INPUT)?;
    Ok(Before(before))
}

pub(super) fn hide() -> io::Result<Before> {
    without(ENABLE_ECHO_INPUT)
}

pub(super) fn hush() -> io::Result<Before> {
    without(ENABLE_ECHO_INPUT | ENABLE_LINE_INPUT)
}

pub(super) fn key_is_pressed() -> bool {
    // A console that cannot be asked is read, and that says what is wrong with it.
    crate::windows::console::key_is_pressed().unwrap_or(true)
}

pub(super) fn understands_sequences() -> bool {
    Console::stdout().and_then(|mut console| console.set_virtual_terminal_processing(true)).is_ok()
}
