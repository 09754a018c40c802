//! The way of a parcel: what is known of it, when it may leave, and what its platform says of it.

use std::time::Duration;

use talaria_model::{
    Act, Content, Deletes, Draft, Edits, Idempotency, Outbound, OutboundId, Receipt,
};
use talaria_platform::{Fate, Found, Outgoing, SendError};
use talaria_store::{Leave, Parcel, ParcelState, Settlement};

use super::form::is_withdrawal;
use super::previews::{Certainty, Glimpse, Place, STRIKES, Seen};
use super::{Courier, Weight};
use crate::discretion;
use crate::tasks::{Panicked, calm};

/// How long a platform may look for what an act has left behind.
const FIND_TIMEOUT: Duration = Duration::from_secs(20);

/// A parcel that may have left this often, over all lives of the process, is given up: sending it may be
/// what ends them. A life that ends while it is starting burns one try of everything that is about to
/// leave, so a few in a row must not be enough.
const MOST_TRIES: u32 = 25;

impl Courier {
    pub(super) async fn deliver(&mut self, mut parcel: Parcel) {
        let glimpse = self.glimpsed(&parcel.outbound.id);
        match &glimpse.part.seen {
            Seen::Message(message) => parcel.shown = Some(message.clone()),
            Seen::Unsure => parcel.state = ParcelState::Unsure,
            Seen::Draft if is_withdrawal(&parcel) => return self.take_back(&parcel).await,
            Seen::Draft | Seen::Nothing => {}
        }
        if let Act::Draft(_) = parcel.outbound.act {
            if parcel.shown.is_none() && parcel.state != ParcelState::Unsure {
                return self.take_back(&parcel).await;
            }
            // What was seen of it in another life was a message.
            parcel.outbound.act = Act::Post(Content::default());
        }
        if parcel.state == ParcelState::Attempting {
            // It was leaving when its delivery panicked.
            parcel.state = ParcelState::Unsure;
        }
        let now = self.shared.clock.now();
        if now.since(parcel.at) >= self.shared.limits.parcel_lifetime {
            let reason = "it could not be delivered for too long".to_owned();
            return self.give_up(&parcel, Settlement::Abandoned { reason }).await;
        }
        if parcel.state == ParcelState::Unsure && parcel.attempts >= MOST_TRIES {
            let reason = format!("its outcome was unknown {} times", parcel.attempts);
            return self.give_up(&parcel, Settlement::Abandoned { reason }).await;
        }
        self.find_replaced(&mut parcel).await;
        let is_visible = parcel.shown.is_some() || parcel.state == ParcelState::Unsure;
        if is_withdrawal(&parcel) && !is_visible {
            return self.settle(&parcel, Settlement::Delivered(self.receipt(None))).await;
        }
        if let Some(reason) = self.silenced() {
            return self.give_up(&parcel, Settlement::Undeliverable { reason }).await;
        }
        if says_already(&parcel, &glimpse) && !self.is_stale(&parcel, &glimpse) {
            let receipt = self.receipt(parcel.shown.clone());
            self.settle(&parcel, Settlement::Delivered(receipt)).await;
            return self.own_up().await;
        }
        let (not_before, end) = (
            parcel.not_before.filter(|at| *at > now),
            parcel.at + self.shared.limits.parcel_lifetime,
        );
        let clock = self.shared.clock.clone();
        let ready = async {
            if let Some(not_before) = not_before {
                clock.sleep(not_before.since(now)).await;
            }
            tokio::select! {
                biased;
                outgoing = self.connected() => Some(outgoing),
                () = clock.sleep(end.since(clock.now())) => None,
            }
        };
        // Looked at again, it is found to be too old.
        let Some(outgoing) = self.chat.held_until(ready).await else {
            return self.chat.put_back(parcel);
        };
        self.find_account();
        // What is there and can be changed is not looked for again: it would be found for ever.
        let is_at_hand = parcel.shown.is_some() && self.can.edits != Edits::Never;
        if self.is_marked(&parcel) && !is_at_hand {
            match self.find(outgoing.as_ref(), &parcel).await {
                Found::Shown(receipt) => return self.found(parcel, receipt).await,
                Found::Absent => self.absent = Some(parcel.outbound.id.clone()),
                Found::Unknown => {}
            }
        }
        if self.is_stale(&parcel, &glimpse) {
            self.clear_preview(outgoing.as_ref(), &mut parcel).await;
        }
        let outbound = self.outbound_of(&parcel);
        self.spend(weight_of(&outbound.act)).await;
        if self.is_marked(&parcel) {
            self.marked = Some(parcel.outbound.id.clone());
        }
        // It can be in the queue twice: handed over by the step that decided it, and read from the
        // store. The one that comes second has ended by then.
        match self.durably(|shared, id| shared.store.attempt(id), &parcel).await {
            Some(Leave::Go) => {}
            Some(Leave::Ended) | None => return,
        }
        match self.send(outgoing.as_ref(), &outbound).await {
            Ok(receipt) => {
                self.backoff.reset();
                if let Act::Post(_) = outbound.act {
                    // With it goes the sign that somebody works on it.
                    self.typed = None;
                }
                if self.may_show_a_preview(&parcel)
                    && let Some(message) = receipt.message
                {
                    self.settle(&parcel, Settlement::Previewed(Some(message.clone()))).await;
                    parcel.shown = Some(message);
                    return self.chat.put_back(parcel);
                }
                let message = receipt.message.or(parcel.shown.clone());
                let receipt = Receipt { message, ..receipt };
                self.settle(&parcel, Settlement::Delivered(receipt)).await;
                self.own_up().await;
            }
            Err(error) => {
                let weight = weight_of(&outbound.act);
                self.heed_with(&error, weight);
                if weight == Weight::Change {
                    self.strike(&parcel, &error);
                }
                self.failed(parcel, error).await;
            }
        }
    }

    /// Counts that the platform asked us to wait with changing a preview into its answer.
    fn strike(&mut self, parcel: &Parcel, error: &SendError) {
        if let Fate::Retry { after: Some(_) } = error.fate() {
            let id = parcel.outbound.id.clone();
            let strikes = self.strikes(&id) + 1;
            self.struck = Some((id, strikes));
        }
    }

    fn strikes(&self, id: &OutboundId) -> u32 {
        self.struck.as_ref().filter(|(struck, _)| struck == id).map_or(0, |(_, strikes)| *strikes)
    }

    /// Takes a draft back that no answer replaces. It is not a message: the platform removes it, or it
    /// fades.
    async fn take_back(&mut self, parcel: &Parcel) {
        if let Err(error) = self.act(&parcel.outbound.id, Act::Draft(Draft::default())).await {
            tracing::debug!(outbound = %parcel.outbound.id, %error, "a draft will fade");
        }
        self.settle(parcel, Settlement::Delivered(self.receipt(None))).await;
    }

    /// Looks up the message whose place a parcel takes. It has left before, so it is known by now, or
    /// never. One that turned out to be gone is not looked for again.
    async fn find_replaced(&self, parcel: &mut Parcel) {
        let Act::Post(Content { replaces: Some(of), .. }) = &parcel.outbound.act else { return };
        if parcel.shown.is_none() && parcel.anew == 0 {
            match self.shared.store.shown(of).await {
                Ok(shown) => parcel.shown = shown,
                Err(error) => tracing::warn!(%error, "what is to be replaced cannot be looked up"),
            }
        }
    }

    /// Looks for what a parcel whose outcome is unknown has left behind.
    async fn find(&self, outgoing: &dyn Outgoing, parcel: &Parcel) -> Found {
        if is_withdrawal(parcel) {
            return Found::Unknown;
        }
        let mut sought = parcel.outbound.clone();
        if let Act::Post(content) = &mut sought.act {
            content.anew = parcel.anew;
        }
        tokio::select! {
            biased;
            found = calm(outgoing.find(&sought)) => match found {
                Ok(Ok(found)) => found,
                Ok(Err(error)) => {
                    self.heed(&discretion::told(&self.shared, error));
                    Found::Unknown
                }
                Err(Panicked) => Found::Unknown,
            },
            () = self.shared.clock.sleep(FIND_TIMEOUT) => Found::Unknown,
        }
    }

    /// Something of a parcel can be seen. That may be its preview, so what can be changed is changed into
    /// what it has to say; a message that may be the second one goes on saying so.
    async fn found(&mut self, mut parcel: Parcel, receipt: Receipt) {
        let has_files = |content: &Content| !content.files.is_empty();
        let is_whole = parcel.attempts > 0
            && matches!(&parcel.outbound.act, Act::Post(content) if has_files(content));
        let message = receipt.message.clone().filter(|_| self.can.edits != Edits::Never);
        match message.filter(|_| !is_whole) {
            Some(message) => {
                if parcel.attempts > 1 {
                    self.marked = Some(parcel.outbound.id.clone());
                }
                self.settle(&parcel, Settlement::Previewed(Some(message.clone()))).await;
                parcel.shown = Some(message);
                self.chat.put_back(parcel);
            }
            None => {
                self.settle(&parcel, Settlement::Delivered(receipt)).await;
                self.own_up().await;
            }
        }
    }

    /// Whether an answer is posted anew instead of taking the place of its preview: people are not told
    /// of a change to what they were told of long ago, and where changes are refused again and again a
    /// message may still pass. What cannot be removed would stay beside the answer, and what has more of
    /// the answer below it would come to stand under that.
    fn is_stale(&self, parcel: &Parcel, glimpse: &Glimpse) -> bool {
        let Glimpse { part, strikes, place } = glimpse;
        let id = &parcel.outbound.id;
        let is_old = match (self.manner.streaming.fresh_final_after, part.since) {
            (Some(after), Some(since)) => self.shared.clock.now().since(since) >= after,
            _ => false,
        };
        let is_sure = parcel.state != ParcelState::Unsure;
        let is_known = matches!(part.seen, Seen::Message(_)) && is_sure;
        // What is below may have been shown by another life. A parcel of which nobody knows whether it has
        // arrived is posted anew once: where keys are recognised, it has to be changed once more after that.
        let is_struck = self.strikes(id) >= STRIKES
            && parcel.shown.is_some()
            && (is_sure || parcel.anew == 0)
            && !self.chat.may_show_more_of(id);
        (is_known && (is_old || *strikes >= STRIKES) || is_struck)
            && *place == Place::Last
            && !is_withdrawal(parcel)
            && self.can.deletes == Deletes::Anytime
    }

    /// Removes a preview, so that the answer can be posted anew. The answer itself is in the store and
    /// has not left: whatever happens from here on, there is one. As long as nobody has said that the
    /// preview is gone, the answer takes its place.
    async fn clear_preview(&mut self, outgoing: &dyn Outgoing, parcel: &mut Parcel) {
        let Some(message) = parcel.shown.clone() else { return };
        self.spend(Weight::Message).await;
        let Outbound { id, to, .. } = parcel.outbound.clone();
        let removal = Outbound { id, to, act: Act::Delete { message } };
        match self.send(outgoing, &removal).await {
            Ok(_) => self.say_anew(parcel).await,
            Err(error) => {
                tracing::info!(outbound = %removal.id, %error, "a preview stays");
                self.heed(&error);
                // It is changed as often again before the next try to remove it.
                self.struck = None;
            }
        }
    }

    /// What showed a parcel is not there any more: what is posted in its place is another message.
    pub(super) async fn say_anew(&mut self, parcel: &mut Parcel) {
        self.settle(parcel, Settlement::Vanished).await;
        parcel.shown = None;
        parcel.anew += 1;
    }

    /// A vendor that recognises an id shows what it was first given under it, and that may have been
    /// a preview. Then the answer still has to replace it. It may recognise it for longer than it
    /// promises.
    fn may_show_a_preview(&self, parcel: &Parcel) -> bool {
        let unsure = parcel.state == ParcelState::Unsure && parcel.shown.is_none();
        self.can.edits != Edits::Never && unsure && self.can.idempotency != Idempotency::None
    }
}

/// Whether people read exactly this, and nothing that is on its way can change it.
fn says_already(parcel: &Parcel, glimpse: &Glimpse) -> bool {
    let Glimpse { part, .. } = glimpse;
    let Act::Post(content) = &parcel.outbound.act else { return false };
    matches!(part.seen, Seen::Message(_))
        && part.certainty == Certainty::Known
        && part.frame == content.text
        && content.files.is_empty()
        && content.choices.is_empty()
        && parcel.state == ParcelState::Ready
}

fn weight_of(act: &Act) -> Weight {
    match act {
        Act::Edit { .. } => Weight::Change,
        _ => Weight::Message,
    }
}
