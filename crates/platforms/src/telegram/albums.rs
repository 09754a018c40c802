//! Albums: several messages that people sent as one. Telegram delivers them one by one, says which
//! belong together, and does not say which is the last.

use talaria_model::{Addressed, Inbound, InboundKind, Message};

use super::decode::Event;
use super::places::Bounded;

/// Albums of which a part was said to us. Only one part has the caption that names us.
#[derive(Default)]
pub(super) struct Albums {
    to_us: Bounded<String, ()>,
}

impl Albums {
    /// What is said to us in one part of an album is said to us in all of them.
    pub(super) fn address(&mut self, event: &mut Event) {
        let Some(album) = name(event) else { return };
        let InboundKind::Said(message) = &mut event.inbound.kind else { return };
        match message.addressed {
            Addressed::ToUs => self.to_us.put(album, ()),
            Addressed::ToOthers if self.to_us.get(&album).is_some() => {
                message.addressed = Addressed::ToUs;
            }
            Addressed::ToOthers => {}
        }
    }
}

/// The first album that may go on after these events, because nothing else has come from its chat
/// since: the place of its first part, and how many parts there are.
pub(super) fn unfinished(events: &[(i64, Event)]) -> Option<(usize, usize)> {
    events.iter().enumerate().find_map(|(at, (_, event))| {
        let album = name(event)?;
        let chat = &event.inbound.to.chat;
        let last = events.iter().rev().find(|(_, other)| other.inbound.to.chat == *chat)?;
        let parts = events.iter().filter(|(_, other)| name(other).as_ref() == Some(&album)).count();
        (name(&last.1).as_ref() == Some(&album)).then_some((at, parts))
    })
}

/// Puts the parts of each album together, in the place of its first. Nothing more of it is to come.
pub(super) fn join(events: Vec<Event>) -> Vec<Event> {
    let mut joined: Vec<Event> = Vec::with_capacity(events.len());
    for mut event in events {
        if let InboundKind::Said(message) = &mut event.inbound.kind {
            message.album = None;
        }
        let first = name(&event).and_then(|album| {
            joined.iter_mut().find(|first| {
                name(first).as_ref() == Some(&album) && first.inbound.from == event.inbound.from
            })
        });
        match first {
            Some(first) => add(&mut first.inbound, event.inbound),
            None => joined.push(event),
        }
    }
    joined
}

/// Album numbers are unique in their chat only.
fn name(event: &Event) -> Option<String> {
    event.album.as_ref().map(|album| format!("{} {album}", event.inbound.to.chat.id))
}

fn add(first: &mut Inbound, next: Inbound) {
    let (InboundKind::Said(whole), InboundKind::Said(part)) = (&mut first.kind, next.kind) else {
        return;
    };
    let Message { text, media, addressed, reply_to, quote, forwarded, .. } = part;
    if !text.is_empty() {
        if !whole.text.is_empty() {
            whole.text.push('\n');
        }
        whole.text.push_str(&text);
    }
    whole.media.extend(media);
    if addressed == Addressed::ToUs {
        whole.addressed = Addressed::ToUs;
    }
    whole.reply_to = whole.reply_to.take().or(reply_to);
    whole.quote = whole.quote.take().or(quote);
    whole.forwarded = whole.forwarded.take().or(forwarded);
}
