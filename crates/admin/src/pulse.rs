//! Whether the process does what it is there for, found out cheaply however often strangers ask.

use std::sync::Arc;
use std::time::Duration;

use talaria_clock::Clock;
use talaria_gateway::Gateway;
use talaria_model::{AccountId, Timestamp};
use talaria_store::{Delivered, Store};
use tokio::sync::Mutex;

use crate::doors::Operator;

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
    operator: Arc<dyn Operator>,
    felt: Arc<Mutex<Option<(Timestamp, Beat)>>>,
}

/// How it is doing. Says nothing about accounts or people: strangers may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beat {
    /// What is said is taken in.
    Steady,
    /// The store does not take writes, so nothing is taken in.
    StoreRefuses,
    /// It was asked to end and takes nothing more in.
    Ending,
}

impl Beat {
    /// What is wrong, if anything.
    pub(crate) fn problem(self) -> Option<&'static str> {
        match self {
            Self::Steady => None,
            Self::StoreRefuses => Some("the store does not take writes"),
            Self::Ending => Some("the gateway is ending"),
        }
    }
}

impl Pulse {
    pub(crate) fn new(gateway: &Gateway, operator: Arc<dyn Operator>) -> Self {
        let (store, clock) = (gateway.store().clone(), gateway.clock().clone());
        Self { store, clock, operator, felt: Arc::default() }
    }

    pub(crate) async fn feel(&self) -> Beat {
        if self.operator.is_ending() {
            return Beat::Ending;
        }
        let mut felt = self.felt.lock().await;
        let now = self.clock.now();
        // A clock that was set back would hold an old answer until it has caught up.
        if let Some((at, beat)) = *felt
            && at <= now
            && now.since(at) < HOLDS
        {
            return beat;
        }
        let beat = self.write().await;
        *felt = Some((self.clock.now(), beat));
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
    use async_trait::async_trait;
    use talaria_clock::FakeClock;
    use talaria_store::MemoryStore;

    use crate::api;

    struct Nobody;

    #[async_trait]
    impl Operator for Nobody {
        fn model(&self) -> String {
            String::new()
        }
        fn voice(&self) -> Option<String> {
            None
        }
        async fn reload(&self) -> Result<api::Reloaded, String> {
            Err(String::new())
        }
        fn stop(&self) {}
        fn is_ending(&self) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn an_answer_holds_for_a_second_and_not_until_a_clock_has_caught_up() {
        let now = Timestamp::from_millis(10_000);
        for (felt, expected) in [
            (9_900, Beat::StoreRefuses),
            (8_000, Beat::Steady),
            // The clock was set back since.
            (20_000, Beat::Steady),
        ] {
            let pulse = Pulse {
                store: Arc::new(MemoryStore::new()),
                clock: Arc::new(FakeClock::starting(now)),
                operator: Arc::new(Nobody),
                felt: Arc::new(Mutex::new(Some((
                    Timestamp::from_millis(felt),
                    Beat::StoreRefuses,
                )))),
            };
            assert_eq!(pulse.feel().await, expected, "felt at {felt}");
        }
    }
}
