//! The Events API: Slack sends a signed request for each event, command and press, and learns from the
//! answer whether it is stored.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use serde_json::json;
use talaria_model::Secret;
use talaria_platform::{
    Ack, Arrival, Arrivals, Batch, Committed, Incoming, LinkError, Surface, Verdict,
};
use tokio::sync::{Notify, mpsc};

use super::catch_up::CatchUp;
use super::decode::Senseless;
use super::hearing::{Brought, Hearing, News};
use super::signature::{self, Claim};
use super::socket::working_on;
use super::ts::Ts;
use super::wire::{Interaction, Outer, SlashCommand};
use crate::wire::handover::hand_over;
use crate::wire::headers;
use crate::wire::vestibule::{Unread, Vestibule};

/// The largest request that is read. Slack's own are shorter: of a message that was changed it tells both
/// forms, each as text and in blocks, which is four times 40,000 characters of six bytes each
/// (https://api.slack.com/changelog/2018-04-truncating-really-long-messages).
const LARGEST: usize = 1024 * 1024;

/// What is held of all requests whose signature has not been looked at.
const UNPROVEN: usize = 8 * LARGEST;

/// Events that were received and not taken yet. When it is full, Slack is asked to try again.
const WAITING: usize = 64;

/// How often we look whether our own posts come back: Slack sends requests only when something happens.
const LOOK: Duration = Duration::from_secs(10);

/// What happens between requests and the gateway.
enum Item {
    Batch(Batch),
    News(News),
}

struct Door {
    hearing: Arc<Hearing>,
    secret: Secret,
    vestibule: Vestibule,
    heard: mpsc::Sender<Item>,
    /// Told of every request that is Slack's, whatever comes of it.
    reached: Arc<Notify>,
}

/// What is heard through requests.
pub(super) fn incoming(hearing: Arc<Hearing>, secret: Secret, hours: u32) -> Incoming {
    hearing.kept.echoes.begin(hearing.clock.mark());
    let (heard, waiting) = mpsc::channel(WAITING);
    let vestibule = Vestibule::new(LARGEST, UNPROVEN);
    let reached = Arc::new(Notify::new());
    let catching = CatchUp::new(hearing.clone(), hours);
    let listening = Listening {
        hearing: hearing.clone(),
        waiting,
        reached: reached.clone(),
        catching,
        began: false,
    };
    let door = Arc::new(Door { hearing, secret, vestibule, heard, reached });
    let routes = Router::new().fallback(receive).with_state(door);
    Incoming::Served { on: Surface::Webhook, routes, arrivals: listening.arrivals() }
}

struct Listening {
    hearing: Arc<Hearing>,
    waiting: mpsc::Receiver<Item>,
    reached: Arc<Notify>,
    catching: CatchUp,
    began: bool,
}

impl Listening {
    fn arrivals(self) -> Arrivals {
        stream::unfold(Some(self), |listening| async {
            let mut listening = listening?;
            match listening.arrival().await {
                Ok(arrival) => Some((Ok(arrival), Some(listening))),
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed()
    }

    async fn arrival(&mut self) -> Result<Arrival, LinkError> {
        if !std::mem::replace(&mut self.began, true) {
            let position = &self.hearing.position;
            match position.seen() {
                Some(_) => self.catching.begin(),
                None => position.advance(Ts::at(self.hearing.now())),
            }
            let cursor = position.cursor();
            let batch = Batch { events: Vec::new(), cursor, ack: Ack::unneeded() };
            return Ok(Arrival::Found(batch));
        }
        tokio::select! {
            biased;
            item = self.waiting.recv() => match item {
                Some(Item::Batch(batch)) => Ok(Arrival::Batch(batch)),
                Some(Item::News(News::Revoked(reason))) => {
                    Err(LinkError::Unauthorized { reason })
                }
                Some(Item::News(News::Missed)) => {
                    self.catching.begin();
                    Ok(Arrival::Brought)
                }
                None => Err(LinkError::Lost { reason: "the routes are gone".into() }),
            },
            () = self.reached.notified() => Ok(Arrival::Brought),
            batch = self.catching.next() => batch.map(Arrival::Found),
            deaf = no_echo(&self.hearing) => Err(deaf),
        }
    }
}

/// Completes when a post of ours should have come back and did not.
async fn no_echo(hearing: &Hearing) -> LinkError {
    loop {
        if let Some(deaf) = hearing.kept.echoes.overdue(hearing.clock.mark()) {
            return deaf;
        }
        hearing.clock.sleep(LOOK).await;
    }
}

/// Events, commands and presses may all come to one address; the request says what it is.
async fn receive(State(door): State<Arc<Door>>, headers: HeaderMap, body: Body) -> Response {
    let text = |name: &str| headers::only(&headers, name);
    let timestamp = text("x-slack-request-timestamp");
    let signature = text("x-slack-signature");
    // What cannot be Slack's is not read.
    let Some(claim) = Claim::read(timestamp, signature, door.hearing.now()) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let body = match door.vestibule.read(body).await {
        Ok(body) => body,
        Err(Unread::TooLarge) => return StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        Err(Unread::Cut) => return StatusCode::BAD_REQUEST.into_response(),
        Err(Unread::Crowded) => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
    };
    if claim.verify(&door.secret, &body) == signature::Verdict::Forged {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    door.reached.notify_one();
    let Ok(body) = std::str::from_utf8(&body) else { return door.skip("a request") };
    let kind = text("content-type").unwrap_or_default();
    if kind.starts_with("application/x-www-form-urlencoded") {
        door.form(body).await
    } else {
        door.event(body).await
    }
}

impl Door {
    async fn event(&self, body: &str) -> Response {
        let Ok(outer) = serde_json::from_str::<Outer<'_>>(body) else {
            return self.skip("a request");
        };
        if outer.kind == "url_verification" {
            let challenge = outer.challenge.unwrap_or_default();
            return ([(header::CONTENT_TYPE, "text/plain")], challenge).into_response();
        }
        self.hearing.kept.echoes.brought(self.hearing.clock.mark());
        let brought = self.hearing.event(body).await;
        self.pass_on(brought, None).await
    }

    async fn form(&self, body: &str) -> Response {
        let field = |name: &str| field(body, name);
        if let Some(payload) = field("payload") {
            return match serde_json::from_str::<Interaction>(&payload) {
                Ok(interaction) => {
                    let brought = self.hearing.interaction(&interaction);
                    self.pass_on(brought, None).await
                }
                Err(_) => self.skip("a press"),
            };
        }
        let command = || {
            Some(SlashCommand {
                team_id: field("team_id"),
                channel_id: field("channel_id")?,
                user_id: field("user_id")?,
                user_name: field("user_name"),
                command: field("command")?,
                text: field("text").unwrap_or_default(),
                response_url: field("response_url"),
                trigger_id: field("trigger_id")?,
            })
        };
        match command() {
            // Slack looks whether we are here.
            _ if field("ssl_check").is_some() => StatusCode::OK.into_response(),
            Some(command) => {
                let brought = self.hearing.slash(&command);
                self.pass_on(brought, Some(working_on(&command))).await
            }
            None => self.skip("a command"),
        }
    }

    /// Delivered again, it would make no more sense.
    fn skip(&self, what: &str) -> Response {
        self.hearing.skip(what, &Senseless::Wrong("shape"));
        StatusCode::OK.into_response()
    }

    /// Hands events to the gateway and answers once they are on disk.
    async fn pass_on(&self, mut brought: Brought, privately: Option<String>) -> Response {
        if let Some(news) = brought.news.take()
            && self.heard.try_send(Item::News(news)).is_err()
        {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        if brought.events.is_empty() {
            return StatusCode::OK.into_response();
        }
        let Some(verdicts) = self.stored(brought).await else {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        };
        match privately {
            // Who is not let in gets no more than that.
            Some(text) if !verdicts.contains(&Verdict::Denied) => {
                axum::Json(json!({ "response_type": "ephemeral", "text": text })).into_response()
            }
            _ => StatusCode::OK.into_response(),
        }
    }

    async fn stored(&self, brought: Brought) -> Option<Vec<Verdict>> {
        let cursor = self.hearing.position.cursor();
        let (hearing, lessons) = (self.hearing.clone(), brought.lessons());
        let put = |Batch { events, cursor, ack }| {
            // With the commit, whatever becomes of the request: the answer may be quicker than we are.
            let ack = Ack::with(move |committed: Committed| {
                hearing.remember(lessons, &committed.0);
                ack.committed(committed);
            });
            self.heard.try_send(Item::Batch(Batch { events, cursor, ack })).is_ok()
        };
        hand_over(brought.events, cursor, self.hearing.clock.as_ref(), put).await
    }
}

/// A field of a form.
fn field(body: &str, name: &str) -> Option<String> {
    let pairs = body.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.into_iter().find(|(key, _)| *key == name)?;
    let value = value.replace('+', " ");
    percent_encoding::percent_decode_str(&value).decode_utf8().ok().map(|value| value.into_owned())
}
