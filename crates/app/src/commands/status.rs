//! `talaria status`: how the gateway and its accounts are doing.

use talaria_admin::api::{Account, Loss, Status};

use super::{print_json, table::table};
use crate::cli::Output;
use crate::client::Client;
use crate::exit::{Exit, Halt};
use crate::home::Home;

/// How many losses are printed.
const LOSSES: usize = 10;

pub(crate) async fn status(home: &Home, output: Output) -> Result<Exit, Halt> {
    let status: Status = Client::need(home).await?.get("/v1/status", &[]).await?;
    if output.json {
        print_json(&status)?;
        return Ok(Exit::Done);
    }
    say!(
        "talaria {} (process {}), running for {}, model {}, http://{}\n",
        status.version,
        status.pid,
        duration(status.uptime_seconds),
        status.model,
        status.http
    );
    if let Some(voice) = &status.voice {
        say!("voice: {voice}\n");
    }
    let rows: Vec<_> = status
        .accounts
        .iter()
        .map(|account| {
            vec![
                account.name.clone(),
                account.platform.clone(),
                account.state.clone(),
                account.problem.clone().unwrap_or_default(),
            ]
        })
        .collect();
    say!("{}", table(&["ACCOUNT", "PLATFORM", "STATE", ""], &rows));
    let rows = [
        ("conversations", status.sessions, "known"),
        ("", status.sessions_in_memory, "in memory"),
        ("entries", status.entries, "in all transcripts"),
        ("turns", status.turns_in_hand, "in hand"),
        ("messages", status.unread, "to read"),
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
    print_losses(&status.losses)?;
    Ok(Exit::Done)
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
    fn durations_are_read_at_a_glance() {
        for (seconds, text) in
            [(5, "5 s"), (125, "2 min"), (7_500, "2 h 5 min"), (200_000, "2 d 7 h")]
        {
            assert_eq!(duration(seconds), text);
        }
    }
}
