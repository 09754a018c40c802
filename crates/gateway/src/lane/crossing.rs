//! What crosses a question on its way: said before anybody could read what is asked, it approves nothing.

use std::time::Duration;

use talaria_model::{Aim, Inbound, InboundKind, Message, OutboundId, Seq, Timestamp};
use talaria_session::{Event, Phase, Session};
use talaria_store::Crossing;

use crate::shared::Shared;

/// A platform shows a message before its receipt has come back to us, and nobody who reads answers sooner than that.
const WAY_BACK: Duration = Duration::from_millis(250);

/// Platforms tell the time by a clock of their own, some in whole seconds.
const ANOTHERS_CLOCK: Duration = Duration::from_secs(2);

/// Marks what was said to a session that waits for an approval, where the question had not arrived by then.
pub(super) async fn mark(shared: &Shared, session: Option<&Session>, event: &mut Event) {
    let Some(Phase::Asking { question, sent, .. }) = session.map(|session| &session.phase) else {
        return;
    };
    let said = messages(event);
    if question.approval.is_none() || said.is_empty() {
        return;
    }
    let rows: Vec<Row> = said.iter().map(|(row, _)| *row).collect();
    let mut early = unread(shared, sent.as_ref(), &rows).await;
    if !early.is_empty() {
        // Its receipt may be on the way into the store.
        shared.clock.sleep(WAY_BACK).await;
        early = unread(shared, sent.as_ref(), &rows).await;
    }
    for (_, message) in said.into_iter().filter(|(row, _)| early.contains(row)) {
        message.aim = Aim::TooEarly;
    }
}

/// Something said.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Row {
    seq: Seq,
    /// When, by its platform's clock: what was held up on its way to us came in later.
    said: Timestamp,
}

/// Those of the rows that were said before a question could be read.
async fn unread(shared: &Shared, question: Option<&OutboundId>, rows: &[Row]) -> Vec<Row> {
    let mut early = Vec::new();
    for row in rows {
        if !could_be_read(shared, question, *row).await {
            early.push(*row);
        }
    }
    early
}

/// What was said with an event. A button is part of the question itself.
fn messages(event: &mut Event) -> Vec<(Row, &mut Message)> {
    fn said(seq: Seq, inbound: &mut Inbound) -> Option<(Row, &mut Message)> {
        match &mut inbound.kind {
            InboundKind::Said(message) | InboundKind::Edited(message) => {
                Some((Row { seq, said: inbound.at }, message))
            }
            InboundKind::Pressed(_) | InboundKind::Stopped => None,
        }
    }
    match event {
        Event::Arrived { seq, inbound, .. } => said(*seq, inbound).into_iter().collect(),
        Event::Together { rows, .. } => {
            rows.iter_mut().filter_map(|(seq, inbound)| said(*seq, inbound)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a question could be read when something was said. What nobody can tell is a no: whoever wants it says
/// it again.
async fn could_be_read(shared: &Shared, question: Option<&OutboundId>, row: Row) -> bool {
    let Some(question) = question else { return false };
    match shared.store.crossing(question, row.seq).await {
        Ok(crossing) => is_in_time(crossing, row.said, shared.clock.now()),
        Err(error) => {
            tracing::warn!(%error, "whether a question has arrived cannot be looked up");
            false
        }
    }
}

fn is_in_time(crossing: Crossing, said: Timestamp, now: Timestamp) -> bool {
    let Crossing { delivered: Some(delivered), arrived: Some(arrived) } = crossing else {
        return false;
    };
    // A clock that was set back tells no order. What had arrived before that can be read by now; what was said
    // before that may be older than the question.
    let is_behind = arrived + WAY_BACK >= delivered && said + ANOTHERS_CLOCK >= delivered;
    arrived <= now && (is_behind || delivered > now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_before_the_question_had_arrived_is_no_answer_to_it() {
        let at = Timestamp::from_millis;
        let is_in_time = |crossing: Crossing, said| is_in_time(crossing, said, at(10_000));
        let check = |delivered: Option<i64>, arrived: Option<i64>, expected: bool| {
            let crossing = Crossing { delivered: delivered.map(at), arrived: arrived.map(at) };
            let said = crossing.arrived.unwrap_or_default();
            assert_eq!(is_in_time(crossing, said), expected, "{crossing:?}");
        };
        check(Some(5_000), Some(5_000), true);
        check(Some(5_000), Some(6_000), true);
        check(Some(5_000), Some(4_750), true);
        check(Some(5_000), Some(4_749), false);
        check(None, Some(6_000), false);
        check(Some(5_000), None, false);
        check(None, None, false);
        // Set back: it was delivered in what is the future by now.
        check(Some(10_001), Some(9_000), true);
        check(Some(10_000), Some(9_000), false);
        check(Some(5_000), Some(10_001), false);
        // Held up on its way, so that it came in when the question could be read.
        let held_up = Crossing { delivered: Some(at(5_000)), arrived: Some(at(6_000)) };
        assert!(is_in_time(held_up, at(3_000)));
        assert!(!is_in_time(held_up, at(2_999)));
    }
}
