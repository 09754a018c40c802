//! Everything at once, by chance: people, faults of vendors, model and disk, deaths and clean stops.
//! `cargo xtask sim` runs as many seeds as one likes, and any of them again.

use crate::world::{Backing, Keeps, run};

#[test]
fn whatever_happens_every_promise_is_kept() {
    for seed in 0..70 {
        let outcome = run(seed, Keeps::Last, Backing::Memory);
        if !outcome.problems.is_empty() {
            panic!("{}", run(seed, Keeps::Everything, Backing::Memory).report(60));
        }
    }
}

#[test]
fn the_same_seed_does_the_same() {
    for seed in 1000..1012 {
        let digests = [(); 2].map(|()| run(seed, Keeps::Last, Backing::Memory).digest);
        assert_eq!(digests[0], digests[1], "seed {seed}");
    }
}

#[test]
fn a_real_store_keeps_the_same_promises_and_does_the_same() {
    for seed in 2000..2004 {
        let outcome = run(seed, Keeps::Everything, Backing::Sqlite);
        assert!(outcome.problems.is_empty(), "{}", outcome.report(60));
        let in_memory = run(seed, Keeps::Last, Backing::Memory);
        assert_eq!(outcome.digest, in_memory.digest, "seed {seed} differs from memory");
    }
}
