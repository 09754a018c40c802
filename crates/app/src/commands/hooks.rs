//! `talaria hooks`: which hooks there are, and what one of them says.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde::Serialize;
use serde_json::{Value, json};
use talaria_clock::SystemClock;
use talaria_hooks::{Hooks, Listed, OnFailure, Refused, Ruling, Way};
use talaria_machine::{Nudge, nudges};

use super::{print_json, table::table};
use crate::cli::{HooksCommand, Output};
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::plain::plain;

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
    let hooks = Hooks::open(&home.hooks(), crate::hooks::EVENTS, Arc::new(SystemClock));
    match command {
        HooksCommand::List(output) => {
            let lines: Vec<Line> = hooks.listed().into_iter().map(line).collect();
            let refused: Vec<Value> = hooks
                .refused()
                .iter()
                .map(|refused| {
                    let Refused { folder, reason, denies } = refused;
                    json!({ "folder": folder, "reason": reason, "denies": denies.named() })
                })
                .collect();
            if output.json {
                print_json(&json!({ "hooks": lines, "refused": refused }))?;
            } else {
                print(&hooks, &lines, home)?;
            }
            Ok(if refused.is_empty() { Exit::Done } else { Exit::Failed })
        }
        HooksCommand::Test { name, event, context, output } => {
            let context: Value = serde_json::from_str(&context).map_err(|error| {
                Halt::new(Exit::Misused, format_args!("the context is no JSON: {error}"))
            })?;
            test(&hooks, &name, &event, &context, output).await
        }
    }
}

/// What came of a test.
#[derive(Serialize)]
struct Tested<'a> {
    hook: &'a str,
    event: &'a str,
    /// Whether the gateway would let it hear of that.
    wanted: bool,
    /// Whether it is asked or only told.
    asked: bool,
    limit_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Lets a hook hear an event as the gateway would, and says what the gateway would make of its answer.
async fn test(
    hooks: &Hooks,
    name: &str,
    event: &str,
    context: &Value,
    output: Output,
) -> Result<Exit, Halt> {
    let is_it = |refused: &&Refused| refused.name() == name;
    if let Some(refused) = hooks.refused().iter().find(is_it) {
        return Err(Halt::failed(refused));
    }
    let unknown = || {
        Halt::new(Exit::Misused, format_args!("there is no hook called {name:?}"))
            .hint("`talaria hooks list` tells which there are")
    };
    let hook = hooks.listed().into_iter().find(|hook| hook.name == name).ok_or_else(unknown)?;
    let way = crate::hooks::way(&hook, event);
    let limit = hook.limit(way);
    if !output.json {
        if !hook.wants(event) {
            say!(
                "{name} does not name {} among its events, so it never hears of it.",
                plain(event)
            );
        }
        let time = humantime::format_duration(limit);
        match way {
            Way::Asked => say!("asked, with {time} to decide"),
            Way::Told => say!("told, with {time} to hear it; nobody waits for an answer"),
        }
    }
    // Whatever ends this ends the hook with all that it started: they are dropped here.
    let mut nudged =
        nudges(&[Nudge::Interrupt, Nudge::Terminate, Nudge::Hangup]).map_err(Halt::failed)?;
    let tried = tokio::select! {
        tried = hooks.try_one(name, event, context, way) => tried,
        never = hooks.work() => match never {},
        _ = nudged.next() => return Err(Halt::failed("interrupted, and the hook was ended")),
    };
    let answer = tried.ok_or_else(unknown)?;
    let ruling = match (way, &answer) {
        (Way::Asked, Ok(answer)) => Ruling::read(answer).map(Some),
        (Way::Told, Ok(_)) => Ok(None),
        (_, Err(error)) => Err(error.clone()),
    };
    let answer = answer.ok();
    let meaning = match (&ruling, way, hook.manifest.on_failure) {
        (Ok(ruling), ..) => {
            ruling.as_ref().map(|ruling| crate::hooks::meaning(event, context, ruling))
        }
        (Err(_), Way::Told, _) => None,
        (Err(_), Way::Asked, OnFailure::Allow) => {
            Some("by its on_failure, it goes on as if the hook were not there".to_owned())
        }
        (Err(_), Way::Asked, OnFailure::Deny) => Some("by its on_failure, it is denied".to_owned()),
    };
    let problem = ruling.as_ref().err().map(ToString::to_string);
    let exit = if problem.is_none() { Exit::Done } else { Exit::Failed };
    if output.json {
        print_json(&Tested {
            hook: name,
            event,
            wanted: hook.wants(event),
            asked: way == Way::Asked,
            limit_ms: millis(limit),
            answer,
            meaning,
            problem,
        })?;
        return Ok(exit);
    }
    if let Some(answer) = &answer {
        print_json(answer)?;
    }
    if let Some(problem) = &problem {
        say!("{name}: {}", plain(problem));
    }
    if let Some(meaning) = &meaning {
        say!("→ {}", plain(meaning));
    }
    Ok(exit)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn line(listed: Listed) -> Line {
    let Listed { name, manifest, program } = listed;
    Line {
        name,
        events: manifest.events,
        decides: manifest.decides,
        timeout_ms: millis(manifest.timeout),
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
        say!("{}", plain(&refused.to_string()));
    }
    Ok(())
}
