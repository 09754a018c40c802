//! The store in memory: the contract in its plainest form. Other stores are compared with it.
//!
//! Clones share what they hold, so a clone taken after a "crash" is the store as it comes back. It
//! looks through everything it has to answer a question: it is for tests and short lives.

mod kept;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use talaria_model::{
    AccountId, Act, Address, Digest, Draft, Entry, FileId, Grant, Inbound, MessageId, Outbound,
    OutboundId, Seq, SessionId, Timestamp,
};
use talaria_session::budget::{Day, Payer, Spent};
use talaria_session::{Ended, Session, SessionKey};

use crate::{
    Admitted, AuditRow, Audited, Closeness, Clue, Commit, Counts, Crossing, Delivered, Failed, Fit,
    Found, GuestChange, Guests, History, JournalState, Kept, Leave, Life, MOST_GRANTS, Name, Named,
    Owner, Parcel, ParcelState, Progress, Query, Queue, Queues, Reading, Recorded, Rewound,
    SearchScope, Settlement, Spending, Stage, Store, StoreError, Summary, Swap, Told, Totals,
    Traced, UNANSWERED, Unanswered, Untold, Use, Walk, Wanted, may_expire, visible,
};

use kept::{Begun, Memory, Post, Row, Written};

/// A store whose content lives as long as its last clone.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    kept: Arc<Mutex<Memory>>,
}

impl MemoryStore {
    /// A store with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether these words stand anywhere in what is kept, read by anybody or not.
    pub fn mentions(&self, words: &str) -> bool {
        let kept = self.lock();
        // Printed, a parcel does not show what is confidential in it.
        let says = |act: &Act| match act {
            Act::Post(content) | Act::Edit { content, .. } | Act::Draft(Draft { content, .. }) => {
                content.text.contains(words)
            }
            Act::Delete { .. } | Act::React { .. } | Act::Mark { .. } => false,
            Act::Typing | Act::Rest => false,
        };
        kept.outbox.values().any(|post| says(&post.outbound.act))
            || format!("{:?}", *kept).contains(words)
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn admit(&self, delivered: Delivered) -> Result<Vec<Admitted>, StoreError> {
        let mut kept = self.lock();
        let Delivered { account, events, cursor, at } = delivered;
        let mut admitted = Vec::with_capacity(events.len());
        for (key, inbound, state) in events {
            let event = (account.clone(), inbound.id.clone());
            if let Some(seq) = kept.seen.get(&event) {
                admitted.push(Admitted::Repeated(*seq));
                continue;
            }
            if !matches!(state, JournalState::Denied(_)) {
                kept.mention(&key);
            }
            kept.last_seq += 1;
            let seq = kept.last_seq;
            kept.seen.insert(event, Seq(seq));
            kept.journal.insert(seq, Row { account: account.clone(), key, inbound, state, at });
            admitted.push(Admitted::Journalled(Seq(seq)));
        }
        if let Some(cursor) = cursor {
            kept.cursors.insert(account, cursor);
        }
        Ok(admitted)
    }

    async fn amend(&self, seq: Seq, inbound: &Inbound) -> Result<(), StoreError> {
        let mut kept = self.lock();
        let row = kept.journal.get_mut(&seq.0);
        if let Some(row) = row.filter(|row| row.state == JournalState::Unread) {
            row.inbound = inbound.clone();
        }
        Ok(())
    }

    async fn ignore(&self, seq: Seq, inbound: &Inbound, reason: &str) -> Result<(), StoreError> {
        let mut kept = self.lock();
        let row = kept.journal.get_mut(&seq.0);
        if let Some(row) = row.filter(|row| row.state == JournalState::Unread) {
            row.inbound = inbound.clone();
            row.state = JournalState::Ignored(reason.to_owned());
        }
        Ok(())
    }

    async fn deny(&self, rows: &[Seq], reason: &str) -> Result<(), StoreError> {
        let mut kept = self.lock();
        for seq in rows {
            let row = kept.journal.get_mut(&seq.0);
            if let Some(row) = row.filter(|row| row.state == JournalState::Unread) {
                row.state = JournalState::Denied(reason.to_owned());
            }
        }
        Ok(())
    }

    async fn guests(&self, account: &AccountId) -> Result<Guests, StoreError> {
        Ok(self.lock().guests.get(account).cloned().unwrap_or_default())
    }

    async fn keep_guests(&self, change: GuestChange) -> Result<Swap, StoreError> {
        let mut kept = self.lock();
        let GuestChange { account, read, book, outbox, audited, at } = change;
        let revision = kept.guests.get(&account).map_or(0, |guests| guests.revision);
        if revision != read {
            return Ok(Swap::Stale);
        }
        kept.guests.insert(account, Guests { revision: revision + 1, book });
        outbox.into_iter().for_each(|outbound| kept.decide(outbound, at));
        kept.record(at, audited);
        Ok(Swap::Done)
    }

    async fn audit(&self, at: Timestamp, audited: Vec<Audited>) -> Result<(), StoreError> {
        self.lock().record(at, audited);
        Ok(())
    }

    async fn audited(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>, StoreError> {
        let kept = self.lock();
        let later = kept.audit.iter().filter(|row| row.seq > after);
        Ok(later.take(limit).cloned().collect())
    }

    async fn cursor(&self, account: &AccountId) -> Result<Option<String>, StoreError> {
        Ok(self.lock().cursors.get(account).cloned())
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<Session>, StoreError> {
        let session = self.lock().sessions.get(key).cloned();
        Ok(session.map(|session| Session { rules: Default::default(), ..session }))
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        let mut kept = self.lock();
        let lives = kept.check(&commit)?;
        let Commit { session, journal, concealed, forwarded, dropped, retired, branch, .. } =
            commit;
        let Commit { rewinds, entries, outbox, grants, audited, spending, at, .. } = commit;
        let key = session.key.clone();

        kept.mention(&key);
        kept.owners.insert(key.clone(), Owner::of(&session));
        // In the order in which the step names them.
        let named = std::iter::once(&session.id)
            .chain(retired.iter().map(|retirement| &retirement.past.id))
            .chain(branch.iter().map(|branch| &branch.to))
            .chain(rewinds.iter().map(|rewind| &rewind.session))
            .chain(entries.iter().map(|(life, _)| life))
            .chain(outbox.iter().map(|outbound| &outbound.id.session));
        for life in named {
            if kept.begun(life).is_none() {
                kept.lives.push(Begun {
                    id: life.clone(),
                    key: key.clone(),
                    retired: None,
                    branched_from: None,
                    borrowed: Vec::new(),
                    put_away: 0,
                });
            }
        }
        for change in journal {
            if let Some(row) = kept.journal.get_mut(&change.seq.0)
                && !matches!(row.state, JournalState::Denied(_))
            {
                row.state = change.state;
            }
        }
        for (seq, words) in concealed {
            if let Some(row) = kept.journal.get_mut(&seq.0) {
                row.conceal(words);
            }
        }
        for (seq, to) in forwarded {
            kept.mention(&to);
            if let Some(row) = kept.journal.get_mut(&seq.0)
                && !matches!(row.state, JournalState::Denied(_))
            {
                (row.key, row.state) = (to, JournalState::Unread);
            }
        }
        if let Some(dropped) = dropped {
            for (_, row) in kept.journal.range_mut(..dropped.before.0) {
                if row.key == key && row.state == JournalState::Unread {
                    row.state = JournalState::Ignored(dropped.reason.clone());
                }
            }
        }
        if let Some(branch) = branch {
            kept.branch(&branch);
        }
        for rewind in rewinds {
            kept.rewind(&rewind, at);
        }
        for (session, entry) in entries {
            kept.last_position += 1;
            let position = kept.last_position;
            let recorded = Recorded { position, session, entry };
            kept.entries.insert(position, Written { key: key.clone(), recorded, rewound: None });
        }
        for grant in grants {
            kept.grants.retain(|known| known.digest != grant.digest);
            kept.grants.push(grant);
        }
        let too_many = kept.grants.len().saturating_sub(MOST_GRANTS);
        kept.grants.drain(..too_many);
        kept.record(at, audited);
        for Spending { day, payer, spent } in spending {
            *kept.spending.entry((day, payer)).or_default() += spent;
        }
        let decided: Vec<OutboundId> =
            outbox.iter().map(|outbound| outbound.id.with_part(0)).collect();
        for outbound in outbox {
            kept.decide(outbound, at);
        }
        for delivery in &decided {
            kept.withdraw_rest(delivery, at);
        }
        if session.hand().is_none() {
            for post in kept.outbox.values_mut() {
                if lives.contains(&post.outbound.id.session) {
                    post.progress.end_preview();
                }
            }
        }
        if let Some(retirement) = retired
            && let Some(begun) = kept.begun_mut(&retirement.past.id)
        {
            begun.retired = Some((retirement.past, Some(retirement.why)));
        }
        kept.sessions.insert(key, session);
        Ok(())
    }

    async fn spent(&self, day: Day, payer: &Payer) -> Result<Spent, StoreError> {
        Ok(self.lock().spending.get(&(day, payer.clone())).copied().unwrap_or_default())
    }

    async fn spending(&self, day: Day, limit: usize) -> Result<Vec<(Payer, Spent)>, StoreError> {
        let kept = self.lock();
        let that_day = kept.spending.iter().filter(|((on, _), _)| *on == day);
        Ok(that_day.map(|((_, payer), spent)| (payer.clone(), *spent)).take(limit).collect())
    }

    async fn forget_spending(&self, before: Day) -> Result<u64, StoreError> {
        let mut kept = self.lock();
        let known = kept.spending.len();
        kept.spending.retain(|(day, _), _| *day >= before);
        Ok((known - kept.spending.len()) as u64)
    }

    async fn unread(
        &self,
        key: &SessionKey,
        limit: usize,
    ) -> Result<Vec<(Seq, Inbound)>, StoreError> {
        let kept = self.lock();
        let unread = kept
            .journal
            .iter()
            .filter(|(_, row)| row.key == *key && row.state == JournalState::Unread)
            .map(|(seq, row)| (Seq(*seq), row.inbound.clone()));
        Ok(unread.take(limit).collect())
    }

    async fn history(&self, session: &SessionId, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let kept = self.lock();
        let entry = |written: &Written| written.recorded.entry.clone();
        let mut history = History::new(limit);
        for written in kept.standing(session).rev() {
            if history.take(entry(written)) == Walk::Stop {
                break;
            }
        }
        history.finish(kept.standing(session).map(entry).map(Ok))
    }

    async fn preview(&self, outbound: &Outbound) -> Result<(), StoreError> {
        let mut kept = self.lock();
        match kept.post_mut(&outbound.id) {
            Some(post) => post.progress.preview_again(),
            None => kept.put(outbound.clone(), Progress::previewed(), Timestamp::default()),
        }
        Ok(())
    }

    async fn attempt(&self, id: &OutboundId) -> Result<Leave, StoreError> {
        Ok(self.lock().post_mut(id).map_or(Leave::Ended, |post| post.progress.attempt()))
    }

    async fn settle(
        &self,
        id: &OutboundId,
        settlement: Settlement,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        if let Some(post) = self.lock().post_mut(id) {
            let (had_failed, had_ended) = (post.has_failed(), post.progress.has_ended());
            post.progress.settle(&settlement);
            if post.progress.has_ended() && !had_ended {
                post.settled = Some(at);
            }
            if let Settlement::Undeliverable { reason } | Settlement::Abandoned { reason } =
                settlement
                && post.has_failed()
                && !had_failed
            {
                post.reason = Some(reason);
            }
            post.withhold();
        }
        Ok(())
    }

    async fn shown(&self, id: &OutboundId) -> Result<Option<MessageId>, StoreError> {
        let kept = self.lock();
        let post = kept.places.get(id).and_then(|place| kept.outbox.get(place));
        let delivered = post.filter(|post| post.progress.stage == Stage::Delivered);
        Ok(delivered.and_then(|post| post.progress.shown.clone()))
    }

    async fn crossing(&self, said: &OutboundId, row: Seq) -> Result<Crossing, StoreError> {
        let kept = self.lock();
        let is_part = |id: &OutboundId| id.session == said.session && id.delivery == said.delivery;
        let parts = kept.places.iter().filter(|(id, _)| is_part(id));
        let moments: Option<Vec<Timestamp>> = parts
            .map(|(_, place)| {
                let post = kept.outbox.get(place)?;
                post.settled.filter(|_| post.progress.stage == Stage::Delivered)
            })
            .collect();
        let delivered = moments.and_then(|moments| moments.into_iter().max());
        Ok(Crossing { delivered, arrived: kept.journal.get(&row.0).map(|row| row.at) })
    }

    async fn granted(&self, digest: &Digest) -> Result<Option<Grant>, StoreError> {
        Ok(self.lock().grants.iter().find(|grant| grant.digest == *digest).cloned())
    }

    async fn grants(&self, limit: usize) -> Result<Vec<Grant>, StoreError> {
        Ok(self.lock().grants.iter().rev().take(limit).cloned().collect())
    }

    async fn revoke_grant(&self, digest: &Digest) -> Result<bool, StoreError> {
        let mut kept = self.lock();
        let before = kept.grants.len();
        kept.grants.retain(|grant| grant.digest != *digest);
        Ok(kept.grants.len() < before)
    }

    async fn parcels(&self, to: &Address, limit: usize) -> Result<Vec<Parcel>, StoreError> {
        let kept = self.lock();
        let open = kept
            .outbox
            .values()
            .filter(|post| post.outbound.to == *to && post.progress.is_open())
            .map(|post| Parcel {
                outbound: post.outbound.clone(),
                state: post.progress.state(),
                shown: post.progress.shown.clone(),
                attempts: post.progress.attempts,
                not_before: post.progress.not_before,
                anew: post.progress.anew,
                at: post.at,
            });
        Ok(open.take(limit).collect())
    }

    async fn failed(&self, limit: usize) -> Result<Vec<Failed>, StoreError> {
        let kept = self.lock();
        let failed = kept.outbox.values().rev().filter(|post| post.has_failed());
        let failed = failed.map(|post| Failed {
            outbound: post.outbound.clone(),
            state: post.progress.state(),
            reason: post.reason(),
            at: post.at,
            told: post.told,
        });
        Ok(failed.take(limit).collect())
    }

    async fn untold(&self, to: &Address) -> Result<Option<Untold>, StoreError> {
        let kept = self.lock();
        let untold: Vec<&Post> = kept
            .outbox
            .values()
            .filter(|post| post.outbound.to == *to && post.is_untold())
            .collect();
        Ok(untold.last().map(|last| Untold {
            count: untold.len() as u64,
            last: last.outbound.id.clone(),
            reason: last.reason(),
        }))
    }

    async fn untold_at(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Vec<Address>, StoreError> {
        let kept = self.lock();
        let untold: HashSet<&Address> = kept
            .outbox
            .values()
            .filter(|post| post.is_untold())
            .map(|post| &post.outbound.to)
            .collect();
        let rest = following(&kept.addresses, after.as_ref());
        Ok(rest.iter().filter(|address| untold.contains(address)).take(limit).cloned().collect())
    }

    async fn tell(&self, notice: &Outbound, at: Timestamp) -> Result<(), StoreError> {
        let mut kept = self.lock();
        if kept.places.contains_key(&notice.id) {
            return Ok(());
        }
        for post in kept.outbox.values_mut().filter(|post| post.outbound.to == notice.to) {
            if post.is_untold() {
                post.told = Told::Yes;
            }
        }
        kept.put(notice.clone(), Progress::decided(), at);
        if let Some(post) = kept.post_mut(&notice.id) {
            post.told = Told::Yes;
        }
        Ok(())
    }

    async fn denied(
        &self,
        account: &AccountId,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<Timestamp>, StoreError> {
        let kept = self.lock();
        let denied = kept.journal.values().filter(|row| {
            row.account == *account
                && row.at >= since
                && matches!(row.state, JournalState::Denied(_))
        });
        Ok(denied.map(|row| row.at).take(limit).collect())
    }

    async fn uses(&self, files: &[FileId]) -> Result<Vec<Use>, StoreError> {
        let kept = self.lock();
        Ok(files.iter().map(|file| kept.use_of(file)).collect())
    }

    async fn recover(&self) -> Result<Ended, StoreError> {
        let mut kept = self.lock();
        kept.outbox.values_mut().for_each(|post| post.progress.recover());
        let ended = if kept.alive { Ended::Abruptly } else { Ended::Cleanly };
        kept.alive = true;
        Ok(ended)
    }

    async fn restless(
        &self,
        after: Option<SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, StoreError> {
        let kept = self.lock();
        let rest = following(&kept.keys, after.as_ref());
        Ok(rest.iter().filter(|key| kept.is_restless(key)).take(limit).cloned().collect())
    }

    async fn undelivered(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Vec<Address>, StoreError> {
        let kept = self.lock();
        let open: HashSet<&Address> = kept
            .outbox
            .values()
            .filter(|post| post.progress.is_open())
            .map(|post| &post.outbound.to)
            .collect();
        let rest = following(&kept.addresses, after.as_ref());
        Ok(rest.iter().filter(|address| open.contains(address)).take(limit).cloned().collect())
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.lock().alive = false;
        Ok(())
    }

    async fn conversations(
        &self,
        account: Option<&AccountId>,
        limit: usize,
    ) -> Result<Vec<Summary>, StoreError> {
        let kept = self.lock();
        let mut sessions: Vec<&Session> = kept
            .keys
            .iter()
            .rev()
            .filter(|key| account.is_none_or(|account| key.account == *account))
            .filter_map(|key| kept.sessions.get(key))
            .collect();
        sessions.sort_by_key(|session| std::cmp::Reverse(session.updated));
        let summaries = sessions.into_iter().take(limit).map(|session| {
            let summary = Summary::of(session);
            Summary { busy: summary.busy || kept.has_unread(&session.key), ..summary }
        });
        Ok(summaries.collect())
    }

    async fn transcript(
        &self,
        key: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Recorded>, StoreError> {
        let kept = self.lock();
        let newest = kept
            .entries
            .values()
            .rev()
            .filter(|written| written.key == *key && written.rewound.is_none())
            .map(|written| &written.recorded)
            .filter(|recorded| before.is_none_or(|before| recorded.position < before));
        Ok(oldest_first(newest.take(limit).cloned()))
    }

    async fn search(&self, wanted: &Wanted) -> Result<Vec<Found>, StoreError> {
        let Some(query) = Query::new(&wanted.text) else { return Ok(Vec::new()) };
        let kept = self.lock();
        let standing = kept.entries.values().rev().filter(|written| written.rewound.is_none());
        let mut found: Vec<(Closeness, Found)> = Vec::new();
        for Written { key, recorded, .. } in
            standing.filter(|written| kept.holds(&wanted.scope, &written.key))
        {
            let text = visible(&recorded.entry.body).filter(|_| wanted.allows(&recorded.entry));
            let hit = text.and_then(|text| query.find(text));
            if let (Some(hit), Some(session)) = (hit, kept.sessions.get(key)) {
                let retired = kept.begun(&recorded.session).and_then(|life| life.retired.as_ref());
                let past = retired.filter(|(past, _)| past.id != session.id);
                let title = past.map_or(&session.title, |(past, _)| &past.title).clone();
                let (key, at, recorded) = (key.clone(), session.at.clone(), recorded.clone());
                found.push((
                    hit.closeness,
                    Found { key, at, title, recorded, excerpt: hit.excerpt },
                ));
            }
        }
        found.sort_by_key(|(closeness, _)| *closeness);
        Ok(found.into_iter().map(|(_, found)| found).take(wanted.limit).collect())
    }

    async fn life(&self, id: &SessionId) -> Result<Option<Life>, StoreError> {
        let kept = self.lock();
        Ok(kept.begun(id).map(|begun| kept.life(begun)))
    }

    async fn lives(
        &self,
        scope: &SearchScope,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<Life>, StoreError> {
        let lives = self.lock().lives_in(scope);
        let start = after.and_then(|after| lives.iter().position(|life| life.past.id == *after));
        Ok(lives.into_iter().skip(start.map_or(0, |at| at + 1)).take(limit).collect())
    }

    async fn named(
        &self,
        scope: &SearchScope,
        name: &str,
        limit: usize,
    ) -> Result<Named, StoreError> {
        let Some(name) = Name::new(name) else { return Ok(Named::Nothing) };
        let mut fitting: Vec<(Fit, Life)> = self
            .lock()
            .lives_in(scope)
            .into_iter()
            .filter_map(|life| Some((name.fits(&life.past.id, &life.past.title)?, life)))
            .collect();
        let best = fitting.iter().map(|(fit, _)| *fit).min();
        fitting.retain(|(fit, _)| Some(*fit) == best);
        Ok(Named::of(fitting.into_iter().map(|(_, life)| life).take(limit).collect()))
    }

    async fn rename(&self, life: &SessionId, title: &str) -> Result<(), StoreError> {
        let mut kept = self.lock();
        let Some(begun) = kept.begun(life) else { return Ok(()) };
        let (key, mut past) = (begun.key.clone(), kept.life(begun).past);
        if let Some(session) = kept.sessions.get_mut(&key).filter(|session| session.id == *life) {
            session.title = title.to_owned();
        } else if let Some(begun) = kept.begun_mut(life) {
            past.title = title.to_owned();
            let why = begun.retired.take().and_then(|(_, why)| why);
            begun.retired = Some((past, why));
        }
        Ok(())
    }

    async fn totals(
        &self,
        scope: &SearchScope,
        since: Option<Timestamp>,
    ) -> Result<Totals, StoreError> {
        let mut totals = Totals::default();
        for Life { past, .. } in self.lock().lives_in(scope) {
            if since.is_none_or(|since| past.active >= since) {
                totals.add(past.turns.saturating_sub(past.copied), past.usage, past.cost);
            }
        }
        Ok(totals)
    }

    async fn active_since(
        &self,
        since: Timestamp,
        after: Option<SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, StoreError> {
        let kept = self.lock();
        let rest = following(&kept.keys, after.as_ref()).iter();
        let active = |key: &&SessionKey| {
            kept.sessions.get(*key).is_some_and(|session| session.active >= since)
        };
        Ok(rest.filter(active).take(limit).cloned().collect())
    }

    async fn quiet_since(
        &self,
        since: Timestamp,
        after: Option<SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, StoreError> {
        let kept = self.lock();
        let rest = following(&kept.keys, after.as_ref()).iter();
        let quiet = |key: &&SessionKey| {
            kept.sessions.get(*key).is_some_and(|session| {
                session.active < since && may_expire(session) && !session.is_restless()
            })
        };
        Ok(rest.filter(quiet).take(limit).cloned().collect())
    }

    async fn put_away(&self, life: &SessionId) -> Result<u32, StoreError> {
        let mut kept = self.lock();
        let Some(begun) = kept.begun_mut(life) else { return Ok(0) };
        begun.put_away += 1;
        Ok(begun.put_away)
    }

    async fn entries(
        &self,
        life: &SessionId,
        reading: Reading,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Kept>, StoreError> {
        let kept = self.lock();
        let rewound = |written: &Written| {
            let own = written.recorded.session == *life;
            written.rewound.filter(|_| own).map(|place| kept.rewinds[place].1.clone())
        };
        let wanted = kept
            .all_of(life)
            .filter(|written| after.is_none_or(|after| written.recorded.position > after))
            .map(|written| Kept { recorded: written.recorded.clone(), rewound: rewound(written) })
            .filter(|kept| reading == Reading::Everything || kept.rewound.is_none());
        Ok(wanted.take(limit).collect())
    }

    async fn rewinds(&self, life: &SessionId) -> Result<Vec<Rewound>, StoreError> {
        let kept = self.lock();
        let own = kept.rewinds.iter().filter(|(of, _)| of.as_ref() == Some(life));
        Ok(own.map(|(_, rewound)| rewound.clone()).collect())
    }

    async fn trace(&self, clue: &Clue, limit: usize) -> Result<Vec<Traced>, StoreError> {
        let kept = self.lock();
        let rows = kept.journal.iter().rev().filter(|(_, row)| clue.fits(&row.inbound));
        Ok(rows.take(limit).map(|(seq, row)| kept.traced(Seq(*seq), row)).collect())
    }

    async fn keep_unanswered(&self, rows: Vec<Unanswered>) -> Result<(), StoreError> {
        let mut kept = self.lock();
        for row in rows {
            let of_account = kept.unanswered.entry(row.account.clone()).or_default();
            of_account.push_back(row);
            if of_account.len() > UNANSWERED {
                of_account.pop_front();
            }
        }
        Ok(())
    }

    async fn unanswered(&self, clue: &Clue, limit: usize) -> Result<Vec<Unanswered>, StoreError> {
        let kept = self.lock();
        let rows = kept.unanswered.values().flat_map(|rows| rows.iter().rev());
        let mut rows: Vec<Unanswered> = rows.filter(|row| row.fits(clue)).cloned().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.at));
        rows.truncate(limit);
        Ok(rows)
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let kept = self.lock();
        let rows = |wanted: fn(&JournalState) -> bool| {
            kept.journal.values().filter(|row| wanted(&row.state)).count() as u64
        };
        let posts = |wanted: fn(&Progress) -> bool| {
            kept.outbox.values().filter(|post| wanted(&post.progress)).count() as u64
        };
        let busy = kept.sessions.values().filter(|session| session.hand().is_some());
        Ok(Counts {
            sessions: kept.sessions.len() as u64,
            turns_in_hand: busy.count() as u64,
            unread: rows(|state| *state == JournalState::Unread),
            quarantined: rows(|state| matches!(state, JournalState::Quarantined(_))),
            denied: rows(|state| matches!(state, JournalState::Denied(_))),
            undelivered: posts(Progress::is_open),
            failed: posts(|progress| {
                matches!(progress.stage, Stage::Undeliverable | Stage::Abandoned)
            }),
            entries: kept.entries.len() as u64,
        })
    }

    async fn queues(&self) -> Result<Queues, StoreError> {
        let kept = self.lock();
        let waits = |at: Timestamp| Queue { many: 1, oldest: Some(at) };
        let in_state = |state: JournalState| {
            let rows = kept.journal.values().filter(|row| row.state == state);
            rows.map(|row| waits(row.at)).fold(Queue::default(), Queue::and)
        };
        let unread = in_state(JournalState::Unread);
        let behind = kept.sessions.iter().flat_map(|(key, session)| {
            let rows = session.waiting.iter().filter_map(|said| kept.journal.get(&said.seq.0));
            rows.filter(move |row| row.key == *key && row.state == JournalState::Taken)
        });
        let waiting = behind.map(|row| waits(row.at)).fold(Queue::default(), Queue::and);
        let mut outbox: BTreeMap<ParcelState, Queue> = BTreeMap::new();
        for post in kept.outbox.values().filter(|post| post.progress.is_open()) {
            let queue = outbox.entry(post.progress.state()).or_default();
            *queue = queue.and(waits(post.at));
        }
        Ok(Queues { unread, waiting, outbox })
    }

    async fn prune(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut guard = self.lock();
        let kept = &mut *guard;
        let stays = |row: &Row| {
            row.at >= before || matches!(row.state, JournalState::Unread | JournalState::Taken)
        };
        let rows = kept.journal.len();
        kept.journal.retain(|_, row| {
            let stays = stays(row);
            if !stays {
                kept.seen.remove(&(row.account.clone(), row.inbound.id.clone()));
            }
            stays
        });
        let posts = kept.outbox.len();
        kept.outbox.retain(|_, post| {
            let open = post.progress.is_open() || post.progress.stage == Stage::Previewing;
            let stays = post.at >= before || open;
            if !stays {
                kept.places.remove(&post.outbound.id);
            }
            stays
        });
        let mut unanswered = 0;
        for rows in kept.unanswered.values_mut() {
            let all = rows.len();
            rows.retain(|row| row.at >= before);
            unanswered += all - rows.len();
        }
        Ok((rows - kept.journal.len() + posts - kept.outbox.len() + unanswered) as u64)
    }

    async fn forget_lives(
        &self,
        since: Timestamp,
        spare: &[SessionKey],
    ) -> Result<u64, StoreError> {
        let mut kept = self.lock();
        let mut forgotten = 0;
        // From the youngest on: a branch goes before what it is a branch of.
        for place in (0..kept.lives.len()).rev() {
            let begun = &kept.lives[place];
            if kept.life(begun).past.active >= since || kept.is_busy(begun, since, spare) {
                continue;
            }
            let Begun { id, key, .. } = kept.lives.remove(place);
            kept.entries.retain(|_, written| written.recorded.session != id);
            for (of, _) in kept.rewinds.iter_mut().filter(|(of, _)| of.as_ref() == Some(&id)) {
                *of = None;
            }
            if kept.sessions.get(&key).is_some_and(|session| session.id == id) {
                kept.sessions.remove(&key);
            }
            forgotten += 1;
        }
        Ok(forgotten)
    }

    async fn forget_entries(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut kept = self.lock();
        let all = kept.entries.len();
        let in_hand: HashSet<SessionId> = kept
            .sessions
            .values()
            .filter(|session| session.hand().is_some())
            .map(|session| session.id.clone())
            .collect();
        kept.entries.retain(|_, Written { recorded, .. }| {
            recorded.entry.at >= before || in_hand.contains(&recorded.session)
        });
        Ok((all - kept.entries.len()) as u64)
    }

    async fn shrink(&self) -> Result<u64, StoreError> {
        Ok(0)
    }
}

fn oldest_first<T>(newest_first: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = newest_first.collect();
    items.reverse();
    items
}

fn following<'a, T: PartialEq>(all: &'a [T], after: Option<&T>) -> &'a [T] {
    let start = after.and_then(|after| all.iter().position(|item| item == after));
    &all[start.map_or(0, |at| at + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Harness;

    struct InMemory(MemoryStore);

    #[async_trait]
    impl Harness for InMemory {
        async fn open(&self) -> Arc<dyn Store> {
            Arc::new(self.0.clone())
        }
    }

    crate::store_contract!(in_memory, InMemory(MemoryStore::new()));
}
