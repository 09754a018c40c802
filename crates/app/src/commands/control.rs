//! `talaria reload`, `stop` and `restart`: what a running gateway is told.

use std::time::Duration;

use talaria_admin::api::{ChangeEffect, ConfigPlan, PlannedChange, Problem, Reloaded, Status};
use talaria_clock::{Clock, SystemClock};
use talaria_machine::service;

use super::{print_json, table::table};
use crate::cli::Output;
use crate::client::{self, Client};
use crate::ending;
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::instance::marker::{self, Plan};
use crate::instance::{self, Kind, Record};

/// How often it is looked whether the gateway has gone.
const LOOK: Duration = Duration::from_millis(50);

/// How long it may take until it is known whether every account works with its new settings.
const LONGEST_RELOAD: Duration = Duration::from_secs(150);

/// How long a gateway that works takes at most to hear that it is to end.
const ANSWERS: Duration = Duration::from_secs(5);

/// How long a gateway may take to come back when it has gone.
const BACK: Duration = Duration::from_secs(60);

pub(crate) async fn reload(home: &Home, output: Output) -> Result<Exit, Halt> {
    let running = Client::need(home).await?.patient(LONGEST_RELOAD);
    let reloaded: Reloaded = running.post("/v1/reload", &[]).await?;
    // Whoever has to look at something is told so in either form.
    let is_well = reloaded.accounts.iter().all(|account| account.problem.is_none());
    let exit = if is_well { Exit::Done } else { Exit::Failed };
    if output.json {
        print_json(&reloaded)?;
        return Ok(exit);
    }
    for warning in &reloaded.warnings {
        say!("warning: {warning}");
    }
    if reloaded.is_nothing() {
        say!("Nothing has changed.");
    }
    for change in &reloaded.live {
        say!("{change}");
    }
    for account in &reloaded.accounts {
        say!("{account}");
    }
    for change in &reloaded.after_restart {
        say!("{change} (after a restart)");
    }
    Ok(exit)
}

pub(crate) async fn plan(home: &Home, output: Output) -> Result<Exit, Halt> {
    let planned = async { Client::need(home).await?.get("/v1/config/plan", &[]).await };
    let plan: ConfigPlan = match planned.await {
        Ok(plan) => plan,
        // Whoever reads JSON reads what is wrong in it, too.
        Err(halt) if output.json => {
            print_json(&Problem { problem: halt.explained() })?;
            return Ok(halt.exit);
        }
        Err(halt) => return Err(halt),
    };
    if output.json {
        print_json(&plan)?;
        return Ok(Exit::Done);
    }
    for warning in &plan.warnings {
        say!("warning: {warning}");
    }
    if plan.changes.is_empty() && plan.held_back.is_empty() {
        say!("Nothing is different from what runs.");
        return Ok(Exit::Done);
    }
    let rows: Vec<_> = plan
        .changes
        .iter()
        .map(|change| {
            let effect = match (change.effect, &change.account) {
                (ChangeEffect::Live, _) => "applies at once".to_owned(),
                (ChangeEffect::Account, Some(account)) => format!("connects {account} anew"),
                (ChangeEffect::Account, None) => "connects an account anew".to_owned(),
                (ChangeEffect::Restart, _) => "after a restart".to_owned(),
                (ChangeEffect::Waiting, _) => "waits for a restart".to_owned(),
            };
            vec![change.path.clone(), change.before.clone(), change.after.clone(), effect]
        })
        .collect();
    if !rows.is_empty() {
        super::write(format_args!(
            "{}",
            table(&["SETTING", "RUNS WITH", "BECOMES", "EFFECT"], &rows)
        ))?;
    }
    for account in &plan.held_back {
        say!("{account} runs with older settings and would be tried with these again.");
    }
    let is_read = |change: &PlannedChange| change.effect == ChangeEffect::Waiting;
    if !plan.changes.iter().all(is_read) || !plan.held_back.is_empty() {
        say!("`talaria config apply` applies what needs no restart.");
    }
    let needs_restart = |change: &PlannedChange| {
        matches!(change.effect, ChangeEffect::Restart | ChangeEffect::Waiting)
    };
    if plan.changes.iter().any(needs_restart) {
        say!("`talaria restart` applies all of it.");
    }
    Ok(Exit::Done)
}

pub(crate) async fn metrics(home: &Home) -> Result<Exit, Halt> {
    let page: String = Client::need(home).await?.get("/v1/metrics", &[]).await?;
    say!("{}", page.trim_end());
    Ok(Exit::Done)
}

pub(crate) async fn stop(home: &Home) -> Result<Exit, Halt> {
    let running = Record::live(home);
    let told = match Client::find(home).await? {
        Some(client) => client.patient(ANSWERS).tell("/v1/stop").await,
        None => Err(client::nobody(home)),
    };
    if let Err(halt) = told {
        // It does not listen, because it is just starting or hangs.
        let Some(Record { process, kind: Kind::TalariaGateway, .. }) = &running else {
            return Err(halt);
        };
        marker::leave(home, Plan::Stop, *process, SystemClock.now())
            .map_err(|error| Halt::failed(format_args!("cannot say what for: {error}")))?;
        instance::ask_to_end(home, *process).await?;
    }
    say!("The gateway is ending. What is unfinished goes on at the next start.");
    let longest = ending::longest_on(home);
    tokio::select! {
        gone = gone(home, running.as_ref()) => gone.map(|()| Exit::Done),
        () = SystemClock.sleep(longest) => Err(stuck(running.as_ref(), longest)),
    }
}

/// Completes when the gateway has gone.
async fn gone(home: &Home, running: Option<&Record>) -> Result<(), Halt> {
    loop {
        let is_there = match running {
            Some(Record { process, .. }) => process.is_alive(),
            None => Client::find(home).await?.is_some(),
        };
        if !is_there {
            return Ok(());
        }
        SystemClock.sleep(LOOK).await;
    }
}

fn stuck(running: Option<&Record>, after: Duration) -> Halt {
    let (who, end) = match running {
        // Killed behind the back of whoever keeps it, it would come back.
        Some(Record { process, service: true, .. }) => {
            (format!("the gateway (process {})", process.pid), service::STOPPED_BY.to_owned())
        }
        Some(Record { process, .. }) => {
            let pid = process.pid;
            (format!("the gateway (process {pid})"), format!("`kill -KILL {pid}` ends it"))
        }
        None => ("the gateway".to_owned(), "end its process".to_owned()),
    };
    let seconds = after.as_secs();
    Halt::failed(format_args!("{who} has been asked to end and has not after {seconds} s"))
        .hint(format_args!("{end}, and nothing is lost; `talaria logs` says what it waits for"))
}

pub(crate) async fn restart(home: &Home) -> Result<Exit, Halt> {
    let client = Client::need(home).await?;
    let before: Status = client.get("/v1/status", &[]).await?;
    client.tell("/v1/restart").await?;
    say!("The gateway is restarting. It finishes its answers first.");
    let mut answered = SystemClock.mark();
    loop {
        SystemClock.sleep(LOOK).await;
        // Between the two there is nobody to ask, and the old one may answer for a while.
        let Some(client) = Client::find(home).await? else {
            if SystemClock.mark().since(answered) > BACK {
                let problem = "the gateway has ended and has not come back";
                return Err(Halt::failed(problem).hint("its log says why; start it with `talaria`"));
            }
            continue;
        };
        answered = SystemClock.mark();
        match client.get::<Status>("/v1/status", &[]).await {
            Ok(status) if (status.pid, &status.started) != (before.pid, &before.started) => {
                say!("It is back: talaria {}, process {}.", status.version, status.pid);
                return Ok(Exit::Done);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_stops_a_service_that_hangs_is_sent_to_its_manager() {
        let told = |service| {
            let record = Record { service, ..Record::own(Kind::TalariaGateway) };
            stuck(Some(&record), Duration::from_secs(51)).explained()
        };
        let pid = std::process::id();
        assert!(told(false).contains(&format!("`kill -KILL {pid}`")), "{}", told(false));
        assert!(!told(true).contains("KILL"), "{}", told(true));
        assert!(told(true).contains(service::STOPPED_BY), "{}", told(true));
        assert!(told(true).contains(&format!("process {pid}")), "{}", told(true));
    }
}
