//! The store on embedded SQLite, for one machine.
//!
//! `state.db` is the truth: one thread writes it, a few read it. `search.db` is an index of it that
//! can be deleted at any time. This crate turns the contract's values into rows and back; it knows
//! nothing of what sessions decide, and it takes for granted that no other process writes the files.
#![forbid(unsafe_code)]

mod copy;
mod going_back;
mod grants;
mod guests;
mod index;
mod lives;
mod open;
mod past;
mod read;
mod readers;
mod rows;
mod search;
mod spending;
mod sql;
#[cfg(test)]
mod tests;
mod trace;
mod unanswered;
mod write;
mod writer;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::Connection;
use talaria_model::{
    AccountId, Address, Digest, Entry, FileId, Grant, Inbound, MessageId, Outbound, OutboundId,
    Seq, SessionId, Timestamp,
};
use talaria_session::budget::{Day, Payer, Spent};
use talaria_session::{Ended, Session, SessionKey};
use talaria_store::{
    Admitted, AuditRow, Audited, Clue, Commit, Counts, Crossing, Delivered, Failed, Found,
    GuestChange, Guests, Kept, Leave, Life, Name, Named, Parcel, Presence, Query, Queues, Reading,
    Recorded, Rewound, SearchScope, Settlement, Store, StoreError, Summary, Swap, Totals, Traced,
    Unanswered, Untold, Use, Wanted,
};

pub use copy::{copy, inspect, schema};
pub use going_back::{Going, Since, WentBack, go_back_to};
pub use open::{OpenError, rehearse};

use lives::Quiet;
use open::{Purpose, connect, full_check, open_state};
use past::{Forgotten, Retired};
use readers::Readers;
use search::Search;
use sql::store_error;
use write::{Amendment, Batch, Letter, Old, Step};
use writer::Writer;

/// The store in a folder. Dropping it waits for what was handed in and lets go of the files.
pub struct SqliteStore {
    // Dropped in this order: the writer is the last to let go, and leaves no log behind.
    search: Search,
    readers: Readers,
    writer: Writer,
}

impl SqliteStore {
    /// Opens `state.db` and `search.db` in a folder that exists; makes them if they are not there
    /// and brings them to the version this program knows. Blocks while it does.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let state = folder.join("state.db");
        let conn = open_state(&state)?;
        let explain = |source| OpenError::Folder { path: state.clone(), source };
        let truth = connect(&state, Purpose::Read)
            .map_err(|error| explain(std::io::Error::other(error)))?;
        Ok(Self {
            writer: Writer::start(conn).map_err(explain)?,
            readers: Readers::start(&state).map_err(explain)?,
            search: Search::start(truth, folder.join("search.db")).map_err(explain)?,
        })
    }

    /// Looks through the whole of `state.db` for damage. Takes long for a large file, during which
    /// other reads go on.
    pub async fn check(&self) -> Result<(), StoreError> {
        let found = self.readers.read(|conn| full_check(conn).map_err(store_error)).await?;
        found.map_or(Ok(()), |reason| Err(StoreError::Damaged { reason }))
    }

    async fn forget(&self, old: Old, before: Timestamp) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        let mut next = Some(0);
        while let Some(after) = next {
            let pruned =
                self.writer.write(move |conn| write::prune(conn, old, after, before)).await?;
            forgotten += pruned.forgotten;
            next = pruned.next;
        }
        Ok(forgotten)
    }
}

impl SqliteStore {
    /// A piece at a time, so that other writes do not wait for all of it.
    async fn forget_pieces<Work>(
        &self,
        from: i64,
        piece: impl Fn(i64) -> Work,
    ) -> Result<u64, StoreError>
    where
        Work: FnOnce(&Connection) -> Result<Forgotten, StoreError> + Send + 'static,
    {
        let mut many = 0;
        let mut next = Some(from);
        while let Some(from) = next {
            let forgotten = self.writer.write(piece(from)).await?;
            self.search.forget(forgotten.positions);
            many += forgotten.many;
            next = forgotten.next;
        }
        Ok(many)
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn admit(&self, delivered: Delivered) -> Result<Vec<Admitted>, StoreError> {
        let batch = Batch::of(delivered)?;
        self.writer.write(|conn| batch.write(conn)).await
    }

    async fn amend(&self, seq: Seq, inbound: &Inbound) -> Result<(), StoreError> {
        let amendment = Amendment::of(seq, inbound)?;
        self.writer.write(|conn| amendment.write(conn)).await
    }

    async fn ignore(&self, seq: Seq, inbound: &Inbound, reason: &str) -> Result<(), StoreError> {
        let (rest, reason) = (Amendment::of(seq, inbound)?, reason.to_owned());
        self.writer.write(move |conn| rest.ignore(conn, &reason)).await
    }

    async fn deny(&self, rows: &[Seq], reason: &str) -> Result<(), StoreError> {
        let (rows, reason) = (rows.to_vec(), reason.to_owned());
        self.writer.write(move |conn| guests::deny(conn, &rows, &reason)).await
    }

    async fn guests(&self, account: &AccountId) -> Result<Guests, StoreError> {
        let account = account.clone();
        self.readers.read(move |conn| guests::guests(conn, &account)).await
    }

    async fn keep_guests(&self, change: GuestChange) -> Result<Swap, StoreError> {
        let change = guests::Change::of(change)?;
        self.writer.write(|conn| change.write(conn)).await
    }

    async fn audit(&self, at: Timestamp, audited: Vec<Audited>) -> Result<(), StoreError> {
        self.writer.write(move |conn| guests::audit(conn, at, audited)).await
    }

    async fn audited(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>, StoreError> {
        self.readers.read(move |conn| guests::audited(conn, after, limit)).await
    }

    async fn cursor(&self, account: &AccountId) -> Result<Option<String>, StoreError> {
        let account = account.clone();
        self.readers.read(move |conn| read::cursor(conn, &account)).await
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<Session>, StoreError> {
        let key = key.clone();
        self.readers.read(move |conn| read::load(conn, &key)).await
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        let step = Step::of(commit)?;
        let records = step.records();
        self.writer.write(|conn| step.write(conn)).await?;
        if records {
            self.search.wake();
        }
        Ok(())
    }

    async fn unread(
        &self,
        key: &SessionKey,
        limit: usize,
    ) -> Result<Vec<(Seq, Inbound)>, StoreError> {
        let key = key.clone();
        self.readers.read(move |conn| read::unread(conn, &key, limit)).await
    }

    async fn history(&self, session: &SessionId, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let session = session.clone();
        self.readers.read(move |conn| lives::history(conn, &session, limit)).await
    }

    async fn preview(&self, outbound: &Outbound) -> Result<(), StoreError> {
        let letter = Letter::of(outbound)?;
        self.writer.write(move |conn| write::preview(conn, &letter)).await
    }

    async fn attempt(&self, id: &OutboundId) -> Result<Leave, StoreError> {
        let id = id.clone();
        self.writer.write(move |conn| write::attempt(conn, &id)).await
    }

    async fn settle(
        &self,
        id: &OutboundId,
        settlement: Settlement,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let id = id.clone();
        self.writer.write(move |conn| write::settle(conn, &id, &settlement, at)).await
    }

    async fn shown(&self, id: &OutboundId) -> Result<Option<MessageId>, StoreError> {
        let id = id.clone();
        self.readers.read(move |conn| read::shown(conn, &id)).await
    }

    async fn crossing(&self, said: &OutboundId, row: Seq) -> Result<Crossing, StoreError> {
        let said = said.clone();
        self.readers.read(move |conn| read::crossing(conn, &said, row)).await
    }

    async fn granted(&self, digest: &Digest) -> Result<Option<Grant>, StoreError> {
        let digest = *digest;
        self.readers.read(move |conn| grants::find(conn, &digest)).await
    }

    async fn grants(&self, limit: usize) -> Result<Vec<Grant>, StoreError> {
        self.readers.read(move |conn| grants::newest(conn, limit)).await
    }

    async fn revoke_grant(&self, digest: &Digest) -> Result<bool, StoreError> {
        let digest = *digest;
        self.writer.write(move |conn| grants::revoke(conn, &digest)).await
    }

    async fn spent(&self, day: Day, payer: &Payer) -> Result<Spent, StoreError> {
        let payer = payer.clone();
        self.readers.read(move |conn| spending::spent(conn, day, &payer)).await
    }

    async fn spending(&self, day: Day, limit: usize) -> Result<Vec<(Payer, Spent)>, StoreError> {
        self.readers.read(move |conn| spending::of_day(conn, day, limit)).await
    }

    async fn forget_spending(&self, before: Day) -> Result<u64, StoreError> {
        self.writer.write(move |conn| spending::forget(conn, before)).await
    }

    async fn parcels(&self, to: &Address, limit: usize) -> Result<Vec<Parcel>, StoreError> {
        let to = to.clone();
        self.readers.read(move |conn| read::parcels(conn, &to, limit)).await
    }

    async fn failed(&self, limit: usize) -> Result<Vec<Failed>, StoreError> {
        self.readers.read(move |conn| read::failed(conn, limit)).await
    }

    async fn untold(&self, to: &Address) -> Result<Option<Untold>, StoreError> {
        let to = to.clone();
        self.readers.read(move |conn| read::untold(conn, &to)).await
    }

    async fn untold_at(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Vec<Address>, StoreError> {
        self.readers.read(move |conn| read::untold_at(conn, after.as_ref(), limit)).await
    }

    async fn tell(&self, notice: &Outbound, at: Timestamp) -> Result<(), StoreError> {
        let letter = Letter::of(notice)?;
        self.writer.write(move |conn| write::tell(conn, &letter, at)).await
    }

    async fn denied(
        &self,
        account: &AccountId,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<Timestamp>, StoreError> {
        let account = account.clone();
        self.readers.read(move |conn| read::denied(conn, &account, since, limit)).await
    }

    async fn uses(&self, files: &[FileId]) -> Result<Vec<Use>, StoreError> {
        let files = files.to_vec();
        self.readers.read(move |conn| read::uses(conn, &files)).await
    }

    async fn recover(&self) -> Result<Ended, StoreError> {
        self.writer.write(write::recover).await
    }

    async fn restless(
        &self,
        after: Option<SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, StoreError> {
        self.readers.read(move |conn| read::restless(conn, after.as_ref(), limit)).await
    }

    async fn undelivered(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Vec<Address>, StoreError> {
        self.readers.read(move |conn| read::undelivered(conn, after.as_ref(), limit)).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.writer.write(write::close).await?;
        self.writer.tidy().await
    }

    async fn conversations(
        &self,
        account: Option<&AccountId>,
        limit: usize,
    ) -> Result<Vec<Summary>, StoreError> {
        let account = account.cloned();
        self.readers.read(move |conn| read::conversations(conn, account.as_ref(), limit)).await
    }

    async fn transcript(
        &self,
        key: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Recorded>, StoreError> {
        let key = key.clone();
        self.readers.read(move |conn| read::transcript(conn, &key, before, limit)).await
    }

    async fn search(&self, wanted: &Wanted) -> Result<Vec<Found>, StoreError> {
        match Query::new(&wanted.text) {
            Some(query) => self.search.find(wanted.clone(), query).await,
            None => Ok(Vec::new()),
        }
    }

    async fn life(&self, id: &SessionId) -> Result<Option<Life>, StoreError> {
        let id = id.clone();
        self.readers.read(move |conn| lives::life(conn, &id)).await
    }

    async fn lives(
        &self,
        scope: &SearchScope,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<Life>, StoreError> {
        let (scope, after) = (scope.clone(), after.cloned());
        self.readers.read(move |conn| lives::lives(conn, &scope, after.as_ref(), limit)).await
    }

    async fn named(
        &self,
        scope: &SearchScope,
        name: &str,
        limit: usize,
    ) -> Result<Named, StoreError> {
        let Some(name) = Name::new(name) else { return Ok(Named::Nothing) };
        let scope = scope.clone();
        self.readers.read(move |conn| lives::named(conn, &scope, &name, limit)).await
    }

    async fn rename(&self, life: &SessionId, title: &str) -> Result<(), StoreError> {
        let (id, title) = (life.clone(), title.to_owned());
        self.writer
            .write(move |conn| {
                let Some(Life { mut past, presence, .. }) = lives::life(conn, &id)? else {
                    return Ok(());
                };
                past.title.clone_from(&title);
                match presence {
                    Presence::Present => past::rename(conn, &id, &title),
                    Presence::Past { why } => past::keep(conn, &Retired::of(past, why)?),
                }
            })
            .await
    }

    async fn totals(
        &self,
        scope: &SearchScope,
        since: Option<Timestamp>,
    ) -> Result<Totals, StoreError> {
        let scope = scope.clone();
        self.readers.read(move |conn| lives::totals(conn, &scope, since)).await
    }

    async fn active_since(
        &self,
        since: Timestamp,
        after: Option<SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, StoreError> {
        let read = move |conn: &_| lives::sessions(conn, Quiet::Not, since, after.as_ref(), limit);
        self.readers.read(read).await
    }

    async fn quiet_since(
        &self,
        since: Timestamp,
        after: Option<SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, StoreError> {
        let read =
            move |conn: &_| lives::sessions(conn, Quiet::Perhaps, since, after.as_ref(), limit);
        self.readers.read(read).await
    }

    async fn put_away(&self, life: &SessionId) -> Result<u32, StoreError> {
        let life = life.clone();
        self.writer.write(move |conn| past::put_away(conn, &life)).await
    }

    async fn entries(
        &self,
        life: &SessionId,
        reading: Reading,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Kept>, StoreError> {
        let life = life.clone();
        self.readers.read(move |conn| lives::entries(conn, &life, reading, after, limit)).await
    }

    async fn rewinds(&self, life: &SessionId) -> Result<Vec<Rewound>, StoreError> {
        let life = life.clone();
        self.readers.read(move |conn| lives::rewinds(conn, &life)).await
    }

    async fn trace(&self, clue: &Clue, limit: usize) -> Result<Vec<Traced>, StoreError> {
        let clue = clue.clone();
        self.readers.read(move |conn| trace::trace(conn, &clue, limit)).await
    }

    async fn keep_unanswered(&self, rows: Vec<Unanswered>) -> Result<(), StoreError> {
        self.writer.write(move |conn| unanswered::keep(conn, &rows)).await
    }

    async fn unanswered(&self, clue: &Clue, limit: usize) -> Result<Vec<Unanswered>, StoreError> {
        let clue = clue.clone();
        self.readers.read(move |conn| unanswered::of(conn, &clue, limit)).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.readers.read(read::counts).await
    }

    async fn queues(&self) -> Result<Queues, StoreError> {
        self.readers.read(read::queues).await
    }

    async fn prune(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut rows = self.forget(Old::Rows, before).await?;
        rows += self.forget(Old::Parcels, before).await?;
        loop {
            let some = self.writer.write(move |conn| unanswered::forget(conn, before)).await?;
            if some == 0 {
                return Ok(rows);
            }
            rows += some as u64;
        }
    }

    async fn forget_lives(
        &self,
        since: Timestamp,
        spare: &[SessionKey],
    ) -> Result<u64, StoreError> {
        let spare: Arc<[SessionKey]> = spare.into();
        self.forget_pieces(i64::MAX, |before| {
            let spare = spare.clone();
            move |conn: &Connection| past::forget_lives(conn, before, since, &spare)
        })
        .await
    }

    async fn forget_entries(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.forget_pieces(0, |after| {
            move |conn: &Connection| past::forget_entries(conn, after, before)
        })
        .await
    }

    async fn shrink(&self) -> Result<u64, StoreError> {
        let mut given_back = 0;
        loop {
            match self.writer.write(past::shrink).await? {
                0 => return Ok(given_back),
                bytes => given_back += bytes,
            }
        }
    }
}
