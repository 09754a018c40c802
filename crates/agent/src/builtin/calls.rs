//! The tools that the model wants called, and the person it wants asked.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use serde_json::Value;
use talaria_model::{
    AgentEvent, Answer, Attended, Digest, FileRef, Question, ToolCall, Unasked, Word, Work,
};

use super::{Cut, TurnLoop};
use crate::approval::Invocation;
use crate::budget::BYTES_PER_TOKEN;
use crate::compress::shorten;
use crate::prompt::{self, Sight};
use crate::tools::Ask;
use crate::{
    Danger, EffectClass, Gravity, Part, PromptMessage, Reads, Tool, ToolError, ToolOutput,
    ToolScope, Turn, Wraps,
};

/// The most of a tool's output that is put before the model.
const TOOL_OUTPUT: u64 = 64 * 1024;

/// The least, however little the model reads.
const LEAST_OUTPUT: u64 = 1024;

/// What the model is told about an unsafe call that a restart cut off.
pub(super) const UNKNOWN_EFFECT: &str = "This call was started before a restart. Whether it took effect is not \
                              known, and it was not repeated.";

/// What the model is told that asks where nobody is.
const NOBODY_THERE: &str = "this is work in the background, and nobody is there to answer; decide for yourself, \
                            and say in the answer what you assumed";

/// What the model is told about a call that was not approved.
const DENIED: &str = "The person did not approve this call, and it was not made. Do not try it again, and do \
                      not reach the same end in another way; go on without it or ask what they want instead.";

const UNANSWERED: &str = "Nobody approved this call in time, and it was not made. Do not try it again by \
                          yourself; say in the answer what is still to be done.";

const NOBODY_APPROVES: &str = "this call has to be approved by a person, and this is work in the background, \
                               where nobody is there; it was not made. Say in the answer what is still to be \
                               done";

const TOO_LONG: &str = "this call has to be approved by a person, and it is too long to be shown to one; it was \
                        not made. Make it shorter";

const CHANGED: &str = "What this call would do is not what the person was asked about any more, and it was not \
                       made.";

const REFUSED: &str =
    "The operator does not let this call be made. Do not try it again in another way.";

const NOT_THEIRS: &str = "The role of the person you work for does not let them use this tool. Do not try to \
                          reach the same end in another way; say so if it matters.";

/// Whether a question is before the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Posed {
    Already,
    NotYet,
}

impl TurnLoop {
    pub(super) async fn call_all(&mut self, calls: Vec<ToolCall>) -> Result<(), Cut> {
        for call in calls {
            let tool = call.tool.clone();
            self.doing(|| format!("using {tool}"));
            let delegates = self.agent.toolbox.delegates(&call.tool);
            if delegates {
                self.emitter.emit(AgentEvent::Working(Work::SubWork)).await;
            }
            let (ToolOutput { text, files, sends }, failed) = match self.call(&call).await? {
                Ok(output) => (output, false),
                Err(error) => (ToolOutput::text(error.to_string()), true),
            };
            let output = self.bounded(text);
            self.files.extend(files.iter().cloned());
            self.messages.push(PromptMessage::ToolResult {
                call: call.id.clone(),
                output: output.clone(),
                failed,
            });
            let (call, refused) = (call.id, self.refused.take().map(Box::new));
            let called = AgentEvent::Called { call, output, files, sends, failed, refused };
            self.emitter.emit(called).await;
            if delegates {
                self.emitter.emit(AgentEvent::Working(Work::Plain)).await;
            }
        }
        self.preview.send_if_modified(|preview| preview.doing.take().is_some());
        Ok(())
    }

    async fn call(&mut self, call: &ToolCall) -> Result<Result<ToolOutput, ToolError>, Cut> {
        let Some(tool) = self.agent.toolbox.get(&call.tool).cloned() else {
            let problem = format!("there is no tool named {:?}", call.tool);
            return Ok(Err(ToolError::Failed(problem)));
        };
        if !self.turn.tools.permits(&call.tool) {
            return Ok(Err(ToolError::Failed(NOT_THEIRS.into())));
        }
        let arguments: Value = match serde_json::from_str(&call.arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(Err(ToolError::Arguments(error.to_string()))),
        };
        if call.tool == Ask::NAME && self.turn.attended == Attended::No {
            return Ok(Err(ToolError::Failed(NOBODY_THERE.into())));
        }
        if call.tool == Ask::NAME {
            return match Ask::question(&self.turn.id, &call.id, arguments) {
                Ok(question) => self.ask_person(question).await.map(Ok),
                Err(error) => Ok(Err(error)),
            };
        }
        if self.refuses(call, &arguments) {
            return Ok(Err(self.not_made(tool.as_ref(), call, &arguments, REFUSED)));
        }
        let was_started = self.turn.started.contains(&call.id);
        match (tool.effect(), was_started) {
            (EffectClass::Queryable, true) => match tool.outcome(&call.id).await {
                Ok(None) => {}
                Ok(Some(output)) => return Ok(Ok(output)),
                Err(error) => return Ok(Err(error)),
            },
            (EffectClass::Unsafe, true) => {
                self.unknown.push(call.tool.clone());
                return Ok(Err(ToolError::Failed(UNKNOWN_EFFECT.into())));
            }
            (EffectClass::Pure | EffectClass::Idempotent, _) | (_, false) => {}
        }
        let approved = match self.approve(tool.as_ref(), call, &arguments).await? {
            Ok(approved) => approved,
            Err(error) => return Ok(Err(error)),
        };
        if tool.effect() != EffectClass::Pure && !was_started {
            let is_unasked = approved.is_none() && reaches_outside(tool.effect());
            let unasked =
                is_unasked.then(|| Box::new(self.unasked(tool.as_ref(), call, &arguments)));
            self.emitter.emit(AgentEvent::Calling { call: call.id.clone(), unasked }).await;
        }
        // A person may have taken long to answer.
        if !self.turn.tools.permits(&call.tool) {
            return Ok(Err(self.not_made(tool.as_ref(), call, &arguments, NOT_THEIRS)));
        }
        // Nothing comes between this and the call.
        if let Err(error) = self.check(tool.as_ref(), call, &arguments, approved) {
            self.refused = Some(self.decided(tool.as_ref(), call, &arguments, approved));
            return Ok(Err(error));
        }
        let scope = self.scope(call);
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

    /// Asks before a call is made that must be asked about; says what was approved. An error says why the
    /// call is not made.
    async fn approve(
        &mut self,
        tool: &dyn Tool,
        call: &ToolCall,
        arguments: &Value,
    ) -> Result<Result<Option<Digest>, ToolError>, Cut> {
        let danger = match tool.gravity(arguments, &self.scope(call)) {
            Ok(Gravity::Harmless) => return Ok(Ok(None)),
            Ok(Gravity::Asks(danger)) => danger,
            Err(error) => return Ok(Err(error)),
        };
        let not_made = |why: &str| Ok(Err(ToolError::Failed(why.to_owned())));
        let asking = self.invocation(call, &danger);
        let unaskable = match asking.shown() {
            _ if self.refuses(call, &danger.resolved) => Err(REFUSED),
            _ if self.turn.attended == Attended::No => Err(NOBODY_APPROVES),
            None => Err(TOO_LONG),
            Some(text) => Ok(text),
        };
        let text = match unaskable {
            Ok(text) => text,
            Err(why) => return Ok(Err(self.not_made(tool, call, arguments, why))),
        };
        let approval = asking.approval();
        let (digest, choices) = (approval.digest, approval.choices());
        let asked = self.turn.asked.take().filter(|asked| asked.call == call.id);
        if asked
            .as_ref()
            .is_some_and(|asked| asked.approval.as_ref().is_none_or(|asked| asked.digest != digest))
        {
            return not_made(CHANGED);
        }
        let approval = Some(Box::new(approval));
        let question = Question { call: call.id.clone(), text, choices, approval };
        let posed = if asked.is_some() { Posed::Already } else { Posed::NotYet };
        let (answer, _) = self.put(&question, posed).await?;
        match answer {
            Answer::Approved { digest: approved, .. } => {
                let checked = self.check(tool, call, arguments, Some(approved));
                if checked.is_err() {
                    self.refused = Some(self.decided(tool, call, arguments, Some(approved)));
                }
                Ok(checked.map(|()| Some(approved)))
            }
            Answer::Denied { reason } if reason.is_empty() => not_made(DENIED),
            Answer::Denied { reason } => {
                let said = format!("{reason:?}");
                not_made(&format!("{DENIED} The reason given: {said}"))
            }
            Answer::Expired => not_made(UNANSWERED),
            // Nothing else is a yes.
            Answer::Chosen(_) | Answer::Said(_) => not_made(DENIED),
        }
    }

    /// A call that is not made, whoever would approve it. It is on record, so that an operator sees what the model
    /// was talked into.
    fn not_made(
        &mut self,
        tool: &dyn Tool,
        call: &ToolCall,
        arguments: &Value,
        why: &str,
    ) -> ToolError {
        self.refused = Some(self.unasked(tool, call, arguments));
        ToolError::Failed(why.to_owned())
    }

    /// A call that nobody is asked about, by what they would be asked.
    fn unasked(&self, tool: &dyn Tool, call: &ToolCall, arguments: &Value) -> Unasked {
        self.decided(tool, call, arguments, None)
    }

    /// A call that is decided about here, by what was approved if something was.
    fn decided(
        &self,
        tool: &dyn Tool,
        call: &ToolCall,
        arguments: &Value,
        approved: Option<Digest>,
    ) -> Unasked {
        let digest = approved.unwrap_or_else(|| {
            let danger = match tool.gravity(arguments, &self.scope(call)) {
                Ok(Gravity::Asks(danger)) => danger,
                Ok(Gravity::Harmless) | Err(_) => Danger {
                    what: String::new(),
                    resolved: arguments.clone(),
                    wraps: Wraps::Nothing,
                    reads: Reads::Signs,
                },
            };
            self.invocation(call, &danger).digest()
        });
        Unasked { tool: call.tool.clone(), digest }
    }

    /// Whether the operator lets nobody call this at this moment, by what was written or by what that stands for.
    fn refuses(&self, call: &ToolCall, arguments: &Value) -> bool {
        self.agent.settings.fence.now().refused.holds(&call.tool, arguments)
    }

    /// Compares what is about to happen with what was approved, not with what was to happen when somebody
    /// was asked. What the operator refuses by now is not what anybody could approve.
    fn check(
        &self,
        tool: &dyn Tool,
        call: &ToolCall,
        arguments: &Value,
        approved: Option<Digest>,
    ) -> Result<(), ToolError> {
        let refused = || Err(ToolError::Failed(REFUSED.to_owned()));
        if self.refuses(call, arguments) {
            return refused();
        }
        let about = match tool.gravity(arguments, &self.scope(call))? {
            Gravity::Harmless => None,
            Gravity::Asks(danger) if self.refuses(call, &danger.resolved) => return refused(),
            Gravity::Asks(danger) => Some(self.invocation(call, &danger).digest()),
        };
        match about == approved {
            true => Ok(()),
            false => Err(ToolError::Failed(CHANGED.to_owned())),
        }
    }

    fn scope(&self, call: &ToolCall) -> ToolScope {
        let Turn { id: turn, from, at, elsewhere, .. } = &self.turn;
        ToolScope {
            call: call.id.clone(),
            turn: turn.clone(),
            from: from.clone(),
            at: at.clone(),
            elsewhere: elsewhere.clone(),
        }
    }

    fn invocation<'a>(&'a self, call: &'a ToolCall, danger: &'a Danger) -> Invocation<'a> {
        let Turn { id: turn, from, at, .. } = &self.turn;
        Invocation { turn, call: &call.id, tool: &call.tool, from, at, danger }
    }

    async fn ask_person(&mut self, question: Question) -> Result<ToolOutput, Cut> {
        let posed = match self.turn.asked.take() {
            Some(asked) if asked.call == question.call => Posed::Already,
            _ => Posed::NotYet,
        };
        let (answer, files) = self.put(&question, posed).await?;
        let text = match answer {
            Answer::Said(text) => text,
            Answer::Chosen(id) => question
                .choices
                .into_iter()
                .find(|choice| choice.id == id)
                .map_or_else(|| "something else".to_owned(), |choice| choice.label),
            Answer::Expired => "(nobody answered in time)".to_owned(),
            // These are for other questions.
            Answer::Approved { .. } | Answer::Denied { .. } => "something else".to_owned(),
        };
        let mut text = format!("The person answered: {text}");
        for file in &files {
            // A result has no room for pictures.
            let attachments = self.agent.attachments.as_ref();
            for part in prompt::parts_of(file, Sight::TextOnly, attachments).await {
                if let Part::Text(words) = part {
                    text.push_str("\n\n");
                    text.push_str(&words);
                }
            }
        }
        Ok(ToolOutput::text(text))
    }

    /// Puts a question, unless it is open already, and waits for as long as it takes: the session ends
    /// the wait.
    async fn put(
        &mut self,
        question: &Question,
        posed: Posed,
    ) -> Result<(Answer, Vec<FileRef>), Cut> {
        self.clear_preview();
        if posed == Posed::NotYet {
            self.emitter.emit(AgentEvent::Asked(question.clone())).await;
        }
        let asked = self.agent.clock.now();
        let answered = loop {
            match self.words.recv().await {
                Some(Word::Answer { to, answer, files }) if to == question.call => {
                    break (answer, files);
                }
                word => self.hear(word).await?,
            }
        };
        // The time a person takes is not the turn's.
        let now = self.agent.clock.now();
        self.deadline = self.deadline + now.since(asked);
        self.limit = self.agent.clock.sleep(self.deadline.since(now));
        Ok(answered)
    }

    /// What a tool returned, with its middle cut out where it would take too much of the window.
    fn bounded(&self, mut text: String) -> String {
        let most = (self.window * BYTES_PER_TOKEN / 8).clamp(LEAST_OUTPUT, TOOL_OUTPUT);
        shorten(&mut text, usize::try_from(most).unwrap_or(usize::MAX));
        text
    }
}

/// Whether a call may change something outside, so that it is on record.
const fn reaches_outside(effect: EffectClass) -> bool {
    match effect {
        EffectClass::Queryable | EffectClass::Unsafe => true,
        EffectClass::Pure | EffectClass::Idempotent => false,
    }
}
