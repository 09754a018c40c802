//! What can be said of an event before a session hears it.

use std::cmp::Ordering;

use talaria_model::{Address, EarlierYes, Inbound, RoleId, Sender, Seq};
use talaria_session::{Authority, Deed, Effect, Ended, Event, Session, SessionKey, Waiting};

use crate::shared::Shared;
use crate::turn::may_approve;

/// A panicking step is tried this often before its event is set aside.
const PANICS_UNTIL_QUARANTINE: u32 = 3;

/// Why nobody is heard on an account that is not configured since this run began.
const GONE: &str = "the account is not configured any more";

/// What the sender of these may do at this moment: of all that is known of them, the least.
pub(crate) fn authority<'a>(
    shared: &Shared,
    rows: impl IntoIterator<Item = &'a Inbound>,
) -> Authority {
    let of = |inbound: &Inbound| {
        let account = shared.accounts.known(&inbound.to.account);
        account.map_or_else(Authority::none, |account| account.authority(inbound))
    };
    let least = rows.into_iter().map(of).min_by_key(|by| by.footing);
    least.unwrap_or_else(Authority::none)
}

/// What somebody may do after a store that failed made them wait: what they may do at that moment.
pub(super) fn look_again(shared: &Shared, event: &mut Event) {
    match event {
        Event::Arrived { inbound, by, .. } => *by = authority(shared, [&*inbound]),
        Event::Together { rows, by } => {
            *by = authority(shared, rows.iter().map(|(_, inbound)| inbound));
        }
        Event::Agent { .. }
        | Event::Told { .. }
        | Event::Barred { .. }
        | Event::Unaffordable { .. }
        | Event::Passed(_)
        | Event::Sent(_)
        | Event::Lost { .. }
        | Event::PutAway
        | Event::Renamed { .. }
        | Event::Woke
        | Event::Leaving { .. }
        | Event::Restarted { .. }
        | Event::Stumbled { .. } => {}
    }
}

/// Nobody answers these rows: who said them was put out since they were journalled.
pub(crate) async fn deny(shared: &Shared, key: &SessionKey, rows: &[Seq], why: &str) {
    let mut backoff = shared.spread.backoff();
    while let Err(error) = shared.store.deny(rows, why).await {
        tracing::warn!(session = %key, %error, "rows cannot be denied");
        shared.clock.sleep(backoff.next()).await;
    }
    tracing::info!(session = %key, rows = rows.len(), why, "not let in any more");
}

/// Why somebody is not heard any more in a chat; none if they are.
fn unheard(shared: &Shared, from: &Sender, to: &Address, roles: &[RoleId]) -> Option<&'static str> {
    // One that is taken out for a moment hears whom it heard.
    match shared.accounts.known(&to.account) {
        Some(account) => {
            let by = account.authority_in(from, to, roles);
            (!by.may(Deed::Speak)).then(|| by.rule.reason())
        }
        None => Some(GONE),
    }
}

/// A session is taken up that an earlier run left, or that was put off, with what its people may do at this
/// moment.
pub(super) fn restarted(shared: &Shared, session: Option<&Session>, ended: Ended) -> Event {
    let hand = session.and_then(Session::hand);
    let unheard = hand.and_then(|hand| unheard(shared, &hand.from, &hand.to, &hand.roles));
    let yes = session.zip(hand).is_some_and(|(session, hand)| {
        let answered = hand.answered.as_ref().and_then(|answered| answered.by.as_ref());
        answered.is_some_and(|by| {
            may_approve(shared, &session.key, by, (&hand.from, &hand.to, &hand.roles))
        })
    });
    let yes = if yes { EarlierYes::Counts } else { EarlierYes::CountsNot };
    Event::Restarted { ended, unheard, yes }
}

/// What waits for a turn of those who are not heard any more.
pub(super) fn barred_while_waiting(shared: &Shared, session: &Session) -> Option<Event> {
    denial(session.waiting.iter().map(|said| (said.seq, unheard_who_said(shared, said))))
}

/// Everything that another turn may begin with, of those who are not heard any more: what was asked for, what was
/// said to a turn that has not taken it up, what waits.
pub(super) fn barred(shared: &Shared, session: &Session) -> Option<Event> {
    let asked = session
        .asked
        .iter()
        .map(|asked| (asked.seq, unheard(shared, &asked.from, &asked.to, &asked.roles)));
    let steers = session.hand().into_iter().flat_map(|hand| &hand.steers);
    let said = steers.chain(&session.waiting);
    denial(asked.chain(said.map(|said| (said.seq, unheard_who_said(shared, said)))))
}

fn unheard_who_said(shared: &Shared, said: &Waiting) -> Option<&'static str> {
    unheard(shared, &said.from, &said.to, &said.roles)
}

/// The denial of those rows for which there is a reason.
fn denial(looked_at: impl Iterator<Item = (Seq, Option<&'static str>)>) -> Option<Event> {
    let mut why = GONE;
    let mut rows = Vec::new();
    for (seq, unheard) in looked_at {
        if let Some(reason) = unheard {
            why = reason;
            rows.push(seq);
        }
    }
    (!rows.is_empty()).then_some(Event::Barred { rows, why })
}

/// Whether a step begins another turn for somebody who is not heard any more.
pub(super) fn begins_unheard(shared: &Shared, before: &Session, effects: &[Effect]) -> bool {
    effects.iter().any(|effect| match effect {
        Effect::Start(start) => {
            let goes_on = before.hand().is_some_and(|hand| hand.turn == start.turn);
            !goes_on && unheard(shared, &start.from, &start.to, &start.roles).is_some()
        }
        _ => false,
    })
}

/// The rows of an event whose sender is not heard any more, and why not.
pub(super) fn refused(event: &Event) -> Option<(Vec<Seq>, &'static str)> {
    let (rows, by) = match event {
        Event::Arrived { seq, by, .. } => (vec![*seq], by),
        Event::Together { rows, by } => (rows.iter().map(|(seq, _)| *seq).collect(), by),
        Event::Agent { .. }
        | Event::Told { .. }
        | Event::Barred { .. }
        | Event::Unaffordable { .. }
        | Event::Passed(_)
        | Event::Sent(_)
        | Event::Lost { .. }
        | Event::PutAway
        | Event::Renamed { .. }
        | Event::Woke
        | Event::Leaving { .. }
        | Event::Restarted { .. }
        | Event::Stumbled { .. } => return None,
    };
    (!by.may(Deed::Speak)).then(|| (rows, by.rule.reason()))
}

/// What a session hears next that has panicked so often over an event, and what came together with that and is
/// heard by itself. None where there is nothing that it could hear.
pub(super) fn after_panics(event: Event, panics: u32) -> Option<(Event, Vec<(Seq, Inbound)>)> {
    match (panics.cmp(&PANICS_UNTIL_QUARANTINE), &event) {
        (Ordering::Less, _) => Some((event, Vec::new())),
        // Nobody said it, and whoever should be denied is told nothing.
        (Ordering::Equal, Event::Barred { .. }) | (Ordering::Greater, _) => None,
        (Ordering::Equal, _) => Some(stumbled(event)),
    }
}

/// What a session hears instead of an event over which it panicked every time: the ones behind it
/// must not be blocked, and the person is told. What it came together with is heard by itself.
fn stumbled(event: Event) -> (Event, Vec<(Seq, Inbound)>) {
    let (over, rest) = match event {
        Event::Arrived { seq, inbound, .. } => (Some((seq, inbound)), Vec::new()),
        Event::Together { mut rows, .. } => {
            let rest = rows.split_off(rows.len().min(1));
            (rows.pop(), rest)
        }
        Event::Agent { .. }
        | Event::Told { .. }
        | Event::Barred { .. }
        | Event::Unaffordable { .. }
        | Event::Passed(_)
        | Event::Sent(_)
        | Event::Lost { .. }
        | Event::PutAway
        | Event::Renamed { .. }
        | Event::Woke
        | Event::Leaving { .. }
        | Event::Restarted { .. }
        | Event::Stumbled { .. } => (None, Vec::new()),
    };
    (Event::Stumbled { over }, rest)
}

/// Where something was said with an event. A session that never began begins there.
pub(super) fn place_of(event: &Event) -> Option<&Address> {
    match event {
        Event::Arrived { inbound, .. } | Event::Stumbled { over: Some((_, inbound)) } => {
            Some(&inbound.to)
        }
        Event::Together { rows, .. } | Event::Unaffordable { rows, .. } => {
            rows.first().map(|(_, inbound)| &inbound.to)
        }
        Event::Sent(outbound) => Some(&outbound.to),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::{AccountId, Chat, ChatId, ChatKind, EventId, InboundKind, SenderId};

    fn row(number: u64) -> (Seq, Inbound) {
        let inbound = Inbound {
            id: EventId::literal("e"),
            at: Default::default(),
            from: Sender::new(SenderId::literal("alice")),
            to: Address {
                account: AccountId::literal("main"),
                chat: Chat { id: ChatId::literal("c"), kind: ChatKind::Dm },
                thread: None,
            },
            source: Default::default(),
            kind: InboundKind::Stopped,
        };
        (Seq(number), inbound)
    }

    /// What is heard over and over until nothing is left to hear, when every step panics.
    fn heard(event: Event) -> (Vec<Event>, Vec<(Seq, Inbound)>) {
        let (mut heard, mut put_back) = (vec![event.clone()], Vec::new());
        let mut next = event;
        for panics in 1..100 {
            let Some((instead, rest)) = after_panics(next, panics) else {
                return (heard, put_back);
            };
            heard.push(instead.clone());
            put_back.extend(rest);
            next = instead;
        }
        panic!("it is never given up: {heard:?}");
    }

    #[test]
    fn a_denial_that_panics_is_given_up_and_nothing_is_said_in_its_place() {
        let denial = Event::Barred { rows: vec![Seq(1)], why: GONE };
        assert_eq!(heard(denial.clone()), (vec![denial; 3], Vec::new()));
    }

    #[test]
    fn what_panics_is_set_aside_and_what_came_with_it_is_heard_by_itself() {
        let together = Event::Together { rows: vec![row(1), row(2)], by: Authority::none() };
        let (events, put_back) = heard(together.clone());
        assert_eq!(events[..3], [together.clone(), together.clone(), together]);
        assert_eq!(
            events[3..],
            [Event::Stumbled { over: Some(row(1)) }],
            "once, whatever comes of it"
        );
        assert_eq!(put_back, [row(2)]);
    }
}
