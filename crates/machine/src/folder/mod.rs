//! A folder that is held. Names are looked up in this one, whatever somebody wants to put in its place; no
//! name leads out of it, and no link is followed.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Component, Path};

use crate::private::make_for_us;

/// A folder that is held.
#[derive(Debug)]
pub struct Folder(system::Held);

impl Folder {
    /// Holds a folder. A link to one is not one.
    pub fn open(path: &Path) -> io::Result<Self> {
        system::Held::open(path).map(Self)
    }

    /// Holds a folder, which is made for nobody but this user if it is not there.
    pub fn make(path: &Path) -> io::Result<Self> {
        make_for_us(path)?;
        Self::open(path)
    }

    /// A folder in it.
    pub fn folder(&self, name: &OsStr) -> io::Result<Self> {
        self.0.folder(plain(name)?).map(Self)
    }

    /// A folder in it, which is made for nobody but this user if it is not there.
    pub fn make_folder(&self, name: &OsStr) -> io::Result<Self> {
        match self.0.make_folder(plain(name)?) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => self.folder(name),
        }
    }

    /// A new file in it, which only this user can read.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        self.0.create(plain(name)?)
    }

    /// An ordinary file in it. Links, pipes, sockets and devices are none.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        let file = self.0.read(plain(name)?)?;
        let found = file.metadata()?;
        match found.is_file() {
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
        self.0.rename(plain(from)?, &to.0, plain(name)?)
    }

    /// Removes a file, or a link but not what it leads to.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        self.0.remove(plain(name)?)
    }

    /// Makes the names in it as durable as the bytes.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

/// A name that stays in its folder.
fn plain(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_encoded_bytes();
    let leads_away = matches!(bytes, b"" | b"." | b"..") || bytes.iter().any(system::leads_away);
    match leads_away {
        true => Err(io::ErrorKind::InvalidInput.into()),
        false => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Write};

    use super::*;
    use crate::open_to;

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    pub(super) fn contents(file: io::Result<File>) -> String {
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
        for made in ["a/b", "a/b/shelf", "a/b/shelf/kept"] {
            assert_eq!(open_to(&home.path().join(made)), None, "{made}");
        }
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
}
