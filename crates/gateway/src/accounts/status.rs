//! How an account is doing.

use std::time::Duration;

use talaria_clock::Mark;
use talaria_model::{AccountId, Timestamp};
use talaria_session::Surface;

use crate::denials::Stranger;

/// How an account is doing.
#[derive(Debug, Clone)]
pub struct AccountStatus {
    /// Its name.
    pub id: AccountId,
    /// Its platform.
    pub platform: &'static str,
    /// Whether others than the operator can write there.
    pub surface: Surface,
    /// How it is doing.
    pub state: AccountState,
    /// Since when.
    pub since: Timestamp,
    /// When it was last heard or known to be alive.
    pub heard: Option<Timestamp>,
    /// When something was last delivered on it.
    pub spoke: Option<Timestamp>,
    /// Nothing that we say gets through; it may be heard all the same.
    pub mute: Option<Mute>,
    /// How often it was connected or tried in this run.
    pub generation: u64,
    /// How often it broke down by our own fault in this run.
    pub crashes: u32,
    /// How often it was connected and not heard in this run.
    pub deafnesses: u32,
    /// Whether it has been connected once in this run, or could not be.
    pub tried: bool,
    /// Events of strangers in this run of which nothing was written down, because there were too many
    /// in a day.
    pub traceless: u64,
    /// Events of strangers within a day, as far as they were written down.
    pub denied_lately: u64,
    /// Who was turned away last in this run.
    pub stranger: Option<Stranger>,
}

/// How long it is no matter that nothing gets through: the next try may show that it was nothing.
const MUTE: Duration = Duration::from_secs(60);

/// Longer than the longest rest between two tries of what is to be said. Where nothing has been tried for so
/// long, nothing is known any more.
const STALE: Duration = Duration::from_secs(600);

impl AccountStatus {
    /// Whether it does not do what it is meant to: it is not connected, or has been mute for a minute and is
    /// tried all the while.
    pub fn is_failing(&self, now: Mark) -> bool {
        match self.state {
            AccountState::Paused => false,
            AccountState::Connected => self
                .mute
                .as_ref()
                .is_some_and(|mute| now.since(mute.begun) >= MUTE && now.since(mute.tried) < STALE),
            _ => true,
        }
    }
}

/// A time in which nothing that we said got through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mute {
    /// Since when, as it is shown.
    pub since: Timestamp,
    /// The same, whatever the wall clock says.
    pub begun: Mark,
    /// When it was tried last.
    pub tried: Mark,
    /// What became of the last try.
    pub why: String,
}

/// How an account is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountState {
    /// It is being connected.
    Connecting,
    /// It works.
    Connected,
    /// It does not work at the moment and is tried again.
    Waiting {
        /// Why it does not work.
        reason: String,
    },
    /// It was connected and not heard; another connection is being made.
    Deaf {
        /// How that is known.
        reason: String,
    },
    /// It was deaf and is connected again, and nothing has come since that shows that it is heard.
    Unproven {
        /// How it was known to be deaf.
        reason: String,
    },
    /// Somebody has paused it; it is connected when they let it go on.
    Paused,
    /// Somebody else is connected in its place. It is tried again, and a human has to decide.
    Contested {
        /// Who else.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// A human has to do something. It is tried again now and then.
    Refused {
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// A human has to do something, and it is not tried again before.
    Fatal {
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: String,
    },
}
