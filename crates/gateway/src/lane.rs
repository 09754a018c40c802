//! One serial lane per session: the only door into it.
//!
//! People, the agent, time and restarts are all events here, one after the other. A lane loads its
//! session, steps it, makes the step durable, and only then lets its effects happen. The agent of a new
//! turn thinks in the meantime; nobody hears of it before.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talaria_model::{
    Address, AgentEvent, Cost, Entry, Failure, Inbound, Outbound, OutboundId, Sender, Seq,
    SessionId, Timestamp, TurnId, Usage,
};
use talaria_platform::Bursts;
use talaria_session::{
    Authority, Deed, Effect, Ended, Event, Phase, Request, Session, SessionKey, Start, TurnInHand,
};
use talaria_store::{Commit, Owner, StoreError};
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};

use crate::bursts::{self, Heard, Ready};
use crate::delivery::{shows_words, withdrawal};
use crate::drain::{Begun, Leaving};
use crate::dump::{Doing, LaneDump};
use crate::fetching::Fetches;
use crate::memory::{Change, Memory};
use crate::preview::Past;
use crate::requests::{self, Asking};
use crate::shared::Shared;
use crate::spending::{self, Bill, Settled};
use crate::tasks::{Panicked, calm};
use crate::turn::{self, TurnHandle};
use crate::watching::Watched;

/// How many rows are read from the journal at once when the inbox had no room.
const PAGE: usize = 64;

/// How many events may overtake others at once. One stop does what ten do.
const URGENT: usize = 8;

/// How much a session is told at once that did not arrive from a platform.
const MOST_TOLD: usize = 64;

/// How long the store rests that could not answer.
const STORE_REST: Duration = Duration::from_secs(1);

/// How long an agent that keeps to its limit has for its last words.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A panicking step is tried this often before its event is set aside.
const PANICS_UNTIL_QUARANTINE: u32 = 3;

/// The way to a lane.
pub(crate) struct Lane {
    pub(crate) key: SessionKey,
    inbox: Mutex<Inbox>,
    wake: Notify,
    /// Held from when the session is taken up after a restart until it has nothing in hand, or asks.
    seat: Mutex<Option<OwnedSemaphorePermit>>,
    /// What the session does, and since when.
    doing: Mutex<(Doing, Timestamp)>,
}

#[derive(Default)]
struct Inbox {
    /// Events that must not wait behind others.
    control: VecDeque<(Seq, Inbound)>,
    said: VecDeque<Heard>,
    /// There is more in the journal than in `said`; until it is read, nothing is put into `said`,
    /// so that order holds.
    behind: bool,
    /// Something was left to the journal since it was last looked into.
    missed: bool,
    /// The last row that was put into `said`. A row is in the journal before it is handed over, so it
    /// can come from both sides; the second time it is nothing new.
    newest: Option<Seq>,
    agent: VecDeque<(TurnId, AgentEvent, oneshot::Sender<Option<u32>>)>,
    /// What was asked for. A session asks for a bounded number of things at once.
    told: VecDeque<Event>,
    /// What others say about the session. It counts only after everything that arrived before.
    passed: VecDeque<Event>,
    restarted: Option<Ended>,
    /// The process is about to end.
    leaving: Option<Leaving>,
    /// When the agent may begin with a new turn.
    beginning: Beginning,
}

/// When the agent may begin with a new turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Beginning {
    /// While the step that begins the turn is being written.
    #[default]
    AtOnce,
    /// When that step is durable. What this lane found unread may be what the process died of, and a
    /// death counts only against a turn that is known to have begun.
    OnceDurable,
}

impl Inbox {
    fn leave_to_journal(&mut self) {
        self.behind = true;
        self.missed = true;
    }

    fn is_known(&self, seq: Seq) -> bool {
        self.newest.is_some_and(|newest| seq <= newest)
    }

    fn take_up(&mut self, heard: Heard) {
        if !self.is_known(heard.seq) {
            self.newest = Some(heard.seq);
            self.said.push_back(heard);
        }
    }

    /// Forgets what stands before a row: nobody will answer it.
    fn drop_before(&mut self, row: Seq) {
        self.said.retain(|heard| heard.seq >= row);
        self.control.retain(|(seq, _)| *seq >= row);
        self.newest = self.newest.max(Some(Seq(row.0.saturating_sub(1))));
    }
}

impl Lane {
    pub(crate) fn new(key: SessionKey, now: Timestamp) -> Self {
        Self {
            key,
            inbox: Mutex::default(),
            wake: Notify::new(),
            seat: Mutex::default(),
            doing: Mutex::new((Doing::Loading, now)),
        }
    }

    /// Says what the session does.
    fn does(&self, session: Option<&Session>, now: Timestamp) {
        let mut doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Doing::of(session);
        if doing.0 != next {
            *doing = (next, now);
        }
    }

    pub(crate) fn dump(&self) -> LaneDump {
        let (doing, since) = *self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        let inbox = self.lock();
        let waiting = [
            inbox.control.len(),
            inbox.said.len(),
            inbox.agent.len(),
            inbox.told.len(),
            inbox.passed.len(),
        ];
        LaneDump { key: self.key.clone(), doing, since, waiting: waiting.iter().sum() }
    }

    pub(crate) fn push(&self, heard: Heard, room: usize) {
        let mut inbox = self.lock();
        if inbox.behind || inbox.said.len() >= room {
            inbox.leave_to_journal();
        } else {
            inbox.take_up(heard);
        }
        drop(inbox);
        self.wake.notify_one();
    }

    pub(crate) fn push_control(&self, seq: Seq, inbound: Inbound) {
        let mut inbox = self.lock();
        if inbox.is_known(seq) {
            // It was found in the journal first and need not wait for its turn there.
            let place = inbox.said.iter().position(|waiting| waiting.seq == seq);
            let found = place.and_then(|place| inbox.said.remove(place));
            inbox.control.extend(found.map(|heard| (heard.seq, heard.inbound)));
        } else if inbox.control.len() < URGENT {
            inbox.control.push_back((seq, inbound));
        } else {
            // The rest is read from the journal in its turn.
            inbox.leave_to_journal();
        }
        drop(inbox);
        self.wake.notify_one();
    }

    /// Keeps a seat among the sessions that are taken up at the same time.
    pub(crate) fn sit(&self, seat: OwnedSemaphorePermit) {
        *self.seat.lock().unwrap_or_else(PoisonError::into_inner) = Some(seat);
        self.wake.notify_one();
    }

    fn stand_up(&self) {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    pub(crate) fn restart(&self, ended: Ended) {
        let mut inbox = self.lock();
        inbox.restarted = Some(ended);
        if ended == Ended::Abruptly {
            inbox.beginning = Beginning::OnceDurable;
        }
        inbox.leave_to_journal();
        drop(inbox);
        self.wake.notify_one();
    }

    /// Says something that did not arrive from a platform. Nothing is lost for good if it is never
    /// heard; what tells too much is not listened to.
    pub(crate) fn tell(&self, event: Event) {
        let mut inbox = self.lock();
        let queue = match event {
            Event::Told { .. } => &mut inbox.told,
            _ => &mut inbox.passed,
        };
        if queue.len() < MOST_TOLD {
            queue.push_back(event);
        }
        drop(inbox);
        self.wake.notify_one();
    }

    /// Says that the process is about to end.
    pub(crate) fn leave(&self, leaving: Leaving) {
        self.lock().leaving = Some(leaving);
        self.wake.notify_one();
    }

    /// Says that what it waits for may be there.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Says that there is something for it in the journal.
    pub(crate) fn look(&self) {
        self.lock().leave_to_journal();
        self.wake.notify_one();
    }

    /// Forgets what is in memory: all that counts is in the store.
    fn start_over(&self) {
        let mut inbox = self.lock();
        let (restarted, beginning) = (Some(Ended::Cleanly), inbox.beginning);
        *inbox = Inbox { restarted, beginning, ..Inbox::default() };
        inbox.leave_to_journal();
        drop(inbox);
        self.wake.notify_one();
    }

    /// What was taken is next again, each by itself.
    fn put_back(&self, rows: Vec<(Seq, Inbound)>, now: Timestamp) {
        let mut inbox = self.lock();
        for (seq, inbound) in rows.into_iter().rev() {
            inbox.said.push_front(Heard::new(seq, inbound, &Bursts::NONE, now));
        }
    }

    /// The files of a message that waits are there, or will not be.
    fn fetched(&self, seq: Seq, inbound: Inbound) {
        let mut inbox = self.lock();
        // What was dropped meanwhile is of no interest.
        if let Some(waiting) = inbox.said.iter_mut().find(|waiting| waiting.seq == seq) {
            waiting.inbound = inbound;
        }
    }

    /// Tells the session what its agent did. Answers once that is durable: with the delivery that
    /// the turn's next words will have, or with none when the turn is over.
    pub(crate) async fn agent(&self, turn: TurnId, event: AgentEvent) -> Option<u32> {
        let (told, durable) = oneshot::channel();
        self.lock().agent.push_back((turn, event, told));
        self.wake.notify_one();
        durable.await.ok().flatten()
    }

    pub(crate) fn is_empty(&self) -> bool {
        let inbox = self.lock();
        inbox.control.is_empty()
            && inbox.said.is_empty()
            && inbox.agent.is_empty()
            && inbox.told.is_empty()
            && inbox.passed.is_empty()
            && inbox.restarted.is_none()
            && inbox.leaving.is_none()
            && !inbox.behind
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a lane until its session has had nothing to do for a while.
pub(crate) async fn run(shared: Arc<Shared>, lane: Arc<Lane>) {
    let mut backoff = shared.spread.backoff();
    while let Err(Panicked) = calm(drive(&shared, &lane)).await {
        // From the store again, as after a restart, but nobody died.
        tracing::error!(session = %lane.key, "a lane panicked");
        shared.clock.sleep(backoff.next()).await;
        lane.start_over();
    }
}

async fn drive(shared: &Arc<Shared>, lane: &Arc<Lane>) {
    match Driver::load(shared, lane).await {
        Ok(mut driver) => driver.drive().await,
        Err(error) => {
            // What is in the journal stays there; the next event or run takes it up.
            tracing::error!(session = %lane.key, %error, "a session cannot be loaded");
            shared.lanes.forget(lane);
        }
    }
}

#[expect(
    clippy::large_enum_variant,
    reason = "taken apart where it is made; a box would only cost"
)]
enum Next {
    Event(Event, Option<oneshot::Sender<Option<u32>>>),
    Part(Leaving),
    Read,
    Leave,
}

struct Driver {
    shared: Arc<Shared>,
    lane: Arc<Lane>,
    session: Option<Session>,
    turn: Option<TurnHandle>,
    /// Control events that were taken out of order, so that reading the journal skips them.
    taken: VecDeque<Seq>,
    /// The delivery that a turn of the last run left open. Something of it may have been shown, and
    /// only the store knows what.
    inherited: Option<OutboundId>,
    memory: Memory,
    watched: Watched,
    /// Files of what waits to be heard.
    fetches: Fetches,
    /// How what people send as one is delivered in parts.
    bursts: Bursts,
    /// How long what has been heard of such a thing waits for the rest.
    waits: Option<Duration>,
    /// The turn for which nothing is left, and why.
    refused: Option<(TurnId, Failure)>,
    /// A turn in hand has not begun, because the account was taken out.
    put_off: bool,
}

impl Driver {
    async fn load(shared: &Arc<Shared>, lane: &Arc<Lane>) -> Result<Self, StoreError> {
        let mut backoff = shared.spread.backoff();
        let mut session = loop {
            match shared.store.load(&lane.key).await {
                Err(error @ StoreError::Unavailable { .. }) => {
                    tracing::warn!(session = %lane.key, %error, "a session cannot be loaded yet");
                    shared.clock.sleep(backoff.next()).await;
                }
                loaded => break loaded?,
            }
        };
        if let Some(session) = &mut session {
            session.rules = shared.rules_for(&lane.key);
            shared.open_questions.follow(None, session);
        }
        lane.does(session.as_ref(), shared.clock.now());
        Ok(Self {
            shared: shared.clone(),
            lane: lane.clone(),
            session,
            turn: None,
            taken: VecDeque::new(),
            inherited: None,
            memory: Memory::default(),
            watched: Watched::default(),
            fetches: Fetches::default(),
            bursts: shared.bursts_for(&lane.key),
            waits: None,
            refused: None,
            put_off: false,
        })
    }

    async fn drive(&mut self) {
        loop {
            match self.next().await {
                Next::Event(event, told) => {
                    if let Some(barred) = self.barred() {
                        Box::pin(self.step(barred)).await;
                    }
                    if let Some((rows, why)) = refused(&event) {
                        self.deny(&rows, why).await;
                        continue;
                    }
                    let spender = spending::spender(&event);
                    // On the heap only while it lasts: most lanes wait most of the time.
                    let mut next_delivery = Box::pin(self.step(event)).await;
                    if let Some(spender) = spender
                        && let Some(cut) = self.overdrawn(spender).await
                    {
                        next_delivery = Box::pin(self.step(cut)).await;
                    }
                    if let Some(told) = told {
                        // The turn may have been abandoned while it waited for this.
                        let _ = told.send(next_delivery);
                    }
                }
                Next::Part(leaving) => self.part(&leaving).await,
                Next::Read => self.read().await,
                Next::Leave if self.shared.lanes.leave(&self.lane) => return,
                Next::Leave => {}
            }
        }
    }

    async fn next(&mut self) -> Next {
        loop {
            if let Some(next) = self.take() {
                return next;
            }
            let idle = self.session.as_ref().is_none_or(|session| !session.is_restless());
            let asks = |session: &Session| matches!(session.phase, Phase::Asking { .. });
            if idle || self.session.as_ref().is_some_and(asks) {
                self.lane.stand_up();
            }
            let now = self.shared.clock.now();
            let wait = match self.session.as_ref().and_then(Session::wake_at) {
                // It has not begun, and nothing else is heard before the account is back.
                _ if self.is_out() && (self.put_off || idle && !self.lane.is_empty()) => None,
                Some(at) => Some(at.since(now) + LAST_WORDS),
                None if !self.fetches.is_empty() || self.waits.is_some() => None,
                None if self.shared.lanes.len() > self.shared.limits.lingering => {
                    Some(Duration::ZERO)
                }
                None => Some(self.shared.limits.linger),
            };
            if idle && wait == Some(Duration::ZERO) {
                return Next::Leave;
            }
            let clock = &self.shared.clock;
            let after = async |time: Option<Duration>| match time {
                Some(time) => clock.sleep(time).await,
                None => std::future::pending().await,
            };
            let (waited, rest) = (after(wait), after(self.waits));
            tokio::select! {
                biased;
                () = self.lane.wake.notified() => {}
                (seq, inbound) = self.fetches.next() => self.lane.fetched(seq, inbound),
                () = rest => {}
                () = waited => {
                    return if idle { Next::Leave } else { Next::Event(Event::Woke, None) };
                }
            }
        }
    }

    /// The next event, in the order in which a session must hear them.
    fn take(&mut self) -> Option<Next> {
        let mut inbox = self.lane.lock();
        if let Some(ended) = inbox.restarted.take() {
            return Some(Next::Event(Event::Restarted { ended }, None));
        }
        let is_out = self.is_out();
        if self.put_off && !is_out && !self.shared.is_draining() {
            self.put_off = false;
            return Some(Next::Event(Event::Restarted { ended: Ended::Cleanly }, None));
        }
        if !is_out && let Some((seq, inbound)) = inbox.control.pop_front() {
            if inbox.behind {
                self.taken.push_back(seq);
            }
            let overtaken = inbox.said.iter().filter(|said| said.seq < seq).count();
            let by = authority(&self.shared, [&inbound]);
            return Some(Next::Event(Event::Arrived { seq, inbound, overtaken, by }, None));
        }
        if let Some((turn, event, told)) = inbox.agent.pop_front() {
            return Some(Next::Event(Event::Agent { turn, event }, Some(told)));
        }
        if let Some(leaving) = inbox.leaving.take() {
            return Some(Next::Part(leaving));
        }
        if let Some(told) = inbox.told.pop_front() {
            return Some(Next::Event(told, None));
        }
        self.waits = None;
        // Nobody is denied for what an operator does for a minute.
        if is_out || !self.session.as_ref().is_none_or(Session::has_room) {
            return None;
        }
        self.fetches.keep_up(&self.shared, inbox.said.iter());
        let (listens, now) = (self.shared.listens(), self.shared.clock.now());
        match bursts::ready(&inbox.said, &self.bursts, listens, now) {
            Ready::First(parts) => {
                let mut rows = bursts::take(&mut inbox.said, parts);
                return Some(match rows.len() {
                    1 => {
                        let (seq, inbound) = rows.remove(0);
                        let by = authority(&self.shared, [&inbound]);
                        Next::Event(Event::Arrived { seq, inbound, overtaken: 0, by }, None)
                    }
                    _ => {
                        let by = authority(&self.shared, rows.iter().map(|(_, inbound)| inbound));
                        Next::Event(Event::Together { rows, by }, None)
                    }
                });
            }
            Ready::In(time) => self.waits = Some(time),
            Ready::Not => {}
        }
        if !inbox.said.is_empty() {
            return None;
        }
        if inbox.behind {
            return Some(Next::Read);
        }
        inbox.passed.pop_front().map(|event| Next::Event(event, None))
    }

    /// Leaves the turn in hand to the next run, and cuts it off once that is in writing.
    async fn part(&mut self, leaving: &Leaving) {
        let Some(Phase::Thinking(hand)) = self.session.as_ref().map(|session| &session.phase)
        else {
            return;
        };
        let begun = if self.turn.is_some() { Begun::Yes } else { Begun::No };
        let farewell = leaving.farewell(begun, hand.began, self.shared.clock.now());
        let event = Event::Leaving { reason: leaving.reason, farewell };
        Box::pin(self.step(event)).await;
        self.turn = None;
        let _ = leaving.left.send(self.lane.key.clone());
    }

    /// Fills the inbox from the journal.
    async fn read(&mut self) {
        self.lane.lock().missed = false;
        let unread = match self.shared.store.unread(&self.lane.key, PAGE).await {
            Ok(unread) => unread,
            Err(error) => {
                tracing::warn!(session = %self.lane.key, %error, "the journal cannot be read");
                return self.shared.clock.sleep(STORE_REST).await;
            }
        };
        let now = self.shared.clock.now();
        let mut inbox = self.lane.lock();
        inbox.behind = unread.len() == PAGE || inbox.missed;
        for (seq, inbound) in unread {
            let in_control = inbox.control.iter().any(|(waiting, _)| *waiting == seq);
            if !in_control && !self.taken.contains(&seq) {
                inbox.take_up(Heard::new(seq, inbound, &self.bursts, now));
            }
        }
        if !inbox.behind {
            self.taken.clear();
        }
    }

    /// Steps the session, makes the step durable, lets its effects happen.
    async fn step(&mut self, mut event: Event) -> Option<u32> {
        if let (Event::Restarted { .. }, Some(session)) = (&event, &self.session) {
            self.inherited = session.hand().map(|hand| OutboundId {
                session: session.id.clone(),
                delivery: hand.delivery,
                part: 0,
            });
        }
        let mut backoff = self.shared.spread.backoff();
        let mut failures = 0;
        let mut panics = 0;
        loop {
            let now = self.shared.clock.now();
            let mut next = match (&self.session, first_in(&event)) {
                (Some(session), _) => session.clone(),
                (None, Some(inbound)) => Session::begin(
                    self.lane.key.clone(),
                    inbound.to.clone(),
                    now,
                    self.shared.rules_for(&self.lane.key),
                ),
                // A session that never began has nothing to hear about.
                (None, None) => return None,
            };
            let stepped = std::panic::catch_unwind(AssertUnwindSafe(|| {
                let unsaid = match (&event, &self.turn) {
                    // An agent that reports says itself what it has said.
                    (Event::Agent { .. }, _) | (_, None) => String::new(),
                    (_, Some(turn)) => turn.unsaid(),
                };
                let effects = next.step_amid(event.clone(), now, unsaid);
                let commit = self.commit_of(&next, &effects);
                (next, effects, commit)
            }));
            let (next, effects, commit) = match stepped {
                Ok(stepped) => stepped,
                Err(_) => {
                    panics += 1;
                    tracing::error!(session = %self.lane.key, panics, "a step panicked");
                    if panics == PANICS_UNTIL_QUARANTINE {
                        let rest;
                        (event, rest) = stumbled(event);
                        self.lane.put_back(rest, now);
                    } else if panics > PANICS_UNTIL_QUARANTINE {
                        return None;
                    }
                    continue;
                }
            };
            let bill = Bill::of(&self.shared, self.session.as_ref(), &event, &next, &effects, now);
            let shared = self.shared.clone();
            let Settled { rows, refused, counters } = match bill.settle(&shared).await {
                Ok(settled) => settled,
                Err(error) => {
                    tracing::warn!(session = %self.lane.key, %error, "what was spent cannot be read");
                    self.shared.clock.sleep(backoff.next()).await;
                    continue;
                }
            };
            let commit = Commit { spending: rows, ..commit };
            self.refused = refused;
            let parcels = commit.outbox.clone();
            let _deciding = crate::chats::decide(&self.shared, &parcels).await;
            // A model is not asked again for every time that the disk is full.
            let begins = (failures == 0).then(|| self.begins_at_once(&effects)).flatten();
            let change = Change::of(&commit);
            let written = self.write(commit, &next, &change, begins).await;
            drop(counters);
            match written {
                Ok(begun) => {
                    self.memory.follow(&next, change);
                    let before = self.session.as_ref();
                    let watched = &mut self.watched;
                    crate::watching::tell(&self.shared, watched, before, &next, &event, &effects);
                    crate::passing::stepped(
                        &self.shared,
                        before,
                        &next,
                        &event,
                        &effects,
                        &parcels,
                    );
                    self.shared.open_questions.follow(self.session.as_ref(), &next);
                    self.lane.does(Some(&next), next.updated);
                    self.session = Some(next);
                    crate::chats::offer(&self.shared, parcels, self.inherited.as_ref());
                    self.perform(effects, begun);
                    break;
                }
                Err(error) => {
                    // Nothing was written, so the same event is stepped again from the same state.
                    tracing::warn!(session = %self.lane.key, %error, "a step cannot be made durable");
                    failures += 1;
                    self.shared.clock.sleep(backoff.next()).await;
                }
            }
        }
        self.session.as_ref().and_then(Session::hand).map(|hand| hand.delivery)
    }

    /// Makes a step durable. A turn that begins with it does not wait for the disk: its agent begins to
    /// think meanwhile. If the step is not made durable, that turn is dropped.
    async fn write(
        &self,
        commit: Commit,
        next: &Session,
        change: &Change,
        begins: Option<&Start>,
    ) -> Result<Option<TurnHandle>, StoreError> {
        let Some(start) = begins else {
            return self.shared.store.commit(commit).await.map(|()| None);
        };
        let begin = async {
            let history = match self.memory.with(next, change, self.shared.limits.history) {
                Some(history) => Some(history),
                None => self.read_history(&start.turn.session, &change.recorded).await,
            };
            self.begin(start.clone(), next, history)
        };
        let (committed, turn) = futures::join!(self.shared.store.commit(commit), begin);
        committed.map(|()| Some(turn))
    }

    /// The transcript while a step is written that adds to it. A turn that is given none reads it for
    /// itself.
    async fn read_history(&self, life: &SessionId, recorded: &[Entry]) -> Option<Vec<Entry>> {
        let limit = self.shared.limits.history.saturating_sub(recorded.len()).max(1);
        let mut read = self.shared.store.history(life, limit).await.ok()?;
        if let Some(first) = recorded.first() {
            // The reader may have seen the step or not.
            read.retain(|entry| entry.number < first.number);
            read.extend_from_slice(recorded);
        }
        Some(read)
    }

    /// The turn that a step begins, if it does nothing besides and there is a place for it.
    fn begins_at_once<'a>(&self, effects: &'a [Effect]) -> Option<&'a Start> {
        let mut begins = None;
        for effect in effects {
            match effect {
                Effect::Start(start) => begins = Some(start),
                Effect::Bind { .. } | Effect::Record { .. } => {}
                _ => return None,
            }
        }
        // What resumes a turn counts the deaths of the process during it, which has to be durable.
        let is_new = effects.iter().any(|effect| matches!(effect, Effect::Bind { .. }));
        let at_once = is_new
            && self.lane.lock().beginning == Beginning::AtOnce
            && !self.shared.is_draining()
            && !self.is_out();
        begins.filter(|_| at_once && self.shared.turn_permits.available_permits() > 0)
    }

    fn begin(&self, start: Start, session: &Session, history: Option<Vec<Entry>>) -> TurnHandle {
        let beginning = turn::Beginning {
            situation: Arc::new(crate::situation::of(&self.shared, session, &start)),
            delivery: session.hand().map_or(0, |hand| hand.delivery),
            inherited: self.inherited.clone(),
            history,
            refused: self
                .refused
                .clone()
                .filter(|(turn, _)| *turn == start.turn)
                .map(|(_, why)| why),
            start,
        };
        turn::start(&self.shared, self.lane.clone(), beginning)
    }

    fn commit_of(&self, next: &Session, effects: &[Effect]) -> Commit {
        let mut commit = crate::commits::of(&self.shared, next, effects);
        commit.outbox.extend(self.withdrawn(next, &commit.outbox));
        commit
    }

    /// What takes away the preview of a turn that ends without a word in its place.
    fn withdrawn(&self, next: &Session, said: &[Outbound]) -> Option<Outbound> {
        let before = self.session.as_ref()?;
        let TurnInHand { delivery, to, .. } = before.hand()?;
        let id = OutboundId { session: before.id.clone(), delivery: *delivery, part: 0 };
        let still = next.hand().filter(|hand| next.id == before.id && hand.delivery == *delivery);
        let replaced = said.iter().any(|outbound| outbound.id == id);
        let can = self.shared.capabilities(to);
        if still.is_some() || replaced || !shows_words(&can) {
            return None;
        }
        let past = if self.inherited.as_ref() == Some(&id) { Past::Unknown } else { Past::None };
        Some(withdrawal(id, to.clone(), &can, past))
    }

    fn perform(&mut self, effects: Vec<Effect>, mut begun: Option<TurnHandle>) {
        for effect in effects {
            match effect {
                // It is in hand, so the next run begins it.
                Effect::Start(_) if begun.is_none() && self.shared.is_draining() => {
                    self.turn = None
                }
                // It is in hand, and begins when the account is back.
                Effect::Start(_) if begun.is_none() && self.is_out() => {
                    self.turn = None;
                    self.put_off = true;
                }
                Effect::Start(start) => {
                    let begun = begun.take();
                    self.turn =
                        begun.or_else(|| Some(self.begin(start, self.session.as_ref()?, None)));
                    self.turn.iter().for_each(TurnHandle::confirm);
                }
                Effect::Tell { turn, word } => {
                    if let Some(handle) = self.turn.as_mut().filter(|handle| handle.turn == turn) {
                        handle.tell(word);
                    }
                }
                Effect::Abandon(turn) => {
                    if self.turn.as_ref().is_some_and(|handle| handle.turn == turn) {
                        self.turn = None;
                    }
                }
                Effect::DropUnread { before, .. } => self.lane.lock().drop_before(before),
                Effect::Forward { to, .. } => crate::lanes::look(&self.shared, to),
                Effect::Pass { to, passed } => {
                    crate::lanes::tell(&self.shared, to, Event::Passed(passed));
                }
                Effect::Ask { seq, from, at, request } => self.ask(seq, from, at, request),
                Effect::Take(_)
                | Effect::Bind { .. }
                | Effect::Close { .. }
                | Effect::Record { .. }
                | Effect::Rewind { .. }
                | Effect::Branch { .. }
                | Effect::Retire { .. }
                | Effect::Post(_)
                | Effect::Replace(_)
                | Effect::Grant(_)
                | Effect::Attest(_) => {}
            }
        }
    }
}

impl Driver {
    /// What ends a turn that has spent all that there was.
    async fn overdrawn(&mut self, spender: TurnId) -> Option<Event> {
        let session = self.session.as_ref()?;
        let Phase::Thinking(hand) = &session.phase else { return None };
        if hand.turn != spender {
            return None;
        }
        let failure = Failure::OverBudget(spending::overdrawn(&self.shared, session, hand).await?);
        // Nobody listens to the agent any more, so it is asked what it had begun to say.
        let said = self.turn.take().map(|turn| turn.unsaid()).unwrap_or_default();
        let (usage, cost) = (Usage::default(), Cost::FREE);
        Some(Event::Agent {
            turn: spender,
            event: AgentEvent::Failed { failure, said, usage, cost },
        })
    }

    /// Whether the account was taken out while the gateway runs. It may be back before long.
    fn is_out(&self) -> bool {
        self.shared.accounts.is_out(&self.lane.key.account)
    }

    /// What still waits of those who are not heard any more.
    fn barred(&self) -> Option<Event> {
        let waiting = &self.session.as_ref()?.waiting;
        let account = self.shared.accounts.known(&self.lane.key.account);
        let mut why = GONE;
        let rows: Vec<Seq> = waiting
            .iter()
            .filter(|said| match account.as_ref().map(|account| account.authority_of(said)) {
                Some(by) if by.may(Deed::Speak) => false,
                Some(by) => {
                    why = by.rule.reason();
                    true
                }
                None => true,
            })
            .map(|said| said.seq)
            .collect();
        (!rows.is_empty()).then_some(Event::Barred { rows, why })
    }

    /// Nobody answers these rows: who said them was put out since they were journalled.
    async fn deny(&self, rows: &[Seq], why: &str) {
        let mut backoff = self.shared.spread.backoff();
        while let Err(error) = self.shared.store.deny(rows, why).await {
            tracing::warn!(session = %self.lane.key, %error, "rows cannot be denied");
            self.shared.clock.sleep(backoff.next()).await;
        }
        tracing::info!(session = %self.lane.key, rows = rows.len(), why, "not let in any more");
    }

    fn ask(&self, seq: Seq, from: Sender, at: Address, request: Request) {
        let Some(session) = &self.session else { return };
        let asking = Asking {
            key: session.key.clone(),
            life: session.id.clone(),
            owner: Owner::of(session),
            seq,
            from,
            at,
            request,
        };
        requests::ask(&self.shared, asking);
    }
}

/// Why nobody is heard on an account that is not configured since this run began.
const GONE: &str = "the account is not configured any more";

/// What the sender of these may do at this moment: of all that is known of them, the least.
fn authority<'a>(shared: &Shared, rows: impl IntoIterator<Item = &'a Inbound>) -> Authority {
    let of = |inbound: &Inbound| {
        let account = shared.accounts.known(&inbound.to.account);
        account.map_or_else(Authority::none, |account| account.authority(inbound))
    };
    let least = rows.into_iter().map(of).min_by_key(|by| by.footing);
    least.unwrap_or_else(Authority::none)
}

/// The rows of an event whose sender is not heard any more, and why not.
fn refused(event: &Event) -> Option<(Vec<Seq>, &'static str)> {
    let (rows, by) = match event {
        Event::Arrived { seq, by, .. } => (vec![*seq], by),
        Event::Together { rows, by } => (rows.iter().map(|(seq, _)| *seq).collect(), by),
        Event::Agent { .. }
        | Event::Told { .. }
        | Event::Barred { .. }
        | Event::Passed(_)
        | Event::PutAway
        | Event::Renamed { .. }
        | Event::Woke
        | Event::Leaving { .. }
        | Event::Restarted { .. }
        | Event::Stumbled { .. } => return None,
    };
    (!by.may(Deed::Speak)).then(|| (rows, by.rule.reason()))
}

/// What a session hears instead of an event over which it panicked every time: the ones behind it
/// must not be blocked, and the person is told. What it came together with is heard by itself.
fn stumbled(event: Event) -> (Event, Vec<(Seq, Inbound)>) {
    let (over, rest) = match event {
        Event::Arrived { seq, inbound, .. } => (Some((seq, inbound)), Vec::new()),
        Event::Together { mut rows, .. } => {
            let rest = rows.split_off(rows.len().min(1));
            (rows.pop(), rest)
        }
        Event::Agent { .. }
        | Event::Told { .. }
        | Event::Barred { .. }
        | Event::Passed(_)
        | Event::PutAway
        | Event::Renamed { .. }
        | Event::Woke
        | Event::Leaving { .. }
        | Event::Restarted { .. }
        | Event::Stumbled { .. } => (None, Vec::new()),
    };
    (Event::Stumbled { over }, rest)
}

/// What arrived with an event, or the first of it.
fn first_in(event: &Event) -> Option<&Inbound> {
    match event {
        Event::Arrived { inbound, .. } | Event::Stumbled { over: Some((_, inbound)) } => {
            Some(inbound)
        }
        Event::Together { rows, .. } => rows.first().map(|(_, inbound)| inbound),
        _ => None,
    }
}
