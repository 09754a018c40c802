//! Disconnects an account until somebody says that it is to go on.

use std::sync::Arc;

use talaria_model::AccountId;
use talaria_session::Pause;
use talaria_store::{AuditDeed, Audited};

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

/// Pauses an account or lets it go on, in the name of somebody. It is written down first.
pub(crate) async fn order(
    shared: &Arc<Shared>,
    account: &AccountId,
    pause: Pause,
    by: &str,
) -> Result<(), PauseError> {
    let Some(found) = shared.accounts.get(account) else {
        return Err(PauseError::NoAccount(account.to_string()));
    };
    shared.steward.keep_paused(account, pause).await.map_err(PauseError::Unkept)?;
    let (course, detail) = match pause {
        Pause::Pause => (Course::Paused, "paused"),
        Pause::Resume => (Course::Runs, "resumed"),
    };
    tracing::info!(%account, by, detail, "an account was told");
    // It may have been taken out meanwhile; then this is for when it is back.
    found.order(|now| if now == Course::Gone { now } else { course });
    let audited = Audited {
        actor: by.to_owned(),
        deed: AuditDeed::SettingsChanged,
        subject: account.to_string(),
        detail: detail.to_owned(),
    };
    if let Err(error) = shared.store.audit(shared.clock.now(), vec![audited]).await {
        tracing::warn!(%error, "what was changed cannot be recorded");
    }
    Ok(())
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
