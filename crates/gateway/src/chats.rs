//! One serial lane per chat on the way out, so that what is said in a chat arrives in order.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talaria_agent::Preview;
use talaria_model::{Address, Outbound, OutboundId};
use talaria_store::{Parcel, ParcelState, StoreError};
use tokio::sync::{Notify, watch};

use crate::delivery;
use crate::preview::{Live, Shown};
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
}

#[derive(Default)]
struct Outbox {
    parcels: VecDeque<Parcel>,
    /// There is more in the store than in `parcels`; until it is read, nothing is put in.
    behind: bool,
    /// A parcel is on its way to the platform at this moment.
    leaving: bool,
    shown: Option<Shown>,
}

/// What a chat does next.
pub(crate) enum Errand {
    Deliver(Parcel),
    Read,
    Show(Shown),
    Leave,
}

impl Chats {
    /// Whether anything is leaving, or could leave at once.
    pub(crate) fn busy(&self, shared: &Shared) -> bool {
        let now = shared.clock.now();
        let could_leave = |chat: &Arc<Chat>| {
            let outbox = chat.lock();
            let due = |parcel: &Parcel| parcel.not_before.is_none_or(|at| at <= now);
            outbox.leaving
                || outbox.parcels.front().is_some_and(due)
                    && shared.accounts.outgoing(&chat.to.account).borrow().is_some()
        };
        self.lock().values().any(could_leave)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, Arc<Chat>>> {
        self.chats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of a chat, unless something reached it in the meantime.
    pub(crate) fn leave(&self, chat: &Arc<Chat>) -> bool {
        let mut chats = self.lock();
        let outbox = chat.lock();
        if !outbox.parcels.is_empty() || outbox.behind || outbox.shown.is_some() {
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
        if let Some(parcel) = outbox.parcels.pop_front() {
            return Errand::Deliver(parcel);
        }
        if outbox.behind {
            return Errand::Read;
        }
        outbox.shown.clone().map_or(Errand::Leave, Errand::Show)
    }

    /// Says that a parcel is on its way, until the returned value is dropped.
    pub(crate) fn leaving(self: &Arc<Self>) -> Leaving {
        self.lock().leaving = true;
        Leaving(self.clone())
    }

    /// Puts back what is tried again later; nothing may overtake it.
    pub(crate) fn put_back(&self, parcel: Parcel) {
        self.lock().parcels.push_front(parcel);
    }

    /// Takes over what was read from the store.
    pub(crate) fn fill(&self, parcels: Vec<Parcel>, more: bool) {
        let mut outbox = self.lock();
        outbox.behind = more;
        outbox.parcels.extend(parcels);
    }

    /// Ends a preview, so that the chat can go.
    pub(crate) fn hide(&self, id: &OutboundId) {
        let mut outbox = self.lock();
        if outbox.shown.as_ref().is_some_and(|shown| shown.id == *id) {
            outbox.shown = None;
        }
        drop(outbox);
        self.wake.notify_one();
    }
}

/// A parcel on its way.
pub(crate) struct Leaving(Arc<Chat>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.lock().leaving = false;
    }
}

/// Hands over what a step has made durable. What finds no room is read from the store later.
pub(crate) fn offer(shared: &Arc<Shared>, parcels: Vec<Outbound>) {
    for outbound in parcels {
        with_chat(shared, outbound.to.clone(), |chat| {
            let mut outbox = chat.lock();
            if outbox.behind || outbox.parcels.len() >= shared.limits.outbox {
                outbox.behind = true;
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
) -> Live {
    if !delivery::can_preview(&shared.capabilities(&to.account)) {
        return Live::nothing();
    }
    let shown = Shown { id: id.clone(), preview };
    let chat = with_chat(shared, to, |chat| chat.lock().shown = Some(shown));
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
            with_chat(shared, to, |chat| chat.lock().behind = true);
        }
        if last {
            return Ok(());
        }
    }
}

fn with_chat(shared: &Arc<Shared>, to: Address, tell: impl FnOnce(&Chat)) -> Arc<Chat> {
    let mut chats = shared.chats.lock();
    let chat = chats.entry(to).or_insert_with_key(|to| {
        let chat = Arc::new(Chat { to: to.clone(), outbox: Mutex::default(), wake: Notify::new() });
        shared.tasks.spawn(delivery::run(shared.clone(), chat.clone()));
        chat
    });
    tell(chat);
    chat.wake.notify_one();
    chat.clone()
}
