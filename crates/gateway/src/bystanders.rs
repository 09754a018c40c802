//! Whose words may stand beside a message. They reach the model in the turn of whoever is answered, so that this
//! must be no way in for somebody who is not heard themselves.

use talaria_model::{
    Address, Author, Bystander, Inbound, InboundKind, Message, Overheard, Quote, RoleId, Sender,
    SenderId, SenderKind, Standing,
};
use talaria_session::{Bots, Bystanders, Deed, Event, Session};

use crate::accounts::ConnectedAccount;
use crate::shared::Shared;

/// Finds out who is heard of those whose words surround a message, whatever its platform says of them. What
/// was overheard of others is left out, or marked where the account reads it. What somebody answers or shows they
/// have chosen themselves, so that it stays and is marked.
pub(crate) fn judge(account: &ConnectedAccount, inbound: &mut Inbound) {
    let Inbound { from, to, source, kind, .. } = inbound;
    if let InboundKind::Said(message) | InboundKind::Edited(message) = kind {
        judge_message(account, message, to, (&from.id, &source.roles));
    }
}

/// The same of what a session is about to hear. It may have waited in the journal, and some of those may have
/// been put out since.
pub(crate) fn judge_again(shared: &Shared, event: &mut Event) {
    let said: &mut dyn Iterator<Item = &mut Inbound> = match event {
        Event::Arrived { inbound, .. } => &mut std::iter::once(inbound),
        Event::Together { rows, .. } => &mut rows.iter_mut().map(|(_, inbound)| inbound),
        _ => return,
    };
    for inbound in said.filter(|inbound| is_surrounded(inbound)) {
        // Who is heard on an account that is gone nobody knows; its messages begin no turn.
        if let Some(account) = shared.accounts.known(&inbound.to.account) {
            judge(&account, inbound);
        }
    }
}

/// Whether others' words stand beside a message.
fn is_surrounded(inbound: &Inbound) -> bool {
    match &inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => {
            message.quote.is_some() || !message.cited.is_empty() || !message.overheard.is_empty()
        }
        InboundKind::Pressed(_) | InboundKind::Stopped => false,
    }
}

/// The same of what a session holds to read later.
pub(crate) fn judge_held(shared: &Shared, session: &mut Session) {
    if session.overheard.is_empty() && session.held_mut().next().is_none() {
        return;
    }
    let Some(account) = shared.accounts.known(&session.at.account) else {
        session.overheard.clear();
        return;
    };
    judge_overheard(&account, &mut session.overheard, &session.at);
    for said in session.held_mut() {
        judge_message(&account, &mut said.message, &said.to, (&said.from.id, &said.roles));
    }
}

fn judge_message(
    account: &ConnectedAccount,
    message: &mut Message,
    at: &Address,
    (sender, roles): (&SenderId, &[RoleId]),
) {
    for quote in message.quote.iter_mut().chain(&mut message.cited) {
        // Which roles the sender has is known, where nothing tells those of others.
        if let Some(by) = quote.by.as_mut().filter(|by| by.id == *sender) {
            by.roles = roles.to_vec();
        }
        quote.standing = of_author(account, quote, at);
    }
    judge_overheard(account, &mut message.overheard, at);
}

fn judge_overheard(account: &ConnectedAccount, overheard: &mut Vec<Overheard>, at: &Address) {
    if overheard.is_empty() {
        return;
    }
    for overheard in overheard.iter_mut() {
        overheard.standing = standing(account, overheard.by.as_ref(), at);
    }
    match account.gate().bystanders {
        Bystanders::Everyone => {}
        Bystanders::Heard => overheard.retain(|overheard| overheard.standing == Standing::Heard),
    }
}

fn of_author(account: &ConnectedAccount, quote: &Quote, at: &Address) -> Standing {
    match quote.author {
        Author::Us => Standing::Heard,
        Author::Named(_) | Author::Unknown => standing(account, quote.by.as_ref(), at),
    }
}

/// Whether somebody is heard in a chat. Whom nobody can name is not.
fn standing(account: &ConnectedAccount, by: Option<&Bystander>, at: &Address) -> Standing {
    let is_heard = by.is_some_and(|Bystander { id, kind, roles }| {
        let mut sender = Sender::new(id.clone());
        sender.kind = *kind;
        let is_ignored = *kind == SenderKind::Bot && account.gate().bots == Bots::Never;
        !is_ignored && account.authority_in(&sender, at, roles).may(Deed::Speak)
    });
    match is_heard {
        true => Standing::Heard,
        false => Standing::Unheard,
    }
}
