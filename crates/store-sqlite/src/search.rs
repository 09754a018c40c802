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
use talaria_model::SessionId;
use talaria_session::Session;
use talaria_store::{
    Closeness, Found, Owner, Query, Recorded, SearchScope, StoreError, Wanted, visible,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::index::{Help, Index, Next, Place, Whose};
use crate::past;
use crate::read::{self, Placed};
use crate::rows::{self, Json};
use crate::sql::{all, is_passing, maybe, store_error};

/// How long entries may wait for company before they are taken up.
const COMPANY: Duration = Duration::from_millis(250);

/// How many entries are taken up in one transaction.
const BATCH: usize = 256;

/// How many entries are taken up before a search is answered.
const TAKEN_UP_FIRST: usize = 4096;

/// How many searches may be queued; whoever finds the queue full waits.
const ROOM: usize = 64;

/// How many proposed entries are looked at in each step of a search.
const LOOKED_AT: usize = 4_000;

/// How many of the newest entries are looked through when the index cannot help.
const LOOKED_THROUGH: usize = 2_000;

/// A place with no more entries is looked through at once: that is faster than asking the index again.
/// Tests have smaller places.
const SMALL: usize = if cfg!(test) { 8 } else { 1_500 };

/// Where searches are handed in. Dropping it waits until they are done.
pub(crate) struct Search {
    asks: Option<Sender<Ask>>,
    woken: Arc<AtomicBool>,
    room: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

enum Ask {
    Wake,
    Forget(Vec<i64>),
    Find { wanted: Wanted, query: Query, answer: Answer },
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

    /// Entries are gone. One that stays in the index does no harm: it is proposed and not found.
    pub(crate) fn forget(&self, positions: Vec<i64>) {
        if !positions.is_empty()
            && let Some(asks) = &self.asks
        {
            // It stopped; whoever searches is told.
            drop(asks.send(Ask::Forget(positions)));
        }
    }

    pub(crate) async fn find(
        &self,
        wanted: Wanted,
        query: Query,
    ) -> Result<Vec<Found>, StoreError> {
        let room = self.room.clone().acquire_owned().await.map_err(|_| stopped())?;
        let (sender, found) = oneshot::channel();
        let ask = Ask::Find { wanted, query, answer: Answer { sender, _room: room } };
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
            let newest = past::newest(truth)?;
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
                Ok(Ask::Forget(positions)) => {
                    let removed = self.mended(|desk| {
                        let index = desk.shelf.index(&desk.path, &desk.truth)?;
                        Ok(index.remove(&positions)?)
                    });
                    if let Err(error) = removed {
                        tracing::warn!(%error, "the search index keeps entries that are gone");
                    }
                }
                Ok(Ask::Find { wanted, query, answer }) => {
                    let found = self.find(&wanted, &query);
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

    fn find(&mut self, wanted: &Wanted, query: &Query) -> Result<Vec<Found>, StoreError> {
        let Some(place) = self.place(wanted)? else { return Ok(Vec::new()) };
        self.mended(|desk| {
            match desk.take_up(TAKEN_UP_FIRST) {
                Ok(Taken::All | Taken::Some) => {}
                // A full disk is no reason not to answer from what is there.
                Err(Trouble::Index(error)) if is_passing(&error) => {
                    tracing::warn!(%error, "the search index does not follow");
                }
                Err(trouble) => return Err(trouble),
            }
            desk.look_up(&place, wanted, query)
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
    fn place(&self, wanted: &Wanted) -> Result<Option<Place>, StoreError> {
        let Some(whose) = self.whose(&wanted.scope)? else { return Ok(None) };
        let position = |at| read::position_at(&self.truth, at);
        let start = wanted.since.map_or(Ok(0), position)?;
        let end = wanted.until.map_or(Ok(i64::MAX), position)?;
        Ok(Some(Place { whose, spoken: wanted.spoken.clone(), positions: start..end }))
    }

    fn whose(&self, scope: &SearchScope) -> Result<Option<Whose>, StoreError> {
        let truth = &self.truth;
        Ok(match scope {
            SearchScope::Everything => Some(Whose::Everybodys),
            SearchScope::Accounts(names) => {
                let mut accounts = Vec::new();
                for name in names {
                    accounts.extend(read::account(truth, name)?);
                }
                (!accounts.is_empty()).then_some(Whose::Accounts(accounts))
            }
            SearchScope::Owner(Owner::Person { account, person }) => {
                match read::person(truth, account, person)? {
                    Some(person) => {
                        let sql = "SELECT id FROM conversation WHERE owner = ? AND owned_from > 0";
                        let late = all(truth, sql, [person], |row| row.get(0))?;
                        Some(Whose::Persons { person, late })
                    }
                    None => None,
                }
            }
            SearchScope::Owner(Owner::Conversation(key)) => {
                read::conversation(truth, key)?.map(Whose::Shared)
            }
            SearchScope::Conversation(key) => {
                read::conversation(truth, key)?.map(Whose::Conversation)
            }
        })
    }

    fn look_up(
        &mut self,
        place: &Place,
        wanted: &Wanted,
        query: &Query,
    ) -> Result<Vec<Found>, Trouble> {
        use Closeness::{Beginning, Substring, Words};
        let index = self.shelf.index(&self.path, &self.truth)?;
        let mut hits = Hits {
            truth: &self.truth,
            place,
            wanted,
            query,
            found: Vec::new(),
            later: Vec::new(),
            abouts: HashMap::new(),
            left: LOOKED_AT,
        };
        if wanted.limit == 0 {
            return Ok(hits.found);
        }
        if query.words().is_empty() {
            // Nothing but signs, which the index does not know: every answer is as good.
            hits.left = LOOKED_THROUGH;
            index.propose_all(place, |position| hits.look_at(position, |_| Rank::Next))?;
            return Ok(hits.found);
        }
        index.propose_words(place, query, |position| hits.look_at(position, only(Words)))?;
        if !hits.want_more() {
            return Ok(hits.found);
        }
        hits.left = LOOKED_THROUGH;
        if index.is_small(place, SMALL)? {
            let rank = |closeness| match closeness {
                Words => Rank::Never,
                Beginning => Rank::Next,
                Substring => Rank::Later,
            };
            index.propose_all(place, |position| hits.look_at(position, rank))?;
            return Ok(hits.with_later());
        }
        if query.may_be_unfinished() {
            hits.left = LOOKED_AT;
            index.propose_beginnings(place, query, |position| {
                hits.look_at(position, only(Beginning))
            })?;
        }
        if hits.want_more() {
            hits.left = LOOKED_AT;
            let parts = |position| hits.look_at(position, only(Substring));
            if index.propose_parts(place, query, parts)? == Help::None {
                hits.left = LOOKED_THROUGH;
                index.propose_all(place, |position| hits.look_at(position, only(Substring)))?;
            }
        }
        Ok(hits.found)
    }
}

/// Where an answer stands among the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    Next,
    /// After all that are next.
    Later,
    Never,
}

fn only(wanted: Closeness) -> impl Fn(Closeness) -> Rank {
    move |closeness| if closeness == wanted { Rank::Next } else { Rank::Never }
}

/// Looks at what the index proposes: the truth decides.
struct Hits<'a> {
    truth: &'a Connection,
    place: &'a Place,
    wanted: &'a Wanted,
    query: &'a Query,
    found: Vec<Found>,
    later: Vec<Found>,
    abouts: HashMap<i64, Option<About>>,
    left: usize,
}

/// What is told of a life beside what was said in it.
#[derive(Clone)]
struct About {
    life: SessionId,
    title: String,
    session: Session,
}

impl Hits<'_> {
    fn want_more(&self) -> bool {
        self.found.len() < self.wanted.limit
    }

    fn with_later(mut self) -> Vec<Found> {
        let room = self.wanted.limit.saturating_sub(self.found.len());
        self.found.extend(self.later.into_iter().take(room));
        self.found
    }

    fn look_at(
        &mut self,
        position: i64,
        rank: impl Fn(Closeness) -> Rank,
    ) -> Result<Next, Trouble> {
        self.left = self.left.saturating_sub(1);
        let placed = read::entry_at(self.truth, position, |belongs| self.place.holds(belongs))?;
        if let Some(Placed { position, belongs, entry }) = placed
            && self.wanted.allows(&entry)
            && let Some(hit) = visible(&entry.body).and_then(|text| self.query.find(text))
            && let rank = rank(hit.closeness)
            && rank != Rank::Never
            && (rank == Rank::Next || self.later.len() < self.wanted.limit)
            && let Some(About { life, title, session }) = self.about(belongs.life)?
        {
            let (key, at) = (session.key, session.at);
            let recorded = Recorded { position: position.unsigned_abs(), session: life, entry };
            let found = Found { key, at, title, recorded, excerpt: hit.excerpt };
            match rank {
                Rank::Next => self.found.push(found),
                Rank::Later | Rank::Never => self.later.push(found),
            }
        }
        Ok(if self.want_more() && self.left > 0 { Next::More } else { Next::Enough })
    }

    fn about(&mut self, life: i64) -> Result<Option<About>, StoreError> {
        if let Some(about) = self.abouts.get(&life) {
            return Ok(about.clone());
        }
        let about = about(self.truth, life)?;
        self.abouts.insert(life, about.clone());
        Ok(about)
    }
}

fn about(truth: &Connection, life: i64) -> Result<Option<About>, StoreError> {
    let sql = "SELECT l.session, s.session,
             CASE WHEN s.life = l.id THEN NULL ELSE l.past ->> '$.title' END,
             a.name, d.kind, d.chat, d.thread, c.member, c.side,
             coalesce(l.past ->> '$.id', l.session) = l.session
         FROM life l JOIN session s ON s.conversation = l.conversation
             JOIN conversation c ON c.id = l.conversation
             JOIN address d ON d.id = c.address JOIN account a ON a.id = d.account
         WHERE l.id = ?";
    maybe(truth, sql, [life], |row| {
        let Json(session): Json<Session> = row.get(1)?;
        rows::insist(session.key == rows::key(row, 3)? && row.get(9)?)?;
        let title: Option<String> = row.get(2)?;
        let title = title.unwrap_or_else(|| session.title.clone());
        Ok(About { life: rows::id(row.get(0)?, SessionId::new)?, title, session })
    })
}
