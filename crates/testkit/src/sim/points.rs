//! The moments at which a process can die: before and after everything that others can see or that
//! survives it.
//!
//! Whatever a process does between two such moments nobody can tell after it is dead, so to die at
//! each of them is to die everywhere. Once it is dead, no moment passes any more: what its tasks
//! still do until they are dropped reaches nobody.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;

use super::Log;

/// How much may happen while no time passes. Nothing that gets anywhere needs so much.
const MOST_AT_ONCE: usize = 500_000;

/// Counts the moments and dies at the one it is told. Clones are the same one.
#[derive(Clone, Default)]
pub struct Points(Arc<Inner>);

#[derive(Default)]
struct Inner {
    count: Mutex<Count>,
    died: watch::Sender<bool>,
    log: Log,
}

#[derive(Default)]
struct Count {
    moments: usize,
    polls: usize,
    dies_at: Option<Moment>,
    dead: bool,
    /// When something happened last, and how much has since then.
    last: Option<(Instant, usize)>,
}

impl Count {
    /// Whether the process goes round in circles.
    fn is_astray(&self) -> bool {
        self.last.is_some_and(|(_, much)| much > MOST_AT_ONCE)
    }

    /// Something happens.
    fn goes_on(&mut self) {
        let now = Instant::now();
        let much = self.last.filter(|(then, _)| *then == now).map_or(0, |(_, much)| much);
        self.last = Some((now, much + 1));
    }
}

/// When a process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// At the moment with this number, from zero.
    Numbered(usize),
    /// When a task that waits for the disk, a vendor, a model or time is looked at for the so-manieth
    /// time.
    Poll(usize),
}

/// Whether the process still lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alive {
    /// It does.
    Yes,
    /// It is dead, and nothing it does has an effect.
    No,
}

impl Points {
    /// Moments that are written into a log.
    pub fn logged(log: Log) -> Self {
        Self(Arc::new(Inner { log, ..Inner::default() }))
    }

    /// A moment. It does not pass when the process dies here.
    pub async fn pass(&self, name: String) {
        if self.reach(format_args!("{name}")) == Alive::No {
            std::future::pending::<()>().await;
        }
    }

    /// A moment in code that cannot wait. What comes after it must not happen to the dead.
    pub fn reach(&self, name: fmt::Arguments<'_>) -> Alive {
        let mut count = self.lock();
        if count.dead {
            return Alive::No;
        }
        self.0.log.note(name);
        let here = Moment::Numbered(count.moments);
        count.moments += 1;
        count.goes_on();
        self.die_if(count.dies_at == Some(here), &mut count)
    }

    /// Somebody looks whether a wait is over.
    pub fn poll(&self) -> Alive {
        let mut count = self.lock();
        if count.dead {
            return Alive::No;
        }
        count.polls += 1;
        let here = Moment::Poll(count.polls);
        count.goes_on();
        self.die_if(count.dies_at == Some(here), &mut count)
    }

    fn die_if(&self, dies: bool, count: &mut Count) -> Alive {
        if !dies && !count.is_astray() {
            return Alive::Yes;
        }
        count.dead = true;
        self.0.log.note(format_args!("† the process dies"));
        self.0.died.send_replace(true);
        Alive::No
    }

    /// Whether it still lives.
    pub fn alive(&self) -> Alive {
        if self.lock().dead { Alive::No } else { Alive::Yes }
    }

    /// Whether it was ended because it did one thing after the other and no time passed.
    pub fn is_astray(&self) -> bool {
        self.lock().is_astray()
    }

    /// Dies here, as others see it.
    pub fn die(&self) {
        let mut count = self.lock();
        if !count.dead {
            self.die_if(true, &mut count);
        }
    }

    /// Dies so many moments from here on.
    pub fn die_in(&self, moment: Moment) {
        let mut count = self.lock();
        count.dies_at = Some(match moment {
            Moment::Numbered(more) => Moment::Numbered(count.moments + more),
            Moment::Poll(more) => Moment::Poll(count.polls + more + 1),
        });
    }

    /// Begins to count from zero, for a process that dies at that moment.
    pub fn begin(&self, dies_at: Option<Moment>) {
        *self.lock() = Count { dies_at, ..Count::default() };
        self.0.died.send_replace(false);
    }

    /// Completes when the process has died, or was ended.
    pub async fn died(&self) {
        let mut died = self.0.died.subscribe();
        died.wait_for(|died| *died).await.expect("we hold the other end");
    }

    /// How many moments passed.
    pub fn passed(&self) -> usize {
        self.lock().moments
    }

    fn lock(&self) -> MutexGuard<'_, Count> {
        self.0.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn who_goes_round_in_circles_is_ended_and_who_gets_on_is_not() {
        let points = Points::default();
        for _ in 0..3 {
            for _ in 0..MOST_AT_ONCE {
                assert_eq!(points.poll(), Alive::Yes);
            }
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        for _ in 0..MOST_AT_ONCE {
            assert_eq!(points.reach(format_args!("again")), Alive::Yes);
        }
        assert_eq!(points.poll(), Alive::No);
        assert!(points.is_astray());
        points.died().await;
    }
}
