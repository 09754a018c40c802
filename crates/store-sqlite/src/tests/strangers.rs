//! Who is never let in leaves rows in the journal, which are forgotten in time, and nothing else.

use rusqlite::Connection;
use talaria_session::SessionKey;
use talaria_store::{Delivered, JournalState, Store};
use tempfile::TempDir;

use super::{at, inbound, key};
use crate::SqliteStore;

fn rows(folder: &TempDir, table: &str) -> i64 {
    let conn = Connection::open(folder.path().join("state.db")).expect("opens");
    let sql = format!("SELECT count(*) FROM {table}");
    conn.query_row(&sql, [], |row| row.get(0)).expect("reads")
}

#[tokio::test]
async fn strangers_from_any_number_of_chats_share_one_row() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    for account in ["one", "two"] {
        let events = (0..500).map(|number| {
            let key = key(account, &format!("chat {number}"));
            let inbound = inbound(&key, &format!("event {number}"));
            (key, inbound, JournalState::Denied("no".into()))
        });
        let batch = Delivered {
            account: key(account, "c").account,
            events: events.collect(),
            cursor: None,
            at: at(1),
        };
        store.admit(batch).await.expect("admits");
    }
    assert_eq!((rows(&folder, "journal"), rows(&folder, "conversation")), (1000, 2));
    assert_eq!(rows(&folder, "address"), 2);
    assert_eq!(store.prune(at(2)).await, Ok(1000));
    assert_eq!(rows(&folder, "journal"), 0);
}

#[tokio::test]
async fn what_strangers_left_in_an_older_version_is_cleared_away() {
    let folder = TempDir::new().expect("a folder");
    let conn = Connection::open(folder.path().join("state.db")).expect("opens");
    conn.execute_batch(include_str!("../../migrations/1.sql")).expect("is SQL");
    conn.execute_batch(
        "PRAGMA application_id = 0x54414C41; PRAGMA user_version = 1;
         INSERT INTO account VALUES (1, 'one', NULL);
         INSERT INTO address VALUES (1, 1, 'dm', 'friend', ''), (2, 1, 'dm', 'stranger', '');
         INSERT INTO conversation VALUES (1, 1, ''), (2, 2, '');
         INSERT INTO journal VALUES (1, 1, 1, 0, 1, 'a', NULL, '{\"kind\":\"stopped\"}'),
             (2, 1, 2, 5, 1, 'b', 'no', '{\"kind\":{\"said\":{\"text\":\"x\"}}}');",
    )
    .expect("writes");
    conn.close().expect("closes");
    drop(SqliteStore::open(folder.path()).expect("opens"));
    let conn = Connection::open(folder.path().join("state.db")).expect("opens");
    let mut chats = conn.prepare("SELECT chat FROM address ORDER BY id").expect("is SQL");
    let chats = chats.query_map([], |row| row.get::<_, String>(0)).expect("reads");
    assert_eq!(chats.map(|chat| chat.expect("reads")).collect::<Vec<_>>(), ["friend", ""]);
}

#[tokio::test]
async fn files_that_an_older_version_wrote_down_are_known() {
    let folder = TempDir::new().expect("a folder");
    let conn = Connection::open(folder.path().join("state.db")).expect("opens");
    conn.execute_batch(include_str!("../../migrations/1.sql")).expect("is SQL");
    conn.execute_batch(
        "PRAGMA application_id = 0x54414C41; PRAGMA user_version = 1;
         INSERT INTO account VALUES (1, 'one', NULL);
         INSERT INTO address VALUES (1, 1, 'dm', 'c', '');
         INSERT INTO conversation VALUES (1, 1, '');
         INSERT INTO life VALUES (1, 's', 1);
         INSERT INTO journal VALUES
             (1, 1, 1, 0, 1, 'a', NULL, '{\"kind\":{\"said\":{\"files\":[{\"id\":\"heard\"}]}}}'),
             (2, 1, 1, 3, 1, 'b', NULL, '{\"kind\":{\"pressed\":\"yes\"}}'),
             (3, 1, 1, 3, 1, 'c', NULL, '{\"kind\":\"stopped\"}');
         INSERT INTO entry VALUES
             (1, 1, 1, '{\"number\":1,\"at\":1,\"body\":{\"said\":{\"files\":[{\"id\":\"said\"}]}}}'),
             (2, 1, 1, '{\"number\":1,\"at\":1,\"body\":{\"answered\":{\"files\":[{\"id\":\"answered\"}]}}}'),
             (3, 1, 1, '{\"number\":1,\"at\":1,\"body\":{\"returned\":{\"files\":[{\"id\":\"returned\"}]}}}'),
             (4, 1, 1, '{\"number\":1,\"at\":1,\"body\":{\"noticed\":{\"text\":\"x\"}}}');
         INSERT INTO session VALUES (1, 0, 1, '{}');
         INSERT INTO outbox (address, open, stage, doubt, plain, attempts, at, session, delivery,
                 part, act)
             VALUES (1, 1, 1, 0, 0, 0, 1, 's', 1, 0,
                 '{\"post\":{\"text\":\"\",\"files\":[{\"id\":\"sent\"}]}}');",
    )
    .expect("writes");
    conn.close().expect("closes");
    let store = SqliteStore::open(folder.path()).expect("opens");
    let files = ["heard", "sent", "said", "answered", "returned", "other"];
    let files = files.map(talaria_model::FileId::literal);
    use talaria_store::Use::{None, Past, Present};
    assert_eq!(store.uses(&files).await, Ok(vec![Present, Present, Past, Past, Past, None]));
}

#[tokio::test]
async fn strangers_are_apart_from_who_talks_in_a_chat_without_an_id() {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path()).expect("opens");
    let chat = key("sms", "any");
    let known = SessionKey { chat: None, ..chat.clone() };
    let events = vec![
        (known.clone(), inbound(&chat, "a friend"), JournalState::Unread),
        (known.clone(), inbound(&chat, "a stranger"), JournalState::Denied("no".into())),
    ];
    let batch = Delivered { account: chat.account.clone(), events, cursor: None, at: at(1) };
    store.admit(batch).await.expect("admits");
    assert_eq!(rows(&folder, "(SELECT DISTINCT conversation FROM journal)"), 2);
    assert_eq!(store.unread(&known, 10).await.map(|rows| rows.len()), Ok(1));
    assert_eq!(store.restless(None, 10).await, Ok(vec![known]));
}
