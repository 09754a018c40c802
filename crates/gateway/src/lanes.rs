//! All lanes: one per session that has something to do.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talaria_model::{AccountId, Inbound, Seq};
use talaria_session::{Ended, Event, SessionKey, is_control};
use talaria_store::StoreError;
use tokio::sync::Semaphore;

use crate::bursts::Heard;
use crate::chores::keep_doing;
use crate::drain::Leaving;
use crate::dump::LaneDump;
use crate::lane::{self, Lane};
use crate::shared::Shared;

/// How many sessions are taken up per look into the store.
const PAGE: usize = 500;

/// The lanes that are in memory.
pub(crate) struct Lanes {
    lanes: Mutex<HashMap<SessionKey, Arc<Lane>>>,
    /// How the last run ended, for as long as some of its sessions are still to be taken up.
    resuming: Mutex<Option<Ended>>,
    /// How many of them are taken up at the same time.
    seats: Arc<Semaphore>,
}

impl Lanes {
    pub(crate) fn new(seats: usize) -> Self {
        let seats = Arc::new(Semaphore::new(seats));
        Self { lanes: Mutex::default(), resuming: Mutex::default(), seats }
    }

    fn resuming(&self) -> MutexGuard<'_, Option<Ended>> {
        self.resuming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether a session has something to do, or had a moment ago.
    pub(crate) fn has(&self, key: &SessionKey) -> bool {
        self.lock().contains_key(key)
    }

    pub(crate) fn dump(&self) -> Vec<LaneDump> {
        self.lock().values().map(|lane| lane.dump()).collect()
    }

    pub(crate) fn keys(&self) -> Vec<SessionKey> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, Arc<Lane>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells every lane that the process is about to end, always in the same order.
    pub(crate) fn leave_all(&self, leaving: impl Fn() -> Leaving) {
        let mut lanes: Vec<Arc<Lane>> = self.lock().values().cloned().collect();
        lanes.sort_by_cached_key(|lane| lane.key.to_string());
        for lane in lanes {
            lane.leave(leaving());
        }
    }

    /// Lets go of a lane, unless something reached it in the meantime.
    pub(crate) fn leave(&self, lane: &Arc<Lane>) -> bool {
        let mut lanes = self.lock();
        if !lane.is_empty() {
            return false;
        }
        lanes.remove(&lane.key);
        true
    }

    /// Forgets a lane that ended by itself, so that the next event gets a fresh one.
    pub(crate) fn forget(&self, lane: &Arc<Lane>) {
        let mut lanes = self.lock();
        if lanes.get(&lane.key).is_some_and(|known| Arc::ptr_eq(known, lane)) {
            lanes.remove(&lane.key);
        }
    }
}

/// Hands a journalled event to its session's lane. It is in the journal already, so a lane with a
/// full inbox reads it from there later.
pub(crate) fn offer(shared: &Arc<Shared>, key: SessionKey, seq: Seq, inbound: Inbound) {
    with_lane(shared, key, |lane| {
        if is_control(&inbound) {
            lane.push_control(seq, inbound);
        } else {
            let bursts = shared.bursts_for(&lane.key);
            let heard = Heard::new(seq, inbound, &bursts, shared.clock.now());
            lane.push(heard, shared.limits.inbox);
        }
    });
}

/// Tells a session something that did not arrive from a platform.
pub(crate) fn tell(shared: &Arc<Shared>, key: SessionKey, event: Event) {
    with_lane(shared, key, |lane| lane.tell(event));
}

/// Lets the sessions of an account go on that was taken out.
pub(crate) fn wake(shared: &Shared, account: &AccountId) {
    let lanes = shared.lanes.lock();
    lanes.values().filter(|lane| lane.key.account == *account).for_each(|lane| lane.wake());
}

/// Lets a session's lane look into the journal for what nobody told it of.
pub(crate) fn look(shared: &Arc<Shared>, key: SessionKey) {
    with_lane(shared, key, Lane::look);
}

/// Takes up every session that the last run left with something to do, as many at a time as there are
/// seats. Returns once the seats are taken or nobody is left; the rest goes on in the background, so
/// that memory does not grow with what waits. A session that hears something new meanwhile is taken up
/// before its turn.
pub(crate) async fn resume(shared: &Arc<Shared>, ended: Ended) -> Result<(), StoreError> {
    *shared.lanes.resuming() = Some(ended);
    let mut restless = Restless::default();
    while let Some(key) = restless.next(shared).await? {
        match shared.lanes.seats.clone().try_acquire_owned() {
            Ok(seat) => with_lane(shared, key, |lane| lane.sit(seat)),
            Err(_) => {
                restless.page.push_front(key);
                let rest = Arc::new(tokio::sync::Mutex::new(restless));
                keep_doing(shared, "taking up sessions of the last run", move |shared| {
                    resume_rest(shared, rest.clone())
                });
                return Ok(());
            }
        }
    }
    shared.lanes.resuming().take();
    Ok(())
}

/// A session leaves the rest only when there is a seat for it, so that none is forgotten by whoever has to
/// begin this again.
async fn resume_rest(shared: Arc<Shared>, restless: Arc<tokio::sync::Mutex<Restless>>) {
    let mut restless = restless.lock().await;
    let mut backoff = shared.spread.backoff();
    while !restless.is_over() {
        let Ok(seat) = shared.lanes.seats.clone().acquire_owned().await else { return };
        match restless.next(&shared).await {
            Ok(Some(key)) => with_lane(&shared, key, |lane| lane.sit(seat)),
            Ok(None) => {}
            Err(error) => {
                drop(seat);
                tracing::warn!(%error, "the sessions of the last run cannot be read");
                shared.clock.sleep(backoff.next()).await;
            }
        }
    }
    shared.lanes.resuming().take();
}

/// The sessions that the last run left with something to do, page by page.
#[derive(Default)]
struct Restless {
    page: VecDeque<SessionKey>,
    after: Option<SessionKey>,
    is_last: bool,
}

impl Restless {
    fn is_over(&self) -> bool {
        self.page.is_empty() && self.is_last
    }

    async fn next(&mut self, shared: &Shared) -> Result<Option<SessionKey>, StoreError> {
        if self.page.is_empty() && !self.is_last {
            let page = shared.store.restless(self.after.clone(), PAGE).await?;
            self.after = page.last().cloned();
            self.is_last = page.len() < PAGE;
            self.page = page.into();
        }
        Ok(self.page.pop_front())
    }
}

fn with_lane(shared: &Arc<Shared>, key: SessionKey, tell: impl FnOnce(&Lane)) {
    let mut lanes = shared.lanes.lock();
    let lane = lanes.entry(key).or_insert_with_key(|key| {
        let lane = Arc::new(Lane::new(key.clone(), shared.clock.now()));
        // What the last run left goes before what is told here. For a session that has been taken up
        // already and left, this is one look into the journal too many.
        if let Some(ended) = *shared.lanes.resuming() {
            lane.restart(ended);
        }
        shared.tasks.spawn(lane::run(shared.clone(), lane.clone()));
        lane
    });
    tell(lane);
}
