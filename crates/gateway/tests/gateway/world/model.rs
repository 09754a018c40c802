//! The built-in agent with a model that is a function of what it is asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use talaria_agent::{
    Agent, Attachments, BuiltIn, Delta, Deltas, EffectClass, FinishReason, Part, Prompt,
    PromptMessage, Provider, Settings, Sight, Tool, ToolError, ToolOutput, ToolScope, ToolSpec,
    Toolbox, tools,
};
use talaria_clock::{Clock, SystemClock};
use talaria_model::{CallId, FileRef, ToolCall, Usage};

/// What a tool did in the world outside, which no crash undoes.
pub(crate) type Deeds = Arc<Mutex<Vec<String>>>;

/// The built-in agent. Its model echoes; said `pay`, it calls the unsafe tool first, said `look`,
/// the pure one, said `choose`, it asks.
pub(crate) fn built_in(deeds: &Deeds) -> Arc<dyn Agent> {
    let tool = |name, effect, takes| Deed { name, effect, takes, deeds: deeds.clone() };
    let moment = Duration::from_secs(2);
    let toolbox = Toolbox::default()
        .with(tools::Ask)
        .with(tool("pay", EffectClass::Unsafe, moment))
        .with(tool("look", EffectClass::Pure, moment))
        .with(tool("hang", EffectClass::Idempotent, Duration::from_secs(1_000_000)));
    let settings = Settings {
        instructions: "Echo.".into(),
        max_steps: 8,
        turn_limit: Duration::from_secs(1800),
        sight: Sight::TextOnly,
    };
    Arc::new(BuiltIn::new(
        Arc::new(Parrot),
        toolbox,
        Arc::new(NoAttachments),
        Arc::new(SystemClock),
        settings,
    ))
}

/// A model that says what it heard, slowly.
struct Parrot;

impl Provider for Parrot {
    fn complete(&self, prompt: Prompt) -> Deltas {
        let asked = prompt.messages.iter().rev().take_while(|message| {
            !matches!(message, PromptMessage::Assistant { calls, .. } if calls.is_empty())
        });
        let asked: Vec<_> = asked.collect();
        let said: Vec<&str> = asked
            .iter()
            .rev()
            .filter_map(|message| match message {
                PromptMessage::User(parts) => parts.iter().find_map(|part| match part {
                    Part::Text(text) => Some(text.as_str()),
                    Part::Image { .. } => None,
                }),
                _ => None,
            })
            .collect();
        let said = said.join(" / ");
        let result = match asked.first() {
            Some(PromptMessage::ToolResult { output, .. }) => Some(output.clone()),
            _ => None,
        };
        let mut deltas = Vec::new();
        let wants = |word: &str| result.is_none() && said.contains(word);
        let call = |tool: &str, arguments: Value| {
            let id = CallId::new(format!("call-{}", prompt.messages.len())).unwrap();
            vec![ToolCall { id, tool: tool.into(), arguments: arguments.to_string() }]
        };
        let (text, calls) = if wants("pay") {
            (format!("First I pay for {said}, then I tell."), call("pay", json!({})))
        } else if wants("look") {
            (String::new(), call("look", json!({})))
        } else if wants("hang") {
            (String::new(), call("hang", json!({})))
        } else if wants("choose") {
            let ask =
                json!({ "question": format!("Which one for {said}?"), "choices": ["red", "blue"] });
            (String::new(), call("ask", ask))
        } else {
            let seen = result.map_or(String::new(), |result| format!(" ({result})"));
            (format!("echo: {said}{seen} and so the story goes on to its very end. done"), vec![])
        };
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(12) {
            deltas.push(Delta::Text(piece.iter().collect()));
        }
        let reason = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        let usage = Usage::default();
        deltas.push(Delta::Finished { reason, calls, reasoning: None, usage });
        stream::iter(deltas)
            .then(|delta| async {
                SystemClock.sleep(Duration::from_millis(500)).await;
                Ok(delta)
            })
            .boxed()
    }

    fn name(&self) -> &str {
        "test/parrot"
    }

    fn context_window(&self) -> Option<u64> {
        None
    }
}

/// A tool that takes a while and leaves a trace in the world.
struct Deed {
    name: &'static str,
    effect: EffectClass,
    takes: Duration,
    deeds: Deeds,
}

#[async_trait]
impl Tool for Deed {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object" });
        ToolSpec { name: self.name.into(), description: "Does it.".into(), parameters }
    }

    fn effect(&self) -> EffectClass {
        self.effect
    }

    async fn call(&self, _: Value, scope: ToolScope) -> Result<ToolOutput, ToolError> {
        SystemClock.sleep(self.takes / 2).await;
        self.deeds.lock().unwrap().push(format!("{} {}", self.name, scope.turn.number));
        SystemClock.sleep(self.takes / 2).await;
        Ok(ToolOutput { text: format!("{} is done", self.name), files: vec![] })
    }

    async fn outcome(&self, _: &CallId) -> Result<Option<ToolOutput>, ToolError> {
        Ok(None)
    }
}

struct NoAttachments;

#[async_trait]
impl Attachments for NoAttachments {
    async fn load(&self, _: &FileRef, _: u64) -> Option<Vec<u8>> {
        None
    }

    async fn save(&self, _: &str, _: &str, _: Vec<u8>) -> Result<FileRef, String> {
        Err("no files here".into())
    }
}
