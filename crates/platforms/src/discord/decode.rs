//! What Discord tells, as events. Pure: whatever has to be asked for is an argument.

use talaria_model::{
    AccountId, Address, Addressed, Author, Bystander, Chat, ChatKind, ChoiceId, EventId, Inbound,
    InboundKind, Media, MediaKind, Message, Owner, Quote, Sender, SenderKind, Source, Timestamp,
};

use super::api;
use super::places::{Places, kind};
use super::settings::Settings;
use super::snowflake::Snowflake;
use super::text::{Names, mentions, readable};

/// Kinds of message that people write: a message and an answer to one.
const SAID: [u64; 2] = [0, 19];

/// Flags of a message.
pub(crate) mod flag {
    pub(crate) const EPHEMERAL: u64 = 1 << 6;
    pub(crate) const VOICE: u64 = 1 << 13;
}

/// How long the name of a thread may be that is made of a message.
const THREAD_NAME: usize = 80;

/// How many files of a message are fetched that somebody answers.
const QUOTED_FILES: usize = 4;

/// Who reads.
pub(crate) struct Reader<'a> {
    pub(crate) account: &'a AccountId,
    pub(crate) us: Snowflake,
    pub(crate) settings: &'a Settings,
    pub(crate) places: &'a Places,
}

/// What had to be found out about a message before it can be read.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Where it was said.
    pub(crate) place: Place,
    /// The roles of whoever said it, where they matter.
    pub(crate) roles: Vec<Snowflake>,
    /// What was said before.
    pub(crate) past: Past,
}

/// Whether the agent is told what was said before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Past {
    Told,
    #[default]
    LeftOut,
}

/// Where something was said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) channel: Snowflake,
    pub(crate) guild: Option<Snowflake>,
    pub(crate) kind: u64,
    pub(crate) name: String,
    pub(crate) topic: Option<String>,
    pub(crate) parent: Option<Snowflake>,
    /// As people read it, from the guild down.
    pub(crate) path: Option<String>,
}

impl Place {
    /// What is known of a channel; none of a channel that has to be asked for.
    pub(crate) fn known(
        places: &Places,
        channel: Snowflake,
        guild: Option<Snowflake>,
    ) -> Option<Self> {
        let Some(guild) = guild else {
            return Some(Self { channel, kind: kind::DM, ..Self::default() });
        };
        let guild_name = places.guild_name(guild)?;
        let facts = places.find(channel)?;
        let mut place = Self {
            channel,
            guild: Some(guild),
            kind: facts.kind,
            name: facts.name.clone(),
            topic: facts.topic.clone(),
            parent: None,
            path: Some(format!("{guild_name} / #{}", facts.name)),
        };
        if kind::is_thread(facts.kind) {
            place.parent = facts.parent_id;
            let parent = places.find(facts.parent_id?)?;
            let sign = if kind::is_forum(parent.kind) { "" } else { "#" };
            place.path = Some(format!("{guild_name} / {sign}{} / {}", parent.name, facts.name));
            place.topic = place.topic.or_else(|| parent.topic.clone());
        }
        Some(place)
    }

    /// What a message itself says of its place.
    pub(crate) fn told(
        channel: Snowflake,
        guild: Option<Snowflake>,
        channel_kind: Option<u64>,
    ) -> Self {
        let usual = if guild.is_some() { kind::TEXT } else { kind::DM };
        Self { channel, guild, kind: channel_kind.unwrap_or(usual), ..Self::default() }
    }

    fn address(&self, account: &AccountId) -> Address {
        let id = self.channel.chat();
        let (kind, thread) = match self.guild {
            None => (ChatKind::Dm, None),
            Some(_) if kind::is_thread(self.kind) => {
                (ChatKind::Thread, Some(self.channel.thread()))
            }
            // A kind that nobody knows yet is one in which several people are.
            Some(_) => (ChatKind::Group, None),
        };
        Address { account: account.clone(), chat: Chat { id, kind }, thread }
    }

    /// The place and what it is in, the nearest first.
    fn nested(&self) -> Vec<Snowflake> {
        [Some(self.channel), self.parent].into_iter().flatten().collect()
    }
}

/// What a message is to us before anything is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Concern {
    /// Somebody said something.
    Said,
    /// It is ours, come back to us.
    Echo,
    /// Joins, pins, what only one person sees, and what Discord itself says.
    Nothing,
}

/// What a message is to us.
pub(crate) fn concern(message: &api::Message, us: Snowflake) -> Concern {
    let Some(author) = &message.author else { return Concern::Nothing };
    // Our own answers to interactions look like a webhook's, so this comes first.
    if author.id == us {
        return Concern::Echo;
    }
    // A message that only one person sees arrives without its guild and would pass for a direct one.
    let is_hidden = message.flags & flag::EPHEMERAL != 0;
    // A direct chat is between two; a group that bots are in does not exist.
    let is_direct = message.guild_id.is_none();
    let is_strange = is_direct && message.channel_type.is_some_and(|kind| kind != kind::DM);
    if author.system || is_hidden || is_strange || !SAID.contains(&message.kind) {
        return Concern::Nothing;
    }
    Concern::Said
}

impl Reader<'_> {
    /// Whether a message is meant for us.
    pub(crate) fn addressed(&self, message: &api::Message) -> Addressed {
        if message.guild_id.is_none() {
            return Addressed::ToUs;
        }
        let is_inline = mentions(&message.content, self.us);
        let is_bot = message.author.as_ref().is_some_and(|author| author.bot)
            || message.webhook_id.is_some();
        if is_bot && self.settings.bots_require_inline_mention {
            return if is_inline { Addressed::ToUs } else { Addressed::ToOthers };
        }
        let is_listed = message.mentions.iter().any(|user| user.id == self.us);
        let role = self.places.our_role(message.guild_id);
        let is_by_role = role.is_some_and(|role| message.mention_roles.contains(&role));
        let replied = message.referenced_message.as_ref().and_then(|said| said.author.as_ref());
        let is_reply = replied.is_some_and(|author| author.id == self.us)
            && message.message_reference.as_ref().is_some_and(|reference| reference.kind == 0);
        if is_inline || is_listed || is_by_role || is_reply {
            Addressed::ToUs
        } else {
            Addressed::ToOthers
        }
    }

    /// Whether the answer to a message begins a thread.
    pub(crate) fn begins_thread(&self, message: &api::Message, place: &Place) -> bool {
        let is_channel = matches!(place.kind, kind::TEXT | kind::ANNOUNCEMENT);
        message.guild_id.is_some()
            && is_channel
            && message.message_reference.is_none()
            && self.addressed(message) == Addressed::ToUs
            && self.settings.threads_in(place.channel, &place.name)
    }

    /// A message, if there is anything in it.
    pub(crate) fn said(&self, message: &api::Message, found: Found) -> Option<Inbound> {
        let id = format!("m:{}", message.id);
        let (said, place) = self.message(message, found)?;
        self.inbound(id, message.id.at(), message, place, InboundKind::Said(said))
    }

    /// A message that was changed. Discord also tells of previews of links that it added by itself.
    pub(crate) fn edited(
        &self,
        message: &api::Message,
        found: Found,
        now: Timestamp,
    ) -> Option<Inbound> {
        let edited = message.edited_timestamp.as_ref()?;
        let id = format!("e:{}:{edited}", message.id);
        let (said, place) = self.message(message, found)?;
        self.inbound(id, now, message, place, InboundKind::Edited(said))
    }

    fn inbound(
        &self,
        id: String,
        at: Timestamp,
        message: &api::Message,
        (place, source): (Address, Source),
        kind: InboundKind,
    ) -> Option<Inbound> {
        let author = message.author.as_ref()?;
        let nick = message.member.as_ref().and_then(|member| member.nick.clone());
        let from = sender(author, nick, kind_of(author, message.webhook_id));
        Some(Inbound { id: EventId::new(id).ok()?, at, from, to: place, source, kind })
    }

    fn message(
        &self,
        message: &api::Message,
        found: Found,
    ) -> Option<(Message, (Address, Source))> {
        let Found { place, roles, past } = found;
        let names = Names {
            us: self.us,
            guild: place.guild,
            people: &message.mentions,
            places: self.places,
        };
        let mut text = readable(&message.content, &names);
        let mut media = self.media(message, &message.attachments, message.flags);
        described(&message.attachments, &mut text);
        stickers(&message.sticker_items, &mut text, &mut media);
        let mut forwarded = None;
        for snapshot in &message.message_snapshots {
            let said = &snapshot.message;
            forwarded = Some(Author::Unknown);
            let names = Names { people: &said.mentions, ..names };
            append(&mut text, &readable(&said.content, &names));
            media.extend(self.media(message, &said.attachments, said.flags));
            described(&said.attachments, &mut text);
            stickers(&said.sticker_items, &mut text, &mut media);
        }
        if let Some(poll) = &message.poll {
            append(&mut text, &describe_poll(poll));
        }
        let author = message.author.as_ref();
        let writes = author.map(|author| kind_of(author, message.webhook_id));
        // People's embeds are previews of their links; programs write in nothing else.
        if writes == Some(SenderKind::Bot) && text.is_empty() {
            message.embeds.iter().for_each(|embed| append(&mut text, &describe_embed(embed)));
        }
        let reference = message.message_reference.as_ref().filter(|reference| reference.kind == 0);
        let quoted = message.referenced_message.as_ref().filter(|_| reference.is_some());
        let quote = quoted.map(|quoted| self.quote(quoted, &place));
        // A bare mention, or a message whose content we may not read.
        if text.is_empty() && media.is_empty() && quote.is_none() {
            match past {
                Past::Told => text.push_str("(mentions you)"),
                Past::LeftOut => return None,
            }
        }

        let addressed = self.addressed(message);
        // Who answers a message with files speaks about them.
        if let Some(quoted) = quoted.filter(|_| addressed == Addressed::ToUs) {
            let about = self.media(quoted, &quoted.attachments, quoted.flags);
            media.extend(about.into_iter().take(QUOTED_FILES).map(Media::answered));
        }
        let nested = place.nested();
        let to = self.answers(message, &place, &text);
        let source = self.source(&place, message, &to, &roles);
        let said = Message {
            id: Some(message.id.message()),
            text,
            media,
            addressed,
            forwarded,
            reply_to: reference.and_then(|to| to.message_id).map(Snowflake::message),
            quote,
            surroundings: (past == Past::Told).then(|| message.channel_id.to_string()),
            channel_prompt: self.settings.prompt(&nested),
            ..Message::default()
        };
        Some((said, (to, source)))
    }

    /// Where an answer goes: into a thread of its own, or to where the message is.
    fn answers(&self, message: &api::Message, place: &Place, text: &str) -> Address {
        let is_promised = self.places.promised(message.id).is_some();
        if !(is_promised || self.begins_thread(message, place)) {
            return place.address(self.account);
        }
        self.places.promise(message.id, place.channel, thread_name(text));
        let id = message.id;
        let chat = Chat { id: id.chat(), kind: ChatKind::Thread };
        Address { account: self.account.clone(), chat, thread: Some(id.thread()) }
    }

    fn source(
        &self,
        place: &Place,
        message: &api::Message,
        to: &Address,
        roles: &[Snowflake],
    ) -> Source {
        let direct = || message.author.as_ref().map(api::User::name);
        let is_elsewhere = to.chat.id != place.channel.chat();
        let parent = if is_elsewhere { Some(place.channel) } else { place.parent };
        Source {
            chat_name: if place.guild.is_none() { direct() } else { place.path.clone() },
            topic: place.topic.clone(),
            parent: parent.map(Snowflake::chat),
            space: place.guild.map(|guild| guild.to_string()),
            roles: self.settings.vouched(place.guild, roles),
            ..Source::default()
        }
    }

    fn quote(&self, quoted: &api::Message, place: &Place) -> Quote {
        let text = self.glimpse(quoted, place.guild);
        // What somebody had passed on themselves is not theirs, and Discord does not tell whose it is.
        if !quoted.message_snapshots.is_empty() {
            return Quote::new(text, Author::Unknown);
        }
        let author = match &quoted.author {
            Some(author) if author.id == self.us => Author::Us,
            Some(author) => Author::Named(author.name()),
            None => Author::Unknown,
        };
        // Which roles they have is asked for where what surrounds the message is.
        let by = quoted.author.as_ref().map(|author| Bystander {
            kind: kind_of(author, quoted.webhook_id),
            ..Bystander::new(author.id.sender())
        });
        Quote { by, ..Quote::new(text, author) }
    }

    /// What a message says, in words only.
    pub(crate) fn glimpse(&self, message: &api::Message, guild: Option<Snowflake>) -> String {
        let names = Names { us: self.us, guild, people: &message.mentions, places: self.places };
        let mut text = readable(&message.content, &names);
        stickers(&message.sticker_items, &mut text, &mut Vec::new());
        for snapshot in &message.message_snapshots {
            append(&mut text, &readable(&snapshot.message.content, &names));
        }
        if text.is_empty() && !message.attachments.is_empty() {
            text.push_str("(attachment)");
        }
        text
    }

    fn media(
        &self,
        message: &api::Message,
        attachments: &[api::Attachment],
        flags: u64,
    ) -> Vec<Media> {
        let one = |attachment: &api::Attachment| {
            self.places.note_file(attachment.id, &attachment.url);
            let mime = attachment.content_type.clone().or_else(|| guessed(&attachment.filename));
            Media {
                handle: format!("a:{}:{}:{}", message.channel_id, message.id, attachment.id),
                kind: media_kind(mime.as_deref().unwrap_or_default(), flags),
                name: Some(attachment.filename.clone()).filter(|name| !name.is_empty()),
                mime,
                size: attachment.size,
                owner: Owner::default(),
            }
        };
        attachments.iter().map(one).collect()
    }

    /// A button that was pressed, or a command that was given through Discord's own menu.
    pub(crate) fn interaction(
        &self,
        interaction: &api::Interaction,
        found: Found,
    ) -> Option<Inbound> {
        let Found { place, roles, .. } = found;
        let member = interaction.member.as_ref();
        let user = member.and_then(|member| member.user.as_ref()).or(interaction.user.as_ref())?;
        let chosen = interaction.data.as_ref()?;
        let nested = place.nested();
        let kind = match interaction.kind {
            COMMAND => InboundKind::Said(Message {
                text: typed(chosen)?,
                channel_prompt: self.settings.prompt(&nested),
                ..Message::default()
            }),
            PRESS => {
                let message = interaction.message.as_ref()?;
                // Somebody else's button would speak in our name.
                message.author.as_ref().filter(|author| author.id == self.us)?;
                let choice = chosen.values.first().or(chosen.custom_id.as_ref())?;
                InboundKind::Pressed(ChoiceId::new(choice.clone()).ok()?)
            }
            _ => return None,
        };
        let direct = place.guild.is_none().then(|| user.name());
        let source = Source {
            chat_name: direct.or_else(|| place.path.clone()),
            topic: place.topic.clone(),
            parent: place.parent.map(Snowflake::chat),
            space: place.guild.map(|guild| guild.to_string()),
            roles: self.settings.vouched(place.guild, &roles),
            ..Source::default()
        };
        Some(Inbound {
            id: EventId::new(format!("i:{}", interaction.id)).ok()?,
            at: interaction.id.at(),
            from: sender(user, member.and_then(|member| member.nick.clone()), kind_of(user, None)),
            to: place.address(self.account),
            source,
            kind,
        })
    }
}

/// Kinds of interaction.
pub(crate) const COMMAND: u64 = 2;
pub(crate) const PRESS: u64 = 3;

/// What somebody is. A webhook may call itself like a person.
pub(crate) fn kind_of(user: &api::User, webhook: Option<Snowflake>) -> SenderKind {
    if user.bot || webhook.is_some() { SenderKind::Bot } else { SenderKind::Person }
}

fn sender(user: &api::User, nick: Option<String>, kind: SenderKind) -> Sender {
    Sender {
        id: user.id.sender(),
        name: Some(nick.unwrap_or_else(|| user.name())).filter(|name| !name.is_empty()),
        alt: None,
        kind,
    }
}

/// A command as somebody would have typed it.
fn typed(chosen: &api::Chosen) -> Option<String> {
    fn say(options: &[api::CommandOption], words: &mut String) {
        for option in options {
            let word = match &option.value {
                Some(serde_json::Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                // A command below the command.
                None => option.name.clone(),
            };
            words.push(' ');
            words.push_str(word.trim());
            say(&option.options, words);
        }
    }
    let mut words = format!("/{}", chosen.name.as_ref().filter(|name| !name.is_empty())?);
    say(&chosen.options, &mut words);
    Some(words)
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// What people wrote about their files, for those who cannot see them.
fn described(attachments: &[api::Attachment], text: &mut String) {
    for attachment in attachments {
        if let Some(words) = attachment.description.as_ref().filter(|words| !words.is_empty()) {
            append(text, &format!("[{}: {words}]", attachment.filename));
        }
    }
}

fn stickers(stickers: &[api::Sticker], text: &mut String, media: &mut Vec<Media>) {
    for sticker in stickers {
        append(text, &format!("[sticker: {}]", sticker.name));
        let mime = match sticker.format_type {
            1 | 2 => "image/png",
            4 => "image/gif",
            // The third kind is a program that draws, not a picture.
            _ => continue,
        };
        media.push(Media {
            handle: format!("s:{}:{}", sticker.id, sticker.format_type),
            kind: MediaKind::Sticker,
            name: Some(sticker.name.clone()),
            mime: Some(mime.into()),
            size: None,
            owner: Owner::default(),
        });
    }
}

fn describe_poll(poll: &api::Poll) -> String {
    let answers: Vec<&str> = poll.answers.iter().map(|it| it.poll_media.text.as_str()).collect();
    format!("[poll: {} ({})]", poll.question.text, answers.join(" / "))
}

fn describe_embed(embed: &api::Embed) -> String {
    let parts = [&embed.title, &embed.description, &embed.url];
    let parts: Vec<&str> = parts.into_iter().filter_map(Option::as_deref).collect();
    parts.join("\n")
}

fn guessed(filename: &str) -> Option<String> {
    mime_guess::from_path(filename).first_raw().map(str::to_owned)
}

fn media_kind(mime: &str, flags: u64) -> MediaKind {
    match mime.split('/').next() {
        Some("audio") if flags & flag::VOICE != 0 => MediaKind::Voice,
        _ if mime == "image/gif" => MediaKind::Animation,
        Some("image") => MediaKind::Photo,
        Some("video") => MediaKind::Video,
        Some("audio") => MediaKind::Audio,
        _ => MediaKind::Document,
    }
}

/// What a thread is called that begins with this text.
pub(crate) fn thread_name(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let visible: String = words.chars().filter(|c| !c.is_control()).collect();
    if visible.is_empty() {
        return "Conversation".into();
    }
    if visible.chars().count() <= THREAD_NAME {
        return visible;
    }
    let cut: String = visible.chars().take(THREAD_NAME - 1).collect();
    format!("{}…", cut.trim_end())
}
