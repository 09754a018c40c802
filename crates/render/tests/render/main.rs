//! What the crate promises, through its public functions.

mod ansi;
mod hostile;
mod html;
mod markdown;
mod parse;
mod plain;
mod split;

use proptest::test_runner::{Config, RngSeed};

fn same_every_time() -> Config {
    Config { rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..Config::default() }
}
