//! Databases as every version of the program left them, kept as SQL, still open and still say what
//! they said.
//!
//! The database of the present version is recorded by running these tests without its file: they
//! write it and fail once. What was recorded is never recorded again.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use talaria_model::{
    CallId, ChatKind, Choice, ChoiceId, EntryBody, MessageId, Question, Receipt, SenderId, Seq,
    SessionId, ThreadId, TurnId, Usage,
};
use talaria_session::{Phase, TurnInHand, Waiting};
use talaria_store::{
    Commit, Delivered, JournalChange, JournalState, MemoryStore, Settlement, Store,
};
use tempfile::TempDir;

use super::seen::{Asked, seen};
use super::{address, alice, at, entry, hand, inbound, key, post, session, step};
use crate::SqliteStore;
use crate::open::MIGRATIONS;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded")
}

/// A little of everything.
pub(super) async fn live(store: &dyn Store) -> Asked {
    let direct = key("telegram", "12345");
    let group = talaria_session::SessionKey {
        kind: ChatKind::Group,
        thread: Some(ThreadId::literal("topic")),
        member: Some(SenderId::literal("alice")),
        ..key("work-slack", "C042")
    };
    let states = [
        JournalState::Unread,
        JournalState::Taken,
        JournalState::Handled,
        JournalState::Denied("not on the list".into()),
    ];
    for (key, cursor) in [(&direct, Some("981")), (&group, None)] {
        let events = states.iter().zip(1..).map(|(state, number): (_, u32)| {
            (key.clone(), inbound(key, &format!("event {number}")), state.clone())
        });
        let account = key.account.clone();
        let cursor = cursor.map(str::to_owned);
        let batch = Delivered { account, events: events.collect(), cursor, at: at(1_000) };
        store.admit(batch).await.expect("admits");
    }
    store.recover().await.expect("recovers");

    let mut first = session(&direct);
    first.title = "A blue whale".into();
    first.usage = Usage { input: 100, output: 20, ..Usage::default() };
    let turn = TurnId { session: first.id.clone(), number: 1 };
    let old = first.id.clone();
    let answered = EntryBody::Answered {
        text: "Blue whales sing.".into(),
        files: Vec::new(),
        calls: Vec::new(),
        reasoning: Some("signed".into()),
        usage: first.usage,
        sent: Some(post(&old, &first.at, 1, 0).id),
        extent: talaria_model::Extent::Whole,
    };
    let answered =
        talaria_model::Entry { number: 2, at: at(1_100), turn: Some(turn.clone()), body: answered };
    let posts: Vec<_> = (1..=6).map(|delivery| post(&old, &first.at, delivery, 0)).collect();
    store.preview(&posts[0]).await.expect("previews");
    let shown = Settlement::Previewed(Some(MessageId::literal("m1")));
    store.settle(&posts[0].id, shown).await.expect("settles");
    let commit = Commit {
        journal: vec![
            JournalChange { seq: Seq(2), state: JournalState::Bound(turn) },
            JournalChange { seq: Seq(3), state: JournalState::Quarantined("three deaths".into()) },
        ],
        entries: vec![(old.clone(), entry(1, "What is a blue whale?")), (old.clone(), answered)],
        outbox: posts[..5].to_vec(),
        at: at(1_100),
        ..step(&first)
    };
    store.commit(commit).await.expect("commits");
    for (post, settlement) in posts[1..5].iter().zip([
        Settlement::Delivered(Receipt { message: Some(MessageId::literal("m2")), at: at(1_200) }),
        Settlement::Unsure,
        Settlement::Plain,
        Settlement::Undeliverable { reason: "the chat is gone".into() },
    ]) {
        store.attempt(&post.id).await.expect("attempts");
        store.settle(&post.id, settlement).await.expect("settles");
    }
    first.id = SessionId::literal("20261115_093000_0badcafe");
    first.lives = 2;
    first.updated = at(1_300);
    let again = vec![(first.id.clone(), entry(1, "And now something else: 会议"))];
    store.commit(Commit { entries: again, ..step(&first) }).await.expect("commits");

    let mut second = session(&group);
    second.phase = Phase::Asking {
        hand: TurnInHand {
            steers: vec![Waiting {
                seq: Seq(5),
                from: alice(),
                to: second.at.clone(),
                message: Default::default(),
            }],
            started: vec![CallId::literal("call-1")],
            deaths: 1,
            ..hand(&second)
        },
        question: Question {
            call: CallId::literal("call-1"),
            text: "Which one?".into(),
            choices: vec![Choice { id: ChoiceId::literal("a"), label: "This".into() }],
        },
        since: at(1_400),
        expires: at(8_000),
    };
    store.commit(step(&second)).await.expect("commits");
    store.preview(&post(&second.id, &second.at, 1, 0)).await.expect("previews");

    Asked {
        addresses: vec![address(&direct), address(&group)],
        lives: vec![old, first.id, second.id],
        queries: vec!["whale", "whal", "ale", "会议"],
        keys: vec![direct, group],
        files: Vec::new(),
    }
}

pub(super) fn recorded() -> Vec<(usize, String)> {
    (1..=MIGRATIONS.len())
        .filter_map(|version| {
            let sql = fs::read_to_string(folder().join(format!("v{version}.sql"))).ok()?;
            Some((version, sql))
        })
        .collect()
}

#[tokio::test]
async fn the_present_version_is_recorded() {
    let file = folder().join(format!("v{}.sql", MIGRATIONS.len()));
    if file.exists() {
        return;
    }
    let made = TempDir::new().expect("a folder");
    let store = SqliteStore::open(made.path()).expect("opens");
    live(&store).await;
    drop(store);
    let conn = Connection::open(made.path().join("state.db")).expect("opens");
    fs::write(&file, dump(&conn)).expect("writes");
    panic!("{} was not there and has been recorded", file.display());
}

#[tokio::test]
async fn every_recorded_version_opens_and_says_what_it_said() {
    let memory = MemoryStore::new();
    let asked = live(&memory).await;
    let expected = seen(&memory, &asked).await;
    assert_eq!(recorded().len(), MIGRATIONS.len(), "every version is recorded");
    for (version, sql) in recorded() {
        let made = TempDir::new().expect("a folder");
        let conn = Connection::open(made.path().join("state.db")).expect("opens");
        conn.execute_batch(&sql).expect("is SQL");
        conn.close().expect("closes");
        let store = SqliteStore::open(made.path()).expect("opens");
        assert_eq!(seen(&store, &asked).await, expected, "version {version}");
        assert_eq!(store.recover().await, Ok(talaria_session::Ended::Abruptly));
        assert_eq!(store.check().await, Ok(()));
    }
}

#[test]
fn a_migrated_database_is_built_like_a_new_one() {
    let schema = |folder: &Path| {
        let conn = Connection::open(folder.join("state.db")).expect("opens");
        let mut statement = conn
            .prepare("SELECT name, sql FROM sqlite_schema ORDER BY type, name")
            .expect("is SQL");
        let rows = statement
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?)))
            .expect("reads");
        rows.map(|row| row.expect("reads")).collect::<Vec<_>>()
    };
    let fresh = TempDir::new().expect("a folder");
    drop(SqliteStore::open(fresh.path()).expect("opens"));
    for (version, sql) in recorded() {
        let made = TempDir::new().expect("a folder");
        let conn = Connection::open(made.path().join("state.db")).expect("opens");
        conn.execute_batch(&sql).expect("is SQL");
        conn.close().expect("closes");
        drop(SqliteStore::open(made.path()).expect("opens"));
        assert_eq!(schema(made.path()), schema(fresh.path()), "version {version}");
    }
}

/// A database as SQL.
pub(super) fn dump(conn: &Connection) -> String {
    let text = |sql: &str| -> Vec<(String, String)> {
        let mut statement = conn.prepare(sql).expect("is SQL");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("reads");
        rows.map(|row| row.expect("reads")).collect()
    };
    let pragma = |name: &str| -> i64 {
        conn.pragma_query_value(None, name, |row| row.get(0)).expect("reads")
    };
    let mut sql = format!(
        "PRAGMA application_id = {};\nPRAGMA user_version = {};\nPRAGMA foreign_keys = off;\nBEGIN;\n",
        pragma("application_id"),
        pragma("user_version"),
    );
    let named = "name NOT LIKE 'sqlite_%'";
    let tables = text(&format!(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND {named} ORDER BY rowid"
    ));
    for (_, create) in &tables {
        writeln!(sql, "{create};").expect("a string takes everything");
    }
    let sequence = ("sqlite_sequence".to_owned(), String::new());
    for (table, _) in tables.iter().chain([&sequence]) {
        let mut statement = conn.prepare(&format!("SELECT * FROM {table}")).expect("is SQL");
        let columns = statement.column_count();
        let mut rows = statement.query([]).expect("reads");
        while let Some(row) = rows.next().expect("reads") {
            let values: Vec<String> =
                (0..columns).map(|column| literal(row.get_ref(column).expect("reads"))).collect();
            writeln!(sql, "INSERT INTO {table} VALUES ({});", values.join(", "))
                .expect("a string takes everything");
        }
    }
    for (_, create) in text(&format!(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND {named} ORDER BY rowid"
    )) {
        writeln!(sql, "{create};").expect("a string takes everything");
    }
    sql.push_str("COMMIT;\n");
    sql
}

fn literal(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".into(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Text(text) => {
            format!("'{}'", String::from_utf8_lossy(text).replace('\'', "''"))
        }
        ValueRef::Real(_) | ValueRef::Blob(_) => panic!("no column holds one"),
    }
}
