//! Socket Mode: one connection to Slack, renewed before Slack ends it. An event is acknowledged on the
//! connection it came by, once it is stored.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;
use talaria_clock::{Clock, Mark};
use talaria_model::Secret;
use talaria_platform::{
    Ack, Arrival, Arrivals, Batch, Committed, ConnectError, LinkError, Proof, Verdict,
};
use tokio::sync::mpsc;

use super::api::{Api, ApiError, Body};
use super::catch_up::CatchUp;
use super::decode::Senseless;
use super::hearing::{Brought, Hearing, News};
use super::refusal::{connect_error, link_error};
use super::ts::Ts;
use super::wire::{Envelope, Hello, Interaction, SlashCommand};
use crate::wire::socket::{Frame, Socket, SocketError};

/// How long the first frame may take.
const HELLO: Duration = Duration::from_secs(12);

/// How often we ask for proof of life.
const PING: Duration = Duration::from_secs(10);

/// After how much silence a connection is dead.
const DEAD: Duration = Duration::from_secs(30);

/// After how long we look again whether another process is connected in our place. A connection of
/// ours that broke can count for a while.
const RECHECK: Duration = Duration::from_secs(90);

/// Events that are already there are committed together, up to this many.
const BATCH: usize = 32;

/// How long events that came together may wait for each other. Slack waits three seconds.
const GATHER: Duration = Duration::from_secs(1);

/// Acknowledgements on their way to a connection. There is one batch at a time.
const ACKS: usize = 8;

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum OpenError {
    Api(ApiError),
    Socket(SocketError),
    /// Slack ended it before it began, for this reason.
    Ended(String),
}

impl From<OpenError> for ConnectError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Api(error) => connect_error(error, "app-level token"),
            OpenError::Socket(error) => Self::Unreachable { reason: error.to_string() },
            OpenError::Ended(reason) if reason == "link_disabled" => Self::Refused {
                problem: "Socket Mode is switched off in the app's settings".into(),
                hint: "switch it on, or set signing_secret instead of app_token".into(),
            },
            OpenError::Ended(reason) => Self::Unreachable { reason },
        }
    }
}

impl From<OpenError> for LinkError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Api(error) => link_error(error),
            OpenError::Socket(error) => Self::Lost { reason: error.to_string() },
            OpenError::Ended(reason) => ended(&reason).unwrap_or(Self::Lost { reason }),
        }
    }
}

/// What to do about other connections of the app.
const OTHERS: &str = "stop the other programs that use it, or give each an app of its own";

/// Which of Slack's reasons to end a connection are more than a wish for a fresh one.
fn ended(reason: &str) -> Option<LinkError> {
    match reason {
        "link_disabled" => Some(LinkError::Unauthorized {
            reason: "Socket Mode is switched off in the app's settings".into(),
        }),
        "too_many_websockets" => Some(LinkError::Conflict {
            problem: "more connections use this app-level token than Slack allows".into(),
            hint: OTHERS.into(),
        }),
        _ => None,
    }
}

/// Opens a connection and waits until Slack says hello.
pub(super) async fn open(
    api: &Api,
    token: &Secret,
    clock: Arc<dyn Clock>,
) -> Result<(Socket, Hello), OpenError> {
    let url = address(api, token).await.map_err(OpenError::Api)?;
    let mut socket = Socket::open(&api.http, &url, clock).await.map_err(OpenError::Socket)?;
    loop {
        match socket.read(HELLO).await.map_err(OpenError::Socket)? {
            Frame::Text(text) => {
                let kind = serde_json::from_str::<Envelope<'_>>(&text)
                    .map_err(|_| OpenError::Ended("the first frame is not JSON".into()))?;
                match kind.kind.as_str() {
                    "hello" => {
                        let hello = serde_json::from_str(&text).unwrap_or_default();
                        return Ok((socket, hello));
                    }
                    "disconnect" => return Err(OpenError::Ended(kind.reason)),
                    _ => return Err(OpenError::Ended("Slack does not say hello".into())),
                }
            }
            Frame::Alive => {}
            Frame::Binary(_) | Frame::Closed(_) => {
                return Err(OpenError::Ended("Slack hung up before it said hello".into()));
            }
        }
    }
}

/// Where to connect to, once.
pub(super) async fn address(api: &Api, token: &Secret) -> Result<String, ApiError> {
    #[derive(Deserialize)]
    struct Opened {
        url: String,
    }
    let opened: Opened = api.call("apps.connections.open", token, Body::Form(vec![])).await?;
    match Url::parse(&opened.url).is_ok_and(|url| api.may_name(&url)) {
        true => Ok(opened.url),
        false => Err(ApiError::Outage(
            "Slack names an address to connect to that is not its own, or not encrypted".into(),
        )),
    }
}

/// What is heard on a connection that was opened.
pub(super) fn arrivals(
    hearing: Arc<Hearing>,
    token: Secret,
    (socket, hello): (Socket, Hello),
    hours: u32,
) -> Arrivals {
    let (ack, acks) = mpsc::channel(ACKS);
    let now = hearing.clock.mark();
    hearing.kept.echoes.begin(now);
    let mut listening = Listening {
        catching: CatchUp::new(hearing.clone(), hours),
        current: Some(Line { socket, number: 0, heard: now, stashed: None }),
        old: None,
        opening: None,
        company: Company::None,
        broken: None,
        began: false,
        ack,
        acks,
        token,
        hearing,
    };
    // What is found here is looked at again before it counts.
    let _ = listening.greeted(&hello, 1);
    stream::unfold(Some(listening), |listening| async {
        let mut listening = listening?;
        match listening.arrival().await {
            Ok(arrival) => Some((Ok(arrival), Some(listening))),
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

/// One connection.
struct Line {
    socket: Socket,
    number: u64,
    heard: Mark,
    /// A frame that was read ahead.
    stashed: Option<Result<Frame, SocketError>>,
}

impl Line {
    async fn frame(&mut self) -> Result<Frame, SocketError> {
        match self.stashed.take() {
            Some(frame) => frame,
            None => self.socket.read(PING).await,
        }
    }

    /// A text frame that is already there.
    fn ready(&mut self) -> Option<String> {
        if self.stashed.is_some() {
            return None;
        }
        match self.socket.read(PING).now_or_never()? {
            Ok(Frame::Text(text)) => Some(text),
            other => {
                self.stashed = Some(other);
                None
            }
        }
    }
}

struct Listening {
    hearing: Arc<Hearing>,
    token: Secret,
    current: Option<Line>,
    /// Slack is about to end this one; what it still brings counts.
    old: Option<Line>,
    opening: Option<BoxFuture<'static, Result<(Socket, Hello), OpenError>>>,
    catching: CatchUp,
    company: Company,
    /// What ends this, once what came before it has been taken in.
    broken: Option<LinkError>,
    began: bool,
    ack: mpsc::Sender<Acks>,
    acks: mpsc::Receiver<Acks>,
}

/// Which connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Current,
    Old,
}

enum Happening {
    Frame(Which, Result<Frame, SocketError>),
    Opened(Result<Box<(Socket, Hello)>, OpenError>),
    Missed(Result<Batch, LinkError>),
    Acked(Acks),
    Recheck,
}

/// Frames that acknowledge.
struct Acks {
    line: u64,
    frames: Vec<String>,
}

/// How an envelope wants to be acknowledged.
struct Receipt {
    envelope: String,
    answer: Answer,
    /// How many events it brought.
    events: usize,
}

enum Answer {
    None,
    /// Said to the one who gave the command, and to nobody else.
    Privately(String),
}

impl Listening {
    async fn arrival(&mut self) -> Result<Arrival, LinkError> {
        if !std::mem::replace(&mut self.began, true) {
            return Ok(self.begin());
        }
        loop {
            if let Some(error) = self.broken.take() {
                return Err(error);
            }
            while let Ok(acks) = self.acks.try_recv() {
                self.acknowledge(acks).await?;
            }
            if let Some(deaf) = self.hearing.kept.echoes.overdue(self.hearing.clock.mark()) {
                return Err(deaf);
            }
            match self.happening().await {
                Happening::Frame(which, frame) => {
                    if let Some(arrival) = self.frame(which, frame).await? {
                        return Ok(arrival);
                    }
                }
                Happening::Opened(Ok(opened)) => self.opened(*opened)?,
                Happening::Opened(Err(error)) => self.not_opened(error)?,
                Happening::Missed(batch) => return Ok(Arrival::Found(batch?)),
                Happening::Acked(acks) => self.acknowledge(acks).await?,
                Happening::Recheck => {
                    self.company = Company::Checking;
                    self.renew();
                }
            }
        }
    }

    /// Everything since the last stored position; the first time, that position begins here.
    fn begin(&mut self) -> Arrival {
        let hearing = &self.hearing;
        if hearing.position.seen().is_some() {
            self.catching.begin();
        } else {
            hearing.position.advance(Ts::at(hearing.now()));
        }
        let cursor = hearing.position.cursor();
        Arrival::Batch(Batch { events: Vec::new(), cursor, ack: Ack::unneeded() })
    }

    async fn happening(&mut self) -> Happening {
        let Self { hearing, current, old, opening, catching, company, acks, .. } = self;
        let recheck = match company {
            Company::Suspected(at) => Some(at.since(hearing.clock.mark())),
            Company::None | Company::Checking => None,
        };
        tokio::select! {
            biased;
            Some(acked) = acks.recv() => Happening::Acked(acked),
            frame = frame(old) => Happening::Frame(Which::Old, frame),
            frame = frame(current) => Happening::Frame(Which::Current, frame),
            opened = wait_for(opening) => {
                *opening = None;
                Happening::Opened(opened.map(Box::new))
            }
            batch = catching.next() => Happening::Missed(batch),
            () = after(recheck, hearing.clock.as_ref()) => Happening::Recheck,
        }
    }

    async fn frame(
        &mut self,
        which: Which,
        frame: Result<Frame, SocketError>,
    ) -> Result<Option<Arrival>, LinkError> {
        let now = self.hearing.clock.mark();
        let line = match which {
            Which::Current => &mut self.current,
            Which::Old => &mut self.old,
        };
        let Some(open) = line else { return Ok(None) };
        let silent = matches!(frame, Err(SocketError::Silent(_)));
        match frame {
            Ok(Frame::Text(text)) => {
                open.heard = now;
                return self.take(which, text).await.map(Some);
            }
            Ok(Frame::Alive) => {
                open.heard = now;
                return Ok(Some(Arrival::Alive));
            }
            Err(SocketError::Silent(_)) if now.since(open.heard) < DEAD => {
                if open.socket.ping().await.is_ok() {
                    return Ok(None);
                }
            }
            // Slack never sends bytes; whatever this is, nothing behind it can be trusted.
            Ok(Frame::Binary(_)) if which == Which::Current => {
                return Err(LinkError::Lost { reason: "Slack sent something unreadable".into() });
            }
            Ok(Frame::Binary(_) | Frame::Closed(_)) | Err(_) => {}
        }
        *line = None;
        match which {
            Which::Old => Ok(None),
            // The next one is on its way, and then what was missed in between is read.
            Which::Current if self.opening.is_some() => Ok(None),
            Which::Current if silent => {
                let reason = "no sign of life".into();
                Err(LinkError::Deaf { reason, until: Proof::Life, since: None })
            }
            Which::Current => Err(LinkError::Lost { reason: "Slack hung up".into() }),
        }
    }

    /// Takes in a frame and those that are already there behind it.
    async fn take(&mut self, which: Which, first: String) -> Result<Arrival, LinkError> {
        let began = self.hearing.clock.mark();
        let number = self.line(which).map_or(0, |line| line.number);
        let mut next = Some(first);
        let (mut events, mut lessons, mut receipts) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(text) = next {
            match self.read(&text).await {
                Ok(Some((receipt, brought))) => {
                    receipts.push(receipt);
                    lessons.extend(brought.lessons());
                    events.extend(brought.events);
                    self.hear_news(brought.news);
                }
                Ok(None) => {}
                Err(error) => self.broken = Some(error),
            }
            let is_full =
                receipts.len() == BATCH || self.hearing.clock.mark().since(began) >= GATHER;
            next = match self.broken {
                None if !is_full => self.line(which).and_then(Line::ready),
                _ => None,
            };
        }
        if events.is_empty() {
            let shown = if receipts.is_empty() { Arrival::Alive } else { Arrival::Brought };
            let frames = frames(receipts, &Committed(Vec::new()));
            self.acknowledge(Acks { line: number, frames }).await?;
            return Ok(shown);
        }
        let (ack, hearing) = (self.ack.clone(), self.hearing.clone());
        let ack = Ack::with(move |committed| {
            hearing.remember(lessons, &committed.0);
            // It can only be full or closed when nobody listens any more.
            let _ = ack.try_send(Acks { line: number, frames: frames(receipts, &committed) });
        });
        Ok(Arrival::Batch(Batch { events, cursor: self.hearing.position.cursor(), ack }))
    }

    fn line(&mut self, which: Which) -> Option<&mut Line> {
        match which {
            Which::Current => self.current.as_mut(),
            Which::Old => self.old.as_mut(),
        }
    }

    /// What a frame brings. A frame that is not JSON cannot be acknowledged, so what follows it cannot
    /// be told from what came before.
    async fn read(&mut self, text: &str) -> Result<Option<(Receipt, Brought)>, LinkError> {
        let envelope: Envelope<'_> = serde_json::from_str(text)
            .map_err(|_| LinkError::Lost { reason: "a frame is not an envelope".into() })?;
        if envelope.kind == "disconnect" {
            return match ended(&envelope.reason) {
                Some(error) => Err(error),
                None => {
                    self.renew();
                    Ok(None)
                }
            };
        }
        let Some(id) = envelope.envelope_id else { return Ok(None) };
        let payload = envelope.payload.map(|payload| payload.get()).unwrap_or("null");
        let mut answer = Answer::None;
        let brought = match envelope.kind.as_str() {
            "events_api" => {
                self.hearing.kept.echoes.brought(self.hearing.clock.mark());
                self.hearing.event(payload).await
            }
            "slash_commands" => match serde_json::from_str::<SlashCommand>(payload) {
                Ok(command) => {
                    if envelope.accepts_response_payload {
                        answer = Answer::Privately(working_on(&command));
                    }
                    self.hearing.slash(&command)
                }
                Err(_) => self.hearing.skip("a command", &Senseless::Wrong("shape")),
            },
            "interactive" => match serde_json::from_str::<Interaction>(payload) {
                Ok(interaction) => self.hearing.interaction(&interaction),
                Err(_) => self.hearing.skip("a press", &Senseless::Wrong("shape")),
            },
            _ => Brought::default(),
        };
        let receipt = Receipt { envelope: id, answer, events: brought.events.len() };
        Ok(Some((receipt, brought)))
    }

    fn hear_news(&mut self, news: Option<News>) {
        match news {
            Some(News::Revoked(reason)) => self.broken = Some(LinkError::Unauthorized { reason }),
            Some(News::Missed) => self.catching.begin(),
            None => {}
        }
    }

    /// Opens the next connection while this one still works.
    fn renew(&mut self) {
        if self.opening.is_none() {
            let (hearing, token) = (self.hearing.clone(), self.token.clone());
            let opening = async move { open(&hearing.api, &token, hearing.clock.clone()).await };
            self.opening = Some(opening.boxed());
        }
    }

    fn opened(&mut self, (socket, hello): (Socket, Hello)) -> Result<(), LinkError> {
        let number = self.current.as_ref().or(self.old.as_ref()).map_or(0, |line| line.number) + 1;
        let line = Line { socket, number, heard: self.hearing.clock.mark(), stashed: None };
        self.old = self.current.replace(line);
        self.hearing.kept.echoes.begin(self.hearing.clock.mark());
        if self.old.is_none() {
            self.catching.begin();
        }
        let ours = 1 + u32::from(self.old.is_some());
        self.greeted(&hello, ours)
    }

    /// A look at who else is connected may fail; what Slack is about to end has to be replaced.
    fn not_opened(&mut self, error: OpenError) -> Result<(), LinkError> {
        match self.company {
            Company::Checking if self.current.is_some() => {
                self.company = Company::Suspected(self.hearing.clock.mark() + RECHECK);
                Ok(())
            }
            _ => Err(error.into()),
        }
    }

    /// Every event goes to one connection of the app, so another process would hear what we do not.
    fn greeted(&mut self, hello: &Hello, ours: u32) -> Result<(), LinkError> {
        let others = hello.num_connections.map_or(0, |number| number.saturating_sub(ours));
        match (others, self.company) {
            (0, _) => self.company = Company::None,
            (_, Company::Checking) => {
                return Err(LinkError::Conflict {
                    problem: format!("{others} more connections use this app-level token"),
                    hint: OTHERS.into(),
                });
            }
            _ => self.company = Company::Suspected(self.hearing.clock.mark() + RECHECK),
        }
        Ok(())
    }

    async fn acknowledge(&mut self, acks: Acks) -> Result<(), LinkError> {
        let lines = [&mut self.current, &mut self.old];
        for line in lines {
            let Some(open) = line.as_mut().filter(|open| open.number == acks.line) else {
                continue;
            };
            for frame in &acks.frames {
                if let Err(error) = open.socket.write(frame.clone()).await {
                    // Slack delivers again what was not acknowledged.
                    return Err(LinkError::Lost { reason: error.to_string() });
                }
            }
            return Ok(());
        }
        Ok(())
    }
}

/// Whether somebody else is connected for the same app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Company {
    /// Not that we know.
    None,
    /// There was more than one connection; at this moment we look again.
    Suspected(Mark),
    /// A connection is being opened to see.
    Checking,
}

async fn frame(line: &mut Option<Line>) -> Result<Frame, SocketError> {
    match line {
        Some(line) => line.frame().await,
        None => std::future::pending().await,
    }
}

async fn wait_for<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn after(wait: Option<Duration>, clock: &dyn Clock) {
    match wait {
        Some(wait) => clock.sleep(wait).await,
        None => std::future::pending().await,
    }
}

/// What is said at once to the one who gave a command.
pub(super) fn working_on(command: &SlashCommand) -> String {
    let shown: String = command.command.chars().filter(|c| !"`<>&".contains(*c)).take(40).collect();
    format!("Working on `{shown}`…")
}

/// The acknowledgements of a batch. Who is not let in gets no more than that.
fn frames(receipts: Vec<Receipt>, committed: &Committed) -> Vec<String> {
    let mut verdicts = committed.0.iter();
    let frames = receipts.into_iter().map(|Receipt { envelope, answer, events }| {
        let own: Vec<&Verdict> = verdicts.by_ref().take(events).collect();
        let is_let_in = own.iter().any(|verdict| **verdict != Verdict::Denied);
        match answer {
            Answer::Privately(text) if is_let_in => {
                let payload = json!({ "response_type": "ephemeral", "text": text });
                json!({ "envelope_id": envelope, "payload": payload }).to_string()
            }
            _ => json!({ "envelope_id": envelope }).to_string(),
        }
    });
    frames.collect()
}
