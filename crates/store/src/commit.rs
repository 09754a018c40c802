//! What is written together.

use talaria_model::{
    AccountId, Entry, Grant, Inbound, Outbound, SenderId, Seq, SessionId, Timestamp, TurnId,
};
use talaria_session::budget::{Day, Payer, Spent};
use talaria_session::{Past, Retired, Session, SessionKey};

use crate::Audited;

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
    /// Journal rows whose words are not kept, each with what stands in their place.
    pub concealed: Vec<(Seq, String)>,
    /// Journal rows that are another session's, which has not read them yet.
    pub forwarded: Vec<(Seq, SessionKey)>,
    /// Rows that nobody has read and nobody will.
    pub dropped: Option<Dropped>,
    /// The life that gives way to another one.
    pub retired: Option<Retirement>,
    /// The life that begins as a branch of another one.
    pub branch: Option<Branch>,
    /// What is taken back, before anything is appended.
    pub rewinds: Vec<Rewind>,
    /// Entries to append, each with the life of the conversation it belongs to.
    pub entries: Vec<(SessionId, Entry)>,
    /// What has to be delivered, lowered to what the platform can do, in order. A parcel whose
    /// preview is already visible replaces it.
    pub outbox: Vec<Outbound>,
    /// What was approved for good. One that is there already stays as it is.
    pub grants: Vec<Grant>,
    /// What goes into the record.
    pub audited: Vec<Audited>,
    /// What was spent.
    pub spending: Vec<Spending>,
    /// When the step was taken.
    pub at: Timestamp,
}

impl Commit {
    /// A step that changes the session's state and nothing else.
    pub fn of(session: Session, at: Timestamp) -> Self {
        Self {
            session,
            journal: Vec::new(),
            concealed: Vec::new(),
            forwarded: Vec::new(),
            dropped: None,
            retired: None,
            branch: None,
            rewinds: Vec::new(),
            entries: Vec::new(),
            outbox: Vec::new(),
            grants: Vec::new(),
            audited: Vec::new(),
            spending: Vec::new(),
            at,
        }
    }
}

/// Something that was spent, on top of what was spent that day before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spending {
    /// When.
    pub day: Day,
    /// By whom.
    pub payer: Payer,
    /// How much.
    pub spent: Spent,
}

/// Closes the unread rows of a conversation that arrived before a moment: nobody will answer them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// The first row that stays.
    pub before: Seq,
    /// What `JournalState::Ignored` will say.
    pub reason: String,
}

/// A life gives way to another and can be gone back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retirement {
    /// What is kept of it beside its entries.
    pub past: Past,
    /// What for.
    pub why: Retired,
}

/// A life begins with what another one of the same owner remembers. Nothing is copied, and what
/// becomes of the other afterwards does not change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The other life.
    pub from: SessionId,
    /// The life that begins. It must not have begun already.
    pub to: SessionId,
    /// The last entry that both have in common.
    pub upto: u32,
}

/// Takes entries back. They are not forgotten: `Reading::Everything` shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewind {
    /// Of this life.
    pub session: SessionId,
    /// The first of them.
    pub from: u32,
    /// The last of them.
    pub upto: u32,
    /// Who wants it; none when it is nobody in particular.
    pub by: Option<SenderId>,
}
