//! What is read of lives: what was said in them, what is kept of them, whose they are.
//!
//! As in `read`, an entry that an index leads to is asked itself whose it is.

use rusqlite::{Connection, Params, Row, params};
use serde::Deserialize;
use talaria_model::{Cost, Entry, SenderId, SessionId, Timestamp, Usage};
use talaria_session::{Past, Session, SessionKey};
use talaria_store::{
    Fit, History, Kept, Life, Name, Named, Owner, Presence, Reading, Recorded, Rewound,
    SearchScope, StoreError, Totals, Walk, remembered,
};

use crate::past;
use crate::read::{self, count};
use crate::rows::{self, Json};
use crate::sql::{all, maybe, one, store_error};

type Read<T> = Result<T, StoreError>;

/// Lives with their conversation, its owner, and the session of those that are present.
const FROM: &str = "FROM life l JOIN conversation c ON c.id = l.conversation
         JOIN address d ON d.id = c.address JOIN account a ON a.id = d.account
         LEFT JOIN person p ON p.id = c.owner
         LEFT JOIN session s ON s.conversation = l.conversation AND s.life = l.id";

/// What `known` reads.
const KNOWN: &str = "l.id, l.session, l.source, l.past, s.session, p.name,
         a.name, d.kind, d.chat, d.thread, c.member, c.side";

/// When something was said in a life last. A life that gave way without a word has only its entries.
pub(crate) const ACTIVE: &str =
    "CASE WHEN s.life IS NOT NULL THEN s.active WHEN l.past IS NOT NULL THEN l.active
         ELSE max(0, coalesce((SELECT max(at) FROM entry WHERE life = l.id AND rewound = 0), 0),
             coalesce((SELECT max(at) FROM entry WHERE life = l.id AND rewound > 0), 0)) END";

/// The row of a life.
fn row_of(conn: &Connection, life: &SessionId) -> Read<Option<i64>> {
    maybe(conn, "SELECT id FROM life WHERE session = ?", [life.as_str()], |row| row.get(0))
}

/// An entry that a branch has in common with another life.
struct Lent {
    position: i64,
    /// That life.
    life: i64,
}

/// What a branch has in common with other lives, oldest first. All of it stands before its own entries.
fn borrowed(conn: &Connection, life: i64) -> Read<Vec<Lent>> {
    let sql = "SELECT e.position, b.source FROM borrowed b JOIN entry e ON e.life = b.source
             AND e.rewound = 0
             AND e.number BETWEEN b.\"from\" AND b.upto AND e.position <= b.position
         WHERE b.life = ?1
         UNION SELECT e.position, b.source FROM borrowed b JOIN entry e ON e.life = b.source
             AND e.rewound > 0 AND e.rewound > b.rewind
             AND e.number BETWEEN b.\"from\" AND b.upto AND e.position <= b.position
         WHERE b.life = ?1
         ORDER BY 1";
    all(conn, sql, [life], |row| Ok(Lent { position: row.get(0)?, life: row.get(1)? }))
}

pub(crate) fn history(conn: &Connection, life: &SessionId, limit: usize) -> Read<Vec<Entry>> {
    let Some(life) = row_of(conn, life)? else { return Ok(Vec::new()) };
    let borrowed = borrowed(conn, life)?;
    let mut history = History::new(limit);
    let own = "SELECT e.entry, e.life = i.life AND e.rewound = 0
         FROM entry i INDEXED BY entry_standing JOIN entry e ON e.position = i.position
         WHERE i.life = ? AND i.rewound = 0 ORDER BY i.position DESC";
    let mut walk = each(conn, own, [life], |entry| {
        let walk = history.take(entry);
        if history.wants_only_a_summary() { Walk::Stop } else { walk }
    })?;
    for lent in borrowed.iter().rev() {
        if walk == Walk::Stop {
            break;
        }
        walk = history.take(lent.read(conn)?.entry);
        if history.wants_only_a_summary() {
            walk = Walk::Stop;
        }
    }
    if history.wants_only_a_summary() {
        take_summary(conn, life, &borrowed, &mut history)?;
    }
    let after = history.after();
    let mut head = Vec::new();
    if after > 0 {
        for lent in &borrowed {
            head.push(lent.read(conn)?.entry);
            if head.len() >= limit || head.last().is_some_and(|entry| entry.number > after) {
                break;
            }
        }
        let own = "SELECT e.entry, e.life = i.life AND e.rewound = 0
             FROM entry i INDEXED BY entry_standing JOIN entry e ON e.position = i.position
             WHERE i.life = ? AND i.rewound = 0 ORDER BY i.position";
        each(conn, own, [life], |entry| {
            let more = head.len() < limit && entry.number <= after;
            head.push(entry);
            if more { Walk::On } else { Walk::Stop }
        })?;
    }
    history.finish(head.into_iter().map(Ok))
}

/// The newest summary, wherever it stands.
fn take_summary(
    conn: &Connection,
    life: i64,
    borrowed: &[Lent],
    history: &mut History,
) -> Read<()> {
    let own = "SELECT e.entry, e.life = i.life AND e.rewound = 0
         FROM entry i INDEXED BY entry_summary JOIN entry e ON e.position = i.position
         WHERE i.life = ? AND i.summary = 1 AND i.rewound = 0 ORDER BY i.position DESC LIMIT 1";
    if let Some(summary) = maybe(conn, own, [life], agreeing)? {
        history.take(summary);
        return Ok(());
    }
    let lent = "SELECT entry, life = ?2 FROM entry WHERE position = ?1 AND summary = 1";
    for Lent { position, life } in borrowed.iter().rev() {
        if let Some(summary) = maybe(conn, lent, [position, life], agreeing)? {
            history.take(summary);
            break;
        }
    }
    Ok(())
}

impl Lent {
    fn read(&self, conn: &Connection) -> Read<Recorded> {
        let sql = "SELECT e.position, l.session, e.entry, e.life = ?2
             FROM entry e JOIN life l ON l.id = e.life WHERE e.position = ?1";
        one(conn, sql, [self.position, self.life], |row| {
            rows::insist(row.get(3)?)?;
            read::recorded(row)
        })
    }
}

/// Reads an entry and whether it agrees with what led to it.
fn agreeing(row: &Row<'_>) -> rusqlite::Result<Entry> {
    rows::insist(row.get(1)?)?;
    let Json(entry) = row.get(0)?;
    Ok(entry)
}

/// Reads entries one by one, for as long as they are wanted.
fn each(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    mut take: impl FnMut(Entry) -> Walk,
) -> Read<Walk> {
    let mut statement = conn.prepare_cached(sql).map_err(store_error)?;
    let mut rows = statement.query(params).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        if take(agreeing(row).map_err(store_error)?) == Walk::Stop {
            return Ok(Walk::Stop);
        }
    }
    Ok(Walk::On)
}

pub(crate) fn entries(
    conn: &Connection,
    life: &SessionId,
    reading: Reading,
    after: Option<u64>,
    limit: usize,
) -> Read<Vec<Kept>> {
    let Some(life) = row_of(conn, life)? else { return Ok(Vec::new()) };
    let after = after.map_or(0, |after| i64::try_from(after).unwrap_or(i64::MAX));
    let mut entries = Vec::new();
    let borrowed = borrowed(conn, life)?;
    for lent in borrowed.iter().filter(|lent| lent.position > after).take(limit) {
        entries.push(Kept { recorded: lent.read(conn)?, rewound: None });
    }
    let standing = "SELECT e.position, l.session, e.entry, e.life = i.life AND e.rewound = 0
         FROM entry i INDEXED BY entry_standing JOIN entry e ON e.position = i.position
             JOIN life l ON l.id = e.life
         WHERE i.life = ? AND i.rewound = 0 AND i.position > ? ORDER BY i.position LIMIT ?";
    let everything =
        "SELECT e.position, l.session, e.entry, e.life = ?1 AND coalesce(w.life = ?1, e.rewound = 0),
             w.\"from\", w.upto, w.entries, w.person, w.at
         FROM (SELECT position FROM entry WHERE life = ?1 AND rewound = 0 AND position > ?2
               UNION SELECT position FROM entry WHERE life = ?1 AND rewound > 0 AND position > ?2
               ORDER BY position LIMIT ?3) r
             JOIN entry e ON e.position = r.position JOIN life l ON l.id = e.life
             LEFT JOIN rewind w ON w.id = e.rewound
         ORDER BY e.position";
    let params = params![life, after, count(limit - entries.len())];
    entries.extend(match reading {
        Reading::Standing => all(conn, standing, params, |row| {
            rows::insist(row.get(3)?)?;
            Ok(Kept { recorded: read::recorded(row)?, rewound: None })
        })?,
        Reading::Everything => all(conn, everything, params, |row| {
            rows::insist(row.get(3)?)?;
            let back = row.get::<_, Option<u32>>(4)?.map(|_| rewound(row, 4)).transpose()?;
            Ok(Kept { recorded: read::recorded(row)?, rewound: back })
        })?,
    });
    Ok(entries)
}

pub(crate) fn rewinds(conn: &Connection, life: &SessionId) -> Read<Vec<Rewound>> {
    let sql = "SELECT w.\"from\", w.upto, w.entries, w.person, w.at, w.life = l.id
         FROM life l JOIN rewind i INDEXED BY rewind_life ON i.life = l.id
             JOIN rewind w ON w.id = i.id
         WHERE l.session = ? ORDER BY i.id";
    all(conn, sql, [life.as_str()], |row| {
        rows::insist(row.get(5)?)?;
        rewound(row, 0)
    })
}

/// Reads from, upto, entries, person and at, beginning at a column.
fn rewound(row: &Row<'_>, from: usize) -> rusqlite::Result<Rewound> {
    let by: Option<String> = row.get(from + 3)?;
    Ok(Rewound {
        from: row.get(from)?,
        upto: row.get(from + 1)?,
        entries: row.get(from + 2)?,
        by: by.map(|by| rows::id(by, SenderId::new)).transpose()?,
        at: Timestamp::from_millis(row.get(from + 4)?),
    })
}

pub(crate) fn life(conn: &Connection, life: &SessionId) -> Read<Option<Life>> {
    let sql = format!("SELECT {KNOWN} {FROM} WHERE l.session = ?");
    let known = maybe(conn, &sql, [life.as_str()], known)?;
    known.map(|known| known.complete(conn)).transpose()
}

/// What a row says of a life.
struct Known {
    row: i64,
    id: SessionId,
    branched_from: Option<SessionId>,
    past: Option<past::Kept>,
    session: Option<Session>,
    person: Option<SenderId>,
    key: SessionKey,
}

fn known(row: &Row<'_>) -> rusqlite::Result<Known> {
    let source: Option<String> = row.get(2)?;
    let past: Option<Json<past::Kept>> = row.get(3)?;
    let session: Option<Json<Session>> = row.get(4)?;
    let person: Option<String> = row.get(5)?;
    let known = Known {
        row: row.get(0)?,
        id: rows::id(row.get(1)?, SessionId::new)?,
        branched_from: source.map(|source| rows::id(source, SessionId::new)).transpose()?,
        past: past.map(|Json(past)| past),
        session: session.map(|Json(session)| session),
        person: person.map(|person| rows::id(person, SenderId::new)).transpose()?,
        key: rows::key(row, 6)?,
    };
    let session = known.session.as_ref();
    let own = session.is_none_or(|session| session.id == known.id && session.key == known.key);
    rows::insist(own && known.past.as_ref().is_none_or(|kept| kept.past.id == known.id))?;
    Ok(known)
}

impl Known {
    fn complete(self, conn: &Connection) -> Read<Life> {
        let owner = match self.person {
            Some(person) => Owner::Person { account: self.key.account.clone(), person },
            None => Owner::Conversation(self.key.clone()),
        };
        let (past, presence) = match (self.session, self.past) {
            (Some(session), _) => (session.past(), Presence::Present),
            (None, Some(past::Kept { past, why })) => (past, Presence::Past { why }),
            (None, None) => (recollect(conn, self.row, &self.id)?, Presence::Past { why: None }),
        };
        let branched_from = self.branched_from;
        Ok(Life { key: self.key, past, owner, presence, branched_from })
    }
}

/// What is known of a life that gave way without a word.
fn recollect(conn: &Connection, row: i64, id: &SessionId) -> Read<Past> {
    let sql = "SELECT entry FROM entry WHERE position IN
             (SELECT position FROM entry WHERE life = ?1 AND rewound = 0
              UNION SELECT position FROM entry WHERE life = ?1 AND rewound > 0)
         ORDER BY position";
    let entries: Vec<Json<Entry>> = all(conn, sql, [row], |row| row.get(0))?;
    let sql = "SELECT coalesce(max(delivery), 0) FROM outbox WHERE session = ?";
    let deliveries = one(conn, sql, [id.as_str()], |row| row.get(0))?;
    Ok(remembered(id, entries.iter().map(|Json(entry)| entry), deliveries))
}

/// The lives in a scope as a condition, or none if there is nothing in it. Holds numbers of rows and
/// nothing that comes from outside.
pub(crate) fn condition(conn: &Connection, scope: &SearchScope) -> Read<Option<String>> {
    Ok(match scope {
        SearchScope::Everything => Some("true".into()),
        SearchScope::Accounts(names) => {
            let mut rows: Vec<String> = Vec::new();
            for name in names {
                rows.extend(read::account(conn, name)?.map(|row| row.to_string()));
            }
            (!rows.is_empty()).then(|| format!("d.account IN ({})", rows.join(", ")))
        }
        SearchScope::Owner(Owner::Person { account, person }) => {
            read::person(conn, account, person)?.map(|row| format!("c.owner = {row}"))
        }
        SearchScope::Owner(Owner::Conversation(key)) => read::conversation(conn, key)?
            .map(|row| format!("l.conversation = {row} AND c.owner IS NULL")),
        SearchScope::Conversation(key) => {
            read::conversation(conn, key)?.map(|row| format!("l.conversation = {row}"))
        }
    })
}

pub(crate) fn lives(
    conn: &Connection,
    scope: &SearchScope,
    after: Option<&SessionId>,
    limit: usize,
) -> Read<Vec<Life>> {
    const BEGINNING: (i64, i64) = (i64::MAX, i64::MAX);
    let Some(condition) = condition(conn, scope)? else { return Ok(Vec::new()) };
    let start: (i64, i64) = match after {
        None => BEGINNING,
        Some(after) => {
            let sql = format!("SELECT {ACTIVE}, l.id {FROM} WHERE {condition} AND l.session = ?");
            maybe(conn, &sql, [after.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?
                .unwrap_or(BEGINNING)
        }
    };
    // Which lives is decided before they are read: the rows are large.
    let sql = format!(
        "SELECT {KNOWN} FROM (SELECT l.id, {ACTIVE} AS used {FROM} WHERE {condition}
                AND (used, l.id) < (?, ?) ORDER BY used DESC, l.id DESC LIMIT ?) r
             JOIN life l ON l.id = r.id {joins} ORDER BY r.used DESC, r.id DESC",
        joins = FROM.trim_start_matches("FROM life l"),
    );
    let known = all(conn, &sql, params![start.0, start.1, count(limit)], known)?;
    known.into_iter().map(|known| known.complete(conn)).collect()
}

pub(crate) fn named(
    conn: &Connection,
    scope: &SearchScope,
    name: &Name,
    limit: usize,
) -> Read<Named> {
    let Some(condition) = condition(conn, scope)? else { return Ok(Named::Nothing) };
    let sql = format!(
        "SELECT l.session, coalesce(s.session ->> '$.title', l.past ->> '$.title', ''),
             {ACTIVE} AS used
         {FROM} WHERE {condition} ORDER BY used DESC, l.id DESC"
    );
    let mut fitting: Vec<(Fit, SessionId)> = Vec::new();
    let all: Vec<(SessionId, String)> =
        all(conn, &sql, [], |row| Ok((rows::id(row.get(0)?, SessionId::new)?, row.get(1)?)))?;
    for (id, title) in all {
        fitting.extend(name.fits(&id, &title).map(|fit| (fit, id)));
    }
    let best = fitting.iter().map(|(fit, _)| *fit).min();
    let meant = fitting.into_iter().filter(|(fit, _)| Some(*fit) == best).take(limit);
    let mut lives = Vec::new();
    for (_, id) in meant {
        lives.extend(life(conn, &id)?);
    }
    Ok(Named::of(lives))
}

/// What a life used, as the session and the life keep it.
#[derive(Deserialize)]
struct Used {
    turns: u32,
    #[serde(default)]
    copied: u32,
    usage: Usage,
    #[serde(default = "unknown")]
    cost: Cost,
}

fn unknown() -> Cost {
    Cost::UNKNOWN
}

pub(crate) fn totals(
    conn: &Connection,
    scope: &SearchScope,
    since: Option<Timestamp>,
) -> Read<Totals> {
    let mut totals = Totals::default();
    let Some(condition) = condition(conn, scope)? else { return Ok(totals) };
    let sql = format!(
        "SELECT l.id, l.session, coalesce(s.session, l.past) {FROM}
         WHERE {condition} AND {ACTIVE} >= ?"
    );
    let since = since.map_or(i64::MIN, Timestamp::as_millis);
    let mut statement = conn.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query([since]).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        let used: Option<Json<Used>> = row.get(2).map_err(store_error)?;
        match used {
            Some(Json(used)) => {
                totals.add(used.turns.saturating_sub(used.copied), used.usage, used.cost)
            }
            None => {
                let id = row.get(1).and_then(|id| rows::id(id, SessionId::new));
                let row = row.get(0).map_err(store_error)?;
                let past = recollect(conn, row, &id.map_err(store_error)?)?;
                totals.add(past.turns, past.usage, past.cost);
            }
        }
    }
    Ok(totals)
}

/// Which sessions are looked for.
#[derive(Clone, Copy)]
pub(crate) enum Quiet {
    /// Something was said in them since.
    Not,
    /// Nothing was, and they may be over.
    Perhaps,
}

pub(crate) fn sessions(
    conn: &Connection,
    quiet: Quiet,
    since: Timestamp,
    after: Option<&SessionKey>,
    limit: usize,
) -> Read<Vec<SessionKey>> {
    let after = after.map_or(Ok(None), |key| read::conversation(conn, key))?.unwrap_or(0);
    let wanted = match quiet {
        Quiet::Not => "active >= ?2",
        Quiet::Perhaps => "active < ?2 AND watched = 1 AND restless = 0",
    };
    let sql = format!(
        "SELECT a.name, d.kind, d.chat, d.thread, c.member, c.side
         FROM (SELECT conversation FROM session WHERE conversation > ?1 AND {wanted}
               ORDER BY conversation LIMIT ?3) r
             JOIN conversation c ON c.id = r.conversation
             JOIN address d ON d.id = c.address JOIN account a ON a.id = d.account
         ORDER BY c.id"
    );
    all(conn, &sql, params![after, since.as_millis(), count(limit)], |row| rows::key(row, 0))
}
