//! Telegram, Discord and Slack as far as a gateway can tell: each speaks the vendor's documented wire
//! format on a port of its own, keeps the truth about what people can read, refuses what the vendor
//! refuses, and misbehaves when it is told to. The platforms' own tests and the run of the real binary
//! with all three talk to the same ones.
#![allow(clippy::unwrap_used, reason = "whoever asks a vendor for nonsense fails a test")]

mod calls;
pub mod discord;
mod record;
pub mod slack;
pub mod telegram;

pub use calls::{Act, Call, Calls, Verb};

use crate::scripted::{Fault, Reply};

/// Meets every post with this answer and does nothing.
fn meets_posts_with(reply: Reply) -> impl FnMut(&Act) -> Option<Fault> + Send + 'static {
    move |act| (act.verb == Verb::Post).then(|| Fault::Instead(reply.clone()))
}
