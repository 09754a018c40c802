//! Discord's JSON, as far as it is read. Everything but ids may be missing or null.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::snowflake::Snowflake;

/// Missing and null are the same.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// One frame of the gateway.
#[derive(Debug, Deserialize)]
pub(crate) struct Frame<'a> {
    pub(crate) op: u64,
    #[serde(borrow, default)]
    pub(crate) d: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) s: Option<u64>,
    #[serde(default)]
    pub(crate) t: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Hello {
    pub(crate) heartbeat_interval: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Ready {
    pub(crate) session_id: String,
    pub(crate) resume_gateway_url: String,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) guilds: Vec<Named>,
}

/// Anything of which only the id is wanted.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Named {
    pub(crate) id: Snowflake,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct User {
    pub(crate) id: Snowflake,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) username: String,
    #[serde(default)]
    pub(crate) global_name: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) bot: bool,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) system: bool,
    /// Inside `mentions`, what they are in the guild.
    #[serde(default)]
    pub(crate) member: Option<Box<Member>>,
}

impl User {
    /// What people see where nothing else is chosen.
    pub(crate) fn name(&self) -> String {
        self.global_name.clone().unwrap_or_else(|| self.username.clone())
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Member {
    #[serde(default)]
    pub(crate) user: Option<User>,
    #[serde(default)]
    pub(crate) nick: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) roles: Vec<Snowflake>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Message {
    pub(crate) id: Snowflake,
    pub(crate) channel_id: Snowflake,
    #[serde(default)]
    pub(crate) author: Option<User>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) content: String,
    #[serde(default)]
    pub(crate) edited_timestamp: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) mentions: Vec<User>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) mention_roles: Vec<Snowflake>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) attachments: Vec<Attachment>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) embeds: Vec<Embed>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) flags: u64,
    #[serde(default, rename = "type", deserialize_with = "nullable")]
    pub(crate) kind: u64,
    #[serde(default)]
    pub(crate) nonce: Option<Nonce>,
    #[serde(default)]
    pub(crate) webhook_id: Option<Snowflake>,
    #[serde(default)]
    pub(crate) message_reference: Option<Reference>,
    #[serde(default)]
    pub(crate) referenced_message: Option<Box<Message>>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) message_snapshots: Vec<Snapshot>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) sticker_items: Vec<Sticker>,
    #[serde(default)]
    pub(crate) poll: Option<Poll>,
    #[serde(default)]
    pub(crate) guild_id: Option<Snowflake>,
    #[serde(default)]
    pub(crate) member: Option<Member>,
    #[serde(default)]
    pub(crate) channel_type: Option<u64>,
}

/// What a client sends to recognise its own message.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Nonce {
    Text(String),
    Number(i64),
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Reference {
    #[serde(default, rename = "type", deserialize_with = "nullable")]
    pub(crate) kind: u64,
    #[serde(default)]
    pub(crate) message_id: Option<Snowflake>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) message: Forwarded,
}

/// A message that was passed on: it has neither an id nor an author.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Forwarded {
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) content: String,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) mentions: Vec<User>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) attachments: Vec<Attachment>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) flags: u64,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) sticker_items: Vec<Sticker>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Attachment {
    pub(crate) id: Snowflake,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) filename: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) content_type: Option<String>,
    #[serde(default)]
    pub(crate) size: Option<u64>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) url: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Embed {
    #[serde(default)]
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) url: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Sticker {
    pub(crate) id: Snowflake,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) format_type: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Poll {
    pub(crate) question: PollText,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) answers: Vec<PollAnswer>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PollAnswer {
    pub(crate) poll_media: PollText,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PollText {
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) text: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Channel {
    pub(crate) id: Snowflake,
    #[serde(default, rename = "type", deserialize_with = "nullable")]
    pub(crate) kind: u64,
    #[serde(default)]
    pub(crate) guild_id: Option<Snowflake>,
    #[serde(default)]
    pub(crate) parent_id: Option<Snowflake>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) topic: Option<String>,
    #[serde(default)]
    pub(crate) last_message_id: Option<Snowflake>,
    #[serde(default)]
    pub(crate) owner_id: Option<Snowflake>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) flags: u64,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) available_tags: Vec<Tag>,
    /// The first message of a forum post that was just made.
    #[serde(default)]
    pub(crate) message: Option<Named>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Tag {
    pub(crate) id: Snowflake,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) moderated: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Guild {
    pub(crate) id: Snowflake,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) unavailable: bool,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) channels: Vec<Channel>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) threads: Vec<Channel>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) roles: Vec<Role>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Role {
    pub(crate) id: Snowflake,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) tags: Option<RoleTags>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct RoleTags {
    #[serde(default)]
    pub(crate) bot_id: Option<Snowflake>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Threads {
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) threads: Vec<Channel>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Interaction {
    pub(crate) id: Snowflake,
    #[serde(rename = "type")]
    pub(crate) kind: u64,
    pub(crate) token: String,
    #[serde(default)]
    pub(crate) channel_id: Option<Snowflake>,
    #[serde(default)]
    pub(crate) channel: Option<Channel>,
    #[serde(default)]
    pub(crate) guild_id: Option<Snowflake>,
    #[serde(default)]
    pub(crate) member: Option<Member>,
    #[serde(default)]
    pub(crate) user: Option<User>,
    #[serde(default)]
    pub(crate) data: Option<Chosen>,
    #[serde(default)]
    pub(crate) message: Option<Box<Message>>,
}

/// What was chosen in an interaction: a command with its options, a button, a line of a menu.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Chosen {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) options: Vec<CommandOption>,
    #[serde(default)]
    pub(crate) custom_id: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) values: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CommandOption {
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) value: Option<serde_json::Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) options: Vec<CommandOption>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Application {
    pub(crate) id: Snowflake,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) flags: u64,
    #[serde(default)]
    pub(crate) interactions_endpoint_url: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct GatewayBot {
    pub(crate) url: String,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) shards: u64,
    #[serde(default)]
    pub(crate) session_start_limit: Option<StartLimit>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct StartLimit {
    pub(crate) remaining: u64,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) reset_after: u64,
}

/// The body of an answer that says no.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Problem {
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) code: u64,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) errors: Option<serde_json::Value>,
}

/// The body of an answer that says later.
#[derive(Debug, Deserialize)]
pub(crate) struct Later {
    pub(crate) retry_after: f64,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) global: bool,
}
