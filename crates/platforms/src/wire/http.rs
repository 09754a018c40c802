//! Requests to a vendor. Every answer is bounded, every wait has an end, and a failure says whether the
//! request can have arrived.

use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::StreamExt;
use reqwest::header::HeaderMap;
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde::de::DeserializeOwned;
use talaria_fetch::{is_this_machine, route};
use talaria_model::Proxy;
use talaria_platform::{ConnectError, FetchError, LinkError, SendError};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// The largest answer that is read.
const LARGEST: usize = 8 * 1024 * 1024;

/// What a vendor answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The body as what it is expected to be.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    /// How long the vendor asks us to wait, by its `Retry-After` in seconds.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let seconds: f64 = self.headers.get("retry-after")?.to_str().ok()?.trim().parse().ok()?;
        Duration::try_from_secs_f64(seconds.max(0.0)).ok()
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The request never left.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The request may have arrived.
    #[error("no answer: {0}")]
    Unanswered(String),
    /// The same, and nothing at all came in the time that the answer had.
    #[error("no answer in time: {0}")]
    Silence(String),
}

impl CallError {
    /// As it stands behind words that say that there was no answer.
    fn reason(self) -> String {
        let (Self::Unreachable(reason) | Self::Unanswered(reason) | Self::Silence(reason)) = self;
        reason
    }
}

impl From<CallError> for SendError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Unreachable(reason) => Self::Unreachable { reason },
            CallError::Unanswered(reason) | CallError::Silence(reason) => {
                Self::Unconfirmed { reason }
            }
        }
    }
}

impl From<CallError> for ConnectError {
    fn from(error: CallError) -> Self {
        Self::Unreachable { reason: error.reason() }
    }
}

impl From<CallError> for LinkError {
    fn from(error: CallError) -> Self {
        Self::Lost { reason: error.reason() }
    }
}

impl From<CallError> for FetchError {
    fn from(error: CallError) -> Self {
        Self::Unreachable { reason: error.reason() }
    }
}

/// The connections of an account to its vendor. Cheap to clone; clones share their connections.
///
/// Vendors on this machine are reached directly, all others by the way that the operator chose. Redirects
/// are not followed: a token belongs to the address it was configured for.
#[derive(Clone, Default)]
pub(crate) struct Http(Arc<Clients>);

#[derive(Default)]
struct Clients {
    proxy: Proxy,
    away: OnceLock<Result<Client, String>>,
    here: OnceLock<Result<Client, String>>,
}

impl Http {
    /// Connections that are made by this way.
    pub(crate) fn by(proxy: Proxy) -> Self {
        Self(Arc::new(Clients { proxy, ..Clients::default() }))
    }

    /// The client to use for an address.
    pub(crate) fn client(&self, url: &Url) -> Result<Client, CallError> {
        let Clients { proxy, away, here } = self.0.as_ref();
        let made = if is_this_machine(url) { here } else { away };
        made.get_or_init(|| make(proxy, url)).clone().map_err(CallError::Unreachable)
    }

    /// The way that is taken.
    pub(crate) fn proxy(&self) -> &Proxy {
        &self.0.proxy
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

fn make(proxy: &Proxy, url: &Url) -> Result<Client, String> {
    route(Client::builder(), proxy, url)
        .map_err(told)?
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("Talaria/", env!("CARGO_PKG_VERSION")))
        .tcp_keepalive(Duration::from_secs(30))
        // One connection carries many requests at once: a dead one has to be noticed before they all
        // wait for it.
        .http2_keep_alive_interval(Duration::from_secs(20))
        .http2_keep_alive_timeout(Duration::from_secs(10))
        .http2_keep_alive_while_idle(true)
        .build()
        .map_err(told)
}

/// Sends a request and reads the whole answer.
pub(crate) async fn call(request: RequestBuilder, limit: Duration) -> Result<Reply, CallError> {
    let response = request.timeout(limit).send().await.map_err(failed)?;
    let (status, headers) = (response.status(), response.headers().clone());
    let mut body = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| CallError::Unanswered(told(error)))?;
        if body.len() + piece.len() > LARGEST {
            return Err(CallError::Unanswered(format!(
                "the answer is larger than {LARGEST} bytes"
            )));
        }
        body.extend_from_slice(&piece);
    }
    Ok(Reply { status, headers, body })
}

fn failed(error: reqwest::Error) -> CallError {
    // A kept connection that turned out to be closed is replaced by the client itself.
    let never_left = error.is_connect() || error.is_builder();
    let too_late = error.is_timeout();
    let reason = told(error);
    match (never_left, too_late) {
        (true, _) => CallError::Unreachable(reason),
        (false, true) => CallError::Silence(reason),
        (false, false) => CallError::Unanswered(reason),
    }
}

/// What went wrong, down to its cause: the words of the outermost error alone say nothing.
pub(super) fn told(error: reqwest::Error) -> String {
    // Addresses can contain tokens.
    let error = error.without_url();
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let words = deeper.to_string();
        if !told.contains(&words) {
            told = format!("{told}: {words}");
        }
        cause = deeper.source();
    }
    told
}
