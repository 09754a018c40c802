//! Whose words may stand beside a message. They reach the model in the turn of whoever is answered, so that this
//! must be no way in for somebody who is not heard themselves.

use talaria_model::{
    Address, Author, Bystander, Inbound, InboundKind, Message, Overheard, Quote, RoleId, Sender,
    SenderId, SenderKind, Standing,
};
use talaria_session::{Bots, Bystanders, Deed, Session};

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

/// The same of what a session holds to read later: some of those may have been put out since.
pub(crate) fn judge_held(shared: &Shared, session: &mut Session) {
    let Session { at, overheard, waiting, .. } = session;
    if overheard.is_empty() && waiting.is_empty() {
        return;
    }
    let Some(account) = shared.accounts.known(&at.account) else {
        overheard.clear();
        return;
    };
    judge_overheard(&account, overheard, at);
    for said in waiting {
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
        let sender = Sender { kind: *kind, ..Sender::new(id.clone()) };
        let is_ignored = *kind == SenderKind::Bot && account.gate().bots == Bots::Never;
        !is_ignored && account.authority_in(&sender, at, roles).may(Deed::Speak)
    });
    match is_heard {
        true => Standing::Heard,
        false => Standing::Unheard,
    }
}
