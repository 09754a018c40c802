//! What the model is asked.

use serde::Deserialize;
use serde_json::Value;

/// A request for a completion, as far as a script may want to see it.
#[derive(Debug, Deserialize)]
pub struct Asked {
    messages: Vec<Message>,
    #[serde(default, rename = "stream")]
    pub(super) streams: bool,
}

#[derive(Debug, Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Content,
    #[serde(default, deserialize_with = "is_there")]
    tool_calls: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Value>),
    #[default]
    Nothing,
}

impl Content {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => {
                let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
                texts.collect::<Vec<_>>().join(" ")
            }
            Self::Nothing => String::new(),
        }
    }
}

impl Asked {
    pub(super) fn read(body: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(body)
    }

    /// What people said since the model's last whole answer.
    pub fn said(&self) -> String {
        let said = self.unanswered().iter().filter(|message| message.role == "user");
        said.map(|message| message.content.text()).collect::<Vec<_>>().join(" / ")
    }

    /// Whether the model has called a tool since its last whole answer.
    pub fn has_called(&self) -> bool {
        self.unanswered().iter().any(|message| message.tool_calls)
    }

    /// What stands behind the model's last whole answer.
    fn unanswered(&self) -> &[Message] {
        let last = self
            .messages
            .iter()
            .rposition(|message| message.role == "assistant" && !message.tool_calls);
        &self.messages[last.map_or(0, |place| place + 1)..]
    }

    /// What it was told before anybody said anything.
    pub fn instructions(&self) -> String {
        let told = self.messages.iter().filter(|message| message.role == "system");
        told.map(|message| message.content.text()).collect::<Vec<_>>().join("\n")
    }

    /// Everything that people said and the model answered, a line each.
    pub fn conversation(&self) -> Vec<String> {
        let told = |message: &&Message| message.role == "user" || message.role == "assistant";
        let line = |message: &Message| format!("{}: {}", message.role, message.content.text());
        self.messages.iter().filter(told).map(line).collect()
    }

    /// What the last tool returned, when that is what the model is to go on from.
    pub fn returned(&self) -> Option<String> {
        let last = self.messages.last().filter(|message| message.role == "tool")?;
        Some(last.content.text())
    }

    /// How many messages the conversation has, instructions included.
    pub fn messages(&self) -> usize {
        self.messages.len()
    }
}

fn is_there<'de, D: serde::Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Option::<serde::de::IgnoredAny>::deserialize(from)?.is_some())
}
