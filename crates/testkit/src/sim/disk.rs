//! A store that can be slow, full, unsure of itself, or the last thing a process does.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use async_trait::async_trait;
use talaria_clock::{Clock, SystemClock};
use talaria_model::{
    AccountId, Address, Digest, Entry, FileId, Grant, Inbound, MessageId, Outbound, OutboundId,
    Seq, SessionId, Timestamp,
};
use talaria_session::budget::{Day, Payer, Spent};
use talaria_session::{Ended, Session, SessionKey};
use talaria_store::{
    Admitted, AuditRow, Audited, Clue, Commit, Counts, Crossing, Delivered, Failed, Found,
    GuestChange, Guests, Kept, Leave, Life, MemoryStore, Named, Parcel, Queues, Reading, Recorded,
    Rewound, SearchScope, Settlement, Store, StoreError, Summary, Swap, Totals, Traced, Unanswered,
    Untold, Use, Wanted,
};
use tokio::sync::watch;

use super::ledger::Ledger;
use super::time::Watched;
use super::{Dice, Ground};

/// A method of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "they are the methods of the store, or what several have in common")]
pub enum Verb {
    Admit,
    Amend,
    Ignore,
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
    Search,
    Lives,
    Rename,
    Watched,
    PutAway,
    Deny,
    Guests,
    KeepGuests,
    Audit,
    Granted,
    Spent,
    Cursor,
    Unanswered,
    Prune,
}

/// A disk. Clones are the same one, before and after a crash.
#[derive(Clone)]
pub struct Disk {
    /// What is on it.
    pub kept: Arc<dyn Store>,
    ground: Ground,
    faults: Arc<Mutex<Faults>>,
    ledger: Arc<Mutex<Ledger>>,
    changed: Arc<watch::Sender<u64>>,
}

#[derive(Default)]
struct Faults {
    failures: HashMap<Verb, usize>,
    damages: HashMap<Verb, usize>,
    panics: HashMap<Verb, usize>,
    lies: HashMap<Verb, usize>,
    lag: Duration,
    slow_there: HashMap<Verb, Duration>,
    slow_back: HashMap<Verb, Duration>,
    full_until: Option<Timestamp>,
    moody: Option<Moody>,
}

/// Faults by chance.
pub struct Moody {
    /// Decides.
    pub dice: Dice,
    /// One call in so many finds the store unavailable; none when zero.
    pub fails: u64,
    /// One write in so many is made and reported as not made; none when zero. Not so a step: a store
    /// that says that a step was not written has not written it.
    pub lies: u64,
    /// Calls take up to this long to arrive and to come back.
    pub lag: Duration,
}

impl Disk {
    /// An empty disk.
    pub fn new(ground: Ground) -> Self {
        let changed = Arc::new(watch::Sender::new(0));
        let kept = Arc::new(MemoryStore::new());
        Self { kept, ground, faults: Arc::default(), ledger: Arc::default(), changed }
    }

    /// The next calls of this find the store unavailable.
    pub fn fails(&self, verb: Verb, times: usize) {
        self.faults().failures.insert(verb, times);
    }

    /// The next calls of this find the store damaged.
    pub fn is_damaged(&self, verb: Verb, times: usize) {
        self.faults().damages.insert(verb, times);
    }

    /// The next calls of this break down.
    pub fn panics(&self, verb: Verb, times: usize) {
        self.faults().panics.insert(verb, times);
    }

    /// The next calls of this write, and say that they did not.
    pub fn lies(&self, verb: Verb, times: usize) {
        self.faults().lies.insert(verb, times);
    }

    /// Every call takes this long to arrive and as long to come back.
    pub fn lags(&self, lag: Duration) {
        self.faults().lag = lag;
    }

    /// The answers of this take so long to come back.
    pub fn answers_late(&self, verb: Verb, lag: Duration) {
        self.faults().slow_back.insert(verb, lag);
    }

    /// Calls of this take so long before anything becomes of them.
    pub fn begins_late(&self, verb: Verb, lag: Duration) {
        self.faults().slow_there.insert(verb, lag);
    }

    /// Nothing can be written for so long.
    pub fn is_full(&self, time: Duration) {
        self.ground.log.note(format_args!("the disk is full for {time:?}"));
        self.faults().full_until = Some(self.ground.time.now() + time);
    }

    /// Fails by chance from here on.
    pub fn is_moody(&self, moody: Moody) {
        self.faults().moody = Some(moody);
    }

    /// Works from here on.
    pub fn heals(&self) {
        self.ground.log.note(format_args!("the disk heals"));
        *self.faults() = Faults::default();
    }

    /// Changes whenever something was written.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Everything that was ever written.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn arrive(&self, verb: Verb, kind: Kind) -> Result<(), StoreError> {
        let lag = {
            let mut faults = self.faults();
            faults.lag_of() + faults.slow_there.get(&verb).copied().unwrap_or_default()
        };
        if !lag.is_zero() {
            SystemClock.sleep(lag).await;
        }
        let mut faults = self.faults();
        let unavailable = |reason: &str| Err(StoreError::Unavailable { reason: reason.into() });
        if due(faults.failures.get_mut(&verb)) || faults.by_chance(|moody| moody.fails) {
            self.ground.log.note(format_args!("the disk refuses {verb:?}"));
            return unavailable("the test says so");
        }
        let is_full = faults.full_until.is_some_and(|until| self.ground.time.now() < until);
        if is_full && kind == Kind::Write {
            return unavailable("the disk is full");
        }
        if due(faults.damages.get_mut(&verb)) {
            return Err(StoreError::Damaged { reason: "the test says so".into() });
        }
        assert!(!due(faults.panics.get_mut(&verb)), "the test says so");
        Ok(())
    }

    async fn leave(&self, verb: Verb) {
        let lag = {
            let mut faults = self.faults();
            faults.lag_of() + faults.slow_back.get(&verb).copied().unwrap_or_default()
        };
        if !lag.is_zero() {
            SystemClock.sleep(lag).await;
        }
    }

    async fn read<T>(
        &self,
        verb: Verb,
        read: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let read = async {
            self.arrive(verb, Kind::Read).await?;
            let answer = at_once(read);
            self.leave(verb).await;
            answer
        };
        Watched { points: self.ground.points.clone(), wait: Box::pin(read) }.await
    }

    async fn write<T>(
        &self,
        verb: Verb,
        write: impl Future<Output = Result<T, StoreError>> + Send,
        record: impl FnOnce(&mut Ledger, &T) + Send,
    ) -> Result<T, StoreError>
    where
        T: Send,
    {
        let write = async {
            self.arrive(verb, Kind::Write).await?;
            self.ground.points.pass(format!("before {verb:?}")).await;
            let answer = at_once(write);
            if let Ok(written) = &answer {
                let mut ledger = self.ledger();
                ledger.at = self.ground.time.now();
                record(&mut ledger, written);
                let line = ledger.line.take();
                drop(ledger);
                if let Some(line) = line {
                    self.ground.log.note(format_args!("{verb:?}: {line}"));
                }
            }
            self.changed.send_modify(|count| *count += 1);
            self.ground.bell.send_modify(|count| *count += 1);
            self.ground.points.pass(format!("after {verb:?}")).await;
            self.leave(verb).await;
            let lies = {
                let mut faults = self.faults();
                due(faults.lies.get_mut(&verb))
                    || (verb != Verb::Commit && faults.by_chance(|moody| moody.lies))
            };
            if lies && answer.is_ok() {
                self.ground.log.note(format_args!("the disk denies {verb:?}"));
                return Err(StoreError::Unavailable { reason: "no answer".into() });
            }
            answer
        };
        Watched { points: self.ground.points.clone(), wait: Box::pin(write) }.await
    }
}

/// What a call does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
}

impl Faults {
    fn lag_of(&mut self) -> Duration {
        let moody = self.moody.as_mut().filter(|moody| !moody.lag.is_zero());
        let by_chance = moody.map_or(Duration::ZERO, |moody| {
            let most = u64::try_from(moody.lag.as_micros()).unwrap_or(u64::MAX);
            Duration::from_micros(moody.dice.below(most.max(1)))
        });
        self.lag + by_chance
    }

    fn by_chance(&mut self, rate: impl Fn(&Moody) -> u64) -> bool {
        self.moody.as_mut().is_some_and(|moody| {
            let rate = rate(moody);
            rate > 0 && moody.dice.below(rate) == 0
        })
    }
}

fn due(left: Option<&mut usize>) -> bool {
    match left {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        _ => false,
    }
}

/// Waits for a store on this thread, so that no virtual time passes and nothing else happens while
/// its own threads work: what they do in between has no say in what happens next.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[async_trait]
impl Store for Disk {
    async fn admit(&self, delivered: Delivered) -> Result<Vec<Admitted>, StoreError> {
        let asked = delivered.clone();
        let write = self.kept.admit(delivered);
        self.write(Verb::Admit, write, |ledger, admitted| ledger.admit(asked, admitted)).await
    }

    async fn amend(&self, seq: Seq, inbound: &Inbound) -> Result<(), StoreError> {
        let write = self.kept.amend(seq, inbound);
        self.write(Verb::Amend, write, |ledger, ()| ledger.amend(seq, inbound)).await
    }

    async fn ignore(&self, seq: Seq, inbound: &Inbound, reason: &str) -> Result<(), StoreError> {
        let write = self.kept.ignore(seq, inbound, reason);
        self.write(Verb::Ignore, write, |ledger, ()| ledger.ignore(seq, inbound, reason)).await
    }

    async fn deny(&self, rows: &[Seq], reason: &str) -> Result<(), StoreError> {
        let write = self.kept.deny(rows, reason);
        self.write(Verb::Deny, write, |ledger, ()| ledger.deny(rows, reason)).await
    }

    async fn guests(&self, account: &AccountId) -> Result<Guests, StoreError> {
        self.read(Verb::Guests, self.kept.guests(account)).await
    }

    async fn keep_guests(&self, change: GuestChange) -> Result<Swap, StoreError> {
        let asked = change.clone();
        let write = self.kept.keep_guests(change);
        self.write(Verb::KeepGuests, write, |ledger, swap| ledger.keep_guests(&asked, *swap)).await
    }

    async fn audit(&self, at: Timestamp, audited: Vec<Audited>) -> Result<(), StoreError> {
        self.write(Verb::Audit, self.kept.audit(at, audited), |_, ()| {}).await
    }

    async fn audited(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>, StoreError> {
        at_once(self.kept.audited(after, limit))
    }

    async fn cursor(&self, account: &AccountId) -> Result<Option<String>, StoreError> {
        let lag = self.faults().slow_there.get(&Verb::Cursor).copied();
        if let Some(lag) = lag {
            SystemClock.sleep(lag).await;
        }
        at_once(self.kept.cursor(account))
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<Session>, StoreError> {
        self.read(Verb::Load, self.kept.load(key)).await
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        let asked = commit.clone();
        let write = self.kept.commit(commit);
        self.write(Verb::Commit, write, |ledger, ()| ledger.commit(asked)).await
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
        let write = self.kept.preview(outbound);
        self.write(Verb::Preview, write, |ledger, ()| ledger.preview(outbound)).await
    }

    async fn attempt(&self, id: &OutboundId) -> Result<Leave, StoreError> {
        let write = self.kept.attempt(id);
        self.write(Verb::Attempt, write, |ledger, leave| ledger.attempt(id, *leave)).await
    }

    async fn settle(
        &self,
        id: &OutboundId,
        settlement: Settlement,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let write = self.kept.settle(id, settlement.clone(), at);
        self.write(Verb::Settle, write, |ledger, ()| ledger.settle(id, settlement)).await
    }

    async fn shown(&self, id: &OutboundId) -> Result<Option<MessageId>, StoreError> {
        at_once(self.kept.shown(id))
    }

    async fn crossing(&self, said: &OutboundId, row: Seq) -> Result<Crossing, StoreError> {
        at_once(self.kept.crossing(said, row))
    }

    async fn granted(&self, digest: &Digest) -> Result<Option<Grant>, StoreError> {
        self.read(Verb::Granted, self.kept.granted(digest)).await
    }

    async fn grants(&self, limit: usize) -> Result<Vec<Grant>, StoreError> {
        at_once(self.kept.grants(limit))
    }

    async fn revoke_grant(&self, digest: &Digest) -> Result<bool, StoreError> {
        at_once(self.kept.revoke_grant(digest))
    }

    async fn spent(&self, day: Day, payer: &Payer) -> Result<Spent, StoreError> {
        self.read(Verb::Spent, self.kept.spent(day, payer)).await
    }

    async fn spending(&self, day: Day, limit: usize) -> Result<Vec<(Payer, Spent)>, StoreError> {
        at_once(self.kept.spending(day, limit))
    }

    async fn forget_spending(&self, before: Day) -> Result<u64, StoreError> {
        at_once(self.kept.forget_spending(before))
    }

    async fn parcels(&self, to: &Address, limit: usize) -> Result<Vec<Parcel>, StoreError> {
        self.read(Verb::Parcels, self.kept.parcels(to, limit)).await
    }

    async fn failed(&self, limit: usize) -> Result<Vec<Failed>, StoreError> {
        at_once(self.kept.failed(limit))
    }

    async fn untold(&self, to: &Address) -> Result<Option<Untold>, StoreError> {
        at_once(self.kept.untold(to))
    }

    async fn untold_at(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Vec<Address>, StoreError> {
        at_once(self.kept.untold_at(after, limit))
    }

    async fn tell(&self, notice: &Outbound, at: Timestamp) -> Result<(), StoreError> {
        let write = self.kept.tell(notice, at);
        self.write(Verb::Tell, write, |ledger, ()| ledger.tell(notice)).await
    }

    async fn denied(
        &self,
        account: &AccountId,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<Timestamp>, StoreError> {
        at_once(self.kept.denied(account, since, limit))
    }

    async fn uses(&self, files: &[FileId]) -> Result<Vec<Use>, StoreError> {
        at_once(self.kept.uses(files))
    }

    async fn recover(&self) -> Result<Ended, StoreError> {
        self.write(Verb::Recover, self.kept.recover(), |_, _| {}).await
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
        at_once(self.kept.close())
    }

    async fn conversations(
        &self,
        account: Option<&AccountId>,
        limit: usize,
    ) -> Result<Vec<Summary>, StoreError> {
        at_once(self.kept.conversations(account, limit))
    }

    async fn transcript(
        &self,
        key: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Recorded>, StoreError> {
        at_once(self.kept.transcript(key, before, limit))
    }

    async fn search(&self, wanted: &Wanted) -> Result<Vec<Found>, StoreError> {
        self.read(Verb::Search, self.kept.search(wanted)).await
    }

    async fn life(&self, id: &SessionId) -> Result<Option<Life>, StoreError> {
        self.read(Verb::Lives, self.kept.life(id)).await
    }

    async fn lives(
        &self,
        scope: &SearchScope,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<Life>, StoreError> {
        self.read(Verb::Lives, self.kept.lives(scope, after, limit)).await
    }

    async fn named(
        &self,
        scope: &SearchScope,
        name: &str,
        limit: usize,
    ) -> Result<Named, StoreError> {
        self.read(Verb::Lives, self.kept.named(scope, name, limit)).await
    }

    async fn rename(&self, life: &SessionId, title: &str) -> Result<(), StoreError> {
        self.write(Verb::Rename, self.kept.rename(life, title), |_, ()| {}).await
    }

    async fn totals(
        &self,
        scope: &SearchScope,
        since: Option<Timestamp>,
    ) -> Result<Totals, StoreError> {
        at_once(self.kept.totals(scope, since))
    }

    async fn active_since(
        &self,
        since: Timestamp,
        after: Option<SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, StoreError> {
        self.read(Verb::Watched, self.kept.active_since(since, after, limit)).await
    }

    async fn quiet_since(
        &self,
        since: Timestamp,
        after: Option<SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, StoreError> {
        self.read(Verb::Watched, self.kept.quiet_since(since, after, limit)).await
    }

    async fn put_away(&self, life: &SessionId) -> Result<u32, StoreError> {
        self.write(Verb::PutAway, self.kept.put_away(life), |_, _| {}).await
    }

    async fn entries(
        &self,
        life: &SessionId,
        reading: Reading,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Kept>, StoreError> {
        self.read(Verb::Lives, self.kept.entries(life, reading, after, limit)).await
    }

    async fn rewinds(&self, life: &SessionId) -> Result<Vec<Rewound>, StoreError> {
        at_once(self.kept.rewinds(life))
    }

    async fn trace(&self, clue: &Clue, limit: usize) -> Result<Vec<Traced>, StoreError> {
        at_once(self.kept.trace(clue, limit))
    }

    async fn keep_unanswered(&self, rows: Vec<Unanswered>) -> Result<(), StoreError> {
        self.write(Verb::Unanswered, self.kept.keep_unanswered(rows), |_, ()| {}).await
    }

    async fn unanswered(&self, clue: &Clue, limit: usize) -> Result<Vec<Unanswered>, StoreError> {
        at_once(self.kept.unanswered(clue, limit))
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        at_once(self.kept.counts())
    }

    async fn queues(&self) -> Result<Queues, StoreError> {
        at_once(self.kept.queues())
    }

    async fn prune(&self, before: Timestamp) -> Result<u64, StoreError> {
        assert!(!due(self.faults().panics.get_mut(&Verb::Prune)), "the test says so");
        at_once(self.kept.prune(before))
    }

    async fn forget_lives(
        &self,
        since: Timestamp,
        spare: &[SessionKey],
    ) -> Result<u64, StoreError> {
        at_once(self.kept.forget_lives(since, spare))
    }

    async fn forget_entries(&self, before: Timestamp) -> Result<u64, StoreError> {
        at_once(self.kept.forget_entries(before))
    }

    async fn shrink(&self) -> Result<u64, StoreError> {
        at_once(self.kept.shrink())
    }
}
