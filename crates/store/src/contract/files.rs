//! What files are kept for.

use talaria_model::{
    Act, Content, EntryBody, FileId, FileRef, Inbound, InboundKind, Message, Outbound,
};
use talaria_session::{Phase, SessionKey};

use super::Harness;
use super::world::{
    alice, at, change, decide, delivered, entry, key, post, said, session, settle, step, thinking,
};
use crate::{Admitted, Commit, Delivered, JournalState, Settlement, Store, Use};

fn file(name: &'static str) -> FileRef {
    FileRef { id: FileId::literal(name), name: name.into(), mime: "text/plain".into(), size: 1 }
}

async fn uses(store: &dyn Store, name: &'static str) -> Use {
    let uses = store.uses(&[FileId::literal(name), FileId::literal("unknown")]).await;
    let uses = uses.expect("reads");
    assert_eq!(uses[1], Use::None);
    uses[0]
}

fn with_file(key: &SessionKey, name: &'static str) -> Inbound {
    let message = Message { text: "see".into(), files: vec![file(name)], ..Message::default() };
    Inbound { kind: InboundKind::Said(message), ..said(key, name, "see") }
}

pub async fn a_file_is_needed_until_its_message_has_been_answered(harness: &dyn Harness) {
    let store = harness.open().await;
    let key = key("bot", "c");
    let batch = Delivered {
        account: key.account.clone(),
        events: vec![
            (key.clone(), with_file(&key, "a"), JournalState::Unread),
            (key.clone(), with_file(&key, "b"), JournalState::Denied("no".into())),
        ],
        cursor: None,
        at: at(1),
    };
    let admitted = store.admit(batch).await.expect("admits");
    let Admitted::Journalled(seq) = admitted[0] else { panic!("{admitted:?}") };
    assert_eq!(uses(&*store, "a").await, Use::Present);
    assert_eq!(uses(&*store, "b").await, Use::None, "strangers do not decide what is kept");

    let mut session = session(&key);
    session.phase = thinking(&session);
    let body = EntryBody::Said { from: alice(), text: "see".into(), files: vec![file("a")] };
    for (state, entries) in [
        (JournalState::Taken, vec![]),
        (
            JournalState::Bound(session.hand().expect("a turn").turn.clone()),
            vec![(session.id.clone(), talaria_model::Entry { body, ..entry(1, "see") })],
        ),
    ] {
        let commit = Commit { journal: vec![change(seq, state)], entries, ..step(&session) };
        store.commit(commit).await.expect("commits");
        assert_eq!(uses(&*store, "a").await, Use::Present);
    }
    let store = harness.open().await;
    assert_eq!(uses(&*store, "a").await, Use::Present, "the turn goes on after a crash");
    session.phase = Phase::Idle;
    store.commit(step(&session)).await.expect("commits");
    assert_eq!(uses(&*store, "a").await, Use::Past);
    store.prune(at(100)).await.expect("prunes");
    assert_eq!(uses(&*store, "a").await, Use::Past, "the transcript still names it");
}

pub async fn a_file_is_needed_until_it_is_delivered(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = session(&key("bot", "c"));
    let content = |name| Content { files: vec![file(name)], ..Content::text("here") };
    let sent = Outbound { act: Act::Post(content("a")), ..post(&session, 1, 0) };
    let lost = Outbound { act: Act::Post(content("b")), ..post(&session, 2, 0) };
    decide(&*store, &session, &[sent.clone(), lost.clone()]).await;
    assert_eq!(uses(&*store, "a").await, Use::Present);
    store.attempt(&sent.id).await.expect("attempts");
    assert_eq!(uses(&*store, "a").await, Use::Present);
    settle(&*store, &sent, delivered()).await;
    settle(&*store, &lost, Settlement::Abandoned { reason: "late".into() }).await;
    let store = harness.open().await;
    assert_eq!(uses(&*store, "a").await, Use::Past);
    assert_eq!(uses(&*store, "b").await, Use::Past);
    store.prune(at(100)).await.expect("prunes");
    assert_eq!(uses(&*store, "a").await, Use::None, "nothing names it any more");
}
