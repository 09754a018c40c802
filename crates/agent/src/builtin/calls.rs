//! The tools that the model wants called, and the person it wants asked.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use talaria_model::{AgentEvent, Answer, Attended, Question, ToolCall, Word, Work};

use super::{Cut, TurnLoop};
use crate::budget::BYTES_PER_TOKEN;
use crate::compress::shorten;
use crate::prompt::{self, Sight};
use crate::tools::Ask;
use crate::{EffectClass, Part, Preview, PromptMessage, ToolError, ToolOutput, ToolScope};

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

impl TurnLoop {
    pub(super) async fn call_all(&mut self, calls: Vec<ToolCall>) -> Result<(), Cut> {
        for call in calls {
            let tool = call.tool.clone();
            self.doing(|| format!("using {tool}"));
            let delegates = self.agent.toolbox.delegates(&call.tool);
            if delegates {
                self.emitter.emit(AgentEvent::Working(Work::SubWork)).await;
            }
            let result = match self.call(&call).await? {
                Ok(output) => (self.bounded(output.text), output.files, false),
                Err(error) => (self.bounded(error.to_string()), Vec::new(), true),
            };
            let (output, files, failed) = result;
            self.files.extend(files.iter().cloned());
            self.messages.push(PromptMessage::ToolResult {
                call: call.id.clone(),
                output: output.clone(),
                failed,
            });
            self.emitter.emit(AgentEvent::Called { call: call.id, output, files, failed }).await;
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
        let arguments = match serde_json::from_str(&call.arguments) {
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
        let (answer, files) = loop {
            match self.words.recv().await {
                Some(Word::Answer { answer, files }) => break (answer, files),
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
        let mut text = format!("The person answered: {text}");
        for file in &files {
            // A result has no room for pictures.
            let part = prompt::part(file, Sight::TextOnly, self.agent.attachments.as_ref()).await;
            if let Part::Text(words) = part {
                text.push_str("\n\n");
                text.push_str(&words);
            }
        }
        Ok(ToolOutput { text, files: Vec::new() })
    }

    /// What a tool returned, with its middle cut out where it would take too much of the window.
    fn bounded(&self, mut text: String) -> String {
        let most = (self.window * BYTES_PER_TOKEN / 8).clamp(LEAST_OUTPUT, TOOL_OUTPUT);
        shorten(&mut text, usize::try_from(most).unwrap_or(usize::MAX));
        text
    }
}
