//! What is read, in SQL.
//!
//! Where an index says whose a row is, the row itself is asked too: a flipped bit in either must not
//! show a conversation what belongs to another. The index is read as a table of its own, so this costs
//! no more than reading the row.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};
use talaria_model::{
    AccountId, Address, Entry, FileId, Inbound, MessageId, Outbound, OutboundId, SenderId, Seq,
    SessionId, Timestamp,
};
use talaria_session::{Session, SessionKey};
use talaria_store::{
    Counts, Crossing, Failed, Parcel, ParcelState, Queue, Queues, Recorded, StoreError, Summary,
    Told, Untold, Use,
};

use crate::rows::{self, Json, KeyColumns, number, or_empty};
use crate::sql::{all, maybe, one};
use crate::write::seq_column;

type Read<T> = Result<T, StoreError>;

/// The rows of an address; the parameters `by_address` names.
macro_rules! address_is {
    () => {
        "a.name = ?1 AND d.chat = ?2 AND d.thread = ?3 AND d.kind = ?4"
    };
}

/// The rows of a conversation; the parameters `by_key` names.
macro_rules! key_is {
    () => {
        concat!(address_is!(), " AND c.member = ?5 AND c.side = ?6")
    };
}

/// The parameters that `key_is` names, and what follows them.
macro_rules! by_key {
    ($key:expr $(, $more:expr)*) => {{
        let KeyColumns { account, chat, thread, kind, member, side } = KeyColumns::of($key);
        (account, chat, thread, kind, member, side $(, $more)*)
    }};
}

/// Account, address and conversation, joined.
macro_rules! conversations {
    () => {
        "account a JOIN address d ON d.account = a.id JOIN conversation c ON c.address = d.id"
    };
}

pub(crate) fn cursor(conn: &Connection, account: &AccountId) -> Read<Option<String>> {
    let sql = "SELECT cursor FROM account WHERE name = ?";
    Ok(maybe(conn, sql, [account.as_str()], |row| row.get(0))?.flatten())
}

pub(crate) fn load(conn: &Connection, key: &SessionKey) -> Read<Option<Session>> {
    let sql = concat!(
        "SELECT s.session FROM ",
        conversations!(),
        " JOIN session s ON s.conversation = c.id WHERE ",
        key_is!()
    );
    maybe(conn, sql, by_key!(key), |row| {
        let Json(session): Json<Session> = row.get(0)?;
        rows::insist(session.key == *key)?;
        Ok(session)
    })
}

pub(crate) fn unread(
    conn: &Connection,
    key: &SessionKey,
    limit: usize,
) -> Read<Vec<(Seq, Inbound)>> {
    let sql = concat!(
        "SELECT j.seq, j.inbound, j.conversation = c.id AND j.state = 0 FROM ",
        conversations!(),
        " JOIN journal i INDEXED BY journal_unread ON i.conversation = c.id AND i.state = 0
         JOIN journal j ON j.seq = i.seq WHERE ",
        key_is!(),
        " ORDER BY i.seq LIMIT ?7"
    );
    all(conn, sql, by_key!(key, count(limit)), |row| {
        rows::insist(row.get(2)?)?;
        let Json(inbound) = row.get(1)?;
        Ok((Seq(number(row, 0)?), inbound))
    })
}

pub(crate) fn parcels(conn: &Connection, to: &Address, limit: usize) -> Read<Vec<Parcel>> {
    let sql = concat!(
        "SELECT o.stage, o.doubt, o.plain, o.attempts, o.not_before, o.shown, o.anew,
             o.session, o.delivery, o.part, o.act, o.at, o.address = d.id AND o.open = 1
         FROM account a JOIN address d ON d.account = a.id
             JOIN outbox i INDEXED BY outbox_open ON i.address = d.id AND i.open = 1
             JOIN outbox o ON o.id = i.id
         WHERE ",
        address_is!(),
        " ORDER BY i.id LIMIT ?5"
    );
    let [account, chat, thread, kind] = by_address(to);
    all(conn, sql, params![account, chat, thread, kind, count(limit)], |row| {
        rows::insist(row.get(12)?)?;
        let progress = rows::progress(row, 0)?;
        let Json(act) = row.get(10)?;
        Ok(Parcel {
            outbound: Outbound { id: outbound_id(row, 7)?, to: to.clone(), act },
            state: progress.state(),
            shown: progress.shown,
            attempts: progress.attempts,
            not_before: progress.not_before,
            anew: progress.anew,
            at: Timestamp::from_millis(row.get(11)?),
        })
    })
}

/// The message that shows a parcel which the platform has.
pub(crate) fn shown(conn: &Connection, id: &OutboundId) -> Read<Option<MessageId>> {
    let sql =
        "SELECT shown FROM outbox WHERE session = ? AND delivery = ? AND part = ? AND stage = 3";
    let shown = maybe(conn, sql, params![id.session.as_str(), id.delivery, id.part], |row| {
        let shown: Option<String> = row.get(0)?;
        shown.map(|shown| rows::id(shown, MessageId::new)).transpose()
    });
    Ok(shown?.flatten())
}

pub(crate) fn crossing(conn: &Connection, said: &OutboundId, row: Seq) -> Read<Crossing> {
    let sql = "SELECT
         (SELECT CASE WHEN min(stage = 3 AND settled IS NOT NULL) THEN max(settled) END
          FROM outbox WHERE session = ? AND delivery = ?),
         (SELECT at FROM journal WHERE seq = ?)";
    let moment = |row: &Row<'_>, column| {
        row.get::<_, Option<i64>>(column).map(|at| at.map(Timestamp::from_millis))
    };
    one(conn, sql, params![said.session.as_str(), said.delivery, seq_column(row)], |row| {
        Ok(Crossing { delivered: moment(row, 0)?, arrived: moment(row, 1)? })
    })
}

/// Reads session, delivery and part, beginning at a column.
fn outbound_id(row: &Row<'_>, from: usize) -> rusqlite::Result<OutboundId> {
    let session = rows::id(row.get(from)?, SessionId::new)?;
    Ok(OutboundId { session, delivery: row.get(from + 1)?, part: row.get(from + 2)? })
}

pub(crate) fn failed(conn: &Connection, limit: usize) -> Read<Vec<Failed>> {
    // The rows are chosen before they are read: the index knows nothing of their order.
    let sql = "SELECT o.stage, o.doubt, o.plain, o.attempts, o.not_before, o.shown, o.anew,
             o.session, o.delivery, o.part, o.act, o.at, o.reason, o.told,
             a.name, d.kind, d.chat, d.thread
         FROM (SELECT id FROM outbox INDEXED BY outbox_failed WHERE stage >= 4
               ORDER BY id DESC LIMIT ?) f
             JOIN outbox o ON o.id = f.id
             JOIN address d ON d.id = o.address JOIN account a ON a.id = d.account
         ORDER BY o.id DESC";
    all(conn, sql, [count(limit)], |row| {
        let Json(act) = row.get(10)?;
        let (id, to) = (outbound_id(row, 7)?, rows::address(row, 14)?);
        Ok(Failed {
            outbound: Outbound { id, to, act },
            state: rows::progress(row, 0)?.state(),
            reason: row.get::<_, Option<String>>(12)?.unwrap_or_default(),
            at: Timestamp::from_millis(row.get(11)?),
            told: if row.get(13)? { Told::Yes } else { Told::No },
        })
    })
}

pub(crate) fn untold(conn: &Connection, to: &Address) -> Read<Option<Untold>> {
    let sql = concat!(
        "SELECT o.session, o.delivery, o.part, o.reason, count(*) OVER ()
         FROM account a JOIN address d ON d.account = a.id
             JOIN outbox o INDEXED BY outbox_untold
                 ON o.address = d.id AND o.stage >= 4 AND o.told = 0
         WHERE ",
        address_is!(),
        " ORDER BY o.id DESC LIMIT 1"
    );
    maybe(conn, sql, by_address(to), |row| {
        Ok(Untold {
            last: outbound_id(row, 0)?,
            reason: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
            count: number(row, 4)?,
        })
    })
}

pub(crate) fn untold_at(
    conn: &Connection,
    after: Option<&Address>,
    limit: usize,
) -> Read<Vec<Address>> {
    let after = after.map_or(Ok(None), |to| address(conn, to))?.unwrap_or(0);
    let sql = "SELECT a.name, d.kind, d.chat, d.thread
         FROM (SELECT DISTINCT address FROM outbox INDEXED BY outbox_untold
               WHERE stage >= 4 AND told = 0 AND address > ?1 ORDER BY address LIMIT ?2) o
             JOIN address d ON d.id = o.address JOIN account a ON a.id = d.account
         ORDER BY d.id";
    all(conn, sql, params![after, count(limit)], |row| rows::address(row, 0))
}

pub(crate) fn denied(
    conn: &Connection,
    account: &AccountId,
    since: Timestamp,
    limit: usize,
) -> Read<Vec<Timestamp>> {
    let sql = "SELECT j.at FROM account a
             JOIN journal j INDEXED BY journal_refused ON j.state >= 5 AND j.account = a.id
         WHERE a.name = ?1 AND j.state = 5 AND j.at >= ?2 ORDER BY j.seq LIMIT ?3";
    let params = params![account.as_str(), since.as_millis(), count(limit)];
    all(conn, sql, params, |row| row.get(0).map(Timestamp::from_millis))
}

pub(crate) fn uses(conn: &Connection, files: &[FileId]) -> Read<Vec<Use>> {
    let sql = "SELECT coalesce(max(CASE u.holder
             WHEN 0 THEN (SELECT CASE WHEN j.state < 2 THEN 2 WHEN j.state = 5 THEN 0 ELSE 1 END
                          FROM journal j WHERE j.seq = u.row)
             WHEN 1 THEN (SELECT 1 + o.open FROM outbox o WHERE o.id = u.row)
             ELSE (SELECT CASE WHEN s.restless = 2 OR EXISTS (
                           SELECT 1 FROM borrowed b JOIN life k ON k.id = b.life
                               JOIN session t ON t.conversation = k.conversation AND t.life = k.id
                           WHERE b.source = e.life AND t.restless = 2
                               AND e.number BETWEEN b.\"from\" AND b.upto
                               AND e.position <= b.position
                               AND (e.rewound = 0 OR e.rewound > b.rewind))
                       THEN 2 ELSE 1 END
                   FROM entry e JOIN life l ON l.id = e.life
                       LEFT JOIN session s ON s.conversation = l.conversation
                   WHERE e.position = u.row)
         END), 0)
         FROM file_use u WHERE u.file = ?";
    let used = |file: &FileId| {
        one(conn, sql, [file.as_str()], |row| match row.get(0)? {
            0 => Ok(Use::None),
            1 => Ok(Use::Past),
            2 => Ok(Use::Present),
            code => Err(rusqlite::Error::IntegralValueOutOfRange(0, code)),
        })
    };
    files.iter().map(used).collect()
}

pub(crate) fn restless(
    conn: &Connection,
    after: Option<&SessionKey>,
    limit: usize,
) -> Read<Vec<SessionKey>> {
    let after = after.map_or(Ok(None), |key| conversation(conn, key))?.unwrap_or(0);
    let sql = "SELECT a.name, d.kind, d.chat, d.thread, c.member, c.side
         FROM (SELECT conversation FROM session INDEXED BY session_restless
                   WHERE restless > 0 AND conversation > ?1
               UNION SELECT conversation FROM journal INDEXED BY journal_unread
                   WHERE state = 0 AND conversation > ?1
               ORDER BY conversation LIMIT ?2) r
             JOIN conversation c ON c.id = r.conversation
             JOIN address d ON d.id = c.address JOIN account a ON a.id = d.account
         ORDER BY c.id";
    all(conn, sql, params![after, count(limit)], |row| rows::key(row, 0))
}

pub(crate) fn undelivered(
    conn: &Connection,
    after: Option<&Address>,
    limit: usize,
) -> Read<Vec<Address>> {
    let after = after.map_or(Ok(None), |to| address(conn, to))?.unwrap_or(0);
    let sql = "SELECT a.name, d.kind, d.chat, d.thread
         FROM (SELECT DISTINCT address FROM outbox WHERE open = 1 AND address > ?1
               ORDER BY address LIMIT ?2) o
             JOIN address d ON d.id = o.address JOIN account a ON a.id = d.account
         ORDER BY d.id";
    all(conn, sql, params![after, count(limit)], |row| rows::address(row, 0))
}

pub(crate) fn conversations(
    conn: &Connection,
    account: Option<&AccountId>,
    limit: usize,
) -> Read<Vec<Summary>> {
    // What is listed is chosen before it is read: the rows are large.
    let summary = |row: &Row<'_>| {
        let (Json(session), unread): (_, bool) = (row.get(0)?, row.get(1)?);
        let summary = Summary::of(&session);
        Ok(Summary { busy: summary.busy || unread, ..summary })
    };
    match account {
        None => {
            let sql = "SELECT s.session, EXISTS (
                     SELECT 1 FROM journal j WHERE j.conversation = s.conversation AND j.state = 0)
                 FROM (SELECT conversation FROM session
                       ORDER BY updated DESC, conversation DESC LIMIT ?) r
                     JOIN session s ON s.conversation = r.conversation
                 ORDER BY s.updated DESC, s.conversation DESC";
            all(conn, sql, [count(limit)], summary)
        }
        Some(account) => {
            let sql = concat!(
                "SELECT s.session, EXISTS (
                     SELECT 1 FROM journal j WHERE j.conversation = s.conversation AND j.state = 0)
                  FROM (SELECT s.conversation FROM ",
                conversations!(),
                " JOIN session s ON s.conversation = c.id WHERE a.name = ?
                  ORDER BY s.updated DESC, s.conversation DESC LIMIT ?) r
                     JOIN session s ON s.conversation = r.conversation
                 ORDER BY s.updated DESC, s.conversation DESC"
            );
            all(conn, sql, params![account.as_str(), count(limit)], summary)
        }
    }
}

pub(crate) fn transcript(
    conn: &Connection,
    key: &SessionKey,
    before: Option<u64>,
    limit: usize,
) -> Read<Vec<Recorded>> {
    // Which entries is found in the index alone; only those are read.
    let sql = concat!(
        "SELECT e.position, l.session, e.entry,
             e.life = r.life AND e.rewound = 0 AND l.conversation = r.conversation
         FROM (SELECT i.position, i.life, c.id AS conversation FROM ",
        conversations!(),
        " JOIN life l ON l.conversation = c.id
              JOIN entry i INDEXED BY entry_standing ON i.life = l.id AND i.rewound = 0 WHERE ",
        key_is!(),
        " AND i.position < ?7 ORDER BY i.position DESC LIMIT ?8) r
             JOIN entry e ON e.position = r.position JOIN life l ON l.id = e.life
         ORDER BY r.position DESC"
    );
    let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let mut entries = all(conn, sql, by_key!(key, before, count(limit)), |row| {
        rows::insist(row.get(3)?)?;
        recorded(row)
    })?;
    entries.reverse();
    Ok(entries)
}

/// Reads position, life and entry.
pub(crate) fn recorded(row: &Row<'_>) -> rusqlite::Result<Recorded> {
    let Json(entry) = row.get(2)?;
    let session = rows::id(row.get(1)?, SessionId::new)?;
    Ok(Recorded { position: number(row, 0)?, session, entry })
}

pub(crate) fn counts(conn: &Connection) -> Read<Counts> {
    let sql = "SELECT
         (SELECT count(*) FROM session),
         (SELECT count(*) FROM session WHERE restless > 0 AND restless = 2),
         (SELECT count(*) FROM journal WHERE state = 0),
         (SELECT count(*) FROM journal WHERE state >= 5 AND state = 6),
         (SELECT count(*) FROM journal WHERE state >= 5 AND state = 5),
         (SELECT count(*) FROM outbox WHERE open = 1),
         (SELECT count(*) FROM outbox WHERE stage >= 4),
         max(coalesce((SELECT max(position) FROM entry), 0),
             (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'last_position'))
             - (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'forgotten')";
    let counts = |row: &Row<'_>| {
        Ok(Counts {
            sessions: number(row, 0)?,
            turns_in_hand: number(row, 1)?,
            unread: number(row, 2)?,
            quarantined: number(row, 3)?,
            denied: number(row, 4)?,
            undelivered: number(row, 5)?,
            failed: number(row, 6)?,
            entries: number(row, 7)?,
        })
    };
    one(conn, sql, [], counts)
}

pub(crate) fn queues(conn: &Connection) -> Read<Queues> {
    let waits = |row: &Row<'_>, from: usize| {
        let oldest: Option<i64> = row.get(from + 1)?;
        let oldest = oldest.map(Timestamp::from_millis);
        Ok::<_, rusqlite::Error>(Queue { many: number(row, from)?, oldest })
    };
    let unread = "SELECT count(*), min(at) FROM journal INDEXED BY journal_unread WHERE state = 0";
    let unread = one(conn, unread, [], |row| waits(row, 0))?;
    // Whether something that was taken waits behind a turn is known to its session alone.
    let waiting = "SELECT count(*), min(j.at) FROM (
             SELECT DISTINCT conversation FROM journal INDEXED BY journal_taken WHERE state = 1) t
         CROSS JOIN session s ON s.conversation = t.conversation
         CROSS JOIN json_each(s.session, '$.waiting') w
         CROSS JOIN journal j ON j.seq = w.value ->> '$.seq'
             AND j.conversation = s.conversation AND j.state = 1";
    let waiting = one(conn, waiting, [], |row| waits(row, 0))?;
    let open = "SELECT stage, doubt, plain, max(attempts), max(not_before), max(shown), max(anew),
             count(*), min(at)
         FROM outbox INDEXED BY outbox_open WHERE open = 1 GROUP BY stage, doubt, plain";
    let mut outbox: BTreeMap<ParcelState, Queue> = BTreeMap::new();
    let read = |row: &Row<'_>| Ok((rows::progress(row, 0)?.state(), waits(row, 7)?));
    for (state, waiting) in all(conn, open, [], read)? {
        let queue = outbox.entry(state).or_default();
        *queue = queue.and(waiting);
    }
    Ok(Queues { unread, waiting, outbox })
}

/// The row of a conversation.
pub(crate) fn conversation(conn: &Connection, key: &SessionKey) -> Read<Option<i64>> {
    let sql = concat!("SELECT c.id FROM ", conversations!(), " WHERE ", key_is!());
    maybe(conn, sql, by_key!(key), |row| row.get(0))
}

/// The row of an account.
pub(crate) fn account(conn: &Connection, account: &AccountId) -> Read<Option<i64>> {
    maybe(conn, "SELECT id FROM account WHERE name = ?", [account.as_str()], |row| row.get(0))
}

fn address(conn: &Connection, to: &Address) -> Read<Option<i64>> {
    let sql = concat!(
        "SELECT d.id FROM account a JOIN address d ON d.account = a.id WHERE ",
        address_is!()
    );
    maybe(conn, sql, by_address(to), |row| row.get(0))
}

/// The row of a person.
pub(crate) fn person(
    conn: &Connection,
    account: &AccountId,
    person: &SenderId,
) -> Read<Option<i64>> {
    let sql = "SELECT p.id FROM account a JOIN person p ON p.account = a.id
         WHERE a.name = ? AND p.name = ?";
    maybe(conn, sql, [account.as_str(), person.as_str()], |row| row.get(0))
}

/// Where an entry belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Belongs {
    pub(crate) life: i64,
    pub(crate) conversation: i64,
    pub(crate) owner: Option<i64>,
    pub(crate) account: i64,
}

/// An entry with all that stands around it.
pub(crate) struct Placed {
    pub(crate) position: i64,
    pub(crate) belongs: Belongs,
    pub(crate) entry: Entry,
}

/// The entry at a position, unless it was taken back. `wanted` says whether it is worth reading.
pub(crate) fn entry_at(
    conn: &Connection,
    position: i64,
    wanted: impl FnOnce(&Belongs) -> bool,
) -> Read<Option<Placed>> {
    let sql = "SELECT e.position, e.life, l.conversation, c.owner, d.account, e.entry
         FROM entry e JOIN entry i INDEXED BY entry_standing
                 ON i.life = e.life AND i.position = e.position AND i.rewound = 0
             JOIN life l ON l.id = e.life
             JOIN conversation c ON c.id = l.conversation JOIN address d ON d.id = c.address
         WHERE e.position = ? AND e.rewound = 0";
    let placed =
        |row: &Row<'_>| if wanted(&belongs(row)?) { placed(row).map(Some) } else { Ok(None) };
    Ok(maybe(conn, sql, [position], placed)?.flatten())
}

/// Entries that follow a position, in order.
pub(crate) fn entries_after(conn: &Connection, position: i64, limit: usize) -> Read<Vec<Placed>> {
    let sql = "SELECT e.position, e.life, l.conversation, c.owner, d.account, e.entry
         FROM entry e JOIN life l ON l.id = e.life
             JOIN conversation c ON c.id = l.conversation JOIN address d ON d.id = c.address
         WHERE e.position > ? ORDER BY e.position LIMIT ?";
    all(conn, sql, params![position, count(limit)], placed)
}

fn placed(row: &Row<'_>) -> rusqlite::Result<Placed> {
    let Json(entry) = row.get(5)?;
    Ok(Placed { position: row.get(0)?, belongs: belongs(row)?, entry })
}

fn belongs(row: &Row<'_>) -> rusqlite::Result<Belongs> {
    Ok(Belongs {
        life: row.get(1)?,
        conversation: row.get(2)?,
        owner: row.get(3)?,
        account: row.get(4)?,
    })
}

/// The first position at which time has come so far.
pub(crate) fn position_at(conn: &Connection, at: Timestamp) -> Read<i64> {
    // Time passes as entries are recorded, so the place is found by halving.
    let next = "SELECT position, at FROM entry WHERE position >= ? ORDER BY position LIMIT 1";
    let (mut low, mut high) = (1, crate::past::newest(conn)? + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let found: Option<(i64, i64)> =
            maybe(conn, next, [middle], |row| Ok((row.get(0)?, row.get(1)?)))?;
        match found {
            Some((position, when)) if when < at.as_millis() => low = position + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}

/// What tells this store from every other.
pub(crate) fn epoch(conn: &Connection) -> Read<String> {
    let sql = "SELECT value FROM meta WHERE key = 'epoch'";
    one(conn, sql, [], |row| row.get(0))
}

fn by_address(to: &Address) -> [&str; 4] {
    let thread = or_empty(to.thread.as_ref(), |id| id.as_str());
    [to.account.as_str(), to.chat.id.as_str(), thread, to.chat.kind.as_str()]
}

pub(crate) fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
