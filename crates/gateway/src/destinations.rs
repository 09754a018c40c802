//! Where messages may be sent for somebody, besides the chat in which they are answered.

use std::sync::Arc;

use talaria_agent::{AsksFirst, Destination};
use talaria_model::{Address, KnownBy, Outbound, RoleId, Sender, SenderId};
use talaria_session::{Event, SessionKey};

use crate::shared::Shared;

/// Where messages may be sent at this moment for a person who speaks in this chat: of the chats that the operator
/// has named and the homes of the accounts, those that are granted to them.
pub(crate) fn of(
    shared: &Shared,
    from: &Sender,
    at: &Address,
    roles: &[RoleId],
) -> Vec<Destination> {
    let Some(account) = shared.accounts.get(&at.account) else { return Vec::new() };
    let authority = account.authority_in(from, at, roles);
    let named = shared.steward.destinations();
    // A home goes by the name of its account, unless the operator has given that name to another chat.
    let homes = shared.steward.homes().into_iter().map(|home| Destination {
        name: home.at.account.to_string(),
        about: Some(format!("where you say on {} what nobody asked for", home.at.account)),
        to: home.at,
        asks: AsksFirst::Yes,
    });
    let homes: Vec<_> =
        homes.filter(|home| !named.iter().any(|named| named.name == home.name)).collect();
    let mut places: Vec<_> = named.into_iter().chain(homes).collect();
    places.retain(|place| {
        // What kind of chat it is called decides nothing about where it is.
        let is_here = place.to.account == at.account
            && place.to.chat.id == at.chat.id
            && place.to.thread == at.thread;
        let is_there = shared.accounts.get(&place.to.account).is_some();
        !is_here && is_there && authority.may_send_to(&place.name)
    });
    places
}

/// Tells the session of a chat what was said there because somebody had asked for it in another one. Where each
/// person has a session of their own, nobody is told: what is answered there is quoted by the platform.
pub(crate) fn tell(shared: &Arc<Shared>, sent: Outbound) {
    let anybody = Sender::new(SenderId::literal("anybody"));
    let key = SessionKey::between(&anybody, &sent.to, KnownBy::Chat, shared.scope);
    if key.member.is_none() {
        crate::lanes::tell(shared, key, Event::Sent(Box::new(sent)));
    }
}
