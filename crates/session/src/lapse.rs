//! What a session does not bring with it when a copy of it is gone back to.
//!
//! A yes is for one moment. Between the copy and now it was used, denied or taken back, and nobody who
//! gave it then is asked whether it still holds.

use talaria_model::{Answer, Timestamp};

use crate::session::{Phase, Session};

/// What a session has lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lapse {
    /// Approvals that were asked for, and such as were given and not used yet.
    pub approvals: usize,
    /// What was approved for as long as the conversation lasts.
    pub here: usize,
}

impl Session {
    /// Takes back every yes that could still lead to something. A question to approve is past its time
    /// from then on, so that its turn hears, as of any other, that nobody answered.
    pub fn lapse(&mut self) -> Lapse {
        let here = std::mem::take(&mut self.approved).len();
        let approvals = match &mut self.phase {
            Phase::Asking { question, expires, .. } if question.approval.is_some() => {
                *expires = Timestamp::default();
                1
            }
            Phase::Thinking(hand) | Phase::Interrupting(hand) | Phase::Stopping(hand) => {
                let given = hand.answered.as_mut().map(|answered| &mut answered.answer);
                match given {
                    Some(answer @ Answer::Approved { .. }) => {
                        *answer = Answer::Expired;
                        1
                    }
                    _ => 0,
                }
            }
            Phase::Asking { .. } | Phase::Idle => 0,
        };
        Lapse { approvals, here }
    }
}
