//! What a vendor was asked for, from the moment it had read the question to the end of its answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What a vendor is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Act {
    /// What is to be done.
    pub verb: Verb,
    /// Where; empty where it is about no chat.
    pub chat: String,
    /// The message that it is done to.
    pub message: Option<String>,
    /// What people are to read.
    pub text: String,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Verb {
    /// A message is to appear.
    Post,
    /// A message is to change.
    Edit,
    /// Something is to be shown that is not a message yet.
    Draft,
    /// A message is to disappear.
    Delete,
    /// A sign is to be given: typing, a status, a reaction.
    Sign,
    /// Whoever asks wants to know what has happened.
    Listen,
    /// Anything else.
    #[default]
    Other,
}

/// Something that a vendor was asked for.
#[derive(Debug, Clone)]
pub struct Call {
    /// What.
    pub act: Act,
    /// When it was read.
    pub at: Instant,
    /// When the answer was on its way, or whoever asked had gone.
    pub ended: Option<Instant>,
    /// What was answered; none where nobody got an answer.
    pub status: Option<u16>,
    /// How long whoever asked was told to wait.
    pub wait: Option<Duration>,
}

/// Everything that a vendor was asked for, in order. Clones are the same list.
#[derive(Debug, Clone, Default)]
pub struct Calls(Arc<Mutex<Vec<Call>>>);

/// A call that is not over. Dropping it ends it without an answer.
#[derive(Debug)]
pub(crate) struct Ongoing {
    calls: Calls,
    place: usize,
}

impl Calls {
    /// Everything so far.
    pub fn all(&self) -> Vec<Call> {
        self.lock().clone()
    }

    /// Everything behind the first so many.
    pub fn since(&self, place: usize) -> Vec<Call> {
        self.lock().get(place..).unwrap_or_default().to_vec()
    }

    /// How many there are so far.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn begin(&self, act: Act) -> Ongoing {
        let mut calls = self.lock();
        calls.push(Call { act, at: Instant::now(), ended: None, status: None, wait: None });
        Ongoing { place: calls.len() - 1, calls: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ongoing {
    /// Ends it with an answer.
    pub(crate) fn answered(self, status: u16, wait: Option<Duration>) {
        let mut calls = self.calls.lock();
        (calls[self.place].status, calls[self.place].wait) = (Some(status), wait);
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.calls.lock()[self.place].ended = Some(Instant::now());
    }
}
