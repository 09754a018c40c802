//! The real binary, from outside: a vendor, a model, a home, and whatever can go wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod approvals;
mod chat_commands;
mod commands;
mod conversations;
mod delivering;
mod ending;
mod faults;
mod kill;
mod pairing;
mod people;
mod questions;
mod rig;
mod sessions;
mod setup;
mod terminal;
mod voice;
mod webhooks;
