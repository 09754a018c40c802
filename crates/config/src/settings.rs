//! Every setting there is, with its default. The doc comments are what users read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};
use talaria_model::{AccountId, ChatKind, Pattern, Proxy, Secret};
use talaria_platform::{Account, Spec};
use url::Url;

use crate::access::{AccessSettings, AccountAccess, DmPolicy, GroupPolicy, UnauthorizedDm};
use crate::approvals::{ApprovalSettings, ProgramSettings};
use crate::conversations::{
    AdminsUnlessNamed, CommandSettings, CompressionSettings, PriceSettings, PrivacySettings,
    QuickSettings, ResetOverride, ResetSettings, SessionSettings,
};
use crate::destinations::DestinationSettings;
use crate::people::{BudgetsSettings, PersonSettings, RoleSettings};
use crate::speaking::{
    DisplayOverride, DisplaySettings, ReplyToMode, StreamingOverride, StreamingSettings,
};
use crate::telemetry::TelemetrySettings;
use crate::units::{ByteSize, DurationText, ListenText, UrlText, ZoneText, duration_text};
use crate::voice::VoiceSettings;

/// The configuration of a gateway.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
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

    /// What models cost, by `provider/model`, in US dollars per million tokens. Well-known models need
    /// no entry; one that is here wins over what is known.
    #[schemars(extend("x-applies" = "live"))]
    pub prices: BTreeMap<String, PriceSettings>,

    /// Whether changes to `config.yaml` and `.env` are applied as soon as they are saved. What is wrong
    /// is told in the log and changes nothing; `talaria config plan` shows what a change does.
    #[schemars(extend("x-applies" = "live", "x-synonyms" = ["hot_reload", "auto_reload"]))]
    pub watch_config: bool,

    /// Where days begin and end, like `Europe/Berlin`. When it is not set, where this machine is.
    #[serde(deserialize_with = "optional_zone")]
    #[schemars(with = "Option<ZoneText>")]
    pub timezone: Option<TimeZone>,

    /// After how many days a conversation is forgotten in which nothing is said any more, with all
    /// that was said in it. Zero keeps everything.
    #[schemars(range(min = 0, max = 36_500), extend("x-synonyms" = ["retention_days", "auto_prune"]))]
    pub session_store_max_age_days: u32,

    /// After how many days what was said is forgotten, even if the conversation goes on. Zero keeps
    /// everything.
    #[schemars(range(min = 0, max = 36_500))]
    pub entry_max_age_days: u32,

    /// The connections to messaging platforms. Read from the schemas of the platforms.
    #[serde(skip)]
    pub accounts: BTreeMap<AccountId, AccountSettings>,

    /// Who is heard on every account.
    pub access: AccessSettings,

    /// People whom you know, by a name of your choice. Whoever writes from several accounts is one person
    /// here, with one role and one budget.
    #[schemars(extend("x-applies" = "live"))]
    pub people: BTreeMap<String, PersonSettings>,

    /// What people are to you, by a name of your choice, and what that grants.
    #[schemars(extend("x-applies" = "live"))]
    pub roles: BTreeMap<String, RoleSettings>,

    /// Chats that people may have messages sent to, by a name of your choice. Administrators may to all of
    /// them, others where their role names them. The home of each account is one, by the account's name.
    #[schemars(extend("x-applies" = "live"))]
    pub destinations: BTreeMap<String, DestinationSettings>,

    /// How much may be spent in a day. A day begins at midnight where `timezone` says.
    #[schemars(extend("x-applies" = "live"))]
    pub budgets: BudgetsSettings,

    /// How the agent works.
    pub agent: AgentSettings,

    /// What is asked about before it is done.
    pub approvals: ApprovalSettings,

    /// What is done when a conversation becomes too long for the model.
    #[schemars(extend("x-applies" = "live"))]
    pub compression: CompressionSettings,

    /// Whether each person in a group has a conversation of their own.
    #[schemars(extend("x-synonyms" = ["group_per_user"]))]
    pub group_sessions_per_user: bool,

    /// Whether each person in a thread has a conversation of their own.
    #[schemars(extend("x-synonyms" = ["thread_per_user"]))]
    pub thread_sessions_per_user: bool,

    /// How an answer is shown while it is being written. What an account says about its own `streaming`
    /// wins over it.
    pub streaming: StreamingSettings,

    /// What is told besides the answers. What an account says about its own `display` wins over it.
    pub display: DisplaySettings,

    /// How conversations are treated.
    pub sessions: SessionSettings,

    /// When a conversation begins anew by itself. The old one stays searchable.
    #[schemars(extend("x-synonyms" = ["reset"]))]
    pub session_reset: ResetSettings,

    /// What differs from `session_reset` in a kind of chat: below `dm`, `group`, `channel`, `thread` or
    /// `forum`. What an account says about its own `session_reset` wins over it.
    #[schemars(
        with = "BTreeMap<String, ResetOverride>",
        extend("propertyNames" = { "enum": ["dm", "group", "channel", "thread", "forum"] })
    )]
    pub reset_by_type: BTreeMap<ChatKind, ResetOverride>,

    /// Commands of your own, by the name that is typed after the slash. `{type: alias, target: "/model
    /// opus"}` stands for another text. `{type: exec, command: "df -h /"}` runs a program on this
    /// machine and says what it printed; `shell: true` hands the command to `/bin/sh`. Both take `help`,
    /// one line for `/help`, and `who`: `anyone` or `admin`.
    pub quick_commands: BTreeMap<String, QuickSettings>,

    /// What the model is told about people.
    pub privacy: PrivacySettings,

    /// The web page and what other programs may call.
    pub http: HttpSettings,

    /// How platforms, providers and other servers are reached.
    pub network: NetworkSettings,

    /// Files that travel with messages.
    pub files: FileSettings,

    /// Voice messages and spoken answers. Nothing is listened to and nothing is spoken unless it is set
    /// up here: no key that is found elsewhere is used for it.
    #[schemars(extend("x-synonyms" = ["stt", "tts"]))]
    pub voice: VoiceSettings,

    /// What the gateway writes about itself.
    #[schemars(extend("x-synonyms" = ["logging"]))]
    pub log: LogSettings,

    /// What other programs may know of the gateway: numbers at `/metrics`, and traces of messages. Nothing
    /// of what is said is in either.
    #[schemars(extend("x-synonyms" = ["metrics", "tracing", "opentelemetry"]))]
    pub telemetry: TelemetrySettings,

    /// How much the gateway takes on at once. The defaults suit one machine.
    pub limits: LimitSettings,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: None,
            fallback: Vec::new(),
            providers: BTreeMap::new(),
            prices: BTreeMap::new(),
            watch_config: true,
            timezone: None,
            session_store_max_age_days: 0,
            entry_max_age_days: 0,
            accounts: BTreeMap::new(),
            access: AccessSettings::default(),
            people: BTreeMap::new(),
            roles: BTreeMap::new(),
            destinations: BTreeMap::new(),
            budgets: BudgetsSettings::default(),
            agent: AgentSettings::default(),
            approvals: ApprovalSettings::default(),
            compression: CompressionSettings::default(),
            group_sessions_per_user: true,
            thread_sessions_per_user: false,
            streaming: StreamingSettings::default(),
            display: DisplaySettings::default(),
            sessions: SessionSettings::default(),
            session_reset: ResetSettings::default(),
            reset_by_type: BTreeMap::new(),
            quick_commands: BTreeMap::new(),
            privacy: PrivacySettings::default(),
            http: HttpSettings::default(),
            network: NetworkSettings::default(),
            files: FileSettings::default(),
            voice: VoiceSettings::default(),
            log: LogSettings::default(),
            telemetry: TelemetrySettings::default(),
            limits: LimitSettings::default(),
        }
    }
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

    /// Whether its models look at pictures. When it is not set: yes for Anthropic, OpenAI, OpenRouter
    /// and Gemini, else no. A model that does not is told of a picture by its name.
    #[schemars(extend("x-synonyms" = ["supports_vision"]))]
    pub vision: Option<bool>,

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

    /// How long nothing may be heard of a turn before it is given up.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub silence_limit: Duration,

    /// How many seconds ago a restart may have cut an answer off for it to go on by itself. Zero is any
    /// time.
    #[schemars(range(min = 0, max = 31_536_000))]
    pub gateway_auto_continue_freshness: u32,

    /// How many seconds answers get to be finished when the gateway is to end or to restart. What is not
    /// finished then goes on at the next start.
    #[schemars(range(min = 0, max = 86_400), extend("x-applies" = "live", "x-synonyms" = ["drain_timeout", "shutdown_timeout"]))]
    pub restart_drain_timeout: u32,

    /// What becomes of something you say while your last message is still being answered.
    pub busy_input_mode: BusyInput,

    /// Whether that is acknowledged, at most once in thirty seconds.
    pub busy_ack_enabled: bool,

    /// Programs of this machine that the agent may run, by a name of your choice. There are none unless
    /// you name them. `{program: /usr/bin/uptime, about: "how busy the machine is"}` runs one as it is;
    /// `arguments` it is always given, `free_arguments: true` lets the model add its own. A person is asked
    /// each time, unless `ask: never`, and may approve arguments of the model's own for good only with
    /// `always: true`.
    #[schemars(extend("x-applies" = "live"))]
    pub programs: BTreeMap<String, ProgramSettings>,
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
            silence_limit: Duration::from_secs(30 * 60),
            gateway_auto_continue_freshness: 3600,
            restart_drain_timeout: 180,
            busy_input_mode: BusyInput::Interrupt,
            busy_ack_enabled: true,
            programs: BTreeMap::new(),
        }
    }
}

/// What becomes of something said during an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BusyInput {
    /// The answer ends and what you said is next.
    Interrupt,
    /// It waits until the answer is there.
    Queue,
    /// The agent hears it at its next step and goes on.
    Steer,
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

/// How platforms, providers and other servers are reached.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSettings {
    /// The proxy through which platforms, model providers, audio servers and a collector of traces are
    /// reached: its address, like `http://proxy.example.com:3128`, with `https`, `socks5` or `socks5h` in
    /// the place of `http`, and with `name:password@` before the host if it wants to know who asks. With
    /// `environment`, what `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say counts. Unless it is
    /// set, or is `none`, no proxy is used, whatever the environment says. What an account says about its
    /// own `proxy` wins over it. Servers on this machine are always reached directly.
    #[schemars(extend("x-synonyms" = ["http_proxy", "https_proxy", "proxy_url"]))]
    pub proxy: Proxy,
}

/// Files that travel with messages.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileSettings {
    /// The largest file that is taken or sent.
    #[schemars(extend("x-synonyms" = ["max_inbound_media_bytes"]))]
    pub limit: ByteSize,

    /// How much all files together may take on disk. When it is reached, the oldest files that nothing
    /// needs any more go to make room; when everything is needed, or was used within the hour, a new
    /// file is refused.
    pub quota: ByteSize,

    /// How much the files of one message may have together, where that is more than `files.limit`. What
    /// goes beyond it is not fetched.
    pub message_limit: ByteSize,

    /// How much the files that one person sends in a day may have together. What goes beyond it is not
    /// fetched.
    pub sender_quota: ByteSize,

    /// How long a message waits for its files to be fetched from the platform. The agent is told of what
    /// is not there by then.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub fetch_time: Duration,

    /// The folders of this machine from which an answer may send files, like `/srv/reports` or
    /// `~/pictures`. Hidden files and files that look like secrets are never sent.
    #[schemars(extend("x-applies" = "live", "x-synonyms" = ["media_delivery_allow_dirs"]))]
    pub send_from: Vec<String>,
}

impl Default for FileSettings {
    fn default() -> Self {
        Self {
            limit: ByteSize::from_megabytes(25),
            quota: ByteSize::from_megabytes(2_000),
            message_limit: ByteSize::from_megabytes(100),
            sender_quota: ByteSize::from_megabytes(1_000),
            fetch_time: Duration::from_secs(120),
            send_from: Vec::new(),
        }
    }
}

/// What the gateway writes about itself.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// The least that is worth a line.
    pub level: LogLevel,

    /// How a line looks on standard error. In the files it is always JSON, which `talaria logs` reads.
    pub format: LogFormat,

    /// How many files the log has in `logs`, the one that is written included. With none, it goes to
    /// standard error only.
    #[schemars(range(min = 0, max = 100))]
    pub files: u32,

    /// How large such a file grows before the next one begins and the oldest goes.
    pub file_size: ByteSize,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            level: LogLevel::Info,
            format: LogFormat::Text,
            files: 5,
            file_size: ByteSize::from_megabytes(10),
        }
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

    /// How many of them may be put there with `/queue`.
    #[schemars(range(min = 1, max = 10_000))]
    pub queued_per_session: u32,

    /// How many turns of one conversation may run beside it, with `/background`.
    #[schemars(range(min = 0, max = 100))]
    pub background_per_session: u32,

    /// How many turns may run at once. Further ones wait.
    #[schemars(range(min = 1, max = 100_000), extend("x-synonyms" = ["max_concurrent_sessions"]))]
    pub turns_at_once: u32,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            lanes_in_memory: 256,
            pending_per_session: 64,
            queued_per_session: 32,
            background_per_session: 4,
            turns_at_once: 1_000,
        }
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
    /// because anybody can take one. An empty list hears nobody but who was let in by pairing.
    #[schemars(extend("x-applies" = "live", "x-synonyms" = ["allowed_users"]))]
    pub(crate) allow: Vec<String>,

    /// Who is heard in direct chats besides: ids, as in `allow`.
    #[schemars(extend("x-applies" = "live", "x-synonyms" = ["dm_allow_from"]))]
    pub(crate) allow_from: Vec<String>,

    /// Who is heard in every other chat besides: ids, as in `allow`.
    #[schemars(extend("x-applies" = "live", "x-synonyms" = ["group_allowed_users"]))]
    pub(crate) group_allow_from: Vec<String>,

    /// Whether everybody who finds the account is heard.
    #[schemars(extend("x-applies" = "live", "x-synonyms" = ["allow_all_users"]))]
    pub(crate) allow_everyone: bool,

    /// Who is heard in direct chats. When it is not set, who is named, or everybody if `allow_everyone`
    /// is true.
    #[schemars(extend("x-applies" = "live"))]
    pub(crate) dm_policy: Option<DmPolicy>,

    /// Who is heard in every other chat. When it is not set, who is named, or everybody if
    /// `allow_everyone` is true.
    #[schemars(extend("x-applies" = "live"))]
    pub(crate) group_policy: Option<GroupPolicy>,

    /// What becomes of somebody unknown who writes in a direct chat: `pair` answers once with a code that
    /// `talaria pair approve` accepts, `ignore` does nothing. When it is not set, what `dm_policy` says,
    /// else what `access.unauthorized_dm_behavior` says.
    #[schemars(extend("x-applies" = "live"))]
    pub(crate) unauthorized_dm_behavior: Option<UnauthorizedDm>,

    /// Whether the agent has to be spoken to in chats of several people: by its name, or by an answer to
    /// it. In a direct chat everything is for it.
    #[schemars(extend("x-applies" = "live"))]
    pub(crate) require_mention: bool,

    /// Words that call the agent like its name does: regular expressions that do not mind upper and lower
    /// case, such as `^hey tally`.
    #[schemars(extend("x-applies" = "live"))]
    pub(crate) mention_patterns: Vec<String>,

    /// Whether that is so in a thread, too, that the agent has a part in: it was spoken to there, began it
    /// or has answered. Else everything in such a thread is for it. Topics are not such threads.
    #[schemars(extend("x-applies" = "live", "x-synonyms" = ["strict_mention"]))]
    pub(crate) thread_require_mention: bool,

    /// Chats in which it need not be: ids, as the platform writes them. A thread is `chat:thread`, and
    /// `*` is everywhere.
    #[schemars(extend(
        "x-applies" = "live",
        "x-synonyms" = ["free_response_channels", "free_response_topics"]
    ))]
    pub(crate) free_response_chats: Vec<String>,

    /// The only chats of several people in which anything is answered, written like
    /// `free_response_chats`. An empty list is all of them.
    #[schemars(extend(
        "x-applies" = "live",
        "x-synonyms" = ["allowed_channels", "allowed_topics"]
    ))]
    pub(crate) allowed_chats: Vec<String>,

    /// Whether it also answers outside of `allowed_chats` whoever is heard and speaks to it.
    #[schemars(extend("x-applies" = "live"))]
    pub(crate) guest_mode: bool,

    /// Chats of several people in which nothing is answered, written like `free_response_chats`.
    #[schemars(extend("x-applies" = "live", "x-synonyms" = ["ignored_channels", "ignored_threads"]))]
    pub(crate) ignored_chats: Vec<String>,

    /// Whether other bots are answered. They have to be let in by `allow` all the same.
    #[schemars(extend("x-applies" = "live"))]
    pub(crate) allow_bots: AllowBots,

    /// How many messages of one bot in one chat are answered in a minute. Two bots that answer each other
    /// do not stop by themselves.
    #[schemars(range(min = 1, max = 1_000), extend("x-applies" = "live"))]
    pub(crate) bot_messages_per_minute: u32,

    /// Whether the agent reads what people say to each other in a chat with the next message that is for
    /// it. Only where a group shares one conversation (`group_sessions_per_user: false`) is that what
    /// everybody said; else each person's own words.
    #[schemars(extend(
        "x-applies" = "live",
        "x-synonyms" = ["observe_unmentioned_group_messages"]
    ))]
    pub(crate) observe_unmentioned: bool,

    /// Whose words the agent reads that were said around a message and not to it, such as what went before in a
    /// thread. What a message answers is read, whoever said it.
    #[schemars(extend("x-applies" = "live"))]
    pub(crate) bystanders: ReadBystanders,

    /// What becomes of a message that you change after the agent has read it.
    pub(crate) edited_messages: EditedMessages,

    /// Who may give every command in a direct chat: ids, as in `allow`. As long as nobody is named, who may
    /// is said by `admins_unless_named`.
    #[schemars(extend("x-applies" = "live", "x-synonyms" = ["admins"]))]
    pub(crate) allow_admin_from: Vec<String>,

    /// What the others may give in a direct chat as soon as an administrator is named, besides `/help`
    /// and `/whoami`: names, with or without the slash. When it is empty, what
    /// `group_user_allowed_commands` says.
    #[schemars(extend("x-applies" = "live"))]
    pub(crate) user_allowed_commands: Vec<String>,

    /// The same as `allow_admin_from`, in every chat that is not direct.
    #[schemars(extend("x-applies" = "live"))]
    pub(crate) group_allow_admin_from: Vec<String>,

    /// The same as `user_allowed_commands`, in every chat that is not direct.
    #[schemars(extend("x-applies" = "live"))]
    pub(crate) group_user_allowed_commands: Vec<String>,

    /// Who may give every command where no administrator is named.
    #[schemars(extend("x-applies" = "live"))]
    pub(crate) admins_unless_named: AdminsUnlessNamed,

    /// What differs from the general `session_reset` on this account.
    pub(crate) session_reset: ResetOverride,

    /// What differs from the general `streaming` on this account.
    pub(crate) streaming: StreamingOverride,

    /// What differs from the general `display` on this account.
    pub(crate) display: DisplayOverride,

    /// Which messages show what they answer, on platforms that can show it.
    pub(crate) reply_to_mode: ReplyToMode,
}

/// What is every account's and not its platform's.
pub(crate) const ACCOUNT_KEYS: [&str; 29] = [
    "enabled",
    "allow",
    "allow_from",
    "group_allow_from",
    "allow_everyone",
    "dm_policy",
    "group_policy",
    "unauthorized_dm_behavior",
    "require_mention",
    "thread_require_mention",
    "mention_patterns",
    "free_response_chats",
    "allowed_chats",
    "guest_mode",
    "ignored_chats",
    "allow_bots",
    "bot_messages_per_minute",
    "observe_unmentioned",
    "bystanders",
    "edited_messages",
    "allow_admin_from",
    "user_allowed_commands",
    "group_allow_admin_from",
    "group_user_allowed_commands",
    "admins_unless_named",
    "session_reset",
    "streaming",
    "display",
    "reply_to_mode",
];

impl Default for AccountKeys {
    fn default() -> Self {
        Self {
            platform: None,
            enabled: true,
            allow: Vec::new(),
            allow_from: Vec::new(),
            group_allow_from: Vec::new(),
            allow_everyone: false,
            dm_policy: None,
            group_policy: None,
            unauthorized_dm_behavior: None,
            require_mention: true,
            thread_require_mention: false,
            mention_patterns: Vec::new(),
            free_response_chats: Vec::new(),
            allowed_chats: Vec::new(),
            guest_mode: false,
            ignored_chats: Vec::new(),
            allow_bots: AllowBots::None,
            bot_messages_per_minute: 10,
            observe_unmentioned: false,
            bystanders: ReadBystanders::Heard,
            edited_messages: EditedMessages::Ignore,
            allow_admin_from: Vec::new(),
            user_allowed_commands: Vec::new(),
            group_allow_admin_from: Vec::new(),
            group_user_allowed_commands: Vec::new(),
            admins_unless_named: AdminsUnlessNamed::default(),
            session_reset: ResetOverride::default(),
            streaming: StreamingOverride::default(),
            display: DisplayOverride::default(),
            reply_to_mode: ReplyToMode::default(),
        }
    }
}

/// Whether other bots are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AllowBots {
    /// Never. Two bots that answer each other do not stop.
    None,
    /// When they speak to the agent.
    Mentions,
    /// Like people.
    All,
}

/// Whose words are read that were said around a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReadBystanders {
    /// Of those who are heard there themselves.
    Heard,
    /// Everybody's. The agent is told of whoever is not heard that no request of theirs counts.
    Everyone,
}

/// What becomes of a message that is changed after it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EditedMessages {
    /// Nothing. One that still waits is read as it is.
    Ignore,
    /// It is answered like a new one.
    Answer,
}

/// What is answered of what is heard on an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HearingSettings {
    /// Whether it has to be spoken to in chats of several people.
    pub require_mention: bool,
    /// Whether that is so in threads in which it has answered already.
    pub thread_require_mention: bool,
    /// What calls it besides its name.
    pub mention_patterns: Vec<Pattern>,
    /// Where it need not be.
    pub free_response_chats: BTreeSet<String>,
    /// Where anything is answered; everywhere when empty.
    pub allowed_chats: BTreeSet<String>,
    /// Whether it also answers elsewhere who speaks to it.
    pub guest_mode: bool,
    /// Where nothing is.
    pub ignored_chats: BTreeSet<String>,
    /// Whether other bots are answered.
    pub allow_bots: AllowBots,
    /// How many messages of one of them in one chat are, in a minute.
    pub bot_messages_per_minute: u32,
    /// Whether what is said to others is read later.
    pub observe_unmentioned: bool,
    /// Whose words are read beside it.
    pub bystanders: ReadBystanders,
    /// What becomes of a message that is changed after it was read.
    pub edited_messages: EditedMessages,
}

/// A connection to a platform.
#[derive(Clone)]
pub struct AccountSettings {
    /// The platform.
    pub platform: Spec,
    /// Who is heard.
    pub access: AccountAccess,
    /// What of that is answered.
    pub hearing: HearingSettings,
    /// Who may give which command in a direct chat.
    pub direct: CommandSettings,
    /// Who may give which command in any other chat.
    pub group: CommandSettings,
    /// What differs from the general reset policy.
    pub session_reset: ResetOverride,
    /// What differs from the general way in which answers are shown while they are written.
    pub streaming: StreamingOverride,
    /// What differs from the general way in which is told what is no answer.
    pub display: DisplayOverride,
    /// Which messages show what they answer.
    pub reply_to_mode: ReplyToMode,
    /// Ready to be connected; absent when the account is disabled.
    pub account: Option<Account>,
}

impl fmt::Debug for AccountSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountSettings")
            .field("platform", &self.platform.name)
            .field("access", &self.access)
            .field("enabled", &self.account.is_some())
            .finish()
    }
}

fn optional_zone<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TimeZone>, D::Error> {
    let name = Option::<String>::deserialize(from)?;
    name.map(|name| TimeZone::get(&name)).transpose().map_err(de::Error::custom)
}

pub(crate) fn optional_url<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Url>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| Url::parse(&text)).transpose().map_err(de::Error::custom)
}
