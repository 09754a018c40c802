//! The lines of JSON, as both ends write them.

use serde::{Deserialize, Serialize};
use talaria_model::{Addressed, ChatKind, KnownBy, Overheard, Quote, SenderKind, Shown};

/// The longest line either end may send.
pub(crate) const LONGEST_LINE: usize = 1024 * 1024;

/// What the gateway says on an events connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromGateway {
    /// The first line of every connection.
    Hello(Hello),
    /// Everything up to this number is safe.
    Ack(u64),
}

/// The first line of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// What the connection is for.
    pub role: Role,
    /// Which account connects.
    pub account: String,
    /// The number of the last event that is safe; zero when there is none.
    #[serde(default)]
    pub cursor: u64,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The vendor tells what happens.
    Events,
    /// The gateway asks the vendor to act.
    Acts,
}

/// Something that happened. Fields that are not known here are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Counts up without gaps.
    pub number: u64,
    /// The same for every delivery of the same event.
    pub id: String,
    /// The chat.
    pub chat: String,
    /// How many people can be in it.
    #[serde(default = "between_two")]
    pub kind: ChatKind,
    /// The thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// What else is known about the chat.
    #[serde(default)]
    pub place: Place,
    /// Who.
    pub sender: String,
    /// The name that others see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A second id of the same sender that outlives the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alt: Option<String>,
    /// What the sender is.
    #[serde(default)]
    pub is: SenderKind,
    /// What they said.
    #[serde(default)]
    pub text: String,
    /// Whom they said it to, in a chat of several people.
    #[serde(default)]
    pub addressed: Addressed,
    /// The choice they pressed, instead of saying something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub press: Option<String>,
    /// Their message as the vendor names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The message that theirs answers, as the vendor names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// What that message said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<Quote>,
    /// What others said in the chat since the gateway was last spoken to, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overheard: Vec<Overheard>,
    /// What the agent is to know in this chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_prompt: Option<String>,
    /// Skills that a new conversation in this chat begins with, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
}

fn between_two() -> ChatKind {
    ChatKind::Dm
}

/// What is known about a chat beside its id. All of it may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Place {
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it says it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The chat that a thread belongs to, where the thread is a chat of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The workspace or server that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// A second id of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alt: Option<String>,
    /// What tells it from other direct chats.
    pub known_by: KnownBy,
}

/// Something the vendor is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActRequest {
    /// The same for every try of the same act.
    pub id: String,
    /// Where.
    pub chat: String,
    /// In which thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// What.
    pub act: WireAct,
}

/// What the vendor is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireAct {
    /// Say something new.
    Post {
        /// Markdown.
        text: String,
        /// Answers to choose from.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        choices: Vec<WireChoice>,
        /// Files by name and size.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<WireFile>,
    },
    /// Change what was said.
    Edit {
        /// The vendor's name for the message.
        message: String,
        /// The whole new text.
        text: String,
    },
}

/// An answer to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireChoice {
    /// What to send back as `press`.
    pub id: String,
    /// What people read.
    pub label: String,
}

/// A file that goes along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireFile {
    /// The digest of its bytes.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its media type.
    pub mime: String,
    /// Bytes.
    pub size: u64,
    /// How it is to be shown.
    #[serde(default, skip_serializing_if = "Shown::is_natural")]
    pub shown: Shown,
}

/// What the vendor answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActReply {
    /// It is done.
    Done {
        /// The vendor's name for what was created.
        #[serde(default)]
        message: Option<String>,
    },
    /// Later.
    Throttled {
        /// How much later.
        seconds: u64,
    },
    /// The chat is gone.
    Gone(String),
    /// Never.
    Rejected(String),
}
