//! What is written down about something that arrived, from the journal to the outbox.

use talaria_model::{
    About, AccountId, Because, ChatId, Entry, EntryBody, EventId, Inbound, InboundKind, MessageId,
    OutboundId, SenderId, Seq, Timestamp, TurnId,
};
use talaria_session::SessionKey;

use crate::{AuditDeed, AuditRow, JournalState, ParcelState, Recorded};

/// Entries of a conversation that are looked at together for what came of one message.
pub const LOOKED_AT: usize = 400;

/// The most that are looked at for one message.
pub const MOST_LOOKED_AT: usize = 10 * LOOKED_AT;

/// How many events of an account are kept that were not answered and are not in the journal.
pub const UNANSWERED: usize = 50_000;

/// As much of an id is kept of such an event, in bytes, and twice as much of the rule. Platforms' own ids
/// are shorter.
const HEAD: usize = 64;

/// What somebody knows of what they ask about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clue {
    /// The platform's id of a message, or the id of an event.
    Id(String),
    /// Where it was said.
    Chat {
        /// On which account.
        account: AccountId,
        /// In which chat.
        chat: ChatId,
    },
}

impl Clue {
    /// Whether it leads to an event.
    pub fn fits(&self, inbound: &Inbound) -> bool {
        match self {
            Self::Id(id) => {
                inbound.id.as_str() == id
                    || message_of(inbound).is_some_and(|message| message.as_str() == id)
            }
            Self::Chat { account, chat } => {
                inbound.to.account == *account && inbound.to.chat.id == *chat
            }
        }
    }
}

/// An event that was not answered and is not in the journal, because there were too many like it that
/// day. What was said is not kept, and of everything only so much that its size is bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// The account it came in on.
    pub account: AccountId,
    /// Its id.
    pub event: EventId,
    /// The platform's id of what was said.
    pub message: Option<MessageId>,
    /// Who caused it.
    pub sender: SenderId,
    /// Where.
    pub chat: ChatId,
    /// Ignored or denied, and by which rule.
    pub state: JournalState,
    /// When it came in.
    pub at: Timestamp,
}

impl Unanswered {
    /// What is kept of something that came in on an account.
    pub fn of(account: &AccountId, inbound: &Inbound, state: JournalState, at: Timestamp) -> Self {
        let message = message_of(inbound);
        Self {
            account: account.clone(),
            event: EventId::new(head(inbound.id.as_str())).unwrap_or_else(|_| inbound.id.clone()),
            message: message.and_then(|id| MessageId::new(head(id.as_str())).ok()),
            sender: SenderId::new(head(inbound.from.id.as_str()))
                .unwrap_or_else(|_| inbound.from.id.clone()),
            chat: ChatId::new(head(inbound.to.chat.id.as_str()))
                .unwrap_or_else(|_| inbound.to.chat.id.clone()),
            state: match state {
                JournalState::Ignored(why) => JournalState::Ignored(shortened(why)),
                JournalState::Denied(why) => JournalState::Denied(shortened(why)),
                other => other,
            },
            at,
        }
    }

    /// Whether a clue leads to it.
    pub fn fits(&self, clue: &Clue) -> bool {
        match clue {
            Clue::Id(id) => {
                let message = self.message.as_ref().map(MessageId::as_str);
                self.event.as_str() == head(id) || message == Some(head(id))
            }
            Clue::Chat { account, chat } => {
                self.account == *account && self.chat.as_str() == head(chat.as_str())
            }
        }
    }
}

/// As much of an id as is kept of what was not answered.
pub fn head(id: &str) -> &str {
    &id[..id.floor_char_boundary(HEAD)]
}

fn shortened(mut rule: String) -> String {
    rule.truncate(rule.floor_char_boundary(2 * HEAD));
    rule
}

/// Everything that is written down about one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    /// Its place in the journal.
    pub seq: Seq,
    /// When it came in.
    pub at: Timestamp,
    /// The conversation it belongs to; none when it was not let in.
    pub key: Option<SessionKey>,
    /// What arrived.
    pub inbound: Inbound,
    /// What became of it.
    pub state: JournalState,
    /// Turns of its conversation that were at work between its arrival and its being taken in.
    pub behind: Vec<TurnId>,
    /// What was recorded of it and of what came of it, oldest first.
    pub entries: Vec<Recorded>,
    /// What was decided to be delivered because of it, in order, whatever became of that. Of one that
    /// was not let in, what its sender was told.
    pub parcels: Vec<Sent>,
    /// What is on record of the approvals that its turn asked for, oldest first.
    pub approvals: Vec<AuditRow>,
    /// Whether everything was looked at that may have to do with it.
    pub coverage: Coverage,
}

/// Whether everything was looked at that may have to do with something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Coverage {
    /// It was.
    #[default]
    Whole,
    /// There is more than is ever looked at.
    Part,
}

impl Traced {
    /// The turn that answers it, or has. One that was taken again goes on as another.
    pub fn turn(&self) -> Option<&TurnId> {
        let JournalState::Bound(turn) = &self.state else { return None };
        let last = self.entries.iter().rev().find_map(|recorded| recorded.entry.turn.as_ref());
        Some(last.unwrap_or(turn))
    }
}

/// A parcel, without what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Which.
    pub id: OutboundId,
    /// How far it is.
    pub state: ParcelState,
    /// The message that shows it.
    pub shown: Option<MessageId>,
    /// How often it may have left this machine.
    pub attempts: u32,
    /// Why it will never be delivered.
    pub reason: Option<String>,
    /// When it was decided.
    pub at: Timestamp,
    /// When it was delivered or given up; none while neither has happened, and of what was settled
    /// when nobody kept the moment.
    pub settled: Option<Timestamp>,
}

/// The platform's id of what was said.
pub fn message_of(inbound: &Inbound) -> Option<&MessageId> {
    match &inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => message.id.as_ref(),
        InboundKind::Pressed(_) | InboundKind::Stopped => None,
    }
}

/// What a conversation recorded that has to do with one event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Trail {
    /// The turns that came before it was taken in.
    pub behind: Vec<TurnId>,
    /// The entries, oldest first.
    pub entries: Vec<Recorded>,
    /// Whether that is all of it.
    pub coverage: Coverage,
}

impl Trail {
    /// What has to do with an event that arrived as this row. `page` reads the next [`LOOKED_AT`] entries of the
    /// conversation since it arrived, behind the position of the last one read.
    pub fn follow<E>(
        seq: Seq,
        inbound: &Inbound,
        state: &JournalState,
        mut page: impl FnMut(Option<u64>) -> Result<Vec<Recorded>, E>,
    ) -> Result<Self, E> {
        let mut since: Vec<Recorded> = Vec::new();
        loop {
            let some = page(since.last().map(|recorded| recorded.position))?;
            let is_last = some.len() < LOOKED_AT;
            since.extend(some);
            let coverage = match is_last || is_over(inbound, state, &since) {
                true => Coverage::Whole,
                false if since.len() >= MOST_LOOKED_AT => Coverage::Part,
                false => continue,
            };
            let (behind, entries) = related(seq, inbound, state, since);
            return Ok(Self { behind, entries, coverage });
        }
    }
}

/// Whether the turn of an event has left all that it will among these entries. What has no turn is answered at
/// once or soon.
fn is_over(inbound: &Inbound, state: &JournalState, since: &[Recorded]) -> bool {
    let Some(own) = own_turns(inbound, state, since) else { return true };
    let turns = since.iter().filter_map(|recorded| recorded.entry.turn.as_ref());
    let mut later = turns.skip_while(|turn| !own.contains(turn));
    later.any(|turn| !own.contains(turn))
}

/// The turn that took an event in, and those that took it again; none where no turn has to do with it.
fn own_turns(inbound: &Inbound, state: &JournalState, since: &[Recorded]) -> Option<Vec<TurnId>> {
    let first = match state {
        JournalState::Bound(turn) => turn,
        JournalState::Quarantined(_) => {
            let taken = since.iter().find(|recorded| says(&recorded.entry, inbound))?;
            taken.entry.turn.as_ref()?
        }
        _ => return None,
    };
    let mut own = vec![first.clone()];
    for Entry { turn, about, .. } in since.iter().map(|recorded| &recorded.entry) {
        if let (Some(turn), Some(About::Again(before))) = (turn, about)
            && own.contains(before)
        {
            own.push(turn.clone());
        }
    }
    Some(own)
}

/// Of the entries of a conversation since an event arrived as this row, those that have to do with it, and the
/// turns that came before it was taken in.
fn related(
    seq: Seq,
    inbound: &Inbound,
    state: &JournalState,
    since: Vec<Recorded>,
) -> (Vec<TurnId>, Vec<Recorded>) {
    let is_about_row = |recorded: &Recorded| recorded.entry.about == Some(About::Row(seq));
    if let Some(own) = own_turns(inbound, state, &since) {
        let is_own = |recorded: &Recorded| {
            recorded.entry.turn.as_ref().is_some_and(|turn| own.contains(turn))
        };
        let is_left = |recorded: &Recorded| match &recorded.entry.about {
            Some(About::Left(left)) => own.contains(left),
            Some(About::Row(_) | About::Again(_)) | None => false,
        };
        let begins =
            since.iter().position(|recorded| is_own(recorded) && says(&recorded.entry, inbound));
        let begins = begins.or_else(|| since.iter().position(is_own)).unwrap_or(since.len());
        let behind = turns(&since[..begins], &own);
        let entries = since.into_iter().enumerate().filter(|(place, recorded)| {
            // That it waits is said before it is taken in.
            is_about_row(recorded) || *place >= begins && (is_own(recorded) || is_left(recorded))
        });
        return (behind, entries.map(|(_, recorded)| recorded).collect());
    }
    match state {
        JournalState::Handled => {
            let begins = since.iter().position(|recorded| says(&recorded.entry, inbound));
            let Some(begins) = begins else {
                return (Vec::new(), since.into_iter().filter(is_about_row).collect());
            };
            let behind = turns(&since[..begins], &[]);
            let at = since[begins].entry.at;
            // What one step records, it records at one moment, unless it says what else it is about.
            let answers = |recorded: &&Recorded| {
                recorded.entry.at == at
                    && matches!(recorded.entry.body, EntryBody::Noticed { .. })
                    && recorded.entry.about.is_none()
            };
            let at_once = since[begins + 1..].iter().take_while(answers).count();
            let own = since.into_iter().skip(begins).enumerate();
            let own = own.filter(|(place, recorded)| *place <= at_once || is_about_row(recorded));
            (behind, own.map(|(_, recorded)| recorded).collect())
        }
        JournalState::Unread | JournalState::Taken => {
            // What has to be found out is taken in before it is answered.
            let is_asked = |recorded: &&Recorded| {
                matches!(recorded.entry.body, EntryBody::Aside { .. })
                    && says(&recorded.entry, inbound)
            };
            let asked = since.iter().find(is_asked).map(|recorded| recorded.position);
            let behind = turns(&since, &[]);
            let is_its =
                |recorded: &Recorded| is_about_row(recorded) || asked == Some(recorded.position);
            (behind, since.into_iter().filter(is_its).collect())
        }
        // It was given up, and whoever waited was told.
        JournalState::Ignored(_) | JournalState::Quarantined(_) | JournalState::Bound(_) => {
            (Vec::new(), since.into_iter().filter(is_about_row).collect())
        }
        JournalState::Denied(_) => (Vec::new(), Vec::new()),
    }
}

/// Whether an entry is what arrived. Where the platform names no messages, it is told by who said what.
fn says(entry: &Entry, inbound: &Inbound) -> bool {
    let (EntryBody::Said { from, text, message, .. }
    | EntryBody::Aside { from, text, message, .. }) = &entry.body
    else {
        return false;
    };
    match (&inbound.kind, message_of(inbound)) {
        (_, Some(id)) => message.as_ref() == Some(id),
        (InboundKind::Said(said) | InboundKind::Edited(said), None) => {
            from.id == inbound.from.id && *text == said.words()
        }
        (InboundKind::Pressed(_) | InboundKind::Stopped, None) => false,
    }
}

fn turns(entries: &[Recorded], but: &[TurnId]) -> Vec<TurnId> {
    let mut turns: Vec<TurnId> = Vec::new();
    for turn in entries.iter().filter_map(|recorded| recorded.entry.turn.as_ref()) {
        if !but.contains(turn) && !turns.contains(turn) {
            turns.push(turn.clone());
        }
    }
    turns
}

/// How ids of what a stranger is told begin, who is told it because of this row.
pub fn letters_about(seq: Seq) -> String {
    format!("pairing_{}_", seq.0)
}

/// What approvals were asked for, and between which moments they were decided about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    digests: Vec<String>,
    /// The first moment.
    pub from: Timestamp,
    /// The last moment.
    pub upto: Timestamp,
}

impl Asked {
    /// What these entries of one turn ask for, if anything.
    pub fn in_entries(entries: &[Recorded]) -> Option<Self> {
        let asks = |recorded: &Recorded| match recorded.entry.because {
            Some(Because::Approval(digest)) => Some((recorded.entry.at, digest.to_string())),
            _ => None,
        };
        let asked: Vec<(Timestamp, String)> = entries.iter().filter_map(asks).collect();
        let from = asked.first()?.0;
        let upto = entries.last()?.entry.at;
        Some(Self { digests: asked.into_iter().map(|(_, digest)| digest).collect(), from, upto })
    }

    /// Whether a row of the record is about one of them.
    pub fn is_about(&self, row: &AuditRow) -> bool {
        let AuditRow { at, audited, .. } = row;
        matches!(audited.deed, AuditDeed::ApprovalAsked | AuditDeed::Approved | AuditDeed::Denied)
            && (self.from..=self.upto).contains(at)
            && self.digests.iter().any(|digest| audited.detail.contains(digest.as_str()))
    }
}

/// The deliveries that these entries name, each once, in order.
pub fn deliveries<'a>(entries: impl IntoIterator<Item = &'a Recorded>) -> Vec<OutboundId> {
    let mut named: Vec<OutboundId> = Vec::new();
    for recorded in entries {
        let sent = match &recorded.entry.body {
            EntryBody::Answered { sent, .. } => sent.as_ref(),
            EntryBody::Noticed { sent, .. } => Some(sent),
            _ => None,
        };
        let first = sent.map(|id| id.with_part(0));
        named.extend(first.filter(|id| !named.contains(id)));
    }
    named
}
