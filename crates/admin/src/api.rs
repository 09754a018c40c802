//! What the command line asks the gateway and what it is told. Both ends use these types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the gateway is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The version that is running.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// When it started, in UTC.
    pub started: String,
    /// For how many seconds it has been running.
    pub uptime_seconds: u64,
    /// The model that answers.
    pub model: String,
    /// Where the HTTP listener is.
    pub http: String,
    /// The accounts.
    pub accounts: Vec<Account>,
    /// Conversations known.
    pub sessions: u64,
    /// Sessions that are in memory at the moment.
    pub sessions_in_memory: u64,
    /// Turns that are not over.
    pub turns_in_hand: u64,
    /// Events in the journal that no session has taken yet.
    pub unread: u64,
    /// Events that were set aside because they kept failing.
    pub quarantined: u64,
    /// Events that policy did not let in and that are written down.
    pub denied: u64,
    /// Events of strangers since the start of which nothing is written down, because there were too many
    /// in a day.
    #[serde(default)]
    pub denied_without_a_trace: u64,
    /// Messages that still have to be delivered.
    pub undelivered: u64,
    /// Messages that could not be delivered.
    pub failed: u64,
    /// The newest of those.
    #[serde(default)]
    pub losses: Vec<Loss>,
    /// Entries in all transcripts.
    pub entries: u64,
}

/// How an account is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its platform.
    pub platform: String,
    /// `connecting`, `connected`, `waiting` or `refused`.
    pub state: String,
    /// Why it does not work, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// When it was last heard, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<String>,
}

/// A message that could not be delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// The account it was to be sent on.
    pub account: String,
    /// The chat it was for.
    pub chat: String,
    /// When it was decided, in UTC.
    pub at: String,
    /// Why it could not be delivered.
    pub reason: String,
    /// Whether a notice about it was sent on its way there, or it is such a notice itself.
    pub told: bool,
}

/// A conversation in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Its present id.
    pub id: String,
    /// Its key, as it is printed everywhere.
    pub key: String,
    /// The account it is on.
    pub account: String,
    /// The chat it is in.
    pub chat: String,
    /// What it is about.
    pub title: String,
    /// When something happened last, in UTC.
    pub updated: String,
    /// Whether a turn is in hand.
    pub busy: bool,
    /// Turns so far.
    pub turns: u32,
    /// Tokens read, caches included.
    pub tokens_in: u64,
    /// Tokens written.
    pub tokens_out: u64,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Its place in the whole archive.
    pub position: u64,
    /// The life of the conversation it belongs to.
    pub session: String,
    /// When, in UTC.
    pub at: String,
    /// Who: a sender, `agent`, `tool` or `gateway`.
    pub who: String,
    /// What.
    pub text: String,
}

/// Something found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// The conversation it is in.
    pub title: String,
    /// That conversation's key.
    pub key: String,
    /// The entry.
    pub entry: Entry,
    /// The text around the match, the match between `[` and `]`.
    pub excerpt: String,
}

/// What changed when the configuration was read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reloaded {
    /// Settings that apply from now on.
    pub live: Vec<String>,
    /// Settings that apply after a restart.
    pub after_restart: Vec<String>,
    /// What is odd about the file.
    pub warnings: Vec<String>,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// What is wrong.
    pub problem: String,
}
