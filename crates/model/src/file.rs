//! Files that travel with messages.

use serde::{Deserialize, Serialize};

use crate::FileId;

/// A file in the gateway's own store, by the digest of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileRef {
    /// Where its bytes are.
    pub id: FileId,
    /// The name it had. Display only; never a path.
    pub name: String,
    /// Its media type, as found by looking at the bytes, else as declared.
    pub mime: String,
    /// Bytes.
    pub size: u64,
}
