//! How long to wait before trying again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use talaria_model::Timestamp;

/// Keeps those who wait at the same time apart. It need not be unpredictable, only different for
/// each; so a run that is repeated in virtual time waits exactly as long as it did before.
#[derive(Debug)]
pub(crate) struct Spread(AtomicU64);

impl Spread {
    /// Different for each process: no two begin in the same millisecond on the same account.
    pub(crate) fn new(started: Timestamp) -> Self {
        Self(AtomicU64::new(started.as_millis().unsigned_abs()))
    }

    /// A backoff of its own.
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff { failures: 0, state: mixed(self.0.fetch_add(1, Ordering::Relaxed)) }
    }
}

/// Doubles from one second to three minutes, with jitter so that many do not try at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    failures: u32,
    state: u64,
}

impl Backoff {
    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(180);

    /// The wait after one more failure.
    pub(crate) fn next(&mut self) -> Duration {
        let ceiling = Self::FIRST.saturating_mul(1 << self.failures.min(8)).min(Self::LONGEST);
        self.failures = self.failures.saturating_add(1);
        self.state = mixed(self.state);
        // At least half, so that an unlucky draw does not make a busy loop.
        let half = ceiling / 2;
        half + half.mul_f64((self.state >> 40) as f64 / (1u64 << 24) as f64)
    }

    /// It worked.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

/// SplitMix64: neighbouring numbers become unrelated ones.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_three_minutes_and_start_over_after_success() {
        let mut backoff = Spread::new(Timestamp::from_millis(7)).backoff();
        for round in 0..20 {
            let wait = backoff.next();
            let ceiling = Duration::from_secs(1 << round.min(8)).min(Duration::from_secs(180));
            assert!(wait <= ceiling && wait >= ceiling / 2, "round {round}: {wait:?}");
        }
        backoff.reset();
        assert!(backoff.next() <= Duration::from_secs(1));
    }

    #[test]
    fn those_who_begin_to_wait_together_do_not_end_together() {
        let spread = Spread::new(Timestamp::from_millis(7));
        let mut waits: Vec<Duration> = (0..200).map(|_| spread.backoff().next()).collect();
        waits.sort();
        waits.dedup_by_key(|wait| wait.as_millis());
        assert!(waits.len() > 120, "only {} different milliseconds", waits.len());
    }
}
