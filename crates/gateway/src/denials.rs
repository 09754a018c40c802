//! How much is written down of what is not answered.
//!
//! Whoever is not let in costs nothing but a row in the journal, and neither does what people in a group
//! say to each other. Rows cost disk, and anybody can write to a bot; so an account writes down so many
//! of each a day and counts the rest.

use std::time::Duration;

use talaria_model::{AccountId, Inbound, InboundKind, Message, SenderId, Timestamp};
use talaria_store::{Store, StoreError};

/// How many denied events an account writes down in a day.
const WRITTEN_DOWN: usize = 1000;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How much of a denied message is written down, in bytes: enough for the operator to recognise it.
const EXCERPT: usize = 200;

/// What an account has denied.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    /// When the day began that is counted.
    since: Timestamp,
    /// Rows of that day.
    rows: usize,
    /// Events of this run of which there is no row.
    traceless: u64,
    /// Who was turned away last in this run.
    last: Option<Stranger>,
}

/// Somebody who was not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    /// Who, as `allow` wants it.
    pub id: SenderId,
    /// When.
    pub at: Timestamp,
}

/// What becomes of a denied event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trace {
    /// It is written down.
    Row,
    /// It is not: there were too many today.
    None,
}

impl Denials {
    /// What the last run wrote down counts, so that a restart does not begin a new day.
    pub(crate) async fn resume(
        store: &dyn Store,
        account: &AccountId,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let day = i64::try_from(DAY.as_millis()).unwrap_or(i64::MAX);
        let yesterday = Timestamp::from_millis(now.as_millis().saturating_sub(day));
        let rows = store.denied(account, yesterday, WRITTEN_DOWN).await?;
        let since = rows.first().copied().unwrap_or_default();
        Ok(Self { since, rows: rows.len(), traceless: 0, last: None })
    }

    /// One more event is denied.
    pub(crate) fn count(&mut self, now: Timestamp) -> Trace {
        if now.since(self.since) >= DAY || now < self.since {
            (self.since, self.rows) = (now, 0);
        }
        if self.rows < WRITTEN_DOWN {
            self.rows += 1;
            if self.rows == WRITTEN_DOWN {
                tracing::warn!(
                    rows = self.rows,
                    "no more is written down today of what is not answered"
                );
            }
            return Trace::Row;
        }
        self.traceless = self.traceless.saturating_add(1);
        Trace::None
    }

    /// One more event is denied, of somebody who is not let in.
    pub(crate) fn turn_away(&mut self, sender: &SenderId, now: Timestamp) -> Trace {
        self.last = Some(Stranger { id: sender.clone(), at: now });
        self.count(now)
    }

    /// Who was turned away last in this run.
    pub(crate) fn last(&self) -> Option<&Stranger> {
        self.last.as_ref()
    }

    /// How many rows of denied events there are of the day that is counted.
    pub(crate) fn lately(&self, now: Timestamp) -> u64 {
        if now.since(self.since) < DAY { self.rows as u64 } else { 0 }
    }

    /// How many events of this run were denied without a row.
    pub(crate) fn traceless(&self) -> u64 {
        self.traceless
    }
}

/// As much of a denied event as is written down.
pub(crate) fn excerpt(inbound: &mut Inbound) {
    if let InboundKind::Said(message) | InboundKind::Edited(message) = &mut inbound.kind {
        let Message { id, mut text, addressed, interventions, .. } = std::mem::take(message);
        text.truncate(text.floor_char_boundary(EXCERPT));
        *message = Message { id, text, addressed, interventions, ..Message::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::{
        Address, Chat, ChatId, ChatKind, EventId, FileId, FileRef, Sender, Source,
    };
    use talaria_session::{Scope, SessionKey};
    use talaria_store::{Delivered, JournalState, MemoryStore};

    fn stranger(message: Message) -> Inbound {
        Inbound {
            id: EventId::literal("e"),
            at: Timestamp::default(),
            from: Sender::new(SenderId::literal("mallory")),
            to: Address {
                account: AccountId::literal("main"),
                chat: Chat { id: ChatId::literal("c"), kind: ChatKind::Dm },
                thread: None,
            },
            kind: InboundKind::Said(message),
            source: Source::default(),
        }
    }

    #[test]
    fn an_excerpt_of_a_denied_message_is_written_down_and_no_file() {
        let file = FileRef::new(FileId::literal("f"), "f", "text/plain", 1);
        let message = Message { text: "é".repeat(1000), files: vec![file], ..Message::default() };
        let mut inbound = stranger(message);
        excerpt(&mut inbound);
        let text = "é".repeat(EXCERPT / 2);
        assert_eq!(inbound.kind, InboundKind::Said(Message { text, ..Message::default() }));
    }

    #[tokio::test]
    async fn a_restart_begins_no_new_day() {
        let store = MemoryStore::new();
        let account = AccountId::literal("main");
        let begun = Timestamp::default() + DAY * 10;
        let events = (0..WRITTEN_DOWN).map(|number| {
            let mut inbound = stranger(Message::default());
            inbound.id = EventId::new(format!("e{number}")).expect("an id");
            let key = SessionKey::of(&inbound, Scope::default());
            (key, inbound, JournalState::Denied("no".into()))
        });
        let events = events.collect();
        let batch = Delivered { account: account.clone(), events, cursor: None, at: begun };
        store.admit(batch).await.expect("admits");
        for (later, trace) in [(DAY / 2, Trace::None), (DAY, Trace::Row), (DAY * 2, Trace::Row)] {
            let now = begun + later;
            let mut denials = Denials::resume(&store, &account, now).await.expect("reads");
            assert_eq!(denials.count(now), trace, "{later:?} later");
        }
    }

    #[test]
    fn who_was_turned_away_last_is_known_and_how_many_in_a_day() {
        let mut denials = Denials::default();
        let now = Timestamp::default() + DAY;
        for sender in ["mallory", "eve"] {
            denials.turn_away(&SenderId::literal(sender), now);
        }
        let last = Stranger { id: SenderId::literal("eve"), at: now };
        assert_eq!(denials.last(), Some(&last));
        assert_eq!(denials.lately(now), 2);
        assert_eq!(denials.lately(now + DAY), 0, "of another day");
    }

    #[test]
    fn so_many_a_day_are_written_down_and_the_rest_is_counted() {
        let mut denials = Denials::default();
        for day in 1..=3 {
            let now = Timestamp::default() + DAY * day;
            let rows = (0..100_000).filter(|_| denials.count(now) == Trace::Row).count();
            assert_eq!(rows, WRITTEN_DOWN, "on day {day}");
        }
        assert_eq!(denials.traceless(), 3 * (100_000 - WRITTEN_DOWN as u64));
        assert_eq!(denials.count(Timestamp::default()), Trace::Row, "a clock that was set back");
    }
}
