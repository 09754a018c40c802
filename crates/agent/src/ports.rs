//! What the built-in agent needs from whoever runs it.

use async_trait::async_trait;
use talaria_model::FileRef;

use crate::ToolScope;

/// Finds what was said before.
#[async_trait]
pub trait Recall: Send + Sync {
    /// Entries that fit the query, best first, among those that the person in `scope` may read.
    async fn search(
        &self,
        scope: &ToolScope,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Memory>, String>;
}

/// Something that was said before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// When, as people read it.
    pub when: String,
    /// In which conversation.
    pub conversation: String,
    /// Who said it.
    pub who: String,
    /// The text around the match.
    pub excerpt: String,
}

/// Reads and keeps files that travel with messages.
#[async_trait]
pub trait Attachments: Send + Sync {
    /// The bytes of a file, if there are at most `limit`.
    async fn load(&self, file: &FileRef, limit: u64) -> Option<Vec<u8>>;

    /// Keeps a file so that it can be sent.
    async fn save(&self, name: &str, mime: &str, bytes: Vec<u8>) -> Result<FileRef, String>;
}
