//! Copies that are taken while the store is in use.

use std::path::Path;

use rusqlite::Connection;
use talaria_session::Ended;
use talaria_store::{Commit, ParcelState, SearchScope, Store, Wanted};
use tempfile::TempDir;

use super::{address, at, key, post, recording, session};
use crate::open::OpenError;
use crate::{SqliteStore, copy, go_back_to, inspect, schema};

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

#[tokio::test]
async fn what_a_copy_had_to_deliver_is_unsure_when_it_is_gone_back_to() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    let session = session(&key("bot", "c"));
    let letter = post(&session.id, &address(&session.key), 1, 0);
    let commit = Commit { outbox: vec![letter.clone()], ..Commit::of(session, at(1)) };
    store.commit(commit).await.expect("commits");
    store.close().await.expect("closes");
    drop(store);
    go_back_to(&folder.path().join("state.db")).expect("gets ready");
    let store = SqliteStore::open(folder.path()).expect("opens");
    assert_eq!(store.recover().await.expect("recovers"), Ended::Abruptly);
    let parcels = store.parcels(&letter.to, 10).await.expect("reads");
    let states: Vec<ParcelState> = parcels.iter().map(|parcel| parcel.state).collect();
    assert_eq!(states, [ParcelState::Unsure]);
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
