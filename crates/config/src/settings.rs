//! Every setting there is, with its default. The doc comments are what users read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};
use talaria_model::{AccountId, Secret, SenderId};
use talaria_platform::{Account, Spec};
use url::Url;

use crate::units::{ByteSize, DurationText, ListenText, UrlText, duration_text};

/// The configuration of a gateway.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The model that answers, as `provider/model` or as the bare name of a model. When it is not
    /// set, the gateway takes the first of: a provider whose API key is in the environment, a model
    /// server on this machine, the built-in demo.
    #[schemars(length(min = 1), extend("x-applies" = "live"))]
    pub model: Option<String>,

    /// Models to try in this order when the first one fails, each written like `model`.
    #[schemars(extend(
        "x-applies" = "live",
        "x-synonyms" = ["fallback_providers", "fallback_models"]
    ))]
    pub fallback: Vec<String>,

    /// Where models are served, by a name of your choice. Well-known providers need no entry as long
    /// as their API key is in the environment.
    #[schemars(extend("x-applies" = "live"))]
    pub providers: BTreeMap<String, ProviderSettings>,

    /// The connections to messaging platforms. Read from the schemas of the platforms.
    #[serde(skip)]
    pub accounts: BTreeMap<AccountId, AccountSettings>,

    /// How the agent works.
    pub agent: AgentSettings,

    /// How conversations are kept apart.
    pub sessions: SessionSettings,

    /// The web page and what other programs may call.
    pub http: HttpSettings,

    /// Files that travel with messages.
    pub files: FileSettings,

    /// What the gateway writes about itself.
    #[schemars(extend("x-synonyms" = ["logging"]))]
    pub log: LogSettings,

    /// How much the gateway takes on at once. The defaults suit one machine.
    pub limits: LimitSettings,
}

/// A place where models are served.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderSettings {
    /// The language it speaks. A well-known provider's is known.
    pub wire: Option<Wire>,

    /// Where it is, including the version, like `https://api.example.com/v1`. A well-known
    /// provider's is known.
    #[serde(deserialize_with = "optional_url")]
    #[schemars(with = "Option<UrlText>")]
    pub base_url: Option<Url>,

    // Once loaded, the key is here, whichever of the two settings led to it.
    /// The key to it. Better kept in `.env` and named by `api_key_env`.
    pub api_key: Option<Secret>,

    /// The environment variable that holds the key.
    #[schemars(length(min = 1))]
    pub api_key_env: Option<String>,

    /// The model to take when only the provider is named, as in `model: home-server`.
    #[schemars(length(min = 1))]
    pub model: Option<String>,

    /// Further HTTP headers for every request, by name. Their values are treated as secrets.
    pub headers: BTreeMap<String, Secret>,

    /// How many tokens fit into one request, where the provider does not tell.
    #[schemars(range(min = 1), extend("x-synonyms" = ["context_length"]))]
    pub context_window: Option<u32>,

    /// The most tokens one answer may have.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,

    /// Whether the model thinks before it answers. For providers that speak Anthropic's messages;
    /// others are told by `extra_body`.
    pub thinking: Option<Thinking>,

    /// How many tokens the model may think, for models that want to be told instead of `thinking:
    /// adaptive`. They come on top of `max_tokens`.
    #[schemars(range(min = 1024))]
    pub thinking_budget: Option<u32>,

    /// Further fields for the body of every request, as the provider documents them.
    pub extra_body: Map<String, Value>,
}

/// The language of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Chat completions, as most providers and local servers speak them.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}

/// Whether a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Thinking {
    /// It is not told to.
    Off,
    /// As much as it finds useful.
    Adaptive,
}

/// How the agent works.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentSettings {
    /// What the agent is told before every conversation: who it is and how it should behave.
    #[schemars(extend("x-applies" = "live", "x-synonyms" = ["system_prompt", "personality"]))]
    pub instructions: Option<String>,

    /// How often the agent may call the model in one turn.
    #[schemars(
        range(min = 1, max = 10_000),
        extend("x-applies" = "live", "x-synonyms" = ["max_turns", "max_iterations"])
    )]
    pub max_steps: u32,

    /// How long one turn may take, waiting for answers to its questions not counted.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText", extend("x-synonyms" = ["gateway_timeout", "timeout"]))]
    pub turn_limit: Duration,

    /// How long the agent waits for the answer to a question.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText", extend("x-synonyms" = ["clarify_timeout"]))]
    pub question_limit: Duration,

    /// How long the model may think before its first word.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText", extend("x-applies" = "live"))]
    pub first_token_limit: Duration,

    /// How long the model may pause in the middle of an answer.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText", extend("x-applies" = "live"))]
    pub idle_limit: Duration,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            instructions: None,
            max_steps: 90,
            turn_limit: Duration::from_secs(30 * 60),
            question_limit: Duration::from_secs(24 * 60 * 60),
            first_token_limit: Duration::from_secs(120),
            idle_limit: Duration::from_secs(60),
        }
    }
}

/// How conversations are kept apart.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionSettings {
    /// Whether each person in a group has a conversation of their own.
    #[schemars(extend("x-synonyms" = ["group_sessions_per_user"]))]
    pub group_per_user: bool,

    /// Whether each person in a thread has a conversation of their own.
    #[schemars(extend("x-synonyms" = ["thread_sessions_per_user"]))]
    pub thread_per_user: bool,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self { group_per_user: true, thread_per_user: false }
    }
}

/// The web page and what other programs may call.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpSettings {
    /// The address and port to listen on. One that other machines can reach is only accepted
    /// together with `http.allowed_hosts`. The login is required everywhere.
    #[schemars(with = "ListenText", extend("x-synonyms" = ["host", "port", "bind"]))]
    pub listen: SocketAddr,

    /// The names by which browsers reach this gateway, like `gateway.example.com`, with the port if
    /// it is not the usual one. Requests for any other name are refused; this machine's own
    /// addresses are always allowed.
    pub allowed_hosts: Vec<String>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 8420)), allowed_hosts: Vec::new() }
    }
}

/// Files that travel with messages.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileSettings {
    /// The largest file that is taken.
    #[schemars(extend("x-synonyms" = ["max_inbound_media_bytes"]))]
    pub limit: ByteSize,

    /// How much all files together may take on disk. When it is reached, the oldest files that nothing
    /// needs any more go to make room; when everything is needed, or was used within the hour, a new
    /// file is refused.
    pub quota: ByteSize,
}

impl Default for FileSettings {
    fn default() -> Self {
        Self { limit: ByteSize::from_megabytes(25), quota: ByteSize::from_megabytes(2_000) }
    }
}

/// What the gateway writes about itself.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// The least that is worth a line.
    pub level: LogLevel,

    /// How a line looks.
    pub format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { level: LogLevel::Info, format: LogFormat::Text }
    }
}

/// The least that is worth a line in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// What went wrong.
    Error,
    /// What may go wrong.
    Warn,
    /// What happens.
    Info,
    /// How it happens.
    Debug,
    /// Everything.
    Trace,
}

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs: one JSON object a line.
    Json,
}

/// How much the gateway takes on at once.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// How many idle conversations stay in memory for a while. The others are read from disk when
    /// they go on.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub lanes_in_memory: u32,

    /// How many messages of one conversation wait in memory. Further ones wait on disk.
    #[schemars(range(min = 1, max = 10_000))]
    pub pending_per_session: u32,

    /// How many turns may run at once. Further ones wait.
    #[schemars(range(min = 1, max = 100_000), extend("x-synonyms" = ["max_concurrent_sessions"]))]
    pub turns_at_once: u32,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self { lanes_in_memory: 256, pending_per_session: 64, turns_at_once: 1_000 }
    }
}

/// What every account has, whatever its platform.
#[derive(Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct AccountKeys {
    /// The platform it connects to. May be left out when the account is named like its platform.
    pub(crate) platform: Option<String>,

    /// Whether it is connected.
    pub(crate) enabled: bool,

    /// Who is heard: the ids of senders, as the platform writes them. Display names do not count,
    /// because anybody can take one. An empty list hears nobody.
    #[schemars(extend("x-synonyms" = ["allow_from", "allowed_users"]))]
    pub(crate) allow: Vec<String>,

    /// Whether everybody who finds the account is heard.
    #[schemars(extend("x-synonyms" = ["allow_all_users"]))]
    pub(crate) allow_everyone: bool,
}

impl Default for AccountKeys {
    fn default() -> Self {
        Self { platform: None, enabled: true, allow: Vec::new(), allow_everyone: false }
    }
}

/// A connection to a platform.
#[derive(Clone)]
pub struct AccountSettings {
    /// The platform.
    pub platform: Spec,
    /// Who is heard.
    pub allowed: Allowed,
    /// Ready to be connected; absent when the account is disabled.
    pub account: Option<Account>,
}

impl fmt::Debug for AccountSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountSettings")
            .field("platform", &self.platform.name)
            .field("allowed", &self.allowed)
            .field("enabled", &self.account.is_some())
            .finish()
    }
}

/// Who is heard on an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// These senders and nobody else. Empty hears nobody.
    Only(BTreeSet<SenderId>),
    /// Everybody.
    Everyone,
}

fn optional_url<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Url>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| Url::parse(&text)).transpose().map_err(de::Error::custom)
}
