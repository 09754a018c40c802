//! Serves connections, each for only so long as it is good for something: a request has to come in
//! time, its body and its answer have to move, and when every place is taken, whoever holds one for
//! nothing gives it up.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::Request;
use axum::serve::Listener;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::rt::Timer;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use talaria_clock::{Clock, Sleep};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::moving::Moving;
use crate::places::{Doing, Place, Places};

/// What a connection may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections at the same time.
    pub(crate) connections: usize,
    /// How long a request may take to say what it wants, counted from when we listen for it.
    pub(crate) head: Duration,
    /// How long a body or an answer may stand still.
    pub(crate) still: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            head: Duration::from_secs(30),
            // Longer than a page's stream is silent.
            still: Duration::from_secs(60),
        }
    }
}

/// The longest head of a request.
const LONGEST_HEAD: usize = 64 * 1024;

/// Serves until it is dropped, which ends every connection.
pub(crate) async fn serve<L>(
    mut listener: L,
    routes: Router,
    clock: Arc<dyn Clock>,
    limits: Limits,
) -> Infallible
where
    L: Listener,
{
    let places = Places::new(limits.connections);
    let mut connections = JoinSet::new();
    loop {
        // Somebody has to be at the door before anybody is asked to leave.
        let (stream, _) = listener.accept().await;
        let place = places.take().await;
        while connections.try_join_next().is_some() {}
        connections.spawn(connection(stream, place, routes.clone(), clock.clone(), limits));
    }
}

async fn connection<S>(
    stream: S,
    place: Place,
    routes: Router,
    clock: Arc<dyn Clock>,
    limits: Limits,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let place = Arc::new(place);
    let answer = service_fn(|request: Request<Incoming>| {
        let (routes, place, clock) = (routes.clone(), place.clone(), clock.clone());
        async move {
            let asking = Asking::begin(place.clone(), clock, limits.still);
            let request = request.map(|body| Body::new(asking.through(body)));
            let answered = Answered { place };
            let response = routes.oneshot(request).await.unwrap_or_else(|never| match never {});
            Ok::<_, Infallible>(response.map(|body| AnswerBody { body, _answered: answered }))
        }
    });
    let stream = TokioIo::new(Moving::new(stream, clock.clone(), limits.still));
    let served = http1::Builder::new()
        .timer(ClockTimer(clock.clone()))
        .header_read_timeout(limits.head)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(stream, answer);
    tokio::select! {
        served = served => {
            if let Err(error) = served {
                tracing::debug!(%error, "a connection ended");
            }
        }
        () = place.taken() => tracing::debug!("a connection gave its place to another"),
    }
}

/// A request whose body is still to come.
struct Asking {
    place: Arc<Place>,
    clock: Arc<dyn Clock>,
    still: Duration,
}

impl Asking {
    fn begin(place: Arc<Place>, clock: Arc<dyn Clock>, still: Duration) -> Self {
        place.does(Doing::Asking);
        Self { place, clock, still }
    }

    fn through(self, body: Incoming) -> RequestBody {
        let body = RequestBody { body, asking: self, standstill: None };
        body.notice_end();
        body
    }
}

/// The body of a request, which has to go on arriving.
struct RequestBody {
    body: Incoming,
    asking: Asking,
    standstill: Option<Mutex<Sleep>>,
}

/// Why a body was not read to its end.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("the body of the request stopped arriving")]
    Standstill,
    #[error(transparent)]
    Cut(#[from] hyper::Error),
}

impl RequestBody {
    fn notice_end(&self) {
        if self.body.is_end_stream() {
            self.asking.place.does(Doing::Answered);
        }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => {
                self.standstill = None;
                match frame {
                    None => self.asking.place.does(Doing::Answered),
                    Some(_) => self.notice_end(),
                }
                Poll::Ready(frame.map(|frame| frame.map_err(BodyError::from)))
            }
            Poll::Pending => {
                let Self { asking, standstill, .. } = &mut *self;
                let wait =
                    standstill.get_or_insert_with(|| Mutex::new(asking.clock.sleep(asking.still)));
                let wait = wait.get_mut().unwrap_or_else(|poison| poison.into_inner());
                wait.as_mut().poll(context).map(|()| Some(Err(BodyError::Standstill)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer on its way. When it is gone, the connection has nothing to do.
struct Answered {
    place: Arc<Place>,
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.place.does(Doing::Nothing);
    }
}

struct AnswerBody {
    body: Body,
    _answered: Answered,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Lets the HTTP library wait on our clock.
#[derive(Clone)]
struct ClockTimer(Arc<dyn Clock>);

impl Timer for ClockTimer {
    fn sleep(&self, wait: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Shareable(Mutex::new(self.0.sleep(wait))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep(deadline.saturating_duration_since(self.now()))
    }
}

/// The library wants to share what it only ever polls from one place.
struct Shareable(Mutex<Sleep>);

impl Future for Shareable {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let wait = self.0.get_mut().unwrap_or_else(|poison| poison.into_inner());
        wait.as_mut().poll(context)
    }
}

impl hyper::rt::Sleep for Shareable {}

#[cfg(test)]
mod tests;
