//! Works that go on beside a gateway, each in a task of its own: one that breaks down is begun again, and
//! nothing else notices.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use talaria_clock::Clock;

use crate::backoff::{Backoff, Spread};
use crate::shared::Shared;
use crate::tasks::{Tasks, calm};

/// A work that went on for this long had begun well.
const WELL: Duration = Duration::from_secs(5 * 60);

/// What the process around a gateway does while it runs. All of it ends when this is dropped.
pub struct Chores {
    tasks: Tasks,
    clock: Arc<dyn Clock>,
    spread: Spread,
    known: Mutex<Vec<Arc<Chore>>>,
}

struct Chore {
    name: &'static str,
    begun: AtomicU32,
    is_done: AtomicBool,
}

/// A work that goes on beside a gateway, or went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoreDump {
    /// What it is called.
    pub name: &'static str,
    /// How often it was begun.
    pub begun: u32,
    /// Whether there is nothing left to do.
    pub is_done: bool,
}

impl Chores {
    /// Nothing yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let spread = Spread::new(clock.now());
        Self { tasks: Tasks::default(), clock, spread, known: Mutex::default() }
    }

    /// Does this until it is done or everything ends. If it panics, that is logged, and it is begun again
    /// after a while, which grows.
    pub fn begin<Work>(&self, name: &'static str, work: impl Fn() -> Work + Send + Sync + 'static)
    where
        Work: Future<Output = ()> + Send + 'static,
    {
        let (clock, backoff) = (self.clock.clone(), self.spread.backoff());
        let chore = Arc::new(Chore { name, begun: 0.into(), is_done: false.into() });
        self.known().push(chore.clone());
        let counted = {
            let chore = chore.clone();
            move || {
                chore.begun.fetch_add(1, Ordering::Relaxed);
                work()
            }
        };
        let done = move |()| chore.is_done.store(true, Ordering::Relaxed);
        self.tasks.spawn(until_done(name, counted, clock, backoff).map(done));
    }

    /// Everything that was begun.
    pub fn all(&self) -> Vec<ChoreDump> {
        let dump = |chore: &Arc<Chore>| ChoreDump {
            name: chore.name,
            begun: chore.begun.load(Ordering::Relaxed),
            is_done: chore.is_done.load(Ordering::Relaxed),
        };
        self.known().iter().map(dump).collect()
    }

    fn known(&self) -> MutexGuard<'_, Vec<Arc<Chore>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends every work at its next pause and waits until they are gone, but not longer than this.
    pub async fn end(&self, within: Duration) {
        tokio::select! {
            biased;
            () = self.tasks.stop() => {}
            () = self.clock.sleep(within) => tracing::warn!("not everything has come to a pause"),
        }
    }
}

impl Drop for Chores {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

/// The same for something that a gateway itself does for as long as it runs.
pub(crate) fn keep_doing<Work>(
    shared: &Arc<Shared>,
    name: &'static str,
    work: impl Fn(Arc<Shared>) -> Work + Send + Sync + 'static,
) where
    Work: Future<Output = ()> + Send + 'static,
{
    let (clock, backoff, of) = (shared.clock.clone(), shared.spread.backoff(), shared.clone());
    shared.tasks.spawn(until_done(name, move || work(of.clone()), clock, backoff));
}

async fn until_done<Work>(
    name: &'static str,
    work: impl Fn() -> Work + Send + Sync,
    clock: Arc<dyn Clock>,
    mut backoff: Backoff,
) where
    Work: Future<Output = ()> + Send,
{
    loop {
        let begun = clock.mark();
        if calm(async { work().await }).await.is_ok() {
            return;
        }
        if clock.mark().since(begun) >= WELL {
            backoff.reset();
        }
        let wait = backoff.next();
        tracing::error!(work = name, again_in = ?wait, "it panicked; everything else goes on");
        clock.sleep(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_clock::SystemClock;

    #[tokio::test(start_paused = true)]
    async fn a_work_that_panics_is_begun_again_later_and_later_and_the_others_go_on() {
        let clock = Arc::new(SystemClock);
        let chores = Chores::new(clock.clone());
        let (begun, done) = (Arc::new(AtomicU32::new(0)), Arc::new(tokio::sync::Notify::new()));
        let ticks = Arc::new(AtomicU32::new(0));
        chores.begin("one that breaks down", {
            let (begun, done) = (begun.clone(), done.clone());
            move || {
                // Making the future may go wrong as well as driving it.
                let time = begun.fetch_add(1, Ordering::Relaxed);
                assert!(time != 0, "planted in the making");
                let done = done.clone();
                async move {
                    assert!(time >= 3, "planted in the work");
                    done.notify_one();
                }
            }
        });
        chores.begin("one that works", {
            let ticks = ticks.clone();
            move || {
                let ticks = ticks.clone();
                async move {
                    loop {
                        SystemClock.sleep(Duration::from_millis(100)).await;
                        ticks.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        let before = clock.mark();
        done.notified().await;
        let took = clock.mark().since(before);
        // Three waits of one, two and four seconds, of which each is at least half.
        assert!(took >= Duration::from_millis(3500) && took <= Duration::from_secs(7), "{took:?}");
        assert_eq!(begun.load(Ordering::Relaxed), 4);
        assert!(ticks.load(Ordering::Relaxed) >= 34, "nobody waited");
        clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(begun.load(Ordering::Relaxed), 4, "what is done is done");
        let known = |name, begun, is_done| ChoreDump { name, begun, is_done };
        assert_eq!(
            chores.all(),
            [known("one that breaks down", 4, true), known("one that works", 1, false)]
        );

        chores.end(Duration::from_secs(1)).await;
        let ticked = ticks.load(Ordering::Relaxed);
        clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(ticks.load(Ordering::Relaxed), ticked, "it has ended");
    }
}
