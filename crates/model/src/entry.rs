//! What a conversation consists of, once and for good.

use serde::{Deserialize, Serialize};

use crate::{
    Approval, Author, CallId, Choice, Cost, Digest, Failure, FileRef, MessageId, OutboundId,
    Sender, Seq, Timestamp, TurnId,
};

/// One entry of a transcript. Entries are appended, never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its place in the session, counting from one.
    pub number: u32,
    /// When it was recorded.
    pub at: Timestamp,
    /// The turn it belongs to; none for what was said outside a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// What it says.
    pub body: EntryBody,
    /// Why the gateway said something else than an answer, where somebody may ask for that later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<Because>,
    /// What it is about besides, where neither its turn nor the moment tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
    /// When its turn was taken up again by another run, in the first entry since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Timestamp>,
}

/// What an entry is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// What arrived in this row of the journal: it is answered later than it was taken in, or heard by a voice.
    Row(Seq),
    /// This turn, which the end of a run leaves to the next one.
    Left(TurnId),
    /// This turn, which had done nothing yet and is taken again with the rest of what began it.
    Again(TurnId),
}

/// Why the gateway says something that is no answer, or not a whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// The command is for administrators, and whoever gave it is none.
    NotAllowed,
    /// There is no such command.
    NoSuchCommand,
    /// A hook decided about the command.
    Hook,
    /// What was to be done needs somebody's approval; the digest of what exactly that is.
    Approval(Digest),
    /// Somebody asked it to stop.
    Stopped,
    /// It took too long.
    TimedOut,
    /// Nothing was heard of it for too long.
    Silent,
    /// The model kept calling tools.
    TooManySteps,
    /// A budget is used up.
    OverBudget,
    /// The model gave no usable answer.
    Model,
    /// Who was being answered said something else.
    Interrupted,
    /// A restart cut it off, too long ago to go on.
    CutOff,
}

impl From<&Failure> for Because {
    fn from(failure: &Failure) -> Self {
        match failure {
            Failure::Stopped => Self::Stopped,
            Failure::TimedOut { .. } => Self::TimedOut,
            Failure::Silent { .. } => Self::Silent,
            Failure::TooManySteps { .. } => Self::TooManySteps,
            Failure::OverBudget(_) => Self::OverBudget,
            Failure::Model(_) => Self::Model,
        }
    }
}

/// What an entry says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryBody {
    /// A person spoke.
    Said {
        /// Who.
        from: Sender,
        /// What.
        text: String,
        /// Files sent along.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileRef>,
        /// What the model reads in place of `text`, where that differs: who said it, what it answers,
        /// what went before. Written once, so that a prompt's beginning stays the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        heard: Option<String>,
        /// The platform's id of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
        /// Who said it first, when it was passed on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forwarded: Option<Author>,
    },
    /// A person typed something that is not for the model: a command, or the answer to a question,
    /// which reaches the model as the result of the call that asked.
    Aside {
        /// Who.
        from: Sender,
        /// What.
        text: String,
        /// Files sent along.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileRef>,
        /// The platform's id of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
    },
    /// The model finished one step: text, calls, or both.
    Answered {
        /// The visible text.
        text: String,
        /// Files the agent sends along.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileRef>,
        /// Tools it wants called before it goes on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// What the provider wants to see again verbatim, such as signed reasoning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<String>,
        /// What the step used.
        #[serde(default)]
        usage: Usage,
        /// What the step cost.
        #[serde(default = "unknown_cost")]
        cost: Cost,
        /// How it went out; none for a step that was followed by tool calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<OutboundId>,
        /// Whether it is all that was to be said.
        #[serde(default, skip_serializing_if = "Extent::is_whole")]
        extent: Extent,
    },
    /// A tool returned.
    Returned {
        /// The call it answers.
        call: CallId,
        /// Result as the model reads it.
        output: String,
        /// Files that go to the person with the answer.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileRef>,
        /// Whether the tool says it went wrong.
        #[serde(default)]
        failed: bool,
    },
    /// The gateway said something itself: a command's answer, an error, a question. The model does
    /// not see it.
    Noticed {
        /// What it said.
        text: String,
        /// Answers it offered.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        choices: Vec<Choice>,
        /// Files that went along.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileRef>,
        /// How it went out.
        sent: OutboundId,
    },
    /// What the model reads in place of older entries. They stay where they are; the newest summary
    /// counts.
    Summary {
        /// The last entry before the ones that it stands for; zero where it stands for all from the
        /// first.
        after: u32,
        /// The last entry that it stands for.
        upto: u32,
        /// What they said.
        text: String,
        /// What it used to write it.
        #[serde(default)]
        usage: Usage,
        /// What it cost to write it.
        #[serde(default = "unknown_cost")]
        cost: Cost,
    },
}

fn unknown_cost() -> Cost {
    Cost::UNKNOWN
}

/// A call of a tool, complete: a call cut off in the middle never becomes one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's name for this call.
    pub id: CallId,
    /// The tool.
    pub tool: String,
    /// A JSON object, as text, so that it goes back to the provider byte for byte.
    pub arguments: String,
}

/// Tokens, as the provider counted them, and what it did not come to count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Read, not counting what came from a cache.
    pub input: u64,
    /// Written, reasoning included.
    pub output: u64,
    /// Read from the provider's prompt cache.
    pub cache_read: u64,
    /// Written into the provider's prompt cache.
    pub cache_write: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
    /// Read and written, about, by answers that broke off before the provider counted them.
    #[serde(skip_serializing_if = "is_nought")]
    pub estimated: u64,
}

fn is_nought(tokens: &u64) -> bool {
    *tokens == 0
}

impl Usage {
    /// No tokens at all.
    pub const NONE: Self =
        Self { input: 0, output: 0, cache_read: 0, cache_write: 0, reasoning: 0, estimated: 0 };

    /// Everything that was read, from a cache or not: the size of the prompt, when it is of one step.
    pub const fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Everything that was read and written, as the provider counted it.
    pub const fn counted(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }

    /// Everything that was read and written.
    pub const fn total(&self) -> u64 {
        self.counted().saturating_add(self.estimated)
    }

    /// So much that nobody counted.
    pub fn estimate(tokens: u64) -> Self {
        Self { estimated: tokens, ..Self::default() }
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.reasoning += other.reasoning;
        self.estimated += other.estimated;
    }
}

/// Something the agent wants to know before it goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The tool call that asks; the answer becomes its result.
    pub call: CallId,
    /// What is asked.
    pub text: String,
    /// The answers offered; empty for a free answer.
    pub choices: Vec<Choice>,
    /// What happens if the answer is yes, where the question is about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
}

/// How much of an answer there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// All of it.
    #[default]
    Whole,
    /// It broke off; the text says why, where there is any.
    BrokenOff,
}

impl Extent {
    fn is_whole(&self) -> bool {
        *self == Self::Whole
    }
}
