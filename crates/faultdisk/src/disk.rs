//! A watched folder: its tape and its faults.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fault::{Fault, Op, Trouble};
use crate::tape::{Event, FileNo, Tape};
use crate::vfs;

/// A folder whose disk is in the hands of the test. Dropping it lets the folder go.
pub struct Disk {
    watched: Arc<Watched>,
}

impl Disk {
    /// Watches a folder from here on. What is in it counts as being on the disk.
    ///
    /// SQLite has to be reached through its default file layer, and whatever opened a file of the
    /// folder before is not seen.
    pub fn watch(folder: &Path) -> io::Result<Self> {
        vfs::install();
        let folder = folder.canonicalize()?;
        let mut state = State::default();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_file() && !name.ends_with("-shm") {
                let file = state.adopt(&name, &entry.metadata()?);
                state.tape.names.insert(name, file);
                state.tape.contents.insert(file, fs::read(entry.path())?.into());
            }
        }
        let watched = Arc::new(Watched { folder, state: Mutex::new(state) });
        registry().push(watched.clone());
        Ok(Self { watched })
    }

    /// How many events have happened.
    pub fn now(&self) -> usize {
        self.watched.lock().tape.events.len()
    }

    /// What was recorded so far.
    pub fn tape(&self) -> Tape {
        self.watched.lock().tape.clone()
    }

    /// From here on such calls do not go well.
    pub fn break_down(&self, fault: Fault) {
        self.watched.lock().faults.push(fault);
    }

    /// Everything goes well again.
    pub fn mend(&self) {
        self.watched.lock().faults.clear();
    }

    /// How many calls did not go well.
    pub fn hits(&self) -> u64 {
        self.watched.lock().hits
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        registry().retain(|watched| !Arc::ptr_eq(watched, &self.watched));
    }
}

static REGISTRY: Mutex<Vec<Arc<Watched>>> = Mutex::new(Vec::new());

fn registry() -> MutexGuard<'static, Vec<Arc<Watched>>> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The watched folder that holds a file, and the file's name in it.
pub(crate) fn watching(path: &Path) -> Option<(Arc<Watched>, String)> {
    let folder = path.parent()?;
    let watched = registry().iter().find(|watched| watched.folder == folder).cloned()?;
    Some((watched, path.file_name()?.to_string_lossy().into_owned()))
}

pub(crate) struct Watched {
    pub(crate) folder: PathBuf,
    state: Mutex<State>,
}

impl Watched {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) tape: Tape,
    faults: Vec<Fault>,
    hits: u64,
    files: usize,
    /// What each name leads to, as far as was seen.
    names: BTreeMap<String, Seen>,
    sizes: BTreeMap<FileNo, u64>,
}

#[derive(Clone, Copy)]
struct Seen {
    file: FileNo,
    inode: u64,
}

impl State {
    /// What happens to a call.
    pub(crate) fn trouble(&mut self, op: Op, name: &str) -> Option<Trouble> {
        let trouble = self.faults.iter_mut().find_map(|fault| fault.meets(op, name));
        self.hits += u64::from(trouble.is_some());
        trouble
    }

    fn adopt(&mut self, name: &str, metadata: &fs::Metadata) -> FileNo {
        let file = FileNo(self.files);
        self.files += 1;
        self.names.insert(name.to_owned(), Seen { file, inode: metadata.ino() });
        self.sizes.insert(file, metadata.len());
        file
    }

    /// A file was opened. If it is not the one that was known by this name, somebody went past
    /// SQLite to put it there, and its name is on the disk only after the folder is synced.
    pub(crate) fn opened(&mut self, path: &Path, name: &str) -> io::Result<FileNo> {
        let metadata = fs::metadata(path)?;
        let known = self.names.get(name).copied();
        if let Some(known) = known {
            if known.inode == metadata.ino() && self.sizes.get(&known.file) == Some(&metadata.len())
            {
                return Ok(known.file);
            }
            self.unlinked(name);
        }
        let file = self.adopt(name, &metadata);
        self.tape.events.push(Event::Link { name: name.to_owned(), file });
        if metadata.len() > 0 {
            let bytes = fs::read(path)?.into();
            self.tape.events.push(Event::Write { file, offset: 0, bytes });
        }
        Ok(file)
    }

    pub(crate) fn unlinked(&mut self, name: &str) {
        if self.names.remove(name).is_some() {
            self.tape.events.push(Event::Unlink { name: name.to_owned() });
        }
    }

    pub(crate) fn wrote(&mut self, file: FileNo, offset: usize, bytes: &[u8]) {
        let end = (offset + bytes.len()) as u64;
        let size = self.sizes.entry(file).or_default();
        *size = end.max(*size);
        self.tape.events.push(Event::Write { file, offset, bytes: bytes.into() });
    }

    pub(crate) fn resized(&mut self, file: FileNo, size: usize) {
        self.sizes.insert(file, size as u64);
        self.tape.events.push(Event::Resize { file, size });
    }
}
