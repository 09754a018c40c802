//! From the outbox to a platform: say that it leaves, send it, say what became of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use talaria_agent::Preview;
use talaria_model::{
    Act, Address, Capabilities, Content, Deletes, Draft, Drafts, Edits, Idempotency, Markup,
    MessageId, Outbound, OutboundId, Receipt, TextLimit, Timestamp, Typing,
};
use talaria_platform::{Fate, Found, Outgoing, SendError, lower};
use talaria_store::{Leave, Parcel, ParcelState, Settlement, StoreError};

use crate::accounts::ConnectedAccount;
use crate::backoff::Backoff;
use crate::chats::{Chat, Errand};
use crate::manner::{Growth, Manner, Replies};
use crate::owed;
use crate::pace::{self, Purse};
use crate::preview::{Past, Shown, said_in, text_of};
use crate::shared::Shared;
use crate::tasks::{Panicked, calm};

/// What a resend begins with when its first try may have arrived.
const MARK: &str = "(sent again after an interruption; you may have seen this)";

/// The same where messages are short.
const SHORT_MARK: &str = "(again)\n";

/// What a preview becomes that can neither be removed nor replaced by an answer.
const DONE: &str = "(done)";

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

/// How long a platform may look for what an act has left behind.
const FIND_TIMEOUT: Duration = Duration::from_secs(20);

/// How often a platform may refuse an edit for being too early before the preview stands still.
const STRIKES: u32 = 3;

/// How often people are shown at least that somebody is typing.
const TYPE_EVERY: Duration = Duration::from_secs(2);

/// How many bytes of a file leave in a second on a line on which nobody would give up yet.
const SLOWEST_LINE: u64 = 256 * 1024;

/// Whether words of an answer can have been seen before it is finished.
pub(crate) fn shows_words(can: &Capabilities) -> bool {
    can.drafts != Drafts::Never || can.edits != Edits::Never
}

/// A delivery that comes to nothing: it says nothing, and whatever is visible of it has to go. Nobody
/// knows any more whether a draft was visible before this run, so it is taken back in any case.
pub(crate) fn withdrawal(id: OutboundId, to: Address, can: &Capabilities, past: Past) -> Outbound {
    let act = match (past, can.drafts) {
        (Past::Unknown, Drafts::Every(_)) => Act::Draft(Draft::default()),
        _ => Act::Post(Content::default()),
    };
    Outbound { id, to, act }
}

fn is_withdrawal(parcel: &Parcel) -> bool {
    matches!(&parcel.outbound.act, Act::Post(content) if *content == Content::default())
}

/// What a platform can do, with room left in every message for a mark: a part that is resent has to
/// fit with it.
pub(crate) fn with_room_for_mark(can: Capabilities) -> Capabilities {
    let mark = mark(can.text, can.markup);
    let shown = talaria_render::render(&talaria_render::parse(&mark), can.markup.into()).text;
    // No unit is shorter than a byte, and a blank line stands between the mark and what follows.
    let longest = mark.len().max(shown.trim_end().len() + 2);
    let room = can.text.max.saturating_sub(u32::try_from(longest).unwrap_or(u32::MAX)).max(1);
    Capabilities { text: TextLimit { max: room, ..can.text }, ..can }
}

fn mark(limit: TextLimit, markup: Markup) -> String {
    match markup {
        _ if (limit.max as usize) < 4 * MARK.len() => SHORT_MARK.to_owned(),
        Markup::Plain => format!("{MARK}\n\n"),
        _ => format!("*{MARK}*\n\n"),
    }
}

/// Delivers to one chat until there is nothing left to deliver or to show.
pub(crate) async fn run(shared: Arc<Shared>, chat: Arc<Chat>) {
    let account = shared.accounts.get(&chat.to.account).cloned();
    let now = shared.clock.now();
    let mut courier = Courier {
        can: shared.capabilities(&chat.to),
        manner: shared.manner(&chat.to),
        growth: shared.growth(&chat.to),
        purse: account
            .as_ref()
            .map(|account| account.purses.of(&chat.to.chat.id, now))
            .unwrap_or_default(),
        account,
        backoff: shared.spread.backoff(),
        plain: None,
        marked: None,
        absent: None,
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
    manner: Arc<Manner>,
    growth: Growth,
    /// What may still be sent in this chat.
    purse: Arc<Purse>,
    /// None when it is not configured any more.
    account: Option<Arc<ConnectedAccount>>,
    backoff: Backoff,
    /// The parcel at hand, once its formatting was not accepted.
    plain: Option<OutboundId>,
    /// The parcel at hand, once it was sent with a mark.
    marked: Option<OutboundId>,
    /// The parcel at hand, once the platform said that nothing of it can be seen.
    absent: Option<OutboundId>,
    /// Previews that people see and that no answer has replaced yet. Several people can be answered
    /// in one chat at the same time.
    visible: HashMap<OutboundId, Visible>,
    /// When people were last shown that somebody is typing.
    typed: Option<Timestamp>,
}

/// A preview as people see it.
#[derive(Clone, Default)]
struct Visible {
    seen: Seen,
    /// As far as the answer was when it was last shown.
    text: String,
    /// The part of it that people read.
    frame: String,
    /// When that was.
    at: Timestamp,
    /// Since when there is a message.
    since: Option<Timestamp>,
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

/// What an act that is only for show counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// A message, or a change to one.
    Message,
    /// Something that is no message.
    Sign,
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
        match &visible.seen {
            Seen::Message(message) => parcel.shown = Some(message.clone()),
            Seen::Unsure => parcel.state = ParcelState::Unsure,
            Seen::Nothing if is_withdrawal(&parcel) && !visible.text.is_empty() => {
                return self.take_back(&parcel).await;
            }
            Seen::Nothing => {}
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
        let is_visible = parcel.shown.is_some() || parcel.state == ParcelState::Unsure;
        if is_withdrawal(&parcel) && !is_visible {
            return self.settle(&parcel, Settlement::Delivered(self.receipt(None))).await;
        }
        if let Some(reason) = self.silenced() {
            return self.give_up(&parcel, Settlement::Undeliverable { reason }).await;
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
        if self.is_marked(&parcel) {
            match self.find(outgoing.as_ref(), &parcel).await {
                Found::Shown(receipt) => return self.found(parcel, receipt).await,
                Found::Absent => self.absent = Some(parcel.outbound.id.clone()),
                Found::Unknown => {}
            }
        }
        self.spend().await;
        if self.is_stale(&parcel, &visible) {
            self.clear_preview(outgoing.as_ref(), &mut parcel).await;
        }
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
            () = self.shared.clock.sleep(self.patience(outbound)) => {
                Err(unconfirmed("no answer in time"))
            }
        }
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
    async fn spend(&self) {
        let Some(account) = &self.account else { return };
        let clock = self.shared.clock.as_ref();
        self.purse.spend(self.can.pace.chat, clock).await;
        account.purse.spend(self.can.pace.account, clock).await;
    }

    /// Whether something may be sent that is only for show; if not, how long that takes.
    fn spare(&self, now: Timestamp, weight: Weight) -> Result<(), Duration> {
        let Some(account) = &self.account else { return Ok(()) };
        let pace = self.can.pace;
        let of_chat = if weight == Weight::Message { pace.chat } else { None };
        pace::spare((&account.purse, pace.account), (&self.purse, of_chat), now)
    }

    /// Waits where the platform asks us to.
    fn heed(&self, error: &SendError) {
        self.heed_with(error, Weight::Message);
    }

    fn heed_with(&self, error: &SendError, weight: Weight) {
        let Some(account) = &self.account else { return };
        let now = self.shared.clock.now();
        match weight {
            Weight::Message => account.heed(&self.purse, error, now),
            Weight::Sign => account.heed_lightly(&self.purse, error, now),
        }
    }

    /// Why nothing is sent here any more.
    fn silenced(&self) -> Option<String> {
        self.account.as_ref()?.silenced.reason(&self.chat.to)
    }

    /// Takes a draft back that no answer replaces. It is not a message: the platform removes it, or it
    /// fades.
    async fn take_back(&mut self, parcel: &Parcel) {
        if let Err(error) = self.act(&parcel.outbound.id, Act::Draft(Draft::default())).await {
            tracing::debug!(outbound = %parcel.outbound.id, %error, "a draft will fade");
        }
        self.settle(parcel, Settlement::Delivered(self.receipt(None))).await;
    }

    /// Looks for what a parcel whose outcome is unknown has left behind.
    async fn find(&self, outgoing: &dyn Outgoing, parcel: &Parcel) -> Found {
        if is_withdrawal(parcel) {
            return Found::Unknown;
        }
        tokio::select! {
            biased;
            found = calm(outgoing.find(&parcel.outbound)) => match found {
                Ok(Ok(found)) => found,
                Ok(Err(error)) => {
                    self.heed(&error);
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
    /// of a change to what they were told of long ago. A key would be taken for the preview's, and what
    /// cannot be removed would stay beside the answer.
    fn is_stale(&self, parcel: &Parcel, visible: &Visible) -> bool {
        let is_old = match (self.manner.streaming.fresh_final_after, visible.since) {
            (Some(after), Some(since)) => self.shared.clock.now().since(since) >= after,
            _ => false,
        };
        let is_known = matches!(visible.seen, Seen::Message(_));
        is_known
            && (is_old || visible.strikes >= STRIKES)
            && !is_withdrawal(parcel)
            && parcel.state != ParcelState::Unsure
            && self.can.deletes == Deletes::Anytime
            && self.can.idempotency == Idempotency::None
    }

    /// Removes a preview, so that the answer can be posted anew. The answer itself is in the store and
    /// has not left: whatever happens from here on, there is one. As long as nobody has said that the
    /// preview is gone, the answer takes its place.
    async fn clear_preview(&mut self, outgoing: &dyn Outgoing, parcel: &mut Parcel) {
        let Some(message) = parcel.shown.clone() else { return };
        self.spend().await;
        let Outbound { id, to, .. } = parcel.outbound.clone();
        let removal = Outbound { id, to, act: Act::Delete { message } };
        match self.send(outgoing, &removal).await {
            Ok(_) => {
                self.settle(parcel, Settlement::Previewed(None)).await;
                parcel.shown = None;
            }
            Err(error) => {
                tracing::info!(outbound = %removal.id, %error, "a preview stays");
                self.heed(&error);
            }
        }
    }

    /// A vendor that recognises an id shows what it was first given under it, and that may have been
    /// a preview. Then the answer still has to replace it. It may recognise it for longer than it
    /// promises.
    fn may_show_a_preview(&self, parcel: &Parcel) -> bool {
        let unsure = parcel.state == ParcelState::Unsure && parcel.shown.is_none();
        self.can.edits != Edits::Never && unsure && self.can.idempotency != Idempotency::None
    }

    async fn failed(&mut self, mut parcel: Parcel, error: SendError) {
        let id = parcel.outbound.id.clone();
        tracing::info!(outbound = %id, %error, "not delivered");
        self.heed(&error);
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
        let has_marks = self.can.markup != Markup::Plain;
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
        let is_absent = self.absent.as_ref() == Some(&parcel.outbound.id);
        repeats && !is_absent || self.marked.as_ref() == Some(&parcel.outbound.id)
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
            Some((due, shown.clone(), preview))
        });
        let next = next.min_by_key(|(due, ..)| *due);
        let type_at = self.typing_due(&shown, now);
        let mut wake_at = next.iter().map(|(due, ..)| *due).chain(type_at).min();
        if wake_at.is_some_and(|due| due <= now) {
            let refresh = next.as_ref().filter(|(due, ..)| *due <= now);
            let weight = match self.growth {
                Growth::Edited(_) if refresh.is_some() => Weight::Message,
                _ => Weight::Sign,
            };
            match self.spare(now, weight) {
                Ok(()) => {
                    if let Some((_, shown, preview)) = refresh {
                        return self.refresh(shown, preview).await;
                    }
                    self.typed = Some(now);
                    // It is shown again soon.
                    if let Err(error) = self.act(&shown[0].id, Act::Typing).await {
                        self.heed_with(&error, Weight::Sign);
                    }
                    return;
                }
                Err(wait) => wake_at = Some(now + wait),
            }
        }
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
        let every = after.mul_f64(0.8).min(TYPE_EVERY);
        shown.iter().any(is_unseen).then(|| self.typed.map_or(now, |typed| typed + every))
    }

    /// When the preview may be refreshed, if there is anything to refresh.
    fn due(&self, shown: &Shown, preview: &Preview) -> Option<Timestamp> {
        let unseen = Visible::default();
        let visible = self.visible.get(&shown.id).unwrap_or(&unseen);
        let is_keyed = self.can.idempotency != Idempotency::None;
        if visible.strikes >= STRIKES {
            return None;
        }
        let text = text_of(preview);
        let (every, enough) = match self.growth {
            Growth::Unseen => return None,
            Growth::Drafted(every) => (every, !text.is_empty()),
            Growth::Edited(every) => {
                if shown.past == Past::Unknown {
                    return None;
                }
                let enough = match visible.seen {
                    Seen::Message(_) => !text.is_empty(),
                    Seen::Unsure if !is_keyed => return None,
                    Seen::Nothing | Seen::Unsure => {
                        text.chars().count() >= self.manner.streaming.buffer_threshold.max(1)
                    }
                };
                (every, enough)
            }
        };
        let every = every * (1 << visible.strikes);
        (enough && text != visible.text).then(|| visible.at + every)
    }

    async fn refresh(&mut self, shown: &Shown, preview: &Preview) {
        let id = &shown.id;
        let visible = self.visible.get(id).cloned().unwrap_or_default();
        let (weight, frame) = match self.growth {
            Growth::Edited(_) => (Weight::Message, self.frame(shown, preview)),
            Growth::Drafted(_) | Growth::Unseen => (Weight::Sign, Content::default()),
        };
        let refreshed = match visible.seen.clone() {
            seen if weight == Weight::Sign => {
                let content = Content::text(said_in(preview));
                let draft = Draft { content, doing: preview.doing.clone() };
                self.act(id, Act::Draft(draft)).await.map(|()| seen)
            }
            // It grows where nobody can see it any more.
            seen @ Seen::Message(_) if frame.text == visible.frame => Ok(seen),
            Seen::Message(message) => {
                let act = Act::Edit { message: message.clone(), content: frame.clone() };
                let edit = Outbound { id: id.clone(), to: self.chat.to.clone(), act };
                self.perform(&edit).await.map(|()| Seen::Message(message))
            }
            Seen::Nothing | Seen::Unsure => self.open(id, frame.clone()).await,
        };
        let now = self.shared.clock.now();
        let visible = match refreshed {
            Ok(seen) => Visible {
                strikes: if seen == Seen::Unsure { visible.strikes + 1 } else { 0 },
                since: visible.since.or_else(|| (seen != Seen::Nothing).then_some(now)),
                seen,
                text: text_of(preview),
                frame: frame.text,
                at: now,
            },
            Err(error) => {
                self.heed_with(&error, weight);
                Visible { strikes: visible.strikes + 1, at: now, ..visible }
            }
        };
        self.visible.insert(id.clone(), visible);
    }

    /// What people read of an answer that grows as a message.
    fn frame(&self, shown: &Shown, preview: &Preview) -> Content {
        let text = match preview.doing {
            None => self.manner.streaming.unfinished(said_in(preview)),
            Some(_) => text_of(preview),
        };
        let reply_to = shown.answers.clone().filter(|_| self.manner.replies != Replies::Off);
        self.first_part(&shown.id, Content { reply_to, ..Content::text(text) })
    }

    /// Posts a preview as a message, which the answer will replace. It is named in the store first:
    /// after a crash the answer must know that something may be visible.
    async fn open(&mut self, id: &OutboundId, content: Content) -> Result<Seen, SendError> {
        let not_now = |reason: &str| SendError::Unreachable { reason: reason.into() };
        let outgoing = self.outgoing().ok_or_else(|| not_now("not connected"))?;
        let act = Act::Post(content);
        let outbound = Outbound { id: id.clone(), to: self.chat.to.clone(), act };
        let naming = self.chat.name(id).await.ok_or_else(|| not_now("the answer is there"))?;
        let named = self.shared.store.preview(&outbound).await;
        named.map_err(|error| not_now(&error.to_string()))?;
        drop(naming);
        let sent = self.send(outgoing.as_ref(), &outbound).await;
        let (settlement, seen) = match sent {
            Ok(Receipt { message: Some(message), .. }) => {
                (Settlement::Previewed(Some(message.clone())), Ok(Seen::Message(message)))
            }
            // Visible without a name is as good as not knowing: it cannot be edited.
            Ok(Receipt { message: None, .. }) | Err(SendError::Unconfirmed { .. }) => {
                (Settlement::Unsure, Ok(Seen::Unsure))
            }
            Err(error) => (Settlement::Previewed(None), Err(error)),
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
                Ok(sent) => sent.map(drop),
                Err(Panicked) => Err(unconfirmed("the platform panicked")),
            },
            () = self.shared.clock.sleep(SHOW_TIMEOUT) => Err(unconfirmed("no answer in time")),
        }
    }
}

type Writing<'a, T> = futures::future::BoxFuture<'a, Result<T, StoreError>>;
