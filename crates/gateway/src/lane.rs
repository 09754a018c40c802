//! One serial lane per session: the only door into it.
//!
//! People, the agent, time and restarts are all events here, one after the other. A lane loads its
//! session, steps it, makes the step durable, and only then lets its effects happen. The agent of a new
//! turn thinks in the meantime; nobody hears of it before.

mod crossing;
mod driver;
pub(crate) mod events;
mod step;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use talaria_model::{AgentEvent, Inbound, Seq, Timestamp, TurnId};
use talaria_platform::Bursts;
use talaria_session::{Ended, Event, Session, SessionKey, is_control};
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};

pub(crate) use driver::run;

use crate::bursts::Heard;
use crate::drain::Leaving;
use crate::dump::{Doing, LaneDump};
use crate::fetching::Fetched;
use crate::scrutiny;

/// How many events may overtake others at once, and as many that have yet to be decided about. One stop does what ten do.
const URGENT: usize = 8;

/// How much a session is told at once that did not arrive from a platform.
const MOST_TOLD: usize = 64;

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
    /// The last row that was put into `said`, or found in the journal. A row is in the journal before it is
    /// handed over, so it can come from both sides; the second time it is nothing new.
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

    /// Whether something may overtake others. What has yet to be decided about takes no place of what has not:
    /// a stop must not wait for anybody's answer.
    fn has_room_for(&self, inbound: &Inbound) -> bool {
        let is_due = scrutiny::is_due(inbound);
        let same = self.control.iter().filter(|(_, other)| scrutiny::is_due(other) == is_due);
        same.count() < URGENT
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

    /// Takes up what is found in the journal. What overtakes others does so from there, too.
    fn find(&mut self, heard: Heard) {
        let overtakes = is_control(&heard.inbound) && self.has_room_for(&heard.inbound);
        if overtakes && !self.is_known(heard.seq) {
            self.newest = Some(heard.seq);
            return self.control.push_back((heard.seq, heard.inbound));
        }
        self.take_up(heard);
    }

    /// What was said of a message may let it overtake others, or take that from it.
    fn fetched(&mut self, seq: Seq, fetched: Fetched, now: Timestamp) {
        let said = self.said.iter().position(|waiting| waiting.seq == seq);
        let control = self.control.iter().position(|(waiting, _)| *waiting == seq);
        let Some(inbound) = fetched else {
            said.and_then(|place| self.said.remove(place));
            control.and_then(|place| self.control.remove(place));
            return;
        };
        let overtakes = is_control(&inbound);
        match (said, control) {
            (Some(place), _) if overtakes && self.has_room_for(&inbound) => {
                self.said.remove(place);
                self.control.push_back((seq, inbound));
            }
            (Some(place), _) => self.said[place].inbound = inbound,
            (None, Some(place)) if overtakes => self.control[place].1 = inbound,
            (None, Some(place)) => {
                self.control.remove(place);
                self.wait_in_order(Heard::new(seq, inbound, &Bursts::NONE, now));
            }
            // What was forgotten meanwhile is of no interest.
            (None, None) => {}
        }
    }

    /// Puts something behind what came before it. Where that is still in the journal, it is read from there
    /// with the rest.
    fn wait_in_order(&mut self, heard: Heard) {
        if self.behind && !self.is_known(heard.seq) {
            return self.leave_to_journal();
        }
        let place = self.said.partition_point(|waiting| waiting.seq < heard.seq);
        self.newest = self.newest.max(Some(heard.seq));
        self.said.insert(place, heard);
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
        } else if inbox.has_room_for(&inbound) {
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

    /// A message that waits has what there is to be had, or is not waited for any more.
    fn fetched(&self, seq: Seq, fetched: Fetched, now: Timestamp) {
        self.lock().fetched(seq, fetched, now);
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
