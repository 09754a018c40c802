//! The simulator: the gateway as it is, in one thread and in virtual time, in a world where everything
//! else is made here, remembers the truth, and goes wrong by chance that can be repeated.

mod check;
pub mod crash;
mod disk;
mod files;
mod ledger;
mod log;
mod model;
mod points;
mod seed;
mod stage;
mod time;
mod vendor;
mod world;

use crate::Dice;

/// Somebody who answers what others were asked.
const MEDDLER: &str = "meddler";

pub use check::{Circumstances, Invariant, Origin, Problem, problems};
pub use disk::{Disk, Moody, Verb};
pub use files::Files;
pub use ledger::{Approved, Decided, Ledger, Row};
pub use log::{Keeps, Log};
pub use model::{Asking, Deed, Model, Moods};
pub use points::{Alive, Moment, Points};
pub use seed::{Backing, Outcome, run};
pub use stage::{Stage, agent, echo, finished};
pub use time::{Time, WallClock};
pub use vendor::{
    Conduct, Habits, HandedOver, Handing, Hears, MARK, Mail, Reach, SHORT_MARK, Shown, Truth,
    Vendor,
};
pub use world::{EDITING, End, Ground, Life, Opens, SIMPLE, World, key, keyed};
