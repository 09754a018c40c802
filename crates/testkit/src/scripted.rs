//! An HTTP server that plays a vendor by a script, writes down what it is asked, and misbehaves when it
//! is told to. What the vendor's wire format is, only the script knows.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request as HttpRequest, Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::vendors::{Act, Calls};

/// The largest request that is read.
const LARGEST: usize = 64 * 1024 * 1024;

/// How many requests are remembered whole.
const REMEMBERED: usize = 10_000;

/// A vendor on a port of its own. Dropping it closes everything.
pub struct Scripted {
    url: String,
    state: Arc<State>,
    listening: JoinHandle<()>,
}

struct State {
    seen: Mutex<Vec<Request>>,
    faults: Mutex<VecDeque<(String, Fault)>>,
    answer: Box<dyn Fn(&Request) -> Reply + Send + Sync>,
    meaning: Box<dyn Fn(&Request) -> Act + Send + Sync>,
    conduct: Mutex<Option<Conduct>>,
    calls: Calls,
}

/// Decides how a vendor meets what it is asked for. None: as it should.
pub type Conduct = Box<dyn FnMut(&Act) -> Option<Fault> + Send>;

/// What the vendor was asked.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET`, `POST` and so on.
    pub method: String,
    /// Without the query.
    pub path: String,
    /// What follows the question mark; empty without one.
    pub query: String,
    /// As they came.
    pub headers: HeaderMap,
    /// All of it.
    pub body: Vec<u8>,
}

/// What the vendor answers.
#[derive(Debug, Clone)]
pub enum Reply {
    /// This.
    Answer {
        /// The status.
        status: u16,
        /// Names and values.
        headers: Vec<(String, String)>,
        /// All of it.
        body: Vec<u8>,
    },
    /// Nothing: the connection is closed.
    Cut,
    /// Nothing, ever.
    Silence,
}

/// How the vendor misbehaves, once.
#[derive(Debug, Clone)]
pub enum Fault {
    /// It answers this and does nothing.
    Instead(Reply),
    /// It does what it is asked and answers this all the same.
    Afterwards(Reply),
    /// It does what it is asked, and takes its time before.
    Slowly(Duration),
}

impl Request {
    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as the fields of a form.
    pub fn form(&self) -> BTreeMap<String, String> {
        fields(&String::from_utf8_lossy(&self.body))
    }

    /// The query as fields.
    pub fn asked(&self) -> BTreeMap<String, String> {
        fields(&self.query)
    }
}

fn fields(encoded: &str) -> BTreeMap<String, String> {
    let pairs = encoded.split('&').filter(|pair| !pair.is_empty());
    let split = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    split.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = (*first == b'%')
            .then(|| std::str::from_utf8(after.get(..2)?).ok())
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (first, hex) {
            (_, Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
                continue;
            }
            (b'+', None) => bytes.push(b' '),
            (byte, None) => bytes.push(*byte),
        }
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Reply {
    /// 200 with JSON.
    pub fn json(body: &Value) -> Self {
        Self::status(200, body.to_string()).with("content-type", "application/json")
    }

    /// Any status with any body.
    pub fn status(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::Answer { status, headers: Vec::new(), body: body.into() }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

impl Scripted {
    /// Listens on this machine and answers as `answer` says. Requests are answered one by one in the
    /// order of their arrival, whatever connection they come on.
    pub async fn listen(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen_for(answer, |_| Act::default()).await
    }

    /// The same, for those who want to know afterwards what was asked for: `meaning` says it.
    pub async fn listen_for(
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
        meaning: impl Fn(&Request) -> Act + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("a bound port"));
        let state = Arc::new(State {
            seen: Mutex::default(),
            faults: Mutex::default(),
            answer: Box::new(answer),
            meaning: Box::new(meaning),
            conduct: Mutex::default(),
            calls: Calls::default(),
        });
        let listening = tokio::spawn(serve(listener, state.clone()));
        Self { url, state, listening }
    }

    /// Where it listens, such as `http://127.0.0.1:1234`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The next request whose method and path, as in `GET /a/b`, contain `part` meets this. Faults of the same
    /// part queue up.
    pub fn fault(&self, part: &str, fault: Fault) {
        lock(&self.state.faults).push_back((part.to_owned(), fault));
    }

    /// Decides from here on how it meets what it is asked for.
    pub fn conduct(&self, conduct: impl FnMut(&Act) -> Option<Fault> + Send + 'static) {
        *lock(&self.state.conduct) = Some(Box::new(conduct));
    }

    /// What it was asked for, and when.
    pub fn calls(&self) -> Calls {
        self.state.calls.clone()
    }

    /// Everything that was asked lately.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.state.seen).clone()
    }

    /// What was asked lately at paths that contain `part`.
    pub fn requests_to(&self, part: &str) -> Vec<Request> {
        lock(&self.state.seen).iter().filter(|seen| seen.path.contains(part)).cloned().collect()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let state = state.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| react(state.clone(), request));
            // A connection that the other side or a fault has ended is no news.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// An error ends the connection without an answer.
async fn react(
    state: Arc<State>,
    request: HttpRequest<hyper::body::Incoming>,
) -> Result<Response<Body>, std::io::Error> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(Body::new(body), LARGEST).await.map_err(std::io::Error::other)?;
    let request = Request {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers,
        body: body.to_vec(),
    };
    let act = (state.meaning)(&request);
    let fault = state.fault(&request, &act);
    let call = state.calls.begin(act);
    if let Some(Fault::Slowly(wait)) = fault {
        tokio::time::sleep(wait).await;
    }
    let reply = state.reply(request, fault);
    match reply {
        Reply::Answer { status, headers, body } => {
            // The one says it in whole seconds, the other exactly.
            let named = ["x-ratelimit-reset-after", "retry-after"];
            let wait = named.iter().find_map(|wanted| {
                let (_, wait) = headers.iter().find(|(name, _)| name == wanted)?;
                wait.parse().ok()
            });
            call.answered(status, wait.map(Duration::from_secs_f64).filter(|_| status == 429));
            let status = StatusCode::from_u16(status).map_err(std::io::Error::other)?;
            let response = headers
                .into_iter()
                .fold(Response::builder().status(status), |r, (name, value)| r.header(name, value));
            response.body(Body::from(body)).map_err(std::io::Error::other)
        }
        Reply::Cut => Err(std::io::Error::other("cut")),
        Reply::Silence => {
            let never: Infallible = std::future::pending().await;
            match never {}
        }
    }
}

impl State {
    fn fault(&self, request: &Request, act: &Act) -> Option<Fault> {
        let mut faults = lock(&self.faults);
        let asked = format!("{} {}", request.method, request.path);
        let meets = faults.iter().position(|(part, _)| asked.contains(part.as_str()));
        match meets.and_then(|at| faults.remove(at)) {
            Some((_, fault)) => Some(fault),
            None => lock(&self.conduct).as_mut()?(act),
        }
    }

    fn reply(&self, request: Request, fault: Option<Fault>) -> Reply {
        {
            let mut seen = lock(&self.seen);
            if seen.len() >= REMEMBERED {
                seen.drain(..REMEMBERED / 2);
            }
            seen.push(request.clone());
        }
        match fault {
            Some(Fault::Instead(reply)) => reply,
            Some(Fault::Afterwards(reply)) => {
                (self.answer)(&request);
                reply
            }
            Some(Fault::Slowly(_)) | None => (self.answer)(&request),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
