//! Slack as far as the gateway can tell: the Web API, the files and the connections of one app in one or
//! two workspaces. It keeps what was shown, edited, deleted and acknowledged.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use talaria_clock::{Clock, SystemClock};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message as Frame;

use super::record::record;
use super::{Act, Verb, meets_posts_with};
use crate::platform_contract::{ASKED_WAIT, Kind, Said, Shown, Spot, Trouble};
use crate::scripted::{Reply, Request, Scripted};
use crate::within;

/// Nothing takes longer unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What Slack signs its requests with.
pub const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";

/// Every permission that an app of ours asks for.
const SCOPES: &str = "app_mentions:read,channels:history,channels:read,chat:write,commands,files:read,\
    files:write,groups:history,groups:read,im:history,im:read,im:write,mpim:history,mpim:read,\
    reactions:write,users:read";

/// The thread of the direct chat in which the suite talks.
pub const THREAD: &str = "1699999999.000100";

/// Slack.
pub struct Vendor {
    /// The Web API.
    pub http: Scripted,
    /// What it knows.
    pub world: World,
    folder: TempDir,
    accepting: JoinHandle<()>,
}

impl Drop for Vendor {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// What Slack knows.
#[derive(Clone)]
pub struct World(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

/// What Slack knows.
#[derive(Default)]
pub struct State {
    /// Where connections are opened.
    pub socket: String,
    /// Where the Web API is.
    pub base: String,
    /// What was said, in order.
    pub messages: Vec<Posted>,
    /// What only one person reads, in order.
    pub whispers: Vec<Whisper>,
    /// What was shown and nobody has looked at.
    pub shown: VecDeque<Shown>,
    /// Reactions: the message and the name.
    pub reactions: Vec<(String, String)>,
    /// What the assistant was said to be doing, by thread.
    pub statuses: Vec<(String, String)>,
    /// Files by id.
    pub files: BTreeMap<String, Upload>,
    /// Every connection so far.
    pub connections: Vec<Connection>,
    /// Connections of somebody else.
    pub strangers: u32,
    /// What is acknowledged, with the number of the connection.
    pub acks: Vec<(usize, Value)>,
    /// Whether our own posts come back as events.
    pub echoes: bool,
    /// How often a file is asked for before it appears in its chat.
    pub share_after: u32,
    /// Whether a file's address shows a page to sign in on.
    pub signs_out: bool,
    /// Whether a connection has frozen.
    pub frozen: bool,
    /// Permissions, if not all.
    pub scopes: Option<&'static str>,
    /// Direct chats besides those that are always there, and whose they are.
    pub direct: BTreeMap<String, String>,
    counter: u64,
}

/// A message in a chat.
#[derive(Debug, Clone, Default)]
pub struct Posted {
    /// Where.
    pub chat: String,
    /// Its name.
    pub ts: String,
    /// The message that its thread begins with.
    pub thread: Option<String>,
    /// What people read.
    pub text: String,
    /// Who said it.
    pub user: String,
    /// What goes along unseen.
    pub metadata: Value,
    /// How it is laid out.
    pub blocks: Value,
    /// Whether it is gone.
    pub deleted: bool,
}

/// Something in a chat that only one person reads.
#[derive(Debug, Clone)]
pub struct Whisper {
    /// Where.
    pub chat: String,
    /// Who.
    pub user: String,
    /// The message that its thread begins with.
    pub thread: Option<String>,
    /// What they read.
    pub text: String,
}

/// A file.
#[derive(Debug, Clone, Default)]
pub struct Upload {
    /// Its name.
    pub name: String,
    /// How long it is said to be.
    pub length: usize,
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Where it appeared, and as which message.
    pub shared: Option<(String, String)>,
    /// What was said with it.
    pub comment: String,
    /// How often it was asked for.
    pub asked: u32,
}

/// A connection.
pub struct Connection {
    /// What it is told.
    pub to: mpsc::UnboundedSender<Told>,
    /// Whether it is.
    pub open: bool,
}

/// What a connection is told to do.
pub enum Told {
    /// A frame of text.
    Text(String),
    /// A frame of bytes.
    Bytes(Vec<u8>),
    /// Past the protocol.
    Raw(Vec<u8>),
    /// Says and answers nothing any more.
    Freeze,
    /// Ends.
    Close,
}

impl World {
    /// What is known.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    /// Says that something has changed.
    pub fn changed(&self) {
        self.0.changes.send_modify(|changes| *changes += 1);
    }

    /// Waits until something is so.
    pub async fn until<T>(&self, what: &str, is: impl Fn(&mut State) -> Option<T>) -> T {
        let mut changes = self.0.changes.subscribe();
        let wait = async {
            loop {
                if let Some(found) = is(&mut self.lock()) {
                    return found;
                }
                changes.changed().await.unwrap();
            }
        };
        within(PATIENCE, what, wait).await
    }

    /// Sends a frame by the newest connection.
    pub fn tell(&self, told: Told) -> usize {
        let state = self.lock();
        let number = state.connections.iter().rposition(|one| one.open).expect("a connection");
        state.connections[number].to.send(told).unwrap();
        number
    }

    /// Sends a frame by a connection.
    pub fn tell_by(&self, number: usize, told: Told) {
        self.lock().connections[number].to.send(told).unwrap();
    }

    /// Delivers something, and says under which id it is to be acknowledged and by which connection.
    pub fn deliver(&self, kind: &str, payload: &Value) -> (usize, String) {
        let envelope = {
            let mut state = self.lock();
            state.counter += 1;
            format!("envelope-{}", state.counter)
        };
        let accepts = kind == "slash_commands";
        let frame = json!({ "envelope_id": envelope, "type": kind, "payload": payload,
            "accepts_response_payload": accepts });
        (self.tell(Told::Text(frame.to_string())), envelope)
    }

    /// Waits until something is acknowledged.
    pub async fn acked(&self, envelope: &str) -> (usize, Value) {
        let wanted = envelope.to_owned();
        self.until("an acknowledgement", move |state| {
            state.acks.iter().find(|(_, ack)| ack["envelope_id"] == json!(wanted)).cloned()
        })
        .await
    }

    /// Whether something is acknowledged.
    pub fn is_acked(&self, envelope: &str) -> bool {
        self.lock().acks.iter().any(|(_, ack)| ack["envelope_id"] == json!(envelope))
    }

    /// Somebody says something in a direct chat, in a thread or at its top. It is told to whoever is
    /// connected. Returns its name and the envelope that it was told in.
    pub fn say(&self, chat: &str, thread: Option<&str>, text: &str) -> (String, Value) {
        let (ts, user) = {
            let mut state = self.lock();
            (state.next_ts(), state.direct[chat].clone())
        };
        self.write(chat, &ts, thread, &user, text);
        let mut said = json!({ "type": "message", "channel": chat, "channel_type": "im",
            "user": user, "text": text, "ts": ts, "team": "T1" });
        if let Some(thread) = thread {
            said["thread_ts"] = json!(thread);
        }
        let payload = event(said);
        let envelope = json!({ "envelope_id": format!("said-{chat}-{ts}"), "type": "events_api",
            "payload": payload, "accepts_response_payload": false });
        (ts, envelope)
    }

    /// Sends an envelope to whoever is connected; says whether anybody is.
    pub fn offer(&self, envelope: &Value) -> bool {
        let state = self.lock();
        let open = state.connections.iter().rev().find(|one| one.open);
        open.is_some_and(|one| one.to.send(Told::Text(envelope.to_string())).is_ok())
    }

    /// Puts a message of somebody into a chat without telling anybody.
    pub fn write(&self, chat: &str, ts: &str, thread: Option<&str>, user: &str, text: &str) {
        self.lock().messages.push(Posted {
            chat: chat.into(),
            ts: ts.into(),
            thread: thread.map(str::to_owned),
            text: text.into(),
            user: user.into(),
            ..Posted::default()
        });
    }

    /// A message by its name.
    pub fn message(&self, ts: &str) -> Option<Posted> {
        self.lock().messages.iter().find(|message| message.ts == ts).cloned()
    }
}

impl Vendor {
    /// Opens it on free ports.
    pub async fn open() -> Self {
        let world = World(Arc::new(Inner {
            state: Mutex::new(State { counter: 1, ..State::default() }),
            changes: watch::Sender::new(0),
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = format!("ws://{}/link/", listener.local_addr().unwrap());
        let accepting = tokio::spawn(accept(listener, world.clone()));
        let answering = world.clone();
        let http = Scripted::listen_for(move |request| answer(&answering, request), meaning).await;
        {
            let mut state = world.lock();
            state.socket = socket;
            state.base = http.url().to_owned();
        }
        Self { http, world, folder: TempDir::new().unwrap(), accepting }
    }

    /// A folder for the account.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Settings for a connection, with as much switched on as there is.
    pub fn settings(&self) -> Value {
        json!({ "bot_token": "xoxb-1", "app_token": "xapp-1", "base_url": self.api() })
    }

    /// Settings for requests.
    pub fn request_settings(&self) -> Value {
        json!({ "bot_token": "xoxb-1", "signing_secret": SECRET, "base_url": self.api() })
    }

    fn api(&self) -> String {
        format!("{}/api/", self.http.url())
    }

    /// Meets every post from here on with this, in its own words. See
    /// <https://docs.slack.dev/reference/methods/chat.postMessage> and
    /// <https://docs.slack.dev/apis/web-api/rate-limits>.
    pub fn meet_posts_with(&self, trouble: Trouble) -> Said {
        let reply = match trouble {
            Trouble::Unauthorized => refused("token_revoked"),
            Trouble::Gone => refused("channel_not_found"),
            Trouble::Wait => {
                let body = json!({ "ok": false, "error": "ratelimited" });
                let reply = Reply::status(429, body.to_string());
                reply.with("retry-after", &ASKED_WAIT.as_secs().to_string())
            }
            Trouble::TooLong => refused("msg_too_long"),
            Trouble::Unreadable => refused("invalid_blocks"),
            Trouble::Outage => Reply::status(503, "Service Unavailable"),
            Trouble::Cut => Reply::Cut,
        };
        self.http.conduct(meets_posts_with(reply));
        Said::Duly
    }

    /// The bytes of every file that was sent.
    pub fn uploads(&self) -> Vec<Vec<u8>> {
        self.world.lock().files.values().map(|file| file.bytes.clone()).collect()
    }

    /// Where the last thing of ours appeared.
    pub fn spot(&self) -> Option<Spot> {
        let state = self.world.lock();
        let last = state.messages.iter().rev().find(|message| message.user == "UBOT")?;
        match (last.chat.starts_with('C'), &last.thread) {
            (true, Some(_)) => Some(Spot::Thread),
            (true, None) => Some(Spot::Group),
            (false, _) => None,
        }
    }

    /// The next thing that people see.
    pub async fn shown(&self) -> Shown {
        self.world.until("something shown", |state| state.shown.pop_front()).await
    }

    /// Waits until nobody is connected.
    pub async fn hung_up(&self) {
        let world = &self.world;
        world
            .until("every connection closed", |state| {
                state.connections.iter().all(|one| !one.open).then_some(())
            })
            .await;
    }
}

/// A message as an event.
pub fn said(number: u64, text: &str) -> Value {
    event(json!({
        "type": "message", "channel": "D1", "channel_type": "im", "user": "U1", "text": text,
        "ts": ts(number), "thread_ts": THREAD, "team": "T1",
    }))
}

/// The name of a message.
pub fn ts(number: u64) -> String {
    format!("{}.000200", 1_700_000_000 + number)
}

/// Something that happens.
pub fn event(event: Value) -> Value {
    json!({
        "type": "event_callback", "team_id": "T1", "api_app_id": "A1", "event": event,
        "event_id": "Ev1", "authorizations": [{ "team_id": "T1", "user_id": "UBOT" }],
    })
}

async fn accept(listener: TcpListener, world: World) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, world.clone()));
    }
}

async fn serve(stream: TcpStream, world: World) {
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
    let (to, mut told) = mpsc::unbounded_channel();
    let (number, count) = {
        let mut state = world.lock();
        state.connections.push(Connection { to, open: true });
        let open = state.connections.iter().filter(|one| one.open).count();
        (state.connections.len() - 1, u32::try_from(open).unwrap() + state.strangers)
    };
    let hello = json!({ "type": "hello", "connection_info": { "app_id": "A1" },
        "num_connections": count, "debug_info": { "approximate_connection_time": 18060 } });
    let _ = socket.send(Frame::text(hello.to_string())).await;
    world.changed();
    loop {
        tokio::select! {
            order = told.recv() => {
                let sent = match order {
                    Some(Told::Text(text)) => socket.send(Frame::text(text)).await.is_ok(),
                    Some(Told::Bytes(bytes)) => socket.send(Frame::binary(bytes)).await.is_ok(),
                    Some(Told::Raw(bytes)) => socket.get_mut().write_all(&bytes).await.is_ok(),
                    Some(Told::Freeze) => {
                        world.lock().frozen = true;
                        world.changed();
                        std::future::pending().await
                    }
                    Some(Told::Close) | None => { let _ = socket.close(None).await; false }
                };
                if !sent { break }
            }
            frame = socket.next() => match frame {
                Some(Ok(Frame::Text(text))) => {
                    let ack = serde_json::from_str(&text).unwrap();
                    world.lock().acks.push((number, ack));
                    world.changed();
                }
                Some(Ok(Frame::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            }
        }
    }
    world.lock().connections[number].open = false;
    world.changed();
}

impl State {
    /// The name of a message that is said now.
    fn next_ts(&mut self) -> String {
        self.counter += 1;
        format!("{}.{:06}", SystemClock.now().as_millis() / 1000, self.counter)
    }
}

fn meaning(request: &Request) -> Act {
    let method = request.path.strip_prefix("/api/").unwrap_or_default();
    if !method.is_empty() {
        let is_form = request.header("content-type").is_some_and(|it| it.contains("form"));
        let fields = if is_form { json!(request.form()) } else { request.json() };
        record("slack", &request.method, method, json!(request.asked()), &fields);
    }
    let verb = match method {
        "chat.postMessage" => Verb::Post,
        "chat.update" => Verb::Edit,
        "chat.delete" => Verb::Delete,
        "reactions.add" | "reactions.remove" | "assistant.threads.setStatus" => Verb::Sign,
        _ => return Act::default(),
    };
    let fields = request.json();
    let text = |name: &str| fields[name].as_str().map(str::to_owned);
    Act {
        verb,
        chat: text("channel").or(text("channel_id")).unwrap_or_default(),
        message: text("ts").or(text("timestamp")),
        text: text("text").unwrap_or_default(),
    }
}

fn refused(code: &str) -> Reply {
    Reply::json(&json!({ "ok": false, "error": code }))
}

fn answer(world: &World, request: &Request) -> Reply {
    let reply = route(world, request);
    world.changed();
    reply
}

fn route(world: &World, request: &Request) -> Reply {
    let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    if let Some(id) = request.path.strip_prefix("/upload/") {
        assert_eq!(token, None, "an upload needs no token");
        let mut state = world.lock();
        let upload = state.files.get_mut(id).unwrap();
        if request.body.len() != upload.length {
            return Reply::status(400, "length");
        }
        upload.bytes = request.body.clone();
        return Reply::status(200, format!("OK - {}", upload.length));
    }
    if let Some(id) = request.path.strip_prefix("/files-pri/") {
        assert_eq!(token.and_then(team_of), Some("T1"), "a download needs the token");
        let state = world.lock();
        if state.signs_out {
            return Reply::status(200, "<html>Sign in</html>").with("content-type", "text/html");
        }
        let bytes = state.files.get(id).map(|file| file.bytes.clone()).unwrap_or_default();
        return Reply::status(200, bytes).with("content-type", "image/png");
    }
    if request.path.starts_with("/hooks/") {
        let mut state = world.lock();
        let text = request.json()["text"].as_str().unwrap_or_default().to_owned();
        state.shown.push_back(Shown { kind: Kind::Post, id: None, text });
        return Reply::status(200, "ok");
    }
    let Some(method) = request.path.strip_prefix("/api/") else {
        return Reply::status(404, "no such path");
    };
    let team = match (token.and_then(team_of), token) {
        (Some(team), _) => team,
        (None, Some("xapp-1")) if method == "apps.connections.open" => "",
        (None, Some(token)) if token.starts_with("xoxb-old") => return refused("account_inactive"),
        (None, Some(_)) if method == "apps.connections.open" => {
            return refused("not_allowed_token_type");
        }
        _ => return refused("invalid_auth"),
    };
    let is_form = request
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    let fields = if is_form { json!(request.form()) } else { request.json() };
    call(&mut world.lock(), team, method, &fields)
}

/// The workspace that a bot token opens. What follows its number is anybody's choice.
fn team_of(token: &str) -> Option<&'static str> {
    match token.strip_prefix("xoxb-")?.split('-').next()? {
        "1" => Some("T1"),
        "2" => Some("T2"),
        _ => None,
    }
}

fn call(state: &mut State, team: &str, method: &str, fields: &Value) -> Reply {
    let text = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
    match method {
        "auth.test" => {
            let who = json!({ "ok": true, "url": "https://subarachnoid.slack.com/",
                "team": format!("Team {team}"), "user": "talaria", "team_id": team,
                "user_id": "UBOT", "bot_id": format!("BBOT{team}"), "app_id": "A1" });
            Reply::json(&who).with("x-oauth-scopes", state.scopes.unwrap_or(SCOPES))
        }
        "apps.connections.open" => {
            state.counter += 1;
            let url = format!("{}?ticket={}", state.socket, state.counter);
            Reply::json(&json!({ "ok": true, "url": url }))
        }
        "chat.postEphemeral" => whisper(state, team, fields),
        "chat.postMessage" => post(state, team, fields),
        "chat.update" => {
            let (ts, new) = (text("ts"), text("text"));
            if new.len() > 4_000 {
                return refused("msg_too_long");
            }
            let Some(message) = state.messages.iter_mut().find(|message| message.ts == ts) else {
                return refused("message_not_found");
            };
            message.text = new.clone();
            message.blocks = fields["blocks"].clone();
            state.shown.push_back(Shown { kind: Kind::Edit, id: Some(ts.clone()), text: new });
            Reply::json(&json!({ "ok": true, "channel": text("channel"), "ts": ts }))
        }
        "chat.delete" => {
            let ts = text("ts");
            let found = state.messages.iter_mut().find(|one| one.ts == ts && !one.deleted);
            let Some(message) = found else { return refused("message_not_found") };
            message.deleted = true;
            Reply::json(&json!({ "ok": true }))
        }
        "reactions.add" => {
            let reaction = (text("timestamp"), text("name"));
            if state.reactions.contains(&reaction) {
                return refused("already_reacted");
            }
            state.reactions.push(reaction);
            Reply::json(&json!({ "ok": true }))
        }
        "reactions.remove" => {
            let reaction = (text("timestamp"), text("name"));
            let Some(at) = state.reactions.iter().position(|one| *one == reaction) else {
                return refused("no_reaction");
            };
            state.reactions.remove(at);
            Reply::json(&json!({ "ok": true }))
        }
        "assistant.threads.setStatus" => {
            let (thread, status) = (text("thread_ts"), text("status"));
            state.statuses.push((thread, status.clone()));
            state.shown.push_back(Shown { kind: Kind::Typing, id: None, text: status });
            Reply::json(&json!({ "ok": true }))
        }
        "files.getUploadURLExternal" => {
            state.counter += 1;
            let id = format!("F{}", state.counter);
            let length = text("length").parse().unwrap();
            let upload = Upload { name: text("filename"), length, ..Upload::default() };
            state.files.insert(id.clone(), upload);
            let url = format!("{}/upload/{id}", state.base);
            Reply::json(&json!({ "ok": true, "upload_url": url, "file_id": id }))
        }
        "files.completeUploadExternal" => complete(state, fields),
        "files.info" => {
            let wait = state.share_after;
            let url = format!("{}/files-pri/{}", state.base, text("file"));
            let Some(file) = state.files.get_mut(&text("file")) else {
                return refused("file_not_found");
            };
            file.asked += 1;
            let mut told = json!({ "id": text("file"), "name": file.name, "mimetype": "image/png",
                "mode": "hosted", "size": file.bytes.len(), "url_private_download": url });
            if let Some((chat, ts)) = file.shared.as_ref().filter(|_| file.asked > wait) {
                told["shares"] = json!({ "private": { chat: [{ "ts": ts }] } });
            }
            Reply::json(&json!({ "ok": true, "file": told }))
        }
        "conversations.open" => match text("users").as_str() {
            "U404" => refused("user_not_found"),
            _ => Reply::json(&json!({ "ok": true, "channel": { "id": "D1" } })),
        },
        "conversations.info" => {
            let chat = text("channel");
            match state.chats(team).into_iter().find(|one| one["id"] == json!(chat)) {
                Some(channel) => Reply::json(&json!({ "ok": true, "channel": channel })),
                None => refused("channel_not_found"),
            }
        }
        "users.conversations" => Reply::json(&json!({ "ok": true, "channels": state.chats(team) })),
        "users.info" => {
            let name = match text("user").as_str() {
                "U1" => "Alice",
                "U2" => "Bob",
                "UBOT" => "talaria",
                user if state.direct.values().any(|known| known == user) => "Somebody",
                _ => return refused("user_not_found"),
            };
            let user = json!({ "id": text("user"), "team_id": team, "name": name.to_lowercase(),
                "profile": { "display_name": "", "real_name": name } });
            Reply::json(&json!({ "ok": true, "user": user }))
        }
        "bots.info" => Reply::json(&json!({ "ok": true, "bot": { "name": "deployer" } })),
        "conversations.history" | "conversations.replies" => history(state, method, fields),
        _ => refused("unknown_method"),
    }
}

impl State {
    fn chats(&self, team: &str) -> Vec<Value> {
        let direct = self.direct.iter().filter(|_| team == "T1");
        let direct = direct.map(|(id, user)| json!({ "id": id, "is_im": true, "user": user }));
        chats(team).into_iter().chain(direct).collect()
    }

    /// Whether the app is in a chat.
    fn is_ours(&self, team: &str, chat: &str) -> bool {
        self.direct.contains_key(chat) || chats(team).iter().any(|one| one["id"] == json!(chat))
    }
}

/// The chats of each workspace.
fn chats(team: &str) -> Vec<Value> {
    match team {
        "T1" => vec![
            json!({ "id": "C1", "name": "general", "is_channel": true, "topic": { "value": "All of us" } }),
            json!({ "id": "CX", "name": "partners", "is_channel": true, "is_ext_shared": true }),
            json!({ "id": "D1", "is_im": true, "user": "U1" }),
        ],
        _ => vec![json!({ "id": "C2", "name": "elsewhere", "is_channel": true })],
    }
}

fn whisper(state: &mut State, team: &str, fields: &Value) -> Reply {
    let text = |name: &str| fields[name].as_str().map(str::to_owned);
    let (Some(chat), Some(user)) = (text("channel"), text("user")) else {
        return refused("invalid_arguments");
    };
    if !state.is_ours(team, &chat) {
        return refused("channel_not_found");
    }
    if !matches!(user.as_str(), "U1" | "U2") {
        return refused("user_not_in_channel");
    }
    let Some(said) = text("text").filter(|text| !text.is_empty()) else {
        return refused("no_text");
    };
    state.whispers.push(Whisper { chat, user, thread: text("thread_ts"), text: said });
    Reply::json(&json!({ "ok": true, "message_ts": state.next_ts() }))
}

fn post(state: &mut State, team: &str, fields: &Value) -> Reply {
    let chat = fields["channel"].as_str().unwrap_or_default().to_owned();
    if !state.is_ours(team, &chat) {
        return refused("channel_not_found");
    }
    let text = fields["text"].as_str().unwrap_or_default().to_owned();
    if text.is_empty() {
        return refused("no_text");
    }
    if text.len() > 4_000 {
        return refused("msg_too_long");
    }
    for block in fields["blocks"].as_array().into_iter().flatten() {
        let elements = block["elements"].as_array().map_or(0, Vec::len);
        let section = block["text"]["text"].as_str().map_or(1, str::len);
        let label = |element: &Value| element["text"]["text"].as_str().unwrap().chars().count();
        let labels = block["elements"].as_array().into_iter().flatten().map(label).max();
        if elements > 25 || section > 3_000 || section == 0 || labels.is_some_and(|most| most > 75)
        {
            return refused("invalid_blocks");
        }
    }
    let ts = state.next_ts();
    state.messages.push(Posted {
        chat: chat.clone(),
        ts: ts.clone(),
        thread: fields["thread_ts"].as_str().map(str::to_owned),
        text: text.clone(),
        user: "UBOT".into(),
        metadata: fields["metadata"].clone(),
        blocks: fields["blocks"].clone(),
        deleted: false,
    });
    state.shown.push_back(Shown { kind: Kind::Post, id: Some(ts.clone()), text: text.clone() });
    if state.echoes
        && let Some(connection) = state.connections.iter().rev().find(|one| one.open)
    {
        let echo = event(json!({ "type": "message", "channel": chat, "channel_type": "im",
            "user": "UBOT", "bot_id": format!("BBOT{team}"), "text": text, "ts": ts,
            "thread_ts": fields["thread_ts"], "metadata": fields["metadata"] }));
        let frame =
            json!({ "envelope_id": format!("echo-{ts}"), "type": "events_api", "payload": echo });
        let _ = connection.to.send(Told::Text(frame.to_string()));
    }
    Reply::json(&json!({ "ok": true, "channel": chat, "ts": ts, "message": { "text": text } }))
}

fn complete(state: &mut State, fields: &Value) -> Reply {
    let chat = fields["channel_id"].as_str().unwrap_or_default().to_owned();
    let comment = fields["initial_comment"].as_str().unwrap_or_default().to_owned();
    let ts = state.next_ts();
    for file in fields["files"].as_array().into_iter().flatten() {
        let Some(upload) = state.files.get_mut(file["id"].as_str().unwrap()) else {
            return refused("file_not_found");
        };
        upload.shared = Some((chat.clone(), ts.clone()));
        upload.comment.clone_from(&comment);
    }
    state.messages.push(Posted {
        chat,
        ts: ts.clone(),
        thread: fields["thread_ts"].as_str().map(str::to_owned),
        text: comment.clone(),
        user: "UBOT".into(),
        ..Posted::default()
    });
    state.shown.push_back(Shown { kind: Kind::Post, id: Some(ts), text: comment });
    Reply::json(&json!({ "ok": true, "files": [] }))
}

fn history(state: &State, method: &str, fields: &Value) -> Reply {
    let text = |name: &str| fields[name].as_str().unwrap_or_default();
    let (chat, thread, oldest) = (text("channel"), text("ts"), text("oldest"));
    let limit: usize = text("limit").parse().unwrap_or(100);
    let from: usize = text("cursor").parse().unwrap_or(0);
    let replies = |ts: &str| {
        let is_reply = |one: &&Posted| one.thread.as_deref() == Some(ts) && one.ts != ts;
        state.messages.iter().filter(is_reply).map(|one| one.ts.clone()).collect::<Vec<_>>()
    };
    let mut rows: Vec<&Posted> = state
        .messages
        .iter()
        .filter(|one| one.chat == chat && !one.deleted)
        .filter(|one| match method {
            "conversations.replies" => {
                one.ts == thread
                    || (one.thread.as_deref() == Some(thread) && one.ts.as_str() > oldest)
            }
            _ => one.thread.is_none() && one.ts.as_str() > oldest,
        })
        .collect();
    rows.sort_by(|one, other| one.ts.cmp(&other.ts));
    if method == "conversations.history" {
        rows.reverse();
    }
    let more = rows.len() > from + limit;
    let rows: Vec<Value> = rows
        .into_iter()
        .skip(from)
        .take(limit)
        .map(|one| {
            let mut row = json!({ "type": "message", "user": one.user, "text": one.text, "ts": one.ts,
                "metadata": one.metadata });
            if one.user == "UBOT" {
                row["bot_id"] = json!("BBOTT1");
            }
            if let Some(thread) = &one.thread {
                row["thread_ts"] = json!(thread);
            }
            let replies = replies(&one.ts);
            if let Some(latest) = replies.last() {
                row["thread_ts"] = json!(one.ts);
                row["reply_count"] = json!(replies.len());
                row["latest_reply"] = json!(latest);
            }
            row
        })
        .collect();
    let next = if more { (from + limit).to_string() } else { String::new() };
    Reply::json(&json!({ "ok": true, "messages": rows, "has_more": more,
        "response_metadata": { "next_cursor": next } }))
}
