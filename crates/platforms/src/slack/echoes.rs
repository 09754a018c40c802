//! Our own posts come back as events. That tells what became of a post that nobody confirmed, and
//! that the connection still brings what happens.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talaria_clock::{Clock, Mark};
use talaria_model::Timestamp;
use talaria_platform::{LinkError, Proof};

use super::decode::Echo;
use super::shelf::Shelf;
use super::ts::Ts;

/// Chats of which it is known that our posts in them come back.
const CHATS: usize = 2_000;

/// Deliveries that came back.
const DELIVERIES: usize = 2_000;

/// How long they are remembered.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a post may take to come back. It is looked for every ten seconds, so that deafness is known within
/// a minute.
const OVERDUE: Duration = Duration::from_secs(50);

/// What has come back.
pub(super) struct Echoes {
    /// The newest that came back in a chat.
    chats: Shelf<String, Ts>,
    deliveries: Shelf<String, String>,
    awaited: Mutex<Option<Awaited>>,
}

#[derive(Debug, Clone)]
struct Awaited {
    chat: String,
    ts: Ts,
    since: Mark,
}

impl Default for Echoes {
    fn default() -> Self {
        let (chats, deliveries) = (Shelf::of(CHATS), Shelf::of(DELIVERIES));
        Self { chats, deliveries, awaited: Mutex::default() }
    }
}

/// What is wrong with a connection on which something is overdue. Another one may live as well as this one did,
/// so only what it brings shows that it is better.
pub(super) fn deaf() -> LinkError {
    let reason = "a post of ours did not come back as an event".into();
    LinkError::Deaf { reason, until: Proof::Events }
}

impl Echoes {
    /// Something of ours was found in the history: it was shown, and nobody brought it.
    pub(super) fn found(&self, echo: Echo, now: Timestamp) {
        if let Some(delivery) = echo.delivery {
            self.deliveries.put(delivery, echo.ts, now, KEPT);
        }
    }

    /// Something of ours came back.
    pub(super) fn came(&self, echo: Echo, now: Timestamp) {
        let mut awaited = self.awaited();
        if let Some(ts) = Ts::parse(&echo.ts) {
            // A later one proves as much.
            if awaited.as_ref().is_some_and(|one| one.chat == echo.chat && one.ts <= ts) {
                *awaited = None;
            }
            let newest = self.chats.get(&echo.chat, now).map_or(ts, |known| known.max(ts));
            self.chats.put(echo.chat.clone(), newest, now, KEPT);
        }
        self.found(echo, now);
    }

    /// Slack confirmed a post. Only where posts have come back before, this one has to, and it may
    /// have been faster than the confirmation.
    pub(super) fn posted(&self, chat: &str, ts: &str, clock: &dyn Clock) {
        let mut awaited = self.awaited();
        let Some(ts) = Ts::parse(ts).filter(|_| awaited.is_none()) else { return };
        let newest = self.chats.get(&chat.to_owned(), clock.now());
        if newest.is_some_and(|newest| newest < ts) {
            *awaited = Some(Awaited { chat: chat.to_owned(), ts, since: clock.mark() });
        }
    }

    /// The message that carried a delivery out, if it came back.
    pub(super) fn of(&self, delivery: &str, now: Timestamp) -> Option<String> {
        self.deliveries.get(&delivery.to_owned(), now)
    }

    /// Whether something that has to come back does not.
    pub(super) fn is_overdue(&self, now: Mark) -> bool {
        self.awaited().as_ref().is_some_and(|one| now.since(one.since) >= OVERDUE)
    }

    /// A new connection owes us nothing.
    pub(super) fn forgive(&self) {
        *self.awaited() = None;
    }

    fn awaited(&self) -> MutexGuard<'_, Option<Awaited>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_clock::FakeClock;

    fn echo(ts: &str, delivery: Option<&str>) -> Echo {
        Echo { chat: "D1".into(), ts: ts.into(), delivery: delivery.map(str::to_owned) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_post_has_to_come_back_only_where_posts_have_come_back_before() {
        let echoes = Echoes::default();
        let clock = FakeClock::starting(Timestamp::from_millis(0));
        let passes = |seconds| clock.sleep(Duration::from_secs(seconds));
        echoes.posted("D1", "1.000001", &clock);
        passes(100).await;
        assert!(!echoes.is_overdue(clock.mark()), "nobody may be subscribed to that chat");
        echoes.came(echo("1.000001", Some("s/1.0")), clock.now());
        assert_eq!(echoes.of("s/1.0", clock.now()).as_deref(), Some("1.000001"));
        echoes.posted("D1", "2.000001", &clock);
        passes(49).await;
        assert!(!echoes.is_overdue(clock.mark()));
        passes(1).await;
        assert!(echoes.is_overdue(clock.mark()));
        echoes.came(echo("2.000001", None), clock.now());
        assert!(!echoes.is_overdue(clock.mark()));
        echoes.came(echo("3.000001", None), clock.now());
        echoes.posted("D1", "3.000001", &clock);
        passes(100).await;
        assert!(!echoes.is_overdue(clock.mark()), "it came back before it was confirmed");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_found_in_the_history_has_not_come_back() {
        let echoes = Echoes::default();
        let clock = FakeClock::starting(Timestamp::from_millis(0));
        echoes.found(echo("1.000001", Some("s/1.0")), clock.now());
        assert_eq!(echoes.of("s/1.0", clock.now()).as_deref(), Some("1.000001"), "it was shown");
        echoes.posted("D1", "2.000001", &clock);
        clock.sleep(OVERDUE).await;
        assert!(!echoes.is_overdue(clock.mark()), "nobody may be subscribed to that chat");
        echoes.came(echo("2.000001", None), clock.now());
        echoes.posted("D1", "3.000001", &clock);
        echoes.found(echo("3.000001", None), clock.now());
        clock.sleep(OVERDUE).await;
        assert!(echoes.is_overdue(clock.mark()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_back_does_not_put_off_what_is_overdue() {
        let echoes = Echoes::default();
        let clock = FakeClock::starting(Timestamp::from_millis(2 * 60 * 60 * 1000));
        echoes.came(echo("1.000001", None), clock.now());
        echoes.posted("D1", "2.000001", &clock);
        let clock = FakeClock::starting(Timestamp::from_millis(60 * 60 * 1000));
        clock.sleep(OVERDUE).await;
        assert!(echoes.is_overdue(clock.mark()));
    }
}
