//! What drives a lane: it takes what is next, in the order in which a session must hear it, and waits when
//! there is nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use talaria_model::{Failure, Inbound, OutboundId, Seq, TurnId};
use talaria_platform::Bursts;
use talaria_session::{Begun, Ended, Event, Phase, Session};
use talaria_store::StoreError;
use tokio::sync::oneshot;

use super::events::{authority, barred_while_waiting, deny, refused, restarted};
use super::step::Stepped;
use super::{Lane, crossing};
use crate::bursts::{self, Heard, Ready};
use crate::drain::Leaving;
use crate::fetching::Fetches;
use crate::memory::Memory;
use crate::scrutiny;
use crate::shared::Shared;
use crate::spending;
use crate::tasks::{Panicked, calm};
use crate::turn::TurnHandle;
use crate::watching::Watched;

/// How many rows are read from the journal at once when the inbox had no room.
const PAGE: usize = 64;

/// How long the store rests that could not answer.
const STORE_REST: Duration = Duration::from_secs(1);

/// How long an agent that keeps to its limit has for its last words.
const LAST_WORDS: Duration = Duration::from_secs(2);

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

pub(super) struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) lane: Arc<Lane>,
    pub(super) session: Option<Session>,
    pub(super) turn: Option<TurnHandle>,
    /// Control events that were taken out of order, so that reading the journal skips them.
    pub(super) taken: VecDeque<Seq>,
    /// The delivery that a turn of the last run left open. Something of it may have been shown, and
    /// only the store knows what.
    pub(super) inherited: Option<OutboundId>,
    pub(super) memory: Memory,
    pub(super) watched: Watched,
    /// Files of what waits to be heard.
    pub(super) fetches: Fetches,
    /// How what people send as one is delivered in parts.
    pub(super) bursts: Bursts,
    /// How long what has been heard of such a thing waits for the rest.
    pub(super) waits: Option<Duration>,
    /// The turn for which nothing is left, and why.
    pub(super) refused: Option<(TurnId, Failure)>,
    /// A turn in hand has not begun, because the account was taken out.
    pub(super) put_off: bool,
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
                Next::Event(mut event, told) => {
                    let session = self.session.as_ref();
                    if let Some(barred) =
                        session.and_then(|session| barred_while_waiting(&self.shared, session))
                    {
                        // Where it is given up, no step begins anything for those who should have been denied.
                        let _ = Box::pin(self.step(barred)).await;
                    }
                    if let Some((rows, why)) = refused(&event) {
                        deny(&self.shared, &self.lane.key, &rows, why).await;
                        continue;
                    }
                    crossing::mark(&self.shared, self.session.as_ref(), &mut event).await;
                    let spender = spending::spender(&event);
                    // On the heap only while it lasts: most lanes wait most of the time.
                    let mut stepped = Box::pin(self.step(event)).await;
                    if let Some(spender) = spender
                        && let Some(cut) = self.overdrawn(spender).await
                    {
                        stepped = Box::pin(self.step(cut)).await;
                    }
                    if let Some(told) = told {
                        let next_delivery = match stepped {
                            Stepped::Done(next_delivery) => next_delivery,
                            Stepped::GivenUp => None,
                        };
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
            // Nor does anybody wait for a session that waits for its account.
            let waits = self.put_off && self.is_out();
            // What waits in an inbox is as much as what a turn holds, so it keeps its seat.
            let rests = idle && (self.lane.is_empty() || self.is_out());
            if rests || waits || self.session.as_ref().is_some_and(asks) {
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
                (seq, fetched) = self.fetches.next() => {
                    self.lane.fetched(seq, fetched, clock.now());
                }
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
            let event = restarted(&self.shared, self.session.as_ref(), ended);
            return Some(Next::Event(event, None));
        }
        let is_out = self.is_out();
        if self.put_off && !is_out && !self.shared.is_draining() {
            self.put_off = false;
            let event = restarted(&self.shared, self.session.as_ref(), Ended::Cleanly);
            return Some(Next::Event(event, None));
        }
        let is_decided = |(_, inbound): &(Seq, Inbound)| !scrutiny::is_due(inbound);
        let control = inbox.control.iter().position(is_decided).filter(|_| !is_out);
        if let Some((seq, inbound)) = control.and_then(|place| inbox.control.remove(place)) {
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
        if is_out {
            return None;
        }
        let (control, said) = (inbox.control.iter(), inbox.said.iter());
        self.fetches.keep_up(&self.shared, &self.lane.key, control, said);
        if !self.session.as_ref().is_none_or(Session::has_room) {
            return None;
        }
        // What overtakes others overtakes nothing that came behind it, and what is left of it has yet to be
        // decided about.
        let undecided = inbox.control.iter().map(|(seq, _)| *seq).min();
        let is_before = |heard: &&Heard| undecided.is_none_or(|undecided| heard.seq < undecided);
        let before = inbox.said.iter().take_while(is_before).count();
        let (listens, now) = (self.shared.listens(), self.shared.clock.now());
        match bursts::ready(&inbox.said, &self.bursts, listens, now) {
            Ready::First(parts) if before > 0 => {
                let mut rows = bursts::take(&mut inbox.said, parts.min(before));
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
            Ready::First(_) | Ready::Not => {}
        }
        if !inbox.said.is_empty() {
            return None;
        }
        if inbox.behind {
            return Some(Next::Read);
        }
        if undecided.is_some() {
            return None;
        }
        inbox.passed.pop_front().map(|event| Next::Event(event, None))
    }

    /// Leaves the turn in hand to the next run, and cuts it off once that is in writing.
    async fn part(&mut self, leaving: &Leaving) {
        let Some(Phase::Thinking(hand)) = self.session.as_ref().map(|session| &session.phase)
        else {
            return;
        };
        let begun = self.turn.as_ref().map_or(Begun::No, TurnHandle::begun);
        let farewell = leaving.farewell(begun, hand.began, self.shared.clock.now());
        let event = Event::Leaving { reason: leaving.reason, farewell };
        // Whatever comes of it, the process ends.
        let _ = Box::pin(self.step(event)).await;
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
                inbox.find(Heard::new(seq, inbound, &self.bursts, now));
            }
        }
        if !inbox.behind {
            self.taken.clear();
        }
    }

    /// Whether the account was taken out while the gateway runs. It may be back before long.
    pub(super) fn is_out(&self) -> bool {
        self.shared.accounts.is_out(&self.lane.key.account)
    }
}
