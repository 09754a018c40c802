//! Deltas from the chunks of a chat completion.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::Value;
use serde_json::value::RawValue;
use talaria_agent::{Delta, FinishReason, ProviderError};
use talaria_model::Usage;

use super::encode::Kept;
use crate::assemble::{Arguments, Assembly, Ending, Piece};
use crate::exchange::{Decode, Out, Progress};
use crate::kept::{MOST_KEPT, keep};
use crate::mint::call_id;
use crate::price::Pricing;
use crate::refusal::{Refusal, plain};
use crate::settings::Settings;
use crate::sse::Event;
use crate::think::{Thoughts, Told};

/// Reads one answer.
pub(super) struct Decoder {
    provider: String,
    used_ids: BTreeSet<String>,
    thoughts: Thoughts,
    calls: Assembly,
    reason: Option<String>,
    usage: Usage,
    pricing: Pricing,
    /// What the answer cost in US dollars, where the provider says so.
    billed: Option<f64>,
    spoke: bool,
    reasoning_content: Option<String>,
    reasoning_details: Vec<Value>,
    kept: usize,
}

/// A chunk of a stream, or a whole answer: they differ in `delta` and `message` only.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default, deserialize_with = "null_is_none")]
    choices: Vec<Choice>,
    usage: Option<WireUsage>,
    error: Option<Value>,
    object: Option<String>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    delta: Option<Said>,
    message: Option<Said>,
    finish_reason: Option<String>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Said {
    content: Option<Content>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    #[serde(default, deserialize_with = "null_is_none")]
    reasoning_details: Vec<Value>,
    #[serde(default, deserialize_with = "null_is_none")]
    tool_calls: Vec<WireCall>,
}

/// Text, or as Mistral writes it a list of parts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart {
    Text {
        text: String,
    },
    Thinking {
        thinking: Vec<ContentPart>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct WireCall {
    index: Option<u64>,
    id: Option<String>,
    function: Option<WireFunction>,
    extra_content: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct WireFunction {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default, deserialize_with = "null_is_none")]
    prompt_tokens: u64,
    #[serde(default, deserialize_with = "null_is_none")]
    completion_tokens: u64,
    #[serde(default, deserialize_with = "null_is_none")]
    prompt_tokens_details: PromptDetails,
    #[serde(default, deserialize_with = "null_is_none")]
    completion_tokens_details: CompletionDetails,
    /// <https://openrouter.ai/docs/use-cases/usage-accounting>
    cost: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PromptDetails {
    #[serde(deserialize_with = "null_is_none")]
    cached_tokens: u64,
    #[serde(deserialize_with = "null_is_none")]
    cache_write_tokens: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CompletionDetails {
    #[serde(deserialize_with = "null_is_none")]
    reasoning_tokens: u64,
}

/// Servers write `null` where they could write nothing.
fn null_is_none<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let PromptDetails { cached_tokens, cache_write_tokens } = wire.prompt_tokens_details;
        Self {
            input: wire.prompt_tokens.saturating_sub(cached_tokens + cache_write_tokens),
            output: wire.completion_tokens,
            cache_read: cached_tokens,
            cache_write: cache_write_tokens,
            reasoning: wire.completion_tokens_details.reasoning_tokens,
            estimated: 0,
        }
    }
}

impl Decoder {
    pub(super) fn new(settings: &Settings, used_ids: BTreeSet<String>) -> Self {
        Self {
            provider: settings.provider.clone(),
            used_ids,
            thoughts: Thoughts::default(),
            calls: Assembly::default(),
            reason: None,
            usage: Usage::default(),
            pricing: settings.pricing,
            billed: None,
            spoke: false,
            reasoning_content: None,
            reasoning_details: Vec::new(),
            kept: 0,
        }
    }

    fn take(&mut self, chunk: Chunk, out: &mut Out) -> Result<(), ProviderError> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(Refusal::of(&error).error());
        }
        if let Some(usage) = chunk.usage {
            self.billed = usage.cost;
            self.usage = usage.into();
        }
        // Only one answer is asked for; a server that sends several gets the first one heard.
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            if let Some(error) = choice.error.filter(|error| !error.is_null()) {
                return Err(Refusal::of(&error).error());
            }
            if let Some(said) = choice.delta.or(choice.message) {
                self.hear(said, out)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.reason = Some(reason);
            }
        }
        Ok(())
    }

    fn hear(&mut self, said: Said, out: &mut Out) -> Result<(), ProviderError> {
        if let Some(thought) = &said.reasoning_content {
            self.keep_size(thought.len());
            self.reasoning_content.get_or_insert_default().push_str(thought);
        }
        for detail in said.reasoning_details {
            self.keep_detail(detail);
        }
        // OpenRouter sends the same thoughts under both names.
        if let Some(thought) = said.reasoning.or(said.reasoning_content) {
            self.think(thought, out);
        }
        match said.content {
            Some(Content::Text(text)) => self.say(&text, out),
            Some(Content::Parts(parts)) => self.hear_parts(parts, out),
            None => {}
        }
        if let Some(refusal) = said.refusal {
            self.say(&refusal, out);
        }
        for call in said.tool_calls {
            self.spoke = true;
            let function = call.function.unwrap_or(WireFunction { name: None, arguments: None });
            self.calls.add(Piece {
                index: call.index,
                id: call.id,
                tool: function.name,
                arguments: match function.arguments {
                    None | Some(Value::Null) => Arguments::Nothing,
                    Some(Value::String(text)) => Arguments::Text(text),
                    Some(whole) => Arguments::Whole(whole.to_string()),
                },
                note: call.extra_content.map(|note| note.get().to_owned()),
            })?;
        }
        Ok(())
    }

    fn hear_parts(&mut self, parts: Vec<ContentPart>, out: &mut Out) {
        for part in parts {
            match part {
                ContentPart::Text { text } => self.say(&text, out),
                ContentPart::Thinking { thinking } => {
                    for part in thinking {
                        if let ContentPart::Text { text } = part {
                            self.think(text, out);
                        }
                    }
                }
                ContentPart::Other => {}
            }
        }
    }

    fn say(&mut self, text: &str, out: &mut Out) {
        let told = self.thoughts.feed(text);
        self.spoke |= !text.is_empty();
        out.extend(told.into_iter().map(delta));
    }

    fn think(&mut self, thought: String, out: &mut Out) {
        if !thought.is_empty() {
            self.spoke = true;
            out.push_back(Delta::Reasoning(thought));
        }
    }

    fn keep_size(&mut self, more: usize) {
        self.kept += more;
        if self.kept > MOST_KEPT {
            self.reasoning_content = None;
            self.reasoning_details.clear();
        }
    }

    /// Collects the pieces of a thought: text of the same block is joined, the rest stays as it came.
    fn keep_detail(&mut self, detail: Value) {
        self.keep_size(detail.to_string().len());
        if self.kept > MOST_KEPT {
            return;
        }
        if let Some(Value::Object(last)) = self.reasoning_details.last_mut()
            && let Value::Object(new) = &detail
            && ["type", "index"].iter().all(|name| last.get(*name) == new.get(*name))
            && ["text", "summary"].iter().any(|name| last.contains_key(*name))
        {
            for (name, value) in new {
                match (last.get_mut(name), value) {
                    (Some(Value::String(text)), Value::String(more))
                        if name == "text" || name == "summary" =>
                    {
                        text.push_str(more);
                    }
                    (_, Value::Null) => {}
                    _ => {
                        last.insert(name.clone(), value.clone());
                    }
                }
            }
            return;
        }
        self.reasoning_details.push(detail);
    }

    fn progress(&self) -> Progress {
        if self.reason.is_some() {
            Progress::Ending
        } else if self.spoke {
            Progress::Speaking
        } else {
            Progress::Waiting
        }
    }

    /// The server says that this is all. It need not give a reason, but something must have come.
    fn close(&mut self, out: &mut Out) -> Result<(), ProviderError> {
        if self.reason.is_some() || self.spoke { self.finish(out) } else { Err(ProviderError::Cut) }
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), ProviderError> {
        out.extend(self.thoughts.finish().into_iter().map(delta));
        let reason = match self.reason.as_deref() {
            Some("length") => FinishReason::Length,
            Some("content_filter") => FinishReason::Refused,
            Some("error") => {
                return Err(ProviderError::Unavailable { detail: "the model failed".to_owned() });
            }
            _ => FinishReason::Stop,
        };
        let ending = match reason {
            FinishReason::Length => Ending::CutShort,
            _ => Ending::Done,
        };
        let calls = std::mem::take(&mut self.calls).finish(
            ending,
            std::mem::take(&mut self.used_ids),
            call_id,
        )?;
        // What is called counts more than what the reason says: many servers say `stop` either way.
        let reason = if calls.is_empty() { reason } else { FinishReason::ToolCalls };
        let kept = Kept {
            reasoning_content: self.reasoning_content.take(),
            reasoning_details: std::mem::take(&mut self.reasoning_details),
            extra_content: calls.iter().filter_map(note).collect::<BTreeMap<_, _>>(),
        };
        let reasoning =
            (!calls.is_empty() && !kept.is_empty()).then(|| keep(&self.provider, &kept)).flatten();
        let calls = calls.into_iter().map(|complete| complete.call).collect();
        let cost = self.pricing.cost(self.usage, self.billed);
        out.push_back(Delta::Finished { reason, calls, reasoning, usage: self.usage, cost });
        Ok(())
    }
}

fn note(complete: &crate::assemble::Complete) -> Option<(String, Box<RawValue>)> {
    let note = RawValue::from_string(complete.note.clone()?).ok()?;
    Some((complete.call.id.as_str().to_owned(), note))
}

fn delta(told: Told) -> Delta {
    match told {
        Told::Said(text) => Delta::Text(text),
        Told::Thought(text) => Delta::Reasoning(text),
    }
}

/// What a parser stumbled over is for the log; a person cannot do anything with it.
fn unreadable(error: &serde_json::Error) -> ProviderError {
    tracing::debug!(%error, "unreadable");
    ProviderError::Garbled { detail: "not what its API promises".to_owned() }
}

impl Decode for Decoder {
    fn event(&mut self, event: Event, out: &mut Out) -> Result<Progress, ProviderError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            self.close(out)?;
            return Ok(Progress::Done);
        }
        if data.is_empty() {
            return Ok(self.progress());
        }
        if event.name == "error" {
            return Err(refusal(data.as_bytes()));
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|error| unreadable(&error))?;
        if chunk.object.as_deref() == Some("error") {
            return Err(refusal(data.as_bytes()));
        }
        self.take(chunk, out)?;
        Ok(self.progress())
    }

    fn whole(&mut self, body: &[u8], out: &mut Out) -> Result<(), ProviderError> {
        match serde_json::from_slice::<Chunk>(body) {
            Ok(chunk) if !chunk.choices.is_empty() => {
                self.take(chunk, out)?;
                self.close(out)
            }
            Ok(chunk) if chunk.error.is_none() && chunk.object.as_deref() != Some("error") => {
                Err(ProviderError::Garbled { detail: "an answer without choices".to_owned() })
            }
            // Gemini puts an error into a list.
            Err(error) if !body.trim_ascii_start().starts_with(b"[") => Err(unreadable(&error)),
            _ => Err(refusal(body)),
        }
    }

    fn ended(&mut self, out: &mut Out) -> Result<(), ProviderError> {
        if self.reason.is_some() { self.finish(out) } else { Err(ProviderError::Cut) }
    }
}

fn refusal(body: &[u8]) -> ProviderError {
    match serde_json::from_slice(body) {
        Ok(value) => Refusal::of(&value).error(),
        Err(_) => ProviderError::Unavailable { detail: plain(&String::from_utf8_lossy(body)) },
    }
}
