//! What a vendor knows to have happened.

use std::collections::HashMap;

use tokio::time::Instant;

use super::check::Violation;
use super::wire::{Choice, Happened};
use crate::echo::{Token, complete, mentioned};

/// What a resend looks like to the person who reads it.
const MARK: &str = "sent again after an interruption";

/// Everything that happened at a vendor, in order. It outlives every gateway that connects.
#[derive(Debug, Default)]
pub struct Truth {
    pub(super) events: Vec<Happened>,
    pub(super) said: HashMap<Token, Said>,
    pub(super) told: u64,
    pub(super) acked: u64,
    pub(super) connections: u64,
    pub(super) acts: Vec<Act>,
    pub(super) shown: Vec<Shown>,
    pub(super) seen_on_the_wire: Vec<Violation>,
    pub(super) by_key: HashMap<String, usize>,
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The number of the event.
    pub number: u64,
    /// Where.
    pub chat: String,
    /// What names it in the answer.
    pub token: Token,
}

/// Something a vendor was asked to do.
#[derive(Debug, Clone)]
pub struct Act {
    /// Its place among all acts, from zero.
    pub order: usize,
    /// When it arrived.
    pub at: Instant,
    /// The gateway's name for it.
    pub id: String,
    /// Where.
    pub chat: String,
    /// In which thread.
    pub thread: Option<String>,
    /// The message it changes; none when it is a new one.
    pub edits: Option<String>,
    /// The text.
    pub text: String,
    /// The choices it offers.
    pub choices: Vec<Choice>,
}

/// A message as people see it.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The vendor's name for it.
    pub message: String,
    /// Where.
    pub chat: String,
    /// In which thread.
    pub thread: Option<String>,
    /// What it says.
    pub text: String,
    /// The choices under it.
    pub choices: Vec<Choice>,
    /// How often it was changed.
    pub edits: usize,
}

impl Shown {
    /// Whether it says of itself that it may be a repeat.
    pub fn is_marked(&self) -> bool {
        self.text.contains(MARK)
    }
}

impl Truth {
    /// The highest number that was written to a gateway.
    pub fn told(&self) -> u64 {
        self.told
    }

    /// The highest number that a gateway has acknowledged.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// The highest number there is.
    pub fn happened(&self) -> u64 {
        self.events.len() as u64
    }

    /// How often a gateway connected to hear.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// What was noticed about the gateway while it was connected, whatever it showed.
    pub fn seen_on_the_wire(&self) -> &[Violation] {
        &self.seen_on_the_wire
    }

    /// What the vendor was asked to do.
    pub fn acts(&self) -> &[Act] {
        &self.acts
    }

    /// What people see, in the order in which it appeared.
    pub fn shown(&self) -> &[Shown] {
        &self.shown
    }

    /// The chats in which somebody said something that has to be answered.
    pub fn chats(&self) -> impl Iterator<Item = &str> {
        self.said.values().map(|said| said.chat.as_str())
    }

    /// What people see in one chat.
    pub fn shown_in<'a>(&'a self, chat: &'a str) -> impl Iterator<Item = &'a Shown> {
        self.shown.iter().filter(move |shown| shown.chat == chat)
    }

    /// Whether a whole answer to this is visible.
    pub fn is_answered(&self, token: Token) -> bool {
        self.shown.iter().any(|shown| complete(&shown.text).contains(&token))
    }

    /// Whether a whole answer to everything that was said is visible.
    pub fn is_everything_answered(&self) -> bool {
        let answered: std::collections::HashSet<Token> =
            self.shown.iter().flat_map(|shown| complete(&shown.text)).collect();
        self.said.keys().all(|token| answered.contains(token))
    }

    /// Whether a beginning of an answer is visible.
    pub fn is_begun(&self, token: Token) -> bool {
        self.shown.iter().any(|shown| mentioned(&shown.text).contains(&token))
    }

    /// How many visible messages say that they may be repeats.
    pub fn marked(&self) -> usize {
        self.shown.iter().filter(|shown| shown.is_marked()).count()
    }
}
