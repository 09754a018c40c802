//! The person who sets an account up, at a terminal. Secrets are not shown while they are typed.

use std::io::{self, BufRead, IsTerminal, Read};
use std::thread;

use futures::StreamExt;
use futures::stream::BoxStream;
use talaria_machine::terminal::Curtain;
use talaria_machine::{Nudge, nudges};
use tokio::sync::oneshot;

use crate::commands;
use crate::exit::{Exit, Halt};

/// The longest answer that is read.
const LONGEST: u64 = 64 * 1024;

/// How often an answer is asked for that cannot be done without.
const TRIES: usize = 5;

/// Somebody who can be asked.
pub(super) struct Person {
    given_up: BoxStream<'static, ()>,
}

/// Whether an answer is seen while it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Echo {
    Shown,
    Hidden,
}

impl Person {
    /// Whoever sits at the terminal, if it is one.
    pub(super) fn at_terminal() -> Result<Option<Self>, Halt> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Ok(None);
        }
        // A terminal is left as it was found, so whoever wants us to end has to be heard.
        let given_up = nudges(&[Nudge::Interrupt, Nudge::Terminate]).map_err(Halt::failed)?;
        Ok(Some(Self { given_up }))
    }

    /// What is answered, without the space around it.
    pub(super) async fn ask(&mut self, question: &str, echo: Echo) -> Result<String, Halt> {
        let curtain = match echo {
            Echo::Shown => None,
            Echo::Hidden => Some(Curtain::draw().map_err(unreadable)?),
        };
        commands::write(format_args!("{question}: "))?;
        let (tell, told) = oneshot::channel();
        // On a thread, because it waits for keys and cannot be called off.
        let read = move || drop(tell.send(line()));
        thread::Builder::new().name("answer".into()).spawn(read).map_err(unreadable)?;
        let line = tokio::select! {
            line = told => line.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into())),
            _ = self.given_up.next() => Ok(None),
        };
        drop(curtain);
        match line.map_err(unreadable)? {
            Some(line) => Ok(line.trim().to_owned()),
            None => {
                say!("");
                Err(Halt::failed("given up; nothing was changed"))
            }
        }
    }

    /// An answer that cannot be empty.
    pub(super) async fn insist(&mut self, question: &str, echo: Echo) -> Result<String, Halt> {
        for _ in 0..TRIES {
            let answer = self.ask(question, echo).await?;
            if !answer.is_empty() {
                return Ok(answer);
            }
            say!("It does not work without.");
        }
        Err(Halt::new(Exit::Misused, "given up; nothing was changed"))
    }

    /// Whether the answer is yes. Nothing is no.
    pub(super) async fn agrees(&mut self, question: &str) -> Result<bool, Halt> {
        let answer = self.ask(&format!("{question} [y/N]"), Echo::Shown).await?;
        Ok(matches!(answer.to_lowercase().as_str(), "y" | "yes"))
    }
}

/// A line, or nothing at the end of all lines.
fn line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = io::stdin().lock().take(LONGEST).read_line(&mut line)?;
    Ok((read > 0).then_some(line))
}

fn unreadable(error: io::Error) -> Halt {
    Halt::failed(format_args!("the terminal cannot be read: {error}"))
}
