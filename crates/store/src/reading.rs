//! What people and pages read.

use std::collections::BTreeMap;

use talaria_model::{AccountId, Address, Cost, Entry, EntryBody, SessionId, Timestamp, Usage};
use talaria_session::{Asked, Request, Session, SessionKey};

use crate::{Owner, ParcelState, Rewound};

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
    /// Whether a turn is in hand, something that was said is still to be read, or a command is being
    /// carried out that is answered in words.
    pub busy: bool,
    /// Turns in its present life.
    pub turns: u32,
    /// Tokens in its present life.
    pub usage: Usage,
    /// What they cost.
    pub cost: Cost,
}

fn is_answered_in_words(asked: &Asked) -> bool {
    !matches!(asked.request, Request::Speak(_))
}

impl Summary {
    /// The line for a session of which nothing is unread.
    pub fn of(session: &Session) -> Self {
        Self {
            key: session.key.clone(),
            id: session.id.clone(),
            at: session.at.clone(),
            title: session.title.clone(),
            updated: session.updated,
            busy: session.hand().is_some() || session.asked.iter().any(is_answered_in_words),
            turns: session.turns,
            usage: session.usage,
            cost: session.cost,
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

/// An entry that is kept, whether or not it was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The entry.
    pub recorded: Recorded,
    /// When it was taken back, and by whom.
    pub rewound: Option<Rewound>,
}

/// Where to look. What is not known is in no scope but `Everything`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchScope {
    /// Every conversation there is. For the operator.
    Everything,
    /// Every conversation on these accounts.
    Accounts(Vec<AccountId>),
    /// Every conversation of one owner, in whatever chat.
    Owner(Owner),
    /// One conversation, over all its lives.
    Conversation(SessionKey),
}

/// What is looked for. Time is taken to pass as entries are recorded: what stands behind a jump of the
/// clock may be missed between two moments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Where.
    pub scope: SearchScope,
    /// Words, or a part of a text.
    pub text: String,
    /// Only what was said in these ways; empty for any.
    pub spoken: Vec<Spoken>,
    /// Not before this.
    pub since: Option<Timestamp>,
    /// Before this.
    pub until: Option<Timestamp>,
    /// How many at most.
    pub limit: usize,
}

impl Wanted {
    /// Whatever was said, whenever.
    pub fn new(scope: SearchScope, text: impl Into<String>, limit: usize) -> Self {
        Self { scope, text: text.into(), spoken: Vec::new(), since: None, until: None, limit }
    }

    /// Whether an entry may answer, whatever its text.
    pub fn allows(&self, entry: &Entry) -> bool {
        let spoken = Spoken::of(&entry.body);
        spoken.is_some_and(|spoken| self.spoken.is_empty() || self.spoken.contains(&spoken))
            && self.since.is_none_or(|since| entry.at >= since)
            && self.until.is_none_or(|until| entry.at < until)
    }
}

/// Who said something that people see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Spoken {
    /// A person, to the agent.
    Said,
    /// A person, to the gateway.
    Aside,
    /// The agent.
    Answered,
    /// The gateway.
    Noticed,
}

impl Spoken {
    /// None for what people do not see.
    pub fn of(body: &EntryBody) -> Option<Self> {
        match body {
            EntryBody::Said { .. } => Some(Self::Said),
            EntryBody::Aside { .. } => Some(Self::Aside),
            EntryBody::Answered { .. } => Some(Self::Answered),
            EntryBody::Noticed { .. } => Some(Self::Noticed),
            EntryBody::Returned { .. } | EntryBody::Summary { .. } => None,
        }
    }
}

/// Something found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// In which conversation.
    pub key: SessionKey,
    /// Where.
    pub at: Address,
    /// What that conversation is about in the life in which it was said.
    pub title: String,
    /// The entry.
    pub recorded: Recorded,
    /// The text around the match, with the match between `\u{2}` and `\u{3}`.
    pub excerpt: String,
}

/// What waits in one place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queue {
    /// How much of it there is.
    pub many: u64,
    /// Since when the oldest of it waits.
    pub oldest: Option<Timestamp>,
}

impl Queue {
    /// The same with something more.
    pub fn and(self, other: Self) -> Self {
        let oldest = [self.oldest, other.oldest].into_iter().flatten().min();
        Self { many: self.many + other.many, oldest }
    }
}

/// What waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queues {
    /// Journal rows that no step has taken.
    pub unread: Queue,
    /// Journal rows that wait behind the turn in hand of their session. What steers that turn, or has to be
    /// found out, does not.
    pub waiting: Queue,
    /// Parcels that still have to be delivered, by how far they are, in the order of their states.
    pub outbox: BTreeMap<ParcelState, Queue>,
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
