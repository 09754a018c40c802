//! The keyboard of a console.
#![allow(unsafe_code, reason = "calls the operating system")]

use std::io;
use std::mem::zeroed;
use std::os::windows::io::AsRawHandle;

use windows_sys::Win32::System::Console::{INPUT_RECORD, KEY_EVENT, PeekConsoleInputW};

/// How much is looked at: a key that nobody has read is among the first.
const LOOKED_AT: usize = 64;

/// Whether a key was pressed that nobody has read. It stays unread. A console also tells of windows and
/// mice; those are no keys.
pub(crate) fn key_is_pressed() -> io::Result<bool> {
    // SAFETY: a record is plain numbers, for which zeroes are a value.
    let mut records: [INPUT_RECORD; LOOKED_AT] = unsafe { zeroed() };
    let mut count = 0;
    // SAFETY: the handle is the process's own, and the pointers are to values of ours that outlive the
    // call; no more records are written than there is room for.
    let done = unsafe {
        let keyboard = io::stdin().as_raw_handle();
        PeekConsoleInputW(keyboard, records.as_mut_ptr(), LOOKED_AT as u32, &mut count)
    };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    let is_key = |record: &INPUT_RECORD| {
        // SAFETY: the kind says which part of the union was written.
        u32::from(record.EventType) == KEY_EVENT && unsafe { record.Event.KeyEvent.bKeyDown } != 0
    };
    Ok(records.iter().take(count as usize).any(is_key))
}
