//! What the gateway lends to a platform: the time, its files, its own past, its commands, a folder.
//! To its operator's own platforms it lends their desk, too.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use talaria_clock::Clock;
use talaria_model::{AccountId, Address, Entry, FileId, FileRef, Timestamp};

/// Everything a platform may use. It has no other way to the machine's state.
#[derive(Clone)]
pub struct Ports {
    /// Which account this is.
    pub account: AccountId,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Files that travel with messages.
    pub files: Arc<dyn FileStore>,
    /// What was said on this account, and on no other.
    pub archive: Arc<dyn Archive>,
    /// The commands that people can give on this account.
    pub menu: Arc<[crate::MenuItem]>,
    /// The operator's desk, where only the operator can be: never on a platform where others write.
    pub desk: Option<Arc<dyn crate::Desk>>,
    /// Names besides loopback ones under which the gateway's HTTP listener may be addressed.
    pub hosts: Arc<[String]>,
    /// A private folder for keys and caches of this account.
    pub folder: PathBuf,
    /// Where the last committed batch ended.
    pub cursor: Option<crate::Cursor>,
    /// What the connection before this one left.
    pub kept: crate::Kept,
}

/// The bytes of a file.
pub type ByteStream = BoxStream<'static, std::io::Result<Bytes>>;

/// Keeps files by the digest of their bytes.
#[async_trait]
pub trait FileStore: Send + Sync {
    /// Stores the bytes durably and names them. Stops reading at the size limit.
    async fn save(
        &self,
        name: &str,
        mime: Option<&str>,
        bytes: ByteStream,
    ) -> Result<FileRef, FileError>;

    /// The bytes of a stored file.
    async fn read(&self, id: &FileId) -> Result<ByteStream, FileError>;
}

/// Why a file could not be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// More bytes than the gateway takes.
    #[error("the file is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// All files together are as many bytes as the gateway keeps.
    #[error("the gateway keeps no more than {quota} bytes of files")]
    Full {
        /// The quota.
        quota: u64,
    },
    /// No such file, or one that was let go to make room.
    #[error("there is no such file, or it is no longer kept")]
    Missing,
    /// The disk or the sender failed.
    #[error("the file could not be read or written")]
    Broken(#[from] std::io::Error),
}

/// What was said on one account. Made for that account, so there is no way to name another.
#[async_trait]
pub trait Archive: Send + Sync {
    /// The conversations, the most recently used first.
    async fn conversations(&self, limit: usize) -> Result<Vec<Conversation>, ArchiveError>;

    /// The newest entries at an address that stand before `before`, oldest first.
    async fn history(
        &self,
        at: &Address,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Recorded>, ArchiveError>;

    /// Entries that contain the words or the substring, best first.
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, ArchiveError>;
}

/// A chat in which something was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Where it is.
    pub at: Address,
    /// What it is about, in a few words.
    pub title: String,
    /// When something happened in it last.
    pub updated: Timestamp,
    /// Whether a turn is running or a question is open.
    pub busy: bool,
}

/// An entry with its place in the whole archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Grows with every entry recorded anywhere.
    pub position: u64,
    /// What was recorded.
    pub entry: Entry,
}

/// Something found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Where it was said.
    pub at: Address,
    /// The title of that conversation.
    pub title: String,
    /// The entry.
    pub recorded: Recorded,
    /// The text around the match, with the match between `\u{2}` and `\u{3}`.
    pub excerpt: String,
}

/// The archive cannot answer at the moment.
#[derive(Debug, thiserror::Error)]
#[error("the archive is not available: {0}")]
pub struct ArchiveError(pub String);
