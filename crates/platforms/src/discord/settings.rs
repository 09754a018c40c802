//! How an account is set up.

use std::collections::BTreeMap;

use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talaria_model::{Proxy, RoleId, Secret};
use talaria_platform::{Roles, SettingsError};

use super::snowflake::Snowflake;

/// How an account is set up.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The bot's token, from the Bot page of your application.
    pub(crate) token: Secret,
    /// Where Discord's REST interface is.
    #[serde(default = "usual_api")]
    #[schemars(extend("x-synonyms" = ["api_url"]))]
    pub(crate) base_url: String,
    /// The proxy through which Discord is reached, where it is another way than `network.proxy`: an address,
    /// `environment` or `none`, as there.
    #[serde(default)]
    pub(crate) proxy: Proxy,
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
    /// How many messages back it is told at most.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 100))]
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
    /// Whether links are shown without a preview of the page behind them. A preview is fetched before
    /// anybody has chosen to open the link, and tells whoever runs that page what stands in its address.
    #[serde(default = "yes")]
    pub(crate) disable_link_previews: bool,
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
}

/// What is done about messages that were sent while nobody was connected and that Discord does not
/// tell again by itself.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Missed {
    /// Whether they are fetched.
    pub(crate) enabled: bool,
    /// How many seconds back.
    #[schemars(range(min = 60))]
    pub(crate) window_seconds: u64,
    /// How many in one chat. Of more, what was not said to the bot goes first, then the oldest.
    #[schemars(range(min = 1, max = 500))]
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

/// Whether Discord shows what is behind links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkPreviews {
    Shown,
    Hidden,
}

/// How the menu of slash commands is brought up to date.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

impl Settings {
    /// The token, without the word that stands before it in examples and that people copy with it.
    pub(crate) fn bot_token(&self) -> Secret {
        Secret::new(self.token.expose().trim().trim_start_matches("Bot ").trim())
    }

    /// Whether Discord shows what is behind the links of an answer.
    pub(crate) fn previews(&self) -> LinkPreviews {
        match self.disable_link_previews {
            true => LinkPreviews::Hidden,
            false => LinkPreviews::Shown,
        }
    }

    /// What can be seen to be wrong without asking Discord.
    pub(crate) fn validate(&self) -> Result<(), SettingsError> {
        self.address()?;
        address("cdn_url", &self.cdn_url, "https://cdn.discordapp.com")?;
        // As in https://docs.discord.com/developers/reference#authentication.
        let token = self.bot_token();
        let mut parts = token.expose().split('.');
        let is_part = |part: &str| {
            !part.is_empty()
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        };
        if parts.clone().count() != 3 || !parts.all(is_part) {
            return Err(SettingsError::unusable(
                "token",
                "is not a bot's token, which has three parts with dots between them",
                "copy it from the Bot page of your application; the client secret and the public key \
                 are something else",
            ));
        }
        let [number, of] = self.shard;
        if number >= of {
            return Err(SettingsError::unusable(
                "shard",
                &format!("is [{number}, {of}], and shards are numbered from 0"),
                "leave it out, or write [0, 1] for the only one and [0, 2] and [1, 2] for two",
            ));
        }
        let is_id = |text: &str| Snowflake::parse(text).is_some();
        let like = "write a number such as 41771983423143937: switch Developer Mode on in Discord, \
                    then right-click and Copy ID";
        if let Some(at) = self.allowed_roles.iter().position(|role| !is_id(role)) {
            let setting = format!("allowed_roles[{at}]");
            return Err(SettingsError::unusable(&setting, "is not the id of a role", like));
        }
        let guild = self.dm_role_auth_guild.as_deref();
        if guild.is_some_and(|guild| !is_id(guild)) {
            let problem = "is not the id of a guild";
            return Err(SettingsError::unusable("dm_role_auth_guild", problem, like));
        }
        if self.channel_prompts.keys().any(|channel| !is_id(channel)) {
            let problem = "names a channel by something else than its id";
            return Err(SettingsError::unusable("channel_prompts", problem, like));
        }
        Ok(())
    }

    /// Where the REST interface is.
    pub(crate) fn address(&self) -> Result<Url, SettingsError> {
        address("base_url", &self.base_url, "https://discord.com/api/v10")
    }

    /// Whom it lets in by their roles.
    pub(crate) fn roles(&self) -> Roles {
        Roles {
            direct: self.allowed_roles().filter_map(|role| self.direct_role(role)).collect(),
            group: self.allowed_roles().map(Snowflake::role).collect(),
        }
    }

    /// Those of somebody's roles that let them in, in a guild or in a direct chat.
    pub(crate) fn vouched(&self, guild: Option<Snowflake>, roles: &[Snowflake]) -> Vec<RoleId> {
        let theirs = self.allowed_roles().filter(|role| roles.contains(role));
        match guild {
            Some(_) => theirs.map(Snowflake::role).collect(),
            None => theirs.filter_map(|role| self.direct_role(role)).collect(),
        }
    }

    /// The guild whose roles count in direct chats.
    pub(crate) fn direct_guild(&self) -> Option<Snowflake> {
        self.dm_role_auth_guild.as_deref().and_then(Snowflake::parse)
    }

    fn allowed_roles(&self) -> impl Iterator<Item = Snowflake> {
        self.allowed_roles.iter().filter_map(|role| Snowflake::parse(role))
    }

    /// A role as it counts in direct chats. The guild is in it: who names another one there believes what that
    /// one says, and nothing that the earlier one has said.
    fn direct_role(&self, role: Snowflake) -> Option<RoleId> {
        let id = format!("{}/{role}", self.direct_guild()?);
        Some(RoleId::new(id).expect("digits and a stroke are an id"))
    }

    /// The prompt of the first of these places that has one.
    pub(crate) fn prompt(&self, places: &[Snowflake]) -> Option<String> {
        places.iter().find_map(|place| self.channel_prompts.get(&place.to_string())).cloned()
    }

    /// Whether answers in this channel begin threads.
    pub(crate) fn threads_in(&self, channel: Snowflake, name: &str) -> bool {
        let id = channel.to_string();
        let is_named =
            |entry: &String| entry == "*" || *entry == id || entry.trim_start_matches('#') == name;
        self.auto_thread && !self.no_thread_channels.iter().any(is_named)
    }
}

fn address(setting: &str, text: &str, like: &str) -> Result<Url, SettingsError> {
    let url = Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| {
        let hint = format!("leave it out, or write one such as {like}");
        SettingsError::unusable(setting, "is not an http or https address", &hint)
    })
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
