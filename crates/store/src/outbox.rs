//! What has to be delivered.

use talaria_model::{Act, Content, MessageId, Outbound, OutboundId, Receipt, Timestamp};

/// One act that has to be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    /// What and where.
    pub outbound: Outbound,
    /// How far it is.
    pub state: ParcelState,
    /// The message that already shows it, or its preview, where known. It is edited, not repeated.
    pub shown: Option<MessageId>,
    /// How often it may have left this machine. A try that certainly did not arrive does not count.
    pub attempts: u32,
    /// Not to be sent before this.
    pub not_before: Option<Timestamp>,
    /// How many messages that showed it are not there any more.
    pub anew: u32,
    /// When it was decided.
    pub at: Timestamp,
}

/// How far a parcel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParcelState {
    /// It has not left this machine.
    Ready,
    /// The formatting was not accepted: it is to be sent as plain text. A parcel that is also unsure
    /// says so instead.
    Plain,
    /// It, or its preview, may have arrived: it is resent under the same key, or marked.
    Unsure,
    /// It is leaving.
    Attempting,
    /// Only its preview is there so far; the text comes with the end of the turn.
    Previewing,
    /// The platform has it. Final.
    Delivered,
    /// The platform will never take it. Final.
    Undeliverable,
    /// We gave up on it. Final.
    Abandoned,
}

/// Whether a parcel may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// It may, and counts as leaving.
    Go,
    /// It has ended already, or was never there: sending it would be sending it twice.
    Ended,
}

/// Something that was said, and something that came in: which of them was first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crossing {
    /// When all parts of what was said had been delivered; none while they have not.
    pub delivered: Option<Timestamp>,
    /// When the other one came in; none of a row that is not there.
    pub arrived: Option<Timestamp>,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// The platform has it.
    Delivered(Receipt),
    /// The platform shows its preview as this message; none when nothing of it is visible.
    Previewed(Option<MessageId>),
    /// It did not arrive and is tried again at that time. The attempt does not count.
    Again {
        /// Not before.
        at: Timestamp,
    },
    /// What showed it, or its preview, is not there any more. It is tried again as another message.
    Vanished,
    /// It did not arrive and is tried again as plain text.
    Plain,
    /// It may have arrived.
    Unsure,
    /// The platform will never take it.
    Undeliverable {
        /// In the platform's words.
        reason: String,
    },
    /// We give up on it.
    Abandoned {
        /// Why.
        reason: String,
    },
}

/// A parcel that will never be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// What and where.
    pub outbound: Outbound,
    /// Undeliverable or abandoned.
    pub state: ParcelState,
    /// Why.
    pub reason: String,
    /// When it was decided.
    pub at: Timestamp,
    /// Whether anybody there knows.
    pub told: Told,
}

/// Whether the people at an address know that a parcel did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Not yet.
    No,
    /// A notice about it was decided, or it is such a notice itself.
    Yes,
}

/// What was not delivered to an address without anybody there having been told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untold {
    /// How many parcels.
    pub count: u64,
    /// The last of them.
    pub last: OutboundId,
    /// Why that one was not delivered.
    pub reason: String,
}

/// What takes the place of a preview of which nothing was decided although its delivery was: a post that
/// says nothing. Whatever is visible of it has to go.
pub fn withdrawn(preview: &Outbound) -> Outbound {
    Outbound { act: Act::Post(Content::default()), ..preview.clone() }
}
