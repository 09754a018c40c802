//! Questions that are open at the moment, and which session asks: somebody else in the same chat may have
//! to approve, whose own session knows nothing of it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use talaria_model::{Address, Aim, Choice, ChoiceId, Inbound, InboundKind, Question};
use talaria_session::{Phase, Scope, Session, SessionKey, is_answer};
use talaria_store::JournalState;

/// Those that are open, by where they were put.
#[derive(Default)]
pub(crate) struct OpenQuestions(Mutex<HashMap<Address, Vec<Open>>>);

/// Who asks, and what.
struct Open {
    key: SessionKey,
    asks: Asks,
}

/// What is asked, as far as others may answer it.
enum Asks {
    /// Whether something may be done, with what can be chosen.
    Approval(Vec<ChoiceId>),
    /// Something else. That is for the one who was asked.
    Anything,
}

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
            there.retain(|open| open.key != after.key);
            if there.is_empty() {
                open.remove(at);
            }
        }
        if let Some((question, at)) = is {
            let offered = |choice: &Choice| choice.id.clone();
            let asks = match question.approval {
                Some(_) => Asks::Approval(question.choices.iter().map(offered).collect()),
                None => Asks::Anything,
            };
            // One that is loaded again asks what it asked before.
            let there = open.entry(at.clone()).or_default();
            there.retain(|open| open.key != after.key);
            there.push(Open { key: after.key.clone(), asks });
        }
    }

    /// The session that asks to approve what somebody answers with a button or a command, if it asked in the same
    /// place. Whoever is asked something by their own session answers that with a command; and where several
    /// sessions ask, a command says nothing of which is meant, which is noted on it.
    pub(crate) fn answered_by(
        &self,
        inbound: &mut Inbound,
        scope: Scope,
        state: &JournalState,
    ) -> Option<SessionKey> {
        // What is not heard answers nothing.
        if *state != JournalState::Unread {
            return None;
        }
        let open = self.lock();
        let there = open.get(&inbound.to)?;
        if let InboundKind::Pressed(pressed) = &inbound.kind {
            let is_meant = |open: &&Open| match &open.asks {
                Asks::Approval(choices) => choices.iter().any(|choice| choice.is_named(pressed)),
                Asks::Anything => false,
            };
            return there.iter().find(is_meant).map(|open| open.key.clone());
        }
        let own = SessionKey::of(inbound, scope);
        if !is_answer(inbound) || open.values().flatten().any(|open| open.key == own) {
            return None;
        }
        let mut approvals = there.iter().filter(|open| matches!(open.asks, Asks::Approval(_)));
        let one = approvals.next()?.key.clone();
        if approvals.next().is_none() {
            return Some(one);
        }
        if let InboundKind::Said(message) = &mut inbound.kind {
            message.aim = Aim::Unclear;
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, Vec<Open>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a session asks, and where.
fn asked(session: &Session) -> Option<(&Question, &Address)> {
    match &session.phase {
        Phase::Asking { question, hand, .. } => Some((question, &hand.to)),
        _ => None,
    }
}
