//! The turns that are being taken at the moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talaria_model::{AccountId, Address, Timestamp, TurnId};

use crate::shared::Shared;

/// A turn that is being taken. One that waits for a person is not among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnStatus {
    /// Which.
    pub turn: TurnId,
    /// Where its answer goes.
    pub to: Address,
    /// What it does.
    pub state: TurnState,
    /// Since when.
    pub since: Timestamp,
}

/// What a turn does that is being taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnState {
    /// It waits for a place among the turns that may run at once.
    Waiting,
    /// It works.
    Working,
}

impl TurnState {
    /// As it is told.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting for a place",
            Self::Working => "working",
        }
    }
}

impl TurnStatus {
    /// How many of these do this, and since when the oldest.
    pub fn count(all: &[Self], state: TurnState) -> (usize, Option<Timestamp>) {
        let since = all.iter().filter(|turn| turn.state == state).map(|turn| turn.since);
        (since.clone().count(), since.min())
    }
}

/// How it stands with a turn that is in hand and waits for no person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It works.
    Works,
    /// It waits for a place among the turns that may run at once.
    WaitsForPlace {
        /// So many have one.
        working: usize,
        /// So many have waited for longer.
        ahead: usize,
    },
    /// It begins when its account is back, which was taken out.
    WaitsForAccount,
    /// It begins in the next run: this one ends.
    LeftToNextRun,
    /// It has not begun in this run.
    NotBegun,
}

/// The turns that are being taken at the moment.
#[derive(Default)]
pub(crate) struct Turns {
    taken: Mutex<BTreeMap<TurnId, TurnStatus>>,
}

impl Turns {
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn all(&self) -> Vec<TurnStatus> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TurnId, TurnStatus>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How it stands with a turn of an account that is in hand and waits for no person.
pub(crate) fn standing(shared: &Shared, turn: &TurnId, account: &AccountId) -> Standing {
    let all = shared.turns.all();
    let count = |is: &dyn Fn(&TurnStatus) -> bool| all.iter().filter(|other| is(other)).count();
    match all.iter().find(|status| status.turn == *turn) {
        Some(TurnStatus { state: TurnState::Working, .. }) => Standing::Works,
        // There is one, and it is about to have it.
        Some(_) if shared.turn_permits.available_permits() > 0 => Standing::NotBegun,
        Some(own) => Standing::WaitsForPlace {
            working: count(&|other| other.state == TurnState::Working),
            ahead: count(&|other| other.state == TurnState::Waiting && other.since < own.since),
        },
        None if shared.is_draining() => Standing::LeftToNextRun,
        None if shared.accounts.is_out(account) => Standing::WaitsForAccount,
        None => Standing::NotBegun,
    }
}

/// Counts a turn while it is being taken. One that waits for a person does not hold up an ending.
pub(crate) struct InHand {
    shared: Arc<Shared>,
    status: TurnStatus,
}

impl InHand {
    /// One that has no place yet.
    pub(crate) fn new(shared: &Arc<Shared>, turn: &TurnId, to: &Address) -> Self {
        let (turn, to, since) = (turn.clone(), to.clone(), shared.clock.now());
        let status = TurnStatus { turn, to, state: TurnState::Waiting, since };
        shared.turns.lock().insert(status.turn.clone(), status.clone());
        Self { shared: shared.clone(), status }
    }

    /// It has a place.
    pub(crate) fn works(&mut self) {
        let mut taken = self.shared.turns.lock();
        let known = taken.get_mut(&self.status.turn).filter(|known| **known == self.status);
        self.status.state = TurnState::Working;
        self.status.since = self.shared.clock.now();
        if let Some(known) = known {
            known.clone_from(&self.status);
        }
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        let mut taken = self.shared.turns.lock();
        // A turn that was taken up again is another one that works.
        if taken.get(&self.status.turn) == Some(&self.status) {
            taken.remove(&self.status.turn);
        }
    }
}
