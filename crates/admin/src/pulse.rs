//! Whether the process does what it is there for, found out cheaply however often strangers ask.

use std::sync::Arc;
use std::time::Duration;

use talaria_clock::{Clock, Mark};
use talaria_gateway::Gateway;
use talaria_model::AccountId;
use talaria_store::{Delivered, Store};
use tokio::sync::Mutex;

/// How long an answer holds. Asking more often costs the disk nothing.
const HOLDS: Duration = Duration::from_secs(1);

/// A store that takes longer than this to write takes nothing in.
const PATIENCE: Duration = Duration::from_secs(3);

/// Under which account the pulse leaves its mark. No configured account can be named like this.
const MARK: &str = "/healthz";

/// Feels whether the gateway can take something in.
#[derive(Clone)]
pub(crate) struct Pulse {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    felt: Arc<Mutex<Option<(Mark, Beat)>>>,
}

/// How it is doing. Says nothing about accounts or people: strangers may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beat {
    /// What is said is taken in.
    Steady,
    /// The store does not take writes, so nothing is taken in.
    StoreRefuses,
}

impl Beat {
    /// What is wrong, if anything.
    pub(crate) fn problem(self) -> Option<&'static str> {
        match self {
            Self::Steady => None,
            Self::StoreRefuses => Some("the store does not take writes"),
        }
    }
}

impl Pulse {
    pub(crate) fn new(gateway: &Gateway) -> Self {
        let (store, clock) = (gateway.store().clone(), gateway.clock().clone());
        Self { store, clock, felt: Arc::default() }
    }

    pub(crate) async fn feel(&self) -> Beat {
        let mut felt = self.felt.lock().await;
        if let Some((at, beat)) = *felt
            && self.clock.mark().since(at) < HOLDS
        {
            return beat;
        }
        let beat = self.write().await;
        *felt = Some((self.clock.mark(), beat));
        beat
    }

    /// Writes as intake does: an empty batch whose cursor moves.
    async fn write(&self) -> Beat {
        let at = self.clock.now();
        let batch = Delivered {
            account: AccountId::literal(MARK),
            events: Vec::new(),
            cursor: Some(at.as_millis().to_string()),
            at,
        };
        let written = tokio::select! {
            written = self.store.admit(batch) => written.is_ok(),
            () = self.clock.sleep(PATIENCE) => false,
        };
        if written { Beat::Steady } else { Beat::StoreRefuses }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_clock::Sleep;
    use talaria_model::Timestamp;
    use talaria_store::MemoryStore;

    /// Somebody sets the wall clock back all the time.
    struct SetBack;

    impl Clock for SetBack {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(0)
        }

        fn sleep(&self, wait: Duration) -> Sleep {
            talaria_clock::SystemClock.sleep(wait)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_holds_for_a_second_whatever_the_wall_clock_says() {
        let clock = Arc::new(SetBack);
        let pulse = Pulse {
            store: Arc::new(MemoryStore::new()),
            felt: Arc::new(Mutex::new(Some((clock.mark(), Beat::StoreRefuses)))),
            clock,
        };
        assert_eq!(pulse.feel().await, Beat::StoreRefuses);
        tokio::time::advance(HOLDS / 2).await;
        assert_eq!(pulse.feel().await, Beat::StoreRefuses);
        tokio::time::advance(HOLDS / 2).await;
        assert_eq!(pulse.feel().await, Beat::Steady);
    }
}
