//! The life of a conversation: whether what is said next goes on with it or begins another.

use serde::{Deserialize, Serialize};
use talaria_model::Timestamp;

use crate::reset::Expiry;

/// How it stands with this life of a conversation. Exactly one of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// A person has just begun it.
    Fresh,
    /// It goes on.
    #[default]
    Continuing,
    /// It began by itself in place of another.
    AutoReset {
        /// Why the other is over.
        reason: ResetReason,
        /// Whether anything was lost by it.
        past: Activity,
    },
    /// The next message begins another, whatever else holds.
    Suspended,
    /// A restart cut a turn off. The next message goes on with it, whatever the reset policy says.
    ResumePending {
        /// How the process had ended.
        reason: ResumeReason,
        /// When it was cut off.
        marked: Timestamp,
        /// What the turn was doing.
        during: During,
    },
    /// It is over and what belonged to it has been put away.
    Finalized,
}

/// Why a conversation began anew by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetReason {
    /// Nothing happened for long.
    Idle,
    /// A day is over.
    Daily,
    /// It was suspended.
    Suspended,
}

impl From<Expiry> for ResetReason {
    fn from(expiry: Expiry) -> Self {
        match expiry {
            Expiry::Idle => Self::Idle,
            Expiry::Daily => Self::Daily,
        }
    }
}

/// Whether anything has happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Nothing has.
    #[default]
    None,
    /// Something has.
    Some,
}

/// How the process ended that cut a turn off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumeReason {
    /// It was asked to, and the turn was not done in time.
    ShutdownTimeout,
    /// It was asked to start again, and the turn was not done in time.
    RestartTimeout,
    /// It died.
    RestartInterrupted,
}

/// What a turn was doing when it was cut off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum During {
    /// It was thinking or writing.
    #[default]
    Words,
    /// It had results of tools before it that it had not made use of.
    Results,
}

/// What can happen to a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// Something was said that needs a turn, and whether the policy says that the life is over.
    Spoken(Option<Expiry>),
    /// A turn gave its whole answer.
    Completed,
    /// A restart cut a turn off that does not go on by itself.
    Cut {
        /// How the process had ended.
        reason: ResumeReason,
        /// When the turn was cut off.
        at: Timestamp,
        /// What it was doing.
        during: During,
    },
    /// A stop that wipes.
    Wiped,
    /// The process died over it again and again.
    Stuck,
    /// A person began anew.
    Renewed,
    /// A person went back to another life, or on with a copy of this one.
    Switched,
    /// What belonged to it was put away, because the policy says that it is over.
    PutAway,
}

/// Whether it is still the same life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuity {
    /// The same.
    Same,
    /// Another one begins.
    Another,
}

impl Life {
    /// How it stands after something happened. The order of what decides: suspended, resume, policy.
    pub fn after(self, happening: Happening, past: Activity) -> (Self, Continuity) {
        use Continuity::{Another, Same};
        match (self, happening) {
            (Self::Suspended, Happening::Spoken(_)) => {
                (Self::AutoReset { reason: ResetReason::Suspended, past }, Another)
            }
            (pending @ Self::ResumePending { .. }, Happening::Spoken(_)) => (pending, Same),
            (_, Happening::Spoken(Some(expiry))) => {
                (Self::AutoReset { reason: expiry.into(), past }, Another)
            }
            (_, Happening::Spoken(None)) => (Self::Continuing, Same),

            (_, Happening::Renewed) => (Self::Fresh, Another),
            (_, Happening::Switched) => (Self::Continuing, Another),
            (_, Happening::Wiped | Happening::Stuck) => (Self::Suspended, Same),

            // A suspension ends with the next message and with nothing else.
            (Self::Suspended, _) => (Self::Suspended, Same),
            (_, Happening::Completed) => (Self::Continuing, Same),
            (_, Happening::Cut { reason, at, during }) => {
                (Self::ResumePending { reason, marked: at, during }, Same)
            }
            // What is to be resumed is not over.
            (pending @ Self::ResumePending { .. }, Happening::PutAway) => (pending, Same),
            (_, Happening::PutAway) => (Self::Finalized, Same),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Continuity::{Another, Same};

    #[test]
    fn every_state_answers_everything_that_can_happen() {
        let (reason, at, during) =
            (ResumeReason::RestartInterrupted, Timestamp::from_millis(7), During::Results);
        let pending = Life::ResumePending { reason, marked: at, during };
        let reset = |reason| Life::AutoReset { reason, past: Activity::Some };
        let lives = [
            Life::Fresh,
            Life::Continuing,
            reset(ResetReason::Idle),
            Life::Suspended,
            pending,
            Life::Finalized,
        ];
        let (goes_on, idle) = ((Life::Continuing, Same), (reset(ResetReason::Idle), Another));
        let daily = (reset(ResetReason::Daily), Another);
        let wiped = (reset(ResetReason::Suspended), Another);
        let (held, shut) = ((pending, Same), (Life::Suspended, Same));
        let (fresh, switched) = ((Life::Fresh, Another), (Life::Continuing, Another));
        let put_away = (Life::Finalized, Same);
        // One row for each thing that can happen, one column for each state, in the order of `lives`.
        let table = [
            (Happening::Spoken(None), [goes_on, goes_on, goes_on, wiped, held, goes_on]),
            (Happening::Spoken(Some(Expiry::Idle)), [idle, idle, idle, wiped, held, idle]),
            (Happening::Spoken(Some(Expiry::Daily)), [daily, daily, daily, wiped, held, daily]),
            (Happening::Completed, [goes_on, goes_on, goes_on, shut, goes_on, goes_on]),
            (Happening::Cut { reason, at, during }, [held, held, held, shut, held, held]),
            (Happening::Wiped, [shut; 6]),
            (Happening::Stuck, [shut; 6]),
            (Happening::Renewed, [fresh; 6]),
            (Happening::Switched, [switched; 6]),
            (Happening::PutAway, [put_away, put_away, put_away, shut, held, put_away]),
        ];
        for (happening, expected) in table {
            for (life, expected) in lives.into_iter().zip(expected) {
                let after = life.after(happening, Activity::Some);
                assert_eq!(after, expected, "{life:?} after {happening:?}");
            }
        }
    }

    #[test]
    fn a_life_that_begins_by_itself_remembers_whether_anything_was_lost() {
        let (life, _) =
            Life::Continuing.after(Happening::Spoken(Some(Expiry::Idle)), Activity::None);
        assert_eq!(life, Life::AutoReset { reason: ResetReason::Idle, past: Activity::None });
    }
}
