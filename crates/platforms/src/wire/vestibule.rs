//! The bodies of requests whose sender has proved nothing yet. A signature is over the whole of a body, so
//! a body has to be read before it can be refused: what is held of all of them together is bounded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use futures::StreamExt;
use tokio::sync::Notify;

/// Where bodies are until it is known whose they are.
pub(crate) struct Vestibule {
    each: usize,
    all: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    visits: u64,
    bytes: usize,
    /// Whoever came first is first.
    visitors: BTreeMap<u64, Visitor>,
}

struct Visitor {
    bytes: usize,
    leave: Arc<Notify>,
}

/// Why a body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is longer than one may be.
    TooLarge,
    /// Others needed the room.
    Crowded,
    /// It stopped arriving.
    Cut,
}

impl Vestibule {
    /// Room for so many bytes of one body, and for so many of all of them.
    pub(crate) fn new(each: usize, all: usize) -> Self {
        Self { each, all, held: Mutex::default() }
    }

    /// Reads a body. When there is no room for a piece of it, whoever has been here for the longest
    /// leaves: an honest body is whole within moments, so nobody keeps one out by taking their time.
    pub(crate) async fn read(&self, body: Body) -> Result<Vec<u8>, Unread> {
        let visit = self.enter();
        let mut pieces = body.into_data_stream();
        // Copied, because a small piece may keep a large buffer alive.
        let mut whole = Vec::new();
        loop {
            let piece = tokio::select! {
                biased;
                piece = pieces.next() => piece,
                () = visit.leave.notified() => return Err(Unread::Crowded),
            };
            let Some(piece) = piece else { return Ok(whole) };
            let piece = piece.map_err(|_| Unread::Cut)?;
            if whole.len() + piece.len() > self.each {
                return Err(Unread::TooLarge);
            }
            visit.hold(piece.len())?;
            // Not twice what was counted.
            whole.reserve_exact(piece.len());
            whole.extend_from_slice(&piece);
        }
    }

    fn enter(&self) -> Visit<'_> {
        let mut held = self.lock();
        held.visits += 1;
        let (number, leave) = (held.visits, Arc::new(Notify::new()));
        held.visitors.insert(number, Visitor { bytes: 0, leave: leave.clone() });
        Visit { vestibule: self, number, leave }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One body that is being read.
struct Visit<'a> {
    vestibule: &'a Vestibule,
    number: u64,
    leave: Arc<Notify>,
}

impl Visit<'_> {
    /// Takes room for more bytes.
    fn hold(&self, more: usize) -> Result<(), Unread> {
        let mut held = self.vestibule.lock();
        while held.bytes + more > self.vestibule.all
            && let Some((number, oldest)) = held.visitors.pop_first()
        {
            held.bytes -= oldest.bytes;
            if number == self.number {
                return Err(Unread::Crowded);
            }
            oldest.leave.notify_one();
        }
        let own = held.visitors.get_mut(&self.number).ok_or(Unread::Crowded)?;
        own.bytes += more;
        held.bytes += more;
        Ok(())
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut held = self.vestibule.lock();
        if let Some(visitor) = held.visitors.remove(&self.number) {
            held.bytes -= visitor.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use futures::{FutureExt, stream};
    use tokio::sync::mpsc;
    use tokio_stream::wrappers::ReceiverStream;

    use super::*;

    /// A body that says this much and goes on for ever.
    fn endless(begins: &'static [u8]) -> Body {
        let begins = stream::iter([Ok::<_, std::convert::Infallible>(Bytes::from_static(begins))]);
        Body::from_stream(begins.chain(stream::pending()))
    }

    #[tokio::test]
    async fn a_body_is_read_whole_up_to_its_bound() {
        let vestibule = Vestibule::new(4, 16);
        assert_eq!(vestibule.read(Body::from("four")).await, Ok(b"four".to_vec()));
        assert_eq!(vestibule.read(Body::from("fives")).await, Err(Unread::TooLarge));
        let pieces = stream::iter(["ab", "cd", "e"].map(Ok::<_, std::convert::Infallible>));
        assert_eq!(vestibule.read(Body::from_stream(pieces)).await, Err(Unread::TooLarge));
        let cut = stream::iter([Ok("ab"), Err(std::io::Error::other("cut"))]);
        assert_eq!(vestibule.read(Body::from_stream(cut)).await, Err(Unread::Cut));
        assert_eq!(vestibule.lock().bytes, 0, "what has gone holds nothing");
        assert!(vestibule.lock().visitors.is_empty());
    }

    #[tokio::test]
    async fn whoever_takes_the_longest_makes_room_and_a_good_request_is_read() {
        let vestibule = Vestibule::new(4, 8);
        let mut slow = [(); 3].map(|()| Box::pin(vestibule.read(endless(b"abc"))));
        let [first, second, third] = &mut slow;
        assert_eq!(first.as_mut().now_or_never(), None);
        assert_eq!(second.as_mut().now_or_never(), None);
        assert_eq!(first.as_mut().now_or_never(), None, "there is room for both");
        assert_eq!(third.as_mut().now_or_never(), None);
        assert_eq!(first.as_mut().now_or_never(), Some(Err(Unread::Crowded)));
        assert_eq!(vestibule.read(Body::from("good")).await, Ok(b"good".to_vec()));
        assert_eq!(second.as_mut().now_or_never(), Some(Err(Unread::Crowded)));
        assert_eq!(third.as_mut().now_or_never(), None, "it is not asked for more than is needed");
        assert_eq!(vestibule.lock().bytes, 3);
    }

    #[tokio::test]
    async fn whoever_asks_for_more_than_there_is_and_came_first_sends_nobody_else_away() {
        let vestibule = Vestibule::new(8, 8);
        let (more, pieces) = mpsc::channel(1);
        let pieces = ReceiverStream::new(pieces).map(Ok::<_, std::convert::Infallible>);
        let mut greedy = Box::pin(vestibule.read(Body::from_stream(pieces)));
        more.send("a").await.unwrap();
        assert_eq!(greedy.as_mut().now_or_never(), None);
        let mut modest = Box::pin(vestibule.read(endless(b"abc")));
        assert_eq!(modest.as_mut().now_or_never(), None);
        more.send("7 bytes").await.unwrap();
        assert_eq!(greedy.as_mut().now_or_never(), Some(Err(Unread::Crowded)));
        assert_eq!(modest.as_mut().now_or_never(), None);
        assert_eq!(vestibule.lock().bytes, 3);
    }

    #[tokio::test]
    async fn whoever_had_to_leave_gets_no_further_byte_in() {
        let vestibule = Vestibule::new(4, 4);
        let (more, pieces) = mpsc::channel(1);
        let pieces = ReceiverStream::new(pieces).map(Ok::<_, std::convert::Infallible>);
        let mut steady = Box::pin(vestibule.read(Body::from_stream(pieces)));
        more.send("ab").await.unwrap();
        assert_eq!(steady.as_mut().now_or_never(), None);
        assert_eq!(vestibule.read(Body::from("good")).await, Ok(b"good".to_vec()));
        more.send("c").await.unwrap();
        assert_eq!(steady.as_mut().now_or_never(), Some(Err(Unread::Crowded)));
    }
}
