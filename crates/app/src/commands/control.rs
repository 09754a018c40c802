//! `talaria reload` and `talaria stop`: what a running gateway is told.

use std::time::Duration;

use talaria_admin::api::Reloaded;
use talaria_clock::{Clock, SystemClock};

use super::print_json;
use crate::cli::Output;
use crate::client::{self, Client};
use crate::exit::{Exit, Halt};
use crate::home::Home;

/// How often it is looked whether the gateway has gone.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) async fn reload(home: &Home, output: Output) -> Result<Exit, Halt> {
    let reloaded: Reloaded = Client::need(home).await?.post("/v1/reload", &[]).await?;
    if output.json {
        print_json(&reloaded)?;
        return Ok(Exit::Done);
    }
    for warning in &reloaded.warnings {
        say!("warning: {warning}");
    }
    if reloaded.live.is_empty() && reloaded.after_restart.is_empty() {
        say!("Nothing has changed.");
    }
    for change in &reloaded.live {
        say!("{change}");
    }
    for change in &reloaded.after_restart {
        say!("{change} (after a restart)");
    }
    Ok(Exit::Done)
}

pub(crate) async fn stop(home: &Home) -> Result<Exit, Halt> {
    let running = Client::find(home).await?.ok_or_else(|| client::nobody(home))?;
    running.tell("/v1/stop").await?;
    say!("The gateway is ending. What is unfinished goes on at the next start.");
    while home.lock().is_err() {
        SystemClock.sleep(LOOK).await;
    }
    Ok(Exit::Done)
}
