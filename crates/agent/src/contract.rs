//! What an agent is to the gateway.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use talaria_model::{
    Address, AgentEvent, Attended, CallId, Effort, Entry, Question, Sender, Task, TurnId, Used,
    Word,
};
use tokio::sync::{mpsc, watch};

use crate::{AsksFirst, Situation};

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
    /// Whether those are all.
    pub history: History,
    /// Calls that had been started when the process ended, and whose outcome is unknown.
    pub started: Vec<CallId>,
    /// A question that was already put to the person and is still open.
    pub asked: Option<Question>,
    /// How long the turn may still take.
    pub limit: Duration,
    /// Where the conversation takes place. What a session's first turn said of it holds for all, until
    /// the chat's own instructions change.
    pub situation: Arc<Situation>,
    /// The model to take it with, as people write it; the usual one where nobody wishes another.
    pub model: Option<String>,
    /// How hard to think; as usual where nobody wishes anything.
    pub effort: Option<Effort>,
    /// What the turn is for.
    pub task: Task,
    /// Skills that the conversation begins with, by name; only in its first turn. What was said names
    /// them too.
    pub skills: Vec<String>,
    /// Whether somebody is there to be asked.
    pub attended: Attended,
    /// Which tools may be used in this person's name.
    pub tools: Permitted,
    /// Where else messages may be sent in this person's name.
    pub elsewhere: Elsewhere,
}

/// Which tools may be used in somebody's name. Asked when they are offered to the model and again whenever
/// one is about to be called, because what somebody may do can change in between.
#[derive(Clone)]
pub struct Permitted(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl Permitted {
    /// Those of which this is true.
    pub fn by(permits: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(permits))
    }

    /// Whether the tool of that name may be used.
    pub fn permits(&self, tool: &str) -> bool {
        self.0(tool)
    }
}

/// All of them.
impl Default for Permitted {
    fn default() -> Self {
        Self::by(|_| true)
    }
}

impl fmt::Debug for Permitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permitted")
    }
}

/// Where messages may be sent in somebody's name, besides the chat in which they are answered. Looked up
/// whenever one is about to be, because what somebody may do can change in between.
#[derive(Clone)]
pub struct Elsewhere(Arc<dyn Fn() -> Vec<Destination> + Send + Sync>);

impl Elsewhere {
    /// Where this says.
    pub fn by(places: impl Fn() -> Vec<Destination> + Send + Sync + 'static) -> Self {
        Self(Arc::new(places))
    }

    /// All of these places.
    pub fn places(&self) -> Vec<Destination> {
        self.0()
    }
}

/// Nowhere.
impl Default for Elsewhere {
    fn default() -> Self {
        Self::by(Vec::new)
    }
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Elsewhere")
    }
}

/// A chat that messages may be sent to by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// As people and the model call it.
    pub name: String,
    /// What it is, for the model.
    pub about: Option<String>,
    /// Where it is.
    pub to: Address,
    /// Whether a person is asked before anything is sent there.
    pub asks: AsksFirst,
}

/// Whether a turn is handed all that was said before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum History {
    /// It is: everything, or a summary and everything since.
    #[default]
    Whole,
    /// There was more, and only the newest was read.
    Newest,
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
    /// What was used and no event has told yet, by an estimate; none where the agent does not say. It is
    /// what is known of a turn that is not listened to any more.
    pub untold: Option<Used>,
}

impl Preview {
    /// This text, and nothing besides.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}
