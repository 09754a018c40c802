//! What the Bot API sends, as far as it is read. Everything it does not promise may be missing, and
//! what is not named here is ignored: new fields and kinds come with every release.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

/// Every answer of the API.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'a> {
    pub(super) ok: bool,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    pub(super) error_code: Option<u16>,
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) parameters: Parameters,
}

/// What a refusal says besides its words.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Parameters {
    pub(super) retry_after: Option<u64>,
    pub(super) migrate_to_chat_id: Option<i64>,
}

/// The part of an update that always has to be there.
#[derive(Debug, Deserialize)]
pub(super) struct Numbered {
    pub(super) update_id: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Update {
    pub(super) message: Option<Message>,
    pub(super) edited_message: Option<Message>,
    pub(super) channel_post: Option<Message>,
    pub(super) callback_query: Option<CallbackQuery>,
    pub(super) stopped_message_generation: Option<StoppedGeneration>,
}

#[derive(Debug, Deserialize)]
pub(super) struct User {
    pub(super) id: i64,
    #[serde(default)]
    pub(super) is_bot: bool,
    #[serde(default)]
    pub(super) first_name: String,
    pub(super) last_name: Option<String>,
    pub(super) username: Option<String>,
    #[serde(default)]
    pub(super) can_join_groups: bool,
    #[serde(default)]
    pub(super) can_read_all_group_messages: bool,
}

impl User {
    /// The name that people see.
    pub(super) fn name(&self) -> String {
        let names = [Some(self.first_name.as_str()), self.last_name.as_deref()];
        names.into_iter().flatten().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Chat {
    pub(super) id: i64,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) title: Option<String>,
    pub(super) first_name: Option<String>,
    pub(super) last_name: Option<String>,
    #[serde(default)]
    pub(super) is_forum: bool,
    #[serde(default)]
    pub(super) is_direct_messages: bool,
}

impl Chat {
    /// The name that people see.
    pub(super) fn name(&self) -> Option<String> {
        let names = [self.title.as_deref(), self.first_name.as_deref(), self.last_name.as_deref()];
        let name = names.into_iter().flatten().collect::<Vec<_>>().join(" ");
        (!name.is_empty()).then_some(name)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) message_id: i64,
    pub(super) message_thread_id: Option<i64>,
    #[serde(default)]
    pub(super) is_topic_message: bool,
    pub(super) direct_messages_topic: Option<DirectTopic>,
    pub(super) from: Option<User>,
    pub(super) sender_chat: Option<Chat>,
    #[serde(default)]
    pub(super) date: i64,
    pub(super) edit_date: Option<i64>,
    pub(super) chat: Chat,
    pub(super) forward_origin: Option<Origin>,
    pub(super) reply_to_message: Option<Box<Message>>,
    pub(super) external_reply: Option<ExternalReply>,
    pub(super) quote: Option<TextQuote>,
    pub(super) media_group_id: Option<String>,

    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) entities: Vec<Entity>,
    pub(super) caption: Option<String>,
    #[serde(default)]
    pub(super) caption_entities: Vec<Entity>,
    pub(super) rich_message: Option<Value>,

    #[serde(default)]
    pub(super) photo: Vec<PhotoSize>,
    pub(super) animation: Option<File>,
    pub(super) video: Option<File>,
    pub(super) video_note: Option<File>,
    pub(super) audio: Option<File>,
    pub(super) voice: Option<File>,
    pub(super) document: Option<File>,
    pub(super) sticker: Option<Sticker>,

    pub(super) location: Option<Location>,
    pub(super) venue: Option<Venue>,
    pub(super) contact: Option<Contact>,
    pub(super) poll: Option<Poll>,
    pub(super) dice: Option<Dice>,
    pub(super) game: Option<Titled>,
    pub(super) checklist: Option<Checklist>,
    pub(super) invoice: Option<Titled>,
    pub(super) story: Option<IgnoredAny>,
    pub(super) paid_media: Option<IgnoredAny>,
    pub(super) giveaway: Option<IgnoredAny>,

    pub(super) forum_topic_created: Option<Topic>,
    pub(super) forum_topic_edited: Option<Topic>,
    pub(super) migrate_to_chat_id: Option<i64>,
    pub(super) migrate_from_chat_id: Option<i64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DirectTopic {
    pub(super) topic_id: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Topic {
    pub(super) name: Option<String>,
}

/// What is formatted in a text. Offsets and lengths count UTF-16 units.
#[derive(Debug, Deserialize)]
pub(super) struct Entity {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) url: Option<String>,
    pub(super) user: Option<User>,
}

/// Who said first what was passed on. One of these says it.
#[derive(Debug, Deserialize)]
pub(super) struct Origin {
    pub(super) sender_user: Option<User>,
    pub(super) sender_user_name: Option<String>,
    pub(super) sender_chat: Option<Chat>,
    pub(super) chat: Option<Chat>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ExternalReply {
    pub(super) origin: Option<Origin>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TextQuote {
    pub(super) text: String,
    #[serde(default)]
    pub(super) is_manual: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct PhotoSize {
    pub(super) file_id: String,
    #[serde(default)]
    pub(super) width: u64,
    #[serde(default)]
    pub(super) height: u64,
    pub(super) file_size: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct File {
    pub(super) file_id: String,
    pub(super) file_name: Option<String>,
    pub(super) mime_type: Option<String>,
    pub(super) file_size: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Sticker {
    pub(super) file_id: String,
    pub(super) file_size: Option<u64>,
    pub(super) emoji: Option<String>,
    #[serde(default)]
    pub(super) is_animated: bool,
    #[serde(default)]
    pub(super) is_video: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Location {
    pub(super) latitude: f64,
    pub(super) longitude: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Venue {
    #[serde(default)]
    pub(super) title: String,
    #[serde(default)]
    pub(super) address: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Contact {
    #[serde(default)]
    pub(super) phone_number: String,
    #[serde(default)]
    pub(super) first_name: String,
    pub(super) last_name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Poll {
    #[serde(default)]
    pub(super) question: String,
    #[serde(default)]
    pub(super) options: Vec<Texted>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Texted {
    #[serde(default)]
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Dice {
    #[serde(default)]
    pub(super) emoji: String,
    #[serde(default)]
    pub(super) value: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Titled {
    #[serde(default)]
    pub(super) title: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Checklist {
    #[serde(default)]
    pub(super) title: String,
    #[serde(default)]
    pub(super) tasks: Vec<Texted>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallbackQuery {
    pub(super) id: String,
    pub(super) from: User,
    pub(super) message: Option<Message>,
    pub(super) data: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StoppedGeneration {
    pub(super) chat: Chat,
    pub(super) message_thread_id: Option<i64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WebhookState {
    #[serde(default)]
    pub(super) url: String,
    #[serde(default)]
    pub(super) pending_update_count: u64,
    pub(super) last_error_date: Option<i64>,
    pub(super) last_error_message: Option<String>,
}

/// A message of ours, as far as a receipt needs it.
#[derive(Debug, Deserialize)]
pub(super) struct Sent {
    pub(super) message_id: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct FilePath {
    pub(super) file_size: Option<u64>,
    pub(super) file_path: Option<String>,
}
