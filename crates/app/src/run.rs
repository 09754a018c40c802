//! `talaria run`: the gateway in the foreground.

use std::io::Write;
use std::sync::Arc;

use talaria_admin::Operator;
use talaria_clock::{Clock, SystemClock};
use talaria_model::Timestamp;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::discretion::Discretion;
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::start::{self, Desk, Ending, Running};
use crate::{again, logging, web_link};

/// Runs until a signal, `talaria stop` or `/restart` ends it.
pub(crate) async fn run(home: &Home, begun: Timestamp) -> Result<Exit, Halt> {
    home.prepare()?;
    let loaded = start::configuration(home)?;
    let discretion = Discretion::new();
    discretion.learn(&loaded);
    logging::start(&loaded.config().log, &discretion);
    for warning in start::warnings(&loaded) {
        tracing::warn!("{warning}");
    }
    let running = start::start(home, loaded, None, discretion).await?;
    // Before anybody is told that it is ready: who is told may ask it to end at once.
    let signals = Signals::listen()?;
    announce(home, &running, begun)?;
    let desk = running.desk.clone();
    let ending = tokio::select! {
        served = running.serve() => served?,
        halt = signals.heed(desk) => return Err(halt),
    };
    match ending {
        Ending::ForGood => Ok(Exit::Done),
        Ending::Again => again::start_again(),
    }
}

/// Says where to talk to it. Plain lines: this is read by people and by scripts.
fn announce(home: &Home, running: &Running, begun: Timestamp) -> Result<(), Halt> {
    let web = if running.desk.serves_web() {
        let link = web_link::fresh(home, running.http)?;
        format!(
            "\n  web chat   {link}\n             (works once, for ten minutes; `talaria open` prints another)"
        )
    } else {
        String::new()
    };
    let took = SystemClock.now().since(begun).as_millis();
    let text = format!(
        "talaria {} is ready after {took} ms\n{web}\n  \
         terminal   talaria chat\n  \
         model      {}\n  \
         home       {}\n\n\
         Ctrl-C ends it; what is unfinished goes on at the next start.\n",
        env!("CARGO_PKG_VERSION"),
        running.desk.model_and_why(),
        home.path().display(),
    );
    let mut out = std::io::stdout().lock();
    // A closed pipe is no reason not to run.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    Ok(())
}

/// The signals that a gateway heeds.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Halt> {
        let listen =
            |kind| signal(kind).map_err(|error| Halt::failed(format_args!("no signals: {error}")));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Ends the gateway on the first signal, and the process on the second.
    async fn heed(mut self, desk: Arc<Desk>) -> Halt {
        let mut asked = false;
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
                _ = self.hangup.recv() => {
                    match desk.reload().await {
                        Ok(reloaded) => tracing::info!(live = ?reloaded.live, after_restart = ?reloaded.after_restart, "the configuration was read again"),
                        Err(problem) => tracing::error!("the configuration stays as it was: {problem}"),
                    }
                    continue;
                }
            }
            if asked {
                return Halt::failed(
                    "ended at once; what was unfinished goes on at the next start",
                );
            }
            asked = true;
            tracing::info!("ending; once more ends it at once");
            desk.stop();
        }
    }
}
