//! Where a backup is worked on: a private folder that one process at a time uses, emptied when it begins
//! and when it ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use talaria_machine::{Private, make_for_us};

use crate::exit::Halt;
use crate::home::Home;

pub(super) struct Workshop {
    folder: PathBuf,
    _lock: File,
}

impl Workshop {
    /// Takes the workshop of a home.
    pub(super) fn open(home: &Home) -> Result<Self, Halt> {
        let backups = home.backups();
        let cannot = |error: io::Error| {
            Halt::failed(format_args!("cannot use {}: {error}", backups.display()))
        };
        private(&backups).map_err(cannot)?;
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .private()
            .open(backups.join(".lock"))
            .map_err(cannot)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Halt::failed("another `talaria backup` is at work on this home")
                    .hint("wait until it is done"));
            }
            Err(TryLockError::Error(error)) => return Err(cannot(error)),
        }
        let folder = backups.join(".work");
        clear(&folder).and_then(|()| private(&folder)).map_err(cannot)?;
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // What stays is removed by whoever comes next.
        let _ = clear(&self.folder);
    }
}

/// Makes a folder for nobody but this user.
pub(super) fn private(folder: &Path) -> io::Result<()> {
    make_for_us(folder)
}

/// Removes a folder, if it is there.
pub(super) fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
