//! Whether something that was asked about may be done: who may say so, what counts as a yes, and what
//! people are shown of the outcome.

use talaria_model::{
    Aim, Answer, Approval, Approver, Consent, Content, Digest, EarlierYes, EntryBody, Giver, Grant,
    Lasting, OutboundId, Question, Sender, Unasked, Verdict,
};

use super::Step;
use super::question::{Says, picked, plainly};
use crate::Closed;
use crate::access::{Deed, Whose};
use crate::event::{Attest, Attested, Effect, Replacement};
use crate::rules::{Approvers, Asking};
use crate::session::{ApprovedHere, Phase, TurnInHand, Waiting};

/// How much may be approved for the rest of a conversation. The oldest goes first.
const MOST_APPROVED: usize = 64;

/// The longest reason that is passed on.
const LONGEST_REASON: usize = 500;

const NOT_THEIRS_TO_APPROVE: &str = "That is not yours to approve.";

const NOT_THEIRS_TO_DENY: &str = "That is not yours to deny.";

const TOO_EARLY: &str = "You said that before my question could be read, so it approves nothing. Read the question, \
                         then say it again or press its button.";

/// Why something is denied at once that nobody in a chat can approve.
const fn unapprovable(by: Approvers) -> &'static str {
    match by {
        Approvers::Admins => {
            "only an administrator may approve this, and none is in this chat; ask for it where one is"
        }
        Approvers::Requester | Approvers::Both => {
            "whoever came in with everybody, speaks in the name of a chat or is a program may not approve this, \
             and nobody else here may"
        }
    }
}

impl Step<'_> {
    /// What the open question is to approve.
    pub(super) fn asked_to_approve(&self) -> Option<Approval> {
        match &self.session.phase {
            Phase::Asking { question, .. } => question.approval.as_deref().cloned(),
            _ => None,
        }
    }

    /// The answer to an approval that needs no person, or for which there is none.
    pub(super) fn decided(&self, approval: &Approval) -> Option<Answer> {
        let approved = |consent| Answer::Approved { digest: approval.digest, consent };
        let denied = |reason: &str| Answer::Denied { reason: reason.to_owned() };
        match self.session.rules.approvals.asking {
            Asking::Refuses => Some(denied(Asking::REFUSAL)),
            Asking::Never => Some(approved(Consent::Once)),
            Asking::Asks if self.is_approved_here(approval) => Some(approved(Consent::Session)),
            Asking::Asks if matches!(approval.lasting, Lasting::Granted(_)) => {
                Some(approved(Consent::Always))
            }
            Asking::Asks if self.session.key.side.is_some() => {
                Some(denied("this is work in the background, and nobody is there to approve it"))
            }
            Asking::Asks if approval.approver == Approver::Absent => {
                Some(denied(unapprovable(self.session.rules.approvals.by)))
            }
            Asking::Asks => None,
        }
    }

    /// Says that something is not done because nobody there could approve it. What else is decided without a
    /// person needs none of theirs.
    pub(super) fn tell_unapprovable(&mut self, question: &Question, answer: &Answer) {
        let Some(approval) = &question.approval else { return };
        let why = unapprovable(self.session.rules.approvals.by);
        if *answer == (Answer::Denied { reason: why.to_owned() }) {
            self.notice(format!("⛔ `{}` is not done: {why}.", approval.tool));
        }
    }

    /// Whether it was approved for the rest of the conversation by somebody whose yes still counts.
    fn is_approved_here(&self, approval: &Approval) -> bool {
        let mut approved = self.session.approved.iter();
        approval.earlier == EarlierYes::Counts
            && approved.any(|here| here.digest == approval.digest)
    }

    /// Words to an approval. Only what can mean nothing else is a yes: everything that is no answer is a
    /// no, and the reason for it. What was said before anybody could read the question is about something
    /// else, unless it is a plain no.
    pub(super) fn judged_in_words(&mut self, said: Waiting) {
        let Phase::Asking { question, .. } = &self.session.phase else { return };
        let words = said.message.words();
        let text = words.trim();
        let picked = picked(question, text)
            .and_then(|choice| question.approval.as_ref()?.verdict(&choice.id));
        let (verdict, reason) = match (picked, plainly(text)) {
            (Some(verdict), _) => (verdict, String::new()),
            (None, Some(Says::Yes)) => (Verdict::Approve(Consent::Once), String::new()),
            (None, Some(Says::No)) => (Verdict::Deny, String::new()),
            (None, None) if said.message.aim == Aim::TooEarly => return self.wait(said),
            (None, None) => (Verdict::Deny, text.to_owned()),
        };
        self.judge_in_time(said, verdict, reason);
    }

    /// `/approve` and `/deny`, with what follows them.
    pub(super) fn judged_by_command(&mut self, said: Waiting, says: Says, rest: String) {
        let verdict = match (says, rest.to_ascii_lowercase().as_str()) {
            (Says::No, _) => Verdict::Deny,
            (Says::Yes, "" | "once") => Verdict::Approve(Consent::Once),
            (Says::Yes, "session") => Verdict::Approve(Consent::Session),
            (Says::Yes, "always") => Verdict::Approve(Consent::Always),
            (Says::Yes, _) => {
                let text = "Say `/approve`, `/approve session` or `/approve always`.";
                return self.reply(said, text);
            }
        };
        let reason = if says == Says::No { rest } else { String::new() };
        self.judge_in_time(said, verdict, reason);
    }

    /// Nobody approves what they cannot have read.
    fn judge_in_time(&mut self, said: Waiting, verdict: Verdict, reason: String) {
        match (verdict, said.message.aim) {
            (Verdict::Approve(_), Aim::TooEarly) => self.reply(said, TOO_EARLY),
            _ => self.judge(said, verdict, reason),
        }
    }

    /// Somebody decides. Whether it is theirs to decide is looked at here and nowhere else.
    pub(super) fn judge(&mut self, said: Waiting, verdict: Verdict, reason: String) {
        let Phase::Asking { hand, question, sent, .. } = &self.session.phase else {
            return self.reply(said, "No question is open.");
        };
        let Some(approval) = question.approval.as_deref().cloned() else { return };
        let (hand, question, sent) = (hand.clone(), question.clone(), sent.clone());
        let whose = if hand.from.is(&said.from) { Whose::Own } else { Whose::Anothers };
        let by = self.session.rules.approvals.by;
        let (deed, not_theirs) = match verdict {
            Verdict::Approve(_) => (Deed::Approve(whose, by), NOT_THEIRS_TO_APPROVE),
            Verdict::Deny => (Deed::Deny(whose, by), NOT_THEIRS_TO_DENY),
        };
        if !self.by.may(deed) {
            return self.reply(said, not_theirs);
        }
        let who = said.from.id.clone();
        let giver = Giver { id: who.clone(), roles: said.roles.clone() };
        let refuses = self.session.rules.approvals.asking == Asking::Refuses;
        let (answer, outcome) = match verdict {
            Verdict::Approve(_) if refuses => {
                let reason = Asking::REFUSAL.to_owned();
                (Answer::Denied { reason }, Attest::Forbidden(who))
            }
            Verdict::Approve(consent) => {
                match (consent, approval.lasting) {
                    (Consent::Once, _) => {}
                    (Consent::Session, _) => self.approve_here(&approval, giver.clone()),
                    (Consent::Always, Lasting::Possible(digest) | Lasting::Granted(digest)) => {
                        self.effects.push(Effect::Grant(Box::new(Grant {
                            digest,
                            tool: approval.tool.clone(),
                            account: hand.to.account.clone(),
                            sender: hand.from.id.clone(),
                            by: giver.clone(),
                            shown: question.text.clone(),
                            at: self.now,
                        })));
                    }
                    (Consent::Always, Lasting::Never) => {
                        let text = "This cannot be approved for good. `/approve` approves it once.";
                        return self.reply(said, text);
                    }
                }
                let answer = Answer::Approved { digest: approval.digest, consent };
                (answer, Attest::Approved(consent, who))
            }
            Verdict::Deny => {
                let reason = super::shortened(&reason, LONGEST_REASON);
                (Answer::Denied { reason }, Attest::Denied(who))
            }
        };
        self.close(said.seq, Closed::Handled);
        self.session.active = self.now;
        let by = said.from.clone();
        self.aside(said);
        self.conclude(&hand, &question, sent, outcome, Some(&by));
        self.resume(answer, Some(giver), Vec::new());
    }

    fn approve_here(&mut self, approval: &Approval, by: Giver) {
        let approved = &mut self.session.approved;
        let digest = approval.digest;
        approved.retain(|here| here.digest != digest || here.by.id != by.id);
        approved.drain(..(approved.len() + 1).saturating_sub(MOST_APPROVED));
        approved.push(ApprovedHere { digest, by });
    }

    /// Keeps a record of an approval.
    pub(super) fn attest(&mut self, hand: &TurnInHand, question: &Question, what: Attest) {
        let Some(approval) = question.approval.as_deref() else { return };
        self.attest_call(hand, approval.tool.clone(), approval.digest, what);
    }

    /// Puts on record what was done without asking anybody, for how long that was approved, or what was not.
    pub(super) fn attest_unasked(
        &mut self,
        unasked: Option<Box<Unasked>>,
        consent: Option<Consent>,
    ) {
        if let (Some(unasked), Some(hand)) = (unasked, self.session.hand().cloned()) {
            let Unasked { tool, digest } = *unasked;
            self.attest_call(&hand, tool, digest, Attest::Unasked(consent));
        }
    }

    fn attest_call(&mut self, hand: &TurnInHand, tool: String, digest: Digest, what: Attest) {
        let (requester, account) = (hand.from.id.clone(), hand.to.account.clone());
        let attested = Attested { what, requester, account, tool, digest };
        self.effects.push(Effect::Attest(Box::new(attested)));
    }

    /// Writes what became of an approval where it was asked for.
    pub(super) fn conclude(
        &mut self,
        hand: &TurnInHand,
        question: &Question,
        sent: Option<OutboundId>,
        outcome: Attest,
        by: Option<&Sender>,
    ) {
        let text = shown(&outcome, by);
        self.attest(hand, question, outcome);
        let Some(of) = sent.filter(|_| question.approval.is_some()) else { return };
        self.session.deliveries += 1;
        let (session, delivery) = (of.session.clone(), self.session.deliveries);
        let id = OutboundId { session, delivery, part: 0 };
        let silently = |text: String| Content {
            notify: talaria_model::Notify::Silently,
            ..Content::text(text)
        };
        self.effects.push(Effect::Replace(Box::new(Replacement {
            id: id.clone(),
            to: hand.to.clone(),
            of,
            whole: silently(format!("{}\n\n{text}", question.text)),
            otherwise: silently(text.clone()),
        })));
        self.record_in(
            None,
            EntryBody::Noticed { text, choices: Vec::new(), files: Vec::new(), sent: id },
        );
    }
}

/// What people are shown of an outcome.
fn shown(outcome: &Attest, by: Option<&Sender>) -> String {
    let by = by.map_or_else(|| "somebody".to_owned(), called);
    match outcome {
        Attest::Asked | Attest::Unasked(_) => String::new(),
        Attest::Approved(Consent::Once, _) => format!("✅ approved once by {by}"),
        Attest::Approved(Consent::Session, _) => {
            format!("✅ approved in this conversation by {by}")
        }
        Attest::Approved(Consent::Always, _) => format!("✅ approved for good by {by}"),
        Attest::Denied(_) => format!("⛔ denied by {by}"),
        Attest::Forbidden(_) => "⛔ not done: the operator does not allow it".to_owned(),
        Attest::Expired => "⌛ not done: nobody answered in time".to_owned(),
        Attest::Changed => "⛔ not done: it is not the same any more".to_owned(),
        Attest::Stopped => "⛔ not done: I was stopped before anybody answered".to_owned(),
    }
}

/// How a person is called, without anything that would be read as formatting.
fn called(sender: &Sender) -> String {
    let name = sender.name.as_deref().unwrap_or_default();
    let plain: String = name
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '.' | '\''))
        .collect();
    match super::shortened(&plain, 60) {
        nothing if nothing.is_empty() => format!("`{}`", sender.id.as_str().replace('`', "")),
        name => name,
    }
}
