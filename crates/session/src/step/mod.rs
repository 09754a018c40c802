//! What a session does with each event: one flat match here, and its verbs beside it.
//!
//! - `say`: what is recorded and delivered
//! - `arrive`: what comes from the platform, and to which of the others it goes
//! - `words`: something said for the agent, alone or while a turn runs
//! - `turn`: how a turn begins, what its agent reports, how it ends
//! - `question`: what the agent asks and what people answer
//! - `approval`: whether something that was asked about may be done
//! - `obey`: commands
//! - `lives`: one life of the conversation gives way to another
//! - `asked`: what the gateway is asked for
//! - `aloud`: what was said aloud, and what is
//! - `restart`: time passes and processes end

mod aloud;
mod approval;
mod arrive;
mod asked;
mod lives;
mod obey;
mod progress;
mod question;
mod restart;
mod say;
mod turn;
mod words;

use talaria_model::{About, Seq, Timestamp, Used};

use crate::event::{Attest, Effect, Event, Passed};
use crate::life::{Activity, Happening};
use crate::session::{Phase, Session, TurnInHand};
use crate::{Authority, Closed, Continuity};

use say::{LONGEST_TITLE, shortened};

/// One event being taken in.
struct Step<'s> {
    session: &'s mut Session,
    now: Timestamp,
    effects: Vec<Effect>,
    /// How many that arrived before the event wait to be taken in.
    overtaken: usize,
    /// What the one may do who caused the event; nothing where nobody did.
    by: Authority,
    /// What the turn in hand has not said yet.
    unsaid: Unsaid,
    /// What the gateway says outside a turn is about this, where it is known.
    about: Option<About>,
}

/// What a turn in hand leaves behind that is not listened to any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unsaid {
    /// What it has written and not said yet, as far as people can read it.
    pub text: String,
    /// What it used and has not told yet, by an estimate; none where nobody knows.
    pub used: Option<Used>,
    /// Whether it has begun.
    pub begun: Begun,
}

/// Whether a turn in hand has begun in this process. One that waits for a place or its account has not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Begun {
    /// It has.
    #[default]
    Yes,
    /// It has not.
    No,
}

impl Session {
    /// Takes in one event and says what is to be done. The state it leaves and the effects it
    /// returns are made durable together.
    pub fn step(&mut self, event: Event, now: Timestamp) -> Vec<Effect> {
        self.step_amid(event, now, Unsaid::default())
    }

    /// The same, while the turn in hand has written or used something that it has not said yet.
    pub fn step_amid(&mut self, event: Event, now: Timestamp, unsaid: Unsaid) -> Vec<Effect> {
        self.updated = now;
        let by = Authority::none();
        let effects = Vec::new();
        let mut step = Step { session: self, now, effects, overtaken: 0, by, unsaid, about: None };
        step.take_in(event);
        step.effects
    }
}

impl Step<'_> {
    fn take_in(&mut self, event: Event) {
        if matches!(event, Event::Arrived { .. } | Event::Together { .. }) {
            // Whoever is to notice that it is over may be late: a machine can sleep, and its clock can be set.
            self.expire_overdue();
        }
        match event {
            Event::Arrived { seq, inbound, overtaken, by } => {
                (self.overtaken, self.by) = (overtaken, by);
                self.arrived(seq, inbound);
            }
            Event::Together { rows, by } => {
                self.by = by;
                self.arrived_together(rows);
            }
            Event::Barred { rows, why } => self.bar(&rows, why),
            Event::Unaffordable { rows, why } => self.unaffordable(rows, &why),
            Event::Agent { turn, event } => {
                // Late words from a turn that is over change nothing.
                if self.session.hand().is_some_and(|hand| hand.turn == turn) {
                    self.reported(event);
                }
            }
            Event::Told { seq, told } => self.told(seq, told),
            Event::Passed(Passed::Stop) => {
                if self.session.hand().is_some() {
                    self.stop();
                } else {
                    self.report_over();
                }
            }
            Event::Passed(Passed::Ask) => {
                if !self.session.is_restless() {
                    self.report_over();
                }
            }
            Event::Passed(Passed::SideOver(side)) => {
                self.session.background.retain(|beside| beside.side != side);
            }
            Event::PutAway => {
                if self.session.expired(self.now).is_some() {
                    self.happened(Happening::PutAway);
                }
            }
            Event::Sent(outbound) => self.sent(*outbound),
            Event::Lost { to, reason } => self.lost(&to, &reason),
            Event::Renamed { life, title } => {
                if self.session.id == life {
                    self.session.title = shortened(&title, LONGEST_TITLE);
                }
            }
            Event::Stumbled { over } => self.stumbled(over),
            Event::Woke => self.woke(),
            Event::Leaving { reason, farewell } => self.leaving(reason, farewell),
            Event::Restarted { ended, unheard, yes } => self.restarted(ended, unheard, yes),
        }
    }

    /// Something happened to this life of the conversation.
    fn happened(&mut self, happening: Happening) -> Continuity {
        let (life, continuity) = self.session.life.after(happening, self.activity());
        self.session.life = life;
        continuity
    }

    fn activity(&self) -> Activity {
        if self.session.turns > 0 { Activity::Some } else { Activity::None }
    }

    fn is_idle(&self) -> bool {
        matches!(self.session.phase, Phase::Idle)
    }

    fn close(&mut self, seq: Seq, closed: Closed) {
        self.effects.push(Effect::Close { seq, closed });
    }

    fn hand_mut(&mut self) -> Option<&mut TurnInHand> {
        self.session.phase.hand_mut()
    }

    /// Takes the turn in hand out of its phase. What it asks is not open any more.
    fn put_down(&mut self) -> Option<TurnInHand> {
        match std::mem::replace(&mut self.session.phase, Phase::Idle) {
            Phase::Idle => None,
            Phase::Asking { hand, question, sent, .. } => {
                self.conclude(&hand, &question, sent, Attest::Stopped, None);
                Some(hand)
            }
            Phase::Thinking(hand) | Phase::Interrupting(hand) | Phase::Stopping(hand) => Some(hand),
        }
    }
}
