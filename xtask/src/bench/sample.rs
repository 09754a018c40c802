//! Numbers from many measurements.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What one round of turns showed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Sample {
    /// Half of the turns took at most this.
    pub(super) p50: Duration,
    /// All but one in a hundred took at most this.
    pub(super) p99: Duration,
    /// All took at most this.
    pub(super) longest: Duration,
    /// From the first turn to the last answer.
    pub(super) took: Duration,
    /// How many turns.
    pub(super) turns: usize,
    /// Processor time of the process that took them.
    pub(super) processor: Duration,
}

impl Sample {
    pub(super) fn of(mut latencies: Vec<Duration>, took: Duration, processor: Duration) -> Self {
        latencies.sort_unstable();
        let at = |part: f64| {
            let place = (latencies.len() as f64 * part) as usize;
            latencies.get(place.min(latencies.len().saturating_sub(1))).copied().unwrap_or_default()
        };
        let longest = latencies.last().copied().unwrap_or_default();
        Self { p50: at(0.50), p99: at(0.99), longest, took, turns: latencies.len(), processor }
    }

    pub(super) fn per_second(&self) -> f64 {
        self.turns as f64 / self.took.as_secs_f64().max(1e-9)
    }

    /// Processor seconds per thousand turns.
    pub(super) fn processor_per_thousand(&self) -> f64 {
        self.processor.as_secs_f64() * 1000.0 / self.turns.max(1) as f64
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0}/s, p50 {:.2} ms, p99 {:.2} ms, {:.2} CPU-s per 1,000",
            self.per_second(),
            self.p50.as_secs_f64() * 1e3,
            self.p99.as_secs_f64() * 1e3,
            self.processor_per_thousand()
        )
    }
}

/// The middle one.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
