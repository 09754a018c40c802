//! What the operator lets an agent do at this moment.

use std::sync::{Arc, PoisonError, RwLock};

use crate::{Refused, Roots};

/// Bounds that no person and no model can move.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    /// What is never called.
    pub refused: Refused,
    /// Where files may be that an answer sends along.
    pub roots: Roots,
}

/// What keeps all turns of one agent, and of those that come after it, within its bounds. They are looked at right before
/// each deed, so that what the operator takes back counts for a turn in hand, too, and for a call that a
/// person was asked about before.
#[derive(Debug, Clone, Default)]
pub struct Fence(Arc<RwLock<Arc<Bounds>>>);

impl Fence {
    /// These count from here on.
    pub fn set(&self, bounds: Bounds) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(bounds);
    }

    pub(crate) fn now(&self) -> Arc<Bounds> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
