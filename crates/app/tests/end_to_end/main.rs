//! The real binary, from outside: a vendor, a model, a home, and whatever can go wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod approvals;
mod backup;
mod chat_commands;
mod commands;
mod conversations;
mod crowd;
mod deaf;
mod delivering;
mod destinations;
mod doctor;
mod ending;
mod faults;
mod going_back;
mod hooks;
mod kill;
mod lifecycle;
mod logs;
mod pairing;
mod people;
mod proxies;
mod questions;
mod reloading;
mod rig;
mod sessions;
mod setup;
mod telemetry;
mod terminal;
mod voice;
mod waiting;
mod watching;
mod webhooks;
mod why;
