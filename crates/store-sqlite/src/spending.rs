//! What was spent in a day, and by whom.

use rusqlite::types::Type;
use rusqlite::{Connection, Row, params};
use talaria_model::{AccountId, ChatId, SenderId};
use talaria_session::budget::{Day, Payer, Spent};
use talaria_store::{Spending, StoreError};

use crate::read::count;
use crate::sql::{all, execute, maybe};

/// A payer as a row names it. Nobody is told from another by a joined text.
struct Columns<'a> {
    kind: i64,
    account: &'a str,
    payer: &'a str,
}

const PERSON: i64 = 0;
const SENDER: i64 = 1;
const CHAT: i64 = 2;

impl<'a> Columns<'a> {
    fn of(payer: &'a Payer) -> Self {
        match payer {
            Payer::Person(name) => Self { kind: PERSON, account: "", payer: name },
            Payer::Sender(account, sender) => {
                Self { kind: SENDER, account: account.as_str(), payer: sender.as_str() }
            }
            Payer::Chat(account, chat) => {
                Self { kind: CHAT, account: account.as_str(), payer: chat.as_str() }
            }
        }
    }
}

/// Adds to what was spent.
pub(crate) fn spend(conn: &Connection, spending: &Spending) -> Result<(), StoreError> {
    let Spending { day, payer, spent } = spending;
    let Columns { kind, account, payer } = Columns::of(payer);
    let sql = "INSERT INTO spending (day, kind, account, payer, messages, tokens, micros)
         VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (day, kind, account, payer) DO UPDATE SET
             messages = messages + excluded.messages, tokens = tokens + excluded.tokens,
             micros = micros + excluded.micros";
    let Spent { messages, tokens, micros } = *spent;
    let amounts = [messages, tokens, micros].map(amount);
    let [messages, tokens, micros] = amounts;
    execute(conn, sql, params![day.number(), kind, account, payer, messages, tokens, micros])
        .map(drop)
}

pub(crate) fn spent(conn: &Connection, day: Day, payer: &Payer) -> Result<Spent, StoreError> {
    let Columns { kind, account, payer } = Columns::of(payer);
    let sql = "SELECT messages, tokens, micros FROM spending
         WHERE day = ? AND kind = ? AND account = ? AND payer = ?";
    let found =
        maybe(conn, sql, params![day.number(), kind, account, payer], |row| amounts(row, 0))?;
    Ok(found.unwrap_or_default())
}

/// All of a day, in the order of `Payer`.
pub(crate) fn of_day(
    conn: &Connection,
    day: Day,
    limit: usize,
) -> Result<Vec<(Payer, Spent)>, StoreError> {
    let sql = "SELECT kind, account, payer, messages, tokens, micros FROM spending
         WHERE day = ? ORDER BY day, kind, account, payer LIMIT ?";
    all(conn, sql, params![day.number(), count(limit)], |row| Ok((payer(row)?, amounts(row, 3)?)))
}

/// Forgets the days before; says how many rows.
pub(crate) fn forget(conn: &Connection, before: Day) -> Result<u64, StoreError> {
    let forgotten = execute(conn, "DELETE FROM spending WHERE day < ?", [before.number()])?;
    Ok(forgotten as u64)
}

/// More than this nobody spends in a day; far from where a sum would overflow.
const MOST: u64 = 1 << 50;

fn amount(amount: u64) -> i64 {
    i64::try_from(amount.min(MOST)).unwrap_or(0)
}

fn amounts(row: &Row<'_>, from: usize) -> rusqlite::Result<Spent> {
    let amount = |place: usize| row.get(from + place).map(i64::unsigned_abs);
    Ok(Spent { messages: amount(0)?, tokens: amount(1)?, micros: amount(2)? })
}

fn payer(row: &Row<'_>) -> rusqlite::Result<Payer> {
    let damaged = |place: usize, error: Box<dyn std::error::Error + Send + Sync>| {
        rusqlite::Error::FromSqlConversionFailure(place, Type::Text, error)
    };
    let (kind, account, name): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
    if kind == PERSON {
        return Ok(Payer::Person(name));
    }
    let account = AccountId::new(account).map_err(|error| damaged(1, error.into()))?;
    match kind {
        SENDER => {
            let sender = SenderId::new(name).map_err(|error| damaged(2, error.into()))?;
            Ok(Payer::Sender(account, sender))
        }
        CHAT => {
            let chat = ChatId::new(name).map_err(|error| damaged(2, error.into()))?;
            Ok(Payer::Chat(account, chat))
        }
        _ => Err(damaged(0, "an unknown kind of payer".into())),
    }
}
