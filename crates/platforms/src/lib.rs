//! Every built-in platform, a folder each, and the one list of them.
//!
//! A platform translates: bytes of its vendor to events, acts to bytes of its vendor. None of them
//! knows sessions, the store, the agent or another platform.
#![forbid(unsafe_code)]

pub mod discord;
pub mod loopback;
pub mod slack;
pub mod telegram;
pub mod terminal;
pub mod web;
mod wire;

use talaria_platform::Registration;

/// Every platform there is.
pub const ALL: &[Registration] = &[
    Registration::of::<web::Web>(),
    Registration::of::<terminal::Terminal>(),
    Registration::of::<loopback::Loopback>(),
    Registration::of::<discord::Discord>(),
    Registration::of::<slack::Slack>(),
    Registration::of::<telegram::Telegram>(),
];
