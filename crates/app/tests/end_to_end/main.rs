//! The real binary, from outside: a vendor, a model, a home, and whatever can go wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod commands;
mod delivering;
mod ending;
mod faults;
mod kill;
mod questions;
mod rig;
mod terminal;
