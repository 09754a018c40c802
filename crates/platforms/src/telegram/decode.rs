//! Updates in: what happened, who caused it and where, as far as it is anything for a session.

use serde_json::value::RawValue;
use talaria_model::{
    AccountId, Address, Addressed, Author, Bystander, Chat, ChatId, ChatKind, ChoiceId, EventId,
    IdError, Inbound, InboundKind, Media, Message, MessageId, Quote, Sender, SenderId, SenderKind,
    Source, ThreadId, Timestamp,
};

use super::api;
use super::contents;
use super::words::{self, Command, Names};

/// The longest text of a message that is quoted.
const LONGEST_QUOTE: usize = 4096;

/// Who we are on this account.
#[derive(Debug, Clone)]
pub(super) struct Us {
    pub(super) account: AccountId,
    pub(super) names: Names,
    /// Whether Telegram hands us what is said in groups to nobody in particular.
    pub(super) hears_all: bool,
    /// Whether naming another bot means that one only.
    pub(super) other_bots: OtherBots,
}

/// What becomes of a message in a group that names another bot and not us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OtherBots {
    /// It is theirs, whatever else speaks for us.
    GoFirst,
    /// It is as if a person were named.
    AreOthers,
}

/// What can be made of an update.
#[derive(Debug)]
pub(super) enum Decoded {
    /// Something for a session.
    Event(Box<Event>),
    /// Nothing for a session. A button that was pressed for it is to be answered all the same.
    Nothing {
        /// The press.
        press: Option<String>,
    },
    /// It is not what an update looks like.
    Senseless(&'static str),
}

/// Something for a session.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) inbound: Inbound,
    /// What the messages of an album have in common.
    pub(super) album: Option<String>,
    /// The press that has to be answered.
    pub(super) press: Option<String>,
}

/// What an update says about chats, whoever hears it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// A topic and its name: chat, thread, name.
    pub(super) topic: Option<(i64, i64, String)>,
    /// Whether that name is the topic's first one, which it may have lost since.
    pub(super) is_first_name: bool,
    /// A group that has another id by now: the old one, the new one.
    pub(super) moved: Option<(i64, i64)>,
}

/// The number of an update.
pub(super) fn number(update: &RawValue) -> Option<i64> {
    let numbered: api::Numbered = serde_json::from_str(update.get()).ok()?;
    Some(numbered.update_id)
}

/// Reads an update with its number.
pub(super) fn decode(number: i64, update: &RawValue, us: &Us, now: Timestamp) -> (Decoded, News) {
    let Ok(update) = serde_json::from_str::<api::Update>(update.get()) else {
        let reason = "a field is missing or of the wrong type";
        return (Decoded::Senseless(reason), News::default());
    };
    let said = [&update.message, &update.channel_post, &update.edited_message];
    let news = said.into_iter().flatten().next().map(news_of).unwrap_or_default();
    let id = EventId::new(format!("{}:{number}", us.names.id)).map_err(|_| Odd::Senseless("id"));
    let decoded = id.and_then(|id| event(id, update, us, now));
    let decoded = match decoded {
        Ok(event) => Decoded::Event(Box::new(event)),
        Err(Odd::Nothing(press)) => Decoded::Nothing { press },
        Err(Odd::Senseless(reason)) => Decoded::Senseless(reason),
    };
    (decoded, news)
}

/// Why there is no event.
enum Odd {
    Nothing(Option<String>),
    Senseless(&'static str),
}

impl From<IdError> for Odd {
    fn from(_: IdError) -> Self {
        Self::Senseless("an id is none")
    }
}

const NOTHING: Odd = Odd::Nothing(None);

fn event(id: EventId, update: api::Update, us: &Us, now: Timestamp) -> Result<Event, Odd> {
    if let Some(message) = update.message.or(update.channel_post) {
        let inbound = said(id, &message, us, InboundKind::Said)?;
        return Ok(Event { inbound, album: message.media_group_id, press: None });
    }
    if let Some(message) = update.edited_message {
        let inbound = said(id, &message, us, InboundKind::Edited)?;
        return Ok(Event { inbound, album: None, press: None });
    }
    if let Some(query) = update.callback_query {
        return pressed(id, query, us, now);
    }
    if let Some(stopped) = update.stopped_message_generation {
        let chat = &stopped.chat;
        if chat.kind != "private" {
            return Err(NOTHING);
        }
        let thread = stopped.message_thread_id.map(thread_id).transpose()?;
        // Drafts exist only between two, and the chat has the id of the other.
        let from = sender(chat.id, chat.name())?;
        let inbound = Inbound {
            id,
            at: now,
            from,
            to: Address { account: us.account.clone(), chat: chat_of(chat)?, thread },
            source: source(chat),
            kind: InboundKind::Stopped,
        };
        return Ok(Event { inbound, album: None, press: None });
    }
    Err(NOTHING)
}

fn said(
    id: EventId,
    message: &api::Message,
    us: &Us,
    kind: fn(Message) -> InboundKind,
) -> Result<Inbound, Odd> {
    let is_ours = |user: &api::User| us.names.is(user);
    if message.sender_chat.is_none() && message.from.as_ref().is_some_and(is_ours) {
        return Err(NOTHING);
    }
    let words = match (&message.text, &message.caption) {
        (Some(text), _) => Some(words::read(text, &message.entities, &us.names)),
        (None, Some(caption)) => Some(words::read(caption, &message.caption_entities, &us.names)),
        (None, None) => None,
    };
    let media = contents::media(message);
    let described = if words.is_none() { contents::said(message) } else { None };
    if words.is_none() && media.is_none() && described.is_none() {
        return Err(NOTHING);
    }
    let mut words = words.unwrap_or_default();
    // Who passes a command on does not give it.
    if message.forward_origin.is_some() {
        words.command = Command::No;
    }
    if words.command == Command::AnotherBots {
        return Err(NOTHING);
    }
    let answered = answered(message);
    let answers_us = answered.and_then(|answered| answered.from.as_ref()).is_some_and(is_ours);
    let is_private = message.chat.kind == "private";
    let is_command =
        words.command == Command::Ours || (words.command == Command::Anybodys && !us.hears_all);
    let is_anothers =
        us.other_bots == OtherBots::GoFirst && words.names_another_bot && !words.names_us;
    let addressed = match is_private {
        true => Addressed::ToUs,
        false if is_anothers => Addressed::ToAnotherBot,
        false if words.names_us || answers_us || is_command => Addressed::ToUs,
        false => Addressed::ToOthers,
    };
    // Who answers a picture speaks about it. In an album each part would bring it along.
    let about = answered
        .filter(|_| addressed == Addressed::ToUs && message.media_group_id.is_none())
        .and_then(contents::media)
        .map(Media::answered);
    let text = match described {
        Some(described) => described,
        None => words.text,
    };
    let at = message.edit_date.unwrap_or(message.date);
    let spoken = Message {
        id: Some(MessageId::new(message.message_id.to_string())?),
        text,
        media: media.into_iter().chain(about).collect(),
        album: message.media_group_id.clone(),
        addressed,
        forwarded: message.forward_origin.as_ref().map(|origin| author(origin, us)),
        reply_to: answered
            .map(|answered| MessageId::new(answered.message_id.to_string()))
            .transpose()?,
        quote: quote(message, answered, us),
        ..Message::default()
    };
    Ok(Inbound {
        id,
        at: Timestamp::from_millis(at.saturating_mul(1000)),
        from: speaker(message)?,
        to: Address {
            account: us.account.clone(),
            chat: chat_of(&message.chat)?,
            thread: thread(message)?,
        },
        source: source(&message.chat),
        kind: kind(spoken),
    })
}

fn pressed(id: EventId, query: api::CallbackQuery, us: &Us, now: Timestamp) -> Result<Event, Odd> {
    let press = Some(query.id);
    let Some((message, data)) = query.message.zip(query.data) else {
        return Err(Odd::Nothing(press));
    };
    let Ok(choice) = ChoiceId::new(data) else { return Err(Odd::Nothing(press)) };
    let from = person(&query.from)?;
    let inbound = Inbound {
        id,
        at: now,
        from,
        to: Address {
            account: us.account.clone(),
            chat: chat_of(&message.chat)?,
            thread: thread(&message)?,
        },
        source: source(&message.chat),
        kind: InboundKind::Pressed(choice),
    };
    Ok(Event { inbound, album: None, press })
}

/// Who said it. A message in the name of a chat also has an author, who is the same for everybody and
/// stands for nobody.
fn speaker(message: &api::Message) -> Result<Sender, Odd> {
    if let Some(chat) = &message.sender_chat {
        return speaking_chat(chat);
    }
    match &message.from {
        Some(user) => person(user),
        None if message.chat.kind == "channel" => speaking_chat(&message.chat),
        None => Err(Odd::Senseless("nobody said it")),
    }
}

fn speaking_chat(chat: &api::Chat) -> Result<Sender, Odd> {
    Ok(Sender { kind: SenderKind::Chat, ..sender(chat.id, chat.name())? })
}

fn person(user: &api::User) -> Result<Sender, Odd> {
    let kind = if user.is_bot { SenderKind::Bot } else { SenderKind::Person };
    let name = user.name();
    Ok(Sender { kind, ..sender(user.id, (!name.is_empty()).then_some(name))? })
}

fn sender(id: i64, name: Option<String>) -> Result<Sender, Odd> {
    Ok(Sender { name, ..Sender::new(SenderId::new(id.to_string())?) })
}

fn chat_of(chat: &api::Chat) -> Result<Chat, Odd> {
    let kind = match chat.kind.as_str() {
        "private" => ChatKind::Dm,
        "group" => ChatKind::Group,
        "supergroup" if chat.is_direct_messages => ChatKind::Group,
        "supergroup" if chat.is_forum => ChatKind::Forum,
        "supergroup" => ChatKind::Group,
        "channel" => ChatKind::Channel,
        _ => return Err(Odd::Senseless("a chat of an unknown kind")),
    };
    Ok(Chat { id: ChatId::new(chat.id.to_string())?, kind })
}

/// The topic. Outside of topics the same field numbers chains of answers, which nobody can post to.
fn thread(message: &api::Message) -> Result<Option<ThreadId>, Odd> {
    if let Some(topic) = &message.direct_messages_topic {
        return thread_id(topic.topic_id).map(Some);
    }
    message.message_thread_id.filter(|_| message.is_topic_message).map(thread_id).transpose()
}

fn thread_id(id: i64) -> Result<ThreadId, Odd> {
    Ok(ThreadId::new(id.to_string())?)
}

fn source(chat: &api::Chat) -> Source {
    let chat_name = chat.name().filter(|_| chat.kind != "private");
    Source { chat_name, ..Source::default() }
}

/// The message that it answers. In a topic of a group everything answers the line that opened the topic.
fn answered(message: &api::Message) -> Option<&api::Message> {
    message.reply_to_message.as_deref().filter(|answered| {
        answered.forum_topic_created.is_none()
            && Some(answered.message_id) != message.message_thread_id
    })
}

fn quote(message: &api::Message, answered: Option<&api::Message>, us: &Us) -> Option<Quote> {
    let (author, by) = match (answered, &message.external_reply) {
        (Some(answered), _) => match (&answered.from, speaker(answered)) {
            // What somebody had passed on themselves is not theirs.
            _ if answered.forward_origin.is_some() => {
                let origin = answered.forward_origin.as_ref();
                (origin.map_or(Author::Unknown, |origin| author(origin, us)), None)
            }
            (Some(user), _) if us.names.is(user) => (Author::Us, None),
            (_, Ok(sender)) => {
                let by = Bystander { kind: sender.kind, ..Bystander::new(sender.id) };
                (sender.name.map_or(Author::Unknown, Author::Named), Some(by))
            }
            (_, Err(_)) => (Author::Unknown, None),
        },
        // Who is heard elsewhere need not be heard here.
        (None, Some(external)) => {
            let origin = external.origin.as_ref();
            (origin.map_or(Author::Unknown, |origin| author(origin, us)), None)
        }
        (None, None) => return None,
    };
    let chosen = message.quote.as_ref().filter(|quote| quote.is_manual || answered.is_none());
    let text = match (chosen, answered) {
        (Some(quote), _) => quote.text.clone(),
        (None, Some(answered)) => whole(answered)?,
        (None, None) => return None,
    };
    let end = text.floor_char_boundary(LONGEST_QUOTE);
    Some(Quote { by, ..Quote::new(&text[..end], author) })
}

/// What a message says, in words.
fn whole(message: &api::Message) -> Option<String> {
    let text = message.text.clone().or_else(|| message.caption.clone());
    text.or_else(|| contents::said(message).filter(|said| !said.is_empty()))
        .or_else(|| contents::media(message).map(|media| contents::named(&media)))
}

fn author(origin: &api::Origin, us: &Us) -> Author {
    if let Some(user) = &origin.sender_user {
        return if us.names.is(user) { Author::Us } else { Author::Named(user.name()) };
    }
    let chat = origin.sender_chat.as_ref().or(origin.chat.as_ref());
    let name = origin.sender_user_name.clone().or_else(|| chat.and_then(api::Chat::name));
    name.map_or(Author::Unknown, Author::Named)
}

fn news_of(message: &api::Message) -> News {
    let chat = message.chat.id;
    let moved = message
        .migrate_to_chat_id
        .map(|to| (chat, to))
        .or_else(|| message.migrate_from_chat_id.map(|from| (from, chat)));
    let thread = message.message_thread_id.filter(|_| message.is_topic_message);
    let opening = message.reply_to_message.as_ref().and_then(|it| it.forum_topic_created.as_ref());
    let current = message.forum_topic_edited.as_ref().or(message.forum_topic_created.as_ref());
    let name = current.or(opening).and_then(|topic| topic.name.clone());
    let topic = thread.zip(name).map(|(thread, name)| (chat, thread, name));
    News { topic, is_first_name: current.is_none(), moved }
}
