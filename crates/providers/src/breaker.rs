//! Leaves a provider alone for a while after it has failed too often.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use talaria_model::Timestamp;

/// So many failures in a row open it.
const FAILURES: u32 = 5;

/// So long it stays open; then one try may find out whether the provider is back.
const PAUSE: Duration = Duration::from_secs(30);

/// Counts one provider's failures.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// When it opened, or when the last try was let through since.
    opened: Option<Timestamp>,
}

impl State {
    fn is_open(&self, now: Timestamp) -> bool {
        // A clock that was set back must not keep it open for longer.
        self.opened.is_some_and(|opened| now >= opened && now.since(opened) < PAUSE)
    }
}

impl Breaker {
    /// Whether the provider may be asked. While it is open, one caller every thirty seconds may.
    pub(crate) fn admits(&self, now: Timestamp) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_open(now) {
            return false;
        }
        if state.opened.is_some() {
            state.opened = Some(now);
        }
        true
    }

    /// Whether nobody may ask the provider.
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_open(now)
    }

    /// The provider answered.
    pub(crate) fn succeeded(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
    }

    /// The provider failed.
    pub(crate) fn failed(&self, now: Timestamp) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failures = state.failures.saturating_add(1);
        if state.failures >= FAILURES {
            state.opened = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1000)
    }

    #[test]
    fn five_failures_in_a_row_open_it_for_thirty_seconds() {
        let breaker = Breaker::default();
        for _ in 0..5 {
            assert!(breaker.admits(at(0)));
            breaker.failed(at(0));
        }
        assert!(!breaker.admits(at(0)));
        assert!(!breaker.admits(at(29)));
        assert!(breaker.admits(at(30)));
    }

    #[test]
    fn a_success_in_between_starts_the_count_again() {
        let breaker = Breaker::default();
        for _ in 0..4 {
            breaker.failed(at(0));
        }
        breaker.succeeded();
        for _ in 0..4 {
            breaker.failed(at(0));
        }
        assert!(breaker.admits(at(0)));
    }

    #[test]
    fn one_try_at_a_time_finds_out_whether_it_is_back() {
        let breaker = Breaker::default();
        for _ in 0..5 {
            breaker.failed(at(0));
        }
        assert!(breaker.admits(at(40)));
        assert!(!breaker.admits(at(41)));
        breaker.failed(at(45));
        assert!(!breaker.admits(at(70)));
        assert!(breaker.admits(at(75)));
        breaker.succeeded();
        assert!(breaker.admits(at(76)));
        assert!(breaker.admits(at(76)));
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_keep_it_open() {
        let breaker = Breaker::default();
        for _ in 0..5 {
            breaker.failed(at(3600));
        }
        assert!(breaker.admits(at(0)));
    }
}
