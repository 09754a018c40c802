//! The nouns of the gateway: ids, addresses, what people say, what we do in a chat, what a
//! platform can do, and the entries of a transcript.
//!
//! Everything here is plain data with serde. This crate knows no async, no clock, no database, no
//! platform and no policy; it is what the other crates hand to each other.
#![forbid(unsafe_code)]

mod address;
mod approval;
mod capabilities;
mod content;
mod cost;
mod effort;
mod entry;
mod file;
mod id;
mod inbound;
pub mod jid;
mod media;
mod outbound;
mod pattern;
mod proxy;
mod reach;
mod redact;
mod secret;
mod source;
mod time;
mod turn;
mod voice;

pub use address::{Address, Chat, ChatKind, Sender, SenderKind};
pub use approval::{
    Approval, Approver, Consent, Digest, EarlierYes, Giver, Grant, Lasting, NotADigest, Verdict,
};
pub use capabilities::{
    Bucket, Capabilities, Choices, Deletes, Drafts, Edits, Files, Idempotency, Ids, Marks, Markup,
    Pace, Reactions, TextLimit, Typing, Unit, Whispers,
};
pub use content::{Choice, Content, Notify, Privacy, Reading, WITHHELD};
pub use cost::{Cost, CostStatus, Used};
pub use effort::{Effort, UnknownEffort};
pub use entry::{About, Because, Entry, EntryBody, Extent, Question, ToolCall, Usage};
pub use file::{FileRef, Owner, Shown};
pub use id::{
    AccountId, CallId, ChatId, ChoiceId, EventId, FileId, IdError, MessageId, OutboundId, RoleId,
    SenderId, Seq, SessionId, ThreadId, TurnId,
};
pub use inbound::{
    Addressed, Aim, Author, Bystander, Edition, Inbound, InboundKind, Intervened, Intervention,
    Message, Overheard, Quote, Scrutiny, Standing,
};
pub use media::{Media, MediaKind, Unfetched};
pub use outbound::{Act, Draft, Outbound, Progress, Receipt};
pub use pattern::{Pattern, PatternError};
pub use proxy::{Proxy, ProxyError};
pub use reach::Reach;
pub use redact::Redactor;
pub use secret::Secret;
pub use source::{Below, KnownBy, Source};
pub use time::Timestamp;
pub use turn::{AgentEvent, Answer, Attended, Failure, Sending, Steer, Task, Unasked, Word, Work};
pub use voice::{Transcript, Understood};
