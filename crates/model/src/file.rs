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
    /// How it is to be shown. A platform that knows only one way ignores it.
    #[serde(default, skip_serializing_if = "Shown::is_natural")]
    pub shown: Shown,
    /// Whose it is, of those that came with a message.
    #[serde(default, skip_serializing_if = "Owner::is_sender")]
    pub owner: Owner,
}

impl FileRef {
    /// A file that is shown as what it is.
    pub fn new(id: FileId, name: impl Into<String>, mime: impl Into<String>, size: u64) -> Self {
        let (name, mime) = (name.into(), mime.into());
        Self { id, name, mime, size, shown: Shown::default(), owner: Owner::default() }
    }
}

/// Whose a file is that came with a message. What somebody else says in one is not said by the sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// Of whoever says what the message says.
    #[default]
    Sender,
    /// Of whoever wrote the message that it answers.
    Answered,
    /// Of whoever wrote another message, which it shows.
    Shown,
}

impl Owner {
    /// Whether it is the sender's.
    pub fn is_sender(&self) -> bool {
        *self == Self::Sender
    }
}

/// How a file is to be shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// As what it is: a picture as a picture, sound with a player.
    #[default]
    Natural,
    /// Sound, as if somebody spoke.
    Voice,
    /// As a document to be saved, whatever it is: a picture is not made smaller.
    Document,
}

impl Shown {
    /// Whether nothing in particular is wished.
    pub fn is_natural(&self) -> bool {
        *self == Self::Natural
    }
}
