//! Files that were damaged while nobody was looking: bits that flipped, sectors that read as zeros,
//! files that were cut. The store says so or goes on without what is gone; it never shows one
//! conversation what belongs to another, and it never panics.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::path::Path;

use rusqlite::Connection;
use talaria_faultdisk::Dice;
use talaria_session::Session;
use talaria_store::{Commit, Reading, Rewind, SearchScope, Store, StoreError, Wanted};

use super::super::{address, at, key, recording, session, step};
use super::record::folder;
use super::script::{Scene, Script, ask_together, asked, canary, lives_of};
use super::{block_on, images};
use crate::{OpenError, SqliteStore};

type Files = BTreeMap<&'static str, Vec<u8>>;

fn files(folder: &Path) -> Files {
    let names = ["state.db", "state.db-wal", "search.db", "search.db-wal"];
    names.into_iter().filter_map(|name| Some((name, fs::read(folder.join(name)).ok()?))).collect()
}

/// The files of a store that was killed, and of one that was closed.
async fn sound() -> [Files; 2] {
    let folder = folder();
    let mut store = SqliteStore::open(folder.path()).expect("opens");
    for scene in Script::of(12, 5).scenes {
        match scene {
            Scene::Together(ops) => drop(ask_together(&store, &ops).await),
            Scene::CarryOver(_) => {}
            Scene::Restart => {
                drop(store);
                store = SqliteStore::open(folder.path()).expect("opens");
            }
        }
    }
    store.recover().await.expect("recovers");
    for key in asked().keys {
        let wanted = Wanted::new(SearchScope::Conversation(key), "canary", 10);
        store.search(&wanted).await.expect("searches");
    }
    let killed = files(folder.path());
    store.close().await.expect("closes");
    drop(store);
    [killed, files(folder.path())]
}

fn damage(bytes: &mut Vec<u8>, dice: &mut Dice) -> String {
    let at = dice.below(bytes.len());
    match dice.below(8) {
        0 => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
        1 => {
            let end = bytes.len().min(at / 512 * 512 + 512);
            bytes[at / 512 * 512..end].fill(0);
            format!("no sector at {at}")
        }
        2 => {
            let end = bytes.len().min(at + 16);
            bytes[at..end].iter_mut().for_each(|byte| *byte = dice.roll() as u8);
            format!("nonsense at {at}")
        }
        _ => {
            let bit = dice.below(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of {at}")
        }
    }
}

/// Asks for everything and insists that each conversation gets only its own.
async fn ask_everything(store: &SqliteStore) -> Result<(), String> {
    let asked = asked();
    let mut wrong = Vec::new();
    for mine in &asked.keys {
        let mut hear = |what: &str, answer: &dyn Debug| {
            let answer = format!("{answer:?}");
            if answer.contains(" stopped\"") {
                wrong.push(format!("{what}: {answer}"));
            }
            let foreign = asked.keys.iter().map(canary).filter(|foreign| *foreign != canary(mine));
            for foreign in foreign {
                if let Some(found) = answer.find(&foreign) {
                    let around: String = answer[found..].chars().take(60).collect();
                    wrong.push(format!("{what} of {mine} shows {around}"));
                }
            }
        };
        hear("session", &store.load(mine).await);
        hear("unread", &store.unread(mine, 100).await);
        hear("transcript", &store.transcript(mine, None, 1000).await);
        for life in &lives_of(mine) {
            hear("history", &store.history(life, 1000).await);
            hear("the end of history", &store.history(life, 2).await);
            for reading in [Reading::Standing, Reading::Everything] {
                hear("entries", &store.entries(life, reading, None, 1000).await);
            }
            hear("life", &store.life(life).await);
            hear("rewinds", &store.rewinds(life).await);
        }
        hear("parcels", &store.parcels(&address(mine), 1000).await);
        hear("untold", &store.untold(&address(mine)).await);
        let scope = SearchScope::Conversation(mine.clone());
        hear("lives", &store.lives(&scope, None, 100).await);
        hear("named", &store.named(&scope, "title", 100).await);
        hear("search", &store.search(&Wanted::new(scope, "canary", 100)).await);
    }
    for (what, answer) in [
        ("counts", format!("{:?}", store.counts().await)),
        ("restless", format!("{:?}", store.restless(None, 100).await)),
        ("undelivered", format!("{:?}", store.undelivered(None, 100).await)),
        ("conversations", format!("{:?}", store.conversations(None, 100).await)),
        ("failed", format!("{:?}", store.failed(100).await)),
        ("untold at", format!("{:?}", store.untold_at(None, 100).await)),
        ("files", format!("{:?}", store.uses(&asked.files).await)),
        ("totals", format!("{:?}", store.totals(&SearchScope::Everything, None).await)),
        ("active", format!("{:?}", store.active_since(at(0), None, 100).await)),
        ("quiet", format!("{:?}", store.quiet_since(at(i64::MAX), None, 100).await)),
        ("recover", format!("{:?}", store.recover().await)),
        ("close", format!("{:?}", store.close().await)),
    ] {
        if answer.contains(" stopped\"") {
            wrong.push(format!("{what}: {answer}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// What became of stores with damaged files.
#[derive(Debug, Default)]
struct Outcome {
    /// Refused when they were opened.
    refused: usize,
    /// Opened, and found damaged when they were checked.
    found: usize,
    /// Opened: the damage is in nothing that is used, or only in a text.
    survived: usize,
    wrong: Vec<String>,
}

impl Outcome {
    async fn add(&mut self, files: &Files, what: &str) {
        let folder = folder();
        for (name, bytes) in files {
            fs::write(folder.path().join(name), bytes).expect("writes");
        }
        let store = match SqliteStore::open(folder.path()) {
            Ok(store) => store,
            Err(error @ (OpenError::Damaged { .. } | OpenError::Newer { .. })) => {
                assert!(error.hint().contains("backup"), "{what}: {error}: {}", error.hint());
                self.refused += 1;
                return;
            }
            Err(error) => {
                self.wrong.push(format!("{what}: {error}"));
                return;
            }
        };
        match store.check().await {
            Err(StoreError::Damaged { .. }) => self.found += 1,
            Ok(()) => self.survived += 1,
            Err(error) => self.wrong.push(format!("{what}: {error}")),
        }
        if let Err(wrong) = ask_everything(&store).await {
            self.wrong.push(format!("{what}: {wrong}"));
        }
    }

    #[track_caller]
    fn expect_none_wrong(&self) {
        println!("{} refused, {} found, {} survived", self.refused, self.found, self.survived);
        assert!(self.wrong.is_empty(), "{:#?}", self.wrong);
        assert!(self.refused > 0 && self.survived > 0);
    }
}

fn flipped(files: &Files, at: usize, bit: usize) -> Files {
    let mut files = files.clone();
    files.get_mut("state.db").expect("is there")[at] ^= 1 << bit;
    files
}

#[test]
fn damage_is_said_or_survived_and_never_shows_another_conversation() {
    block_on(async {
        let sound = sound().await;
        let mut outcome = Outcome::default();
        for case in 0..images().map_or(200, |images| images / 5) {
            let mut dice = Dice::new(case as u64);
            let mut files = sound[case % 2].clone();
            let names: Vec<_> = files.keys().copied().collect();
            // The truth deserves most of it.
            let name = if dice.coin() { "state.db" } else { names[dice.below(names.len())] };
            let damaged = damage(files.get_mut(name).expect("is there"), &mut dice);
            if dice.coin() {
                let shared = (0..32_768 / 8).flat_map(|_| dice.roll().to_le_bytes()).collect();
                files.insert("state.db-shm", shared);
            }
            outcome.add(&files, &format!("case {case}: {name}: {damaged}")).await;
        }
        outcome.expect_none_wrong();
    });
}

#[test]
fn a_header_with_a_flipped_bit_is_not_taken_for_another_programs() {
    block_on(async {
        let sound = sound().await;
        let mut outcome = Outcome::default();
        for at in 0..100 {
            let bits = if images().is_some() { 0..8 } else { at % 8..at % 8 + 1 };
            for bit in bits {
                for files in &sound {
                    outcome.add(&flipped(files, at, bit), &format!("bit {bit} of {at}")).await;
                }
            }
        }
        outcome.expect_none_wrong();
    });
}

/// The pages that say whose everything is.
const KEYS: &str = "SELECT pageno FROM dbstat WHERE name IN ('account', 'address', 'person',
         'conversation', 'conversation_owner', 'life', 'life_conversation', 'session', 'rewind',
         'rewind_life', 'borrowed', 'borrowed_life', 'borrowed_source', 'entry_standing',
         'entry_rewound', 'entry_summary', 'journal_unread', 'outbox_open')
     OR name LIKE 'sqlite_autoindex_%' AND name NOT LIKE '%journal%' AND name NOT LIKE '%outbox%'";

/// Where those pages have something in them.
fn keys(state: &[u8]) -> Vec<usize> {
    let folder = folder();
    fs::write(folder.path().join("state.db"), state).expect("writes");
    let conn = Connection::open(folder.path().join("state.db")).expect("opens");
    let mut statement = conn.prepare(KEYS).expect("is SQL");
    let pages = statement.query_map([], |row| row.get::<_, u32>(0)).expect("reads");
    let bytes = pages.flat_map(|page| {
        let page = page.expect("reads") as usize;
        (page - 1) * 4096..page * 4096
    });
    bytes.filter(|at| state[*at] != 0).collect()
}

#[test]
fn a_flipped_bit_in_a_key_never_shows_another_conversation() {
    block_on(async {
        let [_, closed] = sound().await;
        let bytes = keys(&closed["state.db"]);
        let mut outcome = Outcome::default();
        let step = if images().is_some() { 1 } else { 151 };
        for flip in (0..bytes.len() * 8).step_by(step) {
            let (at, bit) = (bytes[flip / 8], flip % 8);
            outcome.add(&flipped(&closed, at, bit), &format!("bit {bit} of {at}")).await;
        }
        outcome.expect_none_wrong();
    });
}

/// Changes rows behind the back of the indexes of their table.
fn stray(file: &Path, table: &str, sql: &str) {
    let conn = Connection::open(file).expect("opens");
    let indexes = format!("FROM main.sqlite_schema WHERE type = 'index' AND tbl_name = '{table}'");
    conn.execute_batch(&format!(
        "PRAGMA writable_schema = on;
         CREATE TEMP TABLE hidden AS SELECT * {indexes};
         DELETE {indexes};
         PRAGMA writable_schema = reset;
         {sql};
         PRAGMA writable_schema = on;
         INSERT INTO main.sqlite_schema SELECT * FROM hidden;"
    ))
    .expect("writes");
    conn.close().expect("closes");
}

/// A store in which two conversations have said something; the second has taken something back.
async fn two(folder: &Path) -> [Session; 2] {
    let store = SqliteStore::open(folder).expect("opens");
    let sessions = [session(&key("one", "c")), session(&key("one", "d"))];
    for session in &sessions {
        let text = canary(&session.key);
        store.commit(recording(session, 1, &text)).await.expect("commits");
        store.commit(recording(session, 2, &text)).await.expect("commits");
    }
    let rewinds = vec![Rewind { session: sessions[1].id.clone(), from: 2, upto: 2, by: None }];
    store.commit(Commit { rewinds, ..step(&sessions[1]) }).await.expect("commits");
    store.close().await.expect("closes");
    drop(store);
    // An index that is made of the damaged truth proposes what that says. There may be none yet.
    drop(fs::remove_file(folder.join("search.db")));
    sessions
}

#[track_caller]
fn is_damage<T: Debug>(answer: Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::Damaged { .. })), "{answer:?}");
}

#[test]
fn an_entry_that_strayed_into_another_life_is_shown_to_nobody() {
    block_on(async {
        let folder = folder();
        let [own, other] = two(folder.path()).await;
        let sql = "UPDATE entry SET life = (SELECT max(id) FROM life) WHERE position = 1";
        stray(&folder.path().join("state.db"), "entry", sql);
        let store = SqliteStore::open(folder.path()).expect("opens");
        is_damage(store.check().await);
        is_damage(store.transcript(&own.key, None, 10).await);
        is_damage(store.history(&own.id, 10).await);
        for reading in [Reading::Standing, Reading::Everything] {
            is_damage(store.entries(&own.id, reading, None, 10).await);
            let entries = store.entries(&other.id, reading, None, 10).await;
            assert!(!format!("{entries:?}").contains(&canary(&own.key)), "{entries:?}");
        }
        for session in [&own, &other] {
            let scope = SearchScope::Conversation(session.key.clone());
            let found = store.search(&Wanted::new(scope, "canary", 10)).await.expect("searches");
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].recorded.session, session.id);
        }
    });
}

#[test]
fn what_was_taken_back_stays_so_while_row_and_index_disagree() {
    block_on(async {
        let folder = folder();
        let [_, other] = two(folder.path()).await;
        let sql = "UPDATE entry SET rewound = 0";
        stray(&folder.path().join("state.db"), "entry", sql);
        let store = SqliteStore::open(folder.path()).expect("opens");
        assert_eq!(store.history(&other.id, 10).await.map(|entries| entries.len()), Ok(1));
        let scope = SearchScope::Conversation(other.key.clone());
        let found = store.search(&Wanted::new(scope, "canary", 10)).await.expect("searches");
        assert_eq!(found.len(), 1, "{found:?}");
    });
}

#[test]
fn a_session_that_strayed_into_another_conversation_is_shown_to_nobody() {
    block_on(async {
        let folder = folder();
        let [own, other] = two(folder.path()).await;
        let sql = "UPDATE session SET session = (SELECT s.session FROM session s
             WHERE s.conversation = (SELECT min(conversation) FROM session))";
        stray(&folder.path().join("state.db"), "session", sql);
        let store = SqliteStore::open(folder.path()).expect("opens");
        assert_eq!(store.load(&own.key).await.map(|found| found.is_some()), Ok(true));
        is_damage(store.load(&other.key).await);
        is_damage(store.life(&other.id).await);
        is_damage(store.lives(&SearchScope::Everything, None, 10).await);
        let scope = SearchScope::Conversation(other.key.clone());
        is_damage(store.search(&Wanted::new(scope, "canary", 10)).await);
    });
}
