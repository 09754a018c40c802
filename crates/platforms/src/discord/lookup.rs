//! What has to be asked for before a message can be read: where it was said, and who says it. All of it
//! has a deadline; what does not come in time is left out. What was said before is asked for afterwards,
//! once the message is let in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use talaria_clock::Clock;
use talaria_model::{
    AccountId, Addressed, Bystander, Inbound, InboundKind, Message, Overheard, Quote, SenderKind,
    Timestamp,
};

use super::api;
use super::decode::{Found, Past, Place, Reader, kind_of};
use super::places::{Places, kind};
use super::refusal::RestError;
use super::rest::Rest;
use super::settings::Settings;
use super::snowflake::Snowflake;
use crate::wire::recent::Recent;

/// How long everything about one message may take. A button that is pressed meanwhile has to be answered
/// within three seconds.
const DEADLINE: Duration = Duration::from_secs(2);

/// The same for whoever has pressed or chosen something, which Discord wants to be answered in three seconds.
const HURRY: Duration = Duration::from_secs(1);

/// How long somebody's roles are believed.
const BELIEVED: Duration = Duration::from_secs(60);

/// Whose roles are remembered.
const MEMBERS: usize = 1024;

/// Whose roles are asked for when what was said before is read. Of the others none is known, so that only a list
/// or a pairing lets their words pass.
const AUTHORS: usize = 16;

/// The most messages that Discord hands out at once.
pub(crate) const PAGE: usize = 100;

/// Asks for what is missing.
pub(crate) struct Lookup {
    pub(crate) rest: Arc<Rest>,
    pub(crate) places: Arc<Places>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) account: AccountId,
    pub(crate) us: Snowflake,
    pub(crate) clock: Arc<dyn Clock>,
    members: Mutex<Recent<Member, Roles>>,
}

/// Somebody in a guild.
type Member = (Snowflake, Snowflake);

/// What roles somebody had, and when.
type Roles = (Timestamp, Vec<Snowflake>);

impl Lookup {
    pub(crate) fn new(
        rest: Arc<Rest>,
        places: Arc<Places>,
        settings: Arc<Settings>,
        account: AccountId,
        us: Snowflake,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let members = Mutex::new(Recent::keeping(MEMBERS));
        Self { rest, places, settings, account, us, clock, members }
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader {
            account: &self.account,
            us: self.us,
            settings: &self.settings,
            places: &self.places,
        }
    }

    /// A message as an event.
    pub(crate) async fn said(&self, message: &api::Message, past: Past) -> Option<Inbound> {
        let found = self.about(message, past).await;
        self.reader().said(message, found)
    }

    /// A changed message as an event.
    pub(crate) async fn edited(&self, message: &api::Message) -> Option<Inbound> {
        let found = self.about(message, Past::LeftOut).await;
        self.reader().edited(message, found, self.clock.now())
    }

    /// A button or a command as an event.
    pub(crate) async fn interaction(&self, interaction: &api::Interaction) -> Option<Inbound> {
        let channel = interaction.channel_id?;
        let guild = interaction.guild_id;
        let told = interaction.channel.as_ref().map(|channel| channel.kind);
        // There is no time to ask where it is: Discord gives us three seconds in all.
        let place = Place::known(&self.places, channel, guild).unwrap_or_else(|| Place {
            parent: interaction
                .channel
                .as_ref()
                .filter(|channel| kind::is_thread(channel.kind))
                .and_then(|channel| channel.parent_id),
            ..Place::told(channel, guild, told)
        });
        let roles = match (&interaction.member, &interaction.user) {
            (Some(member), _) => member.roles.clone(),
            // Whoever has said something lately is known.
            (None, Some(user)) => {
                self.within(HURRY, self.roles_in(guild, user.id)).await.unwrap_or_default()
            }
            (None, None) => Vec::new(),
        };
        let found = Found { place, roles, past: Past::LeftOut };
        self.reader().interaction(interaction, found)
    }

    async fn about(&self, message: &api::Message, past: Past) -> Found {
        let place = self.place(message.channel_id, message.guild_id);
        let place = self.within(DEADLINE, place).await.flatten().unwrap_or_else(|| {
            Place::told(message.channel_id, message.guild_id, message.channel_type)
        });
        let reader = self.reader();
        let wants_past = past == Past::Told
            && self.settings.history_backfill
            && message.guild_id.is_some()
            && reader.addressed(message) == Addressed::ToUs
            && !reader.begins_thread(message, &place);
        let past = if wants_past { Past::Told } else { Past::LeftOut };
        let roles = self.within(DEADLINE, self.roles(message)).await.unwrap_or_default();
        Found { place, roles, past }
    }

    async fn within<T>(&self, limit: Duration, wanted: impl Future<Output = T>) -> Option<T> {
        let wanted = std::pin::pin!(wanted);
        tokio::select! {
            biased;
            found = wanted => Some(found),
            () = self.clock.sleep(limit) => None,
        }
    }

    async fn place(&self, channel: Snowflake, guild: Option<Snowflake>) -> Option<Place> {
        let known = Place::known(&self.places, channel, guild);
        let (Some(guild), None) = (guild, &known) else { return known };
        let _turn = self.rest.lookups.acquire().await.ok()?;
        if !self.places.knows_guild(guild) {
            let facts: api::Guild = self.rest.get(&format!("/guilds/{guild}")).await.ok()?;
            self.places.guild(facts, self.us);
        }
        let facts = self.channel(channel).await.ok()?;
        if kind::is_thread(facts.kind)
            && let Some(parent) = facts.parent_id
        {
            self.channel(parent).await.ok()?;
        }
        Place::known(&self.places, channel, Some(guild))
    }

    /// A channel, from memory or from Discord.
    pub(crate) async fn channel(&self, id: Snowflake) -> Result<Arc<api::Channel>, RestError> {
        if let Some(known) = self.places.find(id) {
            return Ok(known);
        }
        let channel: api::Channel = self.rest.get(&format!("/channels/{id}")).await?;
        Ok(self.places.channel(channel))
    }

    /// What was said in the channel of a message since we last said something, oldest first.
    pub(crate) async fn overheard(&self, before: &Inbound) -> Result<Vec<Overheard>, RestError> {
        let InboundKind::Said(Message { id: Some(id), surroundings: Some(channel), .. }) =
            &before.kind
        else {
            return Ok(Vec::new());
        };
        let guild = before.source.space.as_deref().and_then(Snowflake::parse);
        let limit = usize::from(self.settings.history_backfill_limit).clamp(1, PAGE);
        let path = format!("/channels/{channel}/messages?before={id}&limit={limit}");
        // The newest comes first.
        let messages = self.rest.get::<Vec<api::Message>>(&path).await?;
        let reader = self.reader();
        let is_ours = |message: &api::Message| {
            message.author.as_ref().is_some_and(|author| author.id == self.us)
        };
        let since = messages.iter().take_while(|message| !is_ours(message));
        let since: Vec<_> = since.filter(|message| matches!(message.kind, 0 | 19)).collect();
        let roles = self.roles_of_authors(&since, guild).await;
        let said = since.into_iter().filter_map(|message| {
            let author = message.author.as_ref()?;
            let kind = kind_of(author, message.webhook_id);
            let sign = match kind {
                SenderKind::Bot => " [bot]",
                _ => "",
            };
            let text = reader.glimpse(message, guild);
            let name = format!("{}{sign}", author.name());
            // A webhook has the id that it likes.
            let theirs = roles.get(&author.id).filter(|_| message.webhook_id.is_none());
            let roles = theirs.map_or_else(Vec::new, |it| self.settings.vouched(guild, it));
            // What somebody passed on is not theirs, and Discord does not tell whose it is.
            let is_theirs = message.message_snapshots.is_empty();
            let by = is_theirs.then(|| Bystander { id: author.id.sender(), kind, roles });
            (!text.is_empty()).then_some(Overheard { by, ..Overheard::new(name, text) })
        });
        let mut overheard: Vec<Overheard> = said.collect();
        overheard.reverse();
        Ok(overheard)
    }

    /// What a message answers, with the roles of whoever said that.
    pub(crate) async fn quoted(&self, inbound: &Inbound) -> Option<Quote> {
        let (InboundKind::Said(message) | InboundKind::Edited(message)) = &inbound.kind else {
            return None;
        };
        let mut quote = message.quote.clone()?;
        let by = quote.by.as_mut().filter(|by| by.kind == SenderKind::Person)?;
        let guild = inbound.source.space.as_deref().and_then(Snowflake::parse);
        let roles = self.roles_in(guild, Snowflake::parse(by.id.as_str())?).await;
        by.roles = self.settings.vouched(guild, &roles);
        Some(quote)
    }

    /// The roles of the newest authors that may let them in.
    async fn roles_of_authors(
        &self,
        messages: &[&api::Message],
        guild: Option<Snowflake>,
    ) -> BTreeMap<Snowflake, Vec<Snowflake>> {
        let mut authors: Vec<Snowflake> = Vec::new();
        let told = messages.iter().filter(|message| message.webhook_id.is_none());
        for author in told.filter_map(|message| message.author.as_ref()) {
            if !authors.contains(&author.id) && authors.len() < AUTHORS {
                authors.push(author.id);
            }
        }
        let asked = authors
            .into_iter()
            .map(|author| async move { (author, self.roles_in(guild, author).await) });
        join_all(asked).await.into_iter().collect()
    }

    /// The roles that may let somebody in.
    async fn roles(&self, message: &api::Message) -> Vec<Snowflake> {
        if message.webhook_id.is_some() {
            return Vec::new();
        }
        if let Some(member) = &message.member {
            return member.roles.clone();
        }
        match &message.author {
            Some(author) => self.roles_in(message.guild_id, author.id).await,
            None => Vec::new(),
        }
    }

    /// Somebody's roles in a guild, or in the one that counts in direct chats.
    async fn roles_in(&self, guild: Option<Snowflake>, user: Snowflake) -> Vec<Snowflake> {
        match guild.or_else(|| self.settings.direct_guild()) {
            Some(guild) if !self.settings.allowed_roles.is_empty() => {
                self.member_roles(guild, user).await
            }
            Some(_) | None => Vec::new(),
        }
    }

    async fn member_roles(&self, guild: Snowflake, user: Snowflake) -> Vec<Snowflake> {
        let now = self.clock.now();
        let known = {
            let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
            members.get(&(guild, user)).cloned()
        };
        if let Some((asked, roles)) = known
            && now.since(asked) < BELIEVED
        {
            return roles;
        }
        let Ok(_turn) = self.rest.lookups.acquire().await else { return Vec::new() };
        let path = format!("/guilds/{guild}/members/{user}");
        let roles = match self.rest.get::<api::Member>(&path).await {
            Ok(member) => member.roles,
            Err(RestError::Refused(_)) => Vec::new(),
            // Not known is not the same as none; the next message asks again.
            Err(_) => return Vec::new(),
        };
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.insert((guild, user), (now, roles.clone()));
        roles
    }
}
