//! How much of what strangers say is written down.
//!
//! Whoever is not let in costs nothing but a row in the journal. Rows cost disk, and anybody can write
//! to a bot; so an account writes down so many a day and counts the rest.

use std::time::Duration;

use talaria_model::{Inbound, InboundKind, Timestamp};

/// How many denied events an account writes down in a day.
const WRITTEN_DOWN: u32 = 1000;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How much of a denied message is written down, in bytes: enough for the operator to recognise it.
const EXCERPT: usize = 200;

/// What an account has denied today.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    since: Timestamp,
    count: u32,
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
    /// One more event is denied.
    pub(crate) fn count(&mut self, now: Timestamp) -> Trace {
        if now.since(self.since) >= DAY || now < self.since {
            *self = Self { since: now, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        if self.count == WRITTEN_DOWN + 1 {
            tracing::warn!(denied = WRITTEN_DOWN, "no more is written down of strangers today");
        }
        if self.count <= WRITTEN_DOWN { Trace::Row } else { Trace::None }
    }
}

/// As much of a denied event as is written down.
pub(crate) fn excerpt(inbound: &mut Inbound) {
    if let InboundKind::Said(message) = &mut inbound.kind {
        message.text.truncate(message.text.floor_char_boundary(EXCERPT));
        message.files.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::{
        AccountId, Address, Chat, ChatId, ChatKind, EventId, FileId, FileRef, Message, Sender,
        SenderId,
    };

    #[test]
    fn an_excerpt_of_a_denied_message_is_written_down_and_no_file() {
        let file = FileRef {
            id: FileId::literal("f"),
            name: "f".into(),
            mime: "text/plain".into(),
            size: 1,
        };
        let message = Message { text: "é".repeat(1000), files: vec![file], ..Message::default() };
        let mut inbound = Inbound {
            id: EventId::literal("e"),
            at: Timestamp::default(),
            from: Sender { id: SenderId::literal("mallory"), name: None },
            to: Address {
                account: AccountId::literal("main"),
                chat: Chat { id: ChatId::literal("c"), kind: ChatKind::Dm },
                thread: None,
            },
            kind: InboundKind::Said(message),
        };
        excerpt(&mut inbound);
        let text = "é".repeat(EXCERPT / 2);
        assert_eq!(inbound.kind, InboundKind::Said(Message { text, ..Message::default() }));
    }

    #[test]
    fn so_many_a_day_are_written_down_and_the_rest_is_counted() {
        let mut denials = Denials::default();
        for day in 1..=3 {
            let now = Timestamp::default() + DAY * day;
            let rows = (0..100_000).filter(|_| denials.count(now) == Trace::Row).count();
            assert_eq!(rows, WRITTEN_DOWN as usize, "on day {day}");
        }
        assert_eq!(denials.count(Timestamp::default()), Trace::Row, "a clock that was set back");
    }
}
