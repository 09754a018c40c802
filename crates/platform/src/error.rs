//! What can go wrong with a platform, named for what the caller must do about it.

use std::time::Duration;

use talaria_clock::Mark;

/// Why an act was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The platform asks us to wait.
    #[error("asked to wait {} s", after.as_secs())]
    Throttled {
        /// For how long.
        after: Duration,
    },
    /// The platform asks us to wait, in every chat of the account.
    #[error("asked to wait {} s everywhere", after.as_secs())]
    Halted {
        /// For how long.
        after: Duration,
    },
    /// The chat, or our place in it, no longer exists.
    #[error("the chat is gone: {reason}")]
    Gone {
        /// In the platform's words.
        reason: String,
    },
    /// Our credentials are not accepted any more.
    #[error("not authorized: {reason}")]
    Unauthorized {
        /// In the platform's words.
        reason: String,
    },
    /// The platform cannot read our formatting; plain text will do.
    #[error("the formatting was not accepted: {reason}")]
    Unreadable {
        /// In the platform's words.
        reason: String,
    },
    /// The platform recognises the act as a repeat, and the message that it made is not there any more. As
    /// another message it can be said again: see `Content::anew`.
    #[error("what it made is not there any more")]
    Vanished,
    /// The platform will never accept this act.
    #[error("refused: {reason}")]
    Rejected {
        /// In the platform's words.
        reason: String,
    },
    /// Nothing left this machine: the platform cannot be reached at the moment.
    #[error("cannot be reached: {reason}")]
    Unreachable {
        /// What stood in the way.
        reason: String,
    },
    /// The request left and no answer came: it may or may not have arrived.
    #[error("no confirmation: {reason}")]
    Unconfirmed {
        /// What happened instead of an answer.
        reason: String,
    },
}

/// What becomes of an act that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Send it again, unchanged: it did not arrive. Does not count as an attempt.
    Retry {
        /// When the platform said so; else the gateway's own backoff.
        after: Option<Duration>,
    },
    /// Send it again without formatting.
    Plain,
    /// Send it again as another message.
    Anew,
    /// It may have arrived. Send it again only under the same key, or marked.
    Unsure,
    /// Give up on this act and say so.
    Drop,
    /// Keep the act, stop the account, and call for a human.
    Suspend,
}

impl SendError {
    /// The one decision about a failed act.
    pub fn fate(&self) -> Fate {
        match self {
            Self::Throttled { after } | Self::Halted { after } => {
                Fate::Retry { after: Some(*after) }
            }
            Self::Unreachable { .. } => Fate::Retry { after: None },
            Self::Unreadable { .. } => Fate::Plain,
            Self::Vanished => Fate::Anew,
            Self::Unconfirmed { .. } => Fate::Unsure,
            Self::Gone { .. } | Self::Rejected { .. } => Fate::Drop,
            Self::Unauthorized { .. } => Fate::Suspend,
        }
    }
}

/// Why an account could not be connected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// Trying again later may help.
    #[error("cannot be reached: {reason}")]
    Unreachable {
        /// What stood in the way.
        reason: String,
    },
    /// A human has to change something.
    #[error("{problem}")]
    Refused {
        /// What is wrong.
        problem: String,
        /// What to do about it.
        hint: String,
    },
    /// It will never work as it is configured. It is not tried again before somebody changes that, or says
    /// that it is to be tried.
    #[error("{problem}")]
    Fatal {
        /// What is wrong.
        problem: String,
        /// What to do about it.
        hint: String,
    },
}

/// What shows that an account is heard. What comes later shows more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proof {
    /// A sign of life.
    Life,
    /// Something that the platform brings. A connection can live and bring nothing.
    Events,
}

/// Why a connected account stopped being heard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The connection broke; connecting again may help.
    #[error("connection lost: {reason}")]
    Lost {
        /// What happened.
        reason: String,
    },
    /// It is connected and not heard: by the platform's own account something waits for us that does not
    /// come. Only another connection helps.
    #[error("connected, but deaf: {reason}")]
    Deaf {
        /// How that is known.
        reason: String,
        /// What shows that another connection is heard.
        until: Proof,
        /// Since when, where that is known better than by the last proof.
        since: Option<Mark>,
    },
    /// Somebody else is connected in our place, and a human has to decide for one of the two.
    #[error("{problem}")]
    Conflict {
        /// Who, as far as the platform tells.
        problem: String,
        /// What to do about it.
        hint: String,
    },
    /// Our credentials are not accepted any more.
    #[error("not authorized: {reason}")]
    Unauthorized {
        /// In the platform's words.
        reason: String,
    },
}

/// A failure that is told in words which others have chosen: they may repeat whatever they were sent.
pub trait Worded {
    /// All of these words.
    fn words(&mut self) -> Vec<&mut String>;
}

impl Worded for SendError {
    fn words(&mut self) -> Vec<&mut String> {
        match self {
            Self::Throttled { .. } | Self::Halted { .. } | Self::Vanished => Vec::new(),
            Self::Gone { reason }
            | Self::Unauthorized { reason }
            | Self::Unreadable { reason }
            | Self::Rejected { reason }
            | Self::Unreachable { reason }
            | Self::Unconfirmed { reason } => vec![reason],
        }
    }
}

impl Worded for ConnectError {
    fn words(&mut self) -> Vec<&mut String> {
        match self {
            Self::Unreachable { reason } => vec![reason],
            Self::Refused { problem, hint } | Self::Fatal { problem, hint } => vec![problem, hint],
        }
    }
}

impl Worded for LinkError {
    fn words(&mut self) -> Vec<&mut String> {
        match self {
            Self::Lost { reason }
            | Self::Deaf { reason, until: _, since: _ }
            | Self::Unauthorized { reason } => vec![reason],
            Self::Conflict { problem, hint } => vec![problem, hint],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_one_fate() {
        let reason = || "r".to_owned();
        let wait = Duration::from_secs(5);
        for (error, fate) in [
            (SendError::Throttled { after: wait }, Fate::Retry { after: Some(wait) }),
            (SendError::Halted { after: wait }, Fate::Retry { after: Some(wait) }),
            (SendError::Unreachable { reason: reason() }, Fate::Retry { after: None }),
            (SendError::Unreadable { reason: reason() }, Fate::Plain),
            (SendError::Vanished, Fate::Anew),
            (SendError::Unconfirmed { reason: reason() }, Fate::Unsure),
            (SendError::Gone { reason: reason() }, Fate::Drop),
            (SendError::Rejected { reason: reason() }, Fate::Drop),
            (SendError::Unauthorized { reason: reason() }, Fate::Suspend),
        ] {
            assert_eq!(error.fate(), fate, "{error}");
        }
    }
}
