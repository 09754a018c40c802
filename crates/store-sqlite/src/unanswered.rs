//! What was not answered and is not in the journal: of each account the newest, in the order of their
//! numbers. Somebody asks for it now and then, so it is looked through and has no index.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};
use talaria_model::{AccountId, ChatId, EventId, MessageId, SenderId, Timestamp};
use talaria_store::{Clue, JournalState, StoreError, UNANSWERED, Unanswered, head};

use crate::read::count;
use crate::rows;
use crate::sql::{all, execute, one};
use crate::write;

/// How many are forgotten before other writes get their turn.
const FORGOTTEN_AT_ONCE: usize = 1000;

pub(crate) fn keep(conn: &Connection, rows: &[Unanswered]) -> Result<(), StoreError> {
    let mut last: BTreeMap<&AccountId, (i64, i64)> = BTreeMap::new();
    for row in rows {
        let (account, number) = match last.get(&row.account) {
            Some((account, number)) => (*account, number + 1),
            None => next(conn, &row.account)?,
        };
        last.insert(&row.account, (account, number));
        insert(conn, account, number, row)?;
    }
    for (account, number) in last.into_values() {
        let sql = "DELETE FROM unanswered WHERE account = ? AND number <= ?";
        execute(conn, sql, params![account, number - count(UNANSWERED)])?;
    }
    Ok(())
}

fn next(conn: &Connection, account: &AccountId) -> Result<(i64, i64), StoreError> {
    let account = write::account(conn, account)?;
    let sql = "SELECT COALESCE(MAX(number), 0) + 1 FROM unanswered WHERE account = ?";
    Ok((account, one(conn, sql, [account], |row| row.get(0))?))
}

fn insert(
    conn: &Connection,
    account: i64,
    number: i64,
    row: &Unanswered,
) -> Result<(), StoreError> {
    let (state, reason) = match &row.state {
        JournalState::Ignored(why) => (4, why.as_str()),
        JournalState::Denied(why) => (5, why.as_str()),
        // It has a row in the journal.
        _ => return Ok(()),
    };
    let sql =
        "INSERT INTO unanswered (account, number, at, state, reason, chat, sender, event, message)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let message = row.message.as_ref().map(MessageId::as_str);
    let (chat, sender, event) = (row.chat.as_str(), row.sender.as_str(), row.event.as_str());
    let at = row.at.as_millis();
    let row = params![account, number, at, state, reason, chat, sender, event, message];
    execute(conn, sql, row).map(drop)
}

pub(crate) fn of(
    conn: &Connection,
    clue: &Clue,
    limit: usize,
) -> Result<Vec<Unanswered>, StoreError> {
    match clue {
        Clue::Id(id) => {
            let sql = "SELECT a.name, u.at, u.state, u.reason, u.chat, u.sender, u.event, u.message
                 FROM unanswered u JOIN account a ON a.id = u.account
                 WHERE u.event = ?1 OR u.message = ?1 ORDER BY u.at DESC, u.number DESC LIMIT ?2";
            all(conn, sql, params![head(id), count(limit)], unanswered)
        }
        Clue::Chat { account, chat } => {
            let sql = "SELECT a.name, u.at, u.state, u.reason, u.chat, u.sender, u.event, u.message
                 FROM account a JOIN unanswered u ON u.account = a.id
                 WHERE a.name = ?1 AND u.chat = ?2 ORDER BY u.at DESC, u.number DESC LIMIT ?3";
            let place = params![account.as_str(), head(chat.as_str()), count(limit)];
            all(conn, sql, place, unanswered)
        }
    }
}

fn unanswered(row: &Row<'_>) -> rusqlite::Result<Unanswered> {
    let reason: String = row.get(3)?;
    let message: Option<String> = row.get(7)?;
    Ok(Unanswered {
        account: rows::id(row.get(0)?, AccountId::new)?,
        at: Timestamp::from_millis(row.get(1)?),
        state: match row.get(2)? {
            4 => JournalState::Ignored(reason),
            5 => JournalState::Denied(reason),
            code => return Err(rusqlite::Error::IntegralValueOutOfRange(2, code)),
        },
        chat: rows::id(row.get(4)?, ChatId::new)?,
        sender: rows::id(row.get(5)?, SenderId::new)?,
        event: rows::id(row.get(6)?, EventId::new)?,
        message: message.map(|id| rows::id(id, MessageId::new)).transpose()?,
    })
}

/// Forgets some of what is older; says how many, and none when there is nothing left of it.
pub(crate) fn forget(conn: &Connection, before: Timestamp) -> Result<usize, StoreError> {
    let sql = "DELETE FROM unanswered WHERE (account, number) IN (
             SELECT account, number FROM unanswered WHERE at < ? LIMIT ?)";
    execute(conn, sql, params![before.as_millis(), count(FORGOTTEN_AT_ONCE)])
}
