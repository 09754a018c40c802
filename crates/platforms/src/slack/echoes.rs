//! Our own posts come back as events. That tells what became of a post that nobody confirmed, and
//! that the connection still brings what happens.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talaria_clock::Mark;
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

/// What is brought so long after a post would have come after its echo.
const PROMPT: Duration = Duration::from_secs(10);

/// What has come back.
pub(super) struct Echoes {
    /// The newest that came back in a chat.
    chats: Shelf<String, Ts>,
    deliveries: Shelf<String, String>,
    connection: Mutex<Connection>,
}

/// What is known of the present connection.
#[derive(Debug, Default)]
struct Connection {
    began: Option<Mark>,
    /// When it last brought something.
    brought: Option<Mark>,
    awaited: Option<Awaited>,
}

#[derive(Debug)]
struct Awaited {
    chat: String,
    ts: Ts,
    since: Mark,
}

impl Default for Echoes {
    fn default() -> Self {
        let (chats, deliveries) = (Shelf::of(CHATS), Shelf::of(DELIVERIES));
        Self { chats, deliveries, connection: Mutex::default() }
    }
}

impl Echoes {
    /// There is a new connection, which owes us nothing.
    pub(super) fn begin(&self, now: Mark) {
        *self.connection() = Connection { began: Some(now), ..Connection::default() };
    }

    /// Slack brings an event, whatever it is. Commands and presses are told to us by another way of its.
    pub(super) fn brought(&self, now: Mark) {
        self.connection().brought = Some(now);
    }

    /// Something of ours was found in the history: it was shown, and nobody brought it.
    pub(super) fn found(&self, echo: Echo, now: Timestamp) {
        if let Some(delivery) = echo.delivery {
            self.deliveries.put(delivery, echo.ts, now, KEPT);
        }
    }

    /// Something of ours came back.
    pub(super) fn came(&self, echo: Echo, now: Timestamp) {
        if let Some(ts) = Ts::parse(&echo.ts) {
            // A later one proves as much.
            let is_awaited = |one: &mut Awaited| one.chat == echo.chat && one.ts <= ts;
            // Held over both: the post may be confirmed at the same moment, and waits for what has come by then.
            let mut connection = self.connection();
            connection.awaited.take_if(is_awaited);
            let newest = self.chats.get(&echo.chat, now).map_or(ts, |known| known.max(ts));
            self.chats.put(echo.chat.clone(), newest, now, KEPT);
        }
        self.found(echo, now);
    }

    /// Slack confirmed a post that was begun at that moment. Only where posts have come back before, this one
    /// has to, and it may have been faster than the confirmation. One that is older than the connection may have
    /// come back on the one before.
    pub(super) fn posted(&self, chat: &str, ts: &str, begun: Mark, now: Timestamp) {
        let mut connection = self.connection();
        if connection.awaited.is_some() || connection.began > Some(begun) {
            return;
        }
        let Some(ts) = Ts::parse(ts) else { return };
        let newest = self.chats.get(&chat.to_owned(), now);
        if newest.is_some_and(|newest| newest < ts) {
            connection.awaited = Some(Awaited { chat: chat.to_owned(), ts, since: begun });
        }
    }

    /// The message that carried a delivery out, if it came back.
    pub(super) fn of(&self, delivery: &str, now: Timestamp) -> Option<String> {
        self.deliveries.get(&delivery.to_owned(), now)
    }

    /// What is wrong with a connection that does not bring what has to come back. The next one may live as well
    /// as this one did, so only what it brings shows that it is better.
    pub(super) fn overdue(&self, now: Mark) -> Option<LinkError> {
        let mut connection = self.connection();
        let is_late = |one: &mut Awaited| now.since(one.since) >= OVERDUE;
        let Awaited { chat, since, .. } = connection.awaited.take_if(is_late)?;
        if connection.brought.is_some_and(|brought| brought.since(since) >= PROMPT) {
            // It brings what happens elsewhere. Nobody tells us any more what happens in that chat.
            self.chats.forget(&chat);
            return None;
        }
        let reason = "a post of ours did not come back as an event".into();
        Some(LinkError::Deaf { reason, until: Proof::Events, since: Some(since) })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_clock::{Clock, FakeClock};

    /// Echoes of one connection, which time passes on.
    struct Bench {
        echoes: Echoes,
        clock: FakeClock,
    }

    impl Bench {
        fn starting(at: Duration) -> Self {
            let clock = FakeClock::starting(Timestamp::from_millis(0) + at);
            Self { echoes: Echoes::default(), clock }
        }

        fn begin(&self) {
            self.echoes.begin(self.clock.mark());
        }

        fn came(&self, chat: &str, ts: &str) {
            let echo = Echo { chat: chat.into(), ts: ts.into(), delivery: None };
            self.echoes.came(echo, self.clock.now());
        }

        fn posted(&self, chat: &str, ts: &str) {
            self.echoes.posted(chat, ts, self.clock.mark(), self.clock.now());
        }

        async fn is_deaf_after(&self, seconds: u64) -> bool {
            self.clock.sleep(Duration::from_secs(seconds)).await;
            self.echoes.overdue(self.clock.mark()).is_some()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_post_has_to_come_back_only_where_posts_have_come_back_before() {
        let bench = Bench::starting(Duration::ZERO);
        bench.posted("D1", "1.000001");
        assert!(!bench.is_deaf_after(100).await, "nobody may be subscribed to that chat");
        bench.came("D1", "1.000001");
        bench.posted("D1", "2.000001");
        assert!(!bench.is_deaf_after(49).await);
        bench.came("D1", "2.000001");
        assert!(!bench.is_deaf_after(100).await);
        bench.came("D1", "3.000001");
        bench.posted("D1", "3.000001");
        assert!(!bench.is_deaf_after(100).await, "it came back before it was confirmed");
        let posted = bench.clock.mark();
        bench.posted("D1", "4.000001");
        assert!(!bench.is_deaf_after(49).await);
        bench.clock.sleep(Duration::from_secs(1)).await;
        let deaf = bench.echoes.overdue(bench.clock.mark());
        let Some(LinkError::Deaf { until, since, .. }) = deaf else { panic!("{deaf:?}") };
        assert_eq!((until, since), (Proof::Events, Some(posted)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_chat_that_falls_silent_while_others_are_heard_makes_nobody_deaf() {
        let bench = Bench::starting(Duration::ZERO);
        bench.came("C1", "1.000001");
        bench.posted("C1", "2.000001");
        assert!(!bench.is_deaf_after(9).await);
        bench.echoes.brought(bench.clock.mark());
        assert!(
            bench.is_deaf_after(41).await,
            "what comes that soon can have come before the echo"
        );
        bench.posted("C1", "3.000001");
        assert!(!bench.is_deaf_after(10).await);
        bench.echoes.brought(bench.clock.mark());
        assert!(!bench.is_deaf_after(50).await);
        bench.posted("C1", "4.000001");
        assert!(!bench.is_deaf_after(50).await, "nothing is expected of that chat any more");
        bench.came("C1", "5.000001");
        bench.posted("C1", "6.000001");
        assert!(bench.is_deaf_after(50).await, "until something comes back there");
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_connection_knows_which_chats_bring_posts_back_and_owes_nothing_of_before() {
        let bench = Bench::starting(Duration::ZERO);
        bench.came("D1", "1.000001");
        bench.posted("D1", "2.000001");
        let begun = bench.clock.mark();
        assert!(!bench.is_deaf_after(1).await);
        bench.begin();
        bench.echoes.posted("D1", "3.000001", begun, bench.clock.now());
        assert!(!bench.is_deaf_after(100).await, "both were sent before");
        bench.posted("D1", "4.000001");
        assert!(bench.is_deaf_after(50).await);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_found_in_the_history_has_not_come_back() {
        let bench = Bench::starting(Duration::ZERO);
        let found = |ts: &str| {
            let echo = Echo { chat: "D1".into(), ts: ts.into(), delivery: Some("s/1.0".into()) };
            bench.echoes.found(echo, bench.clock.now());
        };
        found("1.000001");
        let shown = bench.echoes.of("s/1.0", bench.clock.now());
        assert_eq!(shown.as_deref(), Some("1.000001"));
        bench.posted("D1", "2.000001");
        assert!(!bench.is_deaf_after(50).await, "nobody may be subscribed to that chat");
        bench.came("D1", "2.000001");
        bench.posted("D1", "3.000001");
        found("3.000001");
        assert!(bench.is_deaf_after(50).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_back_does_not_put_off_what_is_overdue() {
        let mut bench = Bench::starting(Duration::from_secs(2 * 60 * 60));
        bench.came("D1", "1.000001");
        bench.posted("D1", "2.000001");
        bench.clock = FakeClock::starting(Timestamp::from_millis(60 * 60 * 1000));
        assert!(bench.is_deaf_after(50).await);
    }
}
