//! Who is let in, and the record of that, as the API tells it: on the local socket and, when no gateway is
//! running, on the command line itself.

use std::fmt;

use serde::{Deserialize, Serialize};
use talaria_clock::rfc3339;
use talaria_gateway::{PairError, Paired};
use talaria_model::{AccountId, Timestamp, WITHHELD};
use talaria_session::pairing::{GuestBook, TypedCode};
use talaria_session::{PairWish, Reach};
use talaria_store::{AuditDeed, AuditRow, Audited, Store};

use crate::answers::AnswerError;
use crate::api;

/// More rows than this are not told at once.
const MOST: usize = 1000;

/// Who asks here has shown to be the operator, by being able to.
pub const OPERATOR: &str = "operator";

/// What is to be done about who is let in. Printed, it does not show a code.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pairing {
    /// On which account.
    pub account: String,
    /// What.
    pub verb: PairVerb,
    /// The code to approve, or the id of who is put out.
    #[serde(default)]
    pub what: String,
    /// Whether they are heard in chats of several people, too.
    #[serde(default)]
    pub everywhere: bool,
}

/// What is done about who is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PairVerb {
    /// A code is made.
    Issue,
    /// Who was given a code is let in.
    Approve,
    /// Nothing; it is told how it stands.
    List,
    /// Somebody is put out.
    Revoke,
    /// Requests and codes are forgotten.
    Clear,
}

impl fmt::Debug for Pairing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, verb, what, everywhere } = self;
        let what = match verb {
            PairVerb::Approve => WITHHELD,
            PairVerb::Issue | PairVerb::List | PairVerb::Revoke | PairVerb::Clear => what,
        };
        f.debug_struct("Pairing")
            .field("account", account)
            .field("verb", verb)
            .field("what", &what)
            .field("everywhere", everywhere)
            .finish()
    }
}

impl Pairing {
    /// The account.
    pub fn account(&self) -> Result<AccountId, AnswerError> {
        let id = AccountId::new(self.account.as_str());
        id.map_err(|error| AnswerError::Request(error.to_string()))
    }

    /// The same as the gateway takes it.
    pub fn wish(&self) -> PairWish {
        let reach = if self.everywhere { Reach::Everywhere } else { Reach::Direct };
        match self.verb {
            PairVerb::Issue => PairWish::Issue(reach),
            PairVerb::Approve => PairWish::Approve(TypedCode::new(self.what.as_str()), reach),
            PairVerb::List => PairWish::List,
            PairVerb::Revoke => PairWish::Revoke(self.what.clone()),
            PairVerb::Clear => PairWish::Clear,
        }
    }
}

impl From<PairError> for AnswerError {
    fn from(error: PairError) -> Self {
        match error {
            PairError::Refused(refusal) => Self::Conflict(refusal.to_string()),
            PairError::NoAccount(_) => Self::Missing(error.to_string()),
            PairError::Store(error) => Self::Store(error),
        }
    }
}

/// What came of it.
pub fn told(
    account: &AccountId,
    done: Paired,
    now: Timestamp,
) -> Result<api::Pairing, AnswerError> {
    let mut told = api::Pairing { account: account.to_string(), ..api::Pairing::default() };
    match done {
        Paired::Code(code) => told.code = Some(api::FreshCode(code.expose().to_owned())),
        Paired::LetIn { sender, name, .. } => {
            (told.sender, told.name) = (Some(sender.to_string()), name);
        }
        Paired::PutOut(sender) => told.sender = Some(sender.to_string()),
        Paired::NoGuest => {
            let problem = format!("nobody of that id was let in on {account} by pairing");
            return Err(AnswerError::Missing(problem));
        }
        Paired::Cleared(many) => told.forgotten = Some(many as u64),
        Paired::Book(book) => list(&mut told, &book, now),
    }
    Ok(told)
}

fn list(told: &mut api::Pairing, book: &GuestBook, now: Timestamp) {
    let everywhere = |reach| reach == Reach::Everywhere;
    told.requests = book
        .requests(now)
        .map(|request| api::PairingRequest {
            sender: request.sender.to_string(),
            name: request.name.clone(),
            asked: rfc3339(request.asked),
            expires: rfc3339(request.expires),
        })
        .collect();
    told.codes = book
        .issued(now)
        .map(|issued| api::PairingCode {
            by: issued.by.clone(),
            expires: rfc3339(issued.expires),
            everywhere: everywhere(issued.reach),
        })
        .collect();
    told.guests = book
        .guests()
        .map(|(sender, grant)| api::Guest {
            sender: sender.to_string(),
            name: grant.name.clone(),
            since: rfc3339(grant.since),
            by: grant.by.clone(),
            everywhere: everywhere(grant.reach),
        })
        .collect();
    told.locked_until = book.locked_until(now).map(rfc3339);
}

/// The record, oldest first, beginning after a row.
pub async fn audited(
    store: &dyn Store,
    after: u64,
    limit: usize,
) -> Result<Vec<api::AuditRow>, AnswerError> {
    let rows = store.audited(after, limit.clamp(1, MOST)).await?;
    Ok(rows.into_iter().map(row_of).collect())
}

fn row_of(row: AuditRow) -> api::AuditRow {
    let Audited { actor, deed, subject, detail } = row.audited;
    api::AuditRow {
        seq: row.seq,
        at: rfc3339(row.at),
        at_ms: row.at.as_millis(),
        actor,
        deed: deed.as_str().to_owned(),
        subject,
        detail,
        previous: row.previous,
        hash: row.hash,
    }
}

/// A row as it is kept, to be checked. None for one that this program did not write.
pub fn row_from(row: &api::AuditRow) -> Option<AuditRow> {
    Some(AuditRow {
        seq: row.seq,
        at: Timestamp::from_millis(row.at_ms),
        audited: Audited {
            actor: row.actor.clone(),
            deed: AuditDeed::named(&row.deed)?,
            subject: row.subject.clone(),
            detail: row.detail.clone(),
        },
        previous: row.previous.clone(),
        hash: row.hash.clone(),
    })
}
