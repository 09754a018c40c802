//! `talaria approvals`: what was approved for good, and taking it back.

use talaria_admin::api;

use super::print_json;
use super::sessions::{Source, Wall};
use crate::cli::ApprovalsCommand;
use crate::exit::{Exit, Halt};
use crate::home::Home;

pub(crate) async fn approvals(home: &Home, command: ApprovalsCommand) -> Result<Exit, Halt> {
    let source = Source::find(home).await?;
    match command {
        ApprovalsCommand::List(output) => {
            let granted = source.approvals().await?;
            match output.json {
                true => print_json(&granted)?,
                false => print_granted(&granted, &Wall::of(home))?,
            }
        }
        ApprovalsCommand::Revoke { id, output } => {
            let revoked = source.revoke(id).await?;
            match output.json {
                true => print_json(&revoked)?,
                false => {
                    say!("Revoked. `{}` is asked about again.", revoked.tool);
                }
            }
        }
    }
    Ok(Exit::Done)
}

fn print_granted(granted: &[api::Granted], wall: &Wall) -> Result<(), Halt> {
    if granted.is_empty() {
        say!("Nothing was approved for good.");
        return Ok(());
    }
    for one in granted {
        let api::Granted { id, tool, account, sender, by, at, shown } = one;
        say!("{id}  {tool}, for {sender} on {account}, approved by {by} {}", wall.shows(at));
        for line in shown.lines().filter(|line| !line.is_empty()) {
            say!("    {}", talaria_render::visible(line));
        }
    }
    say!("\n`talaria approvals revoke ID` takes one back.");
    Ok(())
}
