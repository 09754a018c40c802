//! The web platform through its seam: a browser's requests on one side, the link on the other.

mod attacks;
mod contract;
mod files;
mod login;
mod page;
mod people;
mod talk;
mod watch;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::response::Response;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use http::{Method, Request, StatusCode, header, request};
use serde::Serialize;
use serde_json::{Value, json};
use talaria_clock::{Clock, FakeClock, Sleep};
use talaria_model::{
    AccountId, Act, Address, Chat, ChatId, ChatKind, Entry, EntryBody, FileId, FileRef, Inbound,
    Outbound, OutboundId, Seq, SessionId, Timestamp,
};
use talaria_platform::{
    Archive, ArchiveError, Arrival, Arrivals, Batch, ByteStream, Committed, Conversation, Desk,
    FileError, FileStore, Hit, Incoming, Kept, Link, MenuItem, Offered, Outgoing, Platform, Ports,
    Recorded, Surface, Verdict,
};
use tempfile::TempDir;
use tower::ServiceExt;

use super::{Settings, Web, mint_login};
use people::FrontDesk;

const HOST: &str = "127.0.0.1:8790";
const CHAT: &str = "chat-0001";

/// What the gateway would lend: files and a past, in memory.
#[derive(Default)]
struct Shelf {
    files: Mutex<HashMap<FileId, Bytes>>,
    entries: Mutex<Vec<Recorded>>,
    asked: Mutex<Vec<Address>>,
}

impl Shelf {
    fn record(&self, body: EntryBody) {
        let mut entries = self.entries.lock().unwrap();
        let number = entries.len() as u32 + 1;
        let entry = Entry {
            number,
            at: Timestamp::from_millis(7),
            turn: None,
            body,
            because: None,
            about: None,
            resumed: None,
        };
        entries.push(Recorded { position: u64::from(number), entry });
    }
}

#[async_trait]
impl FileStore for Shelf {
    async fn save(
        &self,
        name: &str,
        mime: Option<&str>,
        bytes: ByteStream,
    ) -> Result<FileRef, FileError> {
        let bytes: Vec<Bytes> = bytes.try_collect().await?;
        let bytes = Bytes::from(bytes.concat());
        let id = FileId::new(format!("{:064x}", bytes.len())).unwrap();
        let size = bytes.len() as u64;
        self.files.lock().unwrap().insert(id.clone(), bytes);
        Ok(FileRef::new(id, name, mime.unwrap_or("unknown"), size))
    }

    async fn read(&self, id: &FileId) -> Result<ByteStream, FileError> {
        let bytes = self.files.lock().unwrap().get(id).cloned().ok_or(FileError::Missing)?;
        // One byte at a time, to show that nobody relies on large pieces.
        let pieces: Vec<_> =
            bytes.chunks(1).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        Ok(stream::iter(pieces).boxed())
    }
}

#[async_trait]
impl Archive for Shelf {
    async fn conversations(&self, limit: usize) -> Result<Vec<Conversation>, ArchiveError> {
        let one = Conversation {
            at: at(CHAT),
            title: "<b>a title</b>".into(),
            updated: Timestamp::from_millis(9),
            busy: true,
        };
        Ok(vec![one].into_iter().take(limit).collect())
    }

    async fn history(
        &self,
        at: &Address,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Recorded>, ArchiveError> {
        self.asked.lock().unwrap().push(at.clone());
        let entries = self.entries.lock().unwrap();
        let earlier =
            entries.iter().filter(|one| before.is_none_or(|before| one.position < before));
        let mut newest: Vec<_> = earlier.rev().take(limit).cloned().collect();
        newest.reverse();
        Ok(newest)
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, ArchiveError> {
        let entries = self.entries.lock().unwrap();
        let hits = entries.iter().map(|recorded| Hit {
            at: at(CHAT),
            title: "a title".into(),
            recorded: recorded.clone(),
            excerpt: format!("before \u{2}{query}\u{3} <after>"),
        });
        Ok(hits.take(limit).collect())
    }
}

/// A clock at which something else can happen between two steps of a request, when the request looks at it.
struct Interrupted {
    clock: FakeClock,
    due: Mutex<Option<Due>>,
}

/// What is to happen, and how many looks at the clock before it does.
struct Due {
    looks: usize,
    happen: Box<dyn FnOnce() + Send>,
}

impl Interrupted {
    fn by_nothing(clock: FakeClock) -> Self {
        Self { clock, due: Mutex::default() }
    }

    /// Lets something happen at the look behind the next `looks`.
    fn behind(&self, looks: usize, happen: impl FnOnce() + Send + 'static) {
        *self.due.lock().unwrap() = Some(Due { looks, happen: Box::new(happen) });
    }

    /// Whether it has not happened yet.
    fn is_due(&self) -> bool {
        self.due.lock().unwrap().is_some()
    }

    fn happening(&self) -> Option<Box<dyn FnOnce() + Send>> {
        let mut due = self.due.lock().unwrap();
        let Due { looks, happen } = due.take()?;
        match looks.checked_sub(1) {
            None => Some(happen),
            Some(looks) => {
                *due = Some(Due { looks, happen });
                None
            }
        }
    }
}

impl Clock for Interrupted {
    fn now(&self) -> Timestamp {
        if let Some(happen) = self.happening() {
            happen();
        }
        self.clock.now()
    }

    fn sleep(&self, wait: Duration) -> Sleep {
        self.clock.sleep(wait)
    }
}

/// A connected web account and the browser in front of it.
struct Bench {
    folder: TempDir,
    shelf: Arc<Shelf>,
    desk: Arc<FrontDesk>,
    clock: Arc<Interrupted>,
    routes: Router,
    arrivals: Arrivals,
    outgoing: Arc<dyn Outgoing>,
}

/// What the gateway lends beyond the ordinary.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lent {
    Nothing,
    Desk,
}

/// What a browser keeps after login.
#[derive(Clone)]
struct Browser {
    cookie: String,
    token: String,
}

impl Bench {
    async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    async fn with(settings: Settings) -> Self {
        Self::opened(settings, &[]).await
    }

    /// Reachable under these names, too.
    async fn named(hosts: &[&str]) -> Self {
        Self::opened(Settings::default(), hosts).await
    }

    async fn opened(settings: Settings, hosts: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        // Login tokens are dated by the file system, so the test's clock starts where that is.
        let made = folder.path().metadata().unwrap().modified().unwrap();
        let made = made.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        let clock = FakeClock::starting(Timestamp::from_millis(i64::try_from(made).unwrap()));
        let clock = Arc::new(Interrupted::by_nothing(clock));
        Self::connected(settings, hosts, folder, clock, Lent::Desk).await
    }

    async fn connected(
        settings: Settings,
        hosts: &[&str],
        folder: TempDir,
        clock: Arc<Interrupted>,
        lent: Lent,
    ) -> Self {
        let (shelf, desk) = (Arc::new(Shelf::default()), Arc::new(FrontDesk::default()));
        let ports = Ports {
            account: AccountId::literal("web"),
            clock: clock.clone(),
            files: shelf.clone(),
            archive: shelf.clone(),
            menu: Arc::new([MenuItem {
                name: "title".into(),
                aliases: Vec::new(),
                arguments: "[TITLE]".into(),
                help: "show or set the title".into(),
                to: Offered::Everyone,
            }]),
            desk: (lent == Lent::Desk).then(|| desk.clone() as Arc<dyn Desk>),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            folder: folder.path().to_owned(),
            cursor: None,
            kept: Kept::default(),
        };
        let Link { incoming, outgoing, .. } = Web::connect(settings, ports).await.unwrap();
        let Incoming::Served { on: Surface::Root, routes, arrivals } = incoming else {
            panic!("the page is served at the root");
        };
        Self { folder, shelf, desk, clock, routes, arrivals, outgoing }
    }

    /// The same home, another process.
    async fn restarted(self) -> Self {
        let Self { folder, clock, .. } = self;
        Self::connected(Settings::default(), &[], folder, clock, Lent::Desk).await
    }

    /// The same home, and a gateway that lends no desk.
    async fn without_a_desk(self) -> Self {
        let Self { folder, clock, .. } = self;
        Self::connected(Settings::default(), &[], folder, clock, Lent::Nothing).await
    }

    async fn ask(&self, request: Request<Body>) -> Response {
        self.routes.clone().oneshot(request).await.unwrap()
    }

    async fn status(&self, request: Request<Body>) -> StatusCode {
        self.ask(request).await.status()
    }

    async fn hand_in(&self, token: &str) -> Response {
        self.ask(posting("/api/login", &json!({ "token": token }))).await
    }

    async fn login(&self) -> Browser {
        let token = mint_login(self.folder.path()).unwrap();
        let response = self.hand_in(&token).await;
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
        let set = response.headers()[header::SET_COOKIE].to_str().unwrap();
        let cookie = set.split(';').next().unwrap().to_owned();
        let mut browser = Browser { cookie, token: String::new() };
        let state = json_of(self.ask(browser.get("/api/state")).await).await;
        browser.token = state["csrf"].as_str().unwrap().to_owned();
        browser
    }

    /// What the gateway hears next.
    async fn heard(&mut self) -> Batch {
        match self.arrivals.next().await {
            Some(Ok(Arrival::Batch(batch))) => batch,
            _ => panic!("a batch was expected"),
        }
    }

    /// Sends a request, and commits what it brings as `verdict` says.
    async fn committing(
        &mut self,
        request: Request<Body>,
        verdict: Verdict,
    ) -> (StatusCode, Value, Inbound) {
        let routes = self.routes.clone();
        let answered = async move {
            let response = routes.oneshot(request).await.unwrap();
            (response.status(), json_of(response).await)
        };
        let committed = async {
            let Batch { mut events, ack, .. } = self.heard().await;
            ack.committed(Committed(vec![verdict]));
            events.remove(0)
        };
        let ((status, body), inbound) = futures::join!(answered, committed);
        (status, body, inbound)
    }

    async fn send(&self, delivery: u32, act: Act) {
        let id = OutboundId { session: SessionId::literal("s1"), delivery, part: 0 };
        self.outgoing.send(&Outbound { id, to: at(CHAT), act }).await.unwrap();
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl Browser {
    fn builder(&self, method: Method, path: &str) -> request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, HOST)
            .header(header::COOKIE, &self.cookie)
    }

    fn get(&self, path: &str) -> Request<Body> {
        self.builder(Method::GET, path).body(Body::empty()).unwrap()
    }

    fn post(&self, path: &str, body: &impl Serialize) -> Request<Body> {
        self.builder(Method::POST, path)
            .header("x-talaria-csrf", &self.token)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(serde_json::to_vec(body).unwrap()))
            .unwrap()
    }

    fn say(&self, text: &str) -> Request<Body> {
        self.post(&say_path(), &json!({ "id": "message-1", "text": text }))
    }
}

fn say_path() -> String {
    format!("/api/conversations/{CHAT}/messages")
}

/// A request of somebody who is not logged in.
fn getting(path: &str) -> Request<Body> {
    Request::get(path).header(header::HOST, HOST).body(Body::empty()).unwrap()
}

fn posting(path: &str, body: &impl Serialize) -> Request<Body> {
    Request::post(path)
        .header(header::HOST, HOST)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(serde_json::to_vec(body).unwrap()))
        .unwrap()
}

fn with(mut request: Request<Body>, name: &'static str, value: &str) -> Request<Body> {
    request.headers_mut().insert(name, value.parse().unwrap());
    request
}

fn at(chat: &'static str) -> Address {
    let chat = Chat { id: ChatId::literal(chat), kind: ChatKind::Dm };
    Address { account: AccountId::literal("web"), chat, thread: None }
}

fn journalled() -> Verdict {
    Verdict::Journalled(Seq(1))
}

async fn bytes_of(response: Response) -> Bytes {
    to_bytes(response.into_body(), 64 * 1024 * 1024).await.unwrap()
}

async fn json_of(response: Response) -> Value {
    serde_json::from_slice(&bytes_of(response).await).unwrap_or(Value::Null)
}

/// The events of an open page, as they come.
struct Page {
    body: axum::body::BodyDataStream,
    read: String,
}

impl Page {
    fn reading(response: Response) -> Self {
        Self { body: response.into_body().into_data_stream(), read: String::new() }
    }

    async fn open(bench: &Bench, browser: &Browser) -> Self {
        let response = bench.ask(browser.get("/api/events")).await;
        assert_eq!(response.status(), StatusCode::OK);
        let mut page = Self::reading(response);
        assert_eq!(page.next().await, Some(json!({ "kind": "hello" })));
        page
    }

    /// The next event, or `None` when the stream has ended or broken off.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let event = event.strip_prefix("data: ").map(serde_json::from_str);
                self.read = rest.to_owned();
                return event.map(Result::unwrap);
            }
            let piece = self.body.next().await?.ok()?;
            self.read.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// What is there without waiting.
    fn ready(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.next().now_or_never().flatten()).collect()
    }
}
