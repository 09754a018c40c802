//! What we say in a chat.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ChoiceId, FileRef, MessageId, OutboundId, SenderId};

/// What stands in the place of words that are not kept.
pub const WITHHELD: &str = "••••••••";

/// One thing to say: Markdown, files and the answers it offers. Printed, it does not show confidential
/// words.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Whether the words may be kept once they have been said.
    #[serde(default, skip_serializing_if = "Privacy::is_open")]
    pub privacy: Privacy,
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

/// Whether words may be kept once they have been said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Privacy {
    /// Yes.
    #[default]
    Open,
    /// No: they are kept as long as they have to be delivered, and no longer.
    Confidential,
}

impl Privacy {
    fn is_open(&self) -> bool {
        *self == Self::Open
    }
}

impl Content {
    /// Text and nothing else.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Text that is not kept once it has been said.
    pub fn confidential(text: impl Into<String>) -> Self {
        Self { privacy: Privacy::Confidential, ..Self::text(text) }
    }

    /// What is kept of confidential content.
    pub fn withheld() -> Self {
        Self::confidential(WITHHELD)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[rustfmt::skip]
        let Self {
            text, reading, files, choices, reply_to, notify, whispered_to, anew, replaces, privacy,
        } = self;
        let text = match privacy {
            Privacy::Open => text,
            Privacy::Confidential => WITHHELD,
        };
        f.debug_struct("Content")
            .field("text", &text)
            .field("reading", reading)
            .field("files", files)
            .field("choices", choices)
            .field("reply_to", reply_to)
            .field("notify", notify)
            .field("whispered_to", whispered_to)
            .field("anew", anew)
            .field("replaces", replaces)
            .field("privacy", privacy)
            .finish()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidential_words_are_not_printed() {
        let content = Content::confidential("the code is ABCD2345");
        let printed = format!("{content:?}");
        assert!(!printed.contains("ABCD2345") && printed.contains(WITHHELD), "{printed}");
        assert!(format!("{:?}", Content::text("hello")).contains("hello"));
    }

    #[test]
    fn what_was_written_before_anything_was_confidential_is_open() {
        let before: Content = serde_json::from_str(r#"{"text":"hello"}"#).expect("reads");
        assert_eq!(before, Content::text("hello"));
        let written = serde_json::to_string(&before).expect("writes");
        assert_eq!(written, r#"{"text":"hello"}"#, "and is written as it was");
    }
}
