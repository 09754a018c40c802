//! The heart, pure: which session an event belongs to, who is heard, and what a session does with
//! each event it is told.
//!
//! Nothing here sees a runtime, a socket, a clock, a random number or a database. Time is an
//! argument, decisions are values, and a test compares lists.
#![forbid(unsafe_code)]

mod access;
mod command;
mod event;
mod key;
mod session;
mod step;
#[cfg(test)]
mod tests;

pub use access::{Access, Admission, Deny};
pub use command::{COMMANDS, Command, CommandSpec, is_control};
pub use event::{Closed, Effect, Ended, Event, Start};
pub use key::{GroupSessions, Scope, SessionKey, ThreadSessions};
pub use session::{Answered, Phase, Rules, Session, TurnInHand, Waiting};
