//! A model, tools, and a notebook in which the events of a turn become the entries of a transcript.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{BoxFuture, ready};
use futures::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};
use talaria_agent::{
    Agent, Attachments, Budget, BuiltIn, Delta, Deltas, EffectClass, Fence, FinishReason, Gravity,
    History, Prefixes, Prompt, Provider, ProviderError, Running, Settings, Sight, Situation, Tool,
    ToolError, ToolOutput, ToolScope, ToolSpec, Toolbox, Turn, tools,
};
use talaria_clock::{Clock, FakeClock, SystemClock};
use talaria_model::{
    AccountId, Address, AgentEvent, Attended, CallId, Chat, ChatId, ChatKind, Cost, Effort, Entry,
    EntryBody, Extent, FileId, FileRef, OutboundId, Question, Sender, SenderId, SessionId, Steer,
    Task, Timestamp, ToolCall, TurnId, Usage, Word,
};

/// What the model does next.
pub(crate) type Reply = Vec<Result<Delta, ProviderError>>;

/// A model that plays one reply per question, and remembers what it was asked.
#[derive(Default)]
pub(crate) struct Model {
    replies: Mutex<Vec<Reply>>,
    asked: Mutex<Vec<Prompt>>,
    window: Option<u64>,
    sight: Sight,
    /// What it has cost when it breaks off.
    unfinished: Cost,
    /// What each of its tokens costs then, where that is known.
    price: Option<u64>,
    /// How long it takes for each piece.
    pace: Duration,
}

impl Model {
    /// Plays these, then never answers.
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: Vec<Reply> = replies.into_iter().collect();
        replies.reverse();
        Self { replies: Mutex::new(replies), unfinished: Cost::UNKNOWN, ..Self::default() }
    }

    /// One that costs nothing, however it ends.
    pub(crate) fn for_free(self) -> Self {
        Self { unfinished: Cost::FREE, ..self }
    }

    /// One that costs so many millionths of a dollar a token.
    pub(crate) fn priced(self, micros: u64) -> Self {
        Self { price: Some(micros), ..self }
    }

    pub(crate) fn slow(self, pace: Duration) -> Self {
        Self { pace, ..self }
    }

    pub(crate) fn seeing(self) -> Self {
        Self { sight: Sight::Pictures, ..self }
    }

    pub(crate) fn with_window(self, tokens: u64) -> Self {
        Self { window: Some(tokens), ..self }
    }

    /// What it was asked so far.
    pub(crate) fn prompts(&self) -> Vec<Prompt> {
        self.asked.lock().unwrap().clone()
    }
}

impl Provider for Model {
    fn complete(&self, prompt: Prompt) -> Deltas {
        self.asked.lock().unwrap().push(prompt);
        let pace = self.pace;
        match self.replies.lock().unwrap().pop() {
            Some(reply) => stream::iter(reply)
                .then(move |delta| async move {
                    if !pace.is_zero() {
                        SystemClock.sleep(pace).await;
                    }
                    delta
                })
                .boxed(),
            None => stream::pending().boxed(),
        }
    }

    fn name(&self) -> &str {
        "test/model"
    }

    fn sight(&self) -> Sight {
        self.sight
    }

    fn context_window(&self) -> BoxFuture<'_, Option<u64>> {
        ready(self.window).boxed()
    }

    fn unfinished(&self, usage: Usage) -> Cost {
        match self.price {
            Some(micros) => Cost::estimated(micros * usage.total()),
            None => self.unfinished,
        }
    }
}

pub(crate) fn text(text: &str) -> Result<Delta, ProviderError> {
    Ok(Delta::Text(text.into()))
}

pub(crate) fn end(reason: FinishReason, calls: Vec<ToolCall>) -> Result<Delta, ProviderError> {
    Ok(Delta::Finished {
        reason,
        calls,
        reasoning: None,
        usage: Usage::default(),
        cost: Cost::FREE,
    })
}

/// The model answers.
pub(crate) fn says(words: &str) -> Reply {
    vec![text(words), end(FinishReason::Stop, vec![])]
}

/// The model wants tools called.
pub(crate) fn calls(calls: Vec<ToolCall>) -> Reply {
    vec![end(FinishReason::ToolCalls, calls)]
}

pub(crate) fn call(id: &'static str, tool: &str, arguments: Value) -> ToolCall {
    ToolCall { id: CallId::literal(id), tool: tool.into(), arguments: arguments.to_string() }
}

/// What a tool does when it is called.
pub(crate) type Deed = Arc<dyn Fn(&ToolScope) -> Result<ToolOutput, ToolError> + Send + Sync>;

/// A tool that does what a test says, and leaves a trace.
pub(crate) struct Scripted {
    pub(crate) name: &'static str,
    pub(crate) effect: EffectClass,
    pub(crate) deed: Deed,
    pub(crate) outcome: Result<Option<ToolOutput>, ToolError>,
    pub(crate) takes: Duration,
    pub(crate) gravity: Weigh,
    pub(crate) trace: Trace,
}

/// Whether a call must be asked about.
pub(crate) type Weigh = Arc<dyn Fn(&Value) -> Result<Gravity, ToolError> + Send + Sync>;

/// What happened, in order.
pub(crate) type Trace = Arc<Mutex<Vec<String>>>;

impl Scripted {
    pub(crate) fn new(name: &'static str, effect: EffectClass, trace: &Trace) -> Self {
        let deed: Deed = Arc::new(move |_| Ok(output(&format!("{name} is done"))));
        let (outcome, takes) = (Ok(None), Duration::ZERO);
        let gravity: Weigh = Arc::new(|_| Ok(Gravity::Harmless));
        Self { name, effect, deed, outcome, takes, gravity, trace: trace.clone() }
    }
}

pub(crate) fn output(text: &str) -> ToolOutput {
    ToolOutput::text(text)
}

#[async_trait]
impl Tool for Scripted {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object" });
        ToolSpec { name: self.name.into(), description: "Does it.".into(), parameters }
    }

    fn effect(&self) -> EffectClass {
        self.effect
    }

    fn gravity(&self, arguments: &Value, _: &ToolScope) -> Result<Gravity, ToolError> {
        (self.gravity)(arguments)
    }

    async fn call(&self, arguments: Value, scope: ToolScope) -> Result<ToolOutput, ToolError> {
        self.trace.lock().unwrap().push(format!("{} {arguments}", self.name));
        SystemClock.sleep(self.takes).await;
        (self.deed)(&scope)
    }

    async fn outcome(&self, call: &CallId) -> Result<Option<ToolOutput>, ToolError> {
        self.trace.lock().unwrap().push(format!("{} outcome of {call}", self.name));
        self.outcome.clone()
    }
}

/// Files in memory.
#[derive(Default)]
pub(crate) struct Files(pub(crate) HashMap<FileId, Vec<u8>>);

#[async_trait]
impl Attachments for Files {
    async fn load(&self, file: &FileRef, limit: u64) -> Option<Vec<u8>> {
        self.0.get(&file.id).filter(|bytes| bytes.len() as u64 <= limit).cloned()
    }

    async fn save(&self, name: &str, mime: &str, bytes: Vec<u8>) -> Result<FileRef, String> {
        Ok(file(name, mime, bytes.len() as u64))
    }
}

pub(crate) fn file(name: &str, mime: &str, size: u64) -> FileRef {
    FileRef::new(FileId::new(name).unwrap(), name, mime, size)
}

/// An agent and the transcript of one conversation with it.
pub(crate) struct Stage {
    pub(crate) model: Arc<Model>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) trace: Trace,
    pub(crate) limit: Duration,
    pub(crate) started: Vec<CallId>,
    pub(crate) asked: Option<Question>,
    pub(crate) settings: Settings,
    pub(crate) files: Arc<Files>,
    pub(crate) situation: Situation,
    pub(crate) wished: Option<String>,
    pub(crate) effort: Option<Effort>,
    pub(crate) task: Task,
    pub(crate) attended: Attended,
    pub(crate) permitted: talaria_agent::Permitted,
    pub(crate) elsewhere: talaria_agent::Elsewhere,
    pub(crate) history: History,
    pub(crate) prefixes: Arc<Prefixes>,
    pub(crate) clock: Arc<FakeClock>,
    toolbox: Toolbox,
    turns: u32,
    steers: Vec<(talaria_model::Seq, String)>,
}

impl Stage {
    pub(crate) fn new(model: Model) -> Self {
        Self {
            model: Arc::new(model),
            entries: Vec::new(),
            trace: Trace::default(),
            limit: Duration::from_secs(1800),
            started: Vec::new(),
            asked: None,
            settings: Settings {
                instructions: "Be brief.".into(),
                max_steps: 4,
                turn_limit: Duration::from_secs(1800),
                budget: Budget::default(),
                fence: Fence::default(),
            },
            files: Arc::default(),
            situation: Situation::at(home()),
            wished: None,
            effort: None,
            task: Task::Answer,
            attended: Attended::Yes,
            permitted: Default::default(),
            elsewhere: Default::default(),
            history: History::Whole,
            prefixes: Arc::default(),
            clock: Arc::new(FakeClock::starting(Timestamp::from_millis(1_000_000))),
            toolbox: Toolbox::default().with(tools::Ask),
            turns: 0,
            steers: Vec::new(),
        }
    }

    /// Adds a tool that says it is done.
    pub(crate) fn with(self, name: &'static str, effect: EffectClass) -> Self {
        let tool = Scripted::new(name, effect, &self.trace);
        self.with_tool(tool)
    }

    pub(crate) fn with_tool(mut self, tool: impl Tool + 'static) -> Self {
        self.toolbox = self.toolbox.with(tool);
        self
    }

    pub(crate) fn with_delegating(mut self, tool: Scripted) -> Self {
        self.toolbox = self.toolbox.with_delegating(tool);
        self
    }

    /// Continues the same conversation with another model, as after a restart.
    pub(crate) fn with_model(&mut self, model: Model) {
        self.model = Arc::new(model);
    }

    /// Somebody says something, which begins a turn.
    pub(crate) fn say(&mut self, text: &str) {
        self.say_with(text, vec![]);
    }

    pub(crate) fn say_with(&mut self, text: &str, files: Vec<FileRef>) {
        self.turns += 1;
        self.started.clear();
        self.asked = None;
        self.record(said(text, files));
    }

    pub(crate) fn turn_id(&self) -> TurnId {
        TurnId { session: SessionId::literal("s"), number: self.turns }
    }

    pub(crate) fn record(&mut self, body: EntryBody) {
        let number = self.entries.len() as u32 + 1;
        let turn = Some(self.turn_id());
        self.entries.push(Entry {
            number,
            at: Timestamp::default(),
            turn,
            body,
            because: None,
            about: None,
            resumed: None,
        });
    }

    /// The turn as the gateway starts it, the first time or again.
    pub(crate) fn start(&self) -> Running {
        let agent = BuiltIn::new(
            self.model.clone(),
            self.toolbox.clone(),
            self.files.clone(),
            self.clock.clone(),
            self.settings.clone(),
        )
        .with_prefixes(self.prefixes.clone());
        agent.start(self.turn())
    }

    /// The newest turn, as the gateway hands it over.
    pub(crate) fn turn(&self) -> Turn {
        Turn {
            id: self.turn_id(),
            at: home(),
            from: alice(),
            entries: self.entries.clone(),
            history: self.history,
            started: self.started.clone(),
            asked: self.asked.clone(),
            limit: self.limit,
            situation: Arc::new(self.situation.clone()),
            model: self.wished.clone(),
            effort: self.effort,
            task: self.task.clone(),
            skills: vec![],
            attended: self.attended,
            tools: self.permitted.clone(),
            elsewhere: self.elsewhere.clone(),
        }
    }

    /// The next event, made durable.
    pub(crate) async fn next(&mut self, running: &mut Running) -> Option<AgentEvent> {
        let event = running.events.next().await?;
        self.keep(&event);
        Some(event)
    }

    /// Tells the agent that more was said.
    pub(crate) fn steer(&mut self, running: &Running, seq: u64, text: &str) {
        let seq = talaria_model::Seq(seq);
        self.steers.push((seq, text.to_owned()));
        let message = talaria_model::Message { text: text.into(), ..Default::default() };
        let (from, heard) = (alice(), None);
        running
            .control
            .try_send(Word::Steer(Box::new(Steer { seq, from, message, heard })))
            .unwrap();
    }

    /// Lets the turn go on to its end.
    pub(crate) async fn finish(&mut self, running: &mut Running) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        while let Some(event) = self.next(running).await {
            events.push(event);
        }
        events
    }

    /// A whole turn.
    pub(crate) async fn play(&mut self) -> Vec<AgentEvent> {
        let mut running = self.start();
        self.finish(&mut running).await
    }

    /// A turn whose process dies after so many events were made durable.
    pub(crate) async fn play_and_die(&mut self, after: usize) {
        let mut running = self.start();
        for _ in 0..after {
            self.next(&mut running).await.unwrap();
        }
    }

    /// Writes an event down as the session does.
    fn keep(&mut self, event: &AgentEvent) {
        match event.clone() {
            AgentEvent::Stepped { text, files, calls, reasoning, usage, cost } => {
                let (sent, extent) = (None, Extent::Whole);
                self.record(EntryBody::Answered {
                    text,
                    files,
                    calls,
                    reasoning,
                    usage,
                    cost,
                    sent,
                    extent,
                });
            }
            AgentEvent::Calling { call, .. } => self.started.push(call),
            AgentEvent::Called { call, output, files, failed, .. } => {
                self.started.retain(|started| *started != call);
                self.asked.take_if(|asked| asked.call == call);
                self.record(EntryBody::Returned { call, output, files, failed });
            }
            AgentEvent::Asked(question) => {
                let (text, choices) = (question.text.clone(), question.choices.clone());
                let session = SessionId::literal("s");
                let sent = OutboundId { session, delivery: 1, part: 0 };
                self.record(EntryBody::Noticed { text, choices, files: Vec::new(), sent });
                self.asked = Some(question);
            }
            AgentEvent::Took { seqs } => {
                for (seq, text) in std::mem::take(&mut self.steers) {
                    if seqs.contains(&seq) {
                        self.record(said(&text, vec![]));
                    }
                }
            }
            AgentEvent::Finished { text, files, reasoning, usage, cost } => {
                let (calls, sent, extent) = (Vec::new(), None, Extent::Whole);
                self.record(EntryBody::Answered {
                    text,
                    files,
                    calls,
                    reasoning,
                    usage,
                    cost,
                    sent,
                    extent,
                });
            }
            AgentEvent::Compressed { after, upto, text, usage, cost } => {
                self.record(EntryBody::Summary { after, upto, text, usage, cost });
            }
            AgentEvent::Working(_) | AgentEvent::NotCompressed { .. } => {}
            AgentEvent::Failed { said, usage, cost, .. } => {
                if !said.is_empty() {
                    self.record(EntryBody::Answered {
                        text: said,
                        files: vec![],
                        calls: vec![],
                        reasoning: None,
                        usage,
                        cost,
                        sent: None,
                        extent: Extent::BrokenOff,
                    });
                }
            }
        }
    }

    pub(crate) fn trace(&self) -> Vec<String> {
        self.trace.lock().unwrap().clone()
    }
}

pub(crate) fn said(text: &str, files: Vec<FileRef>) -> EntryBody {
    EntryBody::Said {
        from: alice(),
        text: text.into(),
        files,
        heard: None,
        message: None,
        forwarded: None,
    }
}

pub(crate) fn alice() -> Sender {
    Sender::new(SenderId::literal("alice"))
}

pub(crate) fn home() -> Address {
    Address {
        account: AccountId::literal("web"),
        chat: Chat { id: ChatId::literal("home"), kind: ChatKind::Dm },
        thread: None,
    }
}

/// An event in a few words.
pub(crate) fn brief(event: &AgentEvent) -> String {
    match event {
        AgentEvent::Stepped { text, calls, .. } => {
            let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
            format!("stepped {text:?} {tools:?}")
        }
        AgentEvent::Calling { call, .. } => format!("calling {call}"),
        AgentEvent::Called { call, output, failed: false, .. } => format!("{call}: {output}"),
        AgentEvent::Called { call, output, failed: true, .. } => format!("{call} failed: {output}"),
        AgentEvent::Asked(question) => format!("asked {}", question.text),
        AgentEvent::Took { seqs } => {
            format!("took {:?}", seqs.iter().map(|seq| seq.0).collect::<Vec<_>>())
        }
        AgentEvent::Working(work) => format!("working {work:?}"),
        AgentEvent::Compressed { after, upto, text, .. } => {
            format!("compressed {after}..={upto}: {text}")
        }
        AgentEvent::NotCompressed { why, .. } => format!("not compressed: {why}"),
        AgentEvent::Finished { text, .. } => format!("finished {text:?}"),
        AgentEvent::Failed { failure, said, .. } => format!("failed {failure} after {said:?}"),
    }
}

pub(crate) fn briefs(events: &[AgentEvent]) -> Vec<String> {
    events.iter().map(brief).collect()
}
