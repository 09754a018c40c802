//! How the program ends.

use std::fmt;
use std::process::ExitCode;

use crate::plain::plain_lines;

/// Every way to end, and the code a script sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked.
    Done,
    /// It could not.
    Failed,
    /// The command line or the configuration is wrong.
    Misused,
    /// A gateway cannot run like this, and starting it again would not help.
    Unmendable,
    /// The agent asked something, and nobody was there to answer.
    Asked,
    /// Another gateway runs on this home.
    AlreadyRunning,
    /// It was asked to start again, and whoever started it does that.
    Again,
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Misused => 2,
            Self::Asked => 3,
            Self::AlreadyRunning => 4,
            // EX_TEMPFAIL: with `Restart=on-failure`, systemd starts it again.
            Self::Again => 75,
            // EX_CONFIG: with `RestartPreventExitStatus=78`, systemd leaves it alone.
            Self::Unmendable => 78,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why the program ends before it did what it was asked, and what to do about it.
#[derive(Debug)]
pub(crate) struct Halt {
    pub(crate) exit: Exit,
    problem: String,
    hint: Option<String>,
}

impl Halt {
    pub(crate) fn new(exit: Exit, problem: impl fmt::Display) -> Self {
        Self { exit, problem: problem.to_string(), hint: None }
    }

    pub(crate) fn failed(problem: impl fmt::Display) -> Self {
        Self::new(Exit::Failed, problem)
    }

    /// The same for `talaria run`: whoever starts it again when it ends is told not to if that is of no use.
    pub(crate) fn of_a_gateway(self) -> Self {
        match self.exit {
            Exit::Misused => Self { exit: Exit::Unmendable, ..self },
            _ => self,
        }
    }

    /// The problem and what to do about it, for somebody who knows which program speaks.
    pub(crate) fn explained(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.problem),
            None => self.problem.clone(),
        }
    }

    pub(crate) fn hint(self, hint: impl fmt::Display) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Both may repeat what others said: the gateway, a platform, a file.
        write!(f, "talaria: {}", plain_lines(&self.problem))?;
        match &self.hint {
            Some(hint) => write!(f, "\n  → {}", plain_lines(hint)),
            None => Ok(()),
        }
    }
}

impl From<anyhow::Error> for Halt {
    fn from(error: anyhow::Error) -> Self {
        Self::failed(format!("{error:#}"))
    }
}
