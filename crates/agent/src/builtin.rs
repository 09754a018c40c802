//! The built-in agent: asks a model, calls the tools it wants, until there is an answer.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use talaria_clock::{Clock, Sleep};
use talaria_model::{
    AgentEvent, Answer, CallId, Entry, EntryBody, Failure, FileRef, Question, Seq, Timestamp,
    ToolCall, Usage, Word,
};
use tokio::sync::{mpsc, watch};

use crate::prompt::{self, Sight};
use crate::tools::Ask;
use crate::{
    Agent, Attachments, Delta, EffectClass, Emitter, FinishReason, Part, Preview, Prompt,
    PromptMessage, Provider, ProviderError, Running, ToolError, ToolOutput, ToolScope, ToolSpec,
    Toolbox, Turn, events,
};

/// The most of a tool's output that is put before the model.
const TOOL_OUTPUT: usize = 64 * 1024;

/// What the model is told about an unsafe call that a restart cut off.
const UNKNOWN_EFFECT: &str = "This call was started before a restart. Whether it took effect is not \
                              known, and it was not repeated.";

/// Roughly how many characters a token has; only used to stay clear of a model's window.
const CHARS_PER_TOKEN: u64 = 3;

/// What the built-in agent goes by.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the model is told about itself, the same for every turn.
    pub instructions: Arc<str>,
    /// How many times one turn may ask the model.
    pub max_steps: u32,
    /// How long one turn may take; for the sentence that says so.
    pub turn_limit: Duration,
    /// Whether the model can look at pictures.
    pub sight: Sight,
}

/// An agent made of a model and tools.
pub struct BuiltIn {
    inner: Arc<Inner>,
}

struct Inner {
    provider: Arc<dyn Provider>,
    toolbox: Toolbox,
    tools: Arc<[ToolSpec]>,
    attachments: Arc<dyn Attachments>,
    clock: Arc<dyn Clock>,
    settings: Settings,
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
        let tools = toolbox.specs().into();
        Self { inner: Arc::new(Inner { provider, toolbox, tools, attachments, clock, settings }) }
    }
}

impl Agent for BuiltIn {
    fn start(&self, turn: Turn) -> Running {
        let (preview, shown) = watch::channel(Preview::default());
        let (control, words) = mpsc::channel(32);
        let agent = self.inner.clone();
        let events = events(|emitter| async move {
            let ending = TurnLoop {
                limit: agent.clock.sleep(turn.limit),
                deadline: agent.clock.now() + turn.limit,
                steps: 0,
                agent,
                emitter: emitter.clone(),
                preview,
                words,
                steers: VecDeque::new(),
                files: Vec::new(),
                unknown: Vec::new(),
                messages: Vec::new(),
                turn,
            }
            .run()
            .await;
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
    agent: Arc<Inner>,
    turn: Turn,
    emitter: Emitter,
    preview: watch::Sender<Preview>,
    words: mpsc::Receiver<Word>,
    limit: Sleep,
    deadline: Timestamp,
    /// How many times the model has been asked, before a restart too.
    steps: u32,
    messages: Vec<PromptMessage>,
    /// Heard, and not yet part of the conversation.
    steers: VecDeque<(Seq, Vec<Part>)>,
    /// What the tools want sent along with the answer.
    files: Vec<FileRef>,
    /// Tools whose effect before a restart is not known.
    unknown: Vec<String>,
}

/// What the model said in one step.
struct Step {
    text: String,
    reason: FinishReason,
    calls: Vec<ToolCall>,
    reasoning: Option<String>,
    usage: Usage,
}

impl TurnLoop {
    async fn run(mut self) -> AgentEvent {
        match self.answer().await {
            Ok(finished) => finished,
            Err(cut) => {
                let failure = match cut {
                    Cut::Stopped => Failure::Stopped,
                    Cut::TimedOut => Failure::TimedOut {
                        minutes: self.agent.settings.turn_limit.as_secs().div_ceil(60),
                    },
                    Cut::Failed(error) => Failure::Model(error.sentence()),
                };
                AgentEvent::Failed { failure, said: self.preview.borrow().text.clone() }
            }
        }
    }

    async fn answer(&mut self) -> Result<AgentEvent, Cut> {
        let open = self.recollect().await;
        self.call_all(open).await?;
        while self.steps < self.agent.settings.max_steps {
            self.steps += 1;
            self.take_steers().await?;
            let step = self.ask_model().await?;
            if step.calls.is_empty() {
                return Ok(self.finished(step));
            }
            self.messages.push(PromptMessage::Assistant {
                text: step.text.clone(),
                calls: step.calls.clone(),
                reasoning: step.reasoning.clone(),
            });
            let calls = step.calls.clone();
            // Emptied before the event, so that the next delivery does not begin with this text.
            self.preview.send_replace(Preview::default());
            let Step { text, reasoning, usage, .. } = step;
            let stepped = AgentEvent::Stepped { text, calls: calls.clone(), reasoning, usage };
            self.emitter.emit(stepped).await;
            self.call_all(calls).await?;
        }
        let steps = self.agent.settings.max_steps;
        Ok(AgentEvent::Failed { failure: Failure::TooManySteps { steps }, said: String::new() })
    }

    /// Rebuilds the conversation, and says which calls of this turn are still to be made.
    async fn recollect(&mut self) -> Vec<ToolCall> {
        let window = self.agent.provider.context_window().unwrap_or(128_000);
        // A third of the window is left for tools and the answer.
        let budget = usize::try_from(window * CHARS_PER_TOKEN * 2 / 3).unwrap_or(usize::MAX);
        let entries = prompt::fit(&self.turn.entries, &self.turn.id, budget);
        let is_ours = |entry: &Entry| entry.turn.as_ref() == Some(&self.turn.id);
        let ours = entries.iter().position(is_ours).unwrap_or(entries.len());
        let open = prompt::open_calls(&entries[ours..]);
        let ids: Vec<CallId> = open.iter().map(|call| call.id.clone()).collect();
        let sight = self.agent.settings.sight;
        self.messages =
            prompt::messages(entries, &ids, sight, self.agent.attachments.as_ref()).await;
        let mut tools = HashMap::new();
        for entry in entries.iter().filter(|entry| is_ours(entry)) {
            match &entry.body {
                EntryBody::Answered { calls, .. } if !calls.is_empty() => {
                    self.steps += 1;
                    tools.extend(calls.iter().map(|call| (&call.id, &call.tool)));
                }
                EntryBody::Returned { call, output, files, .. } => {
                    self.files.extend(files.iter().cloned());
                    let unknown = tools.get(call).filter(|_| output == UNKNOWN_EFFECT);
                    self.unknown.extend(unknown.map(|tool| (*tool).clone()));
                }
                _ => {}
            }
        }
        open
    }

    async fn ask_model(&mut self) -> Result<Step, Cut> {
        let prompt = Prompt {
            system: self.agent.settings.instructions.clone(),
            messages: self.messages.clone(),
            tools: self.agent.tools.clone(),
        };
        let mut deltas = self.agent.provider.complete(prompt);
        let mut text = String::new();
        loop {
            let delta = tokio::select! {
                biased;
                word = self.words.recv() => { self.hear(word).await?; continue }
                () = &mut self.limit => return Err(Cut::TimedOut),
                delta = deltas.next() => delta,
            };
            match delta {
                Some(Ok(Delta::Text(more))) => {
                    text.push_str(&more);
                    self.preview.send_modify(|preview| {
                        preview.text.push_str(&more);
                        preview.doing = None;
                    });
                }
                Some(Ok(Delta::Reasoning(_))) => self.doing(|| "thinking".to_owned()),
                Some(Ok(Delta::Restarted)) => {
                    text.clear();
                    self.preview.send_replace(Preview::default());
                }
                Some(Ok(Delta::Finished { reason, calls, reasoning, usage })) => {
                    return Ok(Step { text, reason, calls, reasoning, usage });
                }
                Some(Err(error)) => return Err(Cut::Failed(error)),
                None => return Err(Cut::Failed(ProviderError::Cut)),
            }
        }
    }

    fn finished(&mut self, step: Step) -> AgentEvent {
        let Step { mut text, reason, reasoning, usage, .. } = step;
        let mut note = |words: &str| {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(words);
        };
        match reason {
            FinishReason::Stop | FinishReason::ToolCalls => {}
            FinishReason::Length => note("*(The answer was cut off at the model's limit.)*"),
            FinishReason::Refused => note("*(The model declined to go on.)*"),
        }
        for tool in self.unknown.drain(..) {
            note(&format!(
                "*(A restart interrupted `{tool}`. Whether it took effect is not known; it was not repeated.)*"
            ));
        }
        let files = std::mem::take(&mut self.files);
        AgentEvent::Finished { text, files, reasoning, usage }
    }

    async fn call_all(&mut self, calls: Vec<ToolCall>) -> Result<(), Cut> {
        for call in calls {
            let tool = call.tool.clone();
            self.doing(|| format!("using {tool}"));
            let result = match self.call(&call).await? {
                Ok(output) => (bounded(output.text), output.files, false),
                Err(error) => (bounded(error.to_string()), Vec::new(), true),
            };
            let (output, files, failed) = result;
            self.files.extend(files.iter().cloned());
            self.messages.push(PromptMessage::ToolResult {
                call: call.id.clone(),
                output: output.clone(),
                failed,
            });
            self.emitter.emit(AgentEvent::Called { call: call.id, output, files, failed }).await;
        }
        self.preview.send_if_modified(|preview| preview.doing.take().is_some());
        Ok(())
    }

    async fn call(&mut self, call: &ToolCall) -> Result<Result<ToolOutput, ToolError>, Cut> {
        let Some(tool) = self.agent.toolbox.get(&call.tool).cloned() else {
            let problem = format!("there is no tool named {:?}", call.tool);
            return Ok(Err(ToolError::Failed(problem)));
        };
        let arguments = match serde_json::from_str(&call.arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(Err(ToolError::Arguments(error.to_string()))),
        };
        if call.tool == Ask::NAME {
            return match Ask::question(&self.turn.id, &call.id, arguments) {
                Ok(question) => self.ask_person(question).await.map(Ok),
                Err(error) => Ok(Err(error)),
            };
        }
        let was_started = self.turn.started.contains(&call.id);
        match (tool.effect(), was_started) {
            (EffectClass::Pure, _) | (EffectClass::Idempotent, true) => {}
            (EffectClass::Queryable, true) => match tool.outcome(&call.id).await {
                Ok(None) => {}
                Ok(Some(output)) => return Ok(Ok(output)),
                Err(error) => return Ok(Err(error)),
            },
            (EffectClass::Unsafe, true) => {
                self.unknown.push(call.tool.clone());
                return Ok(Err(ToolError::Failed(UNKNOWN_EFFECT.into())));
            }
            (_, false) => {
                self.emitter.emit(AgentEvent::Calling { call: call.id.clone() }).await;
            }
        }
        let scope = ToolScope {
            call: call.id.clone(),
            turn: self.turn.id.clone(),
            from: self.turn.from.clone(),
            at: self.turn.at.clone(),
        };
        let mut work = AssertUnwindSafe(tool.call(arguments, scope)).catch_unwind();
        loop {
            tokio::select! {
                biased;
                word = self.words.recv() => self.hear(word).await?,
                () = &mut self.limit => return Err(Cut::TimedOut),
                result = &mut work => return Ok(result.unwrap_or_else(|_| {
                    tracing::error!(tool = call.tool, "a tool panicked");
                    Err(ToolError::Failed("the tool broke down in the middle of its work".into()))
                })),
            }
        }
    }

    /// Puts a question and waits, for as long as it takes: the session ends the wait.
    async fn ask_person(&mut self, question: Question) -> Result<ToolOutput, Cut> {
        let already = self.turn.asked.take().is_some_and(|asked| asked.call == question.call);
        self.preview.send_replace(Preview::default());
        if !already {
            self.emitter.emit(AgentEvent::Asked(question.clone())).await;
        }
        let asked = self.agent.clock.now();
        let answer = loop {
            match self.words.recv().await {
                Some(Word::Answer(answer)) => break answer,
                word => self.hear(word).await?,
            }
        };
        // The time a person takes is not the turn's.
        let now = self.agent.clock.now();
        self.deadline = self.deadline + now.since(asked);
        self.limit = self.agent.clock.sleep(self.deadline.since(now));
        let text = match answer {
            Answer::Said(text) => text,
            Answer::Chosen(id) => question
                .choices
                .into_iter()
                .find(|choice| choice.id == id)
                .map_or_else(|| "something else".to_owned(), |choice| choice.label),
            Answer::Expired => "(nobody answered in time)".to_owned(),
        };
        Ok(ToolOutput { text: format!("The person answered: {text}"), files: Vec::new() })
    }

    /// Takes in what was said while the turn ran.
    async fn take_steers(&mut self) -> Result<(), Cut> {
        while let Ok(word) = self.words.try_recv() {
            self.hear(Some(word)).await?;
        }
        if self.steers.is_empty() {
            return Ok(());
        }
        let mut seqs = Vec::with_capacity(self.steers.len());
        for (seq, parts) in self.steers.drain(..) {
            seqs.push(seq);
            self.messages.push(PromptMessage::User(parts));
        }
        self.emitter.emit(AgentEvent::Took { seqs }).await;
        Ok(())
    }

    async fn hear(&mut self, word: Option<Word>) -> Result<(), Cut> {
        match word {
            // Nobody holds the other end any more: the turn was abandoned.
            None | Some(Word::Stop) => Err(Cut::Stopped),
            // An answer to a question that is not open.
            Some(Word::Answer(_)) => Ok(()),
            Some(Word::Steer { seq, message, .. }) => {
                let mut parts = vec![Part::Text(message.text)];
                for file in &message.files {
                    let sight = self.agent.settings.sight;
                    parts.push(prompt::part(file, sight, self.agent.attachments.as_ref()).await);
                }
                self.steers.push_back((seq, parts));
                Ok(())
            }
        }
    }

    fn doing(&self, what: impl FnOnce() -> String) {
        self.preview.send_if_modified(|preview| {
            if preview.doing.is_some() && !preview.text.is_empty() {
                return false;
            }
            let what = Some(what());
            let changed = preview.doing != what;
            preview.doing = what;
            changed
        });
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > TOOL_OUTPUT {
        let end = text.floor_char_boundary(TOOL_OUTPUT);
        text.truncate(end);
        text.push_str("\n[the rest was cut off]");
    }
    text
}
