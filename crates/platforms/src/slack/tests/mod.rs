//! The platform through its seam, against a Slack that keeps its own truth.
#![allow(
    clippy::disallowed_methods,
    reason = "the vendor lives in real time and in tasks of its own"
)]

mod by_requests;
mod by_socket;
mod decoding;
mod encoding;
mod missing;
mod setup;
mod speaking;

use std::sync::Arc;

use async_trait::async_trait;
use axum::body::Bytes;
use futures::StreamExt;
use serde_json::Value;
use talaria_clock::{Clock, SystemClock};
use talaria_model::{
    AccountId, Act, Address, Chat, ChatId, ChatKind, Content, FileId, FileRef, Inbound,
    InboundKind, Message, Outbound, OutboundId, Seq, SessionId, ThreadId,
};
use talaria_platform::{
    Arrival, Arrivals, Batch, ByteStream, Committed, Cursor, FileError, FileStore, Incoming, Kept,
    Library, Link, LinkError, MenuItem, Offered, Outgoing, Platform, Ports, Verdict,
};
use talaria_testkit::{Past, within};

use super::Slack;
use talaria_testkit::vendors::slack as vendor;
use talaria_testkit::vendors::slack::{PATIENCE, Vendor};

/// A connected account.
struct Bench {
    vendor: Vendor,
    arrivals: Arrivals,
    outgoing: Arc<dyn Outgoing>,
    library: Arc<dyn Library>,
    routes: Option<axum::Router>,
}

/// What an account is lent.
#[derive(Clone)]
struct Lent {
    clock: Arc<dyn Clock>,
    cursor: Option<Cursor>,
    conversations: Vec<Address>,
    kept: Kept,
}

impl Default for Lent {
    fn default() -> Self {
        let clock = Arc::new(SystemClock);
        Self { clock, cursor: None, conversations: Vec::new(), kept: Kept::default() }
    }
}

fn account() -> AccountId {
    AccountId::literal("work")
}

/// A command that everybody may give.
fn item(name: &str, aliases: &[&str]) -> MenuItem {
    MenuItem {
        name: name.into(),
        aliases: aliases.iter().map(|&alias| alias.into()).collect(),
        arguments: String::new(),
        help: String::new(),
        to: Offered::Everyone,
    }
}

fn ports(vendor: &Vendor, lent: Lent) -> Ports {
    Ports {
        account: account(),
        clock: lent.clock,
        files: Arc::new(Shelf),
        archive: Arc::new(Past(lent.conversations)),
        menu: [item("stop", &["cancel"]), item("title", &[])].into(),
        desk: None,
        hosts: Arc::default(),
        folder: vendor.folder(),
        cursor: lent.cursor,
        kept: lent.kept,
    }
}

async fn connect(vendor: Vendor, settings: Value, lent: Lent) -> Bench {
    let settings = serde_json::from_value(settings).unwrap();
    let Link { incoming, outgoing, library, .. } =
        Slack::connect(settings, ports(&vendor, lent)).await.unwrap();
    let (arrivals, routes) = match incoming {
        Incoming::Stream(arrivals) => (arrivals, None),
        Incoming::Served { routes, arrivals, .. } => (arrivals, Some(routes)),
        Incoming::Nothing => panic!("it hears"),
    };
    let library = library.expect("it keeps files");
    Bench { vendor, arrivals, outgoing, library, routes }
}

async fn bench() -> Bench {
    let vendor = Vendor::open().await;
    let settings = vendor.settings();
    connect(vendor, settings, Lent::default()).await
}

impl Bench {
    /// The next batch that is not empty, or why there is none.
    async fn batch(&mut self) -> Result<Batch, LinkError> {
        let next = async {
            loop {
                match self.arrivals.next().await.expect("the stream says why it ends") {
                    Ok(Arrival::Batch(batch) | Arrival::Found(batch))
                        if batch.events.is_empty() =>
                    {
                        commit(batch);
                    }
                    Ok(Arrival::Batch(batch) | Arrival::Found(batch)) => return Ok(batch),
                    Ok(Arrival::Alive | Arrival::Brought) => {}
                    Err(error) => return Err(error),
                }
            }
        };
        within(PATIENCE, "an event", next).await
    }

    /// The one event of the next batch, stored.
    async fn event(&mut self) -> Inbound {
        let mut batch = self.batch().await.unwrap();
        assert_eq!(batch.events.len(), 1, "{:?}", batch.events);
        let event = batch.events[0].clone();
        batch.events.truncate(1);
        commit(batch);
        event
    }

    /// An event as it is once it was let in.
    async fn let_in(&self, mut inbound: Inbound) -> Inbound {
        self.library.surroundings(&inbound).await.unwrap().put_into(&mut inbound);
        inbound
    }

    /// Listens until `until` is there, while nothing arrives.
    async fn listen_while<T>(&mut self, until: impl Future<Output = T>) -> T {
        tokio::select! {
            done = until => done,
            batch = self.batch() => panic!("something arrived: {:?}", batch.map(|batch| batch.events)),
        }
    }

    /// Why the stream ends.
    async fn end(&mut self) -> LinkError {
        match self.batch().await {
            Ok(batch) => panic!("it goes on with {:?}", batch.events),
            Err(error) => error,
        }
    }
}

fn commit(batch: Batch) {
    let verdicts = batch.events.iter().map(|_| Verdict::Journalled(Seq(1))).collect();
    batch.ack.committed(Committed(verdicts));
}

fn message_of(inbound: &Inbound) -> &Message {
    match &inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => message,
        kind => panic!("{kind:?}"),
    }
}

fn at(chat: &'static str, kind: ChatKind, thread: Option<&'static str>) -> Address {
    let chat = Chat { id: ChatId::literal(chat), kind };
    Address { account: account(), chat, thread: thread.map(ThreadId::literal) }
}

fn act(to: Address, delivery: u32, act: Act) -> Outbound {
    let session = SessionId::literal("20261115_093000_0badcafe");
    Outbound { id: OutboundId { session, delivery, part: 0 }, to, act }
}

fn post(to: Address, delivery: u32, text: &str) -> Outbound {
    act(to, delivery, Act::Post(Content::text(text)))
}

fn file(name: &str, size: u64) -> FileRef {
    let id = FileId::new(format!("digest-of-{name}")).unwrap();
    FileRef::new(id, name, "image/png", size)
}

/// Files whose bytes are their names.
struct Shelf;

#[async_trait]
impl FileStore for Shelf {
    async fn save(&self, _: &str, _: Option<&str>, _: ByteStream) -> Result<FileRef, FileError> {
        Err(FileError::Full { quota: 0 })
    }

    async fn read(&self, id: &FileId) -> Result<ByteStream, FileError> {
        match id.as_str().strip_prefix("digest-of-") {
            Some("lost.png") | None => Err(FileError::Missing),
            Some(name) => {
                let bytes = Bytes::from(name.to_owned().into_bytes());
                Ok(futures::stream::iter([Ok(bytes)]).boxed())
            }
        }
    }
}
