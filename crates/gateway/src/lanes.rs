//! All lanes: one per session that has something to do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talaria_model::{Inbound, Seq};
use talaria_session::{Ended, SessionKey, is_control};
use talaria_store::StoreError;

use crate::lane::{self, Lane};
use crate::shared::Shared;

/// How many sessions are taken up per look into the store.
const PAGE: usize = 500;

/// The lanes that are in memory.
#[derive(Default)]
pub(crate) struct Lanes {
    lanes: Mutex<HashMap<SessionKey, Arc<Lane>>>,
}

impl Lanes {
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, Arc<Lane>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
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
            lane.push(seq, inbound, shared.limits.inbox);
        }
    });
}

/// Takes up every session that the last run left with something to do.
pub(crate) async fn resume(shared: &Arc<Shared>, ended: Ended) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let page = shared.store.restless(after, PAGE).await?;
        after = page.last().cloned();
        let last = page.len() < PAGE;
        for key in page {
            with_lane(shared, key, |lane| lane.restart(ended));
        }
        if last {
            return Ok(());
        }
    }
}

fn with_lane(shared: &Arc<Shared>, key: SessionKey, tell: impl FnOnce(&Lane)) {
    let mut lanes = shared.lanes.lock();
    let lane = lanes.entry(key).or_insert_with_key(|key| {
        let lane = Arc::new(Lane::new(key.clone()));
        shared.tasks.spawn(lane::run(shared.clone(), lane.clone()));
        lane
    });
    tell(lane);
}
