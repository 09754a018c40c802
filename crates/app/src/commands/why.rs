//! `talaria why`: what became of a message, from the running gateway or, when none runs, from the store.

use talaria_admin::api::{Decision, HookDeed, Moment, Part, Why};
use talaria_admin::why::{self, Words};

use super::print_json;
use crate::cli::WhyOptions;
use crate::client::Client;
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::plain::plain;
use crate::start;

pub(crate) async fn why(home: &Home, options: WhyOptions) -> Result<Exit, Halt> {
    let WhyOptions { what, text, output } = options;
    let told: Why = match Client::find(home).await? {
        Some(client) => {
            client.get("/v1/why", &[("what", what), ("text", text.to_string())]).await?
        }
        None if !home.path().exists() => {
            return Err(Halt::failed(format_args!(
                "there is no home at {}",
                home.path().display()
            ))
            .hint("set TALARIA_HOME to the home that you mean"));
        }
        None => {
            home.prepare()?;
            let _lock = home.lock()?;
            let store = start::store(home)?;
            let words = if text { Words::Shown } else { Words::Hidden };
            why::why(store.as_ref(), None, &what, words).await.map_err(Halt::failed)?
        }
    };
    if output.json {
        print_json(&told)?;
        return Ok(Exit::Done);
    }
    for (place, decision) in told.decisions.iter().enumerate() {
        if place > 0 {
            say!("");
        }
        print(decision)?;
    }
    Ok(Exit::Done)
}

/// Prints a line in which others may have had a word.
macro_rules! tell {
    ($($words:tt)*) => {
        say!("{}", plain(&format!($($words)*)))
    };
}

fn print(decision: &Decision) -> Result<(), Halt> {
    let Decision { event, message, account, chat, thread, sender, kind, outcome, .. } = decision;
    let thread = thread.as_ref().map(|thread| format!(", thread {thread}")).unwrap_or_default();
    let message =
        message.as_ref().map(|message| format!("message {message}, ")).unwrap_or_default();
    tell!("{message}event {event}, {kind} by {sender} on {account}, chat {chat}{thread}");
    match &decision.reason {
        Some(reason) => tell!("  → {outcome}: {reason}"),
        None => tell!("  → {outcome}"),
    }
    if let Some(session) = &decision.session {
        tell!("    session {session}");
    }
    if !decision.behind.is_empty() {
        tell!("    waited behind turn {}", decision.behind.join(", "));
    }
    for Moment { at, after_ms, what } in &decision.timeline {
        tell!("    {at}  +{after_ms:>6} ms  {what}");
    }
    for HookDeed { hook, did, because } in &decision.hooks {
        match because {
            Some(why) => tell!("    hook {hook}: {did} to decide: {why}"),
            None => tell!("    hook {hook}: {did} it"),
        }
    }
    for tool in &decision.tools {
        let took = tool.took_ms.map(|took| format!(" after {took} ms")).unwrap_or_default();
        tell!("    tool {}: {}{took}", tool.tool, tool.outcome);
    }
    for Part { id, state, message, attempts, reason, took_ms, .. } in &decision.parts {
        let shown = message.as_ref().map(|id| format!(" as message {id}")).unwrap_or_default();
        let tries = if *attempts == 1 { String::new() } else { format!(", {attempts} attempts") };
        let reason = reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let took = took_ms.map(|took| format!(" after {took} ms")).unwrap_or_default();
        tell!("    part {id}: {state}{shown}{took}{tries}{reason}");
    }
    if let Some(text) = &decision.text {
        let by = decision.rewritten_by.as_ref();
        let by = by.map(|hook| format!(", as rewritten by {hook}")).unwrap_or_default();
        tell!("    «{text}»{by}");
    }
    Ok(())
}
