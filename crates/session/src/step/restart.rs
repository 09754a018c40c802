//! Time passes and processes end.

use talaria_model::{
    About, Answer, Because, Content, Cost, EarlierYes, EntryBody, Failure, Inbound, Seq, Usage,
    Used, Work,
};

use super::Step;
use crate::Closed;
use crate::event::{Attest, Effect, Ended, Farewell};
use crate::life::{During, Happening, ResumeReason};
use crate::rules::Asking;
use crate::session::{Answered, Phase};

/// A turn during which the process died this often is set aside.
const DEATHS_UNTIL_QUARANTINE: u8 = 3;

impl Step<'_> {
    pub(super) fn woke(&mut self) {
        self.expire_overdue();
        self.give_up_overdue();
        self.give_up_asking();
    }

    /// Gives up a turn that has had its time or of which nothing is heard any more.
    pub(super) fn give_up_overdue(&mut self) {
        let rules = self.session.rules.clone();
        let failure = match &self.session.phase {
            Phase::Thinking(hand) | Phase::Interrupting(hand) | Phase::Stopping(hand) => {
                if hand.deadline <= self.now {
                    Failure::TimedOut { minutes: rules.turn_limit.as_secs() / 60 }
                } else if hand.silent_at(rules.silence_limit).is_some_and(|at| at <= self.now) {
                    Failure::Silent { minutes: rules.silence_limit.as_secs() / 60 }
                } else {
                    return;
                }
            }
            Phase::Idle | Phase::Asking { .. } => return,
        };
        self.abandon(failure);
    }

    /// Leaves a turn that answers somebody to the next process. One that was told to stop has nothing to
    /// go on with, and one that asks goes on waiting.
    pub(super) fn leaving(&mut self, reason: ResumeReason, farewell: Farewell) {
        let Phase::Thinking(hand) = &mut self.session.phase else { return };
        hand.left = Some(reason);
        let turn = hand.turn.clone();
        if farewell == Farewell::Said && !std::mem::replace(&mut hand.excused, true) {
            self.about = Some(About::Left(turn));
            // It may be read only after the restart.
            self.murmur(match reason {
                ResumeReason::RestartTimeout => {
                    "🔄 I am restarting and have not finished this yet; I go on with it afterwards."
                }
                ResumeReason::ShutdownTimeout | ResumeReason::RestartInterrupted => {
                    "⏸️ I am being switched off and have not finished this yet; I go on with it when I \
                     am started again."
                }
            });
        }
    }

    pub(super) fn restarted(
        &mut self,
        ended: Ended,
        unheard: Option<&'static str>,
        yes: EarlierYes,
    ) {
        if let Some(why) = unheard {
            self.bar_turn(why);
        }
        self.look_at_yes(yes);
        let (now, rules) = (self.now, self.session.rules.clone());
        match &mut self.session.phase {
            Phase::Idle => self.start_next(None),
            Phase::Thinking(hand) => {
                let during = hand.during;
                let stale = !rules.freshness.is_zero()
                    && hand.silent_at(rules.freshness).is_some_and(|at| at < now);
                // The time during which nothing ran is not the turn's.
                hand.deadline = now + rules.turn_limit;
                hand.heard = now;
                hand.resumed = Some(now);
                hand.work = if hand.task.is_answer() { Work::Plain } else { Work::Compression };
                let left = hand.left.take();
                hand.deaths += u8::from(ended == Ended::Abruptly && left.is_none());
                if hand.deaths >= DEATHS_UNTIL_QUARANTINE {
                    self.quarantine();
                } else if stale {
                    let reason = left.unwrap_or(match ended {
                        Ended::Cleanly => ResumeReason::ShutdownTimeout,
                        Ended::Abruptly => ResumeReason::RestartInterrupted,
                    });
                    self.cut_off(reason, during);
                } else {
                    self.go_on();
                }
            }
            Phase::Asking { hand, .. } => {
                hand.heard = now;
                self.go_on();
                self.woke();
            }
            Phase::Interrupting(_) => {
                let Used { usage, cost } = self.unaccounted();
                self.interrupted("", usage, cost);
            }
            Phase::Stopping(_) => {
                let Used { usage, cost } = self.unaccounted();
                self.fail(Failure::Stopped, "", usage, cost);
            }
        }
        self.ask_again();
    }

    /// Ends a turn that has not begun in this process, because who asked for it is not heard any more. Nobody
    /// is told: whoever is not heard is not answered either.
    fn bar_turn(&mut self, why: &'static str) {
        let hand = match std::mem::replace(&mut self.session.phase, Phase::Idle) {
            Phase::Idle => return,
            Phase::Asking { hand, question, .. } => {
                self.attest(&hand, &question, Attest::Stopped);
                hand
            }
            Phase::Thinking(hand) | Phase::Interrupting(hand) | Phase::Stopping(hand) => hand,
        };
        let steers = hand.steers.iter().map(|said| said.seq);
        for seq in hand.seqs.into_iter().chain(steers) {
            self.close(seq, Closed::Denied(why));
        }
        self.report_over();
    }

    /// A yes that came to no use before the restart counts only if it could be given at this moment. The agent
    /// asks again otherwise, and what is decided then is decided by what applies then.
    fn look_at_yes(&mut self, yes: EarlierYes) {
        let asks = self.session.rules.approvals.asking == Asking::Asks;
        let Some(hand) = self.hand_mut() else { return };
        let is_yes = |answered: &Answered| matches!(answered.answer, Answer::Approved { .. });
        let counts =
            |answered: &Answered| asks && answered.by.is_some() && yes == EarlierYes::Counts;
        hand.answered.take_if(|answered| is_yes(answered) && !counts(answered));
    }

    /// A turn that was cut off too long ago does not go on by itself: the moment may have passed.
    fn cut_off(&mut self, reason: ResumeReason, during: During) {
        let text = "A restart cut me off while I was working on this, and that was a while ago. Write \
                    to me, and I go on.";
        if let Some(sent) = self.speak(Content::text(text)) {
            let text = text.to_owned();
            let (choices, files) = (Vec::new(), Vec::new());
            self.record(EntryBody::Noticed { text, choices, files, sent });
            self.because(Because::CutOff);
        }
        self.happened(Happening::Cut { reason, at: self.now, during });
        self.over();
    }

    /// Sets aside what we cannot deal with, and says so.
    pub(super) fn stumbled(&mut self, over: Option<(Seq, Inbound)>) {
        match over {
            Some((seq, inbound)) => {
                self.session.at = inbound.to;
                self.about = Some(About::Row(seq));
                self.close(seq, Closed::Quarantined("its session panicked three times over it"));
                self.notice(
                    "Something went wrong inside me over your last message; I have set it aside.",
                );
            }
            None => {
                let text = "Something went wrong inside me; the log has the details.";
                self.abandon(Failure::Model(text.into()));
            }
        }
    }

    fn quarantine(&mut self) {
        let Some(hand) = self.session.hand() else { return };
        for seq in hand.seqs.clone() {
            let closed = Closed::Quarantined("the process died three times during its turn");
            self.effects.push(Effect::Close { seq, closed });
        }
        self.happened(Happening::Stuck);
        let failure = Failure::Model(
            "I was interrupted three times while working on this and have set it aside.".into(),
        );
        self.fail(failure, "", Usage::default(), Cost::FREE);
    }
}
