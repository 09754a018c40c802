//! Bytes that have to keep coming: in time, at a pace, and not without end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};
use talaria_clock::{Clock, Sleep};

/// How long the pace is measured at a time.
const WINDOW: Duration = Duration::from_secs(10);

/// The least that has to arrive in that time: 1 KiB a second.
const LEAST: u64 = 10 * 1024;

/// The bytes, up to `most` of them, and an error where there are more, where they take longer than
/// `limit` in all, or where less than 1 KiB a second has come for 10 seconds. Time in which nobody asks
/// for them counts for nothing while there is something to be had.
pub fn paced(
    bytes: BoxStream<'static, io::Result<Bytes>>,
    most: u64,
    limit: Duration,
    clock: Arc<dyn Clock>,
) -> BoxStream<'static, io::Result<Bytes>> {
    let deadline = clock.sleep(limit);
    within(bytes, most, deadline, clock)
}

/// The same, with a deadline that began earlier.
pub(crate) fn within(
    bytes: BoxStream<'static, io::Result<Bytes>>,
    most: u64,
    deadline: Sleep,
    clock: Arc<dyn Clock>,
) -> BoxStream<'static, io::Result<Bytes>> {
    let window = clock.sleep(WINDOW);
    Paced { bytes: Some(bytes), left: most, most, arrived: 0, window, deadline, clock }.boxed()
}

struct Paced {
    /// Absent behind the end.
    bytes: Option<BoxStream<'static, io::Result<Bytes>>>,
    left: u64,
    most: u64,
    /// In this window.
    arrived: u64,
    window: Sleep,
    deadline: Sleep,
    clock: Arc<dyn Clock>,
}

impl Paced {
    fn fail(&mut self, error: io::Error) -> Poll<Option<io::Result<Bytes>>> {
        self.bytes = None;
        Poll::Ready(Some(Err(error)))
    }
}

impl Stream for Paced {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(bytes) = &mut this.bytes else { return Poll::Ready(None) };
        if this.deadline.poll_unpin(task).is_ready() {
            return this.fail(io::Error::new(io::ErrorKind::TimedOut, "it took too long"));
        }
        match bytes.poll_next_unpin(task) {
            Poll::Ready(Some(Ok(piece))) => {
                let size = piece.len() as u64;
                let Some(left) = this.left.checked_sub(size) else {
                    let most = this.most;
                    return this.fail(io::Error::new(
                        io::ErrorKind::FileTooLarge,
                        format!("it is larger than {most} bytes"),
                    ));
                };
                this.left = left;
                this.arrived += size;
                Poll::Ready(Some(Ok(piece)))
            }
            Poll::Ready(Some(Err(error))) => this.fail(error),
            Poll::Ready(None) => {
                this.bytes = None;
                Poll::Ready(None)
            }
            Poll::Pending => {
                while this.window.poll_unpin(task).is_ready() {
                    if this.arrived < LEAST {
                        return this
                            .fail(io::Error::new(io::ErrorKind::TimedOut, "it comes too slowly"));
                    }
                    this.arrived = 0;
                    this.window = this.clock.sleep(WINDOW);
                }
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use talaria_clock::FakeClock;
    use talaria_model::Timestamp;

    fn clock() -> Arc<dyn Clock> {
        Arc::new(FakeClock::starting(Timestamp::default()))
    }

    /// So many bytes after each wait.
    fn dripping(pieces: Vec<(Duration, usize)>) -> BoxStream<'static, io::Result<Bytes>> {
        let clock = clock();
        let drip = move |(wait, size): (Duration, usize)| {
            let clock = clock.clone();
            async move {
                clock.sleep(wait).await;
                Ok(Bytes::from(vec![b'x'; size]))
            }
        };
        stream::iter(pieces).then(drip).boxed()
    }

    /// How many bytes arrived, how it ended, and after how many seconds.
    async fn read(
        pieces: Vec<(Duration, usize)>,
        most: u64,
        limit: Duration,
    ) -> (usize, Option<io::ErrorKind>, u64) {
        let clock = clock();
        let begun = clock.now();
        let mut stream = paced(dripping(pieces), most, limit, clock.clone());
        let (mut size, mut ended) = (0, None);
        while let Some(piece) = stream.next().await {
            match piece {
                Ok(piece) => size += piece.len(),
                Err(error) => ended = Some(error.kind()),
            }
        }
        assert!(stream.next().await.is_none(), "nothing comes behind the end");
        (size, ended, clock.now().since(begun).as_secs())
    }

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn what_keeps_up_the_pace_arrives_whole() {
        let steady = vec![(SECOND, 1024); 100];
        assert_eq!(read(steady, 102_400, HOUR).await, (102_400, None, 100));
        assert_eq!(
            read(vec![(SECOND * 9, 1)], 1, HOUR).await,
            (1, None, 9),
            "small ones may pause"
        );
        assert_eq!(read(vec![], 0, HOUR).await, (0, None, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_trickle_is_given_up_after_ten_seconds() {
        let slow = Some(io::ErrorKind::TimedOut);
        let (_, ended, after) = read(vec![(SECOND, 1); 1000], HOUR.as_secs(), HOUR).await;
        assert_eq!((ended, after), (slow, 10));
        let (_, ended, after) = read(vec![(SECOND, 1023); 1000], u64::MAX, HOUR).await;
        assert_eq!((ended, after), (slow, 10), "a byte a second less than it should be");
        // A good beginning is no credit for later.
        let mut later = vec![(Duration::ZERO, 1 << 20)];
        later.extend(vec![(SECOND, 1); 1000]);
        let (_, ended, after) = read(later, u64::MAX, HOUR).await;
        assert_eq!((ended, after), (slow, 20));
        assert_eq!(read(vec![(HOUR, 1)], 9, HOUR * 2).await, (0, slow, 10));
    }

    #[tokio::test(start_paused = true)]
    async fn time_runs_out_even_at_a_good_pace() {
        let (size, ended, after) = read(vec![(SECOND, 1 << 20); 1000], u64::MAX, SECOND * 60).await;
        assert_eq!((ended, after), (Some(io::ErrorKind::TimedOut), 60));
        assert!(size <= 60 << 20);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_read_up_to_its_bound_and_not_a_byte_further() {
        let pieces = || vec![(Duration::ZERO, 10), (Duration::ZERO, 10)];
        let large = Some(io::ErrorKind::FileTooLarge);
        assert_eq!(read(pieces(), 20, HOUR).await, (20, None, 0));
        assert_eq!(read(pieces(), 19, HOUR).await, (10, large, 0));
        assert_eq!(read(pieces(), 9, HOUR).await, (0, large, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_reads_slowly_is_no_reason_to_blame_the_sender() {
        let clock = clock();
        let plenty = stream::iter((0..5).map(|_| Ok(Bytes::from_static(b"x")))).boxed();
        let mut stream = paced(plenty, 5, HOUR, clock.clone());
        for _ in 0..5 {
            clock.sleep(SECOND * 60).await;
            assert!(stream.next().await.unwrap().is_ok());
        }
        assert!(stream.next().await.is_none());
    }
}
