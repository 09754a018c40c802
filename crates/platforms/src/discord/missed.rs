//! Catching up: what was said while nobody was connected and that Discord does not tell again.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use talaria_model::{ChatKind, Inbound, Timestamp};
use talaria_platform::{Archive, LinkError};

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

/// How many chats are looked into at once.
const AT_ONCE: usize = 4;

/// The longest wait that is taken to be worth it when Discord asks for one.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

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
        let mut chats = self.guild_chats(after);
        if chats.len() > CHATS {
            tracing::warn!(chats = chats.len(), looked_into = CHATS, "too many chats to catch up");
            chats.truncate(CHATS);
        }
        chats.extend(self.direct_chats().await.into_iter().map(|chat| (chat, None)));
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

    /// Discord does not list a bot's direct chats, so these are our own notes.
    async fn direct_chats(&self) -> Vec<Snowflake> {
        let mut direct = self.from.direct.clone();
        let talks = self.archive.conversations(2 * DIRECT).await.unwrap_or_default();
        let chats = talks.iter().map(|talk| &talk.at.chat);
        for chat in chats.filter(|chat| chat.kind == ChatKind::Dm) {
            direct.extend(Snowflake::parse(chat.id.as_str()).filter(|id| !direct.contains(id)));
        }
        direct.truncate(DIRECT);
        direct
    }

    /// What was said in one chat, oldest first.
    async fn chat(
        &self,
        channel: Snowflake,
        guild: Option<Snowflake>,
        after: Snowflake,
    ) -> Result<Vec<api::Message>, LinkError> {
        let limit = usize::from(self.lookup.settings.missed_message_backfill.limit.clamp(1, 500));
        let mut messages: Vec<api::Message> = Vec::new();
        let mut after = after;
        loop {
            let path = format!("/channels/{channel}/messages?after={after}&limit={PAGE}");
            let Some(mut page) = self.page(&path).await? else { break };
            let is_last = page.len() < PAGE;
            page.sort_by_key(|message| message.id);
            after = page.last().map_or(after, |message| message.id);
            messages.extend(page);
            if is_last {
                break;
            }
            if messages.len() >= limit {
                tracing::warn!(%channel, "more was missed than is caught up with");
                break;
            }
        }
        messages.truncate(limit);
        let kind = self.lookup.places.find(channel).map(|channel| channel.kind);
        for message in &mut messages {
            // These are told with live messages only.
            message.guild_id = guild;
            message.channel_type = kind.or(guild.is_none().then_some(kind::DM));
        }
        messages.retain(|message| concern(message, self.lookup.us) == Concern::Said);
        Ok(messages)
    }

    /// One page; none where we may not look.
    async fn page(&self, path: &str) -> Result<Option<Vec<api::Message>>, LinkError> {
        for _ in 0..3 {
            match self.lookup.rest.get(path).await {
                Ok(page) => return Ok(Some(page)),
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
