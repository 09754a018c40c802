//! Everything that a gateway has in hand at a moment, for whoever has to find out why it hangs. Nothing in it
//! was said by anybody.

use talaria_model::{AccountId, Address, Timestamp};
use talaria_session::{Phase, Session, SessionKey};

use crate::shared::Shared;
use crate::supervise::Course;

/// What a gateway has in hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    /// The sessions that are in memory.
    pub lanes: Vec<LaneDump>,
    /// The chats with something to deliver or to show.
    pub chats: Vec<ChatDump>,
    /// Every account that was connected in this run.
    pub accounts: Vec<AccountDump>,
}

/// A session that is in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneDump {
    /// Which.
    pub key: SessionKey,
    /// What it does.
    pub doing: Doing,
    /// Since when.
    pub since: Timestamp,
    /// How much it has been told and has not heard yet.
    pub waiting: usize,
}

/// What a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It is being read from the store.
    Loading,
    /// Nothing.
    Idle,
    /// It is on a turn.
    Thinking,
    /// It waits for a person.
    Asking,
    /// It waits for its agent to stop, because there is something else.
    Interrupting,
    /// It waits for its agent to stop.
    Stopping,
}

impl Doing {
    /// As it is told.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Idle => "idle",
            Self::Thinking => "thinking",
            Self::Asking => "asking",
            Self::Interrupting => "interrupting",
            Self::Stopping => "stopping",
        }
    }

    pub(crate) fn of(session: Option<&Session>) -> Self {
        match session.map(|session| &session.phase) {
            None | Some(Phase::Idle) => Self::Idle,
            Some(Phase::Thinking(_)) => Self::Thinking,
            Some(Phase::Asking { .. }) => Self::Asking,
            Some(Phase::Interrupting(_)) => Self::Interrupting,
            Some(Phase::Stopping(_)) => Self::Stopping,
        }
    }
}

/// A chat with something to deliver or to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatDump {
    /// Which.
    pub to: Address,
    /// What it does: `resting`, `carrying` or `held`.
    pub pace: &'static str,
    /// Parcels that wait in memory, besides the one that is on its way.
    pub parcels: usize,
    /// Answers that grow there.
    pub growing: usize,
}

/// An account that was connected in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountDump {
    /// Its name.
    pub id: AccountId,
    /// How often it was connected or tried.
    pub generation: u64,
    /// What was ordered last: `runs`, `paused` or `gone`.
    pub order: &'static str,
    /// How many orders there were before.
    pub orders: u64,
    /// Whether it could be spoken on.
    pub speaks: bool,
}

pub(crate) fn dump(shared: &Shared) -> Dump {
    let accounts = shared.accounts.ever().into_iter().map(|account| {
        let orders = *account.orders.borrow();
        AccountDump {
            id: account.id.clone(),
            generation: account.generation(),
            order: match orders.course {
                Course::Runs => "runs",
                Course::Paused => "paused",
                Course::Gone => "gone",
            },
            orders: orders.number,
            speaks: account.outgoing().is_some(),
        }
    });
    let mut lanes = shared.lanes.dump();
    lanes.sort_by_key(|lane| lane.key.to_string());
    Dump { lanes, chats: shared.chats.dump(), accounts: accounts.collect() }
}
