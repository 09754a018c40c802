//! One serial lane per chat on the way out, so that what is said in a chat arrives in order.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use talaria_model::{Address, Outbound, OutboundId, Typing};
use talaria_store::{Parcel, ParcelState, StoreError};
use tokio::sync::Notify;

use crate::delivery;
use crate::dump::ChatDump;
use crate::manner::Growth;
use crate::preview::{Live, Shown};
use crate::shared::Shared;

/// How many addresses are taken up per look into the store.
const PAGE: usize = 500;

/// The chats with something to deliver or to show.
#[derive(Default)]
pub(crate) struct Chats {
    chats: Mutex<HashMap<Address, Arc<Chat>>>,
    speaking: Mutex<HashMap<Address, Speaking>>,
}

/// Turns that have more to say in a chat.
#[derive(Default)]
struct Speaking {
    turns: usize,
    /// People there are told of a loss when the last of them is through.
    owes: bool,
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
    /// People are told what was lost once nothing else waits.
    owes: bool,
    /// Answers that grow. Several people can be answered in one chat at the same time.
    shown: Vec<Shown>,
    /// The newest deliveries whose text is decided or about to be, the latest last. They grow no
    /// more.
    decided: VecDeque<OutboundId>,
    /// The last part of each answer that grows of which something may be visible.
    named: HashMap<OutboundId, u16>,
    /// Steps that are being made durable and have decided something here. Until they are, the chat has
    /// to remember what they decided.
    deciding: usize,
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
    OwnUp,
    Show(Vec<Shown>),
    Leave,
}

impl Chats {
    /// Whether anything is leaving, or could leave at once.
    pub(crate) fn busy(&self) -> bool {
        self.lock().values().any(|chat| {
            let outbox = chat.lock();
            match outbox.pace {
                Pace::Resting => outbox.has_something(),
                Pace::Carrying => true,
                Pace::Held => false,
            }
        })
    }

    pub(crate) fn dump(&self) -> Vec<ChatDump> {
        let dump = |chat: &Arc<Chat>| {
            let outbox = chat.lock();
            ChatDump {
                to: chat.to.clone(),
                pace: match outbox.pace {
                    Pace::Resting => "resting",
                    Pace::Carrying => "carrying",
                    Pace::Held => "held",
                },
                parcels: outbox.parcels.len(),
                growing: outbox.shown.len(),
            }
        };
        self.lock().values().map(dump).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, Arc<Chat>>> {
        self.chats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of a chat, unless something reached it in the meantime.
    pub(crate) fn leave(&self, chat: &Arc<Chat>) -> bool {
        let mut chats = self.lock();
        let outbox = chat.lock();
        if outbox.has_something() || !outbox.has_nothing_to_show() {
            return false;
        }
        chats.remove(&chat.to);
        true
    }

    /// Whether a turn has more to say there. Then people are told of losses when it is through: between
    /// two parts of an answer, a notice would tear it apart.
    pub(crate) fn put_off(&self, to: &Address) -> bool {
        let mut speaking = self.speaking();
        let found = speaking.get_mut(to);
        found.map(|speaking| speaking.owes = true).is_some()
    }

    fn speaking(&self) -> MutexGuard<'_, HashMap<Address, Speaking>> {
        self.speaking.lock().unwrap_or_else(PoisonError::into_inner)
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
        if std::mem::take(&mut outbox.owes) {
            return Errand::OwnUp;
        }
        outbox.pace = Pace::Resting;
        match outbox.has_nothing_to_show() {
            true => Errand::Leave,
            false => Errand::Show(outbox.shown.clone()),
        }
    }

    /// Waits until what is on its way may go on. An end goes without what is held, so a chat is held only
    /// where there is something to wait for: what can leave at once is on its way all the time.
    pub(crate) async fn held_until<T>(&self, ready: impl Future<Output = T>) -> T {
        let mut ready = pin!(ready);
        if let Poll::Ready(ready) = futures::poll!(ready.as_mut()) {
            return ready;
        }
        self.lock().pace = Pace::Held;
        let ready = ready.await;
        self.lock().pace = Pace::Carrying;
        ready
    }

    /// Whether a delivery grows no more.
    pub(crate) fn is_decided(&self, id: &OutboundId) -> bool {
        self.lock().decided.contains(id)
    }

    /// Keeps the delivery from being decided until the returned value is dropped. None when it is
    /// too late for that.
    pub(crate) async fn name(&self, id: &OutboundId) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let naming = self.naming.lock().await;
        let delivery = id.with_part(0);
        if self.is_decided(&delivery) {
            return None;
        }
        let mut outbox = self.lock();
        let last = outbox.named.entry(delivery).or_default();
        *last = (*last).max(id.part);
        drop(outbox);
        Some(naming)
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

    /// Whether the next that waits is of the same delivery.
    pub(crate) fn goes_on(&self, id: &OutboundId) -> bool {
        let outbox = self.lock();
        let next = outbox.parcels.front().map(|next| &next.outbound.id);
        next.is_some_and(|next| next.with_part(0) == id.with_part(0))
    }

    /// Whether people may read something of the same delivery below a parcel that is at hand.
    pub(crate) fn may_show_more_of(&self, id: &OutboundId) -> bool {
        let outbox = self.lock();
        match outbox.parcels.front() {
            Some(next) => {
                let is_seen = next.shown.is_some() || next.state != ParcelState::Ready;
                is_seen && next.outbound.id.with_part(0) == id.with_part(0)
            }
            None => outbox.behind,
        }
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
    pub(crate) fn fill(&self, parcels: Vec<Parcel>, rest: Rest) {
        let mut outbox = self.lock();
        outbox.behind = rest == Rest::InStore || outbox.missed;
        outbox.parcels.extend(parcels);
    }

    /// Ends a preview, so that the chat can go.
    pub(crate) fn hide(&self, id: &OutboundId) {
        self.lock().shown.retain(|shown| shown.id != *id);
        self.wake.notify_one();
    }
}

/// What is left in the store when something was read from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Perhaps more.
    InStore,
    /// Nothing.
    None,
}

impl Outbox {
    /// Whether there is anything to do but to show previews.
    fn has_something(&self) -> bool {
        self.behind || self.owes || !self.parcels.is_empty()
    }

    fn leave_to_store(&mut self) {
        self.behind = true;
        self.missed = true;
    }

    fn has_nothing_to_show(&self) -> bool {
        self.shown.is_empty() && self.deciding == 0
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

/// Keeps the chats in which something is decided.
pub(crate) struct Deciding(Vec<Arc<Chat>>);

impl Drop for Deciding {
    fn drop(&mut self) {
        for chat in &self.0 {
            chat.lock().deciding -= 1;
            chat.wake.notify_one();
        }
    }
}

/// Says that these are about to be made durable. A preview that the store does not know of by then
/// will not be posted: after a crash, nobody would know that something may be visible. That holds for
/// one that nobody has begun to show yet, too, for as long as the returned value lives.
pub(crate) async fn decide(shared: &Arc<Shared>, parcels: &[Outbound]) -> Deciding {
    let mut deciding = Deciding(Vec::new());
    for outbound in parcels.iter().filter(|outbound| outbound.id.part == 0) {
        let chat = with_chat(shared, outbound.to.clone(), |chat| chat.lock().deciding += 1);
        deciding.0.push(chat.clone());
        let _naming = chat.naming.lock().await;
        chat.lock().decide(outbound.id.clone());
    }
    deciding
}

/// Hands over what a step has made durable. What finds no room is read from the store later, and so
/// is what may have been shown before this run.
pub(crate) fn offer(shared: &Arc<Shared>, parcels: Vec<Outbound>, inherited: Option<&OutboundId>) {
    let mut parcels = parcels.into_iter().peekable();
    while let Some(outbound) = parcels.next() {
        let delivery = outbound.id.with_part(0);
        let (last, is_last) =
            (outbound.id.part, parcels.peek().is_none_or(|next| next.id.with_part(0) != delivery));
        with_chat(shared, outbound.to.clone(), |chat| {
            let mut outbox = chat.lock();
            let is_inherited = inherited == Some(&delivery);
            outbox.shown.retain(|shown| shown.id != delivery);
            if outbox.behind || is_inherited || outbox.parcels.len() >= shared.limits.outbox {
                outbox.leave_to_store();
            } else {
                // Most chats have one at a time, and there are as many chats as people who are answered.
                outbox.parcels.reserve_exact(1);
                outbox.parcels.push_back(Parcel {
                    outbound,
                    state: ParcelState::Ready,
                    shown: None,
                    attempts: 0,
                    not_before: None,
                    anew: 0,
                    at: shared.clock.now(),
                });
            }
            // The store takes away what can be seen beyond the last part.
            if is_last && outbox.named.remove(&delivery).is_some_and(|named| named > last) {
                outbox.leave_to_store();
            }
        });
    }
}

/// A turn that has more to say in a chat, until it is dropped.
pub(crate) struct Voice {
    shared: Arc<Shared>,
    to: Address,
}

impl Voice {
    fn raise(shared: &Arc<Shared>, to: Address) -> Self {
        shared.chats.speaking().entry(to.clone()).or_default().turns += 1;
        Self { shared: shared.clone(), to }
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        let mut speaking = self.shared.chats.speaking();
        let Some(here) = speaking.get_mut(&self.to) else { return };
        here.turns -= 1;
        if here.turns > 0 {
            return;
        }
        let owes = here.owes;
        speaking.remove(&self.to);
        drop(speaking);
        if owes {
            with_chat(&self.shared, self.to.clone(), |chat| chat.lock().owes = true);
        }
    }
}

/// Shows an answer while it grows, until the returned value is dropped.
pub(crate) fn show(shared: &Arc<Shared>, to: Address, shown: Shown) -> Live {
    let voice = Voice::raise(shared, to.clone());
    let is_seen = shared.growth(&to) != Growth::Unseen;
    if !is_seen && shared.capabilities(&to).typing == Typing::Never {
        return Live::silent(voice);
    }
    let id = shown.id.clone();
    let chat = with_chat(shared, to, |chat| {
        let mut outbox = chat.lock();
        if !outbox.decided.contains(&shown.id) {
            outbox.shown.push(shown);
        }
    });
    Live::new(chat, id, voice)
}

/// Lets a chat look into the store for what nobody handed over.
pub(crate) fn look(shared: &Arc<Shared>, to: Address) {
    with_chat(shared, to, |chat| chat.lock().leave_to_store());
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

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::FutureExt;
    use talaria_model::{AccountId, Chat as ChatOf, ChatId, ChatKind};

    use super::*;

    fn carrying() -> (Chats, Arc<Chat>) {
        let to = Address {
            account: AccountId::literal("bench"),
            chat: ChatOf { id: ChatId::literal("ann"), kind: ChatKind::Dm },
            thread: None,
        };
        let outbox = Outbox { pace: Pace::Carrying, ..Outbox::default() };
        let chat = Arc::new(Chat {
            to: to.clone(),
            outbox: Mutex::new(outbox),
            wake: Notify::new(),
            naming: tokio::sync::Mutex::default(),
        });
        let chats = Chats::default();
        chats.lock().insert(to, chat.clone());
        (chats, chat)
    }

    #[test]
    fn what_can_leave_at_once_is_never_taken_for_held() {
        let (chats, chat) = carrying();
        let seen = chat.held_until(async { chats.busy() }).now_or_never();
        assert_eq!(seen, Some(true), "an end would go without it");
    }

    #[test]
    fn nobody_waits_for_what_waits_itself() {
        let (chats, chat) = carrying();
        let mut waits = pin!(chat.held_until(pending::<()>()));
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(!chats.busy());
    }

    #[test]
    fn what_has_waited_is_on_its_way_again() {
        let (chats, chat) = carrying();
        let (go, goes) = tokio::sync::oneshot::channel();
        let mut waits = pin!(chat.held_until(goes));
        assert!(waits.as_mut().now_or_never().is_none());
        go.send(()).unwrap();
        assert!(waits.now_or_never().is_some() && chats.busy());
    }
}
