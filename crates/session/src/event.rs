//! What a session is told, and what it wants done.

use talaria_model::{
    Address, AgentEvent, CallId, Entry, Inbound, Outbound, Question, Sender, Seq, SessionId,
    Timestamp, TurnId, Word,
};

/// What a session is told. Everything that concerns a session comes as one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Something arrived from the platform.
    Arrived {
        /// Its place in the journal.
        seq: Seq,
        /// What it is.
        inbound: Inbound,
    },
    /// The agent reports.
    Agent {
        /// Which turn. A turn that is over is not listened to.
        turn: TurnId,
        /// What happened.
        event: AgentEvent,
    },
    /// Taking in an event went wrong inside us, every time it was tried.
    Stumbled {
        /// What arrived; none when it was something else.
        over: Option<(Seq, Inbound)>,
    },
    /// The moment that `Session::wake_at` named has come.
    Woke,
    /// The process has started again.
    Restarted {
        /// How it had ended.
        ended: Ended,
    },
}

/// How the process before this one ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to.
    Cleanly,
    /// It died.
    Abruptly,
}

/// What a session wants done. All effects of one event become durable together; only then is `Tell`
/// carried out, and only then is anything seen or heard of what `Start` began.
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
    /// Append to the transcript.
    Record {
        /// Of this life of the conversation.
        session: SessionId,
        /// What.
        entry: Entry,
    },
    /// Deliver.
    Post(Outbound),
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
}

/// Why a journal row needs no turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// A command or an answer: it was dealt with.
    Handled,
    /// Nothing to do, and why.
    Ignored(&'static str),
    /// It was set aside because it kept killing the process, and why.
    Quarantined(&'static str),
}

/// A turn to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The turn.
    pub turn: TurnId,
    /// Who is asking.
    pub from: Sender,
    /// Where.
    pub to: Address,
    /// When it has to be over.
    pub deadline: Timestamp,
    /// Calls that were started before a restart.
    pub started: Vec<CallId>,
    /// A question that is already open.
    pub asked: Option<Question>,
}
