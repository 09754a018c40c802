//! Catching up: what was said while nobody was connected and that Discord does not tell again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use serde::de::DeserializeOwned;
use talaria_model::{Addressed, ChatKind, Inbound, Timestamp};
use talaria_platform::{Archive, Conversation, LinkError};

use super::api;
use super::decode::{Concern, Past, concern};
use super::lookup::{Lookup, PAGE};
use super::places::kind;
use super::position::Position;
use super::refusal::RestError;
use super::snowflake::Snowflake;

/// How long the description of all guilds may take.
const GUILDS: Duration = Duration::from_secs(15);

/// Messages of different channels can overtake each other by this much.
const OVERTAKING: Duration = Duration::from_secs(60);

/// The most chats that are looked into.
const CHATS: usize = 500;

/// The most direct chats among them, each of which costs a request.
const DIRECT: usize = 200;

/// The most threads among them of which Discord says nothing by itself, each of which costs a request.
const THREADS: usize = 100;

/// How many of our own conversations are looked through for such chats.
const TALKS: usize = 2 * (DIRECT + THREADS);

/// The most pages of one chat that are read from where we were. Behind them only the newest page is.
const PAGES: usize = 10;

/// How many chats are looked into at once.
const AT_ONCE: usize = 4;

/// The longest wait that is taken to be worth it when Discord asks for one.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What of a chat has not been read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Unread,
    None,
}

/// Catches up from a position.
pub(crate) struct Missed {
    pub(crate) lookup: Arc<Lookup>,
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) from: Position,
}

impl Missed {
    /// What was missed, in order. An error means that it cannot be told at the moment, and that nothing
    /// may be taken for heard.
    pub(crate) async fn fetch(self) -> Result<Vec<Inbound>, LinkError> {
        let settings = &self.lookup.settings.missed_message_backfill;
        let clock = &self.lookup.clock;
        let window = Duration::from_secs(settings.window_seconds.max(60));
        let back = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        let now = clock.now().as_millis();
        let oldest = now.saturating_sub(i64::try_from(back).unwrap_or(i64::MAX));
        let seen = self.from.seen.at().as_millis();
        let margin = i64::try_from(OVERTAKING.as_millis()).unwrap_or(i64::MAX);
        let since = seen.saturating_sub(margin).max(oldest);
        let after = Snowflake::of(Timestamp::from_millis(since));

        tokio::select! {
            () = self.lookup.places.complete() => {}
            () = clock.sleep(GUILDS) => tracing::warn!("not every guild was described in time"),
        }
        let mut chats = first(self.guild_chats(after), CHATS, "chats");
        // An archive that does not answer leaves us with what the position names.
        let talks = self.archive.conversations(TALKS).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "archived threads and some direct chats are not caught up");
            Vec::new()
        });
        chats.extend(self.archived_threads(&talks, after).await?);
        chats.extend(self.direct_chats(&talks).into_iter().map(|chat| (chat, None)));
        let this = &self;
        let asked = stream::iter(chats)
            .map(|(channel, guild)| this.chat(channel, guild, after))
            .buffered(AT_ONCE);
        let mut messages = asked.try_concat().await?;
        messages.sort_by_key(|message| message.id);
        let mut missed = Vec::with_capacity(messages.len());
        for message in &messages {
            missed.extend(self.lookup.said(message, Past::LeftOut).await);
        }
        tracing::info!(messages = missed.len(), "caught up after a lost session");
        Ok(missed)
    }

    /// The channels and threads in which something was said since, the most recent first.
    fn guild_chats(&self, after: Snowflake) -> Vec<(Snowflake, Option<Snowflake>)> {
        let mut chats = self.lookup.places.written();
        chats.retain(|channel| channel.last_message_id.is_some_and(|last| last > after));
        chats.sort_by_key(|channel| std::cmp::Reverse(channel.last_message_id));
        chats.iter().map(|channel| (channel.id, channel.guild_id)).collect()
    }

    /// Our threads that are archived and in which something was said since.
    ///
    /// Discord describes active threads with their guild, and to say something in an archived one makes it
    /// active (<https://docs.discord.com/developers/topics/threads>). But it is archived again after as
    /// little as an hour without a word, which an absence may well outlast. So those in which we have talked
    /// are asked for by our own notes; nobody lists the others.
    async fn archived_threads(
        &self,
        talks: &[Conversation],
        after: Snowflake,
    ) -> Result<Vec<(Snowflake, Option<Snowflake>)>, LinkError> {
        let chats = talks.iter().map(|talk| &talk.at.chat);
        let threads = chats.filter(|chat| chat.kind == ChatKind::Thread);
        let mut unknown: Vec<Snowflake> = Vec::new();
        for thread in threads.filter_map(|chat| Snowflake::parse(chat.id.as_str())) {
            if self.lookup.places.find(thread).is_none() && !unknown.contains(&thread) {
                unknown.push(thread);
            }
        }
        let asked =
            stream::iter(first(unknown, THREADS, "archived threads"))
                .map(|thread| async move {
                    self.ask::<api::Channel>(&format!("/channels/{thread}")).await
                })
                .buffered(AT_ONCE);
        let described: Vec<Option<api::Channel>> = asked.try_collect().await?;
        let is_news = |thread: &api::Channel| thread.last_message_id.is_some_and(|it| it > after);
        let spoken = described.into_iter().flatten().filter(is_news);
        let known = spoken.map(|thread| self.lookup.places.channel(thread));
        Ok(known.map(|thread| (thread.id, thread.guild_id)).collect())
    }

    /// Discord does not list a bot's direct chats, so these are our own notes.
    fn direct_chats(&self, talks: &[Conversation]) -> Vec<Snowflake> {
        let mut direct = self.from.direct.clone();
        let chats = talks.iter().map(|talk| &talk.at.chat);
        for chat in chats.filter(|chat| chat.kind == ChatKind::Dm) {
            direct.extend(Snowflake::parse(chat.id.as_str()).filter(|id| !direct.contains(id)));
        }
        first(direct, DIRECT, "direct chats")
    }

    /// What was said in one chat, oldest first. Of more than the limit, what was not said to us goes first,
    /// then the oldest: whoever waits for an answer has asked last.
    async fn chat(
        &self,
        channel: Snowflake,
        guild: Option<Snowflake>,
        after: Snowflake,
    ) -> Result<Vec<api::Message>, LinkError> {
        let limit = usize::from(self.lookup.settings.missed_message_backfill.limit.clamp(1, 500));
        let kind = self.lookup.places.find(channel).map(|channel| channel.kind);
        let kind = kind.or(guild.is_none().then_some(kind::DM));
        let mut said = BTreeMap::new();
        let mut keep = |page: Vec<api::Message>| {
            for mut message in page {
                // These are told with live messages only.
                message.guild_id = guild;
                message.channel_type = kind;
                if message.id > after && concern(&message, self.lookup.us) == Concern::Said {
                    said.insert(message.id, message);
                }
            }
        };
        let mut read = after;
        let mut rest = Rest::Unread;
        for _ in 0..PAGES {
            let path = format!("/channels/{channel}/messages?after={read}&limit={PAGE}");
            let page = self.ask::<Vec<api::Message>>(&path).await?.unwrap_or_default();
            read = page.iter().map(|message| message.id).max().unwrap_or(read);
            let is_last = page.len() < PAGE;
            keep(page);
            if is_last {
                rest = Rest::None;
                break;
            }
        }
        if rest == Rest::Unread {
            let path = format!("/channels/{channel}/messages?limit={PAGE}");
            keep(self.ask::<Vec<api::Message>>(&path).await?.unwrap_or_default());
            let looked_at = (PAGES + 1) * PAGE;
            tracing::warn!(
                %channel,
                looked_at,
                "more was said than is looked at: what lies before the newest {PAGE} is not heard"
            );
        }
        let mut said: Vec<api::Message> = said.into_values().collect();
        let dropped = self.drop_beyond(limit, &mut said);
        if dropped > 0 {
            tracing::warn!(%channel, dropped, kept = limit, "more was missed than is caught up with");
        }
        Ok(said)
    }

    /// Leaves so many, and says how many went.
    fn drop_beyond(&self, limit: usize, said: &mut Vec<api::Message>) -> usize {
        let reader = self.lookup.reader();
        let surplus = said.len().saturating_sub(limit);
        let mut left = surplus;
        said.retain(|message| {
            let goes = left > 0 && reader.addressed(message) == Addressed::ToOthers;
            left -= usize::from(goes);
            !goes
        });
        said.drain(..left);
        surplus
    }

    /// What Discord answers; nothing where we may not look.
    async fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, LinkError> {
        for _ in 0..3 {
            match self.lookup.rest.get(path).await {
                Ok(answer) => return Ok(Some(answer)),
                Err(RestError::Refused(refusal)) if refusal.status == 401 => {
                    return Err(LinkError::Unauthorized { reason: refusal.message });
                }
                Err(RestError::Refused(_)) => return Ok(None),
                Err(RestError::Throttled { after, .. }) if after <= LONGEST_WAIT => {
                    self.lookup.clock.sleep(after).await;
                }
                Err(RestError::Throttled { .. }) => break,
                Err(RestError::Call(error)) => return Err(error.into()),
            }
        }
        Err(LinkError::Lost { reason: "what was missed cannot be asked for at the moment".into() })
    }
}

/// The first of them. The log says when that leaves some out.
fn first<T>(mut all: Vec<T>, most: usize, what: &'static str) -> Vec<T> {
    if all.len() > most {
        tracing::warn!(what, found = all.len(), looked_into = most, "too many to catch up");
        all.truncate(most);
    }
    all
}
