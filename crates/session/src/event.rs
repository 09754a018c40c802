//! What a session is told, and what it wants done.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use talaria_model::{
    AccountId, Address, AgentEvent, Attended, CallId, Consent, Content, Cost, Digest, EarlierYes,
    Effort, Entry, FileRef, Grant, Inbound, Message, MessageId, Outbound, OutboundId, Question,
    RoleId, Sender, SenderId, Seq, SessionId, Task, Timestamp, TurnId, Usage, Word,
};

use crate::life::{ResetReason, ResumeReason};
use crate::pairing::{Code, TypedCode};
use crate::{Authority, Mark, Preferences, Reach, SessionKey, Speaker};

/// What a session is told. Everything that concerns a session comes as one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Something arrived from the platform.
    Arrived {
        /// Its place in the journal.
        seq: Seq,
        /// What it is.
        inbound: Inbound,
        /// How many that arrived before it wait to be taken in, as far as is known.
        overtaken: usize,
        /// What its sender may do at this moment.
        by: Authority,
    },
    /// Things of one sender arrived that belong together: parts of one message, and what was changed of
    /// them.
    Together {
        /// Each with its place in the journal.
        rows: Vec<(Seq, Inbound)>,
        /// What their sender may do at this moment.
        by: Authority,
    },
    /// Who said these is not heard any more. What of theirs waits for a turn or for an answer of the gateway is
    /// not taken up.
    Barred {
        /// Their places in the journal.
        rows: Vec<Seq>,
        /// Why.
        why: &'static str,
    },
    /// The agent reports.
    Agent {
        /// Which turn. A turn that is over is not listened to.
        turn: TurnId,
        /// What happened.
        event: AgentEvent,
    },
    /// What was asked for with `Effect::Ask`.
    Told {
        /// The row that asked.
        seq: Seq,
        /// The answer.
        told: Told,
    },
    /// Another session of the same conversation reports.
    Passed(Passed),
    /// Somebody said something for which there is nothing left: it is not answered, and they are told why.
    Unaffordable {
        /// What they said.
        rows: Vec<(Seq, Inbound)>,
        /// In words for them.
        why: String,
    },
    /// Something was said in the chat of this session because somebody had asked for it in another one.
    /// Nothing is lost if it never hears of it.
    Sent(Box<Outbound>),
    /// Something that this session said in another chat will never arrive. Nothing but a word is lost if it never hears of it.
    Lost {
        /// Where it was to arrive.
        to: Address,
        /// Why it does not.
        reason: String,
    },
    /// What belonged to this life was put away because `Session::expired` said that it is over, or
    /// because putting it away went wrong three times.
    PutAway,
    /// The operator gives a life another title.
    Renamed {
        /// Which. One that is no longer the present one is left alone.
        life: SessionId,
        /// The title.
        title: String,
    },
    /// Taking in an event went wrong inside us, every time it was tried.
    Stumbled {
        /// What arrived; none when it was something else.
        over: Option<(Seq, Inbound)>,
    },
    /// The moment that `Session::wake_at` named has come.
    Woke,
    /// The process is about to end without having finished the turn in hand. The next one goes on with it.
    Leaving {
        /// What for.
        reason: ResumeReason,
        /// Whether people are told.
        farewell: Farewell,
    },
    /// The process has started again.
    Restarted {
        /// How it had ended.
        ended: Ended,
        /// Why the one who asked for the turn in hand is not heard any more; none if they are. What has not
        /// begun in this process does not begin for them.
        unheard: Option<&'static str>,
        /// Whether the one whose yes the turn in hand has and has not used yet could still give it.
        yes: EarlierYes,
    },
}

/// Whether people are told that the process ends before they are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Farewell {
    /// They are.
    Said,
    /// They are not: they have hardly waited yet, or nobody could tell them.
    Unsaid,
}

/// How the process before this one ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to.
    Cleanly,
    /// It died.
    Abruptly,
}

/// What a session wants done. All effects of one event become durable together; only then are `Tell`,
/// `Ask` and `Pass` carried out, and only then is anything seen or heard of what `Start` began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The journal row is the session's own from here on.
    Take(Seq),
    /// The journal row is part of this turn.
    Bind {
        /// The row.
        seq: Seq,
        /// The turn.
        turn: TurnId,
    },
    /// The journal row needs no turn.
    Close {
        /// The row.
        seq: Seq,
        /// Why not.
        closed: Closed,
    },
    /// The words of the journal row are not kept: these stand in their place from here on.
    Conceal {
        /// The row.
        seq: Seq,
        /// What is kept.
        words: String,
    },
    /// The journal row is another session's, which has not read it yet.
    Forward {
        /// The row.
        seq: Seq,
        /// Whose.
        to: SessionKey,
    },
    /// Rows of this session that no step has taken and that stand before this one need no turn. They
    /// become `Ignored`.
    DropUnread {
        /// The first row that stays.
        before: Seq,
        /// Why.
        why: &'static str,
    },
    /// Append to the transcript.
    Record {
        /// Of this life of the conversation.
        session: SessionId,
        /// What.
        entry: Entry,
    },
    /// Hide entries from the model and from whoever reads the conversation. They are kept.
    Rewind {
        /// Of this life of the conversation.
        session: SessionId,
        /// The first.
        from: u32,
        /// The last.
        upto: u32,
        /// Who wants it.
        by: SenderId,
    },
    /// Begin a life with a copy of what another life of the same owner says and does not hide, under
    /// the same numbers.
    Branch {
        /// The life that is copied.
        from: SessionId,
        /// The life that begins.
        to: SessionId,
        /// The last entry that is copied.
        upto: u32,
    },
    /// A life gives way to another. It is kept as it stands and can be gone back to.
    Retire {
        /// What is kept of it beside its entries.
        past: Box<Past>,
        /// What for.
        why: Retired,
    },
    /// Deliver.
    Post(Outbound),
    /// Deliver in a chat that is not this session's, and tell the session there.
    Send(Outbound),
    /// Put something in the place of what was said before.
    Replace(Box<Replacement>),
    /// Something was approved for good.
    Grant(Box<Grant>),
    /// Keep a record of an approval that was asked for or decided.
    Attest(Box<Attested>),
    /// Let the agent take a turn, or go on with it.
    Start(Start),
    /// Tell a running turn.
    Tell {
        /// Which.
        turn: TurnId,
        /// What.
        word: Word,
    },
    /// Stop listening to a turn at once.
    Abandon(TurnId),
    /// Find out or do something. Must be answered with `Event::Told`, whatever comes of it.
    Ask {
        /// The row that asks; comes back in `Told`.
        seq: Seq,
        /// In whose name.
        from: Sender,
        /// Their roles on the platform, for which that vouches.
        roles: Vec<RoleId>,
        /// Where.
        at: Address,
        /// What.
        request: Request,
    },
    /// Tell another session of the same conversation. Nothing is lost if it never hears of it.
    Pass {
        /// Which.
        to: SessionKey,
        /// What.
        passed: Passed,
    },
}

/// What takes the place of something said before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// Names this act.
    pub id: OutboundId,
    /// Where.
    pub to: Address,
    /// What was said before.
    pub of: OutboundId,
    /// What stands there from here on.
    pub whole: Content,
    /// What is said instead, where nothing can be changed.
    pub otherwise: Content,
}

/// Why a journal row needs no turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// A command or an answer: it was dealt with.
    Handled,
    /// Nothing to do, and why.
    Ignored(&'static str),
    /// Who said it is not heard any more, and why.
    Denied(&'static str),
    /// It was set aside because it kept killing the process, and why.
    Quarantined(&'static str),
}

/// A turn to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The turn.
    pub turn: TurnId,
    /// What it is for.
    pub task: Task,
    /// Who is asking.
    pub from: Sender,
    /// Their roles on the platform, for which that vouches.
    pub roles: Vec<RoleId>,
    /// Where.
    pub to: Address,
    /// The message that began it, where its platform names it.
    pub answers: Option<MessageId>,
    /// When it has to be over.
    pub deadline: Timestamp,
    /// Calls that were started before a restart.
    pub started: Vec<CallId>,
    /// A question that is already open.
    pub asked: Option<Question>,
    /// The model that a person chose.
    pub model: Option<String>,
    /// How hard it is to think, if a person chose that.
    pub effort: Option<Effort>,
    /// What the agent is to know in this chat.
    pub channel_prompt: Option<String>,
    /// Skills that the conversation begins with; only in its first turn.
    pub skills: Vec<String>,
    /// Whether somebody is there to be asked.
    pub attended: Attended,
}

/// Something that a session does not know or cannot do itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Which models there are and which one answers.
    Models,
    /// The model that a person means.
    Model(String),
    /// What people said in these entries of this life, to say it again.
    Recall {
        /// The first entry.
        from: u32,
        /// The last.
        upto: u32,
    },
    /// The life that a person means, of this conversation or of another one of the same owner: a number
    /// of the list, an id, or the beginning of a title.
    Resume(String),
    /// The lives of this conversation.
    Lives,
    /// Where something was said, over all conversations of the person who asks.
    Search(String),
    /// Say this, and what is left of the budget of the one who asks.
    Left {
        /// What.
        said: String,
    },
    /// The last entries of this life.
    History {
        /// How many.
        last: u16,
    },
    /// How it stands with the platforms.
    Platforms,
    /// Connect an account, or do not.
    Platform {
        /// Which.
        account: String,
        /// What is to become of it.
        pause: Pause,
    },
    /// Make this chat the home of its account.
    SetHome,
    /// Read the configuration again.
    Reload,
    /// End the process and start it again.
    Restart,
    /// Run the quick command of this name.
    Run(String),
    /// Speak this text, which is Markdown. Nobody is told if that cannot be done.
    Speak(String),
    /// Let somebody in on an account, or put them out.
    Pair {
        /// The account; none where it is that of the chat.
        account: Option<String>,
        /// What is to be done.
        wish: PairWish,
    },
}

/// Whether an account is to be connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pause {
    /// Not before somebody says so.
    Pause,
    /// From here on.
    Resume,
}

/// What is to be done about who is let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairWish {
    /// Make a code that lets in whoever says it first.
    Issue(Reach),
    /// Let in who was given this code.
    Approve(TypedCode, Reach),
    /// Tell who asks to be let in and who was.
    List,
    /// Put this sender out.
    Revoke(String),
    /// Forget who asks, and every code.
    Clear,
}

/// What is recorded of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attested {
    /// What happened.
    pub what: Attest,
    /// In whose name something would be done.
    pub requester: SenderId,
    /// Where that was asked for.
    pub account: AccountId,
    /// What would be called.
    pub tool: String,
    /// What exactly: of everything that is decided by, the digest.
    pub digest: Digest,
}

/// What happens to an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attest {
    /// A person is asked.
    Asked,
    /// Nobody was asked: it was approved before, for so long, or needs no yes; none where it is not let be
    /// done at all.
    Unasked(Option<Consent>),
    /// Somebody approved it, and for how long.
    Approved(Consent, SenderId),
    /// Somebody denied it.
    Denied(SenderId),
    /// Somebody approved what the operator does not allow any more.
    Forbidden(SenderId),
    /// Nobody answered in time.
    Expired,
    /// It is not the same any more.
    Changed,
    /// The turn was stopped before anybody answered.
    Stopped,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// To be said as it stands: what was found, what was done, or why not.
    Text(String),
    /// To be said with a code in it, and recorded without.
    Code {
        /// What is said, the code withheld.
        text: String,
        /// The code.
        code: Code,
    },
    /// This is the model's whole name.
    Model(String),
    /// This is what was said in the entries.
    Said(Vec<Recalled>),
    /// This is the life, of this conversation.
    Life(Box<Past>),
    /// This is the life, of another conversation of the same owner: go on with a copy of it.
    Elsewhere(Box<Past>),
    /// This is the text, spoken.
    Spoken(FileRef),
    /// The text cannot be spoken.
    Unspoken,
}

/// Something said, as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recalled {
    /// Who said it.
    pub from: Sender,
    /// What.
    pub message: Message,
    /// What the model read in place of it.
    pub heard: Option<String>,
}

/// What one session of a conversation tells another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// Stop what you are doing.
    Stop,
    /// Say so if you have done your work.
    Ask,
    /// The side session of this number has done its work.
    SideOver(u32),
}

/// What is kept of a life beside its entries: enough to go on with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// Which life.
    pub id: SessionId,
    /// What it is about.
    pub title: String,
    /// Turns taken in it.
    pub turns: u32,
    /// So many of them were taken in the life that it is a copy of.
    #[serde(default, skip_serializing_if = "crate::session::is_zero")]
    pub copied: u32,
    /// Entries recorded in it.
    pub entries: u32,
    /// Deliveries named in it.
    pub deliveries: u32,
    /// Tokens used in it.
    pub usage: Usage,
    /// What they cost.
    pub cost: Cost,
    /// Tokens of its last prompt.
    pub prompt: u64,
    /// What people chose for it.
    pub preferences: Preferences,
    /// Where its turns begin that can be undone.
    pub marks: Vec<Mark>,
    /// How the people who speak in it are called. Its entries have these names.
    #[serde(default)]
    pub speakers: Arc<Vec<Speaker>>,
    /// When it began.
    pub begun: Timestamp,
    /// When somebody or the agent said something in it last.
    pub active: Timestamp,
}

/// Why a life gave way to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retired {
    /// A person began anew.
    New,
    /// It began anew by itself.
    Reset(ResetReason),
    /// A person went back to another.
    Switched,
    /// A person goes on with a copy.
    Branched,
}
