//! What is written down about one event. Somebody asks for it now and then, so no index is kept for it:
//! an id of a platform's is looked for in every row that has these letters in it.

use rusqlite::{Connection, Row, params};
use talaria_model::{OutboundId, Seq, SessionId, Timestamp};
use talaria_session::SessionKey;
use talaria_store::{
    Asked, Clue, JournalState, LOOKED_AT, Recorded, Sent, StoreError, Traced, Trail, deliveries,
    letters_about,
};

use crate::guests::audited_between;
use crate::read::{count, position_at, recorded};
use crate::rows::{self, Json, encode, number};
use crate::sql::all;

type Read<T> = Result<T, StoreError>;

pub(crate) fn trace(conn: &Connection, clue: &Clue, limit: usize) -> Read<Vec<Traced>> {
    let mut seqs = match clue {
        Clue::Id(id) => {
            let mut seqs = by_event(conn, id)?;
            seqs.extend(by_message(conn, id, limit)?);
            seqs
        }
        Clue::Chat { account, chat } => {
            let mut seqs = in_chat(conn, account.as_str(), chat.as_str(), limit)?;
            seqs.extend(denied_in(conn, account.as_str(), chat.as_str(), limit)?);
            seqs
        }
    };
    seqs.sort_unstable_by(|one, other| other.cmp(one));
    seqs.dedup();
    seqs.truncate(limit);
    seqs.into_iter().map(|seq| row(conn, seq)).filter_map(Result::transpose).collect()
}

fn by_event(conn: &Connection, id: &str) -> Read<Vec<i64>> {
    let sql = "SELECT j.seq FROM account a JOIN journal j ON j.account = a.id AND j.event = ?";
    all(conn, sql, [id], |row| row.get(0))
}

fn by_message(conn: &Connection, id: &str, limit: usize) -> Read<Vec<i64>> {
    let sql = "SELECT seq FROM journal WHERE instr(inbound, ?2) > 0
             AND ?1 IN (inbound ->> '$.kind.said.id', inbound ->> '$.kind.edited.id')
         ORDER BY seq DESC LIMIT ?3";
    all(conn, sql, params![id, encode(&id)?, count(limit)], |row| row.get(0))
}

fn in_chat(conn: &Connection, account: &str, chat: &str, limit: usize) -> Read<Vec<i64>> {
    let sql = "SELECT j.seq FROM journal j WHERE j.conversation IN (
             SELECT c.id FROM account a JOIN address d ON d.account = a.id
                 JOIN conversation c ON c.address = d.id WHERE a.name = ?1 AND d.chat = ?2)
         ORDER BY j.seq DESC LIMIT ?3";
    all(conn, sql, params![account, chat, count(limit)], |row| row.get(0))
}

fn denied_in(conn: &Connection, account: &str, chat: &str, limit: usize) -> Read<Vec<i64>> {
    let sql = "SELECT j.seq FROM account a
             JOIN journal j INDEXED BY journal_refused ON j.state >= 5 AND j.account = a.id
         WHERE a.name = ?1 AND j.state = 5 AND j.inbound ->> '$.to.chat.id' = ?2
         ORDER BY j.seq DESC LIMIT ?3";
    all(conn, sql, params![account, chat, count(limit)], |row| row.get(0))
}

struct Known {
    conversation: i64,
    traced: Traced,
}

fn row(conn: &Connection, seq: i64) -> Read<Option<Traced>> {
    let sql = "SELECT j.seq, j.state, j.at, j.detail, j.inbound, j.conversation,
             a.name, d.kind, d.chat, d.thread, c.member, c.side
         FROM journal j JOIN conversation c ON c.id = j.conversation
             JOIN address d ON d.id = c.address JOIN account a ON a.id = d.account
         WHERE j.seq = ?";
    let Some(Known { conversation, mut traced }) = all(conn, sql, [seq], known)?.pop() else {
        return Ok(None);
    };
    if traced.key.is_some() {
        let first = position_at(conn, traced.at)?;
        let page = |behind: Option<u64>| {
            let from = behind.map_or(first, |behind| i64::try_from(behind + 1).unwrap_or(i64::MAX));
            since(conn, conversation, from)
        };
        let Trail { behind, entries, coverage } =
            Trail::follow(traced.seq, &traced.inbound, &traced.state, page)?;
        (traced.behind, traced.entries, traced.coverage) = (behind, entries, coverage);
        for delivery in deliveries(&traced.entries) {
            traced.parcels.extend(parcels(conn, &delivery)?);
        }
        if let Some(asked) = Asked::in_entries(&traced.entries) {
            let rows = audited_between(conn, asked.from, asked.upto)?;
            traced.approvals = rows.into_iter().filter(|row| asked.is_about(row)).collect();
        }
    } else {
        traced.parcels = letters(conn, traced.seq)?;
    }
    Ok(Some(traced))
}

fn known(row: &Row<'_>) -> rusqlite::Result<Known> {
    let state = state(row)?;
    let key: Option<SessionKey> = match state {
        JournalState::Denied(_) => None,
        _ => Some(rows::key(row, 6)?),
    };
    let Json(inbound) = row.get(4)?;
    let at = Timestamp::from_millis(row.get(2)?);
    let (behind, entries) = (Vec::new(), Vec::new());
    let (parcels, approvals) = (Vec::new(), Vec::new());
    let seq = Seq(number(row, 0)?);
    let coverage = Default::default();
    let traced =
        Traced { seq, at, key, inbound, state, behind, entries, parcels, approvals, coverage };
    Ok(Known { conversation: row.get(5)?, traced })
}

fn state(row: &Row<'_>) -> rusqlite::Result<JournalState> {
    let reason = || Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(3)?.unwrap_or_default());
    Ok(match row.get(1)? {
        0 => JournalState::Unread,
        1 => JournalState::Taken,
        2 => {
            let Json(turn) = row.get(3)?;
            JournalState::Bound(turn)
        }
        3 => JournalState::Handled,
        4 => JournalState::Ignored(reason()?),
        5 => JournalState::Denied(reason()?),
        6 => JournalState::Quarantined(reason()?),
        code => return Err(rusqlite::Error::IntegralValueOutOfRange(1, code)),
    })
}

/// Entries of a conversation from a position on, also those that were taken back.
fn since(conn: &Connection, conversation: i64, from: i64) -> Read<Vec<Recorded>> {
    let sql = "SELECT e.position, l.session, e.entry FROM (
             SELECT i.position FROM life k JOIN entry i INDEXED BY entry_standing
                 ON i.life = k.id AND i.rewound = 0 AND i.position >= ?2 WHERE k.conversation = ?1
             UNION ALL
             SELECT i.position FROM life k JOIN entry i INDEXED BY entry_rewound
                 ON i.life = k.id AND i.rewound > 0 AND i.position >= ?2 WHERE k.conversation = ?1
             ORDER BY 1 LIMIT ?3) r
         JOIN entry e ON e.position = r.position JOIN life l ON l.id = e.life
         ORDER BY e.position";
    all(conn, sql, params![conversation, from, count(LOOKED_AT)], recorded)
}

fn parcels(conn: &Connection, of: &OutboundId) -> Read<Vec<Sent>> {
    let sql = "SELECT stage, doubt, plain, attempts, not_before, shown, anew, part, reason, at,
             session, delivery, settled
         FROM outbox WHERE session = ? AND delivery = ? ORDER BY part";
    all(conn, sql, params![of.session.as_str(), of.delivery], sent)
}

/// What the sender of a row was told who was not let in.
fn letters(conn: &Connection, seq: Seq) -> Read<Vec<Sent>> {
    let sql = "SELECT stage, doubt, plain, attempts, not_before, shown, anew, part, reason, at,
             session, delivery, settled
         FROM outbox WHERE session >= ?1 AND session < ?1 || 'g' ORDER BY session, delivery, part";
    all(conn, sql, [letters_about(seq)], sent)
}

fn sent(row: &Row<'_>) -> rusqlite::Result<Sent> {
    let progress = rows::progress(row, 0)?;
    let session = rows::id(row.get(10)?, SessionId::new)?;
    Ok(Sent {
        id: OutboundId { session, delivery: row.get(11)?, part: row.get(7)? },
        state: progress.state(),
        shown: progress.shown,
        attempts: progress.attempts,
        reason: row.get(8)?,
        at: Timestamp::from_millis(row.get(9)?),
        settled: row.get::<_, Option<i64>>(12)?.map(Timestamp::from_millis),
    })
}
