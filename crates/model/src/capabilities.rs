//! What a platform can do, as data. `lower` reads it, the documentation is made from it, the agent
//! is told it, and the contract suite holds a platform to it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Everything the gateway needs to know before it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// How long one message may be.
    pub text: TextLimit,
    /// What the platform makes of Markdown.
    pub markup: Markup,
    /// Whether a message of ours can be changed.
    pub edits: Edits,
    /// Whether an answer can be shown while it grows.
    pub drafts: Drafts,
    /// Whether a message of ours can be removed.
    pub deletes: Deletes,
    /// How a question offers its answers.
    pub choices: Choices,
    /// Whether we can react to a message.
    pub reactions: Reactions,
    /// Whether we can show on a message how far its answer is.
    pub marks: Marks,
    /// Whether we can say something in a chat that only one person there reads.
    pub whispers: Whispers,
    /// How much may be sent in how much time.
    pub pace: Pace,
    /// Whether people can see that we are working.
    pub typing: Typing,
    /// Which files can be sent.
    pub files: Files,
    /// How long after a message an answer is accepted, where that is limited.
    pub reply_within: Option<Duration>,
    /// Whether sending the same id twice shows one message.
    pub idempotency: Idempotency,
}

impl Capabilities {
    /// The least that a platform can do: short plain text, once.
    pub const PLAIN: Self = Self {
        text: TextLimit { max: 2000, unit: Unit::Chars },
        markup: Markup::Plain,
        edits: Edits::Never,
        drafts: Drafts::Never,
        deletes: Deletes::Never,
        choices: Choices::Numbered,
        reactions: Reactions::Never,
        marks: Marks::Never,
        whispers: Whispers::Never,
        pace: Pace::FREE,
        typing: Typing::Never,
        files: Files::Never,
        reply_within: None,
        idempotency: Idempotency::None,
    };
}

/// The length of one message in the platform's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextLimit {
    /// How many units fit.
    pub max: u32,
    /// What is counted.
    pub unit: Unit,
}

/// What a platform counts when it counts text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// UTF-8 bytes.
    Bytes,
    /// UTF-16 code units.
    Utf16,
    /// Unicode scalar values.
    Chars,
}

/// What a platform makes of Markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Markup {
    /// Nothing: marks would be shown as characters.
    Plain,
    /// The platform takes CommonMark and shows it formatted.
    Markdown,
    /// Text beside a list of what is formatted in it, as Telegram takes it.
    Entities,
    /// Markdown as Discord reads it.
    Discord,
    /// `mrkdwn`, as Slack reads it.
    Mrkdwn,
    /// HTML.
    Html,
}

/// Whether a message of ours can be changed after it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edits {
    /// Never.
    Never,
    /// Yes, at most this often per chat.
    Every(Duration),
}

/// Whether an answer can be shown while it grows without being a message yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Drafts {
    /// No; edits are used instead where they exist.
    Never,
    /// Yes, at most this often per chat.
    Every(Duration),
}

/// Whether a message of ours can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deletes {
    /// Never.
    Never,
    /// At any time.
    Anytime,
}

/// How a question offers its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choices {
    /// As a numbered list in the text; the person answers with the number.
    Numbered,
    /// As buttons.
    Buttons {
        /// How many fit under one message. More than that become a numbered list.
        max: u8,
        /// How many bytes of a choice's id one of them carries. What is longer travels as its digest.
        id: u16,
    },
}

/// Whether we can react to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reactions {
    /// Never.
    Never,
    /// With any one emoji.
    Emoji,
}

/// Whether we can show on a message how far its answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Marks {
    /// Never.
    Never,
    /// On messages of people.
    Shown,
}

/// Whether we can say something in a chat that only one person there reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whispers {
    /// Never: everybody reads everything.
    Never,
    /// Yes. It cannot be changed, removed or found again, and may not reach who is away.
    Shown,
}

/// How much a platform lets us send in how much time. Previews and answers share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// In all chats of the account together.
    pub account: Option<Bucket>,
    /// In one chat.
    pub chat: Option<Bucket>,
    /// Changes to messages in all chats of the account together, where they are counted apart. A word to
    /// wait with one of them is then about all of them.
    pub edits: Option<Bucket>,
}

impl Pace {
    /// As much as one likes.
    pub const FREE: Self = Self { account: None, chat: None, edits: None };
}

/// So many acts at once, and so many more as time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// How many may be sent at once after a rest.
    pub burst: u32,
    /// How long it takes until one more may be sent.
    pub every: Duration,
}

/// Whether people can see that we are working on an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Typing {
    /// Never.
    Never,
    /// Yes; it fades after this long and has to be repeated.
    Fades(Duration),
    /// Yes; it stays until something is posted or it is taken back, and fades after this long.
    Stays(Duration),
}

impl Typing {
    /// How long it can be seen.
    pub fn time(self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::Fades(after) | Self::Stays(after) => Some(after),
        }
    }
}

/// Which files can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// None.
    Never,
    /// Files of up to this many bytes.
    UpTo(u64),
}

/// Whether sending the same id twice shows one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idempotency {
    /// No: a resend whose first try may have arrived has to be marked.
    None,
    /// Yes, for this long after the first try.
    Keyed(Duration),
}

/// Whether a platform's ids are needed as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ids {
    /// They are, for example to mention somebody.
    #[default]
    Needed,
    /// Nothing is lost when the model is not shown them.
    Hideable,
}
