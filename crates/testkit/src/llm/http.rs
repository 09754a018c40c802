//! As much of HTTP/1.1 as a model server needs.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::reply::Pieces;

/// The longest head of a request.
const LONGEST_HEAD: usize = 64 * 1024;

/// The longest body of a request.
const LONGEST_BODY: usize = 64 * 1024 * 1024;

const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
transfer-encoding: chunked\r\ncache-control: no-cache\r\n\r\n";

/// A client's connection, kept alive.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    out: Vec<u8>,
}

pub(super) struct Request {
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::with_capacity(8 * 1024), out: Vec::with_capacity(8 * 1024) }
    }

    /// The next request; none when the client is done.
    pub(super) async fn request(&mut self) -> io::Result<Option<Request>> {
        let head = loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            if self.buffer.len() > LONGEST_HEAD {
                return Err(io::Error::other("the head is too long"));
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        };
        let text = String::from_utf8_lossy(&self.buffer[..head]);
        let path = text.split_whitespace().nth(1).unwrap_or_default().to_owned();
        let length = text
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .and_then(|(_, value)| value.trim().parse().ok())
            .unwrap_or(0);
        if length > LONGEST_BODY {
            return Err(io::Error::other("the body is too long"));
        }
        let end = head + 4 + length;
        while self.buffer.len() < end {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
        let body = self.buffer[head + 4..end].to_vec();
        self.buffer.drain(..end);
        Ok(Some(Request { path, body }))
    }

    pub(super) async fn answer(&mut self, status: u16, body: &[u8]) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.out.clear();
        self.out.extend_from_slice(head.as_bytes());
        self.out.extend_from_slice(body);
        self.stream.write_all(&self.out).await
    }

    /// A whole stream in one write.
    pub(super) async fn stream_at_once(&mut self, pieces: &Pieces) -> io::Result<()> {
        self.out.clear();
        self.out.extend_from_slice(STREAM_HEAD);
        for piece in &pieces.events {
            chunk(&mut self.out, piece);
        }
        self.finish(pieces).await
    }

    pub(super) async fn begin_stream(&mut self) -> io::Result<()> {
        self.stream.write_all(STREAM_HEAD).await
    }

    pub(super) async fn stream_piece(&mut self, piece: &str) -> io::Result<()> {
        self.out.clear();
        chunk(&mut self.out, piece);
        self.stream.write_all(&self.out).await
    }

    pub(super) async fn end_stream(&mut self, pieces: &Pieces) -> io::Result<()> {
        self.out.clear();
        self.finish(pieces).await
    }

    async fn finish(&mut self, pieces: &Pieces) -> io::Result<()> {
        if pieces.is_whole {
            chunk(&mut self.out, "[DONE]");
            self.out.extend_from_slice(b"0\r\n\r\n");
            return self.stream.write_all(&self.out).await;
        }
        // A broken stream ends with the connection, in the middle of the body.
        self.stream.write_all(&self.out).await?;
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

/// One event as one chunk of the body.
fn chunk(out: &mut Vec<u8>, piece: &str) {
    let length = "data: ".len() + piece.len() + "\n\n".len();
    out.extend_from_slice(format!("{length:x}\r\ndata: ").as_bytes());
    out.extend_from_slice(piece.as_bytes());
    out.extend_from_slice(b"\n\n\r\n");
}
