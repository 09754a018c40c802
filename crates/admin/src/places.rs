//! Places for connections: so many at once, so many of them for one peer, and whoever holds one for
//! nothing gives it up first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talaria_platform::Peer;
use tokio::sync::Notify;

/// The places of one listener.
pub(crate) struct Places {
    room: usize,
    each: usize,
    held: Mutex<Held>,
    /// A place was given back, or somebody began to do less.
    changed: Notify,
}

#[derive(Default)]
struct Held {
    /// Counts everything that happens here, so that what happened first is known without a clock.
    moments: u64,
    places: HashMap<u64, Holder>,
    /// Connections whose place somebody else has by now, and which are not gone yet.
    leaving: usize,
}

struct Holder {
    peer: Option<Peer>,
    doing: Doing,
    since: u64,
    leave: Arc<Notify>,
}

/// What a connection does with its place. Whoever does least leaves first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doing {
    /// There is no whole request yet, or a stranger has the answer to it and only has to take that.
    Nothing,
    /// It sends the body of its request.
    Asking,
    /// Nobody has looked yet whether there is a request. It is not known to do nothing, so nobody takes its place.
    Unknown,
    /// An answer is looked for, or on its way to somebody known; nobody takes its place.
    Answered,
}

/// What came of trying to take a place.
enum Taking {
    Taken(Place),
    /// Somebody has to do less first, or to be gone.
    Wait,
    /// It is their own places that are taken.
    Away,
}

impl Places {
    /// So much room in all, and so much for each peer.
    pub(crate) fn new(room: usize, each: usize) -> Arc<Self> {
        Arc::new(Self { room, each, held: Mutex::default(), changed: Notify::new() })
    }

    /// A place for somebody who is at the door. When there is none, it is that of the connection that
    /// has done nothing for the longest, or else of the one that has been asking for the longest.
    /// Whoever has their share already can only have the place of one of their own; without such a one
    /// they are turned away. One caller at a time.
    pub(crate) async fn take(self: &Arc<Self>, peer: Option<Peer>) -> Option<Place> {
        loop {
            match self.try_take(peer) {
                Taking::Taken(place) => return Some(place),
                Taking::Away => return None,
                Taking::Wait => self.changed.notified().await,
            }
        }
    }

    fn try_take(self: &Arc<Self>, peer: Option<Peer>) -> Taking {
        let mut held = self.lock();
        let has_share = peer.is_some() && held.count(peer) >= self.each;
        if has_share || held.places.len() >= self.room {
            // So there are never more than twice as many connections as places.
            if held.leaving >= self.room {
                return Taking::Wait;
            }
            match held.dismiss_one(|holder| !has_share || holder.peer == peer) {
                Dismissed::One => {}
                Dismissed::Nobody if has_share => return Taking::Away,
                Dismissed::Nobody | Dismissed::NobodyYet => return Taking::Wait,
            }
        }
        let since = held.moment();
        let leave = Arc::new(Notify::new());
        let holder = Holder { peer, doing: Doing::Unknown, since, leave: leave.clone() };
        held.places.insert(since, holder);
        Taking::Taken(Place { places: self.clone(), number: since, leave })
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

    fn count(&self, peer: Option<Peer>) -> usize {
        self.places.values().filter(|holder| holder.peer == peer).count()
    }

    fn dismiss_one(&mut self, among: impl Fn(&Holder) -> bool) -> Dismissed {
        let movable = self.places.iter().filter(|(_, it)| it.doing < Doing::Answered && among(it));
        let least = movable.min_by_key(|(_, holder)| (holder.doing, holder.since));
        let Some((number, doing)) = least.map(|(number, holder)| (*number, holder.doing)) else {
            return Dismissed::Nobody;
        };
        if doing == Doing::Unknown {
            return Dismissed::NobodyYet;
        }
        if let Some(holder) = self.places.remove(&number) {
            self.leaving += 1;
            holder.leave.notify_one();
        }
        Dismissed::One
    }
}

/// Who was told to leave.
enum Dismissed {
    One,
    /// All are being answered.
    Nobody,
    /// Some have not been looked at, which is a matter of moments.
    NobodyYet,
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
        let Some(holder) = held.places.get_mut(&self.number) else { return };
        (holder.doing, holder.since) = (doing, since);
        drop(held);
        self.places.changed.notify_one();
    }

    /// It was looked whether there is a request; if there was none, it does nothing.
    pub(crate) fn is_known(&self) {
        let mut held = self.places.lock();
        let Some(holder) = held.places.get_mut(&self.number) else { return };
        if holder.doing == Doing::Unknown {
            holder.doing = Doing::Nothing;
            drop(held);
            self.places.changed.notify_one();
        }
    }

    /// Completes when somebody else needs the place more.
    pub(crate) async fn taken(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.places.lock();
        if held.places.remove(&self.number).is_none() {
            held.leaving -= 1;
        }
        drop(held);
        self.places.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn unseen(places: &Arc<Places>, peer: Option<Peer>) -> Place {
        match places.try_take(peer) {
            Taking::Taken(place) => place,
            Taking::Wait | Taking::Away => panic!("there is room"),
        }
    }

    fn taken(places: &Arc<Places>, peer: Option<Peer>) -> Place {
        let place = unseen(places, peer);
        place.is_known();
        place
    }

    /// Which of the holders was told to leave when one more came.
    fn dismissed(holders: &[&[Doing]]) -> Option<usize> {
        let places = Places::new(holders.len(), holders.len());
        let held: Vec<_> = holders.iter().map(|_| taken(&places, None)).collect();
        for (place, doings) in held.iter().zip(holders) {
            doings.iter().for_each(|doing| place.does(*doing));
        }
        let _newcomer = places.try_take(None);
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
    fn nobody_leaves_before_it_was_looked_what_they_want() {
        let greedy = Some(Peer::of([192, 0, 2, 1].into()));
        for (room, each) in [(2, 2), (4, 2)] {
            let places = Places::new(room, each);
            let [first, second] = [unseen(&places, greedy), unseen(&places, greedy)];
            assert!(matches!(places.try_take(greedy), Taking::Wait));
            first.does(Doing::Answered);
            first.is_known();
            assert!(matches!(places.try_take(greedy), Taking::Wait), "what is known stays known");
            second.is_known();
            unseen(&places, greedy);
            assert!(second.taken().now_or_never().is_some());
            assert!(first.taken().now_or_never().is_none());
        }
    }

    #[test]
    fn a_place_given_back_is_there_for_the_next() {
        let places = Places::new(1, 1);
        let first = taken(&places, None);
        first.does(Doing::Answered);
        assert!(places.take(None).now_or_never().is_none());
        drop(first);
        assert!(places.take(None).now_or_never().flatten().is_some());
    }

    #[test]
    fn a_peer_has_its_share_and_takes_nobody_elses_place() {
        let [greedy, other] = [1, 2].map(|last| Some(Peer::of([192, 0, 2, last].into())));
        let places = Places::new(4, 2);
        let others = taken(&places, other);
        let held = [taken(&places, greedy), taken(&places, greedy)];
        held.iter().for_each(|place| place.does(Doing::Asking));
        let third = taken(&places, greedy);
        assert!(held[0].taken().now_or_never().is_some(), "one of its own leaves");
        assert!(others.taken().now_or_never().is_none());
        let [_first, second] = held;
        [&second, &third].into_iter().for_each(|place| place.does(Doing::Answered));
        assert!(matches!(places.try_take(greedy), Taking::Away));
        taken(&places, other);
    }

    #[test]
    fn whoever_was_told_to_leave_has_to_be_gone_before_as_many_again_come() {
        let places = Places::new(2, 2);
        let mut all: Vec<Place> = (0..4).map(|_| taken(&places, None)).collect();
        assert!(matches!(places.try_take(None), Taking::Wait));
        drop(all.remove(0));
        taken(&places, None);
    }
}
