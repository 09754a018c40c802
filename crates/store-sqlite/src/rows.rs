//! How values stand in columns.

use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use talaria_model::{
    AccountId, Address, Chat, ChatId, ChatKind, MessageId, SenderId, ThreadId, Timestamp,
};
use talaria_session::SessionKey;
use talaria_store::{Doubt, Form, JournalState, Progress, Stage, StoreError};

/// A value as it is kept.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Damaged { reason: error.to_string() })
}

/// A column that holds a value as `encode` keeps it.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_slice(value.as_bytes()?).map(Json).map_err(FromSqlError::other)
    }
}

/// A column that counts or numbers.
pub(crate) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// Insists that a row says of itself what led to it.
pub(crate) fn insist(agrees: bool) -> rusqlite::Result<()> {
    if agrees { Ok(()) } else { Err(FromSqlError::other(Strayed).into()) }
}

#[derive(Debug, thiserror::Error)]
#[error("a row does not agree with what led to it")]
struct Strayed;

/// The parts of a key that may be missing: ids are never empty, so '' stands for none.
pub(crate) fn or_empty<T>(id: Option<&T>, text: impl Fn(&T) -> &str) -> &str {
    id.map_or("", text)
}

pub(crate) const fn journal_state(state: &JournalState) -> i64 {
    match state {
        JournalState::Unread => 0,
        JournalState::Taken => 1,
        JournalState::Bound(_) => 2,
        JournalState::Handled => 3,
        JournalState::Ignored(_) => 4,
        JournalState::Denied(_) => 5,
        JournalState::Quarantined(_) => 6,
    }
}

/// What a journal row remembers beside its state.
pub(crate) fn journal_detail(state: &JournalState) -> Result<Option<String>, StoreError> {
    match state {
        JournalState::Unread | JournalState::Taken | JournalState::Handled => Ok(None),
        JournalState::Bound(turn) => encode(turn).map(Some),
        JournalState::Ignored(reason)
        | JournalState::Denied(reason)
        | JournalState::Quarantined(reason) => Ok(Some(reason.clone())),
    }
}

/// What names a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    Journal,
    Outbox,
    Entry,
}

pub(crate) const fn holder_code(holder: Holder) -> i64 {
    match holder {
        Holder::Journal => 0,
        Holder::Outbox => 1,
        Holder::Entry => 2,
    }
}

pub(crate) const fn stage_code(stage: Stage) -> i64 {
    match stage {
        Stage::Previewing => 0,
        Stage::Waiting => 1,
        Stage::Leaving => 2,
        Stage::Delivered => 3,
        Stage::Undeliverable => 4,
        Stage::Abandoned => 5,
    }
}

pub(crate) const fn doubt_code(doubt: Doubt) -> i64 {
    match doubt {
        Doubt::None => 0,
        Doubt::Preview => 1,
        Doubt::Lasting => 2,
    }
}

/// Reads stage, doubt, plain, attempts, not_before and shown, beginning at a column.
pub(crate) fn progress(row: &Row<'_>, from: usize) -> rusqlite::Result<Progress> {
    let wrong = |column: usize, code: i64| rusqlite::Error::IntegralValueOutOfRange(column, code);
    let stage = match row.get(from)? {
        0 => Stage::Previewing,
        1 => Stage::Waiting,
        2 => Stage::Leaving,
        3 => Stage::Delivered,
        4 => Stage::Undeliverable,
        5 => Stage::Abandoned,
        code => return Err(wrong(from, code)),
    };
    let doubt = match row.get(from + 1)? {
        0 => Doubt::None,
        1 => Doubt::Preview,
        2 => Doubt::Lasting,
        code => return Err(wrong(from + 1, code)),
    };
    let plain: bool = row.get(from + 2)?;
    let shown: Option<String> = row.get(from + 5)?;
    Ok(Progress {
        stage,
        doubt,
        form: if plain { Form::Plain } else { Form::Formatted },
        attempts: row.get(from + 3)?,
        not_before: row.get::<_, Option<i64>>(from + 4)?.map(Timestamp::from_millis),
        shown: shown.map(|text| id(text, MessageId::new)).transpose()?,
        anew: row.get(from + 6)?,
    })
}

/// Reads account, kind, chat and thread, beginning at a column.
pub(crate) fn address(row: &Row<'_>, from: usize) -> rusqlite::Result<Address> {
    Ok(Address {
        account: id(row.get(from)?, AccountId::new)?,
        chat: Chat { id: id(row.get(from + 2)?, ChatId::new)?, kind: kind(row, from + 1)? },
        thread: maybe_id(row, from + 3, ThreadId::new)?,
    })
}

/// Reads account, kind, chat, thread, member and side, beginning at a column.
pub(crate) fn key(row: &Row<'_>, from: usize) -> rusqlite::Result<SessionKey> {
    let side: u32 = row.get(from + 5)?;
    Ok(SessionKey {
        account: id(row.get(from)?, AccountId::new)?,
        kind: kind(row, from + 1)?,
        chat: maybe_id(row, from + 2, ChatId::new)?,
        thread: maybe_id(row, from + 3, ThreadId::new)?,
        member: maybe_id(row, from + 4, SenderId::new)?,
        side: (side > 0).then_some(side),
    })
}

fn kind(row: &Row<'_>, column: usize) -> rusqlite::Result<ChatKind> {
    match row.get_ref(column)?.as_str()? {
        "dm" => Ok(ChatKind::Dm),
        "group" => Ok(ChatKind::Group),
        "channel" => Ok(ChatKind::Channel),
        "thread" => Ok(ChatKind::Thread),
        "forum" => Ok(ChatKind::Forum),
        _ => Err(rusqlite::Error::IntegralValueOutOfRange(column, 0)),
    }
}

fn maybe_id<T, E: std::error::Error + Send + Sync + 'static>(
    row: &Row<'_>,
    column: usize,
    new: impl Fn(String) -> Result<T, E>,
) -> rusqlite::Result<Option<T>> {
    let text: String = row.get(column)?;
    (!text.is_empty()).then(|| id(text, new)).transpose()
}

/// A key as it stands in columns.
pub(crate) struct KeyColumns<'a> {
    pub(crate) account: &'a str,
    pub(crate) chat: &'a str,
    pub(crate) thread: &'a str,
    pub(crate) kind: &'static str,
    pub(crate) member: &'a str,
    pub(crate) side: u32,
}

impl<'a> KeyColumns<'a> {
    pub(crate) fn of(key: &'a SessionKey) -> Self {
        Self {
            account: key.account.as_str(),
            chat: or_empty(key.chat.as_ref(), |id| id.as_str()),
            thread: or_empty(key.thread.as_ref(), |id| id.as_str()),
            kind: key.kind.as_str(),
            member: or_empty(key.member.as_ref(), |id| id.as_str()),
            side: key.side.unwrap_or(0),
        }
    }
}

pub(crate) fn id<T, E: std::error::Error + Send + Sync + 'static>(
    text: String,
    new: impl Fn(String) -> Result<T, E>,
) -> rusqlite::Result<T> {
    new(text).map_err(|error| FromSqlError::other(error).into())
}
