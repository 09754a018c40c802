//! What we say in a chat.

use serde::{Deserialize, Serialize};

use crate::{ChoiceId, FileRef, MessageId, OutboundId, SenderId};

/// One thing to say: Markdown, files and the answers it offers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// CommonMark, whatever the platform's own dialect is; unless it is to be read otherwise.
    pub text: String,
    /// How the text is to be read.
    #[serde(default, skip_serializing_if = "Reading::is_markdown")]
    pub reading: Reading,
    /// Files that go along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
    /// Answers to choose from. Empty when nothing is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// The message this answers, on platforms that show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// Whether people's devices are to make a sound.
    #[serde(default, skip_serializing_if = "Notify::is_aloud")]
    pub notify: Notify,
    /// The one person whom it concerns, when nobody else in the chat has to read it and nothing is lost
    /// with it. Answers concern everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whispered_to: Option<SenderId>,
    /// How many messages that said this were taken away again. Each count is another message, also where
    /// repeats are recognised. Only delivery counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub anew: u32,
    /// What we said before whose place this takes. Where that cannot be seen any more, it is said anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<OutboundId>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// How a text is to be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// As CommonMark.
    #[default]
    Markdown,
    /// As it is: no character in it is a mark of anything. People see it unformatted.
    AsItIs,
}

impl Reading {
    fn is_markdown(&self) -> bool {
        *self == Self::Markdown
    }
}

/// Whether people's devices are to make a sound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notify {
    /// As they have set them.
    #[default]
    Aloud,
    /// No, on platforms that can.
    Silently,
}

impl Notify {
    fn is_aloud(&self) -> bool {
        *self == Self::Aloud
    }
}

impl Content {
    /// Text and nothing else.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// One answer that a question offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What comes back when it is pressed.
    pub id: ChoiceId,
    /// What the person reads.
    pub label: String,
}
