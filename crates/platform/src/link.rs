//! A connected account: what it hears and how it is spoken to.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use talaria_model::{Inbound, InboundKind, Media, Outbound, Overheard, Quote, Receipt, Seq};

use crate::{ByteStream, LinkError, Proof, SendError, Surface, Worded};

/// A connected account. Dropping it disconnects.
pub struct Link {
    /// What it hears.
    pub incoming: Incoming,
    /// How it is spoken to.
    pub outgoing: Arc<dyn Outgoing>,
    /// How files are fetched that came with messages, on platforms that keep them.
    pub library: Option<Arc<dyn Library>>,
    /// What tells that it is still heard.
    pub pulse: Pulse,
}

/// What tells that a connected account is still heard, although nobody says anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pulse {
    /// Something arrives at least this often while it is heard, if only [`Arrival::Alive`]: a poll that
    /// came to its end, a heartbeat that was acknowledged, the platform's word that nothing waits for us.
    /// What we send proves nothing.
    Within(Duration),
    /// Nothing. People reach us on this machine, or the platform has no sign of life.
    Unknown,
}

impl Pulse {
    /// What a platform promises that gives a sign of life every half minute or so.
    pub const USUAL: Self = Self::Within(Duration::from_secs(60));
}

/// How events reach us.
pub enum Incoming {
    /// The platform fetches or receives them itself.
    Stream(Arrivals),
    /// They come in by HTTP: the gateway mounts the routes on its own listener, and the handlers
    /// put what they receive into the stream.
    Served {
        /// Where the routes are mounted.
        on: Surface,
        /// The platform's pages and endpoints.
        routes: axum::Router,
        /// What the handlers received.
        arrivals: Arrivals,
    },
    /// The platform only speaks.
    Nothing,
}

/// What a platform hears. The next item is asked for only after the one before was committed, so a
/// platform that acknowledges by asking for more cannot acknowledge too early.
pub type Arrivals = BoxStream<'static, Result<Arrival, LinkError>>;

/// One item a platform hears.
pub enum Arrival {
    /// Events that the platform brought, which may be none.
    Batch(Batch),
    /// Events that we looked up on a platform that should have brought them. That they can be read does not
    /// prove that it brings anything.
    Found(Batch),
    /// The platform brought something that nobody has to be told, such as what we said ourselves.
    Brought,
    /// Proof that the connection still works, although nothing happened.
    Alive,
}

impl Arrival {
    /// What it shows about whether we are heard.
    pub fn proves(&self) -> Option<Proof> {
        match self {
            Self::Batch(batch) if batch.events.is_empty() => Some(Proof::Life),
            Self::Batch(_) | Self::Brought => Some(Proof::Events),
            Self::Found(_) => None,
            Self::Alive => Some(Proof::Life),
        }
    }
}

/// Events that are committed together with the position behind them.
pub struct Batch {
    /// In the order in which they happened.
    pub events: Vec<Inbound>,
    /// The platform's position after these events, on platforms that have one.
    pub cursor: Option<Cursor>,
    /// Told once the events are safe.
    pub ack: Ack,
}

/// A platform's own position: an offset, a token, a sequence. Opaque to everybody else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor(pub String);

/// Tells the platform what became of a batch. Dropped unused, it means that nothing was stored and
/// the vendor should deliver again.
pub struct Ack(Option<Box<dyn FnOnce(Committed) + Send>>);

impl Ack {
    /// For platforms that acknowledge by asking for the next batch.
    pub fn unneeded() -> Self {
        Self(None)
    }

    /// Calls `then` after the commit.
    pub fn with(then: impl FnOnce(Committed) + Send + 'static) -> Self {
        Self(Some(Box::new(then)))
    }

    /// Called by the gateway once the commit is on disk.
    pub fn committed(self, committed: Committed) {
        if let Some(then) = self.0 {
            then(committed);
        }
    }
}

/// What the commit made of each event of a batch, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed(pub Vec<Verdict>);

/// What became of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is in the journal.
    Journalled(Seq),
    /// It was there already; nothing changed.
    Repeated,
    /// Policy does not let this sender in. Recorded, not processed.
    Denied,
}

/// Speaks on a platform.
#[async_trait]
pub trait Outgoing: Send + Sync {
    /// Carries out one act that `lower` has made fit. Fails only in ways that say what to do.
    async fn send(&self, outbound: &Outbound) -> Result<Receipt, SendError>;

    /// Looks for what an act whose outcome is unknown may have left behind, on platforms that let us
    /// read what they show.
    async fn find(&self, outbound: &Outbound) -> Result<Found, SendError> {
        let _ = outbound;
        Ok(Found::Unknown)
    }
}

/// What became of an act that nobody confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It can be seen.
    Shown(Receipt),
    /// It cannot be seen, and will not be.
    Absent,
    /// Nobody can tell.
    Unknown,
}

/// Tells of what a platform holds. It is asked only about messages that are stored and let in, so that
/// nobody else can make us ask.
#[async_trait]
pub trait Library: Send + Sync {
    /// The bytes of a file that came with a message.
    async fn fetch(&self, media: &Media) -> Result<ByteStream, FetchError>;

    /// What surrounds a message, by the handle in it. It is asked once, and a session waits for it a few
    /// seconds at most.
    async fn surroundings(&self, inbound: &Inbound) -> Result<Surroundings, FetchError>;
}

/// What has to be asked for before a message reads as people there see it. None of it decides who is let
/// in or where the message belongs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The text, with names where ids were.
    pub text: Option<String>,
    /// What its sender is called.
    pub sender: Option<String>,
    /// What its chat is called.
    pub chat: Option<String>,
    /// What the chat is about.
    pub topic: Option<String>,
    /// What was said before, oldest first.
    pub overheard: Vec<Overheard>,
    /// The message it answers.
    pub quote: Option<Quote>,
}

impl Surroundings {
    /// Puts it into the message that it surrounds.
    pub fn put_into(self, inbound: &mut Inbound) {
        let Self { text, sender, chat, topic, overheard, quote } = self;
        inbound.from.name = sender.or(inbound.from.name.take());
        inbound.source.chat_name = chat.or(inbound.source.chat_name.take());
        inbound.source.topic = topic.or(inbound.source.topic.take());
        if let InboundKind::Said(message) | InboundKind::Edited(message) = &mut inbound.kind {
            message.text = text.unwrap_or(std::mem::take(&mut message.text));
            message.quote = quote.or(message.quote.take());
            message.overheard.extend(overheard);
        }
    }
}

/// Why a file could not be fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The platform does not hand it out: it is too large, or gone.
    #[error("{reason}")]
    Refused {
        /// In the platform's words.
        reason: String,
    },
    /// Trying again later may help.
    #[error("cannot be reached: {reason}")]
    Unreachable {
        /// What stood in the way.
        reason: String,
    },
}

impl Worded for FetchError {
    fn words(&mut self) -> Vec<&mut String> {
        match self {
            Self::Refused { reason } | Self::Unreachable { reason } => vec![reason],
        }
    }
}
