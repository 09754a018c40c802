//! A prompt as a messages request.
//!
//! Anthropic caches what lies before a breakpoint and finds it again only if every byte is the same,
//! so what is written here depends on the conversation up to that point and on nothing after it. The
//! breakpoints themselves are not part of what is compared.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use talaria_agent::{Part, Prompt, PromptMessage, Sight, ToolSpec};
use talaria_model::{Effort, ToolCall};

use crate::dial::{Form, budget};
use crate::kept::recall;
use crate::settings::{Settings, Thinking, UNSEEN};

/// The API wants a limit; this one is enough for a long answer.
const USUAL_MAX_TOKENS: u32 = 8192;

/// How many of the user's messages carry a breakpoint: the last one to write to, the one before to
/// read from. With tools and system that makes four, which is all the API allows.
const MARKED_MESSAGES: usize = 2;

/// Stands where a conversation would begin with the assistant, which the API refuses.
const BEGINNING: &str = "(Earlier messages are not shown.)";

#[derive(Serialize)]
pub(super) struct Request<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<WireThinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireThinking {
    Adaptive,
    Disabled,
    Enabled { budget_tokens: u32 },
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Block<'a> {
    /// What the API itself wrote, byte for byte.
    Theirs(Box<RawValue>),
    Ours(OurBlock<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OurBlock<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize, Clone, Copy)]
struct CacheControl {
    r#type: &'static str,
}

const BREAKPOINT: CacheControl = CacheControl { r#type: "ephemeral" };

/// The request that asks `prompt`.
pub(super) fn request<'a>(prompt: &'a Prompt, settings: &'a Settings) -> Request<'a> {
    let answer = settings.max_tokens.unwrap_or(USUAL_MAX_TOKENS);
    let (thinking, output_config) = thinking(prompt, settings);
    // The limit covers the thoughts as well, so a budget comes on top.
    let thoughts = match thinking {
        Some(WireThinking::Enabled { budget_tokens }) => budget_tokens,
        _ => 0,
    };
    let mut tools: Vec<_> = prompt.tools.iter().map(tool).collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(BREAKPOINT);
    }
    let mut system: Vec<_> = text(&prompt.system).into_iter().collect();
    mark(&mut system);
    let mut messages = messages(prompt, settings);
    let users = messages.iter_mut().rev().filter(|message| message.role == Role::User);
    for message in users.take(MARKED_MESSAGES) {
        mark(&mut message.content);
    }
    Request {
        model: &settings.model,
        max_tokens: answer.saturating_add(thoughts),
        stream: true,
        thinking,
        output_config,
        tools,
        system,
        messages,
    }
}

/// How the model is told how hard to think: as somebody wishes, else as it is set.
fn thinking(prompt: &Prompt, settings: &Settings) -> (Option<WireThinking>, Option<OutputConfig>) {
    let Some(effort) = prompt.effort.and_then(|wished| settings.dial.round(wished)) else {
        let thinking = settings.thinking.map(|thinking| match thinking {
            Thinking::Adaptive => WireThinking::Adaptive,
            Thinking::Budget(budget_tokens) => WireThinking::Enabled { budget_tokens },
        });
        return (thinking, None);
    };
    let output = Some(OutputConfig { effort: effort.as_str() });
    match (settings.dial.form, effort) {
        (Form::Adaptive, Effort::Off) => (Some(WireThinking::Disabled), None),
        (Form::Adaptive | Form::AlwaysAdaptive, _) => (Some(WireThinking::Adaptive), output),
        (Form::Output, _) => (None, output),
        (Form::Budget, Effort::Off) => (None, None),
        (Form::Budget, effort) => {
            (Some(WireThinking::Enabled { budget_tokens: budget(effort) }), None)
        }
        (
            Form::Untold | Form::Word | Form::NoneWithTools | Form::Switch | Form::SwitchAndWord,
            _,
        ) => (None, None),
    }
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    Tool {
        name: &spec.name,
        description: &spec.description,
        input_schema: &spec.parameters,
        cache_control: None,
    }
}

fn mark(blocks: &mut [Block<'_>]) {
    if let Some(Block::Ours(
        OurBlock::Text { cache_control, .. }
        | OurBlock::Image { cache_control, .. }
        | OurBlock::ToolResult { cache_control, .. },
    )) = blocks.last_mut()
    {
        *cache_control = Some(BREAKPOINT);
    }
}

/// The conversation as the API wants it: user and assistant in turns, the user first, and the results
/// of calls before anything else that the user says.
fn messages<'a>(prompt: &'a Prompt, settings: &Settings) -> Vec<Message<'a>> {
    let mut messages: Vec<Message<'a>> = Vec::new();
    for message in &prompt.messages {
        let (role, content) = match message {
            PromptMessage::User(parts) => (
                Role::User,
                parts.iter().filter_map(|it| part(it, settings.sight)).collect::<Vec<_>>(),
            ),
            PromptMessage::ToolResult { call, output, failed } => {
                let result = OurBlock::ToolResult {
                    tool_use_id: allowed(call.as_str()),
                    content: output,
                    is_error: *failed,
                    cache_control: None,
                };
                (Role::User, vec![Block::Ours(result)])
            }
            PromptMessage::Assistant { text, calls, reasoning } => {
                (Role::Assistant, answer(text, calls, reasoning.as_deref(), settings))
            }
        };
        if content.is_empty() {
            continue;
        }
        match messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            _ => messages.push(Message { role, content }),
        }
    }
    for message in messages.iter_mut().filter(|message| message.role == Role::User) {
        message
            .content
            .sort_by_key(|block| !matches!(block, Block::Ours(OurBlock::ToolResult { .. })));
    }
    if messages.first().is_none_or(|first| first.role == Role::Assistant) {
        let content = text(BEGINNING).into_iter().collect();
        messages.insert(0, Message { role: Role::User, content });
    }
    messages
}

/// Thoughts go back with the calls they led to, in every later request: taking them out again would
/// change the bytes before a breakpoint, and the API drops what it no longer needs by itself.
fn answer<'a>(
    said: &'a str,
    calls: &'a [ToolCall],
    reasoning: Option<&str>,
    settings: &Settings,
) -> Vec<Block<'a>> {
    let thoughts = reasoning
        .filter(|_| !calls.is_empty())
        .and_then(|kept| recall::<Vec<Box<RawValue>>>(&settings.provider, kept))
        .unwrap_or_default();
    thoughts
        .into_iter()
        .map(Block::Theirs)
        .chain(text(said))
        .chain(calls.iter().map(call))
        .collect()
}

fn call(call: &ToolCall) -> Block<'_> {
    let input = RawValue::from_string(call.arguments.clone())
        .or_else(|_| RawValue::from_string("{}".to_owned()))
        .expect("an empty object is JSON");
    Block::Ours(OurBlock::ToolUse { id: allowed(call.id.as_str()), name: &call.tool, input })
}

fn part(part: &Part, sight: Sight) -> Option<Block<'_>> {
    match part {
        Part::Text(words) => text(words),
        Part::Image { .. } if sight == Sight::TextOnly => text(UNSEEN),
        Part::Image { mime, base64 } => Some(Block::Ours(OurBlock::Image {
            source: Source { r#type: "base64", media_type: mime, data: base64 },
            cache_control: None,
        })),
    }
}

/// A text block; none for blank text, which the API refuses.
fn text(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Ours(OurBlock::Text { text, cache_control: None }))
}

/// An id as the API allows it: another provider may have named the call.
fn allowed(id: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if id.chars().all(fits) {
        Cow::Borrowed(id)
    } else {
        Cow::Owned(id.chars().map(|c| if fits(c) { c } else { '_' }).collect())
    }
}
