use std::io;
use std::net::SocketAddr;

use axum::Extension;
use axum::middleware::{self, Next};
use axum::routing::{get, post};
use futures::stream;
use talaria_clock::SystemClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::*;

/// Nothing here takes this long unless it hangs.
const HANGS: Duration = Duration::from_secs(20);

/// A length of time that never comes while a test runs.
const NEVER: Duration = Duration::from_secs(3600);

const LIMITS: Limits = Limits { connections: 8, each: 8, head: NEVER, body: NEVER, still: NEVER };

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: talaria\r\n\r\n";

fn routes() -> Router {
    let endless = || stream::pending::<Result<Bytes, Infallible>>();
    let flood = || stream::repeat(Ok::<_, Infallible>(Bytes::from_static(&[0; 64 * 1024])));
    Router::new()
        .route("/", get(|| async { "here" }))
        .route("/soon", get(soon))
        .route("/panics", get(async || -> &'static str { panic!("planted") }))
        .route("/sheet", get(|| async { "x".repeat(SHEET) }))
        .route("/endless", get(async move || Body::from_stream(endless())))
        .route("/flood", get(async move || Body::from_stream(flood())))
        .route("/count", post(|body: Bytes| async move { body.len().to_string() }))
        .route("/known", post(count_of_somebody_known))
        .layer(middleware::from_fn(acquainted))
}

/// How much the stylesheet of the page is, which everybody gets.
const SHEET: usize = 28 * 1024;

/// Whoever says who they are is known.
async fn acquainted(request: axum::extract::Request, next: Next) -> Response {
    if request.headers().contains_key("i-am") {
        request.extensions().get::<Hurry>().unwrap().waive();
    }
    next.run(request).await
}

/// Is not answered the first time that somebody looks.
async fn soon() -> &'static str {
    tokio::task::yield_now().await;
    "here"
}

async fn count_of_somebody_known(Extension(hurry): Extension<Hurry>, body: Body) -> String {
    hurry.waive();
    axum::body::to_bytes(body, 1024).await.unwrap().len().to_string()
}

/// Sends a hundred bytes, one each time, and reads the answer.
async fn trickled(address: SocketAddr, path: &str, pace: Duration) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nhost: talaria\r\ncontent-length: 100\r\n\r\n");
    let (mut reading, mut writing) = connected(address, head.as_bytes()).await.into_split();
    let trickle = async {
        let mut pace = tokio::time::interval(pace);
        for _ in 0..100 {
            pace.tick().await;
            if writing.write_all(b"x").await.is_err() {
                return;
            }
        }
    };
    let mut buffer = [0; 1024];
    let (read, ()) = tokio::join!(reading.read(&mut buffer), trickle);
    buffer[..read.unwrap_or(0)].to_vec()
}

/// Serves while the test runs.
async fn serving(limits: Limits, test: impl AsyncFnOnce(SocketAddr)) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tested = async {
        tokio::select! {
            () = test(address) => {}
            never = serve(listener, routes(), Arc::new(SystemClock), limits) => match never {},
        }
    };
    tokio::time::timeout(HANGS, tested).await.expect("it hangs");
}

async fn connected(address: SocketAddr, say: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(say).await.unwrap();
    stream
}

/// Reads until this arrives.
async fn hear(stream: &mut TcpStream, expected: &str) {
    let (mut heard, mut buffer) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&heard).contains(expected) {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "ended after {:?}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&buffer[..read]);
    }
}

/// Reads to the end, whichever way the connection ends.
async fn ended(stream: &mut TcpStream) -> Vec<u8> {
    let mut heard = Vec::new();
    match stream.read_to_end(&mut heard).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error}"),
    }
    heard
}

#[tokio::test]
async fn a_request_that_panics_is_answered_and_so_is_the_next_one_on_its_connection() {
    serving(LIMITS, async |address| {
        let mut stream = connected(address, b"GET /panics HTTP/1.1\r\nhost: talaria\r\n\r\n").await;
        hear(&mut stream, "500 Internal Server Error").await;
        stream.write_all(REQUEST).await.unwrap();
        hear(&mut stream, "here").await;
    })
    .await;
}

#[tokio::test]
async fn idle_connections_do_not_keep_an_honest_client_out() {
    serving(LIMITS, async |address| {
        let mut idle = Vec::new();
        for _ in 0..LIMITS.connections * 3 {
            idle.push(connected(address, b"").await);
        }
        for _ in 0..LIMITS.connections * 2 {
            let mut honest = connected(address, REQUEST).await;
            hear(&mut honest, "here").await;
            // Kept alive for a next request that does not come.
            idle.push(honest);
        }
        assert_eq!(ended(&mut idle[0]).await, b"", "the oldest one gave its place up");
    })
    .await;
}

#[tokio::test]
async fn whoever_has_asked_is_not_turned_out_unread_by_those_who_come_next() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // All of them are at the door when it opens.
    let mut honest = connected(address, b"GET /soon HTTP/1.1\r\nhost: talaria\r\n\r\n").await;
    let mut idle = Vec::new();
    for _ in 0..LIMITS.connections * 4 {
        idle.push(connected(address, b"").await);
    }
    let answered = async {
        tokio::select! {
            () = hear(&mut honest, "here") => {}
            never = serve(listener, routes(), Arc::new(SystemClock), LIMITS) => match never {},
        }
    };
    tokio::time::timeout(HANGS, answered).await.expect("it hangs");
}

#[tokio::test]
async fn bodies_that_never_come_do_not_keep_an_honest_client_out() {
    serving(LIMITS, async |address| {
        let head = b"POST /count HTTP/1.1\r\nhost: talaria\r\ncontent-length: 100\r\n\r\nnot all";
        let mut slow = Vec::new();
        for _ in 0..LIMITS.connections * 2 {
            slow.push(connected(address, head).await);
        }
        hear(&mut connected(address, REQUEST).await, "here").await;
    })
    .await;
}

#[tokio::test]
async fn whoever_is_known_and_being_answered_keeps_the_place() {
    serving(LIMITS, async |address| {
        let mut watching = Vec::new();
        for _ in 0..LIMITS.connections - 1 {
            let head = b"GET /endless HTTP/1.1\r\nhost: talaria\r\ni-am: alice\r\n\r\n";
            let mut stream = connected(address, head).await;
            hear(&mut stream, "200 OK").await;
            watching.push(stream);
        }
        for _ in 0..LIMITS.connections {
            hear(&mut connected(address, REQUEST).await, "here").await;
        }
        for stream in &mut watching {
            let nothing = stream.try_read(&mut [0]).unwrap_err();
            assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        }
    })
    .await;
}

#[tokio::test]
async fn a_head_that_trickles_in_is_cut() {
    let head = Duration::from_millis(100);
    serving(Limits { head, ..LIMITS }, async |address| {
        let stream = connected(address, b"GET / HTTP/1.1\r\n").await;
        let (mut reading, mut writing) = stream.into_split();
        let trickle = async {
            // It is never silent for as long as it would be allowed to be.
            let mut pace = tokio::time::interval(head / 10);
            loop {
                pace.tick().await;
                if writing.write_all(b"x-more: 1\r\n").await.is_err() {
                    return std::future::pending().await;
                }
            }
        };
        let mut buffer = [0; 1024];
        tokio::select! {
            _ = reading.read(&mut buffer) => {}
            () = trickle => {}
        }
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    serving(Limits { head: Duration::from_millis(100), ..LIMITS }, async |address| {
        let mut silent = connected(address, b"").await;
        assert_eq!(ended(&mut silent).await, b"");
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_asks_nothing_more_is_closed() {
    serving(Limits { head: Duration::from_millis(100), ..LIMITS }, async |address| {
        let mut stream = connected(address, REQUEST).await;
        let heard = ended(&mut stream).await;
        assert!(heard.ends_with(b"here"), "{:?}", String::from_utf8_lossy(&heard));
    })
    .await;
}

#[tokio::test]
async fn a_body_that_stops_arriving_is_an_error() {
    serving(Limits { still: Duration::from_millis(100), ..LIMITS }, async |address| {
        let head = b"POST /count HTTP/1.1\r\nhost: talaria\r\ncontent-length: 100\r\n\r\nnot all";
        let heard = ended(&mut connected(address, head).await).await;
        assert!(heard.starts_with(b"HTTP/1.1 400"), "{:?}", String::from_utf8_lossy(&heard));
    })
    .await;
}

#[tokio::test]
async fn the_body_of_a_stranger_that_trickles_in_is_cut_and_one_of_somebody_known_is_not() {
    let body = Duration::from_millis(200);
    serving(Limits { body, ..LIMITS }, async |address| {
        // It is never silent for as long as it would be allowed to be.
        let pace = body / 20;
        let stranger = trickled(address, "/count", pace).await;
        assert!(stranger.starts_with(b"HTTP/1.1 400"), "{:?}", String::from_utf8_lossy(&stranger));
        let known = trickled(address, "/known", pace).await;
        assert!(known.ends_with(b"\r\n\r\n100"), "{:?}", String::from_utf8_lossy(&known));
    })
    .await;
}

#[tokio::test]
async fn whoever_does_not_read_the_answer_is_cut() {
    serving(
        Limits { still: Duration::from_millis(100), connections: 1, ..LIMITS },
        async |address| {
            let head = b"GET /flood HTTP/1.1\r\nhost: talaria\r\ni-am: alice\r\n\r\n";
            let mut deaf = connected(address, head).await;
            hear(&mut deaf, "200 OK").await;
            // There is one place, and nobody takes it from somebody known who is being answered.
            hear(&mut connected(address, REQUEST).await, "here").await;
        },
    )
    .await;
}

#[tokio::test]
async fn whoever_is_refused_all_the_time_waits_and_is_served_at_once() {
    serving(LIMITS, async |address| {
        let refused = b"GET /nothing HTTP/1.1\r\nhost: talaria\r\n\r\n";
        let mut stream = connected(address, refused).await;
        let begun = SystemClock.now();
        for _ in 0..=100 {
            hear(&mut stream, "404").await;
            stream.write_all(refused).await.unwrap();
        }
        let waited = SystemClock.now().since(begun);
        assert!(waited >= Duration::from_secs(1), "{waited:?}");
        // While the next one waits, the same peer is served, and its place is there for others.
        let begun = SystemClock.now();
        for _ in 0..LIMITS.connections * 2 {
            hear(&mut connected(address, REQUEST).await, "here").await;
        }
        // Sixteen that waited a second each would take longer on any machine.
        let waited = SystemClock.now().since(begun);
        assert!(waited < Duration::from_secs(10), "{waited:?}");
    })
    .await;
}

#[tokio::test]
async fn requests_follow_each_other_on_one_connection() {
    serving(LIMITS, async |address| {
        let mut stream = connected(address, REQUEST).await;
        hear(&mut stream, "here").await;
        let post = b"POST /count HTTP/1.1\r\nhost: talaria\r\ncontent-length: 7\r\n\r\nnot all";
        stream.write_all(post).await.unwrap();
        hear(&mut stream, "\r\n\r\n7").await;
        stream.write_all(REQUEST).await.unwrap();
        hear(&mut stream, "here").await;
    })
    .await;
}

/// A door without a network, so that time can pass at once.
struct Street(mpsc::Receiver<(DuplexStream, SocketAddr)>);

impl Listener for Street {
    type Io = DuplexStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (DuplexStream, SocketAddr) {
        self.0.recv().await.expect("the test holds the other end")
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(([127, 0, 0, 1], 80).into())
    }
}

/// Those who come along the street.
struct Passers(mpsc::Sender<(DuplexStream, SocketAddr)>);

impl Passers {
    /// Somebody from a place of this number comes in and says this. A few packets can be on their way to them.
    async fn come(&self, from: u8, say: &str) -> DuplexStream {
        let (mut ours, theirs) = tokio::io::duplex(4096);
        self.0.send((theirs, ([192, 0, 2, from], 1).into())).await.expect("it is served");
        // Whoever is cut off meanwhile finds that out by reading.
        let _ = ours.write_all(say.as_bytes()).await;
        ours
    }
}

/// Serves on the street with the limits that hold outside of tests, but for the places.
async fn serving_passers(connections: usize, each: usize, test: impl AsyncFnOnce(Passers)) {
    let (come, street) = mpsc::channel(1);
    let limits = Limits { connections, each, ..Limits::default() };
    tokio::select! {
        () = test(Passers(come)) => {}
        never = serve(Street(street), routes(), Arc::new(SystemClock), limits) => match never {},
    }
}

fn request(path: &str, who: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: talaria\r\n{who}\r\n")
}

/// The same request twenty times at once.
fn pipelined(path: &str, who: &str) -> String {
    request(path, who).repeat(20)
}

/// Takes so many bytes every so often, for so long or until there are no more; how many there were.
async fn takes(
    stream: &mut (impl AsyncRead + Unpin),
    bytes: usize,
    every: Duration,
    long: Duration,
) -> usize {
    let mut buffer = vec![0; bytes];
    let (begun, mut taken) = (SystemClock.mark(), 0);
    while SystemClock.mark().since(begun) < long {
        SystemClock.sleep(every).await;
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => taken += read,
            _ => break,
        }
    }
    taken
}

const NOW_AND_THEN: Duration = Duration::from_secs(50);

const SECOND: Duration = Duration::from_secs(1);

const HOUR: Duration = Duration::from_secs(3600);

const KNOWN: &str = "i-am: alice\r\n";

/// How many bytes are still to be had until the connection ends.
async fn rest_of(mut stream: DuplexStream) -> usize {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    rest.len()
}

#[tokio::test(start_paused = true)]
async fn a_stranger_that_takes_a_byte_now_and_then_loses_the_place() {
    for path in ["/sheet", "/flood"] {
        serving_passers(8, 8, async |passers| {
            let mut slow = passers.come(1, &pipelined(path, "")).await;
            takes(&mut slow, 1, NOW_AND_THEN, 3 * NOW_AND_THEN).await;
            let rest = rest_of(slow).await;
            assert!(rest < SHEET, "{path}: {rest} bytes were still to be had");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stranger_on_a_slow_line_gets_everything() {
    serving_passers(8, 8, async |passers| {
        let mut slow = passers.come(1, &pipelined("/sheet", "")).await;
        let taken = takes(&mut slow, 300, SECOND, HOUR).await;
        assert!(taken > 20 * SHEET, "only {taken} bytes");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn whoever_is_known_takes_an_answer_as_slowly_as_they_like() {
    serving_passers(8, 8, async |passers| {
        let mut slow = passers.come(1, &pipelined("/flood", KNOWN)).await;
        takes(&mut slow, 1, NOW_AND_THEN, HOUR).await;
        slow.read_exact(&mut vec![0; 1024 * 1024]).await.expect("there is more to be had");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_be_silent_for_as_long_as_it_likes() {
    for who in ["", KNOWN] {
        serving_passers(8, 8, async |passers| {
            let mut watching = passers.come(1, &pipelined("/endless", who)).await;
            watching.read_exact(&mut [0]).await.unwrap();
            let more = tokio::time::timeout(HOUR, rest_of(watching)).await;
            assert!(more.is_err(), "{who:?} was answered {more:?}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_on_which_somebody_was_known_is_none_for_strangers_to_keep() {
    serving_passers(8, 8, async |passers| {
        let mut slow = passers.come(1, &request("/sheet", KNOWN)).await;
        slow.read_exact(&mut vec![0; SHEET]).await.unwrap();
        slow.write_all(pipelined("/sheet", "").as_bytes()).await.unwrap();
        takes(&mut slow, 1, NOW_AND_THEN, 3 * NOW_AND_THEN).await;
        let rest = rest_of(slow).await;
        assert!(rest < SHEET, "{rest} bytes were still to be had");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn slow_readers_do_not_keep_an_honest_client_out() {
    for path in ["/sheet", "/flood"] {
        // Two hold all the places, each their share.
        serving_passers(4, 2, async |passers| {
            let mut slow = Vec::new();
            for from in [1, 1, 2, 2] {
                slow.push(passers.come(from, &pipelined(path, "")).await);
            }
            for stream in &mut slow {
                stream.read_exact(&mut [0]).await.unwrap();
            }
            let mut honest = passers.come(3, &request("/", "")).await;
            let answer = tokio::time::timeout(SECOND, honest.read(&mut [0])).await;
            assert_eq!(answer.expect("it is answered at once").unwrap(), 1, "{path}");
        })
        .await;
    }
}
