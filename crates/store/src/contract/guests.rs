//! Who was let in, what is recorded of it, and what becomes of those who were put out.

use std::time::Duration;

use talaria_model::{Outbound, OutboundId, Sender, SenderId, SessionId};
use talaria_session::pairing::{Chance, GuestBook};
use talaria_session::{Reach, Strangers};

use super::Harness;
use super::world::{account, address, admit, at, change, key, post, said, session, step};
use crate::{
    AuditDeed, Audited, Commit, Delivered, GuestChange, Guests, JournalState, Swap, broken_at,
};

fn audited(subject: &str) -> Audited {
    Audited {
        actor: "operator".into(),
        deed: AuditDeed::LetIn,
        subject: subject.into(),
        detail: "by a test".into(),
    }
}

/// A book in which somebody asks to be let in, and a code is out.
fn asking(who: &str) -> GuestBook {
    let mut book = GuestBook::default();
    let sender = Sender::named(SenderId::new(who).expect("a test's id"), "Ann");
    let to = address(&key("bot", "c"));
    book.said((&sender, &to), "hello", Strangers::Pair, Chance([7; 32]), at(1));
    book.issue(Reach::Everywhere, "operator", Chance([8; 32]), at(1)).expect("issues");
    book
}

fn changing(account_name: &str, read: u64, book: GuestBook) -> GuestChange {
    let account = account(account_name);
    GuestChange { account, read, book, outbox: Vec::new(), audited: Vec::new(), at: at(5) }
}

pub async fn a_guest_book_comes_back_as_it_was(harness: &dyn Harness) {
    let store = harness.open().await;
    assert_eq!(store.guests(&account("bot")).await, Ok(Guests::default()));
    let book = asking("ann");
    assert_eq!(store.keep_guests(changing("bot", 0, book.clone())).await, Ok(Swap::Done));
    for store in [store, harness.open().await] {
        let kept = store.guests(&account("bot")).await.expect("reads");
        assert_eq!(kept, Guests { revision: 1, book: book.clone() });
        assert_eq!(store.guests(&account("other")).await, Ok(Guests::default()));
    }
}

pub async fn whoever_read_an_older_guest_book_changes_nothing(harness: &dyn Harness) {
    let store = harness.open().await;
    let to = address(&key("bot", "c"));
    let letter = |n| Outbound {
        id: OutboundId { session: SessionId::literal("pairing"), delivery: n, part: 0 },
        ..post(&session(&key("bot", "c")), n, 0)
    };
    let first = GuestChange { outbox: vec![letter(1)], ..changing("bot", 0, asking("ann")) };
    let first = GuestChange { audited: vec![audited("ann")], ..first };
    assert_eq!(store.keep_guests(first.clone()).await, Ok(Swap::Done));
    for read in [0, 2] {
        let late = GuestChange {
            read,
            book: asking("ben"),
            outbox: vec![letter(2)],
            audited: vec![audited("ben")],
            ..first.clone()
        };
        assert_eq!(store.keep_guests(late).await, Ok(Swap::Stale));
    }
    let store = harness.open().await;
    let kept = store.guests(&account("bot")).await.expect("reads");
    assert_eq!(kept, Guests { revision: 1, book: asking("ann") });
    let parcels = store.parcels(&to, 10).await.expect("reads");
    let told: Vec<_> = parcels.into_iter().map(|parcel| parcel.outbound).collect();
    assert_eq!(told, [letter(1)], "the answer is written with the book, and only with it");
    let recorded = store.audited(0, 10).await.expect("reads");
    assert_eq!(recorded.len(), 1);
    let second = changing("bot", 1, asking("ben"));
    assert_eq!(store.keep_guests(second).await, Ok(Swap::Done));
    assert_eq!(store.guests(&account("bot")).await.expect("reads").revision, 2);
}

pub async fn what_is_recorded_stays_in_order_and_holds_together(harness: &dyn Harness) {
    let store = harness.open().await;
    store.audit(at(1), vec![audited("a"), audited("b")]).await.expect("records");
    let change = GuestChange { audited: vec![audited("c")], ..changing("bot", 0, asking("ann")) };
    store.keep_guests(change).await.expect("keeps");
    let store = harness.open().await;
    store.audit(at(9), vec![audited("d")]).await.expect("records");
    store.prune(at(1) + Duration::from_secs(3600)).await.expect("prunes");
    let rows = store.audited(0, 10).await.expect("reads");
    let subjects: Vec<_> = rows.iter().map(|row| row.audited.subject.as_str()).collect();
    assert_eq!(subjects, ["a", "b", "c", "d"]);
    let times: Vec<_> = rows.iter().map(|row| row.at).collect();
    assert_eq!(times, [at(1), at(1), at(5), at(9)]);
    assert_eq!(rows[0].audited, audited("a"));
    assert_eq!(broken_at(None, &rows), None);
    assert_eq!(store.audited(1, 2).await.expect("reads"), rows[1..3]);
    assert_eq!(store.audited(4, 2).await, Ok(Vec::new()));
}

pub async fn a_row_of_somebody_who_was_put_out_is_denied(harness: &dyn Harness) {
    let store = harness.open().await;
    let key = key("bot", "c");
    let first = admit(&*store, &key, "one").await;
    let second = admit(&*store, &key, "two").await;
    let taken = admit(&*store, &key, "three").await;
    let session = session(&key);
    let journal = vec![change(taken, JournalState::Handled)];
    store.commit(Commit { journal, ..step(&session) }).await.expect("commits");
    store.deny(&[first, taken], "put out").await.expect("denies");
    let store = harness.open().await;
    let unread: Vec<_> =
        store.unread(&key, 10).await.expect("reads").into_iter().map(|(seq, _)| seq).collect();
    assert_eq!(unread, [second], "and what a step has taken stays as it is");
    assert_eq!(store.counts().await.expect("reads").denied, 1);
    let journal = vec![change(first, JournalState::Handled)];
    store.commit(Commit { journal, ..step(&session) }).await.expect("commits");
    assert_eq!(store.counts().await.expect("reads").denied, 1, "it stays denied");
    let again = Delivered {
        account: key.account.clone(),
        events: vec![(key.clone(), said(&key, "one", "hello"), JournalState::Unread)],
        cursor: None,
        at: at(3),
    };
    let repeated = store.admit(again).await.expect("admits");
    assert_eq!(repeated, [crate::Admitted::Repeated(first)]);
}
