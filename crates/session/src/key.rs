//! Which session an event belongs to.

use std::fmt;

use serde::{Deserialize, Serialize};
use talaria_model::{
    AccountId, Address, ChatId, ChatKind, Inbound, KnownBy, Sender, SenderId, ThreadId,
};

/// Names a session for as long as its chat exists. A value: it is stored whole, and its printed
/// form is for people, logs and files only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionKey {
    /// The connection.
    pub account: AccountId,
    /// What kind of chat it is.
    pub kind: ChatKind,
    /// The chat; in a direct chat that has no id of its own, the person in it. None where all direct
    /// chats of the account are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<ChatId>,
    /// The thread, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The person, where each has a session of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<SenderId>,
    /// A session beside this one that does one thing in the background, counting from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<u32>,
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
        let key = Self::between(&inbound.from, &inbound.to, inbound.source.known_by, scope);
        match &inbound.source.moved_from {
            Some(before) if key.kind != ChatKind::Dm => Self { chat: Some(before.clone()), ..key },
            _ => key,
        }
    }

    /// The session in which a person speaks at an address.
    pub fn between(from: &Sender, to: &Address, known_by: KnownBy, scope: Scope) -> Self {
        let person = from.lasting();
        let per_member = match (to.chat.kind, &to.thread) {
            (ChatKind::Dm, _) => false,
            (ChatKind::Thread, _) | (_, Some(_)) => scope.threads == ThreadSessions::PerMember,
            (ChatKind::Group | ChatKind::Channel | ChatKind::Forum, None) => {
                scope.groups == GroupSessions::PerMember
            }
        };
        let chat = match (to.chat.kind, known_by) {
            (ChatKind::Dm, KnownBy::Sender) => {
                Some(ChatId::new(person.as_str()).expect("a sender's id is as good as a chat's"))
            }
            (ChatKind::Dm, KnownBy::Nothing) => None,
            _ => Some(to.chat.id.clone()),
        };
        Self {
            account: to.account.clone(),
            kind: to.chat.kind,
            chat,
            thread: to.thread.clone(),
            member: per_member.then(|| person.clone()),
            side: None,
        }
    }

    /// Whether several people speak in it.
    pub fn is_shared(&self) -> bool {
        self.kind != ChatKind::Dm && self.member.is_none() && self.side.is_none()
    }

    /// A session beside it.
    pub(crate) fn beside(&self, side: u32) -> Self {
        Self { side: Some(side), ..self.clone() }
    }

    /// The one that it is beside.
    pub fn main(&self) -> Self {
        Self { side: None, ..self.clone() }
    }

    /// As it is printed for an agent of this name.
    pub fn printed_for(&self, agent: &str) -> String {
        let chat = self.chat.as_ref().map(ChatId::as_str);
        let thread = self.thread.as_ref().map(ThreadId::as_str);
        let member = self.member.as_ref().map(SenderId::as_str);
        let mut printed = format!("agent:{agent}:{}:{}", self.account, self.kind.as_str());
        for part in [chat, thread, member].into_iter().flatten() {
            printed.push(':');
            printed.push_str(part);
        }
        if let Some(side) = self.side {
            printed.push_str(&format!(":side-{side}"));
        }
        printed
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.printed_for("main"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::{Chat, jid};

    const USUAL: Scope =
        Scope { groups: GroupSessions::PerMember, threads: ThreadSessions::Shared };
    const SHARED_GROUPS: Scope = Scope { groups: GroupSessions::Shared, ..USUAL };
    const OWN_THREADS: Scope = Scope { threads: ThreadSessions::PerMember, ..USUAL };

    /// `account kind chat [thread] user [alt]`, as a sender at an address.
    struct Place {
        from: Sender,
        to: Address,
    }

    fn place(account: &'static str, kind: ChatKind, chat: &'static str, user: &str) -> Place {
        Place {
            from: Sender::new(SenderId::new(user).unwrap()),
            to: Address {
                account: AccountId::literal(account),
                chat: Chat { id: ChatId::literal(chat), kind },
                thread: None,
            },
        }
    }

    impl Place {
        fn thread(mut self, thread: &'static str) -> Self {
            self.to.thread = Some(ThreadId::literal(thread));
            self
        }

        fn alt(mut self, alt: &str) -> Self {
            self.from.alt = Some(SenderId::new(alt).unwrap());
            self
        }

        fn key(&self, known_by: KnownBy, scope: Scope) -> SessionKey {
            SessionKey::between(&self.from, &self.to, known_by, scope)
        }
    }

    #[test]
    fn keys_print_as_people_know_them() {
        use ChatKind::{Channel, Dm, Forum, Group, Thread};
        let of_jid = |jid: &str| jid::canonical(jid, |_| None);
        let number = "15551234567@s.whatsapp.net";
        let device = "15551234567:12@s.whatsapp.net";
        let by_chat = KnownBy::Chat;
        for (place, known_by, scope, printed) in [
            (place("telegram", Dm, "12345", "9"), by_chat, USUAL, "telegram:dm:12345"),
            (
                place("telegram", Dm, "12345", "9").thread("7"),
                by_chat,
                USUAL,
                "telegram:dm:12345:7",
            ),
            (place("telegram", Group, "-100", "9"), by_chat, USUAL, "telegram:group:-100:9"),
            (place("telegram", Group, "-100", "9"), by_chat, SHARED_GROUPS, "telegram:group:-100"),
            (
                place("telegram", Forum, "-100", "9").thread("5"),
                by_chat,
                USUAL,
                "telegram:forum:-100:5",
            ),
            (
                place("discord", Thread, "77", "9").thread("77"),
                by_chat,
                OWN_THREADS,
                "discord:thread:77:77:9",
            ),
            (
                place("signal", Dm, "+15551234567", "+15551234567").alt("uuid-1"),
                KnownBy::Sender,
                USUAL,
                "signal:dm:uuid-1",
            ),
            (
                place("signal", Group, "group:abc", "+1").alt("u1"),
                by_chat,
                USUAL,
                "signal:group:group:abc:u1",
            ),
            (
                place("whatsapp", Dm, number, number).alt(&of_jid(number)),
                KnownBy::Sender,
                USUAL,
                "whatsapp:dm:15551234567",
            ),
            (
                place("whatsapp", Group, "1203@g.us", device).alt(&of_jid(device)),
                by_chat,
                USUAL,
                "whatsapp:group:1203@g.us:15551234567",
            ),
            (
                place("slack", Group, "C1", "U1").thread("171.1"),
                by_chat,
                USUAL,
                "slack:group:C1:171.1",
            ),
            (place("slack", Channel, "C1", "U1"), by_chat, SHARED_GROUPS, "slack:channel:C1"),
            (place("discord", Thread, "77", "9"), by_chat, USUAL, "discord:thread:77"),
            (place("sms", Dm, "nobody", "nobody"), KnownBy::Nothing, USUAL, "sms:dm"),
        ] {
            let key = place.key(known_by, scope);
            assert_eq!(key.to_string(), format!("agent:main:{printed}"));
        }
        let bob = place("irc", Channel, "#x", "bob").key(by_chat, USUAL);
        assert_eq!(bob.printed_for("coder"), "agent:coder:irc:channel:#x:bob");
        assert_eq!(bob.beside(3).to_string(), "agent:main:irc:channel:#x:bob:side-3");
        assert_eq!(bob.beside(3).main(), bob);
    }

    #[test]
    fn a_conversation_goes_on_when_its_chat_has_another_id() {
        let mut inbound = crate::tests::said("alice", "hello");
        inbound.to.chat = talaria_model::Chat { id: ChatId::literal("new"), kind: ChatKind::Group };
        inbound.source.moved_from = Some(ChatId::literal("old"));
        let key = SessionKey::of(&inbound, SHARED_GROUPS);
        assert_eq!(key.to_string(), "agent:main:web:group:old");
    }

    #[test]
    fn several_people_speak_where_nobody_has_a_session_of_their_own() {
        use ChatKind::{Dm, Group};
        for (place, scope, shared) in [
            (place("a", Dm, "c", "u"), SHARED_GROUPS, false),
            (place("a", Dm, "c", "u").thread("t"), USUAL, false),
            (place("a", Group, "c", "u"), USUAL, false),
            (place("a", Group, "c", "u"), SHARED_GROUPS, true),
            (place("a", Group, "c", "u").thread("t"), USUAL, true),
            (place("a", Group, "c", "u").thread("t"), OWN_THREADS, false),
        ] {
            assert_eq!(place.key(KnownBy::Chat, scope).is_shared(), shared);
        }
    }

    #[test]
    fn keys_that_print_alike_are_still_different_keys() {
        let with_thread = place("a", ChatKind::Group, "c", "u").thread("u");
        let shared = with_thread.key(KnownBy::Chat, USUAL);
        let own = place("a", ChatKind::Group, "c", "u").key(KnownBy::Chat, USUAL);
        assert_eq!(shared.to_string(), own.to_string());
        assert_ne!(shared, own);
    }
}
