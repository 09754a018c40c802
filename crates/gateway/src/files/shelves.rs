//! What is in the folder, and how much of it there is.

use std::collections::BTreeMap;
use std::ops::Bound;

use talaria_model::{FileId, Timestamp};

/// What is there. The oldest comes first.
#[derive(Default)]
pub(super) struct Shelves {
    pub(super) files: BTreeMap<Place, u64>,
    pub(super) ages: BTreeMap<FileId, Timestamp>,
    /// Bytes, of files that are being received too.
    pub(super) used: u64,
    /// Where the next look for what nothing names begins.
    pub(super) looked_at: Option<Place>,
    /// Where the next look for room begins.
    pub(super) looked_at_for_room: Option<Place>,
}

pub(super) type Place = (Timestamp, FileId);

impl Shelves {
    pub(super) fn put(&mut self, id: FileId, at: Timestamp, size: u64) {
        self.take(&id);
        self.files.insert((at, id.clone()), size);
        self.ages.insert(id, at);
        self.used += size;
    }

    pub(super) fn take(&mut self, id: &FileId) {
        if let Some(at) = self.ages.remove(id)
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
