//! Acts out: what is asked of the Bot API for each of them. Formatting travels beside the text, never in
//! it.

use serde_json::{Map, Value, json};
use talaria_model::{
    Address, ChatKind, Choice, Content, Draft, FileRef, MessageId, Notify, OutboundId, Progress,
    Shown, Unit,
};
use talaria_platform::SendError;
use talaria_render::{Dialect, Rendered, length, read, render};

/// The longest message, in UTF-16 units.
pub(super) const LONGEST_TEXT: usize = 4096;

/// The longest text beside a file.
const LONGEST_CAPTION: usize = 1024;

/// The largest file that is shown as a picture.
const LARGEST_PHOTO: u64 = 10 * 1024 * 1024;

/// How many files an album holds.
const ALBUM: usize = 10;

/// Two buttons stand beside each other when both are this short.
const SHORT_LABEL: usize = 16;

/// Chats below this id are the direct messages of a channel.
const CHANNEL_DIRECT: i64 = -2_002_147_483_649;

/// The topic of a forum that everything is in that is in no other. Only signs of life name it.
const GENERAL: i64 = 1;

/// The emoji that bots can react with.
const REACTIONS: &str = "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡";

/// What is asked of the API.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) body: Map<String, Value>,
    /// The files and the form fields that they travel in.
    pub(super) files: Vec<(String, FileRef)>,
}

/// One request of those that a post consists of.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) request: Request,
    /// Whether the text is in it.
    pub(super) says: bool,
    /// Whether the picture in it can be sent as a file instead.
    pub(super) otherwise: Option<Request>,
}

/// How far a post of several requests has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// Whether the text is shown.
    pub(super) said: bool,
    /// How many files are shown.
    pub(super) files: usize,
    /// The message that the post is known by.
    pub(super) message: Option<MessageId>,
}

/// What the settings say about how to speak.
#[derive(Debug, Clone, Copy)]
pub(super) enum LinkPreviews {
    Shown,
    Hidden,
}

/// The fields of an object.
pub(super) fn arguments(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// A chat as the API names it.
pub(super) fn chat(to: &Address) -> Result<Value, SendError> {
    let id = to.chat.id.as_str();
    match id.parse::<i64>() {
        Ok(id) => Ok(id.into()),
        Err(_) if id.starts_with('@') => Ok(id.into()),
        Err(_) => Err(rejected("the chat is named by a number, or by @ and a name")),
    }
}

fn rejected(reason: &str) -> SendError {
    SendError::Rejected { reason: reason.into() }
}

fn message_id(message: &MessageId) -> Result<i64, SendError> {
    message.as_str().parse().map_err(|_| rejected("a message is named by a number"))
}

fn request(method: &'static str, body: Value) -> Request {
    Request { method, body: arguments(body), files: Vec::new() }
}

fn thread(to: &Address) -> Result<Option<i64>, SendError> {
    let Some(thread) = &to.thread else { return Ok(None) };
    thread.as_str().parse().map(Some).map_err(|_| rejected("a topic is named by a number"))
}

/// Where a message goes.
fn place(to: &Address, chat: &Value) -> Result<Map<String, Value>, SendError> {
    let mut body = arguments(json!({ "chat_id": chat }));
    if let Some(thread) = thread(to)?.filter(|thread| *thread != GENERAL) {
        let is_direct = chat.as_i64().is_some_and(|id| id <= CHANNEL_DIRECT);
        let field = if is_direct { "direct_messages_topic_id" } else { "message_thread_id" };
        body.insert(field.into(), thread.into());
    }
    Ok(body)
}

/// The requests of a post that are left to be made.
pub(super) fn post(
    to: &Address,
    chat: &Value,
    content: &Content,
    done: &Done,
    previews: LinkPreviews,
) -> Result<Vec<Step>, SendError> {
    let mut rendered = shown(content);
    let asks = !content.choices.is_empty();
    if asks && rendered.text.trim().is_empty() {
        rendered = Rendered { text: "Please choose:".into(), entities: Vec::new() };
    }
    let speaks = !done.said && !rendered.text.trim().is_empty();
    let groups = groups(content.files.get(done.files..).unwrap_or_default());
    // There are no buttons under an album.
    let takes_buttons = groups.len() == 1 && groups[0].len() == 1;
    let is_caption = speaks
        && *done == Done::default()
        && !groups.is_empty()
        && (!asks || takes_buttons)
        && length(&rendered.text, Unit::Utf16) <= LONGEST_CAPTION;

    let mut common = place(to, chat)?;
    if content.notify == Notify::Silently {
        common.insert("disable_notification".into(), true.into());
    }
    let text = || {
        let mut body = common.clone();
        write(&mut body, "text", "entities", &rendered);
        preview(&mut body, previews);
        buttons(&mut body, &content.choices);
        let request = Request { method: "sendMessage", body, files: Vec::new() };
        Step { request, says: true, otherwise: None }
    };
    let mut steps = Vec::new();
    if speaks && !is_caption && !asks {
        steps.push(text());
    }
    for (at, group) in groups.iter().enumerate() {
        let caption = Some(&rendered).filter(|_| is_caption && at == 0);
        let choices = if is_caption { content.choices.as_slice() } else { &[] };
        steps.push(media(&common, group, caption, choices));
    }
    if speaks && !is_caption && asks {
        steps.push(text());
    }
    if let (Some(first), Some(answered)) = (steps.first_mut(), &content.reply_to)
        && *done == Done::default()
    {
        let reply = json!({
            "message_id": message_id(answered)?,
            "allow_sending_without_reply": true,
        });
        let bodies = first.otherwise.iter_mut().chain([&mut first.request]);
        for request in bodies {
            request.body.insert("reply_parameters".into(), reply.clone());
        }
    }
    if steps.is_empty() && *done == Done::default() {
        return Err(rejected("there is nothing to say"));
    }
    Ok(steps)
}

/// The text, and beside it what is formatted in it.
pub(super) fn shown(content: &Content) -> Rendered {
    render(&read(&content.text, content.reading), Dialect::TelegramEntities)
}

fn write(body: &mut Map<String, Value>, text: &str, entities: &str, rendered: &Rendered) {
    body.insert(text.into(), rendered.text.as_str().into());
    if !rendered.entities.is_empty() {
        body.insert(entities.into(), json!(rendered.entities));
    }
}

fn preview(body: &mut Map<String, Value>, previews: LinkPreviews) {
    if let LinkPreviews::Hidden = previews {
        body.insert("link_preview_options".into(), json!({ "is_disabled": true }));
    }
}

fn buttons(body: &mut Map<String, Value>, choices: &[Choice]) {
    if choices.is_empty() {
        return;
    }
    let is_short = |choice: &Choice| choice.label.chars().count() <= SHORT_LABEL;
    let per_row = if choices.iter().all(is_short) { 2 } else { 1 };
    let button = |choice: &Choice| json!({ "text": choice.label, "callback_data": choice.id });
    let rows: Vec<Vec<Value>> =
        choices.chunks(per_row).map(|row| row.iter().map(button).collect()).collect();
    body.insert("reply_markup".into(), json!({ "inline_keyboard": rows }));
}

/// What a file is to Telegram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Photo,
    Video,
    Animation,
    Audio,
    Voice,
    Document,
}

impl Sort {
    fn of(file: &FileRef) -> Self {
        match file.mime.as_str() {
            _ if file.shown == Shown::Document => Self::Document,
            "audio/mpeg" | "audio/mp3" | "audio/mp4" | "audio/m4a" | "audio/x-m4a"
                if file.shown == Shown::Voice =>
            {
                Self::Voice
            }
            "image/jpeg" | "image/png" | "image/webp" if file.size <= LARGEST_PHOTO => Self::Photo,
            "image/gif" => Self::Animation,
            "video/mp4" => Self::Video,
            // Only as somebody speaking does it get a player.
            "audio/ogg" | "audio/opus" => Self::Voice,
            "audio/mpeg" | "audio/mp3" | "audio/mp4" | "audio/m4a" | "audio/x-m4a" => Self::Audio,
            _ => Self::Document,
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::Photo => "photo",
            Self::Video => "video",
            Self::Animation => "animation",
            Self::Audio => "audio",
            Self::Voice => "voice",
            Self::Document => "document",
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::Photo => "sendPhoto",
            Self::Video => "sendVideo",
            Self::Animation => "sendAnimation",
            Self::Audio => "sendAudio",
            Self::Voice => "sendVoice",
            Self::Document => "sendDocument",
        }
    }

    /// Whether both can be in one album.
    fn goes_with(self, other: Self) -> bool {
        let is_seen = |sort| matches!(sort, Self::Photo | Self::Video);
        let is_listed = matches!(self, Self::Document | Self::Audio);
        (is_seen(self) && is_seen(other)) || (is_listed && self == other)
    }
}

/// Files that follow each other and can be shown as one.
fn groups(files: &[FileRef]) -> Vec<&[FileRef]> {
    files
        .chunk_by(|one, next| Sort::of(one).goes_with(Sort::of(next)))
        .flat_map(|alike| alike.chunks(ALBUM))
        .collect()
}

fn media(
    common: &Map<String, Value>,
    group: &[FileRef],
    caption: Option<&Rendered>,
    choices: &[Choice],
) -> Step {
    if let [file] = group {
        let sort = Sort::of(file);
        let request = single(common, file, sort, caption, choices);
        let otherwise = matches!(sort, Sort::Photo | Sort::Voice)
            .then(|| single(common, file, Sort::Document, caption, choices));
        return Step { request, says: caption.is_some(), otherwise };
    }
    let mut items = Vec::with_capacity(group.len());
    let mut files = Vec::with_capacity(group.len());
    for (at, file) in group.iter().enumerate() {
        let name = format!("file{at}");
        let mut item = arguments(json!({
            "type": Sort::of(file).field(),
            "media": format!("attach://{name}"),
        }));
        if let Some(caption) = caption.filter(|_| at == 0) {
            write(&mut item, "caption", "caption_entities", caption);
        }
        items.push(item);
        files.push((name, file.clone()));
    }
    let mut body = common.clone();
    body.insert("media".into(), json!(items));
    let request = Request { method: "sendMediaGroup", body, files };
    Step { request, says: caption.is_some(), otherwise: None }
}

fn single(
    common: &Map<String, Value>,
    file: &FileRef,
    sort: Sort,
    caption: Option<&Rendered>,
    choices: &[Choice],
) -> Request {
    let mut body = common.clone();
    if let Some(caption) = caption {
        write(&mut body, "caption", "caption_entities", caption);
    }
    if sort == Sort::Document {
        body.insert("disable_content_type_detection".into(), true.into());
    }
    buttons(&mut body, choices);
    Request { method: sort.method(), body, files: vec![(sort.field().into(), file.clone())] }
}

/// The text of a message of ours becomes this. Buttons that are not repeated are taken away.
pub(super) fn edit(
    chat: &Value,
    message: &MessageId,
    content: &Content,
    previews: LinkPreviews,
) -> Result<Request, SendError> {
    let rendered = shown(content);
    if rendered.text.trim().is_empty() {
        return Err(rejected("there is nothing to say"));
    }
    let mut request =
        request("editMessageText", json!({ "chat_id": chat, "message_id": message_id(message)? }));
    write(&mut request.body, "text", "entities", &rendered);
    preview(&mut request.body, previews);
    buttons(&mut request.body, &content.choices);
    Ok(request)
}

/// The same for a message with a file.
pub(super) fn edit_caption(
    chat: &Value,
    message: &MessageId,
    content: &Content,
) -> Result<Request, SendError> {
    let rendered = shown(content);
    if length(&rendered.text, Unit::Utf16) > LONGEST_CAPTION {
        return Err(rejected("the text is too long to stand below a file"));
    }
    let mut request = request(
        "editMessageCaption",
        json!({ "chat_id": chat, "message_id": message_id(message)? }),
    );
    write(&mut request.body, "caption", "caption_entities", &rendered);
    buttons(&mut request.body, &content.choices);
    Ok(request)
}

/// What an answer looks like so far. Without words, Telegram shows that somebody thinks.
pub(super) fn draft(
    to: &Address,
    chat: &Value,
    id: &OutboundId,
    draft: &Draft,
) -> Result<Request, SendError> {
    let text = &draft.content.text;
    let mut rendered = shown(&draft.content);
    if let Some(doing) = &draft.doing {
        let doing = format!("*{}…*", talaria_render::literal(doing));
        let with = shown(&Content::text(talaria_render::append(text, &doing)));
        if length(&with.text, Unit::Utf16) <= LONGEST_TEXT {
            rendered = with;
        }
    }
    // Frames with the same number replace each other; none is zero.
    let number = (id.delivery & 0x3fff_ffff) + 1;
    let mut body = place(to, chat)?;
    body.insert("draft_id".into(), number.into());
    body.insert("can_stop".into(), true.into());
    write(&mut body, "text", "entities", &rendered);
    Ok(Request { method: "sendMessageDraft", body, files: Vec::new() })
}

pub(super) fn delete(chat: &Value, message: &MessageId) -> Result<Request, SendError> {
    let body = json!({ "chat_id": chat, "message_id": message_id(message)? });
    Ok(request("deleteMessage", body))
}

/// Puts the one reaction that a bot has on a message, or takes it away.
fn reaction(chat: &Value, message: &MessageId, emoji: Option<&str>) -> Result<Request, SendError> {
    let reaction: Vec<Value> =
        emoji.iter().map(|emoji| json!({ "type": "emoji", "emoji": emoji })).collect();
    let body = json!({ "chat_id": chat, "message_id": message_id(message)?, "reaction": reaction });
    Ok(request("setMessageReaction", body))
}

pub(super) fn react(chat: &Value, message: &MessageId, emoji: &str) -> Result<Request, SendError> {
    let bare = emoji.replace('\u{fe0f}', "");
    let nearest = match bare.as_str() {
        "✅" | "✔" | "☑" => "👍",
        "❌" | "✖" | "🚫" => "👎",
        "⏳" | "⌛" => "👀",
        other => other,
    };
    let known = REACTIONS.split(' ').find(|known| *known == nearest);
    let known = known.ok_or_else(|| rejected("Telegram has no such reaction"))?;
    reaction(chat, message, Some(known))
}

pub(super) fn mark(
    chat: &Value,
    message: &MessageId,
    progress: Progress,
) -> Result<Request, SendError> {
    let emoji = match progress {
        Progress::Seen => Some("👀"),
        Progress::Done => Some("👍"),
        Progress::Failed => Some("👎"),
        Progress::Nothing => None,
    };
    reaction(chat, message, emoji)
}

pub(super) fn typing(to: &Address, chat: &Value) -> Result<Request, SendError> {
    if chat.as_i64().is_some_and(|id| id <= CHANNEL_DIRECT) {
        return Err(rejected("nobody sees typing in the direct messages of a channel"));
    }
    let mut body = arguments(json!({ "chat_id": chat, "action": "typing" }));
    let thread = match thread(to)? {
        // Nobody in a forum's first topic sees typing that does not name it.
        None if to.chat.kind == ChatKind::Forum => Some(GENERAL),
        thread => thread,
    };
    if let Some(thread) = thread {
        body.insert("message_thread_id".into(), thread.into());
    }
    Ok(Request { method: "sendChatAction", body, files: Vec::new() })
}
