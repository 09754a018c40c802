//! What the agent can call.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use talaria_model::{Address, CallId, FileRef, Sender, Sending, TurnId};

use crate::{Elsewhere, ToolSpec};

/// Something the agent can call.
#[async_trait]
pub trait Tool: Send + Sync {
    /// As the model sees it.
    fn spec(&self) -> ToolSpec;

    /// What a second start of the same call would do.
    fn effect(&self) -> EffectClass;

    /// Whether a person must be asked before it is called with these arguments, in the name of the person in
    /// `scope`. It is asked twice, before the person is and before the call is made, and must say the same
    /// unless something has changed. An error is the result of the call.
    fn gravity(&self, arguments: &Value, scope: &ToolScope) -> Result<Gravity, ToolError>;

    /// Does it, in the name of the person in `scope`.
    async fn call(&self, arguments: Value, scope: ToolScope) -> Result<ToolOutput, ToolError>;

    /// For a queryable tool: what became of a call that was started before a restart. `None` when it
    /// never happened and may be started.
    async fn outcome(&self, call: &CallId) -> Result<Option<ToolOutput>, ToolError>;
}

/// What a second start of the same call would do. Decides what happens to a call that was running
/// when the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectClass {
    /// Nothing: it only looks. Started again freely, and not recorded before it starts.
    Pure,
    /// The same as once. Started again.
    Idempotent,
    /// Twice the effect, but the tool can say whether the first start happened.
    Queryable,
    /// Twice the effect. Never started again; the model and the person are told.
    Unsafe,
}

/// Whether a person must be asked before a call is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gravity {
    /// No.
    Harmless,
    /// Yes.
    Asks(Danger),
}

/// What a call would do that a person must be asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Danger {
    /// In a few words, for the person.
    pub what: String,
    /// Everything that decides what happens, as it stands at this moment: the arguments, and what they
    /// stand for.
    pub resolved: Value,
    /// Whether it can be made to do anything by what it is given.
    pub wraps: Wraps,
    /// What the person reads it as.
    pub reads: Reads,
}

/// What a person who is asked about a call reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// What a program takes sign by sign: whatever is no letter, no digit and not of ASCII is spelled out.
    Signs,
    /// What people write to each other: everything that can be seen stands for itself.
    Prose,
}

/// Whether something may run what it is given. Nobody can approve that for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wraps {
    /// It does only one thing.
    Nothing,
    /// It runs others, or nobody has said that it does not.
    Others,
}

/// In whose name and where a tool acts.
#[derive(Debug, Clone)]
pub struct ToolScope {
    /// The call; also the key under which a repeat can be recognised.
    pub call: CallId,
    /// The turn.
    pub turn: TurnId,
    /// The person.
    pub from: Sender,
    /// The conversation.
    pub at: Address,
    /// Where else messages may be sent in the person's name.
    pub elsewhere: Elsewhere,
}

/// What a tool gives back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// What the model reads.
    pub text: String,
    /// Files that go to the person with the answer.
    pub files: Vec<FileRef>,
    /// What is said in other chats by it. It becomes durable together with the result, so that a call which
    /// is cut off has said nothing and can be made again.
    pub sends: Vec<Sending>,
}

impl ToolOutput {
    /// Words and nothing else.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// Why a tool gave nothing back. The text goes to the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The arguments do not fit; the model may correct them.
    #[error("the arguments do not fit: {0}")]
    Arguments(String),
    /// It was tried and did not work.
    #[error("{0}")]
    Failed(String),
}

/// The tools of an agent, in a stable order.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: BTreeMap<String, Arc<dyn Tool>>,
    delegating: BTreeSet<String>,
}

impl Toolbox {
    /// Adds a tool; one with the same name is replaced.
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.insert(tool.spec().name, Arc::new(tool));
        self
    }

    /// Adds a tool that lets others work for the turn. While they do, more words wait instead of
    /// interrupting it.
    pub fn with_delegating(mut self, tool: impl Tool + 'static) -> Self {
        self.delegating.insert(tool.spec().name);
        self.with(tool)
    }

    /// The same tools, each behind something that sees what it gives back.
    #[must_use]
    pub fn through(mut self, wrap: impl Fn(Arc<dyn Tool>) -> Arc<dyn Tool>) -> Self {
        self.tools.values_mut().for_each(|tool| *tool = wrap(tool.clone()));
        self
    }

    /// Whether others work for the turn while this tool does.
    pub(crate) fn delegates(&self, name: &str) -> bool {
        self.delegating.contains(name)
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name)
    }

    /// Tells this collection from every other: it changes with every tool and every word about one.
    pub fn generation(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for ToolSpec { name, description, parameters } in self.specs() {
            (name, description, parameters.to_string()).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// All of them as the model sees them, always in the same order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.values().map(|tool| tool.spec()).collect()
    }
}
