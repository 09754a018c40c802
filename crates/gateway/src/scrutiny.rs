//! What arrives is shown to who watches: told where nobody waits for it, asked where it is to be answered.
//!
//! Asking happens where files are fetched, behind the commit of a message and before its session hears of
//! it. So one who takes long holds up the conversation that it is about and nobody else's, the platform
//! has its acknowledgement, and what stops a turn never waits. What was made of a message is recorded with
//! it; whoever had nothing to say is asked once more if the process dies before a step has taken it.
//!
//! Whether somebody is heard does not depend on who watches, only whether they are answered; so whoever
//! would not be answered anyway is told of and not asked about, except for strangers who may be given a
//! code, about whom `door` asks.

use talaria_model::{Addressed, Inbound, InboundKind, Message, Scrutiny};
use talaria_session::{Command, Edits, Given, Meant, SessionKey, acts_at_once, meant};

use crate::accounts::ConnectedAccount;
use crate::intake::LONGEST_TEXT;
use crate::shared::Shared;
use crate::tasks::{Panicked, calm};
use crate::watching::{Arriving, Commanded, Order};

/// How many of an account's messages are asked about at once. The others wait where it is safe, instead of
/// being one too many for whoever is asked.
pub(crate) const ASKED_AT_ONCE: usize = 8;

/// Why nobody answers something over which we stumbled: it may be what ought to have been dropped.
const STUMBLED: &str = "something went wrong inside me while hooks were asked about it";

/// Why nobody answers something that was rewritten at too great a length.
const TOO_LONG: &str = "what a hook made of it is longer than the gateway takes";

/// What came of asking about something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It goes on as it was.
    Unchanged,
    /// It goes on as somebody wants it.
    Changed,
    /// Nobody will answer it, and why.
    Dropped(String),
}

/// Whether those who watch have yet to be asked about something.
pub(crate) fn is_due(inbound: &Inbound) -> bool {
    message(inbound).is_some_and(|message| message.scrutiny == Scrutiny::Due)
}

/// Says of something that is taken in whether anybody is to be asked about it.
pub(crate) fn mark(shared: &Shared, inbound: &mut Inbound) {
    let is_watched = shared.watcher.watches();
    if let Some(message) = message_mut(inbound) {
        let is_asked_about = is_watched && !acts_at_once(message);
        message.scrutiny = if is_asked_about { Scrutiny::Due } else { Scrutiny::Over };
    }
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

/// Asks about something that waits to be heard. It is over then, whatever was said.
pub(crate) async fn ask(shared: &Shared, key: &SessionKey, inbound: &mut Inbound) -> Seen {
    if let Some(message) = message_mut(inbound) {
        message.scrutiny = Scrutiny::Over;
    }
    // Nobody is heard on an account that is gone.
    let Some(account) = shared.accounts.get(&inbound.to.account) else { return Seen::Unchanged };
    let _place = account.questions.acquire().await;
    let asked = calm(async {
        match about(shared, &account, inbound).await {
            Seen::Dropped(why) => Seen::Dropped(why),
            seen => match about_command(shared, &account, key, inbound).await {
                Seen::Unchanged => seen,
                decided => decided,
            },
        }
    });
    match asked.await {
        Ok(seen) => seen,
        Err(Panicked) => Seen::Dropped(STUMBLED.to_owned()),
    }
}

/// Asks about what a stranger said who may be answered. It takes nobody's place who is let in.
pub(crate) async fn ask_about_stranger(
    shared: &Shared,
    account: &ConnectedAccount,
    inbound: &mut Inbound,
) -> Seen {
    if message(inbound).is_none_or(acts_at_once) {
        tell(shared, account, inbound);
        return Seen::Unchanged;
    }
    match calm(about(shared, account, inbound)).await {
        Ok(seen) => seen,
        Err(Panicked) => Seen::Dropped(STUMBLED.to_owned()),
    }
}

async fn about(shared: &Shared, account: &ConnectedAccount, inbound: &mut Inbound) -> Seen {
    let platform = account.plan().account.spec.name;
    let seen = shared.watcher.arriving(platform, inbound).await;
    match (seen, message_mut(inbound)) {
        (Arriving::Dropped(why), _) => Seen::Dropped(why),
        (Arriving::Rewritten(words), Some(message)) => rewrite(message, words),
        (Arriving::Goes | Arriving::Rewritten(_), _) => Seen::Unchanged,
    }
}

/// Asks about a command that whoever gives it may give.
async fn about_command(
    shared: &Shared,
    account: &ConnectedAccount,
    key: &SessionKey,
    inbound: &mut Inbound,
) -> Seen {
    let Some(given) = given(shared, account, key, inbound) else { return Seen::Unchanged };
    let platform = account.plan().account.spec.name;
    let order = Order { platform, key, inbound, given: &given };
    // Another text may have made it one.
    if given.command.is_some_and(Command::acts_at_once) {
        shared.watcher.ordered(&order);
        return Seen::Unchanged;
    }
    let decided = shared.watcher.commanded(&order).await;
    match (decided, message_mut(inbound)) {
        (Commanded::Rewritten(words), Some(message)) => rewrite(message, words),
        (Commanded::Answered(words), Some(message)) => {
            message.answered = Some(words);
            Seen::Changed
        }
        (Commanded::Goes, _) | (_, None) => Seen::Unchanged,
    }
}

fn rewrite(message: &mut Message, words: String) -> Seen {
    if words.len() > LONGEST_TEXT {
        return Seen::Dropped(TOO_LONG.to_owned());
    }
    message.text = words;
    Seen::Changed
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
