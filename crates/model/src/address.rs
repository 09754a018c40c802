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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// A group that consists of topics.
    Forum,
}

impl ChatKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Dm, Self::Group, Self::Channel, Self::Thread, Self::Forum];

    /// As it is printed in a session key.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dm => "dm",
            Self::Group => "group",
            Self::Channel => "channel",
            Self::Thread => "thread",
            Self::Forum => "forum",
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
    /// A second id of the same sender that outlives the first, on platforms where `id` can change
    /// form. It names the sender's sessions where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alt: Option<SenderId>,
    /// What it is.
    #[serde(default, skip_serializing_if = "SenderKind::is_person")]
    pub kind: SenderKind,
}

/// What a sender is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SenderKind {
    /// Somebody.
    #[default]
    Person,
    /// A program: a bot or a webhook.
    Bot,
    /// A group or a channel, in whose name any of several people may speak.
    Chat,
}

impl SenderKind {
    pub(crate) fn is_person(&self) -> bool {
        *self == Self::Person
    }
}

impl Sender {
    /// A person of whom only the id is known.
    pub const fn new(id: SenderId) -> Self {
        Self { id, name: None, alt: None, kind: SenderKind::Person }
    }

    /// A person with the name that others see.
    pub fn named(id: SenderId, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::new(id) }
    }

    /// Whether both are the same sender, in whatever form the id came.
    pub fn is(&self, other: &Self) -> bool {
        self.id == other.id || self.lasting() == other.lasting()
    }

    /// The id that names this sender's sessions.
    pub fn lasting(&self) -> &SenderId {
        self.alt.as_ref().unwrap_or(&self.id)
    }
}
