//! The index: `search.db`, which only ever proposes positions of entries. It can be deleted at any time,
//! and is made anew from the truth when it is missing, damaged or another's.
//!
//! The words of an entry stand in one table. To whom it belongs and who spoke stand there as words
//! too: they begin with `_`, which no word of a text contains. Every word there is stands once in
//! another table, and its trigrams in a third, so that a part of a word leads to the words that have
//! it: there are far fewer words than entries.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};
use talaria_store::{Part, Query, Spoken, fold, pairs, stands_alone, visible, words};

use crate::open::{Purpose, connect, create_private, quick_check};
use crate::read::{Belongs, Placed};

/// Another number makes every index be built anew.
const FORMAT: i64 = 2;

/// A larger index is checked only by using it.
const CHECKED_AT_ONCE: u64 = 64 << 20;

/// The rest of a longer query is left to whoever checks what is proposed.
const TERMS_AT_MOST: usize = 32;

/// How many characters the trigram table needs to propose anything.
const GRAM: usize = 3;

/// A part that more words have is no help.
const WORDS_AT_MOST: usize = 128;

/// How many words it remembers to have seen, so that most need not be looked for.
const SEEN_AT_MOST: usize = 1 << 16;

const SCHEMA: &str = "
    CREATE TABLE meta (format INTEGER NOT NULL, epoch TEXT NOT NULL, position INTEGER NOT NULL) STRICT;
    CREATE VIRTUAL TABLE words USING fts5 (text, place, content = '', contentless_delete = 1,
        detail = none, tokenize = \"ascii tokenchars '_'\");
    CREATE TABLE term (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
    CREATE VIRTUAL TABLE parts USING fts5 (text, content = '', detail = none, columnsize = 0,
        tokenize = 'trigram case_sensitive 1');
";

/// Where to look.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) whose: Whose,
    /// Only what was said in these ways; empty for any.
    pub(crate) spoken: Vec<Spoken>,
    /// Only what stands at these positions.
    pub(crate) positions: Range<i64>,
}

/// Whose entries, by rows of the truth.
#[derive(Debug, Clone)]
pub(crate) enum Whose {
    Everybodys,
    Accounts(Vec<i64>),
    /// A person's. Conversations that became theirs after something was recorded stand in the index as
    /// another's.
    Persons {
        person: i64,
        late: Vec<i64>,
    },
    Conversation(i64),
    /// Of a conversation that is nobody's alone.
    Shared(i64),
}

impl Place {
    pub(crate) fn holds(&self, belongs: &Belongs) -> bool {
        match &self.whose {
            Whose::Everybodys => true,
            Whose::Accounts(accounts) => accounts.contains(&belongs.account),
            Whose::Persons { person, .. } => belongs.owner == Some(*person),
            Whose::Conversation(conversation) => belongs.conversation == *conversation,
            Whose::Shared(conversation) => {
                belongs.conversation == *conversation && belongs.owner.is_none()
            }
        }
    }

    /// What every entry there has.
    fn expressions(&self) -> Vec<String> {
        let mut expressions = match &self.whose {
            Whose::Everybodys => Vec::new(),
            Whose::Accounts(accounts) => {
                vec![any_of(accounts.iter().map(|account| format!("_a{account}")))]
            }
            Whose::Persons { person, late } => {
                let late = late.iter().map(|conversation| format!("_c{conversation}"));
                vec![any_of(std::iter::once(format!("_p{person}")).chain(late))]
            }
            Whose::Conversation(conversation) | Whose::Shared(conversation) => {
                vec![any_of([format!("_c{conversation}")])]
            }
        };
        if !self.spoken.is_empty() {
            expressions.push(any_of(self.spoken.iter().map(|spoken| mark(*spoken).to_owned())));
        }
        expressions
    }

    fn all_of(&self, terms: impl IntoIterator<Item = String>) -> String {
        let mut expressions = self.expressions();
        expressions.extend(terms);
        if expressions.is_empty() {
            expressions.push(any_of([EVERY.to_owned()]));
        }
        expressions.join(" AND ")
    }
}

/// Every entry has this.
const EVERY: &str = "_e";

fn mark(spoken: Spoken) -> &'static str {
    match spoken {
        Spoken::Said => "_ks",
        Spoken::Aside => "_ka",
        Spoken::Answered => "_kr",
        Spoken::Noticed => "_kn",
    }
}

/// Words are quoted, and none contains a quote: what is searched for cannot become an operator.
fn any_of(words: impl IntoIterator<Item = String>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("\"{word}\"")).collect();
    if quoted.len() == 1 { quoted.concat() } else { format!("({})", quoted.join(" OR ")) }
}

/// What every text has that has these words: where characters are words and follow each other, in
/// pairs.
fn terms(folded: &str) -> Vec<String> {
    let in_pairs: HashSet<char> = pairs(folded).flat_map(str::chars).collect();
    let lonely = |word: &&str| {
        !(stands_alone(word) && word.chars().all(|character| in_pairs.contains(&character)))
    };
    let all = words(folded).filter(lonely).chain(pairs(folded));
    all.take(TERMS_AT_MOST).map(|word| any_of([word.to_owned()])).collect()
}

/// Whether to go on with what is proposed next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    More,
    Enough,
}

/// Whether the index could help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Help {
    /// It proposed all there is.
    All,
    /// Nearly every entry would have to be proposed.
    None,
}

/// An open index.
pub(crate) struct Index {
    conn: Connection,
    /// Everything up to here is in it.
    pub(crate) position: i64,
    /// Words that are in it.
    seen: HashSet<Box<str>>,
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
        Ok(Some(Self { conn, position, seen: HashSet::new() }))
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
        Ok(Self { conn, position: 0, seen: HashSet::new() })
    }

    /// Adds entries that follow what is in it.
    pub(crate) fn add(&mut self, entries: &[Placed]) -> rusqlite::Result<()> {
        let Some(last) = entries.last() else { return Ok(()) };
        let mut seen = std::mem::take(&mut self.seen);
        let addition = self.conn.unchecked_transaction()?;
        for placed in entries {
            self.add_one(placed, &mut seen)?;
        }
        self.conn.prepare_cached("UPDATE meta SET position = ?")?.execute([last.position])?;
        addition.commit()?;
        // Only here: what was not committed has not been seen.
        (self.position, self.seen) = (last.position, seen);
        Ok(())
    }

    fn add_one(&self, placed: &Placed, seen: &mut HashSet<Box<str>>) -> rusqlite::Result<()> {
        let Placed { position, belongs, entry } = placed;
        let text = visible(&entry.body).map(fold).unwrap_or_default();
        let Some(spoken) = Spoken::of(&entry.body).filter(|_| !text.is_empty()) else {
            return Ok(());
        };
        for word in words(&text).filter(|word| !stands_alone(word)) {
            self.learn(word, seen)?;
        }
        let separate: Vec<&str> = words(&text).chain(pairs(&text)).collect();
        let Belongs { conversation, account, owner, .. } = belongs;
        let mut place = format!("{EVERY} {} _c{conversation} _a{account}", mark(spoken));
        if let Some(owner) = owner {
            place.push_str(&format!(" _p{owner}"));
        }
        let sql = "INSERT INTO words (rowid, text, place) VALUES (?, ?, ?)";
        let mut into_words = self.conn.prepare_cached(sql)?;
        into_words.execute(params![position, separate.join(" "), place]).map(drop)
    }

    /// Adds a word that is not there yet.
    fn learn(&self, word: &str, seen: &mut HashSet<Box<str>>) -> rusqlite::Result<()> {
        if seen.contains(word) {
            return Ok(());
        }
        if seen.len() >= SEEN_AT_MOST {
            seen.clear();
        }
        seen.insert(word.into());
        let sql = "INSERT INTO term (text) VALUES (?) ON CONFLICT DO NOTHING";
        if self.conn.prepare_cached(sql)?.execute([word])? == 1 {
            let id = self.conn.last_insert_rowid();
            let sql = "INSERT INTO parts (rowid, text) VALUES (?, ?)";
            self.conn.prepare_cached(sql)?.execute(params![id, word])?;
        }
        Ok(())
    }

    /// Removes entries that are gone.
    pub(crate) fn remove(&mut self, positions: &[i64]) -> rusqlite::Result<()> {
        let removal = self.conn.unchecked_transaction()?;
        for position in positions {
            let sql = "DELETE FROM words WHERE rowid = ?";
            self.conn.prepare_cached(sql)?.execute([position])?;
        }
        removal.commit()
    }

    /// Whether there are at most so many entries in a place.
    pub(crate) fn is_small(&self, place: &Place, many: usize) -> rusqlite::Result<bool> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ?
             AND rowid >= ? AND rowid < ? LIMIT ?)";
        let limit = i64::try_from(many).unwrap_or(i64::MAX - 1) + 1;
        let Range { start, end } = place.positions;
        let params = params![place.all_of([]), start, end, limit];
        let found: i64 = self.conn.prepare_cached(sql)?.query_row(params, |row| row.get(0))?;
        Ok(found < limit)
    }

    /// Proposes, newest first, every entry in a place that has all words of a query.
    pub(crate) fn propose_words<E: From<rusqlite::Error>>(
        &self,
        place: &Place,
        query: &Query,
        take: impl FnMut(i64) -> Result<Next, E>,
    ) -> Result<(), E> {
        self.propose(place, terms(query.folded()), take)
    }

    /// Proposes, newest first, every entry in a place that has all words of a query but the last, and
    /// one that begins so.
    pub(crate) fn propose_beginnings<E: From<rusqlite::Error>>(
        &self,
        place: &Place,
        query: &Query,
        take: impl FnMut(i64) -> Result<Next, E>,
    ) -> Result<(), E> {
        let Some(last) = words(query.folded()).last() else { return Ok(()) };
        let others = query.folded().strip_suffix(last).unwrap_or_default();
        let mut terms = terms(others);
        terms.push(format!("\"{last}\" *"));
        self.propose(place, terms, take)
    }

    /// Proposes, newest first, every entry in a place.
    pub(crate) fn propose_all<E: From<rusqlite::Error>>(
        &self,
        place: &Place,
        take: impl FnMut(i64) -> Result<Next, E>,
    ) -> Result<(), E> {
        self.propose(place, [], take)
    }

    /// Proposes, newest first, every entry in a place that may have the query somewhere in it.
    pub(crate) fn propose_parts<E: From<rusqlite::Error>>(
        &self,
        place: &Place,
        query: &Query,
        take: impl FnMut(i64) -> Result<Next, E>,
    ) -> Result<Help, E> {
        let mut terms: Vec<String> =
            pairs(query.folded()).map(|pair| any_of([pair.to_owned()])).collect();
        for part in query.parts() {
            match self.words_like(part)? {
                Some(like) if like.is_empty() => return Ok(Help::All),
                Some(like) => terms.push(any_of(like)),
                None => {}
            }
        }
        if terms.is_empty() {
            return Ok(Help::None);
        }
        terms.truncate(TERMS_AT_MOST);
        self.propose(place, terms, take)?;
        Ok(Help::All)
    }

    /// The words that are like this; none when there are too many.
    fn words_like(&self, part: Part<'_>) -> rusqlite::Result<Option<Vec<String>>> {
        let (sql, parameters) = match part {
            Part::Whole(word) => return Ok(Some(vec![word.to_owned()])),
            Part::Beginning(word) => {
                let sql = "SELECT text FROM term WHERE text >= ? AND text < ? ORDER BY text";
                (sql, vec![word.to_owned(), format!("{word}\u{10FFFF}")])
            }
            Part::End(word) | Part::Within(word) => {
                let characters: Vec<char> = word.chars().collect();
                let grams: Vec<String> = characters
                    .windows(GRAM)
                    .take(TERMS_AT_MOST)
                    .map(|gram| any_of([gram.iter().collect()]))
                    .collect();
                if grams.is_empty() {
                    return Ok(None);
                }
                let sql = "SELECT term.text FROM parts JOIN term ON term.id = parts.rowid
                     WHERE parts MATCH ?";
                (sql, vec![grams.join(" AND ")])
            }
        };
        let mut like = Vec::new();
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(parameters))?;
        while let Some(row) = rows.next()? {
            let word: String = row.get(0)?;
            if part.fits(&word) {
                like.push(word);
            }
            if like.len() > WORDS_AT_MOST {
                return Ok(None);
            }
        }
        Ok(Some(like))
    }

    fn propose<E: From<rusqlite::Error>>(
        &self,
        place: &Place,
        terms: impl IntoIterator<Item = String>,
        mut take: impl FnMut(i64) -> Result<Next, E>,
    ) -> Result<(), E> {
        let sql = "SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ? AND rowid < ?
             ORDER BY rowid DESC";
        let mut statement = self.conn.prepare_cached(sql)?;
        let Range { start, end } = place.positions;
        let mut rows = statement.query(params![place.all_of(terms), start, end])?;
        while let Some(row) = rows.next()? {
            if take(row.get(0)?)? == Next::Enough {
                break;
            }
        }
        Ok(())
    }
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
