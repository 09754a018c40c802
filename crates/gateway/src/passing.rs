//! What passes through the gateway: counted for each account, and shown to whoever follows it from hop to
//! hop. Nothing of what was said is in it, and nothing waits for whoever looks.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use talaria_model::{
    AccountId, AgentEvent, Because, CallId, ChatKind, EventId, Inbound, MessageId, Outbound,
    OutboundId, Seq, Timestamp, TurnId,
};
use talaria_session::{Closed, Effect, Event, Session};
use talaria_store::{JournalState, Parcel, Settlement, message_of};

use crate::glimpses::Unwritten;
use crate::shared::Shared;

/// Follows messages on their way. It must not wait.
pub trait Follower: Send + Sync {
    /// Whether anybody does. Nothing is prepared for nobody.
    fn follows(&self) -> bool;

    /// Something passed. It was durable before.
    fn passed(&self, hop: Hop);
}

/// Nobody.
pub struct NoFollower;

impl Follower for NoFollower {
    fn follows(&self) -> bool {
        false
    }

    fn passed(&self, _: Hop) {}
}

/// Where something passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hop {
    /// Something came in from a platform.
    Received(Received),
    /// A turn took rows of the journal up.
    Took {
        /// Which turn, and what it is about.
        turn: Turning,
        /// The rows.
        rows: Vec<Seq>,
        /// When.
        at: Timestamp,
    },
    /// A row needs no turn.
    Closed {
        /// The row.
        row: Seq,
        /// What became of it.
        how: &'static str,
        /// When.
        at: Timestamp,
    },
    /// The model has finished a step and wants tools called.
    Stepped {
        /// In which turn.
        turn: Turning,
        /// The calls, and the tool of each.
        calls: Vec<(CallId, String)>,
        /// When.
        at: Timestamp,
    },
    /// A tool returned.
    Returned {
        /// In which turn.
        turn: Turning,
        /// The call.
        call: CallId,
        /// Whether it went wrong.
        failed: bool,
        /// When.
        at: Timestamp,
    },
    /// Something is to be delivered.
    Decided {
        /// Because of what.
        cause: Cause,
        /// The parcels.
        parcels: Vec<OutboundId>,
        /// When.
        at: Timestamp,
    },
    /// A turn is over.
    Ended {
        /// Which.
        turn: Turning,
        /// Why there is no whole answer; none when there is one.
        because: Option<Because>,
        /// When.
        at: Timestamp,
    },
    /// A parcel is where it was to go, or never will be.
    Settled(Settled),
}

/// Something that came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Its row in the journal, if it has one of its own.
    pub row: Option<Seq>,
    /// Its id.
    pub event: EventId,
    /// The platform's id of what was said.
    pub message: Option<MessageId>,
    /// On which account.
    pub account: AccountId,
    /// On which platform.
    pub platform: &'static str,
    /// In which kind of chat.
    pub chat: ChatKind,
    /// When it happened, as the platform says.
    pub happened: Timestamp,
    /// When it was handed to us.
    pub begun: Timestamp,
    /// When it was decided about, durably.
    pub at: Timestamp,
    /// What was decided.
    pub reception: Reception,
}

/// How something is received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reception {
    /// It is taken in.
    TakenIn,
    /// It had been taken in before.
    Repeated,
    /// Nobody answers it.
    Ignored,
    /// Its sender is not let in, or it is not what we take.
    Denied,
}

impl Reception {
    /// As it is told.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TakenIn => "taken_in",
            Self::Repeated => "repeated",
            Self::Ignored => "ignored",
            Self::Denied => "denied",
        }
    }
}

/// A turn and the rows that it answers, the one that began it first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turning {
    /// Which.
    pub turn: TurnId,
    /// What it answers.
    pub rows: Vec<Seq>,
}

/// Because of what something is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A turn said it.
    Turn(Turning),
    /// It answers a row that needs no turn.
    Row(Seq),
}

/// What became of a parcel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Which.
    pub id: OutboundId,
    /// The account it went to.
    pub account: AccountId,
    /// The message that shows it.
    pub message: Option<MessageId>,
    /// Why it will never be delivered; none when it was.
    pub lost: Option<&'static str>,
    /// When it was decided.
    pub decided: Timestamp,
    /// When it was settled.
    pub at: Timestamp,
}

/// What passed on an account since the gateway started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events that were taken in.
    pub taken_in: u64,
    /// Events that had been taken in before.
    pub repeated: u64,
    /// Events that nobody answers.
    pub ignored: u64,
    /// Events of those who are not let in, and what we do not take.
    pub denied: u64,
    /// Parcels that were delivered.
    pub delivered: u64,
    /// Parcels that have to be sent again.
    pub retried: u64,
    /// Parcels of which nobody knows whether they arrived, each time that happened.
    pub unsure: u64,
    /// Parcels that will never be delivered.
    pub lost: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Tallies(Mutex<BTreeMap<AccountId, Tally>>);

impl Tallies {
    fn count(&self, account: &AccountId, count: impl FnOnce(&mut Tally)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(account) {
            Some(tally) => count(tally),
            None => count(all.entry(account.clone()).or_default()),
        }
    }

    pub(crate) fn all(&self) -> BTreeMap<AccountId, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Something came in and has a row.
pub(crate) fn received(
    shared: &Shared,
    row: Seq,
    inbound: &Inbound,
    state: &JournalState,
    begun: Timestamp,
) {
    let reception = match state {
        JournalState::Ignored(_) => Reception::Ignored,
        JournalState::Denied(_) => Reception::Denied,
        _ => Reception::TakenIn,
    };
    arrived(shared, &inbound.to.account, Some(row), inbound, begun, reception);
}

/// Something came in and has no row of its own.
pub(crate) fn unwritten(shared: &Shared, inbound: &Inbound, begun: Timestamp, why: Unwritten) {
    let reception = match &why {
        Unwritten::Repeated(_) => Reception::Repeated,
        Unwritten::Ignored(_) => Reception::Ignored,
        Unwritten::Denied(_) | Unwritten::Knocked(_) | Unwritten::Misdirected(_) => {
            Reception::Denied
        }
    };
    // Whoever speaks for a platform may name any account, and as many as they like.
    let account = match &why {
        Unwritten::Misdirected(on) => on,
        _ => &inbound.to.account,
    };
    arrived(shared, account, None, inbound, begun, reception);
    shared.glimpses.catch(inbound, shared.clock.now(), why);
}

/// Something that was taken in is not answered after all, because of who watches.
pub(crate) fn dropped(shared: &Shared, row: Seq) {
    if shared.follower.follows() {
        let (how, at) = (Reception::Ignored.as_str(), shared.clock.now());
        shared.follower.passed(Hop::Closed { row, how, at });
    }
}

fn arrived(
    shared: &Shared,
    account: &AccountId,
    row: Option<Seq>,
    inbound: &Inbound,
    begun: Timestamp,
    reception: Reception,
) {
    shared.tallies.count(account, |tally| match reception {
        Reception::TakenIn => tally.taken_in += 1,
        Reception::Repeated => tally.repeated += 1,
        Reception::Ignored => tally.ignored += 1,
        Reception::Denied => tally.denied += 1,
    });
    if shared.follower.follows() {
        let known = shared.accounts.get(account);
        shared.follower.passed(Hop::Received(Received {
            row,
            event: inbound.id.clone(),
            message: message_of(inbound).cloned(),
            account: account.clone(),
            platform: known.map_or("unknown", |known| known.plan().account.spec.name),
            chat: inbound.to.chat.kind,
            happened: inbound.at,
            begun,
            at: shared.clock.now(),
            reception,
        }));
    }
}

/// A step of a session is durable.
pub(crate) fn stepped(
    shared: &Shared,
    before: Option<&Session>,
    next: &Session,
    event: &Event,
    effects: &[Effect],
    parcels: &[Outbound],
) {
    if !shared.follower.follows() {
        return;
    }
    let at = next.updated;
    let was = before.and_then(turning);
    let is = turning(next);
    let tell = |hop: Hop| shared.follower.passed(hop);
    if let Event::Agent { turn, event } = event
        && let Some(turning) = was.clone().filter(|was| was.turn == *turn)
    {
        match event {
            AgentEvent::Stepped { calls, .. } => {
                let calls = calls.iter().map(|call| (call.id.clone(), call.tool.clone())).collect();
                tell(Hop::Stepped { turn: turning, calls, at });
            }
            AgentEvent::Called { call, failed, .. } => {
                tell(Hop::Returned { turn: turning, call: call.clone(), failed: *failed, at });
            }
            _ => {}
        }
    }
    let closed: Vec<(Seq, &'static str)> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Close { seq, closed } => Some((*seq, ended(closed))),
            _ => None,
        })
        .collect();
    let last = closed.last().map(|(row, _)| *row);
    let said_by_agent = matches!(event, Event::Agent { .. });
    let cause = match (said_by_agent, last, was.clone().or_else(|| is.clone())) {
        (false, Some(row), _) | (true, Some(row), None) => Some(Cause::Row(row)),
        (_, _, Some(turn)) => Some(Cause::Turn(turn)),
        (_, None, None) => None,
    };
    if let (Some(cause), false) = (cause, parcels.is_empty()) {
        let parcels = parcels.iter().map(|parcel| parcel.id.clone()).collect();
        tell(Hop::Decided { cause, parcels, at });
    }
    // What is to be delivered because of a row is known before the row is closed.
    for (row, how) in closed {
        tell(Hop::Closed { row, how, at });
    }
    if let Some(was) = was
        && is.as_ref().is_none_or(|is| is.turn != was.turn)
    {
        let because = because(effects, &was.turn);
        tell(Hop::Ended { turn: was, because, at });
    }
    if let Some(turn) = is {
        let bound = |effect: &Effect| match effect {
            Effect::Bind { seq, turn: of } if *of == turn.turn => Some(*seq),
            _ => None,
        };
        let rows: Vec<Seq> = effects.iter().filter_map(bound).collect();
        if !rows.is_empty() {
            tell(Hop::Took { turn, rows, at });
        }
    }
}

fn turning(session: &Session) -> Option<Turning> {
    session.hand().map(|hand| Turning { turn: hand.turn.clone(), rows: hand.seqs.clone() })
}

fn because(effects: &[Effect], turn: &TurnId) -> Option<Because> {
    effects.iter().find_map(|effect| match effect {
        Effect::Record { entry, .. } if entry.turn.as_ref() == Some(turn) => entry.because,
        _ => None,
    })
}

const fn ended(closed: &Closed) -> &'static str {
    match closed {
        Closed::Handled => "handled",
        Closed::Ignored(_) => "ignored",
        Closed::Denied(_) => "denied",
        Closed::Quarantined(_) => "set_aside",
    }
}

/// What became of a parcel is durable.
pub(crate) fn settled(shared: &Shared, parcel: &Parcel, settlement: &Settlement) {
    let account = &parcel.outbound.to.account;
    let (message, lost) = match settlement {
        Settlement::Delivered(receipt) => {
            shared.tallies.count(account, |tally| tally.delivered += 1);
            (receipt.message.clone(), None)
        }
        Settlement::Undeliverable { .. } => {
            shared.tallies.count(account, |tally| tally.lost += 1);
            (None, Some("refused for good"))
        }
        Settlement::Abandoned { .. } => {
            shared.tallies.count(account, |tally| tally.lost += 1);
            (None, Some("given up"))
        }
        Settlement::Again { .. } | Settlement::Plain | Settlement::Vanished => {
            return shared.tallies.count(account, |tally| tally.retried += 1);
        }
        Settlement::Unsure => {
            return shared.tallies.count(account, |tally| tally.unsure += 1);
        }
        Settlement::Previewed(_) => return,
    };
    if shared.follower.follows() {
        shared.follower.passed(Hop::Settled(Settled {
            id: parcel.outbound.id.clone(),
            account: account.clone(),
            message,
            lost,
            decided: parcel.at,
            at: shared.clock.now(),
        }));
    }
}
