//! Slack's events to ours: pure, and nothing for what is of no interest.

use std::collections::HashSet;

use talaria_model::{
    AccountId, Address, Addressed, Author, Below, Chat, ChatId, ChatKind, ChoiceId, EventId,
    IdError, Inbound, InboundKind, Media, MediaKind, Message, MessageId, Owner, Quote, Sender,
    SenderId, SenderKind, Source, ThreadId, Timestamp, Unfetched,
};
use talaria_platform::MenuItem;

use super::text::{self, Names};
use super::ts::Ts;
use super::wire::{
    Attachment, File, Interaction, MessageEvent, Metadata, SessionStopped, SlashCommand,
};

/// What we write beside a post, so that it can be recognised.
pub(super) const DELIVERY: &str = "talaria_delivery";

/// The longest name or line of a file that is passed on.
const LONGEST_NAME: usize = 255;

/// Who we are in a workspace.
#[derive(Debug, Clone, Default)]
pub(super) struct Us {
    pub(super) team: String,
    pub(super) user: String,
    pub(super) bot: String,
    pub(super) app: Option<String>,
}

/// How an account wants its threads.
#[derive(Debug, Clone)]
pub(super) struct Habits {
    /// Whether an answer in a channel opens a thread below the message.
    pub(super) reply_in_thread: bool,
    /// Whether each message in a direct chat that is in no thread begins one.
    pub(super) threads_in_dms: bool,
    /// The name of our slash command, without the slash.
    pub(super) slash_command: String,
    /// What can be commanded.
    pub(super) commands: Commands,
}

/// The commands that people can give, by every name they have.
#[derive(Debug, Clone, Default)]
pub(super) struct Commands(HashSet<String>);

impl Commands {
    pub(super) fn of(menu: &[MenuItem]) -> Self {
        let names = menu.iter().flat_map(|item| item.aliases.iter().chain([&item.name]));
        Self(names.map(|name| spelled(name)).collect())
    }

    fn has(&self, typed: &str) -> bool {
        self.0.contains(&spelled(typed))
    }
}

/// A name as it is compared.
fn spelled(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

/// What is known of somebody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Person {
    pub(super) name: Option<String>,
    pub(super) team: Option<String>,
    pub(super) is_bot: bool,
}

/// What is known of a chat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) name: Option<String>,
    pub(super) topic: Option<String>,
    pub(super) kind: Option<ChatKind>,
    pub(super) is_shared: bool,
}

/// Everything that has to be known to understand an event, besides the event.
#[derive(Debug, Clone)]
pub(super) struct Scene<'a> {
    pub(super) account: &'a AccountId,
    pub(super) us: &'a Us,
    /// The workspace whose people are known by their bare ids.
    pub(super) home: &'a str,
    pub(super) habits: &'a Habits,
    pub(super) names: Names,
    pub(super) person: Person,
    pub(super) room: Room,
    /// Whether we are known to have spoken in the thread.
    pub(super) has_spoken: bool,
    /// Whether people of other workspaces are in the chat.
    pub(super) is_shared: bool,
    pub(super) now: Timestamp,
}

impl Scene<'_> {
    fn principal(&self, id: &str, team: Option<&str>) -> Result<SenderId, IdError> {
        let Self { home, us, is_shared, .. } = *self;
        principal(id, team, self.person.team.as_deref(), Origin { home, team: &us.team, is_shared })
    }
}

/// What an event is to us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// Something happened.
    Event(Box<Inbound>),
    /// A message of our own came back.
    Echo(Echo),
    /// It is of no interest.
    Nothing,
}

/// A message of our own, as the others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Echo {
    pub(super) chat: String,
    pub(super) ts: String,
    /// The delivery it carries out, where it says so.
    pub(super) delivery: Option<String>,
}

/// Why an event cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Senseless {
    #[error("it has no {0}")]
    Missing(&'static str),
    #[error("its {0} is no {0}")]
    Wrong(&'static str),
    #[error(transparent)]
    Id(#[from] IdError),
}

/// A message, a mention, or a row of a chat's history.
pub(super) fn message(event: &MessageEvent, scene: &Scene<'_>) -> Result<Heard, Senseless> {
    match event.subtype.as_deref() {
        None | Some("file_share" | "thread_broadcast" | "me_message" | "bot_message") => {
            said(event, scene)
        }
        Some("message_changed") => edited(event, scene),
        // Joins, topics, pins and everything Slack will think of: nobody speaks to us in them, even
        // where they mention us.
        Some(_) => Ok(Heard::Nothing),
    }
}

fn said(event: &MessageEvent, scene: &Scene<'_>) -> Result<Heard, Senseless> {
    let chat = event.channel.as_deref().ok_or(Senseless::Missing("channel"))?;
    let ts = event.ts.as_deref().ok_or(Senseless::Missing("ts"))?;
    if is_ours(event, scene.us) {
        let delivery = event.metadata.as_ref().and_then(delivery);
        return Ok(Heard::Echo(Echo { chat: chat.to_owned(), ts: ts.to_owned(), delivery }));
    }
    if event.hidden {
        return Ok(Heard::Nothing);
    }
    let Some(from) = sender(event, scene)? else { return Ok(Heard::Nothing) };
    let at = Ts::parse(ts).ok_or(Senseless::Wrong("ts"))?.timestamp();
    let to = address(event, chat, ts, scene)?;
    let message = spoken(event, ts, &to, scene)?;
    if message.text.is_empty()
        && message.media.is_empty()
        && message.addressed == Addressed::ToOthers
    {
        return Ok(Heard::Nothing);
    }
    Ok(Heard::Event(Box::new(Inbound {
        id: EventId::new(format!("{chat}:{ts}"))?,
        at,
        from,
        to,
        source: Source { below: below(event, ts, scene), ..source(scene) },
        kind: InboundKind::Said(message),
    })))
}

/// Slack also says `message_changed` when it shows a link or counts the answers in a thread.
fn edited(event: &MessageEvent, scene: &Scene<'_>) -> Result<Heard, Senseless> {
    let Some(now) = event.message.as_deref() else { return Ok(Heard::Nothing) };
    let before = event.previous_message.as_deref();
    let Some(mark) = now.edited.as_ref().and_then(|mark| mark.ts.as_deref()) else {
        return Ok(Heard::Nothing);
    };
    let marked_before = before.and_then(|before| before.edited.as_ref()?.ts.as_deref());
    let is_same_text = before.is_some_and(|before| before.text == now.text);
    if marked_before == Some(mark) || is_same_text {
        return Ok(Heard::Nothing);
    }
    let mut now = now.clone();
    now.channel = now.channel.or_else(|| event.channel.clone());
    now.channel_type = now.channel_type.or_else(|| event.channel_type.clone());
    now.ts = now.ts.or_else(|| before?.ts.clone());
    if !matches!(
        now.subtype.as_deref(),
        None | Some("file_share" | "thread_broadcast" | "me_message")
    ) {
        return Ok(Heard::Nothing);
    }
    let Heard::Event(mut inbound) = said(&now, scene)? else { return Ok(Heard::Nothing) };
    let InboundKind::Said(message) = inbound.kind else { return Ok(Heard::Nothing) };
    inbound.id = EventId::new(format!("{}:e:{mark}", inbound.id))?;
    inbound.at = Ts::parse(mark).map_or(inbound.at, Ts::timestamp);
    inbound.kind = InboundKind::Edited(message);
    Ok(Heard::Event(inbound))
}

/// Whether it is a message of our own.
pub(super) fn is_ours(event: &MessageEvent, us: &Us) -> bool {
    let app = event.app_id.as_deref().or_else(|| event.bot_profile.as_ref()?.app_id.as_deref());
    event.user.as_deref() == Some(us.user.as_str())
        || event.bot_id.as_deref() == Some(us.bot.as_str())
        || (app.is_some() && app == us.app.as_deref())
}

/// The delivery that a post of ours carries out.
pub(super) fn delivery(metadata: &Metadata) -> Option<String> {
    let payload = metadata.event_payload.as_ref()?;
    let id = payload.get("id")?.as_str()?;
    (metadata.event_type.as_deref() == Some(DELIVERY)).then(|| id.to_owned())
}

fn sender(event: &MessageEvent, scene: &Scene<'_>) -> Result<Option<Sender>, Senseless> {
    let is_bot = is_bot(event, &scene.person);
    let Some(id) = event.user.as_deref().or(event.bot_id.as_deref()) else { return Ok(None) };
    let profile = event.user_profile.as_ref().and_then(|profile| profile.shown());
    let bot = event.bot_profile.as_ref().and_then(|profile| profile.name.as_deref());
    let name = if is_bot { event.username.as_deref().or(bot) } else { profile };
    Ok(Some(Sender {
        id: scene.principal(id, event.user_team.as_deref())?,
        name: name.or(scene.person.name.as_deref()).map(str::to_owned),
        alt: None,
        kind: if is_bot { SenderKind::Bot } else { SenderKind::Person },
    }))
}

/// Whether a program has written something, where it is known who the writer is.
pub(super) fn is_bot(event: &MessageEvent, writer: &Person) -> bool {
    event.bot_id.is_some()
        || event.bot_profile.is_some()
        || event.subtype.as_deref() == Some("bot_message")
        || event.user.as_deref() == Some("USLACKBOT")
        || writer.is_bot
}

/// Where somebody is from as long as nobody says something else.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    /// The workspace whose people are known by their bare ids.
    pub(super) home: &'a str,
    /// The workspace in which something was said.
    pub(super) team: &'a str,
    /// Whether people of other workspaces are in the chat.
    pub(super) is_shared: bool,
}

/// Ids of people are only known to be unique within a workspace, and people of other workspaces can
/// be in our chats. So an id stands alone only for our first workspace.
pub(super) fn principal(
    id: &str,
    told: Option<&str>,
    known: Option<&str>,
    Origin { home, team, is_shared }: Origin<'_>,
) -> Result<SenderId, IdError> {
    let team = match told {
        Some(told) => told,
        // Nobody says where somebody in a shared chat comes from: no list can name them.
        None if is_shared => known.unwrap_or("unknown"),
        None => team,
    };
    if team == home { SenderId::new(id) } else { SenderId::new(format!("{team}:{id}")) }
}

fn address(
    event: &MessageEvent,
    chat: &str,
    ts: &str,
    scene: &Scene<'_>,
) -> Result<Address, IdError> {
    let kind = kind(chat, event.channel_type.as_deref(), scene);
    let begins_thread = match kind {
        ChatKind::Dm => scene.habits.threads_in_dms,
        _ => scene.habits.reply_in_thread,
    };
    let thread = event.thread_ts.as_deref().or(begins_thread.then_some(ts));
    place(chat, kind, thread, scene)
}

fn place(
    chat: &str,
    kind: ChatKind,
    thread: Option<&str>,
    scene: &Scene<'_>,
) -> Result<Address, IdError> {
    Ok(Address {
        account: scene.account.clone(),
        chat: Chat { id: ChatId::new(chat)?, kind },
        thread: thread.map(ThreadId::new).transpose()?,
    })
}

/// What a chat is that we can be heard in. Of direct chats, Slack tells us only about our own, and has
/// buttons of ours only there.
fn kind(chat: &str, channel_type: Option<&str>, scene: &Scene<'_>) -> ChatKind {
    match channel_type {
        Some("im" | "app_home") => ChatKind::Dm,
        Some(_) => ChatKind::Group,
        None if chat.starts_with('D') => ChatKind::Dm,
        None => scene.room.kind.unwrap_or(ChatKind::Group),
    }
}

fn source(scene: &Scene<'_>) -> Source {
    Source {
        chat_name: scene.room.name.clone(),
        topic: scene.room.topic.clone(),
        space: Some(scene.us.team.clone()),
        ..Source::default()
    }
}

/// Whose the thread is that something was said in. What begins one is in none yet.
fn below(event: &MessageEvent, ts: &str, scene: &Scene<'_>) -> Option<Below> {
    event.thread_ts.as_deref().filter(|thread| *thread != ts)?;
    let is_ours = event.parent_user_id.as_deref() == Some(scene.us.user.as_str());
    Some(if is_ours || scene.has_spoken { Below::Us } else { Below::Others })
}

fn spoken(
    event: &MessageEvent,
    ts: &str,
    to: &Address,
    scene: &Scene<'_>,
) -> Result<Message, Senseless> {
    let us = scene.us.user.as_str();
    let is_mentioned = event.kind == "app_mention" || text::mentions(&event.text, us);
    let is_reply = event.thread_ts.as_deref().is_some_and(|thread| thread != ts);
    let addressed = if to.chat.kind == ChatKind::Dm || is_mentioned {
        Addressed::ToUs
    } else {
        Addressed::ToOthers
    };
    let own = text::readable(text::unaddressed(&event.text, us), &scene.names);
    let mut lines = Vec::from_iter(Some(own.trim().to_owned()).filter(|own| !own.is_empty()));
    let (mut forwarded, mut cited) = (None, Vec::new());
    for shared in event.attachments.iter().filter(|one| one.is_share || one.is_msg_unfurl) {
        let author = shared
            .author_name
            .clone()
            .or_else(|| scene.names.people.get(shared.author_id.as_deref()?).cloned());
        let author = author.map_or(Author::Unknown, Author::Named);
        let text = attached(shared, &scene.names);
        if shared.is_share && lines.is_empty() && forwarded.is_none() {
            forwarded = Some(author);
            lines.extend(Some(text).filter(|text| !text.is_empty()));
        } else if !text.is_empty() {
            // Which workspace somebody is from who said something elsewhere is not told.
            cited.push(Quote::new(text, author));
        }
    }
    if lines.is_empty() {
        lines.extend(of_a_program(event, &scene.names));
    }
    let mut media = Vec::new();
    // All of what is passed on is said by whoever said it first.
    let theirs = if forwarded.is_some() { Owner::Sender } else { Owner::Shown };
    let own = event.files.iter().map(|file| (file, Owner::Sender));
    let shared = event.attachments.iter().flat_map(|attachment| &attachment.files);
    let mut unfetched = Vec::new();
    for (file, owner) in own.chain(shared.map(|file| (file, theirs))) {
        match medium(file, &scene.us.team) {
            Some(medium) => media.push(Media { owner, ..medium }),
            None => unfetched.push(Unfetched {
                kind: MediaKind::Document,
                name: called(file).map(str::to_owned),
                reason: "Slack does not keep it".into(),
            }),
        }
    }
    Ok(Message {
        id: Some(MessageId::new(ts)?),
        text: typed_command(lines.join("\n\n"), &scene.habits.commands),
        media,
        unfetched,
        addressed,
        forwarded,
        cited,
        reply_to: event
            .thread_ts
            .as_deref()
            .filter(|_| is_reply)
            .map(MessageId::new)
            .transpose()?,
        ..Message::default()
    })
}

fn attached(attachment: &Attachment, names: &Names) -> String {
    let title = attachment.title.as_deref().unwrap_or_default();
    let text = attachment.text.as_deref().or(attachment.fallback.as_deref()).unwrap_or_default();
    let both = [title, text].map(|text| text::readable(text, names).trim().to_owned());
    both.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Programs may put everything into blocks and attachments.
fn of_a_program(event: &MessageEvent, names: &Names) -> Vec<String> {
    let blocks = event.blocks.iter().flat_map(|block| {
        block.text.iter().chain(block.fields.iter().flatten()).map(|text| text.text.as_str())
    });
    let blocks = blocks.map(|text| text::readable(text, names).trim().to_owned());
    let own = event.attachments.iter().filter(|one| !one.is_share && !one.is_msg_unfurl);
    let attachments = own.map(|attachment| attached(attachment, names));
    blocks.chain(attachments).filter(|text| !text.is_empty()).collect()
}

/// Slack keeps what begins with a slash to itself, so people write `!stop` where they mean `/stop`.
fn typed_command(text: String, commands: &Commands) -> String {
    match text.strip_prefix('!') {
        Some(rest) if commands.has(first_word(rest)) => format!("/{rest}"),
        _ => text,
    }
}

fn first_word(text: &str) -> &str {
    text.split(char::is_whitespace).next().unwrap_or_default()
}

fn called(file: &File) -> Option<&str> {
    let name = file.name.as_deref().or(file.title.as_deref())?.trim();
    let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
    (!name.is_empty()).then_some(name)
}

/// A file that we can fetch.
fn medium(file: &File, team: &str) -> Option<Media> {
    let id = file.id.as_deref().filter(|id| id.chars().all(|c| c.is_ascii_alphanumeric()))?;
    let is_kept = matches!(
        file.mode.as_deref(),
        None | Some("hosted" | "snippet" | "post" | "email" | "file_access" | "docs" | "space")
    );
    if !is_kept || file.is_external || id.is_empty() {
        return None;
    }
    let mime = file.mimetype.as_deref().unwrap_or_default();
    let name = called(file);
    let is_voice = file.subtype.as_deref() == Some("slack_audio")
        || name.is_some_and(|name| name.starts_with("audio_message"));
    let kind = match mime.split_once('/') {
        _ if is_voice => MediaKind::Voice,
        Some(("image", "gif")) => MediaKind::Animation,
        Some(("image", _)) => MediaKind::Photo,
        Some(("video", _)) => MediaKind::Video,
        Some(("audio", _)) => MediaKind::Audio,
        _ => MediaKind::Document,
    };
    // Voice clips are often declared to be films without a picture.
    let mime = if is_voice && !mime.starts_with("audio/") { "audio/mp4" } else { mime };
    Some(Media {
        handle: format!("{team}/{id}"),
        kind,
        name: name.map(str::to_owned),
        mime: (!mime.is_empty()).then(|| mime.to_owned()),
        size: file.size,
        owner: Owner::default(),
    })
}

/// A slash command. Slack does not say in which thread it was given: there it cannot be given.
pub(super) fn slash(
    command: &SlashCommand,
    thread: Option<&str>,
    scene: &Scene<'_>,
) -> Result<Inbound, Senseless> {
    let chat = command.channel_id.as_str();
    // It may be given in a direct chat between two other people, which Slack names like one with us. So
    // only what is known to be ours is.
    let kind = scene.room.kind.unwrap_or(ChatKind::Group);
    let given = command.command.strip_prefix('/').ok_or(Senseless::Wrong("command"))?;
    let arguments = text::readable(command.text.trim(), &scene.names);
    let text = match given {
        own if own == scene.habits.slash_command => subcommand(&arguments, &scene.habits.commands),
        other if arguments.is_empty() => format!("/{other}"),
        other => format!("/{other} {arguments}"),
    };
    let name = command.user_name.clone();
    let from = Sender {
        name: scene.person.name.clone().or(name),
        ..Sender::new(scene.principal(&command.user_id, command.team_id.as_deref())?)
    };
    Ok(Inbound {
        id: EventId::new(format!("slash:{}", command.trigger_id))?,
        at: scene.now,
        from,
        to: place(chat, kind, thread, scene)?,
        source: source(scene),
        kind: InboundKind::Said(Message { text, ..Message::default() }),
    })
}

/// `/talaria stop` is `/stop`, `/talaria` alone asks for help, anything else is said.
fn subcommand(arguments: &str, commands: &Commands) -> String {
    let bare = arguments.trim_start_matches(['/', '!']);
    match first_word(bare) {
        "" => "/help".into(),
        name if commands.has(name) => format!("/{bare}"),
        _ => arguments.to_owned(),
    }
}

/// A press of a button of ours.
pub(super) fn press(
    interaction: &Interaction,
    scene: &Scene<'_>,
) -> Result<Option<Inbound>, Senseless> {
    let ours = interaction.actions.iter().find(|action| action.action_id.starts_with(ACTION));
    let Some(action) = ours.filter(|_| interaction.kind == "block_actions") else {
        return Ok(None);
    };
    let choice = action.value.as_deref().ok_or(Senseless::Missing("value"))?;
    let presser = interaction.user.as_ref().ok_or(Senseless::Missing("user"))?;
    let user = presser.id.as_deref().ok_or(Senseless::Missing("user"))?;
    let container = interaction.container.as_ref();
    let chat = interaction
        .channel
        .as_ref()
        .and_then(|channel| channel.id.as_deref())
        .or_else(|| container?.channel_id.as_deref())
        .ok_or(Senseless::Missing("channel"))?;
    let thread = interaction
        .message
        .as_ref()
        .and_then(|message| message.thread_ts.as_deref())
        .or_else(|| container?.thread_ts.as_deref());
    let kind = kind(chat, None, scene);
    let action_ts = action.action_ts.as_deref();
    let id = match &interaction.trigger_id {
        Some(trigger) => format!("act:{trigger}"),
        None => {
            let message = container.and_then(|container| container.message_ts.as_deref());
            let (message, ts) = (message.unwrap_or_default(), action_ts.unwrap_or_default());
            format!("act:{message}:{ts}:{}:{user}", action.action_id)
        }
    };
    let pressed_in = interaction.team.as_ref().and_then(|team| team.id.as_deref());
    let mut from = Sender::new(scene.principal(user, presser.team_id.as_deref().or(pressed_in))?);
    from.name = scene.person.name.clone().or_else(|| presser.name.clone());
    Ok(Some(Inbound {
        id: EventId::new(id)?,
        at: action_ts.and_then(Ts::parse).map_or(scene.now, Ts::timestamp),
        from,
        to: place(chat, kind, thread, scene)?,
        source: source(scene),
        kind: InboundKind::Pressed(ChoiceId::new(choice)?),
    }))
}

/// Begins the ids of our buttons.
pub(super) const ACTION: &str = "talaria:";

/// Somebody pressed Stop in Slack's own agent view.
pub(super) fn stopped(
    stopped: &SessionStopped,
    event_id: Option<&str>,
    scene: &Scene<'_>,
) -> Result<Inbound, Senseless> {
    let event_ts = stopped.event_ts.as_deref();
    let id = match event_id {
        Some(id) => id.to_owned(),
        None => format!("stop:{}:{}", stopped.channel, event_ts.ok_or(Senseless::Missing("id"))?),
    };
    let kind = kind(&stopped.channel, None, scene);
    let name = scene.person.name.clone();
    Ok(Inbound {
        id: EventId::new(id)?,
        at: event_ts.and_then(Ts::parse).map_or(scene.now, Ts::timestamp),
        from: Sender { name, ..Sender::new(scene.principal(&stopped.user, None)?) },
        to: place(&stopped.channel, kind, stopped.thread_ts.as_deref(), scene)?,
        source: source(scene),
        kind: InboundKind::Stopped,
    })
}
