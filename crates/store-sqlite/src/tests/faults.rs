//! A disk that is full, a process that dies, callers that crowd.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use futures::future::join_all;
use rusqlite::Connection;
use talaria_store::{Commit, Store, StoreError};
use tempfile::TempDir;

use super::{address, copy, entry, key, post, recording, session, step};
use crate::SqliteStore;
use crate::open::open_state;
use crate::sql::{execute, one, store_error};
use crate::writer::Writer;

/// Holds the writer up until the returned sender is dropped.
async fn hold(store: &SqliteStore) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let (reached, waiting) = tokio::sync::oneshot::channel();
    let mut holding = std::pin::pin!(store.writer.write(move |_| {
        reached.send(()).expect("the test waits for it");
        assert!(held.recv().is_err());
        Ok(())
    }));
    assert!(futures::poll!(holding.as_mut()).is_pending());
    waiting.await.expect("the writer runs");
    release
}

#[tokio::test]
async fn writes_that_wait_together_share_one_commit() {
    let folder = TempDir::new().expect("a folder");
    let mut conn = open_state(&folder.path().join("state.db")).expect("opens");
    let commits = Arc::new(AtomicUsize::new(0));
    let counted = commits.clone();
    let hook = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    };
    conn.commit_hook(Some(hook)).expect("hooks");
    let writer = Writer::start(conn).expect("starts");
    let (release, held) = mpsc::channel::<()>();
    let first = writer.write(move |_| {
        assert!(held.recv().is_err());
        Ok(())
    });
    let others = (1..=100).map(|number| {
        writer.write(move |conn| {
            let sql = "INSERT INTO account (name) VALUES (?)";
            execute(conn, sql, [format!("account {number}")])
        })
    });
    let (first, others, ()) = tokio::join!(first, join_all(others), async { drop(release) });
    assert!(first.is_ok() && others.iter().all(Result::is_ok));
    // The first one may have been alone; the rest had come by the time it was done.
    assert!(commits.load(Ordering::Relaxed) <= 2);
}

#[tokio::test]
async fn a_write_that_fails_does_not_spoil_its_company() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    let (mine, other) = (session(&key("bot", "c")), session(&key("bot", "d")));
    store.commit(step(&other)).await.expect("commits");
    let release = hold(&store).await;
    let writes = (1..=60).map(|number| {
        let mut commit = recording(&mine, number, "mine");
        if number % 3 == 0 {
            commit.entries.push((other.id.clone(), entry(number, "smuggled")));
        }
        store.commit(commit)
    });
    let (written, ()) = tokio::join!(join_all(writes), async { drop(release) });
    for (number, written) in (1..).zip(written) {
        let refused = matches!(written, Err(StoreError::Damaged { .. }));
        assert_eq!(refused, number % 3 == 0, "{number}: {written:?}");
    }
    let entries = store.history(&mine.id, 100).await.expect("reads");
    assert!(entries.iter().all(|entry| entry.number % 3 != 0));
    assert_eq!(entries.len(), 40);
    assert_eq!(store.history(&other.id, 100).await, Ok(Vec::new()));
}

#[tokio::test]
async fn more_writes_than_there_is_room_for_wait_and_arrive() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    let session = session(&key("bot", "c"));
    let release = hold(&store).await;
    let writes = (1..=1500).map(|number| store.commit(recording(&session, number, "crowd")));
    let (written, ()) = tokio::join!(join_all(writes), async { drop(release) });
    assert!(written.iter().all(Result::is_ok));
    assert_eq!(store.counts().await.map(|counts| counts.entries), Ok(1500));
}

#[tokio::test]
async fn a_caller_that_stops_waiting_does_not_take_its_write_back() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    let session = session(&key("bot", "c"));
    let release = hold(&store).await;
    {
        let mut write = std::pin::pin!(store.commit(recording(&session, 1, "left alone")));
        assert!(futures::poll!(write.as_mut()).is_pending());
    }
    drop(release);
    store.commit(recording(&session, 2, "after it")).await.expect("commits");
    let numbers = store.history(&session.id, 10).await.expect("reads");
    assert_eq!(numbers.iter().map(|entry| entry.number).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test]
async fn a_read_is_of_one_moment() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    let other = Connection::open(folder.path().join("state.db")).expect("opens");
    let read = store.readers.read(move |conn| {
        let count = || one(conn, "SELECT count(*) FROM account", [], |row| row.get::<_, i64>(0));
        let before = count()?;
        other.execute_batch("INSERT INTO account (name) VALUES ('meanwhile')").expect("writes");
        Ok((before, count()?))
    });
    assert_eq!(read.await, Ok((0, 0)));
    let sql = "SELECT count(*) FROM account";
    let after = store.readers.read(move |conn| one(conn, sql, [], |row| row.get::<_, i64>(0)));
    assert_eq!(after.await, Ok(1));
}

async fn limit_pages(store: &SqliteStore, more: Option<i64>) {
    let set = move |conn: &Connection| {
        let pages: i64 = conn.pragma_query_value(None, "page_count", |row| row.get(0))?;
        let limit = more.map_or(1 << 30, |more| pages + more);
        conn.pragma_update_and_check(None, "max_page_count", limit, |row| row.get::<_, i64>(0))
    };
    store.writer.write(move |conn| set(conn).map_err(store_error)).await.expect("sets");
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_is_over_when_there_is_space() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    let session = session(&key("bot", "c"));
    store.commit(step(&session)).await.expect("commits");
    limit_pages(&store, Some(20)).await;

    let long = "word ".repeat(1000);
    let mut acknowledged = Vec::new();
    let mut refused = 0;
    for number in 1..=60 {
        let mut commit = recording(&session, number, &long);
        commit.outbox.push(post(&session.id, &session.at, number, 0));
        match store.commit(commit).await {
            Ok(()) => acknowledged.push(number),
            Err(StoreError::Unavailable { .. }) => refused += 1,
            Err(error) => panic!("a full disk is no damage: {error}"),
        }
    }
    assert!(refused > 0 && !acknowledged.is_empty());

    let kept = async |store: &SqliteStore| {
        let entries = store.history(&session.id, 1000).await.expect("reads");
        let parcels = store.parcels(&session.at, 1000).await.expect("reads");
        (
            entries.iter().map(|entry| entry.number).collect::<Vec<_>>(),
            parcels.iter().map(|parcel| parcel.outbound.id.delivery).collect::<Vec<_>>(),
        )
    };
    assert_eq!(kept(&store).await, (acknowledged.clone(), acknowledged.clone()));

    // A crowd whose transaction does not fit is told so, every one of it.
    let release = hold(&store).await;
    let writes = (101..=150).map(|number| store.commit(recording(&session, number, &long)));
    let (written, ()) = tokio::join!(join_all(writes), async { drop(release) });
    for (number, written) in (101..).zip(written) {
        match written {
            Ok(()) => acknowledged.push(number),
            Err(StoreError::Unavailable { .. }) => {}
            Err(error) => panic!("a full disk is no damage: {error}"),
        }
    }
    assert_eq!(kept(&store).await.0, acknowledged);

    limit_pages(&store, None).await;
    store.commit(recording(&session, 200, &long)).await.expect("there is space again");
    acknowledged.push(200);
    assert_eq!(kept(&store).await.0, acknowledged);
    assert_eq!(store.check().await, Ok(()));
}

#[tokio::test]
async fn a_copy_of_the_files_taken_at_any_moment_has_every_acknowledged_write() {
    const WRITERS: u32 = 8;
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    let sessions: Vec<_> =
        (0..WRITERS).map(|chat| session(&key("bot", &format!("chat {chat}")))).collect();
    // A file is copied page by page, and a checkpoint in between is no state a crash could leave. A
    // reader keeps the log from beginning anew.
    let reader = Connection::open(folder.path().join("state.db")).expect("opens");
    store.commit(step(&sessions[0])).await.expect("commits");
    reader.execute_batch("BEGIN; SELECT count(*) FROM session").expect("reads");

    let acknowledged: Vec<Cell<u32>> = (0..WRITERS).map(|_| Cell::new(0)).collect();
    let writing = sessions.iter().zip(&acknowledged).map(async |(session, acknowledged)| {
        for number in 1..=150 {
            let outbox = vec![post(&session.id, &session.at, number, 0)];
            let commit = Commit { outbox, ..recording(session, number, "acknowledged") };
            store.commit(commit).await.expect("commits");
            acknowledged.set(number);
        }
    });
    let copying = async {
        let mut copies = Vec::new();
        while acknowledged.iter().any(|number| number.get() < 150) {
            let known: Vec<u32> = acknowledged.iter().map(Cell::get).collect();
            let copied = TempDir::new().expect("a folder");
            copy(folder.path(), copied.path());
            copies.push((known, copied));
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
        copies
    };
    let (_, copies) = tokio::join!(join_all(writing), copying);
    assert!(!copies.is_empty());
    for (known, copied) in copies.iter().step_by(copies.len().div_ceil(12)) {
        let opened = SqliteStore::open(copied.path()).expect("opens");
        for (session, known) in sessions.iter().zip(known) {
            let entries = opened.history(&session.id, 1000).await.expect("reads");
            let parcels = opened.parcels(&address(&session.key), 1000).await.expect("reads");
            assert!(entries.len() >= *known as usize);
            assert_eq!(entries.len(), parcels.len(), "a step is whole or not there");
            let numbers = entries.iter().map(|entry| entry.number);
            assert!(numbers.eq(1..=entries.len() as u32));
        }
        drop(opened);
        let conn = Connection::open(copied.path().join("state.db")).expect("opens");
        let sound: String =
            conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checks");
        assert_eq!(sound, "ok");
    }
}

/// Writes so many MiB, one at a time; says how large the log was at most.
async fn fill(store: &SqliteStore, folder: &TempDir, mebibytes: u32) -> u64 {
    let mut largest = 0;
    for _ in 0..mebibytes {
        let sql = "INSERT INTO meta VALUES (hex(randomblob(8)), hex(zeroblob(524288)))";
        store.writer.write(|conn| execute(conn, sql, [])).await.expect("writes");
        largest = largest.max(size(folder, "state.db-wal"));
    }
    largest
}

fn size(folder: &TempDir, file: &str) -> u64 {
    folder.path().join(file).metadata().expect("is there").len()
}

#[tokio::test]
async fn the_log_stays_small() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    // It is carried over at 4 MiB, after the write that makes it larger; who reads just then, as the
    // search index does, holds it back until the next 4.
    let largest = fill(&store, &folder, 12).await;
    assert!(largest < 11 << 20, "{largest} bytes");
    assert!(size(&folder, "state.db") > 6 << 20, "what it held is in the file");
}

#[tokio::test]
async fn a_log_that_a_reader_held_back_is_small_again_when_the_reader_is_gone() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    let reader = Connection::open(folder.path().join("state.db")).expect("opens");
    reader.execute_batch("BEGIN; SELECT count(*) FROM meta").expect("reads");
    let largest = fill(&store, &folder, 12).await;
    assert!(largest > 12 << 20, "nothing that is still read is overwritten: {largest} bytes");
    reader.execute_batch("END").expect("ends");
    fill(&store, &folder, 6).await;
    let log = size(&folder, "state.db-wal");
    assert!(log < 9 << 20, "{log} bytes");
}
