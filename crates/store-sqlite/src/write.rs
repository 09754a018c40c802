//! What is written, in SQL. Each function runs inside a transaction of the writer; what has to be
//! encoded was encoded before, so that the writer does nothing but write.

use rusqlite::{Connection, params};
use talaria_model::{
    AccountId, Act, Address, Content, Digest, EntryBody, FileId, Outbound, OutboundId, SenderId,
    Seq, SessionId, Timestamp,
};
use talaria_session::{Ended, SessionKey};
use talaria_store::{
    Admitted, Audited, Branch, Commit, Delivered, Dropped, Form, JournalChange, JournalState,
    Leave, Owner, Progress, Retirement, Rewind, Settlement, Spending, Stage, StoreError,
    files_of_act, files_of_entry, files_of_inbound, may_expire, spared_until, withdrawn,
};

use crate::past::{self, Retired};
use crate::rows::{
    self, Holder, KeyColumns, doubt_code, encode, holder_code, journal_detail, journal_state,
    or_empty, stage_code,
};
use crate::sql::{all, execute, maybe, one};
use crate::{grants, guests, spending};

type Written<T> = Result<T, StoreError>;

/// A batch, encoded.
pub(crate) struct Batch {
    account: AccountId,
    cursor: Option<String>,
    at: Timestamp,
    rows: Vec<JournalRow>,
}

struct JournalRow {
    key: SessionKey,
    event: String,
    state: i64,
    detail: Option<String>,
    inbound: String,
    files: Vec<FileId>,
}

const DENIED: i64 = 5;

impl Batch {
    pub(crate) fn of(delivered: Delivered) -> Written<Self> {
        let Delivered { account, events, cursor, at } = delivered;
        let row = |(key, inbound, state): (SessionKey, talaria_model::Inbound, JournalState)| {
            Ok(JournalRow {
                key,
                event: inbound.id.as_str().to_owned(),
                state: journal_state(&state),
                detail: journal_detail(&state)?,
                inbound: encode(&inbound)?,
                // Nobody who was not let in decides what is kept.
                files: match state {
                    JournalState::Denied(_) => Vec::new(),
                    _ => files_of_inbound(&inbound).cloned().collect(),
                },
            })
        };
        let rows = events.into_iter().map(row).collect::<Written<_>>()?;
        Ok(Self { account, cursor, at, rows })
    }

    pub(crate) fn write(self, conn: &Connection) -> Written<Vec<Admitted>> {
        let account = account(conn, &self.account)?;
        let mut admitted = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let sql = "SELECT seq FROM journal WHERE account = ? AND event = ?";
            if let Some(first) = maybe(conn, sql, params![account, row.event], |row| row.get(0))? {
                admitted.push(Admitted::Repeated(seq(first)));
                continue;
            }
            let conversation = match row.state {
                DENIED => nobody(conn, account)?,
                _ => known_conversation(conn, &row.key)?.id,
            };
            execute(
                conn,
                "INSERT INTO journal (account, conversation, state, at, event, detail, inbound)
                 VALUES (?, ?, ?, ?, ?, ?, ?)",
                params![
                    account,
                    conversation,
                    row.state,
                    self.at.as_millis(),
                    row.event,
                    row.detail,
                    row.inbound,
                ],
            )?;
            let row_id = conn.last_insert_rowid();
            hold(conn, Holder::Journal, row_id, &row.files)?;
            admitted.push(Admitted::Journalled(seq(row_id)));
        }
        if let Some(cursor) = &self.cursor {
            let sql = "UPDATE account SET cursor = ? WHERE id = ?";
            execute(conn, sql, params![cursor, account])?;
        }
        Ok(admitted)
    }
}

/// What is known of an event by now, encoded.
pub(crate) struct Amendment {
    seq: i64,
    inbound: String,
    files: Vec<FileId>,
}

impl Amendment {
    pub(crate) fn of(seq: Seq, inbound: &talaria_model::Inbound) -> Written<Self> {
        let files = files_of_inbound(inbound).cloned().collect();
        // No row has a number that does not fit.
        let seq = i64::try_from(seq.0).unwrap_or(i64::MAX);
        Ok(Self { seq, inbound: encode(inbound)?, files })
    }

    pub(crate) fn write(self, conn: &Connection) -> Written<()> {
        let sql = "UPDATE journal SET inbound = ? WHERE seq = ? AND state = 0";
        if execute(conn, sql, params![self.inbound, self.seq])? > 0 {
            hold(conn, Holder::Journal, self.seq, &self.files)?;
        }
        Ok(())
    }

    /// The same of a row that nobody answers.
    pub(crate) fn ignore(self, conn: &Connection, reason: &str) -> Written<()> {
        let state = JournalState::Ignored(reason.to_owned());
        let sql =
            "UPDATE journal SET inbound = ?, state = ?, detail = ? WHERE seq = ? AND state = 0";
        let row = params![self.inbound, journal_state(&state), journal_detail(&state)?, self.seq];
        if execute(conn, sql, row)? > 0 {
            let_go(conn, Holder::Journal, self.seq)?;
            hold(conn, Holder::Journal, self.seq, &self.files)?;
        }
        Ok(())
    }
}

fn seq(row: i64) -> Seq {
    Seq(row.unsigned_abs())
}

/// A step, encoded.
pub(crate) struct Step {
    key: SessionKey,
    person: Option<SenderId>,
    life: SessionId,
    restless: i64,
    watched: bool,
    spared: i64,
    updated: Timestamp,
    active: Timestamp,
    session: String,
    journal: Vec<(Seq, i64, Option<String>)>,
    concealed: Vec<(Seq, String)>,
    forwarded: Vec<(Seq, SessionKey)>,
    dropped: Option<Dropped>,
    retired: Option<Retired>,
    branch: Option<Branch>,
    rewinds: Vec<Rewind>,
    entries: Vec<EntryRow>,
    outbox: Vec<Letter>,
    grants: Vec<(Digest, String)>,
    audited: Vec<Audited>,
    spending: Vec<Spending>,
    at: Timestamp,
}

struct EntryRow {
    life: SessionId,
    number: u32,
    at: Timestamp,
    summary: bool,
    entry: String,
    files: Vec<FileId>,
}

/// A parcel, encoded.
pub(crate) struct Letter {
    id: OutboundId,
    to: Address,
    act: String,
    files: Vec<FileId>,
}

impl Letter {
    pub(crate) fn of(outbound: &Outbound) -> Written<Self> {
        let Outbound { id, to, act } = outbound;
        let files = files_of_act(act).cloned().collect();
        Ok(Self { id: id.clone(), to: to.clone(), act: encode::<Act>(act)?, files })
    }
}

const QUIET: i64 = 0;
const WAITING: i64 = 1;
const IN_HAND: i64 = 2;

impl Step {
    pub(crate) fn of(commit: Commit) -> Written<Self> {
        let Commit { session, journal, concealed, forwarded, dropped, retired, branch, .. } =
            commit;
        let Commit { rewinds, entries, outbox, grants, audited, spending, at, .. } = commit;
        let restless = match (session.hand(), session.is_restless()) {
            (Some(_), _) => IN_HAND,
            (None, true) => WAITING,
            (None, false) => QUIET,
        };
        let change = |JournalChange { seq, state }: JournalChange| {
            Ok((seq, journal_state(&state), journal_detail(&state)?))
        };
        let row = |(life, entry): (SessionId, talaria_model::Entry)| {
            let (number, at, entry_json) = (entry.number, entry.at, encode(&entry)?);
            let summary = matches!(entry.body, EntryBody::Summary { .. });
            let files = files_of_entry(&entry.body).cloned().collect();
            Ok(EntryRow { life, number, at, summary, entry: entry_json, files })
        };
        let person = match Owner::of(&session) {
            Owner::Person { person, .. } => Some(person),
            Owner::Conversation(_) => None,
        };
        let retired =
            retired.map(|Retirement { past, why }| Retired::of(past, Some(why))).transpose()?;
        Ok(Self {
            person,
            restless,
            watched: may_expire(&session),
            spared: spared_until(&session).map_or(0, Timestamp::as_millis),
            updated: session.updated,
            active: session.active,
            session: encode(&session)?,
            key: session.key,
            life: session.id,
            journal: journal.into_iter().map(change).collect::<Written<_>>()?,
            concealed,
            forwarded,
            dropped,
            retired,
            branch,
            rewinds,
            entries: entries.into_iter().map(row).collect::<Written<_>>()?,
            outbox: outbox.iter().map(Letter::of).collect::<Written<_>>()?,
            grants: grants
                .iter()
                .map(|grant| Ok((grant.digest, encode(grant)?)))
                .collect::<Written<_>>()?,
            audited,
            spending,
            at,
        })
    }

    pub(crate) fn records(&self) -> bool {
        !self.entries.is_empty()
    }

    pub(crate) fn write(self, conn: &Connection) -> Written<()> {
        let conversation = self.conversation(conn)?;
        let mut lives = Lives { conversation, key: &self.key, known: Vec::with_capacity(1) };
        if let Some(branch) = &self.branch {
            past::check_branch(conn, &self.key, conversation, branch)?;
        }
        let life = lives.id(conn, &self.life)?;
        self.write_session(conn, conversation, life)?;
        for (seq, state, detail) in &self.journal {
            let sql = "UPDATE journal SET state = ?, detail = ? WHERE seq = ? AND state <> 5";
            execute(conn, sql, params![state, detail, seq_column(*seq)])?;
        }
        for (seq, words) in &self.concealed {
            // What was made of a recording are words, too.
            let sql = "UPDATE journal SET inbound = json_remove(
                     json_replace(inbound, '$.kind.said.text', ?1, '$.kind.edited.text', ?1),
                     '$.kind.said.transcripts', '$.kind.edited.transcripts')
                 WHERE seq = ?2";
            execute(conn, sql, params![words, seq_column(*seq)])?;
        }
        for (seq, to) in &self.forwarded {
            let sql = "UPDATE journal SET conversation = ?, state = 0, detail = NULL
                 WHERE seq = ? AND state <> 5";
            let to = known_conversation(conn, to)?.id;
            execute(conn, sql, params![to, seq_column(*seq)])?;
        }
        if let Some(Dropped { before, reason }) = &self.dropped {
            let sql = "UPDATE journal SET state = 4, detail = ?
                 WHERE conversation = ? AND state = 0 AND seq < ?";
            execute(conn, sql, params![reason, conversation, seq_column(*before)])?;
        }
        if let Some(retired) = &self.retired {
            let life = lives.id(conn, &retired.id)?;
            past::retire(conn, life, retired)?;
        }
        if let Some(branch) = &self.branch {
            let to = lives.id(conn, &branch.to)?;
            past::branch(conn, to, branch)?;
        }
        for rewind in &self.rewinds {
            let life = lives.id(conn, &rewind.session)?;
            past::rewind(conn, life, rewind, self.at)?;
        }
        let mut position = if self.entries.is_empty() { 0 } else { past::newest(conn)? };
        for EntryRow { life, number, at, summary, entry, files } in &self.entries {
            let life = lives.id(conn, life)?;
            position += 1;
            let sql = "INSERT INTO entry (position, life, number, at, summary, rewound, entry)
                 VALUES (?, ?, ?, ?, ?, 0, ?)";
            execute(conn, sql, params![position, life, number, at.as_millis(), summary, entry])?;
            hold(conn, Holder::Entry, position, files)?;
        }
        for letter in &self.outbox {
            lives.id(conn, &letter.id.session)?;
            decide(conn, letter, self.at)?;
        }
        let mut delivered: Vec<OutboundId> =
            self.outbox.iter().map(|letter| letter.id.with_part(0)).collect();
        delivered.dedup();
        for delivery in &delivered {
            withdraw_rest(conn, delivery, self.at)?;
        }
        for (digest, grant) in &self.grants {
            grants::keep(conn, digest, grant)?;
        }
        if !self.audited.is_empty() {
            guests::audit(conn, self.at, self.audited)?;
        }
        for spending in &self.spending {
            spending::spend(conn, spending)?;
        }
        if self.restless != IN_HAND {
            for (life, _) in lives.known {
                let sql = "UPDATE outbox SET stage = 3 WHERE session = ? AND stage = 0";
                execute(conn, sql, params![life.as_str()])?;
            }
        }
        Ok(())
    }

    /// The row of the conversation, which belongs to whom the session says.
    fn conversation(&self, conn: &Connection) -> Written<i64> {
        let known = known_conversation(conn, &self.key)?;
        if known.person.as_deref() != self.person.as_ref().map(SenderId::as_str) {
            let sql = "SELECT EXISTS (SELECT 1 FROM life WHERE conversation = ?)";
            let began: bool = one(conn, sql, [known.id], |row| row.get(0))?;
            let owner = self.person.as_ref();
            let owner = owner.map(|name| person(conn, &self.key.account, name)).transpose()?;
            let owned_from = if began { past::newest(conn)? } else { 0 };
            let sql = "UPDATE conversation SET owner = ?, owned_from = ? WHERE id = ?";
            execute(conn, sql, params![owner, owned_from, known.id])?;
        }
        Ok(known.id)
    }

    fn write_session(&self, conn: &Connection, conversation: i64, life: i64) -> Written<()> {
        execute(
            conn,
            "INSERT INTO session
                 (conversation, life, restless, watched, spared, updated, active, session)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT (conversation) DO UPDATE SET
                 life = excluded.life, restless = excluded.restless, watched = excluded.watched,
                 spared = excluded.spared, updated = excluded.updated, active = excluded.active,
                 session = excluded.session",
            params![
                conversation,
                life,
                self.restless,
                self.watched,
                self.spared,
                self.updated.as_millis(),
                self.active.as_millis(),
                self.session,
            ],
        )
        .map(drop)
    }
}

pub(crate) fn seq_column(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

/// The lives that a step names, all of one conversation.
struct Lives<'a> {
    conversation: i64,
    key: &'a SessionKey,
    known: Vec<(SessionId, i64)>,
}

impl Lives<'_> {
    fn id(&mut self, conn: &Connection, life: &SessionId) -> Written<i64> {
        if let Some((_, id)) = self.known.iter().find(|(known, _)| known == life) {
            return Ok(*id);
        }
        let sql = "SELECT id, conversation FROM life WHERE session = ?";
        let found: Option<(i64, i64)> =
            maybe(conn, sql, [life.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let id = match found {
            Some((id, conversation)) if conversation == self.conversation => id,
            Some(_) => {
                let reason = format!("{life} is a life of another conversation than {}", self.key);
                return Err(StoreError::Damaged { reason });
            }
            None => {
                let sql = "INSERT INTO life (session, conversation) VALUES (?, ?)";
                execute(conn, sql, params![life.as_str(), self.conversation])?;
                conn.last_insert_rowid()
            }
        };
        self.known.push((life.clone(), id));
        Ok(id)
    }
}

/// Puts a parcel at the end. One that is there already stays as it is, unless it is a preview.
pub(crate) fn decide(conn: &Connection, letter: &Letter, at: Timestamp) -> Written<()> {
    if insert(conn, letter, &Progress::decided(), at)? {
        return Ok(());
    }
    if let Some((row, mut progress)) = find(conn, &letter.id)?
        && progress.stage == Stage::Previewing
    {
        progress.decide();
        execute(conn, "DELETE FROM outbox WHERE id = ?", [row])?;
        let_go(conn, Holder::Outbox, row)?;
        insert(conn, letter, &progress, at)?;
    }
    Ok(())
}

/// What is shown of a delivery beyond its last part is taken away.
fn withdraw_rest(conn: &Connection, delivery: &OutboundId, at: Timestamp) -> Written<()> {
    let sql = "SELECT o.part, a.name, d.kind, d.chat, d.thread
         FROM outbox o JOIN address d ON d.id = o.address JOIN account a ON a.id = d.account
         WHERE o.session = ? AND o.delivery = ? AND o.stage = 0 ORDER BY o.id";
    let names = params![delivery.session.as_str(), delivery.delivery];
    let left =
        all(conn, sql, names, |row| Ok((delivery.with_part(row.get(0)?), rows::address(row, 1)?)))?;
    for (id, to) in left {
        let preview = Outbound { id, to, act: Act::Typing };
        decide(conn, &Letter::of(&withdrawn(&preview))?, at)?;
    }
    Ok(())
}

/// Puts a notice at the end; whatever it tells of is told.
pub(crate) fn tell(conn: &Connection, notice: &Letter, at: Timestamp) -> Written<()> {
    if !insert(conn, notice, &Progress::decided(), at)? {
        return Ok(());
    }
    let Some((row, _)) = find(conn, &notice.id)? else { return Ok(()) };
    execute(
        conn,
        "UPDATE outbox SET told = 1
         WHERE stage >= 4 AND told = 0 AND address = (SELECT address FROM outbox WHERE id = ?)",
        [row],
    )?;
    execute(conn, "UPDATE outbox SET told = 1 WHERE id = ?", [row]).map(drop)
}

/// Remembers that a row names these files.
fn hold(conn: &Connection, holder: Holder, row: i64, files: &[FileId]) -> Written<()> {
    for file in files {
        let sql = "INSERT OR IGNORE INTO file_use (holder, row, file) VALUES (?, ?, ?)";
        execute(conn, sql, params![holder_code(holder), row, file.as_str()])?;
    }
    Ok(())
}

/// Forgets which files a row names that is not there any more.
pub(crate) fn let_go(conn: &Connection, holder: Holder, row: i64) -> Written<()> {
    let sql = "DELETE FROM file_use WHERE holder = ? AND row = ?";
    execute(conn, sql, params![holder_code(holder), row]).map(drop)
}

pub(crate) fn preview(conn: &Connection, letter: &Letter) -> Written<()> {
    if insert(conn, letter, &Progress::previewed(), Timestamp::default())? {
        return Ok(());
    }
    change(conn, &letter.id, Said::default(), Progress::preview_again)?;
    Ok(())
}

pub(crate) fn attempt(conn: &Connection, id: &OutboundId) -> Written<Leave> {
    let left = change(conn, id, Said::default(), Progress::attempt)?;
    Ok(left.unwrap_or(Leave::Ended))
}

pub(crate) fn settle(
    conn: &Connection,
    id: &OutboundId,
    settlement: &Settlement,
    at: Timestamp,
) -> Written<()> {
    let reason = match settlement {
        Settlement::Undeliverable { reason } | Settlement::Abandoned { reason } => Some(reason),
        _ => None,
    };
    let said = Said { reason: reason.map(String::as_str), at: Some(at) };
    change(conn, id, said, |progress| progress.settle(settlement))?;
    Ok(())
}

/// False when it is there already.
fn insert(conn: &Connection, letter: &Letter, progress: &Progress, at: Timestamp) -> Written<bool> {
    let address = address(conn, &letter.to)?;
    let inserted = execute(
        conn,
        "INSERT INTO outbox (address, session, delivery, part, act, at,
             open, stage, doubt, plain, attempts, not_before, shown, anew)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (session, delivery, part) DO NOTHING",
        params![
            address,
            letter.id.session.as_str(),
            letter.id.delivery,
            letter.id.part,
            letter.act,
            at.as_millis(),
            progress.is_open(),
            stage_code(progress.stage),
            doubt_code(progress.doubt),
            progress.form == Form::Plain,
            progress.attempts,
            progress.not_before.map(Timestamp::as_millis),
            progress.shown.as_ref().map(|shown| shown.as_str()),
            progress.anew,
        ],
    )?;
    if inserted == 1 {
        hold(conn, Holder::Outbox, conn.last_insert_rowid(), &letter.files)?;
    }
    Ok(inserted == 1)
}

fn find(conn: &Connection, id: &OutboundId) -> Written<Option<(i64, Progress)>> {
    let sql = "SELECT id, stage, doubt, plain, attempts, not_before, shown, anew FROM outbox
         WHERE session = ? AND delivery = ? AND part = ?";
    let id = params![id.session.as_str(), id.delivery, id.part];
    maybe(conn, sql, id, |row| Ok((row.get(0)?, rows::progress(row, 1)?)))
}

/// What is written beside a parcel's progress when it ends.
#[derive(Default)]
struct Said<'a> {
    reason: Option<&'a str>,
    at: Option<Timestamp>,
}

fn change<T>(
    conn: &Connection,
    id: &OutboundId,
    said: Said<'_>,
    verb: impl FnOnce(&mut Progress) -> T,
) -> Written<Option<T>> {
    let Some((row, before)) = find(conn, id)? else { return Ok(None) };
    let mut after = before.clone();
    let answer = verb(&mut after);
    if after == before {
        return Ok(Some(answer));
    }
    if after.has_ended() {
        withhold(conn, row)?;
    }
    execute(
        conn,
        "UPDATE outbox SET open = ?, stage = ?, doubt = ?, plain = ?, attempts = ?, not_before = ?,
             shown = ?, anew = ?, reason = ?, settled = ? WHERE id = ?",
        params![
            after.is_open(),
            stage_code(after.stage),
            doubt_code(after.doubt),
            after.form == Form::Plain,
            after.attempts,
            after.not_before.map(Timestamp::as_millis),
            after.shown.as_ref().map(|shown| shown.as_str()),
            after.anew,
            said.reason,
            said.at.filter(|_| after.has_ended()).map(Timestamp::as_millis),
            row,
        ],
    )?;
    Ok(Some(answer))
}

/// Confidential words are kept for as long as they have to be said. What they are is in the act itself,
/// so that it cannot be parted from them; a row without the word is not read any further.
fn withhold(conn: &Connection, row: i64) -> Written<()> {
    let sql = "UPDATE outbox SET act = ?2 WHERE id = ?1 AND instr(act, '\"confidential\"') > 0
         AND 'confidential' IN (act ->> '$.post.privacy', act ->> '$.edit.content.privacy',
             act ->> '$.draft.privacy')";
    let withheld = encode(&Act::Post(Content::withheld()))?;
    if execute(conn, sql, params![row, withheld])? > 0 {
        let_go(conn, Holder::Outbox, row)?;
    }
    Ok(())
}

/// What was on its way is unsure, as `Progress::recover` says; and how the life before ended.
pub(crate) fn recover(conn: &Connection) -> Written<Ended> {
    execute(conn, "UPDATE outbox SET stage = 1, doubt = 2 WHERE open = 1 AND stage = 2", [])?;
    execute(conn, "UPDATE outbox SET doubt = 2 WHERE open = 1 AND doubt = 1", [])?;
    execute(conn, "UPDATE outbox SET doubt = 2 WHERE stage = 0 AND doubt = 1", [])?;
    let sql = "SELECT value = 'yes' FROM meta WHERE key = 'alive'";
    let alive: bool = one(conn, sql, [], |row| row.get(0))?;
    execute(conn, "UPDATE meta SET value = 'yes' WHERE key = 'alive'", [])?;
    Ok(if alive { Ended::Abruptly } else { Ended::Cleanly })
}

pub(crate) fn close(conn: &Connection) -> Written<()> {
    execute(conn, "UPDATE meta SET value = 'no' WHERE key = 'alive'", []).map(drop)
}

/// What can be forgotten.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Old {
    Rows,
    Parcels,
}

/// How far forgetting has come.
pub(crate) struct Pruned {
    pub(crate) forgotten: u64,
    /// Where to go on; none at the end.
    pub(crate) next: Option<i64>,
}

/// How many rows are looked at before other writes get their turn.
const PRUNED_AT_ONCE: usize = 256;

/// Walks from the oldest on and stops where time has come to `before`, so that its cost is that of
/// what it forgets.
pub(crate) fn prune(conn: &Connection, old: Old, after: i64, before: Timestamp) -> Written<Pruned> {
    let (walk, forget, holder) = match old {
        Old::Rows => (
            "SELECT seq, at, state >= 2 FROM journal WHERE seq > ? ORDER BY seq LIMIT ?",
            "DELETE FROM journal WHERE seq = ?",
            Holder::Journal,
        ),
        Old::Parcels => (
            "SELECT id, at, stage >= 3 FROM outbox WHERE id > ? ORDER BY id LIMIT ?",
            "DELETE FROM outbox WHERE id = ?",
            Holder::Outbox,
        ),
    };
    let looked_at: Vec<(i64, i64, bool)> =
        all(conn, walk, params![after, PRUNED_AT_ONCE as i64], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let mut forgotten = 0;
    for (id, at, ended) in &looked_at {
        if *ended && *at < before.as_millis() {
            execute(conn, forget, [id])?;
            let_go(conn, holder, *id)?;
            forgotten += 1;
        }
    }
    let next = match looked_at.last() {
        Some((id, at, _)) if looked_at.len() == PRUNED_AT_ONCE && *at < before.as_millis() => {
            Some(*id)
        }
        _ => None,
    };
    Ok(Pruned { forgotten, next })
}

pub(crate) fn account(conn: &Connection, account: &AccountId) -> Written<i64> {
    let sql = "SELECT id FROM account WHERE name = ?";
    if let Some(id) = maybe(conn, sql, [account.as_str()], |row| row.get(0))? {
        return Ok(id);
    }
    execute(conn, "INSERT INTO account (name) VALUES (?)", [account.as_str()])?;
    Ok(conn.last_insert_rowid())
}

fn person(conn: &Connection, of: &AccountId, name: &SenderId) -> Written<i64> {
    let account = account(conn, of)?;
    let known = params![account, name.as_str()];
    let sql = "SELECT id FROM person WHERE account = ? AND name = ?";
    if let Some(id) = maybe(conn, sql, known, |row| row.get(0))? {
        return Ok(id);
    }
    execute(conn, "INSERT INTO person (account, name) VALUES (?, ?)", known)?;
    Ok(conn.last_insert_rowid())
}

fn address(conn: &Connection, to: &Address) -> Written<i64> {
    let thread = or_empty(to.thread.as_ref(), |id| id.as_str());
    place(conn, &to.account, to.chat.id.as_str(), thread, to.chat.kind.as_str())
}

/// The row of an address, or of what a key has in the place of one.
fn place(conn: &Connection, of: &AccountId, chat: &str, thread: &str, kind: &str) -> Written<i64> {
    let sql = "SELECT d.id FROM account a JOIN address d ON d.account = a.id
         WHERE a.name = ? AND d.chat = ? AND d.thread = ? AND d.kind = ?";
    let known = params![of.as_str(), chat, thread, kind];
    if let Some(id) = maybe(conn, sql, known, |row| row.get(0))? {
        return Ok(id);
    }
    let account = account(conn, of)?;
    let sql = "INSERT INTO address (account, chat, thread, kind) VALUES (?, ?, ?, ?)";
    execute(conn, sql, params![account, chat, thread, kind])?;
    Ok(conn.last_insert_rowid())
}

/// The conversation of an account that stands for everybody who was not let in: a stranger can come
/// from as many chats as they like. It is at no chat, and of a kind that no chat is.
fn nobody(conn: &Connection, account: i64) -> Written<i64> {
    let sql = "SELECT c.id FROM address d JOIN conversation c ON c.address = d.id
         WHERE d.account = ? AND d.chat = '' AND d.thread = '' AND d.kind = 'nobody'";
    if let Some(id) = maybe(conn, sql, [account], |row| row.get(0))? {
        return Ok(id);
    }
    let sql = "INSERT INTO address (account, chat, thread, kind) VALUES (?, '', '', 'nobody')";
    execute(conn, sql, [account])?;
    begin_conversation(conn, conn.last_insert_rowid(), "", 0)
}

/// A conversation and whose it is.
struct Conversation {
    id: i64,
    person: Option<String>,
}

fn known_conversation(conn: &Connection, key: &SessionKey) -> Written<Conversation> {
    let KeyColumns { account, chat, thread, kind, member, side } = KeyColumns::of(key);
    let sql = "SELECT c.id, p.name FROM account a JOIN address d ON d.account = a.id
             JOIN conversation c ON c.address = d.id LEFT JOIN person p ON p.id = c.owner
         WHERE a.name = ? AND d.chat = ? AND d.thread = ? AND d.kind = ?
             AND c.member = ? AND c.side = ?";
    let known = params![account, chat, thread, kind, member, side];
    let row = |row: &rusqlite::Row<'_>| Ok(Conversation { id: row.get(0)?, person: row.get(1)? });
    if let Some(conversation) = maybe(conn, sql, known, row)? {
        return Ok(conversation);
    }
    let address = place(conn, &key.account, chat, thread, kind)?;
    let id = begin_conversation(conn, address, member, side)?;
    Ok(Conversation { id, person: None })
}

fn begin_conversation(conn: &Connection, address: i64, member: &str, side: u32) -> Written<i64> {
    let sql = "INSERT INTO conversation (address, side, owner, owned_from, member)
         VALUES (?, ?, NULL, 0, ?)";
    execute(conn, sql, params![address, side, member])?;
    Ok(conn.last_insert_rowid())
}
