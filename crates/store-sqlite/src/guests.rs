//! Who was let in, and the record of it, in SQL.

use rusqlite::{Connection, Row, params};
use talaria_model::{AccountId, Seq, Timestamp};
use talaria_session::pairing::GuestBook;
use talaria_store::{AuditDeed, AuditRow, Audited, GuestChange, Guests, StoreError, Swap};

use crate::rows::{Json, encode, number};
use crate::sql::{all, execute, maybe};
use crate::write::{Letter, account, decide, seq_column};

pub(crate) fn deny(conn: &Connection, rows: &[Seq], reason: &str) -> Result<(), StoreError> {
    for seq in rows {
        let sql = "UPDATE journal SET state = 5, detail = ? WHERE seq = ? AND state = 0";
        execute(conn, sql, params![reason, seq_column(*seq)])?;
    }
    Ok(())
}

pub(crate) fn guests(conn: &Connection, account: &AccountId) -> Result<Guests, StoreError> {
    let sql = "SELECT g.revision, g.book FROM guests g JOIN account a ON a.id = g.account
         WHERE a.name = ?";
    let kept = maybe(conn, sql, [account.as_str()], |row| {
        let Json(book) = row.get::<_, Json<GuestBook>>(1)?;
        Ok(Guests { revision: number(row, 0)?, book })
    })?;
    Ok(kept.unwrap_or_default())
}

/// A change to a guest book, encoded.
pub(crate) struct Change {
    account: AccountId,
    read: u64,
    book: String,
    outbox: Vec<Letter>,
    audited: Vec<Audited>,
    at: Timestamp,
}

impl Change {
    pub(crate) fn of(change: GuestChange) -> Result<Self, StoreError> {
        let GuestChange { account, read, book, outbox, audited, at } = change;
        let outbox = outbox.iter().map(Letter::of).collect::<Result<_, _>>()?;
        Ok(Self { account, read, book: encode(&book)?, outbox, audited, at })
    }

    pub(crate) fn write(self, conn: &Connection) -> Result<Swap, StoreError> {
        let account = account(conn, &self.account)?;
        let sql = "SELECT revision FROM guests WHERE account = ?";
        let revision = maybe(conn, sql, [account], |row| number(row, 0))?.unwrap_or(0);
        if revision != self.read {
            return Ok(Swap::Stale);
        }
        let sql = "INSERT INTO guests (account, revision, book) VALUES (?1, 1, ?2)
             ON CONFLICT (account) DO UPDATE SET revision = revision + 1, book = ?2";
        execute(conn, sql, params![account, self.book])?;
        for letter in &self.outbox {
            decide(conn, letter, self.at)?;
        }
        audit(conn, self.at, self.audited)?;
        Ok(Swap::Done)
    }
}

pub(crate) fn audit(
    conn: &Connection,
    at: Timestamp,
    audited: Vec<Audited>,
) -> Result<(), StoreError> {
    let sql = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1";
    let mut last = maybe(conn, sql, [], |row| Ok((number(row, 0)?, row.get::<_, String>(1)?)))?;
    for audited in audited {
        let before = last.as_ref().map(|(seq, hash)| (*seq, hash.as_str()));
        let row = AuditRow::after(before, at, audited);
        record(conn, &row)?;
        last = Some((row.seq, row.hash));
    }
    Ok(())
}

/// Writes a row of the record as it is.
pub(crate) fn record(conn: &Connection, row: &AuditRow) -> Result<(), StoreError> {
    let AuditRow { seq, at, audited: Audited { actor, deed, subject, detail }, previous, hash } =
        row;
    execute(
        conn,
        "INSERT INTO audit (seq, at, actor, deed, subject, detail, previous, hash)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            i64::try_from(*seq).unwrap_or(i64::MAX),
            at.as_millis(),
            actor,
            deed.as_str(),
            subject,
            detail,
            previous,
            hash
        ],
    )
    .map(drop)
}

pub(crate) fn audited(
    conn: &Connection,
    after: u64,
    limit: usize,
) -> Result<Vec<AuditRow>, StoreError> {
    let sql = "SELECT seq, at, actor, deed, subject, detail, previous, hash FROM audit
         WHERE seq > ? ORDER BY seq LIMIT ?";
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    all(conn, sql, params![after, limit], audit_row)
}

/// The record between two moments, oldest first.
pub(crate) fn audited_between(
    conn: &Connection,
    from: Timestamp,
    upto: Timestamp,
) -> Result<Vec<AuditRow>, StoreError> {
    let sql = "SELECT seq, at, actor, deed, subject, detail, previous, hash FROM audit
         WHERE at BETWEEN ? AND ? ORDER BY seq";
    all(conn, sql, [from.as_millis(), upto.as_millis()], audit_row)
}

fn audit_row(row: &Row<'_>) -> rusqlite::Result<AuditRow> {
    let deed: String = row.get(3)?;
    let unknown = || rusqlite::Error::InvalidColumnName(deed.clone());
    Ok(AuditRow {
        seq: number(row, 0)?,
        at: Timestamp::from_millis(row.get(1)?),
        audited: Audited {
            actor: row.get(2)?,
            deed: AuditDeed::named(&deed).ok_or_else(unknown)?,
            subject: row.get(4)?,
            detail: row.get(5)?,
        },
        previous: row.get(6)?,
        hash: row.get(7)?,
    })
}
