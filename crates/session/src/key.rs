//! Which session an event belongs to.

use std::fmt;

use serde::{Deserialize, Serialize};
use talaria_model::{AccountId, Address, ChatId, ChatKind, Inbound, SenderId, ThreadId};

/// Names a session for as long as its chat exists. A value: it is stored whole, and its printed
/// form is for people, logs and files only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionKey {
    /// The connection.
    pub account: AccountId,
    /// What kind of chat it is.
    pub kind: ChatKind,
    /// The chat.
    pub chat: ChatId,
    /// The thread, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The person, where each has a session of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<SenderId>,
}

/// Who shares a session in chats with several people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scope {
    /// In groups and channels.
    pub groups: GroupSessions,
    /// In threads.
    pub threads: ThreadSessions,
}

/// Who shares a session in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GroupSessions {
    /// Each person has their own.
    #[default]
    PerMember,
    /// Everybody shares one.
    Shared,
}

/// Who shares a session in a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadSessions {
    /// Each person has their own.
    PerMember,
    /// Everybody shares one.
    #[default]
    Shared,
}

impl SessionKey {
    /// The session that an event belongs to.
    pub fn of(inbound: &Inbound, scope: Scope) -> Self {
        Self::between(&inbound.from.id, &inbound.to, scope)
    }

    /// The session in which a person speaks at an address.
    pub fn between(from: &SenderId, to: &Address, scope: Scope) -> Self {
        let per_member = match (to.chat.kind, &to.thread) {
            (ChatKind::Dm, _) => false,
            (ChatKind::Thread, _) | (_, Some(_)) => scope.threads == ThreadSessions::PerMember,
            (ChatKind::Group | ChatKind::Channel, None) => scope.groups == GroupSessions::PerMember,
        };
        Self {
            account: to.account.clone(),
            kind: to.chat.kind,
            chat: to.chat.id.clone(),
            thread: to.thread.clone(),
            member: per_member.then(|| from.clone()),
        }
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent:main:{}:{}:{}", self.account, self.kind.as_str(), self.chat)?;
        if let Some(thread) = &self.thread {
            write!(f, ":{thread}")?;
        }
        if let Some(member) = &self.member {
            write!(f, ":{member}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::{Chat, EventId, InboundKind, Message, Sender, Timestamp};

    fn key(kind: ChatKind, thread: Option<&'static str>, scope: Scope) -> String {
        let inbound = Inbound {
            id: EventId::literal("e"),
            at: Timestamp::default(),
            from: Sender { id: SenderId::literal("alice"), name: None },
            to: Address {
                account: AccountId::literal("telegram"),
                chat: Chat { id: ChatId::literal("12345"), kind },
                thread: thread.map(ThreadId::literal),
            },
            kind: InboundKind::Said(Message::default()),
        };
        SessionKey::of(&inbound, scope).to_string()
    }

    #[test]
    fn keys_print_as_people_know_them() {
        let usual = Scope::default();
        let other = Scope { groups: GroupSessions::Shared, threads: ThreadSessions::PerMember };
        for (kind, thread, scope, printed) in [
            (ChatKind::Dm, None, usual, "agent:main:telegram:dm:12345"),
            (ChatKind::Dm, Some("t"), usual, "agent:main:telegram:dm:12345:t"),
            (ChatKind::Group, None, usual, "agent:main:telegram:group:12345:alice"),
            (ChatKind::Group, None, other, "agent:main:telegram:group:12345"),
            (ChatKind::Group, Some("t"), usual, "agent:main:telegram:group:12345:t"),
            (ChatKind::Group, Some("t"), other, "agent:main:telegram:group:12345:t:alice"),
            (ChatKind::Channel, None, usual, "agent:main:telegram:channel:12345:alice"),
            (ChatKind::Thread, None, usual, "agent:main:telegram:thread:12345"),
        ] {
            assert_eq!(key(kind, thread, scope), printed);
        }
    }
}
