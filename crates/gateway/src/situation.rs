//! Where a conversation takes place, as its agent is told.

use talaria_agent::{PlatformFacts, Situation};
use talaria_session::{Session, Start};

use crate::shared::Shared;

/// Where a turn of a session takes place.
pub(crate) fn of(shared: &Shared, session: &Session, start: &Start) -> Situation {
    let account = shared.accounts.get(&start.to.account);
    let platform = match account {
        Some(account) => {
            let spec = account.plan().account.spec;
            PlatformFacts {
                title: spec.label.to_owned(),
                name: spec.name.to_owned(),
                can: account.capabilities(start.to.chat.kind),
                note: spec.note.map(str::to_owned),
                ids: spec.ids,
            }
        }
        None => Situation::at(start.to.clone()).platform,
    };
    Situation {
        at: start.to.clone(),
        source: session.origin.as_ref().map(|origin| origin.source.clone()).unwrap_or_default(),
        platform,
        with: (!session.key.is_shared()).then(|| start.from.clone()),
        // Not those that happen to be up: every restart would make another prompt of it.
        connected: shared.accounts.ids().collect(),
        homes: shared.steward.homes(),
        privacy: shared.privacy,
        instructions: start.channel_prompt.clone(),
    }
}
