//! Which file it is, whatever it is called.

use std::fs::File;
use std::io;
use std::path::Path;

/// Which file it is: the same for as long as it is there, and on one disk no other file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Which disk.
    pub disk: u64,
    /// Which file on it.
    pub number: u64,
}

impl Identity {
    /// Of a file that is open.
    pub fn of(file: &File) -> io::Result<Self> {
        about(file).map(|about| about.identity)
    }

    /// Of whatever is at a path, or behind a link that is there.
    pub fn at(path: &Path) -> io::Result<Self> {
        about_path(path).map(|about| about.identity)
    }
}

/// Which disk something is on; a link is not followed.
pub fn disk(path: &Path) -> io::Result<u64> {
    about_itself(path).map(|about| about.identity.disk)
}

/// Whether a file has no second name, which might be somebody else's for a file that is not.
pub fn has_one_name(file: &File) -> io::Result<bool> {
    about(file).map(|about| about.names == 1)
}

struct About {
    identity: Identity,
    names: u64,
}

#[cfg(unix)]
impl From<std::fs::Metadata> for About {
    fn from(found: std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let identity = Identity { disk: found.dev(), number: found.ino() };
        Self { identity, names: found.nlink() }
    }
}

#[cfg(unix)]
fn about(file: &File) -> io::Result<About> {
    file.metadata().map(About::from)
}

#[cfg(unix)]
fn about_path(path: &Path) -> io::Result<About> {
    std::fs::metadata(path).map(About::from)
}

#[cfg(unix)]
fn about_itself(path: &Path) -> io::Result<About> {
    std::fs::symlink_metadata(path).map(About::from)
}

#[cfg(windows)]
fn about(file: &File) -> io::Result<About> {
    let found = winapi_util::file::information(file)?;
    let disk = found.volume_serial_number();
    Ok(About {
        identity: Identity { disk, number: found.file_index() },
        names: found.number_of_links(),
    })
}

#[cfg(windows)]
fn about_path(path: &Path) -> io::Result<About> {
    open(path, 0).and_then(|file| about(&file))
}

#[cfg(windows)]
fn about_itself(path: &Path) -> io::Result<About> {
    use windows_sys::Win32::Storage::FileSystem::FILE_FLAG_OPEN_REPARSE_POINT;
    open(path, FILE_FLAG_OPEN_REPARSE_POINT).and_then(|file| about(&file))
}

/// Opens a file or folder to ask about it, and for nothing else.
#[cfg(windows)]
fn open(path: &Path, flags: u32) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    use windows_sys::Win32::Storage::FileSystem::FILE_FLAG_BACKUP_SEMANTICS;
    let mut options = std::fs::OpenOptions::new();
    options.access_mode(0).custom_flags(FILE_FLAG_BACKUP_SEMANTICS | flags).open(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_itself_under_every_name_and_what_takes_its_place_is_not() {
        let place = tempfile::tempdir().unwrap();
        let [path, moved] = ["file", "moved"].map(|name| place.path().join(name));
        fs::write(&path, "ours").unwrap();
        let file = File::open(&path).unwrap();
        let own = Identity::of(&file).unwrap();
        assert_eq!(Identity::at(&path).unwrap(), own);
        assert_eq!(disk(place.path()).unwrap(), own.disk, "a folder is on a disk, too");
        assert!(has_one_name(&file).unwrap());
        fs::rename(&path, &moved).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert_eq!(Identity::at(&moved).unwrap(), own);
        assert_ne!(Identity::at(&path).unwrap(), own);
        fs::hard_link(&moved, place.path().join("second")).unwrap();
        assert!(!has_one_name(&file).unwrap());
    }
}
