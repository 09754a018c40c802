//! How a vendor treats what it is asked to do.

use std::time::Duration;

use super::truth::Act;

/// What a vendor does with one act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conduct {
    /// Shows it and says so.
    Does,
    /// Shows it and says so, after a while.
    DoesAfter(Duration),
    /// Shows it and never says so; the connection stays open.
    DoesSilently,
    /// Shows it and hangs up without saying so.
    DoesAndHangsUp,
    /// Shows nothing and says nothing; the connection stays open.
    LosesSilently,
    /// Shows nothing and hangs up.
    LosesAndHangsUp,
    /// Shows nothing and says why.
    Refuses(Refusal),
}

/// Why a vendor shows nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Too much at once.
    Throttled {
        /// When to come back.
        seconds: u64,
    },
    /// The chat is gone.
    Gone(String),
    /// It does not take this.
    Rejected(String),
}

/// Decides about each act as it arrives.
pub(super) type Script = Box<dyn FnMut(&Act) -> Conduct + Send>;
