//! Chats in which something was lost that nobody there knows of yet.
//!
//! The store knows them all. What is kept here spares every delivery a question to it.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use talaria_model::{Act, Address, Capabilities, Content, Markup, Notify, Outbound};
use talaria_platform::lower;
use talaria_store::{Store, StoreError, Untold};

/// How many chats are known by name. When there are more, the store is asked about every other chat,
/// too, each time something arrives there.
const NAMED: usize = 4096;

/// How many addresses are read per look into the store.
const PAGE: usize = 500;

/// The longest reason that people are told, in characters. It is in the platform's words.
const LONGEST_REASON: usize = 160;

/// Chats in which something was lost that nobody there knows of yet.
#[derive(Default)]
pub(crate) struct Owed {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    chats: HashSet<Address>,
    others: Others,
}

/// What is known of chats that are not named.
#[derive(Default, PartialEq, Eq)]
enum Others {
    /// Nothing was lost there.
    #[default]
    Fine,
    /// Only the store knows.
    Unknown,
}

impl Owed {
    /// Takes up what the last run left.
    pub(crate) async fn resume(&self, store: &dyn Store) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = store.untold_at(after, PAGE).await?;
            after = page.last().cloned();
            let last = page.len() < PAGE;
            page.into_iter().for_each(|to| self.add(to));
            if last || self.lock().others == Others::Unknown {
                return Ok(());
            }
        }
    }

    /// Something was lost there.
    pub(crate) fn add(&self, to: Address) {
        let mut known = self.lock();
        if known.chats.len() < NAMED || known.chats.contains(&to) {
            known.chats.insert(to);
        } else {
            known.others = Others::Unknown;
        }
    }

    /// Whether something may have been lost there.
    pub(crate) fn may_include(&self, to: &Address) -> bool {
        let known = self.lock();
        known.others == Others::Unknown || known.chats.contains(to)
    }

    /// Everybody there has been told.
    pub(crate) fn remove(&self, to: &Address) {
        self.lock().chats.remove(to);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells people what did not reach them. Its number is taken from the end of those that the parts of
/// the last lost delivery could have, so that it is the same after a crash and no part has it.
pub(crate) fn notice(untold: &Untold, to: Address, can: &Capabilities) -> Option<Outbound> {
    let reason: String = untold.reason.chars().take(LONGEST_REASON).collect();
    let reason = match can.markup {
        Markup::Plain => reason,
        _ => talaria_render::literal(&reason),
    };
    let text = match untold.count {
        1 => format!("1 earlier message could not be delivered ({reason})."),
        count => format!("{count} earlier messages could not be delivered ({reason})."),
    };
    let id = untold.last.with_part(u16::MAX - untold.last.part);
    let content = Content { notify: Notify::Silently, ..Content::text(text) };
    let whole = Outbound { id, to, act: Act::Post(content) };
    lower(whole, can).into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::{AccountId, Chat, ChatId, ChatKind, OutboundId, SessionId, TextLimit};
    use talaria_store::MemoryStore;

    fn chat(number: usize) -> Address {
        let id = ChatId::new(format!("chat {number}")).expect("an id");
        Address {
            account: AccountId::literal("main"),
            chat: Chat { id, kind: ChatKind::Dm },
            thread: None,
        }
    }

    #[test]
    fn no_more_chats_than_there_is_room_for_are_named_and_none_is_forgotten() {
        let owed = Owed::default();
        assert!(!owed.may_include(&chat(0)));
        (0..2 * NAMED).for_each(|number| owed.add(chat(number)));
        assert_eq!(owed.lock().chats.len(), NAMED);
        assert!((0..2 * NAMED).all(|number| owed.may_include(&chat(number))));
        owed.remove(&chat(1));
        assert_eq!(owed.lock().chats.len(), NAMED - 1);
    }

    #[tokio::test]
    async fn a_store_without_losses_leaves_nothing_to_ask() {
        let owed = Owed::default();
        owed.resume(&MemoryStore::new()).await.expect("reads");
        assert!(!owed.may_include(&chat(0)));
    }

    #[test]
    fn a_notice_is_one_short_message_with_a_name_of_its_own() {
        let untold = |count, part, reason: &str| Untold {
            count,
            last: OutboundId { session: SessionId::literal("s"), delivery: 7, part },
            reason: reason.into(),
        };
        let plain = Capabilities::PLAIN;
        let said = |untold: &Untold, can: &Capabilities| {
            let notice = notice(untold, chat(0), can).expect("there is something to say");
            match notice.act {
                Act::Post(content) => (notice.id.part, content.text),
                act => panic!("{act:?}"),
            }
        };
        assert_eq!(
            said(&untold(1, 0, "kicked"), &plain),
            (u16::MAX, "1 earlier message could not be delivered (kicked).".into())
        );
        assert_eq!(
            said(&untold(3, 2, "kicked"), &plain),
            (u16::MAX - 2, "3 earlier messages could not be delivered (kicked).".into())
        );
        let long = said(&untold(2, 0, &"x".repeat(10_000)), &plain).1;
        assert!(long.len() < 250, "{long}");
        let short = Capabilities { text: TextLimit { max: 16, ..plain.text }, ..plain };
        assert!(said(&untold(2, 0, "kicked"), &short).1.len() <= 16);
    }
}
