//! What applies to speaking and to being spoken to.

use serde::{Deserialize, Serialize};

/// What applies to speaking and to being spoken to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Voice {
    /// Which answers are spoken where nobody has chosen otherwise. None where there is no voice.
    pub replies: Option<Aloud>,
    /// Whether people are shown what was understood.
    pub echo: Echo,
}

/// Which answers are spoken, besides being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aloud {
    /// None.
    Never,
    /// Those to voice messages.
    ToVoice,
    /// All.
    Always,
}

impl Aloud {
    /// Whether the answer to something that was said like this is spoken.
    pub(crate) fn applies(self, medium: Medium) -> bool {
        match self {
            Self::Never => false,
            Self::ToVoice => medium == Medium::Voice,
            Self::Always => true,
        }
    }

    /// As people are told.
    pub(crate) const fn told(self) -> &'static str {
        match self {
            Self::Never => "I answer in writing only.",
            Self::ToVoice => "I answer voice messages aloud, too.",
            Self::Always => "I answer everything aloud, too.",
        }
    }
}

/// Whether people are shown what was understood of a voice message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Echo {
    /// Yes, so that they see what is answered.
    Sent,
    /// No.
    #[default]
    Never,
}

/// How something was said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    /// In writing.
    #[default]
    Writing,
    /// Aloud, at least in part.
    Voice,
}

impl Medium {
    pub(crate) fn is_writing(&self) -> bool {
        *self == Self::Writing
    }
}
