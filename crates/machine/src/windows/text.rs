//! Texts as Windows takes them.

use std::ffi::OsStr;
use std::os::windows::ffi::OsStrExt;

/// With a zero at its end.
pub(crate) fn wide(text: impl AsRef<OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain([0]).collect()
}
