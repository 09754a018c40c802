//! A handle of a folder that does not share what deletes and renames need: while it is open, nobody moves
//! the folder or anything above it, so its path leads nowhere else.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_SHARE_READ, FILE_SHARE_WRITE,
};

use crate::replace::sync_folder;

#[derive(Debug)]
pub(super) struct Held {
    /// Without links, and in the form in which no name means a device.
    path: PathBuf,
    _handle: File,
}

impl Held {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let handle = OpenOptions::new()
            .read(true)
            .share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
            .open(path)?;
        let attributes = handle.metadata()?.file_attributes();
        if attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0
            || attributes & FILE_ATTRIBUTE_DIRECTORY == 0
        {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        // It stays what it is from here on.
        Ok(Self { path: fs::canonicalize(path)?, _handle: handle })
    }

    pub(super) fn folder(&self, name: &OsStr) -> io::Result<Self> {
        Self::open(&self.path.join(name))
    }

    /// It inherits who is let in.
    pub(super) fn make_folder(&self, name: &OsStr) -> io::Result<()> {
        fs::create_dir(self.path.join(name))
    }

    /// It inherits who is let in.
    pub(super) fn create(&self, name: &OsStr) -> io::Result<File> {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
            .open(self.path.join(name))
    }

    pub(super) fn read(&self, name: &OsStr) -> io::Result<File> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
            .open(self.path.join(name))?;
        match file.metadata()?.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT {
            0 => Ok(file),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a link")),
        }
    }

    pub(super) fn rename(&self, from: &OsStr, to: &Self, name: &OsStr) -> io::Result<()> {
        fs::rename(self.path.join(from), to.path.join(name))
    }

    pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        sync_folder(&self.path)
    }
}

/// A colon names a part of a file, or a disk.
pub(super) fn leads_away(byte: &u8) -> bool {
    matches!(byte, b'/' | b'\\' | b':' | 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::Folder;
    use super::super::tests::contents;
    use super::*;

    #[test]
    fn nothing_is_put_in_its_place_while_it_is_held() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state");
        let folder = Folder::make(&path).unwrap();
        folder.create(OsStr::new("a")).unwrap().write_all(b"ours").unwrap();
        assert!(fs::rename(&path, home.path().join("moved")).is_err());
        assert_eq!(contents(folder.read(OsStr::new("a"))), "ours");
        drop(folder);
        fs::rename(&path, home.path().join("moved")).unwrap();
    }

    #[test]
    fn no_name_means_a_device_a_disk_or_a_part_of_a_file() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::make(&home.path().join("inside")).unwrap();
        for away in ["c:", "a:b", "..\\x", "a\\b", "\\\\?\\x"] {
            assert!(folder.create(OsStr::new(away)).is_err(), "{away}");
        }
        assert!(folder.read(OsStr::new("NUL")).is_err());
    }
}
