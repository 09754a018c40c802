//! What a session is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use talaria_model::{
    Address, Answer, CallId, ChatId, Cost, Digest, Effort, FileRef, Giver, Message, MessageId,
    OutboundId, Overheard, Question, RoleId, Sender, SenderId, Seq, SessionId, Source, Task,
    Timestamp, TurnId, Usage, Work,
};

use crate::event::{Past, Request};
use crate::life::{Activity, During, Life, ResumeReason};
use crate::reset::{Background, Expiry, expired};
use crate::voice::{Aloud, Medium};
use crate::{Rules, SessionKey};

/// One conversation, whole: what is stored is exactly this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Which conversation.
    pub key: SessionKey,
    /// This life of it.
    pub id: SessionId,
    /// Lives so far.
    pub lives: u32,
    /// Where it was last heard.
    pub at: Address,
    /// Who spoke in it first, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Arc<Origin>>,
    /// What people call the chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is about, in a few words.
    pub title: String,
    /// How it stands with this life.
    #[serde(default)]
    pub life: Life,
    /// What it is doing.
    pub phase: Phase,
    /// What was said and has to wait for the turn in hand.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub waiting: VecDeque<Waiting>,
    /// What was asked for and has not been told yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
    /// Turns that run beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<Beside>,
    /// Sessions that were begun beside it, over all its lives.
    #[serde(default)]
    pub sides: u32,
    /// Turns taken in this life.
    pub turns: u32,
    /// So many of them were taken in the life that this one is a copy of.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copied: u32,
    /// Entries recorded in this life.
    pub entries: u32,
    /// Deliveries named in this life.
    pub deliveries: u32,
    /// Tokens used in this life.
    pub usage: Usage,
    /// What they cost.
    #[serde(default = "unknown_cost")]
    pub cost: Cost,
    /// Tokens of the last prompt.
    #[serde(default)]
    pub prompt: u64,
    /// What people chose for it.
    #[serde(default)]
    pub preferences: Preferences,
    /// Where the last turns begin that can be undone, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// What the agent was to know in this chat when it was last spoken to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_prompt: Option<String>,
    /// How many copies were made under each title, over all lives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<Copies>,
    /// Whether a message to another chat did not arrive since the last turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// What was approved for as long as this life lasts, oldest first.
    #[serde(rename = "approved_here", default, skip_serializing_if = "Vec::is_empty")]
    pub approved: Vec<ApprovedHere>,
    /// What the next turn has to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// What was said to others since something was last said to us, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overheard: Vec<Overheard>,
    /// What was said in its chat since its last turn because somebody had asked for it in another one, oldest
    /// first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<String>,
    /// How the people who speak in it are called, where there are several.
    #[serde(default)]
    pub speakers: Arc<Vec<Speaker>>,
    /// When it was last acknowledged that something waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked: Option<Timestamp>,
    /// Who has stopped what is their own, and before which row nothing of theirs is taken up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hushed: Vec<(SenderId, Seq)>,
    /// When it began.
    pub begun: Timestamp,
    /// When somebody or the agent said something last.
    #[serde(default)]
    pub active: Timestamp,
    /// When something happened last.
    pub updated: Timestamp,
    /// What applies to it; from the configuration, not from storage.
    #[serde(skip)]
    pub rules: Arc<Rules>,
}

/// Something that was approved for as long as a conversation lasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedHere {
    /// What exactly.
    pub digest: Digest,
    /// Who said so.
    #[serde(flatten)]
    pub by: Giver,
}

pub(crate) fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn unknown_cost() -> Cost {
    Cost::UNKNOWN
}

/// Who spoke in a conversation first, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Who.
    pub from: Sender,
    /// Where.
    pub at: Address,
    /// What else was known about the place.
    #[serde(default, skip_serializing_if = "Source::is_empty")]
    pub source: Source,
}

/// What people chose for a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preferences {
    /// The model that answers, where it is not the configured one. Forgotten with its life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How hard it thinks, where that is not as configured. Forgotten with its life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// How much is told of what tools do, where that is not as configured.
    #[serde(rename = "tool_progress", skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<Verbosity>,
    /// Whether an answer says what it cost, where that is not as configured.
    #[serde(rename = "runtime_footer", skip_serializing_if = "Option::is_none")]
    pub footer: Option<Footer>,
    /// Which answers are spoken, where that is not as configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<Aloud>,
}

/// How much is told of what tools do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verbosity {
    /// Nothing.
    #[default]
    Off,
    /// Which are called, as often as that changes.
    New,
    /// Which are called.
    All,
    /// Which are called, and with what.
    Verbose,
}

/// Whether an answer says what it cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Footer {
    /// No.
    #[default]
    Off,
    /// Yes.
    On,
}

/// What a session is doing. Exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing.
    Idle,
    /// The agent works on a turn.
    Thinking(TurnInHand),
    /// The agent waits for an answer.
    Asking {
        /// The turn that asks.
        hand: TurnInHand,
        /// What it asks.
        question: Question,
        /// Since when.
        since: Timestamp,
        /// When it goes on without an answer.
        expires: Timestamp,
        /// What was posted of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<OutboundId>,
    },
    /// The agent was told to stop, because something was said that is next, and has not said yet that
    /// it has.
    Interrupting(TurnInHand),
    /// The agent was told to stop by a person and has not said yet that it has.
    Stopping(TurnInHand),
}

impl Phase {
    /// The turn that is not over, if there is one.
    pub(crate) fn hand_mut(&mut self) -> Option<&mut TurnInHand> {
        match self {
            Self::Idle => None,
            Self::Thinking(hand)
            | Self::Interrupting(hand)
            | Self::Stopping(hand)
            | Self::Asking { hand, .. } => Some(hand),
        }
    }
}

/// A turn that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnInHand {
    /// Which.
    pub turn: TurnId,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Task::is_answer")]
    pub task: Task,
    /// Who asked.
    pub from: Sender,
    /// Their roles on the platform, for which that vouches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleId>,
    /// Where the answer goes.
    pub to: Address,
    /// The messages it answers.
    pub seqs: Vec<Seq>,
    /// The message that began it, where its platform names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<MessageId>,
    /// How it was asked for.
    #[serde(default, skip_serializing_if = "Medium::is_writing")]
    pub medium: Medium,
    /// Said while it ran; told to the agent, not yet part of the turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steers: Vec<Waiting>,
    /// Tool calls with effects that have been started and have not returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub started: Vec<CallId>,
    /// The tool that people were told of last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_of: Option<String>,
    /// The answer to its last question, until the agent has reported what came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Box<Answered>>,
    /// What the agent is to know in this chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_prompt: Option<String>,
    /// Skills that the conversation begins with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// The delivery that the next thing it says will have. Its preview has it already.
    pub delivery: u32,
    /// Deliveries it has made since it last took something up.
    #[serde(default)]
    pub spoken: u32,
    /// Messages it has sent to other chats.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sends: u32,
    /// When it began.
    #[serde(default)]
    pub began: Timestamp,
    /// When it was last heard of.
    #[serde(default)]
    pub heard: Timestamp,
    /// What it is in the midst of.
    #[serde(default)]
    pub work: Work,
    /// What it has before it.
    #[serde(default)]
    pub during: During,
    /// Whether it has done anything that stays.
    #[serde(default)]
    pub done: Activity,
    /// Tokens it has used.
    #[serde(default)]
    pub usage: Usage,
    /// What they cost.
    #[serde(default)]
    pub cost: Cost,
    /// When it has to be over.
    pub deadline: Timestamp,
    /// How often the process died while it ran.
    #[serde(default)]
    pub deaths: u8,
    /// Why it was left to the next process, if it was. Whatever becomes of this one, it is no death.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<ResumeReason>,
    /// When it was taken up again by another run, until something was recorded since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Timestamp>,
    /// Whether people know that it was cut off and goes on. They are told once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub excused: bool,
}

impl TurnInHand {
    /// When nothing will have been heard of it for so long. Unknown for a turn that was stored before
    /// that was kept.
    pub(crate) fn silent_at(&self, limit: Duration) -> Option<Timestamp> {
        (self.heard != Timestamp::default()).then(|| self.heard + limit)
    }
}

/// A question and the answer it got. Kept because a process can die between the answer and the use
/// that the agent makes of it, and nobody answers the same question twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// What was asked.
    pub question: Question,
    /// What was answered.
    pub answer: Answer,
    /// Who decided, where it was asked whether something may be done and somebody had to be asked.
    #[serde(flatten)]
    pub by: Option<Giver>,
    /// Files sent along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
}

/// Something said that no turn has taken up yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Its place in the journal.
    pub seq: Seq,
    /// Who said it.
    pub from: Sender,
    /// Where.
    pub to: Address,
    /// Their roles on the platform, for which that vouches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleId>,
    /// What.
    pub message: Message,
    /// Whether it may share a turn.
    #[serde(default, skip_serializing_if = "Joins::is_burst")]
    pub joins: Joins,
    /// Whether it has been paid for.
    #[serde(default, skip_serializing_if = "Paid::is_later")]
    pub paid: Paid,
}

/// Whether something said counts among the messages of the day yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Paid {
    /// It does when a turn takes it up.
    #[default]
    Later,
    /// It has since it was passed on to a turn, whether that takes it up or the next one does.
    Already,
}

impl Paid {
    const fn is_later(&self) -> bool {
        matches!(self, Self::Later)
    }
}

/// Whether something said may share a turn with what the same person said before and after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Joins {
    /// Yes: it is a part of what they have to say.
    #[default]
    Burst,
    /// Yes: it is the rest of what began the turn in hand, which is taken again over all of it.
    Breath,
    /// No: it was queued for a turn of its own.
    Nothing,
}

impl Joins {
    fn is_burst(&self) -> bool {
        *self == Self::Burst
    }
}

/// Something a person asked for that the session does not know itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The journal row that asked; names the request.
    pub seq: Seq,
    /// Who.
    pub from: Sender,
    /// Their roles on the platform, for which that vouches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleId>,
    /// Where the answer goes.
    pub to: Address,
    /// What for.
    pub request: Request,
    /// When nobody waits for it any more.
    pub expires: Timestamp,
}

/// A turn that runs beside a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// The side session it runs in.
    pub side: u32,
    /// Since when.
    pub since: Timestamp,
}

/// For how long a turn beside a conversation counts if nothing is heard of it.
const LONGEST_BESIDE: Duration = Duration::from_secs(24 * 60 * 60);

impl Beside {
    /// Until when it counts if nothing is heard of it.
    pub fn until(&self) -> Timestamp {
        self.since + LONGEST_BESIDE
    }

    pub(crate) fn works(&self, now: Timestamp) -> bool {
        now < self.until()
    }
}

/// Where a turn begins that can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredMark")]
pub struct Mark {
    /// Its first entry.
    pub entry: u32,
    /// Whose it is, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<SenderId>,
    /// How what began it begins.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub said: String,
}

impl Mark {
    /// Whether somebody may take the turn back.
    pub(crate) fn is_of(&self, who: &Sender) -> bool {
        self.by.as_ref().is_none_or(|by| by == who.lasting() || *by == who.id)
    }
}

/// As it is stored; sessions that were stored earlier know the entry only.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredMark {
    Entry(u32),
    Whole {
        entry: u32,
        #[serde(default)]
        by: Option<SenderId>,
        #[serde(default)]
        said: String,
    },
}

impl From<StoredMark> for Mark {
    fn from(stored: StoredMark) -> Self {
        match stored {
            StoredMark::Entry(entry) => Self { entry, by: None, said: String::new() },
            StoredMark::Whole { entry, by, said } => Self { entry, by, said },
        }
    }
}

/// How many copies of a conversation were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copies {
    /// Under this title.
    pub title: String,
    /// The number of the last one.
    pub last: u32,
}

/// What the next turn has to know about how the last one ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// It was interrupted by what was said.
    Interrupted(During),
}

/// How somebody is called in a conversation of several people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speaker {
    /// Who.
    pub id: SenderId,
    /// As the model reads it; no two have the same.
    pub label: String,
}

impl Session {
    /// The chat that counts for what its turns take: a thread is part of its chat.
    pub fn counts_for<'a>(&'a self, chat: &'a ChatId) -> &'a ChatId {
        self.origin.as_ref().map_or(chat, |origin| origin.source.counts_for(chat))
    }

    /// A session that begins.
    pub fn begin(
        key: SessionKey,
        at: Address,
        now: Timestamp,
        rules: impl Into<Arc<Rules>>,
    ) -> Self {
        Self {
            id: mint(&key, 1, now),
            key,
            lives: 1,
            at,
            origin: None,
            name: None,
            title: String::new(),
            life: Life::Fresh,
            phase: Phase::Idle,
            waiting: VecDeque::new(),
            asked: Vec::new(),
            background: Vec::new(),
            sides: 0,
            turns: 0,
            copied: 0,
            entries: 0,
            deliveries: 0,
            usage: Usage::default(),
            cost: Cost::FREE,
            prompt: 0,
            preferences: Preferences::default(),
            marks: Vec::new(),
            channel_prompt: None,
            copies: Vec::new(),
            lost: false,
            approved: Vec::new(),
            note: None,
            overheard: Vec::new(),
            sent: Vec::new(),
            speakers: Arc::default(),
            acked: None,
            hushed: Vec::new(),
            begun: now,
            active: now,
            updated: now,
            rules: rules.into(),
        }
    }

    /// What is kept of this life when it gives way to another.
    pub fn past(&self) -> Past {
        Past {
            id: self.id.clone(),
            title: self.title.clone(),
            turns: self.turns,
            copied: self.copied,
            entries: self.entries,
            deliveries: self.deliveries,
            usage: self.usage,
            cost: self.cost,
            prompt: self.prompt,
            preferences: self.preferences.clone(),
            marks: self.marks.clone(),
            speakers: self.speakers.clone(),
            begun: self.begun,
            active: self.active,
        }
    }

    /// The turn that is not over, if there is one.
    pub fn hand(&self) -> Option<&TurnInHand> {
        match &self.phase {
            Phase::Idle => None,
            Phase::Thinking(hand)
            | Phase::Interrupting(hand)
            | Phase::Stopping(hand)
            | Phase::Asking { hand, .. } => Some(hand),
        }
    }

    /// What people said that no turn has taken up: told to the one in hand, or waiting for the next one.
    pub fn held_mut(&mut self) -> impl Iterator<Item = &mut Waiting> {
        let steers = self.phase.hand_mut().into_iter().flat_map(|hand| &mut hand.steers);
        steers.chain(&mut self.waiting)
    }

    /// Whether it has something to do: a turn in hand, something waiting, or something asked for.
    pub fn is_restless(&self) -> bool {
        self.hand().is_some() || !self.waiting.is_empty() || !self.asked.is_empty()
    }

    /// Everything that was paid for and that no turn has taken up yet.
    pub fn paid(&self) -> impl Iterator<Item = &Waiting> {
        let steers = self.hand().into_iter().flat_map(|hand| &hand.steers);
        steers.chain(&self.waiting).filter(|said| said.paid == Paid::Already)
    }

    /// Whether it may be told that something more was said. An answer takes no room.
    pub fn has_room(&self) -> bool {
        let held = self.waiting.len() + self.hand().map_or(0, |hand| hand.steers.len());
        match self.phase {
            // The answer may stand behind what others say.
            Phase::Asking { .. } => held < 4 * self.rules.room,
            _ => held < self.rules.room,
        }
    }

    /// When it has to be woken, if nothing else happens.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let turn = match &self.phase {
            Phase::Idle => None,
            Phase::Thinking(hand) | Phase::Interrupting(hand) | Phase::Stopping(hand) => {
                let silent = hand.silent_at(self.rules.silence_limit);
                Some(silent.map_or(hand.deadline, |silent| silent.min(hand.deadline)))
            }
            Phase::Asking { expires, .. } => Some(*expires),
        };
        let asked = self.asked.iter().map(|asked| asked.expires);
        turn.into_iter().chain(asked).min()
    }

    /// Whether the reset policy says that this life is over. Never while something works for it, and
    /// never before anything was answered.
    pub fn expired(&self, now: Timestamp) -> Option<Expiry> {
        let works = self.background.iter().any(|beside| beside.works(now));
        let background = match works || self.is_restless() {
            true => Background::Working,
            false => Background::Quiet,
        };
        if self.turns == 0 || self.key.side.is_some() {
            return None;
        }
        // A session that was stored before this was kept says only when anything happened.
        let active = if self.active == Timestamp::default() { self.updated } else { self.active };
        expired(active, now, &self.rules.reset, &self.rules.zone, background)
    }
}

/// `YYYYMMDD_HHMMSS_<8 hex>`, in UTC. The hex part keeps apart what begins in the same second.
pub(crate) fn mint(key: &SessionKey, lives: u32, now: Timestamp) -> SessionId {
    let at = jiff::Timestamp::from_millisecond(now.as_millis()).unwrap_or_default();
    let mut hash = Fnv::default();
    hash.take(key.account.as_str());
    hash.take(key.kind.as_str());
    hash.take(key.chat.as_ref().map_or("", |id| id.as_str()));
    hash.take(key.thread.as_ref().map_or("", |id| id.as_str()));
    hash.take(key.member.as_ref().map_or("", |id| id.as_str()));
    if let Some(side) = key.side {
        hash.take(&side.to_string());
    }
    hash.take(&lives.to_string());
    hash.take(&now.as_millis().to_string());
    let text = format!("{}_{:08x}", at.strftime("%Y%m%d_%H%M%S"), hash.folded());
    SessionId::new(text).expect("digits, hex and underscores are an id")
}

/// FNV-1a. Not for secrets: only to tell things apart.
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(crate) fn take(&mut self, text: &str) {
        // The 0xff between fields cannot occur in UTF-8, so no two lists of fields run together.
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(crate) fn folded(&self) -> u32 {
        ((self.0 >> 32) ^ (self.0 & 0xffff_ffff)) as u32
    }
}
