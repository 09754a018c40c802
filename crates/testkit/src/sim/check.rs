//! Judges a world that has come to rest: by the truth of its vendors, by everything that was made
//! durable, and by what its model was asked and its tools did. The gateway is not consulted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use talaria_model::{
    Act, Address, Approval, ChatKind, Consent, Content, Draft, Entry, EntryBody, InboundKind,
    KnownBy, Lasting, Message, OutboundId, Reading, Sender, SenderId, Seq, SessionId, Timestamp,
    TurnId,
};
use talaria_session::{Policy, Room, SessionKey, Surface};
use talaria_store::{JournalState, Settlement};

use super::seed::DROPPED_BY_HOOK;
use super::{Approved, Asking, Deed, Hears, Ledger, Row, SHORT_MARK, Shown, Truth, Vendor, World};
use crate::{Token, mentioned};

/// What has to hold whatever happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// What was acknowledged to a platform is in the journal.
    Accept,
    /// Each message is part of exactly one turn, or was set aside, dealt with or refused with a reason.
    Once,
    /// What was decided to be said can be read, or ended in a way that somebody is told about.
    Reply,
    /// A copy that may be a second one says so.
    NoSilentDuplicate,
    /// Turns begin in the order of the journal, parts arrive in the order of decisions.
    Order,
    /// Nothing of one conversation appears in another.
    Isolation,
    /// What must not happen twice is done at most once, in the name of the one who asked.
    Tools,
    /// What is held in memory and done at once is bounded.
    Bounded,
    /// When everything heals, everything comes to rest.
    Live,
    /// Nobody gets what policy does not grant.
    Authority,
    /// The record of a conversation has no gaps and no repeats.
    Integrity,
}

impl Invariant {
    /// The short name under which the documents know it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Accept => "I1",
            Self::Once => "I2",
            Self::Reply => "I3",
            Self::NoSilentDuplicate => "I4",
            Self::Order => "I5",
            Self::Isolation => "I6",
            Self::Tools => "I7",
            Self::Bounded => "I8",
            Self::Live => "I9",
            Self::Authority => "I11",
            Self::Integrity => "I12",
        }
    }
}

/// Something that should not be so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What it breaks.
    pub breaks: Invariant,
    /// What was found.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}: {}", self.breaks.code(), self.breaks, self.what)
    }
}

/// What the checker has to know about a story to judge it.
#[derive(Debug, Clone, Default)]
pub struct Circumstances {
    /// Who said each message, and where.
    pub said: BTreeMap<Token, Origin>,
    /// How often the process died.
    pub deaths: u32,
    /// How often it was stopped in the middle of something.
    pub stops: u32,
    /// Whether the disk ever said that it had not written what it had, or broke down.
    pub disk_lied: bool,
    /// Whether the model's provider ever failed.
    pub model_failed: bool,
    /// Whether somebody watched who drops some of what is said.
    pub hooks: bool,
}

/// Where a message comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Who said it.
    pub from: SenderId,
    /// Where.
    pub at: Address,
}

/// How a turn can end without an answer.
const FAILURES: [&str; 10] = [
    "Stopped.",
    "I stopped after",
    "Please try again.",
    "The model returned an empty answer.",
    "The agent ended without an answer.",
    "Something went wrong inside me",
    "I was interrupted three times",
    "I gave up on this answer",
    "A restart cut me off",
    "`talaria model` shows",
];

/// What a turn says last that was left off for something that was said.
const INTERRUPTED: &str = "*Interrupted.*";

/// Why something said is not taken up after a stop.
const DROPPED: &str = "dropped by a stop";

/// How long a draft can be seen that nothing replaces.
const DRAFT_FADES: Duration = Duration::from_secs(30);

/// What people are told while something waits.
const ACKNOWLEDGEMENTS: [&str; 5] = [
    "⚡ I leave off what I was doing and turn to this.",
    "⏩ I will take that into account at my next step.",
    "⏳ I will turn to this when I am done.",
    "⏳ Others are working for me; this is next.",
    "⏳ I am summarising our conversation; this is next.",
];

/// Everything that is wrong.
pub fn problems(world: &World, circumstances: &Circumstances) -> Vec<Problem> {
    let ledger = world.disk.ledger();
    let vendors: Vec<&Vendor> = world.accounts.iter().map(|(vendor, _)| vendor).collect();
    let judge = Judge { world, ledger: &ledger, vendors, circumstances };
    let mut found = Findings::default();
    judge.accept(&mut found);
    judge.once(&mut found);
    judge.turns(&mut found);
    judge.parcels(&mut found);
    judge.order(&mut found);
    judge.isolation(&mut found);
    judge.tools(&mut found);
    judge.bounds(&mut found);
    judge.acknowledgements(&mut found);
    judge.authority(&mut found);
    judge.integrity(&mut found);
    found.0
}

#[derive(Default)]
struct Findings(Vec<Problem>);

impl Findings {
    fn add(&mut self, breaks: Invariant, what: String) {
        self.0.push(Problem { breaks, what });
    }
}

struct Judge<'a> {
    world: &'a World,
    ledger: &'a Ledger,
    vendors: Vec<&'a Vendor>,
    circumstances: &'a Circumstances,
}

impl Judge<'_> {
    fn accept(&self, found: &mut Findings) {
        for vendor in &self.vendors {
            vendor.truth(|truth| {
                let mut newest = None;
                let mut known = BTreeSet::new();
                for (event, mail) in truth.happened.iter().zip(&truth.mail) {
                    if event.to.account != vendor.account() {
                        continue;
                    }
                    let seq = self.ledger.events.get(&(vendor.account(), event.id.clone()));
                    if mail.acknowledged && seq.is_none() {
                        let what =
                            format!("{} {} is acknowledged and lost", vendor.account(), event.id);
                        found.add(Invariant::Accept, what);
                    }
                    if !mail.acknowledged && !mail.gone && seq.is_none() {
                        let what = format!("{} {} was never heard", vendor.account(), event.id);
                        found.add(Invariant::Accept, what);
                    }
                    let in_order =
                        matches!(vendor.hears(), Hears::Stream | Hears::Poll | Hears::Sequence);
                    if in_order
                        && known.insert(&event.id)
                        && !mail.gone
                        && let Some(seq) = seq
                    {
                        if newest.is_some_and(|newest| *seq < newest) {
                            let what = format!(
                                "{} {} was journalled too late",
                                vendor.account(),
                                event.id
                            );
                            found.add(Invariant::Order, what);
                        }
                        newest = Some(*seq);
                    }
                }
            });
        }
    }

    fn once(&self, found: &mut Findings) {
        for (seq, row) in &self.ledger.rows {
            let bound = row.states.iter().filter(|state| matches!(state, JournalState::Bound(_)));
            let bound = bound.count();
            if bound > 1 {
                found
                    .add(Invariant::Once, format!("{seq} is part of {bound} turns: {}", said(row)));
            }
            match row.states.last() {
                Some(JournalState::Unread | JournalState::Taken) | None => {
                    found.add(Invariant::Once, format!("{seq} has no end: {}", said(row)));
                }
                Some(JournalState::Ignored(why)) => {
                    let is_said = matches!(row.inbound.kind, InboundKind::Said(_));
                    let is_dropped = why == DROPPED_BY_HOOK && self.circumstances.hooks;
                    if is_said && !is_dropped && (why != DROPPED || !self.was_stopped(&row.key)) {
                        found.add(
                            Invariant::Once,
                            format!("{seq} is ignored, {why}, and nobody stopped anything"),
                        );
                    }
                }
                Some(JournalState::Handled) => {
                    if let InboundKind::Said(message) = &row.inbound.kind
                        && !commands(message, "/")
                        && (message.forwarded.is_some() || !self.is_aside(&row.key, &message.text))
                    {
                        found.add(
                            Invariant::Once,
                            format!("{seq} is handled without a trace: {}", message.text),
                        );
                    }
                }
                // A process that was told that it had not begun begins once more, as after a death.
                Some(JournalState::Quarantined(_))
                    if self.circumstances.deaths < 3 && !self.circumstances.disk_lied =>
                {
                    found.add(
                        Invariant::Once,
                        format!(
                            "{seq} is set aside although the process died {} times",
                            self.circumstances.deaths
                        ),
                    );
                }
                Some(_) => {}
            }
        }
    }

    fn was_stopped(&self, key: &SessionKey) -> bool {
        self.ledger.rows.values().any(|row| {
            main(&row.key) == main(key)
                && match &row.inbound.kind {
                    InboundKind::Stopped => true,
                    InboundKind::Said(message) => {
                        commands(message, "/stop") || commands(message, "/new")
                    }
                    InboundKind::Pressed(_) | InboundKind::Edited(_) => false,
                }
        })
    }

    fn is_aside(&self, key: &SessionKey, text: &str) -> bool {
        self.ledger.entries.iter().any(|(of, _, entry)| {
            of == key
                && matches!(&entry.body, EntryBody::Aside { text: aside, .. } if aside == text)
        })
    }

    /// Every turn said something, and an answer answers all that the turn took up. One that a restart found in
    /// hand is silent where nobody hears any more who asked for it.
    fn turns(&self, found: &mut Findings) {
        let mut last: BTreeMap<&TurnId, (&str, bool)> = BTreeMap::new();
        for (_, _, entry) in &self.ledger.entries {
            let Some(turn) = &entry.turn else { continue };
            match &entry.body {
                EntryBody::Answered { text, calls, sent: Some(_), .. } => {
                    last.insert(turn, (text, calls.is_empty()));
                }
                EntryBody::Noticed { text, .. } => _ = last.insert(turn, (text, true)),
                _ => {}
            }
        }
        for (place, (turn, seqs)) in self.ledger.turns.iter().enumerate() {
            let tokens = self.tokens_in(seqs);
            let interrupted = self.ledger.interrupted.contains(turn);
            let Some((text, _)) = last.get(turn) else {
                if !self.is_denied(seqs) && (!interrupted || !self.goes_on(place, found)) {
                    found
                        .add(Invariant::Reply, format!("{turn} ended in silence about {tokens:?}"));
                }
                continue;
            };
            let answered: BTreeSet<Token> = crate::complete(text).into_iter().collect();
            let is_whole = text.contains("done: ");
            let failed = FAILURES.iter().any(|failure| text.contains(failure));
            let left_off = text.ends_with(INTERRUPTED) || interrupted && !is_whole && !failed;
            if left_off && !self.goes_on(place, found) {
                found.add(Invariant::Reply, format!("{turn} was left off for nothing: {text:?}"));
            }
            let failed = failed || left_off;
            let is_asked = text.starts_with("Which one for")
                || text.starts_with("What about")
                || text.starts_with("⚠️ May I call");
            if is_whole && !failed && !tokens.is_subset(&answered) {
                let missing: Vec<_> = tokens.difference(&answered).collect();
                found.add(
                    Invariant::Once,
                    format!("{turn} took {missing:?} up and does not answer it: {text:?}"),
                );
            }
            // A turn that said something and then found an empty answer ends with what it said.
            let spoke = text.starts_with("First I pay")
                || is_asked
                || text.is_empty()
                || text.starts_with("*(A restart");
            let excused = failed || (spoke && self.circumstances.model_failed);
            if !is_whole && !excused {
                found.add(Invariant::Reply, format!("{turn} ended with {text:?}"));
            }
        }
    }

    fn is_denied(&self, seqs: &[Seq]) -> bool {
        let last = |seq: &Seq| self.ledger.rows.get(seq)?.states.last();
        seqs.iter().all(|seq| matches!(last(seq), Some(JournalState::Denied(_))))
    }

    fn tokens_in(&self, seqs: &[Seq]) -> BTreeSet<Token> {
        seqs.iter().filter_map(|seq| self.ledger.rows.get(seq)).flat_map(tokens).collect()
    }

    /// Whether a turn that was interrupted is followed by one of the same person; if so, that one
    /// knows what the other was about.
    fn goes_on(&self, place: usize, found: &mut Findings) -> bool {
        let first = |seqs: &[Seq]| self.ledger.rows.get(seqs.first()?);
        let (turn, seqs) = &self.ledger.turns[place];
        let Some(row) = first(seqs) else { return false };
        let mut later = self.ledger.turns[place + 1..].iter();
        let next = later.find(|(_, seqs)| first(seqs).is_some_and(|next| next.key == row.key));
        let Some((next, seqs_of_next)) = next else { return false };
        if first(seqs_of_next).is_none_or(|next| next.inbound.from.id != row.inbound.from.id) {
            return false;
        }
        let (before, since) = (self.tokens_in(seqs), self.tokens_in(seqs_of_next));
        let asked = self.world.model.iter().flat_map(|model| model.asked());
        let mut about_it =
            asked.filter(|asked| asked.open.iter().any(|token| since.contains(token)));
        let forgets = |asked: &Asking| !before.iter().all(|token| asked.tokens.contains(token));
        if turn.session == next.session && about_it.next().is_some_and(|asked| forgets(&asked)) {
            found.add(Invariant::Once, format!("{next} has forgotten what {turn} was about"));
        }
        true
    }

    fn parcels(&self, found: &mut Findings) {
        let cursor = self.world.manner.streaming.cursor.trim();
        for decided in &self.ledger.parcels {
            let (id, to) = (&decided.outbound.id, &decided.outbound.to);
            let Act::Post(content) = &decided.outbound.act else { continue };
            let Some(vendor) = self.vendor(to) else {
                found.add(Invariant::Isolation, format!("{id} goes to {to:?}, which is nowhere"));
                continue;
            };
            let attempts = self.ledger.attempts.get(id).copied().unwrap_or_default();
            let place = format!("{to:?}");
            vendor.truth(|truth| {
                // What takes the place of something said before is seen there, unless it could not be.
                let in_place = |shown: &Shown| {
                    content.replaces.as_ref() == Some(&shown.by) && says(&shown.content, content)
                };
                let copies: Vec<&Shown> =
                    truth.shown.iter().filter(|shown| shown.by == *id || in_place(shown)).collect();
                let successor =
                    self.ledger.parcels.iter().find_map(|later| match &later.outbound.act {
                        Act::Post(content) if content.replaces.as_ref() == Some(id) => {
                            Some((&later.outbound.id, content))
                        }
                        _ => None,
                    });
                // Where changes are refused again and again, it is removed, and all of it said anew.
                let is_said_anew = successor.is_some_and(|(later, content)| {
                    let said = |shown: &Shown| shown.by == *later && says(&shown.content, content);
                    truth.shown.iter().any(said)
                });
                let successor = successor.map(|(_, content)| content);
                if *content == Content::default() {
                    return self.withdrawn(id, &copies, truth, found);
                }
                // What still grows is not whole, however much of it is there.
                let grows =
                    |shown: &Shown| !cursor.is_empty() && shown.content.text.contains(cursor);
                let whole = |shown: &&&Shown| {
                    let says = says(&shown.content, content)
                        || successor.is_some_and(|later| says(&shown.content, later));
                    says && !grows(shown)
                };
                let doubtful = truth.doubtful.get(id).copied().unwrap_or_default();
                match self.ledger.settled.get(id) {
                    Some(Settlement::Delivered(_))
                        if !is_said_anew && !copies.iter().any(|shown| whole(&shown)) =>
                    {
                        let seen: Vec<_> = copies.iter().map(|shown| &shown.content.text).collect();
                        found.add(
                            Invariant::Reply,
                            format!(
                                "{id} counts as delivered; {:?} cannot be read, but {seen:?}",
                                content.text
                            ),
                        );
                    }
                    Some(Settlement::Undeliverable { reason })
                        if !truth.refused.contains(id) && !truth.gone.contains(&place) =>
                    {
                        found.add(
                            Invariant::Reply,
                            format!("{id} is undeliverable ({reason}) and was never refused"),
                        );
                    }
                    Some(Settlement::Abandoned { reason }) if attempts < 2 => {
                        found.add(
                            Invariant::Reply,
                            format!("{id} is given up ({reason}) after {attempts} attempts"),
                        );
                    }
                    Some(_) => {}
                    None => found.add(
                        Invariant::Reply,
                        format!("{id} was decided and is lost: {:?}", content.text),
                    ),
                }
                let delivered =
                    matches!(self.ledger.settled.get(id), Some(Settlement::Delivered(_)));
                // A repeat that was marked says by now what became of the question, without the mark.
                let concluded = |shown: &Shown| {
                    shown.was_marked && successor.is_some_and(|later| says(&shown.content, later))
                };
                let unmarked =
                    copies.iter().filter(|shown| !shown.is_marked() && !concluded(shown)).count();
                if unmarked > 1 {
                    found.add(
                        Invariant::NoSilentDuplicate,
                        format!(
                            "{id} can be read {unmarked} times without a mark: {:?}",
                            content.text
                        ),
                    );
                }
                let is_doubtful = doubtful > 0
                    || truth.refused.contains(id)
                    || self.circumstances.deaths + self.circumstances.stops > 0
                    || self.circumstances.disk_lied;
                if !is_doubtful && copies.iter().any(|shown| shown.is_marked()) {
                    found.add(Invariant::NoSilentDuplicate, format!("{id} is marked for nothing"));
                }
                for (place, half) in copies.iter().enumerate() {
                    let replaced = || {
                        copies[place + 1..].iter().any(|later| whole(&later) && later.is_marked())
                    };
                    if delivered && !whole(&half) && !replaced() {
                        found.add(
                            Invariant::Reply,
                            format!("{id}: half an answer stays: {:?}", half.content.text),
                        );
                    }
                }
                for stray in copies.iter().filter(|shown| shown.to != *to) {
                    found.add(
                        Invariant::Isolation,
                        format!("{id} for {} is shown in {}", to.chat.id, stray.to.chat.id),
                    );
                }
            });
        }
        for vendor in &self.vendors {
            vendor.truth(|truth| {
                let now = self.world.ground.time.now();
                let died = self.circumstances.deaths + self.circumstances.stops > 0;
                for (id, (draft, since)) in &truth.drafts {
                    // A process that ends takes nothing back; what it leaves fades.
                    if !died && now.since(*since) < DRAFT_FADES {
                        let text = &draft.content.text;
                        found.add(Invariant::Reply, format!("{id}: a draft stays: {text:?}"));
                    }
                }
                for shown in &truth.shown {
                    if self.ledger.parcel(&shown.by).is_none() {
                        found.add(
                            Invariant::Reply,
                            format!(
                                "{} is shown and was never decided: {:?}",
                                shown.by, shown.content.text
                            ),
                        );
                    }
                }
            });
        }
    }

    /// A delivery that came to nothing leaves nothing to read, where the gateway can know of it.
    fn withdrawn(&self, id: &OutboundId, copies: &[&Shown], truth: &Truth, found: &mut Findings) {
        if !self.ledger.settled.contains_key(id) {
            found.add(Invariant::Reply, format!("{id} was to be taken away and is not dealt with"));
        }
        let known = !truth.doubtful.contains_key(id) && !truth.refused.contains(id);
        let stays = copies.iter().find(|shown| shown.content.text != "(done)");
        if let Some(stays) = stays.filter(|_| known && self.circumstances.deaths == 0) {
            found.add(Invariant::Reply, format!("{id}: a preview stays: {:?}", stays.content.text));
        }
    }

    fn order(&self, found: &mut Findings) {
        let mut newest: BTreeMap<(String, &SenderId, Way), Seq> = BTreeMap::new();
        for (turn, seqs) in &self.ledger.turns {
            for seq in seqs {
                let Some(row) = self.ledger.rows.get(seq) else { continue };
                let whose = (row.key.to_string(), &row.inbound.from.id, Way::of(row, turn));
                let newest = newest.entry(whose).or_default();
                if *seq < *newest {
                    found.add(Invariant::Order, format!("{turn} takes up {seq} after {newest}"));
                }
                *newest = (*newest).max(*seq);
            }
        }
        let mut parts: BTreeMap<OutboundId, u16> = BTreeMap::new();
        for decided in &self.ledger.parcels {
            let id = &decided.outbound.id;
            if self.ledger.notices.contains(id) {
                continue;
            }
            let next = parts.entry(id.with_part(0)).or_default();
            if id.part != *next {
                found
                    .add(Invariant::Order, format!("{id} was decided in the place of part {next}"));
            }
            *next += 1;
        }
        let mut places: BTreeMap<String, (u64, &OutboundId)> = BTreeMap::new();
        for decided in &self.ledger.parcels {
            let (id, to) = (&decided.outbound.id, &decided.outbound.to);
            let (Act::Post(content), Some(vendor)) = (&decided.outbound.act, self.vendor(to))
            else {
                continue;
            };
            let place = vendor.truth(|truth| {
                let shown = truth.shown.iter().filter(|shown| shown.by == *id);
                shown.filter(|shown| says(&shown.content, content)).map(|shown| shown.changed).min()
            });
            let Some(place) = place else { continue };
            let chat = format!("{} {to:?}", decided.key);
            if let Some((before, other)) = places.get(&chat)
                && place < *before
                && !self.ledger.previews.contains_key(id)
            {
                found.add(
                    Invariant::Order,
                    format!("{id} can be read before {other}, which was decided before it"),
                );
            }
            let furthest = places.entry(chat).or_insert((place, id));
            if place > furthest.0 {
                *furthest = (place, id);
            }
        }
    }

    fn isolation(&self, found: &mut Findings) {
        let notices: BTreeSet<&OutboundId> =
            self.ledger.entries.iter().filter_map(|(_, _, entry)| notice(entry)).collect();
        for vendor in &self.vendors {
            vendor.truth(|truth| {
                for (_, outbound) in &truth.acts {
                    let (Act::Post(content)
                    | Act::Draft(Draft { content, .. })
                    | Act::Edit { content, .. }) = &outbound.act
                    else {
                        continue;
                    };
                    for token in mentioned(&content.text) {
                        let origin = self.circumstances.said.get(&token);
                        let is_found = notices.contains(&outbound.id.with_part(0))
                            && self.may_find(token, &outbound.to);
                        if origin.is_some_and(|origin| origin.at != outbound.to) && !is_found {
                            found.add(
                                Invariant::Isolation,
                                format!(
                                    "{token} is shown in {} of {}",
                                    outbound.to.chat.id, outbound.to.account
                                ),
                            );
                        }
                    }
                }
            });
        }
        for (key, _, entry) in &self.ledger.entries {
            let text = match &entry.body {
                EntryBody::Said { text, .. }
                | EntryBody::Answered { text, .. }
                | EntryBody::Aside { text, .. }
                | EntryBody::Noticed { text, .. } => text,
                EntryBody::Returned { output, .. } => output,
                EntryBody::Summary { text, .. } => text,
            };
            for token in mentioned(text) {
                let is_found = notice(entry).is_some()
                    && self.ledger.parcels.iter().any(|decided| {
                        Some(&decided.outbound.id) == notice(entry)
                            && self.may_find(token, &decided.outbound.to)
                    });
                if self.key_of(token).is_some_and(|of| of != main(key)) && !is_found {
                    found.add(Invariant::Isolation, format!("{token} is recorded in {key}"));
                }
            }
        }
        let lives = self.lives();
        for asked in self.world.model.iter().flat_map(|model| model.asked()) {
            let keys: BTreeSet<String> = asked
                .tokens
                .iter()
                .filter_map(|token| self.key_of(*token))
                .map(|key| key.to_string())
                .collect();
            let ids: BTreeSet<&SessionId> =
                asked.tokens.iter().filter_map(|token| lives.get(token).copied()).collect();
            if keys.len() > 1 || !self.are_of_one_life(&ids) {
                found.add(
                    Invariant::Isolation,
                    format!(
                        "the model is told of {:?} at once, from {keys:?} {ids:?}",
                        asked.tokens
                    ),
                );
            }
        }
    }

    /// Whether somebody may find a message at an address: alone with us, what was said in a conversation
    /// that is theirs alone.
    fn may_find(&self, token: Token, at: &Address) -> bool {
        let Some((origin, key)) = self.circumstances.said.get(&token).zip(self.key_of(token))
        else {
            return false;
        };
        let is_theirs = key.kind == ChatKind::Dm || key.member.as_ref() == Some(&origin.from);
        // Meddlers say yes and no to what others are asked, and look for nothing.
        let mut there =
            self.ledger.rows.values().filter(|row| {
                row.inbound.to == *at && row.inbound.from.id.as_str() != super::MEDDLER
            });
        at.chat.kind == ChatKind::Dm
            && is_theirs
            && there.all(|row| {
                row.inbound.from.id == origin.from
                    || matches!(row.inbound.kind, InboundKind::Pressed(_))
            })
    }

    /// The life of its conversation in which each message was taken up.
    fn lives(&self) -> BTreeMap<Token, &SessionId> {
        let mut lives = BTreeMap::new();
        for row in self.ledger.rows.values() {
            for state in &row.states {
                if let JournalState::Bound(turn) = state {
                    lives.extend(tokens(row).into_iter().map(|token| (token, &turn.session)));
                }
            }
        }
        lives
    }

    /// Whether all of these are one life and those that it is a copy of.
    fn are_of_one_life(&self, ids: &BTreeSet<&SessionId>) -> bool {
        let copied = |id: &SessionId| self.ledger.branches.get(id).map(|(from, _)| from);
        ids.is_empty()
            || ids.iter().any(|id| {
                let line: Vec<_> = std::iter::successors(Some(*id), |id| copied(id)).collect();
                ids.iter().all(|id| line.contains(id))
            })
    }

    fn key_of(&self, token: Token) -> Option<SessionKey> {
        let origin = self.circumstances.said.get(&token)?;
        let from = Sender::new(origin.from.clone());
        Some(SessionKey::between(&from, &origin.at, KnownBy::Chat, self.world.scope))
    }

    fn tools(&self, found: &mut Findings) {
        let mut done: BTreeMap<(&TurnId, String), u32> = BTreeMap::new();
        let deeds: Vec<_> = self.world.model.iter().flat_map(|model| model.deeds()).collect();
        for deed in &deeds {
            let asked = self.ledger.turns.iter().find(|(turn, _)| *turn == deed.turn);
            let asked = asked.and_then(|(_, seqs)| self.ledger.rows.get(seqs.first()?));
            if asked.is_none_or(|asked| asked.inbound.from.id != deed.from) {
                found.add(
                    Invariant::Authority,
                    format!("{} is done in the name of {}", deed.call, deed.from),
                );
            }
            if deed.tool == "spend" {
                self.approved(deed, found);
            }
            if matches!(deed.tool, "pay" | "check" | "spend") {
                *done.entry((&deed.turn, deed.call.to_string())).or_default() += 1;
            }
        }
        for ((turn, call), times) in done {
            if times > 1 {
                found.add(Invariant::Tools, format!("{call} of {turn} is done {times} times"));
            }
        }
    }

    /// What has to be approved is done only after a yes to exactly that, by the one in whose name it is
    /// done.
    fn approved(&self, deed: &Deed, found: &mut Findings) {
        let mut approvals = self.ledger.approvals.iter().enumerate();
        let of_deed =
            |(_, known): &(usize, &Approved)| known.turn == deed.turn && known.call == deed.call;
        let Some((place, yes)) = approvals.find(of_deed) else {
            let what = format!("{} of {} was never approved", deed.call, deed.turn);
            return found.add(Invariant::Authority, what);
        };
        let price = deed.price.as_deref().unwrap_or_default();
        if !yes.text.contains(&format!("\"{price}\"")) {
            let what = format!("{} is done at {price}, approved was {:?}", deed.call, yes.text);
            found.add(Invariant::Authority, what);
        }
        let is_theirs = match &yes.by {
            Some(by) => *by == deed.from,
            None => self.ledger.approvals[..place].iter().any(|before| {
                let holds = match before.consent {
                    Consent::Once => false,
                    Consent::Session => before.approval.digest == yes.approval.digest,
                    Consent::Always => before.approval.lasting == lasting(&yes.approval),
                };
                holds && before.from == deed.from && before.by.as_ref() == Some(&deed.from)
            }),
        };
        if !is_theirs {
            let what = format!("{} is done for {}, approved by {:?}", deed.call, deed.from, yes.by);
            found.add(Invariant::Authority, what);
        }
    }

    fn bounds(&self, found: &mut Findings) {
        let most = 4 * self.world.rules.room + 1;
        if self.ledger.fullest > most {
            found.add(
                Invariant::Bounded,
                format!("a session held {} messages of {most}", self.ledger.fullest),
            );
        }
        if let Some(model) = &self.world.model {
            let (most, limit) = (model.most_at_once(), self.world.limits.turns_at_once);
            if most > limit {
                found.add(Invariant::Bounded, format!("{most} turns at once of {limit}"));
            }
        }
    }

    /// Nobody is told more than once in half a minute that something waits.
    fn acknowledgements(&self, found: &mut Findings) {
        let mut last: BTreeMap<String, Timestamp> = BTreeMap::new();
        for (key, _, entry) in &self.ledger.entries {
            let EntryBody::Noticed { text, .. } = &entry.body else { continue };
            if !ACKNOWLEDGEMENTS.contains(&text.as_str()) {
                continue;
            }
            let before = last.insert(key.to_string(), entry.at);
            if before.is_some_and(|before| entry.at.since(before) < Duration::from_secs(30)) {
                found
                    .add(Invariant::Bounded, format!("{key} acknowledges again at {:?}", entry.at));
            }
        }
    }

    fn authority(&self, found: &mut Findings) {
        let asked: BTreeSet<Token> = self
            .world
            .model
            .iter()
            .flat_map(|model| model.asked())
            .flat_map(|asked| asked.tokens)
            .collect();
        for (vendor, access) in &self.world.accounts {
            for (seq, row) in
                self.ledger.rows.iter().filter(|(_, row)| row.key.account == vendor.account())
            {
                // By the lists alone: what the gateway itself goes by is what is looked at here.
                let here = access.of(Room::of(row.inbound.to.chat.kind));
                let may = access.surface == Surface::Own
                    || here.policy == Policy::Open
                    || access.listed.contains(&row.inbound.from.id);
                let denied = matches!(row.states[..], [JournalState::Denied(_)]);
                if may == denied {
                    found.add(
                        Invariant::Authority,
                        format!("{seq} of {} is {:?}", row.inbound.from.id, row.states),
                    );
                }
                if !may && tokens(row).iter().any(|token| asked.contains(token)) {
                    found.add(
                        Invariant::Authority,
                        format!("the model is told what {} said", row.inbound.from.id),
                    );
                }
                if let (InboundKind::Pressed(choice), Some(JournalState::Handled)) =
                    (&row.inbound.kind, row.states.last())
                {
                    let asker = mentioned(choice.as_str())
                        .first()
                        .and_then(|token| self.circumstances.said.get(token));
                    if asker.is_some_and(|asker| asker.from != row.inbound.from.id) {
                        found.add(
                            Invariant::Authority,
                            format!("{} answers for somebody else: {choice}", row.inbound.from.id),
                        );
                    }
                }
            }
        }
    }

    fn integrity(&self, found: &mut Findings) {
        let mut last: BTreeMap<&SessionId, u32> = BTreeMap::new();
        for (_, life, entry) in &self.ledger.entries {
            let copied = self.ledger.branches.get(life).map_or(0, |(_, upto)| *upto);
            let last = last.entry(life).or_insert(copied);
            if entry.number != *last + 1 {
                found.add(
                    Invariant::Integrity,
                    format!("entry {} of {life} follows {last}", entry.number),
                );
            }
            *last = entry.number;
        }
    }

    fn vendor(&self, to: &Address) -> Option<&Vendor> {
        self.vendors.iter().find(|vendor| vendor.account() == to.account).copied()
    }
}

/// How something said gets its turn. Each way keeps its order; what interrupts goes ahead of what was
/// queued, and what is steered ahead of both. What found no turn to steer waits like anything said, so
/// that only what one turn was told has an order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Said,
    Queued,
    Steered(TurnId),
}

impl Way {
    fn of(row: &Row, turn: &TurnId) -> Self {
        match &row.inbound.kind {
            InboundKind::Said(message) if commands(message, "/queue") => Self::Queued,
            InboundKind::Said(message) if commands(message, "/steer") => {
                Self::Steered(turn.clone())
            }
            _ => Self::Said,
        }
    }
}

/// Whether a message is such a command. Nobody commands in the words of another.
fn commands(message: &Message, name: &str) -> bool {
    message.text.starts_with(name) && message.forwarded.is_none()
}

/// The delivery of something that the gateway says itself, outside of a turn.
fn notice(entry: &Entry) -> Option<&OutboundId> {
    match &entry.body {
        EntryBody::Noticed { sent, .. } if entry.turn.is_none() => Some(sent),
        _ => None,
    }
}

/// What could be approved for good when it was first asked about.
fn lasting(approval: &Approval) -> Lasting {
    match approval.lasting {
        Lasting::Granted(digest) => Lasting::Possible(digest),
        lasting => lasting,
    }
}

/// The session that a side session is beside.
fn main(key: &SessionKey) -> SessionKey {
    SessionKey { side: None, ..key.clone() }
}

/// The messages that a row mentions.
fn tokens(row: &Row) -> Vec<Token> {
    match &row.inbound.kind {
        InboundKind::Said(message) => mentioned(&message.text),
        InboundKind::Edited(_) | InboundKind::Pressed(_) | InboundKind::Stopped => Vec::new(),
    }
}

fn said(row: &Row) -> String {
    match &row.inbound.kind {
        InboundKind::Said(message) => message.text.clone(),
        other => format!("{other:?}"),
    }
}

/// Whether people read all of this, with a mark or without, formatted or not.
fn says(shown: &Content, decided: &Content) -> bool {
    let text = shown.text.as_str();
    let unmarked = match text.strip_prefix(SHORT_MARK) {
        Some(rest) => rest.trim_start_matches('\n'),
        None if text.contains(super::MARK) => text.split_once("\n\n").map_or("", |(_, rest)| rest),
        None => text,
    };
    // Formatting is not compared: what is refused for it is sent again without.
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let same_text = unmarked == decided.text
        || letters(unmarked) == letters(&decided.text)
        || letters(unmarked)
            == letters(&talaria_render::plain(&talaria_render::parse(&decided.text)));
    // Buttons that are refused are sent again as a list that names them all. A text that has no room
    // beside it ends in a sign that it goes on.
    let is_list = shown.reading == Reading::AsItIs && shown.choices.is_empty();
    let is_told = match unmarked.split_once("…\n\n1. ") {
        Some((beginning, _)) => letters(&decided.text).starts_with(&letters(beginning)),
        None => letters(unmarked).starts_with(&letters(&decided.text)),
    };
    let is_listed = is_list
        && !decided.choices.is_empty()
        && is_told
        && decided.choices.iter().all(|choice| unmarked.contains(&choice.label));
    shown.files == decided.files && (same_text && shown.choices == decided.choices || is_listed)
}
