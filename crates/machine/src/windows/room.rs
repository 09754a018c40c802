//! Room on a disk.
#![allow(unsafe_code, reason = "calls the operating system")]

use std::io;
use std::path::Path;
use std::ptr::null_mut;

use windows_sys::Win32::Storage::FileSystem::GetDiskFreeSpaceExW;

use super::text::wide;

/// What this user may still write to the disk that a folder is on, and what it holds in all, in bytes.
pub(crate) fn room(folder: &Path) -> io::Result<(u64, u64)> {
    let (folder, mut free, mut all) = (wide(folder), 0, 0);
    // SAFETY: the text ends with a zero, and each pointer is to a value of ours that outlives the call;
    // what is null is not wanted.
    let done = unsafe { GetDiskFreeSpaceExW(folder.as_ptr(), &mut free, &mut all, null_mut()) };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok((free, all)) }
}
