//! Room on a disk.

use std::path::Path;

/// Room on a disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// What this user may still write.
    pub free: u64,
    /// What it holds in all.
    pub all: u64,
}

/// The room on the disk that a folder is on, where that is known.
#[cfg(unix)]
pub fn room(folder: &Path) -> Option<Room> {
    let about = nix::sys::statvfs::statvfs(folder).ok()?;
    Some(Room {
        free: about.blocks_available() as u64 * about.fragment_size() as u64,
        all: about.blocks() as u64 * about.fragment_size() as u64,
    })
}

/// The room on the disk that a folder is on, where that is known.
#[cfg(windows)]
pub fn room(folder: &Path) -> Option<Room> {
    crate::windows::room::room(folder).ok().map(|(free, all)| Room { free, all })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_there_has_room_and_one_that_is_not_is_not_known() {
        let place = tempfile::tempdir().unwrap();
        let room_there = room(place.path()).unwrap();
        assert!(room_there.all > 0 && room_there.free <= room_there.all, "{room_there:?}");
        assert_eq!(room(&place.path().join("nothing")), None);
    }
}
