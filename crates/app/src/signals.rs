//! The signals that a gateway heeds, and who sent them.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use talaria_admin::Operator;
use talaria_admin::guests::OPERATOR;
use talaria_clock::{Clock, Mark, SystemClock};
use talaria_gateway::Chores;
use talaria_machine::{Heard, Process, Wish, command_line};
use talaria_model::Timestamp;
use tokio::sync::Notify;

use crate::aside::aside;
use crate::desk::Desk;
use crate::ending::{Asked, Ending, Sender, Why};
use crate::exit::Halt;
use crate::home::Home;
use crate::instance::marker::{self, Plan};

/// How long it may take to read what somebody announced.
const READING: Duration = Duration::from_millis(500);

/// How long after a signal that asks for an end another one says the same once more. `timeout` signals its
/// program and then the group that it is in, as does whoever ends a whole terminal; nobody insists so fast.
const ECHO: Duration = Duration::from_millis(300);

/// The signals that arrive.
pub(crate) struct Signals {
    heard: talaria_machine::Signals,
    echoes: Echoes,
    /// Why somebody asks for an end, while that is being read.
    reading: Option<BoxFuture<'static, Why>>,
}

/// What a signal asks for.
enum Asks {
    End(Why),
    Reload,
    Restart,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Halt> {
        let listening = talaria_machine::Signals::listen();
        let heard = listening.map_err(|error| Halt::failed(format_args!("no signals: {error}")))?;
        Ok(Self { heard, echoes: Echoes::default(), reading: None })
    }

    /// Whether somebody has asked for an end whom nobody has heard yet.
    pub(crate) fn ask_for_an_end(&mut self) -> bool {
        let mut heard = std::iter::from_fn(|| self.heard.try_next());
        heard.any(|heard| matches!(heard.wish, Wish::End(_))) || self.reading.is_some()
    }

    /// Completes when a signal asks for an end, and says why.
    pub(crate) async fn end(&mut self, home: &Home) -> Why {
        loop {
            if let Asks::End(why) = self.next(home).await {
                return why;
            }
        }
    }

    /// What the next signal asks for. Nothing is lost when it is dropped before.
    async fn next(&mut self, home: &Home) -> Asks {
        loop {
            if let Some(reading) = &mut self.reading {
                let why = reading.await;
                self.reading = None;
                // What came meanwhile is heard from here on.
                self.echoes.counts(SystemClock.mark());
                return Asks::End(why);
            }
            let Heard { wish, sender } = self.heard.next().await;
            match wish {
                Wish::Reload => return Asks::Reload,
                Wish::Restart => return Asks::Restart,
                Wish::End(name) if self.echoes.has(SystemClock.mark()) => {
                    tracing::debug!(name, "the same signal once more");
                }
                Wish::End(name) => {
                    self.reading = Some(why(home.clone(), name, sender).boxed());
                }
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
            match self.next(home).await {
                Asks::Reload => reloads.notify_one(),
                Asks::Restart => restarts.notify_one(),
                Asks::End(why) => {
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

/// Tells a signal that insists from the echo of the one before.
#[derive(Debug, Default)]
struct Echoes {
    /// When a signal last counted.
    counted: Option<Mark>,
}

impl Echoes {
    /// A signal counts at this moment.
    fn counts(&mut self, now: Mark) {
        self.counted = Some(now);
    }

    /// Whether a signal that is heard at this moment is no more than an echo.
    fn has(&self, now: Mark) -> bool {
        self.counted.is_some_and(|counted| now.since(counted) < ECHO)
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

/// Why a signal was sent, as far as is known. On a disk that hangs nothing was announced.
async fn why(home: Home, name: &'static str, sender: Option<u32>) -> Why {
    let announced = tokio::select! {
        announced = aside(move || announced(&home, marker::consume)) => announced.flatten(),
        () = SystemClock.sleep(READING) => None,
    };
    announced.unwrap_or_else(|| {
        let sender = sender.map(|pid| Sender { pid, argv: command_line(pid) });
        Why::Signal { name, sender }
    })
}

/// What somebody announced before they asked for an end at the door.
pub(crate) fn announced_at_the_door(home: &Home) -> Option<Why> {
    announced(home, marker::find)
}

/// What somebody announced before they asked for an end.
fn announced(
    home: &Home,
    read: fn(&Home, Process, Timestamp) -> Option<(Plan, u32)>,
) -> Option<Why> {
    let (plan, by) = read(home, Process::own(), SystemClock.now())?;
    Some(match plan {
        Plan::Takeover => Why::Takeover { by },
        Plan::Stop => Why::Stop,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_insists_only_when_it_comes_noticeably_later_than_the_last_that_counted() {
        let first = SystemClock.mark();
        let at = |millis| first + Duration::from_millis(millis);
        let mut echoes = Echoes::default();
        assert!(!echoes.has(first), "nobody has said anything before");
        echoes.counts(first);
        for soon in [0, 1, 150, 299] {
            assert!(echoes.has(at(soon)), "{soon}");
        }
        assert!(!echoes.has(at(300)), "echoes do not put it off");
        echoes.counts(at(300));
        assert!(echoes.has(at(599)) && !echoes.has(at(600)));
    }
}
