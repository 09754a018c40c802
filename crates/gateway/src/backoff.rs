//! How long to wait before trying again.

use std::time::Duration;

/// Doubles from one second to three minutes, with full jitter so that many do not try at once.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(180);

    /// The wait after one more failure.
    pub(crate) fn next(&mut self) -> Duration {
        let ceiling = Self::FIRST.saturating_mul(1 << self.failures.min(8)).min(Self::LONGEST);
        self.failures = self.failures.saturating_add(1);
        // At least half, so that an unlucky draw does not make a busy loop.
        ceiling.mul_f64(rand::random_range(0.5..=1.0))
    }

    /// It worked.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_three_minutes_and_start_over_after_success() {
        let mut backoff = Backoff::default();
        for round in 0..20 {
            let wait = backoff.next();
            let ceiling = Duration::from_secs(1 << round.min(8)).min(Duration::from_secs(180));
            assert!(wait <= ceiling && wait >= ceiling / 2, "round {round}: {wait:?}");
        }
        backoff.reset();
        assert!(backoff.next() <= Duration::from_secs(1));
    }
}
