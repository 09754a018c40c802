//! Serves connections, each for only so long as it is good for something: a request has to come in
//! time, and the whole of it if nobody knows the sender; bodies and answers have to move, and those of
//! strangers at a pace. When every place is taken, whoever holds one for nothing gives it up, and a
//! stranger also while taking an answer. Nobody gets more than a share of the places, and whoever is
//! refused all the time waits for it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use futures::FutureExt;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::rt::Timer;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use talaria_clock::{Clock, Sleep};
use talaria_platform::{Hurry, Peer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::moving::{Leisure, Moving};
use crate::places::{Doing, Place, Places};
use crate::refusals::Refusals;

/// What a connection may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections at the same time.
    pub(crate) connections: usize,
    /// Of them, those of one peer.
    pub(crate) each: usize,
    /// How long a connection may take to say anything, and then how long a request may take to say what it wants.
    pub(crate) head: Duration,
    /// How long the body of a request may take in all, unless its sender is known.
    pub(crate) body: Duration,
    /// How long a body or an answer may stand still, and how far behind its pace a stranger's answer may fall.
    pub(crate) still: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            // All who come by way of one proxy are one peer.
            each: 256,
            head: Duration::from_secs(10),
            body: Duration::from_secs(10),
            // Longer than a page's stream is silent.
            still: Duration::from_secs(60),
        }
    }
}

/// The longest head of a request.
const LONGEST_HEAD: usize = 64 * 1024;

/// After so many turns of the runtime a connection that has sent something is known to have done so. In one of
/// them another thread may be the one that looks.
const LOOKS: usize = 2;

/// Where a connection comes from.
pub(crate) trait Origin {
    /// Whose limits it counts for. Processes of this user have none.
    fn peer(&self) -> Option<Peer>;
}

impl Origin for SocketAddr {
    fn peer(&self) -> Option<Peer> {
        Some(Peer::of(self.ip()))
    }
}

impl Origin for PathBuf {
    fn peer(&self) -> Option<Peer> {
        None
    }
}

/// What all connections of a listener share.
struct House {
    routes: Router,
    clock: Arc<dyn Clock>,
    limits: Limits,
    refusals: Refusals,
}

/// Serves until it is dropped, which ends every connection.
pub(crate) async fn serve<L>(
    mut listener: L,
    routes: Router,
    clock: Arc<dyn Clock>,
    limits: Limits,
) -> Infallible
where
    L: Listener<Addr: Origin>,
{
    let places = Places::new(limits.connections, limits.each);
    let refusals = Refusals::new(clock.clone());
    let house = Arc::new(House { routes, clock, limits, refusals });
    let mut connections = JoinSet::new();
    loop {
        // Somebody has to be at the door before anybody is asked to leave.
        let (stream, origin) = listener.accept().await;
        let peer = origin.peer();
        let Some(place) = places.take(peer).await else { continue };
        while let Some(ended) = connections.try_join_next() {
            if ended.is_err_and(|error| error.is_panic()) {
                tracing::error!("a connection panicked; the others go on");
            }
        }
        connections.spawn(connection(stream, place, peer, house.clone()));
    }
}

async fn connection<S>(mut stream: S, place: Place, peer: Option<Peer>, house: Arc<House>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let place = Arc::new(place);
    let House { clock, limits, .. } = &*house;
    // What answers requests takes some room, which nobody gets who says nothing.
    let serving = async {
        let first = tokio::select! {
            biased;
            first = stream.read_u8() => first,
            () = clock.sleep(limits.head) => return tracing::debug!("a connection said nothing"),
        };
        let Ok(first) = first else { return };
        let leisure = Leisure::default();
        let stream = Moving::new(first, stream, clock.clone(), limits.still, leisure.clone());
        let served = Box::pin(requests(stream, leisure, place.clone(), peer, house.clone())).await;
        if let Err(error) = served {
            tracing::debug!(%error, "a connection ended");
        }
    };
    // A new connection has nothing to read before the runtime has looked for it, which it does for those who
    // wait like this. One that was closed before that would have been closed in the middle of its request.
    let looked = async {
        for _ in 0..LOOKS {
            tokio::task::yield_now().await;
        }
        place.is_known();
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        biased;
        () = serving => {}
        () = place.taken() => tracing::debug!("a connection gave its place to another"),
        never = looked => match never {},
    }
}

/// Answers the requests of a connection, one after the other.
async fn requests<S>(
    stream: Moving<S>,
    leisure: Leisure,
    place: Arc<Place>,
    peer: Option<Peer>,
    house: Arc<House>,
) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let answering = service_fn(|request: Request<Incoming>| {
        let (house, place, leisure) = (house.clone(), place.clone(), leisure.clone());
        async move {
            let hurry = Hurry::default();
            let asking = Asking::begin(place.clone(), house.clone(), hurry.clone());
            let mut request = request.map(|body| Body::new(asking.through(body)));
            match peer {
                Some(peer) => {
                    request.extensions_mut().insert(peer);
                    request.extensions_mut().insert(hurry.clone());
                }
                None => hurry.waive(),
            }
            let answered = Answered { place };
            let response = answer(house.routes.clone(), request).await;
            leisure.follow(&hurry);
            if !hurry.is_waived() {
                // However slowly a stranger takes it, that keeps nobody else out.
                answered.place.does(Doing::Nothing);
            }
            if response.status().is_client_error()
                && let Some(wait) = peer.and_then(|peer| house.refusals.count(peer))
            {
                // Somebody else may have the place meanwhile.
                answered.place.does(Doing::Nothing);
                house.clock.sleep(wait).await;
            }
            Ok::<_, Infallible>(response.map(|body| AnswerBody { body, _answered: answered }))
        }
    });
    http1::Builder::new()
        .timer(ClockTimer(house.clock.clone()))
        .header_read_timeout(house.limits.head)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), answering)
        .await
}

/// What a request is answered with. One that panics costs only its own answer.
async fn answer(routes: Router, request: Request<Body>) -> Response {
    let path = request.uri().path().to_owned();
    match AssertUnwindSafe(routes.oneshot(request)).catch_unwind().await {
        Ok(answer) => answer.unwrap_or_else(|never| match never {}),
        Err(_) => {
            tracing::error!(path, "answering a request panicked; the others go on");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// A request whose body is still to come.
struct Asking {
    place: Arc<Place>,
    house: Arc<House>,
    hurry: Hurry,
}

impl Asking {
    fn begin(place: Arc<Place>, house: Arc<House>, hurry: Hurry) -> Self {
        place.does(Doing::Asking);
        Self { place, house, hurry }
    }

    fn through(self, body: Incoming) -> RequestBody {
        let body = RequestBody { body, asking: self, standstill: None, deadline: None };
        body.notice_end();
        body
    }
}

/// The body of a request, which has to go on arriving, and to be there in time if nobody knows whose it is.
struct RequestBody {
    body: Incoming,
    asking: Asking,
    standstill: Option<Wait>,
    deadline: Option<Wait>,
}

/// Why a body was not read to its end.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("the body of the request stopped arriving")]
    Standstill,
    #[error("the body of the request takes too long")]
    Late,
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
                let Self { asking: Asking { house, hurry, .. }, standstill, deadline, .. } =
                    &mut *self;
                let House { clock, limits, .. } = &**house;
                let wait = |wait| Wait::new(clock.sleep(wait));
                let still = standstill.get_or_insert_with(|| wait(limits.still));
                if Pin::new(still).poll(context).is_ready() {
                    return Poll::Ready(Some(Err(BodyError::Standstill)));
                }
                let late = deadline.get_or_insert_with(|| wait(limits.body));
                if !hurry.is_waived() && Pin::new(late).poll(context).is_ready() {
                    return Poll::Ready(Some(Err(BodyError::Late)));
                }
                Poll::Pending
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
        Box::pin(Wait::new(self.0.sleep(wait)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep(deadline.saturating_duration_since(self.now()))
    }
}

/// A wait on our clock. Libraries want to share what they only ever poll from one place.
struct Wait(Mutex<Sleep>);

impl Wait {
    fn new(sleep: Sleep) -> Self {
        Self(Mutex::new(sleep))
    }
}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let wait = self.0.get_mut().unwrap_or_else(|poison| poison.into_inner());
        wait.as_mut().poll(context)
    }
}

impl hyper::rt::Sleep for Wait {}

#[cfg(test)]
mod tests;
