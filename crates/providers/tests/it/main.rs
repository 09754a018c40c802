//! The providers against servers on real sockets that do what a script says.
#![allow(missing_docs, clippy::unwrap_used)]

mod anthropic;
mod choose;
mod clock;
mod demo;
mod discover;
mod efforts;
mod fallback;
mod openai;
mod outcomes;
mod prefixes;
mod prompt;
mod server;
mod switchboard;
mod window;
