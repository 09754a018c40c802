//! A model that answers at once: chat completions over HTTP/1.1, streamed.
//!
//! It shares the machine with what is measured, so it is written on bare sockets: one read, one
//! small look into the body, one write.

mod asked;
mod http;
mod reply;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

pub use asked::Asked;
pub use reply::{Reply, ScriptedCall};

/// How fast the model answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// How long it thinks before it says anything.
    pub before: Duration,
    /// Words in the middle of an echo.
    pub filler: usize,
    /// How long it pauses between two pieces. Without a pause everything is written at once.
    pub between: Duration,
}

/// Where the model waits until it is let go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hold {
    /// Nowhere.
    #[default]
    Never,
    /// Before it says anything.
    BeforeAnswering,
    /// After it has said this many pieces.
    After(usize),
}

/// A model server on this machine. Dropping it closes everything.
pub struct FakeLlm {
    mind: Arc<Mind>,
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

type Script = Box<dyn FnMut(&Asked) -> Reply + Send>;

#[derive(Default)]
struct Mind {
    script: Mutex<Option<Script>>,
    pace: Mutex<Pace>,
    hold: watch::Sender<Hold>,
    requests: watch::Sender<u64>,
    minted: AtomicU64,
    last: Mutex<Vec<u8>>,
    spoke: Mutex<Option<Instant>>,
}

impl FakeLlm {
    /// Opens a model server on a free port. It echoes what was said.
    pub async fn open() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let mind = Arc::new(Mind::default());
        let accepting = tokio::spawn(accept(listener, mind.clone()));
        Ok(Self { mind, address, accepting })
    }

    /// What to configure as `base_url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// How many completions were asked for.
    pub fn requests(&self) -> u64 {
        *self.mind.requests.borrow()
    }

    /// Completes once this many completions were asked for.
    pub async fn until_requests(&self, count: u64) {
        let mut requests = self.mind.requests.subscribe();
        // The sender lives as long as `self`.
        let _ = requests.wait_for(|requests| *requests >= count).await;
    }

    /// The body of the newest request.
    pub fn last_request(&self) -> Vec<u8> {
        lock(&self.mind.last).clone()
    }

    /// When it last said the first word of an answer that it gives word by word.
    pub fn spoke(&self) -> Option<Instant> {
        *lock(&self.mind.spoke)
    }

    /// How fast it answers from here on.
    pub fn pace(&self, pace: Pace) {
        *lock(&self.mind.pace) = pace;
    }

    /// Decides from here on what is answered. Without a script it echoes.
    pub fn script(&self, script: impl FnMut(&Asked) -> Reply + Send + 'static) {
        *lock(&self.mind.script) = Some(Box::new(script));
    }

    /// From here on it echoes.
    pub fn behave(&self) {
        *lock(&self.mind.script) = None;
    }

    /// Makes it wait in every answer, until another hold is set.
    pub fn hold(&self, hold: Hold) {
        self.mind.hold.send_replace(hold);
    }
}

impl Drop for FakeLlm {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, mind: Arc<Mind>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let mind = mind.clone();
        // A client that goes away in the middle of an answer is an ordinary event here.
        connections.spawn(async move { drop(serve(stream, &mind).await) });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, mind: &Mind) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut connection = http::Connection::new(stream);
    while let Some(request) = connection.request().await? {
        match (request.path.as_str(), request.body.is_empty()) {
            (path, _) if path.ends_with("/models") => {
                connection.answer(200, reply::MODELS.as_bytes()).await?;
            }
            (path, false) if path.ends_with("/chat/completions") => {
                complete(&mut connection, mind, request.body).await?;
            }
            _ => connection.answer(404, br#"{"error":{"message":"no such route"}}"#).await?,
        }
    }
    Ok(())
}

async fn complete(connection: &mut http::Connection, mind: &Mind, body: Vec<u8>) -> io::Result<()> {
    let pace = *lock(&mind.pace);
    let Ok(asked) = Asked::read(&body) else {
        return connection.answer(400, br#"{"error":{"message":"not a request"}}"#).await;
    };
    let streams = asked.streams;
    let number = mind.minted.fetch_add(1, Ordering::Relaxed);
    let reply = match lock(&mind.script).as_mut() {
        Some(script) => script(&asked),
        None => Reply::Says(crate::echo::echo(&asked.said(), pace.filler)),
    };
    *lock(&mind.last) = body;
    mind.requests.send_modify(|requests| *requests += 1);
    if !pace.before.is_zero() {
        tokio::time::sleep(pace.before).await;
    }
    let mut hold = mind.hold.subscribe();
    // An error means that the server is going away, and this connection with it.
    let _ = hold.wait_for(|hold| *hold != Hold::BeforeAnswering).await;
    let between = reply.between().unwrap_or(pace.between);
    let pieces = match reply {
        Reply::Refuses { status, body } => {
            return connection.answer(status, body.as_bytes()).await;
        }
        reply if !streams => {
            return connection.answer(200, reply.whole(number).as_bytes()).await;
        }
        reply => reply.pieces(number),
    };
    let piecemeal = !between.is_zero() || *hold.borrow() != Hold::Never;
    if !piecemeal {
        return connection.stream_at_once(&pieces).await;
    }
    connection.begin_stream().await?;
    for (sent, piece) in pieces.events.iter().enumerate() {
        let _ = hold.wait_for(|hold| !matches!(hold, Hold::After(most) if sent >= *most)).await;
        if sent > 0 && !between.is_zero() {
            tokio::time::sleep(between).await;
        }
        // The first piece only says who speaks.
        if sent == 1 {
            *lock(&mind.spoke) = Some(Instant::now());
        }
        connection.stream_piece(piece).await?;
    }
    connection.end_stream(&pieces).await
}
