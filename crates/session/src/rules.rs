//! What applies to a session: from the configuration, never from storage.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::tz::TimeZone;
use talaria_model::{SenderId, Timestamp};

use crate::command::{QuickCommand, Who};
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
    /// Who may give which command.
    pub tiers: Tiers,
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
            stop: AfterStop::default(),
            reset: ResetPolicy::default(),
            voice: Voice::default(),
            zone: TimeZone::UTC,
            model: None,
            verbosity: Verbosity::default(),
            footer: Footer::default(),
            tiers: Tiers::default(),
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

/// What `/stop` leaves behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AfterStop {
    /// The conversation goes on with the next message.
    Keep,
    /// The next message begins a new one.
    #[default]
    Wipe,
}

/// Who may give which command. Nobody is an administrator unless named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tiers {
    /// Who may give every command.
    pub admins: Admins,
    /// What everybody else may give as soon as an administrator is named, by name. `/help` and
    /// `/whoami` always.
    pub others: BTreeSet<String>,
}

/// Who may give every command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admins {
    /// Everybody who is heard: the account is its operator's own.
    Everyone,
    /// These. While there are none, nobody may give what only administrators may, and everybody may
    /// give the rest.
    Only(BTreeSet<SenderId>),
}

impl Default for Admins {
    fn default() -> Self {
        Self::Only(BTreeSet::new())
    }
}

/// Commands that tell people what they may do are everybody's.
const ALWAYS: [&str; 2] = ["help", "whoami"];

impl Tiers {
    /// Whether a sender may give every command.
    pub fn is_admin(&self, sender: &SenderId) -> bool {
        match &self.admins {
            Admins::Everyone => true,
            Admins::Only(named) => named.contains(sender),
        }
    }

    /// Whether a sender may give a command from the configuration. That says itself who may.
    pub fn may_run(&self, sender: &SenderId, quick: &QuickCommand) -> bool {
        quick.who == Who::Anyone || self.may(sender, &quick.name, quick.who)
    }

    /// Whether a sender may give the command of this name.
    pub fn may(&self, sender: &SenderId, name: &str, who: Who) -> bool {
        if self.is_admin(sender) {
            return true;
        }
        let gated = matches!(&self.admins, Admins::Only(named) if !named.is_empty());
        match who {
            Who::Admin => self.others.contains(name),
            Who::Anyone => !gated || ALWAYS.contains(&name) || self.others.contains(name),
        }
    }
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

    #[test]
    fn who_may_give_which_command() {
        let (alice, bob) = (SenderId::literal("alice"), SenderId::literal("bob"));
        let named = |others: &[&str]| Tiers {
            admins: Admins::Only(BTreeSet::from([alice.clone()])),
            others: others.iter().map(|&name| name.to_owned()).collect(),
        };
        let own = Tiers { admins: Admins::Everyone, ..Tiers::default() };
        for (tiers, sender, name, who, expected) in [
            (&own, &bob, "restart", Who::Admin, true),
            (&Tiers::default(), &bob, "restart", Who::Admin, false),
            (&Tiers::default(), &bob, "new", Who::Anyone, true),
            (&named(&[]), &alice, "restart", Who::Admin, true),
            (&named(&[]), &bob, "restart", Who::Admin, false),
            (&named(&[]), &bob, "new", Who::Anyone, false),
            (&named(&[]), &bob, "help", Who::Anyone, true),
            (&named(&[]), &bob, "whoami", Who::Anyone, true),
            (&named(&["new"]), &bob, "new", Who::Anyone, true),
            (&named(&["reload"]), &bob, "reload", Who::Admin, true),
        ] {
            assert_eq!(tiers.may(sender, name, who), expected, "{sender} {name} {tiers:?}");
        }
        let quick = |who| QuickCommand {
            name: "disk".into(),
            help: String::new(),
            who,
            does: crate::Quick::Run,
        };
        assert!(named(&[]).may_run(&bob, &quick(Who::Anyone)), "anybody is anybody");
        assert!(!named(&[]).may_run(&bob, &quick(Who::Admin)));
        assert!(named(&["disk"]).may_run(&bob, &quick(Who::Admin)));
        assert!(named(&[]).may_run(&alice, &quick(Who::Admin)));
    }
}
