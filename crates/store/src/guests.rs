//! Who was let in by pairing, as it is kept.

use talaria_model::{AccountId, Outbound, Timestamp};
use talaria_session::pairing::GuestBook;

use crate::Audited;

/// The book of an account, and how often it was changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guests {
    /// Zero for a book in which nothing was ever written.
    pub revision: u64,
    /// What is in it.
    pub book: GuestBook,
}

/// A change to the book of an account, and all that is written with it.
#[derive(Debug, Clone)]
pub struct GuestChange {
    /// Whose book.
    pub account: AccountId,
    /// As it was read, and as it is to be.
    pub read: u64,
    /// What is in it from here on.
    pub book: GuestBook,
    /// What people are told of it.
    pub outbox: Vec<Outbound>,
    /// What is recorded of it.
    pub audited: Vec<Audited>,
    /// When.
    pub at: Timestamp,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// It is written.
    Done,
    /// Somebody else was faster, and nothing is written: read again.
    Stale,
}
