//! The operator's desk: pairing and the record, for the platforms on which only the operator can be.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use talaria_model::{AccountId, Timestamp};
use talaria_platform::{
    Asking, CodeOut, Decided, Decision, Desk, DeskError, Guest, Identity, Lobby, Peer, Visit,
};
use talaria_session::pairing::{GuestBook, TypedCode};
use talaria_session::{PairWish, Surface};
use talaria_store::{AuditDeed, Audited, StoreError};

use crate::AccountPlan;
use crate::accounts::ConnectedAccount;
use crate::pairing::{self, PairError, Paired, Wisher};
use crate::shared::Shared;

/// The desk at one account.
struct DeskAt {
    /// The gateway holds on to the platform that holds on to this.
    shared: Weak<Shared>,
    account: AccountId,
}

/// The desk of an account that is the operator's: both its platform and its rules must say so.
pub(crate) fn desk_for(shared: &Arc<Shared>, plan: &AccountPlan) -> Option<Arc<dyn Desk>> {
    match (plan.account.spec.identity, plan.access.surface) {
        (Identity::Operator, Surface::Own) => {
            Some(Arc::new(DeskAt { shared: Arc::downgrade(shared), account: plan.id.clone() }))
        }
        (Identity::Operator, Surface::Platform)
        | (Identity::Anyone, Surface::Own | Surface::Platform) => None,
    }
}

#[async_trait]
impl Desk for DeskAt {
    async fn lobbies(&self) -> Result<Vec<Lobby>, DeskError> {
        let shared = self.shared()?;
        let mut lobbies = Vec::new();
        for id in shared.accounts.ids() {
            let Some(account) = open_to_others(&shared, &id) else { continue };
            let listed =
                pairing::wish(&shared, &account, &PairWish::List, Wisher::operator(&self.by()))
                    .await;
            if let Paired::Book(book) = listed.map_err(unavailable)? {
                lobbies.push(lobby(&account, &book, shared.clock.now()));
            }
        }
        Ok(lobbies)
    }

    async fn decide(&self, account: &AccountId, decision: Decision) -> Result<Decided, DeskError> {
        let shared = self.shared()?;
        let found = open_to_others(&shared, account);
        let found = found.ok_or_else(|| DeskError::NoAccount(account.clone()))?;
        let wish = match decision {
            Decision::Approve(typed, reach) => PairWish::Approve(TypedCode::new(typed), reach),
            Decision::Issue(reach) => PairWish::Issue(reach),
            Decision::Revoke(sender) => PairWish::Revoke(sender.to_string()),
            Decision::Clear => PairWish::Clear,
        };
        let done = pairing::wish(&shared, &found, &wish, Wisher::operator(&self.by())).await;
        let is_refused = matches!(done, Err(PairError::Refused(_)));
        let code = match &done {
            Ok(Paired::Code(code)) => Some(code.clone()),
            _ => None,
        };
        let told = pairing::sentence(done, account, shared.clock.now()).map_err(unavailable)?;
        match (is_refused, code) {
            (true, _) => Err(DeskError::Refused(told)),
            (false, None) => Ok(Decided { told, code: None }),
            (false, Some(code)) => {
                Ok(Decided { told: code.told_in(&told), code: Some(code.expose().to_owned()) })
            }
        }
    }

    async fn record(&self, visit: Visit) -> Result<(), DeskError> {
        let shared = self.shared()?;
        let from = |peer: Option<Peer>| match peer {
            Some(peer) => format!("from {peer}"),
            None => String::new(),
        };
        let (deed, actor, detail) = match visit {
            Visit::LoggedIn(peer) => (AuditDeed::LoggedIn, self.by(), from(peer)),
            Visit::Rebuffed(peer) => (AuditDeed::LoginsRefused, "gateway".to_owned(), from(peer)),
            Visit::LoggedOut => (AuditDeed::LoggedOut, self.by(), "everywhere".to_owned()),
        };
        let audited = Audited { actor, deed, subject: self.account.to_string(), detail };
        let recorded = shared.store.audit(shared.clock.now(), vec![audited]).await;
        recorded.map_err(|error: StoreError| DeskError::Unavailable(error.to_string()))
    }
}

impl DeskAt {
    fn shared(&self) -> Result<Arc<Shared>, DeskError> {
        let gone = || DeskError::Unavailable("the gateway is going away".to_owned());
        self.shared.upgrade().ok_or_else(gone)
    }

    /// In whose name it is done.
    fn by(&self) -> String {
        format!("{}:operator", self.account)
    }
}

/// An account on which somebody else than the operator can write.
fn open_to_others(shared: &Shared, id: &AccountId) -> Option<Arc<ConnectedAccount>> {
    shared.accounts.get(id).filter(|account| account.is_platforms())
}

fn unavailable(error: impl std::fmt::Display) -> DeskError {
    DeskError::Unavailable(error.to_string())
}

fn lobby(account: &ConnectedAccount, book: &GuestBook, now: Timestamp) -> Lobby {
    let asking = book.requests(now).map(|request| Asking {
        sender: request.sender.clone(),
        name: request.name.clone(),
        asked: request.asked,
        expires: request.expires,
    });
    let codes = book.issued(now).map(|issued| CodeOut {
        by: issued.by.clone(),
        expires: issued.expires,
        reach: issued.reach,
    });
    let guests = book.guests().map(|(sender, grant)| Guest {
        sender: sender.clone(),
        name: grant.name.clone(),
        since: grant.since,
        by: grant.by.clone(),
        reach: grant.reach,
    });
    let mut guests: Vec<Guest> = guests.collect();
    guests.sort_by_key(|guest| std::cmp::Reverse(guest.since));
    Lobby {
        account: account.id.clone(),
        platform: account.plan().account.spec.label,
        asking: asking.collect(),
        codes: codes.collect(),
        guests,
        locked_until: book.locked_until(now),
    }
}
