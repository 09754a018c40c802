//! What travels over the local socket between the gateway and a terminal.
//!
//! Requests are JSON. The stream is one JSON event per line: the newest entries, a hello, and then
//! what happens. Both ends use these types; an event that the other end does not know is skipped.

use serde::{Deserialize, Serialize};
use talaria_model::{ChatId, Choice, ChoiceId, EventId, FileRef, OutboundId, Timestamp};

/// Grows when a terminal of one version would misunderstand a gateway of another.
pub const PROTOCOL: u32 = 1;

/// The longest name of a conversation.
pub const LONGEST_NAME: usize = 64;

/// Whether a conversation can have this name: one that is the same in an address, on a command line
/// and in a file name.
pub fn is_conversation_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(plain)
}

/// The longest text of one message, in bytes. The gateway takes no longer ones from anybody.
pub const LONGEST_TEXT: usize = 256 * 1024;

/// Files that one message may carry.
pub const FILES_PER_MESSAGE: usize = 10;

/// The largest file, in bytes.
pub const LARGEST_FILE: u64 = 25 * 1024 * 1024;

/// The most entries of the past that a stream begins with.
pub const LONGEST_HISTORY: usize = 200;

/// The longest line of the stream, in bytes. Longer ones are neither sent nor read.
pub const LONGEST_LINE: usize = 8 * 1024 * 1024;

/// A message. The id is the terminal's own: the same id is the same message, however often it is
/// sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Say {
    /// Made up by the terminal.
    pub id: EventId,
    /// As typed.
    pub text: String,
    /// As the gateway named them when they were uploaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
}

/// One of the offered answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Press {
    /// Made up by the terminal.
    pub id: EventId,
    /// Which answer.
    pub choice: ChoiceId,
}

/// A wish to stop the running turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// Made up by the terminal.
    pub id: EventId,
}

/// It is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Heard {
    /// For the first time.
    Recorded,
    /// It was there already.
    Repeated,
}

/// Why a request was refused, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// One short sentence.
    pub error: String,
}

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its name.
    pub id: ChatId,
    /// What it is about, in a few words.
    pub title: String,
    /// When something happened in it last.
    pub updated: Timestamp,
    /// What it is doing.
    pub doing: Doing,
}

/// What a conversation is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// A turn is running or a question is open.
    Busy,
    /// Nothing.
    Idle,
}

/// One line of the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The past is told; what follows happens now.
    Hello {
        /// What the gateway speaks.
        protocol: u32,
        /// What the conversation is doing.
        doing: Doing,
    },
    /// A person said something.
    Said(Said),
    /// What an answer looks like so far, whole each time. Its `Posted` replaces it.
    Draft {
        /// The delivery that it will be.
        id: OutboundId,
        /// Markdown.
        text: String,
        /// What the agent is doing at the moment, when it is not writing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        doing: Option<String>,
    },
    /// The gateway said something.
    Posted(Posted),
    /// The conversation does something else, although nothing was said.
    Turned {
        /// What.
        doing: Doing,
    },
}

/// What an answer looks like so far, as one text: what is written and, under it, what the agent is
/// doing.
pub fn drafted(text: &str, doing: Option<&str>) -> String {
    match (text.trim_end(), doing) {
        (text, None) => text.to_owned(),
        ("", Some(doing)) => format!("*{doing}…*"),
        (text, Some(doing)) => format!("{text}\n\n*{doing}…*"),
    }
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The id that the terminal gave it; none where that was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EventId>,
    /// Its place in the past; none while it happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// As typed.
    pub text: String,
    /// Files sent along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
}

/// What the gateway said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    /// Names it for good. It may come twice, and is shown once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<OutboundId>,
    /// Its place in the past; none while it happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// What kind of thing it is.
    pub kind: Kind,
    /// Markdown.
    pub text: String,
    /// Files that go along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
    /// Answers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// What the conversation is doing after it.
    pub doing: Doing,
}

/// What kind of thing the gateway said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The agent speaks.
    Answer,
    /// The agent asks and waits.
    Question,
    /// A turn ended without an answer, and this is why.
    Failure,
    /// The gateway speaks for itself: the answer to a command.
    Notice,
}
