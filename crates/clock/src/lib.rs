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

    #[test]
    fn a_moment_prints_in_utc() {
        assert_eq!(rfc3339(Timestamp::from_millis(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(Timestamp::from_millis(1_794_735_000_250)), "2026-11-15T09:30:00.250Z");
    }
}
