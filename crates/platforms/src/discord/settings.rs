//! How an account is set up.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use talaria_model::Secret;

use super::snowflake::Snowflake;

/// How an account is set up.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The bot's token, from the Bot page of your application.
    pub(crate) token: Secret,
    /// Where Discord's REST interface is.
    #[serde(default = "usual_api")]
    pub(crate) api_url: String,
    /// Where Discord's files are.
    #[serde(default = "usual_files")]
    pub(crate) cdn_url: String,
    /// Whether the bot reads what is not said to it, for which the Message Content intent has to be on.
    /// Without it, only direct messages and mentions have text.
    #[serde(default = "yes")]
    pub(crate) message_content: bool,
    /// Which part of the guilds this account hears, as `[number, of how many]`. Needed above 2,500
    /// guilds only.
    #[serde(default = "whole")]
    pub(crate) shard: [u16; 2],
    /// Roles, by id, whose members are let in wherever they have the role.
    #[serde(default)]
    pub(crate) allowed_roles: Vec<String>,
    /// The guild whose roles also count in direct messages. Left out, roles count in guilds only.
    #[serde(default)]
    pub(crate) dm_role_auth_guild: Option<String>,
    /// Whether other bots mean us only when the mention stands in their text, not when they answer us.
    #[serde(default)]
    pub(crate) bots_require_inline_mention: bool,
    /// Whether an answer in a channel begins a thread.
    #[serde(default = "yes")]
    pub(crate) auto_thread: bool,
    /// Channels, by id or name, in which no thread is begun. `*` means all.
    #[serde(default)]
    pub(crate) no_thread_channels: Vec<String>,
    /// Whether the agent is told what was said in a channel before it was mentioned.
    #[serde(default = "yes")]
    pub(crate) history_backfill: bool,
    /// How many messages back it is told at most, up to 100.
    #[serde(default = "fifty")]
    pub(crate) history_backfill_limit: u8,
    /// What is done about messages that were sent while nobody was connected.
    #[serde(default)]
    pub(crate) missed_message_backfill: Missed,
    /// Whether a message shows by a reaction how far its answer is.
    #[serde(default = "yes")]
    pub(crate) reactions: bool,
    /// Whom an answer may notify. Everything that is off is shown as text only.
    #[serde(default)]
    pub(crate) allow_mentions: Mentions,
    /// How the menu of slash commands is brought up to date.
    #[serde(default)]
    pub(crate) command_sync_policy: Syncing,
    /// Whether slash commands are hidden from everybody but administrators of the guild.
    #[serde(default)]
    pub(crate) hide_slash_commands: bool,
    /// The largest file, in bytes, that is fetched from Discord. Zero means any.
    #[serde(default = "usual_file")]
    pub(crate) max_attachment_bytes: u64,
    /// What the agent is to know in a channel or thread, by its id. A thread without its own has that
    /// of its channel.
    #[serde(default)]
    pub(crate) channel_prompts: BTreeMap<String, String>,
    /// Skills that a new conversation in a channel or thread begins with.
    #[serde(default)]
    pub(crate) channel_skill_bindings: Vec<Skills>,
}

/// What is done about messages that were sent while nobody was connected and that Discord does not
/// tell again by itself.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Missed {
    /// Whether they are fetched.
    pub(crate) enabled: bool,
    /// How many seconds back.
    pub(crate) window_seconds: u64,
    /// How many in one channel, up to 500.
    pub(crate) limit: u16,
}

impl Default for Missed {
    fn default() -> Self {
        Self { enabled: true, window_seconds: 21_600, limit: 100 }
    }
}

/// Whom an answer may notify.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mentions {
    /// `@everyone` and `@here`.
    pub(crate) everyone: bool,
    /// Members of roles that are mentioned.
    pub(crate) roles: bool,
    /// People who are mentioned.
    pub(crate) users: bool,
    /// The person whose message is answered.
    pub(crate) replied_user: bool,
}

impl Default for Mentions {
    fn default() -> Self {
        Self { everyone: false, roles: false, users: false, replied_user: true }
    }
}

/// How the menu of slash commands is brought up to date.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Syncing {
    /// Command by command, and only what differs.
    #[default]
    Safe,
    /// All at once, when anything differs.
    Bulk,
    /// Never.
    Off,
}

/// Skills of one channel.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skills {
    /// The id of the channel or thread.
    pub(crate) id: String,
    /// The skills, by name.
    pub(crate) skills: Vec<String>,
}

impl Settings {
    /// Whether one of these roles lets somebody in.
    pub(crate) fn lets_in(&self, roles: &[Snowflake]) -> bool {
        let mut allowed = self.allowed_roles.iter().filter_map(|role| Snowflake::parse(role));
        allowed.any(|role| roles.contains(&role))
    }

    /// The prompt of the first of these places that has one.
    pub(crate) fn prompt(&self, places: &[Snowflake]) -> Option<String> {
        places.iter().find_map(|place| self.channel_prompts.get(&place.to_string())).cloned()
    }

    /// The skills of the first of these places that has any.
    pub(crate) fn skills(&self, places: &[Snowflake]) -> Vec<String> {
        let bound = |place: &Snowflake| {
            let place = place.to_string();
            self.channel_skill_bindings.iter().find(|bound| bound.id == place)
        };
        places.iter().find_map(bound).map(|bound| bound.skills.clone()).unwrap_or_default()
    }

    /// Whether answers in this channel begin threads.
    pub(crate) fn threads_in(&self, channel: Snowflake, name: &str) -> bool {
        let id = channel.to_string();
        let is_named =
            |entry: &String| entry == "*" || *entry == id || entry.trim_start_matches('#') == name;
        self.auto_thread && !self.no_thread_channels.iter().any(is_named)
    }
}

fn usual_api() -> String {
    "https://discord.com/api/v10".into()
}

fn usual_files() -> String {
    "https://cdn.discordapp.com".into()
}

fn yes() -> bool {
    true
}

fn whole() -> [u16; 2] {
    [0, 1]
}

fn fifty() -> u8 {
    50
}

fn usual_file() -> u64 {
    32 * 1024 * 1024
}
