//! Files that a platform holds and we have not fetched yet.

use serde::{Deserialize, Serialize};

use crate::Owner;

/// A file that came with a message and is still at its platform. It is fetched once the message is
/// safe, so that a large or slow one cannot keep a platform from being heard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// How the platform finds it again. Opaque to everybody else, and never a secret.
    pub handle: String,
    /// What it is to people.
    pub kind: MediaKind,
    /// The name it has, where it has one. Display only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its media type, as declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Bytes, as declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Owner::is_sender")]
    pub owner: Owner,
}

impl Media {
    /// The same file, of whoever wrote the message that its message answers.
    pub fn answered(self) -> Self {
        Self { owner: Owner::Answered, ..self }
    }
}

/// What a file is to the people who sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// A picture, shown in the chat.
    Photo,
    /// A film, shown in the chat.
    Video,
    /// A film without sound that repeats.
    Animation,
    /// Music or another recording.
    Audio,
    /// Somebody speaks.
    Voice,
    /// A picture that stands for a feeling.
    Sticker,
    /// Any file.
    Document,
}

impl MediaKind {
    /// What people call it.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Photo => "photo",
            Self::Video => "video",
            Self::Animation => "animation",
            Self::Audio => "audio file",
            Self::Voice => "voice message",
            Self::Sticker => "sticker",
            Self::Document => "document",
        }
    }
}

/// A file that came with a message and that we do not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfetched {
    /// What it is to people.
    pub kind: MediaKind,
    /// The name it has, where it has one. Display only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Why we do not have it, in a few words.
    pub reason: String,
}
