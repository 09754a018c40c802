//! How the gateway is reached from outside the chat platforms: its HTTP listener, its local socket,
//! and the typed API that the command line talks to.
//!
//! It shows what the gateway knows and passes on what an operator asks for. It decides nothing about
//! sessions and knows no platform by name: the pages and webhooks it serves are the platforms' own.
#![forbid(unsafe_code)]

pub mod answers;
pub mod api;
mod doors;
pub mod guests;
mod http;
mod listener;
mod local;
mod metrics;
mod moving;
mod places;
mod probes;
mod pulse;
mod readers;
mod refusals;
mod serve;
pub mod why;

pub use doors::{Doors, OpenError, Operator};
pub use metrics::{HookVitals, Vitals};
