//! What a turn is told and what it tells.

use serde::{Deserialize, Serialize};

use crate::{
    Address, CallId, ChoiceId, Consent, Cost, Digest, FileRef, Message, Question, Sender, Seq,
    ToolCall, Usage,
};

/// What a turn is told while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// More was said; take it into account at the next step. Boxed: every turn has room for many words
    /// and seldom hears one.
    Steer(Box<Steer>),
    /// The open question was answered.
    Answer {
        /// The call that asks it. An answer to another is none.
        to: CallId,
        /// How.
        answer: Answer,
        /// Files sent along with it.
        files: Vec<FileRef>,
    },
    /// End the turn as soon as possible.
    Stop,
}

/// Something that is said to a turn while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steer {
    /// Which journal row it is; comes back in `Took`.
    pub seq: Seq,
    /// Who said it.
    pub from: Sender,
    /// What was said.
    pub message: Message,
    /// What the model reads in place of the text, exactly as it will be recorded.
    pub heard: Option<String>,
}

/// What a turn is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// To answer what was said.
    #[default]
    Answer,
    /// To put a summary in place of what is old.
    Compress {
        /// What the summary must not lose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        focus: Option<String>,
    },
}

impl Task {
    /// Whether it is to answer.
    pub fn is_answer(&self) -> bool {
        *self == Self::Answer
    }
}

/// Whether somebody is there who can be asked during a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Attended {
    /// Yes.
    #[default]
    Yes,
    /// No: it runs in the background, and a question is answered with `Answer::Expired` at once.
    No,
}

/// What a turn is in the midst of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Nothing that must not be interrupted.
    #[default]
    Plain,
    /// Others work for it.
    SubWork,
    /// Writing a summary.
    Compression,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// One of the choices.
    Chosen(ChoiceId),
    /// In the person's own words.
    Said(String),
    /// Nobody answered in time.
    Expired,
    /// To an approval: yes, to exactly this.
    Approved {
        /// What may happen.
        digest: Digest,
        /// For how long that holds.
        consent: Consent,
    },
    /// To an approval: no.
    Denied {
        /// Why, in somebody's words; may be empty.
        reason: String,
    },
}

/// A call that is decided about without asking anybody, known by what would be asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unasked {
    /// What would be called.
    pub tool: String,
    /// Who does what with what, for whom and where.
    pub digest: Digest,
}

/// What happens in a turn. Each is made durable before the agent goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// The model finished a step that calls tools.
    Stepped {
        /// Text it said before calling.
        text: String,
        /// Files that go along with the text.
        files: Vec<FileRef>,
        /// The calls.
        calls: Vec<ToolCall>,
        /// To be shown to the provider again.
        reasoning: Option<String>,
        /// What it used.
        usage: Usage,
        /// What it cost.
        cost: Cost,
    },
    /// A tool with effects is about to start. After this is durable, it counts as started.
    Calling {
        /// The call.
        call: CallId,
        /// What it does that nobody has to be asked about.
        unasked: Option<Box<Unasked>>,
    },
    /// A tool returned.
    Called {
        /// The call.
        call: CallId,
        /// The result as the model reads it.
        output: String,
        /// Files that go to the person with the answer.
        files: Vec<FileRef>,
        /// What is to be said in other chats by it. It leaves with the result, or not at all.
        sends: Vec<Sending>,
        /// Whether the tool says it went wrong.
        failed: bool,
        /// What was not done, whoever would approve it.
        refused: Option<Box<Unasked>>,
    },
    /// The agent asks the person something and waits for `Word::Answer`.
    Asked(Question),
    /// Words said while the turn ran have become part of it.
    Took {
        /// The journal rows.
        seqs: Vec<Seq>,
    },
    /// What the turn is in the midst of changes. While it is in the midst of something, more words wait
    /// instead of interrupting it.
    Working(Work),
    /// Older entries have a summary from here on.
    Compressed {
        /// The last entry before the ones that it stands for; zero for none.
        after: u32,
        /// The last entry that it stands for.
        upto: u32,
        /// The summary.
        text: String,
        /// What it used to write it.
        usage: Usage,
        /// What it cost to write it.
        cost: Cost,
    },
    /// A turn that was to compress did not, and why. The sentence is for the person.
    NotCompressed {
        /// Why.
        why: String,
        /// What it used to find out.
        usage: Usage,
        /// What that cost.
        cost: Cost,
    },
    /// The turn is over and this is the answer.
    Finished {
        /// Markdown. Empty means that there is nothing to say, which is as it should be for a turn that
        /// compresses.
        text: String,
        /// Files that go along.
        files: Vec<FileRef>,
        /// To be shown to the provider again.
        reasoning: Option<String>,
        /// What the last step used.
        usage: Usage,
        /// What the last step cost.
        cost: Cost,
    },
    /// The turn ended without a whole answer.
    Failed {
        /// Why.
        failure: Failure,
        /// What had been said by then and was not made durable yet.
        said: String,
        /// What was used since the last event that said so, as far as that is known.
        usage: Usage,
        /// What that cost: unknown where a model was asked and did not come to say.
        cost: Cost,
    },
}

/// Something to be said in another chat than the one in which it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sending {
    /// Where.
    pub to: Address,
    /// What, in Markdown.
    pub text: String,
}

/// Why a turn ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// Somebody asked it to stop.
    #[error("Stopped.")]
    Stopped,
    /// It took too long.
    #[error("I stopped after {minutes} minutes, the limit for one answer.")]
    TimedOut {
        /// The limit.
        minutes: u64,
    },
    /// Nothing was heard of it for too long.
    #[error("I gave up on this answer: nothing was heard of it for {minutes} minutes.")]
    Silent {
        /// The limit.
        minutes: u64,
    },
    /// The model kept calling tools.
    #[error("I stopped after {steps} steps without reaching an answer.")]
    TooManySteps {
        /// The limit.
        steps: u32,
    },
    /// A budget is used up. The sentence is for the person.
    #[error("{0}")]
    OverBudget(String),
    /// The model gave no usable answer. The sentence is for the person.
    #[error("{0}")]
    Model(String),
}
