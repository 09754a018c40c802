//! Replaces a whole file.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::private::{Mode, Private};

/// What a replaced file outlasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlasts {
    /// The process: nobody waits for the disk.
    Process,
    /// A power cut, too.
    PowerCut,
}

/// Replaces a file by another one. Whenever it is cut off, one of the two is there, whole.
pub fn replace(path: &Path, bytes: &[u8], mode: Mode) -> io::Result<()> {
    replace_to(path, bytes, mode, Outlasts::PowerCut)
}

/// The same where it may be enough that nobody ever reads half a file.
pub fn replace_to(path: &Path, bytes: &[u8], mode: Mode, outlasts: Outlasts) -> io::Result<()> {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(".next");
    let beside = path.with_file_name(name);
    let mut options = OpenOptions::new();
    let mut file =
        options.write(true).create(true).truncate(true).made_as(mode).no_link().open(&beside)?;
    // What was left behind by a run that died keeps the mode that it had.
    mode.give(&file)?;
    file.write_all(bytes)?;
    if outlasts == Outlasts::PowerCut {
        file.sync_all()?;
    }
    // Windows moves nothing over a file while the other one is open to write.
    drop(file);
    fs::rename(&beside, path)?;
    match path.parent() {
        Some(folder) if outlasts == Outlasts::PowerCut => sync_folder(folder),
        _ => Ok(()),
    }
}

/// Makes the names in a folder as durable as the bytes.
#[cfg(unix)]
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

/// Makes the names in a folder as durable as the bytes, where the disk lets us. NTFS writes its own journal
/// and needs no word for the order of things; a word only makes it happen at once.
#[cfg(windows)]
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    use std::os::windows::fs::OpenOptionsExt;
    use windows_sys::Win32::Storage::FileSystem::FILE_FLAG_BACKUP_SEMANTICS;
    let mut options = OpenOptions::new();
    let opened = options.write(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(folder);
    let _ = opened.and_then(|folder| folder.sync_all());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_nothing_is_left_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        fs::write(place.path().join("file.next"), "half of something longer").unwrap();
        for (text, outlasts) in
            [("first", Outlasts::PowerCut), ("second", Outlasts::Process), ("", Outlasts::PowerCut)]
        {
            replace_to(&path, text.as_bytes(), Mode::PRIVATE, outlasts).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(Mode::of(&path.metadata().unwrap()), Mode::PRIVATE);
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_beside_it_leads_nothing_elsewhere() {
        let place = tempfile::tempdir().unwrap();
        let (path, target) = (place.path().join("file"), place.path().join("target"));
        fs::write(&target, "somebody else's").unwrap();
        std::os::unix::fs::symlink(&target, place.path().join("file.next")).unwrap();
        replace(&path, b"ours", Mode::PRIVATE).unwrap_err();
        assert_eq!(fs::read_to_string(&target).unwrap(), "somebody else's");
    }
}
