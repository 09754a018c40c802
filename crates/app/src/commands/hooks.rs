//! `talaria hooks`: which hooks there are, and what one of them says.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use talaria_clock::SystemClock;
use talaria_hooks::{Hooks, Listed, OnFailure};

use super::{print_json, table::table};
use crate::cli::HooksCommand;
use crate::exit::{Exit, Halt};
use crate::home::Home;

#[derive(Serialize)]
struct Line {
    name: String,
    events: Vec<String>,
    decides: bool,
    timeout_ms: u64,
    on_failure: &'static str,
    program: String,
    description: String,
}

pub(crate) async fn hooks(home: &Home, command: HooksCommand) -> Result<Exit, Halt> {
    let hooks = Hooks::open(&home.hooks(), &crate::hooks::EVENTS, Arc::new(SystemClock));
    match command {
        HooksCommand::List(output) => {
            let lines: Vec<Line> = hooks.listed().into_iter().map(line).collect();
            let refused: Vec<Value> = hooks
                .refused()
                .iter()
                .map(|refused| json!({ "folder": refused.folder, "reason": refused.reason }))
                .collect();
            if output.json {
                print_json(&json!({ "hooks": lines, "refused": refused }))?;
            } else {
                print(&hooks, &lines, home)?;
            }
            Ok(if refused.is_empty() { Exit::Done } else { Exit::Failed })
        }
        HooksCommand::Test { name, event, context } => {
            let context: Value = serde_json::from_str(&context).map_err(|error| {
                Halt::new(Exit::Misused, format_args!("the context is no JSON: {error}"))
            })?;
            if let Some(refused) =
                hooks.refused().iter().find(|refused| refused.folder.ends_with(&name))
            {
                return Err(Halt::failed(format_args!("{name} is not used: {}", refused.reason)));
            }
            let tried = tokio::select! {
                tried = hooks.try_one(&name, &event, &context) => tried,
                never = hooks.work() => match never {},
            };
            let answer = tried
                .ok_or_else(|| {
                    Halt::new(Exit::Misused, format_args!("there is no hook called {name:?}"))
                        .hint("`talaria hooks list` tells which there are")
                })?
                .map_err(|error| Halt::failed(format_args!("{name}: {error}")))?;
            print_json(&answer)?;
            Ok(Exit::Done)
        }
    }
}

fn line(listed: Listed) -> Line {
    let Listed { name, manifest, program } = listed;
    Line {
        name,
        events: manifest.events,
        decides: manifest.decides,
        timeout_ms: u64::try_from(manifest.timeout.as_millis()).unwrap_or(u64::MAX),
        on_failure: match manifest.on_failure {
            OnFailure::Allow => "allow",
            OnFailure::Deny => "deny",
        },
        program: program.display().to_string(),
        description: manifest.description,
    }
}

fn print(hooks: &Hooks, lines: &[Line], home: &Home) -> Result<(), Halt> {
    if lines.is_empty() && hooks.refused().is_empty() {
        say!("There are no hooks in {}.", home.hooks().display());
        return Ok(());
    }
    let rows: Vec<_> = lines
        .iter()
        .map(|line| vec![line.name.clone(), line.events.join(" "), line.description.clone()])
        .collect();
    say!("{}", table(&["HOOK", "EVENTS", ""], &rows));
    for refused in hooks.refused() {
        say!("not used: {}: {}", refused.folder.display(), refused.reason);
    }
    Ok(())
}
