//! A folder that is held open. Whatever somebody puts in its place, names are looked up in this one; no
//! name leads out of it, and no link is followed.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path};

use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// A folder that is held open.
#[derive(Debug)]
pub struct Folder(OwnedFd);

const FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

impl Folder {
    /// Holds a folder. A link to one is not one.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open(path, FOLDER, Mode::empty())?))
    }

    /// Holds a folder, which is made for nobody but this user if it is not there.
    pub fn make(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Self::open(path)
    }

    /// A folder in it.
    pub fn folder(&self, name: &OsStr) -> io::Result<Self> {
        Ok(Self(openat(&self.0, plain(name)?, FOLDER, Mode::empty())?))
    }

    /// A folder in it, which is made for nobody but this user if it is not there.
    pub fn make_folder(&self, name: &OsStr) -> io::Result<Self> {
        match mkdirat(&self.0, plain(name)?, Mode::S_IRWXU) {
            Ok(()) | Err(nix::Error::EEXIST) => self.folder(name),
            Err(error) => Err(error.into()),
        }
    }

    /// A new file in it, which only this user can read.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let how = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
        let only_us = Mode::S_IRUSR | Mode::S_IWUSR;
        Ok(openat(&self.0, plain(name)?, how | OFlag::O_CLOEXEC, only_us)?.into())
    }

    /// An ordinary file in it. Links, pipes, sockets and devices are none.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        // Opening a pipe would wait for its other end.
        let how = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file: File = openat(&self.0, plain(name)?, how, Mode::empty())?.into();
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not an ordinary file")),
        }
    }

    /// An ordinary file somewhere below it, by a path that has no links in it.
    pub fn read_below(&self, path: &Path) -> io::Result<File> {
        let mut names = path.components().map(|part| match part {
            Component::Normal(name) => Ok(name),
            _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        });
        let last = names.next_back().ok_or(io::ErrorKind::InvalidInput)??;
        let mut folder: Option<Self> = None;
        for name in names {
            folder = Some(folder.as_ref().unwrap_or(self).folder(name?)?);
        }
        folder.as_ref().unwrap_or(self).read(last)
    }

    /// Moves a file of this folder to another one, over whatever is there.
    pub fn rename(&self, from: &OsStr, to: &Self, name: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.0, plain(from)?, &to.0, plain(name)?)?)
    }

    /// Removes a file, or a link but not what it leads to.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, plain(name)?, UnlinkatFlags::NoRemoveDir)?)
    }

    /// Makes the names in it as durable as the bytes.
    pub fn sync(&self) -> io::Result<()> {
        File::from(self.0.try_clone()?).sync_all()
    }
}

/// A name that stays in its folder.
fn plain(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_bytes();
    let leads_away = matches!(bytes, b"" | b"." | b"..") || bytes.contains(&b'/');
    match leads_away {
        true => Err(io::ErrorKind::InvalidInput.into()),
        false => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    fn contents(file: io::Result<File>) -> String {
        let mut text = String::new();
        file.unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn files_are_made_for_this_user_alone_and_come_back() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::make(&home.path().join("a/b")).unwrap();
        folder.create(name("new")).unwrap().write_all(b"hello").unwrap();
        assert!(folder.create(name("new")).is_err(), "it is there already");
        let shelf = folder.make_folder(name("shelf")).unwrap();
        folder.make_folder(name("shelf")).unwrap();
        folder.rename(name("new"), &shelf, name("kept")).unwrap();
        shelf.sync().unwrap();
        assert_eq!(contents(shelf.read(name("kept"))), "hello");
        assert_eq!(contents(folder.read_below(Path::new("shelf/kept"))), "hello");
        let mode =
            |path: &str| home.path().join(path).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("a/b"), 0o700);
        assert_eq!(mode("a/b/shelf"), 0o700);
        assert_eq!(mode("a/b/shelf/kept"), 0o600);
        shelf.remove(name("kept")).unwrap();
        assert_eq!(shelf.read(name("kept")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn no_name_leads_out_of_it() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("secret"), "secret").unwrap();
        let folder = Folder::make(&home.path().join("inside")).unwrap();
        folder.make_folder(name("below")).unwrap();
        for away in ["", ".", "..", "../secret", "/etc/passwd", "below/../../secret", "a/b"] {
            assert!(folder.read(name(away)).is_err(), "{away}");
            assert!(folder.create(name(away)).is_err(), "{away}");
            assert!(folder.folder(name(away)).is_err(), "{away}");
            assert!(folder.make_folder(name(away)).is_err(), "{away}");
            assert!(folder.remove(name(away)).is_err(), "{away}");
            assert!(folder.rename(name(away), &folder, name("x")).is_err(), "{away}");
            assert!(folder.read_below(Path::new(away)).is_err(), "{away}");
        }
        assert!(folder.read(name("a\0b")).is_err());
    }

    #[test]
    fn links_pipes_and_devices_are_not_read() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("secret"), "secret").unwrap();
        fs::create_dir(home.path().join("elsewhere")).unwrap();
        fs::write(home.path().join("elsewhere/x"), "x").unwrap();
        let inside = home.path().join("inside");
        let folder = Folder::make(&inside).unwrap();
        symlink(home.path().join("secret"), inside.join("link")).unwrap();
        symlink(home.path().join("elsewhere"), inside.join("way")).unwrap();
        nix::unistd::mkfifo(&inside.join("pipe"), Mode::S_IRWXU).unwrap();
        for wrong in ["link", "pipe", "way"] {
            assert!(folder.read(name(wrong)).is_err(), "{wrong}");
        }
        assert!(folder.folder(name("way")).is_err());
        assert!(folder.make_folder(name("way")).is_err());
        assert!(folder.read_below(Path::new("way/x")).is_err());
        assert!(Folder::open(&inside.join("way")).is_err());
        assert!(Folder::open(Path::new("/dev")).unwrap().read(name("null")).is_err());
    }

    #[test]
    fn what_is_put_in_its_place_is_not_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state");
        let folder = Folder::make(&path).unwrap();
        folder.create(name("a")).unwrap().write_all(b"ours").unwrap();
        fs::rename(&path, home.path().join("moved")).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("a"), "theirs").unwrap();
        assert_eq!(contents(folder.read(name("a"))), "ours");
    }
}
