//! A store that can be slow, unavailable, or the last thing a process does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use talaria_clock::{Clock, SystemClock};
use talaria_model::{
    AccountId, Address, Entry, FileId, Inbound, Outbound, OutboundId, Seq, SessionId, Timestamp,
};
use talaria_session::{Ended, Session, SessionKey};
use talaria_store::{
    Admitted, Commit, Counts, Delivered, Failed, Found, Leave, MemoryStore, Parcel, Recorded,
    SearchScope, Settlement, Store, StoreError, Summary, Untold, Use,
};
use tokio::sync::watch;

use super::points::Points;

/// A method of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Admit,
    Load,
    Commit,
    Unread,
    History,
    Preview,
    Attempt,
    Settle,
    Parcels,
    Recover,
    Restless,
    Undelivered,
    Tell,
}

/// A disk. Clones are the same one, before and after a crash.
#[derive(Clone)]
pub(crate) struct Disk {
    pub(crate) kept: MemoryStore,
    points: Points,
    faults: Arc<Mutex<Faults>>,
    changed: Arc<watch::Sender<u64>>,
}

#[derive(Default)]
struct Faults {
    failures: HashMap<Verb, usize>,
    damages: HashMap<Verb, usize>,
    panics: HashMap<Verb, usize>,
    lag: Duration,
    slow_there: HashMap<Verb, Duration>,
    slow_back: HashMap<Verb, Duration>,
}

impl Disk {
    pub(crate) fn new(points: Points) -> Self {
        let changed = Arc::new(watch::Sender::new(0));
        Self { kept: MemoryStore::new(), points, faults: Arc::default(), changed }
    }

    /// The next calls of this find the store unavailable.
    pub(crate) fn fails(&self, verb: Verb, times: usize) {
        self.faults().failures.insert(verb, times);
    }

    /// The next calls of this find the store damaged.
    pub(crate) fn is_damaged(&self, verb: Verb, times: usize) {
        self.faults().damages.insert(verb, times);
    }

    /// The next calls of this break down.
    pub(crate) fn panics(&self, verb: Verb, times: usize) {
        self.faults().panics.insert(verb, times);
    }

    /// Every call takes this long to arrive and as long to come back.
    pub(crate) fn lags(&self, lag: Duration) {
        self.faults().lag = lag;
    }

    /// The answers of this take so long to come back.
    pub(crate) fn answers_late(&self, verb: Verb, lag: Duration) {
        self.faults().slow_back.insert(verb, lag);
    }

    /// Calls of this take so long before anything becomes of them.
    pub(crate) fn begins_late(&self, verb: Verb, lag: Duration) {
        self.faults().slow_there.insert(verb, lag);
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn faults(&self) -> std::sync::MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn arrive(&self, verb: Verb) -> Result<(), StoreError> {
        let lag = {
            let faults = self.faults();
            faults.lag + faults.slow_there.get(&verb).copied().unwrap_or_default()
        };
        if !lag.is_zero() {
            SystemClock.sleep(lag).await;
        }
        let mut faults = self.faults();
        let due = |left: Option<&mut usize>| match left {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        };
        if due(faults.failures.get_mut(&verb)) {
            return Err(StoreError::Unavailable { reason: "the test says so".into() });
        }
        if due(faults.damages.get_mut(&verb)) {
            return Err(StoreError::Damaged { reason: "the test says so".into() });
        }
        assert!(!due(faults.panics.get_mut(&verb)), "the test says so");
        Ok(())
    }

    async fn leave(&self, verb: Verb) {
        let lag = {
            let faults = self.faults();
            faults.lag + faults.slow_back.get(&verb).copied().unwrap_or_default()
        };
        if !lag.is_zero() {
            SystemClock.sleep(lag).await;
        }
    }

    async fn read<T>(
        &self,
        verb: Verb,
        read: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.arrive(verb).await?;
        let answer = read.await;
        self.leave(verb).await;
        answer
    }

    async fn write<T>(
        &self,
        verb: Verb,
        write: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.arrive(verb).await?;
        self.points.pass(&format!("before {verb:?}")).await;
        let answer = write.await;
        self.changed.send_modify(|count| *count += 1);
        self.points.pass(&format!("after {verb:?}")).await;
        self.leave(verb).await;
        answer
    }
}

#[async_trait]
impl Store for Disk {
    async fn admit(&self, delivered: Delivered) -> Result<Vec<Admitted>, StoreError> {
        self.write(Verb::Admit, self.kept.admit(delivered)).await
    }

    async fn cursor(&self, account: &AccountId) -> Result<Option<String>, StoreError> {
        self.kept.cursor(account).await
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<Session>, StoreError> {
        self.read(Verb::Load, self.kept.load(key)).await
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        self.write(Verb::Commit, self.kept.commit(commit)).await
    }

    async fn unread(
        &self,
        key: &SessionKey,
        limit: usize,
    ) -> Result<Vec<(Seq, Inbound)>, StoreError> {
        self.read(Verb::Unread, self.kept.unread(key, limit)).await
    }

    async fn history(&self, session: &SessionId, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.read(Verb::History, self.kept.history(session, limit)).await
    }

    async fn preview(&self, outbound: &Outbound) -> Result<(), StoreError> {
        self.write(Verb::Preview, self.kept.preview(outbound)).await
    }

    async fn attempt(&self, id: &OutboundId) -> Result<Leave, StoreError> {
        self.write(Verb::Attempt, self.kept.attempt(id)).await
    }

    async fn settle(&self, id: &OutboundId, settlement: Settlement) -> Result<(), StoreError> {
        self.write(Verb::Settle, self.kept.settle(id, settlement)).await
    }

    async fn parcels(&self, to: &Address, limit: usize) -> Result<Vec<Parcel>, StoreError> {
        self.read(Verb::Parcels, self.kept.parcels(to, limit)).await
    }

    async fn failed(&self, limit: usize) -> Result<Vec<Failed>, StoreError> {
        self.kept.failed(limit).await
    }

    async fn untold(&self, to: &Address) -> Result<Option<Untold>, StoreError> {
        self.kept.untold(to).await
    }

    async fn untold_at(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Vec<Address>, StoreError> {
        self.kept.untold_at(after, limit).await
    }

    async fn tell(&self, notice: &Outbound, at: Timestamp) -> Result<(), StoreError> {
        self.write(Verb::Tell, self.kept.tell(notice, at)).await
    }

    async fn uses(&self, files: &[FileId]) -> Result<Vec<Use>, StoreError> {
        self.kept.uses(files).await
    }

    async fn recover(&self) -> Result<Ended, StoreError> {
        self.write(Verb::Recover, self.kept.recover()).await
    }

    async fn restless(
        &self,
        after: Option<SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, StoreError> {
        self.read(Verb::Restless, self.kept.restless(after, limit)).await
    }

    async fn undelivered(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Vec<Address>, StoreError> {
        self.read(Verb::Undelivered, self.kept.undelivered(after, limit)).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.kept.close().await
    }

    async fn conversations(
        &self,
        account: Option<&AccountId>,
        limit: usize,
    ) -> Result<Vec<Summary>, StoreError> {
        self.kept.conversations(account, limit).await
    }

    async fn transcript(
        &self,
        key: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Recorded>, StoreError> {
        self.kept.transcript(key, before, limit).await
    }

    async fn search(
        &self,
        scope: SearchScope,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Found>, StoreError> {
        self.kept.search(scope, query, limit).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.kept.counts().await
    }

    async fn prune(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.kept.prune(before).await
    }
}
