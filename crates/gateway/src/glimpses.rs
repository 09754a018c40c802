//! What was seen and left no row of its own: repeats, and what was one too many to be written down.
//!
//! All of it is remembered for a while in memory, so many of them and for this run only, so that somebody
//! who asks what became of a message is answered. What was not answered is kept in the store, too, many
//! rows at once and beside what is taken in, which does not wait for it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talaria_model::{AccountId, Address, EventId, Inbound, MessageId, Sender, Seq, Timestamp};
use talaria_store::{Clue, JournalState, Unanswered, message_of};
use tokio::sync::Notify;

use crate::chores::keep_doing;
use crate::shared::Shared;

/// How many are remembered. The oldest are forgotten first.
const REMEMBERED: usize = 1024;

/// For so long they are gathered before they are written.
const GATHERED: Duration = Duration::from_millis(500);

/// How many may wait to be written. Where more come, the rest is only counted.
const WAITING: usize = 2_000;

/// How many are written in one piece.
const WRITTEN_AT_ONCE: usize = 250;

/// Between two pieces. Who floods us with what is not answered must not keep the store from those who are.
const BREATH: Duration = Duration::from_millis(100);

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
    Knocked(Cow<'static, str>),
    /// It named another account than the one that it came in on, which is this.
    Misdirected(AccountId),
}

#[derive(Debug, Default)]
pub(crate) struct Glimpses {
    seen: Mutex<VecDeque<Glimpse>>,
    /// What has to be kept.
    waiting: Mutex<Vec<Unanswered>>,
    gathered: Notify,
    /// Held while they are written.
    keeping: tokio::sync::Mutex<()>,
}

impl Glimpses {
    pub(crate) fn catch(&self, inbound: &Inbound, at: Timestamp, why: Unwritten) {
        self.gather(inbound, at, &why);
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

    fn gather(&self, inbound: &Inbound, at: Timestamp, why: &Unwritten) {
        let named = &inbound.to.account;
        let (account, state) = match why {
            Unwritten::Repeated(_) | Unwritten::Knocked(_) => return,
            Unwritten::Ignored(why) => (named, JournalState::Ignored(why.clone())),
            Unwritten::Denied(why) => (named, JournalState::Denied(why.clone())),
            // Whoever speaks for a platform may name as many accounts as they like.
            Unwritten::Misdirected(on) => (on, JournalState::Denied(MISDIRECTED.to_owned())),
        };
        let mut waiting = self.waiting();
        if waiting.len() < WAITING {
            waiting.push(Unanswered::of(account, inbound, state, at));
        }
        drop(waiting);
        self.gathered.notify_one();
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Unanswered>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Why something was dropped that names another account.
pub const MISDIRECTED: &str = "it named another account than it came in on";

/// Keeps in the store what was not answered, a while after it came in.
pub(crate) fn spawn(shared: &Arc<Shared>) {
    keep_doing(shared, "keeping what was not answered", keep_again_and_again);
}

async fn keep_again_and_again(shared: Arc<Shared>) {
    loop {
        shared.glimpses.gathered.notified().await;
        shared.clock.sleep(GATHERED).await;
        while let Left::Some = keep_some(&shared).await {
            shared.clock.sleep(BREATH).await;
        }
    }
}

/// Whether there is something left to be kept.
enum Left {
    Some,
    /// Nothing, or nothing that the store takes before the next time.
    Nothing,
}

/// Keeps all that has been gathered, at once. What the store does not take waits until the next time.
pub(crate) async fn keep(shared: &Shared) {
    while let Left::Some = keep_some(shared).await {}
}

async fn keep_some(shared: &Shared) -> Left {
    let _one_at_a_time = shared.glimpses.keeping.lock().await;
    let rows: Vec<_> = shared.glimpses.waiting().iter().take(WRITTEN_AT_ONCE).cloned().collect();
    let many = rows.len();
    if many == 0 {
        return Left::Nothing;
    }
    if let Err(error) = shared.store.keep_unanswered(rows).await {
        tracing::warn!(%error, many, "what was not answered is not kept yet");
        return Left::Nothing;
    }
    // Only what is kept is let go: this may be cut off while it writes.
    let mut waiting = shared.glimpses.waiting();
    waiting.drain(..many);
    if waiting.is_empty() { Left::Nothing } else { Left::Some }
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
