//! What we do in chats.
//!
//! A post is one request, or several where its files do not fit into one. Each carries a nonce of its
//! own, so that a post whose answer was lost can be repeated whole: Discord hands back what is already
//! there and creates only what is missing. Forum posts alone have no nonce.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use talaria_model::{
    Act, Address, ChatKind, Content, FileRef, MessageId, Outbound, OutboundId, Progress, Receipt,
    SessionId, Shown, Timestamp,
};
use talaria_platform::{FileStore, Found, Outgoing, SendError};

use super::api;
use super::decode::thread_name;
use super::encode::{self, Parcel};
use super::lookup::{Lookup, PAGE};
use super::places::{Kept, kind};
use super::recent::Recent;
use super::refusal::{RestError, code};
use super::snowflake::Snowflake;
use super::uploads::{Attachment, Uploads};
use crate::wire::http::Reply;

/// The largest file that Discord takes everywhere.
pub(crate) const LARGEST_FILE: u64 = 10 * 1024 * 1024;

/// How far back we look for a message of ours.
const LOOK_BACK: i64 = 15 * 60 * 1000;

/// How many of our own messages are remembered.
const REMEMBERED: usize = 1024;

/// After this many minutes without a word a thread is put away.
const PUT_AWAY: u16 = 1440;

const SEEN: &str = "👀";
const DONE: &str = "✅";
const FAILED: &str = "❌";

/// Speaks for the account.
pub(crate) struct Speaking {
    lookup: Arc<Lookup>,
    uploads: Uploads,
    memory: Mutex<Memory>,
}

/// What only this process knows of what it did.
struct Memory {
    /// The nonces of our messages.
    posted: Recent<Snowflake, String>,
    /// The posts that a delivery to a forum began.
    posts: Recent<(SessionId, u32), Snowflake>,
    /// Messages that are not in the chat they were addressed to, but in a post of it.
    elsewhere: Recent<Snowflake, Snowflake>,
    /// The sign that stands on a message.
    marks: Recent<Snowflake, &'static str>,
}

impl Speaking {
    pub(crate) fn new(lookup: Arc<Lookup>, files: Arc<dyn FileStore>) -> Self {
        let memory = Memory {
            posted: Recent::keeping(REMEMBERED),
            posts: Recent::keeping(REMEMBERED),
            elsewhere: Recent::keeping(REMEMBERED),
            marks: Recent::keeping(REMEMBERED),
        };
        Self { lookup, uploads: Uploads::of(files), memory: Mutex::new(memory) }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        self.lookup.clock.now()
    }

    fn receipt(&self, message: Option<Snowflake>) -> Receipt {
        Receipt { message: message.map(Snowflake::message), at: self.now() }
    }

    /// The channel or thread of an address. A thread that was promised is made.
    async fn channel(&self, to: &Address) -> Result<Snowflake, SendError> {
        let id = place(to)?;
        let Some(promise) = self.lookup.places.promised(id) else { return Ok(id) };
        match promise.kept {
            Kept::Yes => return Ok(id),
            Kept::No => return Ok(promise.parent),
            Kept::NotYet => {}
        }
        let name = match promise.name {
            Some(name) => name,
            None => self.name_of(promise.parent, id).await,
        };
        let path = format!("/channels/{}/messages/{id}/threads", promise.parent);
        let body = json!({ "name": name, "auto_archive_duration": PUT_AWAY });
        match self.lookup.rest.post(&path, body).await {
            Ok(_) => {}
            Err(error) if error.code() == Some(code::THREAD_EXISTS) => {}
            Err(RestError::Refused(refusal))
                if refusal.is_about_threads() || refusal.code == code::UNKNOWN_MESSAGE =>
            {
                tracing::warn!(
                    code = refusal.code,
                    "no thread can be made; answering in the channel"
                );
                self.lookup.places.settle(id, Kept::No);
                return Ok(promise.parent);
            }
            Err(error) => return Err(error.into()),
        }
        self.lookup.places.settle(id, Kept::Yes);
        Ok(id)
    }

    /// What a thread on a message is called, when only the message is known.
    async fn name_of(&self, channel: Snowflake, message: Snowflake) -> String {
        let path = format!("/channels/{channel}/messages/{message}");
        match self.lookup.rest.get::<api::Message>(&path).await {
            Ok(message) => thread_name(&self.lookup.reader().glimpse(&message, None)),
            Err(_) => thread_name(""),
        }
    }

    /// The channel that a message is in, whose chat is known.
    async fn channel_of(&self, to: &Address, message: Snowflake) -> Result<Snowflake, SendError> {
        if let Some(channel) = self.memory().elsewhere.get(&message) {
            return Ok(*channel);
        }
        let id = place(to)?;
        let places = &self.lookup.places;
        match places.promised(id) {
            Some(promise) if message == id || promise.kept == Kept::No => return Ok(promise.parent),
            Some(_) => return Ok(id),
            None => {}
        }
        if message != id {
            return Ok(id);
        }
        // The message that a thread begins with is in the channel, unless that is a forum.
        if places.find(id).is_none()
            && let Ok(thread) = self.lookup.channel(id).await
            && let Some(parent) = thread.parent_id
        {
            // Found or not, the parent is remembered where it could be.
            let _ = self.lookup.channel(parent).await;
        }
        Ok(places.began_in(id).unwrap_or(id))
    }

    async fn post(&self, id: &OutboundId, to: &Address, content: &Content) -> Posted {
        let begun = self.memory().posts.get(&(id.session.clone(), id.delivery)).copied();
        if let Some(post) = begun {
            let sent = self.post_in(post, id, to, content).await;
            if let Ok(Some(message)) = sent {
                self.memory().elsewhere.insert(message, post);
            }
            return sent;
        }
        if to.chat.kind == ChatKind::Forum {
            return self.begin_post(place(to)?, id, content).await;
        }
        let channel = self.channel(to).await?;
        if self.lookup.places.find(channel).is_some_and(|channel| kind::is_forum(channel.kind)) {
            return self.begin_post(channel, id, content).await;
        }
        self.post_in(channel, id, to, content).await
    }

    async fn post_in(
        &self,
        channel: Snowflake,
        id: &OutboundId,
        to: &Address,
        content: &Content,
    ) -> Posted {
        let (files, missing) = self.uploads.kept(&content.files).await;
        let text = with_missing(encode::words(content), &missing);
        let path = format!("/channels/{channel}/messages");
        if text.is_empty()
            && content.choices.is_empty()
            && let ([FileRef { shown: Shown::Voice, .. }], [file]) =
                (content.files.as_slice(), files.as_slice())
            && let Some(seconds) = self.uploads.spoken_seconds(file).await
            && let Some(sent) = {
                let nonce = encode::nonce(&self.lookup.account, id, 0, content.anew);
                self.speak(&path, &nonce, file, seconds).await
            }
        {
            return sent;
        }
        let place = place(to)?;
        // The message that a thread begins with is not in the thread.
        let is_answerable = |reply: &&MessageId| channel != place || **reply != place.message();
        let reply = content.reply_to.as_ref().filter(is_answerable).map(MessageId::as_str);
        let parcels = parcels(&files);
        let last = parcels.len() - 1;
        let mut first_message = None;
        for (number, files) in parcels.into_iter().enumerate() {
            let nonce = encode::nonce(&self.lookup.account, id, number, content.anew);
            let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
            let parcel = Parcel {
                text: if number == 0 { &text } else { "" },
                choices: if number == last { &content.choices } else { &[] },
                reply: reply.filter(|_| number == 0),
                notify: content.notify,
                nonce: Some(&nonce),
                files: &names,
                mentions: &self.lookup.settings.allow_mentions,
                previews: self.lookup.settings.previews(),
            };
            let message = match self.deliver(&path, parcel, files).await {
                Err(Undelivered::Forum) => return self.begin_post(channel, id, content).await,
                // What comes behind the first is not missed by those who took it away.
                Err(Undelivered::Failed(SendError::Vanished)) if number > 0 => None,
                Err(Undelivered::Failed(error)) => return Err(error),
                Ok(message) => message,
            };
            if let Some(message) = message {
                self.memory().posted.insert(message, nonce);
            }
            first_message = first_message.or(message);
        }
        Ok(first_message)
    }

    /// Sends a recording as somebody speaking; none when it has to be sent as a file.
    async fn speak(
        &self,
        path: &str,
        nonce: &str,
        file: &Attachment,
        seconds: f64,
    ) -> Option<Posted> {
        let body = encode::voice(nonce, seconds, &self.lookup.settings.allow_mentions);
        let sent = self.upload(path, &body, &[file.spoken()]).await;
        match sent {
            Err(RestError::Refused(refusal)) if refusal.is_about_voice() => None,
            sent => Some(created(sent).map_err(not_made)),
        }
    }

    /// Makes one message, without what Discord refuses of it where the rest makes sense.
    async fn deliver<'a>(
        &self,
        path: &str,
        parcel: Parcel<'a>,
        files: &'a [Attachment],
    ) -> Result<Option<Snowflake>, Undelivered> {
        let (mut parcel, mut files) = (parcel, files);
        let noted = OnceLock::new();
        // Each round leaves out one thing.
        for _ in 0..3 {
            let body = encode::post(&parcel);
            let sent = if files.is_empty() {
                self.lookup.rest.post(path, body).await
            } else {
                self.upload(path, &body, files).await
            };
            let refusal = match created(sent) {
                Ok(message) => return Ok(message),
                Err(RestError::Refused(refusal)) if refusal.code != code::UNKNOWN_MESSAGE => {
                    refusal
                }
                Err(error) => return Err(Undelivered::Failed(not_made(error))),
            };
            if refusal.code == code::FORUM_NEEDS_POST {
                return Err(Undelivered::Forum);
            } else if parcel.reply.is_some() && refusal.is_about_reply() {
                parcel.reply = None;
            } else if !files.is_empty() && refusal.is_about_files() {
                let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
                let text = parcel.text.to_owned();
                parcel.text = noted.get_or_init(|| with_missing(text, &names));
                parcel.files = &[];
                files = &[];
            } else {
                return Err(Undelivered::Failed(RestError::Refused(refusal).into()));
            }
        }
        let reason = "Discord accepts no form of it".into();
        Err(Undelivered::Failed(SendError::Rejected { reason }))
    }

    /// Begins a post in a forum. Discord takes no nonce for it.
    async fn begin_post(&self, forum: Snowflake, id: &OutboundId, content: &Content) -> Posted {
        let (files, missing) = self.uploads.kept(&content.files).await;
        let text = with_missing(encode::words(content), &missing);
        let files: Vec<Attachment> = files.into_iter().take(encode::FILES).collect();
        let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
        let message = encode::post(&Parcel {
            text: &text,
            choices: &content.choices,
            reply: None,
            notify: content.notify,
            nonce: None,
            files: &names,
            mentions: &self.lookup.settings.allow_mentions,
            previews: self.lookup.settings.previews(),
        });
        let mut body = json!({
            "name": encode::title(&content.text),
            "auto_archive_duration": PUT_AWAY,
            "message": message,
        });
        let facts = self.lookup.channel(forum).await.map_err(SendError::from)?;
        if facts.flags & REQUIRES_TAG != 0
            && let Some(tag) = facts.available_tags.iter().find(|tag| !tag.moderated)
        {
            body["applied_tags"] = json!([tag.id]);
        }
        let path = format!("/channels/{forum}/threads");
        let made = if files.is_empty() {
            self.lookup.rest.post(&path, body).await
        } else {
            self.upload(&path, &body, &files).await
        };
        let post: api::Channel = made
            .and_then(|reply| reply.json().map_err(|_| RestError::senseless()))
            .map_err(SendError::from)?;
        let message = post.message.as_ref().map_or(post.id, |message| message.id);
        let mut memory = self.memory();
        memory.posts.insert((id.session.clone(), id.delivery), post.id);
        memory.elsewhere.insert(message, post.id);
        Ok(Some(message))
    }

    async fn upload(
        &self,
        path: &str,
        body: &Value,
        files: &[Attachment],
    ) -> Result<Reply, RestError> {
        self.uploads.upload(&self.lookup.rest, path, body, files).await
    }

    async fn edit(&self, to: &Address, message: &MessageId, content: &Content) -> Posted {
        let id = message_id(message)?;
        let channel = self.channel_of(to, id).await?;
        let settings = &self.lookup.settings;
        let body = encode::edit(content, &settings.allow_mentions, settings.previews());
        let path = format!("/channels/{channel}/messages/{id}");
        let edited = self.awake(channel, || self.lookup.rest.patch(&path, body.clone())).await;
        edited.map_err(SendError::from)?;
        Ok(Some(id))
    }

    async fn delete(&self, to: &Address, message: &MessageId) -> Posted {
        let id = message_id(message)?;
        let channel = self.channel_of(to, id).await?;
        let path = format!("/channels/{channel}/messages/{id}");
        let deleted = self.awake(channel, || self.lookup.rest.delete(&path)).await;
        match deleted {
            Ok(_) => {}
            Err(error) if error.code() == Some(code::UNKNOWN_MESSAGE) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }

    async fn react(&self, to: &Address, message: Snowflake, emoji: &str) -> Posted {
        let (channel, path) = self.reaction(to, message, emoji).await?;
        harmless(self.awake(channel, || self.lookup.rest.put(&path, None)).await)
    }

    async fn unreact(&self, to: &Address, message: Snowflake, emoji: &str) -> Posted {
        let (channel, path) = self.reaction(to, message, emoji).await?;
        harmless(self.awake(channel, || self.lookup.rest.delete(&path)).await)
    }

    async fn reaction(
        &self,
        to: &Address,
        message: Snowflake,
        emoji: &str,
    ) -> Result<(Snowflake, String), SendError> {
        let channel = self.channel_of(to, message).await?;
        // An emoji of the guild is written `<:name:id>` in text and `name:id` here.
        let name = emoji.trim_matches(['<', '>']).trim_start_matches("a:").trim_start_matches(':');
        let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
        Ok((channel, format!("/channels/{channel}/messages/{message}/reactions/{name}/@me")))
    }

    async fn mark(&self, to: &Address, message: &MessageId, progress: Progress) -> Posted {
        let id = message_id(message)?;
        let sign = match progress {
            Progress::Seen => Some(SEEN),
            Progress::Done => Some(DONE),
            Progress::Failed => Some(FAILED),
            Progress::Nothing => None,
        };
        if let Some(sign) = sign {
            self.react(to, id, sign).await?;
        }
        // After a restart, the sign that can stand there is the first one.
        let before = self.memory().marks.get(&id).copied().unwrap_or(SEEN);
        if Some(before) != sign {
            self.unreact(to, id, before).await?;
        }
        let mut memory = self.memory();
        match sign {
            Some(sign) => memory.marks.insert(id, sign),
            None => drop(memory.marks.remove(&id)),
        }
        Ok(None)
    }

    async fn typing(&self, to: &Address) -> Posted {
        let channel = self.channel(to).await?;
        harmless(self.lookup.rest.signal(&format!("/channels/{channel}/typing")).await)
    }

    /// Asks, and once more where only a thread that was put away stood in the way.
    async fn awake<F>(&self, channel: Snowflake, ask: impl Fn() -> F) -> Result<Reply, RestError>
    where
        F: Future<Output = Result<Reply, RestError>>,
    {
        match ask().await {
            Err(error) if error.code() == Some(code::ARCHIVED) => {
                let path = format!("/channels/{channel}");
                self.lookup.rest.patch(&path, json!({ "archived": false })).await?;
                ask().await
            }
            answer => answer,
        }
    }

    /// Looks for a message that may have been made.
    async fn look(&self, id: &OutboundId, to: &Address, content: &Content) -> Looked {
        if to.chat.kind == ChatKind::Forum {
            return self.look_for_post(place(to)?, content).await;
        }
        if content.files.len() > encode::FILES || total(&content.files) > encode::REQUEST {
            return Ok(Found::Unknown);
        }
        let place = place(to)?;
        let channel = match self.lookup.places.promised(place) {
            Some(promise) if promise.kept == Kept::NotYet => return Ok(Found::Absent),
            Some(promise) if promise.kept == Kept::No => promise.parent,
            _ => place,
        };
        let nonce = encode::nonce(&self.lookup.account, id, 0, content.anew);
        if let Some(message) = self.lookup.places.echo(&nonce) {
            return Ok(Found::Shown(self.receipt(Some(message))));
        }
        let path = format!("/channels/{channel}/messages?limit={PAGE}");
        let messages: Vec<api::Message> = self.lookup.rest.get(&path).await?;
        let text = encode::words(content);
        let since = Snowflake::of(Timestamp::from_millis(self.now().as_millis() - LOOK_BACK));
        let us = self.lookup.us;
        let is_ours = |said: &&api::Message| said.author.as_ref().is_some_and(|who| who.id == us);
        let found = messages.iter().filter(is_ours).find(|said| match &said.nonce {
            Some(kept) => *kept == api::Nonce::Text(nonce.clone()),
            // Whether Discord still tells the nonce is not documented; the words tell, too.
            None => {
                let is_same = !text.is_empty() && said.content.trim() == text.trim();
                let is_it = |posted: &String| *posted == nonce;
                is_same && said.id > since && self.memory().posted.get(&said.id).is_none_or(is_it)
            }
        });
        Ok(match found {
            Some(said) => Found::Shown(self.receipt(Some(said.id))),
            None if messages.len() >= PAGE => Found::Unknown,
            None => Found::Absent,
        })
    }

    async fn look_for_post(&self, forum: Snowflake, content: &Content) -> Looked {
        let facts = self.lookup.channel(forum).await?;
        let Some(guild) = facts.guild_id else { return Ok(Found::Unknown) };
        let active: api::Threads =
            self.lookup.rest.get(&format!("/guilds/{guild}/threads/active")).await?;
        let since = Snowflake::of(Timestamp::from_millis(self.now().as_millis() - LOOK_BACK));
        let name = encode::title(&content.text);
        let found = active.threads.iter().find(|thread| {
            thread.parent_id == Some(forum)
                && thread.owner_id == Some(self.lookup.us)
                && thread.name == name
                && thread.id > since
        });
        Ok(found.map_or(Found::Absent, |post| Found::Shown(self.receipt(Some(post.id)))))
    }
}

/// Whether a forum wants a tag on every post.
const REQUIRES_TAG: u64 = 1 << 4;

type Posted = Result<Option<Snowflake>, SendError>;
type Looked = Result<Found, SendError>;

/// Why a message was not made.
enum Undelivered {
    /// The channel is a forum.
    Forum,
    Failed(SendError),
}

#[async_trait]
impl Outgoing for Speaking {
    async fn send(&self, outbound: &Outbound) -> Result<Receipt, SendError> {
        let Outbound { id, to, act } = outbound;
        let message = match act {
            Act::Post(content) => self.post(id, to, content).await?,
            Act::Edit { message, content } => self.edit(to, message, content).await?,
            Act::Delete { message } => self.delete(to, message).await?,
            Act::React { message, emoji } => self.react(to, message_id(message)?, emoji).await?,
            Act::Mark { message, progress } => self.mark(to, message, *progress).await?,
            Act::Typing => self.typing(to).await?,
            // It fades.
            Act::Rest => None,
            Act::Draft(_) => {
                return Err(SendError::Rejected { reason: "Discord has no drafts".into() });
            }
        };
        Ok(self.receipt(message))
    }

    async fn find(&self, outbound: &Outbound) -> Result<Found, SendError> {
        match &outbound.act {
            Act::Post(content) => self.look(&outbound.id, &outbound.to, content).await,
            // Everything else can simply be done again.
            _ => Ok(Found::Unknown),
        }
    }
}

fn place(to: &Address) -> Result<Snowflake, SendError> {
    let text = to.thread.as_ref().map_or(to.chat.id.as_str(), |thread| thread.as_str());
    Snowflake::parse(text)
        .ok_or_else(|| SendError::Rejected { reason: "the chat has no id of Discord's".into() })
}

fn message_id(message: &MessageId) -> Result<Snowflake, SendError> {
    Snowflake::parse(message.as_str())
        .ok_or_else(|| SendError::Rejected { reason: "the message has no id of Discord's".into() })
}

/// The message that an answer names.
fn created(sent: Result<Reply, RestError>) -> Result<Option<Snowflake>, RestError> {
    match sent {
        Ok(reply) => {
            let message: api::Named = reply.json().map_err(|_| RestError::senseless())?;
            Ok(Some(message.id))
        }
        Err(error) => Err(error),
    }
}

/// Why a message was not made. A nonce that is known while its message is not: an earlier try arrived, and
/// was taken away since.
fn not_made(error: RestError) -> SendError {
    match error.code() {
        Some(code::UNKNOWN_MESSAGE) => SendError::Vanished,
        _ => error.into(),
    }
}

/// A sign that cannot be shown is not worth more than a line in the log.
fn harmless(answer: Result<Reply, RestError>) -> Posted {
    match answer {
        Ok(_) => Ok(None),
        Err(error) => match error.code() {
            Some(code::NO_PERMISSION | code::UNKNOWN_MESSAGE | code::REACTION_BLOCKED) => {
                tracing::debug!(?error, "a sign could not be shown");
                Ok(None)
            }
            _ => Err(error.into()),
        },
    }
}

/// The files in as many lots as requests are needed; one empty lot where there are none.
fn parcels(files: &[Attachment]) -> Vec<&[Attachment]> {
    let mut parcels = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, file) in files.iter().enumerate() {
        let size = file.size;
        if at > start && (at - start == encode::FILES || bytes + size > encode::REQUEST) {
            parcels.push(&files[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += size;
    }
    parcels.push(&files[start..]);
    parcels
}

fn total(files: &[FileRef]) -> u64 {
    files.iter().map(|file| file.size).sum()
}

fn with_missing(text: String, missing: &[impl AsRef<str>]) -> String {
    if missing.is_empty() {
        return text;
    }
    let names: Vec<String> =
        missing.iter().map(|name| encode::file_name(name.as_ref()).replace('_', "\\_")).collect();
    let note = format!("(not sent: {})", names.join(", "));
    let both = if text.is_empty() { note } else { format!("{text}\n{note}") };
    // A note that does not fit is not worth losing the answer for.
    if both.chars().count() <= encode::LONGEST {
        both
    } else {
        both.chars().take(encode::LONGEST).collect()
    }
}
