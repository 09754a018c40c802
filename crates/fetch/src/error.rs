//! Why something was not fetched. No address is part of any text: addresses can contain tokens, and what
//! a name resolves to inside of a network is nobody's business outside.

use std::time::Duration;

/// Why something was not fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// It is never fetched from there.
    #[error("not fetched from there: {reason}")]
    Forbidden {
        /// What forbids it.
        reason: &'static str,
    },
    /// It is larger than is read.
    #[error("it is larger than {limit} bytes")]
    TooLarge {
        /// The most that is read.
        limit: u64,
    },
    /// Trying again later may help.
    #[error("cannot be reached: {reason}")]
    Unreachable {
        /// What stood in the way.
        reason: String,
    },
}

impl FetchError {
    pub(crate) fn forbidden(reason: &'static str) -> Self {
        Self::Forbidden { reason }
    }

    pub(crate) fn late(limit: Duration) -> Self {
        Self::Unreachable { reason: format!("it took longer than {} s", limit.as_secs()) }
    }
}
