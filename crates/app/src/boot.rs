//! How long each part of a start takes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use talaria_clock::{Clock, Mark, SystemClock};

use crate::init;

/// The parts of a start that are over. Whoever has a copy sees what is added.
#[derive(Debug, Clone)]
pub(crate) struct Boot {
    begun: Mark,
    since: Mark,
    phases: Arc<Mutex<Vec<Phase>>>,
}

/// One part of a start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Phase {
    pub(crate) name: &'static str,
    pub(crate) millis: u64,
}

impl Boot {
    pub(crate) fn new(begun: Mark) -> Self {
        Self { begun, since: begun, phases: Arc::default() }
    }

    /// The part of this name is over.
    pub(crate) fn passed(&mut self, name: &'static str) {
        let now = SystemClock.mark();
        let millis = millis(now.since(self.since));
        tracing::info!(phase = name, ms = millis, "starting");
        init::starting(name);
        self.lock().push(Phase { name, millis });
        self.since = now;
    }

    pub(crate) fn phases(&self) -> Vec<Phase> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Phase>> {
        self.phases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long it has taken so far, in milliseconds.
    pub(crate) fn total(&self) -> u64 {
        millis(self.since.since(self.begun))
    }

    /// In one line.
    pub(crate) fn in_words(&self) -> String {
        let phases = self.lock();
        let words = phases.iter().map(|phase| format!("{} {} ms", phase.name, phase.millis));
        words.collect::<Vec<_>>().join(", ")
    }
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
