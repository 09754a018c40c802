//! Databases as every version of the program left them, kept as SQL, still open and still say what
//! they said.
//!
//! The database of the present version is recorded by running these tests without its file: they
//! write it and fail once. What was recorded is never recorded again.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use talaria_model::{
    AccountId, Act, CallId, ChatId, ChatKind, Choice, ChoiceId, Cost, Digest, EntryBody, FileId,
    FileRef, Giver, Grant, InboundKind, MessageId, Question, Receipt, Sender, SenderId, Seq,
    SessionId, Source, ThreadId, TurnId, Usage,
};
use talaria_session::budget::{Day, Payer, Spent};
use talaria_session::pairing::{Answer, Chance, GuestBook};
use talaria_session::{
    Joins, Life, Origin, Phase, Reach, Retired, Rules, Session, Strangers, TurnInHand, Waiting,
};
use talaria_store::{
    Admitted, AuditDeed, Audited, Branch, Commit, Delivered, Dropped, GuestChange, JournalChange,
    JournalState, MemoryStore, Owner, Retirement, Rewind, Settlement, Spending, Store, Swap,
    Unanswered,
};
use tempfile::TempDir;

use super::seen::{Asked, seen};
use super::{address, alice, at, entry, hand, inbound, key, post, session, step};
use crate::SqliteStore;
use crate::open::MIGRATIONS;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded")
}

/// A session as the first two versions kept it: what they did not know has its default.
fn of_old(session: Session) -> Session {
    Session { life: Life::Continuing, cost: Cost::UNKNOWN, active: session.updated, ..session }
}

/// A little of everything that the first two versions knew.
async fn live(store: &dyn Store) -> Asked {
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

    let mut first = of_old(session(&direct));
    first.title = "A blue whale".into();
    let origin = Origin { from: alice(), at: first.at.clone(), source: Source::default() };
    first.origin = Some(Arc::new(origin));
    first.usage = Usage { input: 100, output: 20, ..Usage::default() };
    let turn = TurnId { session: first.id.clone(), number: 1 };
    let old = first.id.clone();
    let answered = EntryBody::Answered {
        text: "Blue whales sing.".into(),
        files: Vec::new(),
        calls: Vec::new(),
        reasoning: Some("signed".into()),
        usage: first.usage,
        cost: Cost::UNKNOWN,
        sent: Some(post(&old, &first.at, 1, 0).id),
        extent: talaria_model::Extent::Whole,
    };
    let answered = talaria_model::Entry {
        number: 2,
        at: at(1_100),
        turn: Some(turn.clone()),
        body: answered,
        because: None,
        about: None,
        resumed: None,
    };
    let posts: Vec<_> = (1..=6).map(|delivery| post(&old, &first.at, delivery, 0)).collect();
    store.preview(&posts[0]).await.expect("previews");
    let shown = Settlement::Previewed(Some(MessageId::literal("m1")));
    store.settle(&posts[0].id, shown, at(1_050)).await.expect("settles");
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
        store.settle(&post.id, settlement, at(1_200)).await.expect("settles");
    }
    let mut first = first;
    first.id = SessionId::literal("20261115_093000_0badcafe");
    first.lives = 2;
    first.updated = at(1_300);
    let first = of_old(first);
    let again = vec![(first.id.clone(), entry(1, "And now something else: 会议"))];
    store.commit(Commit { entries: again, ..step(&first) }).await.expect("commits");

    let mut second = of_old(session(&group));
    second.phase = Phase::Asking {
        hand: TurnInHand {
            steers: vec![Waiting {
                seq: Seq(5),
                from: alice(),
                to: second.at.clone(),
                roles: Vec::new(),
                message: Default::default(),
                joins: Joins::Burst,
                paid: Default::default(),
            }],
            started: vec![CallId::literal("call-1")],
            told_of: None,
            deaths: 1,
            began: at(0),
            heard: at(0),
            deadline: at(1_800_001),
            ..hand(&second)
        },
        question: Question {
            call: CallId::literal("call-1"),
            text: "Which one?".into(),
            choices: vec![Choice { id: ChoiceId::literal("a"), label: "This".into() }],
            approval: None,
        },
        since: at(1_400),
        expires: at(8_000),
        sent: None,
    };
    store.commit(step(&second)).await.expect("commits");
    store.preview(&post(&second.id, &second.at, 1, 0)).await.expect("previews");

    Asked {
        addresses: vec![address(&direct), address(&group)],
        lives: vec![old, first.id, second.id],
        owners: ["telegram", "work-slack"].map(alice_on).to_vec(),
        queries: vec!["whale", "whal", "ale", "会议"],
        keys: vec![direct, group],
        files: Vec::new(),
    }
}

fn alice_on(account: &str) -> Owner {
    Owner::Person { account: key(account, "c").account, person: alice().id }
}

/// What the third version knew besides: lives that gave way, branches, what was taken back, owners,
/// summaries, sessions beside a conversation, and chats without an id; and what nobody recorded of the
/// second: files, and notices of what was not delivered.
async fn live_on(store: &dyn Store, asked: &mut Asked) {
    let chat = talaria_session::SessionKey { chat: None, ..key("sms", "none") };
    let place = address(&key("sms", "+4917012345"));
    let mut session = Session::begin(chat.clone(), place.clone(), at(2_000), Rules::default());
    let origin = Origin { from: alice(), at: place.clone(), source: Source::default() };
    session.origin = Some(Arc::new(origin));
    (session.title, session.turns) = ("Narwhals".into(), 3);
    let first = session.id.clone();
    let recorded =
        (1..=6).map(|number| (first.clone(), entry(number, &format!("narwhal {number}"))));
    let commit = Commit { entries: recorded.collect(), ..step(&session) };
    store.commit(commit).await.expect("commits");
    let (usage, cost) = (Usage { input: 9, ..Usage::default() }, Cost::known(7));
    let body = EntryBody::Summary { after: 1, upto: 3, text: "in short".into(), usage, cost };
    let summary = talaria_model::Entry { body, ..entry(7, "") };
    let rewinds = vec![Rewind { session: first.clone(), from: 5, upto: 5, by: Some(alice().id) }];
    let entries = vec![(first.clone(), summary)];
    let commit = Commit { rewinds, entries, at: at(2_100), ..step(&session) };
    store.commit(commit).await.expect("commits");
    store.put_away(&first).await.expect("counts");

    let retired = Some(Retirement { past: session.past(), why: Retired::Branched });
    session.id = SessionId::literal("20261115_094000_0badcafe");
    (session.lives, session.title, session.active) = (2, "A branch".into(), at(2_200));
    let branch = Branch { from: first.clone(), to: session.id.clone(), upto: 7 };
    let entries = vec![(session.id.clone(), entry(8, "narwhal 8"))];
    let commit = Commit { retired, branch: Some(branch), entries, ..step(&session) };
    store.commit(commit).await.expect("commits");
    let rewinds = vec![Rewind { session: session.id.clone(), from: 4, upto: 4, by: None }];
    store.commit(Commit { rewinds, at: at(2_300), ..step(&session) }).await.expect("commits");

    let side = talaria_session::SessionKey { side: Some(1), ..chat.clone() };
    let mut beside = Session::begin(side.clone(), place.clone(), at(2_400), Rules::default());
    beside.life = Life::Suspended;
    let dropped = Some(Dropped { before: Seq(99), reason: "stopped".into() });
    store.commit(Commit { dropped, ..step(&beside) }).await.expect("commits");
    lose(store, &session, asked).await;
    asked.lives.extend([first, session.id, beside.id]);
    asked.keys.extend([chat, side]);
    asked.addresses.push(place);
    asked.owners.push(alice_on("sms"));
}

/// Somebody is told that something was not delivered; a file is named, and a message handed on.
async fn lose(store: &dyn Store, session: &Session, asked: &mut Asked) {
    let file = FileRef::new(FileId::literal("horn.jpg"), "horn.jpg", "image/jpeg", 3);
    asked.files.push(file.id.clone());
    let (to, side) =
        (&session.at, talaria_session::SessionKey { side: Some(2), ..session.key.clone() });
    let events = ["a horn", "a task", "a stranger"].map(|event| inbound(&key("sms", "any"), event));
    let [mut horn, task, stranger] = events;
    if let InboundKind::Said(message) = &mut horn.kind {
        message.files.push(file.clone());
    }
    let denied = JournalState::Denied("not on the list".into());
    let events = vec![
        (session.key.clone(), horn, JournalState::Taken),
        (session.key.clone(), task, JournalState::Unread),
        (session.key.clone(), stranger, denied),
    ];
    let account = session.key.account.clone();
    let batch = Delivered { account, events, cursor: None, at: at(2_500) };
    let admitted = store.admit(batch).await.expect("admits");
    let Admitted::Journalled(task) = admitted[1] else { panic!("{admitted:?}") };
    let mut lost = post(&session.id, to, 7, 0);
    if let Act::Post(content) = &mut lost.act {
        content.files.push(file);
    }
    let forwarded = vec![(task, side.clone())];
    let commit = Commit { forwarded, outbox: vec![lost.clone()], ..step(session) };
    store.commit(commit).await.expect("commits");
    store.attempt(&lost.id).await.expect("attempts");
    let gone = Settlement::Undeliverable { reason: "the number is gone".into() };
    store.settle(&lost.id, gone, at(2_550)).await.expect("settles");
    store.tell(&post(&session.id, to, 8, 0), at(2_600)).await.expect("tells");
    asked.keys.push(side);
}

/// What the fourth version knew besides: who was let in, and the record of it.
async fn let_in(store: &dyn Store) {
    let chat = key("one", "c");
    let mut book = GuestBook::default();
    let (sender, to) = (alice(), address(&chat));
    book.issue(Reach::Everywhere, "operator", Chance([3; 32]), at(3_000)).expect("issues");
    // What comes of that chance.
    let code = "DDDDDDDD";
    let answer = book.said((&sender, &to), code, Strangers::Pair, Chance([4; 32]), at(3_001));
    assert!(matches!(answer, Answer::LetIn(_)), "{answer:?}");
    let bob = Sender::named(SenderId::literal("bob"), "Bob");
    book.said((&bob, &to), "hello", Strangers::Pair, Chance([5; 32]), at(3_002));
    book.issue(Reach::Direct, "operator", Chance([6; 32]), at(3_003)).expect("issues");
    let audited = |deed| Audited {
        actor: "operator".into(),
        deed,
        subject: "one:alice".into(),
        detail: "everywhere".into(),
    };
    let change = GuestChange {
        account: chat.account,
        read: 0,
        book,
        outbox: vec![post(&SessionId::literal("pairing"), &to, 1, 0)],
        audited: vec![audited(AuditDeed::CodeIssued), audited(AuditDeed::LetIn)],
        at: at(3_004),
    };
    assert_eq!(store.keep_guests(change).await, Ok(Swap::Done));
    store.audit(at(3_005), vec![audited(AuditDeed::SettingsChanged)]).await.expect("records");
}

/// What the sixth version knew on top: what was approved for good, and its place in the record.
async fn approve(store: &dyn Store) {
    let grants = (1..3).map(|number| Grant {
        digest: Digest::new([number; 32]),
        tool: "run_program".into(),
        account: AccountId::literal("one"),
        sender: SenderId::literal("alice"),
        by: Giver::known_by_id(SenderId::literal("bob")),
        shown: format!("May I call it {number} times?"),
        at: at(3_006),
    });
    let audited = Audited {
        actor: "one:bob".into(),
        deed: AuditDeed::Approved,
        subject: "one:alice".into(),
        detail: "run_program, for good".into(),
    };
    let step = step(&session(&key("one", "approves")));
    let commit = Commit { grants: grants.collect(), audited: vec![audited], ..step };
    store.commit(commit).await.expect("commits");
}

/// What the seventh version knew on top: what was spent in a day.
async fn spend(store: &dyn Store) {
    let account = AccountId::literal("one");
    let spent = Spent { messages: 1, tokens: 1_200, micros: 34 };
    let spending = [
        Payer::Person("Alice".into()),
        Payer::Sender(account.clone(), SenderId::literal("bob")),
        Payer::Chat(account, ChatId::literal("c")),
    ];
    let spending = spending.map(|payer| Spending { day: Day::numbered(20_000), payer, spent });
    let step = step(&session(&key("one", "spends")));
    store.commit(Commit { spending: spending.into(), ..step }).await.expect("commits");
}

/// What the ninth version knew on top: what was not answered and is not in the journal.
async fn pass_over(store: &dyn Store) {
    let chat = key("one", "c");
    let state = JournalState::Ignored("nobody spoke to us".into());
    let event = inbound(&chat, "one too many");
    let row = Unanswered::of(&chat.account, &event, state, at(4_000));
    store.keep_unanswered(vec![row]).await.expect("keeps");
}

/// Everything that a version of this number knew.
async fn live_as(store: &dyn Store, version: usize) -> Asked {
    let mut asked = live(store).await;
    if version >= 3 {
        live_on(store, &mut asked).await;
    }
    if version >= 5 {
        let_in(store).await;
    }
    if version >= 6 {
        approve(store).await;
    }
    if version >= 7 {
        spend(store).await;
    }
    if version >= 9 {
        pass_over(store).await;
    }
    asked
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
    live_as(&store, MIGRATIONS.len()).await;
    drop(store);
    let conn = Connection::open(made.path().join("state.db")).expect("opens");
    fs::write(&file, dump(&conn)).expect("writes");
    panic!("{} was not there and has been recorded", file.display());
}

#[tokio::test]
async fn every_recorded_version_opens_and_says_what_it_said() {
    assert_eq!(recorded().len(), MIGRATIONS.len(), "every version is recorded");
    for (version, sql) in recorded() {
        let memory = MemoryStore::new();
        let asked = live_as(&memory, version).await;
        let made = TempDir::new().expect("a folder");
        let conn = Connection::open(made.path().join("state.db")).expect("opens");
        conn.execute_batch(&sql).expect("is SQL");
        conn.close().expect("closes");
        let store = SqliteStore::open(made.path()).expect("opens");
        let (found, expected) = (seen(&store, &asked).await, seen(&memory, &asked).await);
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "version {version}");
        }
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
        "SELECT name, sql FROM sqlite_schema WHERE type IN ('index', 'trigger') AND {named}
         ORDER BY type, rowid"
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
