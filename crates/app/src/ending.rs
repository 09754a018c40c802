//! That a gateway is to end: what for, and how hurried.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde::Serialize;
use talaria_config::Config;
use tokio_util::sync::CancellationToken;

use crate::home::Home;
use crate::start;

/// How long what was said gets to leave when the turns are done.
pub(crate) const FLUSH: Duration = Duration::from_secs(10);

/// How much longer than it was granted an end may take before nothing is waited for.
pub(crate) const STUCK: Duration = Duration::from_secs(10);

/// How much longer than that a process may take: hooks and collectors hear the last of it, and a disk may
/// be slow. A test adds up what each of them may take.
const SPARE: Duration = Duration::from_secs(30);

/// How long a process with this configuration may take to end. Whoever waits for longer waits in vain.
pub(crate) fn longest(config: &Config) -> Duration {
    Duration::from_secs(config.agent.restart_drain_timeout.into()) + FLUSH + STUCK + SPARE
}

/// The same for whatever runs on a home. A configuration that is wrong since is not the one that it runs with.
pub(crate) fn longest_on(home: &Home) -> Duration {
    let config = start::configuration(home).map(|loaded| loaded.config().clone());
    longest(&config.unwrap_or_default())
}

/// How a gateway ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It does not come back by itself.
    ForGood,
    /// It is started again.
    Again,
}

/// Why a gateway ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(crate) enum Why {
    /// A signal that nobody announced.
    Signal {
        /// Which.
        name: &'static str,
        /// Who sent it, where the operating system tells.
        #[serde(skip_serializing_if = "Option::is_none")]
        sender: Option<Sender>,
    },
    /// Somebody at this machine wants it to.
    Stop,
    /// Another process takes its place.
    Takeover {
        /// Which.
        by: u32,
    },
    /// Somebody wants it to start again.
    Restart,
    /// The terminal chat is over that it lives in.
    ChatOver,
}

/// Who sent a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Sender {
    pub(crate) pid: u32,
    /// The words it was started with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) argv: Option<Vec<String>>,
}

impl Why {
    /// In a few words.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Signal { name, sender: Some(sender) } => {
                format!("{name} from process {}", sender.pid)
            }
            Self::Signal { name, sender: None } => (*name).to_owned(),
            Self::Stop => "asked to stop".to_owned(),
            Self::Takeover { by } => format!("process {by} takes over"),
            Self::Restart => "asked to restart".to_owned(),
            Self::ChatOver => "its chat is over".to_owned(),
        }
    }

    /// The same with what somebody was started with as it may be told.
    pub(crate) fn told_with(self, redact: &dyn Fn(&str) -> String) -> Self {
        match self {
            Self::Signal { name, sender: Some(Sender { pid, argv }) } => {
                let argv = argv.map(|words| words.iter().map(|word| redact(word)).collect());
                Self::Signal { name, sender: Some(Sender { pid, argv }) }
            }
            other => other,
        }
    }

    /// Whether somebody wants it to be gone, and not only this process.
    pub(crate) fn is_planned(&self) -> bool {
        matches!(self, Self::Stop | Self::Takeover { .. })
    }

    fn is_signal(&self) -> bool {
        matches!(self, Self::Signal { .. })
    }
}

/// What became of being asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// It begins to end.
    First,
    /// It was ending already.
    Known,
    /// It was ending already and does not wait for anything any more.
    Hurried,
    /// It was in a hurry already: somebody wants it to be gone.
    Insisted,
}

/// How an end goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Everything is waited for that it should be.
    Calm,
    /// Nothing is waited for.
    Hurried,
    /// It took longer than it may, and was given up after so long.
    CutOff(Duration),
}

impl Pace {
    /// What there is to say about it, if anything.
    pub(crate) fn in_words(self) -> Option<String> {
        match self {
            Self::Calm => None,
            Self::Hurried => Some("ended at once".to_owned()),
            Self::CutOff(after) => Some(format!(
                "cut off after {} s, because it did not come to an end",
                after.as_secs()
            )),
        }
    }
}

/// The end of a gateway, from when it is asked for.
#[derive(Default)]
pub(crate) struct End {
    decided: Mutex<Option<(Ending, Why)>>,
    /// It was asked to end.
    pub(crate) asked: CancellationToken,
    /// It is not to wait for anything.
    pub(crate) hurried: CancellationToken,
    /// It was to be a restart, and then nobody is to go on.
    pub(crate) for_good: CancellationToken,
    cut_off: OnceLock<Duration>,
}

impl End {
    /// Asks for it. A second signal means that it takes too long; what was planned after a signal or
    /// a restart takes the place of that.
    pub(crate) fn ask(&self, ending: Ending, why: Why) -> Asked {
        let mut decided = self.decided();
        match &*decided {
            None => {
                *decided = Some((ending, why));
                drop(decided);
                self.asked.cancel();
                Asked::First
            }
            Some(_) if why.is_signal() => {
                if self.hurried.is_cancelled() {
                    return Asked::Insisted;
                }
                self.hurried.cancel();
                Asked::Hurried
            }
            Some(_) => {
                if ending == Ending::ForGood {
                    // Whoever takes over goes on where this one stops, as a restart does.
                    if !matches!(why, Why::Takeover { .. }) {
                        self.for_good.cancel();
                    }
                    *decided = Some((ending, why));
                }
                Asked::Known
            }
        }
    }

    /// It is given up after so long.
    pub(crate) fn cut_off(&self, after: Duration) {
        self.cut_off.get_or_init(|| after);
    }

    /// How it goes.
    pub(crate) fn pace(&self) -> Pace {
        match self.cut_off.get() {
            Some(after) => Pace::CutOff(*after),
            None if self.hurried.is_cancelled() => Pace::Hurried,
            None => Pace::Calm,
        }
    }

    /// How it ends and why, once that is known.
    pub(crate) fn decision(&self) -> Option<(Ending, Why)> {
        self.decided().clone()
    }

    fn decided(&self) -> MutexGuard<'_, Option<(Ending, Why)>> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{desk, hooks, logging};

    #[test]
    fn whoever_waits_for_an_end_waits_for_longer_than_all_of_it_may_take() {
        let config = Config::default();
        let drained =
            Duration::from_secs(config.agent.restart_drain_timeout.into()) + FLUSH + STUCK;
        let afterwards = [
            // The report.
            desk::LAST_WORDS,
            hooks::LAST_WORDS,
            talaria_telemetry::LAST_WORDS,
            // What goes on beside the gateway, and then what the disk is told.
            desk::LAST_WORDS,
            desk::LAST_WORDS,
            // The log, to be seen and to be kept.
            logging::LAST_WORDS,
            logging::LAST_WORDS,
            crate::LAST_WORDS,
        ];
        assert!(drained + afterwards.iter().sum::<Duration>() < longest(&config));
    }

    #[test]
    fn a_wrong_configuration_is_no_reason_not_to_end_what_runs() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let longest_with = |text: &str| {
            std::fs::write(folder.path().join("config.yaml"), text).unwrap();
            longest_on(&home)
        };
        assert_eq!(longest_with("agent: {max_steps: many}"), longest(&Config::default()));
        let longer = longest_with("agent: {restart_drain_timeout: 1000}");
        assert!(longer > Duration::from_secs(1000), "{longer:?}");
    }

    fn signal() -> Why {
        Why::Signal { name: "SIGTERM", sender: None }
    }

    #[test]
    fn one_signal_asks_two_hurry_and_three_insist() {
        let end = End::default();
        assert_eq!(end.ask(Ending::ForGood, signal()), Asked::First);
        assert!(end.asked.is_cancelled() && !end.hurried.is_cancelled());
        assert_eq!(end.ask(Ending::ForGood, signal()), Asked::Hurried);
        assert_eq!(end.pace(), Pace::Hurried);
        assert_eq!(end.ask(Ending::ForGood, signal()), Asked::Insisted);
        assert_eq!(end.decision(), Some((Ending::ForGood, signal())));
        assert!(!end.for_good.is_cancelled(), "it was to be that from the beginning");
    }

    #[test]
    fn an_end_that_is_cut_off_says_so_however_hurried_it_was() {
        let end = End::default();
        assert_eq!((end.pace(), end.pace().in_words()), (Pace::Calm, None));
        end.ask(Ending::ForGood, signal());
        end.ask(Ending::ForGood, signal());
        end.cut_off(Duration::from_secs(21));
        assert_eq!(end.pace(), Pace::CutOff(Duration::from_secs(21)));
        assert!(end.pace().in_words().is_some_and(|words| words.starts_with("cut off after 21 s")));
    }

    #[test]
    fn a_stop_during_a_restart_is_for_good() {
        let end = End::default();
        assert_eq!(end.ask(Ending::Again, Why::Restart), Asked::First);
        assert_eq!(end.ask(Ending::ForGood, Why::Stop), Asked::Known);
        assert!(end.for_good.is_cancelled());
        assert_eq!(end.decision(), Some((Ending::ForGood, Why::Stop)));
    }

    #[test]
    fn whoever_takes_over_during_a_restart_is_not_in_its_way() {
        let end = End::default();
        assert_eq!(end.ask(Ending::Again, Why::Restart), Asked::First);
        assert_eq!(end.ask(Ending::ForGood, Why::Takeover { by: 7 }), Asked::Known);
        assert!(!end.hurried.is_cancelled() && !end.for_good.is_cancelled());
        assert_eq!(end.decision(), Some((Ending::ForGood, Why::Takeover { by: 7 })));
        assert_eq!(end.ask(Ending::Again, Why::Restart), Asked::Known);
        assert_eq!(
            end.decision(),
            Some((Ending::ForGood, Why::Takeover { by: 7 })),
            "it has to go"
        );
    }
}
