//! `talaria run --replace`: ends the gateway that has the home, so that this process can have it.

use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use talaria_clock::{Clock, SystemClock};

use super::marker::{self, Plan};
use super::process::Process;
use super::{Kind, LOOK, Record};
use crate::exit::{Exit, Halt};
use crate::home::Home;

/// How long a process has to go that cannot refuse.
const KILLED: Duration = Duration::from_secs(5);

/// Ends the gateway that has the home, and returns when it has gone. It finishes its turns; if it has not
/// gone after `patience`, it is killed, which loses nothing either.
pub(crate) async fn take_over(home: &Home, patience: Duration) -> Result<(), Halt> {
    let Some(Record { process, kind, .. }) = Record::live(home) else {
        // Nobody, or nobody that can be seen from here: the lock decides.
        return Ok(());
    };
    if kind == Kind::TalariaChat {
        let problem = format!("process {} is a terminal chat and ends with it", process.pid);
        return Err(Halt::new(Exit::AlreadyRunning, problem).hint("end that chat first"));
    }
    marker::leave(home, Plan::Takeover, process, SystemClock.now())
        .map_err(|error| Halt::failed(format_args!("cannot say that it takes over: {error}")))?;
    tracing::info!(pid = process.pid, "taking the place of a gateway that runs");
    if tell(process, Signal::SIGTERM)? && !is_gone_after(process, patience).await {
        tracing::warn!(pid = process.pid, "it does not end in time and is killed");
        if tell(process, Signal::SIGKILL)? && !is_gone_after(process, KILLED).await {
            let problem = format!("process {} does not end", process.pid);
            return Err(Halt::new(Exit::AlreadyRunning, problem));
        }
    }
    Ok(())
}

/// Sends a signal. Says whether there was somebody to send it to.
pub(crate) fn tell(process: Process, signal: Signal) -> Result<bool, Halt> {
    if !process.is_alive() {
        return Ok(false);
    }
    match kill(process.raw(), signal) {
        Ok(()) => Ok(true),
        Err(Errno::ESRCH) => Ok(false),
        Err(error) => {
            Err(Halt::failed(format_args!("cannot end process {}: {error}", process.pid)))
        }
    }
}

async fn is_gone_after(process: Process, patience: Duration) -> bool {
    let gone = async {
        while process.is_alive() {
            SystemClock.sleep(LOOK).await;
        }
    };
    tokio::select! {
        () = gone => true,
        () = SystemClock.sleep(patience) => false,
    }
}
