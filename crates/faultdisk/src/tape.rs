//! What happened to the files of a folder, in order.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A file, whatever name leads to it. A file made in the place of a deleted one is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNo(pub(crate) usize);

/// Something that happened to a file or to the folder.
#[derive(Debug, Clone)]
pub enum Event {
    /// A name leads to this file from here on.
    Link {
        /// The name in the folder.
        name: String,
        /// The file.
        file: FileNo,
    },
    /// A name leads nowhere from here on.
    Unlink {
        /// The name in the folder.
        name: String,
    },
    /// Bytes were written.
    Write {
        /// The file.
        file: FileNo,
        /// From here on.
        offset: usize,
        /// The bytes.
        bytes: Arc<[u8]>,
    },
    /// A file was cut or extended.
    Resize {
        /// The file.
        file: FileNo,
        /// Its size after that.
        size: usize,
    },
    /// Everything written to a file so far is on the disk.
    Sync {
        /// The file.
        file: FileNo,
    },
    /// A sync was answered with an error. What it should have brought to the disk may or may not get
    /// there, and no later sync brings it there: the kernel takes it for written.
    SyncFailed {
        /// The file.
        file: FileNo,
    },
    /// Every name in the folder is on the disk.
    SyncFolder,
}

/// A recording: the files as they were when it began, and what happened since.
#[derive(Debug, Clone, Default)]
pub struct Tape {
    pub(crate) names: BTreeMap<String, FileNo>,
    pub(crate) contents: BTreeMap<FileNo, Arc<[u8]>>,
    pub(crate) events: Vec<Event>,
}

impl Tape {
    /// How many events there are.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// How often something was synced.
    pub fn syncs(&self) -> usize {
        self.events.iter().filter(|event| is_sync(event)).count()
    }

    /// The moments right before and right after each sync, each as the number of events that have
    /// happened by then.
    pub fn boundaries(&self) -> Vec<usize> {
        let mut moments: Vec<usize> = (0..self.events.len())
            .filter(|moment| is_sync(&self.events[*moment]))
            .flat_map(|moment| [moment, moment + 1])
            .collect();
        moments.dedup();
        moments
    }

    /// The events.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The last name that led to a file.
    pub fn name_of(&self, file: FileNo) -> &str {
        let linked = self.events.iter().rev().find_map(|event| match event {
            Event::Link { name, file: linked } if *linked == file => Some(name.as_str()),
            _ => None,
        });
        let known = || self.names.iter().find(|(_, known)| **known == file);
        linked.or_else(|| known().map(|(name, _)| name.as_str())).unwrap_or("")
    }
}

fn is_sync(event: &Event) -> bool {
    matches!(event, Event::Sync { .. } | Event::SyncFailed { .. } | Event::SyncFolder)
}
