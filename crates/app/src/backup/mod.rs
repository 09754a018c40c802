//! Backups: a home in one file, taken while a gateway runs, checked before anybody relies on it, and gone
//! back to as a whole or not at all.
//!
//! The file is a gzipped tar that other programs can open too: `about.json` first, the members under
//! `home/`, and `manifest.json` last, so that a file that was cut short is known by its end.

mod listed;
mod pack;
mod swap;
mod unpack;
mod workshop;

use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub(crate) use pack::pack;
pub(crate) use swap::{Restored, restore, settle};
pub(crate) use unpack::verify;

/// What a home keeps that is somebody's work, beside `state.db`. Everything else in it is made again.
const KEPT: [&str; 8] = [
    "config.yaml",
    ".env",
    "homes.json",
    "paused.json",
    ACCOUNTS,
    "files",
    "hooks",
    "chat_history",
];

/// What each account keeps for itself.
const ACCOUNTS: &str = "accounts";

/// The truth, of which a copy is taken.
const STATE: &str = "state.db";

/// What belongs to the truth that is replaced and means nothing beside another one.
const GOES_WITH_STATE: [&str; 5] =
    ["state.db-wal", "state.db-shm", "search.db", "search.db-wal", "search.db-shm"];

const ABOUT: &str = "about.json";
const MANIFEST: &str = "manifest.json";
const HOME: &str = "home";

/// How backups are written. One that is written otherwise has another number.
const FORMAT: u32 = 1;

/// The most members that a backup may have.
const MOST_MEMBERS: usize = 500_000;

/// The most bytes that may tell about a backup.
const LONGEST_ABOUT: u64 = 64 * 1024;

/// The most bytes that a list of members may have.
const LONGEST_MANIFEST: u64 = 1 << 27;

/// What a backup is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    /// How it is written.
    pub(crate) format: u32,
    /// The program that wrote it.
    pub(crate) talaria: String,
    /// The version of the database in it; none when the home had none.
    pub(crate) schema: Option<i32>,
    /// When it was taken, in UTC.
    pub(crate) created: String,
}

/// What a backup contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    #[serde(flatten)]
    about: About,
    members: Vec<Member>,
}

/// One file of a home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Member {
    /// Where it is in the home.
    path: String,
    size: u64,
    sha256: String,
}

/// Reads what somebody else writes, and says afterwards what that was.
struct Hashing<R> {
    from: R,
    digest: Sha256,
    read: u64,
}

impl<R: Read> Hashing<R> {
    fn new(from: R) -> Self {
        Self { from, digest: Sha256::new(), read: 0 }
    }

    fn member(self, path: String) -> Member {
        let sha256 = self.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Member { path, size: self.read, sha256 }
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.digest.update(&buffer[..read]);
        self.read += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
