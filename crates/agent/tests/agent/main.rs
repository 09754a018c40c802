//! The built-in agent, driven as a gateway drives it, against a model and tools that do what a test
//! says.
#![allow(clippy::unwrap_used)]

mod alone;
mod approving;
mod elsewhere;
mod places;
mod prompts;
mod recalling;
mod resuming;
mod roles;
mod room;
mod sending;
mod spending;
mod stage;
mod steps;
mod wishes;
mod words;
