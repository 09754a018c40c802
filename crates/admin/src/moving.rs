//! A connection whose other end has to go on reading.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use talaria_clock::{Clock, Mark, Sleep};
use talaria_platform::Hurry;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a stranger has to take of an answer in a second, on the whole. A browser has six connections, which
/// share the line: all of them move where one and a half kilobytes a second arrive, as on the slowest of phones.
const PACE: u32 = 256;

/// Whether the other end may take what is written as slowly as it likes, as long as it takes something.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leisure(Arc<AtomicBool>);

impl Leisure {
    /// What is written next is for whoever sent the request that this hurry is of.
    pub(crate) fn follow(&self, hurry: &Hurry) {
        self.0.store(hurry.is_waived(), Ordering::Relaxed);
    }

    fn is_granted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Fails to write once the other end has taken nothing for too long, or a stranger too little.
pub(crate) struct Moving<S> {
    /// What was read already, to know that the other end speaks at all.
    first: Option<u8>,
    stream: S,
    clock: Arc<dyn Clock>,
    still: Duration,
    leisure: Leisure,
    waiting: Option<Waiting>,
    /// For how long a stranger let us wait, less what they have taken since. Outlasts an answer: whoever asks
    /// for many small ones could otherwise take one of them now and then.
    owing: Duration,
}

/// For the other end to take something.
struct Waiting {
    since: Mark,
    over: Sleep,
}

impl<S> Moving<S> {
    pub(crate) fn new(
        first: u8,
        stream: S,
        clock: Arc<dyn Clock>,
        still: Duration,
        leisure: Leisure,
    ) -> Self {
        let (waiting, owing) = (None, Duration::ZERO);
        Self { first: Some(first), stream, clock, still, leisure, waiting, owing }
    }

    fn patient(
        &mut self,
        context: &mut Context<'_>,
        wrote: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(wrote) = wrote {
            let waiting = self.waiting.take();
            let waited = waiting.map(|waiting| self.clock.mark().since(waiting.since));
            self.owing = match (&wrote, self.leisure.is_granted()) {
                (Ok(size), false) => {
                    (self.owing + waited.unwrap_or_default()).saturating_sub(worth(*size))
                }
                _ => Duration::ZERO,
            };
            return Poll::Ready(wrote);
        }
        let waiting = self.waiting.get_or_insert_with(|| {
            let patience = self.still.saturating_sub(self.owing);
            Waiting { since: self.clock.mark(), over: self.clock.sleep(patience) }
        });
        ready!(waiting.over.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// How long a stranger may take for so many bytes.
fn worth(size: usize) -> Duration {
    Duration::from_secs(size as u64) / PACE
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
        self.patient(context, flushed.map_ok(|()| 0)).map_ok(|_| ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_clock::SystemClock;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    #[tokio::test]
    async fn what_was_read_already_comes_first_with_or_without_the_rest() {
        for (rest, first_read) in [("", "G"), ("ET /", "GET /")] {
            let (mut theirs, mut moving) = pair(64, Duration::MAX, Leisure::default());
            theirs.write_all(rest.as_bytes()).await.unwrap();
            let mut buffer = [0; 64];
            let read = moving.read(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..read], first_read.as_bytes());
            theirs.write_all(b"\r\n").await.unwrap();
            let read = moving.read(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..read], b"\r\n");
        }
    }

    /// Both ends of a connection on which so many bytes can be on their way.
    fn pair(
        room: usize,
        still: Duration,
        leisure: Leisure,
    ) -> (DuplexStream, Moving<DuplexStream>) {
        let (theirs, ours) = tokio::io::duplex(room);
        (theirs, Moving::new(b'G', ours, Arc::new(SystemClock), still, leisure))
    }

    const STILL: Duration = Duration::from_secs(60);

    /// After how many seconds somebody is given up who is written to all the time, and takes so many bytes every so
    /// many seconds; none if that is not within an hour.
    async fn given_up_after(who: Who, bytes: usize, seconds: u64) -> Option<u64> {
        let leisure = leisure(who);
        let (mut theirs, mut moving) = pair(64, STILL, leisure);
        let begun = SystemClock.mark();
        let writes = async { while moving.write_all(&[0; 1024]).await.is_ok() {} };
        let takes = async {
            let mut taken = vec![0; bytes];
            loop {
                SystemClock.sleep(Duration::from_secs(seconds)).await;
                theirs.read_exact(&mut taken).await.unwrap();
            }
        };
        tokio::select! {
            biased;
            () = writes => Some(SystemClock.mark().since(begun).as_secs()),
            () = takes => None,
            () = SystemClock.sleep(Duration::from_secs(3600)) => None,
        }
    }

    #[derive(Debug, Clone, Copy)]
    enum Who {
        Known,
        Stranger,
    }

    fn leisure(who: Who) -> Leisure {
        let (leisure, hurry) = (Leisure::default(), Hurry::default());
        if let Who::Known = who {
            hurry.waive();
        }
        leisure.follow(&hurry);
        leisure
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_has_to_keep_up_a_pace_and_somebody_known_has_to_go_on() {
        for (who, bytes, seconds, expected) in [
            (Who::Stranger, 256, 1, None),
            (Who::Stranger, 256 * 50, 50, None),
            // Half of what they should take costs them half of the time.
            (Who::Stranger, 128, 1, Some(119)),
            (Who::Stranger, 1, 50, Some(60)),
            (Who::Stranger, 1, 61, Some(60)),
            (Who::Known, 1, 50, None),
            (Who::Known, 1, 61, Some(60)),
        ] {
            let after = given_up_after(who, bytes, seconds).await;
            assert_eq!(after, expected, "{who:?} takes {bytes} bytes every {seconds} s");
        }
    }

    /// Writes so many bytes, which the other end begins to take after a while.
    async fn taken_after(
        wait: Duration,
        size: usize,
        (theirs, moving): &mut (DuplexStream, Moving<DuplexStream>),
    ) -> io::Result<()> {
        let (bytes, mut taken) = (vec![0; size], vec![0; size]);
        let take = async {
            SystemClock.sleep(wait).await;
            theirs.read_exact(&mut taken).await
        };
        let write = async {
            moving.write_all(&bytes).await?;
            moving.flush().await
        };
        futures::try_join!(write, take).map(|_| ())
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_owes_what_they_took_too_slowly_and_no_more() {
        let second = Duration::from_secs(1);
        let mut pair = pair(1, STILL, leisure(Who::Stranger));
        taken_after(second * 50, 2, &mut pair).await.unwrap();
        // While nothing is written, nobody has to take anything.
        SystemClock.sleep(second * 3600).await;
        taken_after(second * 9, 2, &mut pair).await.unwrap();
        // What is owed can be made good for, and what is taken beyond that helps nobody later.
        taken_after(Duration::ZERO, 256 * 60, &mut pair).await.unwrap();
        taken_after(second * 50, 2, &mut pair).await.unwrap();
        // Small answers, one now and then, are no way out.
        let error = taken_after(second * 11, 2, &mut pair).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
