//! The contract every platform keeps: how it is declared, connected, heard and spoken to.
//!
//! No vendor is named here. Authorization, retry, backoff, dedupe, splitting, queueing and reconnects
//! are the gateway's; a platform translates between its vendor's wire and the nouns of `model`.
#![forbid(unsafe_code)]

mod desk;
mod error;
mod hurry;
mod kept;
mod link;
mod lower;
mod menu;
mod peer;
mod ports;
mod registration;

pub use desk::{Asking, CodeOut, Decided, Decision, Desk, DeskError, Guest, Lobby, Visit};
pub use error::{ConnectError, Fate, LinkError, Proof, SendError, Worded};
pub use hurry::Hurry;
pub use kept::Kept;
pub use link::{
    Ack, Arrival, Arrivals, Batch, Committed, Cursor, FetchError, Found, Incoming, Library, Link,
    Outgoing, Pulse, Surroundings, Verdict,
};
pub use lower::{lower, plainly};
pub use menu::{MenuItem, Offered};
pub use peer::Peer;
pub use ports::{
    Archive, ArchiveError, ByteStream, Conversation, FileError, FileStore, Hit, Ports, Recorded,
};
pub use registration::{
    Account, Ask, Bursts, Checked, Credential, Identity, Need, Platform, Registration, Roles,
    Secrecy, Senders, SettingsError, Spec, Startup, Surface,
};
