//! When an account was last heard.

use talaria_clock::Mark;
use talaria_platform::Proof;

/// When an account last proved that it is heard, whatever the wall clock says.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct LastHeard {
    life: Option<Mark>,
    events: Option<Mark>,
}

impl LastHeard {
    pub(super) fn note(&mut self, proof: Proof, now: Mark) {
        self.life = Some(now);
        if proof == Proof::Events {
            self.events = Some(now);
        }
    }

    /// By so much at least.
    pub(crate) fn by(&self, proof: Proof) -> Option<Mark> {
        match proof {
            Proof::Life => self.life,
            Proof::Events => self.events,
        }
    }
}
