//! From the outbox to a platform: say that it leaves, send it, say what became of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use talaria_agent::Preview;
use talaria_model::{
    Act, Address, Capabilities, Content, Deletes, Draft, Drafts, Edits, Idempotency, Markup,
    MessageId, Outbound, OutboundId, Receipt, TextLimit, Timestamp, Typing,
};
use talaria_platform::{Fate, Outgoing, SendError, lower};
use talaria_store::{Leave, Parcel, ParcelState, Settlement, StoreError};

use crate::accounts::ConnectedAccount;
use crate::backoff::Backoff;
use crate::chats::{Chat, Errand};
use crate::owed;
use crate::preview::{Past, Shown, said_in, text_of};
use crate::shared::Shared;
use crate::tasks::{Panicked, calm};

/// What a resend begins with when its first try may have arrived.
const MARK: &str = "(sent again after an interruption; you may have seen this)";

/// The same where messages are short.
const SHORT_MARK: &str = "(again)\n";

/// What a preview becomes that can neither be removed nor replaced by an answer.
const DONE: &str = "(done)";

/// A preview by edits begins when there is this much to read, so that short answers are one message.
const FIRST_PREVIEW: usize = 24;

/// How many parcels are read from the store at once.
const PAGE: usize = 32;

/// How often a parcel is resent under the same key before we give up on knowing.
const KEYED_TRIES: u32 = 5;

/// A parcel that may have left this often, over all lives of the process, is given up: sending it may be
/// what ends them. A life that ends while it is starting burns one try of everything that is about to
/// leave, so a few in a row must not be enough.
const MOST_TRIES: u32 = 25;

/// How often a parcel is sent whose repeats people see: once, and once with a mark.
const MARKED_TRIES: u32 = 2;

/// How long a parcel waits while its account is out of service.
const SUSPENDED_REST: Duration = Duration::from_secs(60);

/// How long the store rests that could not answer.
const STORE_REST: Duration = Duration::from_secs(1);

/// How long an act may take that is only for show. The answer waits behind it.
const SHOW_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a platform may refuse an edit for being too early before the preview stands still.
const STRIKES: u32 = 3;

/// Nobody reads faster, whatever a platform allows.
const SHORTEST_REFRESH: Duration = Duration::from_millis(10);

/// Whether an answer can be seen before it is finished.
pub(crate) fn can_preview(can: &Capabilities) -> bool {
    can.drafts != Drafts::Never || can.edits != Edits::Never || can.typing != Typing::Never
}

/// Whether words of an answer can be seen before it is finished.
pub(crate) fn shows_words(can: &Capabilities) -> bool {
    can.drafts != Drafts::Never || can.edits != Edits::Never
}

/// A delivery that comes to nothing: it says nothing, and whatever is visible of it has to go. Nobody
/// knows any more whether a draft was visible before this run, so it is replaced.
pub(crate) fn withdrawal(id: OutboundId, to: Address, can: &Capabilities, past: Past) -> Outbound {
    let content = match (past, can.drafts) {
        (Past::Unknown, Drafts::Every(_)) => Content::text(DONE),
        _ => Content::default(),
    };
    Outbound { id, to, act: Act::Post(content) }
}

fn is_withdrawal(parcel: &Parcel) -> bool {
    matches!(&parcel.outbound.act, Act::Post(content) if *content == Content::default())
}

/// What a platform can do, with room left in every message for a mark: a part that is resent has to
/// fit with it.
pub(crate) fn with_room_for_mark(can: Capabilities) -> Capabilities {
    let longest = mark(can.text, Markup::Markdown).len();
    let room = can.text.max.saturating_sub(u32::try_from(longest).unwrap_or(u32::MAX)).max(1);
    Capabilities { text: TextLimit { max: room, ..can.text }, ..can }
}

fn mark(limit: TextLimit, markup: Markup) -> String {
    match markup {
        _ if (limit.max as usize) < 4 * MARK.len() => SHORT_MARK.to_owned(),
        Markup::Markdown => format!("*{MARK}*\n\n"),
        Markup::Plain => format!("{MARK}\n\n"),
    }
}

/// Delivers to one chat until there is nothing left to deliver or to show.
pub(crate) async fn run(shared: Arc<Shared>, chat: Arc<Chat>) {
    let mut courier = Courier {
        can: shared.capabilities(&chat.to.account),
        account: shared.accounts.get(&chat.to.account).cloned(),
        backoff: shared.spread.backoff(),
        plain: None,
        marked: None,
        visible: HashMap::new(),
        typed: None,
        shared,
        chat,
    };
    loop {
        let errand = courier.chat.errand();
        if let Errand::Leave = errand {
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
    /// None when it is not configured any more.
    account: Option<Arc<ConnectedAccount>>,
    backoff: Backoff,
    /// The parcel at hand, once its formatting was not accepted.
    plain: Option<OutboundId>,
    /// The parcel at hand, once it was sent with a mark.
    marked: Option<OutboundId>,
    /// Previews that people see and that no answer has replaced yet. Several people can be answered
    /// in one chat at the same time.
    visible: HashMap<OutboundId, Visible>,
    /// When people were last shown that somebody is typing.
    typed: Option<Timestamp>,
}

/// A preview as people see it.
#[derive(Default)]
struct Visible {
    seen: Seen,
    text: String,
    at: Timestamp,
    strikes: u32,
}

/// What people see of a preview.
#[derive(Clone, Default, PartialEq, Eq)]
enum Seen {
    /// Nothing yet.
    #[default]
    Nothing,
    /// This message.
    Message(MessageId),
    /// Perhaps something, and we do not know which message it is.
    Unsure,
}

impl Courier {
    async fn run(&mut self, errand: Errand) {
        match errand {
            Errand::Deliver(parcel) => self.deliver(parcel).await,
            Errand::Read => self.read().await,
            Errand::OwnUp => self.own_up().await,
            Errand::Show(shown) => self.show(shown).await,
            Errand::Leave => {}
        }
    }

    async fn deliver(&mut self, mut parcel: Parcel) {
        let visible = self.visible.remove(&parcel.outbound.id).unwrap_or_default();
        match visible.seen {
            Seen::Message(message) => parcel.shown = Some(message),
            Seen::Unsure => parcel.state = ParcelState::Unsure,
            Seen::Nothing if is_withdrawal(&parcel) && !visible.text.is_empty() => {
                // A draft: only a message takes its place.
                parcel.outbound.act = Act::Post(Content::text(DONE));
            }
            Seen::Nothing => {}
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
        let visible = parcel.shown.is_some() || parcel.state == ParcelState::Unsure;
        if is_withdrawal(&parcel) && !visible {
            return self.settle(&parcel, Settlement::Delivered(self.receipt(None))).await;
        }
        self.chat.hold();
        if let Some(not_before) = parcel.not_before.filter(|at| *at > now) {
            self.shared.clock.sleep(not_before.since(now)).await;
        }
        let left = (parcel.at + self.shared.limits.parcel_lifetime).since(self.shared.clock.now());
        let too_old = self.shared.clock.sleep(left);
        let outgoing = tokio::select! {
            biased;
            outgoing = self.connected() => outgoing,
            // Looked at again, it is found to be too old.
            () = too_old => return self.chat.put_back(parcel),
        };
        self.chat.carry_on();
        let outbound = self.outbound_of(&parcel);
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
            Err(error) => self.failed(parcel, error).await,
        }
    }

    async fn send(
        &self,
        outgoing: &dyn Outgoing,
        outbound: &Outbound,
    ) -> Result<Receipt, SendError> {
        let unconfirmed = |reason: &str| SendError::Unconfirmed { reason: reason.into() };
        tokio::select! {
            biased;
            sent = calm(outgoing.send(outbound)) => {
                sent.unwrap_or_else(|Panicked| Err(unconfirmed("the platform panicked")))
            }
            () = self.shared.clock.sleep(self.shared.limits.send_timeout) => {
                Err(unconfirmed("no answer in time"))
            }
        }
    }

    /// A vendor that recognises an id shows what it was first given under it, and that may have been
    /// a preview. Then the answer still has to replace it. It may recognise it for longer than it
    /// promises.
    fn may_show_a_preview(&self, parcel: &Parcel) -> bool {
        let by_edits = self.can.drafts == Drafts::Never && self.can.edits != Edits::Never;
        let unsure = parcel.state == ParcelState::Unsure && parcel.shown.is_none();
        by_edits && unsure && self.can.idempotency != Idempotency::None
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
            Fate::Plain if !self.is_plain(&parcel) => {
                self.settle(&parcel, Settlement::Plain).await;
                self.plain = Some(id);
                self.chat.put_back(parcel);
            }
            Fate::Plain | Fate::Drop if self.may_have_lost_its_preview(&parcel, &error) => {
                self.settle(&parcel, Settlement::Previewed(None)).await;
                parcel.shown = None;
                self.unsure(parcel, error).await;
            }
            Fate::Plain | Fate::Drop => {
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

    /// It may have arrived. An edit or a key makes a repeat invisible; else it is resent once, with
    /// a mark.
    async fn unsure(&mut self, mut parcel: Parcel, error: SendError) {
        parcel.attempts += 1;
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
    async fn give_up(&mut self, parcel: &Parcel, settlement: Settlement) {
        let id = &parcel.outbound.id;
        if is_withdrawal(parcel) {
            tracing::info!(outbound = %id, ?settlement, "a preview stays");
            let receipt = self.receipt(parcel.shown.clone());
            return self.settle(parcel, Settlement::Delivered(receipt)).await;
        }
        tracing::warn!(outbound = %id, ?settlement, "never delivered");
        self.settle(parcel, settlement).await;
        self.shared.owed.add(self.chat.to.clone());
    }

    /// Something has just arrived here, so people can be told what has not. One notice is for
    /// everything up to the moment at which nothing else waits and no turn has more to say.
    async fn own_up(&mut self) {
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

    fn receipt(&self, message: Option<MessageId>) -> Receipt {
        Receipt { message, at: self.shared.clock.now() }
    }

    fn repeats_invisibly(&self, parcel: &Parcel) -> bool {
        let edits = self.can.edits != Edits::Never && parcel.shown.is_some();
        edits || self.is_keyed(parcel)
    }

    fn is_keyed(&self, parcel: &Parcel) -> bool {
        match self.can.idempotency {
            Idempotency::None => false,
            // A clock that was set back does not know how long ago that was.
            Idempotency::Keyed(window) => {
                let now = self.shared.clock.now();
                parcel.at <= now && now.since(parcel.at) < window
            }
        }
    }

    /// A parcel that is unsure does not say that it is plain, too.
    fn is_plain(&self, parcel: &Parcel) -> bool {
        parcel.state == ParcelState::Plain || self.plain.as_ref() == Some(&parcel.outbound.id)
    }

    /// The act as it leaves: an edit where the preview is visible, marked where it may be a repeat.
    fn outbound_of(&self, parcel: &Parcel) -> Outbound {
        let mut outbound = parcel.outbound.clone();
        if is_withdrawal(parcel) {
            outbound.act = self.withdrawing(parcel.shown.as_ref());
            return outbound;
        }
        let is_plain = self.is_plain(parcel);
        // Where Markdown is not shown, the text is plain already; read as Markdown it could lose words.
        let has_marks = self.can.markup == Markup::Markdown;
        if is_plain
            && has_marks
            && let Act::Post(content) = &mut outbound.act
        {
            content.text = talaria_render::plain(&talaria_render::parse(&content.text));
        }
        if self.is_marked(parcel)
            && let Act::Post(content) = &mut outbound.act
        {
            let markup = if is_plain { Markup::Plain } else { self.can.markup };
            content.text.insert_str(0, &mark(self.can.text, markup));
        }
        outbound.act = match (outbound.act, &parcel.shown) {
            (Act::Post(content), Some(message)) if self.can.edits != Edits::Never => {
                Act::Edit { message: message.clone(), content }
            }
            (act, _) => act,
        };
        outbound
    }

    /// Whether it says that it may be a repeat. Once it was posted so, an edit of it says so too.
    fn is_marked(&self, parcel: &Parcel) -> bool {
        let edits = self.can.edits != Edits::Never && parcel.shown.is_some();
        let repeats = parcel.state == ParcelState::Unsure && !edits && !self.is_keyed(parcel);
        repeats || self.marked.as_ref() == Some(&parcel.outbound.id)
    }

    /// Takes away what is visible of a delivery that says nothing, as well as the platform can.
    fn withdrawing(&self, shown: Option<&MessageId>) -> Act {
        match shown {
            Some(message) if self.can.deletes == Deletes::Anytime => {
                Act::Delete { message: message.clone() }
            }
            Some(message) if self.can.edits != Edits::Never => {
                Act::Edit { message: message.clone(), content: Content::text(DONE) }
            }
            _ => Act::Post(Content::text(DONE)),
        }
    }

    async fn read(&mut self) {
        match self.shared.store.parcels(&self.chat.to, PAGE).await {
            Ok(parcels) => {
                let more = parcels.len() == PAGE;
                self.chat.fill(parcels, more);
            }
            Err(error) => {
                tracing::warn!(%error, "the outbox cannot be read");
                self.shared.clock.sleep(STORE_REST).await;
            }
        }
    }

    /// Waits until the account is connected. One that is not configured never is.
    async fn connected(&self) -> Arc<dyn Outgoing> {
        match &self.account {
            Some(account) => account.connected().await,
            None => std::future::pending().await,
        }
    }

    fn outgoing(&self) -> Option<Arc<dyn Outgoing>> {
        self.account.as_ref()?.outgoing()
    }

    async fn settle(&mut self, parcel: &Parcel, settlement: Settlement) {
        self.durably(move |shared, id| shared.store.settle(id, settlement.clone()), parcel).await;
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

    /// Shows the newest state of the answers that grow, then waits for something to do.
    async fn show(&mut self, mut shown: Vec<Shown>) {
        self.visible.retain(|id, _| shown.iter().any(|shown| shown.id == *id));
        shown.retain(|shown| !self.chat.is_decided(&shown.id));
        let now = self.shared.clock.now();
        let next = shown.iter_mut().filter_map(|shown| {
            let preview = shown.preview.borrow_and_update().clone();
            let due = self.due(shown, &preview)?;
            Some((due, shown.id.clone(), preview))
        });
        let next = next.min_by_key(|(due, ..)| *due);
        if let Some((due, id, preview)) = &next
            && *due <= now
        {
            return self.refresh(id, preview).await;
        }
        let type_at = self.typing_due(&shown, now);
        if type_at.is_some_and(|due| due <= now) {
            self.typed = Some(now);
            self.act(&shown[0].id, Act::Typing).await;
            return;
        }
        let wake_at = next.iter().map(|(due, ..)| *due).chain(type_at).min();
        let until = async {
            match wake_at {
                Some(at) => self.shared.clock.sleep(at.since(now)).await,
                None => std::future::pending().await,
            }
        };
        let changed = async {
            // Every word before the next refresh would only wake us for nothing.
            if next.is_some() {
                return std::future::pending().await;
            }
            // An agent that has ended says no more; its answer is on the way.
            let growing = shown.iter_mut().filter(|shown| shown.preview.has_changed().is_ok());
            let changes: Vec<_> = growing.map(|shown| Box::pin(shown.preview.changed())).collect();
            if changes.is_empty() {
                return std::future::pending().await;
            }
            drop(futures::future::select_all(changes).await);
        };
        tokio::select! {
            biased;
            () = self.chat.wake.notified() => {}
            () = until => {}
            () = changed => {}
        }
    }

    /// When people are to be shown that somebody is typing: for as long as there is an answer of
    /// which they can read nothing.
    fn typing_due(&self, shown: &[Shown], now: Timestamp) -> Option<Timestamp> {
        let Typing::Fades(after) = self.can.typing else { return None };
        let is_unseen = |shown: &Shown| {
            self.visible.get(&shown.id).is_none_or(|visible| visible.text.is_empty())
        };
        let every = after.mul_f64(0.8);
        shown.iter().any(is_unseen).then(|| self.typed.map_or(now, |typed| typed + every))
    }

    /// When the preview may be refreshed, if there is anything to refresh.
    fn due(&self, shown: &Shown, preview: &Preview) -> Option<Timestamp> {
        let unseen = Visible::default();
        let visible = self.visible.get(&shown.id).unwrap_or(&unseen);
        let is_keyed = self.can.idempotency != Idempotency::None;
        let text = text_of(preview);
        let (every, enough) = match (self.can.drafts, self.can.edits) {
            (Drafts::Every(every), _) => (every, !text.is_empty()),
            (Drafts::Never, Edits::Never) => return None,
            (Drafts::Never, Edits::Every(every)) => {
                if shown.past == Past::Unknown || visible.strikes >= STRIKES {
                    return None;
                }
                let enough = match visible.seen {
                    Seen::Message(_) => !text.is_empty(),
                    Seen::Unsure if !is_keyed => return None,
                    Seen::Nothing | Seen::Unsure => text.chars().count() >= FIRST_PREVIEW,
                };
                (every * (1 << visible.strikes), enough)
            }
        };
        (enough && text != visible.text).then(|| visible.at + every.max(SHORTEST_REFRESH))
    }

    async fn refresh(&mut self, id: &OutboundId, preview: &Preview) {
        let text = text_of(preview);
        let seen = self.visible.get(id).map(|visible| visible.seen.clone()).unwrap_or_default();
        let content = Content::text(text.clone());
        let refreshed = match (self.can.drafts, seen) {
            (Drafts::Every(_), seen) => {
                let content = Content::text(said_in(preview));
                let draft = Draft { content, doing: preview.doing.clone() };
                self.act(id, Act::Draft(draft)).await.map(|_| seen)
            }
            (Drafts::Never, Seen::Message(message)) => {
                let edit = Act::Edit { message: message.clone(), content };
                self.act(id, edit).await.map(|_| Seen::Message(message))
            }
            (Drafts::Never, Seen::Nothing | Seen::Unsure) => self.open(id, content).await,
        };
        let visible = self.visible.entry(id.clone()).or_default();
        visible.at = self.shared.clock.now();
        visible.strikes += u32::from(matches!(refreshed, None | Some(Seen::Unsure)));
        if let Some(seen) = refreshed {
            visible.seen = seen;
            visible.text = text;
        }
    }

    /// Posts a preview as a message, which the answer will replace. It is named in the store first:
    /// after a crash the answer must know that something may be visible.
    async fn open(&mut self, id: &OutboundId, content: Content) -> Option<Seen> {
        let outgoing = self.outgoing()?;
        let act = Act::Post(self.first_part(id, content));
        let outbound = Outbound { id: id.clone(), to: self.chat.to.clone(), act };
        let naming = self.chat.name(id).await?;
        self.shared.store.preview(&outbound).await.ok()?;
        drop(naming);
        let (settlement, seen) = match self.send(outgoing.as_ref(), &outbound).await {
            Ok(Receipt { message: Some(message), .. }) => {
                (Settlement::Previewed(Some(message.clone())), Some(Seen::Message(message)))
            }
            // Visible without a name is as good as not knowing: it cannot be edited.
            Ok(Receipt { message: None, .. }) | Err(SendError::Unconfirmed { .. }) => {
                (Settlement::Unsure, Some(Seen::Unsure))
            }
            Err(_) => (Settlement::Previewed(None), None),
        };
        if let Err(error) = self.shared.store.settle(id, settlement).await {
            tracing::warn!(%error, "a preview could not be recorded");
        }
        seen
    }

    /// As much of a preview as one message holds.
    fn first_part(&self, id: &OutboundId, content: Content) -> Content {
        let whole = Outbound { id: id.clone(), to: self.chat.to.clone(), act: Act::Post(content) };
        match lower(whole, &with_room_for_mark(self.can)).into_iter().next().map(|first| first.act)
        {
            Some(Act::Post(first)) => first,
            _ => Content::default(),
        }
    }

    /// An act that is only for show: it is tried once, and nothing depends on it.
    async fn act(&self, id: &OutboundId, act: Act) -> Option<Receipt> {
        let outgoing = self.outgoing()?;
        let whole = Outbound { id: id.clone(), to: self.chat.to.clone(), act };
        let fitting = lower(whole, &with_room_for_mark(self.can)).into_iter().next()?;
        tokio::select! {
            biased;
            sent = calm(outgoing.send(&fitting)) => sent.ok()?.ok(),
            () = self.shared.clock.sleep(SHOW_TIMEOUT) => None,
        }
    }
}

type Writing<'a, T> = futures::future::BoxFuture<'a, Result<T, StoreError>>;
