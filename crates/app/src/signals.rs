//! The signals that a gateway heeds, and who sent them.

use std::sync::Arc;

use talaria_admin::Operator;
use talaria_admin::guests::OPERATOR;
use talaria_clock::{Clock, SystemClock};
use talaria_gateway::Chores;
use talaria_machine::{Heard, Process, Wish, command_line};
use tokio::sync::Notify;

use crate::desk::Desk;
use crate::ending::{Asked, Ending, Sender, Why};
use crate::exit::Halt;
use crate::home::Home;
use crate::instance::marker::{self, Plan};

/// The signals that arrive.
pub(crate) struct Signals(talaria_machine::Signals);

impl Signals {
    pub(crate) fn listen() -> Result<Self, Halt> {
        let listening = talaria_machine::Signals::listen();
        listening.map(Self).map_err(|error| Halt::failed(format_args!("no signals: {error}")))
    }

    /// Whether somebody has asked for an end whom nobody has heard yet.
    pub(crate) fn ask_for_an_end(&mut self) -> bool {
        std::iter::from_fn(|| self.0.try_next()).any(|heard| matches!(heard.wish, Wish::End(_)))
    }

    /// Completes when a signal asks for an end, and says why.
    pub(crate) async fn end(&mut self, home: &Home) -> Why {
        loop {
            if let Heard { wish: Wish::End(name), sender } = self.0.next().await {
                return why(home, name, sender);
            }
        }
    }

    /// Does what signals ask of a gateway. Completes when somebody insists that it is gone at once.
    pub(crate) async fn heed(&mut self, home: &Home, desk: Arc<Desk>, chores: &Chores) -> Halt {
        // It takes a while until it is known whether accounts work with new settings. Whoever wants an end
        // does not wait for that.
        let reloads = errand(chores, "reload for a signal", &desk, reload);
        let restarts = errand(chores, "restart for a signal", &desk, restart);
        loop {
            let Heard { wish, sender } = self.0.next().await;
            match wish {
                Wish::Reload => reloads.notify_one(),
                Wish::Restart => restarts.notify_one(),
                Wish::End(name) => {
                    let why = why(home, name, sender);
                    let words = why.in_words();
                    match desk.end(Ending::ForGood, why) {
                        Asked::First | Asked::Known => {
                            tracing::info!(why = words, "ending; once more ends it at once");
                        }
                        Asked::Hurried => tracing::info!(why = words, "ending at once"),
                        Asked::Insisted => return hurried(),
                    }
                }
            }
        }
    }
}

/// Does this whenever it is told to, and once more for everybody who told it meanwhile.
fn errand<Done>(
    chores: &Chores,
    name: &'static str,
    desk: &Arc<Desk>,
    errand: fn(Arc<Desk>) -> Done,
) -> Arc<Notify>
where
    Done: Future<Output = ()> + Send + 'static,
{
    let (told, desk) = (Arc::new(Notify::new()), desk.clone());
    let hears = told.clone();
    chores.begin(name, move || {
        let (hears, desk) = (hears.clone(), desk.clone());
        async move {
            loop {
                hears.notified().await;
                errand(desk.clone()).await;
            }
        }
    });
    told
}

async fn reload(desk: Arc<Desk>) {
    match desk.reload(OPERATOR).await {
        Ok(reloaded) => {
            tracing::info!(live = ?reloaded.live, accounts = ?reloaded.accounts, after_restart = ?reloaded.after_restart, "the configuration was read again");
        }
        Err(problem) => tracing::error!("the configuration stays as it was: {problem}"),
    }
}

async fn restart(desk: Arc<Desk>) {
    if let Err(problem) = Operator::restart(desk.as_ref()).await {
        tracing::error!("it does not restart: {problem}");
    }
}

/// How an end is explained that waited for nothing.
pub(crate) fn hurried() -> Halt {
    Halt::failed("ended at once; what was unfinished goes on at the next start")
}

/// Why a signal was sent, as far as is known.
fn why(home: &Home, name: &'static str, sender: Option<u32>) -> Why {
    announced(home).unwrap_or_else(|| {
        let sender = sender.map(|pid| Sender { pid, argv: command_line(pid) });
        Why::Signal { name, sender }
    })
}

/// What somebody announced before they asked for an end.
pub(crate) fn announced(home: &Home) -> Option<Why> {
    let (plan, by) = marker::consume(home, Process::own(), SystemClock.now())?;
    Some(match plan {
        Plan::Takeover => Why::Takeover { by },
        Plan::Stop => Why::Stop,
    })
}
