//! The signals that a gateway heeds, and who sent them.

use std::io;
use std::sync::Arc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use talaria_admin::Operator;
use talaria_clock::{Clock, SystemClock};
use talaria_gateway::Chores;
use tokio::sync::{Notify, mpsc};

use crate::desk::Desk;
use crate::ending::{Asked, Ending, Sender, Why};
use crate::exit::Halt;
use crate::home::Home;
use crate::instance::marker::{self, Plan};
use crate::instance::process::{self, Process};

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// End. This is the signal's name.
    End(&'static str),
    /// Read the configuration again.
    Reload,
    /// End, and start again.
    Restart,
}

struct Heard {
    wish: Wish,
    sender: Option<u32>,
}

/// The signals that arrive. They are caught and not blocked: a program that is started inherits what is
/// blocked, and could not be ended.
pub(crate) struct Signals {
    heard: mpsc::UnboundedReceiver<Heard>,
    handle: Handle,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Halt> {
        Self::open().map_err(|error| Halt::failed(format_args!("no signals: {error}")))
    }

    fn open() -> io::Result<Self> {
        let mut signals = SignalsInfo::<WithOrigin>::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1])?;
        let handle = signals.handle();
        let (tell, heard) = mpsc::unbounded_channel();
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            for origin in signals.forever() {
                let wish = match origin.signal {
                    SIGINT => Wish::End("SIGINT"),
                    SIGTERM => Wish::End("SIGTERM"),
                    SIGHUP => Wish::Reload,
                    _ => Wish::Restart,
                };
                let sender = origin.process.and_then(|process| u32::try_from(process.pid).ok());
                // Zero is somebody who cannot be seen from here.
                let sender = sender.filter(|pid| *pid != 0);
                if tell.send(Heard { wish, sender }).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { heard, handle })
    }

    async fn next(&mut self) -> Heard {
        match self.heard.recv().await {
            Some(heard) => heard,
            None => std::future::pending().await,
        }
    }

    /// Whether somebody has asked for an end whom nobody has heard yet.
    pub(crate) fn ask_for_an_end(&mut self) -> bool {
        std::iter::from_fn(|| self.heard.try_recv().ok())
            .any(|heard| matches!(heard.wish, Wish::End(_)))
    }

    /// Completes when a signal asks for an end, and says why.
    pub(crate) async fn end(&mut self, home: &Home) -> Why {
        loop {
            if let Heard { wish: Wish::End(name), sender } = self.next().await {
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
            let Heard { wish, sender } = self.next().await;
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

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
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
    match desk.reload().await {
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
        let sender = sender.map(|pid| Sender { pid, argv: process::command_line(pid) });
        Why::Signal { name, sender }
    })
}

/// What a signal was announced as.
fn announced(home: &Home) -> Option<Why> {
    let (plan, by) = marker::consume(home, Process::own(), SystemClock.now())?;
    Some(match plan {
        Plan::Takeover => Why::Takeover { by },
        Plan::Stop => Why::Stop,
    })
}
