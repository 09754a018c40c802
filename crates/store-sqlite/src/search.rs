//! Searching: a thread that follows the truth with the index and answers from both.
//!
//! It takes up entries some time after they were recorded, many at once, so that recording does not
//! wait for it. Whoever searches finds what was recorded before: the rest is taken up first. Only an
//! index that is far behind, because it is being built anew, answers from what it has.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use talaria_session::Session;
use talaria_store::{Closeness, Found, Query, SearchScope, StoreError, visible};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::index::{Index, Next, Place};
use crate::read::{self, Placed};
use crate::sql::{is_passing, one, store_error};

/// How long entries may wait for company before they are taken up.
const COMPANY: Duration = Duration::from_millis(250);

/// How many entries are taken up in one transaction.
const BATCH: usize = 256;

/// How many entries are taken up before a search is answered.
const TAKEN_UP_FIRST: usize = 4096;

/// How many searches may be queued; whoever finds the queue full waits.
const ROOM: usize = 64;

/// How many proposed entries are looked at for one search.
const LOOKED_AT: usize = 20_000;

/// How many of the newest entries are looked through when the index cannot help.
const LOOKED_THROUGH: usize = 2_000;

/// Where searches are handed in. Dropping it waits until they are done.
pub(crate) struct Search {
    asks: Option<Sender<Ask>>,
    woken: Arc<AtomicBool>,
    room: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

enum Ask {
    Wake,
    Find { scope: SearchScope, query: Query, limit: usize, answer: Answer },
}

struct Answer {
    sender: oneshot::Sender<Result<Vec<Found>, StoreError>>,
    _room: OwnedSemaphorePermit,
}

impl Search {
    /// Searches `truth` by an index in this file.
    pub(crate) fn start(truth: Connection, index: PathBuf) -> std::io::Result<Self> {
        let (asks, queue) = channel();
        let woken = Arc::new(AtomicBool::new(true));
        let mut desk =
            Desk { truth, path: index, queue, woken: woken.clone(), shelf: Shelf::Unopened };
        let thread =
            std::thread::Builder::new().name("store-search".into()).spawn(move || desk.run())?;
        let room = Arc::new(Semaphore::new(ROOM));
        Ok(Self { asks: Some(asks), woken, room, thread: Some(thread) })
    }

    /// Something was recorded.
    pub(crate) fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel)
            && let Some(asks) = &self.asks
        {
            // It stopped; whoever searches is told.
            drop(asks.send(Ask::Wake));
        }
    }

    pub(crate) async fn find(
        &self,
        scope: SearchScope,
        query: Query,
        limit: usize,
    ) -> Result<Vec<Found>, StoreError> {
        let room = self.room.clone().acquire_owned().await.map_err(|_| stopped())?;
        let (sender, found) = oneshot::channel();
        let ask = Ask::Find { scope, query, limit, answer: Answer { sender, _room: room } };
        self.asks.as_ref().ok_or_else(stopped)?.send(ask).map_err(|_| stopped())?;
        found.await.unwrap_or_else(|_| Err(stopped()))
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.asks = None;
        if let Some(thread) = self.thread.take() {
            // It panicked, and whoever was waiting for it has been told that it stopped.
            drop(thread.join());
        }
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable { reason: "the search has stopped".into() }
}

/// What went wrong: with the truth, or with the index, which can be made anew.
enum Trouble {
    Truth(StoreError),
    Index(rusqlite::Error),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Truth(error)
    }
}

/// How soon there is something to take up.
#[derive(Clone, Copy)]
enum Due {
    Later,
    Soon,
    AtOnce,
}

/// Whether the index has everything.
enum Taken {
    All,
    Some,
}

/// What is known of the index.
enum Shelf {
    Unopened,
    Unusable,
    Open(Index),
}

impl Shelf {
    /// The index; made anew where the file is not usable.
    fn index(&mut self, path: &Path, truth: &Connection) -> Result<&mut Index, Trouble> {
        if !matches!(self, Self::Open(_)) {
            let epoch = read::epoch(truth)?;
            let newest =
                one(truth, "SELECT coalesce(max(position), 0) FROM entry", [], |row| row.get(0))?;
            let kept = match self {
                Self::Unopened => Index::open(path, &epoch, newest)?,
                Self::Unusable | Self::Open(_) => None,
            };
            *self = Self::Open(match kept {
                Some(index) => index,
                None => {
                    tracing::info!(entries = newest, "the search index is built from the store");
                    Index::create(path, &epoch)?
                }
            });
        }
        match self {
            Self::Open(index) => Ok(index),
            Self::Unopened | Self::Unusable => unreachable!("it was opened above"),
        }
    }
}

/// The thread's side of the queue.
struct Desk {
    truth: Connection,
    path: PathBuf,
    queue: Receiver<Ask>,
    woken: Arc<AtomicBool>,
    shelf: Shelf,
}

impl Desk {
    fn run(&mut self) {
        let mut due = Due::Soon;
        loop {
            let ask = match due {
                Due::Later => self.queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Due::Soon => self.queue.recv_timeout(COMPANY),
                Due::AtOnce => self.queue.recv_timeout(Duration::ZERO),
            };
            match ask {
                Ok(Ask::Wake) => {
                    if let Due::Later = due {
                        due = Due::Soon;
                    }
                }
                Ok(Ask::Find { scope, query, limit, answer }) => {
                    let found = self.find(&scope, &query, limit);
                    // Whoever stopped waiting does not want to know.
                    drop(answer.sender.send(found));
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.woken.store(false, Ordering::Release);
                    due = match self.mended(|desk| desk.take_up(BATCH)) {
                        Ok(Taken::All) => Due::Later,
                        Ok(Taken::Some) => Due::AtOnce,
                        Err(error) => {
                            tracing::warn!(%error, "the search index does not follow");
                            Due::Later
                        }
                    };
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn find(
        &mut self,
        scope: &SearchScope,
        query: &Query,
        limit: usize,
    ) -> Result<Vec<Found>, StoreError> {
        let Some(place) = self.place(scope)? else { return Ok(Vec::new()) };
        self.mended(|desk| {
            match desk.take_up(TAKEN_UP_FIRST) {
                Ok(Taken::All | Taken::Some) => {}
                // A full disk is no reason not to answer from what is there.
                Err(Trouble::Index(error)) if is_passing(&error) => {
                    tracing::warn!(%error, "the search index does not follow");
                }
                Err(trouble) => return Err(trouble),
            }
            desk.look_up(&place, query, limit)
        })
    }

    /// Does it, and does it again with an index made anew if the one at hand is not usable.
    fn mended<T>(
        &mut self,
        work: impl Fn(&mut Self) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        let mut done = work(self);
        if let Err(Trouble::Index(error)) = &done
            && !is_passing(error)
        {
            tracing::warn!(%error, "the search index is not usable");
            self.shelf = Shelf::Unusable;
            done = work(self);
        }
        done.map_err(|trouble| match trouble {
            Trouble::Truth(error) => error,
            Trouble::Index(error) => store_error(error),
        })
    }

    /// Takes up to so many entries into the index.
    fn take_up(&mut self, limit: usize) -> Result<Taken, Trouble> {
        let index = self.shelf.index(&self.path, &self.truth)?;
        let mut left = limit;
        while left > 0 {
            let asked = left.min(BATCH);
            let entries = read::entries_after(&self.truth, index.position, asked)?;
            index.add(&entries)?;
            if entries.len() < asked {
                return Ok(Taken::All);
            }
            left -= asked;
        }
        Ok(Taken::Some)
    }

    /// None when there is nothing there.
    fn place(&self, scope: &SearchScope) -> Result<Option<Place>, StoreError> {
        match scope {
            SearchScope::Conversation(key) => {
                Ok(read::conversation(&self.truth, key)?.map(Place::Conversation))
            }
            SearchScope::Accounts(names) => {
                let mut accounts = Vec::new();
                for name in names {
                    accounts.extend(read::account(&self.truth, name)?);
                }
                Ok((!accounts.is_empty()).then_some(Place::Accounts(accounts)))
            }
        }
    }

    fn look_up(
        &mut self,
        place: &Place,
        query: &Query,
        limit: usize,
    ) -> Result<Vec<Found>, Trouble> {
        let index = self.shelf.index(&self.path, &self.truth)?;
        let mut hits = Hits {
            truth: &self.truth,
            place,
            query,
            limit,
            found: Vec::new(),
            sessions: HashMap::new(),
            left: LOOKED_AT,
        };
        if limit == 0 {
            return Ok(hits.found);
        }
        let words = query.words();
        if words.is_empty() {
            // Nothing but signs, which the index does not know: every answer is as good.
            hits.look_at_most(LOOKED_THROUGH);
            index.propose_words(place, &words, |position| hits.look_at(position, |_| true))?;
            return Ok(hits.found);
        }
        index.propose_words(place, &words, |position| {
            hits.look_at(position, |closeness| closeness == Closeness::Words)
        })?;
        if query.may_be_unfinished() && hits.want_more() {
            hits.look_at_most(LOOKED_AT);
            index.propose_beginnings(place, &words, |position| {
                hits.look_at(position, |closeness| closeness == Closeness::Beginning)
            })?;
        }
        if hits.want_more() {
            let parts = |closeness| closeness == Closeness::Substring;
            if Index::knows_parts_like(query) {
                hits.look_at_most(LOOKED_AT);
                index.propose_parts(place, query, |position| hits.look_at(position, parts))?;
            } else {
                hits.look_at_most(LOOKED_THROUGH);
                index.propose_words(place, &[], |position| hits.look_at(position, parts))?;
            }
        }
        Ok(hits.found)
    }
}

/// Looks at what the index proposes: the truth decides.
struct Hits<'a> {
    truth: &'a Connection,
    place: &'a Place,
    query: &'a Query,
    limit: usize,
    found: Vec<Found>,
    sessions: HashMap<i64, Session>,
    left: usize,
}

impl Hits<'_> {
    fn want_more(&self) -> bool {
        self.found.len() < self.limit
    }

    fn look_at_most(&mut self, many: usize) {
        self.left = many;
    }

    fn look_at(
        &mut self,
        position: i64,
        wanted: impl Fn(Closeness) -> bool,
    ) -> Result<Next, Trouble> {
        self.left -= 1;
        if let Some(placed) = read::entry_at(self.truth, position)?
            && self.place.holds(&placed)
            && let Some(hit) =
                visible(&placed.recorded.entry.body).and_then(|text| self.query.find(text))
            && wanted(hit.closeness)
            && let Some(session) = self.session(placed.conversation)?
        {
            let (key, at, title) = (session.key.clone(), session.at.clone(), session.title.clone());
            let Placed { recorded, .. } = placed;
            self.found.push(Found { key, at, title, recorded, excerpt: hit.excerpt });
        }
        Ok(if self.want_more() && self.left > 0 { Next::More } else { Next::Enough })
    }

    fn session(&mut self, conversation: i64) -> Result<Option<&Session>, StoreError> {
        if !self.sessions.contains_key(&conversation)
            && let Some(session) = read::session_of(self.truth, conversation)?
        {
            self.sessions.insert(conversation, session);
        }
        Ok(self.sessions.get(&conversation))
    }
}
