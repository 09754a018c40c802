//! What the gateway's own database says, read after the gateway has ended.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use rusqlite::{Connection, OpenFlags};
use talaria_testkit::{Token, mentioned};

use super::check::Row;

/// Why the journal says a message was set aside whose turn died too often.
const DIED: &str = "the process died three times during its turn";

/// What there is to know.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) journal: HashMap<(String, String), Row>,
    /// The turn that each message became part of.
    pub(crate) turns: HashMap<(String, String), String>,
    /// The turn that each message became part of, as the transcript has it.
    pub(crate) spoken: HashMap<Token, String>,
    /// When each turn heard its first message.
    pub(crate) begun: HashMap<String, SystemTime>,
    /// What was given up, per account and chat.
    pub(crate) given_up: HashMap<(String, String), Vec<String>>,
    /// What is wrong with the database as such.
    pub(crate) complaints: Vec<String>,
}

/// How much has not been delivered yet, read beside a gateway that runs.
pub(crate) fn undelivered(home: &Path) -> Result<i64> {
    let conn =
        Connection::open_with_flags(home.join("state.db"), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    let count = "SELECT count(*) FROM outbox WHERE stage NOT IN (3, 5)";
    Ok(conn.query_row(count, [], |row| row.get(0))?)
}

/// Reads it.
pub(crate) fn read(home: &Path) -> Result<Record> {
    let path = home.join("state.db");
    let conn = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .with_context(|| format!("cannot open {}", path.display()))?;
    let mut record = Record::default();
    let mut complain = |what: &str, sql: &str, fine: &str| -> Result<()> {
        let found: Vec<String> = conn
            .prepare(sql)?
            .query_map([], |row| row.get::<_, String>(0))?
            .collect::<rusqlite::Result<_>>()?;
        let found = found.into_iter().filter(|found| found != fine);
        record.complaints.extend(found.map(|found| format!("{what}: {found}")));
        Ok(())
    };
    complain("the database is damaged", "PRAGMA integrity_check", "ok")?;
    complain("a reference leads nowhere", "PRAGMA foreign_key_check", "")?;
    complain(
        "a session has something to do",
        "SELECT session FROM session WHERE restless > 0",
        "",
    )?;
    complain(
        "something was not delivered",
        "SELECT session || ' ' || delivery || '.' || part || ' stage ' || stage || ' ' ||
             coalesce(reason, '') || ' ' || act FROM outbox WHERE stage NOT IN (3, 5)",
        "",
    )?;
    let mut given_up = conn.prepare(
        "SELECT a.name, d.chat, o.session || '/' || o.delivery || '.' || o.part || ' was given up: ' ||
             coalesce(o.reason, '') FROM outbox o JOIN address d ON d.id = o.address
             JOIN account a ON a.id = d.account WHERE o.stage = 5",
    )?;
    let given_up = given_up.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
    for row in given_up {
        let (place, what) = row?;
        record.given_up.entry(place).or_default().push(what);
    }
    let mut rows = conn.prepare(
        "SELECT a.name, j.event, j.state, j.detail FROM journal j
             JOIN account a ON a.id = j.account",
    )?;
    let rows = rows.query_map([], |row| {
        let (account, event): (String, String) = (row.get(0)?, row.get(1)?);
        let (state, detail): (i64, Option<String>) = (row.get(2)?, row.get(3)?);
        Ok((account, event, state, detail))
    })?;
    for row in rows {
        let (account, event, state, detail) = row?;
        let state = match state {
            2 => Row::Bound,
            3 => Row::Handled,
            4 => Row::Ignored,
            5 => Row::Denied,
            6 => Row::SetAside,
            _ => Row::Open,
        };
        match (state, detail) {
            (Row::Bound, Some(turn)) => {
                record.turns.insert((account.clone(), event.clone()), turn);
            }
            (Row::SetAside, why) if why.as_deref() != Some(DIED) => {
                let why = why.unwrap_or_default();
                record.complaints.push(format!("{account}: {event} was set aside: {why}"));
            }
            _ => {}
        }
        if record.journal.insert((account.clone(), event.clone()), state).is_some() {
            record.complaints.push(format!("{account}: {event} is in the journal twice"));
        }
    }
    read_transcript(&conn, &mut record)?;
    Ok(record)
}

fn read_transcript(conn: &Connection, record: &mut Record) -> Result<()> {
    let mut said = conn.prepare(
        "SELECT entry -> '$.turn', entry ->> '$.at', entry ->> '$.body.said.text' FROM entry
             WHERE entry ->> '$.turn' IS NOT NULL AND entry ->> '$.body.said.text' IS NOT NULL
             ORDER BY position",
    )?;
    let said = said.query_map([], |row| {
        let (turn, at): (String, i64) = (row.get(0)?, row.get(1)?);
        Ok((turn, at, row.get::<_, String>(2)?))
    })?;
    for row in said {
        let (turn, at, text) = row?;
        record
            .begun
            .entry(turn.clone())
            .or_insert(UNIX_EPOCH + Duration::from_millis(at.unsigned_abs()));
        record.spoken.extend(mentioned(&text).into_iter().map(|token| (token, turn.clone())));
    }
    Ok(())
}
