//! What a session is.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use talaria_model::{
    Address, Answer, CallId, Message, Question, Sender, Seq, SessionId, Timestamp, TurnId, Usage,
};

use crate::SessionKey;

/// One conversation, whole: what is stored is exactly this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Which conversation.
    pub key: SessionKey,
    /// This life of it.
    pub id: SessionId,
    /// Lives so far.
    pub lives: u32,
    /// Where it was last heard.
    pub at: Address,
    /// What it is about, in a few words.
    pub title: String,
    /// What it is doing.
    pub phase: Phase,
    /// What was said and has to wait for the turn in hand.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub waiting: VecDeque<Waiting>,
    /// Turns taken in this life.
    pub turns: u32,
    /// Entries recorded in this life.
    pub entries: u32,
    /// Deliveries named in this life.
    pub deliveries: u32,
    /// Tokens used in this life.
    pub usage: Usage,
    /// When it began.
    pub begun: Timestamp,
    /// When something happened last.
    pub updated: Timestamp,
    /// What applies to it; from the configuration, not from storage.
    #[serde(skip)]
    pub rules: Rules,
}

/// What a session is doing. Exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing.
    Idle,
    /// The agent works on a turn.
    Thinking(TurnInHand),
    /// The agent waits for an answer.
    Asking {
        /// The turn that asks.
        hand: TurnInHand,
        /// What it asks.
        question: Question,
        /// Since when.
        since: Timestamp,
        /// When it goes on without an answer.
        expires: Timestamp,
    },
    /// The agent was told to stop and has not said yet that it has.
    Stopping(TurnInHand),
}

/// A turn that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnInHand {
    /// Which.
    pub turn: TurnId,
    /// Who asked.
    pub from: Sender,
    /// Where the answer goes.
    pub to: Address,
    /// The messages it answers.
    pub seqs: Vec<Seq>,
    /// Said while it ran; told to the agent, not yet part of the turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steers: Vec<Waiting>,
    /// Tool calls with effects that have been started and have not returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub started: Vec<CallId>,
    /// The answer to its last question, until the agent has reported what came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Answered>,
    /// The delivery that the next thing it says will have. Its preview has it already.
    pub delivery: u32,
    /// Deliveries it has made since it last took something up.
    #[serde(default)]
    pub spoken: u32,
    /// When it has to be over.
    pub deadline: Timestamp,
    /// How often the process died while it ran.
    #[serde(default)]
    pub deaths: u8,
}

/// A question and the answer it got. Kept because a process can die between the answer and the use
/// that the agent makes of it, and nobody answers the same question twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// What was asked.
    pub question: Question,
    /// What was answered.
    pub answer: Answer,
}

/// Something said that no turn has taken up yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Its place in the journal.
    pub seq: Seq,
    /// Who said it.
    pub from: Sender,
    /// Where.
    pub to: Address,
    /// What.
    pub message: Message,
}

/// What applies to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How long one turn may take, not counting the time it waits for a person.
    pub turn_limit: Duration,
    /// How long a question stays open.
    pub question_limit: Duration,
    /// How many messages a session holds before the rest wait in the journal.
    pub room: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            turn_limit: Duration::from_secs(30 * 60),
            question_limit: Duration::from_secs(24 * 60 * 60),
            room: 64,
        }
    }
}

impl Session {
    /// A session that begins.
    pub fn begin(key: SessionKey, at: Address, now: Timestamp, rules: Rules) -> Self {
        Self {
            id: mint(&key, 1, now),
            key,
            lives: 1,
            at,
            title: String::new(),
            phase: Phase::Idle,
            waiting: VecDeque::new(),
            turns: 0,
            entries: 0,
            deliveries: 0,
            usage: Usage::default(),
            begun: now,
            updated: now,
            rules,
        }
    }

    /// Another life: a new id, nothing remembered.
    pub(crate) fn begin_again(&mut self, now: Timestamp) {
        let lives = self.lives + 1;
        let fresh = Self::begin(self.key.clone(), self.at.clone(), now, self.rules);
        *self = Self { id: mint(&self.key, lives, now), lives, ..fresh };
    }

    /// The turn that is not over, if there is one.
    pub fn hand(&self) -> Option<&TurnInHand> {
        match &self.phase {
            Phase::Idle => None,
            Phase::Thinking(hand) | Phase::Stopping(hand) | Phase::Asking { hand, .. } => {
                Some(hand)
            }
        }
    }

    /// Whether it may be told that something more was said. An answer takes no room.
    pub fn has_room(&self) -> bool {
        if let Phase::Asking { .. } = self.phase {
            // The answer may stand behind what others say.
            return self.waiting.len() < 4 * self.rules.room;
        }
        let steers = self.hand().map_or(0, |hand| hand.steers.len());
        self.waiting.len() + steers < self.rules.room
    }

    /// When it has to be woken, if nothing else happens.
    pub fn wake_at(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Idle => None,
            Phase::Thinking(hand) | Phase::Stopping(hand) => Some(hand.deadline),
            Phase::Asking { expires, .. } => Some(*expires),
        }
    }
}

/// `YYYYMMDD_HHMMSS_<8 hex>`, in UTC. The hex part keeps apart what begins in the same second.
fn mint(key: &SessionKey, lives: u32, now: Timestamp) -> SessionId {
    let at = jiff::Timestamp::from_millisecond(now.as_millis()).unwrap_or_default();
    let mut hash = Fnv::default();
    hash.take(key.account.as_str());
    hash.take(key.kind.as_str());
    hash.take(key.chat.as_str());
    hash.take(key.thread.as_ref().map_or("", |id| id.as_str()));
    hash.take(key.member.as_ref().map_or("", |id| id.as_str()));
    hash.take(&lives.to_string());
    hash.take(&now.as_millis().to_string());
    let text = format!("{}_{:08x}", at.strftime("%Y%m%d_%H%M%S"), hash.folded());
    SessionId::new(text).expect("digits, hex and underscores are an id")
}

/// FNV-1a. Not for secrets: only to tell sessions apart.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn take(&mut self, text: &str) {
        // The 0xff between fields cannot occur in UTF-8, so no two lists of fields run together.
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn folded(&self) -> u32 {
        ((self.0 >> 32) ^ (self.0 & 0xffff_ffff)) as u32
    }
}
