//! What crosses a question on its way: said before anybody could read what is asked, it approves nothing.

use std::time::Duration;

use talaria_model::{Aim, InboundKind, Message, OutboundId, Seq, Timestamp};
use talaria_session::{Event, Phase, Session};
use talaria_store::Crossing;

use crate::shared::Shared;

/// A platform shows a message before its receipt has come back to us, and nobody who reads answers sooner than that.
const WAY_BACK: Duration = Duration::from_millis(250);

/// Marks what was said to a session that waits for an approval, where the question had not arrived by then.
pub(super) async fn mark(shared: &Shared, session: Option<&Session>, event: &mut Event) {
    let Some(Phase::Asking { question, sent, .. }) = session.map(|session| &session.phase) else {
        return;
    };
    let said = messages(event);
    if question.approval.is_none() || said.is_empty() {
        return;
    }
    let rows: Vec<Seq> = said.iter().map(|(seq, _)| *seq).collect();
    let mut early = unread(shared, sent.as_ref(), &rows).await;
    if !early.is_empty() {
        // Its receipt may be on the way into the store.
        shared.clock.sleep(WAY_BACK).await;
        early = unread(shared, sent.as_ref(), &rows).await;
    }
    for (_, message) in said.into_iter().filter(|(seq, _)| early.contains(seq)) {
        message.aim = Aim::TooEarly;
    }
}

/// Those of the rows that came in before a question could be read.
async fn unread(shared: &Shared, question: Option<&OutboundId>, rows: &[Seq]) -> Vec<Seq> {
    let mut early = Vec::new();
    for seq in rows {
        if !could_be_read(shared, question, *seq).await {
            early.push(*seq);
        }
    }
    early
}

/// What was said with an event. A button is part of the question itself.
fn messages(event: &mut Event) -> Vec<(Seq, &mut Message)> {
    let said = |seq, kind| match kind {
        &mut (InboundKind::Said(ref mut message) | InboundKind::Edited(ref mut message)) => {
            Some((seq, message))
        }
        InboundKind::Pressed(_) | InboundKind::Stopped => None,
    };
    match event {
        Event::Arrived { seq, inbound, .. } => said(*seq, &mut inbound.kind).into_iter().collect(),
        Event::Together { rows, .. } => {
            rows.iter_mut().filter_map(|(seq, inbound)| said(*seq, &mut inbound.kind)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a question could be read when a row came in. What nobody can tell is a no: whoever wants it says it
/// again.
async fn could_be_read(shared: &Shared, question: Option<&OutboundId>, row: Seq) -> bool {
    let Some(question) = question else { return false };
    match shared.store.crossing(question, row).await {
        Ok(crossing) => is_in_time(crossing, shared.clock.now()),
        Err(error) => {
            tracing::warn!(%error, "whether a question has arrived cannot be looked up");
            false
        }
    }
}

fn is_in_time(crossing: Crossing, now: Timestamp) -> bool {
    let Crossing { delivered: Some(delivered), arrived: Some(arrived) } = crossing else {
        return false;
    };
    // A clock that was set back tells no order. What had arrived before that can be read by now; what was said
    // before that may be older than the question.
    arrived <= now && (arrived + WAY_BACK >= delivered || delivered > now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_before_the_question_had_arrived_is_no_answer_to_it() {
        let at = Timestamp::from_millis;
        let check = |delivered: Option<i64>, arrived: Option<i64>, expected: bool| {
            let crossing = Crossing { delivered: delivered.map(at), arrived: arrived.map(at) };
            assert_eq!(is_in_time(crossing, at(10_000)), expected, "{crossing:?}");
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
    }
}
