//! What can be said of an event before a session hears it.

use talaria_model::{Address, Inbound, Seq};
use talaria_session::{Authority, Deed, Event};

use crate::shared::Shared;

/// What the sender of these may do at this moment: of all that is known of them, the least.
pub(super) fn authority<'a>(
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

/// What a session hears instead of an event over which it panicked every time: the ones behind it
/// must not be blocked, and the person is told. What it came together with is heard by itself.
pub(super) fn stumbled(event: Event) -> (Event, Vec<(Seq, Inbound)>) {
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
