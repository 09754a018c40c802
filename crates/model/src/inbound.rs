//! What arrives from a platform.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{
    Address, ChoiceId, EventId, FileRef, Media, MessageId, RoleId, Sender, SenderId, SenderKind,
    Shown, Source, Timestamp, Transcript, Understood, Unfetched,
};

/// One event from a platform, decoded and verified, on its way into the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbound {
    /// Equal for every delivery of the same event.
    pub id: EventId,
    /// When the platform says it happened. Order is decided by the journal, not by this.
    pub at: Timestamp,
    /// Who caused it.
    pub from: Sender,
    /// Where it happened, which is also where answers go.
    pub to: Address,
    /// What else is known about the place.
    #[serde(default, skip_serializing_if = "Source::is_empty")]
    pub source: Source,
    /// What happened.
    pub kind: InboundKind,
}

/// What happened in a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboundKind {
    /// Somebody said something. Slash commands are said too; the session recognises them.
    Said(Message),
    /// Somebody changed what they had said. The message has the id of the first one.
    Edited(Message),
    /// Somebody chose one of the answers offered.
    Pressed(ChoiceId),
    /// Somebody asked for the running turn to stop, by a control that is not a message.
    Stopped,
}

/// What a person says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The platform's id of it, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<MessageId>,
    /// The text as typed.
    pub text: String,
    /// Files sent along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
    /// Files sent along that are still at the platform.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
    /// Files sent along that could not be fetched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfetched: Vec<Unfetched>,
    /// What was made of recordings among the files, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transcripts: Vec<Transcript>,
    /// What it has in common with the other parts, where people sent several messages as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub album: Option<String>,
    /// Whether it says what it said at first.
    #[serde(default, skip_serializing_if = "Edition::is_first")]
    pub edition: Edition,
    /// Whether it is meant for us.
    #[serde(default, skip_serializing_if = "Addressed::is_to_us")]
    pub addressed: Addressed,
    /// Whether it is clear which of the open questions it answers.
    #[serde(default, skip_serializing_if = "Aim::is_clear")]
    pub aim: Aim,
    /// Who said it first, when it was passed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<Author>,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// What that message said, where the platform tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<Quote>,
    /// What others said elsewhere that it shows or links to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cited: Vec<Quote>,
    /// What its platform can still be asked about it, by a handle of the platform's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<String>,
    /// What others said in the chat since we were last spoken to, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overheard: Vec<Overheard>,
    /// Whether those who watch have yet to be asked about it.
    #[serde(default, skip_serializing_if = "Scrutiny::is_over")]
    pub scrutiny: Scrutiny,
    /// What those did who were asked about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interventions: Vec<Intervention>,
    /// What is answered in our place, because somebody who was asked about it wants that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<String>,
    /// What the agent is to know in this chat, from the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_prompt: Option<String>,
    /// Skills that a new conversation in this chat begins with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
}

impl Message {
    /// What its sender said: as typed, and behind that as spoken.
    pub fn words(&self) -> Cow<'_, str> {
        let theirs = self.transcripts.iter().filter(|transcript| transcript.owner.is_sender());
        let spoken = theirs.filter_map(|transcript| match &transcript.said {
            Understood::Words(words) => Some(words.as_str()),
            Understood::Nothing(_) => None,
        });
        let typed = Some(self.text.as_str()).filter(|text| !text.trim().is_empty());
        let all: Vec<&str> = typed.into_iter().chain(spoken).collect();
        match all.as_slice() {
            [] => Cow::Borrowed(&self.text),
            [one] => Cow::Borrowed(one),
            all => Cow::Owned(all.join("\n\n")),
        }
    }

    /// Whether somebody spoke instead of writing, at least in part.
    pub fn is_spoken(&self) -> bool {
        let mut theirs = self.files.iter().filter(|file| file.owner.is_sender());
        theirs.any(|file| file.shown == Shown::Voice)
    }
}

/// Whether a message says what it said at first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edition {
    /// It does.
    #[default]
    First,
    /// It was changed after it had been read.
    Changed,
}

impl Edition {
    fn is_first(&self) -> bool {
        *self == Self::First
    }
}

/// Whether a message is meant for us. A platform says what it sees; whether we listen is for the
/// account's rules to say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Addressed {
    /// It was said to us: in private, by name, or as an answer to us.
    #[default]
    ToUs,
    /// It was said in a chat that we are in.
    ToOthers,
    /// It names another bot and not us: that one is meant, whatever else speaks for us.
    ToAnotherBot,
}

impl Addressed {
    fn is_to_us(&self) -> bool {
        *self == Self::ToUs
    }
}

/// Whether it is clear which of the open questions a message answers. A session knows its own; where several
/// ask in one chat, the gateway sees them all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aim {
    /// It is, or there is none.
    #[default]
    Clear,
    /// Several sessions ask there, and it names none of them.
    Unclear,
    /// It came before what is asked could be read.
    TooEarly,
}

impl Aim {
    fn is_clear(&self) -> bool {
        *self == Self::Clear
    }
}

/// Whether those who watch have yet to be asked about a message. Nobody hears of it before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scrutiny {
    /// They were, or need not be.
    #[default]
    Over,
    /// They have.
    Due,
}

impl Scrutiny {
    fn is_over(&self) -> bool {
        *self == Self::Over
    }
}

/// What somebody did who was asked about a message. It has none of anybody's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervention {
    /// Who was asked.
    pub by: String,
    /// What they did.
    pub what: Intervened,
}

/// What somebody did who was asked about a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intervened {
    /// They let it pass for everybody.
    Allowed,
    /// They put something else in its place.
    Rewrote,
    /// They did not want it.
    Refused,
    /// They did what it asks for.
    Handled,
    /// They did not decide, for this reason, so it counts as not wanted.
    Failed(String),
}

/// A message that another one answers or shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// What it said, or the beginning of it.
    pub text: String,
    /// Whose it is.
    pub author: Author,
    /// By which id, where the platform tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Bystander>,
    /// Whether they are heard there. A platform does not know; it is found out when the message is taken in.
    #[serde(default, skip_serializing_if = "Standing::is_unheard")]
    pub standing: Standing,
}

impl Quote {
    /// Of somebody whose id nobody tells.
    pub fn new(text: impl Into<String>, author: Author) -> Self {
        Self { text: text.into(), author, by: None, standing: Standing::default() }
    }
}

/// Whose message is quoted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// Ours.
    Us,
    /// Somebody's, by the name that people see.
    Named(String),
    /// Nobody says.
    Unknown,
}

/// Something said in a chat that was not said to us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overheard {
    /// The name that people see.
    pub name: String,
    /// What was said.
    pub text: String,
    /// By which id, where the platform tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Bystander>,
    /// Whether they are heard there. A platform does not know; it is found out when the message is taken in.
    #[serde(default, skip_serializing_if = "Standing::is_unheard")]
    pub standing: Standing,
}

impl Overheard {
    /// Of somebody whose id nobody tells.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let (name, text) = (name.into(), text.into());
        Self { name, text, by: None, standing: Standing::default() }
    }
}

/// Somebody whose words surround a message: what policy knows them by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bystander {
    /// The platform's immutable id.
    pub id: SenderId,
    /// What it is.
    #[serde(default, skip_serializing_if = "SenderKind::is_person")]
    pub kind: SenderKind,
    /// Their roles on the platform that may let them in, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleId>,
}

impl Bystander {
    /// A person without roles.
    pub const fn new(id: SenderId) -> Self {
        Self { id, kind: SenderKind::Person, roles: Vec::new() }
    }
}

/// Whether those whose words surround a message are heard where they said them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// They are not, or nobody knows.
    #[default]
    Unheard,
    /// They are, or the words are ours.
    Heard,
}

impl Standing {
    fn is_unheard(&self) -> bool {
        *self == Self::Unheard
    }
}
