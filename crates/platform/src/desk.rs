//! What the gateway lends to platforms of its operator and to no other: who is let in elsewhere, and the
//! record of who came to decide that.

use std::fmt;

use async_trait::async_trait;
use talaria_model::{AccountId, Reach, SenderId, Timestamp, WITHHELD};

use crate::Peer;

/// The operator's desk. Whoever has it acts as the operator, so a platform gets one only if it has
/// authenticated the operator itself ([`Identity::Operator`](crate::Identity::Operator)).
#[async_trait]
pub trait Desk: Send + Sync {
    /// How it stands on every account on which people can be let in.
    async fn lobbies(&self) -> Result<Vec<Lobby>, DeskError>;

    /// Carries out what the operator has decided about an account. It is durable and recorded before
    /// this returns, and holds from the next event on.
    async fn decide(&self, account: &AccountId, decision: Decision) -> Result<Decided, DeskError>;

    /// Adds to the record what happened where the operator logs in.
    async fn record(&self, visit: Visit) -> Result<(), DeskError>;
}

/// Who asks to be let in on one account, and who was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lobby {
    /// The account.
    pub account: AccountId,
    /// Its platform, as people know it.
    pub platform: &'static str,
    /// Who asks, at most three.
    pub asking: Vec<Asking>,
    /// Which codes were handed on and not used yet.
    pub codes: Vec<CodeOut>,
    /// Who was let in, the latest first.
    pub guests: Vec<Guest>,
    /// Until when no code is taken, because too many were wrong.
    pub locked_until: Option<Timestamp>,
}

/// Somebody who asks to be let in. They were shown a code, of which only a digest is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    /// Who.
    pub sender: SenderId,
    /// As they call themselves.
    pub name: Option<String>,
    /// Since when.
    pub asked: Timestamp,
    /// Until when their code is good.
    pub expires: Timestamp,
}

/// A code that lets in whoever says it first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeOut {
    /// Who made it.
    pub by: String,
    /// Until when it is good.
    pub expires: Timestamp,
    /// Where whoever says it will be heard.
    pub reach: Reach,
}

/// Somebody who was let in by pairing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// Who.
    pub sender: SenderId,
    /// As they called themselves.
    pub name: Option<String>,
    /// Since when.
    pub since: Timestamp,
    /// By whom.
    pub by: String,
    /// Where they are heard.
    pub reach: Reach,
}

/// What the operator decides about who is let in. Printed, it does not show a code.
#[derive(Clone, PartialEq, Eq)]
pub enum Decision {
    /// Let in who was shown this code, as it was typed.
    Approve(String, Reach),
    /// Make a code to hand on.
    Issue(Reach),
    /// Put somebody out.
    Revoke(SenderId),
    /// Forget who asks, and every code.
    Clear,
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Approve(_, reach) => {
                f.debug_tuple("Approve").field(&WITHHELD).field(reach).finish()
            }
            Self::Issue(reach) => f.debug_tuple("Issue").field(reach).finish(),
            Self::Revoke(sender) => f.debug_tuple("Revoke").field(sender).finish(),
            Self::Clear => f.write_str("Clear"),
        }
    }
}

/// What came of a decision. Printed, it does not show a code.
#[derive(Clone, PartialEq, Eq)]
pub struct Decided {
    /// What the operator is told, in Markdown: the same words wherever they decide it.
    pub told: String,
    /// The code to hand on, if one was made.
    pub code: Option<String>,
}

impl fmt::Debug for Decided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { told, code } = self;
        let told = match code {
            Some(code) => told.replace(code.as_str(), WITHHELD),
            None => told.clone(),
        };
        let code = code.as_ref().map(|_| WITHHELD);
        f.debug_struct("Decided").field("told", &told).field("code", &code).finish()
    }
}

/// What happened where the operator logs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    /// Somebody has proved to be the operator.
    LoggedIn(Option<Peer>),
    /// Somebody was wrong so often that they are told to wait.
    Rebuffed(Option<Peer>),
    /// The operator has ended every login.
    LoggedOut,
}

/// Why the desk does not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeskError {
    /// There is no such account, or nobody else can write to it.
    #[error("{0} is not an account on which people can be let in")]
    NoAccount(AccountId),
    /// The rules say no. What the operator is told, in Markdown.
    #[error("{0}")]
    Refused(String),
    /// It may work later.
    #[error("not at the moment: {0}")]
    Unavailable(String),
}
