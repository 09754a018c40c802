//! From a platform into the journal: check, commit, only then acknowledge.

use std::collections::BTreeMap;
use std::sync::Arc;

use talaria_model::{Addressed, Below, Inbound, InboundKind, SenderId, SenderKind, Timestamp};
use talaria_platform::{Batch, Committed, Verdict};
use talaria_session::pairing::Code;
use talaria_session::{Attention, Authority, Chatter, Deed, Part, Rule, SessionKey};
use talaria_store::{Admitted, Delivered, JournalState, StoreError};

use crate::accounts::ConnectedAccount;
use crate::bystanders;
use crate::denials::{self, Trace};
use crate::discretion;
use crate::door::{self, Knock};
use crate::glimpses::Unwritten;
use crate::passing;
use crate::scrutiny;
use crate::shared::Shared;

/// The longest text that is taken in. Platforms have lower limits of their own; this one keeps a
/// broken or hostile one from filling the journal.
pub(crate) const LONGEST_TEXT: usize = 256 * 1024;

/// How much of what a stranger says is shown to who watches. Many can wait at the door at once.
const LONGEST_OF_STRANGERS: usize = 16 * 1024;

/// As it is recorded beside a message whose text is longer.
const TOO_LONG: &str = "the text is longer than the gateway takes; its end is not kept";

/// Makes a batch durable, tells the platform, and hands the events to their lanes. On an error the
/// platform has not been told: it will deliver again what was not stored.
pub(crate) async fn admit(
    shared: &Arc<Shared>,
    account: &Arc<ConnectedAccount>,
    batch: Batch,
) -> Result<(), StoreError> {
    let Batch { events, cursor, ack } = batch;
    let mut judged: Vec<Option<Judged>> = Vec::with_capacity(events.len());
    let mut beside = Vec::with_capacity(events.len());
    let mut news: BTreeMap<SenderId, Rule> = BTreeMap::new();
    let begun = shared.clock.now();
    let is_watched = shared.watcher.watches();
    for event in events {
        let part = part(shared, account, &event, &judged).await?;
        // Of what nobody answers, less is kept than who watches is told.
        let whole = is_watched.then(|| told(account, &event)).flatten();
        let (row, knock, rule) = judge(shared, account, event, part);
        if let (Some((_, inbound, JournalState::Unread)), Some(rule)) = (&row, rule) {
            news.insert(inbound.from.id.clone(), rule);
        }
        judged.push(row);
        beside.push((knock, whole));
    }
    let delivered = Delivered {
        account: account.id.clone(),
        events: judged.iter().flatten().cloned().collect(),
        cursor: cursor.map(|cursor| cursor.0),
        at: shared.clock.now(),
    };
    let mut admitted = match shared.store.admit(delivered).await {
        Ok(admitted) => admitted.into_iter(),
        Err(error) => {
            // Its answer may have been lost and not the batch. Then the platform's repeat is no news
            // and goes nowhere, so the lanes look for themselves.
            for (key, _, state) in judged.into_iter().flatten() {
                if state == JournalState::Unread {
                    crate::lanes::look(shared, key);
                }
            }
            return Err(error);
        }
    };
    let mut verdicts = Vec::with_capacity(judged.len());
    let mut heard = Vec::with_capacity(judged.len());
    let mut strangers = Vec::new();
    for (judged, (knock, whole)) in judged.into_iter().zip(beside) {
        // What was not offered to the journal has no answer from it.
        let answer = judged.and_then(|event| Some((event, admitted.next()?)));
        // A stranger is answered once, however often the platform delivers what they said.
        let seq = match &answer {
            Some(((_, inbound, state), Admitted::Journalled(seq))) => {
                passing::received(shared, *seq, inbound, state, begun);
                Some(*seq)
            }
            _ => None,
        };
        let is_repeated = matches!(answer, Some((_, Admitted::Repeated(_))));
        let is_heard = matches!(answer, Some(((_, _, JournalState::Unread), _)));
        // About who may be answered, somebody may be asked.
        let is_asked_about =
            knock.as_ref().is_some_and(|knock| scrutiny::minds_stranger(shared, account, knock));
        if let (Some(whole), false) = (&whole, is_heard || is_repeated || is_asked_about) {
            scrutiny::tell(shared, account, whole);
        }
        if !is_repeated {
            strangers.extend(knock.map(|knock| (seq, knock)));
        }
        verdicts.push(match answer {
            Some(((_, inbound, _), Admitted::Repeated(seq))) => {
                passing::unwritten(shared, &inbound, begun, Unwritten::Repeated(seq));
                Verdict::Repeated
            }
            Some(((_, _, JournalState::Ignored(_)), Admitted::Journalled(seq))) => {
                Verdict::Journalled(seq)
            }
            Some(((key, inbound, JournalState::Unread), Admitted::Journalled(seq))) => {
                heard.push((key, seq, inbound));
                Verdict::Journalled(seq)
            }
            Some(_) | None => Verdict::Denied,
        });
    }
    ack.committed(Committed(verdicts));
    for (key, seq, inbound) in heard {
        account.silenced.hears(&inbound.to);
        if is_watched && !scrutiny::is_due(&inbound) {
            scrutiny::tell_heard(shared, account, &key, &inbound);
        }
        crate::lanes::offer(shared, key, seq, inbound);
    }
    for (sender, rule) in news {
        door::knock(shared, account, Knock::Listed(sender, rule));
    }
    for (seq, inbound) in strangers {
        door::knock(shared, account, Knock::Stranger(seq, Box::new(inbound)));
    }
    Ok(())
}

/// Where an event belongs, and what is written down of it.
type Judged = (SessionKey, Inbound, JournalState);

/// Whether the agent has a part in what goes on where something was said. It is looked up only where that
/// decides anything, and never for a stranger.
async fn part(
    shared: &Shared,
    account: &ConnectedAccount,
    inbound: &Inbound,
    before: &[Option<Judged>],
) -> Result<Part, StoreError> {
    let gate = account.gate();
    let is_known = inbound.source.below == Some(Below::Us);
    if is_known || !gate.minds_part(inbound) || !account.authority(inbound).may(Deed::Speak) {
        return Ok(Part::None);
    }
    let key = SessionKey::of(inbound, shared.scope);
    // Who was spoken to a moment ago may not have begun a turn yet.
    let is_for_us = |(of, inbound, state): &Judged| {
        *of == key && *state == JournalState::Unread && is_to_us(inbound)
    };
    if before.iter().flatten().any(is_for_us) {
        return Ok(Part::Taken);
    }
    let hears_only_us = gate.chatter == Chatter::Ignored;
    let has_part = match shared.store.load(&key).await? {
        // A session in which people were only overheard has begun no turn, and to one that only something
        // was sent to nobody has spoken.
        Some(session) => session.turns > 0 || hears_only_us && session.origin.is_some(),
        None => hears_only_us && shared.lanes.has(&key),
    };
    Ok(if has_part { Part::Taken } else { Part::None })
}

/// Where an event belongs, whether it is let in, and whether it is answered. No row for one that is not
/// written down: it names another account, or it is one too many of those that are not answered. Beside it,
/// what a stranger said who may be answered, and the rule that lets somebody in who comes for the first time.
fn judge(
    shared: &Shared,
    account: &ConnectedAccount,
    mut inbound: Inbound,
    part: Part,
) -> (Option<Judged>, Option<Inbound>, Option<Rule>) {
    let now = shared.clock.now();
    if inbound.to.account != account.id {
        tracing::warn!(account = %account.id, "refused an event of another account");
        passing::unwritten(shared, &inbound, now, Unwritten::Misdirected(account.id.clone()));
        return (None, None, None);
    }
    // Before anything is cut off: half of a secret would not be recognised.
    discretion::mend(shared, &mut inbound);
    let length = shorten(&mut inbound);
    let by = account.authority(&inbound);
    let mut knock = None;
    let state = match (by.may(Deed::Speak), length) {
        (true, Length::Fits) => match attend(account, &inbound, part, now) {
            Attention::Answer => {
                bystanders::judge(account, &mut inbound);
                addressed(&mut inbound, Addressed::ToUs);
                JournalState::Unread
            }
            Attention::Overhear => JournalState::Unread,
            Attention::Ignore(why) => {
                if account.ignores(now) == Trace::None {
                    passing::unwritten(shared, &inbound, now, Unwritten::Ignored(why.to_owned()));
                    return (None, None, None);
                }
                denials::excerpt(&mut inbound);
                JournalState::Ignored(why.to_owned())
            }
        },
        (true, Length::Shortened) => JournalState::Denied(TOO_LONG.to_owned()),
        (false, _) => {
            knock = knocks(&by, &inbound).then(|| stripped(shared, &inbound));
            if account.denies(&inbound.from.id, now) == Trace::None {
                let why = Unwritten::Denied(by.rule.reason().to_owned());
                passing::unwritten(shared, &inbound, now, why);
                return (None, knock, None);
            }
            // This is how an operator learns the id that the allow list wants.
            tracing::info!(account = %inbound.to.account, sender = %inbound.from.id, "not let in");
            denials::excerpt(&mut inbound);
            conceal(&mut inbound);
            JournalState::Denied(by.rule.reason().to_owned())
        }
    };
    let asked = shared.open_questions.answered_by(&mut inbound, shared.scope, &state);
    let key = asked.unwrap_or_else(|| SessionKey::of(&inbound, shared.scope));
    if state == JournalState::Unread {
        scrutiny::mark(shared, account, &key, &mut inbound);
    }
    let is_news = by.rule.names() && account.is_news(&inbound.from.id);
    (Some((key, inbound, state)), knock, is_news.then_some(by.rule))
}

/// Whether something that was let in is answered. Programs are not answered without end.
fn attend(account: &ConnectedAccount, inbound: &Inbound, part: Part, now: Timestamp) -> Attention {
    match (account.gate().attend(inbound, part), inbound.from.kind) {
        (Attention::Answer, SenderKind::Bot) if !account.converses(inbound, now) => {
            let Inbound { from, to, .. } = inbound;
            tracing::warn!(account = %to.account, sender = %from.id, "a bot speaks without end");
            Attention::Ignore(
                "a bot spoke too often in a minute; bot_messages_per_minute says how often",
            )
        }
        (attention, _) => attention,
    }
}

/// Whether somebody who is not let in may be answered: a person who says something in a direct chat.
pub(crate) fn knocks(by: &Authority, inbound: &Inbound) -> bool {
    let InboundKind::Said(message) = &inbound.kind else { return false };
    let deed = match Code::said(&message.text) {
        Some(_) => Deed::Redeem,
        None => Deed::AskToPair,
    };
    inbound.from.kind == SenderKind::Person && by.may(deed)
}

/// What may be a pairing code is not written down, and shown to nobody.
pub(crate) fn conceal(inbound: &mut Inbound) {
    if let InboundKind::Said(message) | InboundKind::Edited(message) = &mut inbound.kind
        && Code::read(&message.text).is_some()
    {
        message.text = "(perhaps a pairing code)".to_owned();
    }
}

/// What who watches is told of something that nobody answers: no code of a stranger, and nothing of another
/// account.
fn told(account: &ConnectedAccount, inbound: &Inbound) -> Option<Inbound> {
    let mut inbound = Some(inbound).filter(|inbound| inbound.to.account == account.id).cloned()?;
    if !account.authority(&inbound).may(Deed::Speak) {
        conceal(&mut inbound);
    }
    Some(inbound)
}

/// As much of what a stranger said as decides what becomes of it. Who watches decides by more than we do.
fn stripped(shared: &Shared, inbound: &Inbound) -> Inbound {
    let mut inbound = inbound.clone();
    if !shared.watcher.watches() {
        denials::excerpt(&mut inbound);
    } else if let InboundKind::Said(message) = &mut inbound.kind {
        message.text.truncate(message.text.floor_char_boundary(LONGEST_OF_STRANGERS));
    }
    inbound
}

/// To whom something was said is settled here: a session does not know the account's rules.
fn addressed(inbound: &mut Inbound, to: Addressed) {
    if let InboundKind::Said(message) | InboundKind::Edited(message) = &mut inbound.kind {
        message.addressed = to;
    }
}

fn is_to_us(inbound: &Inbound) -> bool {
    matches!(&inbound.kind, InboundKind::Said(message) if message.addressed == Addressed::ToUs)
}

/// Whether a text is taken in whole.
enum Length {
    Fits,
    Shortened,
}

fn shorten(inbound: &mut Inbound) -> Length {
    match &mut inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message)
            if message.text.len() > LONGEST_TEXT =>
        {
            let end = message.text.floor_char_boundary(LONGEST_TEXT);
            message.text.truncate(end);
            Length::Shortened
        }
        _ => Length::Fits,
    }
}
