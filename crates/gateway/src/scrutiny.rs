//! What arrives is shown to who watches: told where nobody waits for it, asked where it is to be answered.
//!
//! Asking happens where files are fetched, behind the commit of a message and before its session hears of
//! it. So one who takes long holds up the conversation that it is about and nobody else's, the platform
//! has its acknowledgement, and what stops a turn never waits. What was decided about a message is recorded
//! with it before anybody hears of it, so that nobody is asked again.
//!
//! Whether somebody is heard does not depend on who watches, only whether they are answered; so whoever
//! would not be answered anyway is told of and not asked about, except for strangers who may be given a
//! code, about whom `door` asks.

use talaria_model::{Addressed, Inbound, InboundKind, Intervention, Message, Scrutiny};
use talaria_session::pairing::Code;
use talaria_session::{Command, Edits, Given, Meant, SessionKey, acts_at_once, meant};

use crate::accounts::ConnectedAccount;
use crate::intake::LONGEST_TEXT;
use crate::shared::Shared;
use crate::tasks::{Panicked, calm};
use crate::watching::{Arriving, Commanded, Decided, Order};

/// Why nobody answers something over which we stumbled: it may be what ought to have been dropped.
const STUMBLED: &str = "something went wrong inside me while hooks were asked about it";

/// Why nobody answers something that was rewritten at too great a length.
const TOO_LONG: &str = "what a hook made of it is longer than the gateway takes";

/// Whether those who watch have yet to be asked about something.
pub(crate) fn is_due(inbound: &Inbound) -> bool {
    message(inbound).is_some_and(|message| message.scrutiny == Scrutiny::Due)
}

/// Says of something that is taken in whether anybody is to be asked about it.
pub(crate) fn mark(
    shared: &Shared,
    account: &ConnectedAccount,
    key: &SessionKey,
    inbound: &mut Inbound,
) {
    let has_say = shared.watcher.watches() && has_say(shared, account, key, inbound);
    if let Some(message) = message_mut(inbound) {
        message.scrutiny = if has_say { Scrutiny::Due } else { Scrutiny::Over };
    }
}

fn has_say(
    shared: &Shared,
    account: &ConnectedAccount,
    key: &SessionKey,
    inbound: &Inbound,
) -> bool {
    let is_judged = |given: Given| {
        let platform = account.plan().account.spec.name;
        shared.watcher.judges(&Order { platform, key, inbound, given: &given })
    };
    waits_for_watcher(inbound)
        && (shared.watcher.judges_arrivals()
            || given(shared, account, key, inbound).is_some_and(is_judged))
}

/// Whether something can wait until somebody has decided about it: what stops something or answers a
/// question cannot.
fn waits_for_watcher(inbound: &Inbound) -> bool {
    message(inbound).is_some_and(|message| !acts_at_once(message))
}

/// Whether who watches has a say in what a stranger said who may be answered. A code is for us alone, where
/// one can be redeemed.
pub(crate) fn minds_stranger(
    shared: &Shared,
    account: &ConnectedAccount,
    inbound: &Inbound,
) -> bool {
    let is_code = message(inbound).is_some_and(|message| Code::said(&message.text).is_some())
        && account.expects_codes(shared.clock.now());
    !is_code && waits_for_watcher(inbound) && shared.watcher.judges_arrivals()
}

/// Tells who watches of something that nobody is asked about.
pub(crate) fn tell(shared: &Shared, account: &ConnectedAccount, inbound: &Inbound) {
    if message(inbound).is_some() {
        shared.watcher.arrived(account.plan().account.spec.name, inbound);
    }
}

/// The same of something that is heard. A command is told as such, too.
pub(crate) fn tell_heard(
    shared: &Shared,
    account: &ConnectedAccount,
    key: &SessionKey,
    inbound: &Inbound,
) {
    tell(shared, account, inbound);
    if let Some(given) = given(shared, account, key, inbound) {
        let platform = account.plan().account.spec.name;
        shared.watcher.ordered(&Order { platform, key, inbound, given: &given });
    }
}

/// Asks about something that waits to be heard, and says why nobody answers it, if nobody does. It is over
/// then, whatever was said.
pub(crate) async fn ask(
    shared: &Shared,
    key: &SessionKey,
    inbound: &mut Inbound,
) -> Option<String> {
    if let Some(message) = message_mut(inbound) {
        message.scrutiny = Scrutiny::Over;
    }
    // Also of one that was taken out a moment ago: it may be back before long.
    let account = shared.accounts.known(&inbound.to.account)?;
    let asked = calm(async {
        match about(shared, &account, inbound).await {
            None => about_command(shared, &account, key, inbound).await,
            dropped => dropped,
        }
    });
    asked.await.unwrap_or_else(|Panicked| Some(STUMBLED.to_owned()))
}

/// Asks about what a stranger said who may be answered, and says why they are not, if they are not.
pub(crate) async fn ask_about_stranger(
    shared: &Shared,
    account: &ConnectedAccount,
    inbound: &mut Inbound,
) -> Option<String> {
    let asked = calm(about(shared, account, inbound)).await;
    asked.unwrap_or_else(|Panicked| Some(STUMBLED.to_owned()))
}

async fn about(
    shared: &Shared,
    account: &ConnectedAccount,
    inbound: &mut Inbound,
) -> Option<String> {
    let platform = account.plan().account.spec.name;
    let Decided { what, by } = shared.watcher.arriving(platform, inbound).await;
    note(inbound, by);
    match what {
        Arriving::Goes => None,
        Arriving::Dropped(why) => Some(why),
        Arriving::Rewritten(words) => rewrite(inbound, words),
    }
}

/// Asks about a command that whoever gives it may give.
async fn about_command(
    shared: &Shared,
    account: &ConnectedAccount,
    key: &SessionKey,
    inbound: &mut Inbound,
) -> Option<String> {
    let given = given(shared, account, key, inbound)?;
    let platform = account.plan().account.spec.name;
    let order = Order { platform, key, inbound, given: &given };
    // Another text may have made it one.
    if given.command.is_some_and(Command::acts_at_once) {
        shared.watcher.ordered(&order);
        return None;
    }
    let Decided { what, by } = shared.watcher.commanded(&order).await;
    note(inbound, by);
    match what {
        Commanded::Goes => {}
        Commanded::Rewritten(words) => return rewrite(inbound, words),
        Commanded::Answered(words) => message_mut(inbound)?.answered = Some(words),
    }
    None
}

/// Keeps with something what was done about it.
fn note(inbound: &mut Inbound, by: Option<Intervention>) {
    if let Some(message) = message_mut(inbound) {
        message.interventions.extend(by);
    }
}

fn rewrite(inbound: &mut Inbound, words: String) -> Option<String> {
    if words.len() > LONGEST_TEXT {
        return Some(TOO_LONG.to_owned());
    }
    message_mut(inbound)?.text = words;
    None
}

/// The command that something is, if whoever says it may give it.
fn given(
    shared: &Shared,
    account: &ConnectedAccount,
    key: &SessionKey,
    inbound: &Inbound,
) -> Option<Given> {
    let rules = shared.rules_for(key);
    // Where a change is not answered, it commands nothing.
    let is_read = match &inbound.kind {
        InboundKind::Said(_) => true,
        InboundKind::Edited(_) => rules.edits == Edits::Answered,
        InboundKind::Pressed(_) | InboundKind::Stopped => false,
    };
    let message =
        message(inbound).filter(|message| is_read && message.addressed == Addressed::ToUs)?;
    match meant(message, &rules.quick, &account.authority(inbound)) {
        Meant::Command(given) => Some(given),
        Meant::Words | Meant::Refused(_) => None,
    }
}

fn message(inbound: &Inbound) -> Option<&Message> {
    match &inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => Some(message),
        InboundKind::Pressed(_) | InboundKind::Stopped => None,
    }
}

fn message_mut(inbound: &mut Inbound) -> Option<&mut Message> {
    match &mut inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => Some(message),
        InboundKind::Pressed(_) | InboundKind::Stopped => None,
    }
}
