//! What is written together.

use talaria_model::{AccountId, Entry, Inbound, Outbound, Seq, SessionId, Timestamp, TurnId};
use talaria_session::{Session, SessionKey};

/// A batch as a platform delivered it.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// The account it came in on.
    pub account: AccountId,
    /// The events, each with the session it belongs to and whether it was let in.
    pub events: Vec<(SessionKey, Inbound, JournalState)>,
    /// The platform's position after them.
    pub cursor: Option<String>,
    /// When it came in.
    pub at: Timestamp,
}

/// What the journal made of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitted {
    /// It is the row with this number.
    Journalled(Seq),
    /// It is there already, as the row with this number.
    Repeated(Seq),
}

/// What became of a journal row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalState {
    /// No step has taken it yet.
    Unread,
    /// Its session has it and will bind or close it.
    Taken,
    /// It is part of this turn.
    Bound(TurnId),
    /// It was dealt with without a turn.
    Handled,
    /// There was nothing to do, and why.
    Ignored(String),
    /// Policy did not let it in, and why.
    Denied(String),
    /// It was set aside, and why.
    Quarantined(String),
}

/// A journal row that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalChange {
    /// The row.
    pub seq: Seq,
    /// What it becomes.
    pub state: JournalState,
}

/// One step of a session.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The session as the step left it.
    pub session: Session,
    /// Journal rows that change.
    pub journal: Vec<JournalChange>,
    /// Entries to append, each with the life of the conversation it belongs to.
    pub entries: Vec<(SessionId, Entry)>,
    /// What has to be delivered, lowered to what the platform can do, in order. A parcel whose
    /// preview is already visible replaces it.
    pub outbox: Vec<Outbound>,
    /// When the step was taken.
    pub at: Timestamp,
}
