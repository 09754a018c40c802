//! The turns that work at the moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talaria_model::{Address, Timestamp, TurnId};

use crate::shared::Shared;

/// A turn that works, or waits for a place to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkingTurn {
    /// Which.
    pub turn: TurnId,
    /// Where its answer goes.
    pub to: Address,
    /// Since when.
    pub since: Timestamp,
}

/// The turns that work at the moment.
#[derive(Default)]
pub(crate) struct Turns {
    working: Mutex<BTreeMap<TurnId, WorkingTurn>>,
}

impl Turns {
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn all(&self) -> Vec<WorkingTurn> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TurnId, WorkingTurn>> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a turn while it works. One that waits for a person does not hold up an ending.
pub(crate) struct InHand {
    shared: Arc<Shared>,
    turn: WorkingTurn,
}

impl InHand {
    pub(crate) fn new(shared: &Arc<Shared>, turn: &TurnId, to: &Address) -> Self {
        let (turn, to, since) = (turn.clone(), to.clone(), shared.clock.now());
        let turn = WorkingTurn { turn, to, since };
        shared.turns.lock().insert(turn.turn.clone(), turn.clone());
        Self { shared: shared.clone(), turn }
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        let mut working = self.shared.turns.lock();
        // A turn that was taken up again is another one that works.
        if working.get(&self.turn.turn) == Some(&self.turn) {
            working.remove(&self.turn.turn);
        }
    }
}
