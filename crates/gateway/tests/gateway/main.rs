//! The whole gateway in one thread with virtual time: people and a vendor on one side, a disk that
//! survives on the other, and agents that do what a test says.
#![allow(clippy::unwrap_used)]

mod answering;
mod order;
mod world;
