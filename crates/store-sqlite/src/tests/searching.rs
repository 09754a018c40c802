//! An index that is damaged or gone is made anew, and everything is found again.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use talaria_model::AccountId;
use talaria_store::{Commit, MemoryStore, SearchScope, Store, Wanted};
use tempfile::TempDir;

use super::{entry, key, session, step};
use crate::SqliteStore;

const QUERIES: [&str; 6] = ["whale", "whale 12", "wha", "hale", "会议", "e 1"];

/// The same in both stores: several conversations, two accounts.
async fn fill(stores: [&dyn Store; 2], from: u32) {
    for chat in 0..6 {
        let account = if chat % 3 == 0 { "one" } else { "two" };
        let session = session(&key(account, &format!("chat {chat}")));
        let texts = (from..from + 20).map(|number| match (number + chat) % 4 {
            0 => (number, format!("The whale {number} sings")),
            1 => (number, format!("Narwhales, {number} of them")),
            2 => (number, format!("第{number}次会议")),
            _ => (number, format!("nothing to see, {number}")),
        });
        let entries = texts.map(|(number, text)| (session.id.clone(), entry(number, &text)));
        let commit = Commit { entries: entries.collect(), ..step(&session) };
        for store in stores {
            store.commit(commit.clone()).await.expect("commits");
        }
    }
}

async fn compare(sqlite: &dyn Store, memory: &dyn Store) {
    let accounts = ["one", "two"].map(AccountId::literal);
    for query in QUERIES {
        for scope in [
            SearchScope::Accounts(accounts.to_vec()),
            SearchScope::Accounts(accounts[..1].to_vec()),
            SearchScope::Everything,
            SearchScope::Conversation(key("two", "chat 2")),
        ] {
            let wanted = Wanted::new(scope, query, 500);
            assert_eq!(sqlite.search(&wanted).await, memory.search(&wanted).await, "{query}");
        }
    }
}

async fn after(damage: impl Fn(&Path)) {
    let folder = TempDir::new().expect("a folder");
    let memory = MemoryStore::new();
    let store = SqliteStore::open(folder.path()).expect("opens");
    fill([&store, &memory], 1).await;
    compare(&store, &memory).await;
    drop(store);
    damage(&folder.path().join("search.db"));
    let store = SqliteStore::open(folder.path()).expect("opens");
    compare(&store, &memory).await;
    fill([&store, &memory], 1000).await;
    compare(&store, &memory).await;
    drop(store);
    // It is not made anew again.
    let before = fs::metadata(folder.path().join("search.db")).and_then(|file| file.created());
    let store = SqliteStore::open(folder.path()).expect("opens");
    compare(&store, &memory).await;
    let after = fs::metadata(folder.path().join("search.db")).and_then(|file| file.created());
    assert_eq!(before.ok(), after.ok());
}

fn edit(index: &Path, sql: &str) {
    let conn = Connection::open(index).expect("opens");
    conn.execute_batch(sql).expect("writes");
}

#[tokio::test]
async fn an_index_that_is_sound_is_kept() {
    after(|_| {}).await;
}

#[tokio::test]
async fn a_deleted_index_is_built_anew() {
    after(|index| fs::remove_file(index).expect("deletes")).await;
}

#[tokio::test]
async fn an_index_cut_short_is_built_anew() {
    for part in [0, 1, 2, 4] {
        after(|index| {
            let file = fs::OpenOptions::new().write(true).open(index).expect("opens");
            let size = file.metadata().expect("reads").len();
            file.set_len(size * part / 5).expect("cuts");
        })
        .await;
    }
}

#[tokio::test]
async fn garbage_in_the_place_of_an_index_is_built_anew() {
    after(|index| fs::write(index, "garbage ".repeat(5000)).expect("writes")).await;
}

#[tokio::test]
async fn an_index_with_garbage_in_the_middle_is_built_anew() {
    after(|index| {
        let mut bytes = fs::read(index).expect("reads");
        for byte in bytes.iter_mut().skip(4096).step_by(7) {
            *byte ^= 0x5A;
        }
        fs::write(index, bytes).expect("writes");
    })
    .await;
}

#[tokio::test]
async fn an_index_of_another_store_is_built_anew() {
    after(|index| edit(index, "UPDATE meta SET epoch = 'another'")).await;
}

#[tokio::test]
async fn an_index_of_another_format_is_built_anew() {
    after(|index| edit(index, "UPDATE meta SET format = format - 1")).await;
    after(|index| edit(index, "DROP TABLE meta")).await;
    after(|index| edit(index, "DROP TABLE parts")).await;
    after(|index| edit(index, "DROP TABLE term")).await;
    after(|index| edit(index, "DROP TABLE words")).await;
}

#[tokio::test]
async fn an_index_ahead_of_its_store_is_built_anew() {
    after(|index| edit(index, "UPDATE meta SET position = position + 1000")).await;
}

#[tokio::test]
async fn an_index_behind_its_store_catches_up() {
    let folder = TempDir::new().expect("a folder");
    let kept = TempDir::new().expect("a folder");
    let memory = MemoryStore::new();
    let store = SqliteStore::open(folder.path()).expect("opens");
    fill([&store, &memory], 1).await;
    compare(&store, &memory).await;
    drop(store);
    fs::copy(folder.path().join("search.db"), kept.path().join("search.db")).expect("copies");
    let store = SqliteStore::open(folder.path()).expect("opens");
    fill([&store, &memory], 1000).await;
    compare(&store, &memory).await;
    drop(store);
    fs::copy(kept.path().join("search.db"), folder.path().join("search.db")).expect("copies");
    let store = SqliteStore::open(folder.path()).expect("opens");
    compare(&store, &memory).await;
}
