//! One serial lane per chat on the way out, so that what is said in a chat arrives in order.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talaria_agent::Preview;
use talaria_model::{Address, Outbound, OutboundId};
use talaria_store::{Parcel, ParcelState, StoreError};
use tokio::sync::{Notify, watch};

use crate::delivery;
use crate::preview::{Live, Past, Shown};
use crate::shared::Shared;

/// How many addresses are taken up per look into the store.
const PAGE: usize = 500;

/// The chats with something to deliver or to show.
#[derive(Default)]
pub(crate) struct Chats {
    chats: Mutex<HashMap<Address, Arc<Chat>>>,
}

/// The way to a chat's deliveries.
pub(crate) struct Chat {
    pub(crate) to: Address,
    outbox: Mutex<Outbox>,
    pub(crate) wake: Notify,
    /// Held while a preview is being named in the store.
    naming: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Outbox {
    parcels: VecDeque<Parcel>,
    /// There is more in the store than in `parcels`; until it is read, nothing is put in.
    behind: bool,
    /// Something was left to the store since it was last looked into.
    missed: bool,
    pace: Pace,
    /// Answers that grow. Several people can be answered in one chat at the same time.
    shown: Vec<Shown>,
    /// The newest deliveries whose text is decided or about to be, the latest last. They grow no
    /// more.
    decided: VecDeque<OutboundId>,
}

/// What a chat's deliveries are doing.
#[derive(Default, PartialEq, Eq)]
enum Pace {
    /// Looking for something to do.
    #[default]
    Resting,
    /// Something is on its way.
    Carrying,
    /// Something has to wait, and all that is behind it.
    Held,
}

/// How many decided deliveries of a chat are remembered.
///
/// Each has to be until its turn has noticed that it is decided, which is the turn's next step: a turn
/// that is just about to show a preview must not do so behind its own answer. To be forgotten too early,
/// so many other deliveries would have to be made durable in the same chat within that step, one after
/// the other.
const DECIDED: usize = 16;

/// What a chat does next.
#[expect(
    clippy::large_enum_variant,
    reason = "taken apart where it is made; a box would only cost"
)]
pub(crate) enum Errand {
    Deliver(Parcel),
    Read,
    Show(Vec<Shown>),
    Leave,
}

impl Chats {
    /// Whether anything is leaving, or could leave at once.
    pub(crate) fn busy(&self) -> bool {
        self.lock().values().any(|chat| {
            let outbox = chat.lock();
            match outbox.pace {
                Pace::Resting => outbox.behind || !outbox.parcels.is_empty(),
                Pace::Carrying => true,
                Pace::Held => false,
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, Arc<Chat>>> {
        self.chats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of a chat, unless something reached it in the meantime.
    pub(crate) fn leave(&self, chat: &Arc<Chat>) -> bool {
        let mut chats = self.lock();
        let outbox = chat.lock();
        if !outbox.parcels.is_empty() || outbox.behind || !outbox.shown.is_empty() {
            return false;
        }
        chats.remove(&chat.to);
        true
    }
}

impl Chat {
    fn lock(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to do next. Parcels go before previews: an answer ends its preview.
    pub(crate) fn errand(&self) -> Errand {
        let mut outbox = self.lock();
        outbox.pace = Pace::Carrying;
        if let Some(parcel) = outbox.parcels.pop_front() {
            return Errand::Deliver(parcel);
        }
        if outbox.behind {
            outbox.missed = false;
            return Errand::Read;
        }
        outbox.pace = Pace::Resting;
        if outbox.shown.is_empty() { Errand::Leave } else { Errand::Show(outbox.shown.clone()) }
    }

    /// Says that what is on its way has to wait.
    pub(crate) fn hold(&self) {
        self.lock().pace = Pace::Held;
    }

    /// Says that it goes on.
    pub(crate) fn carry_on(&self) {
        self.lock().pace = Pace::Carrying;
    }

    /// Whether a delivery grows no more.
    pub(crate) fn is_decided(&self, id: &OutboundId) -> bool {
        self.lock().decided.contains(id)
    }

    /// Keeps the delivery from being decided until the returned value is dropped. None when it is
    /// too late for that.
    pub(crate) async fn name(&self, id: &OutboundId) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let naming = self.naming.lock().await;
        (!self.is_decided(id)).then_some(naming)
    }

    /// Puts back what is tried again later; nothing may overtake it.
    pub(crate) fn put_back(&self, parcel: Parcel) {
        self.lock().parcels.push_front(parcel);
    }

    /// Whether nothing waits behind what is at hand.
    pub(crate) fn is_last(&self) -> bool {
        let outbox = self.lock();
        outbox.parcels.is_empty() && !outbox.behind
    }

    /// Says that the store has more than what is in memory.
    pub(crate) fn has_more(&self) {
        self.lock().leave_to_store();
    }

    /// Forgets what is in memory and reads it from the store again.
    pub(crate) fn look_again(&self) {
        let mut outbox = self.lock();
        outbox.parcels.clear();
        outbox.leave_to_store();
    }

    /// Takes over what was read from the store.
    pub(crate) fn fill(&self, parcels: Vec<Parcel>, more: bool) {
        let mut outbox = self.lock();
        outbox.behind = more || outbox.missed;
        outbox.parcels.extend(parcels);
    }

    /// Ends a preview, so that the chat can go.
    pub(crate) fn hide(&self, id: &OutboundId) {
        self.lock().shown.retain(|shown| shown.id != *id);
        self.wake.notify_one();
    }
}

impl Outbox {
    fn leave_to_store(&mut self) {
        self.behind = true;
        self.missed = true;
    }

    fn decide(&mut self, id: OutboundId) {
        if !self.decided.contains(&id) {
            self.decided.push_back(id);
        }
        if self.decided.len() > DECIDED {
            self.decided.pop_front();
        }
    }
}

/// Says that these are about to be made durable. A preview that the store does not know of by then
/// will not be posted: after a crash, nobody would know that something may be visible.
pub(crate) async fn decide(shared: &Shared, parcels: &[Outbound]) {
    for outbound in parcels.iter().filter(|outbound| outbound.id.part == 0) {
        let chat = shared.chats.lock().get(&outbound.to).cloned();
        if let Some(chat) = chat {
            let _naming = chat.naming.lock().await;
            chat.lock().decide(outbound.id.clone());
        }
    }
}

/// Hands over what a step has made durable. What finds no room is read from the store later, and so
/// is what may have been shown before this run.
pub(crate) fn offer(shared: &Arc<Shared>, parcels: Vec<Outbound>, inherited: Option<&OutboundId>) {
    for outbound in parcels {
        with_chat(shared, outbound.to.clone(), |chat| {
            let mut outbox = chat.lock();
            let delivery = outbound.id.with_part(0);
            let is_inherited = inherited == Some(&delivery);
            outbox.shown.retain(|shown| shown.id != delivery);
            if outbox.behind || is_inherited || outbox.parcels.len() >= shared.limits.outbox {
                outbox.leave_to_store();
            } else {
                outbox.parcels.push_back(Parcel {
                    outbound,
                    state: ParcelState::Ready,
                    shown: None,
                    attempts: 0,
                    not_before: None,
                    at: shared.clock.now(),
                });
            }
        });
    }
}

/// Shows an answer while it grows, until the returned value is dropped.
pub(crate) fn show(
    shared: &Arc<Shared>,
    to: Address,
    id: OutboundId,
    preview: watch::Receiver<Preview>,
    past: Past,
) -> Live {
    if !delivery::can_preview(&shared.capabilities(&to.account)) {
        return Live::nothing();
    }
    let shown = Shown { id: id.clone(), preview, past };
    let chat = with_chat(shared, to, |chat| {
        let mut outbox = chat.lock();
        if !outbox.decided.contains(&shown.id) {
            outbox.shown.push(shown);
        }
    });
    Live::new(chat, id)
}

/// Takes up every chat that the last run left with something to deliver.
pub(crate) async fn resume(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let page = shared.store.undelivered(after, PAGE).await?;
        after = page.last().cloned();
        let last = page.len() < PAGE;
        for to in page {
            with_chat(shared, to, |chat| chat.lock().leave_to_store());
        }
        if last {
            return Ok(());
        }
    }
}

fn with_chat(shared: &Arc<Shared>, to: Address, tell: impl FnOnce(&Chat)) -> Arc<Chat> {
    let mut chats = shared.chats.lock();
    let chat = chats.entry(to).or_insert_with_key(|to| {
        let chat = Arc::new(Chat {
            to: to.clone(),
            outbox: Mutex::default(),
            wake: Notify::new(),
            naming: tokio::sync::Mutex::default(),
        });
        shared.tasks.spawn(delivery::run(shared.clone(), chat.clone()));
        chat
    });
    tell(chat);
    chat.wake.notify_one();
    chat.clone()
}
