//! The built-in agent: asks a model, calls the tools it wants, until there is an answer.

mod calls;
mod room;
mod turn;

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use talaria_clock::{Clock, Sleep};
use talaria_model::{
    AgentEvent, Attended, Cost, Failure, FileId, FileRef, Seq, Timestamp, Unasked, Usage, Used,
    Word,
};
use tokio::sync::{mpsc, watch};

use crate::budget::UNKNOWN_WINDOW;
use crate::prefix::{Lease, Prefix, Prefixes};
use crate::{
    Agent, Attachments, Budget, Emitter, Fence, Models, NoModel, Part, Preview, PromptMessage,
    Provider, ProviderError, Running, Sight, ToolSpec, Toolbox, Turn, events,
};

/// What the built-in agent goes by.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the model is told about itself, the same for every turn.
    pub instructions: Arc<str>,
    /// How many times one turn may ask the model.
    pub max_steps: u32,
    /// How long one turn may take; for the sentence that says so.
    pub turn_limit: Duration,
    /// How much of a model's window a conversation may take.
    pub budget: Budget,
    /// What it may not do, whoever wants that.
    pub fence: Fence,
}

/// An agent made of models and tools.
pub struct BuiltIn {
    inner: Inner,
}

#[derive(Clone)]
struct Inner {
    models: Arc<dyn Models>,
    toolbox: Toolbox,
    tools: Arc<[ToolSpec]>,
    /// What the description of the tools takes of a prompt, in bytes.
    tools_size: usize,
    /// Changes with everything that every prompt begins with, except for the model.
    signature: u64,
    attachments: Arc<dyn Attachments>,
    clock: Arc<dyn Clock>,
    prefixes: Arc<Prefixes>,
    settings: Arc<Settings>,
}

impl BuiltIn {
    /// An agent that asks `provider` and calls the tools of `toolbox`.
    pub fn new(
        provider: Arc<dyn Provider>,
        toolbox: Toolbox,
        attachments: Arc<dyn Attachments>,
        clock: Arc<dyn Clock>,
        settings: Settings,
    ) -> Self {
        let tools: Arc<[ToolSpec]> = toolbox.specs().into();
        let described = |tool: &ToolSpec| {
            tool.name.len() + tool.description.len() + tool.parameters.to_string().len()
        };
        let mut hasher = DefaultHasher::new();
        (toolbox.generation(), &settings.instructions).hash(&mut hasher);
        let inner = Inner {
            models: Arc::new(provider),
            tools_size: tools.iter().map(described).sum(),
            signature: hasher.finish(),
            toolbox,
            tools,
            attachments,
            clock,
            prefixes: Arc::default(),
            settings: Arc::new(settings),
        };
        Self { inner }
    }

    /// The same agent with models that a turn can wish for.
    pub fn with_models(mut self, models: Arc<dyn Models>) -> Self {
        self.inner.models = models;
        self
    }

    /// The same agent, which shares the beginnings of prompts with others. They outlive it: an agent
    /// with other tools or instructions does not find them, one with the same does.
    pub fn with_prefixes(mut self, prefixes: Arc<Prefixes>) -> Self {
        self.inner.prefixes = prefixes;
        self
    }
}

impl Agent for BuiltIn {
    fn start(&self, turn: Turn) -> Running {
        let (preview, shown) = watch::channel(Preview::default());
        let (control, words) = mpsc::channel(32);
        let agent = self.inner.clone();
        let events = events(|emitter| async move {
            let ending = match TurnLoop::begin(agent, turn, emitter.clone(), preview, words).await {
                Ok(turn) => turn.run().await,
                Err(NoModel(sentence)) => {
                    let (failure, said) = (Failure::Model(sentence), String::new());
                    let (usage, cost) = (Usage::default(), Cost::FREE);
                    AgentEvent::Failed { failure, said, usage, cost }
                }
            };
            emitter.emit(ending).await;
        });
        Running { preview: shown, events, control }
    }
}

/// Why a turn ends before the model is done.
enum Cut {
    Stopped,
    TimedOut,
    Failed(ProviderError),
}

struct TurnLoop {
    agent: Inner,
    turn: Turn,
    emitter: Emitter,
    preview: watch::Sender<Preview>,
    words: mpsc::Receiver<Word>,
    limit: Sleep,
    deadline: Timestamp,
    provider: Arc<dyn Provider>,
    sight: Sight,
    /// How many tokens the model reads.
    window: u64,
    /// What the prompts of this session begin with.
    lease: Lease,
    system: Arc<str>,
    /// The tools that the model is offered: what the person may use.
    tools: Arc<[ToolSpec]>,
    /// The chat's own instructions, as they stand in `system`.
    instructions: Option<Arc<str>>,
    /// How many times the model has been asked, before a restart too.
    steps: u32,
    messages: Vec<PromptMessage>,
    /// How many of the messages are older than the turn.
    old: usize,
    /// About how many tokens the first so many messages are.
    counted: Counted,
    /// Whether the conversation, whole, asks for a summary, even if less of it is put into the prompt.
    is_full: bool,
    /// Whether the turn has been shortened already, because the model did not read all of it.
    shortened: Shortened,
    /// Heard, and not yet part of the conversation.
    steers: VecDeque<(Seq, Vec<Part>)>,
    /// What the tools want sent along with the answer.
    files: Vec<FileRef>,
    /// Files that went out with the steps of this turn.
    sent: Vec<FileId>,
    /// What completions used that did not come to say so, by an estimate, and that no event has told yet.
    lost: Used,
    /// The completion that is under way.
    under_way: Option<UnderWay>,
    /// Tools whose effect before a restart is not known.
    unknown: Vec<String>,
    /// The call that is not made, whoever would approve it.
    refused: Option<Unasked>,
}

/// How much a completion has read and written, in bytes.
#[derive(Debug, Clone, Copy)]
struct UnderWay {
    read: usize,
    written: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    messages: usize,
    tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shortened {
    NotYet,
    Once,
}

impl TurnLoop {
    async fn begin(
        agent: Inner,
        turn: Turn,
        emitter: Emitter,
        preview: watch::Sender<Preview>,
        words: mpsc::Receiver<Word>,
    ) -> Result<Self, NoModel> {
        let provider = match &turn.model {
            Some(name) => agent.models.named(name)?,
            None => agent.models.usual(),
        };
        let mut hasher = DefaultHasher::new();
        (agent.signature, provider.name()).hash(&mut hasher);
        let now = agent.clock.now();
        let lease = agent.prefixes.borrow(&turn.id.session, hasher.finish(), now);
        let wished: Option<Arc<str>> = turn.situation.instructions.as_deref().map(Arc::from);
        // A turn that nobody spoke in does not know what the chat's instructions are.
        let holds = |prefix: &&Arc<Prefix>| !turn.task.is_answer() || prefix.instructions == wished;
        let pinned = lease.prefix.as_ref().filter(holds);
        let pinned =
            pinned.and_then(|prefix| Some((prefix.system.clone()?, prefix.instructions.clone())));
        let (system, instructions) =
            pinned.unwrap_or_else(|| (system(&agent.settings, &turn), wished));
        let may_use = |tool: &&ToolSpec| turn.tools.permits(&tool.name);
        let tools = match agent.tools.iter().all(|tool| may_use(&tool)) {
            true => agent.tools.clone(),
            false => agent.tools.iter().filter(may_use).cloned().collect(),
        };
        let window = provider.context_window().await.unwrap_or(UNKNOWN_WINDOW);
        Ok(Self {
            limit: agent.clock.sleep(turn.limit),
            deadline: now + turn.limit,
            sight: provider.sight(),
            provider,
            window,
            lease,
            system,
            tools,
            instructions,
            agent,
            turn,
            emitter,
            preview,
            words,
            steps: 0,
            messages: Vec::new(),
            old: 0,
            counted: Counted::default(),
            is_full: false,
            shortened: Shortened::NotYet,
            steers: VecDeque::new(),
            files: Vec::new(),
            sent: Vec::new(),
            lost: Used::default(),
            under_way: None,
            unknown: Vec::new(),
            refused: None,
        })
    }
}

/// What a session's prompts begin with.
fn system(settings: &Settings, turn: &Turn) -> Arc<str> {
    let situation = &turn.situation;
    let mut text = format!("{}\n\n{}", settings.instructions, situation.describe());
    if let Some(sending) = situation.sending().filter(|_| !settings.fence.now().roots.is_empty()) {
        text.push_str("\n## Sending files\n\n");
        text.push_str(&sending);
        text.push('\n');
    }
    if turn.attended == Attended::No {
        text.push_str(
            "\n## In the background\n\nThis is work in the background: nobody is there to answer \
             questions. Decide for yourself, and say in your answer what you assumed.\n",
        );
    }
    text.into()
}
