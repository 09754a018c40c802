//! The terminal platform through its seam: routes on one side, the link on the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::{Request, StatusCode};
use axum::{Router, response::Response};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use talaria_clock::FakeClock;
use talaria_model::{
    AccountId, Act, Address, CallId, Chat, ChatId, ChatKind, Choice, ChoiceId, Content, Cost,
    Draft, Entry, EntryBody, FileId, FileRef, Inbound, InboundKind, MessageId, Outbound,
    OutboundId, Sender, SenderId, Seq, SessionId, Timestamp, TurnId, Usage,
};
use talaria_platform::{
    Archive, ArchiveError, Arrival, Arrivals, Batch, ByteStream, Committed, Conversation,
    FileError, FileStore, Hit, Incoming, Kept, Link, Outgoing, Platform, Ports, Recorded,
    SendError, Verdict,
};
use tower::ServiceExt;

use super::wire::{Doing, Event, Kind, LARGEST_FILE, LONGEST_TEXT, Posted, Said};
use super::{Settings, Terminal};

/// What the gateway would lend: files and a past, in memory.
#[derive(Default)]
struct Shelf {
    files: Mutex<HashMap<FileId, Bytes>>,
    entries: Mutex<Vec<Recorded>>,
    doing: Mutex<HashMap<ChatId, Doing>>,
}

impl Shelf {
    fn record(&self, turn: Option<u32>, body: EntryBody) {
        let mut entries = self.entries.lock().unwrap();
        let number = entries.len() as u32 + 1;
        let turn = turn.map(|number| TurnId { session: session(), number });
        let entry = Entry {
            number,
            at: Timestamp::default(),
            turn,
            body,
            because: None,
            about: None,
            resumed: None,
        };
        entries.push(Recorded { position: u64::from(number), entry });
    }

    fn becomes(&self, chat: &'static str, doing: Doing) {
        self.doing.lock().unwrap().insert(ChatId::literal(chat), doing);
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
        Ok(stream::iter([Ok(bytes)]).boxed())
    }
}

#[async_trait]
impl Archive for Shelf {
    async fn conversations(&self, limit: usize) -> Result<Vec<Conversation>, ArchiveError> {
        let doing = self.doing.lock().unwrap();
        let conversations = doing.iter().map(|(chat, doing)| Conversation {
            at: at(chat.clone()),
            title: "a title".into(),
            updated: Timestamp::default(),
            busy: *doing == Doing::Busy,
        });
        Ok(conversations.take(limit).collect())
    }

    async fn history(
        &self,
        _: &Address,
        _: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Recorded>, ArchiveError> {
        let entries = self.entries.lock().unwrap();
        Ok(entries.iter().skip(entries.len().saturating_sub(limit)).cloned().collect())
    }

    async fn search(&self, _: &str, _: usize) -> Result<Vec<Hit>, ArchiveError> {
        Ok(Vec::new())
    }
}

struct Bench {
    shelf: Arc<Shelf>,
    routes: Router,
    outgoing: Arc<dyn Outgoing>,
    arrivals: Arrivals,
}

async fn bench() -> Bench {
    let shelf = Arc::new(Shelf::default());
    let ports = Ports {
        account: AccountId::literal("terminal"),
        clock: Arc::new(FakeClock::starting(Timestamp::from_millis(1_000))),
        files: shelf.clone(),
        archive: shelf.clone(),
        menu: Arc::new([]),
        desk: None,
        hosts: Arc::new([]),
        folder: "unused".into(),
        cursor: None,
        kept: Kept::default(),
    };
    let Link { incoming, outgoing, .. } = Terminal::connect(Settings {}, ports).await.unwrap();
    let Incoming::Served { routes, arrivals, .. } = incoming else { panic!("not served") };
    Bench { shelf, routes, outgoing, arrivals }
}

impl Bench {
    async fn call(&self, request: Request<Body>) -> Response {
        self.routes.clone().oneshot(request).await.unwrap()
    }

    async fn post(&self, path: &str, body: Value) -> StatusCode {
        let request = Request::post(path)
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .unwrap();
        self.call(request).await.status()
    }

    /// Posts while the gateway answers with `verdict`, or drops the acknowledgement.
    async fn post_to(
        &mut self,
        path: &str,
        body: Value,
        verdict: Option<Verdict>,
    ) -> (StatusCode, Value, Inbound) {
        let request = Request::post(path)
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .unwrap();
        let calling = self.routes.clone().oneshot(request);
        let taking = async {
            let Some(Ok(Arrival::Batch(batch))) = self.arrivals.next().await else {
                panic!("nothing arrived")
            };
            let Batch { mut events, ack, .. } = batch;
            if let Some(verdict) = verdict {
                ack.committed(Committed(vec![verdict]));
            }
            events.remove(0)
        };
        let (response, inbound) = tokio::join!(calling, taking);
        let (status, body) = read(response.unwrap()).await;
        (status, serde_json::from_slice(&body).unwrap(), inbound)
    }

    async fn attach(&self, path: &str) -> Listening {
        let response = self.call(Request::get(path).body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        Listening { lines: response.into_body().into_data_stream() }
    }

    async fn send(&self, delivery: u32, act: Act) -> Result<(), SendError> {
        let outbound = Outbound { id: id(delivery), to: at(ChatId::literal("main")), act };
        self.outgoing.send(&outbound).await.map(|_| ())
    }

    async fn say(&self, delivery: u32, text: &str) -> Result<(), SendError> {
        self.send(delivery, Act::Post(Content::text(text))).await
    }

    async fn draft(&self, delivery: u32, text: &str) {
        self.send(delivery, Act::Draft(Content::text(text).into())).await.unwrap();
    }
}

struct Listening {
    lines: BodyDataStream,
}

impl Listening {
    /// The next event, waiting for it.
    async fn next(&mut self) -> Option<Event> {
        let line = self.lines.next().await?.unwrap();
        Some(serde_json::from_slice(&line).unwrap())
    }

    /// Whether there is nothing to read at the moment.
    fn is_silent(&mut self) -> bool {
        self.lines.next().now_or_never().is_none()
    }

    async fn hello(&mut self) -> Doing {
        match self.next().await {
            Some(Event::Hello { doing, .. }) => doing,
            other => panic!("not a hello: {other:?}"),
        }
    }

    async fn posted(&mut self) -> Posted {
        match self.next().await {
            Some(Event::Posted(posted)) => posted,
            other => panic!("not posted: {other:?}"),
        }
    }

    async fn drafted(&mut self) -> String {
        match self.next().await {
            Some(Event::Draft { text, .. }) => text,
            other => panic!("not a draft: {other:?}"),
        }
    }
}

async fn read(response: Response) -> (StatusCode, Bytes) {
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, body)
}

fn session() -> SessionId {
    SessionId::literal("20261115_093000_0badcafe")
}

fn id(delivery: u32) -> OutboundId {
    OutboundId { session: session(), delivery, part: 0 }
}

fn at(chat: ChatId) -> Address {
    let account = AccountId::literal("terminal");
    Address { account, chat: Chat { id: chat, kind: ChatKind::Dm }, thread: None }
}

fn said(text: &str) -> EntryBody {
    EntryBody::Said {
        from: Sender::new(SenderId::literal("operator")),
        text: text.into(),
        files: Vec::new(),
        heard: None,
        message: Some(MessageId::literal("m1")),
        forwarded: None,
    }
}

fn answered(text: &str, delivery: u32) -> EntryBody {
    EntryBody::Answered {
        text: text.into(),
        files: Vec::new(),
        calls: Vec::new(),
        reasoning: None,
        usage: Usage::default(),
        cost: Cost::FREE,
        sent: Some(id(delivery)),
        extent: talaria_model::Extent::Whole,
    }
}

fn withheld(text: &str) -> EntryBody {
    match answered(text, 0) {
        EntryBody::Answered { text, files, calls, reasoning, usage, cost, extent, .. } => {
            let sent = None;
            EntryBody::Answered { text, files, calls, reasoning, usage, cost, sent, extent }
        }
        other => other,
    }
}

fn summary(text: &str) -> EntryBody {
    let (usage, cost) = (Usage::default(), Cost::FREE);
    EntryBody::Summary { after: 0, upto: 6, text: text.into(), usage, cost }
}

fn noticed(text: &str, delivery: u32) -> EntryBody {
    EntryBody::Noticed {
        text: text.into(),
        choices: Vec::new(),
        files: Vec::new(),
        sent: id(delivery),
    }
}

const MESSAGES: &str = "/conversations/main/messages";

#[tokio::test(start_paused = true)]
async fn what_is_said_is_answered_for_only_after_the_commit() {
    let mut bench = bench().await;
    let body = json!({ "id": "m-1", "text": "hello" });
    let verdict = Some(Verdict::Journalled(Seq(1)));
    let (status, body, inbound) = bench.post_to(MESSAGES, body, verdict).await;
    assert_eq!((status, body), (StatusCode::OK, json!("recorded")));
    assert_eq!(inbound.id.as_str(), "m-1");
    assert_eq!(inbound.from.id.as_str(), "operator");
    assert_eq!(inbound.to, at(ChatId::literal("main")));
    let InboundKind::Said(message) = inbound.kind else { panic!("not said") };
    assert_eq!(message.text, "hello");
}

#[tokio::test(start_paused = true)]
async fn a_verdict_becomes_a_status() {
    let mut bench = bench().await;
    for (verdict, status) in [
        (Some(Verdict::Repeated), StatusCode::OK),
        (Some(Verdict::Denied), StatusCode::FORBIDDEN),
        (None, StatusCode::SERVICE_UNAVAILABLE),
    ] {
        let body = json!({ "id": "m-1", "text": "hello" });
        assert_eq!(bench.post_to(MESSAGES, body, verdict).await.0, status);
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_does_not_come_is_tried_again_by_the_terminal() {
    let mut bench = bench().await;
    let body = json!({ "id": "m-1", "text": "hello" });
    assert_eq!(bench.post(MESSAGES, body).await, StatusCode::SERVICE_UNAVAILABLE);
    // It is still on its way; the terminal's repeat has the same id.
    assert!(bench.arrivals.next().now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_press_and_a_stop_are_events_too() {
    let mut bench = bench().await;
    let verdict = || Some(Verdict::Journalled(Seq(1)));
    let body = json!({ "id": "p-1", "choice": "yes" });
    let (status, _, inbound) = bench.post_to("/conversations/main/press", body, verdict()).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(inbound.kind, InboundKind::Pressed(ChoiceId::literal("yes")));
    let (status, _, inbound) =
        bench.post_to("/conversations/main/stop", json!({ "id": "s-1" }), verdict()).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(inbound.kind, InboundKind::Stopped);
}

#[tokio::test(start_paused = true)]
async fn what_is_out_of_bounds_does_not_reach_the_gateway() {
    let mut bench = bench().await;
    let file = json!({ "id": "ab", "name": "a", "mime": "text/plain", "size": 1 });
    for (path, body, status) in [
        (MESSAGES, json!({ "id": "m", "text": "  " }), StatusCode::BAD_REQUEST),
        (MESSAGES, json!({ "id": "", "text": "a" }), StatusCode::BAD_REQUEST),
        (MESSAGES, json!({ "id": "m", "text": "a", "as": "root" }), StatusCode::BAD_REQUEST),
        (MESSAGES, json!({ "id": "m", "text": "a", "files": [file] }), StatusCode::BAD_REQUEST),
        (
            MESSAGES,
            json!({ "id": "m", "text": "a", "files": vec![file.clone(); 11] }),
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
        (
            MESSAGES,
            json!({ "id": "m", "text": "x".repeat(LONGEST_TEXT + 1) }),
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
        (
            MESSAGES,
            json!({ "id": "m", "text": "x".repeat(5 * LONGEST_TEXT) }),
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
        (
            "/conversations/a%20b/messages",
            json!({ "id": "m", "text": "a" }),
            StatusCode::BAD_REQUEST,
        ),
        ("/elsewhere", json!({}), StatusCode::NOT_FOUND),
    ] {
        assert_eq!(bench.post(path, body).await, status, "{path}");
    }
    assert!(bench.arrivals.next().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_is_doing_is_told_beside_what_it_has_written() {
    let bench = bench().await;
    let mut terminal = bench.attach("/conversations/main/stream").await;
    terminal.hello().await;
    let doing = Some("searching the web".to_owned());
    let draft = Draft { content: Content::text("Let me look."), doing: doing.clone() };
    bench.send(1, Act::Draft(draft)).await.unwrap();
    let text = "Let me look.".to_owned();
    assert_eq!(terminal.next().await, Some(Event::Draft { id: id(1), text, doing }));
}

#[tokio::test(start_paused = true)]
async fn a_stream_begins_with_the_past_and_a_hello() {
    let bench = bench().await;
    bench.shelf.becomes("main", Doing::Busy);
    bench.shelf.record(Some(1), said("what time is it?"));
    bench.shelf.record(Some(1), answered("", 1));
    bench.shelf.record(
        Some(1),
        EntryBody::Returned {
            call: CallId::literal("c"),
            output: "09:30".into(),
            failed: false,
            files: Vec::new(),
        },
    );
    bench.shelf.record(Some(1), answered("Half past nine.", 2));
    bench.shelf.record(Some(2), noticed("Stopped.", 3));
    bench.shelf.record(None, noticed("Nothing is running.", 4));
    bench.shelf.record(Some(3), withheld("NO_REPLY"));
    bench.shelf.record(Some(4), summary("They spoke about the time."));

    let mut terminal = bench.attach("/conversations/main/stream?history=10").await;
    let Some(Event::Said(Said { id: said, position: Some(1), text, .. })) = terminal.next().await
    else {
        panic!("not said")
    };
    assert_eq!(said.as_ref().map(|id| id.as_str()), Some("m1"), "the id that its terminal gave it");
    assert_eq!(text, "what time is it?");
    for (position, delivery, kind, text) in [
        (4, 2, Kind::Answer, "Half past nine."),
        (5, 3, Kind::Failure, "Stopped."),
        (6, 4, Kind::Notice, "Nothing is running."),
    ] {
        let posted = terminal.posted().await;
        assert_eq!(posted.position, Some(position));
        assert_eq!(posted.id, Some(id(delivery)));
        assert_eq!((posted.kind, posted.text.as_str()), (kind, text));
    }
    assert_eq!(terminal.hello().await, Doing::Busy);

    let mut terminal = bench.attach("/conversations/main/stream").await;
    assert_eq!(terminal.hello().await, Doing::Busy);
}

#[tokio::test(start_paused = true)]
async fn the_past_tells_an_open_question_from_a_turn_that_failed() {
    for (doing, kind) in [(Doing::Busy, Kind::Question), (Doing::Idle, Kind::Failure)] {
        let bench = bench().await;
        bench.shelf.becomes("main", doing);
        bench.shelf.record(Some(1), said("paint it"));
        bench.shelf.record(Some(1), noticed("Which colour?", 1));
        let mut terminal = bench.attach("/conversations/main/stream?history=1").await;
        let posted = terminal.posted().await;
        assert_eq!((posted.kind, posted.doing), (kind, doing));
    }
}

#[tokio::test(start_paused = true)]
async fn everybody_who_is_attached_is_told() {
    let bench = bench().await;
    let mut first = bench.attach("/conversations/main/stream").await;
    let mut second = bench.attach("/conversations/main/stream").await;
    let mut elsewhere = bench.attach("/conversations/other/stream").await;
    for terminal in [&mut first, &mut second, &mut elsewhere] {
        assert_eq!(terminal.hello().await, Doing::Idle);
    }
    bench.say(1, "hello").await.unwrap();
    for terminal in [&mut first, &mut second] {
        let posted = terminal.posted().await;
        assert_eq!((posted.id, posted.text.as_str()), (Some(id(1)), "hello"));
        assert_eq!(posted.doing, Doing::Idle);
    }
    assert!(elsewhere.is_silent());
}

#[tokio::test(start_paused = true)]
async fn what_is_posted_says_what_kind_of_thing_it_is() {
    let bench = bench().await;
    let mut terminal = bench.attach("/conversations/main/stream").await;
    terminal.hello().await;

    bench.shelf.becomes("main", Doing::Busy);
    let choice = Choice { id: ChoiceId::literal("y"), label: "Yes".into() };
    let asked = Content { choices: vec![choice.clone()], ..Content::text("Sure?") };
    bench.send(1, Act::Post(asked)).await.unwrap();
    let posted = terminal.posted().await;
    assert_eq!((posted.kind, posted.doing), (Kind::Question, Doing::Busy));
    assert_eq!(posted.choices, [choice]);

    bench.shelf.record(Some(1), noticed("And which one?", 2));
    bench.say(2, "And which one?").await.unwrap();
    assert_eq!(terminal.posted().await.kind, Kind::Question);

    bench.shelf.record(None, noticed("Stopping.", 3));
    bench.say(3, "Stopping.").await.unwrap();
    assert_eq!(terminal.posted().await.kind, Kind::Notice);

    bench.shelf.becomes("main", Doing::Idle);
    bench.shelf.record(Some(1), noticed("Stopped.", 4));
    bench.say(4, "Stopped.").await.unwrap();
    assert_eq!(terminal.posted().await.kind, Kind::Failure);

    bench.shelf.record(Some(2), answered("Done.", 5));
    bench.say(5, "Done.").await.unwrap();
    assert_eq!(terminal.posted().await.kind, Kind::Answer);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_with_nobody_there_is_the_first_thing_that_is_shown() {
    let bench = bench().await;
    bench.shelf.record(Some(1), answered("hello", 1));
    bench.say(1, "hello").await.unwrap();
    bench.shelf.record(Some(2), answered("again", 2));
    let mut terminal = bench.attach("/conversations/main/stream?history=10").await;
    bench.say(2, "again").await.unwrap();
    for (position, delivery) in [(Some(1), 1), (Some(2), 2)] {
        let posted = terminal.posted().await;
        assert_eq!((posted.position, posted.id), (position, Some(id(delivery))));
    }
    assert_eq!(terminal.hello().await, Doing::Idle);
    // Said while the past was read, it comes twice, by the same id, and not never.
    assert_eq!(terminal.posted().await.id, Some(id(2)));
    assert!(terminal.is_silent());
}

#[tokio::test(start_paused = true)]
async fn a_terminal_that_does_not_read_is_disconnected() {
    let bench = bench().await;
    let mut slow = bench.attach("/conversations/main/stream").await;
    let mut quick = bench.attach("/conversations/main/stream").await;
    quick.hello().await;
    for delivery in 0..300 {
        bench.say(delivery, "more").await.unwrap();
        quick.posted().await;
    }
    slow.hello().await;
    let mut read = 0;
    while let Some(event) = slow.next().await {
        assert!(matches!(event, Event::Posted(_)));
        read += 1;
    }
    assert_eq!(read, 256);
    bench.say(300, "still here").await.unwrap();
    assert_eq!(quick.posted().await.text, "still here");
}

#[tokio::test(start_paused = true)]
async fn only_the_newest_draft_is_shown_and_none_after_its_answer() {
    let bench = bench().await;
    bench.shelf.becomes("main", Doing::Busy);
    let mut terminal = bench.attach("/conversations/main/stream").await;
    terminal.hello().await;
    bench.draft(1, "He").await;
    bench.draft(1, "Hello").await;
    assert_eq!(terminal.drafted().await, "Hello");
    assert!(terminal.is_silent());

    // A notice in between leaves the draft alone.
    bench.draft(1, "Hello wor").await;
    bench.say(9, "A notice.").await.unwrap();
    assert_eq!(terminal.posted().await.text, "A notice.");
    assert_eq!(terminal.drafted().await, "Hello wor");

    bench.draft(1, "Hello world").await;
    bench.say(1, "Hello world.").await.unwrap();
    assert_eq!(terminal.posted().await.text, "Hello world.");
    assert!(terminal.is_silent());
}

#[tokio::test(start_paused = true)]
async fn whoever_attaches_in_the_middle_of_an_answer_sees_what_there_is_of_it() {
    let bench = bench().await;
    bench.shelf.becomes("main", Doing::Busy);
    bench.draft(1, "So far").await;
    let mut terminal = bench.attach("/conversations/main/stream").await;
    terminal.hello().await;
    assert_eq!(terminal.drafted().await, "So far");

    bench.shelf.becomes("main", Doing::Idle);
    let mut late = bench.attach("/conversations/main/stream").await;
    late.hello().await;
    assert!(late.is_silent());
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_ends_without_a_word_is_noticed() {
    let bench = bench().await;
    bench.shelf.becomes("main", Doing::Busy);
    let mut terminal = bench.attach("/conversations/main/stream").await;
    assert_eq!(terminal.hello().await, Doing::Busy);
    bench.say(1, "Let me look.").await.unwrap();
    assert_eq!(terminal.posted().await.doing, Doing::Busy);
    bench.shelf.becomes("main", Doing::Idle);
    assert_eq!(terminal.next().await, Some(Event::Turned { doing: Doing::Idle }));
}

#[tokio::test(start_paused = true)]
async fn what_is_said_at_one_terminal_is_shown_at_the_others_once() {
    let mut bench = bench().await;
    let mut terminal = bench.attach("/conversations/main/stream").await;
    terminal.hello().await;
    for verdict in [Verdict::Journalled(Seq(1)), Verdict::Repeated] {
        let body = json!({ "id": "m-1", "text": "hello" });
        bench.post_to(MESSAGES, body, Some(verdict)).await;
    }
    let Some(Event::Said(said)) = terminal.next().await else { panic!("not said") };
    assert_eq!(said.id.unwrap().as_str(), "m-1");
    assert_eq!((said.text.as_str(), said.position), ("hello", None));
    assert!(terminal.is_silent());
}

#[tokio::test(start_paused = true)]
async fn a_place_is_free_again_when_a_terminal_leaves() {
    let bench = bench().await;
    let mut terminals = Vec::new();
    for _ in 0..64 {
        terminals.push(bench.attach("/conversations/main/stream").await);
    }
    let request = || Request::get("/conversations/main/stream").body(Body::empty()).unwrap();
    assert_eq!(bench.call(request()).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    terminals.pop();
    assert_eq!(bench.call(request()).await.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_the_account_is_disconnected() {
    let bench = bench().await;
    let mut terminal = bench.attach("/conversations/main/stream").await;
    terminal.hello().await;
    drop(bench.arrivals);
    assert_eq!(terminal.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn conversations_are_listed() {
    let bench = bench().await;
    bench.shelf.becomes("main", Doing::Busy);
    let request = Request::get("/conversations").body(Body::empty()).unwrap();
    let (status, body) = read(bench.call(request).await).await;
    assert_eq!(status, StatusCode::OK);
    let listed: Value = serde_json::from_slice(&body).unwrap();
    let expected = json!([{ "id": "main", "title": "a title", "updated": 0, "doing": "busy" }]);
    assert_eq!(listed, expected);
}

#[tokio::test(start_paused = true)]
async fn a_file_goes_in_along_with_a_message_and_comes_out_again() {
    let mut bench = bench().await;
    let request = Request::post("/files?name=notes.txt").body(Body::from("some notes")).unwrap();
    let (status, body) = read(bench.call(request).await).await;
    assert_eq!(status, StatusCode::OK);
    let file: FileRef = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (file.name.as_str(), file.mime.as_str(), file.size),
        ("notes.txt", "text/plain", 10)
    );

    let request = Request::get(format!("/files/{}", file.id)).body(Body::empty()).unwrap();
    assert_eq!(read(bench.call(request).await).await, (StatusCode::OK, "some notes".into()));

    let body = json!({ "id": "m-1", "text": "", "files": [file] });
    let verdict = Some(Verdict::Journalled(Seq(1)));
    let (status, _, inbound) = bench.post_to(MESSAGES, body, verdict).await;
    assert_eq!(status, StatusCode::OK);
    let InboundKind::Said(message) = inbound.kind else { panic!("not said") };
    assert_eq!(message.files, [file]);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_too_large_badly_named_or_unknown_is_refused() {
    let bench = bench().await;
    let chunk = Bytes::from(vec![0; 1024 * 1024]);
    let endless = stream::repeat(Ok::<_, std::convert::Infallible>(chunk));
    let request = Request::post("/files?name=big").body(Body::from_stream(endless)).unwrap();
    assert_eq!(bench.call(request).await.status(), StatusCode::PAYLOAD_TOO_LARGE);

    let exactly = vec![0; usize::try_from(LARGEST_FILE).unwrap()];
    let request = Request::post("/files?name=big").body(Body::from(exactly)).unwrap();
    assert_eq!(bench.call(request).await.status(), StatusCode::OK);

    for query in ["", "?name=", "?name=a%2Fb", "?name=a%0Ab", "?name=a&as=root"] {
        let request = Request::post(format!("/files{query}")).body(Body::from("x")).unwrap();
        assert_eq!(bench.call(request).await.status(), StatusCode::BAD_REQUEST, "{query}");
    }
    let request = Request::get("/files/abc").body(Body::empty()).unwrap();
    assert_eq!(bench.call(request).await.status(), StatusCode::NOT_FOUND);
}
