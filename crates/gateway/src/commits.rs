//! A step's effects as one write.

use talaria_platform::lower;
use talaria_session::{Closed, Effect, Session};
use talaria_store::{Branch, Commit, Dropped, JournalChange, JournalState, Retirement, Rewind};

use crate::delivery::with_room_for_mark;
use crate::shared::Shared;

/// What has to be durable before the effects of a step happen.
pub(crate) fn of(shared: &Shared, next: &Session, effects: &[Effect]) -> Commit {
    let mut commit = Commit::of(next.clone(), next.updated);
    for effect in effects {
        match effect.clone() {
            Effect::Take(seq) => {
                commit.journal.push(JournalChange { seq, state: JournalState::Taken });
            }
            Effect::Bind { seq, turn } => {
                commit.journal.push(JournalChange { seq, state: JournalState::Bound(turn) });
            }
            Effect::Close { seq, closed } => {
                let state = match closed {
                    Closed::Handled => JournalState::Handled,
                    Closed::Ignored(why) => JournalState::Ignored(why.to_owned()),
                    Closed::Quarantined(why) => JournalState::Quarantined(why.to_owned()),
                };
                commit.journal.push(JournalChange { seq, state });
            }
            Effect::Forward { seq, to } => commit.forwarded.push((seq, to)),
            Effect::DropUnread { before, why } => {
                commit.dropped = Some(Dropped { before, reason: why.to_owned() });
            }
            Effect::Record { session, entry } => commit.entries.push((session, entry)),
            Effect::Rewind { session, from, upto, by } => {
                commit.rewinds.push(Rewind { session, from, upto, by: Some(by) });
            }
            Effect::Branch { from, to, upto } => commit.branch = Some(Branch { from, to, upto }),
            Effect::Retire { past, why } => commit.retired = Some(Retirement { past: *past, why }),
            Effect::Post(outbound) => {
                // Lowered here and not when it is sent, so that every part of an answer is durable,
                // under its own id, in the commit that ends the turn.
                let can = shared.capabilities(&outbound.to);
                let replies = shared.manner(&outbound.to).replies;
                let mut parts = lower(outbound, &with_room_for_mark(can));
                replies.mark(&mut parts);
                commit.outbox.extend(parts);
            }
            Effect::Start(_)
            | Effect::Tell { .. }
            | Effect::Abandon(_)
            | Effect::Ask { .. }
            | Effect::Pass { .. } => {}
        }
    }
    commit
}
