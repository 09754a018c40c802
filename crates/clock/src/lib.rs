//! What time it is, and waiting.
//!
//! The only crate that may ask the operating system for the time. Everything else takes a `Clock`,
//! so that a test can say what time it is and a simulation can let a day pass in a millisecond.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "this is the crate that they are banned in favour of"
)]

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use talaria_model::Timestamp;

/// A wait in progress.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tells the time and waits.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// Completes once `wait` has passed on a clock that never jumps.
    fn sleep(&self, wait: Duration) -> Sleep;

    /// This moment on the clock that never jumps, whatever somebody sets the wall clock to. What is
    /// measured or waited for goes by it; what is shown or stored goes by the wall clock.
    fn mark(&self) -> Mark {
        Mark(tokio::time::Instant::now())
    }
}

/// A moment in this process, on a clock that never jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(tokio::time::Instant);

impl Mark {
    /// How long after an earlier one this is; nothing where it is the earlier one.
    pub fn since(self, earlier: Mark) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }
}

impl std::ops::Add<Duration> for Mark {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0 + time)
    }
}

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(jiff::Timestamp::now().as_millisecond())
    }

    fn sleep(&self, wait: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(wait))
    }
}

/// A clock that starts where it is told and then follows the runtime's time. On a runtime whose time
/// is paused, it passes only while everything is waiting, which makes runs repeatable.
#[derive(Debug, Clone, Copy)]
pub struct FakeClock {
    started: tokio::time::Instant,
    at: Timestamp,
}

impl FakeClock {
    /// Starts at `at`. Must be called inside a runtime.
    pub fn starting(at: Timestamp) -> Self {
        Self { started: tokio::time::Instant::now(), at }
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        self.at + self.started.elapsed()
    }

    fn sleep(&self, wait: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(wait))
    }
}

/// A moment as people and logs read it, in UTC: `2026-11-15T09:30:00.250Z`.
pub fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.as_millis())
        .map_or_else(|_| format!("{}ms", at.as_millis()), |at| format!("{at:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn marks_tell_how_long_something_took() {
        let clock = SystemClock;
        let begun = clock.mark();
        clock.sleep(Duration::from_secs(3)).await;
        assert_eq!(clock.mark().since(begun), Duration::from_secs(3));
        assert_eq!(begun.since(clock.mark()), Duration::ZERO);
        assert_eq!(begun + Duration::from_secs(3), clock.mark());
    }

    #[test]
    fn a_moment_prints_in_utc() {
        assert_eq!(rfc3339(Timestamp::from_millis(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(Timestamp::from_millis(1_794_735_000_250)), "2026-11-15T09:30:00.250Z");
    }
}
