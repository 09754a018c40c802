//! A prompt as a chat completions request.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use talaria_agent::{Part, Prompt, PromptMessage, Sight, ToolSpec};
use talaria_model::{Effort, ToolCall};

use crate::dial::{Dial, Form, word};
use crate::kept::recall;
use crate::settings::{LimitName, Settings, UNSEEN};

/// What a server wants to see again with an assistant's message.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kept {
    /// DeepSeek refuses a call whose thoughts are missing, even if they were empty; Moonshot and Z.AI
    /// think worse without them. <https://api-docs.deepseek.com/guides/thinking_mode>
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<String>,
    /// <https://openrouter.ai/docs/use-cases/reasoning-tokens>
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) reasoning_details: Vec<Value>,
    /// Gemini signs its calls. <https://ai.google.dev/gemini-api/docs/thought-signatures>
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) extra_content: BTreeMap<String, Box<RawValue>>,
}

impl Kept {
    pub(super) fn is_empty(&self) -> bool {
        self.reasoning_content.is_none()
            && self.reasoning_details.is_empty()
            && self.extra_content.is_empty()
    }
}

#[derive(Serialize)]
pub(super) struct Request<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Switch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Switch {
    r#type: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasoning_details: Vec<Value>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: Cow<'a, str>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Called<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// The request that asks `prompt`.
pub(super) fn request<'a>(prompt: &'a Prompt, settings: &'a Settings) -> Request<'a> {
    let system = (!prompt.system.is_empty()).then(|| Message::System { content: &prompt.system });
    let said = prompt.messages.iter().filter_map(|message| self::message(message, settings));
    let (thinking, reasoning_effort) = effort(prompt, settings.dial);
    let limit = |name| settings.max_tokens.filter(|_| settings.limit_name == name);
    Request {
        model: &settings.model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens: limit(LimitName::MaxTokens),
        max_completion_tokens: limit(LimitName::MaxCompletionTokens),
        thinking,
        reasoning_effort,
        tools: prompt.tools.iter().map(tool).collect(),
        messages: system.into_iter().chain(said).collect(),
    }
}

/// How the model is told how hard to think; nothing where nobody wishes anything.
fn effort(prompt: &Prompt, dial: Dial) -> (Option<Switch>, Option<&'static str>) {
    let wished = prompt.effort.and_then(|wished| dial.round(wished));
    let word = wished.map(word);
    let switch = wished.map(|effort| match effort {
        Effort::Off => Switch { r#type: "disabled" },
        _ => Switch { r#type: "enabled" },
    });
    match dial.form {
        Form::NoneWithTools if !prompt.tools.is_empty() => (None, Some("none")),
        Form::Word | Form::NoneWithTools => (None, word),
        Form::Switch => (switch, None),
        // A model that does not think has no effort.
        Form::SwitchAndWord => (switch, word.filter(|_| wished != Some(Effort::Off))),
        Form::Untold | Form::Adaptive | Form::AlwaysAdaptive | Form::Output | Form::Budget => {
            (None, None)
        }
    }
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    Tool {
        r#type: "function",
        function: Function {
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.parameters,
        },
    }
}

/// A message; none for an answer that said and called nothing, which servers refuse.
fn message<'a>(message: &'a PromptMessage, settings: &Settings) -> Option<Message<'a>> {
    match message {
        PromptMessage::User(parts) => {
            Some(Message::User { content: content(parts, settings.sight) })
        }
        PromptMessage::Assistant { text, calls, .. } if calls.is_empty() => (!text.is_empty())
            .then(|| Message::Assistant {
                content: Some(text),
                reasoning_content: None,
                reasoning_details: Vec::new(),
                tool_calls: Vec::new(),
            }),
        PromptMessage::Assistant { text, calls, reasoning } => {
            let mut kept = reasoning
                .as_deref()
                .and_then(|text| recall::<Kept>(&settings.provider, text))
                .unwrap_or_default();
            Some(Message::Assistant {
                content: (!text.is_empty()).then_some(text),
                reasoning_content: kept.reasoning_content.take(),
                reasoning_details: std::mem::take(&mut kept.reasoning_details),
                tool_calls: calls.iter().map(|call| self::call(call, &mut kept)).collect(),
            })
        }
        PromptMessage::ToolResult { call, output, failed } => Some(Message::Tool {
            tool_call_id: call.as_str(),
            // There is no field for it, so the words have to say it.
            content: if *failed {
                Cow::Owned(format!("Error: {output}"))
            } else {
                Cow::Borrowed(output)
            },
        }),
    }
}

fn call<'a>(call: &'a ToolCall, kept: &mut Kept) -> Call<'a> {
    Call {
        id: call.id.as_str(),
        r#type: "function",
        function: Called { name: &call.tool, arguments: &call.arguments },
        extra_content: kept.extra_content.remove(call.id.as_str()),
    }
}

/// Plain text where it can be: not every server reads a list.
fn content(parts: &[Part], sight: Sight) -> Content<'_> {
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Image { .. } if sight == Sight::TextOnly => Some(UNSEEN),
            Part::Image { .. } => None,
        })
        .collect();
    match texts.as_deref() {
        Some([text]) => Content::Text(Cow::Borrowed(text)),
        Some(texts) => Content::Text(Cow::Owned(texts.join("\n\n"))),
        None => Content::Parts(parts.iter().map(content_part).collect()),
    }
}

fn content_part(part: &Part) -> ContentPart<'_> {
    match part {
        Part::Text(text) => ContentPart::Text { text },
        Part::Image { mime, base64 } => ContentPart::ImageUrl {
            image_url: ImageUrl { url: format!("data:{mime};base64,{base64}") },
        },
    }
}
