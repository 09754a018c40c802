//! Slack's events as they come: everything that a delivery may lack is optional, everything else is
//! ignored.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A frame of Socket Mode.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) envelope_id: Option<String>,
    #[serde(borrow, default)]
    pub(super) payload: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) accepts_response_payload: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) reason: String,
}

/// The first frame of a connection.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Hello {
    #[serde(deserialize_with = "or_default")]
    pub(super) connection_info: ConnectionInfo,
    pub(super) num_connections: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ConnectionInfo {
    pub(super) app_id: Option<String>,
}

/// What surrounds an event, in an envelope and in a request alike.
#[derive(Debug, Deserialize)]
pub(super) struct Outer<'a> {
    #[serde(rename = "type", default, deserialize_with = "or_default")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) team_id: Option<String>,
    #[serde(borrow, default)]
    pub(super) event: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) event_id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) authorizations: Vec<Authorization>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) is_ext_shared_channel: bool,
    #[serde(default)]
    pub(super) challenge: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Authorization {
    pub(super) team_id: Option<String>,
}

impl Outer<'_> {
    /// The workspace through which we hear it. The outer team can be that of a guest's workspace.
    pub(super) fn team(&self) -> Option<&str> {
        let authorized = self.authorizations.first().and_then(|one| one.team_id.as_deref());
        authorized.or(self.team_id.as_deref())
    }
}

/// What an event is, before anything else of it is read.
#[derive(Debug, Deserialize)]
pub(super) struct EventKind {
    #[serde(rename = "type", default, deserialize_with = "or_default")]
    pub(super) kind: String,
}

/// A message, live or out of the history.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageEvent {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(super) kind: String,
    pub(super) subtype: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) hidden: bool,
    pub(super) ts: Option<String>,
    pub(super) thread_ts: Option<String>,
    pub(super) parent_user_id: Option<String>,
    pub(super) channel: Option<String>,
    pub(super) channel_type: Option<String>,
    pub(super) user: Option<String>,
    pub(super) user_team: Option<String>,
    pub(super) user_profile: Option<Profile>,
    pub(super) bot_id: Option<String>,
    pub(super) app_id: Option<String>,
    pub(super) bot_profile: Option<BotProfile>,
    pub(super) username: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) text: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) blocks: Vec<Block>,
    #[serde(deserialize_with = "or_default")]
    pub(super) attachments: Vec<Attachment>,
    #[serde(deserialize_with = "or_default")]
    pub(super) files: Vec<File>,
    pub(super) edited: Option<EditMark>,
    pub(super) message: Option<Box<MessageEvent>>,
    pub(super) previous_message: Option<Box<MessageEvent>>,
    pub(super) metadata: Option<Metadata>,
    pub(super) latest_reply: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) reply_count: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Profile {
    pub(super) display_name: Option<String>,
    pub(super) real_name: Option<String>,
    pub(super) name: Option<String>,
}

impl Profile {
    /// What people see.
    pub(super) fn shown(&self) -> Option<&str> {
        [&self.display_name, &self.real_name, &self.name]
            .into_iter()
            .filter_map(Option::as_deref)
            .map(str::trim)
            .find(|name| !name.is_empty())
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct BotProfile {
    pub(super) name: Option<String>,
    pub(super) app_id: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct EditMark {
    pub(super) ts: Option<String>,
}

/// What we wrote beside a post of ours.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) event_type: Option<String>,
    pub(super) event_payload: Option<serde_json::Map<String, serde_json::Value>>,
}

/// A block, as far as its text goes. Blocks of people repeat the text; those of programs may be all
/// there is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block {
    #[serde(deserialize_with = "lenient")]
    pub(super) text: Option<TextObject>,
    #[serde(deserialize_with = "lenient")]
    pub(super) fields: Option<Vec<TextObject>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct TextObject {
    #[serde(deserialize_with = "or_default")]
    pub(super) text: String,
}

/// A forwarded message, a shown link, or an old-fashioned part of a program's message.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Attachment {
    #[serde(deserialize_with = "or_default")]
    pub(super) is_share: bool,
    #[serde(deserialize_with = "or_default")]
    pub(super) is_msg_unfurl: bool,
    pub(super) author_id: Option<String>,
    pub(super) author_name: Option<String>,
    pub(super) title: Option<String>,
    pub(super) text: Option<String>,
    pub(super) fallback: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) files: Vec<File>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct File {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) title: Option<String>,
    pub(super) mimetype: Option<String>,
    pub(super) subtype: Option<String>,
    pub(super) mode: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) is_external: bool,
    pub(super) size: Option<u64>,
    pub(super) url_private: Option<String>,
    pub(super) url_private_download: Option<String>,
    pub(super) shares: Option<Shares>,
}

/// Where a file was shared.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Shares {
    public: Option<BTreeMap<String, Vec<Share>>>,
    private: Option<BTreeMap<String, Vec<Share>>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Share {
    ts: Option<String>,
}

impl Shares {
    /// The message with which it was shared in a chat.
    pub(super) fn in_chat(&self, chat: &str) -> Option<&str> {
        [&self.public, &self.private]
            .into_iter()
            .flatten()
            .find_map(|chats| chats.get(chat)?.first()?.ts.as_deref())
    }
}

/// Somebody pressed Stop in Slack's own agent view.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct SessionStopped {
    pub(super) channel: String,
    #[serde(default)]
    pub(super) thread_ts: Option<String>,
    pub(super) user: String,
    #[serde(default)]
    pub(super) event_ts: Option<String>,
}

/// Tokens were taken back.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokensRevoked {
    #[serde(deserialize_with = "or_default")]
    pub(super) tokens: RevokedTokens,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct RevokedTokens {
    #[serde(deserialize_with = "or_default")]
    pub(super) bot: Vec<String>,
}

/// A slash command.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct SlashCommand {
    #[serde(default)]
    pub(super) team_id: Option<String>,
    pub(super) channel_id: String,
    pub(super) user_id: String,
    #[serde(default)]
    pub(super) user_name: Option<String>,
    pub(super) command: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) text: String,
    #[serde(default)]
    pub(super) response_url: Option<String>,
    pub(super) trigger_id: String,
}

/// Something done to a message of ours.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Interaction {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(super) kind: String,
    pub(super) user: Option<Presser>,
    pub(super) team: Option<Named>,
    pub(super) channel: Option<Named>,
    pub(super) container: Option<Container>,
    pub(super) message: Option<Pressed>,
    #[serde(deserialize_with = "or_default")]
    pub(super) actions: Vec<Action>,
    pub(super) trigger_id: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Presser {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) team_id: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Container {
    pub(super) channel_id: Option<String>,
    pub(super) message_ts: Option<String>,
    pub(super) thread_ts: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pressed {
    pub(super) thread_ts: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Action {
    #[serde(deserialize_with = "or_default")]
    pub(super) action_id: String,
    pub(super) value: Option<String>,
    pub(super) action_ts: Option<String>,
}

/// Slack writes `null` where it means nothing.
fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// What has another shape than the one we know is not there for us.
fn lenient<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let value = serde_json::Value::deserialize(from)?;
    Ok(serde_json::from_value(value).ok())
}
