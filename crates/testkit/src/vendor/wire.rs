//! The lines of JSON that a loopback account speaks, written down from its guide and not shared with
//! it: a change of one end has to be noticed.

use serde::{Deserialize, Serialize};

/// The longest line taken from a gateway.
pub(super) const LONGEST_LINE: usize = 1024 * 1024;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromGateway {
    Hello(Hello),
    Ack(u64),
}

#[derive(Debug, Deserialize)]
pub(super) struct Hello {
    pub(super) role: Role,
    #[serde(default)]
    pub(super) cursor: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    Events,
    Acts,
}

/// Something that happened in a chat, as a gateway is told about it.
#[derive(Debug, Clone, Serialize)]
pub struct Happened {
    /// Counts up from one without gaps.
    pub number: u64,
    /// The same for every delivery.
    pub id: String,
    /// The chat.
    pub chat: String,
    /// Who.
    pub sender: String,
    /// Whether several people are in the chat.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub group: bool,
    /// What they said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The choice they pressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub press: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Request {
    pub(super) id: String,
    pub(super) chat: String,
    pub(super) act: WireAct,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WireAct {
    Post {
        text: String,
        #[serde(default)]
        choices: Vec<Choice>,
    },
    Edit {
        message: String,
        text: String,
    },
}

/// An answer that a post offers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Choice {
    /// What is sent back when it is pressed.
    pub id: String,
    /// What people read.
    pub label: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer<'a> {
    Done { message: &'a str },
    Throttled { seconds: u64 },
    Gone(&'a str),
    Rejected(&'a str),
}
