//! A file that is being received: what there is of it counts against the quota, and whoever lets go of it
//! before it has a place takes it away.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talaria_machine::Folder;
use talaria_model::FileId;

use super::modified;
use super::shelves::{Shelf, Shelved, Shelves};

/// What a file is called while it is being received.
pub(super) const INCOMING: &str = "incoming-";

/// Dropping it removes the file, then gives its bytes back. A receiver may be dropped at any moment: its time
/// is up, or nobody waits for the file any more.
pub(super) struct Incoming {
    folder: Arc<Folder>,
    shelves: Arc<Mutex<Shelves>>,
    name: String,
    bytes: u64,
}

impl Incoming {
    /// An empty one, with a number that no other has.
    pub(super) fn begin(
        folder: &Arc<Folder>,
        shelves: &Arc<Mutex<Shelves>>,
        number: u64,
    ) -> io::Result<(Self, File)> {
        let name = format!("{INCOMING}{}-{number}", std::process::id());
        let file = folder.create(OsStr::new(&name))?;
        let (folder, shelves) = (folder.clone(), shelves.clone());
        Ok((Self { folder, shelves, name, bytes: 0 }, file))
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets more of the quota aside, if there is any.
    pub(super) fn widen(&mut self, more: u64, quota: u64) -> bool {
        let mut shelves = lock(&self.shelves);
        let fits = shelves.used.checked_add(more).is_some_and(|used| used <= quota);
        if fits {
            shelves.used += more;
            self.bytes += more;
        }
        fits
    }

    /// Gives it its name on a shelf, or on the one where equal bytes are already. Returns the shelf, which has
    /// yet to be synced.
    pub(super) fn put_in_place(mut self, id: FileId, on: Shelf) -> io::Result<Folder> {
        let on = lock(&self.shelves).shelf(&id).unwrap_or(on);
        let shelf = self.folder.make_folder(OsStr::new(on.name(&id)))?;
        let from = OsStr::new(&self.name);
        let at = modified(&self.folder.read(from)?.metadata()?)?;
        // Also over an equal one, which is then as young as this one.
        self.folder.rename(from, &shelf, OsStr::new(id.as_str()))?;
        let mut shelves = lock(&self.shelves);
        let bytes = std::mem::take(&mut self.bytes);
        shelves.used -= bytes;
        shelves.put(id, Shelved { on, at }, bytes);
        drop(shelves);
        Ok(shelf)
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        match self.folder.remove(OsStr::new(&self.name)) {
            // What is still there takes room; the next start removes it.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "what was received of a file cannot be removed");
            }
            _ => lock(&self.shelves).used -= self.bytes,
        }
    }
}

pub(super) fn lock(shelves: &Mutex<Shelves>) -> MutexGuard<'_, Shelves> {
    shelves.lock().unwrap_or_else(PoisonError::into_inner)
}
