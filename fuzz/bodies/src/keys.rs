//! Which events share a session.

use talaria_model::{
    AccountId, Address, Chat, ChatId, ChatKind, EventId, Inbound, InboundKind, KnownBy, Message,
    Sender, SenderId, Source, ThreadId, Timestamp,
};
use talaria_session::{GroupSessions, Scope, SessionKey, ThreadSessions};

use crate::bytes::Bytes;

pub(crate) fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let scope = Scope {
        groups: bytes.pick(&[GroupSessions::PerMember, GroupSessions::Shared]),
        threads: bytes.pick(&[ThreadSessions::PerMember, ThreadSessions::Shared]),
    };
    let pair = (event(&mut bytes), event(&mut bytes));
    let (Some(one), Some(other)) = pair else { return };
    let (first, second) = (SessionKey::of(&one, scope), SessionKey::of(&other, scope));
    let same = fields(&one, scope) == fields(&other, scope);
    assert_eq!(first == second, same, "{one:?} and {other:?}");
    let stored = serde_json::to_string(&first).expect("a key can be stored");
    let other_stored = serde_json::to_string(&second).expect("a key can be stored");
    assert_eq!(stored == other_stored, same, "{stored} and {other_stored}");
    let read: SessionKey = serde_json::from_str(&stored).expect("a stored key can be read");
    assert_eq!(read, first);
    let printed = first.to_string();
    assert_eq!(printed, read.to_string());
    assert!(printed.starts_with("agent:main:"), "{printed}");
    assert!(!printed.contains(char::is_control), "{printed:?}");
}

/// What a session is made of, told independently.
fn fields(inbound: &Inbound, scope: Scope) -> Vec<Option<String>> {
    let Address { account, chat, thread } = &inbound.to;
    let is_thread = thread.is_some() || chat.kind == ChatKind::Thread;
    let is_alone = match chat.kind {
        ChatKind::Dm => false,
        _ if is_thread => scope.threads == ThreadSessions::PerMember,
        _ => scope.groups == GroupSessions::PerMember,
    };
    let person = inbound.from.alt.as_ref().unwrap_or(&inbound.from.id).to_string();
    let place = match (chat.kind, inbound.source.known_by) {
        (ChatKind::Dm, KnownBy::Sender) => Some(person.clone()),
        (ChatKind::Dm, KnownBy::Nothing) => None,
        _ => Some(chat.id.to_string()),
    };
    vec![
        Some(account.to_string()),
        Some(chat.kind.as_str().to_owned()),
        place,
        thread.as_ref().map(ToString::to_string),
        is_alone.then_some(person),
    ]
}

fn event(bytes: &mut Bytes<'_>) -> Option<Inbound> {
    let kinds =
        [ChatKind::Dm, ChatKind::Group, ChatKind::Channel, ChatKind::Thread, ChatKind::Forum];
    let kind = bytes.pick(&kinds);
    let has_thread = bytes.byte() % 2 == 1;
    let has_alt = bytes.byte() % 2 == 1;
    let known_by = bytes.pick(&[KnownBy::Chat, KnownBy::Sender, KnownBy::Nothing]);
    Some(Inbound {
        id: EventId::literal("e"),
        at: Timestamp::default(),
        from: Sender {
            alt: if has_alt { Some(SenderId::new(bytes.words()).ok()?) } else { None },
            ..Sender::new(SenderId::new(bytes.words()).ok()?)
        },
        to: Address {
            account: AccountId::new(bytes.words()).ok()?,
            chat: Chat { id: ChatId::new(bytes.words()).ok()?, kind },
            thread: if has_thread { Some(ThreadId::new(bytes.words()).ok()?) } else { None },
        },
        kind: InboundKind::Said(Message::default()),
        source: Source { known_by, ..Source::default() },
    })
}
