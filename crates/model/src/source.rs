//! What is known about the place where something was said, beyond where answers go.

use serde::{Deserialize, Serialize};

use crate::{ChatId, RoleId};

/// Describes the place an event came from. Nothing here decides where an answer goes: that is the
/// address alone. All of it may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    /// What people call the chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_name: Option<String>,
    /// What the chat says it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The chat that a thread belongs to, where the thread is a chat of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ChatId>,
    /// The workspace, guild or server that the chat is in, as its platform names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// A second id of the chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alt_chat: Option<ChatId>,
    /// The id that the chat had before. Its conversations go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<ChatId>,
    /// Whose the thread is, where people begin one by answering a message. None where threads are rooms, and
    /// where something was not said in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<Below>,
    /// What tells this direct chat from others.
    #[serde(skip_serializing_if = "KnownBy::is_chat")]
    pub known_by: KnownBy,
    /// The sender's roles on the platform, as far as the account named them when this was said. Each counts
    /// as long as it does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleId>,
}

impl Source {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The chat that something counts for that happened here: of a thread that is a chat of its own, the one that
    /// it belongs to. Whoever begins threads has no more of anything by that.
    pub fn counts_for<'a>(&'a self, chat: &'a ChatId) -> &'a ChatId {
        self.parent.as_ref().unwrap_or(chat)
    }
}

/// Whose a thread is that hangs below a message, as far as its platform knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Below {
    /// Ours: we began it, or have spoken in it.
    Us,
    /// Somebody else began it.
    Others,
}

/// What tells a direct chat from others. Chats of several people always have an id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// Its id.
    #[default]
    Chat,
    /// Who is in it: the chat has no id, or one that can change form.
    Sender,
    /// Nothing: all direct chats of the account are one.
    Nothing,
}

impl KnownBy {
    fn is_chat(&self) -> bool {
        *self == Self::Chat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_once_said_that_somebody_was_let_in_names_no_role() {
        let old = r#"{"chat_name":"Kitchen","standing":"by_role"}"#;
        let source: Source = serde_json::from_str(old).unwrap();
        assert_eq!(source, Source { chat_name: Some("Kitchen".into()), ..Source::default() });
    }
}
