//! A WebSocket to a vendor: text frames of bounded size, pings answered, every wait with an end.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use talaria_clock::Clock;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(15);

/// How long a frame may take to leave.
const WRITE: Duration = Duration::from_secs(15);

/// The largest frame that is read. A vendor's first frame can list everything we are in.
const LARGEST: usize = 16 * 1024 * 1024;

/// A connection.
pub(crate) struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
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
    /// Connects.
    pub(crate) async fn open(url: &str, clock: Arc<dyn Clock>) -> Result<Self, SocketError> {
        let config = WebSocketConfig::default()
            .max_message_size(Some(LARGEST))
            .max_frame_size(Some(LARGEST));
        let connector = url.starts_with("wss:").then(|| Connector::Rustls(tls()));
        let opening =
            tokio_tungstenite::connect_async_tls_with_config(url, Some(config), true, connector);
        let opened = tokio::select! {
            opened = opening => opened,
            () = clock.sleep(CONNECT) => {
                return Err(SocketError::Unreachable("it takes too long".into()));
            }
        };
        match opened {
            Ok((stream, _)) => Ok(Self { stream, clock }),
            Err(error) => Err(SocketError::Unreachable(error.to_string())),
        }
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

/// The machine's certificates, read once.
fn tls() -> Arc<rustls::ClientConfig> {
    static TLS: OnceLock<Arc<rustls::ClientConfig>> = OnceLock::new();
    let made = TLS.get_or_init(|| {
        let mut roots = rustls::RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        // A certificate that cannot be read vouches for nobody; the others still do.
        let (_, _) = roots.add_parsable_certificates(found.certs);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider knows the versions that are safe")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Arc::new(config)
    });
    made.clone()
}
