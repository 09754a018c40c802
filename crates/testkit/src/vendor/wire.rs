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
    /// What kind of chat it is, where more than two are in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// The thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// What else is known of the chat.
    #[serde(skip_serializing_if = "Place::is_empty")]
    pub place: Place,
    /// Who.
    pub sender: String,
    /// The name that others see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What they said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The choice they pressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub press: Option<String>,
    /// What the message said that theirs answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<Quote>,
    /// What others said in the chat that was not for the gateway.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overheard: Vec<Overheard>,
}

/// What is known of a chat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
}

impl Place {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A message that another one answers.
#[derive(Debug, Clone, Serialize)]
pub struct Quote {
    /// What it said.
    pub text: String,
    /// Whose it is.
    pub author: Author,
    /// By which id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
}

/// Whose message is quoted.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The gateway's.
    Us,
    /// Somebody's.
    Named(String),
}

/// Something that was not said to the gateway.
#[derive(Debug, Clone, Serialize)]
pub struct Overheard {
    /// Who said it.
    pub name: String,
    /// What.
    pub text: String,
    /// By which id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
}

/// Somebody by their id.
#[derive(Debug, Clone, Serialize)]
pub struct By {
    /// It.
    pub id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Request {
    pub(super) id: String,
    pub(super) chat: String,
    #[serde(default)]
    pub(super) thread: Option<String>,
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
