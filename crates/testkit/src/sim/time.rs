//! Time in a world: it goes on over all lives of the gateway, and stands still when nothing waits.

use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use talaria_clock::{Clock, Sleep};
use talaria_model::Timestamp;

use super::points::{Alive, Points};

/// When every world begins.
const BEGINNING: Timestamp = Timestamp::from_millis(1_794_735_000_000);

/// The time as it truly is. Clones are the same one.
#[derive(Clone, Default)]
pub struct Time(Arc<Mutex<Passed>>);

#[derive(Default)]
struct Passed {
    /// In lives that are over, and between them.
    before: Duration,
    /// When the present life began, on its runtime's clock.
    began: Option<tokio::time::Instant>,
}

impl Time {
    /// How long the world exists.
    pub fn elapsed(&self) -> Duration {
        let passed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        passed.before + passed.began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        BEGINNING + self.elapsed()
    }

    /// A life begins, in whose runtime this is called.
    pub(super) fn begin(&self) {
        let mut passed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        passed.began = Some(tokio::time::Instant::now());
    }

    /// A life ends.
    pub(super) fn end(&self) {
        let before = self.elapsed();
        let mut passed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *passed = Passed { before, began: None };
    }

    /// Lets time pass while nothing lives.
    pub fn skip(&self, time: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).before += time;
    }
}

/// The clock of the gateway's machine, which somebody may set.
#[derive(Clone)]
pub struct WallClock {
    time: Time,
    points: Points,
    ahead: Arc<AtomicI64>,
}

impl WallClock {
    /// A clock that shows the true time.
    pub fn new(time: Time, points: Points) -> Self {
        Self { time, points, ahead: Arc::default() }
    }

    /// Somebody sets it forward, or back.
    pub fn jump(&self, millis: i64) {
        self.ahead.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let now = self.time.now().as_millis() + self.ahead.load(Ordering::Relaxed);
        Timestamp::from_millis(now)
    }

    fn sleep(&self, wait: Duration) -> Sleep {
        let asleep = Box::pin(tokio::time::sleep(wait));
        Box::pin(Watched { points: self.points.clone(), wait: asleep })
    }
}

/// A wait of which every look is a moment to die at.
pub(super) struct Watched<F> {
    pub(super) points: Points,
    pub(super) wait: Pin<Box<F>>,
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        match self.points.poll() {
            Alive::Yes => self.wait.as_mut().poll(context),
            Alive::No => Poll::Pending,
        }
    }
}
