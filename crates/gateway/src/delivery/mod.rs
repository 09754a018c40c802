//! From the outbox to a platform: say that it leaves, send it, say what became of it.
//!
//! A courier serves one chat. This file is its day and how it reaches the platform; `parcels` is the way of
//! what has to arrive, `form` how that looks as it leaves, `outcome` what becomes of what did not arrive,
//! and `previews` what is shown of answers that still grow.

mod form;
mod outcome;
mod parcels;
mod previews;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use talaria_model::{
    Act, Capabilities, MessageId, Outbound, OutboundId, Receipt, SessionId, Timestamp,
};
use talaria_platform::{Outgoing, SendError, lower};
use talaria_store::{Parcel, Settlement, StoreError};

use self::previews::Visible;
use crate::accounts::ConnectedAccount;
use crate::backoff::Backoff;
use crate::chats::{Chat, Errand, Rest};
use crate::discretion;
use crate::manner::{Growth, Manner};
use crate::pace::{self, Purse};
use crate::shared::Shared;
use crate::tasks::{Panicked, calm};

pub(crate) use self::form::{shows_words, with_room_for_mark, withdrawal};

/// How many parcels are read from the store at once.
const PAGE: usize = 32;

/// How long the store rests that could not answer.
const STORE_REST: Duration = Duration::from_secs(1);

/// How long an act may take that is only for show. The answer waits behind it.
const SHOW_TIMEOUT: Duration = Duration::from_secs(10);

/// How many bytes of a file leave in a second on a line on which nobody would give up yet.
const SLOWEST_LINE: u64 = 256 * 1024;

/// Delivers to one chat until there is nothing left to deliver or to show.
pub(crate) async fn run(shared: Arc<Shared>, chat: Arc<Chat>) {
    let mut courier = Courier {
        can: Capabilities::PLAIN,
        manner: Arc::default(),
        purse: Arc::default(),
        account: None,
        backoff: shared.spread.backoff(),
        plain: None,
        marked: None,
        absent: None,
        struck: None,
        lost: None,
        visible: HashMap::new(),
        typed: None,
        shared,
        chat,
    };
    loop {
        let errand = courier.chat.errand();
        courier.find_account();
        if let Errand::Leave = errand {
            courier.rest().await;
            if courier.shared.chats.leave(&courier.chat) {
                return;
            }
            continue;
        }
        if let Err(Panicked) = calm(courier.run(errand)).await {
            // What was at hand is in the store; it is read again after a rest.
            tracing::error!(account = %courier.chat.to.account, "a delivery panicked");
            courier.chat.look_again();
            courier.shared.clock.sleep(courier.backoff.next()).await;
        }
    }
}

/// Delivers to one chat.
struct Courier {
    shared: Arc<Shared>,
    chat: Arc<Chat>,
    can: Capabilities,
    manner: Arc<Manner>,
    /// What may still be sent in this chat.
    purse: Arc<Purse>,
    /// None when nobody has heard of it in this run.
    account: Option<Arc<ConnectedAccount>>,
    backoff: Backoff,
    /// The parcel at hand, once its formatting was not accepted.
    plain: Option<OutboundId>,
    /// The parcel at hand, once it was sent with a mark.
    marked: Option<OutboundId>,
    /// The parcel at hand, once the platform said that nothing of it can be seen.
    absent: Option<OutboundId>,
    /// The parcel at hand, and how often we were asked to wait with changing its preview into it.
    struck: Option<(OutboundId, u32)>,
    /// What was said last that will never arrive, and whose session knows.
    lost: Option<(SessionId, u32)>,
    /// Previews that people see and that no answer has replaced yet. Several people can be answered
    /// in one chat at the same time.
    visible: HashMap<OutboundId, Visible>,
    /// When people were last shown that somebody is typing, and about which answer.
    typed: Option<(OutboundId, Timestamp)>,
}

/// What an act counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// A message.
    Message,
    /// A change to one.
    Change,
    /// Something that is no message.
    Sign,
}

impl Courier {
    /// Goes by how the account is set up at this moment: it may have come, or have been changed, since the
    /// last time.
    fn find_account(&mut self) {
        let to = &self.chat.to;
        self.can = self.shared.capabilities(to);
        self.manner = self.shared.manner(to);
        self.account = self.shared.accounts.known(&to.account);
        if let Some(account) = &self.account {
            self.purse = account.purses.of(&to.chat.id, self.shared.clock.now());
        }
    }

    async fn run(&mut self, errand: Errand) {
        match errand {
            Errand::Deliver(parcel) => self.deliver(parcel).await,
            Errand::Read => self.read().await,
            Errand::OwnUp => self.own_up().await,
            Errand::Show(shown) => self.show(shown).await,
            Errand::Leave => {}
        }
    }

    async fn send(
        &self,
        outgoing: &dyn Outgoing,
        outbound: &Outbound,
    ) -> Result<Receipt, SendError> {
        let unconfirmed = |reason: &str| SendError::Unconfirmed { reason: reason.into() };
        let sent = tokio::select! {
            biased;
            sent = calm(outgoing.send(outbound)) => {
                sent.unwrap_or_else(|Panicked| Err(unconfirmed("the platform panicked")))
            }
            () = self.shared.clock.sleep(self.patience(outbound)) => {
                Err(unconfirmed("no answer in time"))
            }
        };
        let sent = sent.map_err(|error| discretion::told(&self.shared, error));
        if let Some(account) = &self.account {
            account.speaks(&sent, self.shared.clock.as_ref());
        }
        sent
    }

    /// How long an act may take. Files take as long as they are large.
    fn patience(&self, outbound: &Outbound) -> Duration {
        let files = match &outbound.act {
            Act::Post(content) | Act::Edit { content, .. } => content.files.as_slice(),
            _ => &[],
        };
        let bytes: u64 = files.iter().map(|file| file.size).sum();
        self.shared.limits.send_timeout + Duration::from_secs(bytes / SLOWEST_LINE)
    }

    /// Waits until one more may be sent.
    async fn spend(&self, weight: Weight) {
        let Some(account) = &self.account else { return };
        let clock = self.shared.clock.as_ref();
        if weight == Weight::Change {
            account.edits.spend(self.can.pace.edits, clock).await;
        }
        self.purse.spend(self.can.pace.chat, clock).await;
        account.purse.spend(self.can.pace.account, clock).await;
    }

    /// Whether something may be sent that is only for show; if not, how long that takes.
    fn spare(&self, now: Timestamp, weight: Weight) -> Result<(), Duration> {
        let Some(account) = &self.account else { return Ok(()) };
        let pace = self.can.pace;
        let of_account = (&account.purse, pace.account);
        match weight {
            // What is no message takes nothing from its chat, but waits where the chat does.
            Weight::Sign => pace::spare(&[of_account, (&self.purse, None)], now),
            Weight::Message => pace::spare(&[of_account, (&self.purse, pace.chat)], now),
            Weight::Change => {
                let of_edits = (&account.edits, pace.edits);
                pace::spare(&[of_account, (&self.purse, pace.chat), of_edits], now)
            }
        }
    }

    /// Waits where the platform asks us to.
    fn heed(&self, error: &SendError) {
        self.heed_with(error, Weight::Message);
    }

    fn heed_with(&self, error: &SendError, weight: Weight) {
        let Some(account) = &self.account else { return };
        let now = self.shared.clock.now();
        match (weight, error) {
            (Weight::Change, SendError::Throttled { after }) if self.can.pace.edits.is_some() => {
                account.edits.pause(*after, now);
            }
            (Weight::Message | Weight::Change, _) => account.heed(&self.purse, error, now),
            (Weight::Sign, _) => account.heed_lightly(&self.purse, error, now),
        }
    }

    /// How answers grow here. That can change: a platform may turn out not to know drafts.
    fn growth(&self) -> Growth {
        self.shared.growth(&self.chat.to)
    }

    /// Why nothing is sent here any more.
    fn silenced(&self) -> Option<String> {
        self.account.as_ref()?.silenced.reason(&self.chat.to)
    }

    fn receipt(&self, message: Option<MessageId>) -> Receipt {
        Receipt { message, at: self.shared.clock.now() }
    }

    async fn read(&mut self) {
        match self.shared.store.parcels(&self.chat.to, PAGE).await {
            Ok(parcels) => {
                let rest = if parcels.len() == PAGE { Rest::InStore } else { Rest::None };
                self.chat.fill(parcels, rest);
            }
            Err(error) => {
                tracing::warn!(%error, "the outbox cannot be read");
                self.shared.clock.sleep(STORE_REST).await;
            }
        }
    }

    /// Waits until the account is connected. One that is not configured may come yet.
    async fn connected(&self) -> Arc<dyn Outgoing> {
        self.shared.accounts.arrival(&self.chat.to.account).await.connected().await
    }

    fn outgoing(&self) -> Option<Arc<dyn Outgoing>> {
        self.account.as_ref()?.outgoing()
    }

    async fn settle(&mut self, parcel: &Parcel, settlement: Settlement) {
        // The moment of it, however long the store takes to write it down.
        let at = self.shared.clock.now();
        let written = self
            .durably(|shared, id| shared.store.settle(id, settlement.clone(), at), parcel)
            .await;
        if written.is_some() {
            crate::passing::settled(&self.shared, parcel, &settlement);
        }
    }

    /// Writes, again and again until it is written. None when the store will never take it.
    async fn durably<'a, T>(
        &'a self,
        write: impl Fn(&'a Shared, &'a OutboundId) -> Writing<'a, T>,
        parcel: &'a Parcel,
    ) -> Option<T> {
        let mut backoff = self.shared.spread.backoff();
        loop {
            match write(&self.shared, &parcel.outbound.id).await {
                Ok(written) => return Some(written),
                Err(error @ StoreError::Unavailable { .. }) => {
                    tracing::warn!(%error, "the outbox cannot be written");
                    self.shared.clock.sleep(backoff.next()).await;
                }
                Err(error @ StoreError::Damaged { .. }) => {
                    tracing::error!(outbound = %parcel.outbound.id, %error, "a parcel is stuck");
                    return None;
                }
            }
        }
    }

    /// An act that is only for show: it is tried once, and nothing depends on it.
    async fn act(&self, id: &OutboundId, act: Act) -> Result<(), SendError> {
        let whole = Outbound { id: id.clone(), to: self.chat.to.clone(), act };
        match lower(whole, &with_room_for_mark(self.can)).into_iter().next() {
            Some(fitting) => self.perform(&fitting).await,
            None => Err(SendError::Rejected { reason: "the platform knows no such act".into() }),
        }
    }

    /// The same for an act that fits.
    async fn perform(&self, outbound: &Outbound) -> Result<(), SendError> {
        let unreachable = || SendError::Unreachable { reason: "not connected".into() };
        let unconfirmed = |reason: &str| SendError::Unconfirmed { reason: reason.into() };
        let outgoing = self.outgoing().ok_or_else(unreachable)?;
        tokio::select! {
            biased;
            sent = calm(outgoing.send(outbound)) => match sent {
                Ok(sent) => sent.map(drop).map_err(|error| discretion::told(&self.shared, error)),
                Err(Panicked) => Err(unconfirmed("the platform panicked")),
            },
            () = self.shared.clock.sleep(SHOW_TIMEOUT) => Err(unconfirmed("no answer in time")),
        }
    }
}

type Writing<'a, T> = futures::future::BoxFuture<'a, Result<T, StoreError>>;
