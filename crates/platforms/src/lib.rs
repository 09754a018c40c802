//! Every built-in platform, a folder each, and the one list of them.
//!
//! A platform translates: bytes of its vendor to events, acts to bytes of its vendor. None of them
//! knows sessions, the store, the agent or another platform.
#![forbid(unsafe_code)]

pub mod loopback;
pub mod terminal;
pub mod web;

use talaria_platform::Registration;

/// Every platform there is.
pub const ALL: &[Registration] = &[
    Registration::of::<web::Web>(),
    Registration::of::<terminal::Terminal>(),
    Registration::of::<loopback::Loopback>(),
];
