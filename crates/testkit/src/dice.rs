//! Chance that can be repeated.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Random choices from a seed. The seed is printed, and `SEED=…` in the environment sets it.
#[derive(Debug)]
pub struct Dice {
    seed: u64,
    random: StdRng,
}

impl Dice {
    /// The seed from the environment, or a fresh one.
    pub fn thrown() -> Self {
        let given = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(rand::random);
        #[expect(clippy::print_stdout, reason = "shown with a failing test, to run it again")]
        {
            println!("SEED={seed}");
        }
        Self { seed, random: StdRng::seed_from_u64(seed) }
    }

    /// The same choices for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, random: StdRng::seed_from_u64(seed) }
    }

    /// Dice of their own for somebody else, who thereby does not change what these throw.
    pub fn split(&mut self) -> Self {
        Self::seeded(self.random.random())
    }

    /// Yes one time in so many.
    pub fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.random.random_range(0..from.len())]
    }

    /// What to run it again with.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.random.random_range(0..limit)
    }

    /// Lets some time pass, less than `limit`.
    pub async fn pause(&mut self, limit: Duration) {
        let micros = self.below(u64::try_from(limit.as_micros()).unwrap_or(u64::MAX).max(1));
        tokio::time::sleep(Duration::from_micros(micros)).await;
    }
}
