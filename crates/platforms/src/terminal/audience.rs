//! Who is listening: the terminals attached to each conversation, and what they are told.
//!
//! What is said is queued for each terminal, up to a bound; a terminal that does not read is
//! disconnected and finds the rest in the past when it comes back. Drafts are not queued: only the
//! newest counts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use talaria_model::{ChatId, OutboundId};
use tokio::sync::{mpsc, watch};

use super::wire::{Doing, Event, LONGEST_LINE};

/// Terminals attached at the same time.
const SEATS: usize = 64;

/// Lines that a terminal may be behind.
const BACKLOG: usize = 256;

/// Conversations without a terminal whose newest draft is kept for one that attaches later.
const UNATTENDED: usize = 64;

/// One line of the stream, and what the conversation is doing once it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) bytes: Bytes,
    pub(super) doing: Doing,
}

impl Line {
    /// The event as it travels. `None` when no terminal would read a line this long.
    pub(super) fn of(event: &Event, doing: Doing) -> Option<Self> {
        let mut bytes = serde_json::to_vec(event).expect("an event is plain data");
        bytes.push(b'\n');
        (bytes.len() <= LONGEST_LINE).then(|| Self { bytes: bytes.into(), doing })
    }
}

/// The terminals attached to each conversation.
#[derive(Default)]
pub(super) struct Audience {
    rooms: Mutex<Rooms>,
}

#[derive(Default)]
struct Rooms {
    rooms: HashMap<ChatId, Room>,
    seats: usize,
    next: u64,
}

/// One conversation.
#[derive(Default)]
struct Room {
    draft: watch::Sender<Option<Draft>>,
    seats: Vec<Seat>,
}

struct Seat {
    number: u64,
    queue: mpsc::Sender<Line>,
}

/// The newest draft of a conversation.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    id: OutboundId,
    pub(super) line: Line,
}

/// A terminal's place. Dropping it detaches.
pub(super) struct Attached {
    pub(super) queue: mpsc::Receiver<Line>,
    pub(super) draft: watch::Receiver<Option<Draft>>,
    audience: Arc<Audience>,
    chat: ChatId,
    number: u64,
}

impl Audience {
    /// A place for one more terminal, unless all are taken.
    pub(super) fn attach(self: &Arc<Self>, chat: &ChatId) -> Option<Attached> {
        let mut all = self.lock();
        if all.seats >= SEATS {
            return None;
        }
        all.seats += 1;
        all.next += 1;
        let number = all.next;
        let (queue, lines) = mpsc::channel(BACKLOG);
        let room = all.rooms.entry(chat.clone()).or_default();
        room.seats.push(Seat { number, queue });
        let mut draft = room.draft.subscribe();
        draft.mark_changed();
        let (audience, chat) = (self.clone(), chat.clone());
        Some(Attached { queue: lines, draft, audience, chat, number })
    }

    /// Whether anybody is attached.
    pub(super) fn is_attended(&self, chat: &ChatId) -> bool {
        self.lock().rooms.get(chat).is_some_and(|room| !room.seats.is_empty())
    }

    /// Tells everybody who is attached. Whoever has not read the last `BACKLOG` lines is
    /// disconnected.
    pub(super) fn tell(&self, chat: &ChatId, line: &Line) {
        let mut all = self.lock();
        let Some(room) = all.rooms.get_mut(chat) else { return };
        let before = room.seats.len();
        room.seats.retain(|seat| seat.queue.try_send(line.clone()).is_ok());
        let disconnected = before - room.seats.len();
        all.seats -= disconnected;
    }

    /// Shows an answer as far as it has grown, to whoever is there or comes later.
    pub(super) fn draft(&self, chat: &ChatId, id: &OutboundId, line: Line) {
        let mut all = self.lock();
        if !all.rooms.contains_key(chat) {
            all.make_room();
        }
        let room = all.rooms.entry(chat.clone()).or_default();
        room.draft.send_replace(Some(Draft { id: id.clone(), line }));
    }

    /// Forgets the draft of a delivery that is complete.
    pub(super) fn settle(&self, chat: &ChatId, id: &OutboundId) {
        self.forget(chat, |draft| {
            draft.id.session == id.session && draft.id.delivery == id.delivery
        });
    }

    /// Forgets whatever was drafted in a conversation that does nothing.
    pub(super) fn idle(&self, chat: &ChatId) {
        self.forget(chat, |_| true);
    }

    fn forget(&self, chat: &ChatId, which: impl Fn(&Draft) -> bool) {
        let mut all = self.lock();
        if let Some(room) = all.rooms.get(chat) {
            room.draft.send_if_modified(|draft| draft.take_if(|draft| which(draft)).is_some());
        }
        all.sweep(chat);
    }

    fn leave(&self, chat: &ChatId, number: u64) {
        let mut all = self.lock();
        if let Some(room) = all.rooms.get_mut(chat) {
            let before = room.seats.len();
            room.seats.retain(|seat| seat.number != number);
            let left = before - room.seats.len();
            all.seats -= left;
        }
        all.sweep(chat);
    }

    fn lock(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rooms {
    /// Forgets a conversation that nobody listens to and nothing is drafted in.
    fn sweep(&mut self, chat: &ChatId) {
        let empty = |room: &Room| room.seats.is_empty() && room.draft.borrow().is_none();
        if self.rooms.get(chat).is_some_and(empty) {
            self.rooms.remove(chat);
        }
    }

    /// Gives up an unattended draft when there are too many; the answer itself comes all the same.
    fn make_room(&mut self) {
        let mut unattended = self.rooms.iter().filter(|(_, room)| room.seats.is_empty());
        if unattended.clone().count() >= UNATTENDED
            && let Some(chat) = unattended.next().map(|(chat, _)| chat.clone())
        {
            self.rooms.remove(&chat);
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.audience.leave(&self.chat, self.number);
    }
}
