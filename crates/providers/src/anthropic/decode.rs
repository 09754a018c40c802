//! Deltas from the events of a message.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use talaria_agent::{Delta, FinishReason, ProviderError};
use talaria_model::Usage;

use crate::assemble::{Arguments, Assembly, Ending, MOST_CALLS, Piece};
use crate::exchange::{Decode, Out, Progress};
use crate::kept::{MOST_KEPT, keep};
use crate::mint::call_id;
use crate::price::Pricing;
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::sse::Event;

/// The most blocks that one message may have.
const MOST_BLOCKS: usize = 4 * MOST_CALLS;

/// Reads one answer.
pub(super) struct Decoder {
    provider: String,
    used_ids: BTreeSet<String>,
    calls: Assembly,
    /// By the number of their block, which is also the order in which they go back.
    thoughts: BTreeMap<u64, Thought>,
    kept: usize,
    reason: Option<String>,
    usage: WireUsage,
    pricing: Pricing,
    spoke: bool,
}

/// A thought as the API wants to see it again.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thought {
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Wire {
    MessageStart {
        message: Message,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: BlockDelta,
    },
    MessageDelta {
        delta: MessageDelta,
        usage: Option<WireUsage>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Message {
    content: Vec<Block>,
    stop_reason: Option<String>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        id: Option<String>,
        name: Option<String>,
        input: Option<Value>,
    },
    #[serde(untagged)]
    Thought(Thought),
    #[serde(untagged)]
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockDelta {
    TextDelta {
        text: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct MessageDelta {
    stop_reason: Option<String>,
}

/// Counts are cumulative; what a later event leaves out stays as it was.
#[derive(Deserialize, Default)]
#[serde(default)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: u64,
}

impl WireUsage {
    fn update(&mut self, later: Self) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.cache_creation_input_tokens =
            later.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens =
            later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }

    fn total(&self) -> Usage {
        Usage {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write: self.cache_creation_input_tokens.unwrap_or(0),
            reasoning: self.output_tokens_details.unwrap_or_default().thinking_tokens,
            estimated: 0,
        }
    }
}

impl Decoder {
    pub(super) fn new(settings: &Settings, used_ids: BTreeSet<String>) -> Self {
        Self {
            provider: settings.provider.clone(),
            used_ids,
            calls: Assembly::default(),
            thoughts: BTreeMap::new(),
            kept: 0,
            reason: None,
            usage: WireUsage::default(),
            pricing: settings.pricing,
            spoke: false,
        }
    }

    fn begin(&mut self, index: u64, block: Block, out: &mut Out) -> Result<(), ProviderError> {
        if self.thoughts.len() >= MOST_BLOCKS {
            return Err(ProviderError::Garbled { detail: "a message without end".to_owned() });
        }
        match block {
            Block::Text { text } => self.say(text, out),
            Block::ToolUse { id, name, input } => {
                self.spoke = true;
                let arguments = match input {
                    Some(Value::Object(fields)) if !fields.is_empty() => {
                        Arguments::Whole(Value::Object(fields).to_string())
                    }
                    _ => Arguments::Nothing,
                };
                let piece = Piece { index: Some(index), id, tool: name, arguments, note: None };
                self.calls.add(piece)?;
            }
            Block::Thought(thought) => {
                self.spoke = true;
                match &thought {
                    Thought::Thinking { thinking, .. } => self.think(thinking.clone(), out),
                    Thought::RedactedThinking { data } => self.keep_size(data.len()),
                }
                if self.kept <= MOST_KEPT {
                    self.thoughts.insert(index, thought);
                }
            }
            Block::Other(_) => self.spoke = true,
        }
        Ok(())
    }

    fn go_on(&mut self, index: u64, delta: BlockDelta, out: &mut Out) -> Result<(), ProviderError> {
        match delta {
            BlockDelta::TextDelta { text } => self.say(text, out),
            BlockDelta::InputJsonDelta { partial_json } => {
                self.spoke = true;
                let arguments = Arguments::Text(partial_json);
                self.calls.add(Piece { index: Some(index), arguments, ..Piece::default() })?;
            }
            BlockDelta::ThinkingDelta { thinking: more } => {
                if let Some(Thought::Thinking { thinking, .. }) = self.thoughts.get_mut(&index) {
                    thinking.push_str(&more);
                }
                self.think(more, out);
            }
            BlockDelta::SignatureDelta { signature: more } => {
                self.keep_size(more.len());
                if let Some(Thought::Thinking { signature, .. }) = self.thoughts.get_mut(&index) {
                    signature.push_str(&more);
                }
            }
            BlockDelta::Other => {}
        }
        Ok(())
    }

    fn say(&mut self, text: String, out: &mut Out) {
        if !text.is_empty() {
            self.spoke = true;
            out.push_back(Delta::Text(text));
        }
    }

    fn keep_size(&mut self, more: usize) {
        self.kept += more;
        if self.kept > MOST_KEPT {
            self.thoughts.clear();
        }
    }

    fn think(&mut self, thought: String, out: &mut Out) {
        self.keep_size(thought.len());
        if !thought.is_empty() {
            self.spoke = true;
            out.push_back(Delta::Reasoning(thought));
        }
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

    fn finish(&mut self, out: &mut Out) -> Result<(), ProviderError> {
        let reason = match self.reason.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
            Some("refusal") => FinishReason::Refused,
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
        let calls: Vec<_> = calls.into_iter().map(|complete| complete.call).collect();
        let reason = if calls.is_empty() { reason } else { FinishReason::ToolCalls };
        let thoughts: Vec<_> = std::mem::take(&mut self.thoughts).into_values().collect();
        let worth_keeping = !calls.is_empty() && !thoughts.is_empty();
        let reasoning = worth_keeping.then(|| keep(&self.provider, &thoughts)).flatten();
        let usage = self.usage.total();
        let cost = self.pricing.cost(usage, None);
        out.push_back(Delta::Finished { reason, calls, reasoning, usage, cost });
        Ok(())
    }
}

/// What a parser stumbled over is for the log; a person cannot do anything with it.
fn unreadable(error: &serde_json::Error) -> ProviderError {
    tracing::debug!(%error, "unreadable");
    ProviderError::Garbled { detail: "not what its API promises".to_owned() }
}

impl Decode for Decoder {
    // The data says what it is; the event's name only repeats it, and some proxies drop it.
    fn event(&mut self, event: Event, out: &mut Out) -> Result<Progress, ProviderError> {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(self.progress());
        }
        match serde_json::from_str(data).map_err(|error| unreadable(&error))? {
            Wire::MessageStart { message } => {
                self.usage.update(message.usage.unwrap_or_default());
            }
            Wire::ContentBlockStart { index, content_block } => {
                self.begin(index, content_block, out)?;
            }
            Wire::ContentBlockDelta { index, delta } => self.go_on(index, delta, out)?,
            Wire::MessageDelta { delta, usage } => {
                self.usage.update(usage.unwrap_or_default());
                self.reason = delta.stop_reason.or(self.reason.take());
            }
            Wire::MessageStop => {
                return if self.reason.is_some() || self.spoke {
                    self.finish(out).map(|()| Progress::Done)
                } else {
                    Err(ProviderError::Cut)
                };
            }
            Wire::Error { error } => return Err(Refusal::of(&error).error()),
            Wire::Other => {}
        }
        Ok(self.progress())
    }

    fn whole(&mut self, body: &[u8], out: &mut Out) -> Result<(), ProviderError> {
        let value: Value = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
        if value.get("error").is_some() {
            return Err(Refusal::of(&value).error());
        }
        let message: Message = serde_json::from_value(value).map_err(|error| unreadable(&error))?;
        for (index, block) in (0..).zip(message.content) {
            self.begin(index, block, out)?;
        }
        self.usage.update(message.usage.unwrap_or_default());
        self.reason = message.stop_reason;
        self.finish(out)
    }

    fn ended(&mut self, out: &mut Out) -> Result<(), ProviderError> {
        if self.reason.is_some() { self.finish(out) } else { Err(ProviderError::Cut) }
    }
}
