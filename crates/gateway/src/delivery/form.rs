//! How an act looks as it leaves: formatted or plain, marked or not, as a message or as a change of one.

use talaria_model::{
    Act, Address, Capabilities, Content, Deletes, Draft, Drafts, Edits, Markup, MessageId,
    Outbound, OutboundId, TextLimit,
};
use talaria_platform::plainly;
use talaria_store::{Parcel, ParcelState};

use super::Courier;
use crate::preview::Past;

/// What a resend begins with when its first try may have arrived.
const MARK: &str = "(sent again after an interruption; you may have seen this)";

/// The same where messages are short.
const SHORT_MARK: &str = "(again)\n";

/// What a preview becomes that can neither be removed nor replaced by an answer.
const DONE: &str = "(done)";

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

pub(super) fn is_withdrawal(parcel: &Parcel) -> bool {
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

impl Courier {
    /// A parcel that is unsure does not say that it is plain, too.
    pub(super) fn is_plain(&self, parcel: &Parcel) -> bool {
        parcel.state == ParcelState::Plain || self.plain.as_ref() == Some(&parcel.outbound.id)
    }

    /// The act as it leaves: an edit where the preview is visible, marked where it may be a repeat.
    pub(super) fn outbound_of(&self, parcel: &Parcel) -> Outbound {
        let mut outbound = parcel.outbound.clone();
        if is_withdrawal(parcel) {
            outbound.act = self.withdrawing(parcel.shown.as_ref());
            return outbound;
        }
        if let Act::Post(content) = &mut outbound.act {
            content.anew = parcel.anew;
            let mut markup = self.can.markup;
            if self.is_plain(parcel) {
                *content = plainly(std::mem::take(content), &with_room_for_mark(self.can));
                markup = Markup::Plain;
            }
            if self.is_marked(parcel) {
                content.text.insert_str(0, &mark(self.can.text, markup));
            }
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
    pub(super) fn is_marked(&self, parcel: &Parcel) -> bool {
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
}
