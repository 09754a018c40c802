//! The lives of conversations: what was before the present one, whose it is, what it cost.

use talaria_model::{
    AccountId, ChatKind, Cost, Entry, EntryBody, SenderId, SessionId, Timestamp, Usage,
};
use talaria_session::{Beside, Past, Retired, Session, SessionKey};

/// One life of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// Which conversation.
    pub key: SessionKey,
    /// What is kept of it beside its entries: enough to go on with it.
    pub past: Past,
    /// Whose it is. Nobody else may read it or go on with it.
    pub owner: Owner,
    /// Whether the conversation is in it.
    pub presence: Presence,
    /// The life that it is a branch of.
    pub branched_from: Option<SessionId>,
}

/// Whose a conversation is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Owner {
    /// One person's, on one account.
    Person {
        /// The account.
        account: AccountId,
        /// By the id that names their sessions.
        person: SenderId,
    },
    /// Everybody's who takes part in it, and nobody's who does not.
    Conversation(SessionKey),
}

impl Owner {
    /// Whose a session is. What is said in a direct chat is the person's who began it; where nobody
    /// knows who that was, it is reached through the conversation itself only.
    pub fn of(session: &Session) -> Self {
        let key = &session.key;
        let began = || session.origin.as_ref().map(|origin| origin.from.lasting().clone());
        let person = match (&key.member, key.kind, &key.chat) {
            (Some(member), ..) => Some(member.clone()),
            (None, ChatKind::Dm, Some(_)) => began(),
            _ => None,
        };
        match person {
            Some(person) => Self::Person { account: key.account.clone(), person },
            None => Self::Conversation(key.clone()),
        }
    }
}

/// Whether a conversation is in a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Present,
    /// It went on with another one.
    Past {
        /// What for; none where nobody said.
        why: Option<Retired>,
    },
}

/// What a name means: an id, the beginning of one, a title, or the beginning of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// Nothing that may be seen.
    Nothing,
    /// This one.
    One(Box<Life>),
    /// Any of these, the most recently used first.
    Several(Vec<Life>),
}

impl Named {
    /// What is meant, if these fit equally well.
    pub fn of(mut fitting: Vec<Life>) -> Self {
        match (fitting.pop(), fitting.is_empty()) {
            (None, _) => Self::Nothing,
            (Some(life), true) => Self::One(Box::new(life)),
            (Some(life), false) => {
                fitting.push(life);
                Self::Several(fitting)
            }
        }
    }
}

/// How much was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Lives.
    pub lives: u64,
    /// Turns.
    pub turns: u64,
    /// Tokens.
    pub usage: Usage,
    /// Money.
    pub cost: Cost,
}

impl Totals {
    /// Adds a life, with the turns that were taken in it and not in what it is a copy of.
    pub fn add(&mut self, turns: u32, usage: Usage, cost: Cost) {
        self.lives += 1;
        self.turns += u64::from(turns);
        self.usage += usage;
        self.cost += cost;
    }
}

/// Which entries of a life are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Those that were not taken back.
    Standing,
    /// Those that were taken back too.
    Everything,
}

/// Entries were taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewound {
    /// The first of them.
    pub from: u32,
    /// The last of them.
    pub upto: u32,
    /// How many there were.
    pub entries: u32,
    /// Who wanted it; none when it was nobody in particular.
    pub by: Option<SenderId>,
    /// When.
    pub at: Timestamp,
}

/// What is left of a stretch of entries, both ends counted, without another one.
pub fn without((first, last): (u32, u32), (from, upto): (u32, u32)) -> Vec<(u32, u32)> {
    let before = (first, last.min(from.saturating_sub(1)));
    let after = (first.max(upto.saturating_add(1)), last);
    [before, after].into_iter().filter(|(first, last)| first <= last && *last > 0).collect()
}

/// What is known of a life that gave way without a word: only what was recorded and delivered in it.
pub fn remembered<'a>(
    id: &SessionId,
    entries: impl Iterator<Item = &'a Entry>,
    deliveries: u32,
) -> Past {
    let mut past = Past {
        id: id.clone(),
        title: String::new(),
        turns: 0,
        copied: 0,
        entries: 0,
        deliveries,
        usage: Usage::default(),
        cost: Cost::default(),
        prompt: 0,
        preferences: Default::default(),
        marks: Vec::new(),
        speakers: Default::default(),
        begun: Timestamp::default(),
        active: Timestamp::default(),
    };
    for (number, entry) in entries.enumerate() {
        if number == 0 {
            past.begun = entry.at;
        }
        past.active = past.active.max(entry.at);
        past.entries = past.entries.max(entry.number);
        past.turns = past.turns.max(entry.turn.as_ref().map_or(0, |turn| turn.number));
        let (sent, used) = match &entry.body {
            EntryBody::Answered { sent, usage, cost, .. } => (sent.as_ref(), Some((usage, cost))),
            EntryBody::Summary { usage, cost, .. } => (None, Some((usage, cost))),
            EntryBody::Noticed { sent, .. } => (Some(sent), None),
            _ => (None, None),
        };
        past.deliveries = past.deliveries.max(sent.map_or(0, |sent| sent.delivery));
        if let Some((usage, cost)) = used {
            past.usage += *usage;
            past.cost += *cost;
        }
    }
    past
}

/// Whether a session's life may come to be over by the reset policy. What is suspended, to be resumed,
/// put away already, or has answered nothing does not.
pub fn may_expire(session: &Session) -> bool {
    use talaria_session::Life::{AutoReset, Continuing, Fresh};
    matches!(session.life, Fresh | Continuing | AutoReset { .. })
        && session.turns > 0
        && session.key.side.is_none()
}

/// Until when a session is kept however old it is: for ever while it is suspended or has something to
/// do, and for as long as something may work beside it. None for one that is not.
pub fn spared_until(session: &Session) -> Option<Timestamp> {
    if session.is_restless() || session.life == talaria_session::Life::Suspended {
        return Some(Timestamp::from_millis(i64::MAX));
    }
    session.background.iter().map(Beside::until).max()
}

/// Whether a session is kept if everything is forgotten in which nothing was said since then.
pub fn is_spared(session: &Session, since: Timestamp) -> bool {
    spared_until(session).is_some_and(|until| until > since)
}

/// How far a name fits. The best is the least, and only what fits best is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// It is the id.
    Id,
    /// It is the title.
    Title,
    /// The id begins with it.
    IdBeginning,
    /// The title begins with it.
    TitleBeginning,
}

/// A name as it is compared with ids and titles: case, accents and spaces around it do not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    id: String,
    title: String,
}

/// Shorter names are not taken for the beginning of an id or a title: they would fit nearly all.
const SHORTEST_BEGINNING: usize = 2;

impl Name {
    /// None when it names nothing.
    pub fn new(text: &str) -> Option<Self> {
        let title = crate::fold(text).trim().to_owned();
        (!title.is_empty()).then(|| Self { id: text.trim().to_owned(), title })
    }

    /// How far it fits a life.
    pub fn fits(&self, id: &SessionId, title: &str) -> Option<Fit> {
        let long = self.title.chars().count() >= SHORTEST_BEGINNING;
        let title = crate::fold(title);
        let title = title.trim();
        if id.as_str() == self.id {
            Some(Fit::Id)
        } else if title == self.title {
            Some(Fit::Title)
        } else if long && id.as_str().starts_with(&self.id) {
            Some(Fit::IdBeginning)
        } else if long && title.starts_with(&self.title) {
            Some(Fit::TitleBeginning)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_cut_where_another_lies() {
        for (taken, left) in [
            ((4, 6), vec![(2, 3), (7, 9)]),
            ((1, 2), vec![(3, 9)]),
            ((9, 12), vec![(2, 8)]),
            ((1, 12), vec![]),
            ((10, 12), vec![(2, 9)]),
            ((0, 1), vec![(2, 9)]),
            ((0, u32::MAX), vec![]),
        ] {
            assert_eq!(without((2, 9), taken), left, "{taken:?}");
        }
    }

    #[test]
    fn a_name_is_an_id_before_it_is_a_title_and_whole_before_it_is_a_beginning() {
        let id = SessionId::literal("20261115_093000_0badcafe");
        let fits = |name: &str| Name::new(name).and_then(|name| name.fits(&id, "Étude in blue "));
        for (name, fit) in [
            (" 20261115_093000_0badcafe", Some(Fit::Id)),
            ("etude  IN blue", Some(Fit::Title)),
            ("2026", Some(Fit::IdBeginning)),
            ("étude", Some(Fit::TitleBeginning)),
            ("2", None),
            ("é", None),
            ("blue", None),
            ("20261115_093000_0badcafe1", None),
            ("  ", None),
        ] {
            assert_eq!(fits(name), fit, "{name:?}");
        }
    }
}
