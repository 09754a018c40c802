//! An audio API and programs, through the contracts that the gateway knows.
#![allow(clippy::unwrap_used)]

mod endpoint;
mod programs;
