//! What is found when the store is opened.

use std::fs;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;

use rusqlite::Connection;
use talaria_model::{Act, Content, MessageId, Outbound, OutboundId, Receipt};
use talaria_store::{Commit, Leave, Settlement, Store};
use tempfile::TempDir;

use super::{at, key, recording, session, step};
use crate::SqliteStore;
use crate::open::{MIGRATIONS, OpenError, rehearse};

/// Why a store is not opened. Whoever only looks at one that is there finds the same.
fn refused(folder: &Path) -> OpenError {
    let foreseen = rehearse(folder).map_err(|error| error.to_string());
    let is_there = folder.join("state.db").exists();
    let Err(error) = SqliteStore::open(folder) else { panic!("it must not open") };
    assert_eq!(foreseen, if is_there { Err(error.to_string()) } else { Ok(()) });
    error
}

#[tokio::test]
async fn nothing_stands_in_the_way_of_a_start_where_nothing_is_or_somebody_writes() {
    let folder = TempDir::new().expect("a folder");
    rehearse(folder.path()).expect("there is nothing");
    assert!(!folder.path().join("state.db").exists(), "it only looks");
    fs::write(folder.path().join("state.db"), "").expect("writes");
    rehearse(folder.path()).expect("there is nothing in it");
    let store = SqliteStore::open(folder.path()).expect("opens");
    store.recover().await.expect("recovers");
    store.commit(step(&session(&key("bot", "c")))).await.expect("commits");
    rehearse(folder.path()).expect("it is in use");
    store.close().await.expect("closes");
    drop(store);
    rehearse(folder.path()).expect("it ended well");
}

#[test]
#[cfg(unix)]
fn only_the_owner_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("state.db"), "").expect("writes");
    let readable = PermissionsExt::from_mode(0o644);
    fs::set_permissions(folder.path().join("state.db"), readable).expect("is ours");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let store = SqliteStore::open(folder.path()).expect("opens");
    runtime.block_on(async {
        let session = session(&key("bot", "c"));
        store.commit(recording(&session, 1, "private")).await.expect("commits");
        let scope = talaria_store::SearchScope::Conversation(session.key);
        let wanted = talaria_store::Wanted::new(scope, "private", 1);
        assert_eq!(store.search(&wanted).await.map(|found| found.len()), Ok(1));
    });
    let files = fs::read_dir(folder.path()).expect("reads");
    let mut names = Vec::new();
    for file in files.map(|file| file.expect("reads")) {
        names.push(file.file_name().into_string().expect("our own names"));
        let mode = file.metadata().expect("reads").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", file.path());
    }
    names.sort();
    assert_eq!(names, ["search.db", "search.db-wal", "state.db", "state.db-shm", "state.db-wal"]);
}

/// Not only in no row: in no page that a row was in before, either.
#[tokio::test]
async fn confidential_words_are_nowhere_in_the_files_of_a_closed_store_once_they_were_said() {
    const WORDS: &str = "the code is ABCD2345";
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    let session = session(&key("bot", "c"));
    let letter = |delivery, content| Outbound {
        id: OutboundId { session: session.id.clone(), delivery, part: 0 },
        to: session.at.clone(),
        act: Act::Post(content),
    };
    let mut open = Vec::new();
    for delivery in 1..=60 {
        // Rows of other sizes around it make it move within its page, and from page to page.
        let beside = Content::text("x".repeat(delivery as usize * 37 % 900));
        let confided = letter(delivery * 2, Content::confidential(format!("{delivery}: {WORDS}")));
        let outbox = vec![letter(delivery * 2 + 1, beside), confided.clone()];
        store.commit(Commit { outbox, ..step(&session) }).await.expect("commits");
        assert_eq!(store.attempt(&confided.id).await, Ok(Leave::Go));
        open.push(confided.id);
    }
    let holds = |file: &str| {
        let bytes = fs::read(folder.path().join(file)).expect("reads");
        bytes.windows(WORDS.len()).any(|window| window == WORDS.as_bytes())
    };
    assert!(holds("state.db-wal"), "what has to be said is kept");
    for (place, id) in (0..).zip(&open) {
        let (message, at) = (Some(MessageId::literal("a message's id")), at(2));
        let settlement = match place % 3 {
            0 => Settlement::Delivered(Receipt { message, at }),
            1 => Settlement::Undeliverable { reason: "the chat is gone".into() },
            _ => Settlement::Abandoned { reason: "late".into() },
        };
        store.settle(id, settlement, at).await.expect("settles");
    }
    store.close().await.expect("closes");
    drop(store);
    for file in fs::read_dir(folder.path()).expect("reads") {
        let name = file.expect("reads").file_name().into_string().expect("our own names");
        assert!(!holds(&name), "{name}");
    }
}

#[tokio::test]
async fn a_closed_store_leaves_no_log_behind() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    store.commit(step(&session(&key("bot", "c")))).await.expect("commits");
    store.close().await.expect("closes");
    drop(store);
    assert!(!folder.path().join("state.db-wal").exists());
    assert!(!folder.path().join("state.db-shm").exists());
}

#[test]
fn a_newer_version_is_refused_and_left_alone() {
    let folder = TempDir::new().expect("a folder");
    drop(SqliteStore::open(folder.path()).expect("opens"));
    let file = folder.path().join("state.db");
    let conn = Connection::open(&file).expect("opens");
    conn.pragma_update(None, "user_version", 99).expect("writes");
    conn.close().expect("closes");
    let before = fs::read(&file).expect("reads");
    let error = refused(folder.path());
    let known = i32::try_from(MIGRATIONS.len()).expect("few");
    assert!(
        matches!(&error, OpenError::Newer { found: 99, known: ours, .. } if *ours == known),
        "{error}"
    );
    assert!(error.hint().contains("newer version"));
    assert_eq!(fs::read(&file).expect("reads"), before);
}

#[test]
fn what_is_not_a_database_is_refused_and_left_alone() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("state.db");
    let text = "Dear diary, ".repeat(1000);
    fs::write(&file, &text).expect("writes");
    let error = refused(folder.path());
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    assert!(error.hint().contains("move"));
    assert_eq!(fs::read_to_string(&file).expect("reads"), text);
}

#[test]
fn another_programs_database_is_refused_and_left_alone() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("state.db");
    let conn = Connection::open(&file).expect("opens");
    conn.execute_batch("CREATE TABLE bookmarks (url TEXT); PRAGMA user_version = 1")
        .expect("writes");
    conn.close().expect("closes");
    let before = fs::read(&file).expect("reads");
    let error = refused(folder.path());
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    assert_eq!(fs::read(&file).expect("reads"), before);
}

#[tokio::test]
async fn damage_is_found_after_an_abrupt_end() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    store.recover().await.expect("recovers");
    let session = session(&key("bot", "c"));
    for number in 0..50 {
        store.commit(recording(&session, number, &"word ".repeat(200))).await.expect("commits");
    }
    drop(store);
    let mut file =
        fs::OpenOptions::new().write(true).open(folder.path().join("state.db")).expect("opens");
    let size = file.metadata().expect("reads").len();
    for page in (size / 4096 / 2)..(size / 4096) {
        file.seek(SeekFrom::Start(page * 4096)).expect("seeks");
        file.write_all(&[0xAA; 512]).expect("writes");
    }
    let error = refused(folder.path());
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert!(error.hint().contains("backup"));
}

#[test]
fn a_folder_that_cannot_be_used_is_named() {
    let folder = TempDir::new().expect("a folder");
    let missing = folder.path().join("missing");
    let error = refused(&missing);
    assert!(
        matches!(&error, OpenError::Folder { path, source }
            if path.starts_with(&missing) && source.kind() == ErrorKind::NotFound),
        "{error}"
    );
    assert!(error.hint().contains("create"));

    let file = folder.path().join("file");
    fs::write(&file, "").expect("writes");
    let error = refused(&file);
    assert!(matches!(&error, OpenError::Folder { .. }), "{error}");

    let source = std::io::Error::from(ErrorKind::PermissionDenied);
    let error = OpenError::Folder { path: folder.path().join("state.db"), source };
    assert!(error.hint().contains("chmod"));
}

#[test]
fn a_migration_that_was_killed_did_not_happen() {
    let folder = TempDir::new().expect("a folder");
    let copied = TempDir::new().expect("a folder");
    let conn = Connection::open(folder.path().join("state.db")).expect("opens");
    // So small a cache writes to the log long before the commit.
    conn.execute_batch("PRAGMA cache_size = 1; PRAGMA journal_mode = wal; BEGIN").expect("begins");
    for migration in MIGRATIONS {
        conn.execute_batch(migration).expect("migrates");
    }
    conn.execute_batch(
        "PRAGMA user_version = 1; PRAGMA application_id = 1;
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO account (name) SELECT 'account ' || i FROM n",
    )
    .expect("writes");
    super::copy(folder.path(), copied.path());
    assert!(fs::metadata(copied.path().join("state.db-wal")).expect("is there").len() > 4096);
    drop(SqliteStore::open(copied.path()).expect("opens"));
    let conn = Connection::open(copied.path().join("state.db")).expect("opens");
    let accounts: i64 =
        conn.query_row("SELECT count(*) FROM account", [], |row| row.get(0)).expect("reads");
    assert_eq!(accounts, 0);
}

#[tokio::test]
async fn a_sound_store_passes_its_check() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    store.commit(recording(&session(&key("bot", "c")), 1, "hello")).await.expect("commits");
    assert_eq!(store.check().await, Ok(()));
}

#[tokio::test]
async fn the_record_is_only_added_to() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    let audited = talaria_store::Audited {
        actor: "operator".into(),
        deed: talaria_store::AuditDeed::LetIn,
        subject: "bot:ann".into(),
        detail: String::new(),
    };
    store.audit(super::at(1), vec![audited]).await.expect("records");
    drop(store);
    let conn = Connection::open(folder.path().join("state.db")).expect("opens");
    for sql in ["UPDATE audit SET actor = 'nobody'", "DELETE FROM audit"] {
        let refused = conn.execute(sql, []).expect_err(sql).to_string();
        assert!(refused.contains("only added to"), "{refused}");
    }
}
