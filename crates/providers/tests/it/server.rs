//! A server that does what its script says, on a thread of its own.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use futures::StreamExt;
use futures::stream;
use tokio::sync::{mpsc, oneshot};

/// One answer.
#[derive(Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    steps: Vec<Step>,
}

#[derive(Clone)]
enum Step {
    Send(Vec<u8>),
    Hang,
    Break,
}

impl Answer {
    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self { status, headers: Vec::new(), steps: vec![Step::Send(body.into())] }
    }

    pub(crate) fn events(data: &[&str]) -> Self {
        let headers = vec![("content-type", "text/event-stream".to_owned())];
        Self { status: 200, headers, steps: Vec::new() }.data(data)
    }

    pub(crate) fn nothing() -> Self {
        Self { status: 200, headers: Vec::new(), steps: Vec::new() }
    }

    pub(crate) fn data(self, data: &[&str]) -> Self {
        data.iter().fold(self, |answer, data| answer.bytes(format!("data: {data}\n\n").as_bytes()))
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.steps.push(Step::Send(bytes.to_vec()));
        self
    }

    /// Says nothing more and keeps the connection.
    pub(crate) fn hangs(mut self) -> Self {
        self.steps.push(Step::Hang);
        self
    }

    /// Breaks the connection.
    pub(crate) fn breaks(mut self) -> Self {
        self.steps.push(Step::Break);
        self
    }
}

/// What the server was sent.
pub(crate) struct Received {
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    received: mpsc::UnboundedReceiver<Received>,
    _stop: oneshot::Sender<()>,
}

#[derive(Clone)]
struct Script {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    received: mpsc::UnboundedSender<Received>,
}

impl Server {
    /// Starts a server that gives these answers in turn, and 500 when there are no more.
    pub(crate) fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let (sender, received) = mpsc::unbounded_channel();
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        let app = Router::new().fallback(answer).with_state(Script { answers, received: sender });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    served = axum::serve(listener, app) => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Self { address, received, _stop: stop }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The next request; waits for it.
    pub(crate) async fn request(&mut self) -> Received {
        self.received.recv().await.unwrap()
    }
}

async fn answer(State(script): State<Script>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1024 * 1024).await.unwrap();
    let _ = script.received.send(Received {
        uri: parts.uri,
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    });
    let next = script.answers.lock().unwrap().pop_front();
    let answer = next.unwrap_or_else(|| Answer::status(500, "the script is over"));
    // A server that hangs before it says anything does not even send a status.
    if matches!(answer.steps.first(), Some(Step::Hang)) {
        std::future::pending::<()>().await;
    }
    let steps = stream::iter(answer.steps).then(|step| async {
        match step {
            Step::Send(bytes) => Ok(Bytes::from(bytes)),
            Step::Hang => std::future::pending().await,
            Step::Break => {
                // What was said before has to be on its way first.
                tokio::task::yield_now().await;
                Err(std::io::Error::other("as the script says"))
            }
        }
    });
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    response.body(Body::from_stream(steps)).unwrap()
}
