//! `talaria run --replace`: ends the gateway that has the home, so that this process can have it.

use std::io;
use std::time::Duration;

use talaria_clock::{Clock, SystemClock};
use talaria_machine::{Process, Told};

use super::marker::{self, Plan};
use super::{Kind, LOOK, Record};
use crate::client::Client;
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
    if ask_to_end(home, process).await? && !is_gone_after(process, patience).await {
        tracing::warn!(pid = process.pid, "it does not end in time and is killed");
        let killed = process.kill().map_err(|error| unended(process, &error))?;
        if killed == Told::Somebody && !is_gone_after(process, KILLED).await {
            let problem = format!("process {} does not end", process.pid);
            return Err(Halt::new(Exit::AlreadyRunning, problem));
        }
    }
    Ok(())
}

/// Asks a gateway to end. Says whether there was somebody to ask.
pub(crate) async fn ask_to_end(home: &Home, process: Process) -> Result<bool, Halt> {
    match process.ask_to_end().map_err(|error| unended(process, &error))? {
        Told::Somebody => Ok(true),
        Told::Nobody => Ok(false),
        Told::Unheard => {
            // It hears nothing but its door. One that does not answer there is only waited for.
            if let Some(client) = Client::find(home).await?
                && let Err(halt) = client.tell("/v1/stop").await
            {
                tracing::warn!(problem = halt.explained(), "it cannot be asked to end");
            }
            Ok(process.is_alive())
        }
    }
}

fn unended(process: Process, error: &io::Error) -> Halt {
    Halt::failed(format_args!("cannot end process {}: {error}", process.pid))
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
