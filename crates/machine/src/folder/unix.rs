//! A descriptor of a folder, by which names are looked up.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

#[derive(Debug)]
pub(super) struct Held(OwnedFd);

const FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

impl Held {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open(path, FOLDER, Mode::empty())?))
    }

    pub(super) fn folder(&self, name: &OsStr) -> io::Result<Self> {
        Ok(Self(openat(&self.0, name, FOLDER, Mode::empty())?))
    }

    pub(super) fn make_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(mkdirat(&self.0, name, Mode::S_IRWXU)?)
    }

    pub(super) fn create(&self, name: &OsStr) -> io::Result<File> {
        let how = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
        let only_us = Mode::S_IRUSR | Mode::S_IWUSR;
        Ok(openat(&self.0, name, how | OFlag::O_CLOEXEC, only_us)?.into())
    }

    pub(super) fn read(&self, name: &OsStr) -> io::Result<File> {
        // Opening a pipe would wait for its other end.
        let how = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        Ok(openat(&self.0, name, how, Mode::empty())?.into())
    }

    pub(super) fn rename(&self, from: &OsStr, to: &Self, name: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.0, from, &to.0, name)?)
    }

    pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, UnlinkatFlags::NoRemoveDir)?)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        File::from(self.0.try_clone()?).sync_all()
    }
}

pub(super) fn leads_away(byte: &u8) -> bool {
    *byte == b'/'
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::super::Folder;
    use super::super::tests::contents;
    use super::*;

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
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
