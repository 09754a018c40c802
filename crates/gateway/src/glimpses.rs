//! What was seen and left no row of its own: repeats, and what was one too many to be written down.
//!
//! It is kept in memory, so many of them and for this run only, so that somebody who asks what became of
//! a message is answered.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use talaria_model::{AccountId, Address, EventId, Inbound, MessageId, Sender, Seq, Timestamp};
use talaria_store::{Clue, message_of};

/// How many are remembered. The oldest are forgotten first.
const REMEMBERED: usize = 4096;

/// An event without a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glimpse {
    /// Its id.
    pub event: EventId,
    /// The platform's id of what was said.
    pub message: Option<MessageId>,
    /// Who caused it.
    pub from: Sender,
    /// Where.
    pub to: Address,
    /// When it was seen.
    pub at: Timestamp,
    /// Why there is no row.
    pub why: Unwritten,
}

/// Why there is no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unwritten {
    /// It had been delivered before, as this row.
    Repeated(Seq),
    /// It was not answered, by this rule, like too many others of that day.
    Ignored(String),
    /// It was not let in, by this rule, like too many others of that day.
    Denied(String),
    /// It has a row; this came of its sender's asking to be let in.
    Knocked(&'static str),
    /// It named another account than the one that it came in on, which is this.
    Misdirected(AccountId),
}

#[derive(Debug, Default)]
pub(crate) struct Glimpses {
    seen: Mutex<VecDeque<Glimpse>>,
}

impl Glimpses {
    pub(crate) fn catch(&self, inbound: &Inbound, at: Timestamp, why: Unwritten) {
        let glimpse = Glimpse {
            event: inbound.id.clone(),
            message: message_of(inbound).cloned(),
            from: inbound.from.clone(),
            to: inbound.to.clone(),
            at,
            why,
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() == REMEMBERED {
            seen.pop_front();
        }
        seen.push_back(glimpse);
    }

    /// Those that a clue leads to, the newest first.
    pub(crate) fn of(&self, clue: &Clue, limit: usize) -> Vec<Glimpse> {
        let fits = |glimpse: &&Glimpse| match clue {
            Clue::Id(id) => {
                let message = glimpse.message.as_ref().map(MessageId::as_str);
                glimpse.event.as_str() == id || message == Some(id)
            }
            Clue::Chat { account, chat } => {
                glimpse.to.account == *account && glimpse.to.chat.id == *chat
            }
        };
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().rev().filter(fits).take(limit).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::{Chat, ChatId, ChatKind, InboundKind, Message, SenderId, Source};

    fn said(number: usize) -> Inbound {
        let id = Some(MessageId::new(format!("m{number}")).expect("an id"));
        Inbound {
            id: EventId::new(format!("e{number}")).expect("an id"),
            at: Timestamp::default(),
            from: Sender::new(SenderId::literal("mallory")),
            to: Address {
                account: AccountId::literal("main"),
                chat: Chat { id: ChatId::literal("c"), kind: ChatKind::Dm },
                thread: None,
            },
            kind: InboundKind::Said(Message { id, ..Message::default() }),
            source: Source::default(),
        }
    }

    #[test]
    fn the_newest_are_remembered_and_found_by_every_clue() {
        let glimpses = Glimpses::default();
        for number in 0..REMEMBERED + 10 {
            glimpses.catch(&said(number), Timestamp::default(), Unwritten::Denied("no".into()));
        }
        let found = |clue: Clue| glimpses.of(&clue, usize::MAX).len();
        assert_eq!(found(Clue::Id("e9".into())), 0, "it is forgotten");
        assert_eq!(found(Clue::Id("e10".into())), 1);
        assert_eq!(found(Clue::Id("m10".into())), 1);
        let chat = Clue::Chat { account: AccountId::literal("main"), chat: ChatId::literal("c") };
        assert_eq!(found(chat), REMEMBERED);
    }
}
