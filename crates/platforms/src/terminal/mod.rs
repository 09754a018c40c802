//! The terminal: `talaria chat`, over a local socket that only this user's processes can reach.
//!
//! A terminal says things by posting them and hears by a stream of lines. This folder is the
//! gateway's end; it remembers who is attached and nothing else. What was said is kept by the
//! archive, and a terminal that attaches is shown the newest of it.

mod audience;
mod files;
mod hear;
mod read;
mod refusal;
pub mod wire;

#[cfg(test)]
mod contract;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use futures::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use talaria_clock::Clock;
use talaria_model::{
    AccountId, Act, Address, Capabilities, Chat, ChatId, ChatKind, Choices, Content, Deletes,
    Draft, Drafts, Edits, Files, Idempotency, Ids, Marks, Markup, MessageId, Outbound, OutboundId,
    Pace, Reactions, Receipt, TextLimit, Typing, Unit, Whispers,
};
use talaria_platform::{
    Archive, Arrival, Bursts, ConnectError, FileStore, Identity, Incoming, Link, Outgoing,
    Platform, Ports, Pulse, SendError, Senders, Spec, Startup, Surface,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use audience::{Audience, Line};
use refusal::Refusal;
use wire::{Doing, Event, LARGEST_FILE, LONGEST_TEXT};

/// The largest JSON a terminal may send. Escaping makes a text longer than it is.
const LARGEST_JSON: usize = 4 * LONGEST_TEXT;

/// What was received and the gateway has not taken yet. More wait for their turn, and are told to
/// try again when it does not come.
const ARRIVALS_WAITING: usize = 64;

/// The terminal.
pub struct Terminal;

/// There is nothing to set.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {}

impl Platform for Terminal {
    const SPEC: Spec = Spec {
        name: "terminal",
        label: "Terminal",
        about: "Talk to the agent from a shell on this machine with `talaria chat`.",
        capabilities: Capabilities {
            text: TextLimit { max: 1024 * 1024, unit: Unit::Bytes },
            markup: Markup::Markdown,
            edits: Edits::Never,
            drafts: Drafts::Every(Duration::from_millis(50)),
            deletes: Deletes::Never,
            choices: Choices::Buttons { max: 9, id: 512 },
            reactions: Reactions::Never,
            marks: Marks::Never,
            whispers: Whispers::Never,
            pace: Pace::FREE,
            typing: Typing::Never,
            files: Files::UpTo(LARGEST_FILE),
            reply_within: None,
            // A terminal shows an id once, and one that attaches later begins with the past.
            idempotency: Idempotency::Keyed(Duration::from_secs(10 * 365 * 24 * 60 * 60)),
        },
        note: Some(
            "The person reads in a terminal: wide tables wrap, pictures are only named, and a command \
             to copy is best a code block of its own.",
        ),
        // Its one sender and the names of its conversations say nothing about anybody.
        bursts: Bursts::NONE,
        ids: Ids::Hideable,
        identity: Identity::Operator,
        senders: Senders::ANY,
        startup: Startup::Always,
        asks: &[],
        guide: include_str!("guide.md"),
    };

    type Settings = Settings;

    fn capabilities(_: &Settings, _: ChatKind) -> Capabilities {
        Self::SPEC.capabilities
    }

    async fn connect(Settings {}: Settings, ports: Ports) -> Result<Link, ConnectError> {
        let (heard, arrivals) = mpsc::channel(ARRIVALS_WAITING);
        let desk = Arc::new(Desk {
            account: ports.account,
            clock: ports.clock,
            files: ports.files,
            archive: ports.archive,
            audience: Arc::default(),
            heard,
        });
        Ok(Link {
            incoming: Incoming::Served {
                on: Surface::Local,
                routes: routes(desk.clone()),
                arrivals: ReceiverStream::new(arrivals).map(Ok).boxed(),
            },
            outgoing: desk,
            library: None,
            pulse: Pulse::Unknown,
        })
    }
}

/// Everything a request may touch.
struct Desk {
    account: AccountId,
    clock: Arc<dyn Clock>,
    files: Arc<dyn FileStore>,
    archive: Arc<dyn Archive>,
    audience: Arc<Audience>,
    heard: mpsc::Sender<Arrival>,
}

fn routes(desk: Arc<Desk>) -> Router {
    Router::new()
        .route("/conversations", get(read::conversations))
        .route("/conversations/{id}/stream", get(read::stream))
        .route("/conversations/{id}/messages", post(hear::say))
        .route("/conversations/{id}/press", post(hear::press))
        .route("/conversations/{id}/stop", post(hear::stop))
        .route("/files", post(files::upload))
        .route("/files/{id}", get(files::download))
        .fallback(|| async { Refusal::NotFound("there is nothing here") })
        .layer(DefaultBodyLimit::max(LARGEST_JSON))
        .with_state(desk)
}

impl Desk {
    fn address(&self, chat: ChatId) -> Address {
        let chat = Chat { id: chat, kind: ChatKind::Dm };
        Address { account: self.account.clone(), chat, thread: None }
    }

    /// Tells everybody who is attached.
    async fn post(
        &self,
        id: &OutboundId,
        to: &Address,
        content: &Content,
    ) -> Result<(), SendError> {
        let chat = &to.chat.id;
        self.audience.settle(chat, id);
        if self.audience.is_attended(chat) {
            let posted = self.posted(to, id, content).await;
            let doing = posted.doing;
            let line = Line::of(&Event::Posted(posted), doing)
                .ok_or_else(|| SendError::Rejected { reason: "too long for a terminal".into() })?;
            self.audience.tell(chat, &line);
        }
        Ok(())
    }
}

/// Shows acts at the terminals that are attached. What nobody sees is not lost: it is in the archive
/// before it is sent, and a terminal begins with the newest of that. To keep it from being delivered
/// until somebody attaches would hold up everything after it, because nothing may overtake it.
#[async_trait]
impl Outgoing for Desk {
    async fn send(&self, outbound: &Outbound) -> Result<Receipt, SendError> {
        let Outbound { id, to, act } = outbound;
        let message = match act {
            Act::Post(content) => {
                self.post(id, to, content).await?;
                MessageId::new(id.to_string()).ok()
            }
            Act::Draft(Draft { content, doing }) => {
                let (text, doing) = (content.text.clone(), doing.clone());
                let draft = Event::Draft { id: id.clone(), text, doing };
                if let Some(line) = Line::of(&draft, Doing::Busy) {
                    self.audience.draft(&to.chat.id, id, line);
                }
                None
            }
            Act::Edit { .. }
            | Act::Delete { .. }
            | Act::React { .. }
            | Act::Mark { .. }
            | Act::Typing
            | Act::Rest => {
                let reason = "a terminal cannot change what it has shown".into();
                return Err(SendError::Rejected { reason });
            }
        };
        Ok(Receipt { message, at: self.clock.now() })
    }
}
