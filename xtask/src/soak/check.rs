//! What must hold, read from the evidence after everything has come to rest.
//!
//! A pure function of what was said, what the model answered, what people can read and what the
//! journal says, so that planted evidence can show that it bites.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use talaria_testkit::{Token, mentioned};

use super::book::{Answer, Kind, Pages, Said, words_in};
use super::database::Record;

/// What a resend looks like, and what it looks like where messages are short.
const MARKS: [&str; 2] = ["sent again after an interruption", "(again)\n"];

const SET_ASIDE: &str = "I was interrupted three times";

/// After so many deaths a turn is set aside.
const DEATHS: usize = 3;

/// Everything there is to judge by.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) said: BTreeMap<Token, Said>,
    /// Commands and presses.
    pub(crate) others: Vec<Said>,
    pub(crate) answers: Vec<Answer>,
    /// What people can read, per account and in the order in which it appeared.
    pub(crate) shown: Vec<Visible>,
    pub(crate) journal: HashMap<(String, String), Row>,
    /// The turn that each message became part of.
    pub(crate) turns: HashMap<(String, String), String>,
    /// The same by the transcript, which also knows it of what was set aside.
    pub(crate) spoken: HashMap<Token, String>,
    /// How often the gateway was killed after each turn had begun.
    pub(crate) deaths: HashMap<String, usize>,
    /// How many parcels were given up, per account and chat. People are told of them.
    pub(crate) given_up: HashMap<(String, String), usize>,
}

impl Evidence {
    /// Adds what the database says, and what the book knows of the gateway's lives.
    pub(crate) fn with(self, record: &Record, pages: &Pages) -> Self {
        let lost = record.given_up.iter().map(|(place, lost)| (place.clone(), lost.len()));
        let begun = record.begun.iter();
        let deaths = begun.map(|(turn, at)| (turn.clone(), pages.kills_after(*at)));
        Self {
            journal: record.journal.clone(),
            turns: record.turns.clone(),
            spoken: record.spoken.clone(),
            deaths: deaths.collect(),
            given_up: lost.collect(),
            ..self
        }
    }
}

/// A message as people can read it.
#[derive(Debug, Clone)]
pub(crate) struct Visible {
    pub(crate) account: &'static str,
    pub(crate) chat: String,
    pub(crate) text: String,
}

/// A row of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row {
    /// No step has dealt with it.
    Open,
    Bound,
    Handled,
    Ignored,
    Denied,
    SetAside,
}

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) what: What,
    /// The message concerned, where there is one.
    pub(crate) token: Option<Token>,
    pub(crate) place: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Lost,
    Repeated,
    LeftBehind,
    OutOfOrder { later: Token },
    Scrambled,
    WrongChat,
    Stray(String),
    Notices { asked: usize, unmarked: usize, shown: usize, read: Vec<String> },
    NotJournalled,
    NotEnded,
    Unexplained(Row),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.place;
        let token = self.token.map(|token| token.to_string()).unwrap_or_default();
        match &self.what {
            What::Lost => write!(f, "{token} in {place} has no whole answer"),
            What::Repeated => write!(f, "the answer to {token} is in {place} twice, unmarked"),
            What::LeftBehind => {
                write!(f, "half an answer to {token} stayed in {place}, and no marked one follows")
            }
            What::OutOfOrder { later } => {
                write!(f, "in {place}, {later} was answered before {token}")
            }
            What::Scrambled => write!(f, "the answer to {token} in {place} is out of order"),
            What::WrongChat => write!(f, "something for {token} appeared in {place}"),
            What::Stray(text) => write!(f, "{place} got {text:?} for no reason"),
            What::Notices { asked, unmarked, shown, read } => write!(
                f,
                "{place} asked for {asked} notices and got {shown}, {unmarked} of them unmarked; it \
                 reads {read:#?}"
            ),
            What::NotJournalled => write!(f, "{place} is not in the journal"),
            What::NotEnded => write!(f, "{place} is in the journal and nothing came of it"),
            What::Unexplained(row) => write!(f, "{place} is {row:?} in the journal for no reason"),
        }
    }
}

/// What the evidence amounts to.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub(crate) violations: Vec<Violation>,
    /// Answers that can be read whole.
    pub(crate) answers: usize,
    pub(crate) marked: usize,
    /// Messages that were set aside and never answered.
    pub(crate) set_aside: usize,
}

pub(crate) fn is_marked(text: &str) -> bool {
    MARKS.iter().any(|mark| text.contains(mark))
}

/// The messages whose whole answer can be read.
pub(crate) fn answered(evidence: &Evidence) -> HashSet<Token> {
    let mut court = Court::new(evidence);
    court.read_everything();
    court.weigh_answers();
    let whole = court.readings.iter().filter(|(_, reading)| reading.completed.is_some());
    whole.flat_map(|(number, _)| evidence.answers[*number].tokens.iter().copied()).collect()
}

/// Judges.
pub(crate) fn judge(evidence: &Evidence) -> Judgement {
    let mut court = Court::new(evidence);
    court.read_everything();
    court.weigh_answers();
    let mut judgement = Judgement::default();
    court.weigh_messages(&mut judgement);
    court.weigh_notices();
    court.weigh_journal();
    judgement.answers =
        court.readings.values().filter(|reading| reading.completed.is_some()).count();
    judgement.marked = evidence.shown.iter().filter(|shown| is_marked(&shown.text)).count();
    judgement.violations = court.found;
    judgement
}

struct Court<'a> {
    evidence: &'a Evidence,
    /// What can be read in each chat.
    places: HashMap<String, Vec<usize>>,
    /// What can be read of each answer.
    readings: HashMap<usize, Reading>,
    found: Vec<Violation>,
}

/// What can be read of an answer.
#[derive(Debug, Default)]
struct Reading {
    /// For each message that has words of it: its place, and its first and last word.
    pieces: Vec<Piece>,
    /// The place at which the last missing word appeared.
    completed: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    place: usize,
    first: u16,
    last: u16,
    marked: bool,
}

/// Whether a message was answered more than once, or half and then once more, without saying so.
fn repetition(readings: &[&Reading]) -> Option<What> {
    let pieces = || readings.iter().flat_map(|reading| &reading.pieces);
    let begun: Vec<&Piece> = pieces().filter(|piece| piece.first == 1 && !piece.marked).collect();
    if begun.len() > 1 {
        return Some(What::Repeated);
    }
    let half = begun.first()?;
    let is_whole = readings.iter().any(|reading| {
        reading.completed.is_some() && reading.pieces.iter().any(|piece| piece.place == half.place)
    });
    let is_followed = pieces().any(|piece| piece.place > half.place && piece.marked);
    (!is_whole && !is_followed).then_some(What::LeftBehind)
}

impl<'a> Court<'a> {
    fn new(evidence: &'a Evidence) -> Self {
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, shown) in evidence.shown.iter().enumerate() {
            places.entry(shown.place()).or_default().push(place);
        }
        Self { evidence, places, readings: HashMap::new(), found: Vec::new() }
    }

    fn accuse(&mut self, what: What, token: Option<Token>, place: impl Into<String>) {
        self.found.push(Violation { what, token, place: place.into() });
    }

    fn read_everything(&mut self) {
        let evidence = self.evidence;
        let mut questions = HashSet::new();
        let mut untold = evidence.given_up.clone();
        for (place, shown) in evidence.shown.iter().enumerate() {
            let words = words_in(&shown.text);
            let mut tokens = mentioned(&shown.text);
            let mut by_answer: Vec<(usize, Vec<u16>)> = Vec::new();
            for word in words {
                match by_answer.iter_mut().find(|(answer, _)| *answer == word.answer) {
                    Some((_, numbers)) => numbers.push(word.word),
                    None => by_answer.push((word.answer, vec![word.word])),
                }
            }
            for (answer, numbers) in by_answer {
                let Some(known) = evidence.answers.get(answer) else {
                    self.accuse(What::Stray(shown.text.clone()), None, shown.place());
                    continue;
                };
                tokens.extend(known.tokens.iter().copied());
                let rises_by_one = numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]);
                if !rises_by_one {
                    self.accuse(What::Scrambled, known.tokens.last().copied(), shown.place());
                }
                let piece = Piece {
                    place,
                    first: numbers[0],
                    last: numbers[numbers.len() - 1],
                    marked: is_marked(&shown.text),
                };
                self.readings.entry(answer).or_default().pieces.push(piece);
            }
            // A question or a refusal names its message and has no words of an answer.
            // The title of a conversation is what was said in it first.
            let is_sentence = !tokens.is_empty()
                && words_in(&shown.text).is_empty()
                && Notice::of(&shown.text) != Notice::Status;
            let place = (shown.account, &shown.chat, &shown.text);
            if is_sentence && !is_marked(&shown.text) && !questions.insert(place) {
                self.accuse(What::Repeated, tokens.first().copied(), shown.place());
            }
            if let Some(told) = losses_told(&shown.text) {
                let left =
                    untold.entry((shown.account.to_owned(), shown.chat.clone())).or_default();
                match left.checked_sub(told) {
                    _ if is_marked(&shown.text) => {}
                    Some(rest) => *left = rest,
                    None => self.accuse(What::Stray(shown.text.clone()), None, shown.place()),
                }
            } else if tokens.is_empty() {
                let is_stray = match Notice::of(&shown.text) {
                    Notice::Unknown => true,
                    Notice::Anew => !self.was_closed(shown),
                    _ => false,
                };
                if is_stray {
                    self.accuse(What::Stray(shown.text.clone()), None, shown.place());
                }
            }
            let strangers = tokens.iter().filter(|token| {
                let said = evidence.said.get(token);
                said.is_none_or(|said| said.account != shown.account || said.chat != shown.chat)
            });
            if let Some(stranger) = strangers.copied().next() {
                self.accuse(What::WrongChat, Some(stranger), shown.place());
            }
        }
    }

    /// Whether something closed a conversation in a chat: a message that was set aside, or a stop.
    fn was_closed(&self, shown: &Visible) -> bool {
        let said = self.evidence.said.values().chain(&self.evidence.others);
        let mut here = said.filter(|said| said.account == shown.account && said.chat == shown.chat);
        here.any(|said| {
            let row = self.evidence.journal.get(&(said.account.to_owned(), said.event.clone()));
            said.kind == Kind::Control || row == Some(&Row::SetAside)
        })
    }

    /// Within each answer: every word once unless marked, in order, and whole or followed.
    fn weigh_answers(&mut self) {
        let evidence = self.evidence;
        let mut readings = std::mem::take(&mut self.readings);
        for (number, reading) in &mut readings {
            let answer = &evidence.answers[*number];
            let token = answer.tokens.last().copied();
            let place = evidence.shown[reading.pieces[0].place].place();
            let mut next = 1;
            for piece in &reading.pieces {
                // A piece may begin anew where it is marked; what is missing before it was overtaken.
                if piece.first > next {
                    self.accuse(What::Scrambled, token, place.clone());
                    break;
                }
                if piece.last >= next {
                    next = piece.last + 1;
                    if piece.last == answer.words {
                        reading.completed = Some(piece.place);
                    }
                }
            }
            let unmarked: Vec<&Piece> =
                reading.pieces.iter().filter(|piece| !piece.marked).collect();
            let overlaps = unmarked.windows(2).any(|pair| pair[1].first <= pair[0].last);
            if overlaps {
                self.accuse(What::Repeated, token, place);
            }
        }
        self.readings = readings;
    }

    fn weigh_messages(&mut self, judgement: &mut Judgement) {
        let evidence = self.evidence;
        let mut by_token: HashMap<Token, Vec<usize>> = HashMap::new();
        for number in self.readings.keys() {
            for token in &evidence.answers[*number].tokens {
                by_token.entry(*token).or_default().push(*number);
            }
        }
        // Serial per session: in a group each person has one of their own.
        let mut last: HashMap<(&str, &str, &str), (usize, Token)> = HashMap::new();
        for (token, said) in &evidence.said {
            let token = *token;
            let numbers = by_token.get(&token).map(Vec::as_slice).unwrap_or_default();
            let readings: Vec<&Reading> = numbers.iter().map(|n| &self.readings[n]).collect();
            let completed = readings.iter().filter_map(|reading| reading.completed).min();
            let excuse = self.excuse(token, said);
            let mut wrong = Vec::new();
            match excuse {
                Some(Excuse::SetAside) => judgement.set_aside += usize::from(completed.is_none()),
                Some(Excuse::Explained) => {}
                None => {
                    wrong.extend(completed.is_none().then_some(What::Lost));
                    wrong.extend(repetition(&readings));
                }
            }
            if let (Some(completed), None) = (completed, excuse) {
                let session = (said.account, said.chat.as_str(), said.person.as_str());
                if let Some((place, earlier)) = last.insert(session, (completed, token))
                    && place > completed
                {
                    let what = What::OutOfOrder { later: token };
                    self.accuse(what, Some(earlier), said.place());
                }
            }
            for what in wrong {
                self.accuse(what, Some(token), said.place());
            }
        }
    }

    /// Why a message need not have an answer of its own.
    fn excuse(&self, token: Token, said: &Said) -> Option<Excuse> {
        let row =
            self.evidence.journal.get(&(said.account.to_owned(), said.event.clone())).copied();
        let reads =
            |notice: Notice| self.shown_in(said).any(|shown| Notice::of(&shown.text) == notice);
        let killed_often = self.deaths(token) >= DEATHS;
        if row == Some(Row::SetAside) && killed_often && reads(Notice::SetAside) {
            return Some(Excuse::SetAside);
        }
        let explained = match said.kind {
            Kind::Refused => self.is_refused(token, said),
            Kind::Unruly => row == Some(Row::Ignored) || reads(Notice::Stopped),
            // What says why its turn failed is about each message of the turn.
            Kind::Talk => self.shares_a_refusal(said),
            _ => false,
        };
        explained.then_some(Excuse::Explained)
    }

    /// How often the turn died that a message was part of. What steers a turn shares the deaths that the turn
    /// had died before.
    fn deaths(&self, token: Token) -> usize {
        let turn = self.evidence.spoken.get(&token);
        turn.and_then(|turn| self.evidence.deaths.get(turn)).copied().unwrap_or(0)
    }

    fn is_refused(&self, token: Token, said: &Said) -> bool {
        self.shown_in(said).any(|shown| {
            shown.text.contains("refused the request") && mentioned(&shown.text).contains(&token)
        })
    }

    /// Whether a message shared its turn with one that the model refused.
    fn shares_a_refusal(&self, said: &Said) -> bool {
        let turn =
            |said: &Said| self.evidence.turns.get(&(said.account.to_owned(), said.event.clone()));
        let Some(shared) = turn(said) else { return false };
        self.evidence.said.iter().any(|(token, other)| {
            other.kind == Kind::Refused
                && turn(other) == Some(shared)
                && self.is_refused(*token, other)
        })
    }

    fn shown_in(&self, said: &Said) -> impl Iterator<Item = &Visible> {
        let places = self.places.get(&said.place());
        places.into_iter().flatten().map(|place| &self.evidence.shown[*place])
    }

    /// As many notices as were asked for, or more where the rest is marked.
    fn weigh_notices(&mut self) {
        let mut asked: BTreeMap<String, usize> = BTreeMap::new();
        for said in self.evidence.others.iter().filter(|said| said.kind == Kind::Status) {
            *asked.entry(said.place()).or_default() += 1;
        }
        let mut got: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for shown in &self.evidence.shown {
            if Notice::of(&shown.text) == Notice::Status {
                let (unmarked, all) = got.entry(shown.place()).or_default();
                *unmarked += usize::from(!is_marked(&shown.text));
                *all += 1;
            }
        }
        let places: HashSet<&String> = asked.keys().chain(got.keys()).collect();
        for place in places {
            let asked = asked.get(place).copied().unwrap_or(0);
            let (unmarked, shown) = got.get(place).copied().unwrap_or((0, 0));
            if unmarked > asked || shown < asked {
                let here = self.places.get(place).into_iter().flatten();
                let here = here.map(|place| &self.evidence.shown[*place].text);
                let read = here.filter(|text| words_in(text).is_empty()).cloned().collect();
                let what = What::Notices { asked, unmarked, shown, read };
                self.found.push(Violation { what, token: None, place: place.clone() });
            }
        }
    }

    fn weigh_journal(&mut self) {
        let evidence = self.evidence;
        let said = evidence.said.iter().map(|(token, said)| (Some(*token), said));
        let others = evidence.others.iter().map(|said| (None, said));
        for (token, said) in said.chain(others) {
            let place = format!("{}, event {}", said.place(), said.event);
            let row = evidence.journal.get(&(said.account.to_owned(), said.event.clone()));
            let what = match (row, said.kind) {
                (None, _) => What::NotJournalled,
                (Some(Row::Open), _) => What::NotEnded,
                (Some(Row::Bound | Row::SetAside), Kind::Talk | Kind::Refused) => continue,
                (Some(Row::Handled), Kind::Status | Kind::Control | Kind::Press) => continue,
                (Some(Row::Bound | Row::Ignored | Row::SetAside), Kind::Unruly) => continue,
                (Some(Row::Ignored), Kind::Unheard) => continue,
                (Some(row), _) => What::Unexplained(*row),
            };
            self.accuse(what, token, place);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Excuse {
    SetAside,
    Explained,
}

/// What the gateway says by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notice {
    Status,
    Rest,
    SetAside,
    Stopped,
    Fresh,
    /// What was said goes into the answer that is being given.
    Steered,
    /// What was set aside or stopped closed the conversation.
    Anew,
    Unknown,
}

impl Notice {
    fn of(text: &str) -> Self {
        const KNOWN: [(&str, Notice); 11] = [
            // Where messages are short, a status is several; only the first says whose it is.
            ("Conversation ", Notice::Status),
            ("- begun ", Notice::Rest),
            ("- last prompt ", Notice::Rest),
            ("- model `", Notice::Rest),
            (SET_ASIDE, Notice::SetAside),
            ("Stopped.", Notice::Stopped),
            ("Stopping.", Notice::Stopped),
            ("Nothing is running.", Notice::Fresh),
            ("A new conversation.", Notice::Fresh),
            ("I will take that into account at my next step.", Notice::Steered),
            ("This is a new conversation: the last one is closed.", Notice::Anew),
        ];
        KNOWN.iter().find(|(words, _)| text.contains(words)).map_or(Self::Unknown, |known| known.1)
    }
}

impl Said {
    pub(crate) fn place(&self) -> String {
        format!("{}/{}", self.account, self.chat)
    }
}

impl Visible {
    fn place(&self) -> String {
        format!("{}/{}", self.account, self.chat)
    }
}

/// How many losses a notice tells of, if it is one.
fn losses_told(text: &str) -> Option<usize> {
    let (before, _) = text.split_once(" could not be delivered (")?;
    let before =
        before.strip_suffix(" earlier message").or(before.strip_suffix(" earlier messages"))?;
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::super::book::Life;
    use super::*;

    const MARK: &str = "*(sent again after an interruption; you may have seen this)*\n\n";

    /// Planted evidence: who said what where, and what can be read where.
    #[derive(Default)]
    struct Plant {
        pages: Pages,
        evidence: Evidence,
    }

    impl Plant {
        fn said(mut self, chat: &str, kind: Kind) -> Self {
            let token = self.pages.mint();
            let event = format!("e{}", token.0);
            let person = format!("{chat}-person");
            let (chat, at) = (chat.to_owned(), Duration::ZERO);
            let said = Said { account: "plain", chat, person, event: event.clone(), kind, at };
            let is_command = matches!(kind, Kind::Status | Kind::Control);
            let row = if is_command { Row::Handled } else { Row::Bound };
            self.evidence.journal.insert(("plain".to_owned(), event), row);
            if is_command {
                self.evidence.others.push(said);
            } else {
                self.evidence.said.insert(token, said);
            }
            self
        }

        fn row(mut self, number: u64, row: Option<Row>) -> Self {
            let place = ("plain".to_owned(), format!("e{number}"));
            match row {
                Some(row) => self.evidence.journal.insert(place, row),
                None => self.evidence.journal.remove(&place),
            };
            self
        }

        /// A turn of these messages that died so often.
        fn turn(mut self, turn: &str, tokens: &[u64], deaths: usize) -> Self {
            let spoken = tokens.iter().map(|token| (Token(*token), turn.to_owned()));
            self.evidence.spoken.extend(spoken);
            self.evidence.deaths.insert(turn.to_owned(), deaths);
            self
        }

        fn text(mut self, chat: &str, text: &str) -> Self {
            let (chat, text) = (chat.to_owned(), text.to_owned());
            self.evidence.shown.push(Visible { account: "plain", chat, text });
            self
        }

        /// Words of the answer to these tokens, all of three or some.
        fn words(mut self, mark: &str, chat: &str, tokens: &[u64], words: &[usize]) -> Self {
            let tokens: Vec<Token> = tokens.iter().map(|token| Token(*token)).collect();
            let whole = self.pages.answer(&tokens, 3);
            let all: Vec<&str> = whole.split(' ').collect();
            let numbered = &all[all.len() - 3..];
            let head =
                if words.contains(&1) { all[..all.len() - 3].join(" ") } else { String::new() };
            let words: Vec<&str> = words.iter().map(|word| numbered[word - 1]).collect();
            self.text(chat, &format!("{mark}{head} {}", words.join(" ")))
        }

        fn whole(self, chat: &str, tokens: &[u64]) -> Self {
            self.words("", chat, tokens, &[1, 2, 3])
        }

        fn check(mut self) -> Vec<String> {
            self.evidence.answers = std::mem::take(&mut self.pages.answers);
            judge(&self.evidence).violations.iter().map(ToString::to_string).collect()
        }
    }

    fn plant() -> Plant {
        Plant::default()
    }

    #[test]
    fn answers_in_order_break_nothing() {
        let evidence = plant().said("a", Kind::Talk).said("b", Kind::Talk).said("a", Kind::Talk);
        let evidence = evidence.whole("a", &[1]).whole("a", &[3]).whole("b", &[2]);
        assert_eq!(evidence.check(), [""; 0]);
    }

    #[test]
    fn several_messages_may_share_an_answer_and_an_answer_may_have_parts() {
        let evidence = plant().said("a", Kind::Talk).said("a", Kind::Talk);
        let evidence = evidence.words("", "a", &[1, 2], &[1]).words("", "a", &[1, 2], &[2, 3]);
        assert_eq!(evidence.check(), [""; 0]);
    }

    #[test]
    fn a_missing_answer_is_a_loss_and_so_is_a_missing_part() {
        let lost = ["tok0000001 in plain/a has no whole answer"];
        assert_eq!(plant().said("a", Kind::Talk).check(), lost);
        let half = plant().said("a", Kind::Talk).words("", "a", &[1], &[1, 2]);
        assert!(half.check().contains(&lost[0].to_owned()));
        let overtaken = plant().said("a", Kind::Talk).words("", "a", &[1], &[1]);
        let overtaken = overtaken.words("", "a", &[1], &[3]).check();
        assert!(overtaken.iter().any(|found| found.contains("out of order")), "{overtaken:?}");
    }

    #[test]
    fn a_second_copy_has_to_be_marked() {
        let twice = plant().said("a", Kind::Talk).whole("a", &[1]).whole("a", &[1]).check();
        assert!(
            twice.contains(&"the answer to tok0000001 is in plain/a twice, unmarked".to_owned())
        );
        for mark in [MARK, "(again)\n"] {
            let marked = plant().said("a", Kind::Talk).whole("a", &[1]);
            assert_eq!(marked.words(mark, "a", &[1], &[1, 2, 3]).check(), [""; 0]);
        }
    }

    #[test]
    fn a_second_turn_for_the_same_message_is_a_repeat() {
        let twice = plant().said("a", Kind::Talk).said("a", Kind::Talk);
        let twice = twice.whole("a", &[1]).whole("a", &[1, 2]).check();
        assert_eq!(twice, ["the answer to tok0000001 is in plain/a twice, unmarked"]);
    }

    #[test]
    fn parts_that_are_swapped_or_doubled_are_noticed() {
        let swapped = plant().said("a", Kind::Talk).words("", "a", &[1], &[2, 3]);
        let swapped = swapped.words("", "a", &[1], &[1]).check();
        assert!(
            swapped.contains(&"the answer to tok0000001 in plain/a is out of order".to_owned())
        );
        let doubled = plant().said("a", Kind::Talk).words("", "a", &[1], &[1]);
        let doubled = doubled.words("", "a", &[1], &[2]).words("", "a", &[1], &[2, 3]).check();
        assert_eq!(doubled, ["the answer to tok0000001 is in plain/a twice, unmarked"]);
        let marked = plant().said("a", Kind::Talk).words("", "a", &[1], &[1]);
        let marked = marked.words("", "a", &[1], &[2]).words(MARK, "a", &[1], &[2]);
        assert_eq!(marked.words("", "a", &[1], &[3]).check(), [""; 0]);
    }

    #[test]
    fn an_answer_that_overtakes_is_noticed() {
        let evidence = plant().said("a", Kind::Talk).said("a", Kind::Talk);
        assert_eq!(
            evidence.whole("a", &[2]).whole("a", &[1]).check(),
            ["in plain/a, tok0000002 was answered before tok0000001"]
        );
    }

    #[test]
    fn an_answer_in_the_wrong_chat_is_noticed() {
        let evidence = plant().said("a", Kind::Talk).said("b", Kind::Talk);
        let found = evidence.whole("a", &[1]).whole("b", &[2]).whole("b", &[1]).check();
        assert!(found.contains(&"something for tok0000001 appeared in plain/b".to_owned()));
        let part = plant().said("a", Kind::Talk).said("b", Kind::Talk).whole("b", &[2]);
        let part = part.words("", "a", &[1], &[1, 2]).words("", "b", &[1], &[3]).check();
        assert!(
            part.contains(&"something for tok0000001 appeared in plain/b".to_owned()),
            "{part:?}"
        );
    }

    #[test]
    fn half_an_answer_needs_a_marked_whole_one_after_it() {
        let half = plant().said("a", Kind::Talk).words("", "a", &[1], &[1]);
        assert_eq!(half.words(MARK, "a", &[1], &[1, 2, 3]).check(), [""; 0]);
        // The turn went on with more than it had when it died.
        let more = plant().said("a", Kind::Talk).said("a", Kind::Talk).words("", "a", &[1], &[1]);
        let left = more.whole("a", &[1, 2]).check();
        assert!(left.iter().any(|found| found.contains("twice, unmarked")), "{left:?}");
        let gone = plant().said("a", Kind::Talk).words("", "a", &[1], &[1]).check();
        assert!(gone.iter().any(|found| found.contains("no marked one follows")), "{gone:?}");
    }

    #[test]
    fn setting_aside_needs_a_row_a_notice_and_three_deaths() {
        let aside = |row, notice: &str, deaths| {
            let plant = plant().said("a", Kind::Talk).row(1, Some(row)).text("a", notice);
            plant.turn("s/1", &[1], deaths).check()
        };
        let notice = "I was interrupted three times while working on this and have set it aside.";
        assert_eq!(aside(Row::SetAside, notice, 3), [""; 0]);
        assert_eq!(aside(Row::Bound, notice, 3).len(), 1);
        assert_eq!(aside(Row::SetAside, "Nothing is running.", 3).len(), 1);
        assert_eq!(aside(Row::SetAside, notice, 2).len(), 1);
    }

    #[test]
    fn what_steers_a_turn_shares_its_deaths_and_nobody_else_does() {
        let notice = "I was interrupted three times while working on this and have set it aside.";
        let two = |row| {
            let plant = plant().said("a", Kind::Talk).said("a", Kind::Talk).text("a", notice);
            plant.row(1, Some(Row::SetAside)).row(2, Some(row))
        };
        // The second was said after the turn had died already.
        assert_eq!(two(Row::SetAside).turn("s/1", &[1, 2], 3).check(), [""; 0]);
        let lost = ["tok0000002 in plain/a has no whole answer"];
        let own = two(Row::SetAside).turn("s/1", &[1], 3).turn("s/2", &[2], 2);
        assert_eq!(own.check(), lost, "a turn of its own died twice");
        assert_eq!(two(Row::Bound).turn("s/1", &[1, 2], 3).check(), lost, "it was not set aside");
        assert_eq!(two(Row::SetAside).turn("s/1", &[1], 3).check(), lost, "nobody knows its turn");
        assert_eq!(two(Row::SetAside).turn("s/1", &[1, 2], 2).check().len(), 2);
    }

    #[test]
    fn only_kills_after_a_turn_had_begun_are_its_deaths() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let killed =
            |seconds| Life { killed: Some(Duration::from_secs(seconds)), ..Life::default() };
        let lives = vec![killed(10), killed(20), killed(30), killed(40), Life::default()];
        let mut pages = Pages::default();
        (pages.begun, pages.lives) = (Some(at(1_000)), lives);
        let record = |begun| {
            let mut record = Record::default();
            record.begun.insert("s/1".to_owned(), at(begun));
            record
        };
        let deaths = |begun| Evidence::default().with(&record(begun), &pages).deaths["s/1"];
        assert_eq!([deaths(1_005), deaths(1_015), deaths(1_025), deaths(1_050)], [4, 3, 2, 0]);
    }

    #[test]
    fn a_refusal_is_about_every_message_of_its_turn_and_about_no_other() {
        let refused = |turn_of_the_first: &str, notice: &str| {
            let mut plant = plant().said("a", Kind::Talk).said("a", Kind::Refused);
            let turns = &mut plant.evidence.turns;
            turns.insert(("plain".into(), "e1".into()), turn_of_the_first.into());
            turns.insert(("plain".into(), "e2".into()), "s/1".into());
            plant.text("a", notice).check()
        };
        let notice = "The model refused the request: not tok0000002";
        assert_eq!(refused("s/1", notice), [""; 0]);
        assert_eq!(refused("s/2", notice).len(), 1);
        assert_eq!(refused("s/1", "A new conversation.").len(), 2);
    }

    #[test]
    fn people_are_told_of_what_was_given_up_and_of_nothing_else() {
        let notice = "1 earlier message could not be delivered (no confirmation).";
        let told = |losses: usize, text: &str| {
            let mut plant = plant().text("a", text);
            plant.evidence.given_up.insert(("plain".into(), "a".into()), losses);
            plant.check()
        };
        assert_eq!(told(1, notice), [""; 0]);
        assert_eq!(told(0, notice).len(), 1);
        assert_eq!(told(1, &notice.replace('1', "2").replace("message", "messages")).len(), 1);
        assert_eq!(losses_told("1 earlier message was read."), None);
    }

    #[test]
    fn a_notice_comes_once_and_nothing_comes_unasked() {
        let status = "Conversation (`x`): idle.\n- begun today, 0 turns, 0 waiting";
        let asked = || plant().said("a", Kind::Status);
        assert_eq!(asked().text("a", status).check(), [""; 0]);
        assert_eq!(
            asked().text("a", status).text("a", &format!("{MARK}{status}")).check(),
            [""; 0]
        );
        let (first, rest) = status.split_once('\n').expect("it has two lines");
        assert_eq!(asked().text("a", first).text("a", rest).check(), [""; 0]);
        assert_eq!(asked().text("a", rest).check().len(), 1);
        assert_eq!(asked().check().len(), 1);
        assert_eq!(asked().text("a", status).text("a", status).check().len(), 1);
        assert_eq!(plant().text("a", status).check().len(), 1);
        assert_eq!(plant().text("a", "hm").check(), ["plain/a got \"hm\" for no reason"]);
    }

    #[test]
    fn a_conversation_begins_anew_only_where_something_closed_the_last_one() {
        let anew =
            "◐ This is a new conversation: the last one is closed. What was said stays searchable.";
        assert_eq!(plant().said("a", Kind::Control).text("a", anew).check(), [""; 0]);
        assert_eq!(plant().said("b", Kind::Control).text("a", anew).check().len(), 1);
        assert_eq!(plant().text("a", anew).check().len(), 1);
    }

    #[test]
    fn a_question_that_comes_twice_has_to_be_marked() {
        let asked =
            || plant().said("a", Kind::Talk).whole("a", &[1]).text("a", "Which? tok0000001");
        assert_eq!(asked().text("a", &format!("{MARK}Which? tok0000001")).check(), [""; 0]);
        assert_eq!(
            asked().text("a", "Which? tok0000001").check(),
            ["the answer to tok0000001 is in plain/a twice, unmarked"]
        );
    }

    #[test]
    fn every_message_has_a_row_that_has_ended() {
        let answered = || plant().said("a", Kind::Talk).whole("a", &[1]);
        assert_eq!(answered().row(1, None).check(), ["plain/a, event e1 is not in the journal"]);
        assert_eq!(answered().row(1, Some(Row::Open)).check().len(), 1);
        assert_eq!(answered().row(1, Some(Row::Ignored)).check().len(), 1);
    }
}
