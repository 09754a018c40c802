//! `talaria status`: how the gateway and its accounts are doing.

use std::time::Duration;

use talaria_admin::api::{Account, Loss, Problem, Status, WaitingChange};
use talaria_clock::{Clock, SystemClock};

use super::{print_json, print_json_line, table::table};
use crate::cli::{Output, StatusOptions};
use crate::client::{self, Client};
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::plain::plain;
use crate::state_file::LastSeen;

/// How often it is looked whether something has changed.
const LOOK: Duration = Duration::from_secs(1);

/// Begins a screen anew.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// How many losses are printed.
const LOSSES: usize = 10;

pub(crate) async fn status(home: &Home, options: StatusOptions) -> Result<Exit, Halt> {
    if options.watch {
        return watch(home, options.output).await;
    }
    let Some(client) = Client::find(home).await? else {
        let halt = gone(home);
        if !options.output.json {
            return Err(halt);
        }
        print_json(&Problem { problem: halt.explained() })?;
        return Ok(halt.exit);
    };
    let status: Status = client.get("/v1/status", &[]).await?;
    if options.output.json {
        print_json(&status)?
    } else {
        print(&status)?
    }
    Ok(Exit::Done)
}

/// Shows it again whenever it changes. For a script, that is one line of JSON each time.
async fn watch(home: &Home, output: Output) -> Result<Exit, Halt> {
    let mut shown = None;
    loop {
        let status = match Client::find(home).await? {
            Some(client) => client.get::<Status>("/v1/status", &[]).await,
            None => Err(gone(home)),
        };
        let seen = match &status {
            // The time that passes is no change to a script.
            Ok(status) if output.json => Ok(Status { uptime_seconds: 0, ..status.clone() }),
            Ok(status) => Ok(status.clone()),
            Err(halt) => Err(halt.explained()),
        };
        if shown.as_ref() != Some(&seen) {
            match (&status, output.json) {
                (Ok(status), true) => {
                    print_json_line(status)?;
                }
                (Ok(status), false) => {
                    super::write(format_args!("{CLEAR}\n"))?;
                    print(status)?;
                }
                (Err(halt), true) => {
                    let problem = Problem { problem: halt.explained() };
                    print_json_line(&problem)?;
                }
                (Err(halt), false) => {
                    super::write(format_args!("{CLEAR}"))?;
                    say!("{halt}");
                }
            }
            shown = Some(seen);
        }
        SystemClock.sleep(LOOK).await;
    }
}

/// Says that nobody runs, and what is known of whoever ran last.
fn gone(home: &Home) -> Halt {
    let start = "start one with `talaria`";
    client::nobody(home).hint(match LastSeen::read(home) {
        Some(last) => format!("{}; {start}", last.in_words()),
        None => start.to_owned(),
    })
}

fn print(status: &Status) -> Result<(), Halt> {
    say!(
        "talaria {} (process {}), {}, model {}, http://{}\n",
        plain(&status.version),
        status.pid,
        course(&status.state, status.uptime_seconds),
        plain(&status.model),
        plain(&status.http)
    );
    if let Some(voice) = &status.voice {
        say!("voice: {}\n", plain(voice));
    }
    if let Some(wrong) = &status.configuration {
        say!("The configuration is wrong, so an older one applies:");
        for line in wrong.lines() {
            say!("{}", plain(line));
        }
        say!("");
    }
    for hook in &status.refused_hooks {
        say!("hook {}\n", plain(&hook.problem));
    }
    if !status.waits_for_restart.is_empty() {
        say!("These settings wait for a restart (`talaria restart`):");
        for WaitingChange { path, running, configured } in &status.waits_for_restart {
            say!("{}", plain(&format!("  {path}: {running} → {configured}")));
        }
        say!("");
    }
    let rows: Vec<_> = status
        .accounts
        .iter()
        .map(|account| {
            vec![
                account.name.clone(),
                account.platform.clone(),
                account.state.clone(),
                remark(account),
            ]
        })
        .collect();
    say!("{}", table(&["ACCOUNT", "PLATFORM", "STATE", ""], &rows));
    let works = since("at work", "one", status.turn_since.as_deref());
    let placeless =
        since("waiting for a place", "the oldest", status.turns_waiting_since.as_deref());
    let waiting = since("behind a turn", "the oldest", status.waiting_since.as_deref());
    let rows = [
        ("conversations", status.sessions, "known"),
        ("", status.sessions_in_memory, "in memory"),
        ("entries", status.entries, "in all transcripts"),
        ("turns", status.turns_in_hand, "in hand"),
        ("", status.turns_working, &works),
        ("", status.turns_waiting, &placeless),
        ("messages", status.unread, "to read"),
        ("", status.waiting, &waiting),
        ("", status.undelivered, "to deliver"),
        ("", status.failed, "could not be delivered"),
        ("", status.quarantined, "set aside"),
        ("", status.denied, "not let in"),
        ("", status.denied_without_a_trace, "not let in since the start and not written down"),
    ];
    for (what, count, which) in rows {
        say!("{what:14} {count:>8} {which}");
    }
    print_strangers(&status.accounts)?;
    print_losses(&status.losses)
}

/// What the process does, and for how long it is there.
fn course(state: &str, seconds: u64) -> String {
    let long = duration(seconds);
    match state {
        "draining" => {
            format!("ending, started {long} ago: it finishes the turns that work and begins none")
        }
        "starting" => format!("starting for {long}"),
        "unwritable" => format!("running for {long}, and its store takes nothing in"),
        _ => format!("running for {long}"),
    }
}

/// What there is, and since when the oldest of it, where there is any.
fn since(what: &str, oldest: &str, since: Option<&str>) -> String {
    since.map_or_else(|| what.to_owned(), |at| format!("{what}, {oldest} since {}", plain(at)))
}

/// What is wrong with an account: that it is not heard, or that what is said there does not get through.
fn remark(account: &Account) -> String {
    let mute = account.mute.as_ref().map(|why| format!("nothing gets through: {why}"));
    let crashes = match account.crashes {
        0 => None,
        1 => Some("broke down once".to_owned()),
        many => Some(format!("broke down {many} times")),
    };
    let remarks: Vec<_> = [account.problem.clone(), mute, crashes].into_iter().flatten().collect();
    remarks.join("; ")
}

/// Whoever asks why nothing is answered finds their id here.
fn print_strangers(accounts: &[Account]) -> Result<(), Halt> {
    let rows: Vec<_> = accounts
        .iter()
        .filter(|account| account.denied_lately > 0 || account.stranger.is_some())
        .map(|account| {
            let (last, at) = match account.stranger.clone() {
                Some(stranger) => (stranger.id, stranger.at),
                None => ("nobody since the start".to_owned(), String::new()),
            };
            vec![account.name.clone(), account.denied_lately.to_string(), last, at]
        })
        .collect();
    if !rows.is_empty() {
        let strangers = table(&["NOT LET IN", "IN A DAY", "LAST SENDER", "AT"], &rows);
        say!("\n{}", strangers.trim_end());
        say!("`talaria setup PLATFORM --account NAME --allow ID --yes` lets somebody in.");
    }
    Ok(())
}

fn print_losses(losses: &[Loss]) -> Result<(), Halt> {
    let rows: Vec<_> = losses
        .iter()
        .take(LOSSES)
        .map(|loss| {
            let told = if loss.told { "yes" } else { "not yet" };
            let Loss { at, account, chat, reason, .. } = loss.clone();
            vec![at, account, chat, told.to_owned(), reason]
        })
        .collect();
    if !rows.is_empty() {
        let lost = table(&["NOT DELIVERED", "ACCOUNT", "CHAT", "TOLD", "WHY"], &rows);
        say!("\n{}", lost.trim_end());
    }
    if losses.len() > LOSSES {
        say!("`talaria status --json` lists more");
    }
    Ok(())
}

fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_that_ends_does_not_say_that_it_runs() {
        for (state, text) in [
            ("ready", "running for 27 s"),
            ("degraded", "running for 27 s"),
            ("starting", "starting for 27 s"),
            ("unwritable", "running for 27 s, and its store takes nothing in"),
            (
                "draining",
                "ending, started 27 s ago: it finishes the turns that work and begins none",
            ),
        ] {
            assert_eq!(course(state, 27), text);
        }
    }

    #[test]
    fn durations_are_read_at_a_glance() {
        for (seconds, text) in
            [(5, "5 s"), (125, "2 min"), (7_500, "2 h 5 min"), (200_000, "2 d 7 h")]
        {
            assert_eq!(duration(seconds), text);
        }
    }
}
