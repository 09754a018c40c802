//! Files and folders that are for this user alone, and what others can do with those that are not.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
pub use system::{belongs_to, user_called, user_number};
#[cfg(windows)]
pub(crate) use system::{is_trusted, list_for};

/// Who may do what with a file, in the bits of Unix. Windows has none: there a file is for whom its folder
/// is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode(u32);

impl Mode {
    /// Read and written by this user alone.
    pub const PRIVATE: Self = Self(0o600);

    /// Read by everybody, written by this user.
    pub const PUBLIC: Self = Self(0o644);

    /// That of a file.
    pub fn of(found: &Metadata) -> Self {
        Self(system::mode(found))
    }

    /// What is left of it for this user, and nothing for others.
    pub fn for_us(self) -> Self {
        Self(self.0 & 0o700)
    }

    /// As a number.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Of a number.
    pub fn from_bits(bits: u32) -> Self {
        Self(bits & 0o777)
    }

    /// Gives it to a file that is open.
    pub fn give(self, file: &File) -> io::Result<()> {
        system::give(self, file)
    }
}

/// What a file is opened with that may have to be made.
pub trait Private {
    /// If it is made, then for this user alone.
    fn private(&mut self) -> &mut Self {
        self.made_as(Mode::PRIVATE)
    }

    /// If it is made, then like this.
    fn made_as(&mut self, mode: Mode) -> &mut Self;

    /// A link is not followed: opening one fails, or opens the link itself, which holds nothing.
    fn no_link(&mut self) -> &mut Self;
}

impl Private for OpenOptions {
    fn made_as(&mut self, mode: Mode) -> &mut Self {
        system::made_as(self, mode)
    }

    fn no_link(&mut self) -> &mut Self {
        system::no_link(self)
    }
}

/// Makes a folder for this user alone, and every folder above it that is missing. One that is there already
/// stays as it is.
pub fn make_for_us(folder: &Path) -> io::Result<()> {
    system::make_for_us(folder)
}

/// Makes a file that only this user can read, wherever it is. It fails if something is there.
pub fn create_for_us(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).private().open(path)?;
    system::close_new(path)?;
    Ok(file)
}

/// Whether a file or folder belongs to this user, or to somebody who has let this user in by name.
pub fn belongs_to_us(path: &Path) -> io::Result<bool> {
    system::belongs_to_us(path)
}

/// Who besides this user can read a file or folder, in words. None where nobody can, nothing is there, or
/// what is there is a link.
pub fn open_to(path: &Path) -> Option<String> {
    let found = std::fs::symlink_metadata(path).ok().filter(|found| !found.is_symlink())?;
    system::open_to(path, &found)
}

/// Closes a file or folder to everybody but this user.
pub fn close(path: &Path) -> io::Result<()> {
    system::close(path)
}

/// What a person types to do the same, where this is what is left of its mode.
pub fn close_command(path: &Path, mode: Mode) -> String {
    system::close_command(path, mode)
}

/// Why what stands in a file may be somebody else's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// It is another user's.
    Foreign,
    /// Others may write to it.
    Writable,
}

impl Doubt {
    /// What a person does about it.
    pub fn remedy(self) -> &'static str {
        system::remedy(self)
    }
}

/// Why a file or folder is not to be trusted, if there is a reason.
pub fn doubt(path: &Path) -> io::Result<Option<Doubt>> {
    system::doubt(path)
}

/// The folder above a file in which others could put something else in its place, if there is one. The path
/// is a real one, without links.
pub fn replaceable_in(path: &Path) -> io::Result<Option<PathBuf>> {
    for folder in path.ancestors().skip(1) {
        if system::others_replace_in(folder)? {
            return Ok(Some(folder.to_owned()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn what_is_made_for_us_is_open_to_nobody_else() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b");
        make_for_us(&folder).unwrap();
        make_for_us(&folder).unwrap();
        let alone = folder.join("alone");
        create_for_us(&alone).unwrap().write_all(b"x").unwrap();
        assert!(create_for_us(&alone).is_err(), "it is there already");
        let opened = folder.join("opened");
        OpenOptions::new().append(true).create(true).private().open(&opened).unwrap();
        for path in [&folder, &alone, &opened] {
            assert_eq!(open_to(path), None, "{}", path.display());
            assert_eq!(doubt(path).unwrap(), None, "{}", path.display());
            assert!(belongs_to_us(path).unwrap(), "{}", path.display());
        }
        assert_eq!(fs::read(&alone).unwrap(), b"x", "we can read it");
        assert_eq!(open_to(&folder.join("nothing")), None);
    }
}
