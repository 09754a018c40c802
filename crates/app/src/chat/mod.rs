//! `talaria chat`: the terminal's end of the conversation.
//!
//! It talks to a gateway over its local socket and knows nothing of what is behind it: whether that
//! gateway runs in another process or in this one makes no difference here.

mod command;
mod follow;
mod growing;
mod lines;
mod live;
mod once;
mod paper;
mod prompt;
mod seen;
mod socket;
mod talk;
#[cfg(test)]
mod tests;
mod tty;

use std::future::Future;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::Args;
use futures::stream::BoxStream;
use talaria_clock::{Clock, SystemClock, rfc3339};
use talaria_machine::{Nudge, nudges};
use talaria_model::{EventId, Timestamp};
use talaria_platforms::terminal::wire::{LONGEST_NAME, LONGEST_TEXT, is_conversation_name};
use tokio::io::AsyncReadExt;

use crate::commands;
use crate::exit::Exit;
use paper::Display;
use socket::{Socket, size};
use tty::Quiet;

/// What `talaria chat` is asked for.
#[derive(Debug, Args)]
pub(crate) struct ChatOptions {
    /// Which conversation; a name that is new begins one
    #[arg(short, long, value_name = "NAME", default_value = "main", value_parser = named)]
    conversation: String,
    /// Begin a new conversation
    #[arg(short, long, conflicts_with = "conversation")]
    new: bool,
    /// What to say. The answer is printed, and nothing else. Without it, talk freely; or pipe
    /// something in
    #[arg(value_name = "MESSAGE")]
    message: Vec<String>,
}

/// Talks to the gateway behind `socket`: until the person leaves, or about the one message that was
/// given or piped in.
pub(crate) async fn chat(options: ChatOptions, socket: &Path) -> anyhow::Result<Exit> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let conversation = if options.new { made_up(clock.now()) } else { options.conversation };
    let history = socket.with_file_name("chat_history");
    let socket = Socket::of(socket, conversation.clone())?;
    if options.message.is_empty() && tty::is_interactive() {
        let interruptions = signals(&[Nudge::Interrupt])?;
        let hangups = signals(&[Nudge::Terminate, Nudge::Hangup])?;
        return talk::talk(socket, &conversation, &history, clock, interruptions, hangups).await;
    }
    let text =
        if options.message.is_empty() { piped_in().await? } else { options.message.join(" ") };
    let text = text.trim_end().to_owned();
    ensure!(!text.is_empty(), "there is nothing to say");
    ensure!(text.len() <= LONGEST_TEXT, "the message is longer than {}", size(LONGEST_TEXT as u64));
    let display = tty::display();
    // What is typed in the meantime is for the shell, and must not get between the live lines.
    let quiet = (display != Display::Plain && std::io::stdin().is_terminal())
        .then(Quiet::begin)
        .transpose()?;
    let interruptions = signals(&[Nudge::Interrupt, Nudge::Terminate, Nudge::Hangup])?;
    let remark = |text: &str| eprintln!("{text}");
    let mut unwritten = None;
    let write = |text: &str| {
        if let Err(halt) = commands::write(format_args!("{text}")) {
            unwritten.get_or_insert(halt);
        }
    };
    let ended = once::once(socket, text, display, clock, interruptions, write, remark).await?;
    drop(quiet);
    if let Some(halt) = unwritten {
        bail!(halt.explained());
    }
    for file in &ended.files {
        let name = talaria_render::visible(&file.name).replace('\n', " ");
        eprintln!("📎 {name} ({}) came along; /save it in `talaria chat`", size(file.size));
    }
    Ok(ended.exit)
}

fn named(name: &str) -> Result<String, String> {
    if is_conversation_name(name) {
        Ok(name.to_owned())
    } else {
        Err(format!("a name is made of up to {LONGEST_NAME} letters, digits, - and _"))
    }
}

/// All of standard input, as long as it can be a message.
async fn piped_in() -> anyhow::Result<String> {
    if std::io::stdin().is_terminal() {
        eprintln!("Reading what to say from the terminal; end it with Ctrl-D.");
    }
    let mut bytes = Vec::new();
    // One byte more than fits, to tell too much from just enough.
    let limit = LONGEST_TEXT as u64 + 1;
    tokio::io::stdin().take(limit).read_to_end(&mut bytes).await.context("no input")?;
    ensure!(bytes.len() <= LONGEST_TEXT, "the input is longer than {}", size(LONGEST_TEXT as u64));
    String::from_utf8(bytes).context("the input is not text")
}

/// A name for a conversation that begins now.
fn made_up(now: Timestamp) -> String {
    let second: String = rfc3339(now).chars().take(19).filter(|c| *c != ':').collect();
    format!("{}-{:04x}", second.replace('T', "-"), rand::random::<u16>())
}

/// An id that nobody else makes up.
fn fresh_id() -> EventId {
    EventId::new(format!("{:032x}", rand::random::<u128>())).expect("hex digits are an id")
}

/// Each time one of these signals comes.
fn signals(kinds: &[Nudge]) -> anyhow::Result<BoxStream<'static, ()>> {
    nudges(kinds).context("signals cannot be received")
}

/// Completes when what is there completes, and never when nothing is there.
async fn due<F: Future + Unpin>(what: &mut Option<F>) -> F::Output {
    match what {
        Some(what) => what.await,
        None => std::future::pending().await,
    }
}
