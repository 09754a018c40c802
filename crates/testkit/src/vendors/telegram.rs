//! Telegram by a script: it keeps a queue of updates and the messages that a bot has shown, refuses what
//! the Bot API refuses, and misbehaves when it is told to.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::record::record;
use super::{Act, Calls, Verb, meets_posts_with};
use crate::platform_contract::{ASKED_WAIT, Said, Trouble};
use crate::scripted::{Conduct, Fault as Misconduct, Reply};

/// The bot's token.
pub const TOKEN: &str = "42:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw";

/// How many requests are remembered whole.
const REMEMBERED: usize = 10_000;

/// Telegram on a port of its own. Dropping it closes everything.
pub struct Vendor {
    /// Where it listens.
    pub url: String,
    /// What it knows.
    pub state: Arc<Known>,
    listening: JoinHandle<()>,
}

/// What Telegram knows, and who waits for it to change.
pub struct Known {
    truth: Mutex<Truth>,
    calls: Calls,
    conduct: Mutex<Option<Conduct>>,
    /// Counts what has changed.
    changed: watch::Sender<u64>,
}

/// What Telegram knows.
#[derive(Default)]
pub struct Truth {
    queue: Vec<Queued>,
    /// What people can read of the bot, by number.
    pub messages: BTreeMap<i64, Value>,
    /// The signs on messages.
    pub reactions: HashMap<i64, Value>,
    /// What was asked lately.
    pub requests: Vec<Asked>,
    /// Where updates are sent.
    pub webhook: Value,
    /// Who the bot is.
    pub me: Map<String, Value>,
    /// Files by their id: where they lie and what is in them.
    pub files: HashMap<String, (String, Vec<u8>)>,
    /// Forms with files, as they came.
    pub uploads: Vec<Vec<u8>>,
    /// Polls that wait for something to happen.
    pub polls_in_flight: usize,
    /// A poll ends after the time it asked for, as it does at Telegram.
    pub keeps_time: bool,
    /// An empty answer comes at once instead of never.
    pub impatient: bool,
    /// Chats that have another id by now.
    pub moved: HashMap<i64, i64>,
    faults: VecDeque<(String, Fault)>,
    newest_poll: u64,
    shown: VecDeque<Asked>,
    posted: i64,
    happened: i64,
}

struct Queued {
    number: i64,
    update: Value,
    delivered: bool,
}

/// A request as Telegram read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The name of the method.
    pub method: String,
    /// What it is to be done with.
    pub body: Value,
    /// The message that came of it.
    pub message: Option<i64>,
}

/// How Telegram misbehaves, once.
#[derive(Clone)]
pub enum Fault {
    /// It answers this and does nothing.
    Instead(u16, String),
    /// It does it, and the answer is lost on the way.
    Lost,
    /// It does it, and answers with a page of a proxy.
    BadGateway,
}

/// A refusal as the Bot API words it.
pub fn refusal(code: u16, description: &str) -> Fault {
    let body = json!({ "ok": false, "error_code": code, "description": description });
    Fault::Instead(code, body.to_string())
}

impl Vendor {
    /// Opens it on a free port.
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let me = json!({
            "id": 42, "is_bot": true, "first_name": "Tally", "username": "tally_bot",
            "can_join_groups": true, "can_read_all_group_messages": false,
        });
        let truth = Truth {
            me: me.as_object().unwrap().clone(),
            webhook: json!({ "url": "", "pending_update_count": 0 }),
            ..Truth::default()
        };
        let state = Arc::new(Known {
            truth: Mutex::new(truth),
            calls: Calls::default(),
            conduct: Mutex::default(),
            changed: watch::Sender::new(0),
        });
        let routes = Router::new().fallback(answer).with_state(state.clone());
        let listening = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { url, state, listening }
    }

    /// Settings of an account.
    pub fn settings(&self) -> Value {
        json!({ "token": TOKEN, "base_url": self.url, "reactions": true })
    }

    /// What it knows.
    pub fn truth(&self) -> MutexGuard<'_, Truth> {
        self.state.truth()
    }

    /// Decides from here on how it meets what it is asked for.
    pub fn conduct(&self, conduct: impl FnMut(&Act) -> Option<Misconduct> + Send + 'static) {
        *self.state.conduct.lock().unwrap() = Some(Box::new(conduct));
    }

    /// Meets every post from here on with this, in its own words. See <https://core.telegram.org/bots/api#making-requests>
    /// and <https://core.telegram.org/api/errors>.
    pub fn meet_posts_with(&self, trouble: Trouble) -> Said {
        let no = |code: u16, description: &str| {
            let body = json!({ "ok": false, "error_code": code, "description": description });
            Reply::status(code, body.to_string())
        };
        let seconds = ASKED_WAIT.as_secs();
        let reply = match trouble {
            Trouble::Unauthorized => no(401, "Unauthorized"),
            Trouble::Gone => no(403, "Forbidden: bot was blocked by the user"),
            Trouble::Wait => {
                let description = format!("Too Many Requests: retry after {seconds}");
                let body = json!({ "ok": false, "error_code": 429, "description": description,
                    "parameters": { "retry_after": seconds } });
                Reply::status(429, body.to_string())
            }
            Trouble::TooLong => no(400, "Bad Request: message is too long"),
            Trouble::Unreadable => {
                no(400, "Bad Request: can't parse entities: unexpected end of a name")
            }
            Trouble::Outage => Reply::status(502, "<html>Bad Gateway</html>"),
            Trouble::Cut => Reply::Cut,
        };
        self.conduct(meets_posts_with(reply));
        Said::Duly
    }

    /// What it was asked for, and when.
    pub fn calls(&self) -> Calls {
        self.state.calls.clone()
    }

    /// Somebody says something in a private chat. Returns the update, which has not happened before it
    /// is pushed.
    pub fn said(&self, person: i64, text: &str) -> Value {
        self.said_in(Room::Private, person, text)
    }

    /// The same anywhere. In a group the bot is mentioned: it is not meant otherwise.
    pub fn said_in(&self, room: Room, person: i64, text: &str) -> Value {
        let mut truth = self.truth();
        truth.happened += 1;
        let number = truth.happened;
        let first_name = format!("P{person}");
        let mut message = json!({
            "message_id": number, "date": 1_794_735_000, "text": text,
            "from": { "id": person, "is_bot": false, "first_name": first_name },
            "chat": { "id": person, "first_name": first_name, "type": "private" },
        });
        let (chat, topic) = match room {
            Room::Private => return json!({ "update_id": number, "message": message }),
            Room::Group(chat) => (chat, None),
            Room::Topic(chat, topic) => (chat, Some(topic)),
        };
        let mention = format!("@{}", truth.me["username"].as_str().unwrap());
        message["text"] = json!(format!("{mention} {text}"));
        message["entities"] = json!([{ "type": "mention", "offset": 0, "length": mention.len() }]);
        message["chat"] = json!({ "id": chat, "title": "a group", "type": "supergroup" });
        if let Some(topic) = topic {
            message["chat"]["is_forum"] = json!(true);
            message["is_topic_message"] = json!(true);
            message["message_thread_id"] = json!(topic);
        }
        json!({ "update_id": number, "message": message })
    }

    /// Something happens.
    pub fn push(&self, update: Value) {
        self.state.push(update);
    }

    /// The next request for a method meets this.
    pub fn fault(&self, method: &str, fault: Fault) {
        self.truth().faults.push_back((method.into(), fault));
        self.state.tell();
    }

    /// What was asked of a method.
    pub fn asked(&self, method: &str) -> Vec<Value> {
        let truth = self.truth();
        let asked = truth.requests.iter().filter(|asked| asked.method == method);
        asked.map(|asked| asked.body.clone()).collect()
    }

    /// Completes once this is so.
    pub async fn until(&self, so: impl Fn(&Truth) -> bool) {
        self.state.until(so).await;
    }

    /// The next thing that people see.
    pub async fn shown(&self) -> Asked {
        loop {
            if let Some(shown) = self.truth().shown.pop_front() {
                return shown;
            }
            self.state.until(|truth| !truth.shown.is_empty()).await;
        }
    }
}

impl Truth {
    /// Whether every update was confirmed.
    pub fn is_all_confirmed(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether an update was confirmed.
    pub fn is_confirmed(&self, number: i64) -> bool {
        !self.queue.iter().any(|queued| queued.number == number)
    }
}

/// Where something is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// Between the bot and one person.
    Private,
    /// In the group with this id.
    Group(i64),
    /// In a group, in the topic with this id.
    Topic(i64, i64),
}

impl Drop for Vendor {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Known {
    /// What is known.
    pub fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().unwrap()
    }

    /// Something happens.
    pub fn push(&self, update: Value) {
        let number = update["update_id"].as_i64().unwrap();
        self.truth().queue.push(Queued { number, update, delivered: false });
        self.tell();
    }

    fn tell(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Completes once this is so.
    pub async fn until(&self, so: impl Fn(&Truth) -> bool) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            if so(&self.truth()) {
                return;
            }
            changed.changed().await.unwrap();
        }
    }
}

/// A poll that waits. Dropped with its connection.
struct InFlight(Arc<Known>);

impl InFlight {
    fn new(known: &Arc<Known>) -> Self {
        known.truth().polls_in_flight += 1;
        known.tell();
        Self(known.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.truth().polls_in_flight -= 1;
        self.0.tell();
    }
}

async fn answer(State(known): State<Arc<Known>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let kind = parts.headers.get("content-type").and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().to_owned();
    let body = to_bytes(body, 64 * 1024 * 1024).await.unwrap_or_default();
    if let Some(file) = path.strip_prefix(&format!("/file/bot{TOKEN}/")) {
        let truth = known.truth();
        let found = truth.files.values().find(|(path, _)| path == file);
        return match found {
            Some((_, bytes)) => bytes.clone().into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        };
    }
    let Some(method) = path.strip_prefix(&format!("/bot{TOKEN}/")) else {
        return refused(401, "Unauthorized", &Value::Null);
    };
    let fields = match kind.split_once("boundary=") {
        Some((_, boundary)) => {
            known.truth().uploads.push(body.to_vec());
            form(&body, boundary)
        }
        None => serde_json::from_slice(&body).unwrap_or_default(),
    };
    record("telegram", "POST", method, Value::Null, &fields);
    let asked = Asked { method: method.into(), body: fields.clone(), message: None };
    let fault = {
        let mut truth = known.truth();
        if truth.requests.len() >= REMEMBERED {
            truth.requests.drain(..REMEMBERED / 2);
        }
        truth.requests.push(asked);
        take_fault(&mut truth, method)
    };
    known.tell();
    if fault.is_none() {
        return meet(&known, method, &fields).await;
    }
    match fault {
        Some(Fault::Instead(code, body)) => {
            (StatusCode::from_u16(code).unwrap(), body).into_response()
        }
        fault => {
            let response = match method {
                "getUpdates" => updates(&known, &fields).await,
                method => act_on(&known, method, &fields),
            };
            match fault {
                Some(Fault::Lost) => lost(),
                Some(Fault::BadGateway) => {
                    (StatusCode::BAD_GATEWAY, "<html>Bad Gateway</html>").into_response()
                }
                _ => response,
            }
        }
    }
}

/// Does what is asked, as the conduct wants it done.
async fn meet(known: &Arc<Known>, method: &str, fields: &Value) -> Response {
    let act = meaning(method, fields);
    let fault = known.conduct.lock().unwrap().as_mut().and_then(|conduct| conduct(&act));
    let call = known.calls.begin(act);
    if let Some(Misconduct::Slowly(wait)) = fault {
        tokio::time::sleep(wait).await;
    }
    let response = match fault {
        Some(Misconduct::Instead(reply)) => respond(reply).await,
        fault => {
            let response = match method {
                "getUpdates" => updates(known, fields).await,
                method => act_on(known, method, fields),
            };
            match fault {
                Some(Misconduct::Afterwards(reply)) => respond(reply).await,
                _ => response,
            }
        }
    };
    let wait = response.headers().get("retry-after").and_then(|wait| wait.to_str().ok());
    let wait = wait.and_then(|wait| wait.parse().ok()).map(Duration::from_secs);
    call.answered(response.status().as_u16(), wait);
    response
}

fn meaning(method: &str, fields: &Value) -> Act {
    let verb = match method {
        "getUpdates" => Verb::Listen,
        "editMessageText" | "editMessageCaption" => Verb::Edit,
        "sendMessageDraft" => Verb::Draft,
        "deleteMessage" => Verb::Delete,
        "sendChatAction" | "setMessageReaction" => Verb::Sign,
        method if method.starts_with("send") => Verb::Post,
        _ => Verb::Other,
    };
    let number = |name: &str| fields[name].as_i64().map(|number| number.to_string());
    Act {
        verb,
        chat: number("chat_id").unwrap_or_default(),
        message: number("message_id"),
        text: fields["text"].as_str().unwrap_or_default().to_owned(),
    }
}

async fn respond(reply: Reply) -> Response {
    match reply {
        Reply::Answer { status, headers, body } => {
            let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
            for (name, value) in headers {
                let name: HeaderName = name.parse().unwrap();
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        Reply::Cut => lost(),
        Reply::Silence => std::future::pending().await,
    }
}

fn take_fault(truth: &mut Truth, method: &str) -> Option<Fault> {
    let meets = truth.faults.iter().position(|(other, _)| other == method)?;
    truth.faults.remove(meets).map(|(_, fault)| fault)
}

/// An answer that ends before it is complete.
fn lost() -> Response {
    let cut = futures::stream::iter([Err::<Bytes, _>(std::io::Error::other("cut"))]);
    let mut response = Body::from_stream(cut).into_response();
    response.headers_mut().insert("content-length", "100".parse().unwrap());
    response
}

fn ok(result: Value) -> Response {
    json!({ "ok": true, "result": result }).to_string().into_response()
}

fn refused(code: u16, description: &str, parameters: &Value) -> Response {
    let mut body = json!({ "ok": false, "error_code": code, "description": description });
    if !parameters.is_null() {
        body["parameters"] = parameters.clone();
    }
    (StatusCode::from_u16(code).unwrap(), body.to_string()).into_response()
}

async fn updates(known: &Arc<Known>, asked: &Value) -> Response {
    let _in_flight = InFlight::new(known);
    let offset = asked["offset"].as_i64();
    let turn = {
        let mut truth = known.truth();
        truth.newest_poll += 1;
        if let Some(offset) = offset {
            truth.queue.retain(|queued| !(queued.delivered && queued.number < offset));
        }
        truth.newest_poll
    };
    known.tell();
    let is_due = |truth: &Truth| {
        truth.impatient
            || truth.newest_poll != turn
            || !truth.queue.is_empty()
            || truth.webhook["url"] != ""
            || truth.faults.iter().any(|(method, _)| method == "getUpdates")
    };
    let keeps_time = known.truth().keeps_time;
    if keeps_time {
        let most = Duration::from_secs(asked["timeout"].as_u64().unwrap_or(0).min(50));
        // Nothing happened in that time.
        let _ = tokio::time::timeout(most, known.until(is_due)).await;
    } else {
        known.until(is_due).await;
    }
    let mut truth = known.truth();
    if let Some(Fault::Instead(code, body)) = take_fault(&mut truth, "getUpdates") {
        return (StatusCode::from_u16(code).unwrap(), body).into_response();
    }
    if truth.webhook["url"] != "" {
        let words = "Conflict: can't use getUpdates method while webhook is active; use \
                     deleteWebhook to delete the webhook first";
        return refused(409, words, &Value::Null);
    }
    if truth.newest_poll != turn {
        let words = "Conflict: terminated by other getUpdates request; make sure that only one bot \
                     instance is running";
        return refused(409, words, &Value::Null);
    }
    let given: Vec<Value> = truth
        .queue
        .iter_mut()
        .take(100)
        .map(|queued| {
            queued.delivered = true;
            queued.update.clone()
        })
        .collect();
    ok(given.into())
}

fn act_on(known: &Arc<Known>, method: &str, asked: &Value) -> Response {
    let response = {
        let mut truth = known.truth();
        truth.act(method, asked)
    };
    known.tell();
    response
}

impl Truth {
    fn act(&mut self, method: &str, asked: &Value) -> Response {
        match method {
            "getMe" => ok(Value::Object(self.me.clone())),
            "getWebhookInfo" => ok(self.webhook.clone()),
            "setWebhook" => {
                self.webhook = json!({ "url": asked["url"], "pending_update_count": 0 });
                ok(true.into())
            }
            "deleteWebhook" => {
                self.webhook = json!({ "url": "", "pending_update_count": 0 });
                ok(true.into())
            }
            "answerCallbackQuery" | "setMyCommands" => ok(true.into()),
            "getFile" => match self.files.get(asked["file_id"].as_str().unwrap_or_default()) {
                Some((path, bytes)) => ok(json!({ "file_path": path, "file_size": bytes.len() })),
                None => refused(
                    400,
                    "Bad Request: wrong file_id or the file is temporarily unavailable",
                    &Value::Null,
                ),
            },
            "sendChatAction" | "sendMessageDraft" => {
                self.show(method, asked, None);
                ok(true.into())
            }
            "setMessageReaction" => {
                let message = asked["message_id"].as_i64().unwrap();
                self.reactions.insert(message, asked["reaction"].clone());
                ok(true.into())
            }
            "editMessageText" | "editMessageCaption" => self.edit(method, asked),
            "deleteMessage" => match self.messages.remove(&asked["message_id"].as_i64().unwrap()) {
                Some(_) => ok(true.into()),
                None => refused(400, "Bad Request: message to delete not found", &Value::Null),
            },
            "sendMediaGroup" => {
                let items: Value = serde_json::from_str(asked["media"].as_str().unwrap()).unwrap();
                let items = items.as_array().unwrap().clone();
                assert!((2..=10).contains(&items.len()), "an album has 2 to 10 items");
                let sent: Vec<Value> = items.iter().map(|item| self.keep(asked, item)).collect();
                let first = sent[0]["message_id"].as_i64();
                self.show(method, asked, first);
                ok(sent.into())
            }
            method if method.starts_with("send") => self.send(method, asked),
            _ => refused(404, "Not Found: method not found", &Value::Null),
        }
    }

    fn send(&mut self, method: &str, asked: &Value) -> Response {
        if let Some(chat) = asked["chat_id"].as_i64()
            && let Some(there) = self.moved.get(&chat)
        {
            let words = "Bad Request: group chat was upgraded to a supergroup chat";
            return refused(400, words, &json!({ "migrate_to_chat_id": there }));
        }
        if let Some(problem) = problem(method, asked) {
            return refused(400, problem, &Value::Null);
        }
        let sent = self.keep(asked, asked);
        self.show(method, asked, sent["message_id"].as_i64());
        ok(sent)
    }

    fn keep(&mut self, asked: &Value, said: &Value) -> Value {
        let id = 100 + self.posted;
        self.posted += 1;
        let text = said.get("text").or(said.get("caption")).cloned().unwrap_or_default();
        let message = json!({
            "message_id": id, "date": 1, "chat": { "id": asked["chat_id"], "type": "private" },
            "text": text, "has_text": said.get("text").is_some(),
            "message_thread_id": asked["message_thread_id"],
        });
        self.messages.insert(id, message.clone());
        message
    }

    fn edit(&mut self, method: &str, asked: &Value) -> Response {
        let Some(message) = self.messages.get_mut(&asked["message_id"].as_i64().unwrap()) else {
            return refused(400, "Bad Request: message to edit not found", &Value::Null);
        };
        if method == "editMessageText" && message["has_text"] == false {
            let words = "Bad Request: there is no text in the message to edit";
            return refused(400, words, &Value::Null);
        }
        let text = asked.get("text").or(asked.get("caption")).cloned().unwrap_or_default();
        if message["text"] == text {
            let words = "Bad Request: message is not modified: specified new message content and \
                         reply markup are exactly the same";
            return refused(400, words, &Value::Null);
        }
        message["text"] = text;
        let message = message.clone();
        self.show(method, asked, message["message_id"].as_i64());
        ok(message)
    }

    fn show(&mut self, method: &str, asked: &Value, message: Option<i64>) {
        if self.shown.len() >= REMEMBERED {
            self.shown.pop_front();
        }
        self.shown.push_back(Asked { method: method.into(), body: asked.clone(), message });
    }
}

/// What the Bot API has against a message.
fn problem(method: &str, asked: &Value) -> Option<&'static str> {
    let text = asked["text"].as_str().unwrap_or_default();
    if method == "sendMessage" && text.trim().is_empty() {
        return Some("Bad Request: message text is empty");
    }
    let units: Vec<u16> = text.encode_utf16().collect();
    if units.len() > 4096 {
        return Some("Bad Request: message is too long");
    }
    if asked["caption"].as_str().unwrap_or_default().encode_utf16().count() > 1024 {
        return Some("Bad Request: message caption is too long");
    }
    for entity in asked["entities"].as_array().into_iter().flatten() {
        let (from, length) =
            (entity["offset"].as_u64()? as usize, entity["length"].as_u64()? as usize);
        let Some(inside) = units.get(from..from + length) else {
            return Some(
                "Bad Request: entity beginning at UTF-16 offset 0 ends after the end of the text",
            );
        };
        if String::from_utf16(inside).is_err() {
            return Some("Bad Request: entity begins in a middle of a UTF-16 symbol");
        }
    }
    let keyboard = &asked["reply_markup"];
    let keyboard = match keyboard.as_str() {
        Some(text) => serde_json::from_str(text).unwrap(),
        None => keyboard.clone(),
    };
    for button in keyboard["inline_keyboard"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|row| row.as_array().unwrap().clone())
    {
        let carried = button["callback_data"].as_str().unwrap_or_default().len();
        if !(1..=64).contains(&carried) {
            return Some("Bad Request: BUTTON_DATA_INVALID");
        }
    }
    None
}

/// The fields of a form; a file is its name, media type and bytes.
fn form(body: &[u8], boundary: &str) -> Value {
    let body = String::from_utf8_lossy(body);
    let mut fields = Map::new();
    for part in body.split(&format!("--{boundary}")) {
        let Some((head, content)) = part.split_once("\r\n\r\n") else { continue };
        let content = content.strip_suffix("\r\n").unwrap_or(content);
        let quoted = |name: &str| {
            let (_, rest) = head.split_once(&format!("{name}=\""))?;
            rest.split('"').next().map(str::to_owned)
        };
        let Some(name) = quoted(" name") else { continue };
        let value = match quoted("filename") {
            None => match content.parse::<i64>() {
                Ok(number) => number.into(),
                Err(_) => content.into(),
            },
            Some(file) => {
                let mime = head.lines().find_map(|line| {
                    line.to_lowercase().strip_prefix("content-type: ").map(str::to_owned)
                });
                json!({ "file": file, "mime": mime, "bytes": content })
            }
        };
        fields.insert(name, value);
    }
    Value::Object(fields)
}
