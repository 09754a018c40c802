//! What a store in memory holds, and what follows from it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::convert::Infallible;

use talaria_model::{
    AccountId, Act, Address, Chat, Content, Entry, EventId, FileId, Grant, Inbound, InboundKind,
    Outbound, OutboundId, Privacy, Seq, SessionId, Timestamp,
};
use talaria_session::budget::{Day, Payer, Spent};
use talaria_session::{Past, Retired, Session, SessionKey};

use crate::{
    Asked, AuditRow, Audited, Branch, Commit, Guests, JournalState, LOOKED_AT, Life, Owner,
    Presence, Progress, Recorded, Rewind, Rewound, SearchScope, Sent, Stage, StoreError, Told,
    Traced, Trail, Unanswered, Use, deliveries, files_of_act, files_of_entry, files_of_inbound,
    is_spared, letters_about, remembered, withdrawn, without,
};

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// A life of the process has begun and has not been closed.
    pub(super) alive: bool,
    pub(super) cursors: HashMap<AccountId, String>,
    /// In the order in which they were first mentioned, which is the order of pages.
    pub(super) keys: Vec<SessionKey>,
    pub(super) addresses: Vec<Address>,
    pub(super) sessions: HashMap<SessionKey, Session>,
    pub(super) owners: HashMap<SessionKey, Owner>,
    /// In the order in which they began.
    pub(super) lives: Vec<Begun>,
    pub(super) last_seq: u64,
    pub(super) journal: BTreeMap<u64, Row>,
    pub(super) seen: HashMap<(AccountId, EventId), Seq>,
    pub(super) last_position: u64,
    pub(super) entries: BTreeMap<u64, Written>,
    /// With the life they were made in, until that is forgotten.
    pub(super) rewinds: Vec<(Option<SessionId>, Rewound)>,
    pub(super) last_place: u64,
    pub(super) outbox: BTreeMap<u64, Post>,
    pub(super) places: HashMap<OutboundId, u64>,
    pub(super) guests: HashMap<AccountId, Guests>,
    pub(super) audit: Vec<AuditRow>,
    /// In the order in which they were made.
    pub(super) grants: Vec<Grant>,
    pub(super) spending: BTreeMap<(Day, Payer), Spent>,
    /// The oldest first.
    pub(super) unanswered: BTreeMap<AccountId, VecDeque<Unanswered>>,
}

/// A life that has begun.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) id: SessionId,
    pub(super) key: SessionKey,
    pub(super) retired: Option<(Past, Option<Retired>)>,
    pub(super) branched_from: Option<SessionId>,
    pub(super) borrowed: Vec<Borrowed>,
    pub(super) put_away: u32,
}

/// A stretch of another life's entries, as they stood when a branch was made.
#[derive(Debug, Clone)]
pub(super) struct Borrowed {
    pub(super) from: SessionId,
    pub(super) numbers: (u32, u32),
    /// The newest entry and the number of rewinds at that time.
    pub(super) position: u64,
    pub(super) rewinds: usize,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) account: AccountId,
    pub(super) key: SessionKey,
    pub(super) inbound: Inbound,
    pub(super) state: JournalState,
    pub(super) at: Timestamp,
}

impl Row {
    /// What was made of a recording are words, too.
    pub(super) fn conceal(&mut self, words: String) {
        if let InboundKind::Said(message) | InboundKind::Edited(message) = &mut self.inbound.kind {
            message.transcripts.clear();
            message.text = words;
        }
    }
}

#[derive(Debug)]
pub(super) struct Written {
    pub(super) key: SessionKey,
    pub(super) recorded: Recorded,
    /// Its place among the rewinds.
    pub(super) rewound: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Post {
    pub(super) outbound: Outbound,
    pub(super) progress: Progress,
    pub(super) reason: Option<String>,
    pub(super) told: Told,
    pub(super) at: Timestamp,
    pub(super) settled: Option<Timestamp>,
}

impl Post {
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.progress.stage, Stage::Undeliverable | Stage::Abandoned)
    }

    /// Confidential words are kept for as long as they have to be said.
    pub(super) fn withhold(&mut self) {
        if self.progress.has_ended() && self.outbound.act.privacy() == Privacy::Confidential {
            self.outbound.act = Act::Post(Content::withheld());
        }
    }

    pub(super) fn is_untold(&self) -> bool {
        self.has_failed() && self.told == Told::No
    }

    pub(super) fn reason(&self) -> String {
        self.reason.clone().unwrap_or_default()
    }
}

impl Begun {
    /// Whether an entry of another life is one of its own too.
    pub(super) fn borrows(&self, written: &Written) -> bool {
        let Recorded { position, session, entry } = &written.recorded;
        self.borrowed.iter().any(|borrowed| {
            borrowed.from == *session
                && (borrowed.numbers.0..=borrowed.numbers.1).contains(&entry.number)
                && *position <= borrowed.position
                && written.rewound.is_none_or(|place| place >= borrowed.rewinds)
        })
    }
}

impl Memory {
    pub(super) fn traced(&self, seq: Seq, row: &Row) -> Traced {
        let denied = matches!(row.state, JournalState::Denied(_));
        let since = self.entries.values().filter(|written| {
            !denied && written.key == row.key && written.recorded.entry.at >= row.at
        });
        let page = |behind: Option<u64>| {
            let since = since.clone().map(|written| &written.recorded);
            let since = since.filter(|recorded| Some(recorded.position) > behind);
            Ok::<_, Infallible>(since.take(LOOKED_AT).cloned().collect())
        };
        let Ok(Trail { behind, entries, coverage }) =
            Trail::follow(seq, &row.inbound, &row.state, page);
        let (named, letters) = (deliveries(&entries), letters_about(seq));
        let of = |id: &OutboundId| match denied {
            true => id.session.as_str().starts_with(&letters).then_some(0),
            false => named.iter().position(|named| id.with_part(0) == *named),
        };
        let approvals = Asked::in_entries(&entries).map(|asked| {
            self.audit.iter().filter(|row| asked.is_about(row)).cloned().collect::<Vec<_>>()
        });
        let mut parcels: Vec<Sent> = self
            .outbox
            .values()
            .filter(|post| of(&post.outbound.id).is_some())
            .map(|post| Sent {
                id: post.outbound.id.clone(),
                state: post.progress.state(),
                shown: post.progress.shown.clone(),
                attempts: post.progress.attempts,
                reason: post.reason.clone(),
                at: post.at,
                settled: post.settled,
            })
            .collect();
        parcels.sort_by_key(|sent| (of(&sent.id), sent.id.part));
        Traced {
            seq,
            at: row.at,
            key: (!denied).then(|| row.key.clone()),
            inbound: row.inbound.clone(),
            state: row.state.clone(),
            behind,
            entries,
            parcels,
            approvals: approvals.unwrap_or_default(),
            coverage,
        }
    }

    pub(super) fn mention(&mut self, key: &SessionKey) {
        if self.keys.contains(key) {
            return;
        }
        self.keys.push(key.clone());
        // Chats are known in the order in which something was first heard of them or said in them.
        if let Some(id) = key.chat.clone() {
            let (account, thread) = (key.account.clone(), key.thread.clone());
            self.mention_address(&Address { account, chat: Chat { id, kind: key.kind }, thread });
        }
    }

    pub(super) fn mention_address(&mut self, address: &Address) {
        if !self.addresses.contains(address) {
            self.addresses.push(address.clone());
        }
    }

    pub(super) fn record(&mut self, at: Timestamp, audited: Vec<Audited>) {
        for audited in audited {
            let last = self.audit.last().map(|row| (row.seq, row.hash.as_str()));
            let row = AuditRow::after(last, at, audited);
            self.audit.push(row);
        }
    }

    pub(super) fn put(&mut self, outbound: Outbound, progress: Progress, at: Timestamp) {
        self.mention_address(&outbound.to);
        self.last_place += 1;
        self.places.insert(outbound.id.clone(), self.last_place);
        let (reason, told) = (None, Told::No);
        self.outbox
            .insert(self.last_place, Post { outbound, progress, reason, told, at, settled: None });
    }

    pub(super) fn post_mut(&mut self, id: &OutboundId) -> Option<&mut Post> {
        self.outbox.get_mut(self.places.get(id)?)
    }

    /// A preview's text takes its place at the end: order is the order of decisions.
    pub(super) fn decide(&mut self, outbound: Outbound, at: Timestamp) {
        let mut progress = Progress::decided();
        if let Some(place) = self.places.get(&outbound.id) {
            if self.outbox[place].progress.stage != Stage::Previewing {
                return;
            }
            if let Some(preview) = self.outbox.remove(place) {
                progress = preview.progress;
                progress.decide();
            }
        }
        self.put(outbound, progress, at);
    }

    /// What is shown of a delivery beyond its last part is taken away.
    pub(super) fn withdraw_rest(&mut self, delivery: &OutboundId, at: Timestamp) {
        let is_left = |post: &&Post| {
            post.progress.stage == Stage::Previewing && post.outbound.id.with_part(0) == *delivery
        };
        let left: Vec<Outbound> =
            self.outbox.values().filter(is_left).map(|post| withdrawn(&post.outbound)).collect();
        for outbound in left {
            self.decide(outbound, at);
        }
    }

    pub(super) fn has_unread(&self, key: &SessionKey) -> bool {
        self.journal.values().any(|row| row.key == *key && row.state == JournalState::Unread)
    }

    pub(super) fn use_of(&self, file: &FileId) -> Use {
        let journal = self
            .journal
            .values()
            .filter(|row| files_of_inbound(&row.inbound).any(|held| held == file))
            .map(|row| match row.state {
                JournalState::Unread | JournalState::Taken => Use::Present,
                // Nobody who was not let in decides what is kept.
                JournalState::Denied(_) => Use::None,
                _ => Use::Past,
            });
        let entries = self
            .entries
            .values()
            .filter(|written| files_of_entry(&written.recorded.entry.body).any(|held| held == file))
            .map(|written| if self.is_needed(written) { Use::Present } else { Use::Past });
        let outbox = self
            .outbox
            .values()
            .filter(|post| files_of_act(&post.outbound.act).any(|held| held == file))
            .map(|post| if post.progress.is_open() { Use::Present } else { Use::Past });
        journal.chain(entries).chain(outbox).max().unwrap_or(Use::None)
    }

    /// Whether a turn is in hand in the conversation of an entry, or in a branch that has it.
    pub(super) fn is_needed(&self, written: &Written) -> bool {
        let mut in_hand = self.sessions.values().filter(|session| session.hand().is_some());
        in_hand.any(|session| {
            let begun = self.begun(&session.id);
            session.key == written.key || begun.is_some_and(|begun| begun.borrows(written))
        })
    }

    pub(super) fn is_restless(&self, key: &SessionKey) -> bool {
        self.sessions.get(key).is_some_and(Session::is_restless) || self.has_unread(key)
    }

    pub(super) fn begun(&self, life: &SessionId) -> Option<&Begun> {
        self.lives.iter().find(|begun| begun.id == *life)
    }

    pub(super) fn begun_mut(&mut self, life: &SessionId) -> Option<&mut Begun> {
        self.lives.iter_mut().find(|begun| begun.id == *life)
    }

    pub(super) fn owner(&self, key: &SessionKey) -> Owner {
        self.owners.get(key).cloned().unwrap_or_else(|| Owner::Conversation(key.clone()))
    }

    pub(super) fn holds(&self, scope: &SearchScope, key: &SessionKey) -> bool {
        match scope {
            SearchScope::Everything => true,
            SearchScope::Accounts(accounts) => accounts.contains(&key.account),
            SearchScope::Owner(owner) => self.owner(key) == *owner,
            SearchScope::Conversation(only) => key == only,
        }
    }

    /// The lives that a step names, or why it must not be taken.
    pub(super) fn check(&self, commit: &Commit) -> Result<HashSet<SessionId>, StoreError> {
        let key = &commit.session.key;
        let lives: HashSet<SessionId> = std::iter::once(&commit.session.id)
            .chain(commit.retired.iter().map(|retirement| &retirement.past.id))
            .chain(commit.branch.iter().map(|branch| &branch.to))
            .chain(commit.rewinds.iter().map(|rewind| &rewind.session))
            .chain(commit.entries.iter().map(|(life, _)| life))
            .chain(commit.outbox.iter().map(|outbound| &outbound.id.session))
            .cloned()
            .collect();
        let damaged = |reason| Err(StoreError::Damaged { reason });
        for life in &lives {
            if self.begun(life).is_some_and(|begun| begun.key != *key) {
                return damaged(format!("{life} is a life of another conversation than {key}"));
            }
        }
        if let Some(Branch { from, to, .. }) = &commit.branch {
            if self.begun(to).is_some() {
                return damaged(format!("{to} has begun and cannot become a branch"));
            }
            let owner = Owner::of(&commit.session);
            let own = |begun: &Begun| begun.key == *key || self.owner(&begun.key) == owner;
            if !self.begun(from).is_some_and(own) {
                return damaged(format!("{from} is no life of the owner of {key}"));
            }
        }
        Ok(lives)
    }

    pub(super) fn branch(&mut self, branch: &Branch) {
        let Some(source) = self.begun(&branch.from) else { return };
        let (position, rewinds) = (self.last_position, self.rewinds.len());
        let whole =
            Borrowed { from: branch.from.clone(), numbers: (0, u32::MAX), position, rewinds };
        let mut borrowed: Vec<Borrowed> = source.borrowed.iter().cloned().chain([whole]).collect();
        for borrowed in &mut borrowed {
            borrowed.numbers.1 = borrowed.numbers.1.min(branch.upto);
        }
        borrowed.retain(|borrowed| borrowed.numbers.0 <= borrowed.numbers.1);
        let from = Some(branch.from.clone());
        if let Some(begun) = self.begun_mut(&branch.to) {
            (begun.borrowed, begun.branched_from) = (borrowed, from);
        }
    }

    pub(super) fn rewind(&mut self, rewind: &Rewind, at: Timestamp) {
        let Rewind { session: life, from, upto, by } = rewind.clone();
        let within = |entry: &Entry| (from..=upto).contains(&entry.number);
        let count = self.standing(&life).filter(|entry| within(&entry.recorded.entry)).count();
        let place = self.rewinds.len();
        for written in self.entries.values_mut() {
            let recorded = &written.recorded;
            if recorded.session == life && within(&recorded.entry) && written.rewound.is_none() {
                written.rewound = Some(place);
            }
        }
        if let Some(begun) = self.begun_mut(&life) {
            let cut = |borrowed: Borrowed| {
                without(borrowed.numbers, (from, upto))
                    .into_iter()
                    .map(move |numbers| Borrowed { numbers, ..borrowed.clone() })
            };
            begun.borrowed =
                std::mem::take(&mut begun.borrowed).into_iter().flat_map(cut).collect();
        }
        let entries = u32::try_from(count).unwrap_or(u32::MAX);
        self.rewinds.push((Some(life), Rewound { from, upto, entries, by, at }));
    }

    /// The entries of a life, oldest first, with what it has in common with others.
    pub(super) fn all_of<'a>(
        &'a self,
        life: &'a SessionId,
    ) -> impl DoubleEndedIterator<Item = &'a Written> {
        let begun = self.begun(life);
        let lent = move |written: &Written| begun.is_some_and(|begun| begun.borrows(written));
        let entries = self.entries.values();
        entries.filter(move |written| written.recorded.session == *life || lent(written))
    }

    pub(super) fn standing<'a>(
        &'a self,
        life: &'a SessionId,
    ) -> impl DoubleEndedIterator<Item = &'a Written> {
        let own = move |written: &Written| written.recorded.session == *life;
        self.all_of(life).filter(move |written| !own(written) || written.rewound.is_none())
    }

    pub(super) fn life(&self, begun: &Begun) -> Life {
        let session = self.sessions.get(&begun.key).filter(|session| session.id == begun.id);
        let (past, presence) = match (session, &begun.retired) {
            (Some(session), _) => (session.past(), Presence::Present),
            (None, Some((past, why))) => (past.clone(), Presence::Past { why: *why }),
            (None, None) => {
                let posts = self.outbox.values().map(|post| &post.outbound.id);
                let deliveries = posts.filter(|id| id.session == begun.id).map(|id| id.delivery);
                let own = self.entries.values().map(|written| &written.recorded);
                let own = own.filter(|recorded| recorded.session == begun.id);
                let entries = own.map(|recorded| &recorded.entry);
                let past = remembered(&begun.id, entries, deliveries.max().unwrap_or(0));
                (past, Presence::Past { why: None })
            }
        };
        Life {
            key: begun.key.clone(),
            owner: self.owner(&begun.key),
            past,
            presence,
            branched_from: begun.branched_from.clone(),
        }
    }

    /// The most recently used first.
    pub(super) fn lives_in(&self, scope: &SearchScope) -> Vec<Life> {
        let in_scope = self.lives.iter().rev().filter(|begun| self.holds(scope, &begun.key));
        let mut lives: Vec<Life> = in_scope.map(|begun| self.life(begun)).collect();
        lives.sort_by_key(|life| Reverse(life.past.active));
        lives
    }

    pub(super) fn is_busy(&self, begun: &Begun, since: Timestamp, spare: &[SessionKey]) -> bool {
        let is_source = |other: &Begun| {
            other.id != begun.id && other.borrowed.iter().any(|borrowed| borrowed.from == begun.id)
        };
        let is_open = |post: &Post| {
            post.outbound.id.session == begun.id
                && (post.progress.is_open() || post.progress.stage == Stage::Previewing)
        };
        let present = self.sessions.get(&begun.key).filter(|session| session.id == begun.id);
        self.lives.iter().any(is_source)
            || self.outbox.values().any(is_open)
            || present.is_some_and(|session| {
                is_spared(session, since)
                    || spare.contains(&session.key)
                    || self.has_unread(&session.key)
            })
    }
}
