//! A copy is made ready to be gone back to: what was open in it is closed, and what is stricter by now
//! stays so.
//!
//! Time has passed since a copy was taken. A code in it was used, somebody whom it lets in was put out, a
//! yes was taken back. What the store knows of that which the copy is to replace is therefore asked, if it
//! can be; where it cannot, that is said and recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::{Connection, params};
use serde::Serialize;
use talaria_model::{AccountId, Timestamp};
use talaria_session::Session;
use talaria_session::pairing::{GuestBook, Lapsed};
use talaria_store::{AuditDeed, Audited, StoreError, broken_at};

use crate::copy::look;
use crate::guests;
use crate::open::{OpenError, Purpose, open_state};
use crate::rows::{Json, encode, number};
use crate::sql::{all, execute, one, store_error};
use crate::write;

/// How many rows of the record are carried over at once.
const PAGE: usize = 500;

/// Who goes back, and to what.
#[derive(Debug, Clone, Copy)]
pub struct Going<'a> {
    /// Who.
    pub by: &'a str,
    /// When the copy was taken, as people read it.
    pub taken: &'a str,
    /// Whom the settings that come with the copy let in, and those that they replace do not.
    pub listed: &'a [String],
    /// When.
    pub at: Timestamp,
}

/// Whether it is known what happened since a copy was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Since {
    /// Yes: the store that the copy replaces is what became of it.
    Known,
    /// No, and why.
    Unknown(String),
}

/// What a copy did not bring with it. Whoever is named is named as `account:sender`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WentBack {
    /// Whether it is known what happened since.
    pub since: Since,
    /// Pairing codes and requests that are void.
    pub codes: usize,
    /// Approvals that were asked for, or given and not used, and have expired.
    pub approvals: usize,
    /// What was approved in a conversation, or for good, and is asked about again.
    pub asked_again: usize,
    /// Who was let in by the copy and is not, because they are not by now.
    pub put_out: Vec<String>,
    /// Who is let in by the copy although they may have been put out since.
    pub let_in: Vec<String>,
}

/// Makes a copy ready to take the place of `state.db` in a folder: whole, or with an error. It is brought to
/// the version that this program writes.
///
/// What it still had to deliver may have been delivered, and what was begun in it may have been done, as
/// after an abrupt end. No code, no request and no yes that is open in it counts. Where the present store
/// grew out of the same one, who is let in and what is approved for good has to be so by both, and its
/// record goes on behind the copy's. Where that is not known, people stay let in by the copy, and what was
/// approved for good is asked about again.
pub fn go_back_to(file: &Path, present: &Path, going: Going<'_>) -> Result<WentBack, OpenError> {
    let explain = |error: rusqlite::Error| OpenError::sqlite(file, &error);
    // What is not ours or is later must not be migrated.
    drop(look(file, Purpose::Read)?);
    let mut conn = open_state(file)?;
    let known = Present::of(&present.join("state.db"), &conn);
    let change = conn.transaction().map_err(explain)?;
    let went = write(&change, &known, going).map_err(|error| refused(file, error))?;
    change.commit().map_err(explain)?;
    // One file again, with nothing beside it.
    let mode: String = conn
        .pragma_update_and_check(None, "journal_mode", "delete", |row| row.get(0))
        .map_err(explain)?;
    conn.close().map_err(|(_, error)| explain(error))?;
    match mode.as_str() {
        "delete" => Ok(went),
        _ => Err(OpenError::InUse { path: file.to_owned() }),
    }
}

fn refused(file: &Path, error: StoreError) -> OpenError {
    let path = file.to_owned();
    match error {
        StoreError::Unavailable { reason } => OpenError::Unwritable { path, reason },
        StoreError::Damaged { reason } => OpenError::Damaged { path, reason },
    }
}

/// What the store that is replaced knows, if it can be asked.
type Known = Result<Present, String>;

/// What became of the store since the copy was taken.
struct Present {
    conn: Connection,
    books: BTreeMap<AccountId, GuestBook>,
    granted: BTreeSet<String>,
}

impl Present {
    /// Reads what counts before anything is changed, so that it is known whole or not at all.
    fn of(state: &Path, copy: &Connection) -> Known {
        if !state.exists() {
            return Err("there is no database here".into());
        }
        let (conn, _) = look(state, Purpose::Read).map_err(|error| error.to_string())?;
        let damaged = |error: StoreError| error.to_string();
        let epoch = |conn: &Connection| {
            let sql = "SELECT value FROM meta WHERE key = 'epoch'";
            one(conn, sql, [], |row| row.get::<_, String>(0))
        };
        if epoch(&conn).map_err(damaged)? != epoch(copy).map_err(damaged)? {
            return Err(format!("{} did not grow out of the same one", state.display()));
        }
        let books = books(&conn).map_err(damaged)?;
        let sql = "SELECT digest FROM approved";
        let granted = all(&conn, sql, [], |row| row.get(0)).map_err(damaged)?;
        Ok(Self { conn, books, granted: granted.into_iter().collect() })
    }
}

fn books(conn: &Connection) -> Result<BTreeMap<AccountId, GuestBook>, StoreError> {
    let sql = "SELECT a.name, g.book FROM guests g JOIN account a ON a.id = g.account";
    let rows = all(conn, sql, [], |row| {
        let Json(book) = row.get(1)?;
        Ok((row.get::<_, String>(0)?, book))
    })?;
    let known = |(name, book)| {
        let damaged = |_| StoreError::Damaged { reason: "a guest book is of no account".into() };
        Ok((AccountId::new(name).map_err(damaged)?, book))
    };
    rows.into_iter().map(known).collect()
}

fn write(conn: &Connection, known: &Known, going: Going<'_>) -> Result<WentBack, StoreError> {
    let doubtful = "UPDATE outbox SET doubt = 2 WHERE open = 1;
         UPDATE meta SET value = 'yes' WHERE key = 'alive'";
    conn.execute_batch(doubtful).map_err(store_error)?;
    let present = known.as_ref().ok();
    let mut went = WentBack {
        since: match known {
            Ok(_) => Since::Known,
            Err(why) => Since::Unknown(why.clone()),
        },
        codes: 0,
        approvals: 0,
        asked_again: 0,
        put_out: Vec::new(),
        let_in: Vec::new(),
    };
    close_books(conn, present, &mut went, going.at)?;
    lapse_sessions(conn, &mut went)?;
    lapse_grants(conn, present, &mut went)?;
    let record = match present {
        Some(present) => carry_record(conn, present)?,
        None => Record::Parted,
    };
    guests::audit(conn, going.at, recorded(&went, &record, going))?;
    Ok(went)
}

/// Closes what is open in every guest book, and puts out who is out by now.
fn close_books(
    conn: &Connection,
    present: Option<&Present>,
    went: &mut WentBack,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut old = books(conn)?;
    // A lock that is in force holds on an account that the copy does not know, too.
    for account in present.into_iter().flat_map(|present| present.books.keys()) {
        old.entry(account.clone()).or_default();
    }
    let nobody = GuestBook::default();
    for (account, mut book) in old {
        let by_now = present.map(|present| present.books.get(&account).unwrap_or(&nobody));
        let before = book.clone();
        let Lapsed { codes, put_out } = book.go_back(by_now, now);
        went.codes += codes;
        went.put_out.extend(put_out.iter().map(|sender| format!("{account}:{sender}")));
        if present.is_none() {
            went.let_in.extend(book.guests().map(|(sender, _)| format!("{account}:{sender}")));
        }
        if book != before {
            let sql = "INSERT INTO guests (account, revision, book) VALUES (?1, 1, ?2)
                 ON CONFLICT (account) DO UPDATE SET revision = revision + 1, book = ?2";
            execute(conn, sql, params![write::account(conn, &account)?, encode(&book)?])?;
        }
    }
    Ok(())
}

/// Takes back every yes that a session holds.
fn lapse_sessions(conn: &Connection, went: &mut WentBack) -> Result<(), StoreError> {
    let sql = "SELECT conversation FROM session
         WHERE restless > 0 OR instr(session, '\"approved_here\":[') > 0";
    let conversations = all(conn, sql, [], |row| row.get::<_, i64>(0))?;
    for conversation in conversations {
        let sql = "SELECT session FROM session WHERE conversation = ?";
        let text = one(conn, sql, [conversation], |row| row.get::<_, String>(0))?;
        // What cannot be read is not acted upon by a gateway either.
        let Ok(mut session) = serde_json::from_str::<Session>(&text) else { continue };
        let lapse = session.lapse();
        if lapse.approvals + lapse.here > 0 {
            let sql = "UPDATE session SET session = ? WHERE conversation = ?";
            execute(conn, sql, params![encode(&session)?, conversation])?;
        }
        went.approvals += lapse.approvals;
        went.asked_again += lapse.here;
    }
    Ok(())
}

/// Forgets what was approved for good, but for what still is.
fn lapse_grants(
    conn: &Connection,
    present: Option<&Present>,
    went: &mut WentBack,
) -> Result<(), StoreError> {
    for digest in all(conn, "SELECT digest FROM approved", [], |row| row.get::<_, String>(0))? {
        if !present.is_some_and(|present| present.granted.contains(&digest)) {
            went.asked_again += execute(conn, "DELETE FROM approved WHERE digest = ?", [digest])?;
        }
    }
    Ok(())
}

/// What became of what the present store recorded since.
enum Record {
    /// All of it stands behind what the copy recorded.
    Whole,
    /// Some of it does not follow, or cannot be read.
    Parted,
}

/// Puts what was recorded since behind what the copy recorded, so that nothing is taken out of the record by
/// going back.
fn carry_record(conn: &Connection, present: &Present) -> Result<Record, StoreError> {
    let end = |conn: &Connection| {
        let sql = "SELECT coalesce(max(seq), 0) FROM audit";
        one(conn, sql, [], |row| number(row, 0))
    };
    let row = |conn: &Connection, seq: u64| match seq {
        0 => Ok(None),
        seq => guests::audited(conn, seq - 1, 1).map(|mut rows| rows.pop()),
    };
    let old = end(conn)?;
    // What cannot be read of the present must not keep anybody from going back.
    let Ok(new) = end(&present.conn) else { return Ok(Record::Parted) };
    let common = old.min(new);
    if row(&present.conn, common).ok() != Some(row(conn, common)?) {
        return Ok(Record::Parted);
    }
    let mut before = row(conn, old)?;
    loop {
        let after = before.as_ref().map_or(0, |row| row.seq);
        match guests::audited(&present.conn, after, PAGE) {
            Ok(page) if page.is_empty() => return Ok(Record::Whole),
            Ok(page) if broken_at(before.as_ref(), &page).is_none() => {
                page.iter().try_for_each(|row| guests::record(conn, row))?;
                before = page.into_iter().next_back();
            }
            _ => return Ok(Record::Parted),
        }
    }
}

/// What the record says of it.
fn recorded(went: &WentBack, record: &Record, going: Going<'_>) -> Vec<Audited> {
    let row = |deed, subject: &str, detail: &str| Audited {
        actor: going.by.to_owned(),
        deed,
        subject: subject.to_owned(),
        detail: detail.to_owned(),
    };
    let WentBack { since, codes, approvals, asked_again, put_out, let_in } = went;
    let mut detail = format!(
        "void: pairing codes and requests ({codes}), open approvals ({approvals}), lasting approvals \
         ({asked_again}), every web login"
    );
    if let Since::Unknown(why) = since {
        detail.push_str("; what happened since is not known: ");
        detail.push_str(why);
    }
    if let (Since::Known, Record::Parted) = (since, record) {
        detail.push_str("; not all that was recorded since follows; it is in what was replaced");
    }
    let taken = format!("backup of {}", going.taken);
    let of = |deed, who: &'_ [String], detail: &'static str| -> Vec<Audited> {
        who.iter().map(|who| row(deed, who, detail)).collect()
    };
    let mut rows = vec![row(AuditDeed::WentBack, &taken, &detail)];
    rows.extend(of(AuditDeed::PutOut, put_out, "let in by the backup and not by then"));
    let unsure = "by the backup; whether they were put out since is not known";
    rows.extend(of(AuditDeed::LetIn, let_in, unsure));
    rows.extend(of(AuditDeed::LetIn, going.listed, "by a list in the backup's settings"));
    rows
}
