//! The platform against a Telegram that follows a script.

mod by_poll;
mod by_webhook;
mod decoding;
mod encoding;
mod fetching;
mod hearing;
mod rendering;
mod setup;
mod speaking;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use talaria_clock::{Clock, Sleep, SystemClock};
use talaria_model::{
    AccountId, Act, Address, Chat, ChatId, ChatKind, FileId, FileRef, Outbound, OutboundId,
    SessionId, ThreadId, Timestamp,
};
use talaria_platform::{
    Arrival, Arrivals, Batch, ByteStream, Committed, Cursor, FileError, FileStore, Incoming, Kept,
    Link, LinkError, Outgoing, Platform, Ports, Verdict,
};
use tempfile::TempDir;

use super::{Settings, Telegram};
use talaria_testkit::vendors::telegram as vendor;
use talaria_testkit::vendors::telegram::Vendor;

/// The gateway's end of a connection.
struct Bench {
    vendor: Vendor,
    arrivals: Option<Arrivals>,
    outgoing: Arc<dyn Outgoing>,
    library: Arc<dyn talaria_platform::Library>,
    folder: TempDir,
}

fn settings(value: Value) -> Settings {
    serde_json::from_value(value).unwrap()
}

fn ports(folder: &Path, cursor: Option<&str>) -> Ports {
    Ports {
        account: AccountId::literal("telegram"),
        clock: Arc::new(SystemClock),
        files: Arc::new(Shelf),
        archive: Arc::new(talaria_testkit::Past::default()),
        menu: Arc::default(),
        desk: None,
        hosts: Arc::default(),
        folder: folder.to_owned(),
        cursor: cursor.map(|cursor| Cursor(cursor.into())),
        kept: Kept::default(),
    }
}

impl Bench {
    async fn open() -> Self {
        let vendor = Vendor::open().await;
        let settings = vendor.settings();
        Self::connect(vendor, settings, None).await
    }

    async fn connect(vendor: Vendor, with: Value, cursor: Option<&str>) -> Self {
        let folder = TempDir::new().unwrap();
        let link = Telegram::connect(settings(with), ports(folder.path(), cursor)).await.unwrap();
        let Link { incoming, outgoing, library, .. } = link;
        let Incoming::Stream(arrivals) = incoming else { panic!("it polls") };
        let library = library.unwrap();
        Self { vendor, arrivals: Some(arrivals), outgoing, library, folder }
    }

    async fn arrival(&mut self) -> Result<Arrival, LinkError> {
        self.arrivals.as_mut().unwrap().next().await.expect("the stream goes on")
    }

    async fn batch(&mut self) -> Batch {
        match self.arrival().await {
            Ok(Arrival::Batch(batch)) => batch,
            Ok(Arrival::Found(_)) => panic!("polls bring everything"),
            Ok(Arrival::Alive | Arrival::Brought) => panic!("a sign of life and no batch"),
            Err(error) => panic!("{error}"),
        }
    }

    /// Asks for what comes next, which confirms what came before.
    async fn confirm(&mut self) {
        let mut next = self.arrivals.as_mut().unwrap().next();
        tokio::select! {
            _ = &mut next => panic!("nothing happened"),
            () = self.vendor.until(|truth| {
                truth.polls_in_flight > 0
                    && truth.requests.last().is_some_and(|asked| asked.method == "getUpdates")
            }) => {}
        }
    }

    async fn send(
        &self,
        to: &Address,
        act: Act,
    ) -> Result<talaria_model::Receipt, talaria_platform::SendError> {
        self.outgoing.send(&outbound(to, 1, act)).await
    }

    /// What was asked of a method last.
    fn last(&self, method: &str) -> Value {
        self.vendor.asked(method).pop().unwrap_or_else(|| panic!("{method} was not asked"))
    }
}

fn commit(batch: Batch, verdict: &Verdict) {
    let verdicts = batch.events.iter().map(|_| verdict.clone()).collect();
    batch.ack.committed(Committed(verdicts));
}

fn outbound(to: &Address, delivery: u32, act: Act) -> Outbound {
    let session = SessionId::literal("20261115_093000_0badcafe");
    Outbound { id: OutboundId { session, delivery, part: 0 }, to: to.clone(), act }
}

fn address(chat: &'static str, kind: ChatKind, thread: Option<&'static str>) -> Address {
    Address {
        account: AccountId::literal("telegram"),
        chat: Chat { id: ChatId::literal(chat), kind },
        thread: thread.map(ThreadId::literal),
    }
}

fn alice() -> Address {
    address("250918540", ChatKind::Dm, None)
}

/// A message from Alice.
fn said(number: i64, text: &str) -> Value {
    json!({ "update_id": number, "message": {
        "message_id": number, "date": 1_581_000_000, "text": text,
        "from": { "id": 250_918_540, "is_bot": false, "first_name": "Alice" },
        "chat": { "id": 250_918_540, "first_name": "Alice", "type": "private" },
    }})
}

/// A clock on which every wait is over at once.
#[derive(Default)]
struct Hurried {
    waits: Mutex<Vec<Duration>>,
}

impl Clock for Hurried {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_794_735_000_000)
    }

    fn sleep(&self, wait: Duration) -> Sleep {
        self.waits.lock().unwrap().push(wait);
        Box::pin(tokio::task::yield_now())
    }
}

/// A file with as many bytes as its name has letters, which are the name.
fn file(name: &str, mime: &str) -> FileRef {
    FileRef::new(FileId::new(name).unwrap(), name, mime, name.len() as u64)
}

/// Files whose bytes are their ids. Those named `lost` are gone, and those named `broken` end early.
struct Shelf;

#[async_trait]
impl FileStore for Shelf {
    async fn save(&self, _: &str, _: Option<&str>, _: ByteStream) -> Result<FileRef, FileError> {
        Err(FileError::Full { quota: 0 })
    }

    async fn read(&self, id: &FileId) -> Result<ByteStream, FileError> {
        let bytes = id.as_str().as_bytes().to_vec();
        if id.as_str().starts_with("lost") {
            return Err(FileError::Missing);
        }
        if id.as_str().starts_with("broken") {
            return Ok(stream::iter([Err(std::io::Error::other("the disk"))]).boxed());
        }
        Ok(stream::iter([Ok(bytes.into())]).boxed())
    }
}
