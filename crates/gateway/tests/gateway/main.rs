//! The whole gateway in one thread with virtual time: people and a vendor on one side, a disk that
//! survives on the other, and agents that do what a test says.
#![allow(clippy::unwrap_used)]

mod accounts;
mod answering;
mod approvals;
mod beginnings;
mod chance;
mod confiding;
mod crashes;
mod delivery;
mod desk;
mod elsewhere;
mod expiry;
mod files;
mod guessing;
mod hearing;
mod lasting;
mod letting_in;
mod looking_back;
mod losses;
mod order;
mod previews;
mod questions;
mod recovery;
mod speaking;
mod spending;
mod stopping;
mod storage;
mod supervision;
mod turns;
mod voice;
mod watching;
mod withdrawals;

use talaria_testkit::sim as world;
