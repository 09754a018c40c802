//! What becomes of a parcel that did not arrive, or of which nobody knows, and who is told.

use std::time::Duration;

use talaria_model::{Act, Edits, Idempotency, OutboundId};
use talaria_platform::{Fate, SendError};
use talaria_session::{Event, SessionKey};
use talaria_store::{Parcel, ParcelState, Settlement, StoreError};

use super::Courier;
use super::form::{is_withdrawal, with_room_for_mark};
use crate::owed;

/// How often a parcel is resent under the same key before we give up on knowing.
const KEYED_TRIES: u32 = 5;

/// How often a parcel is posted anew because what showed it is gone. Somebody who takes every answer away
/// does not want it.
const MOST_ANEW: u32 = 5;

/// How often a parcel is sent whose repeats people see: once, and twice with a mark. One time can be the
/// death of the process, and a platform that does not answer right behind it must not cost the answer.
const MARKED_TRIES: u32 = 3;

/// How long a parcel waits while its account is out of service.
const SUSPENDED_REST: Duration = Duration::from_secs(60);

impl Courier {
    pub(super) async fn failed(&mut self, mut parcel: Parcel, error: SendError) {
        let id = parcel.outbound.id.clone();
        tracing::info!(outbound = %id, %error, "not delivered");
        if let (SendError::Gone { .. }, Some(account)) = (&error, &self.account) {
            account.silenced.add(self.chat.to.clone(), error.to_string());
        }
        match error.fate() {
            Fate::Retry { after } => {
                let wait = after.unwrap_or_else(|| self.backoff.next());
                let at = self.shared.clock.now() + wait;
                self.settle(&parcel, Settlement::Again { at }).await;
                parcel.not_before = Some(at);
                self.chat.put_back(parcel);
            }
            Fate::Plain if !self.is_plain(&parcel) => {
                self.settle(&parcel, Settlement::Plain).await;
                self.plain = Some(id);
                self.chat.put_back(parcel);
            }
            Fate::Anew if parcel.anew < MOST_ANEW => {
                self.say_anew(&mut parcel).await;
                self.chat.put_back(parcel);
            }
            Fate::Plain | Fate::Drop if self.may_have_lost_its_preview(&parcel, &error) => {
                self.settle(&parcel, Settlement::Previewed(None)).await;
                parcel.shown = None;
                if let Act::Post(content) = &mut parcel.outbound.act {
                    content.replaces = None;
                }
                self.unsure(parcel, error).await;
            }
            Fate::Plain | Fate::Drop | Fate::Anew => {
                let reason = error.to_string();
                self.give_up(&parcel, Settlement::Undeliverable { reason }).await;
            }
            Fate::Unsure => self.unsure(parcel, error).await,
            Fate::Suspend => {
                let at = self.shared.clock.now() + SUSPENDED_REST;
                self.settle(&parcel, Settlement::Again { at }).await;
                parcel.not_before = Some(at);
                self.shared.accounts.suspend(&self.chat.to.account, &error.to_string());
                self.chat.put_back(parcel);
            }
        }
    }

    /// It may have arrived. An edit or a key makes a repeat invisible; else it is resent a few times, with
    /// a mark.
    async fn unsure(&mut self, mut parcel: Parcel, error: SendError) {
        parcel.attempts += 1;
        self.absent = None;
        let tries = if self.repeats_invisibly(&parcel) { KEYED_TRIES } else { MARKED_TRIES };
        if parcel.attempts >= tries {
            let reason = format!("{error}, {} times", parcel.attempts);
            return self.give_up(&parcel, Settlement::Abandoned { reason }).await;
        }
        self.settle(&parcel, Settlement::Unsure).await;
        parcel.state = ParcelState::Unsure;
        parcel.not_before = Some(self.shared.clock.now() + self.backoff.next());
        self.chat.put_back(parcel);
    }

    /// Whether the message may not be there any more that an answer was to take the place of. The
    /// answer is then said anew, as what may be a repeat: nobody knows whether the message can still be
    /// read.
    fn may_have_lost_its_preview(&self, parcel: &Parcel, error: &SendError) -> bool {
        let refused = matches!(error, SendError::Rejected { .. });
        // Under a key it can be taken for the message that it cannot replace, again and again.
        let has_no_key = self.can.idempotency == Idempotency::None;
        let is_sure = parcel.state != ParcelState::Unsure;
        refused && (has_no_key || is_sure) && parcel.shown.is_some() && !is_withdrawal(parcel)
    }

    /// Ends a parcel that did not arrive. Nobody misses one that had nothing to say; of any other,
    /// people are told as soon as they can be.
    pub(super) async fn give_up(&mut self, parcel: &Parcel, settlement: Settlement) {
        let id = &parcel.outbound.id;
        if is_withdrawal(parcel) {
            tracing::info!(outbound = %id, ?settlement, "a preview stays");
            let receipt = self.receipt(parcel.shown.clone());
            return self.settle(parcel, Settlement::Delivered(receipt)).await;
        }
        tracing::warn!(outbound = %id, ?settlement, "never delivered");
        let reason = match &settlement {
            Settlement::Undeliverable { reason } | Settlement::Abandoned { reason } => {
                reason.clone()
            }
            _ => "nobody knows why".to_owned(),
        };
        self.settle(parcel, settlement).await;
        self.shared.owed.add(self.chat.to.clone());
        self.tell_who_said_it(id, reason).await;
    }

    /// Tells the session that said something in another chat than its own that it will never arrive, once for
    /// all its parts. Those who are here are told anyway.
    async fn tell_who_said_it(&mut self, id: &OutboundId, reason: String) {
        let delivery = (id.session.clone(), id.delivery);
        if self.lost.replace(delivery.clone()) == Some(delivery) {
            return;
        }
        let to = self.chat.to.clone();
        match self.said_elsewhere(id).await {
            Ok(Some(key)) => crate::lanes::tell(&self.shared, key, Event::Lost { to, reason }),
            Ok(None) => {}
            Err(error) => tracing::warn!(outbound = %id, %error, "who said it cannot be looked up"),
        }
    }

    /// The session that said something here, if its own chat is another one.
    async fn said_elsewhere(&self, id: &OutboundId) -> Result<Option<SessionKey>, StoreError> {
        // A pairing reply and a word to the operator are no session's.
        let Some(life) = self.shared.store.life(&id.session).await? else { return Ok(None) };
        let to = &self.chat.to;
        let session = self.shared.store.load(&life.key).await?;
        let is_elsewhere = session.is_some_and(|session| {
            let at = &session.at;
            (&at.account, &at.chat.id, &at.thread) != (&to.account, &to.chat.id, &to.thread)
        });
        Ok(is_elsewhere.then_some(life.key))
    }

    /// Something has just arrived here, so people can be told what has not. One notice is for
    /// everything up to the moment at which nothing else waits and no turn has more to say.
    pub(super) async fn own_up(&mut self) {
        let to = self.chat.to.clone();
        if !self.shared.owed.may_include(&to) || !self.chat.is_last() {
            return;
        }
        if self.shared.chats.put_off(&to) {
            return;
        }
        // What is decided while the notice is written is read behind it, in the order of the store.
        self.chat.has_more();
        let told = async {
            let untold = self.shared.store.untold(&to).await?;
            let can = with_room_for_mark(self.can);
            let notice = untold.and_then(|untold| owed::notice(&untold, to.clone(), &can));
            if let Some(notice) = notice {
                self.shared.store.tell(&notice, self.shared.clock.now()).await?;
            }
            Ok::<(), StoreError>(())
        };
        match told.await {
            Ok(()) => self.shared.owed.remove(&to),
            // The store's answer may have been lost and not the notice; it is looked for anyway.
            Err(error) => tracing::warn!(%error, "people will be told later what was lost"),
        }
    }

    fn repeats_invisibly(&self, parcel: &Parcel) -> bool {
        let edits = self.can.edits != Edits::Never && parcel.shown.is_some();
        edits || self.is_keyed(parcel)
    }

    pub(super) fn is_keyed(&self, parcel: &Parcel) -> bool {
        match self.can.idempotency {
            Idempotency::None => false,
            // A clock that was set back does not know how long ago that was.
            Idempotency::Keyed(window) => {
                let now = self.shared.clock.now();
                parcel.at <= now && now.since(parcel.at) < window
            }
        }
    }
}
