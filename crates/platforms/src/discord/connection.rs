//! One connection to Discord's gateway: its frames, its heartbeat, and how a session on it begins.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use talaria_clock::Clock;
use talaria_platform::{ConnectError, LinkError, Proof};

use super::api;
use super::position::Session;
use super::pulse::{Due, Pulse};
use super::rest::Rest;
use super::settings::Settings;
use crate::wire::socket::{Frame, Socket, SocketError};

/// How long Discord may take to say hello, and to accept us.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The read itself never gives up: the heartbeat notices a dead connection.
const UNLIMITED: Duration = Duration::from_secs(24 * 60 * 60);

/// Discord ends all sessions and takes the token away from whoever begins more than a thousand sessions
/// a day; so many are left for whoever repairs what made us do that.
const KEPT_BACK: u64 = 20;

mod intent {
    pub(super) const GUILDS: u64 = 1;
    pub(super) const GUILD_MESSAGES: u64 = 1 << 9;
    pub(super) const DIRECT_MESSAGES: u64 = 1 << 12;
    pub(super) const MESSAGE_CONTENT: u64 = 1 << 15;
}

/// A connection that was greeted.
pub(crate) struct Connection {
    socket: Socket,
    pulse: Pulse,
    /// The last event that is stored, which is what a heartbeat confirms.
    pub(crate) stored: Option<u64>,
}

/// Whether more can be taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Left,
    None,
}

/// What Discord says.
#[derive(Debug)]
pub(crate) enum Heard {
    /// Something happened.
    Event(Event),
    /// A heartbeat was answered.
    Alive,
    /// We are to connect again, with the same session.
    Again,
    /// The session is no more, or can still be resumed.
    Invalid { resumable: bool },
    /// The connection was ended, with a code and a reason where there are any.
    Closed(Option<(u16, String)>),
}

/// Something that happened.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) seq: u64,
    pub(crate) name: String,
    pub(crate) what: Box<RawValue>,
}

/// What a close code asks of us, from "Opcodes and Status Codes".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The session can be resumed.
    Resume,
    /// A session has to be begun.
    Begin,
    /// A person has to change something.
    Refused { problem: &'static str, hint: &'static str },
    /// The token is not accepted.
    Unauthorized,
}

/// What a close code asks of us.
pub(crate) fn verdict(code: Option<u16>) -> Verdict {
    let (problem, hint) = match code {
        Some(4003 | 4007 | 4009) => return Verdict::Begin,
        Some(4004) => return Verdict::Unauthorized,
        Some(4010) => ("Discord does not know this shard", "Check `shard`: [number, of how many]."),
        Some(4011) => (
            "the bot is in too many guilds for one connection",
            "Set `shard`, and set up as many accounts with the same token as Discord recommends.",
        ),
        Some(4012) => (
            "Discord no longer speaks this version of its protocol",
            "Update Talaria, or check `base_url`.",
        ),
        Some(4013) => ("Discord does not know what we ask to hear", "Update Talaria."),
        Some(4014) => (MISSING_INTENT, INTENT_HINT),
        _ => return Verdict::Resume,
    };
    Verdict::Refused { problem, hint }
}

/// What is said when the privileged intent is off.
pub(crate) const MISSING_INTENT: &str = "the Message Content intent is off";
/// What is to be done about it.
pub(crate) const INTENT_HINT: &str = "Open https://discord.com/developers/applications, choose the \
     application, open Bot, and switch Message Content Intent on under Privileged Gateway Intents. \
     Or set `message_content: false`: the bot then hears direct messages and mentions only.";

impl Connection {
    /// Connects and is greeted.
    async fn open(rest: &Rest, url: &str, clock: &Arc<dyn Clock>) -> Result<Self, ConnectError> {
        // The token goes there.
        if !Url::parse(url).is_ok_and(|url| rest.may_name(&url)) {
            return Err(unwelcome("its address is not one of Discord, or not encrypted"));
        }
        let url = format!("{}/?v=10&encoding=json", url.trim_end_matches('/'));
        let mut socket =
            Socket::open(&rest.http, &url, clock.clone()).await.map_err(unreachable)?;
        match socket.read(HANDSHAKE).await.map_err(unreachable)? {
            Frame::Text(text) => {
                let frame: api::Frame<'_> = read(&text)?;
                let hello = frame.d.filter(|_| frame.op == 10);
                let hello = hello.ok_or_else(|| unwelcome("it did not say hello"))?;
                let hello: api::Hello = read(hello.get())?;
                let interval = Duration::from_millis(hello.heartbeat_interval);
                let pulse = Pulse::new(interval, rand::random::<f64>(), clock.clone());
                Ok(Self { socket, pulse, stored: None })
            }
            Frame::Closed(reason) => Err(closed(reason)),
            Frame::Binary(_) | Frame::Alive => Err(unwelcome("it did not say hello")),
        }
    }

    /// The next thing Discord says. Keeps the heart beating meanwhile.
    async fn next(&mut self) -> Result<Heard, LinkError> {
        loop {
            let frame = tokio::select! {
                biased;
                frame = self.socket.read(UNLIMITED) => frame.map_err(lost)?,
                due = self.pulse.next() => {
                    if due == Due::Dead {
                        return Err(LinkError::Deaf {
                            reason: "no sign of life".into(),
                            until: Proof::Life,
                            since: None,
                        });
                    }
                    self.beat().await?;
                    continue;
                }
            };
            self.pulse.heard();
            let text = match frame {
                Frame::Text(text) => text,
                Frame::Alive => continue,
                Frame::Closed(reason) => return Ok(Heard::Closed(reason)),
                Frame::Binary(_) => return Err(unreadable()),
            };
            let frame: api::Frame<'_> = serde_json::from_str(&text).map_err(|_| unreadable())?;
            match frame.op {
                0 => {
                    let (Some(seq), Some(name)) = (frame.s, frame.t) else {
                        return Err(unreadable());
                    };
                    let what = frame.d.unwrap_or(RawValue::NULL).to_owned();
                    return Ok(Heard::Event(Event { seq, name, what }));
                }
                1 => self.beat().await?,
                7 => return Ok(Heard::Again),
                9 => {
                    let resumable = frame.d.is_some_and(|resumable| resumable.get() == "true");
                    return Ok(Heard::Invalid { resumable });
                }
                11 => return Ok(Heard::Alive),
                // A word that is not known yet is not for us.
                _ => {}
            }
        }
    }

    /// The next thing Discord says, once there is room for it.
    pub(crate) async fn hear(&mut self, room: Room) -> Result<Heard, LinkError> {
        match room {
            Room::Left => self.next().await,
            Room::None => self.hold().await,
        }
    }

    /// Keeps the heart beating without reading.
    async fn hold(&mut self) -> Result<Heard, LinkError> {
        loop {
            // Nobody listens, so silence is no sign of death.
            self.pulse.heard();
            if self.pulse.next().await == Due::Beat {
                self.beat().await?;
            }
        }
    }

    async fn beat(&mut self) -> Result<(), LinkError> {
        self.write(json!({ "op": 1, "d": self.stored })).await?;
        self.pulse.beaten();
        Ok(())
    }

    async fn write(&mut self, frame: Value) -> Result<(), LinkError> {
        self.socket.write(frame.to_string()).await.map_err(lost)
    }
}

/// How a session was had.
pub(crate) enum Begun {
    /// It goes on: this is the first event that was missed, or the word that none was.
    Resumed(Event),
    /// It is new.
    New { ready: api::Ready, seq: u64 },
}

/// Has a session: the old one if Discord still knows it, else a new one.
pub(crate) async fn begin(
    rest: &Rest,
    settings: &Settings,
    old: Option<&Session>,
    clock: &Arc<dyn Clock>,
) -> Result<(Connection, Begun), ConnectError> {
    if let Some(session) = old
        && let Some(resumed) = resume(rest, session, clock).await?
    {
        return Ok(resumed);
    }
    identify(rest, settings, clock).await
}

/// None when Discord does not know the session any more.
async fn resume(
    rest: &Rest,
    session: &Session,
    clock: &Arc<dyn Clock>,
) -> Result<Option<(Connection, Begun)>, ConnectError> {
    let mut connection = match Connection::open(rest, &session.url, clock).await {
        Ok(connection) => connection,
        // The machine that kept our session may be gone; any other can look for it.
        Err(ConnectError::Unreachable { .. }) => {
            let gateway: api::GatewayBot = rest.get("/gateway/bot").await?;
            Connection::open(rest, &gateway.url, clock).await?
        }
        Err(error) => return Err(error),
    };
    connection.stored = Some(session.seq);
    let token = rest.token().expose();
    let resume = json!({
        "op": 6,
        "d": { "token": token, "session_id": session.id, "seq": session.seq },
    });
    connection.write(resume).await.map_err(gave_up)?;
    match answer(&mut connection, clock).await? {
        Heard::Event(event) => Ok(Some((connection, Begun::Resumed(event)))),
        Heard::Invalid { resumable: false } => {
            drop(connection);
            // Discord asks for a pause of one to five seconds, so that not everybody begins at once.
            clock.sleep(Duration::from_millis(rand::random_range(1_000..2_500))).await;
            Ok(None)
        }
        Heard::Closed(reason) => match verdict(reason.as_ref().map(|(code, _)| *code)) {
            Verdict::Begin => Ok(None),
            _ => Err(closed(reason)),
        },
        Heard::Invalid { .. } | Heard::Again | Heard::Alive => {
            Err(unwelcome("it asked us to connect again"))
        }
    }
}

async fn identify(
    rest: &Rest,
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> Result<(Connection, Begun), ConnectError> {
    let gateway: api::GatewayBot = rest.get("/gateway/bot").await?;
    if let Some(limit) = gateway.session_start_limit
        && limit.remaining <= KEPT_BACK
    {
        let minutes = limit.reset_after / 60_000;
        return Err(ConnectError::Unreachable {
            reason: format!("too many sessions were begun today; again in {minutes} minutes"),
        });
    }
    let mut connection = Connection::open(rest, &gateway.url, clock).await?;
    connection.write(introduction(rest, settings)).await.map_err(gave_up)?;
    match answer(&mut connection, clock).await? {
        Heard::Event(Event { seq, name, what }) if name == "READY" => {
            Ok((connection, Begun::New { ready: read(what.get())?, seq }))
        }
        Heard::Closed(reason) => Err(closed(reason)),
        _ => Err(unwelcome("it did not accept the session")),
    }
}

fn introduction(rest: &Rest, settings: &Settings) -> Value {
    let content = if settings.message_content { intent::MESSAGE_CONTENT } else { 0 };
    let intents = intent::GUILDS | intent::GUILD_MESSAGES | intent::DIRECT_MESSAGES | content;
    json!({
        "op": 2,
        "d": {
            "token": rest.token().expose(),
            "intents": intents,
            "properties": { "os": std::env::consts::OS, "browser": "talaria", "device": "talaria" },
            "shard": settings.shard,
            "large_threshold": 50,
        },
    })
}

/// The first thing said after we introduced ourselves that is no heartbeat.
async fn answer(
    connection: &mut Connection,
    clock: &Arc<dyn Clock>,
) -> Result<Heard, ConnectError> {
    let heard = async {
        loop {
            match connection.next().await {
                Ok(Heard::Alive) => {}
                heard => return heard.map_err(gave_up),
            }
        }
    };
    tokio::select! {
        heard = heard => heard,
        () = clock.sleep(HANDSHAKE) => Err(unwelcome("it does not accept the session")),
    }
}

fn read<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, ConnectError> {
    serde_json::from_str(text).map_err(|_| unwelcome("what it says makes no sense"))
}

/// What a connection that was ended means before it was one.
fn closed(reason: Option<(u16, String)>) -> ConnectError {
    match verdict(reason.as_ref().map(|(code, _)| *code)) {
        Verdict::Refused { problem, hint } => {
            ConnectError::Refused { problem: problem.into(), hint: hint.into() }
        }
        Verdict::Unauthorized => ConnectError::Refused {
            problem: "Discord does not accept the token".into(),
            hint: "Copy it again from the Bot page of your application.".into(),
        },
        Verdict::Resume | Verdict::Begin => match reason {
            Some((code, words)) => unwelcome(&format!("it hung up: {words} ({code})")),
            None => unwelcome("it hung up"),
        },
    }
}

fn unwelcome(reason: &str) -> ConnectError {
    ConnectError::Unreachable { reason: format!("Discord's gateway: {reason}") }
}

fn unreachable(error: SocketError) -> ConnectError {
    ConnectError::Unreachable { reason: error.to_string() }
}

fn gave_up(error: LinkError) -> ConnectError {
    ConnectError::Unreachable { reason: error.to_string() }
}

fn lost(error: SocketError) -> LinkError {
    LinkError::Lost { reason: error.to_string() }
}

/// The parser would quote what it could not read, which may be what a person said.
fn unreadable() -> LinkError {
    LinkError::Lost { reason: "a frame is not what Discord sends".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_close_code_says_what_to_do() {
        for code in [None, Some(1000), Some(1001), Some(1006), Some(4000), Some(4001), Some(4008)] {
            assert_eq!(verdict(code), Verdict::Resume, "{code:?}");
        }
        for code in [4003, 4007, 4009] {
            assert_eq!(verdict(Some(code)), Verdict::Begin, "{code}");
        }
        assert_eq!(verdict(Some(4004)), Verdict::Unauthorized);
        for code in 4010..=4014 {
            assert!(matches!(verdict(Some(code)), Verdict::Refused { .. }), "{code}");
        }
        let Verdict::Refused { hint, .. } = verdict(Some(4014)) else { panic!("refused") };
        assert!(hint.contains("Message Content Intent"));
    }
}
