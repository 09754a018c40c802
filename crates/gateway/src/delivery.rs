//! From the outbox to a platform: say that it leaves, send it, say what became of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use talaria_agent::Preview;
use talaria_model::{
    Act, Capabilities, Content, Drafts, Edits, Idempotency, MessageId, Outbound, OutboundId,
    Receipt, Timestamp, Typing,
};
use talaria_platform::{Fate, Outgoing, SendError, lower};
use talaria_store::{Parcel, ParcelState, Settlement, StoreError};
use tokio::sync::watch;

use crate::backoff::Backoff;
use crate::chats::{Chat, Errand};
use crate::preview::{Shown, text_of};
use crate::shared::Shared;

/// What a resend begins with when its first try may have arrived.
const MARK: &str = "*(sent again after an interruption; you may have seen this)*\n\n";

/// A preview by edits begins when there is this much to read, so that short answers are one message.
const FIRST_PREVIEW: usize = 24;

/// How many parcels are read from the store at once.
const PAGE: usize = 32;

/// How often a parcel is resent under the same key before we give up on knowing.
const KEYED_TRIES: u32 = 5;

/// How often a platform may refuse an edit for being too early before the preview stands still.
const STRIKES: u32 = 3;

/// Whether an answer can be seen before it is finished.
pub(crate) fn can_preview(can: &Capabilities) -> bool {
    can.drafts != Drafts::Never || can.edits != Edits::Never || can.typing != Typing::Never
}

/// Delivers to one chat until there is nothing left to deliver or to show.
pub(crate) async fn run(shared: Arc<Shared>, chat: Arc<Chat>) {
    let mut courier = Courier {
        can: shared.capabilities(&chat.to.account),
        outgoing: shared.accounts.outgoing(&chat.to.account),
        backoff: Backoff::default(),
        visible: HashMap::new(),
        shared,
        chat,
    };
    loop {
        match courier.chat.errand() {
            Errand::Deliver(parcel) => courier.deliver(parcel).await,
            Errand::Read => courier.read().await,
            Errand::Show(shown) => courier.show(shown).await,
            Errand::Leave if courier.shared.chats.leave(&courier.chat) => return,
            Errand::Leave => {}
        }
    }
}

/// Delivers to one chat.
struct Courier {
    shared: Arc<Shared>,
    chat: Arc<Chat>,
    can: Capabilities,
    outgoing: watch::Receiver<Option<Arc<dyn Outgoing>>>,
    backoff: Backoff,
    /// Previews that people see and that no answer has replaced yet. Several people can be answered
    /// in one chat at the same time.
    visible: HashMap<OutboundId, Visible>,
}

/// A preview as people see it.
#[derive(Default)]
struct Visible {
    message: Option<MessageId>,
    text: String,
    at: Timestamp,
    strikes: u32,
}

impl Courier {
    async fn deliver(&mut self, mut parcel: Parcel) {
        let visible = self.visible.remove(&parcel.outbound.id);
        if let Some(Visible { message: Some(message), .. }) = visible {
            parcel.shown = Some(message);
        }
        let now = self.shared.clock.now();
        if now.since(parcel.at) > self.shared.limits.parcel_lifetime {
            let reason = "it could not be delivered for too long".to_owned();
            return self.settle(&parcel, Settlement::Abandoned { reason }).await;
        }
        if parcel.state == ParcelState::Unsure && parcel.attempts >= KEYED_TRIES {
            let reason = format!("its outcome was unknown {} times", parcel.attempts);
            tracing::warn!(outbound = %parcel.outbound.id, reason, "given up");
            return self.settle(&parcel, Settlement::Abandoned { reason }).await;
        }
        if let Some(not_before) = parcel.not_before.filter(|at| *at > now) {
            self.shared.clock.sleep(not_before.since(now)).await;
        }
        let outgoing = self.connected().await;
        let _leaving = self.chat.leaving();
        let outbound = self.outbound_of(&parcel);
        if !self.durably(|shared, id| Box::pin(shared.store.attempt(id)), &parcel).await {
            return;
        }
        match self.send(outgoing.as_ref(), &outbound).await {
            Ok(receipt) => {
                self.backoff.reset();
                let message = receipt.message.or(parcel.shown.clone());
                let receipt = Receipt { message, ..receipt };
                self.settle(&parcel, Settlement::Delivered(receipt)).await;
            }
            Err(error) => self.failed(parcel, error).await,
        }
    }

    async fn send(
        &self,
        outgoing: &dyn Outgoing,
        outbound: &Outbound,
    ) -> Result<Receipt, SendError> {
        tokio::select! {
            sent = outgoing.send(outbound) => sent,
            () = self.shared.clock.sleep(self.shared.limits.send_timeout) => {
                Err(SendError::Unconfirmed { reason: "no answer in time".into() })
            }
        }
    }

    async fn failed(&mut self, mut parcel: Parcel, error: SendError) {
        let id = parcel.outbound.id.clone();
        tracing::info!(outbound = %id, %error, "not delivered");
        match error.fate() {
            Fate::Retry { after } => {
                let wait = after.unwrap_or_else(|| self.backoff.next());
                let at = self.shared.clock.now() + wait;
                self.settle(&parcel, Settlement::Again { at }).await;
                parcel.not_before = Some(at);
                self.chat.put_back(parcel);
            }
            Fate::Plain if parcel.state != ParcelState::Plain => {
                self.settle(&parcel, Settlement::Plain).await;
                parcel.state = ParcelState::Plain;
                self.chat.put_back(parcel);
            }
            Fate::Plain | Fate::Drop => {
                let reason = error.to_string();
                tracing::warn!(outbound = %id, reason, "cannot be delivered");
                self.settle(&parcel, Settlement::Undeliverable { reason }).await;
            }
            Fate::Unsure => self.unsure(parcel, error).await,
            Fate::Suspend => {
                let at = self.shared.clock.now() + Duration::from_secs(60);
                self.settle(&parcel, Settlement::Again { at }).await;
                parcel.not_before = Some(at);
                self.shared.accounts.suspend(&self.chat.to.account, &error.to_string());
                self.chat.put_back(parcel);
            }
        }
    }

    /// It may have arrived. An edit or a key makes a repeat invisible; else it is resent once, with
    /// a mark.
    async fn unsure(&mut self, mut parcel: Parcel, error: SendError) {
        parcel.attempts += 1;
        let tries = if self.repeats_invisibly(&parcel) { KEYED_TRIES } else { 2 };
        if parcel.attempts >= tries {
            let reason = format!("{error}, {} times", parcel.attempts);
            tracing::warn!(outbound = %parcel.outbound.id, reason, "given up");
            return self.settle(&parcel, Settlement::Abandoned { reason }).await;
        }
        self.settle(&parcel, Settlement::Unsure).await;
        parcel.state = ParcelState::Unsure;
        parcel.not_before = Some(self.shared.clock.now() + self.backoff.next());
        self.chat.put_back(parcel);
    }

    fn repeats_invisibly(&self, parcel: &Parcel) -> bool {
        let edits = self.can.edits != Edits::Never && parcel.shown.is_some();
        edits || self.is_keyed(parcel)
    }

    fn is_keyed(&self, parcel: &Parcel) -> bool {
        match self.can.idempotency {
            Idempotency::None => false,
            Idempotency::Keyed(window) => self.shared.clock.now().since(parcel.at) < window,
        }
    }

    /// The act as it leaves: an edit where the preview is visible, marked where it may be a repeat.
    fn outbound_of(&self, parcel: &Parcel) -> Outbound {
        let mut outbound = parcel.outbound.clone();
        if parcel.state == ParcelState::Plain
            && let Act::Post(content) = &mut outbound.act
        {
            content.text = talaria_render::plain(&talaria_render::parse(&content.text));
        }
        outbound.act = match (outbound.act, &parcel.shown) {
            (Act::Post(content), Some(message)) if self.can.edits != Edits::Never => {
                Act::Edit { message: message.clone(), content }
            }
            (Act::Post(content), _)
                if parcel.state == ParcelState::Unsure && !self.is_keyed(parcel) =>
            {
                Act::Post(Content { text: format!("{MARK}{}", content.text), ..content })
            }
            (act, _) => act,
        };
        outbound
    }

    async fn read(&mut self) {
        match self.shared.store.parcels(&self.chat.to, PAGE).await {
            Ok(parcels) => {
                let more = parcels.len() == PAGE;
                self.chat.fill(parcels, more);
            }
            Err(error) => {
                tracing::warn!(%error, "the outbox cannot be read");
                self.shared.clock.sleep(Duration::from_secs(1)).await;
            }
        }
    }

    /// Waits until the account is connected.
    async fn connected(&mut self) -> Arc<dyn Outgoing> {
        loop {
            if let Some(outgoing) = self.outgoing.borrow_and_update().clone() {
                return outgoing;
            }
            if self.outgoing.changed().await.is_err() {
                // Only a gateway that is going away drops the other end.
                std::future::pending::<()>().await;
            }
        }
    }

    async fn settle(&mut self, parcel: &Parcel, settlement: Settlement) {
        self.durably(
            move |shared, id| Box::pin(shared.store.settle(id, settlement.clone())),
            parcel,
        )
        .await;
    }

    /// Writes, again and again until it is written. False when the store will never take it.
    async fn durably<'a>(
        &'a self,
        write: impl Fn(&'a Shared, &'a OutboundId) -> Writing<'a>,
        parcel: &'a Parcel,
    ) -> bool {
        let mut backoff = Backoff::default();
        loop {
            match write(&self.shared, &parcel.outbound.id).await {
                Ok(()) => return true,
                Err(error @ StoreError::Unavailable { .. }) => {
                    tracing::warn!(%error, "the outbox cannot be written");
                    self.shared.clock.sleep(backoff.next()).await;
                }
                Err(error @ StoreError::Damaged { .. }) => {
                    tracing::error!(outbound = %parcel.outbound.id, %error, "a parcel is stuck");
                    return false;
                }
            }
        }
    }

    /// Shows the newest state of a preview, then waits for something to do.
    async fn show(&mut self, mut shown: Shown) {
        let now = self.shared.clock.now();
        let preview = shown.preview.borrow_and_update().clone();
        let due = self.due(&shown.id, &preview);
        if due.is_some_and(|due| due <= now) {
            self.refresh(&shown.id, &preview).await;
        }
        let wait = match due.filter(|due| *due > now) {
            // Every word in between would only wake us for nothing.
            Some(due) => due.since(now),
            None => {
                tokio::select! {
                    () = self.chat.wake.notified() => {}
                    changed = shown.preview.changed() => {
                        if changed.is_err() {
                            self.chat.hide(&shown.id);
                        }
                    }
                    () = self.shared.clock.sleep(self.typing_interval()) => {
                        if preview.text.is_empty() && self.can.typing != Typing::Never {
                            self.act(&shown.id, Act::Typing).await;
                        }
                    }
                }
                return;
            }
        };
        tokio::select! {
            () = self.chat.wake.notified() => {}
            () = self.shared.clock.sleep(wait) => {}
        }
    }

    fn typing_interval(&self) -> Duration {
        match self.can.typing {
            Typing::Never => Duration::from_secs(3600),
            Typing::Fades(after) => after.mul_f64(0.8),
        }
    }

    /// When the preview may be refreshed, if there is anything to refresh.
    fn due(&self, id: &OutboundId, preview: &Preview) -> Option<Timestamp> {
        let unseen = Visible::default();
        let visible = self.visible.get(id).unwrap_or(&unseen);
        let text = text_of(preview);
        let every = match (self.can.drafts, self.can.edits) {
            (Drafts::Every(every), _) => every,
            (Drafts::Never, Edits::Every(_)) if visible.strikes >= STRIKES => return None,
            (Drafts::Never, Edits::Every(every)) => every * (1 << visible.strikes),
            (Drafts::Never, Edits::Never) => return None,
        };
        let enough = match (self.can.drafts, &visible.message) {
            (Drafts::Never, None) => text.chars().count() >= FIRST_PREVIEW,
            _ => !text.is_empty(),
        };
        (enough && text != visible.text).then(|| visible.at + every)
    }

    async fn refresh(&mut self, id: &OutboundId, preview: &Preview) {
        let text = text_of(preview);
        let message = self.visible.get(id).and_then(|visible| visible.message.clone());
        let content = Content::text(text.clone());
        let refreshed = match (self.can.drafts, message) {
            (Drafts::Every(_), _) => self.act(id, Act::Draft(content)).await.map(|_| None),
            (Drafts::Never, Some(message)) => {
                self.act(id, Act::Edit { message, content }).await.map(|_| None)
            }
            (Drafts::Never, None) => self.open(id, content).await,
        };
        let visible = self.visible.entry(id.clone()).or_default();
        visible.at = self.shared.clock.now();
        match refreshed {
            Some(posted) => {
                visible.text = text;
                visible.message = posted.or(visible.message.take());
            }
            None => visible.strikes += 1,
        }
    }

    /// Posts a preview as a message, which the answer will replace. It is named in the store first:
    /// after a crash the answer must know that something may be visible.
    async fn open(&mut self, id: &OutboundId, content: Content) -> Option<Option<MessageId>> {
        let outgoing = self.outgoing.borrow().clone()?;
        let act = Act::Post(self.first_part(id, content));
        let outbound = Outbound { id: id.clone(), to: self.chat.to.clone(), act };
        self.shared.store.preview(&outbound).await.ok()?;
        let sent = self.send(outgoing.as_ref(), &outbound).await;
        let settlement = match &sent {
            Ok(receipt) => Settlement::Previewed(receipt.message.clone()),
            Err(SendError::Unconfirmed { .. }) => Settlement::Unsure,
            Err(_) => Settlement::Previewed(None),
        };
        if let Err(error) = self.shared.store.settle(id, settlement).await {
            tracing::warn!(%error, "a preview could not be recorded");
        }
        sent.ok().map(|receipt| receipt.message)
    }

    /// As much of a preview as one message holds.
    fn first_part(&self, id: &OutboundId, content: Content) -> Content {
        let whole = Outbound { id: id.clone(), to: self.chat.to.clone(), act: Act::Post(content) };
        match lower(whole, &self.can).into_iter().next().map(|first| first.act) {
            Some(Act::Post(first)) => first,
            _ => Content::default(),
        }
    }

    /// An act that is only for show: it is tried once, and nothing depends on it.
    async fn act(&self, id: &OutboundId, act: Act) -> Option<Receipt> {
        let outgoing = self.outgoing.borrow().clone()?;
        let whole = Outbound { id: id.clone(), to: self.chat.to.clone(), act };
        let fitting = lower(whole, &self.can).into_iter().next()?;
        tokio::select! {
            sent = outgoing.send(&fitting) => sent.ok(),
            () = self.shared.clock.sleep(Duration::from_secs(10)) => None,
        }
    }
}

type Writing<'a> = std::pin::Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send + 'a>>;
