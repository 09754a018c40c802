//! Approvals that are asked for at the moment, and which session asks: somebody else in the same chat
//! may have to answer, whose own session knows nothing of it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use talaria_model::{Address, Choice, ChoiceId, Inbound, InboundKind, Question};
use talaria_session::{Phase, Session, SessionKey};

/// Those that are open, by where they were put.
#[derive(Default)]
pub(crate) struct OpenQuestions(Mutex<HashMap<Address, Vec<Open>>>);

/// Who asks, and what can be chosen.
type Open = (SessionKey, Vec<ChoiceId>);

impl OpenQuestions {
    /// Follows a session from one state to the next.
    pub(crate) fn follow(&self, before: Option<&Session>, after: &Session) {
        let (was, is) = (before.and_then(asked), asked(after));
        if was == is {
            return;
        }
        let mut open = self.lock();
        if let Some((_, at)) = was
            && let Some(there) = open.get_mut(at)
        {
            there.retain(|(key, _)| *key != after.key);
            if there.is_empty() {
                open.remove(at);
            }
        }
        if let Some((question, at)) = is {
            let offered = |choice: &Choice| choice.id.clone();
            let choices = question.choices.iter().map(offered).collect();
            open.entry(at.clone()).or_default().push((after.key.clone(), choices));
        }
    }

    /// The session that asked what somebody answers with a button, if it asked in the same place.
    pub(crate) fn answered_by(&self, inbound: &Inbound) -> Option<SessionKey> {
        let InboundKind::Pressed(pressed) = &inbound.kind else { return None };
        let open = self.lock();
        let is_meant = |(_, choices): &&Open| choices.iter().any(|choice| choice.is_named(pressed));
        open.get(&inbound.to)?.iter().find(is_meant).map(|(key, _)| key.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, Vec<Open>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a session asks to be approved, and where.
fn asked(session: &Session) -> Option<(&Question, &Address)> {
    match &session.phase {
        Phase::Asking { question, hand, .. } if question.approval.is_some() => {
            Some((question, &hand.to))
        }
        _ => None,
    }
}
