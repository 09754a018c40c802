//! Disconnects an account until somebody says that it is to go on.

use std::sync::Arc;

use talaria_model::AccountId;
use talaria_session::{Deed, Pause, Room, Who};
use talaria_store::{AuditDeed, Audited, StoreError};

use crate::accounts::ConnectedAccount;
use crate::requests::Asking;
use crate::shared::Shared;
use crate::supervise::Course;

/// Why an account is neither paused nor resumed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PauseError {
    /// There is no such account.
    #[error("there is no account {0}")]
    NoAccount(String),
    /// It could not be written down, so it would not last.
    #[error("{0}")]
    Unkept(String),
}

/// Whether whoever asks in a chat may have an account paused or go on. The operator may where nobody else
/// can be; anybody else only what is theirs: accounts on which the same person may give the command, too.
pub(crate) fn is_theirs(shared: &Shared, asking: &Asking, account: &ConnectedAccount) -> bool {
    let Some(here) = shared.accounts.get(&asking.at.account) else { return false };
    if here.id == account.id
        || here.authority_in(&asking.from, &asking.at, &asking.roles).may(Deed::PauseAny)
    {
        return true;
    }
    let room = Room::of(asking.at.chat.kind);
    here.person(&asking.from.id)
        .is_some_and(|person| account.lets_give(&person, room, "platforms", Who::Admin))
}

/// Pauses an account or lets it go on, in the name of somebody. It is recorded first: what leaves no trace
/// does not happen.
pub(crate) async fn order(
    shared: &Arc<Shared>,
    account: &AccountId,
    pause: Pause,
    by: &str,
) -> Result<(), PauseError> {
    let Some(found) = shared.accounts.get(account) else {
        return Err(PauseError::NoAccount(account.to_string()));
    };
    let (course, detail) = match pause {
        Pause::Pause => (Course::Paused, "paused"),
        Pause::Resume => (Course::Runs, "resumed"),
    };
    record(shared, account, by, detail).await.map_err(|error| {
        tracing::warn!(%account, %error, "an account stays as it is, because that cannot be recorded");
        PauseError::Unkept("That cannot be recorded at the moment, so nothing was changed.".into())
    })?;
    if let Err(why) = shared.steward.keep_paused(account, pause).await {
        if let Err(error) = record(shared, account, by, &format!("not {detail} after all")).await {
            tracing::warn!(%account, %error, "the record says of an account what did not happen");
        }
        return Err(PauseError::Unkept(why));
    }
    tracing::info!(%account, by, detail, "an account was told");
    // It may have been taken out meanwhile; then this is for when it is back.
    found.order(|now| if now == Course::Gone { now } else { course });
    Ok(())
}

async fn record(
    shared: &Shared,
    account: &AccountId,
    by: &str,
    detail: &str,
) -> Result<(), StoreError> {
    let audited = Audited {
        actor: by.to_owned(),
        deed: AuditDeed::SettingsChanged,
        subject: account.to_string(),
        detail: detail.to_owned(),
    };
    shared.store.audit(shared.clock.now(), vec![audited]).await
}

/// What whoever asks hears about an account that is not theirs.
pub(crate) fn refusal(account: &str, pause: Pause) -> String {
    let verb = match pause {
        Pause::Pause => "pause",
        Pause::Resume => "resume",
    };
    format!(
        "You are not known as an administrator of {}. The operator can say that in the web chat, or with \
         `talaria platforms {verb} …`; who is the same person there is named in `people`.",
        talaria_render::literal(account)
    )
}

/// What came of it, for the person who asked in a chat.
pub(crate) fn sentence(done: Result<(), PauseError>, account: &str, pause: Pause) -> String {
    let account = talaria_render::literal(account);
    match (done, pause) {
        (Ok(()), Pause::Pause) => format!(
            "{account} is paused. What is said there waits until `/platforms resume` lets it go on, as far as \
             its platform keeps it."
        ),
        (Ok(()), Pause::Resume) => format!("{account} is being connected."),
        (Err(PauseError::NoAccount(_)), _) => {
            format!("There is no account {account}. `/platforms` lists them.")
        }
        (Err(PauseError::Unkept(why)), _) => why,
    }
}
