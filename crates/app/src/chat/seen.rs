//! What was already shown, so that nothing is shown twice and nothing is missed when the connection
//! comes back.
//!
//! The past carries positions, what happens does not; what the gateway says carries an id in both.
//! What people said is recognised by its words.

use std::collections::VecDeque;

use talaria_model::{EventId, OutboundId};
use talaria_platforms::terminal::wire::{Event, Posted, Said};

/// Deliveries that are remembered. Far more than are ever under way at once.
const DELIVERIES: usize = 1024;

/// Words that are remembered, between two looks into the past.
const WORDS: usize = 256;

/// What was already shown.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Everything in the past up to here.
    position: u64,
    deliveries: VecDeque<OutboundId>,
    /// Said at this terminal.
    own: VecDeque<EventId>,
    /// Said since the past was last told.
    words: VecDeque<String>,
}

/// Whether something is to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// For the first time.
    Fresh,
    /// It was shown already.
    Known,
}

impl Seen {
    /// The person said this here, under this id.
    pub(super) fn say(&mut self, id: EventId, words: &str) {
        remember(&mut self.own, id, WORDS);
        remember(&mut self.words, words.to_owned(), WORDS);
    }

    /// Whether an event is to be shown. From here on it is known.
    pub(super) fn look(&mut self, event: &Event) -> Sight {
        match event {
            Event::Said(said) => self.said(said),
            Event::Posted(posted) => self.posted(posted),
            Event::Draft { id, .. } if self.knows(id) => Sight::Known,
            Event::Draft { .. } | Event::Hello { .. } | Event::Turned { .. } => Sight::Fresh,
        }
    }

    fn said(&mut self, said: &Said) -> Sight {
        match said.position {
            Some(position) => match self.advance(position) {
                Sight::Known => Sight::Known,
                Sight::Fresh => {
                    let known = self.words.iter().position(|words| *words == said.text);
                    match known.and_then(|index| self.words.remove(index)) {
                        Some(_) => Sight::Known,
                        None => Sight::Fresh,
                    }
                }
            },
            None if said.id.as_ref().is_some_and(|id| self.own.contains(id)) => Sight::Known,
            None => {
                remember(&mut self.words, said.text.clone(), WORDS);
                Sight::Fresh
            }
        }
    }

    fn posted(&mut self, posted: &Posted) -> Sight {
        let fresh = match posted.position {
            Some(position) => self.advance(position),
            None => Sight::Fresh,
        };
        let Some(id) = &posted.id else { return fresh };
        if self.knows(id) {
            return Sight::Known;
        }
        let mut id = id.clone();
        if posted.position.is_some() {
            // An entry is the whole delivery, whatever parts it may come in later.
            id.part = WHOLE;
        }
        remember(&mut self.deliveries, id, DELIVERIES);
        fresh
    }

    fn advance(&mut self, position: u64) -> Sight {
        if position > self.position {
            self.position = position;
            Sight::Fresh
        } else {
            Sight::Known
        }
    }

    /// Whether this part of a delivery was shown, by itself or within the whole.
    fn knows(&self, id: &OutboundId) -> bool {
        self.deliveries.iter().any(|known| {
            known.session == id.session
                && known.delivery == id.delivery
                && (known.part == WHOLE || known.part == id.part)
        })
    }
}

/// No delivery has this many parts.
const WHOLE: u16 = u16::MAX;

fn remember<T>(memory: &mut VecDeque<T>, what: T, most: usize) {
    memory.push_back(what);
    if memory.len() > most {
        memory.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::SessionId;
    use talaria_platforms::terminal::wire::{Doing, Kind};

    fn posted(position: Option<u64>, delivery: u32, part: u16) -> Event {
        let session = SessionId::literal("s");
        Event::Posted(Posted {
            id: Some(OutboundId { session, delivery, part }),
            position,
            kind: Kind::Answer,
            text: "text".into(),
            files: Vec::new(),
            choices: Vec::new(),
            doing: Doing::Idle,
        })
    }

    fn said(position: Option<u64>, id: Option<&'static str>, text: &str) -> Event {
        let id = id.map(EventId::literal);
        Event::Said(Said { id, position, text: text.into(), files: Vec::new() })
    }

    fn check(seen: &mut Seen, expected: &[(Event, Sight)]) {
        for (event, sight) in expected {
            assert_eq!(seen.look(event), *sight, "{event:?}");
        }
    }

    #[test]
    fn a_redelivery_of_what_the_past_told_is_not_shown_again() {
        check(
            &mut Seen::default(),
            &[
                (posted(Some(4), 1, 0), Sight::Fresh),
                (posted(None, 1, 0), Sight::Known),
                (posted(None, 1, 1), Sight::Known),
                (posted(None, 2, 0), Sight::Fresh),
                (posted(None, 2, 0), Sight::Known),
                (posted(None, 2, 1), Sight::Fresh),
            ],
        );
    }

    #[test]
    fn when_the_connection_comes_back_only_what_was_missed_is_shown() {
        let mut seen = Seen::default();
        let sight = seen.look(&said(Some(1), None, "hello"));
        assert_eq!(sight, Sight::Fresh);
        seen.say(EventId::literal("m-1"), "hello");
        check(
            &mut seen,
            &[
                (said(None, Some("m-1"), "hello"), Sight::Known),
                (posted(None, 1, 0), Sight::Fresh),
                (said(None, Some("m-2"), "from elsewhere"), Sight::Fresh),
                // The connection is lost and comes back with the past.
                (said(Some(1), None, "hello"), Sight::Known),
                (said(Some(2), None, "hello"), Sight::Known),
                (posted(Some(3), 1, 0), Sight::Known),
                (said(Some(4), None, "from elsewhere"), Sight::Known),
                (posted(Some(5), 2, 0), Sight::Fresh),
                (said(Some(6), None, "hello"), Sight::Fresh),
            ],
        );
    }

    #[test]
    fn the_same_words_said_twice_are_recognised_twice() {
        let mut seen = Seen::default();
        seen.say(EventId::literal("m-1"), "again");
        seen.say(EventId::literal("m-2"), "again");
        check(
            &mut seen,
            &[
                (said(Some(1), None, "again"), Sight::Known),
                (said(Some(2), None, "again"), Sight::Known),
                (said(Some(3), None, "again"), Sight::Fresh),
            ],
        );
    }

    #[test]
    fn memory_is_bounded() {
        let mut seen = Seen::default();
        for delivery in 0..5_000 {
            seen.look(&posted(None, delivery, 0));
            seen.look(&said(None, None, "words"));
        }
        assert_eq!((seen.deliveries.len(), seen.words.len()), (DELIVERIES, WORDS));
    }

    #[test]
    fn a_late_draft_of_a_shown_answer_is_not_shown() {
        let mut seen = Seen::default();
        let draft = |delivery| {
            let id = OutboundId { session: SessionId::literal("s"), delivery, part: 0 };
            Event::Draft { id, text: "so far".into(), doing: None }
        };
        seen.look(&posted(None, 1, 0));
        check(&mut seen, &[(draft(1), Sight::Known), (draft(2), Sight::Fresh)]);
    }
}
