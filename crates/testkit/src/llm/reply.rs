//! What the model answers, as JSON.

use std::time::Duration;

use serde_json::json;

/// The list of models.
pub(super) const MODELS: &str =
    r#"{"object":"list","data":[{"id":"test-model","object":"model","owned_by":"nobody"}]}"#;

/// One answer of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Text.
    Says(String),
    /// Text, a word at a time with a pause before each.
    Streams {
        /// The text.
        text: String,
        /// The pause.
        between: Duration,
    },
    /// Text, perhaps none, and calls of tools.
    Calls(String, Vec<ScriptedCall>),
    /// Text whose stream ends before the model said that it was done.
    Breaks(String),
    /// An error instead of an answer.
    Refuses {
        /// The HTTP status.
        status: u16,
        /// The body, JSON.
        body: String,
    },
}

/// A tool that the model wants called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedCall {
    /// The tool.
    pub tool: String,
    /// A JSON object.
    pub arguments: String,
}

/// A streamed answer: its events, and whether it ends as it should.
pub(super) struct Pieces {
    pub(super) events: Vec<String>,
    pub(super) is_whole: bool,
}

impl Reply {
    /// How long it pauses between two pieces, where it says so itself.
    pub(super) fn between(&self) -> Option<Duration> {
        match self {
            Self::Streams { between, .. } => Some(*between),
            _ => None,
        }
    }

    /// As a stream: a piece per word.
    pub(super) fn pieces(&self, number: u64) -> Pieces {
        let (text, calls, is_whole) = match self {
            Self::Says(text) | Self::Streams { text, .. } => (text.as_str(), &[][..], true),
            Self::Calls(text, calls) => (text.as_str(), calls.as_slice(), true),
            Self::Breaks(text) => (text.as_str(), &[][..], false),
            Self::Refuses { .. } => ("", &[][..], false),
        };
        let mut events = Vec::with_capacity(text.len() / 5 + 4);
        events.push(event(r#"{"role":"assistant","content":""}"#, "null"));
        for word in text.split_inclusive(' ') {
            let word = serde_json::Value::from(word);
            events.push(event(&format!(r#"{{"content":{word}}}"#), "null"));
        }
        for (index, call) in calls.iter().enumerate() {
            let delta = json!({ "tool_calls": [{
                "index": index,
                "id": call_id(number, index),
                "type": "function",
                "function": { "name": call.tool, "arguments": call.arguments },
            }]});
            events.push(event(&delta.to_string(), "null"));
        }
        if is_whole {
            let reason = if calls.is_empty() { r#""stop""# } else { r#""tool_calls""# };
            events.push(event("{}", reason));
            events.push(format!("{HEAD},\"choices\":[],\"usage\":{USAGE}}}"));
        }
        Pieces { events, is_whole }
    }

    /// As one JSON object.
    pub(super) fn whole(&self, number: u64) -> String {
        let (text, calls) = match self {
            Self::Says(text) | Self::Streams { text, .. } | Self::Breaks(text) => {
                (text.as_str(), &[][..])
            }
            Self::Calls(text, calls) => (text.as_str(), calls.as_slice()),
            Self::Refuses { body, .. } => return body.clone(),
        };
        let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
        let mut message = json!({ "role": "assistant", "content": text });
        if !calls.is_empty() {
            let calls = calls.iter().enumerate().map(|(index, call)| {
                json!({
                    "id": call_id(number, index),
                    "type": "function",
                    "function": { "name": call.tool, "arguments": call.arguments },
                })
            });
            message["tool_calls"] = calls.collect();
        }
        json!({
            "id": "c1",
            "object": "chat.completion",
            "created": 0,
            "model": "test-model",
            "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
            "usage": { "prompt_tokens": 8, "completion_tokens": 8, "total_tokens": 16 },
        })
        .to_string()
    }
}

const HEAD: &str =
    r#"{"id":"c1","object":"chat.completion.chunk","created":0,"model":"test-model""#;
const USAGE: &str = r#"{"prompt_tokens":8,"completion_tokens":8,"total_tokens":16}"#;

fn event(delta: &str, reason: &str) -> String {
    format!(r#"{HEAD},"choices":[{{"index":0,"delta":{delta},"finish_reason":{reason}}}]}}"#)
}

fn call_id(number: u64, index: usize) -> String {
    format!("call_{number}_{index}")
}
