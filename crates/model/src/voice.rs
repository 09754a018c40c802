//! What was said aloud.

use serde::{Deserialize, Serialize};

use crate::{FileId, Owner};

/// What was made of a recording that came with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    /// The recording.
    pub of: FileId,
    /// What was said in it.
    pub said: Understood,
    /// Whose recording it is.
    #[serde(default, skip_serializing_if = "Owner::is_sender")]
    pub owner: Owner,
}

/// What could be made out in a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Understood {
    /// These words.
    Words(String),
    /// Nothing, and why, in a few words.
    Nothing(String),
}
