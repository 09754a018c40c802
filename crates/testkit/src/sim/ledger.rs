//! Everything that was ever made durable, in order, as it was written: what the checker compares with
//! the truth of vendors and models.

use std::collections::{BTreeMap, BTreeSet};

use talaria_model::{
    AccountId, Answer, Approval, CallId, Consent, Entry, EntryBody, EventId, Inbound, Outbound,
    OutboundId, SenderId, Seq, SessionId, Timestamp, TurnId,
};
use talaria_session::{Phase, Session, SessionKey};
use talaria_store::{
    Admitted, Branch, Commit, Delivered, Dropped, GuestChange, JournalState, Leave, Settlement,
    Swap, withdrawn,
};

/// All writes.
#[derive(Default)]
pub struct Ledger {
    /// When the present write is made.
    pub(super) at: Timestamp,
    /// What the log says of the present write.
    pub(super) line: Option<String>,
    /// Journal rows by their number.
    pub rows: BTreeMap<Seq, Row>,
    /// The rows of events.
    pub events: BTreeMap<(AccountId, EventId), Seq>,
    /// Everything recorded, in order.
    pub entries: Vec<(SessionKey, SessionId, Entry)>,
    /// Parcels in the order in which they were decided.
    pub parcels: Vec<Decided>,
    /// Those among them that tell of losses. They have no place among the parts of an answer.
    pub notices: BTreeSet<OutboundId>,
    /// Where each parcel stands in that list.
    places: BTreeMap<OutboundId, usize>,
    /// Turns in the order in which something was first bound to them, with what was.
    pub turns: Vec<(TurnId, Vec<Seq>)>,
    /// Turns that were told to stop because of something that was said.
    pub interrupted: BTreeSet<TurnId>,
    /// Lives that began as copies, each with the life it is a copy of and the last entry of that.
    pub branches: BTreeMap<SessionId, (SessionId, u32)>,
    /// The most that a session held of what had to wait, and the room that it had.
    pub fullest: usize,
    /// Previews that were named.
    pub previews: BTreeMap<OutboundId, u32>,
    /// How often each parcel left.
    pub attempts: BTreeMap<OutboundId, u32>,
    /// What became of each parcel in the end.
    pub settled: BTreeMap<OutboundId, Settlement>,
    /// Every yes to something that was asked about, in order.
    pub approvals: Vec<Approved>,
}

/// A yes to something that was asked about.
pub struct Approved {
    /// The turn that asked.
    pub turn: TurnId,
    /// In whose name.
    pub from: SenderId,
    /// The call.
    pub call: CallId,
    /// What exactly.
    pub approval: Approval,
    /// What was shown of it.
    pub text: String,
    /// For how long the yes holds.
    pub consent: Consent,
    /// Who said it; none where it had been said before.
    pub by: Option<SenderId>,
}

/// A journal row.
pub struct Row {
    /// The session it belongs to.
    pub key: SessionKey,
    /// What arrived.
    pub inbound: Inbound,
    /// What became of it, in order.
    pub states: Vec<JournalState>,
}

/// A parcel that was decided.
pub struct Decided {
    /// What and where.
    pub outbound: Outbound,
    /// By which session.
    pub key: SessionKey,
    /// When.
    pub at: Timestamp,
}

impl Ledger {
    pub(super) fn amend(&mut self, seq: Seq, inbound: &Inbound) {
        if let Some(row) = self.rows.get_mut(&seq)
            && row.states.last() == Some(&JournalState::Unread)
        {
            row.inbound = inbound.clone();
        }
        self.line = Some(format!("{seq:?}"));
    }

    pub(super) fn admit(&mut self, asked: Delivered, admitted: &[Admitted]) {
        for ((key, inbound, state), admitted) in asked.events.into_iter().zip(admitted) {
            if let Admitted::Journalled(seq) = admitted {
                self.events.insert((asked.account.clone(), inbound.id.clone()), *seq);
                self.rows.insert(*seq, Row { key, inbound, states: vec![state] });
            }
        }
        self.line = Some(format!("{admitted:?} with cursor {:?}", asked.cursor));
    }

    pub(super) fn commit(&mut self, asked: Commit) {
        let steers = asked.session.hand().map_or(0, |hand| hand.steers.len());
        self.fullest = self.fullest.max(asked.session.waiting.len() + steers);
        let key = &asked.session.key;
        let mut line = key.chat.as_ref().map(ToString::to_string).unwrap_or_default();
        if let Phase::Interrupting(hand) = &asked.session.phase {
            self.interrupted.insert(hand.turn.clone());
        }
        if let Some(Branch { from, to, upto }) = asked.branch {
            line.push_str(" branch");
            self.branches.insert(to, (from, upto));
        }
        for (seq, to) in asked.forwarded {
            line.push_str(&format!(" {seq}→{to}"));
            if let Some(row) = self.rows.get_mut(&seq) {
                row.key = to;
                row.states.push(JournalState::Unread);
            }
        }
        if let Some(Dropped { before, reason }) = asked.dropped {
            let unread =
                |row: &Row| row.key == *key && row.states.last() == Some(&JournalState::Unread);
            for (seq, row) in self.rows.range_mut(..before).filter(|(_, row)| unread(row)) {
                line.push_str(&format!(" {seq}=dropped"));
                row.states.push(JournalState::Ignored(reason.clone()));
            }
        }
        let handled: Vec<Seq> = asked
            .journal
            .iter()
            .filter(|change| change.state == JournalState::Handled)
            .map(|change| change.seq)
            .collect();
        for change in asked.journal {
            line.push_str(&format!(" {}={}", change.seq, short(&change.state)));
            if let JournalState::Bound(turn) = &change.state {
                match self.turns.iter_mut().rev().find(|(known, _)| known == turn) {
                    Some((_, seqs)) => seqs.push(change.seq),
                    None => self.turns.push((turn.clone(), vec![change.seq])),
                }
            }
            if let Some(row) = self.rows.get_mut(&change.seq) {
                row.states.push(change.state);
            }
        }
        if let Some(approved) = self.approved(&asked.session, &handled) {
            line.push_str(" approved");
            self.approvals.push(approved);
        }
        for (session, entry) in asked.entries {
            line.push_str(&format!(" +{}:{}", entry.number, kind(&entry.body)));
            self.entries.push((asked.session.key.clone(), session, entry));
        }
        let left = self.left_of(&asked.outbox);
        for outbound in asked.outbox.into_iter().chain(left) {
            if !self.places.contains_key(&outbound.id) {
                line.push_str(&format!(" >{}.{}", outbound.id.delivery, outbound.id.part));
                self.places.insert(outbound.id.clone(), self.parcels.len());
                let key = asked.session.key.clone();
                self.parcels.push(Decided { outbound, key, at: self.at });
            }
        }
        self.line = Some(line);
    }

    pub(super) fn ignore(&mut self, seq: Seq, inbound: &Inbound, reason: &str) {
        if let Some(row) = self.rows.get_mut(&seq)
            && row.states.last() == Some(&JournalState::Unread)
        {
            row.inbound = inbound.clone();
            row.states.push(JournalState::Ignored(reason.to_owned()));
        }
        self.line = Some(format!("{seq:?}: {reason}"));
    }

    pub(super) fn deny(&mut self, rows: &[Seq], reason: &str) {
        for seq in rows {
            if let Some(row) = self.rows.get_mut(seq)
                && row.states.last() == Some(&JournalState::Unread)
            {
                row.states.push(JournalState::Denied(reason.to_owned()));
            }
        }
        self.line = Some(format!("{rows:?}: {reason}"));
    }

    /// What strangers are told is decided by no session.
    pub(super) fn keep_guests(&mut self, change: &GuestChange, swap: Swap) {
        if swap == Swap::Done {
            change.outbox.iter().for_each(|outbound| self.tell(outbound));
        }
        self.line = Some(format!("{} {swap:?}", change.account));
    }

    /// The yes that a step brought, if it is new. The rows that the step dealt with say whose it is.
    fn approved(&self, session: &Session, handled: &[Seq]) -> Option<Approved> {
        let hand = session.hand()?;
        let answered = hand.answered.as_ref()?;
        let approval = answered.question.approval.as_deref()?.clone();
        let Answer::Approved { consent, .. } = answered.answer else { return None };
        let call = answered.question.call.clone();
        let known =
            self.approvals.iter().any(|known| known.turn == hand.turn && known.call == call);
        let by = handled.first().and_then(|seq| self.rows.get(seq));
        (!known).then(|| Approved {
            turn: hand.turn.clone(),
            from: hand.from.id.clone(),
            call,
            approval,
            text: answered.question.text.clone(),
            consent,
            by: by.map(|row| row.inbound.from.id.clone()),
        })
    }

    /// A notice is a parcel that no session decided.
    pub(super) fn tell(&mut self, notice: &Outbound) {
        self.line = Some(notice.id.to_string());
        if !self.places.contains_key(&notice.id) {
            self.places.insert(notice.id.clone(), self.parcels.len());
            self.notices.insert(notice.id.clone());
            let key = super::key(&notice.to);
            self.parcels.push(Decided { outbound: notice.clone(), key, at: self.at });
        }
    }

    /// What takes away previews of deliveries that were decided in fewer parts than were named.
    fn left_of(&self, decided: &[Outbound]) -> Vec<Outbound> {
        let named = self.previews.keys().filter_map(|id| {
            let first = decided.iter().find(|outbound| outbound.id == id.with_part(0))?;
            let is_left = decided.iter().all(|outbound| outbound.id != *id);
            is_left.then(|| withdrawn(&Outbound { id: id.clone(), ..first.clone() }))
        });
        named.collect()
    }

    pub(super) fn preview(&mut self, outbound: &Outbound) {
        *self.previews.entry(outbound.id.clone()).or_default() += 1;
        self.line = Some(outbound.id.to_string());
    }

    pub(super) fn attempt(&mut self, id: &OutboundId, leave: Leave) {
        *self.attempts.entry(id.clone()).or_default() += u32::from(leave == Leave::Go);
        self.line = Some(format!("{id} {leave:?}"));
    }

    pub(super) fn settle(&mut self, id: &OutboundId, settlement: Settlement) {
        self.line = Some(format!("{id} {settlement:?}"));
        let is_final = |settlement: &Settlement| {
            matches!(
                settlement,
                Settlement::Delivered(_)
                    | Settlement::Undeliverable { .. }
                    | Settlement::Abandoned { .. }
            )
        };
        if !self.settled.get(id).is_some_and(is_final) && is_final(&settlement) {
            self.settled.insert(id.clone(), settlement);
        }
    }

    /// The parcel of that name.
    pub fn parcel(&self, id: &OutboundId) -> Option<&Decided> {
        self.places.get(id).map(|place| &self.parcels[*place])
    }
}

fn short(state: &JournalState) -> String {
    match state {
        JournalState::Bound(turn) => format!("turn {}", turn.number),
        JournalState::Ignored(_) => "ignored".into(),
        JournalState::Denied(_) => "denied".into(),
        JournalState::Quarantined(_) => "quarantined".into(),
        other => format!("{other:?}").to_lowercase(),
    }
}

fn kind(body: &EntryBody) -> &'static str {
    match body {
        EntryBody::Said { .. } => "said",
        EntryBody::Aside { .. } => "aside",
        EntryBody::Answered { .. } => "answered",
        EntryBody::Returned { .. } => "returned",
        EntryBody::Noticed { .. } => "noticed",
        EntryBody::Summary { .. } => "summary",
    }
}
