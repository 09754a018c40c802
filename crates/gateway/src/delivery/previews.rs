//! What people see of answers that still grow: messages that are edited, drafts, and that somebody types.
//!
//! An answer that outgrows one message goes on in the next, under the same delivery: what is full is
//! brought to its last form once and then left alone, and only the last part goes on growing. One thing is
//! done at a time, so that no message ever has two edits on their way.

use std::time::Duration;

use talaria_agent::Preview;
use talaria_model::{
    Act, Content, Draft, Idempotency, MessageId, Outbound, OutboundId, Receipt, Timestamp, Typing,
};
use talaria_platform::{SendError, lower};
use talaria_store::Settlement;

use super::form::with_room_for_mark;
use super::{Courier, Weight};
use crate::manner::{Growth, Replies};
use crate::preview::{Past, Shown, said_in, says_something, text_of};

/// How often a platform may refuse an edit for being too early before the preview stands still.
pub(super) const STRIKES: u32 = 3;

/// How often people are shown at least that somebody is typing.
const TYPE_EVERY: Duration = Duration::from_secs(2);

/// A growing answer as people see it.
#[derive(Clone, Default)]
pub(super) struct Visible {
    /// The messages that it consists of so far, in order.
    pub(super) parts: Vec<Part>,
    /// As far as the answer was when all of it was last shown.
    pub(super) text: String,
    /// When something of it was last shown.
    pub(super) at: Timestamp,
    pub(super) strikes: u32,
}

/// One message of a growing answer as people see it.
#[derive(Clone, Default)]
pub(super) struct Part {
    pub(super) seen: Seen,
    /// What they read.
    pub(super) frame: String,
    /// Since when there is a message.
    pub(super) since: Option<Timestamp>,
    /// Whether they may read something else, because an edit was not confirmed.
    pub(super) certainty: Certainty,
}

/// What people saw of a parcel before it was decided.
pub(super) struct Glimpse {
    pub(super) part: Part,
    pub(super) strikes: u32,
    pub(super) place: Place,
}

/// Where a message of an answer stands among those that can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// There are more below it.
    Above,
    /// It is the last.
    Last,
}

/// Whether it is known what people read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Certainty {
    #[default]
    Known,
    Unknown,
}

/// What people see of a preview.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nothing yet.
    #[default]
    Nothing,
    /// Words that are no message.
    Draft,
    /// This message.
    Message(MessageId),
    /// Perhaps something, and we do not know which message it is.
    Unsure,
}

impl Visible {
    /// Whether people can read anything of it.
    fn is_seen(&self) -> bool {
        self.parts.iter().any(|part| part.seen != Seen::Nothing)
    }

    /// The part that has to be brought to another form first.
    fn outdated(&self, frames: &[Outbound]) -> Option<usize> {
        (0..frames.len()).find(|number| {
            self.parts.get(*number).is_none_or(|part| {
                !matches!(part.seen, Seen::Message(_)) || part.frame != text(&frames[*number])
            })
        })
    }
}

fn text(frame: &Outbound) -> &str {
    match &frame.act {
        Act::Post(content) => &content.text,
        _ => "",
    }
}

impl Courier {
    /// Takes out what is known of the preview of a parcel.
    pub(super) fn glimpsed(&mut self, id: &OutboundId) -> Glimpse {
        let delivery = id.with_part(0);
        let mut visible = self.visible.remove(&delivery).unwrap_or_default();
        let number = usize::from(id.part);
        let part = visible.parts.get_mut(number).map(std::mem::take).unwrap_or_default();
        let mut below = visible.parts.iter().skip(number + 1);
        let goes_on = below.any(|part| part.seen != Seen::Nothing);
        let place = if goes_on && self.chat.goes_on(id) { Place::Above } else { Place::Last };
        let glimpse = Glimpse { part, strikes: visible.strikes, place };
        if visible.is_seen() {
            self.visible.insert(delivery, visible);
        }
        glimpse
    }

    /// Shows the newest state of the answers that grow, then waits for something to do.
    pub(super) async fn show(&mut self, mut shown: Vec<Shown>) {
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
            let weight = match (self.growth(), refresh) {
                (Growth::Edited(_), Some((_, shown, _))) => match self.visible.get(&shown.id) {
                    Some(visible) if visible.is_seen() => Weight::Change,
                    _ => Weight::Message,
                },
                _ => Weight::Sign,
            };
            match self.spare(now, weight) {
                Ok(()) => {
                    if let Some((_, shown, preview)) = refresh {
                        return self.refresh(shown, preview).await;
                    }
                    self.typed = Some((shown[0].id.clone(), now));
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
        let after = self.can.typing.time()?;
        let is_unseen =
            |shown: &Shown| self.visible.get(&shown.id).is_none_or(|visible| !visible.is_seen());
        let every = after.mul_f64(0.8).min(TYPE_EVERY.max(after / 4));
        shown
            .iter()
            .any(is_unseen)
            .then(|| self.typed.as_ref().map_or(now, |(_, typed)| *typed + every))
    }

    /// Takes back that somebody works on an answer, where nobody does any more and people would go on seeing
    /// it.
    pub(super) async fn rest(&mut self) {
        let (Some((id, typed)), Typing::Stays(time)) = (self.typed.take(), self.can.typing) else {
            return;
        };
        if self.shared.clock.now().since(typed) >= time {
            return;
        }
        if let Err(error) = self.act(&id, Act::Rest).await {
            tracing::debug!(%error, "a sign of work will fade");
            self.heed_with(&error, Weight::Sign);
        }
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
        let (every, enough) = match self.growth() {
            Growth::Unseen => return None,
            Growth::Drafted(every) => (every, says_something(&text)),
            Growth::Edited(every) => {
                if shown.past == Past::Unknown {
                    return None;
                }
                let is_unsure = |part: &Part| part.seen == Seen::Unsure;
                if visible.parts.iter().any(is_unsure) && !is_keyed {
                    return None;
                }
                let enough = match visible.parts.first().map(|part| &part.seen) {
                    Some(Seen::Message(_)) => !text.is_empty(),
                    _ => text.chars().count() >= self.manner.streaming.buffer_threshold.max(1),
                };
                (every, enough)
            }
        };
        let every = every * (1 << visible.strikes);
        (enough && text != visible.text).then(|| visible.at + every)
    }

    async fn refresh(&mut self, shown: &Shown, preview: &Preview) {
        let mut visible = self.visible.remove(&shown.id).unwrap_or_default();
        let refreshed = match self.growth() {
            Growth::Edited(_) => self.advance(shown, preview, &mut visible).await,
            Growth::Drafted(_) | Growth::Unseen => {
                let content = Content::text(said_in(preview));
                let draft = Draft { content, doing: preview.doing.clone() };
                let drafted = self.act(&shown.id, Act::Draft(draft)).await;
                let seen = |()| {
                    visible.parts = vec![Part { seen: Seen::Draft, ..Part::default() }];
                    Refreshed::Whole
                };
                if let Some(account) = &self.account {
                    match &drafted {
                        Ok(()) => account.shows_drafts(),
                        Err(error @ SendError::Rejected { .. }) => account.refuses_drafts(error),
                        Err(_) => {}
                    }
                }
                drafted.map(seen).map_err(|error| (error, Weight::Sign))
            }
        };
        visible.at = self.shared.clock.now();
        match refreshed {
            Ok(refreshed) => {
                visible.strikes = match refreshed {
                    Refreshed::Unsure => visible.strikes + 1,
                    Refreshed::Whole | Refreshed::Partly => 0,
                };
                if refreshed != Refreshed::Partly {
                    visible.text = text_of(preview);
                }
            }
            Err((error, weight)) => {
                self.heed_with(&error, weight);
                visible.strikes += 1;
            }
        }
        self.visible.insert(shown.id.clone(), visible);
    }

    /// Brings one message of a growing answer to its newest form.
    async fn advance(
        &mut self,
        shown: &Shown,
        preview: &Preview,
        visible: &mut Visible,
    ) -> Result<Refreshed, (SendError, Weight)> {
        let frames = self.frames(shown, preview);
        // It grows where nobody can see it any more, or not at all.
        let Some(number) = visible.outdated(&frames) else { return Ok(Refreshed::Whole) };
        if visible.parts.len() <= number {
            visible.parts.resize_with(number + 1, Part::default);
        }
        let part = &mut visible.parts[number];
        let weight = match part.seen {
            Seen::Message(_) => Weight::Change,
            _ => Weight::Message,
        };
        let was_unsure = part.seen == Seen::Unsure;
        let frame = &frames[number];
        let refreshed = match (&part.seen, &frame.act) {
            (Seen::Message(message), Act::Post(content)) => {
                let act = Act::Edit { message: message.clone(), content: content.clone() };
                let edited = self.perform(&Outbound { act, ..frame.clone() }).await;
                edited.map(|()| part.seen.clone())
            }
            _ => self.open(frame).await,
        };
        let seen = refreshed.map_err(|error| {
            if let SendError::Unconfirmed { .. } = error {
                part.certainty = Certainty::Unknown;
            }
            (error, weight)
        })?;
        if weight == Weight::Message {
            self.typed = None;
        }
        let now = self.shared.clock.now();
        part.since = part.since.or_else(|| (seen != Seen::Nothing).then_some(now));
        // A platform that recognises a repeat goes on showing what came first.
        part.frame = if was_unsure { String::new() } else { text(frame).to_owned() };
        let is_unsure = seen == Seen::Unsure;
        part.seen = seen;
        Ok(match visible.outdated(&frames) {
            _ if is_unsure => Refreshed::Unsure,
            Some(_) => Refreshed::Partly,
            None => Refreshed::Whole,
        })
    }

    /// The messages that people read of an answer that grows as such.
    fn frames(&self, shown: &Shown, preview: &Preview) -> Vec<Outbound> {
        let streaming = &self.manner.streaming;
        let (whole, tail) = match &preview.doing {
            None => (streaming.unfinished(said_in(preview)), streaming.cursor.trim().to_owned()),
            Some(doing) => (text_of(preview), format!("*{doing}…*")),
        };
        let reply_to = shown.answers.clone().filter(|_| self.manner.replies != Replies::Off);
        let act = Act::Post(Content { reply_to, ..Content::text(whole) });
        let whole = Outbound { id: shown.id.clone(), to: self.chat.to.clone(), act };
        let mut frames = lower(whole, &with_room_for_mark(self.can));
        // No message is begun for what will not stay.
        if frames.len() > 1 && frames.last().is_some_and(|last| text(last).trim() == tail) {
            frames.pop();
        }
        self.manner.replies.mark(&mut frames);
        frames
    }

    /// Posts a part of a preview as a message, which the answer will replace. It is named in the store
    /// first: after a crash the answer must know that something may be visible.
    async fn open(&self, outbound: &Outbound) -> Result<Seen, SendError> {
        let id = &outbound.id;
        let not_now = |reason: &str| SendError::Unreachable { reason: reason.into() };
        let outgoing = self.outgoing().ok_or_else(|| not_now("not connected"))?;
        let naming = self.chat.name(id).await.ok_or_else(|| not_now("the answer is there"))?;
        let named = self.shared.store.preview(outbound).await;
        named.map_err(|error| not_now(&error.to_string()))?;
        drop(naming);
        let sent = self.send(outgoing.as_ref(), outbound).await;
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
        if let Err(error) = self.shared.store.settle(id, settlement, self.shared.clock.now()).await
        {
            tracing::warn!(%error, "a preview could not be recorded");
        }
        seen
    }
}

/// How much of a growing answer people see after something was done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refreshed {
    /// All of it.
    Whole,
    /// Another of its messages has to change, too.
    Partly,
    /// Nobody knows.
    Unsure,
}
