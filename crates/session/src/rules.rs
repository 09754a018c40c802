//! What applies to a session: from the configuration, never from storage.

use std::time::Duration;

use jiff::tz::TimeZone;
use talaria_model::Timestamp;

use crate::command::QuickCommand;
use crate::reset::ResetPolicy;
use crate::session::{Footer, Verbosity};
use crate::voice::Voice;

/// What applies to a session. The caller resolves platform, account and kind of chat into one of
/// these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// How long one turn may take, not counting the time it waits for a person.
    pub turn_limit: Duration,
    /// How long nothing may be heard of a turn before it is given up.
    pub silence_limit: Duration,
    /// How long a question stays open.
    pub question_limit: Duration,
    /// How long ago a turn may have been cut off by a restart to go on by itself. Zero is any time.
    pub freshness: Duration,
    /// How many messages a session holds before the rest wait in the journal.
    pub room: usize,
    /// How many of them may have been put there with `/queue`.
    pub queue: usize,
    /// How many turns may run beside the conversation.
    pub background: usize,
    /// What becomes of something said while a turn runs.
    pub busy: Busy,
    /// Whether that is acknowledged.
    pub acks: Acks,
    /// What becomes of a message that is changed after it was taken up.
    pub edits: Edits,
    /// What is asked about before it is done.
    pub approvals: Approvals,
    /// What `/stop` leaves behind.
    pub stop: AfterStop,
    /// When a conversation begins anew by itself.
    pub reset: ResetPolicy,
    /// What is said aloud, and what is shown of what was.
    pub voice: Voice,
    /// Whose day it is.
    pub zone: TimeZone,
    /// The model that answers where nobody has chosen another, by its name in the configuration.
    pub model: Option<String>,
    /// How much is told of what tools do, where nobody has chosen.
    pub verbosity: Verbosity,
    /// Whether an answer says what it cost, where nobody has chosen.
    pub footer: Footer,
    /// Commands from the configuration.
    pub quick: Vec<QuickCommand>,
}

impl Rules {
    /// A moment as the clocks of their zone show it, to the minute.
    pub fn local(&self, at: Timestamp) -> String {
        let instant = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or_default();
        instant.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            turn_limit: Duration::from_secs(30 * 60),
            silence_limit: Duration::from_secs(30 * 60),
            question_limit: Duration::from_secs(24 * 60 * 60),
            freshness: Duration::from_secs(60 * 60),
            room: 64,
            queue: 32,
            background: 4,
            busy: Busy::default(),
            acks: Acks::default(),
            edits: Edits::default(),
            approvals: Approvals::default(),
            stop: AfterStop::default(),
            reset: ResetPolicy::default(),
            voice: Voice::default(),
            zone: TimeZone::UTC,
            model: None,
            verbosity: Verbosity::default(),
            footer: Footer::default(),
            quick: Vec::new(),
        }
    }
}

/// What becomes of something said while a turn of the same person runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Busy {
    /// The turn ends and what was said is next.
    #[default]
    Interrupt,
    /// It waits for the turn to end.
    Queue,
    /// The turn is told at its next step.
    Steer,
}

/// Whether something said while a turn runs is acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Acks {
    /// At most once in thirty seconds.
    #[default]
    Sent,
    /// Never.
    Never,
}

/// What becomes of a message that is changed after it was taken up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Edits {
    /// Nothing: what is answered stays answered.
    #[default]
    Ignored,
    /// It is answered as if it were said anew.
    Answered,
}

/// What is asked about before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Approvals {
    /// What becomes of something that should be asked about.
    pub asking: Asking,
    /// How long such a question stays open. Nobody's answer is a no.
    pub limit: Duration,
    /// Whose yes counts.
    pub by: Approvers,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            asking: Asking::default(),
            limit: Duration::from_secs(5 * 60),
            by: Approvers::default(),
        }
    }
}

/// What becomes of something that should be asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Asking {
    /// A person is asked.
    #[default]
    Asks,
    /// It is done without a question.
    Never,
    /// It is not done.
    Refuses,
}

impl Asking {
    /// Why something is not done that the operator refuses.
    pub const REFUSAL: &str = "the operator does not let it be done";
}

/// Whose yes counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Approvers {
    /// That of the one in whose name it is done.
    #[default]
    Requester,
    /// That of an administrator.
    Admins,
    /// Either.
    Both,
}

/// What `/stop` leaves behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AfterStop {
    /// The conversation goes on with the next message.
    Keep,
    /// The next message begins a new one.
    #[default]
    Wipe,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_as_the_clocks_of_the_zone_show_it() {
        let at = Timestamp::from_millis(1_794_700_000_000);
        assert_eq!(Rules::default().local(at), "2026-11-14 23:46");
        let zone = TimeZone::fixed(jiff::tz::offset(14));
        assert_eq!(Rules { zone, ..Rules::default() }.local(at), "2026-11-15 13:46");
    }
}
