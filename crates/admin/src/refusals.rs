//! Refusals take their time for whoever is refused all the time.
//!
//! Only what is refused waits. Whoever shares an address with an attacker, as all do behind a proxy, is
//! served as before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use talaria_clock::{Clock, Mark};
use talaria_platform::Peer;

/// So many refusals at once are given without waiting.
const AT_ONCE: u32 = 100;

/// After this long one more is.
const EACH: Duration = Duration::from_millis(100);

/// How long every other one takes.
const SLOW: Duration = Duration::from_secs(1);

/// Peers that are counted at the same time. With more than that, whoever is not counted waits.
const PEERS: usize = 4096;

/// Who is refused how often.
pub(crate) struct Refusals {
    clock: Arc<dyn Clock>,
    /// When each has made good for what it was refused. That a peer is not here means that it has.
    owing: Mutex<HashMap<Peer, Mark>>,
}

impl Refusals {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, owing: Mutex::default() }
    }

    /// Counts one; how long it has to wait.
    pub(crate) fn count(&self, peer: Peer) -> Option<Duration> {
        let now = self.clock.mark();
        let mut owing = self.owing.lock().unwrap_or_else(PoisonError::into_inner);
        if owing.len() >= PEERS && !owing.contains_key(&peer) {
            owing.retain(|_, until| *until > now);
            if owing.len() >= PEERS {
                return Some(SLOW);
            }
        }
        let until = owing.entry(peer).or_insert(now);
        *until = (*until).max(now);
        let later = *until + EACH;
        if later.since(now) > EACH * AT_ONCE {
            return Some(SLOW);
        }
        *until = later;
        None
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use talaria_clock::FakeClock;
    use talaria_model::Timestamp;

    fn peer(number: u32) -> Peer {
        Peer::of(Ipv4Addr::from_bits(number).into())
    }

    fn free(refusals: &Refusals, peer: Peer) -> u32 {
        (0..AT_ONCE * 2).map(|_| u32::from(refusals.count(peer).is_none())).sum()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_refused_all_the_time_waits_and_nobody_else() {
        let refusals = Refusals::new(Arc::new(FakeClock::starting(Timestamp::from_millis(0))));
        assert_eq!(free(&refusals, peer(1)), AT_ONCE);
        assert_eq!(refusals.count(peer(1)), Some(SLOW));
        assert_eq!(refusals.count(peer(2)), None);
        tokio::time::advance(EACH * 3).await;
        assert_eq!(free(&refusals, peer(1)), 3);
        tokio::time::advance(EACH * AT_ONCE * 2).await;
        assert_eq!(free(&refusals, peer(1)), AT_ONCE, "what is not used up is not saved up");
    }

    #[tokio::test(start_paused = true)]
    async fn any_number_of_peers_takes_the_same_memory() {
        let refusals = Refusals::new(Arc::new(FakeClock::starting(Timestamp::from_millis(0))));
        let many = u32::try_from(PEERS).unwrap();
        assert!((0..many).all(|number| refusals.count(peer(number)).is_none()));
        assert_eq!(refusals.count(peer(many)), Some(SLOW));
        assert_eq!(refusals.count(peer(1)), None, "who is counted already is counted on");
        tokio::time::advance(EACH).await;
        assert_eq!(refusals.count(peer(many)), None);
        assert!(refusals.owing.lock().unwrap().len() <= PEERS);
    }
}
