//! What is done now and then while a gateway runs: what is too old is forgotten.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use talaria_agent::Prefixes;
use talaria_config::Config;
use talaria_gateway::{Finalizer, Gateway};
use talaria_model::{SessionId, Timestamp};
use talaria_session::budget::Day;

/// How often prompts that nobody uses are thrown away.
const SWEEP: Duration = Duration::from_secs(5 * 60);

/// After how many sweeps conversations are forgotten.
const SWEEPS: u32 = 12;

/// For how many days it is kept who spent how much.
const SPENDING_DAYS: i32 = 31;

/// How long what is said is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retention {
    lives: Option<Duration>,
    entries: Option<Duration>,
}

impl Retention {
    /// As the configuration says.
    pub(crate) fn of(config: &Config) -> Self {
        let days =
            |days: u32| (days > 0).then(|| Duration::from_secs(u64::from(days) * 24 * 60 * 60));
        Self {
            lives: days(config.session_store_max_age_days),
            entries: days(config.entry_max_age_days),
        }
    }

    /// Forgets what is too old.
    async fn forget(self, gateway: &Gateway) {
        let (store, now) = (gateway.store(), gateway.clock().now());
        let before = |age: Duration| {
            let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
            Timestamp::from_millis(now.as_millis().saturating_sub(age))
        };
        let mut forgotten = 0;
        if let Some(age) = self.lives {
            match store.forget_lives(before(age), &gateway.sessions_in_memory()).await {
                Ok(lives) => {
                    tracing::debug!(lives, "forgot old conversations");
                    forgotten += lives;
                }
                Err(error) => tracing::warn!(%error, "old conversations could not be forgotten"),
            }
        }
        if let Some(age) = self.entries {
            match store.forget_entries(before(age)).await {
                Ok(entries) => {
                    tracing::debug!(entries, "forgot what was said long ago");
                    forgotten += entries;
                }
                Err(error) => tracing::warn!(%error, "old entries could not be forgotten"),
            }
        }
        let today = Day::of(now, &TimeZone::UTC);
        match store.forget_spending(today.before(SPENDING_DAYS)).await {
            Ok(rows) => forgotten += rows,
            Err(error) => tracing::warn!(%error, "what was spent long ago could not be forgotten"),
        }
        if forgotten > 0
            && let Err(error) = store.shrink().await
        {
            tracing::warn!(%error, "room could not be given back to the disk");
        }
    }
}

/// Goes on for as long as it is polled.
pub(crate) async fn keep_up(
    gateway: Gateway,
    prefixes: Arc<Prefixes>,
    retention: Retention,
) -> Infallible {
    let clock = gateway.clock();
    loop {
        for _ in 0..SWEEPS {
            clock.sleep(SWEEP).await;
            prefixes.sweep(clock.now());
        }
        retention.forget(&gateway).await;
    }
}

/// Lets go of the prompt of a conversation that is over.
pub(crate) struct ForgetsPrompts(pub(crate) Arc<Prefixes>);

#[async_trait]
impl Finalizer for ForgetsPrompts {
    async fn finalize(&self, life: &SessionId) -> Result<(), String> {
        self.0.forget(life);
        Ok(())
    }
}
