//! What is forgotten leaves the files, a piece at a time, whatever else is written meanwhile.

use futures::future::join_all;
use talaria_store::{Commit, SearchScope, Store, Wanted};
use tempfile::TempDir;

use super::{at, entry, key, recording, session, step};
use crate::SqliteStore;

async fn with_entries(store: &SqliteStore, many: u32) -> talaria_session::Session {
    let session = session(&key("bot", "c"));
    let text = "a canary among many words that take room on the disk ".repeat(20);
    let entries = (1..=many).map(|number| (session.id.clone(), entry(number, &text)));
    let commit = Commit { entries: entries.collect(), ..step(&session) };
    store.commit(commit).await.expect("commits");
    session
}

#[tokio::test]
async fn a_long_life_is_forgotten_whole() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    let session = with_entries(&store, 1_000).await;
    let wanted = Wanted::new(SearchScope::Everything, "canary", 10);
    assert_eq!(store.search(&wanted).await.map(|found| found.len()), Ok(10));
    let writes = (1..=50).map(|number| {
        let mut other = super::session(&key("bot", "other"));
        other.active = at(100);
        let commit = recording(&other, number, "meanwhile");
        store.commit(commit)
    });
    let (forgotten, written) = tokio::join!(store.forget_lives(at(50), &[]), join_all(writes));
    assert_eq!(forgotten, Ok(1));
    assert!(written.iter().all(Result::is_ok));
    assert_eq!(store.life(&session.id).await, Ok(None));
    assert_eq!(store.search(&wanted).await, Ok(Vec::new()));
    assert_eq!(store.counts().await.map(|counts| counts.entries), Ok(50));
    assert_eq!(store.check().await, Ok(()));
}

#[tokio::test]
async fn the_file_gets_smaller() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    with_entries(&store, 1_000).await;
    assert_eq!(store.forget_entries(at(50)).await, Ok(1_000));
    let size = || folder.path().join("state.db").metadata().expect("is there").len();
    store.close().await.expect("closes");
    let before = size();
    let given_back = store.shrink().await.expect("shrinks");
    assert_eq!(store.shrink().await, Ok(0));
    store.close().await.expect("closes");
    assert!(given_back > before / 2, "{given_back} of {before}");
    assert_eq!(size(), before - given_back);
    assert_eq!(store.check().await, Ok(()));
}

#[tokio::test]
async fn a_database_that_could_not_shrink_can() {
    let folder = TempDir::new().expect("a folder");
    let conn = rusqlite::Connection::open(folder.path().join("state.db")).expect("opens");
    conn.execute_batch(include_str!("../../recorded/v1.sql")).expect("is SQL");
    conn.close().expect("closes");
    let store = SqliteStore::open(folder.path()).expect("opens");
    assert_eq!(store.forget_entries(at(i64::MAX)).await, Ok(3));
    store.shrink().await.expect("shrinks");
    assert_eq!(store.check().await, Ok(()));
}
