//! How much may be sent in how much time: in one chat, on an account, and of one kind.
//!
//! Finals wait in the order in which they came. What is only for show takes what is left over, and
//! leaves a place for a final that may come.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talaria_clock::Clock;
use talaria_model::{Bucket, ChatId, Timestamp};

/// How many chats are remembered before those are forgotten in which nothing was sent for a while.
const CHATS: usize = 1024;

/// How long something for show waits at least that found others waiting.
const SHOW_REST: Duration = Duration::from_millis(500);

/// What may still be sent.
#[derive(Debug, Default)]
pub(crate) struct Purse {
    state: Mutex<State>,
    /// Held by the final that is next.
    queue: tokio::sync::Mutex<()>,
    /// Finals that wait.
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    /// When everything that was sent will have been made up for.
    even: Timestamp,
    /// The platform asked us to wait.
    pause: Pause,
    /// The same, with what is only for show.
    show_pause: Pause,
}

/// When a platform asked us to wait, and for how long.
#[derive(Debug, Default)]
struct Pause(Option<(Timestamp, Duration)>);

impl Pause {
    fn left(&mut self, now: Timestamp) -> Duration {
        let Some((at, wait)) = &mut self.0 else { return Duration::ZERO };
        // A clock that was set back does not know how long ago that was.
        *at = (*at).min(now);
        let left = wait.saturating_sub(now.since(*at));
        if left.is_zero() {
            self.0 = None;
        }
        left
    }

    fn extend(&mut self, wait: Duration, now: Timestamp) {
        if self.left(now) < wait {
            self.0 = Some((now, wait));
        }
    }
}

impl State {
    /// How long it takes until one more may be sent and so many are left.
    fn wait(&mut self, bucket: Option<Bucket>, now: Timestamp, left: u32) -> Duration {
        let paused = self.pause.left(now);
        let Some(Bucket { burst, every }) = bucket else { return paused };
        let burst = burst.max(1);
        // More was never spent: somebody has set the clock back.
        self.even = self.even.min(now + every * burst);
        let ahead = every * (burst - 1).saturating_sub(left);
        self.even.since(now + ahead).max(paused)
    }

    fn spend(&mut self, bucket: Option<Bucket>, now: Timestamp) {
        if let Some(bucket) = bucket {
            self.even = self.even.max(now) + bucket.every;
        }
    }
}

impl Purse {
    /// Waits until a final may be sent, and counts it.
    pub(crate) async fn spend(&self, bucket: Option<Bucket>, clock: &dyn Clock) {
        if bucket.is_none() && self.lock().pause.0.is_none() {
            return;
        }
        let _waits = Waits::one_more(&self.waiting);
        let _next = self.queue.lock().await;
        loop {
            let now = clock.now();
            let wait = {
                let mut state = self.lock();
                let wait = state.wait(bucket, now, 0);
                if wait.is_zero() {
                    return state.spend(bucket, now);
                }
                wait
            };
            clock.sleep(wait).await;
        }
    }

    /// How long something for show has to wait.
    fn spare(&self, bucket: Option<Bucket>, now: Timestamp) -> Duration {
        let mut state = self.lock();
        let wait = state.wait(bucket, now, 1).max(state.show_pause.left(now));
        drop(state);
        let is_wanted = self.waiting.load(Ordering::Relaxed) > 0;
        if wait.is_zero() && !is_wanted { wait } else { wait.max(SHOW_REST) }
    }

    /// The platform asks us to wait.
    pub(crate) fn pause(&self, wait: Duration, now: Timestamp) {
        self.lock().pause.extend(wait, now);
    }

    /// The platform asks us to wait with something that was only for show.
    pub(crate) fn pause_show(&self, wait: Duration, now: Timestamp) {
        self.lock().show_pause.extend(wait, now);
    }

    /// Whether a new one would be no different.
    fn is_full(&self, now: Timestamp) -> bool {
        let mut state = self.lock();
        let paused = state.pause.left(now).max(state.show_pause.left(now));
        paused.is_zero() && state.even <= now
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes from all of these for something that is only for show. Says how long it has to wait if there is
/// nothing to spare in one of them.
pub(crate) fn spare(purses: &[(&Purse, Option<Bucket>)], now: Timestamp) -> Result<(), Duration> {
    let wait = purses.iter().map(|(purse, bucket)| purse.spare(*bucket, now)).max();
    if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
        return Err(wait);
    }
    for (purse, bucket) in purses {
        purse.lock().spend(*bucket, now);
    }
    Ok(())
}

/// Counts a final while it waits.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn one_more(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The purses of the chats of an account.
#[derive(Debug, Default)]
pub(crate) struct Purses(Mutex<HashMap<ChatId, Arc<Purse>>>);

impl Purses {
    /// The purse of a chat, whatever thread of it something goes to.
    pub(crate) fn of(&self, chat: &ChatId, now: Timestamp) -> Arc<Purse> {
        let mut purses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if purses.len() >= CHATS && !purses.contains_key(chat) {
            purses.retain(|_, purse| Arc::strong_count(purse) > 1 || !purse.is_full(now));
        }
        purses.entry(chat.clone()).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_clock::FakeClock;

    const BUCKET: Option<Bucket> = Some(Bucket { burst: 3, every: Duration::from_secs(1) });

    fn clock() -> FakeClock {
        FakeClock::starting(Timestamp::from_millis(1_000_000))
    }

    fn spare_of(purse: &Purse, now: Timestamp) -> Result<(), Duration> {
        spare(&[(&Purse::default(), None), (purse, BUCKET)], now)
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_burst_one_may_be_sent_at_a_time() {
        let (purse, clock) = (Purse::default(), clock());
        let began = clock.now();
        let mut at = Vec::new();
        for _ in 0..6 {
            purse.spend(BUCKET, &clock).await;
            at.push(clock.now().since(began).as_secs());
        }
        assert_eq!(at, [0, 0, 0, 1, 2, 3]);
        clock.sleep(Duration::from_secs(60)).await;
        let began = clock.now();
        for _ in 0..3 {
            purse.spend(BUCKET, &clock).await;
        }
        assert_eq!(clock.now(), began, "after a rest it is full again, and no more than full");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_for_show_leaves_a_place_for_a_final() {
        let (purse, clock) = (Purse::default(), clock());
        let now = clock.now();
        assert_eq!(spare_of(&purse, now), Ok(()));
        assert_eq!(spare_of(&purse, now), Ok(()));
        assert!(spare_of(&purse, now).is_err());
        purse.spend(BUCKET, &clock).await;
        assert_eq!(clock.now(), now, "the final did not wait");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_for_show_waits_behind_finals() {
        let (purse, clock) = (Purse::default(), clock());
        for _ in 0..3 {
            purse.spend(BUCKET, &clock).await;
        }
        let waiting = purse.spend(BUCKET, &clock);
        let mut waiting = std::pin::pin!(waiting);
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        assert!(spare_of(&purse, clock.now() + Duration::from_secs(60)).is_err());
        waiting.await;
        assert_eq!(spare_of(&purse, clock.now() + Duration::from_secs(60)), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_asked_to_wait_waits_even_where_nothing_is_counted() {
        let (purse, clock) = (Purse::default(), clock());
        let began = clock.now();
        purse.pause(Duration::from_secs(7), began);
        purse.pause(Duration::from_secs(2), began);
        assert!(spare(&[(&purse, None), (&Purse::default(), None)], began).is_err());
        purse.spend(None, &clock).await;
        assert_eq!(clock.now().since(began), Duration::from_secs(7));
    }

    #[tokio::test(start_paused = true)]
    async fn a_final_does_not_wait_for_what_was_only_for_show() {
        let (purse, clock) = (Purse::default(), clock());
        let began = clock.now();
        purse.pause_show(Duration::from_secs(7), began);
        assert_eq!(spare_of(&purse, began), Err(Duration::from_secs(7)));
        purse.spend(BUCKET, &clock).await;
        assert_eq!(clock.now(), began);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_silence_anybody() {
        let mut state = State::default();
        let later = Timestamp::from_millis(10_000_000);
        for _ in 0..3 {
            state.spend(BUCKET, later);
        }
        state.pause.extend(Duration::from_secs(5), later);
        let earlier = Timestamp::from_millis(1_000_000);
        assert!(state.wait(BUCKET, earlier, 0) <= Duration::from_secs(5));
        assert!(state.wait(BUCKET, earlier + Duration::from_secs(5), 0).is_zero());
    }

    #[test]
    fn chats_in_which_nothing_happens_are_forgotten() {
        let purses = Purses::default();
        let chat = |n: usize| ChatId::new(format!("chat {n}")).expect("an id");
        let now = Timestamp::from_millis(5);
        let busy = purses.of(&chat(0), now);
        purses.of(&chat(1), now).pause(Duration::from_secs(60), now);
        for n in 2..3 * CHATS {
            purses.of(&chat(n), now);
        }
        assert!(Arc::ptr_eq(&busy, &purses.of(&chat(0), now)));
        assert!(!purses.of(&chat(1), now).is_full(now));
        assert!(purses.0.lock().unwrap().len() <= CHATS + 2);
    }
}
