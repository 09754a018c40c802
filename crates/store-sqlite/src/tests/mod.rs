//! The suite of the contract, and what is particular to SQLite.

mod copying;
mod differential;
mod faults;
mod forgetting;
mod going_back;
mod opening;
mod plans;
mod recorded;
mod searching;
mod seen;
mod strangers;
#[cfg(unix)]
mod torture;

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use talaria_model::{
    AccountId, Act, Address, Chat, ChatId, ChatKind, Content, Entry, EntryBody, EventId, Inbound,
    InboundKind, Message, Outbound, OutboundId, Sender, SenderId, Seq, SessionId, Source,
    Timestamp,
};
use talaria_session::{Authority, Event, Rules, Session, SessionKey, TurnInHand};
use talaria_store::contract::Harness;
use talaria_store::{Commit, Store};
use tempfile::TempDir;

use crate::SqliteStore;

/// Opens the store in a folder of its own, and again in a copy of that folder taken while the store
/// is still open: what a process finds whose predecessor was killed.
#[derive(Default)]
struct Killed {
    folders: Mutex<Vec<TempDir>>,
}

#[async_trait]
impl Harness for Killed {
    async fn open(&self) -> Arc<dyn Store> {
        let folder = TempDir::new().expect("a folder");
        let mut folders = self.folders.lock().expect("no test panics while it holds this");
        if let Some(before) = folders.last() {
            copy(before.path(), folder.path());
        }
        let store = SqliteStore::open(folder.path()).expect("opens");
        folders.push(folder);
        Arc::new(store)
    }
}

/// Everything but the shared memory, which does not survive a machine.
fn copy(from: &Path, to: &Path) {
    for file in ["state.db", "state.db-wal", "search.db", "search.db-wal"] {
        if from.join(file).exists() {
            fs::copy(from.join(file), to.join(file)).expect("copies");
        }
    }
}

talaria_store::store_contract!(on_sqlite, Killed::default());

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn key(account: &str, chat: &str) -> SessionKey {
    SessionKey {
        account: AccountId::new(account).expect("a test's id"),
        kind: ChatKind::Dm,
        chat: Some(ChatId::new(chat).expect("a test's id")),
        thread: None,
        member: None,
        side: None,
    }
}

fn address(key: &SessionKey) -> Address {
    Address {
        account: key.account.clone(),
        chat: Chat { id: key.chat.clone().expect("a test's chat"), kind: key.kind },
        thread: key.thread.clone(),
    }
}

fn alice() -> Sender {
    Sender::new(SenderId::literal("alice"))
}

fn session(key: &SessionKey) -> Session {
    Session::begin(key.clone(), address(key), at(1), Rules::default())
}

fn inbound(key: &SessionKey, event: &str) -> Inbound {
    Inbound {
        id: EventId::new(event).expect("a test's id"),
        at: at(1),
        from: alice(),
        to: address(key),
        source: Source::default(),
        kind: InboundKind::Said(Message { text: event.into(), ..Message::default() }),
    }
}

/// A turn that the session has begun.
fn hand(session: &Session) -> TurnInHand {
    let mut session = session.clone();
    let inbound = inbound(&session.key, "first");
    let by = Authority::none();
    let event = Event::Arrived { seq: Seq(1), inbound, overtaken: 0, by };
    session.step(event, at(1));
    session.hand().cloned().expect("a message begins a turn")
}

fn entry(number: u32, text: &str) -> Entry {
    let body = EntryBody::Said {
        from: alice(),
        text: text.into(),
        files: Vec::new(),
        heard: None,
        message: None,
        forwarded: None,
    };
    Entry { number, at: at(1), turn: None, body, because: None, about: None, resumed: None }
}

fn post(session: &SessionId, to: &Address, delivery: u32, part: u16) -> Outbound {
    Outbound {
        id: OutboundId { session: session.clone(), delivery, part },
        to: to.clone(),
        act: Act::Post(Content::text(format!("delivery {delivery}.{part}"))),
    }
}

/// A step that changes nothing else.
fn step(session: &Session) -> Commit {
    Commit::of(session.clone(), at(1))
}

/// A step that records a text.
fn recording(session: &Session, number: u32, text: &str) -> Commit {
    Commit { entries: vec![(session.id.clone(), entry(number, text))], ..step(session) }
}
