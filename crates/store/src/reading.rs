//! What people and pages read.

use talaria_model::{AccountId, Address, Entry, SessionId, Timestamp, Usage};
use talaria_session::{Session, SessionKey};

/// A conversation in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Which.
    pub key: SessionKey,
    /// Its present life.
    pub id: SessionId,
    /// Where.
    pub at: Address,
    /// What it is about.
    pub title: String,
    /// When something happened last.
    pub updated: Timestamp,
    /// Whether a turn is in hand.
    pub busy: bool,
    /// Turns in its present life.
    pub turns: u32,
    /// Tokens in its present life.
    pub usage: Usage,
}

impl Summary {
    /// The line for a session.
    pub fn of(session: &Session) -> Self {
        Self {
            key: session.key.clone(),
            id: session.id.clone(),
            at: session.at.clone(),
            title: session.title.clone(),
            updated: session.updated,
            busy: session.hand().is_some(),
            turns: session.turns,
            usage: session.usage,
        }
    }
}

/// An entry with its place in the whole store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Grows with every entry recorded anywhere.
    pub position: u64,
    /// The life of the conversation it belongs to.
    pub session: SessionId,
    /// What was recorded.
    pub entry: Entry,
}

/// Where to look. There is no "everywhere": whoever asks names what is theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchScope {
    /// Every conversation on these accounts.
    Accounts(Vec<AccountId>),
    /// One conversation, over all its lives.
    Conversation(SessionKey),
}

/// Something found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// In which conversation.
    pub key: SessionKey,
    /// Where.
    pub at: Address,
    /// What that conversation is about.
    pub title: String,
    /// The entry.
    pub recorded: Recorded,
    /// The text around the match, with the match between `\u{2}` and `\u{3}`.
    pub excerpt: String,
}

/// How much of everything there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Conversations.
    pub sessions: u64,
    /// Turns in hand.
    pub turns_in_hand: u64,
    /// Journal rows that no step has taken.
    pub unread: u64,
    /// Journal rows set aside.
    pub quarantined: u64,
    /// Journal rows not let in.
    pub denied: u64,
    /// Parcels that still have to be delivered.
    pub undelivered: u64,
    /// Parcels that will never be delivered.
    pub failed: u64,
    /// Entries.
    pub entries: u64,
}
