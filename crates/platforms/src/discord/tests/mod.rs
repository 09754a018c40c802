//! Discord through its seam: a vendor that plays Discord on one side, the link on the other.

mod arrive;
mod catch_up;
mod contract;
mod fixtures;
mod menu;
mod setup;
mod speak;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use serde_json::{Value, json};
use talaria_clock::SystemClock;
use talaria_model::{
    AccountId, Act, Address, Chat, ChatKind, Content, FileId, FileRef, Inbound, InboundKind,
    Message, Outbound, OutboundId, SessionId,
};
use talaria_platform::{
    Arrival, Arrivals, Batch, ByteStream, ConnectError, Cursor, FileError, FileStore, Incoming,
    Kept, Library, Link, LinkError, MenuItem, Outgoing, Platform, Ports,
};
use talaria_testkit::scripted::Request;
use talaria_testkit::{Past, within};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::{Discord, Settings};
use talaria_testkit::vendors::discord as vendor;
use talaria_testkit::vendors::discord::{DM, Vendor};

/// Nothing here takes long; this only keeps a broken test from hanging.
const PATIENCE: Duration = Duration::from_secs(10);

/// Threads in which we have talked.
const OURS: &str = "41771983423143950";
const QUIET: &str = "41771983423143951";

/// A connected account and its vendor.
struct Bench {
    vendor: Vendor,
    asked: mpsc::UnboundedReceiver<(Request, Value)>,
    arrivals: Arrivals,
    outgoing: Arc<dyn Outgoing>,
    library: Arc<dyn Library>,
    folder: TempDir,
    /// The last position that was given.
    cursor: Option<Cursor>,
}

/// Three files.
struct Shelf;

fn ogg() -> Vec<u8> {
    let mut bytes = b"OggS\0\x02".to_vec();
    bytes.extend([0; 22]);
    bytes.extend(b"OpusHead");
    bytes.extend(b"OggS\0\x04");
    bytes.extend((48_000u64 * 3).to_le_bytes());
    bytes.extend([0; 14]);
    bytes
}

#[async_trait]
impl FileStore for Shelf {
    async fn save(&self, _: &str, _: Option<&str>, _: ByteStream) -> Result<FileRef, FileError> {
        Err(FileError::Missing)
    }

    async fn read(&self, id: &FileId) -> Result<ByteStream, FileError> {
        let bytes = match id.as_str() {
            "notes" => b"the notes".to_vec(),
            "voice" => ogg(),
            "big" => vec![1; 9 * 1024 * 1024],
            _ => return Err(FileError::Missing),
        };
        Ok(futures::stream::iter([Ok(bytes.into())]).boxed())
    }
}

fn settings(vendor: &Vendor, with: &Value) -> Settings {
    let mut settings = vendor.settings();
    for (name, value) in with.as_object().into_iter().flatten() {
        settings[name] = value.clone();
    }
    serde_json::from_value(settings).unwrap()
}

fn ports(folder: &TempDir, cursor: Option<Cursor>, menu: Vec<MenuItem>) -> Ports {
    Ports {
        account: AccountId::literal("discord"),
        clock: Arc::new(SystemClock),
        files: Arc::new(Shelf),
        archive: Arc::new(Past(vec![
            direct(),
            address("555", ChatKind::Group),
            address(OURS, ChatKind::Thread),
            address(QUIET, ChatKind::Thread),
        ])),
        menu: menu.into(),
        desk: None,
        hosts: Arc::default(),
        folder: folder.path().to_owned(),
        cursor,
        kept: Kept::default(),
    }
}

impl Bench {
    /// In direct messages only.
    async fn direct() -> Self {
        let (vendor, asked) = Vendor::open().await;
        Self::on(vendor, asked, &json!({})).await
    }

    /// In a guild, too.
    async fn guild(with: Value) -> Self {
        let (vendor, asked) = Vendor::open().await;
        vendor.with_guild();
        Self::on(vendor, asked, &with).await
    }

    async fn on(
        vendor: Vendor,
        asked: mpsc::UnboundedReceiver<(Request, Value)>,
        with: &Value,
    ) -> Self {
        let folder = TempDir::new().unwrap();
        let link = connect(&vendor, &folder, with, None, Vec::new()).await;
        let Link { incoming, outgoing, library, .. } =
            link.unwrap_or_else(|error| panic!("{error}"));
        let Incoming::Stream(arrivals) = incoming else { panic!("a stream") };
        let library = library.expect("Discord keeps files");
        Self { vendor, asked, arrivals, outgoing, library, folder, cursor: None }
    }

    /// Connects again at the last position, as a gateway does.
    async fn again(&mut self, with: &Value) {
        self.arrivals = futures::stream::empty().boxed();
        let link = connect(&self.vendor, &self.folder, with, self.cursor.clone(), Vec::new()).await;
        let Link { incoming, outgoing, library, .. } =
            link.unwrap_or_else(|error| panic!("{error}"));
        let Incoming::Stream(arrivals) = incoming else { panic!("a stream") };
        (self.arrivals, self.outgoing) = (arrivals, outgoing);
        self.library = library.expect("Discord keeps files");
    }

    /// The next batch with something in it. Everything before it is stored.
    async fn batch(&mut self) -> Result<Batch, LinkError> {
        let next = async {
            loop {
                match self.arrivals.next().await {
                    Some(Ok(Arrival::Batch(batch) | Arrival::Found(batch))) => {
                        self.cursor = batch.cursor.clone();
                        if !batch.events.is_empty() {
                            return Ok(batch);
                        }
                    }
                    Some(Ok(Arrival::Alive | Arrival::Brought)) => {}
                    Some(Err(error)) => return Err(error),
                    None => panic!("the stream ended without a word"),
                }
            }
        };
        within(PATIENCE, "a batch", next).await
    }

    /// The next event, stored.
    async fn event(&mut self) -> Inbound {
        let mut batch = self.batch().await.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(batch.events.len(), 1, "one thing happened");
        batch.events.remove(0)
    }

    async fn said(&mut self) -> (Inbound, Message) {
        let inbound = self.event().await;
        let InboundKind::Said(message) = inbound.kind.clone() else { panic!("{inbound:?}") };
        (inbound, message)
    }

    /// Listens until something has come true at the vendor.
    async fn until(&mut self, what: &str, is_true: impl Fn(&Vendor) -> bool) {
        let wait = async {
            while !is_true(&self.vendor) {
                let next = tokio::time::timeout(Duration::from_millis(5), self.arrivals.next());
                if let Ok(Some(Ok(Arrival::Batch(batch)))) = next.await {
                    self.cursor = batch.cursor;
                }
            }
        };
        within(PATIENCE, what.to_owned(), wait).await;
    }
}

async fn connect(
    vendor: &Vendor,
    folder: &TempDir,
    with: &Value,
    cursor: Option<Cursor>,
    menu: Vec<MenuItem>,
) -> Result<Link, ConnectError> {
    let link = Discord::connect(settings(vendor, with), ports(folder, cursor, menu));
    within(PATIENCE, "a connection", link).await
}

/// The chat with Alice.
fn direct() -> Address {
    address(DM, ChatKind::Dm)
}

fn address(id: &str, kind: ChatKind) -> Address {
    let thread = (kind == ChatKind::Thread).then(|| talaria_model::ThreadId::new(id).unwrap());
    Address {
        account: AccountId::literal("discord"),
        chat: Chat { id: talaria_model::ChatId::new(id).unwrap(), kind },
        thread,
    }
}

fn act(to: &Address, delivery: u32, act: Act) -> Outbound {
    let session = SessionId::literal("20261115_154500_abcdef12");
    Outbound { id: OutboundId { session, delivery, part: 0 }, to: to.clone(), act }
}

fn post(to: &Address, delivery: u32, text: &str) -> Outbound {
    act(to, delivery, Act::Post(Content::text(text)))
}
