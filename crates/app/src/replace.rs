//! Replaces a whole file.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Readable by this user alone.
pub(crate) const PRIVATE: u32 = 0o600;

/// What a replaced file outlasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlasts {
    /// The process: nobody waits for the disk.
    Process,
    /// A power cut, too.
    PowerCut,
}

/// Replaces a file by another one. Whenever it is cut off, one of the two is there, whole.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    replace_to(path, bytes, mode, Outlasts::PowerCut)
}

/// The same where it may be enough that nobody ever reads half a file.
pub(crate) fn replace_to(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    outlasts: Outlasts,
) -> io::Result<()> {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(".next");
    let beside = path.with_file_name(name);
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&beside)?;
    // What was left behind by a run that died keeps the mode that it had.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(bytes)?;
    if outlasts == Outlasts::Process {
        return fs::rename(&beside, path);
    }
    file.sync_all()?;
    fs::rename(&beside, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
