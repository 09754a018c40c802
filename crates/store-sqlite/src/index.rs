//! The index: `search.db`, which only ever proposes positions of entries. It holds no text, can be
//! deleted at any time, and is made anew from the truth when it is missing, damaged or another's.
//!
//! The words of an entry stand in one table, its trigrams in another. Which conversation and account
//! it belongs to stand there as words too: they begin with `_`, which no word of a text contains.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Params, params};
use talaria_store::{Query, fold, visible, words};

use crate::open::{Purpose, connect, create_private, quick_check};
use crate::read::Placed;

/// Another number makes every index be built anew.
const FORMAT: i64 = 1;

/// A larger index is checked only by using it.
const CHECKED_AT_ONCE: u64 = 64 << 20;

/// The rest of a longer query is left to whoever checks what is proposed.
const PARTS_AT_MOST: usize = 32;

/// How many characters the trigram table needs to propose anything.
const GRAM: usize = 3;

const SCHEMA: &str = "
    CREATE TABLE meta (format INTEGER NOT NULL, epoch TEXT NOT NULL, position INTEGER NOT NULL) STRICT;
    CREATE VIRTUAL TABLE words USING fts5 (text, place, content = '', detail = none, columnsize = 0,
        tokenize = \"ascii tokenchars '_'\");
    CREATE VIRTUAL TABLE grams USING fts5 (text, content = '', detail = none, columnsize = 0,
        tokenize = 'trigram case_sensitive 1');
";

/// Where to look, by rows of the truth.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Conversation(i64),
    Accounts(Vec<i64>),
}

impl Place {
    pub(crate) fn holds(&self, placed: &Placed) -> bool {
        match self {
            Self::Conversation(conversation) => placed.conversation == *conversation,
            Self::Accounts(accounts) => accounts.contains(&placed.account),
        }
    }

    fn expression(&self) -> String {
        match self {
            Self::Conversation(conversation) => format!("\"_c{conversation}\""),
            Self::Accounts(accounts) => {
                let accounts: Vec<_> =
                    accounts.iter().map(|account| format!("\"_a{account}\"")).collect();
                format!("({})", accounts.join(" OR "))
            }
        }
    }
}

/// Whether to go on with what is proposed next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    More,
    Enough,
}

/// An open index.
pub(crate) struct Index {
    conn: Connection,
    /// Everything up to here is in it.
    pub(crate) position: i64,
}

impl Index {
    /// The index in this file, if it is one, is sound, belongs to this truth and is not ahead of it.
    pub(crate) fn open(path: &Path, epoch: &str, newest: i64) -> rusqlite::Result<Option<Self>> {
        let size = match fs::metadata(path) {
            Ok(file) => file.len(),
            Err(_) => return Ok(None),
        };
        let conn = connect(path, Purpose::Write)?;
        settings(&conn)?;
        let sql = "SELECT position FROM meta WHERE format = ? AND epoch = ? AND position <= ?";
        let position = conn.query_row(sql, params![FORMAT, epoch, newest], |row| row.get(0));
        let Some(position) = position.optional()? else { return Ok(None) };
        if size <= CHECKED_AT_ONCE
            && let Some(reason) = quick_check(&conn)?
        {
            tracing::warn!(reason, "the search index is damaged");
            return Ok(None);
        }
        Ok(Some(Self { conn, position }))
    }

    /// An empty index in the place of whatever is there.
    pub(crate) fn create(path: &Path, epoch: &str) -> rusqlite::Result<Self> {
        remove(path).map_err(unusable)?;
        create_private(path).map_err(unusable)?;
        let conn = connect(path, Purpose::Write)?;
        settings(&conn)?;
        let creation = conn.unchecked_transaction()?;
        conn.execute_batch(SCHEMA)?;
        conn.execute("INSERT INTO meta VALUES (?, ?, 0)", params![FORMAT, epoch])?;
        creation.commit()?;
        Ok(Self { conn, position: 0 })
    }

    /// Adds entries that follow what is in it.
    pub(crate) fn add(&mut self, entries: &[Placed]) -> rusqlite::Result<()> {
        let Some(last) = entries.last() else { return Ok(()) };
        let position = last.recorded.position.cast_signed();
        let addition = self.conn.unchecked_transaction()?;
        {
            let mut into_words = self
                .conn
                .prepare_cached("INSERT INTO words (rowid, text, place) VALUES (?, ?, ?)")?;
            let mut into_grams =
                self.conn.prepare_cached("INSERT INTO grams (rowid, text) VALUES (?, ?)")?;
            for Placed { recorded, conversation, account } in entries {
                let text = visible(&recorded.entry.body).map(fold).unwrap_or_default();
                if text.is_empty() {
                    continue;
                }
                let position = recorded.position.cast_signed();
                let separate: Vec<&str> = words(&text).collect();
                let place = format!("_c{conversation} _a{account}");
                into_words.execute(params![position, separate.join(" "), place])?;
                into_grams.execute(params![position, text])?;
            }
            self.conn.prepare_cached("UPDATE meta SET position = ?")?.execute([position])?;
        }
        addition.commit()?;
        self.position = position;
        Ok(())
    }

    /// Proposes, newest first, every entry in a place that has all these words.
    pub(crate) fn propose_words<E: From<rusqlite::Error>>(
        &self,
        place: &Place,
        words: &[&str],
        take: impl FnMut(i64) -> Result<Next, E>,
    ) -> Result<(), E> {
        let sql = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC";
        self.propose(sql, [all_of(place, words)], take)
    }

    /// Proposes, newest first, every entry in a place that has all these words but the last, and
    /// one that begins so.
    pub(crate) fn propose_beginnings<E: From<rusqlite::Error>>(
        &self,
        place: &Place,
        words: &[&str],
        take: impl FnMut(i64) -> Result<Next, E>,
    ) -> Result<(), E> {
        let expression = match words.split_last() {
            Some((last, others)) => format!("{} AND \"{last}\" *", all_of(place, others)),
            None => all_of(place, words),
        };
        let sql = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC";
        self.propose(sql, [expression], take)
    }

    /// Whether it can propose entries by a part of their text.
    pub(crate) fn knows_parts_like(query: &Query) -> bool {
        query.folded().chars().count() >= GRAM
    }

    /// Proposes, newest first, every entry that may have the query somewhere in it. Those of one
    /// conversation are picked out here; among accounts the caller picks.
    pub(crate) fn propose_parts<E: From<rusqlite::Error>>(
        &self,
        place: &Place,
        query: &Query,
        take: impl FnMut(i64) -> Result<Next, E>,
    ) -> Result<(), E> {
        let characters: Vec<char> = query.folded().chars().collect();
        let grams: Vec<String> = characters
            .windows(GRAM)
            .take(PARTS_AT_MOST)
            .map(|gram| format!("\"{}\"", gram.iter().collect::<String>().replace('"', "\"\"")))
            .collect();
        let grams = grams.join(" AND ");
        match place {
            Place::Conversation(_) => {
                // The `+` keeps the table from being asked once for each entry of the conversation.
                let sql = "SELECT rowid FROM grams WHERE grams MATCH ?
                     AND +rowid IN (SELECT rowid FROM words WHERE words MATCH ?)
                     ORDER BY rowid DESC";
                self.propose(sql, [&grams, &place.expression()], take)
            }
            Place::Accounts(_) => {
                let sql = "SELECT rowid FROM grams WHERE grams MATCH ? ORDER BY rowid DESC";
                self.propose(sql, [&grams], take)
            }
        }
    }

    fn propose<E: From<rusqlite::Error>>(
        &self,
        sql: &str,
        expressions: impl Params,
        mut take: impl FnMut(i64) -> Result<Next, E>,
    ) -> Result<(), E> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query(expressions)?;
        while let Some(row) = rows.next()? {
            if take(row.get(0)?)? == Next::Enough {
                break;
            }
        }
        Ok(())
    }
}

/// Words are quoted, and none contains a quote: what is searched for cannot become an operator.
fn all_of(place: &Place, words: &[&str]) -> String {
    let mut expression = place.expression();
    for word in words.iter().take(PARTS_AT_MOST) {
        expression.push_str(&format!(" AND \"{word}\""));
    }
    expression
}

/// What is lost in a crash is indexed again, so a commit need not wait for the disk. Nobody else
/// opens the file, so its log needs no shared memory.
fn settings(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update(None, "locking_mode", "exclusive")?;
    conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0))?;
    conn.pragma_update(None, "synchronous", "normal")
}

fn remove(path: &Path) -> io::Result<()> {
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        match fs::remove_file(PathBuf::from(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}
