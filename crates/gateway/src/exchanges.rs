//! How often programs are answered: two of them that answer each other do not stop by themselves.

use std::collections::HashMap;
use std::time::Duration;

use talaria_model::{ChatId, Inbound, SenderId, Timestamp};

/// How many programs are counted at the same time. While there are so many, no other is answered.
const COUNTED: usize = 1024;

const MINUTE: Duration = Duration::from_secs(60);

/// How often each program was answered in each chat in its present minute.
#[derive(Debug, Default)]
pub(crate) struct Exchanges(HashMap<(ChatId, SenderId), Minute>);

#[derive(Debug)]
struct Minute {
    since: Timestamp,
    answered: u32,
}

impl Minute {
    fn is_over(&self, now: Timestamp) -> bool {
        now < self.since || now.since(self.since) >= MINUTE
    }
}

impl Exchanges {
    /// Whether what a program says is answered once more.
    pub(crate) fn permit(&mut self, inbound: &Inbound, most: u32, now: Timestamp) -> bool {
        let chat = inbound.source.counts_for(&inbound.to.chat.id);
        let pair = (chat.clone(), inbound.from.id.clone());
        if !self.0.contains_key(&pair) && self.0.len() >= COUNTED {
            self.0.retain(|_, minute| !minute.is_over(now));
            if self.0.len() >= COUNTED {
                return false;
            }
        }
        let minute = self.0.entry(pair).or_insert(Minute { since: now, answered: 0 });
        if minute.is_over(now) {
            *minute = Minute { since: now, answered: 0 };
        }
        minute.answered = minute.answered.saturating_add(1);
        minute.answered <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::{AccountId, Address, Chat, ChatKind, EventId, InboundKind, Sender, Source};

    fn bot(chat: &str, name: &str) -> Inbound {
        Inbound {
            id: EventId::literal("e"),
            at: Timestamp::default(),
            from: Sender::new(SenderId::new(name).expect("an id")),
            to: Address {
                account: AccountId::literal("main"),
                chat: Chat { id: ChatId::new(chat).expect("an id"), kind: ChatKind::Group },
                thread: None,
            },
            source: Source::default(),
            kind: InboundKind::Stopped,
        }
    }

    #[test]
    fn each_program_is_answered_so_often_in_each_chat_and_minute() {
        let mut exchanges = Exchanges::default();
        let now = Timestamp::from_millis(10_000_000);
        let mut permitted = |chat: &str, name: &str, now| {
            (0..20).filter(|_| exchanges.permit(&bot(chat, name), 10, now)).count()
        };
        assert_eq!(permitted("a", "one", now), 10);
        assert_eq!(permitted("a", "one", now + MINUTE / 2), 0);
        assert_eq!(permitted("b", "one", now), 10);
        assert_eq!(permitted("a", "two", now), 10);
        assert_eq!(permitted("a", "one", now + MINUTE), 10);
        assert_eq!(permitted("a", "one", now), 10, "a clock that was set back");
    }

    #[test]
    fn a_program_that_begins_a_thread_with_everything_it_says_is_counted_in_its_channel() {
        let mut exchanges = Exchanges::default();
        let now = Timestamp::from_millis(10_000_000);
        let in_thread = |number: usize| Inbound {
            source: Source { parent: Some(ChatId::literal("a")), ..Source::default() },
            ..bot(&format!("thread-{number}"), "one")
        };
        let answered = (0..20).filter(|n| exchanges.permit(&in_thread(*n), 10, now)).count();
        assert_eq!(answered, 10);
        assert!(!exchanges.permit(&bot("a", "one"), 10, now), "nor in the channel itself");
    }

    #[test]
    fn any_number_of_programs_is_counted_in_bounded_room() {
        let mut exchanges = Exchanges::default();
        let now = Timestamp::from_millis(10_000_000);
        let names = (0..10 * COUNTED).map(|n| format!("bot-{n}"));
        let answered = names.filter(|name| exchanges.permit(&bot("a", name), 10, now)).count();
        assert_eq!((answered, exchanges.0.len()), (COUNTED, COUNTED));
        assert!(exchanges.permit(&bot("a", "late"), 10, now + MINUTE));
        assert_eq!(exchanges.0.len(), 1);
    }
}
