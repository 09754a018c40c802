//! Listening by being called: Telegram posts each update to our address and takes any 2xx for a
//! receipt. What it does not get one for it posts again, for a day.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt, stream};
use serde_json::value::RawValue;
use serde_json::{Map, json};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use talaria_clock::Clock;
use talaria_model::Secret;
use talaria_platform::{Arrival, Arrivals, Batch, LinkError};
use tokio::sync::mpsc;

use super::api::WebhookState;
use super::client::Client;
use super::decode;
use super::ears::{Ears, HEARD, Heard};
use super::encode::arguments;
use super::poll::Chore;
use super::presses::Answer;
use super::refusal::{Failure, ONE_OF_TWO};
use crate::wire::handover::hand_over;
use crate::wire::headers::only;

/// Telegram's own updates are at most half as long.
const LONGEST: usize = 1024 * 1024;

/// How many updates wait for their commit. Telegram waits with the others.
const WAITING: usize = 64;

/// How often Telegram is asked whether it can still reach us.
const PROBE: Duration = Duration::from_secs(25);

const ASK: Duration = Duration::from_secs(15);

const SECRET: &str = "x-telegram-bot-api-secret-token";

/// Whether a text can be the secret: up to 256 of `A-Za-z0-9_-`, and too many to be guessed.
pub(super) fn is_secret(text: &str) -> bool {
    (16..=256).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Tells Telegram where to post.
pub(super) async fn set(client: &Client, url: &str, secret: &Secret) -> Result<(), Failure> {
    let body = arguments(json!({
        "url": url,
        "secret_token": secret.expose(),
        "allowed_updates": HEARD,
    }));
    client.ask::<bool>("setWebhook", &body, ASK).await.map(|_| ())
}

/// What Telegram posts to, and what comes of it.
pub(super) fn listen(
    client: Arc<Client>,
    ears: Ears,
    url: String,
    secret: Secret,
    chores: Vec<Chore>,
) -> (Router, Arrivals) {
    let (heard, waiting) = mpsc::channel(WAITING);
    let clock = ears.clock.clone();
    let arrived = Arc::new(AtomicU64::new(0));
    let gate = Gate { client: client.clone(), ears, secret, heard, arrived: arrived.clone() };
    let gate = Arc::new(gate);
    let routes = Router::new().route("/webhook", post(update)).with_state(gate);
    let probe = Probe { client, clock, url, arrived, seen: 0, failed: None };
    let chores = chores.into_iter().collect();
    let calls = Calls { waiting, probing: probe.later(), chores };
    (routes, stream::unfold(calls, Calls::next).boxed())
}

struct Gate {
    client: Arc<Client>,
    ears: Ears,
    secret: Secret,
    heard: mpsc::Sender<Batch>,
    /// How many updates Telegram has brought.
    arrived: Arc<AtomicU64>,
}

/// Takes an update in. The body of the answer stays empty: Telegram would carry out what it says.
async fn update(State(gate): State<Arc<Gate>>, headers: HeaderMap, body: Body) -> StatusCode {
    // Nobody else's bytes are read.
    if !is_telegram(&headers, &gate.secret) {
        return StatusCode::FORBIDDEN;
    }
    let Ok(body) = axum::body::to_bytes(body, LONGEST).await else {
        return StatusCode::PAYLOAD_TOO_LARGE;
    };
    let Ok(update) = serde_json::from_slice::<Box<RawValue>>(&body) else {
        return StatusCode::BAD_REQUEST;
    };
    let Some(number) = decode::number(&update) else { return StatusCode::BAD_REQUEST };
    gate.arrived.fetch_add(1, Ordering::Relaxed);
    let event = match gate.ears.hear(number, &update) {
        Heard::Event(event) => event,
        Heard::Nothing { press } => {
            if let Some(press) = press {
                Answer::quiet(press).give(&gate.client).await;
            }
            return StatusCode::OK;
        }
    };
    let put = |batch| gate.heard.try_send(batch).is_ok();
    let events = vec![event.inbound];
    match hand_over(events, None, gate.ears.clock.as_ref(), put).await {
        Some(verdicts) => {
            if let Some(press) = event.press {
                Answer::to(press, verdicts.first()).give(&gate.client).await;
            }
            StatusCode::OK
        }
        None => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Whether a request has the secret.
fn is_telegram(headers: &HeaderMap, secret: &Secret) -> bool {
    // Digests are compared, and all of them, so that how long it takes tells neither the secret nor its length.
    let digest = |text: &str| Sha256::digest(text.as_bytes());
    only(headers, SECRET).is_some_and(|given| digest(given).ct_eq(&digest(secret.expose())).into())
}

/// Updates that wait for their commit, and the question whether we can be reached.
struct Calls {
    waiting: mpsc::Receiver<Batch>,
    probing: Probing,
    chores: FuturesUnordered<Chore>,
}

type Probing = BoxFuture<'static, (Result<Reached, LinkError>, Probe)>;

/// Whether Telegram reaches us, by its own account.
enum Reached {
    Yes,
    Unknown,
}

impl Calls {
    async fn next(mut self) -> Option<(Result<Arrival, LinkError>, Self)> {
        loop {
            tokio::select! {
                biased;
                batch = self.waiting.recv() => {
                    return Some((Ok(Arrival::Batch(batch?)), self));
                }
                Some(()) = self.chores.next() => {}
                (reached, probe) = &mut self.probing => {
                    self.probing = probe.later();
                    match reached {
                        Ok(Reached::Yes) => return Some((Ok(Arrival::Alive), self)),
                        Ok(Reached::Unknown) => {}
                        Err(error) => return Some((Err(error), self)),
                    }
                }
            }
        }
    }
}

struct Probe {
    client: Arc<Client>,
    clock: Arc<dyn Clock>,
    url: String,
    arrived: Arc<AtomicU64>,
    /// How many had arrived when it was last asked.
    seen: u64,
    /// When Telegram could not reach us last, as it said then. Its clock is not ours.
    failed: Option<i64>,
}

impl Probe {
    fn later(mut self) -> Probing {
        async move {
            self.clock.sleep(PROBE).await;
            let state = self.client.ask::<WebhookState>("getWebhookInfo", &Map::new(), ASK).await;
            let reached = match state {
                Ok(state) => self.read(&state),
                Err(failure) => match failure.of_link() {
                    error @ LinkError::Unauthorized { .. } => Err(error),
                    error => {
                        tracing::info!(%error, "Telegram cannot be asked whether it reaches us");
                        Ok(Reached::Unknown)
                    }
                },
            };
            (reached, self)
        }
        .boxed()
    }

    fn read(&mut self, state: &WebhookState) -> Result<Reached, LinkError> {
        if state.url != self.url {
            return Err(LinkError::Conflict {
                problem: "this bot's updates are sent to another address: something else has \
                          changed its webhook"
                    .into(),
                hint: ONE_OF_TWO.into(),
            });
        }
        let arrived = self.arrived.load(Ordering::Relaxed);
        let before = std::mem::replace(&mut self.seen, arrived);
        let failed = std::mem::replace(&mut self.failed, state.last_error_date);
        // A backlog that gets shorter is slow, and one that nothing comes of is out of reach.
        if state.pending_update_count == 0 || arrived > before {
            return Ok(Reached::Yes);
        }
        let fresh = state.last_error_message.as_deref().filter(|_| state.last_error_date != failed);
        tracing::warn!(
            reason = fresh.unwrap_or("no reason given"),
            waiting = state.pending_update_count,
            "Telegram does not reach us"
        );
        Ok(Reached::Unknown)
    }
}
