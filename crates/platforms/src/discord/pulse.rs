//! When to show Discord that we are there, and when to doubt that Discord is.

use std::sync::Arc;
use std::time::Duration;

use talaria_clock::{Clock, Sleep};

/// Silence after which we ask for a sign of life before it is due: Discord's own interval alone would
/// let a dead connection pass for a living one for more than a minute.
const QUIET: Duration = Duration::from_secs(20);

/// How long a sign of life may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// A heartbeat.
    Beat,
    /// Nothing: the other end has not answered.
    Dead,
}

/// The rhythm of one connection.
pub(crate) struct Pulse {
    clock: Arc<dyn Clock>,
    interval: Duration,
    beat: Sleep,
    quiet: Sleep,
    doubt: Option<Sleep>,
    /// Whether anything arrived since the silence began to be measured.
    heard: bool,
}

impl Pulse {
    /// Begins. The first heartbeat comes after a random part of the interval, so that a million clients
    /// that were cut off together do not come back together.
    pub(crate) fn new(interval: Duration, part: f64, clock: Arc<dyn Clock>) -> Self {
        let interval = interval.max(Duration::from_millis(1));
        Self {
            beat: clock.sleep(interval.mul_f64(part.clamp(0.0, 1.0))),
            quiet: clock.sleep(QUIET),
            doubt: None,
            heard: false,
            interval,
            clock,
        }
    }

    /// Something arrived.
    pub(crate) fn heard(&mut self) {
        self.heard = true;
        self.doubt = None;
    }

    /// A heartbeat left.
    pub(crate) fn beaten(&mut self) {
        self.beat = self.clock.sleep(self.interval);
        self.quiet = self.clock.sleep(QUIET);
        if self.doubt.is_none() {
            self.doubt = Some(self.clock.sleep(PATIENCE));
        }
        self.heard = false;
    }

    /// Waits until something is due. Can be dropped and called again at any time.
    pub(crate) async fn next(&mut self) -> Due {
        loop {
            let doubt = async {
                match &mut self.doubt {
                    Some(doubt) => doubt.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = doubt => return Due::Dead,
                () = &mut self.beat => return Due::Beat,
                () = &mut self.quiet => {
                    self.quiet = self.clock.sleep(QUIET);
                    if !std::mem::take(&mut self.heard) {
                        return Due::Beat;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use talaria_clock::FakeClock;
    use talaria_model::Timestamp;

    use super::*;

    fn clock() -> Arc<FakeClock> {
        Arc::new(FakeClock::starting(Timestamp::from_millis(0)))
    }

    async fn next(pulse: &mut Pulse, clock: &FakeClock) -> (Due, u64) {
        let due = pulse.next().await;
        (due, clock.now().as_millis().unsigned_abs() / 1000)
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_beat_comes_after_a_part_of_the_interval() {
        let clock = clock();
        let mut pulse = Pulse::new(Duration::from_secs(41), 0.25, clock.clone());
        assert_eq!(next(&mut pulse, &clock).await, (Due::Beat, 10));
        pulse.beaten();
        pulse.heard();
        assert_eq!(next(&mut pulse, &clock).await, (Due::Beat, 50), "quiet since the answer");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_has_died_is_noticed_within_a_minute() {
        let clock = clock();
        let mut pulse = Pulse::new(Duration::from_secs(41), 0.999, clock.clone());
        assert_eq!(next(&mut pulse, &clock).await, (Due::Beat, 20), "asked before it is due");
        pulse.beaten();
        assert_eq!(next(&mut pulse, &clock).await, (Due::Dead, 35));
    }

    #[tokio::test(start_paused = true)]
    async fn anything_that_arrives_is_a_sign_of_life() {
        let clock = clock();
        let mut pulse = Pulse::new(Duration::from_secs(10), 0.0, clock.clone());
        for beat in 0..10 {
            assert_eq!(next(&mut pulse, &clock).await, (Due::Beat, beat * 10));
            pulse.beaten();
            pulse.heard();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_beat_does_not_buy_more_patience() {
        let clock = clock();
        let mut pulse = Pulse::new(Duration::from_secs(10), 0.0, clock.clone());
        assert_eq!(next(&mut pulse, &clock).await, (Due::Beat, 0));
        pulse.beaten();
        assert_eq!(next(&mut pulse, &clock).await, (Due::Beat, 10));
        pulse.beaten();
        assert_eq!(next(&mut pulse, &clock).await, (Due::Dead, 15));
    }
}
