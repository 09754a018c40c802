//! The nouns of the gateway: ids, addresses, what people say, what we do in a chat, what a
//! platform can do, and the entries of a transcript.
//!
//! Everything here is plain data with serde. This crate knows no async, no clock, no database, no
//! platform and no policy; it is what the other crates hand to each other.
#![forbid(unsafe_code)]

mod address;
mod capabilities;
mod content;
mod entry;
mod file;
mod id;
mod inbound;
mod outbound;
mod secret;
mod time;
mod turn;

pub use address::{Address, Chat, ChatKind, Sender};
pub use capabilities::{
    Capabilities, Choices, Deletes, Drafts, Edits, Files, Idempotency, Markup, Reactions,
    TextLimit, Typing, Unit,
};
pub use content::{Choice, Content};
pub use entry::{Entry, EntryBody, Extent, Question, ToolCall, Usage};
pub use file::FileRef;
pub use id::{
    AccountId, CallId, ChatId, ChoiceId, EventId, FileId, IdError, MessageId, OutboundId, SenderId,
    Seq, SessionId, ThreadId, TurnId,
};
pub use inbound::{Inbound, InboundKind, Message};
pub use outbound::{Act, Outbound, Receipt};
pub use secret::Secret;
pub use time::Timestamp;
pub use turn::{AgentEvent, Answer, Failure, Word};
