//! What files are kept for.

use talaria_model::{
    Act, Content, EntryBody, FileId, FileRef, Inbound, InboundKind, Message, Outbound,
};
use talaria_session::{Phase, SessionKey};

use super::Harness;
use super::world::{
    at, change, decide, delivered, direct, entry, key, post, said, session, settle, step, thinking,
};
use crate::{Admitted, Branch, Commit, Delivered, JournalState, Rewind, Settlement, Store, Use};

fn file(name: &'static str) -> FileRef {
    FileRef::new(FileId::literal(name), name, "text/plain", 1)
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
    for (state, entries) in [
        (JournalState::Taken, vec![]),
        (
            JournalState::Bound(session.hand().expect("a turn").turn.clone()),
            vec![(session.id.clone(), seeing(1, "a"))],
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

fn seeing(number: u32, name: &'static str) -> talaria_model::Entry {
    let mut see = entry(number, "see");
    if let EntryBody::Said { files, .. } = &mut see.body {
        files.push(file(name));
    }
    see
}

pub async fn a_file_is_needed_while_a_branch_that_has_it_takes_a_turn(harness: &dyn Harness) {
    let store = harness.open().await;
    let (from, mut to) = (direct(&key("bot", "c"), "alice"), direct(&key("bot", "d"), "alice"));
    let entries = vec![(from.id.clone(), seeing(1, "a")), (from.id.clone(), seeing(2, "b"))];
    store.commit(Commit { entries, ..step(&from) }).await.expect("commits");
    to.phase = thinking(&to);
    let branch = Some(Branch { from: from.id.clone(), to: to.id.clone(), upto: 1 });
    store.commit(Commit { branch, ..step(&to) }).await.expect("commits");
    assert_eq!(uses(&*store, "a").await, Use::Present);
    assert_eq!(uses(&*store, "b").await, Use::Past, "the branch does not have it");
    // What is taken back where it was said stands in the branch.
    let rewinds = vec![Rewind { session: from.id.clone(), from: 1, upto: 2, by: None }];
    store.commit(Commit { rewinds, ..step(&from) }).await.expect("commits");
    let store = harness.open().await;
    assert_eq!(uses(&*store, "a").await, Use::Present);
    to.phase = Phase::Idle;
    store.commit(step(&to)).await.expect("commits");
    assert_eq!(uses(&*store, "a").await, Use::Past);
    assert_eq!(uses(&*store, "b").await, Use::Past, "it is taken back and not forgotten");
}

pub async fn a_file_is_let_go_with_the_last_entry_that_names_it(harness: &dyn Harness) {
    let store = harness.open().await;
    let (one, other) = (session(&key("bot", "c")), session(&key("bot", "d")));
    for (session, entry) in [(&one, seeing(1, "a")), (&other, seeing(1, "b"))] {
        let entries = vec![(session.id.clone(), entry)];
        store.commit(Commit { entries, ..step(session) }).await.expect("commits");
    }
    assert_eq!(store.forget_lives(at(100), std::slice::from_ref(&other.key)).await, Ok(1));
    let store = harness.open().await;
    assert_eq!(uses(&*store, "a").await, Use::None);
    assert_eq!(uses(&*store, "b").await, Use::Past);
    assert_eq!(store.forget_entries(at(100)).await, Ok(1));
    assert_eq!(uses(&*store, "b").await, Use::None);
}
