//! A store whose file was damaged while nobody looked.
//!
//! Two conversations are kept, each with a word of its own in everything that belongs to it. Whatever
//! bits are flipped: the damage is reported or does no harm, nothing panics, and neither conversation
//! is ever given the other's word.

use std::fmt::Debug;
use std::path::Path;
use std::sync::OnceLock;

use talaria_model::{
    AccountId, Address, AgentEvent, Chat, ChatId, ChatKind, Cost, EventId, Inbound, InboundKind,
    Message, Sender, SenderId, Seq, Source, Timestamp, Usage,
};
use talaria_session::{Access, Caller, Effect, Event, Rules, Scope, Session, SessionKey};
use talaria_store::{
    Admitted, Commit, Delivered, JournalChange, JournalState, SearchScope, Store, Wanted,
};
use talaria_store_sqlite::SqliteStore;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::bytes::Bytes;

/// Who there is, and the word in everything that is theirs.
const PEOPLE: [(&str, &str); 2] = [("ann", "aardvark-7c1e"), ("ben", "bumblebee-d204")];

/// A page of SQLite; the first holds what makes the file a database at all.
const PAGE: usize = 4096;

/// A sound store.
struct Kept {
    file: Vec<u8>,
    /// Where there are numbers and lengths rather than texts and nothing.
    telling: Vec<usize>,
}

pub(crate) fn run(data: &[u8]) {
    static KEPT: OnceLock<Kept> = OnceLock::new();
    let Kept { file, telling } = KEPT.get_or_init(keep);
    let mut file = file.clone();
    let mut bytes = Bytes::new(data);
    let mut flips = 0;
    while !bytes.is_empty() && flips < 16 {
        let choice = bytes.byte();
        let at = bytes.below(file.len());
        // Mostly where it is said whose a row is: a damaged header is refused at once, and a damaged text
        // is only a typing error.
        let at = match choice >> 6 {
            0 => at,
            1 => PAGE + at % (file.len() - PAGE),
            _ => telling[at % telling.len()],
        };
        file[at] ^= 1 << (choice & 7);
        flips += 1;
    }
    let folder = folder();
    std::fs::write(folder.path().join("state.db"), &file).expect("there is room for a file");
    runtime().block_on(look(folder.path()));
}

/// In memory where there is such a folder: what a disk costs is not the question here.
fn folder() -> TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).expect("there is room for a folder")
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made")
}

/// Looks at everything through the contract.
async fn look(folder: &Path) {
    let Ok(store) = SqliteStore::open(folder) else { return };
    let _ = store.recover().await;
    // Damage to an index hides rows without a trace that a start would look for; the whole check sees it.
    let is_noticed = store.check().await.is_err();
    let _ = store.counts().await;
    let _ = store.restless(None, 10).await;
    let _ = store.undelivered(None, 10).await;
    for (place, (person, _)) in PEOPLE.iter().enumerate() {
        let (_, other) = PEOPLE[1 - place];
        let address = address(person);
        let key = key(person);
        let account = address.account.clone();
        apart(other, store.load(&key).await);
        apart(other, store.unread(&key, 10).await);
        apart(other, store.parcels(&address, 10).await);
        apart(other, store.transcript(&key, None, 50).await);
        apart(other, store.cursor(&account).await);
        apart(other, store.conversations(Some(&account), 10).await);
        if let Ok(Some(session)) = store.load(&key).await {
            apart(other, store.history(&session.id, 50).await);
        }
        let found = store.search(&Wanted::new(SearchScope::Conversation(key), other, 10)).await;
        apart(other, found);
    }
    // A new message is taken in or refused, and what is taken in can be read.
    let (key, inbound) = arrival("ann", "late", "hello");
    let delivered = Delivered {
        account: inbound.to.account.clone(),
        events: vec![(key.clone(), inbound.clone(), JournalState::Unread)],
        cursor: None,
        at: Timestamp::from_millis(9_000),
    };
    if !is_noticed
        && let Ok(admitted) = store.admit(delivered).await
        && let [Admitted::Journalled(seq)] = admitted[..]
        && let Ok(unread) = store.unread(&key, 100).await
    {
        assert!(unread.contains(&(seq, inbound)), "what was taken in is not there");
    }
}

fn apart<T: Debug, E: Debug>(other: &str, read: Result<T, E>) {
    if let Ok(read) = read {
        let read = format!("{read:?}");
        assert!(!read.contains(other), "shown to somebody else: {read}");
    }
}

fn address(person: &str) -> Address {
    Address {
        account: AccountId::new(format!("{person}-account")).expect("an id"),
        chat: Chat {
            id: ChatId::new(format!("{person}-chat")).expect("an id"),
            kind: ChatKind::Dm,
        },
        thread: None,
    }
}

fn key(person: &str) -> SessionKey {
    arrival(person, "e", "").0
}

fn arrival(person: &str, event: &str, text: &str) -> (SessionKey, Inbound) {
    let inbound = Inbound {
        id: EventId::new(event).expect("an id"),
        at: Timestamp::from_millis(1_000),
        from: Sender::new(SenderId::new(person).expect("an id")),
        to: address(person),
        kind: InboundKind::Said(Message { text: text.into(), ..Message::default() }),
        source: Source::default(),
    };
    (SessionKey::of(&inbound, Scope::default()), inbound)
}

/// A store as a gateway leaves it: one turn over, one in hand, something unread, something to deliver.
fn keep() -> Kept {
    let folder = folder();
    runtime().block_on(async {
        let store = SqliteStore::open(folder.path()).expect("a new store can be opened");
        store.recover().await.expect("a new store can begin");
        for (person, word) in PEOPLE {
            live(&store, person, word).await;
        }
        store.close().await.expect("a sound store can be closed");
    });
    let file = std::fs::read(folder.path().join("state.db")).expect("the store is there");
    let is_telling = |byte: u8| byte != 0 && !(b' '..0x7f).contains(&byte);
    let telling = (PAGE..file.len()).filter(|at| is_telling(file[*at])).collect();
    Kept { file, telling }
}

async fn live(store: &SqliteStore, person: &str, word: &str) {
    let now = Timestamp::from_millis(2_000);
    let texts = ["first", "second", "third", "fourth"].map(|text| format!("{text} {word}"));
    let events: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(number, text)| {
            let (key, inbound) = arrival(person, &format!("{word}{number}"), text);
            (key, inbound, JournalState::Unread)
        })
        .collect();
    let account = address(person).account;
    let cursor = Some(format!("cursor {word}"));
    let admitted =
        store.admit(Delivered { account, events: events.clone(), cursor, at: now }).await;
    let admitted = admitted.expect("a sound store takes everything");
    let mut session = Session::begin(key(person), address(person), now, Rules::default());
    let said = |number: usize| {
        let Admitted::Journalled(seq) = admitted[number] else { panic!("it is new") };
        let inbound = events[number].1.clone();
        let by = Access::everyone().authority(Caller::of(&inbound, None));
        Event::Arrived { seq, inbound, overtaken: 0, by }
    };
    step(store, &mut session, said(0), now).await;
    let turn = session.hand().expect("a turn has begun").turn.clone();
    let text = format!("answer {word}");
    let (files, reasoning, usage, cost) = (Vec::new(), None, Usage::default(), Cost::FREE);
    let finished = AgentEvent::Finished { text, files, reasoning, usage, cost };
    step(store, &mut session, Event::Agent { turn, event: finished }, now).await;
    step(store, &mut session, said(1), now).await;
    step(store, &mut session, said(2), now).await;
}

async fn step(store: &SqliteStore, session: &mut Session, event: Event, now: Timestamp) {
    let mut commit = Commit::of(session.clone(), now);
    let change = |seq: Seq, state| JournalChange { seq, state };
    for effect in session.step(event, now) {
        match effect {
            Effect::Take(seq) => commit.journal.push(change(seq, JournalState::Taken)),
            Effect::Bind { seq, turn } => {
                commit.journal.push(change(seq, JournalState::Bound(turn)))
            }
            Effect::Record { session, entry } => commit.entries.push((session, entry)),
            Effect::Post(outbound) => commit.outbox.push(outbound),
            // None of them is kept here, and no such life leaves anything else behind.
            _ => {}
        }
    }
    commit.session = session.clone();
    store.commit(commit).await.expect("a sound store takes everything");
}
