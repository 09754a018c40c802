//! What an LLM API is to an agent: a prompt in, deltas out, failures that say what to do.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::Value;
use talaria_model::{CallId, Cost, Effort, ToolCall, Usage};

use crate::Sight;

/// One model behind one API.
pub trait Provider: Send + Sync {
    /// Starts one completion. The first item is either a delta or the reason why there is none.
    /// A stream that ends without `Delta::Finished` was cut.
    fn complete(&self, prompt: Prompt) -> Deltas;

    /// `provider/model`, as people write it.
    fn name(&self) -> &str;

    /// Whether the model can look at pictures. One that cannot may refuse a prompt that has one.
    fn sight(&self) -> Sight;

    /// How many tokens the model reads at most, when known. May ask the server, and does not take
    /// long.
    fn context_window(&self) -> BoxFuture<'_, Option<u64>>;

    /// What a completion has cost that used about this much and ends before it says so: nothing where the
    /// model is free, an estimate where its price is known, else nobody knows.
    fn unfinished(&self, usage: Usage) -> Cost;
}

/// The models that a turn can be taken with.
pub trait Models: Send + Sync {
    /// The one that answers when nobody wished for another.
    fn usual(&self) -> Arc<dyn Provider>;

    /// The one of that name, as people write it.
    fn named(&self, name: &str) -> Result<Arc<dyn Provider>, NoModel>;
}

/// Why there is no model of that name: a whole sentence for the person, with what there is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoModel(pub String);

/// One model and no other.
impl Models for Arc<dyn Provider> {
    fn usual(&self) -> Arc<dyn Provider> {
        self.clone()
    }

    fn named(&self, name: &str) -> Result<Arc<dyn Provider>, NoModel> {
        match self.name() {
            ours if ours == name => Ok(self.clone()),
            ours => Err(NoModel(format!("I cannot use {name}; I can use {ours}."))),
        }
    }
}

/// A completion as it arrives.
pub type Deltas = BoxStream<'static, Result<Delta, ProviderError>>;

/// Everything a model is asked. Equal histories make equal bytes on the wire, up to the point where
/// they differ, so that a provider's prompt cache keeps hitting.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The instructions, the same for a session's whole life.
    pub system: Arc<str>,
    /// The conversation.
    pub messages: Vec<PromptMessage>,
    /// What the model may call, in a stable order.
    pub tools: Arc<[ToolSpec]>,
    /// How hard it is to think; as the provider finds right where nobody wishes anything.
    pub effort: Option<Effort>,
}

/// One message of a conversation, in the provider-neutral form.
#[derive(Debug, Clone, PartialEq)]
pub enum PromptMessage {
    /// From a person.
    User(Vec<Part>),
    /// From the model.
    Assistant {
        /// The visible text.
        text: String,
        /// What it called.
        calls: Vec<ToolCall>,
        /// What the provider wants to see again verbatim.
        reasoning: Option<String>,
    },
    /// What a tool returned.
    ToolResult {
        /// The call it answers.
        call: CallId,
        /// The result.
        output: String,
        /// Whether it went wrong.
        failed: bool,
    },
}

/// A part of what a person sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Words.
    Text(String),
    /// A picture.
    Image {
        /// Its media type.
        mime: String,
        /// Its bytes, in base64.
        base64: Arc<str>,
    },
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Letters, digits, `_` and `-`.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// A piece of a completion.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// More visible text.
    Text(String),
    /// More reasoning, for display.
    Reasoning(String),
    /// Forget what this completion said so far: it failed half-way and starts again from the
    /// beginning, perhaps by another provider.
    Restarted,
    /// The model ended. Carries everything that is only known complete.
    Finished {
        /// Why.
        reason: FinishReason,
        /// Complete calls, each with valid JSON arguments. A truncated call is an error instead.
        calls: Vec<ToolCall>,
        /// What the provider wants to see again verbatim in the next prompt.
        reasoning: Option<String>,
        /// How much was read and written.
        usage: Usage,
        /// What that cost.
        cost: Cost,
    },
}

/// Why a model ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It wants tools called.
    ToolCalls,
    /// It hit the limit on its answer; the text is cut.
    Length,
    /// It declined.
    Refused,
}

/// Why there is no completion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// Too many requests.
    #[error("the model provider is limiting requests")]
    RateLimited {
        /// When the provider says to come back.
        after: Option<Duration>,
    },
    /// The provider has trouble (5xx, overload).
    #[error("the model provider has trouble ({detail})")]
    Unavailable {
        /// Status or message.
        detail: String,
    },
    /// No connection could be made; nothing was asked.
    #[error("the model provider cannot be reached ({detail})")]
    Unreachable {
        /// What stood in the way.
        detail: String,
    },
    /// Connected, but no token came in time.
    #[error("the model did not begin to answer within {} s", waited.as_secs())]
    NoFirstToken {
        /// How long we waited.
        waited: Duration,
    },
    /// Tokens came, then none for too long.
    #[error("the model stopped in the middle of its answer")]
    Stalled {
        /// How long we waited.
        waited: Duration,
    },
    /// The stream ended without an end.
    #[error("the connection broke in the middle of the answer")]
    Cut,
    /// What came is not the protocol.
    #[error("the model provider sent something unreadable ({detail})")]
    Garbled {
        /// What was wrong.
        detail: String,
    },
    /// A call whose arguments are not complete JSON.
    #[error("the model's tool call was cut off")]
    TruncatedCall {
        /// The tool.
        tool: String,
    },
    /// The prompt is longer than the model reads.
    #[error("the conversation has become too long for the model")]
    TooLong,
    /// The key is missing, wrong or expired.
    #[error("the model provider does not accept the API key")]
    Unauthorized {
        /// In the provider's words.
        detail: String,
    },
    /// The account has no credit.
    #[error("the account at the model provider has no credit left")]
    NoCredit {
        /// In the provider's words.
        detail: String,
    },
    /// The provider refuses this request for good: unknown model, bad parameter.
    #[error("the model provider refused the request ({detail})")]
    Rejected {
        /// In the provider's words.
        detail: String,
    },
}

/// What to do after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Ask the same provider again, at most this many times in one step.
    Same {
        /// How often.
        times: u32,
        /// When the provider said so; else the caller's backoff.
        after: Option<Duration>,
    },
    /// Another provider may do it; this one will not.
    Next,
    /// Nobody will do it: the request itself has to change.
    Never,
}

impl ProviderError {
    /// What the person is told: one short, true sentence, and what they can do about it.
    pub fn sentence(&self) -> String {
        let problem = self.to_string();
        let mut letters = problem.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        let problem = first.chain(letters).collect::<String>();
        match self {
            Self::TooLong => format!("{problem}. `/new` begins a new one."),
            Self::Unauthorized { .. } | Self::Rejected { .. } => {
                format!("{problem}. `talaria model` shows what is set.")
            }
            _ => format!("{problem}. Please try again."),
        }
    }

    /// Whether a model may have worked on it, which somebody has to pay for.
    pub fn was_asked(&self) -> bool {
        match self {
            Self::Unavailable { .. }
            | Self::NoFirstToken { .. }
            | Self::Stalled { .. }
            | Self::Cut
            | Self::Garbled { .. }
            | Self::TruncatedCall { .. } => true,
            Self::RateLimited { .. }
            | Self::Unreachable { .. }
            | Self::TooLong
            | Self::Unauthorized { .. }
            | Self::NoCredit { .. }
            | Self::Rejected { .. } => false,
        }
    }

    /// The one decision about a failed completion.
    pub fn retry(&self) -> Retry {
        match self {
            Self::RateLimited { after } => Retry::Same { times: 3, after: *after },
            Self::Unavailable { .. } | Self::Unreachable { .. } => {
                Retry::Same { times: 3, after: None }
            }
            Self::NoFirstToken { .. } => Retry::Same { times: 1, after: None },
            Self::Stalled { .. }
            | Self::Cut
            | Self::Garbled { .. }
            | Self::TruncatedCall { .. } => Retry::Same { times: 2, after: None },
            Self::Unauthorized { .. } | Self::NoCredit { .. } | Self::Rejected { .. } => {
                Retry::Next
            }
            Self::TooLong => Retry::Never,
        }
    }
}
