//! Settings of how accounts speak.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an answer is shown while it is being written.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StreamingSettings {
    /// By what it is shown.
    #[schemars(extend("x-synonyms" = ["mode", "enabled"]))]
    pub transport: TransportSetting,

    /// How many seconds pass between two edits of a message, unless its platform wants more.
    #[schemars(range(min = 0.1, max = 60.0))]
    pub edit_interval: f64,

    /// How many characters there have to be before a message begins that is edited. Shorter answers come
    /// whole.
    #[schemars(range(min = 1, max = 2000))]
    pub buffer_threshold: u32,

    /// What stands at the end of a message that is edited, until it is whole.
    #[schemars(length(max = 16))]
    pub cursor: String,

    /// From how many seconds on an answer is posted anew when it is whole, and what was shown of it is
    /// removed, so that people are told of it. Zero is never. It needs a platform on which messages can
    /// be removed and repeats are not recognised.
    #[schemars(range(min = 0, max = 86_400))]
    pub fresh_final_after_seconds: u32,
}

impl Default for StreamingSettings {
    fn default() -> Self {
        Self {
            transport: TransportSetting::Auto,
            edit_interval: 0.8,
            buffer_threshold: 24,
            cursor: " ▉".into(),
            fresh_final_after_seconds: 60,
        }
    }
}

impl StreamingSettings {
    /// The same with what an account says differently.
    pub fn with(mut self, other: &StreamingOverride) -> Self {
        self.transport = other.transport.unwrap_or(self.transport);
        self.edit_interval = other.edit_interval.unwrap_or(self.edit_interval);
        self.buffer_threshold = other.buffer_threshold.unwrap_or(self.buffer_threshold);
        self.cursor = other.cursor.clone().unwrap_or(self.cursor);
        self.fresh_final_after_seconds =
            other.fresh_final_after_seconds.unwrap_or(self.fresh_final_after_seconds);
        self
    }
}

/// By what an answer is shown while it is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransportSetting {
    /// The best that there is: drafts where a platform has them in that kind of chat, else edits.
    Auto,
    /// Drafts where a platform has them, else edits.
    Draft,
    /// A message that is edited, also where there are drafts.
    Edit,
    /// Nothing is shown before it is whole.
    Off,
}

/// What differs from the general `streaming`. What is not set is as there.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StreamingOverride {
    /// By what it is shown.
    pub transport: Option<TransportSetting>,

    /// How many seconds pass between two edits of a message, unless its platform wants more.
    #[schemars(range(min = 0.1, max = 60.0))]
    pub edit_interval: Option<f64>,

    /// How many characters there have to be before a message begins that is edited.
    #[schemars(range(min = 1, max = 2000))]
    pub buffer_threshold: Option<u32>,

    /// What stands at the end of a message that is edited, until it is whole.
    #[schemars(length(max = 16))]
    pub cursor: Option<String>,

    /// From how many seconds on an answer is posted anew when it is whole.
    #[schemars(range(min = 0, max = 86_400))]
    pub fresh_final_after_seconds: Option<u32>,
}

/// What is told besides the answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DisplaySettings {
    /// How much is told of the tools that the agent calls. In a conversation, `/verbose` wins over it.
    #[schemars(extend("x-synonyms" = ["tool_progress_mode", "verbose"]))]
    pub tool_progress: ToolProgress,

    /// Whether a line under each answer says which model wrote it and what it used. In a conversation,
    /// `/footer` wins over it.
    #[schemars(extend("x-synonyms" = ["footer"]))]
    pub runtime_footer: bool,
}

impl DisplaySettings {
    /// The same with what an account says differently.
    pub fn with(self, other: &DisplayOverride) -> Self {
        Self {
            tool_progress: other.tool_progress.unwrap_or(self.tool_progress),
            runtime_footer: other.runtime_footer.unwrap_or(self.runtime_footer),
        }
    }
}

/// What differs from the general `display`. What is not set is as there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DisplayOverride {
    /// How much is told of the tools that the agent calls.
    pub tool_progress: Option<ToolProgress>,

    /// Whether a line under each answer says which model wrote it and what it used.
    pub runtime_footer: Option<bool>,
}

/// How much is told of the tools that the agent calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolProgress {
    /// Nothing.
    #[default]
    Off,
    /// Which one it calls, when that is another one than before.
    New,
    /// Every call.
    All,
    /// Every call, and with what.
    Verbose,
}

/// Which messages show what they answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReplyToMode {
    /// None.
    Off,
    /// The first message of an answer.
    #[default]
    First,
    /// Every message of an answer.
    All,
}
