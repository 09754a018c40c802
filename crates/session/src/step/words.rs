//! Something said for the agent, alone or while a turn runs.

use std::time::Duration;

use talaria_model::{About, Because, Sender, Seq, Steer, Task, Word, Work};

use super::Step;
use crate::Closed;
use crate::access::Whose;
use crate::command::{self, Command, DEEPEST_ALIAS, Meant, Parsed, Quick};
use crate::event::Effect;
use crate::life::Activity;
use crate::rules::{Acks, Busy};
use crate::session::{Joins, Paid, Phase, TurnInHand, Waiting};

/// How often it is acknowledged that something waits.
const ACK_EVERY: Duration = Duration::from_secs(30);

/// What the same person says so soon after a turn has begun is the rest of what began it.
const SAME_BREATH: Duration = Duration::from_secs(3);

impl Step<'_> {
    /// Something was typed: a command, or words.
    pub(super) fn heard(&mut self, said: Waiting) {
        self.understood(said, 0);
    }

    fn understood(&mut self, mut said: Waiting, depth: usize) {
        let rules = self.session.rules.clone();
        if let Some(text) = said.message.answered.take() {
            // Whoever may not give a command is not told what a hook makes of it either.
            if let Meant::Refused(name) = command::meant(&said.message, &rules.quick, &self.by) {
                return self.not_allowed(said, &name);
            }
            self.answer(said, text);
            return self.because(Because::Hook);
        }
        match command::parsed(&said.message, &rules.quick) {
            Parsed::Words => self.words(said),
            Parsed::Command { spec, arguments } => self.command(said, spec, arguments),
            Parsed::Quick { quick, .. } if !self.by.may_run(quick) => {
                self.not_allowed(said, &quick.name);
            }
            Parsed::Quick { quick, arguments } => match &quick.does {
                Quick::Run => self.run(said, quick),
                Quick::Alias(_) if depth >= DEEPEST_ALIAS => {
                    let name = quick.name.clone();
                    self.reply(said, format!("The alias `/{name}` leads back to itself."));
                }
                Quick::Alias(stands_for) => {
                    said.message.text = format!("{stands_for} {arguments}").trim_end().to_owned();
                    self.understood(said, depth + 1);
                }
            },
            Parsed::Unknown { name, near } => {
                let hint = match near.as_slice() {
                    [] => "`/help` lists what there is.".to_owned(),
                    near => {
                        let near: Vec<_> = near.iter().map(|name| format!("`/{name}`")).collect();
                        format!("Did you mean {}?", near.join(" or "))
                    }
                };
                self.reply(said, format!("There is no command `/{name}`. {hint}"));
                self.because(Because::NoSuchCommand);
            }
        }
    }

    /// A side session hears one thing, and that is what it is for.
    pub(super) fn begin_beside(&mut self, mut said: Waiting) {
        let rules = self.session.rules.clone();
        for _ in 0..=DEEPEST_ALIAS {
            match command::parsed(&said.message, &rules.quick) {
                Parsed::Command { spec, arguments } if spec.command == Command::Background => {
                    said.message.text = arguments;
                    break;
                }
                Parsed::Quick { quick, arguments } => match &quick.does {
                    Quick::Alias(stands_for) => {
                        said.message.text = format!("{stands_for} {arguments}");
                    }
                    Quick::Run => break,
                },
                _ => break,
            }
        }
        self.words(said);
    }

    /// Something for the agent.
    pub(super) fn words(&mut self, said: Waiting) {
        self.give_up_overdue();
        if let Phase::Idle = self.session.phase {
            let expiry = self.session.expired(self.now);
            self.session.active = self.now;
            self.session.waiting.push_back(said);
            return self.start_next(expiry);
        }
        self.session.active = self.now;
        match &self.session.phase {
            // What somebody passes on is not their own answer.
            Phase::Asking { hand, .. }
                if is_of(hand, &said) && said.message.forwarded.is_none() =>
            {
                self.answered_in_words(said);
            }
            Phase::Thinking(hand) if is_of(hand, &said) => {
                let may_be_cut = hand.work == Work::Plain && hand.task == Task::Answer;
                let is_rest = may_be_cut && self.is_same_breath(hand, &said);
                let has_words = !said.message.words().trim().is_empty();
                // Nobody overtakes what they said before and has to wait behind somebody else.
                let waits = self.session.waiting.iter().any(|before| before.from.is(&said.from));
                let mut behind =
                    self.session.waiting.iter().skip_while(|one| shares_turn(one, &said));
                let overtakes = behind
                    .any(|before| before.from.is(&said.from) && before.joins != Joins::Nothing);
                match self.session.rules.busy {
                    Busy::Interrupt if is_rest => {
                        self.interrupt(Waiting { joins: Joins::Breath, ..said });
                    }
                    Busy::Steer if hand.task == Task::Answer && !waits => self.steer(said),
                    Busy::Interrupt if may_be_cut && has_words && !overtakes => {
                        self.interrupt(said)
                    }
                    Busy::Interrupt | Busy::Queue | Busy::Steer => self.wait(said),
                }
            }
            Phase::Interrupting(hand) if is_of(hand, &said) => self.put_ahead(said),
            // A turn acts in the name of the one who asked. Somebody else's words wait for a turn of
            // their own.
            _ => self.wait(said),
        }
    }

    /// Whether something said is the rest of what began a turn, which has done nothing yet that stays:
    /// long texts arrive in pieces, and so do pictures with their caption.
    fn is_same_breath(&self, hand: &TurnInHand, said: &Waiting) -> bool {
        let waits = |one: &Waiting| one.joins != Joins::Nothing && one.from.is(&said.from);
        self.now.since(hand.began) < SAME_BREATH
            && hand.done == Activity::None
            && hand.steers.is_empty()
            && hand.to == said.to
            && said.joins == Joins::Burst
            && !self.session.waiting.iter().any(waits)
    }

    /// Tells the turn in hand, if it is this person's; else it is like anything said.
    pub(super) fn steer_or_say(&mut self, said: Waiting) {
        let steerable = match &self.session.phase {
            Phase::Thinking(hand) | Phase::Asking { hand, .. } => {
                is_of(hand, &said) && hand.task == Task::Answer
            }
            Phase::Idle | Phase::Interrupting(_) | Phase::Stopping(_) => false,
        };
        if !steerable {
            return self.words(said);
        }
        let (seq, from) = (said.seq, said.from.clone());
        self.pass_on(said);
        self.about = Some(About::Row(seq));
        // Who gives a command is told what came of it, however often.
        self.whisper(&from, "⏩ Passed on: I take that into account at my next step.");
    }

    fn steer(&mut self, said: Waiting) {
        let (seq, from) = (said.seq, said.from.clone());
        self.pass_on(said);
        self.acknowledge(seq, &from, "⏩ I will take that into account at my next step.");
    }

    fn pass_on(&mut self, said: Waiting) {
        self.effects.push(Effect::Take(said.seq));
        self.tell_steer(&said);
        if let Some(hand) = self.hand_mut() {
            hand.steers.push(Waiting { paid: Paid::Already, ..said });
        }
    }

    /// Tells the turn in hand what was said, as it will be recorded when the turn takes it up.
    pub(super) fn tell_steer(&mut self, said: &Waiting) {
        let (seq, from, message) = (said.seq, said.from.clone(), said.message.clone());
        let heard = self.as_read(&from, &message, &[]);
        let Some(turn) = self.session.hand().map(|hand| hand.turn.clone()) else { return };
        let word = Word::Steer(Box::new(Steer { seq, from, message, heard }));
        self.effects.push(Effect::Tell { turn, word });
    }

    fn interrupt(&mut self, said: Waiting) {
        let phase = std::mem::replace(&mut self.session.phase, Phase::Idle);
        if let Phase::Thinking(hand) = phase {
            self.effects.push(Effect::Tell { turn: hand.turn.clone(), word: Word::Stop });
            self.session.phase = Phase::Interrupting(hand);
        } else {
            self.session.phase = phase;
        }
        let (seq, from) = (said.seq, said.from.clone());
        self.put_ahead(said);
        self.acknowledge(seq, &from, "⚡ I leave off what I was doing and turn to this.");
    }

    /// What interrupts is next, behind what the same person has interrupted with already.
    fn put_ahead(&mut self, said: Waiting) {
        self.effects.push(Effect::Take(said.seq));
        let joined = self.session.waiting.iter().take_while(|other| shares_turn(other, &said));
        let place = joined.count();
        self.session.waiting.insert(place, said);
    }

    pub(super) fn wait(&mut self, said: Waiting) {
        self.effects.push(Effect::Take(said.seq));
        let (seq, from) = (said.seq, said.from.clone());
        self.session.waiting.push_back(said);
        let work = self.session.hand().map(|hand| hand.work);
        let text = match work {
            Some(Work::SubWork) => "⏳ Others are working for me; this is next.",
            Some(Work::Compression) => "⏳ I am summarising our conversation; this is next.",
            _ => "⏳ I will turn to this when I am done.",
        };
        self.acknowledge(seq, &from, text);
    }

    /// Says to whoever said it that something waits, now and then.
    fn acknowledge(&mut self, seq: Seq, from: &Sender, text: &str) {
        let (now, session) = (self.now, &*self.session);
        let recent = session.acked.is_some_and(|acked| now.since(acked) < ACK_EVERY);
        let young = session.hand().is_some_and(|hand| now.since(hand.began) < SAME_BREATH);
        if session.rules.acks == Acks::Sent && !recent && !young {
            self.session.acked = Some(now);
            self.about = Some(About::Row(seq));
            self.murmur_to(from, text);
            self.about = None;
        }
    }

    /// Somebody wants an end. Who may not stop others stops what is their own, and nobody's conversation is
    /// forgotten over it.
    pub(super) fn stop_for(&mut self, somebody: &Sender, seq: Seq) {
        if self.session.key.is_shared() && !self.by.may_stop(Whose::Anothers) {
            self.hush(somebody, seq);
            self.stop_own(somebody);
        } else {
            self.stop_all_before(seq);
        }
    }

    /// Nothing is taken up that somebody said before this row, also what no step has read yet.
    pub(super) fn hush(&mut self, somebody: &Sender, before: Seq) {
        let hushed = &mut self.session.hushed;
        hushed.retain(|(sender, _)| *sender != somebody.id);
        hushed.truncate(MOST_HUSHED - 1);
        hushed.insert(0, (somebody.id.clone(), before));
    }

    /// Whether somebody has stopped this before it was read.
    pub(super) fn is_hushed(&self, said: &Waiting) -> bool {
        let mut hushed = self.session.hushed.iter();
        hushed.any(|(sender, before)| *sender == said.from.id && said.seq < *before)
    }

    /// Stops what runs and drops what waits, also what no step has read yet.
    fn stop_all_before(&mut self, seq: Seq) {
        self.effects.push(Effect::DropUnread { before: seq, why: DROPPED });
        self.stop();
    }

    /// Nothing that waits is taken up any more; says how much that was.
    pub(super) fn drop_waiting(&mut self) -> usize {
        let dropped = self.drop_those(|_| true);
        self.forget_recalls(DROPPED);
        self.fall_silent();
        dropped
    }

    /// Nothing of what somebody said is taken up any more; says how much that was.
    pub(super) fn drop_waiting_of(&mut self, somebody: &Sender) -> usize {
        self.drop_those(|said| said.from.is(somebody))
    }

    fn drop_those(&mut self, theirs: impl Fn(&Waiting) -> bool) -> usize {
        let mut dropped = Vec::new();
        if let Some(hand) = self.hand_mut() {
            dropped.extend(hand.steers.extract_if(.., |said| theirs(said)));
        }
        let waiting = std::mem::take(&mut self.session.waiting);
        let (going, staying) = waiting.into_iter().partition::<Vec<_>, _>(|said| theirs(said));
        self.session.waiting = staying.into();
        dropped.extend(going);
        for said in &dropped {
            self.close(said.seq, Closed::Ignored(DROPPED));
        }
        dropped.len()
    }
}

/// How many people are remembered who have stopped their own.
const MOST_HUSHED: usize = 16;

/// As it is recorded beside what was not taken up because of a stop.
pub(super) const DROPPED: &str = "dropped by a stop";

/// Whether the turn is of the one who speaks.
pub(super) fn is_of(hand: &TurnInHand, said: &Waiting) -> bool {
    hand.from.is(&said.from)
}

/// Whether two things that were said become one turn.
pub(super) fn shares_turn(one: &Waiting, other: &Waiting) -> bool {
    let joins = one.joins != Joins::Nothing && other.joins != Joins::Nothing;
    joins && one.from.is(&other.from) && one.to == other.to
}
