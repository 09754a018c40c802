//! What happens with every message finds its rows by an index, however large the store is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rusqlite::trace::{TraceEvent, TraceEventCodes};
use rusqlite::{Connection, StatementStatus};
use talaria_model::{MessageId, Receipt, Sender, SenderId, Seq, SessionId, Source};
use talaria_session::budget::{Day, Payer, Spent};
use talaria_session::{Origin, Retired, Session};
use talaria_store::{
    Branch, Commit, Delivered, Dropped, JournalChange, JournalState, Name, Owner, Reading,
    Retirement, Rewind, SearchScope, Settlement, Spending,
};
use tempfile::TempDir;

use super::{address, at, inbound, key, post, recording, session};
use crate::open::open_state;
use crate::write::{Batch, Letter, Old, Step};
use crate::{lives, past, read, spending, write};

/// One message, from its arrival to the receipt of its answer, and everything that is read.
fn one_message(conn: &Connection, chat: u32) {
    let key = key(&format!("account {}", chat % 2), &format!("chat {chat}"));
    let mut session = session(&key);
    let events = (0..2).map(|number| {
        let inbound = inbound(&key, &format!("{chat}: {number}"));
        (key.clone(), inbound, JournalState::Unread)
    });
    let account = key.account.clone();
    let delivered =
        Delivered { account, events: events.collect(), cursor: Some("7".into()), at: at(1) };
    Batch::of(delivered).and_then(|batch| batch.write(conn)).expect("admits");
    let unread = read::unread(conn, &key, 10).expect("reads");
    assert_eq!(unread.len(), 2);

    session.phase = talaria_session::Phase::Thinking(super::hand(&session));
    let taken = JournalChange { seq: unread[0].0, state: JournalState::Taken };
    let step = Commit { journal: vec![taken], ..recording(&session, 1, "hello") };
    Step::of(step).and_then(|step| step.write(conn)).expect("commits");
    read::load(conn, &key).expect("reads");
    assert_eq!(lives::history(conn, &session.id, 10).expect("reads").len(), 1);

    let outbound = post(&session.id, &address(&key), 1, 0);
    let letter = Letter::of(&outbound).expect("encodes");
    write::preview(conn, &letter).expect("previews");
    let shown = Settlement::Previewed(Some(MessageId::literal("m")));
    write::settle(conn, &outbound.id, &shown, at(2)).expect("settles");
    session.phase = talaria_session::Phase::Idle;
    let outbox = vec![outbound.clone(), post(&session.id, &address(&key), 2, 0)];
    let account = key.account.clone();
    let payer = Payer::Sender(account, SenderId::literal("alice"));
    let (day, spent) = (Day::numbered(1), Spent::messages(1));
    let spending = vec![Spending { day, payer: payer.clone(), spent }];
    let step = Commit { outbox, spending, ..recording(&session, 2, "goodbye") };
    Step::of(step).and_then(|step| step.write(conn)).expect("commits");
    assert!(!spending::spent(conn, day, &payer).expect("reads").is_nothing());
    assert_eq!(read::parcels(conn, &address(&key), 10).expect("reads").len(), 2);
    write::attempt(conn, &outbound.id).expect("attempts");
    let delivered = Settlement::Delivered(Receipt { message: None, at: at(1) });
    write::settle(conn, &outbound.id, &delivered, at(3)).expect("settles");

    change_lives(conn, &session);
    read::cursor(conn, &key.account).expect("reads");
    read::transcript(conn, &key, Some(1000), 10).expect("reads");
    read::entry_at(conn, 1, |_| true).expect("reads");
    read::entries_after(conn, i64::from(chat) * 2, 10).expect("reads");
    read::restless(conn, Some(&key), 10).expect("reads");
    read::undelivered(conn, Some(&address(&key)), 10).expect("reads");
    assert!(unread[1].0 > Seq(0));
}

/// What happens with a command: a branch, a rewind, a summary, another life, and reading about them.
fn change_lives(conn: &Connection, session: &Session) {
    let mut next = session.clone();
    let from = Sender::new(SenderId::literal("alice"));
    let origin = Origin { from, at: session.at.clone(), source: Source::default() };
    next.origin = Some(Arc::new(origin));
    next.id = SessionId::new(format!("branch of {}", session.id)).expect("an id");
    let retired = Some(Retirement { past: session.past(), why: Retired::Branched });
    let branch = Branch { from: session.id.clone(), to: next.id.clone(), upto: 2 };
    let rewinds = vec![Rewind { session: session.id.clone(), from: 2, upto: 2, by: None }];
    let dropped = Some(Dropped { before: Seq(1), reason: "dropped".into() });
    let branch = Some(branch);
    let commit = Commit { retired, branch, rewinds, dropped, ..recording(&next, 3, "more") };
    Step::of(commit).and_then(|step| step.write(conn)).expect("commits");
    let rewinds = vec![Rewind { session: next.id.clone(), from: 1, upto: 1, by: None }];
    let commit = Commit { rewinds, ..super::step(&next) };
    Step::of(commit).and_then(|step| step.write(conn)).expect("commits");
    past::put_away(conn, &next.id).expect("counts");
    past::rename(conn, &next.id, "renamed").expect("renames");

    assert_eq!(lives::history(conn, &next.id, 10).expect("reads").len(), 2);
    lives::history(conn, &next.id, 1).expect("reads");
    lives::life(conn, &next.id).expect("reads").expect("is there");
    lives::rewinds(conn, &next.id).expect("reads");
    for reading in [Reading::Standing, Reading::Everything] {
        lives::entries(conn, &session.id, reading, None, 10).expect("reads");
    }
    let person = SenderId::literal("alice");
    let owner = Owner::Person { account: next.key.account.clone(), person };
    for scope in [SearchScope::Owner(owner), SearchScope::Conversation(next.key.clone())] {
        assert!(!lives::lives(conn, &scope, None, 10).expect("reads").is_empty());
        lives::lives(conn, &scope, Some(&next.id), 10).expect("reads");
        lives::totals(conn, &scope, None).expect("reads");
        let name = Name::new("renamed").expect("a name");
        lives::named(conn, &scope, &name, 10).expect("reads");
    }
}

#[test]
fn nothing_that_happens_with_every_message_looks_through_a_table() {
    let folder = TempDir::new().expect("a folder");
    let mut conn = open_state(&folder.path().join("state.db")).expect("opens");
    let scans: Arc<Mutex<BTreeMap<String, i32>>> = Arc::default();
    let noted = scans.clone();
    let note = move |event: TraceEvent<'_>| {
        if let TraceEvent::Profile(statement, _) = event {
            let steps = statement.get_status(StatementStatus::FullscanStep);
            noted.lock().expect("one thread").insert(statement.sql().into_owned(), steps);
        }
    };
    conn.trace_v2(TraceEventCodes::SQLITE_TRACE_PROFILE, Some(note)).expect("traces");
    for chat in 0..50 {
        one_message(&conn, chat);
    }
    write::prune(&conn, Old::Rows, 90, at(0)).expect("prunes");
    write::prune(&conn, Old::Parcels, 90, at(0)).expect("prunes");
    past::forget_entries(&conn, 90, at(0)).expect("forgets");
    past::forget_lives(&conn, 90, at(100), &[]).expect("forgets");
    read::position_at(&conn, at(1)).expect("reads");
    let scans = scans.lock().expect("one thread");
    assert!(scans.len() > 30, "{} statements were seen", scans.len());
    let scanning: Vec<_> = scans.iter().filter(|(_, steps)| **steps > 0).collect();
    assert!(scanning.is_empty(), "{scanning:#?}");
}
