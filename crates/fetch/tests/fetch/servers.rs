//! Servers that answer what a test says, byte for byte.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What a server does with a request.
pub(crate) enum Answer {
    /// Writes this and closes.
    Bytes(String),
    /// Nothing, for as long as the other side waits.
    Silence,
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::Bytes(text.into())
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self::Bytes(text)
    }
}

/// A server on loopback. It ends with the test's runtime.
pub(crate) struct Server {
    pub(crate) port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "a server of a test ends with its runtime")]
    pub(crate) async fn on(
        address: &str,
        answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let port = listener.local_addr().expect("has an address").port();
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let (noted, answer) = (heard.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (noted, answer) = (noted.clone(), answer.clone());
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") {
                        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let request = String::from_utf8(request).expect("is text");
                    let answer = answer(&request);
                    noted.lock().expect("nobody panics with it").push(request);
                    match answer {
                        Answer::Bytes(bytes) => {
                            // Whoever has read enough has hung up.
                            let _ = stream.write_all(bytes.as_bytes()).await;
                        }
                        Answer::Silence => std::future::pending().await,
                    }
                });
            }
        });
        Self { port, heard }
    }

    pub(crate) fn redirect(location: &str) -> Answer {
        Answer::Bytes(format!(
            "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ))
    }

    /// The requests so far.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("nobody panics with it").clone()
    }
}
