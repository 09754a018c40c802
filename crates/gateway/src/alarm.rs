//! Tells the operator that something is wrong with an account, on another one.
//!
//! A home is where things go that nobody asked for. What is told is durable before anybody hears of it, and
//! waits in the outbox like everything else that is said.

use std::sync::Arc;

use talaria_model::{AccountId, Address};

use crate::accounts::AccountState;
use crate::pairing;
use crate::shared::Shared;

/// Tells the operator something about an account, in a chat that does not depend on it.
pub(crate) async fn tell(shared: &Arc<Shared>, about: &AccountId, text: String) {
    let Some(home) = home(shared, about) else {
        tracing::warn!(account = %about, "nobody is told: no other account has a home; /sethome makes one");
        return;
    };
    // What a platform says of an error may repeat what it was given.
    let text = shared.steward.discreet(&text).into_owned();
    if let Err(error) = pairing::post(shared, home, text).await {
        tracing::warn!(account = %about, %error, "the operator cannot be told");
    }
}

/// The home on another account: one that is connected and not mute, or else any.
fn home(shared: &Shared, about: &AccountId) -> Option<Address> {
    let homes = shared.steward.homes().into_iter().map(|home| home.at);
    let elsewhere = homes.filter(|at| at.account != *about);
    let mut known: Vec<(bool, Address)> = elsewhere
        .filter_map(|at| {
            let account = shared.accounts.get(&at.account)?;
            let is_mute = account.mute.borrow().is_some();
            Some((is_mute || account.state() != AccountState::Connected, at))
        })
        .collect();
    known.sort_by_key(|(is_away, _)| *is_away);
    known.into_iter().next().map(|(_, at)| at)
}
