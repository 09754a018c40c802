//! What an agent is to the gateway.

use std::time::Duration;

use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use talaria_model::{
    Address, CallId, ChoiceId, Entry, FileRef, Message, Question, Sender, Seq, ToolCall, TurnId,
    Usage,
};
use tokio::sync::{mpsc, watch};

/// Something that can take a turn.
pub trait Agent: Send + Sync {
    /// Prepares a turn. Nothing happens until its events are asked for.
    fn start(&self, turn: Turn) -> Running;
}

/// One turn to take, or to go on with.
#[derive(Debug, Clone)]
pub struct Turn {
    /// Names the turn for good; the same after a restart.
    pub id: TurnId,
    /// Where the conversation is.
    pub at: Address,
    /// Who is asking; tools act in this person's name.
    pub from: Sender,
    /// What was said before and, when a turn goes on after a restart, what it had already done.
    /// The entries of this turn are at the end and carry its id.
    pub entries: Vec<Entry>,
    /// Calls that had been started when the process ended, and whose outcome is unknown.
    pub started: Vec<CallId>,
    /// A question that was already put to the person and is still open.
    pub asked: Option<Question>,
    /// How long the turn may still take.
    pub limit: Duration,
}

/// A turn in progress. Dropping it abandons the turn.
pub struct Running {
    /// The answer as it grows. Display only: nothing here is durable.
    pub preview: watch::Receiver<Preview>,
    /// What happens. The agent does not go on until the next event is asked for.
    pub events: Events,
    /// How the turn is spoken to. Bounded; a full channel means the agent is not listening.
    pub control: mpsc::Sender<Word>,
}

/// The events of a turn. Ends after `Finished` or `Failed`.
pub type Events = BoxStream<'static, AgentEvent>;

/// An answer as it grows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    /// The visible text so far.
    pub text: String,
    /// What the agent is doing at the moment, when it is not writing, in a few words.
    pub doing: Option<String>,
}

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
    /// The turn ended without an answer.
    Failed(Failure),
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
