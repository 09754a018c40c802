//! Whether somebody has approved, or can, what a turn asks for: looked up when it is asked, and once more when
//! the answer is heard.

use talaria_model::{
    Address, Answer, Approval, Approver, CallId, ChatKind, Consent, Digest, EarlierYes, Giver,
    Lasting, RoleId, Sender, Word,
};
use talaria_session::{Approvers, Asking, Deed, Session, SessionKey, Start, Whose};

use super::InProgress;
use crate::shared::Shared;

/// What the model is told where whoever approved a call may not do so any more.
const NOT_ANY_MORE: &str = "whoever approved it may not approve it any more";

impl InProgress {
    /// What is known of an approval before anybody is asked for it.
    pub(super) async fn look_up(&self, approval: &mut Approval) {
        approval.earlier = match self.is_approved_here(&approval.digest).await {
            true => EarlierYes::Counts,
            false => EarlierYes::CountsNot,
        };
        approval.approver = self.approver();
        if let Lasting::Possible(digest) | Lasting::Granted(digest) = approval.lasting {
            approval.lasting = match self.is_granted(&digest).await {
                true => Lasting::Granted(digest),
                false => Lasting::Possible(digest),
            };
        }
    }

    /// A word as the agent is to hear it. A place to go on may have been waited for, and a yes counts only as long
    /// as whoever gave it may give it.
    pub(super) async fn of_this_moment(&self, word: Word) -> Word {
        match word {
            Word::Answer { to, answer: Answer::Approved { digest, consent }, files } => {
                let answer = match self.objection(&to, &digest, consent).await {
                    None => Answer::Approved { digest, consent },
                    Some(reason) => {
                        tracing::warn!(turn = %self.start.turn, "a yes does not count any more");
                        Answer::Denied { reason: reason.to_owned() }
                    }
                };
                Word::Answer { to, answer, files }
            }
            word => word,
        }
    }

    /// Why a yes that was given to a call does not count at this moment.
    async fn objection(
        &self,
        call: &CallId,
        digest: &Digest,
        consent: Consent,
    ) -> Option<&'static str> {
        match self.shared.rules_for(&self.lane.key).approvals.asking {
            Asking::Refuses => Some(Asking::REFUSAL),
            Asking::Asks | Asking::Never => {
                (!self.still_counts(call, digest, consent).await).then_some(NOT_ANY_MORE)
            }
        }
    }

    /// Whether a yes that was given to a call could be given at this moment. It is as durable as the question.
    async fn still_counts(&self, call: &CallId, digest: &Digest, consent: Consent) -> bool {
        let Some(session) = self.session().await else { return false };
        let answered = session.hand().and_then(|hand| hand.answered.as_deref());
        let Some(answered) = answered.filter(|answered| answered.question.call == *call) else {
            return false;
        };
        match (&answered.by, consent) {
            (Some(giver), Consent::Once | Consent::Session | Consent::Always) => {
                self.may_approve(giver)
            }
            // Nobody was asked, for the same reasons as before.
            (None, Consent::Once) => {
                let rules = self.shared.rules_for(&self.lane.key);
                rules.approvals.asking == Asking::Never
            }
            (None, Consent::Session) => self.is_approved_in(&session, digest),
            (None, Consent::Always) => {
                match answered.question.approval.as_ref().map(|approval| approval.lasting) {
                    Some(Lasting::Granted(digest)) => self.is_granted(&digest).await,
                    Some(Lasting::Possible(_) | Lasting::Never) | None => false,
                }
            }
        }
    }

    /// Whether whoever may approve what is asked for here can be here. Who is in a group nobody knows; in a direct
    /// chat it is the one who is answered, and nobody else, and by `requester` it is they wherever they are.
    fn approver(&self) -> Approver {
        let Start { from, to, roles, .. } = &self.start;
        let by = self.shared.rules_for(&self.lane.key).approvals.by;
        let is_theirs_alone = to.chat.kind == ChatKind::Dm || by == Approvers::Requester;
        // On an account that is taken out for a moment nobody may, until it is there again.
        let is_here = self.shared.accounts.get(&to.account).is_some();
        let they = Giver { id: from.id.clone(), roles: roles.clone() };
        match is_theirs_alone && is_here && !self.may_approve(&they) {
            true => Approver::Absent,
            false => Approver::MayBeThere,
        }
    }

    /// Whether something was approved for the rest of the conversation by somebody who may still approve it. What
    /// cannot be looked up was not.
    async fn is_approved_here(&self, digest: &Digest) -> bool {
        self.session().await.is_some_and(|session| self.is_approved_in(&session, digest))
    }

    fn is_approved_in(&self, session: &Session, digest: &Digest) -> bool {
        let mut approved = session.approved.iter();
        approved.any(|here| here.digest == *digest && self.may_approve(&here.by))
    }

    /// The conversation as it was last written down.
    async fn session(&self) -> Option<Session> {
        match self.shared.store.load(&self.lane.key).await {
            Ok(session) => session,
            Err(error) => {
                tracing::warn!(%error, "what was approved in a conversation cannot be read");
                None
            }
        }
    }

    /// The same for what was approved for good.
    async fn is_granted(&self, digest: &Digest) -> bool {
        match self.shared.store.granted(digest).await {
            Ok(grant) => grant.is_some_and(|grant| self.may_approve(&grant.by)),
            Err(error) => {
                tracing::warn!(%error, "what was approved for good cannot be read");
                false
            }
        }
    }

    /// Whether somebody's yes to what is asked for here counts at this moment.
    fn may_approve(&self, giver: &Giver) -> bool {
        let Start { from, to, roles, .. } = &self.start;
        may_approve(&self.shared, &self.lane.key, giver, (from, to, roles))
    }
}

/// Whether somebody's yes to what is asked for in a conversation counts at this moment, for the one who is
/// answered there.
pub(crate) fn may_approve(
    shared: &Shared,
    key: &SessionKey,
    giver: &Giver,
    (from, to, roles): (&Sender, &Address, &[RoleId]),
) -> bool {
    let other = Sender::new(giver.id.clone());
    let (whose, who, roles) = match giver.id == from.id {
        // What they said last tells best what they are.
        true => (Whose::Own, from, roles),
        false => (Whose::Anothers, &other, giver.roles.as_slice()),
    };
    let by = shared.rules_for(key).approvals.by;
    shared
        .accounts
        .get(&to.account)
        .is_some_and(|account| account.authority_in(who, to, roles).may(Deed::Approve(whose, by)))
}
