//! Small things that the suite's tests are made of.

use std::sync::Arc;

use talaria_model::{
    AccountId, Act, Address, Chat, ChatId, ChatKind, Content, Cost, Entry, EntryBody, EventId,
    Inbound, InboundKind, Message, MessageId, Outbound, OutboundId, Receipt, Sender, SenderId, Seq,
    SessionId, Source, Timestamp, Usage,
};
use talaria_session::{Authority, Event, Origin, Phase, Rules, Session, SessionKey, TurnInHand};

use crate::{
    Admitted, Commit, Delivered, JournalChange, JournalState, Owner, Parcel, ParcelState,
    Settlement, Store,
};

pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(super) fn account(name: &str) -> AccountId {
    AccountId::new(name).expect("a test's id")
}

pub(super) fn key(account_name: &str, chat: &str) -> SessionKey {
    SessionKey {
        account: account(account_name),
        kind: ChatKind::Dm,
        chat: Some(ChatId::new(chat).expect("a test's id")),
        thread: None,
        member: None,
        side: None,
    }
}

pub(super) fn address(key: &SessionKey) -> Address {
    let id = key.chat.clone().unwrap_or_else(|| ChatId::literal("somewhere"));
    Address {
        account: key.account.clone(),
        chat: Chat { id, kind: key.kind },
        thread: key.thread.clone(),
    }
}

pub(super) fn alice() -> Sender {
    Sender::named(SenderId::literal("alice"), "Alice")
}

pub(super) fn said(key: &SessionKey, event: &str, text: &str) -> Inbound {
    Inbound {
        id: EventId::new(event).expect("a test's id"),
        at: at(1),
        from: alice(),
        to: address(key),
        source: Source::default(),
        kind: InboundKind::Said(Message { text: text.into(), ..Message::default() }),
    }
}

/// Admits one event and says which row it is.
pub(super) async fn admit(store: &dyn Store, key: &SessionKey, event: &str) -> Seq {
    admit_as(store, key, event, JournalState::Unread, at(1)).await
}

pub(super) async fn admit_as(
    store: &dyn Store,
    key: &SessionKey,
    event: &str,
    state: JournalState,
    at: Timestamp,
) -> Seq {
    let delivered = Delivered {
        account: key.account.clone(),
        events: vec![(key.clone(), said(key, event, event), state)],
        cursor: None,
        at,
    };
    match store.admit(delivered).await.expect("admits")[..] {
        [Admitted::Journalled(seq)] => seq,
        ref other => panic!("one new row, not {other:?}"),
    }
}

pub(super) fn session(key: &SessionKey) -> Session {
    Session::begin(key.clone(), address(key), at(1), Rules::default())
}

/// A session that somebody began.
pub(super) fn direct(key: &SessionKey, who: &str) -> Session {
    let from = Sender::new(SenderId::new(who).expect("a test's id"));
    let origin = Origin { from, at: address(key), source: Source::default() };
    Session { origin: Some(Arc::new(origin)), ..session(key) }
}

pub(super) fn person(account_name: &str, who: &str) -> Owner {
    let person = SenderId::new(who).expect("a test's id");
    Owner::Person { account: account(account_name), person }
}

pub(super) fn thinking(session: &Session) -> Phase {
    Phase::Thinking(hand(session))
}

pub(super) fn hand(session: &Session) -> TurnInHand {
    let mut session = session.clone();
    let inbound = said(&session.key, "first", "hello");
    let by = Authority::none();
    let event = Event::Arrived { seq: Seq(1), inbound, overtaken: 0, by };
    session.step(event, at(1));
    session.hand().cloned().expect("a message begins a turn")
}

/// A step of a session that changes nothing else.
pub(super) fn step(session: &Session) -> Commit {
    Commit::of(session.clone(), at(1))
}

pub(super) fn change(seq: Seq, state: JournalState) -> JournalChange {
    JournalChange { seq, state }
}

pub(super) fn entry(number: u32, text: &str) -> Entry {
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

pub(super) fn answer(number: u32, text: &str) -> Entry {
    let body = EntryBody::Answered {
        text: text.into(),
        files: Vec::new(),
        calls: Vec::new(),
        reasoning: None,
        usage: Usage::default(),
        cost: Cost::default(),
        sent: None,
        extent: talaria_model::Extent::Whole,
    };
    Entry { number, at: at(1), turn: None, body, because: None, about: None, resumed: None }
}

pub(super) fn summary(number: u32, after: u32, upto: u32) -> Entry {
    let (usage, cost) = (Usage::default(), Cost::default());
    let body = EntryBody::Summary { after, upto, text: "in short".into(), usage, cost };
    Entry { number, at: at(1), turn: None, body, because: None, about: None, resumed: None }
}

/// Records entries with these texts in the session's present life.
pub(super) async fn record(store: &dyn Store, session: &Session, texts: &[&str]) {
    let numbered = texts.iter().zip(session.entries + 1..);
    let entries = numbered.map(|(text, number)| (session.id.clone(), entry(number, text)));
    let commit = Commit { entries: entries.collect(), ..step(session) };
    store.commit(commit).await.expect("commits");
}

pub(super) fn outbound_id(session: &SessionId, delivery: u32, part: u16) -> OutboundId {
    OutboundId { session: session.clone(), delivery, part }
}

pub(super) fn post(session: &Session, delivery: u32, part: u16) -> Outbound {
    Outbound {
        id: outbound_id(&session.id, delivery, part),
        to: session.at.clone(),
        act: Act::Post(Content::text(format!("delivery {delivery}.{part}"))),
    }
}

/// Commits a step with these parcels.
pub(super) async fn decide(store: &dyn Store, session: &Session, outbox: &[Outbound]) {
    let commit = Commit { outbox: outbox.to_vec(), ..step(session) };
    store.commit(commit).await.expect("commits");
}

pub(super) async fn settle(store: &dyn Store, outbound: &Outbound, settlement: Settlement) {
    settle_at(store, outbound, settlement, Timestamp::default()).await;
}

pub(super) async fn settle_at(
    store: &dyn Store,
    outbound: &Outbound,
    settlement: Settlement,
    at: Timestamp,
) {
    store.settle(&outbound.id, settlement, at).await.expect("settles");
}

pub(super) async fn attempt(store: &dyn Store, outbound: &Outbound) {
    store.attempt(&outbound.id).await.expect("attempts");
}

pub(super) async fn preview(store: &dyn Store, outbound: &Outbound) {
    store.preview(outbound).await.expect("previews");
}

pub(super) async fn parcels(store: &dyn Store, to: &Address) -> Vec<Parcel> {
    store.parcels(to, 100).await.expect("reads")
}

/// The only parcel for the session's address.
pub(super) async fn parcel(store: &dyn Store, session: &Session) -> Parcel {
    let mut parcels = parcels(store, &session.at).await;
    assert_eq!(parcels.len(), 1, "{parcels:?}");
    parcels.remove(0)
}

pub(super) async fn state(store: &dyn Store, session: &Session) -> ParcelState {
    parcel(store, session).await.state
}

/// Delivery and part of everything that still has to be delivered there.
pub(super) async fn waiting(store: &dyn Store, to: &Address) -> Vec<(u32, u16)> {
    let parcels = parcels(store, to).await;
    parcels
        .into_iter()
        .map(|parcel| (parcel.outbound.id.delivery, parcel.outbound.id.part))
        .collect()
}

pub(super) fn message(id: &'static str) -> Option<MessageId> {
    Some(MessageId::literal(id))
}

pub(super) fn delivered() -> Settlement {
    Settlement::Delivered(Receipt { message: message("m"), at: at(2) })
}
