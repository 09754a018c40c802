//! Prompts to ask, and what came of them.

use std::sync::Arc;

use futures::StreamExt;
use serde_json::json;
use talaria_agent::{
    Delta, Deltas, FinishReason, Part, Prompt, PromptMessage, ProviderError, ToolSpec,
};
use talaria_model::{CallId, Cost, ToolCall, Usage};

pub(crate) fn user(text: &str) -> PromptMessage {
    PromptMessage::User(vec![Part::Text(text.to_owned())])
}

pub(crate) fn assistant(text: &str) -> PromptMessage {
    PromptMessage::Assistant { text: text.to_owned(), calls: Vec::new(), reasoning: None }
}

pub(crate) fn calling(
    text: &str,
    calls: Vec<ToolCall>,
    reasoning: Option<String>,
) -> PromptMessage {
    PromptMessage::Assistant { text: text.to_owned(), calls, reasoning }
}

pub(crate) fn call(id: &str, tool: &str, arguments: &str) -> ToolCall {
    let id = CallId::new(id).unwrap();
    ToolCall { id, tool: tool.to_owned(), arguments: arguments.to_owned() }
}

pub(crate) fn result(id: &str, output: &str) -> PromptMessage {
    PromptMessage::ToolResult {
        call: CallId::new(id).unwrap(),
        output: output.to_owned(),
        failed: false,
    }
}

pub(crate) fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("Use {name}."),
        parameters: json!({ "type": "object", "properties": { "city": { "type": "string" } } }),
    }
}

pub(crate) fn prompt(messages: Vec<PromptMessage>) -> Prompt {
    Prompt { system: "Be brief.".into(), messages, tools: Arc::new([]), effort: None }
}

pub(crate) fn prompt_with(messages: Vec<PromptMessage>, tools: &[&str]) -> Prompt {
    Prompt { tools: tools.iter().map(|name| tool(name)).collect(), ..prompt(messages) }
}

pub(crate) fn hello() -> Prompt {
    prompt(vec![user("Hello")])
}

/// Everything that came of a completion.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) text: String,
    pub(crate) thought: String,
    pub(crate) restarts: usize,
    pub(crate) finished: Option<Finished>,
    pub(crate) error: Option<ProviderError>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Finished {
    pub(crate) reason: FinishReason,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) reasoning: Option<String>,
    pub(crate) usage: Usage,
    pub(crate) cost: Cost,
}

pub(crate) async fn collect(mut deltas: Deltas) -> Outcome {
    let mut outcome = Outcome::default();
    while let Some(item) = deltas.next().await {
        assert!(outcome.finished.is_none() && outcome.error.is_none(), "something after the end");
        match item {
            Ok(Delta::Text(text)) => outcome.text.push_str(&text),
            Ok(Delta::Reasoning(text)) => outcome.thought.push_str(&text),
            Ok(Delta::Restarted) => {
                outcome.text.clear();
                outcome.thought.clear();
                outcome.restarts += 1;
            }
            Ok(Delta::Finished { reason, calls, reasoning, usage, cost }) => {
                outcome.finished = Some(Finished { reason, calls, reasoning, usage, cost });
            }
            Err(error) => outcome.error = Some(error),
        }
    }
    outcome
}

impl Outcome {
    pub(crate) fn finished(&self) -> &Finished {
        self.finished.as_ref().unwrap_or_else(|| panic!("not finished: {self:?}"))
    }

    pub(crate) fn error(&self) -> &ProviderError {
        self.error.as_ref().unwrap_or_else(|| panic!("no error: {self:?}"))
    }
}
