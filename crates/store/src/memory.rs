//! The store in memory: the contract in its plainest form. Other stores are compared with it.
//!
//! Clones share what they hold, so a clone taken after a "crash" is the store as it comes back. It
//! looks through everything it has to answer a question: it is for tests and short lives.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use talaria_model::{
    AccountId, Address, Entry, EventId, FileId, Inbound, Outbound, OutboundId, Seq, SessionId,
    Timestamp,
};
use talaria_session::{Ended, Session, SessionKey};

use crate::{
    Admitted, Closeness, Commit, Counts, Delivered, Failed, Found, JournalState, Leave, Parcel,
    Progress, Query, Recorded, SearchScope, Settlement, Stage, Store, StoreError, Summary, Told,
    Untold, Use, files_of_act, files_of_entry, files_of_inbound, visible,
};

/// A store whose content lives as long as its last clone.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    /// A life of the process has begun and has not been closed.
    alive: bool,
    cursors: HashMap<AccountId, String>,
    /// In the order in which they were first mentioned, which is the order of pages.
    keys: Vec<SessionKey>,
    addresses: Vec<Address>,
    sessions: HashMap<SessionKey, Session>,
    lives: HashMap<SessionId, SessionKey>,
    last_seq: u64,
    journal: BTreeMap<u64, Row>,
    seen: HashMap<(AccountId, EventId), Seq>,
    entries: Vec<(SessionKey, Recorded)>,
    last_place: u64,
    outbox: BTreeMap<u64, Post>,
    places: HashMap<OutboundId, u64>,
}

#[derive(Debug)]
struct Row {
    account: AccountId,
    key: SessionKey,
    inbound: Inbound,
    state: JournalState,
    at: Timestamp,
}

#[derive(Debug)]
struct Post {
    outbound: Outbound,
    progress: Progress,
    reason: Option<String>,
    told: Told,
    at: Timestamp,
}

impl Post {
    fn has_failed(&self) -> bool {
        matches!(self.progress.stage, Stage::Undeliverable | Stage::Abandoned)
    }

    fn is_untold(&self) -> bool {
        self.has_failed() && self.told == Told::No
    }

    fn reason(&self) -> String {
        self.reason.clone().unwrap_or_default()
    }
}

impl MemoryStore {
    /// A store with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn mention(&mut self, key: &SessionKey) {
        if !self.keys.contains(key) {
            self.keys.push(key.clone());
        }
    }

    fn mention_address(&mut self, address: &Address) {
        if !self.addresses.contains(address) {
            self.addresses.push(address.clone());
        }
    }

    fn put(&mut self, outbound: Outbound, progress: Progress, at: Timestamp) {
        self.mention_address(&outbound.to);
        self.last_place += 1;
        self.places.insert(outbound.id.clone(), self.last_place);
        let (reason, told) = (None, Told::No);
        self.outbox.insert(self.last_place, Post { outbound, progress, reason, told, at });
    }

    fn post_mut(&mut self, id: &OutboundId) -> Option<&mut Post> {
        self.outbox.get_mut(self.places.get(id)?)
    }

    /// A preview's text takes its place at the end: order is the order of decisions.
    fn decide(&mut self, outbound: Outbound, at: Timestamp) {
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

    fn has_unread(&self, key: &SessionKey) -> bool {
        self.journal.values().any(|row| row.key == *key && row.state == JournalState::Unread)
    }

    fn use_of(&self, file: &FileId) -> Use {
        let in_hand = |key: &SessionKey| {
            self.sessions.get(key).is_some_and(|session| session.hand().is_some())
        };
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
            .iter()
            .filter(|(_, recorded)| files_of_entry(&recorded.entry.body).any(|held| held == file))
            .map(|(key, _)| if in_hand(key) { Use::Present } else { Use::Past });
        let outbox = self
            .outbox
            .values()
            .filter(|post| files_of_act(&post.outbound.act).any(|held| held == file))
            .map(|post| if post.progress.is_open() { Use::Present } else { Use::Past });
        journal.chain(entries).chain(outbox).max().unwrap_or(Use::None)
    }

    fn is_restless(&self, key: &SessionKey) -> bool {
        let busy = |session: &Session| session.hand().is_some() || !session.waiting.is_empty();
        self.sessions.get(key).is_some_and(busy) || self.has_unread(key)
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

    async fn cursor(&self, account: &AccountId) -> Result<Option<String>, StoreError> {
        Ok(self.lock().cursors.get(account).cloned())
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<Session>, StoreError> {
        let session = self.lock().sessions.get(key).cloned();
        Ok(session.map(|session| Session { rules: Default::default(), ..session }))
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        let mut kept = self.lock();
        let Commit { session, journal, entries, outbox, at } = commit;
        let key = session.key.clone();
        let lives: HashSet<SessionId> = std::iter::once(&session.id)
            .chain(entries.iter().map(|(life, _)| life))
            .chain(outbox.iter().map(|outbound| &outbound.id.session))
            .cloned()
            .collect();
        for life in &lives {
            if kept.lives.get(life).is_some_and(|other| *other != key) {
                return Err(StoreError::Damaged {
                    reason: format!("{life} is a life of another conversation than {key}"),
                });
            }
        }

        kept.mention(&key);
        kept.lives.extend(lives.iter().map(|life| (life.clone(), key.clone())));
        for change in journal {
            if let Some(row) = kept.journal.get_mut(&change.seq.0)
                && !matches!(row.state, JournalState::Denied(_))
            {
                row.state = change.state;
            }
        }
        for (session, entry) in entries {
            let position = kept.entries.len() as u64 + 1;
            kept.entries.push((key.clone(), Recorded { position, session, entry }));
        }
        for outbound in outbox {
            kept.decide(outbound, at);
        }
        if session.hand().is_none() {
            for post in kept.outbox.values_mut() {
                if lives.contains(&post.outbound.id.session) {
                    post.progress.end_preview();
                }
            }
        }
        kept.sessions.insert(key, session);
        Ok(())
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
        let newest = kept
            .entries
            .iter()
            .rev()
            .filter(|(_, recorded)| recorded.session == *session)
            .map(|(_, recorded)| recorded.entry.clone());
        Ok(oldest_first(newest.take(limit)))
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

    async fn settle(&self, id: &OutboundId, settlement: Settlement) -> Result<(), StoreError> {
        if let Some(post) = self.lock().post_mut(id) {
            let had_failed = post.has_failed();
            post.progress.settle(&settlement);
            if let Settlement::Undeliverable { reason } | Settlement::Abandoned { reason } =
                settlement
                && post.has_failed()
                && !had_failed
            {
                post.reason = Some(reason);
            }
        }
        Ok(())
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
        Ok(sessions.into_iter().take(limit).map(Summary::of).collect())
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
            .iter()
            .rev()
            .filter(|(of, _)| of == key)
            .filter(|(_, recorded)| before.is_none_or(|before| recorded.position < before))
            .map(|(_, recorded)| recorded.clone());
        Ok(oldest_first(newest.take(limit)))
    }

    async fn search(
        &self,
        scope: SearchScope,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Found>, StoreError> {
        let Some(query) = Query::new(query) else { return Ok(Vec::new()) };
        let kept = self.lock();
        let in_scope = |key: &SessionKey| match &scope {
            SearchScope::Accounts(accounts) => accounts.contains(&key.account),
            SearchScope::Conversation(only) => key == only,
        };
        let mut found: Vec<(Closeness, Found)> = Vec::new();
        for (key, recorded) in kept.entries.iter().rev().filter(|(key, _)| in_scope(key)) {
            let hit = visible(&recorded.entry.body).and_then(|text| query.find(text));
            if let (Some(hit), Some(session)) = (hit, kept.sessions.get(key)) {
                let (key, at, title) = (key.clone(), session.at.clone(), session.title.clone());
                let recorded = recorded.clone();
                found.push((
                    hit.closeness,
                    Found { key, at, title, recorded, excerpt: hit.excerpt },
                ));
            }
        }
        found.sort_by_key(|(closeness, _)| *closeness);
        Ok(found.into_iter().map(|(_, found)| found).take(limit).collect())
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
        Ok((rows - kept.journal.len() + posts - kept.outbox.len()) as u64)
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
