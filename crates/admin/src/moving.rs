//! A connection whose other end has to go on reading.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use talaria_clock::{Clock, Sleep};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Fails to write once the other end has taken nothing for too long.
pub(crate) struct Moving<S> {
    /// What was read already, to know that the other end speaks at all.
    first: Option<u8>,
    stream: S,
    clock: Arc<dyn Clock>,
    still: Duration,
    standstill: Option<Sleep>,
}

impl<S> Moving<S> {
    pub(crate) fn new(first: u8, stream: S, clock: Arc<dyn Clock>, still: Duration) -> Self {
        Self { first: Some(first), stream, clock, still, standstill: None }
    }

    fn patient<T>(
        &mut self,
        context: &mut Context<'_>,
        wrote: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if wrote.is_ready() {
            self.standstill = None;
            return wrote;
        }
        let wait = self.standstill.get_or_insert_with(|| self.clock.sleep(self.still));
        ready!(wait.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Moving<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let first = self.first.take();
        buffer.put_slice(first.as_slice());
        // The rest of what was said is most often there, too.
        let rest = Pin::new(&mut self.stream).poll_read(context, buffer);
        match first {
            Some(_) if rest.is_pending() => Poll::Ready(Ok(())),
            _ => rest,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Moving<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.patient(context, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.patient(context, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.patient(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_clock::SystemClock;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn what_was_read_already_comes_first_with_or_without_the_rest() {
        for (rest, first_read) in [("", "G"), ("ET /", "GET /")] {
            let (mut theirs, ours) = tokio::io::duplex(64);
            theirs.write_all(rest.as_bytes()).await.unwrap();
            let mut moving = Moving::new(b'G', ours, Arc::new(SystemClock), Duration::MAX);
            let mut buffer = [0; 64];
            let read = moving.read(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..read], first_read.as_bytes());
            theirs.write_all(b"\r\n").await.unwrap();
            let read = moving.read(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..read], b"\r\n");
        }
    }
}
