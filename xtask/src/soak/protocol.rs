//! The lines between the supervisor, which kills, and the driver, which keeps the truth.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What the supervisor tells the driver.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// A gateway is about to be started.
    Begin,
    /// Say when this happens next.
    Await(Moment),
    /// The gateway is dead.
    Killed,
    /// Nothing more goes wrong from here on, and nobody says anything new.
    Heal,
    /// Say when everything has been answered that ever will be.
    Settle,
    /// Say what came of it all; the gateway has ended and its home is here.
    Judge(PathBuf),
}

/// What the driver tells the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// Everything a gateway connects to is there; this is its configuration.
    Open(String),
    /// It has happened.
    Seen,
    /// The world has come to rest, or has not and this is what it waits for.
    Settled(Result<(), String>),
    /// What came of it all.
    Verdict(Verdict),
}

/// What can be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Moment {
    /// An act has arrived at a platform.
    Sent,
    /// The model has begun a long answer.
    Streaming,
    /// Somebody says several things at once.
    Bursting,
}

/// What came of it all.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// Said to be answered.
    pub(crate) messages: usize,
    /// Whole answers that people can read.
    pub(crate) answers: usize,
    /// Commands, presses and the like.
    pub(crate) others: usize,
    /// Messages that say of themselves that they may be repeats.
    pub(crate) marked: usize,
    /// Messages that were set aside, with a notice, because the gateway died three times over them.
    pub(crate) set_aside: usize,
    /// Parcels that were tried too often; each had been seen by then.
    pub(crate) given_up: usize,
    /// What platforms and the model were made to do wrong.
    pub(crate) faults: usize,
    /// From each start to the first act of that life.
    pub(crate) recoveries: Vec<Duration>,
    /// Promises that were not kept, each with its history.
    pub(crate) violations: Vec<String>,
}
