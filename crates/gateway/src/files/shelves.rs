//! What is in the folder, where, and how much of it there is.

use std::collections::BTreeMap;
use std::ops::Bound;

use talaria_model::{FileId, Timestamp};

/// A folder of the folder: one for each kind of file, so that whoever looks there finds their pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shelf {
    Images,
    Audio,
    Videos,
    Documents,
    /// The first two digits of the digest, in homes whose files are not sorted by kind.
    Digits,
}

impl Shelf {
    /// Where a file goes whose bytes show that it is of this kind.
    pub(super) fn of(mime: &str) -> Self {
        match mime.split('/').next() {
            Some("image") => Self::Images,
            Some("audio") => Self::Audio,
            Some("video") => Self::Videos,
            _ => Self::Documents,
        }
    }

    /// The one with this name, if it is one of ours.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "images" => Some(Self::Images),
            "audio" => Some(Self::Audio),
            "videos" => Some(Self::Videos),
            "documents" => Some(Self::Documents),
            _ => {
                let is_digits = name.len() == 2 && name.bytes().all(|b| b.is_ascii_hexdigit());
                is_digits.then_some(Self::Digits)
            }
        }
    }

    /// What it is called for this file, which is named by its digest.
    pub(super) fn name(self, id: &FileId) -> &str {
        match self {
            Self::Images => "images",
            Self::Audio => "audio",
            Self::Videos => "videos",
            Self::Documents => "documents",
            Self::Digits => &id.as_str()[..2],
        }
    }
}

/// Where a file lies, and how old it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shelved {
    pub(super) on: Shelf,
    pub(super) at: Timestamp,
}

/// What is there. The oldest comes first.
#[derive(Default)]
pub(super) struct Shelves {
    pub(super) files: BTreeMap<Place, u64>,
    pub(super) shelved: BTreeMap<FileId, Shelved>,
    /// Bytes, of files that are being received too.
    pub(super) used: u64,
    /// Where the next look for what nothing names begins.
    pub(super) looked_at: Option<Place>,
    /// Where the next look for room begins.
    pub(super) looked_at_for_room: Option<Place>,
}

pub(super) type Place = (Timestamp, FileId);

impl Shelves {
    pub(super) fn put(&mut self, id: FileId, place: Shelved, size: u64) {
        self.take(&id);
        self.files.insert((place.at, id.clone()), size);
        self.shelved.insert(id, place);
        self.used += size;
    }

    /// On which shelf a file is, if it is there.
    pub(super) fn shelf(&self, id: &FileId) -> Option<Shelf> {
        self.shelved.get(id).map(|shelved| shelved.on)
    }

    pub(super) fn take(&mut self, id: &FileId) {
        if let Some(Shelved { at, .. }) = self.shelved.remove(id)
            && let Some(size) = self.files.remove(&(at, id.clone()))
        {
            self.used -= size;
        }
    }

    /// Some of the files that are older than that, from a place on.
    pub(super) fn older_than(
        &self,
        then: Timestamp,
        after: Option<&Place>,
        many: usize,
    ) -> Vec<Place> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let places = self.files.range((from, Bound::Unbounded)).map(|(place, _)| place);
        places.take_while(|(at, _)| *at < then).take(many).cloned().collect()
    }
}
