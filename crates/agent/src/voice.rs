//! The contracts for writing down what is said, and for saying what is written.

use std::time::Duration;

use async_trait::async_trait;

/// Writes down what is said in recordings.
#[async_trait]
pub trait Transcriber: Send + Sync {
    /// The words of a recording. Empty where nothing is said in it.
    async fn transcribe(&self, recording: &Recording) -> Result<String, VoiceError>;
}

/// Says what is written.
#[async_trait]
pub trait Speaker: Send + Sync {
    /// A recording of these words, which are without marks.
    async fn speak(&self, words: &str) -> Result<Recording, VoiceError>;
}

/// Recorded sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// A name with an ending that fits. Display only; never a path.
    pub name: String,
    /// Its media type, as declared.
    pub mime: String,
    /// The sound.
    pub bytes: Vec<u8>,
}

/// Why something is not written down or not said. The reasons hold no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VoiceError {
    /// Try again.
    #[error("{reason}")]
    Unavailable {
        /// In a few words.
        reason: String,
        /// Not before that much time has passed.
        after: Option<Duration>,
    },
    /// Do not try again.
    #[error("{reason}")]
    Refused {
        /// In a few words.
        reason: String,
    },
}
