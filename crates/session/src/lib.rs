//! The heart, pure: which session an event belongs to, who is heard, and what a session does with
//! each event it is told.
//!
//! Nothing here sees a runtime, a socket, a clock, a random number or a database. Time is an
//! argument, decisions are values, and a test compares lists.
#![forbid(unsafe_code)]

mod access;
pub mod budget;
mod command;
mod event;
mod gate;
mod heard;
mod key;
mod lapse;
mod life;
pub mod pairing;
mod people;
pub mod reply;
mod reset;
mod rules;
mod session;
mod step;
#[cfg(test)]
mod tests;
mod voice;

pub use access::{
    Access, Authority, Caller, Deed, Footing, Gating, Permission, Policy, Reach, Room, RoomRules,
    Rule, Strangers, Surface, Tiers, Unnamed, Whose, permitted,
};
pub use command::{
    COMMANDS, Category, Command, CommandSpec, Given, Meant, Quick, QuickCommand, Shown, Typed,
    WhileRunning, Who, acts_at_once, divide, is_answer, is_control, meant,
};
pub use event::{
    Attest, Attested, Closed, Effect, Ended, Event, Farewell, PairWish, Passed, Past, Pause,
    Recalled, Replacement, Request, Retired, Start, Told,
};
pub use gate::{
    Attention, Bots, Bystanders, Chatter, Elsewhere, Gate, Mention, Part, Places, Threads,
};
pub use key::{GroupSessions, Scope, SessionKey, ThreadSessions};
pub use lapse::Lapse;
pub use life::{Activity, Continuity, During, Happening, Life, ResetReason, ResumeReason};
pub use people::{Person, Role};
pub use reset::{Background, Expiry, Notify, ResetMode, ResetPolicy, expired};
pub use rules::{Acks, AfterStop, Approvals, Approvers, Asking, Busy, Edits, Rules};
pub use session::{
    Answered, ApprovedHere, Asked, Beside, Copies, Footer, Joins, Mark, Note, Origin, Paid, Phase,
    Preferences, Session, Speaker, TurnInHand, Verbosity, Waiting,
};
pub use step::{Begun, Unsaid};
pub use voice::{Aloud, Echo, Medium, Voice};
