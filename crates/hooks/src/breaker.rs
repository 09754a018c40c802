//! Leaves a hook alone that keeps failing.

use std::time::Duration;

use talaria_clock::Mark;

/// So many failures in a row are too many.
const TOO_MANY: u32 = 5;

/// How long it is left alone then.
const REST: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Breaker {
    failures: u32,
    rests_until: Option<Mark>,
}

impl Breaker {
    /// Whether the hook may hear something. After its rest it hears one thing: if that fails too, it
    /// rests again.
    pub(crate) fn lets_through(&mut self, now: Mark) -> bool {
        match self.rests_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                self.rests_until = Some(now + REST);
                true
            }
        }
    }

    /// Says whether it is left alone from here on.
    pub(crate) fn failed(&mut self, now: Mark) -> bool {
        self.failures = self.failures.saturating_add(1);
        let rests = self.failures >= TOO_MANY;
        let begins = rests && self.rests_until.is_none();
        if rests {
            self.rests_until = Some(now + REST);
        }
        begins
    }

    pub(crate) fn answered(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn rests(&self) -> bool {
        self.rests_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_clock::{Clock, SystemClock};

    #[test]
    fn a_hook_that_keeps_failing_is_left_alone_and_tried_again_once() {
        let mut breaker = Breaker::default();
        let now = SystemClock.mark();
        for _ in 0..TOO_MANY {
            assert!(breaker.lets_through(now));
            breaker.failed(now);
        }
        assert!(!breaker.lets_through(now));
        let later = now + REST;
        assert!(breaker.lets_through(later), "one trial");
        assert!(!breaker.lets_through(later), "and no second");
        breaker.failed(later);
        assert!(!breaker.lets_through(later + REST / 2));
        assert!(breaker.lets_through(later + REST));
        breaker.answered();
        assert!(breaker.lets_through(later) && breaker.lets_through(later));
    }

    #[test]
    fn an_answer_ends_a_row_of_failures() {
        let mut breaker = Breaker::default();
        let now = SystemClock.mark();
        for _ in 0..3 * TOO_MANY {
            breaker.failed(now);
            breaker.answered();
        }
        assert!(breaker.lets_through(now));
    }
}
