//! What we do in a chat.

use serde::{Deserialize, Serialize};

use crate::{Address, Content, MessageId, OutboundId, Privacy, Timestamp};

/// One act in one chat. The id is stable across retries and restarts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outbound {
    /// Names this act for good.
    pub id: OutboundId,
    /// Where it happens.
    pub to: Address,
    /// What happens.
    pub act: Act,
}

/// What can be done in a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Say something new.
    Post(Content),
    /// Replace the text of a message of ours.
    Edit {
        /// The message as its platform names it.
        message: MessageId,
        /// The whole new content.
        content: Content,
    },
    /// Show what an answer looks like so far; the `Post` with the same delivery replaces it. One without
    /// words takes back what was shown: the platform removes it, or lets it fade.
    Draft(Draft),
    /// Remove a message of ours.
    Delete {
        /// The message as its platform names it.
        message: MessageId,
    },
    /// Put a reaction on a message.
    React {
        /// The message as its platform names it.
        message: MessageId,
        /// One emoji.
        emoji: String,
    },
    /// Show on a message how far its answer is. It takes the place of what was shown there before.
    Mark {
        /// The message as its platform names it.
        message: MessageId,
        /// How far.
        progress: Progress,
    },
    /// Show that an answer is being worked on.
    Typing,
    /// Take that back where it stays.
    Rest,
}

impl Act {
    /// Whether the words of it may be kept once they have been said.
    pub fn privacy(&self) -> Privacy {
        match self {
            Self::Post(content)
            | Self::Edit { content, .. }
            | Self::Draft(Draft { content, .. }) => content.privacy,
            Self::Delete { .. } | Self::React { .. } | Self::Mark { .. } => Privacy::Open,
            Self::Typing | Self::Rest => Privacy::Open,
        }
    }
}

/// How far the answer to a message is. Each platform has its own sign for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Somebody works on it.
    Seen,
    /// It is answered.
    Done,
    /// It could not be answered.
    Failed,
    /// Nothing is to be shown any more.
    Nothing,
}

/// An answer as it looks so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// What is there.
    #[serde(flatten)]
    pub content: Content,
    /// What the agent is doing at the moment, when it is not writing, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
}

impl Draft {
    /// Whether it takes back what was shown.
    pub fn is_blank(&self) -> bool {
        self.content.text.trim().is_empty() && self.doing.is_none()
    }
}

impl From<Content> for Draft {
    fn from(content: Content) -> Self {
        Self { content, doing: None }
    }
}

/// Proof that a platform took an act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The platform's name for what was created, where it tells.
    pub message: Option<MessageId>,
    /// When it was taken.
    pub at: Timestamp,
}
