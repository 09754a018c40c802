//! What a turn is told and what it tells.

use serde::{Deserialize, Serialize};

use crate::{CallId, ChoiceId, FileRef, Message, Question, Sender, Seq, ToolCall, Usage};

/// What a turn is told while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// More was said; take it into account at the next step.
    Steer {
        /// Which journal row it is; comes back in `Took`.
        seq: Seq,
        /// Who said it.
        from: Sender,
        /// What was said.
        message: Message,
    },
    /// The open question was answered.
    Answer(Answer),
    /// End the turn as soon as possible.
    Stop,
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
}

/// What happens in a turn. Each is made durable before the agent goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// The model finished a step that calls tools.
    Stepped {
        /// Text it said before calling.
        text: String,
        /// The calls.
        calls: Vec<ToolCall>,
        /// To be shown to the provider again.
        reasoning: Option<String>,
        /// What it cost.
        usage: Usage,
    },
    /// A tool with effects is about to start. After this is durable, it counts as started.
    Calling {
        /// The call.
        call: CallId,
    },
    /// A tool returned.
    Called {
        /// The call.
        call: CallId,
        /// The result as the model reads it.
        output: String,
        /// Files that go to the person with the answer.
        files: Vec<FileRef>,
        /// Whether the tool says it went wrong.
        failed: bool,
    },
    /// The agent asks the person something and waits for `Word::Answer`.
    Asked(Question),
    /// Words said while the turn ran have become part of it.
    Took {
        /// The journal rows.
        seqs: Vec<Seq>,
    },
    /// The turn is over and this is the answer.
    Finished {
        /// Markdown. Empty means that there is nothing to say.
        text: String,
        /// Files that go along.
        files: Vec<FileRef>,
        /// To be shown to the provider again.
        reasoning: Option<String>,
        /// What the last step cost.
        usage: Usage,
    },
    /// The turn ended without a whole answer.
    Failed {
        /// Why.
        failure: Failure,
        /// What had been said by then and was not made durable yet.
        said: String,
    },
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
    /// The model kept calling tools.
    #[error("I stopped after {steps} steps without reaching an answer.")]
    TooManySteps {
        /// The limit.
        steps: u32,
    },
    /// The model gave no usable answer. The sentence is for the person.
    #[error("{0}")]
    Model(String),
}
