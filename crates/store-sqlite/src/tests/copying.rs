//! Copies that are taken while the store is in use.

use std::path::Path;

use rusqlite::Connection;
use talaria_store::{SearchScope, Store, Wanted};
use tempfile::TempDir;

use super::{key, recording, session};
use crate::open::OpenError;
use crate::{SqliteStore, copy, inspect, schema};

async fn entries(folder: &Path) -> u64 {
    let store = SqliteStore::open(folder).expect("opens");
    store.counts().await.expect("counts").entries
}

#[tokio::test]
async fn a_copy_is_as_one_moment_left_the_store_while_others_write() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    let session = session(&key("bot", "c"));
    for number in 1..=50 {
        store.commit(recording(&session, number, "before")).await.expect("commits");
    }
    let other = TempDir::new().expect("a folder");
    let taken = {
        let (from, to) = (folder.path().to_owned(), other.path().join("state.db"));
        tokio::task::spawn_blocking(move || copy(&from, &to))
    };
    for number in 51..=100 {
        store.commit(recording(&session, number, "meanwhile")).await.expect("commits");
    }
    assert_eq!(taken.await.expect("no panic").expect("copies"), schema());
    assert_eq!(inspect(&other.path().join("state.db")).expect("is sound"), schema());
    let copied = entries(other.path()).await;
    assert!((50..=100).contains(&copied), "{copied}");
    assert_eq!(store.counts().await.expect("counts").entries, 100);
    let opened = SqliteStore::open(other.path()).expect("opens");
    let wanted = Wanted::new(SearchScope::Conversation(session.key), "before", 100);
    assert_eq!(opened.search(&wanted).await.expect("searches").len(), 50);
}

#[test]
fn a_copy_of_a_later_version_and_another_programs_file_are_refused() {
    let folder = TempDir::new().expect("a folder");
    drop(SqliteStore::open(folder.path()).expect("opens"));
    let state = folder.path().join("state.db");
    let conn = Connection::open(&state).expect("opens");
    conn.pragma_update(None, "user_version", schema() + 1).expect("sets");
    drop(conn);
    assert!(matches!(inspect(&state), Err(OpenError::Newer { .. })));
    let to = folder.path().join("copy.db");
    assert!(matches!(copy(folder.path(), &to), Err(OpenError::Newer { .. })));
    let conn = Connection::open(&state).expect("opens");
    conn.pragma_update(None, "application_id", 7).expect("sets");
    drop(conn);
    assert!(matches!(inspect(&state), Err(OpenError::Foreign { .. })));
}
