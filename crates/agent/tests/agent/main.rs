//! The built-in agent, driven as a gateway drives it, against a model and tools that do what a test
//! says.
#![allow(clippy::unwrap_used)]

mod prompts;
mod resuming;
mod stage;
mod steps;
mod words;
