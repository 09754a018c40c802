//! Places for connections: so many at once, and whoever holds one for nothing gives it up first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The places of one listener.
pub(crate) struct Places {
    room: usize,
    held: Mutex<Held>,
    /// A place was given back, or somebody began to do less.
    changed: Notify,
}

#[derive(Default)]
struct Held {
    /// Counts everything that happens here, so that what happened first is known without a clock.
    moments: u64,
    places: HashMap<u64, Holder>,
}

struct Holder {
    doing: Doing,
    since: u64,
    leave: Arc<Notify>,
}

/// What a connection does with its place. Whoever does least leaves first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doing {
    /// There is no whole request yet.
    Nothing,
    /// It sends the body of its request.
    Asking,
    /// It is being answered; nobody takes its place.
    Answered,
    /// It was told to leave.
    Leaving,
}

impl Places {
    pub(crate) fn new(room: usize) -> Arc<Self> {
        Arc::new(Self { room, held: Mutex::default(), changed: Notify::new() })
    }

    /// A place for somebody who is at the door. When there is none, the connection that has done
    /// nothing for the longest is told to leave, or else the one that has been asking for the
    /// longest. One caller at a time.
    pub(crate) async fn take(self: &Arc<Self>) -> Place {
        loop {
            if let Some(place) = self.try_take() {
                return place;
            }
            self.changed.notified().await;
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<Place> {
        let mut held = self.lock();
        if held.places.len() >= self.room {
            held.dismiss_one();
            return None;
        }
        let since = held.moment();
        let leave = Arc::new(Notify::new());
        let holder = Holder { doing: Doing::Nothing, since, leave: leave.clone() };
        held.places.insert(since, holder);
        Some(Place { places: self.clone(), number: since, leave })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn moment(&mut self) -> u64 {
        self.moments += 1;
        self.moments
    }

    fn dismiss_one(&mut self) {
        let leaving = |holder: &Holder| holder.doing == Doing::Leaving;
        if self.places.values().any(leaving) {
            return;
        }
        let movable = self.places.values_mut().filter(|holder| holder.doing < Doing::Answered);
        if let Some(holder) = movable.min_by_key(|holder| (holder.doing, holder.since)) {
            holder.doing = Doing::Leaving;
            holder.leave.notify_one();
        }
    }
}

/// The right to one connection. Given back when it is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    leave: Arc<Notify>,
}

impl Place {
    pub(crate) fn does(&self, doing: Doing) {
        let mut held = self.places.lock();
        let since = held.moment();
        match held.places.get_mut(&self.number) {
            Some(holder) if holder.doing != Doing::Leaving => {
                (holder.doing, holder.since) = (doing, since);
            }
            _ => return,
        }
        drop(held);
        self.places.changed.notify_one();
    }

    /// Completes when somebody else needs the place more.
    pub(crate) async fn taken(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().places.remove(&self.number);
        self.places.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    /// Which of the holders was told to leave when one more came.
    fn dismissed(holders: &[&[Doing]]) -> Option<usize> {
        let places = Places::new(holders.len());
        let held: Vec<_> =
            holders.iter().map(|_| places.try_take().expect("there is room")).collect();
        for (place, doings) in held.iter().zip(holders) {
            doings.iter().for_each(|doing| place.does(*doing));
        }
        assert!(places.try_take().is_none());
        assert!(places.try_take().is_none(), "asking twice dismisses nobody else");
        let told: Vec<_> =
            (0..held.len()).filter(|at| held[*at].taken().now_or_never().is_some()).collect();
        assert!(told.len() < 2, "{told:?}");
        told.first().copied()
    }

    #[test]
    fn whoever_does_least_for_the_longest_leaves() {
        use Doing::{Answered, Asking, Nothing};
        for (holders, expected) in [
            (&[&[][..], &[]][..], Some(0)),
            (&[&[Answered], &[]], Some(1)),
            (&[&[Answered, Nothing], &[Asking]], Some(0)),
            (&[&[Asking], &[Answered]], Some(0)),
            (&[&[Asking], &[], &[]], Some(1)),
            (&[&[Asking, Answered], &[Answered]], None),
        ] {
            assert_eq!(dismissed(holders), expected, "{holders:?}");
        }
    }

    #[test]
    fn a_place_given_back_is_there_for_the_next() {
        let places = Places::new(1);
        let first = places.try_take().expect("there is room");
        assert!(places.take().now_or_never().is_none());
        drop(first);
        assert!(places.take().now_or_never().is_some());
    }
}
