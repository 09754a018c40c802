//! How a parcel moves: the one table of what may become of it. Every store keeps a `Progress` per
//! parcel and changes it by these verbs only.
//!
//! ```text
//!               final text            attempt               Delivered
//! Previewing ──────────────► Waiting ─────────► Leaving ──────────────► Delivered
//!      │                      ▲  ▲                 │  │
//!      │                      │  └─────────────────┘  ├───────────────► Undeliverable
//!      │ the turn ends        │  Again, Plain, Unsure │
//!      │ without it           └── the process died    └───────────────► Abandoned
//!      └───────────────────────────────────────────────────────────────► Delivered
//! ```
//!
//! From `Waiting` a parcel may also end directly: an echo proves that it arrived, or we give up.
//! Delivered, undeliverable and abandoned are final. A doubt never goes away by itself: only the
//! preview that raised it can clear it, by telling what became of it.

use talaria_model::{MessageId, Timestamp};

use crate::{Leave, ParcelState, Settlement};

/// How far a parcel is, with all that decides what may happen to it next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Where it is on its way.
    pub stage: Stage,
    /// Whether something of it may be visible that we do not know of.
    pub doubt: Doubt,
    /// How it is to be sent.
    pub form: Form,
    /// The message that shows it, or its preview.
    pub shown: Option<MessageId>,
    /// Attempts whose request may have left this machine.
    pub attempts: u32,
    /// Not to be sent before this.
    pub not_before: Option<Timestamp>,
    /// How many messages that showed it are not there any more.
    pub anew: u32,
}

/// Where a parcel is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its text is not there yet.
    Previewing,
    /// It has to leave.
    Waiting,
    /// It is leaving.
    Leaving,
    /// The platform has it, or it needs no delivery any more.
    Delivered,
    /// The platform will never take it.
    Undeliverable,
    /// We gave up on it.
    Abandoned,
}

/// Whether something of a parcel may be visible that we do not know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// No.
    None,
    /// Its preview is on its way and will be settled.
    Preview,
    /// Yes, and nobody will tell.
    Lasting,
}

/// How a parcel is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// With its formatting.
    Formatted,
    /// As plain text: the formatting was not accepted.
    Plain,
}

impl Progress {
    /// A parcel that was decided and had no preview.
    pub fn decided() -> Self {
        Self {
            stage: Stage::Waiting,
            doubt: Doubt::None,
            form: Form::Formatted,
            shown: None,
            attempts: 0,
            not_before: None,
            anew: 0,
        }
    }

    /// A preview that is about to be posted for the first time.
    pub fn previewed() -> Self {
        Self { stage: Stage::Previewing, doubt: Doubt::Preview, ..Self::decided() }
    }

    /// Whether it still has to be delivered.
    pub fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Leaving)
    }

    /// Whether nothing becomes of it any more.
    pub fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Delivered | Stage::Undeliverable | Stage::Abandoned)
    }

    /// As a parcel shows it. A doubt outweighs the form: a mark must not be lost, while formatting
    /// that is not accepted shows itself again.
    pub fn state(&self) -> ParcelState {
        match (self.stage, self.doubt, self.form) {
            (Stage::Previewing, ..) => ParcelState::Previewing,
            (Stage::Waiting, Doubt::None, Form::Formatted) => ParcelState::Ready,
            (Stage::Waiting, Doubt::None, Form::Plain) => ParcelState::Plain,
            (Stage::Waiting, ..) => ParcelState::Unsure,
            (Stage::Leaving, ..) => ParcelState::Attempting,
            (Stage::Delivered, ..) => ParcelState::Delivered,
            (Stage::Undeliverable, ..) => ParcelState::Undeliverable,
            (Stage::Abandoned, ..) => ParcelState::Abandoned,
        }
    }

    /// Another preview of it is about to be posted. If the one before was never settled, nobody
    /// will tell what became of it.
    pub fn preview_again(&mut self) {
        if self.stage == Stage::Previewing {
            self.doubt = match self.doubt {
                Doubt::None => Doubt::Preview,
                Doubt::Preview | Doubt::Lasting => Doubt::Lasting,
            };
        }
    }

    /// Its text is decided and replaces the preview.
    pub fn decide(&mut self) {
        if self.stage == Stage::Previewing {
            self.stage = Stage::Waiting;
        }
    }

    /// Its turn is over and said nothing under this delivery: what its preview shows, stays.
    pub fn end_preview(&mut self) {
        if self.stage == Stage::Previewing {
            self.stage = Stage::Delivered;
        }
    }

    /// It is about to leave. Saying so again without having settled leaves a doubt about the first.
    pub fn attempt(&mut self) -> Leave {
        match self.stage {
            Stage::Waiting => self.stage = Stage::Leaving,
            Stage::Leaving => self.doubt = Doubt::Lasting,
            _ => return Leave::Ended,
        }
        self.attempts += 1;
        Leave::Go
    }

    /// The process died: what was on its way is unsure.
    pub fn recover(&mut self) {
        match self.stage {
            Stage::Leaving => {
                self.stage = Stage::Waiting;
                self.doubt = Doubt::Lasting;
            }
            Stage::Previewing | Stage::Waiting if self.doubt == Doubt::Preview => {
                self.doubt = Doubt::Lasting;
            }
            _ => {}
        }
    }

    /// Says what became of it. A preview takes only what tells about a preview, because its text is
    /// still to come.
    pub fn settle(&mut self, settlement: &Settlement) {
        match (self.stage, settlement) {
            (Stage::Delivered | Stage::Undeliverable | Stage::Abandoned, _) => {}
            (_, Settlement::Previewed(shown)) => self.show(shown.clone()),
            (stage, Settlement::Vanished) => {
                self.shown = None;
                self.anew += 1;
                if stage == Stage::Leaving {
                    self.stage = Stage::Waiting;
                    self.attempts = self.attempts.saturating_sub(1);
                }
            }
            (Stage::Previewing, Settlement::Delivered(receipt)) => {
                self.show(receipt.message.clone());
            }
            (Stage::Previewing, Settlement::Unsure) => self.doubt = Doubt::Lasting,
            (Stage::Previewing, _) => {}
            (_, Settlement::Delivered(receipt)) => {
                self.stage = Stage::Delivered;
                self.shown = receipt.message.clone().or(self.shown.take());
            }
            (stage, Settlement::Again { at }) => {
                if stage == Stage::Leaving {
                    self.attempts = self.attempts.saturating_sub(1);
                }
                self.stage = Stage::Waiting;
                self.not_before = Some(*at);
            }
            (_, Settlement::Plain) => {
                self.stage = Stage::Waiting;
                self.form = Form::Plain;
            }
            (_, Settlement::Unsure) => {
                self.stage = Stage::Waiting;
                self.doubt = Doubt::Lasting;
            }
            (_, Settlement::Undeliverable { .. }) => self.stage = Stage::Undeliverable,
            (_, Settlement::Abandoned { .. }) => self.stage = Stage::Abandoned,
        }
    }

    fn show(&mut self, shown: Option<MessageId>) {
        self.shown = shown;
        if self.doubt == Doubt::Preview {
            self.doubt = Doubt::None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::Receipt;

    const STAGES: [Stage; 6] = [
        Stage::Previewing,
        Stage::Waiting,
        Stage::Leaving,
        Stage::Delivered,
        Stage::Undeliverable,
        Stage::Abandoned,
    ];

    fn settlements() -> [Settlement; 8] {
        let at = Timestamp::from_millis(5);
        [
            Settlement::Delivered(Receipt { message: None, at }),
            Settlement::Previewed(None),
            Settlement::Again { at },
            Settlement::Plain,
            Settlement::Unsure,
            Settlement::Undeliverable { reason: "gone".into() },
            Settlement::Abandoned { reason: "late".into() },
            Settlement::Vanished,
        ]
    }

    fn at(stage: Stage) -> Progress {
        let attempts = if stage == Stage::Leaving { 1 } else { 0 };
        Progress { stage, attempts, ..Progress::decided() }
    }

    #[test]
    fn no_settlement_leads_outside_the_table() {
        use Stage::{Abandoned, Delivered, Leaving, Previewing, Undeliverable, Waiting};
        let table = [
            (Previewing, [Previewing; 8]),
            (
                Waiting,
                [Delivered, Waiting, Waiting, Waiting, Waiting, Undeliverable, Abandoned, Waiting],
            ),
            (
                Leaving,
                [Delivered, Leaving, Waiting, Waiting, Waiting, Undeliverable, Abandoned, Waiting],
            ),
            (Delivered, [Delivered; 8]),
            (Undeliverable, [Undeliverable; 8]),
            (Abandoned, [Abandoned; 8]),
        ];
        for (from, row) in table {
            for (settlement, to) in settlements().iter().zip(row) {
                let mut progress = at(from);
                progress.settle(settlement);
                assert_eq!(progress.stage, to, "{from:?}, {settlement:?}");
            }
        }
    }

    #[test]
    fn no_verb_leads_outside_the_table() {
        use Stage::{Abandoned, Delivered, Leaving, Previewing, Undeliverable, Waiting};
        type Verb = fn(&mut Progress);
        let table: [(Verb, [Stage; 6]); 5] = [
            (Progress::preview_again, STAGES),
            (Progress::decide, [Waiting, Waiting, Leaving, Delivered, Undeliverable, Abandoned]),
            (
                Progress::end_preview,
                [Delivered, Waiting, Leaving, Delivered, Undeliverable, Abandoned],
            ),
            (
                |progress| _ = progress.attempt(),
                [Previewing, Leaving, Leaving, Delivered, Undeliverable, Abandoned],
            ),
            (
                Progress::recover,
                [Previewing, Waiting, Waiting, Delivered, Undeliverable, Abandoned],
            ),
        ];
        for (verb, row) in table {
            for (from, to) in STAGES.into_iter().zip(row) {
                let mut progress = at(from);
                verb(&mut progress);
                assert_eq!(progress.stage, to, "{from:?}");
            }
        }
    }

    #[test]
    fn what_is_final_does_not_change_in_any_way() {
        for stage in [Stage::Delivered, Stage::Undeliverable, Stage::Abandoned] {
            let before = at(stage);
            let mut progress = before.clone();
            settlements().iter().for_each(|settlement| progress.settle(settlement));
            assert_eq!(progress.attempt(), Leave::Ended);
            progress.preview_again();
            progress.decide();
            progress.end_preview();
            progress.recover();
            assert_eq!(progress, before);
        }
    }

    #[test]
    fn what_was_shown_and_is_gone_is_counted() {
        let mut progress = Progress::previewed();
        progress.settle(&Settlement::Previewed(None));
        assert_eq!(progress.anew, 0, "nobody knows whether anything is gone");
        for count in 1..=2 {
            progress.settle(&Settlement::Previewed(Some(MessageId::literal("m"))));
            progress.settle(&Settlement::Vanished);
            assert_eq!((progress.anew, &progress.shown), (count, &None));
        }
        progress.decide();
        assert_eq!(progress.anew, 2, "its text knows of it");
    }

    #[test]
    fn a_doubt_outlives_everything_but_the_word_of_its_preview() {
        let mut lasting = Progress { doubt: Doubt::Lasting, ..Progress::decided() };
        for settlement in &settlements()[1..5] {
            assert_eq!(lasting.attempt(), Leave::Go);
            lasting.settle(settlement);
            assert_eq!(lasting.doubt, Doubt::Lasting, "{settlement:?}");
        }
        let mut preview = Progress::previewed();
        preview.decide();
        assert_eq!(preview.state(), ParcelState::Unsure);
        preview.settle(&Settlement::Previewed(Some(MessageId::literal("m"))));
        assert_eq!(preview.state(), ParcelState::Ready);
        assert_eq!(preview.shown, Some(MessageId::literal("m")));
    }
}
