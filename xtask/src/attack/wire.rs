//! Requests byte by byte: what no HTTP library would send.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most of an answer that is read.
const LARGEST: u64 = 4 * 1024 * 1024;

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// A request to be sent.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ask {
    /// Asks to see something.
    pub(super) fn get(path: &str) -> Self {
        Self { line: format!("GET {path} HTTP/1.1"), headers: Vec::new(), body: Vec::new() }
    }

    /// Sends something.
    pub(super) fn post(path: &str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let ask = Self { line: format!("POST {path} HTTP/1.1"), headers: Vec::new(), body };
        let length = ask.body.len().to_string();
        ask.with("content-length", &length)
    }

    /// With another header; one of the same name stays.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn bytes(&self, address: &str) -> Vec<u8> {
        let has_host = self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
        let mut text = format!("{}\r\nconnection: close\r\n", self.line);
        if !has_host {
            text.push_str(&format!("host: {address}\r\n"));
        }
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Sends it and reads the answer.
    pub(super) async fn to(&self, address: &str) -> Result<Answer> {
        send(address, &self.bytes(address)).await
    }
}

/// Sends bytes and reads the answer to its end.
pub(super) async fn send(address: &str, bytes: &[u8]) -> Result<Answer> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        // Whoever has heard enough answers and hangs up.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        match stream.take(LARGEST).read_to_end(&mut answer).await {
            Err(error) if answer.is_empty() => Err(error),
            _ => Ok(answer),
        }
    };
    let answer = tokio::time::timeout(PATIENCE, exchange).await.context("no answer came")??;
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("no status in {head:?}"))?;
    Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
}
