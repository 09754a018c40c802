//! Discord, played by a script: a REST interface and a gateway that keep the truth.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use talaria_clock::{Clock, SystemClock};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use super::record::record;
use super::{Act, Verb, meets_posts_with};
use crate::platform_contract::{ASKED_WAIT, Said, Trouble};
use crate::scripted::{Reply, Request, Scripted};

/// The bot's token.
pub const TOKEN: &str = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs";
/// The bot.
pub const US: &str = "198622483471925248";
/// The bot's application.
pub const APPLICATION: &str = "198622483471925000";
/// Somebody.
pub const ALICE: &str = "53908099506183680";
/// The direct chat with her.
pub const DM: &str = "319674150115610528";
/// A guild.
pub const GUILD: &str = "41771983423143937";
/// A channel of it.
pub const GENERAL: &str = "41771983423143938";
/// A forum of it.
pub const FORUM: &str = "41771983423143939";

/// The first millisecond of 2015, from which Discord counts.
const EPOCH: i64 = 1_420_070_400_000;

/// Discord.
pub struct Vendor {
    /// The REST interface.
    pub rest: Scripted,
    /// What it knows.
    pub truth: Arc<Mutex<Truth>>,
    gateway: JoinHandle<()>,
}

/// What Discord knows.
pub struct Truth {
    /// The application's flags.
    pub flags: u64,
    /// Where interactions are sent instead.
    pub endpoint: Value,
    /// How many sessions may still be begun.
    pub starts_left: u64,
    /// Where the gateway is.
    pub gateway: String,
    /// The time between heartbeats, in milliseconds.
    pub interval: u64,
    /// Whether heartbeats are answered.
    pub answers: bool,
    /// What is said instead of letting somebody in.
    pub refuses: Option<u16>,
    /// Whether the next one who resumes is told that the session is no more.
    pub forgets: bool,
    /// Every session so far.
    pub sessions: Vec<Session>,
    /// How each connection introduced itself.
    pub introduced: Vec<Value>,
    /// Every connection so far.
    pub connections: Vec<Connection>,
    /// Channels by id.
    pub channels: BTreeMap<String, Value>,
    /// Threads that are archived, of which the gateway says nothing.
    pub archived: BTreeSet<String>,
    /// The guild, or null.
    pub guild: Value,
    /// What was said, by channel and id.
    pub messages: BTreeMap<String, BTreeMap<u64, Value>>,
    /// Which message a nonce stands for.
    pub nonces: HashMap<String, (String, u64)>,
    /// Reactions that were put and taken.
    pub signs: Vec<String>,
    /// Answers to interactions.
    pub answered: Vec<(String, Value)>,
    /// The menu.
    pub commands: Vec<Value>,
    /// Somebody's roles.
    pub roles: Vec<String>,
    /// The headers of the next answer to a message.
    pub headers: Vec<(String, String)>,
    /// How many messages may be posted and changed in one channel within how long, if that is limited.
    pub bucket: Option<(usize, Duration)>,
    spent: HashMap<String, VecDeque<Instant>>,
    /// Whether what we post is told by the gateway, as Discord does.
    pub echoes: bool,
    shown: mpsc::UnboundedSender<(Request, Value)>,
    last: u64,
}

/// A session and what was told in it.
#[derive(Default)]
pub struct Session {
    /// Its name.
    pub id: String,
    /// Every event in it.
    pub told: Vec<Value>,
}

/// A connection to the gateway.
#[derive(Clone)]
pub struct Connection {
    orders: mpsc::UnboundedSender<Order>,
    /// What the vendor knows of it.
    pub state: watch::Receiver<State>,
}

/// What the vendor is told to do on a connection.
enum Order {
    Write(String),
    Bytes(Vec<u8>),
    Close(u16),
}

/// What the vendor knows of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub struct State {
    /// The last number that a heartbeat confirmed.
    pub confirmed: u64,
    /// How many heartbeats came.
    pub beats: u32,
    /// Whether it is over.
    pub is_closed: bool,
}

impl Vendor {
    /// A vendor, and what it is asked to show.
    pub async fn open() -> (Self, mpsc::UnboundedReceiver<(Request, Value)>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (shown, asked) = mpsc::unbounded_channel();
        let truth = Arc::new(Mutex::new(Truth {
            flags: 1 << 19,
            endpoint: Value::Null,
            starts_left: 999,
            gateway: format!("ws://{}", listener.local_addr().unwrap()),
            interval: 30,
            answers: true,
            refuses: None,
            forgets: false,
            sessions: Vec::new(),
            introduced: Vec::new(),
            connections: Vec::new(),
            channels: BTreeMap::new(),
            archived: BTreeSet::new(),
            guild: Value::Null,
            messages: BTreeMap::new(),
            nonces: HashMap::new(),
            signs: Vec::new(),
            answered: Vec::new(),
            commands: Vec::new(),
            roles: Vec::new(),
            headers: Vec::new(),
            bucket: None,
            spent: HashMap::new(),
            echoes: false,
            shown,
            last: 0,
        }));
        let known = truth.clone();
        let answer = move |request: &Request| known.lock().unwrap().limited(request);
        let rest = Scripted::listen_for(answer, meaning).await;
        let gateway = tokio::spawn(serve(listener, truth.clone()));
        (Self { rest, truth, gateway }, asked)
    }

    /// What it knows.
    pub fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().unwrap()
    }

    /// Settings of an account.
    pub fn settings(&self) -> Value {
        json!({
            "token": TOKEN,
            "base_url": format!("{}/api/v10", self.rest.url()),
            "cdn_url": format!("{}/cdn", self.rest.url()),
        })
    }

    /// Meets every post from here on with this, in its own words. See
    /// <https://docs.discord.com/developers/topics/opcodes-and-status-codes> and
    /// <https://docs.discord.com/developers/topics/rate-limits>.
    pub fn meet_posts_with(&self, trouble: Trouble) -> Said {
        let reply = match trouble {
            Trouble::Unauthorized => problem(401, 0, "401: Unauthorized"),
            Trouble::Gone => problem(404, 10003, "Unknown Channel"),
            Trouble::Wait => {
                let body = json!({ "message": "You are being rate limited.",
                    "retry_after": ASKED_WAIT.as_secs_f64(), "global": false });
                let reply = Reply::status(429, body.to_string());
                reply.with("retry-after", &ASKED_WAIT.as_secs().to_string())
            }
            Trouble::TooLong => invalid("content"),
            Trouble::Unreadable => return Said::Never,
            Trouble::Outage => Reply::status(503, "upstream connect error"),
            Trouble::Cut => Reply::Cut,
        };
        self.rest.conduct(meets_posts_with(reply));
        Said::Duly
    }

    /// A guild with a channel and a forum.
    pub fn with_guild(&self) {
        let mut truth = self.truth();
        truth.channels.insert(
            GENERAL.into(),
            json!({ "id": GENERAL, "type": 0, "guild_id": GUILD, "name": "general",
                "topic": "Everything" }),
        );
        truth.channels.insert(
            FORUM.into(),
            json!({ "id": FORUM, "type": 15, "guild_id": GUILD, "name": "ideas", "flags": 16,
                "topic": "Be kind",
                "available_tags": [
                    { "id": "701", "name": "Closed", "moderated": true },
                    { "id": "702", "name": "Open", "moderated": false },
                ] }),
        );
        truth.guild = json!({
            "id": GUILD, "name": "Home",
            "roles": [
                { "id": GUILD, "name": "@everyone" },
                { "id": "900", "name": "Talaria", "tags": { "bot_id": US } },
                { "id": "901", "name": "cooks" },
            ],
        });
    }

    /// The connection that is open.
    pub fn connection(&self) -> Connection {
        self.truth().connections.last().expect("somebody is connected").clone()
    }

    /// Something happens. Returns its number.
    pub fn tell(&self, name: &str, what: Value) -> u64 {
        self.truth().tell(name, what)
    }

    /// There is a chat: of the guild, or a direct one with somebody.
    pub fn with_channel(&self, id: &str, guild: Option<&str>) {
        let channel = match guild {
            Some(guild) => {
                json!({ "id": id, "type": 0, "guild_id": guild, "name": format!("c{id}") })
            }
            None => json!({ "id": id, "type": 1 }),
        };
        self.truth().channels.insert(id.into(), channel);
    }

    /// Somebody says something in a chat. Returns the id of the message.
    pub fn say(&self, channel: &str, person: &str, text: &str) -> String {
        let mut truth = self.truth();
        let id = truth.next_id();
        let is_direct = truth.channels[channel]["guild_id"].is_null();
        let mut said = message(id, if is_direct { DM } else { channel }, text);
        said["channel_id"] = json!(channel);
        said["author"] = json!({ "id": person, "username": format!("p{person}") });
        truth.messages.entry(channel.into()).or_default().insert(id, said.clone());
        truth.tell("MESSAGE_CREATE", said);
        id.to_string()
    }

    /// Tells once more what was told as the newest but so many.
    pub fn tell_again(&self, back: usize) {
        let truth = self.truth();
        let told = truth.sessions.last().map(|session| session.told.as_slice()).unwrap_or_default();
        let again = told.iter().rev().filter(|told| told["t"] == "MESSAGE_CREATE").nth(back);
        if let (Some(again), Some(connection)) = (again, truth.connections.last()) {
            // Whoever hung up does not hear it.
            let _ = connection.orders.send(Order::Write(again.to_string()));
        }
    }

    /// Whether somebody is connected.
    pub fn is_connected(&self) -> bool {
        self.truth().connections.last().is_some_and(|it| !it.state.borrow().is_closed)
    }

    /// Writes a frame.
    pub fn write(&self, frame: String) {
        let _ = self.connection().orders.send(Order::Write(frame));
    }

    /// Writes bytes.
    pub fn write_bytes(&self, bytes: Vec<u8>) {
        let _ = self.connection().orders.send(Order::Bytes(bytes));
    }

    /// Ends the connection.
    pub fn close(&self, code: u16) {
        let _ = self.connection().orders.send(Order::Close(code));
    }

    /// What was said in a chat.
    pub fn said(&self, channel: &str) -> Vec<Value> {
        self.truth().messages.get(channel).into_iter().flat_map(|it| it.values().cloned()).collect()
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        self.gateway.abort();
    }
}

/// A message as the gateway tells it.
pub fn message(id: u64, channel: &str, content: &str) -> Value {
    let mut message = json!({
        "id": id.to_string(), "channel_id": channel, "type": 0, "content": content,
        "author": { "id": ALICE, "username": "alice", "global_name": "Alice" },
        "timestamp": "2026-11-15T09:30:00.000000+00:00", "edited_timestamp": null,
        "mentions": [], "mention_roles": [], "attachments": [], "embeds": [], "flags": 0,
    });
    if content.contains(US) {
        message["mentions"] = json!([{ "id": US, "username": "talaria", "bot": true }]);
    }
    if channel != DM {
        message["guild_id"] = json!(GUILD);
        message["channel_type"] = json!(0);
        message["member"] = json!({ "nick": "Ally", "roles": ["901"] });
    }
    message
}

/// An id that could have been made this many milliseconds ago.
pub fn id_before(millis: i64) -> u64 {
    let at = SystemClock.now().as_millis() - millis;
    (u64::try_from(at - EPOCH).unwrap_or(0) << 22) + 1
}

fn meaning(request: &Request) -> Act {
    let path = request.path.strip_prefix("/api/v10").unwrap_or(&request.path);
    if path != request.path {
        record("discord", &request.method, path, json!(request.asked()), &payload(request));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (verb, chat, message) = match (request.method.as_str(), parts.as_slice()) {
        ("POST", ["channels", chat, "messages"]) => (Verb::Post, *chat, None),
        ("PATCH", ["channels", chat, "messages", id]) => (Verb::Edit, *chat, Some(*id)),
        ("DELETE", ["channels", chat, "messages", id]) => (Verb::Delete, *chat, Some(*id)),
        ("POST", ["channels", chat, "typing"]) => (Verb::Sign, *chat, None),
        (_, ["channels", chat, "messages", id, "reactions", ..]) => (Verb::Sign, *chat, Some(*id)),
        _ => (Verb::Other, "", None),
    };
    let text = match verb {
        Verb::Post | Verb::Edit => payload(request)["content"].as_str().map(str::to_owned),
        _ => None,
    };
    Act {
        verb,
        chat: chat.to_owned(),
        message: message.map(str::to_owned),
        text: text.unwrap_or_default(),
    }
}

impl Truth {
    fn record(&mut self, name: &str, what: Value) -> u64 {
        let session = self.sessions.last_mut().expect("a session");
        let seq = session.told.len() as u64 + 1;
        session.told.push(json!({ "op": 0, "s": seq, "t": name, "d": what }));
        seq
    }

    fn tell(&mut self, name: &str, what: Value) -> u64 {
        let seq = self.record(name, what);
        let frame = self.sessions.last().unwrap().told.last().unwrap().to_string();
        let connection = self.connections.last().expect("somebody is connected");
        // Whoever hung up is told when they come back.
        let _ = connection.orders.send(Order::Write(frame));
        seq
    }

    /// The id of the message that a nonce stands for.
    pub fn shown_under(&self, nonce: &str) -> Option<String> {
        self.nonces.get(nonce).map(|(_, id)| id.to_string())
    }

    fn next_id(&mut self) -> u64 {
        self.last = (self.last + 1).max(id_before(0));
        self.last
    }

    /// Answers with what is left in the bucket, or that there is nothing left.
    fn limited(&mut self, request: &Request) -> Reply {
        let act = meaning(request);
        let limit = self.bucket.filter(|_| matches!(act.verb, Verb::Post | Verb::Edit));
        let Some((most, within)) = limit else { return self.rest(request) };
        let now = Instant::now();
        let spent = self.spent.entry(act.chat).or_default();
        while spent.front().is_some_and(|at| now - *at >= within) {
            spent.pop_front();
        }
        let is_refused = spent.len() >= most;
        if !is_refused {
            spent.push_back(now);
        }
        let (left, wait) = (most - spent.len(), within - (now - spent[0]));
        let seconds = wait.as_secs_f64();
        let reply = match is_refused {
            false => self.rest(request),
            true => {
                let body = json!({ "message": "You are being rate limited.",
                    "retry_after": seconds, "global": false });
                Reply::status(429, body.to_string())
                    .with("retry-after", &format!("{:.0}", seconds.ceil()))
                    .with("x-ratelimit-scope", "user")
            }
        };
        reply
            .with("x-ratelimit-bucket", "speech")
            .with("x-ratelimit-limit", &most.to_string())
            .with("x-ratelimit-remaining", &left.to_string())
            .with("x-ratelimit-reset-after", &format!("{seconds:.3}"))
    }

    fn rest(&mut self, request: &Request) -> Reply {
        let path = request.path.strip_prefix("/api/v10").unwrap_or(&request.path);
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        if parts.first() == Some(&"cdn") || parts.first() == Some(&"attachments") {
            assert_eq!(request.header("authorization"), None, "files are fetched by anybody");
            return self.file(request);
        }
        assert!(request.header("user-agent").unwrap().starts_with("DiscordBot ("), "{path}");
        if parts.first() == Some(&"interactions") {
            assert_eq!(request.header("authorization"), None);
            let answer = (parts[1].to_owned(), request.json());
            self.answered.push(answer);
            return Reply::status(204, "");
        }
        if request.header("authorization") != Some(&format!("Bot {TOKEN}")) {
            return problem(401, 0, "401: Unauthorized");
        }
        match (request.method.as_str(), parts.as_slice()) {
            ("GET", ["users", "@me"]) => Reply::json(
                &json!({ "id": US, "username": "talaria", "global_name": null, "bot": true }),
            ),
            ("GET", ["users", "@me", "guilds"]) => {
                let guilds =
                    if self.guild.is_null() { json!([]) } else { json!([{ "id": GUILD }]) };
                Reply::json(&guilds)
            }
            ("GET", ["applications", "@me"]) => Reply::json(&json!({
                "id": APPLICATION, "flags": self.flags,
                "interactions_endpoint_url": self.endpoint,
            })),
            ("GET", ["gateway", "bot"]) => Reply::json(&json!({
                "url": self.gateway, "shards": 1,
                "session_start_limit": { "total": 1000, "remaining": self.starts_left,
                    "reset_after": 14_400_000, "max_concurrency": 1 },
            })),
            ("GET", ["guilds", GUILD]) if !self.guild.is_null() => Reply::json(&self.guild),
            ("GET", ["guilds", GUILD, "members", _]) => {
                Reply::json(&json!({ "roles": self.roles, "user": { "id": ALICE } }))
            }
            ("GET", ["guilds", GUILD, "threads", "active"]) => {
                let is_active =
                    |(id, it): &(&String, &Value)| it["type"] == 11 && !self.archived.contains(*id);
                let threads = self.channels.iter().filter(is_active).map(|(_, it)| it);
                Reply::json(&json!({ "threads": threads.collect::<Vec<_>>() }))
            }
            ("GET", ["channels", id]) => match self.channels.get(*id) {
                Some(channel) => Reply::json(channel),
                None => problem(404, 10003, "Unknown Channel"),
            },
            ("PATCH", ["channels", _]) => Reply::json(&json!({})),
            ("GET", ["channels", channel, "messages"]) => self.history(channel, request),
            ("GET", ["channels", channel, "messages", id]) => {
                let found = self.messages.get(*channel).and_then(|it| it.get(&id.parse().unwrap()));
                found.map_or_else(|| problem(404, 10008, "Unknown Message"), Reply::json)
            }
            ("POST", ["channels", channel, "messages"]) => self.post(channel, request),
            ("PATCH", ["channels", channel, "messages", id]) => {
                let body = request.json();
                assert!(body["allowed_mentions"].is_object(), "an edit notifies nobody by mistake");
                let _ = self.shown.send((request.clone(), body.clone()));
                let messages = self.messages.entry((*channel).into()).or_default();
                let Some(message) = messages.get_mut(&id.parse().unwrap()) else {
                    return problem(404, 10008, "Unknown Message");
                };
                message["content"] = body["content"].clone();
                message["components"] = body["components"].clone();
                Reply::json(message)
            }
            ("DELETE", ["channels", channel, "messages", id]) => {
                let messages = self.messages.entry((*channel).into()).or_default();
                match messages.remove(&id.parse().unwrap()) {
                    Some(_) => Reply::status(204, ""),
                    None => problem(404, 10008, "Unknown Message"),
                }
            }
            (
                method @ ("PUT" | "DELETE"),
                ["channels", channel, "messages", id, "reactions", emoji, "@me"],
            ) => {
                self.signs.push(format!("{method} {channel}/{id} {emoji}"));
                Reply::status(204, "")
            }
            ("POST", ["channels", _, "typing"]) => {
                let _ = self.shown.send((request.clone(), Value::Null));
                Reply::status(204, "")
            }
            ("POST", ["channels", parent, "messages", id, "threads"]) => {
                self.thread(parent, id, &request.json())
            }
            ("POST", ["channels", FORUM, "threads"]) => self.forum_post(request),
            (_, ["applications", APPLICATION, "commands", ..]) => {
                self.command(request, parts.get(3).copied())
            }
            (method, _) => panic!("nobody plays {method} {path}"),
        }
    }

    fn history(&self, channel: &str, request: &Request) -> Reply {
        let asked = request.asked();
        let limit: usize = asked.get("limit").map_or(50, |limit| limit.parse().unwrap());
        assert!((1..=100).contains(&limit));
        let bound = |name: &str| asked.get(name).map(|id| id.parse::<u64>().unwrap());
        let (after, before) = (bound("after"), bound("before"));
        let all = self.messages.get(channel).into_iter().flatten();
        let mut found: Vec<&Value> = all
            .filter(|(id, _)| after.is_none_or(|after| **id > after))
            .filter(|(id, _)| before.is_none_or(|before| **id < before))
            .map(|(_, message)| message)
            .collect();
        if after.is_none() {
            found.drain(..found.len().saturating_sub(limit));
        }
        found.truncate(limit);
        // The newest comes first.
        found.reverse();
        let plain = |message: &&Value| {
            let mut message = (*message).clone();
            for extra in ["guild_id", "member", "channel_type"] {
                message.as_object_mut().unwrap().remove(extra);
            }
            message
        };
        Reply::json(&json!(found.iter().map(plain).collect::<Vec<_>>()))
    }

    fn post(&mut self, channel: &str, request: &Request) -> Reply {
        let body = payload(request);
        let _ = self.shown.send((request.clone(), body.clone()));
        assert!(body["allowed_mentions"].is_object(), "nobody is notified by mistake");
        let channel_facts = self.channels.get(channel);
        if channel_facts.is_none() && channel != DM {
            return problem(404, 10003, "Unknown Channel");
        }
        if channel_facts.is_some_and(|it| it["type"] == 15) {
            return problem(400, 40058, "Cannot message this channel until a post is created");
        }
        let content = body["content"].as_str().unwrap_or_default();
        if content.chars().count() > 2000 {
            return invalid("content");
        }
        let is_empty = content.is_empty() && body["components"].is_null();
        if is_empty && !request.header("content-type").unwrap().starts_with("multipart/") {
            return problem(400, 50006, "Cannot send an empty message");
        }
        let nonce = body["nonce"].as_str().expect("every message has a nonce").to_owned();
        assert!(nonce.len() <= 25 && body["enforce_nonce"] == true, "{nonce}");
        let headers = std::mem::take(&mut self.headers);
        if let Some((channel, id)) = self.nonces.get(&nonce) {
            let existing = self.messages.get(channel).and_then(|it| it.get(id));
            return existing.map_or_else(|| problem(404, 10008, "Unknown Message"), Reply::json);
        }
        let id = self.next_id();
        let message = json!({
            "id": id.to_string(), "channel_id": channel, "type": 0, "content": content,
            "author": { "id": US, "username": "talaria", "bot": true },
            "components": body["components"], "flags": body["flags"],
            "message_reference": body["message_reference"],
        });
        if self.echoes {
            let mut echo = message.clone();
            echo["nonce"] = json!(nonce);
            self.tell("MESSAGE_CREATE", echo);
        }
        self.nonces.insert(nonce, (channel.into(), id));
        self.messages.entry(channel.into()).or_default().insert(id, message.clone());
        headers.iter().fold(Reply::json(&message), |reply, (name, value)| reply.with(name, value))
    }

    fn thread(&mut self, parent: &str, id: &str, body: &Value) -> Reply {
        if self.channels.contains_key(id) {
            return problem(400, 160_004, "A thread has already been created for this message");
        }
        assert!((1..=100).contains(&body["name"].as_str().unwrap().chars().count()));
        let thread = json!({ "id": id, "type": 11, "guild_id": GUILD, "parent_id": parent,
            "owner_id": US, "name": body["name"] });
        self.channels.insert(id.into(), thread.clone());
        Reply::json(&thread)
    }

    fn forum_post(&mut self, request: &Request) -> Reply {
        let body = payload(request);
        assert!(body["message"]["nonce"].is_null(), "a forum post takes no nonce");
        if body["applied_tags"] != json!(["702"]) {
            return problem(400, 40067, "A tag is required to create a forum post in this channel");
        }
        let id = self.next_id().to_string();
        let mut post = json!({ "id": id, "type": 11, "guild_id": GUILD, "parent_id": FORUM,
            "owner_id": US, "name": body["name"] });
        self.channels.insert(id.clone(), post.clone());
        let mut message = body["message"].clone();
        message["id"] = json!(id);
        post["message"] = message.clone();
        self.messages.entry(id.clone()).or_default().insert(id.parse().unwrap(), message);
        Reply::json(&post)
    }

    fn command(&mut self, request: &Request, id: Option<&str>) -> Reply {
        let at = id.and_then(|id| self.commands.iter().position(|command| command["id"] == id));
        match (request.method.as_str(), at) {
            ("GET", None) => Reply::json(&json!(self.commands)),
            ("POST", None) => {
                let mut command = request.json();
                command["id"] = json!(self.next_id().to_string());
                command["version"] = json!("1");
                self.commands.push(command.clone());
                Reply::json(&command)
            }
            ("PUT", None) => {
                self.commands = request.json().as_array().unwrap().clone();
                Reply::json(&json!(self.commands))
            }
            ("PATCH", Some(at)) => {
                let id = self.commands[at]["id"].clone();
                self.commands[at] = request.json();
                self.commands[at]["id"] = id;
                Reply::json(&self.commands[at])
            }
            ("DELETE", Some(at)) => {
                self.commands.remove(at);
                Reply::status(204, "")
            }
            (method, at) => panic!("{method} of command {at:?}"),
        }
    }

    fn file(&self, request: &Request) -> Reply {
        match (request.path.as_str(), request.query.as_str()) {
            ("/cdn/attachments/1/2/voice.ogg", "ex=new") => Reply::status(200, "sound"),
            ("/cdn/stickers/77.png" | "/cdn/stickers/77.gif", _) => Reply::status(200, "picture"),
            ("/cdn/attachments/1/2/large.bin", _) => Reply::status(200, vec![0; 2048]),
            ("/cdn/attachments/1/2/moved.bin", _) => {
                Reply::status(302, "").with("location", "http://127.0.0.1:1/secret")
            }
            _ => Reply::status(403, ""),
        }
    }
}

/// The JSON of a request, whether files go along or not.
pub fn payload(request: &Request) -> Value {
    if !request.header("content-type").is_some_and(|it| it.starts_with("multipart/")) {
        return request.json();
    }
    let text = String::from_utf8_lossy(&request.body);
    let part = text.split("name=\"payload_json\"").nth(1).expect("a part with the message");
    let body = part.split("\r\n\r\n").nth(1).unwrap().split("\r\n--").next().unwrap();
    serde_json::from_str(body).unwrap()
}

/// A refusal as Discord words it.
pub fn problem(status: u16, code: u64, message: &str) -> Reply {
    Reply::status(status, json!({ "code": code, "message": message }).to_string())
}

/// A refusal of a field.
pub fn invalid(field: &str) -> Reply {
    let body = json!({ "code": 50035, "message": "Invalid Form Body", "errors": { field: {
        "_errors": [{ "code": "BASE_TYPE_MAX_LENGTH", "message": "Must be 2000 or fewer." }] } } });
    Reply::status(400, body.to_string())
}

async fn serve(listener: TcpListener, truth: Arc<Mutex<Truth>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(greet(stream, truth.clone()));
    }
}

type Socket = tokio_tungstenite::WebSocketStream<TcpStream>;

async fn greet(stream: TcpStream, truth: Arc<Mutex<Truth>>) {
    let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
    let interval = truth.lock().unwrap().interval;
    let hello = json!({ "op": 10, "d": { "heartbeat_interval": interval } });
    put(&mut socket, hello.to_string()).await;
    let introduction = loop {
        let Some(frame) = take(&mut socket).await else { return };
        // A heart may beat first.
        if frame["op"] != 1 {
            break frame;
        }
    };
    let (state, watched) = watch::channel(State::default());
    let (orders, ordered) = mpsc::unbounded_channel();
    let first = {
        let mut truth = truth.lock().unwrap();
        truth.introduced.push(introduction.clone());
        truth.connections.push(Connection { orders, state: watched });
        truth.welcome(&introduction)
    };
    match first {
        Ok(frames) => {
            for frame in frames {
                put(&mut socket, frame.to_string()).await;
            }
            converse(&mut socket, &truth, ordered, &state).await;
        }
        Err(code) => shut(&mut socket, code).await,
    }
    state.send_modify(|state| state.is_closed = true);
}

impl Truth {
    /// What somebody is told first, or the code they are sent away with.
    fn welcome(&mut self, introduction: &Value) -> Result<Vec<Value>, u16> {
        if let Some(code) = self.refuses {
            return Err(code);
        }
        let about = &introduction["d"];
        if about["token"] != TOKEN {
            return Err(4004);
        }
        match introduction["op"].as_u64() {
            Some(2) => {
                assert_eq!(about["properties"]["os"], std::env::consts::OS);
                let id = format!("session-{}", self.sessions.len() + 1);
                self.sessions.push(Session { id: id.clone(), told: Vec::new() });
                let guilds = if self.guild.is_null() {
                    json!([])
                } else {
                    json!([{ "id": GUILD, "unavailable": true }])
                };
                let url = self.gateway.clone();
                let ready = json!({ "v": 10, "session_id": id, "resume_gateway_url": url,
                    "user": { "id": US, "username": "talaria", "bot": true }, "guilds": guilds,
                    "application": { "id": APPLICATION, "flags": self.flags } });
                self.record("READY", ready);
                if !self.guild.is_null() {
                    let guild = self.described();
                    self.record("GUILD_CREATE", guild);
                }
                Ok(self.sessions.last().unwrap().told.clone())
            }
            Some(6) => {
                // A session that another one has followed is over.
                let session =
                    self.sessions.last().filter(|it| about["session_id"] == it.id.as_str());
                let Some(session) = session.filter(|_| !std::mem::take(&mut self.forgets)) else {
                    return Ok(vec![json!({ "op": 9, "d": false })]);
                };
                let seq = about["seq"].as_u64().unwrap() as usize;
                let Some(missed) = session.told.get(seq..) else { return Err(4007) };
                let mut frames = missed.to_vec();
                let last = session.told.len() as u64;
                self.record("RESUMED", json!({}));
                frames.push(json!({ "op": 0, "s": last + 1, "t": "RESUMED", "d": {} }));
                Ok(frames)
            }
            op => panic!("introduced with {op:?}"),
        }
    }

    fn described(&self) -> Value {
        let mut guild = self.guild.clone();
        let with_last = |channel: &Value| {
            let mut channel = channel.clone();
            let id = channel["id"].as_str().unwrap();
            let last = self.messages.get(id).and_then(|it| it.keys().next_back());
            channel["last_message_id"] = json!(last.map(u64::to_string));
            channel.as_object_mut().unwrap().remove("guild_id");
            channel
        };
        let is_told = |(id, channel): &(&String, &Value)| {
            !channel["guild_id"].is_null() && !self.archived.contains(*id)
        };
        let here = self.channels.iter().filter(is_told).map(|(_, channel)| channel);
        let all: Vec<Value> = here.map(with_last).collect();
        let (threads, channels): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|it| it["type"] == 11);
        guild["channels"] = json!(channels);
        guild["threads"] = json!(threads);
        guild
    }
}

async fn converse(
    socket: &mut Socket,
    truth: &Mutex<Truth>,
    mut orders: mpsc::UnboundedReceiver<Order>,
    state: &watch::Sender<State>,
) {
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(Order::Write(frame)) => put(socket, frame).await,
                // Whoever does not want to hear it has hung up.
                Some(Order::Bytes(bytes)) => drop(socket.send(Message::Binary(bytes.into())).await),
                Some(Order::Close(code)) => return shut(socket, code).await,
                None => return,
            },
            frame = take(socket) => {
                let Some(frame) = frame else { return };
                assert_eq!(frame["op"], 1, "only the heart beats: {frame}");
                let confirmed = frame["d"].as_u64().unwrap_or(0);
                state.send_modify(|state| {
                    state.beats += 1;
                    state.confirmed = confirmed;
                });
                let answers = truth.lock().unwrap().answers;
                if answers {
                    put(socket, json!({ "op": 11 }).to_string()).await;
                }
            }
        }
    }
}

async fn shut(socket: &mut Socket, code: u16) {
    let frame = CloseFrame { code: code.into(), reason: "by the script".into() };
    let _ = socket.close(Some(frame)).await;
    while let Some(Ok(_)) = socket.next().await {}
}

async fn put(socket: &mut Socket, frame: String) {
    let _ = socket.send(Message::text(frame)).await;
}

async fn take(socket: &mut Socket) -> Option<Value> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).ok(),
            Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
            Some(Ok(_)) => {}
        }
    }
}
