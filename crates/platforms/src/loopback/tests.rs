//! The loopback platform through its seam: a vendor on a real socket on one side, the link on the
//! other. The lines are written down here as the guide shows them.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};
use talaria_clock::SystemClock;
use talaria_model::{
    AccountId, Act, Address, Addressed, Author, Bystander, Chat, ChatId, ChatKind, Content, FileId,
    FileRef, Inbound, InboundKind, KnownBy, Message, Outbound, OutboundId, Overheard, Quote,
    Receipt, Sender, SenderId, SenderKind, SessionId, Source, ThreadId,
};
use talaria_platform::{
    Archive, ArchiveError, Arrival, Arrivals, ByteStream, Conversation, Cursor, FileError,
    FileStore, Hit, Incoming, Kept, Link, LinkError, Outgoing, Platform, Ports, Recorded,
    Registration, SendError,
};
use talaria_testkit::platform_contract::{Kind, PlatformHarness, Shown, Told};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_util::codec::{Decoder, Framed, LinesCodec};

use super::{Loopback, Settings};

type Lines = Framed<TcpStream, LinesCodec>;

/// A vendor.
struct Bridge {
    listener: TcpListener,
    folder: TempDir,
    events: Option<Arc<Mutex<Lines>>>,
    acts: Option<Lines>,
    /// The keys of what it has shown, each once.
    posted: Vec<String>,
}

impl Bridge {
    async fn listening() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let folder = TempDir::new().unwrap();
        Self { listener, folder, events: None, acts: None, posted: Vec::new() }
    }

    fn address(&self) -> String {
        self.listener.local_addr().unwrap().to_string()
    }

    /// The next connection and what it says first.
    async fn accept(&self) -> (Lines, Value) {
        let (stream, _) = self.listener.accept().await.unwrap();
        let mut lines = LinesCodec::new_with_max_length(8 * 1024 * 1024).framed(stream);
        let hello = serde_json::from_str(&lines.next().await.unwrap().unwrap()).unwrap();
        (lines, hello)
    }

    /// The next act that is asked for.
    async fn asked(&mut self) -> Value {
        if self.acts.is_none() {
            let (lines, hello) = self.accept().await;
            assert_eq!(hello["hello"]["role"], "acts");
            assert_eq!(hello["hello"]["account"], "contract-7");
            self.acts = Some(lines);
        }
        let line = self.acts.as_mut().unwrap().next().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn answer(&mut self, answer: &str) {
        let acts = self.acts.as_mut().unwrap().get_mut();
        acts.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }

    /// What a post is called. The same key is the same post.
    fn name(&mut self, key: &str) -> String {
        let known = self.posted.iter().position(|posted| posted == key);
        let at = known.unwrap_or_else(|| {
            self.posted.push(key.to_owned());
            self.posted.len() - 1
        });
        format!("m{}", at + 1)
    }

    /// Waits until the other end can have noticed what happened here: whatever is sent and closed
    /// on one machine arrives in order.
    async fn settled(&self) {
        let mut one = TcpStream::connect(self.address()).await.unwrap();
        let (mut other, _) = self.listener.accept().await.unwrap();
        one.write_all(b"!").await.unwrap();
        other.read_exact(&mut [0]).await.unwrap();
    }

    async fn tell(&self, line: &[u8]) {
        let mut events = self.events.as_ref().expect("somebody listens").lock().await;
        events.get_mut().write_all(line).await.unwrap();
        events.get_mut().write_all(b"\n").await.unwrap();
    }
}

fn event(number: u64, text: &str) -> Value {
    let id = format!("e{number}");
    json!({ "number": number, "id": id, "chat": "home", "sender": "alice", "text": text })
}

#[async_trait(?Send)]
impl PlatformHarness for Bridge {
    async fn open() -> Self {
        Self::listening().await
    }

    fn registration() -> Registration {
        Registration::of::<Loopback>()
    }

    fn settings(&self) -> Value {
        json!({ "address": self.address(), "edits_every": 100, "keyed": true, "buttons": 3 })
    }

    fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    async fn attach(&mut self, incoming: Incoming) -> Arrivals {
        let Incoming::Stream(arrivals) = incoming else { panic!("a stream") };
        let (lines, hello) = self.accept().await;
        assert_eq!(hello["hello"]["role"], "events");
        assert_eq!(hello["hello"]["account"], "contract-7");
        self.events = Some(Arc::new(Mutex::new(lines)));
        arrivals
    }

    fn say(&mut self, number: u64, text: &str) -> BoxFuture<'static, Told> {
        let events = self.events.clone().expect("somebody listens");
        let line = format!("{}\n", event(number, text));
        async move {
            let mut events = events.lock().await;
            events.get_mut().write_all(line.as_bytes()).await.unwrap();
            match events.next().await {
                Some(Ok(line)) => {
                    assert_eq!(line, format!(r#"{{"ack":{number}}}"#));
                    Told::Safe
                }
                Some(Err(_)) | None => Told::TryAgain,
            }
        }
        .boxed()
    }

    async fn shown(&mut self) -> Shown {
        let asked = self.asked().await;
        let (kind, told, id) = match asked["act"]["post"].as_object() {
            Some(_) => {
                (Kind::Post, &asked["act"]["post"], self.name(asked["id"].as_str().unwrap()))
            }
            None => {
                let edit = &asked["act"]["edit"];
                (Kind::Edit, edit, edit["message"].as_str().unwrap().to_owned())
            }
        };
        self.answer(&json!({ "done": { "message": id } }).to_string()).await;
        let text = told["text"].as_str().unwrap().to_owned();
        Shown { kind, id: Some(id), text }
    }

    async fn disturb(&mut self, number: usize) -> bool {
        let line: Vec<u8> = match number {
            0 => b"this is not JSON".to_vec(),
            1 => b"\xff\xfe\xfd".to_vec(),
            2 => vec![b'x'; 2 * 1024 * 1024],
            3 => b"[".repeat(100_000),
            4 => b"{}".to_vec(),
            5 => br#"{ "number": "one" }"#.to_vec(),
            _ => return false,
        };
        // A gateway that hangs up in the middle of it has had enough.
        let mut events = self.events.as_ref().expect("somebody listens").lock().await;
        let _ = events.get_mut().write_all(&line).await;
        let _ = events.get_mut().write_all(b"\n").await;
        true
    }

    async fn hung_up(&mut self) {
        if let Some(events) = self.events.take() {
            while let Some(Ok(_)) = events.lock().await.next().await {}
        }
        if let Some(mut acts) = self.acts.take() {
            while let Some(Ok(_)) = acts.next().await {}
        }
    }
}

talaria_testkit::platform_contract!(contract, Bridge);

/// A connected account and its vendor.
struct Bench {
    bridge: Bridge,
    arrivals: Arrivals,
    outgoing: Arc<dyn Outgoing>,
}

async fn bench(cursor: Option<&str>) -> Bench {
    let mut bridge = Bridge::listening().await;
    let settings: Settings = serde_json::from_value(bridge.settings()).unwrap();
    let ports = ports(cursor);
    let Link { incoming, outgoing, .. } = Loopback::connect(settings, ports).await.unwrap();
    let arrivals = bridge.attach(incoming).await;
    Bench { bridge, arrivals, outgoing }
}

fn ports(cursor: Option<&str>) -> Ports {
    Ports {
        account: AccountId::literal("contract-7"),
        clock: Arc::new(SystemClock),
        files: Arc::new(Nothing),
        archive: Arc::new(Nothing),
        menu: Arc::new([]),
        desk: None,
        hosts: Arc::default(),
        folder: "unused".into(),
        cursor: cursor.map(|cursor| Cursor(cursor.into())),
        kept: Kept::default(),
    }
}

struct Nothing;

#[async_trait]
impl FileStore for Nothing {
    async fn save(
        &self,
        _: &str,
        _: Option<&str>,
        _: ByteStream,
    ) -> Result<talaria_model::FileRef, FileError> {
        Err(FileError::Missing)
    }

    async fn read(&self, _: &talaria_model::FileId) -> Result<ByteStream, FileError> {
        Err(FileError::Missing)
    }
}

#[async_trait]
impl Archive for Nothing {
    async fn conversations(&self, _: usize) -> Result<Vec<Conversation>, ArchiveError> {
        Ok(Vec::new())
    }

    async fn history(
        &self,
        _: &Address,
        _: Option<u64>,
        _: usize,
    ) -> Result<Vec<Recorded>, ArchiveError> {
        Ok(Vec::new())
    }

    async fn search(&self, _: &str, _: usize) -> Result<Vec<Hit>, ArchiveError> {
        Ok(Vec::new())
    }
}

impl Bench {
    /// The one event of the next batch.
    async fn event(&mut self) -> Inbound {
        match self.arrivals.next().await {
            Some(Ok(Arrival::Batch(mut batch))) if batch.events.len() == 1 => {
                batch.events.remove(0)
            }
            _ => panic!("a batch of one event"),
        }
    }

    async fn next(&mut self) -> Result<(Vec<String>, Option<String>), LinkError> {
        match self.arrivals.next().await {
            Some(Ok(Arrival::Batch(batch))) => {
                let ids = batch.events.iter().map(|event| event.id.to_string()).collect();
                Ok((ids, batch.cursor.map(|cursor| cursor.0)))
            }
            Some(Err(error)) => Err(error),
            _ => panic!("a batch or an error"),
        }
    }

    /// Asks for a post; the vendor answers with this line, or hangs up.
    async fn post(&mut self, answer: Option<&str>) -> Result<Receipt, SendError> {
        let bridge = &mut self.bridge;
        let vendor = async {
            bridge.asked().await;
            match answer {
                Some(answer) => bridge.answer(answer).await,
                None => bridge.acts = None,
            }
        };
        let outbound = hello();
        let (sent, ()) = tokio::join!(self.outgoing.send(&outbound), vendor);
        sent
    }
}

fn hello() -> Outbound {
    let session = SessionId::literal("s");
    let chat = Chat { id: ChatId::literal("home"), kind: ChatKind::Dm };
    Outbound {
        id: OutboundId { session, delivery: 1, part: 0 },
        to: Address { account: AccountId::literal("contract-7"), chat, thread: None },
        act: Act::Post(Content::text("hello")),
    }
}

#[tokio::test]
async fn a_connection_begins_with_the_last_stored_number() {
    let mut bridge = Bridge::listening().await;
    let settings: Settings = serde_json::from_value(bridge.settings()).unwrap();
    let link = Loopback::connect(settings, ports(Some("41"))).await.unwrap();
    let (_, hello) = bridge.accept().await;
    assert_eq!(
        hello,
        json!({ "hello": { "role": "events", "account": "contract-7", "cursor": 41 } })
    );
    drop(link);
    bridge.hung_up().await;
}

#[tokio::test]
async fn lines_that_are_there_together_are_one_batch_up_to_the_last_number() {
    let mut bench = bench(None).await;
    let lines: Vec<String> = (1..=3).map(|n| event(n, "hello").to_string()).collect();
    bench.bridge.tell(lines.join("\n").as_bytes()).await;
    let mut heard = Vec::new();
    let mut last = None;
    while heard.len() < 3 {
        let (ids, cursor) = bench.next().await.unwrap();
        heard.extend(ids);
        last = cursor;
    }
    assert_eq!(heard, ["e1", "e2", "e3"]);
    assert_eq!(last.as_deref(), Some("3"));
}

#[tokio::test]
async fn what_stands_before_a_broken_line_is_taken_in() {
    let mut bench = bench(None).await;
    let lines = format!("{}\nnot JSON", event(1, "hello"));
    bench.bridge.tell(lines.as_bytes()).await;
    assert_eq!(bench.next().await.unwrap().0, ["e1"]);
    assert!(matches!(bench.next().await, Err(LinkError::Lost { .. })), "and the stream ends there");
}

#[tokio::test]
async fn an_event_that_makes_no_sense_is_skipped_for_good() {
    let mut bench = bench(None).await;
    let with = |number, field: &str, value: Value| {
        let mut event = event(number, "hello");
        event[field] = value;
        event.to_string()
    };
    let lines = [
        with(1, "id", json!("")),
        with(2, "chat", json!("home\nroot")),
        with(3, "sender", json!("x".repeat(10_000))),
        with(4, "press", json!("")),
        with(5, "text", json!(["hello"])),
        event(6, "hello").to_string(),
        with(7, "id", Value::Null),
        with(8, "kind", json!("party")),
        with(9, "alt", json!("")),
        with(10, "place", json!({ "parent": "a\nb" })),
        with(11, "reply_to", json!("")),
        with(12, "quote", json!({ "text": "hi", "author": "somebody" })),
    ];
    bench.bridge.tell(lines.join("\n").as_bytes()).await;
    let (mut heard, mut last) = (Vec::new(), None);
    while last.as_deref() != Some("12") {
        let (ids, cursor) = bench.next().await.unwrap();
        heard.extend(ids);
        last = cursor;
    }
    assert_eq!(heard, ["e6"]);
}

#[tokio::test]
async fn everything_that_is_known_about_a_message_can_be_told() {
    let mut bench = bench(None).await;
    let line = json!({
        "number": 1, "id": "e1", "chat": "team", "kind": "group", "thread": "lunch",
        "place": { "name": "The team", "topic": "Food", "space": "Office", "alt": "team-2" },
        "sender": "7", "name": "Alice", "alt": "alice@example.org", "is": "bot",
        "text": "and on Friday?", "message": "m9", "reply_to": "m8",
        "quote": {
            "text": "Pizza.", "author": { "named": "Carol" }, "standing": "heard",
            "by": { "id": "9", "kind": "bot", "roles": ["cooks"] },
        },
        "overheard": [{ "name": "Bob", "text": "I had soup.", "standing": "heard", "by": { "id": "8" } }],
        "channel_prompt": "Answer in French.", "skills": ["review"], "addressed": "to_others",
        "roles": ["cooks"],
    });
    bench.bridge.tell(line.to_string().as_bytes()).await;
    let Inbound { from, to, source, kind, .. } = bench.event().await;
    let alice = Sender {
        alt: Some(SenderId::literal("alice@example.org")),
        kind: SenderKind::Bot,
        ..Sender::named(SenderId::literal("7"), "Alice")
    };
    assert_eq!(from, alice);
    assert_eq!(to.chat, Chat { id: ChatId::literal("team"), kind: ChatKind::Group });
    assert_eq!(to.thread, Some(ThreadId::literal("lunch")));
    assert_eq!(
        source,
        Source {
            chat_name: Some("The team".into()),
            topic: Some("Food".into()),
            space: Some("Office".into()),
            alt_chat: Some(ChatId::literal("team-2")),
            ..Source::default()
        },
        "rights are not for a line to give"
    );
    let InboundKind::Said(message) = kind else { panic!("said") };
    let carol = Bystander { kind: SenderKind::Bot, ..Bystander::new(SenderId::literal("9")) };
    let quote = Quote::new("Pizza.", Author::Named("Carol".into()));
    assert_eq!(message.quote, Some(Quote { by: Some(carol), ..quote }));
    let by = Some(Bystander::new(SenderId::literal("8")));
    assert_eq!(message.overheard, [Overheard { by, ..Overheard::new("Bob", "I had soup.") }]);
    assert_eq!(message.channel_prompt.as_deref(), Some("Answer in French."));
    assert_eq!(message.addressed, Addressed::ToOthers);
    assert_eq!(message.skills, ["review"]);
    assert_eq!(message.reply_to.map(|message| message.to_string()), Some("m8".into()));
}

#[tokio::test]
async fn what_is_not_told_is_a_person_in_a_chat_of_two() {
    let mut bench = bench(None).await;
    bench.bridge.tell(event(1, "hello").to_string().as_bytes()).await;
    let Inbound { from, to, source, kind, .. } = bench.event().await;
    assert_eq!(from, Sender::new(SenderId::literal("alice")));
    assert_eq!((to.chat.kind, to.thread), (ChatKind::Dm, None));
    assert_eq!(source, Source::default());
    assert_eq!(kind, InboundKind::Said(Message { text: "hello".into(), ..Message::default() }));
    for (number, kind, expected) in [
        (2, "channel", ChatKind::Channel),
        (3, "thread", ChatKind::Thread),
        (4, "forum", ChatKind::Forum),
    ] {
        let mut line = event(number, "hello");
        line["kind"] = json!(kind);
        bench.bridge.tell(line.to_string().as_bytes()).await;
        assert_eq!(bench.event().await.to.chat.kind, expected);
    }
    let mut line = event(5, "hello");
    line["place"] = json!({ "known_by": "sender" });
    bench.bridge.tell(line.to_string().as_bytes()).await;
    assert_eq!(bench.event().await.source.known_by, KnownBy::Sender);
}

#[tokio::test]
async fn fields_that_a_later_vendor_sends_are_ignored() {
    let mut bench = bench(None).await;
    let mut event = event(1, "hello");
    event["mood"] = json!({ "is": "good" });
    bench.bridge.tell(event.to_string().as_bytes()).await;
    assert_eq!(bench.next().await.unwrap().0, ["e1"]);
}

#[tokio::test]
async fn a_file_goes_along_with_how_it_is_to_be_shown() {
    let mut bench = bench(None).await;
    let sound = FileRef::new(FileId::literal("aa"), "hi.ogg", "audio/ogg", 3);
    let voice = FileRef { shown: talaria_model::Shown::Voice, ..sound.clone() };
    let files = vec![sound, voice];
    let outbound = Outbound { act: Act::Post(Content { files, ..Content::default() }), ..hello() };
    let vendor = async {
        let asked = bench.bridge.asked().await;
        bench.bridge.answer(r#"{"done":{}}"#).await;
        asked
    };
    let (sent, asked) = tokio::join!(bench.outgoing.send(&outbound), vendor);
    sent.unwrap();
    let file = json!({ "id": "aa", "name": "hi.ogg", "mime": "audio/ogg", "size": 3 });
    let mut voice = file.clone();
    voice["shown"] = json!("voice");
    assert_eq!(asked["act"]["post"]["files"], json!([file, voice]));
}

#[tokio::test]
async fn each_answer_of_the_vendor_says_what_to_do() {
    let mut bench = bench(None).await;
    let receipt = bench.post(Some(r#"{"done":{"message":"m1"}}"#)).await.unwrap();
    assert_eq!(receipt.message.map(|message| message.to_string()), Some("m1".into()));
    let receipt = bench.post(Some(r#"{"done":{}}"#)).await.unwrap();
    assert_eq!(receipt.message, None);
    let sent = bench.post(Some(r#"{"throttled":{"seconds":5}}"#)).await;
    assert_eq!(sent, Err(SendError::Throttled { after: std::time::Duration::from_secs(5) }));
    let sent = bench.post(Some(r#"{"gone":"left"}"#)).await;
    assert_eq!(sent, Err(SendError::Gone { reason: "left".into() }));
    let sent = bench.post(Some(r#"{"rejected":"no"}"#)).await;
    assert_eq!(sent, Err(SendError::Rejected { reason: "no".into() }));
}

#[tokio::test]
async fn a_vendor_that_took_a_request_and_said_nothing_readable_may_have_done_it() {
    let mut bench = bench(None).await;
    assert!(matches!(bench.post(None).await, Err(SendError::Unconfirmed { .. })));
    let sent = bench.post(Some("what?")).await;
    assert!(matches!(sent, Err(SendError::Unconfirmed { .. })), "{sent:?}");
}

#[tokio::test]
async fn a_vendor_that_hung_up_between_two_acts_is_connected_again() {
    let mut bench = bench(None).await;
    bench.post(Some(r#"{"done":{}}"#)).await.unwrap();
    // The vendor restarts: what was open is closed before the next act.
    bench.bridge.acts = None;
    bench.bridge.settled().await;
    let sent = bench.post(Some(r#"{"done":{}}"#)).await;
    assert!(sent.is_ok(), "nothing was lost, so nothing is unsure: {sent:?}");
}

#[tokio::test]
async fn a_vendor_that_is_not_there_has_nothing() {
    let bench = bench(None).await;
    let Bench { bridge, outgoing, .. } = bench;
    drop(bridge);
    let sent = outgoing.send(&hello()).await;
    assert!(matches!(sent, Err(SendError::Unreachable { .. })), "{sent:?}");
}
