//! How lives give way, branch off, are taken back and are forgotten, in SQL. Each function runs inside
//! a transaction of the writer.

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use talaria_model::{SessionId, Timestamp};
use talaria_session::{Past, SessionKey};
use talaria_store::{Branch, Rewind, StoreError, without};

use crate::lives::ACTIVE;
use crate::rows::{Holder, KeyColumns, encode, number};
use crate::sql::{all, execute, maybe, one};
use crate::write::let_go;

type Written<T> = Result<T, StoreError>;

/// What is kept of a life that is over.
#[derive(Serialize, Deserialize)]
pub(crate) struct Kept {
    #[serde(flatten)]
    pub(crate) past: Past,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<talaria_session::Retired>,
}

/// A life that gives way, encoded.
pub(crate) struct Retired {
    pub(crate) id: SessionId,
    active: Timestamp,
    kept: String,
}

impl Retired {
    pub(crate) fn of(past: Past, why: Option<talaria_session::Retired>) -> Written<Self> {
        let (id, active) = (past.id.clone(), past.active);
        Ok(Self { id, active, kept: encode(&Kept { past, why })? })
    }
}

pub(crate) fn retire(conn: &Connection, life: i64, retired: &Retired) -> Written<()> {
    let sql = "UPDATE life SET active = ?, past = ? WHERE id = ?";
    execute(conn, sql, params![retired.active.as_millis(), retired.kept, life]).map(drop)
}

/// The newest position that was ever given.
pub(crate) fn newest(conn: &Connection) -> Written<i64> {
    let sql = "SELECT max(coalesce((SELECT max(position) FROM entry), 0),
         (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'last_position'))";
    one(conn, sql, [], |row| row.get(0))
}

/// Refuses what would let somebody read another's conversation, or change what a life began with.
pub(crate) fn check_branch(
    conn: &Connection,
    key: &SessionKey,
    conversation: i64,
    branch: &Branch,
) -> Written<()> {
    let Branch { from, to, .. } = branch;
    let damaged = |reason| Err(StoreError::Damaged { reason });
    let begun = "SELECT EXISTS (SELECT 1 FROM life WHERE session = ?)";
    if one(conn, begun, [to.as_str()], |row| row.get(0))? {
        return damaged(format!("{to} has begun and cannot become a branch"));
    }
    let sql =
        "SELECT EXISTS (SELECT 1 FROM life l JOIN conversation theirs ON theirs.id = l.conversation
             JOIN conversation ours ON ours.id = ?1
         WHERE l.session = ?2 AND (theirs.id = ours.id OR theirs.owner = ours.owner))";
    if !one(conn, sql, params![conversation, from.as_str()], |row| row.get(0))? {
        return damaged(format!("{from} is no life of the owner of {key}"));
    }
    Ok(())
}

/// What the branch has in common with the other life, and what that had in common with others.
pub(crate) fn branch(conn: &Connection, to: i64, branch: &Branch) -> Written<()> {
    let Branch { from, upto, .. } = branch;
    let sql = "UPDATE life SET source = ? WHERE id = ?";
    execute(conn, sql, params![from.as_str(), to])?;
    let sql = "SELECT id FROM life WHERE session = ?";
    let Some(source) = maybe(conn, sql, [from.as_str()], |row| row.get::<_, i64>(0))? else {
        return Ok(());
    };
    let sql = "INSERT INTO borrowed (life, source, \"from\", upto, position, rewind)
         SELECT ?1, source, \"from\", min(upto, ?2), position, rewind FROM borrowed
         WHERE life = ?3 AND \"from\" <= ?2 ORDER BY rowid";
    execute(conn, sql, params![to, upto, source])?;
    let sql = "INSERT INTO borrowed (life, source, \"from\", upto, position, rewind)
         SELECT ?1, ?2, 0, ?3, ?4, coalesce((SELECT max(id) FROM rewind), 0)";
    execute(conn, sql, params![to, source, upto, newest(conn)?]).map(drop)
}

/// Takes entries back: its own are marked, and what it has in common with others gets shorter.
pub(crate) fn rewind(conn: &Connection, life: i64, rewind: &Rewind, at: Timestamp) -> Written<()> {
    let Rewind { from, upto, by, .. } = rewind;
    let lent = lent_between(conn, life, *from, *upto)?;
    let sql =
        "INSERT INTO rewind (life, \"from\", upto, entries, at, person) VALUES (?, ?, ?, 0, ?, ?)";
    let by = by.as_ref().map(|by| by.as_str());
    execute(conn, sql, params![life, from, upto, at.as_millis(), by])?;
    let id = conn.last_insert_rowid();
    let sql = "UPDATE entry SET rewound = ?1
         WHERE life = ?2 AND rewound = 0 AND number BETWEEN ?3 AND ?4";
    let own = execute(conn, sql, params![id, life, from, upto])?;
    let entries = u32::try_from(own).unwrap_or(u32::MAX).saturating_add(lent);
    execute(conn, "UPDATE rewind SET entries = ? WHERE id = ?", params![entries, id])?;

    let sql = "SELECT rowid, \"from\", upto FROM borrowed WHERE life = ?1
         AND \"from\" <= ?3 AND upto >= ?2";
    let stretches: Vec<(i64, u32, u32)> = all(conn, sql, params![life, from, upto], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    for (row, first, last) in stretches {
        for (first, last) in without((first, last), (*from, *upto)) {
            let sql = "INSERT INTO borrowed (life, source, \"from\", upto, position, rewind)
                 SELECT life, source, ?2, ?3, position, rewind FROM borrowed WHERE rowid = ?1";
            execute(conn, sql, params![row, first, last])?;
        }
        execute(conn, "DELETE FROM borrowed WHERE rowid = ?", [row])?;
    }
    Ok(())
}

fn lent_between(conn: &Connection, life: i64, from: u32, upto: u32) -> Written<u32> {
    let sql = "SELECT count(*) FROM entry WHERE position IN
         (SELECT e.position FROM borrowed b JOIN entry e ON e.life = b.source AND e.rewound = 0
              AND e.number BETWEEN b.\"from\" AND b.upto AND e.position <= b.position
          WHERE b.life = ?1 AND e.number BETWEEN ?2 AND ?3
          UNION SELECT e.position FROM borrowed b JOIN entry e ON e.life = b.source AND e.rewound > 0
              AND e.rewound > b.rewind
              AND e.number BETWEEN b.\"from\" AND b.upto AND e.position <= b.position
          WHERE b.life = ?1 AND e.number BETWEEN ?2 AND ?3)";
    one(conn, sql, params![life, from, upto], |row| row.get(0))
}

pub(crate) fn put_away(conn: &Connection, life: &SessionId) -> Written<u32> {
    let sql = "UPDATE life SET put_away = put_away + 1 WHERE session = ? RETURNING put_away";
    Ok(maybe(conn, sql, [life.as_str()], |row| row.get(0))?.unwrap_or(0))
}

/// Gives the life that a conversation is in another title.
pub(crate) fn rename(conn: &Connection, life: &SessionId, title: &str) -> Written<()> {
    let sql = "UPDATE session SET session = json_set(session, '$.title', ?1)
         WHERE conversation = (SELECT conversation FROM life WHERE session = ?2)
             AND life = (SELECT id FROM life WHERE session = ?2)";
    execute(conn, sql, params![title, life.as_str()]).map(drop)
}

/// Keeps something else of a life that is over.
pub(crate) fn keep(conn: &Connection, retired: &Retired) -> Written<()> {
    let sql = "UPDATE life SET active = ?, past = ? WHERE session = ?";
    let (active, id) = (retired.active.as_millis(), retired.id.as_str());
    execute(conn, sql, params![active, retired.kept, id]).map(drop)
}

/// How far forgetting has come.
pub(crate) struct Forgotten {
    pub(crate) many: u64,
    /// Entries that are gone.
    pub(crate) positions: Vec<i64>,
    /// Where to go on; none at the end.
    pub(crate) next: Option<i64>,
}

/// How many rows are looked at before other writes get their turn.
const AT_ONCE: usize = 256;

/// Forgets the entries of lives, and then the lives, walking from the youngest life to the oldest: a
/// branch goes before what it is a branch of.
pub(crate) fn forget_lives(
    conn: &Connection,
    before: i64,
    since: Timestamp,
    spare: &[SessionKey],
) -> Written<Forgotten> {
    let mut forgotten = Forgotten { many: 0, positions: Vec::new(), next: None };
    let sql = format!(
        "SELECT l.id, l.conversation, l.session, s.life IS NOT NULL, {ACTIVE}, coalesce(s.spared, 0)
         FROM life l LEFT JOIN session s ON s.conversation = l.conversation AND s.life = l.id
         WHERE l.id < ? ORDER BY l.id DESC LIMIT ?"
    );
    type Looked = (i64, i64, String, bool, i64, i64);
    let lives: Vec<Looked> = all(conn, &sql, params![before, AT_ONCE as i64], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
    })?;
    let full = lives.len() == AT_ONCE;
    for (life, conversation, name, present, active, spared) in lives {
        forgotten.next = Some(life);
        // Until then; those that were written before this was a moment say only that they are.
        let is_spared = spared == 1 || spared > since.as_millis();
        if active >= since.as_millis() || is_spared {
            continue;
        }
        if present && (is_heard(conn, conversation)? || is_in(conn, conversation, spare)?) {
            continue;
        }
        if is_speaking(conn, &name)? || is_source(conn, life)? {
            continue;
        }
        let room = AT_ONCE.saturating_sub(forgotten.positions.len());
        let gone = forget_entries_of(conn, life, room)?;
        let whole = gone.len() < room;
        forgotten.positions.extend(gone);
        if !whole {
            // The rest of it comes with the next piece.
            forgotten.next = Some(life + 1);
            return Ok(forgotten);
        }
        for sql in [
            "DELETE FROM rewind WHERE life = ?",
            "DELETE FROM borrowed WHERE life = ?",
            "DELETE FROM life WHERE id = ?",
        ] {
            execute(conn, sql, [life])?;
        }
        let sql = "DELETE FROM session WHERE conversation = ? AND life = ?";
        execute(conn, sql, [conversation, life])?;
        forgotten.many += 1;
    }
    if !full {
        forgotten.next = None;
    }
    Ok(forgotten)
}

fn is_heard(conn: &Connection, conversation: i64) -> Written<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM journal WHERE conversation = ? AND state = 0)";
    one(conn, sql, [conversation], |row| row.get(0))
}

fn is_in(conn: &Connection, conversation: i64, spare: &[SessionKey]) -> Written<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM account a JOIN address d ON d.account = a.id
             JOIN conversation c ON c.address = d.id
         WHERE a.name = ? AND d.chat = ? AND d.thread = ? AND d.kind = ?
             AND c.member = ? AND c.side = ? AND c.id = ?)";
    for key in spare {
        let KeyColumns { account, chat, thread, kind, member, side } = KeyColumns::of(key);
        let key = params![account, chat, thread, kind, member, side, conversation];
        if one(conn, sql, key, |row| row.get(0))? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_speaking(conn: &Connection, life: &str) -> Written<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM outbox WHERE session = ?1 AND stage < 3)";
    one(conn, sql, [life], |row| row.get(0))
}

fn is_source(conn: &Connection, life: i64) -> Written<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM borrowed WHERE source = ?)";
    one(conn, sql, [life], |row| row.get(0))
}

fn forget_entries_of(conn: &Connection, life: i64, limit: usize) -> Written<Vec<i64>> {
    let mut positions = Vec::new();
    for sql in [
        "SELECT position FROM entry WHERE life = ? AND rewound = 0 ORDER BY position LIMIT ?",
        "SELECT position FROM entry WHERE life = ? AND rewound > 0 ORDER BY position LIMIT ?",
    ] {
        let room = limit.saturating_sub(positions.len());
        positions.extend(all(conn, sql, params![life, room as i64], |row| row.get::<_, i64>(0))?);
    }
    forget(conn, &positions)?;
    Ok(positions)
}

/// Forgets entries from the oldest on, and stops where time has come to `before`.
pub(crate) fn forget_entries(
    conn: &Connection,
    after: i64,
    before: Timestamp,
) -> Written<Forgotten> {
    let sql = "SELECT e.position, e.at, coalesce(s.restless, 0) = 2
         FROM entry e JOIN life l ON l.id = e.life
             LEFT JOIN session s ON s.conversation = l.conversation AND s.life = l.id
         WHERE e.position > ? ORDER BY e.position LIMIT ?";
    let looked_at: Vec<(i64, i64, bool)> = all(conn, sql, params![after, AT_ONCE as i64], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    let old = looked_at.iter().filter(|(_, at, in_hand)| *at < before.as_millis() && !in_hand);
    let positions: Vec<i64> = old.map(|(position, ..)| *position).collect();
    forget(conn, &positions)?;
    let next = match looked_at.last() {
        Some((position, at, _)) if looked_at.len() == AT_ONCE && *at < before.as_millis() => {
            Some(*position)
        }
        _ => None,
    };
    Ok(Forgotten { many: positions.len() as u64, positions, next })
}

fn forget(conn: &Connection, positions: &[i64]) -> Written<()> {
    if positions.is_empty() {
        return Ok(());
    }
    let newest = newest(conn)?;
    for position in positions {
        execute(conn, "DELETE FROM entry WHERE position = ?", [position])?;
        let_go(conn, Holder::Entry, *position)?;
    }
    let sql = "UPDATE meta SET value = ? WHERE key = 'last_position'";
    execute(conn, sql, [newest.to_string()])?;
    let sql = "UPDATE meta SET value = CAST(value AS INTEGER) + ? WHERE key = 'forgotten'";
    execute(conn, sql, [positions.len() as i64]).map(drop)
}

/// How many pages are given back before other writes get their turn, as the statement below says.
const PAGES_AT_ONCE: u64 = 64;

/// Gives a few free pages back; says how many bytes.
pub(crate) fn shrink(conn: &Connection) -> Written<u64> {
    let free = one(conn, "PRAGMA freelist_count", [], |row| number(row, 0))?;
    let size = one(conn, "PRAGMA page_size", [], |row| number(row, 0))?;
    let pages = free.min(PAGES_AT_ONCE);
    if pages > 0 {
        all(conn, "PRAGMA incremental_vacuum(64)", [], |_| Ok(()))?;
    }
    Ok(pages * size)
}
