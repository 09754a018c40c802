//! A WebSocket to a vendor: text frames of bounded size, pings answered, every wait with an end.

use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use reqwest::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Client, StatusCode, Upgraded, Url};
use talaria_clock::Clock;
use talaria_fetch::route;
use talaria_model::Proxy;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::http::{Http, told};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(15);

/// How long a frame may take to leave.
const WRITE: Duration = Duration::from_secs(15);

/// After how much silence the operating system looks whether a connection is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The largest frame that is read. A vendor's first frame can list everything we are in.
const LARGEST: usize = 16 * 1024 * 1024;

/// A connection.
pub(crate) struct Socket {
    stream: WebSocketStream<Upgraded>,
    clock: Arc<dyn Clock>,
}

/// What arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Text, usually JSON.
    Text(String),
    /// Bytes, on vendors that compress.
    Binary(Vec<u8>),
    /// The vendor pinged, or answered our ping: proof of life.
    Alive,
    /// The vendor ended the connection, with its code and reason where it gave them.
    Closed(Option<(u16, String)>),
}

/// Why the connection is of no more use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SocketError {
    /// It never came about.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// It broke.
    #[error("{0}")]
    Lost(String),
    /// Nothing arrived for too long.
    #[error("nothing was heard for {} s", .0.as_secs())]
    Silent(Duration),
}

impl Socket {
    /// Connects, by the same way as requests.
    pub(crate) async fn open(
        http: &Http,
        url: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SocketError> {
        let opened = tokio::select! {
            opened = upgraded(http.proxy(), url) => opened,
            () = clock.sleep(CONNECT) => Err("it takes too long".into()),
        };
        let connection = opened.map_err(SocketError::Unreachable)?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(LARGEST))
            .max_frame_size(Some(LARGEST));
        let stream = WebSocketStream::from_raw_socket(connection, Role::Client, Some(config)).await;
        Ok(Self { stream, clock })
    }

    /// Writes a text frame.
    pub(crate) async fn write(&mut self, text: String) -> Result<(), SocketError> {
        self.put(Message::text(text)).await
    }

    /// Asks for proof of life.
    pub(crate) async fn ping(&mut self) -> Result<(), SocketError> {
        self.put(Message::Ping(Vec::new().into())).await
    }

    async fn put(&mut self, message: Message) -> Result<(), SocketError> {
        let clock = self.clock.clone();
        tokio::select! {
            sent = self.stream.send(message) => sent.map_err(|error| lost(&error)),
            () = clock.sleep(WRITE) => Err(SocketError::Lost("a frame cannot leave".into())),
        }
    }

    /// The next frame, unless nothing arrives for `patience`.
    pub(crate) async fn read(&mut self, patience: Duration) -> Result<Frame, SocketError> {
        let clock = self.clock.clone();
        let next = tokio::select! {
            next = self.stream.next() => next,
            () = clock.sleep(patience) => return Err(SocketError::Silent(patience)),
        };
        match next {
            Some(Ok(Message::Text(text))) => Ok(Frame::Text(text.to_string())),
            Some(Ok(Message::Binary(bytes))) => Ok(Frame::Binary(bytes.to_vec())),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(Frame::Alive),
            Some(Ok(Message::Close(frame))) => {
                let reason = frame.map(|frame| (frame.code.into(), frame.reason.to_string()));
                Ok(Frame::Closed(reason))
            }
            Some(Err(error)) => Err(lost(&error)),
            None => Ok(Frame::Closed(None)),
        }
    }
}

fn lost(error: &Error) -> SocketError {
    SocketError::Lost(error.to_string())
}

/// Asks for a connection by HTTP, which is how every WebSocket begins: so it takes the same way, and trusts
/// the same certificates, as every other request.
async fn upgraded(proxy: &Proxy, url: &str) -> Result<Upgraded, String> {
    let no_address = || "it has no address of a WebSocket".to_owned();
    let mut url = Url::parse(url).map_err(|_| no_address())?;
    let scheme = match url.scheme() {
        "wss" => "https",
        "ws" => "http",
        _ => return Err(no_address()),
    };
    url.set_scheme(scheme).map_err(|()| no_address())?;
    let client = route(Client::builder(), proxy, &url)
        .map_err(told)?
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("Talaria/", env!("CARGO_PKG_VERSION")))
        .tcp_keepalive(KEEP_ALIVE)
        // No other version has a connection of its own to hand out.
        .http1_only()
        .no_gzip()
        .build()
        .map_err(told)?;
    let key = generate_key();
    let request = client
        .get(url)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, &key);
    let response = request.send().await.map_err(told)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(format!("HTTP error: {}", response.status()));
    }
    let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT);
    if accepted.is_none_or(|accepted| accepted != derive_accept_key(key.as_bytes()).as_str()) {
        return Err("what answers is no WebSocket".into());
    }
    response.upgrade().await.map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_clock::SystemClock;
    use talaria_testkit::Impostor;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::TcpListener;

    async fn proxy() -> (TcpListener, Http) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        (listener, Http::by(address.parse().unwrap()))
    }

    #[tokio::test]
    async fn a_socket_takes_the_same_way_as_requests() {
        let (listener, http) = proxy().await;
        let asked = async {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = tokio_tungstenite::accept_async(stream).await.unwrap();
            stream.send(Message::text("hello")).await.unwrap();
            stream.next().await.unwrap().unwrap()
        };
        let heard = async {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let mut socket = Socket::open(&http, "ws://vendor.invalid/", clock).await.unwrap();
            let frame = socket.read(CONNECT).await.unwrap();
            socket.write("hi".into()).await.unwrap();
            frame
        };
        let (said, frame) = tokio::join!(asked, heard);
        assert_eq!((said, frame), (Message::text("hi"), Frame::Text("hello".into())));
    }

    #[tokio::test]
    async fn a_proxy_sees_nothing_of_an_encrypted_socket_but_where_it_leads() {
        let (listener, http) = proxy().await;
        let asked = async {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            let refusal = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(refusal.as_bytes()).await.unwrap();
            line
        };
        let opened = Socket::open(&http, "wss://vendor.invalid/?ticket=1", Arc::new(SystemClock));
        let (line, opened) = tokio::join!(asked, opened);
        assert_eq!(line, "CONNECT vendor.invalid:443 HTTP/1.1\r\n");
        assert!(matches!(opened, Err(SocketError::Unreachable(_))));
    }

    #[tokio::test]
    async fn whoever_nobody_vouches_for_is_told_nothing() {
        let impostor = Impostor::open().await.unwrap();
        let http = Http::by(Proxy::None);
        let url = format!("https://{}/me", impostor.address).parse().unwrap();
        let request = http.client(&url).unwrap().get(url).bearer_auth("secret");
        let called = crate::wire::http::call(request, CONNECT).await;
        assert!(called.is_err());
        let url = format!("wss://{}/?ticket=1", impostor.address);
        let opened = Socket::open(&http, &url, Arc::new(SystemClock)).await;
        assert!(matches!(opened, Err(SocketError::Unreachable(_))));
        assert_eq!((impostor.asked(), impostor.believed()), (2, 0));
        // Whoever does not ask who vouches talks to it.
        let naive = Client::builder().no_proxy().danger_accept_invalid_certs(true).build().unwrap();
        assert!(naive.get(format!("https://{}/", impostor.address)).send().await.is_err());
        assert_eq!((impostor.asked(), impostor.believed()), (3, 1));
    }

    #[tokio::test]
    async fn who_answers_something_else_is_no_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/", listener.local_addr().unwrap());
        let switching = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\
                         upgrade: websocket\r\nsec-websocket-accept: bm8=\r\n\r\n";
        for (answer, expect) in [
            ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "HTTP error: 404 Not Found"),
            (switching, "what answers is no WebSocket"),
        ] {
            let served = async {
                let (stream, _) = listener.accept().await.unwrap();
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    stream.read_line(&mut line).await.unwrap();
                }
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream
            };
            let http = Http::default();
            let opened = Socket::open(&http, &url, Arc::new(SystemClock));
            let (_stream, opened) = tokio::join!(served, opened);
            assert_eq!(opened.err(), Some(SocketError::Unreachable(expect.into())));
        }
    }
}
