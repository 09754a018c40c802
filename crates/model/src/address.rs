//! Where a message comes from and where it goes.

use serde::{Deserialize, Serialize};

use crate::{AccountId, ChatId, SenderId, ThreadId};

/// The destination travels inside every value that is sent, so a reply cannot land in another chat.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Address {
    /// The connection.
    pub account: AccountId,
    /// The chat on it.
    pub chat: Chat,
    /// The thread in the chat, on platforms that have threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
}

/// A chat and what kind of chat it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Chat {
    /// As the platform names it.
    pub id: ChatId,
    /// How many people can be in it.
    pub kind: ChatKind,
}

/// How many people can be in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatKind {
    /// One person and us.
    Dm,
    /// Several people.
    Group,
    /// A room that is broadcast to.
    Channel,
    /// A thread that its platform treats as a chat of its own.
    Thread,
}

impl ChatKind {
    /// As it is printed in a session key.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dm => "dm",
            Self::Group => "group",
            Self::Channel => "channel",
            Self::Thread => "thread",
        }
    }
}

/// Who said it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sender {
    /// The platform's immutable id. Policy compares this and nothing else.
    pub id: SenderId,
    /// What people see. For display only: anybody can choose any name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
