//! What the driver knows to have happened: what was said, what the model answered, and when.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use talaria_testkit::Token;
use tokio::sync::watch;
use tokio::time::Instant;

use super::protocol::Moment;

/// The whole truth outside of the platforms. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Book {
    shared: Arc<Shared>,
}

struct Shared {
    begun: Instant,
    pages: Mutex<Pages>,
    moments: [watch::Sender<u64>; 3],
}

#[derive(Default)]
pub(crate) struct Pages {
    /// When it began, by the clock that the gateway writes into its database.
    pub(crate) begun: Option<SystemTime>,
    /// Every message with a token.
    pub(crate) said: BTreeMap<Token, Said>,
    /// Commands and presses, which have none.
    pub(crate) others: Vec<Said>,
    /// Every answer the model has given, by its number.
    pub(crate) answers: Vec<Answer>,
    numbers: HashMap<Vec<Token>, usize>,
    /// Requests that were answered with an error once.
    pub(crate) spoiled: HashSet<Vec<Token>>,
    pub(crate) lives: Vec<Life>,
    pub(crate) log: Vec<Logged>,
    pub(crate) faults: usize,
    minted: u64,
}

/// Something that a person did.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) account: &'static str,
    pub(crate) chat: String,
    pub(crate) person: String,
    /// The event as the journal names it.
    pub(crate) event: String,
    pub(crate) kind: Kind,
    pub(crate) at: Duration,
}

/// What has to come of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole answer.
    Talk,
    /// A whole answer, or the model's refusal.
    Refused,
    /// A whole answer, or a stop that says so.
    Unruly,
    /// One notice.
    Status,
    /// Whatever a stop or a fresh start answers.
    Control,
    /// Nothing of its own: it answers a question.
    Press,
    /// Nothing at all: nobody listens there.
    Unheard,
}

/// An answer of the model. Its words are numbered, so that a reader knows whether all are there.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) tokens: Vec<Token>,
    pub(crate) words: u16,
}

/// One life of the gateway.
#[derive(Debug, Default)]
pub(crate) struct Life {
    pub(crate) started: Duration,
    pub(crate) first_act: Option<Duration>,
    pub(crate) killed: Option<Duration>,
}

/// Something that happened, for the history of a message.
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) at: Duration,
    pub(crate) account: &'static str,
    pub(crate) chat: String,
    pub(crate) tokens: Vec<Token>,
    pub(crate) what: String,
}

impl Book {
    pub(crate) fn new() -> Self {
        let moments = [watch::Sender::new(0), watch::Sender::new(0), watch::Sender::new(0)];
        let pages = Pages { begun: Some(SystemTime::now()), ..Pages::default() };
        let pages = Mutex::new(pages);
        Self { shared: Arc::new(Shared { begun: Instant::now(), pages, moments }) }
    }

    pub(crate) fn now(&self) -> Duration {
        self.shared.begun.elapsed()
    }

    /// When lives began.
    pub(crate) fn starts(&self) -> Vec<Instant> {
        let begun = self.shared.begun;
        self.pages().lives.iter().map(|life| begun + life.started).collect()
    }

    /// Never held while a vendor is asked for anything: its script takes the pages while it holds the
    /// vendor.
    pub(crate) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.shared.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that this is happening.
    pub(crate) fn signal(&self, moment: Moment) {
        self.shared.moments[moment as usize].send_modify(|times| *times += 1);
    }

    /// Completes when this happens next.
    pub(crate) async fn next(&self, moment: Moment) {
        let mut times = self.shared.moments[moment as usize].subscribe();
        // The sender lives in `self`.
        let _ = times.changed().await;
    }

    pub(crate) fn begin_life(&self) {
        let started = self.now();
        self.pages().lives.push(Life { started, ..Life::default() });
    }

    pub(crate) fn end_life(&self) {
        let now = self.now();
        if let Some(life) = self.pages().lives.last_mut() {
            life.killed = Some(now);
        }
    }

    pub(crate) fn log(
        &self,
        account: &'static str,
        chat: &str,
        tokens: Vec<Token>,
        what: impl Into<String>,
    ) {
        let at = self.now();
        let what = what.into();
        self.pages().log.push(Logged { at, account, chat: chat.to_owned(), tokens, what });
    }
}

impl Pages {
    pub(crate) fn mint(&mut self) -> Token {
        self.minted += 1;
        Token(self.minted)
    }

    /// Says that an act arrived. One that a dead gateway had sent is not the next one's first.
    pub(crate) fn first_act(&mut self, at: Duration) {
        if let Some(life) = self.lives.last_mut().filter(|life| life.started <= at) {
            life.first_act.get_or_insert(at);
        }
    }

    /// The model's answer to these tokens: always the same one.
    pub(crate) fn answer(&mut self, tokens: &[Token], words: u16) -> String {
        let number = *self.numbers.entry(tokens.to_vec()).or_insert_with(|| {
            self.answers.push(Answer { tokens: tokens.to_vec(), words });
            self.answers.len() - 1
        });
        let named: Vec<String> = tokens.iter().map(ToString::to_string).collect();
        let mut text = format!("echo: {}", named.join(" / "));
        for word in 1..=self.answers[number].words {
            write!(text, " {}", Word { answer: number, word }).expect("a string takes everything");
        }
        text
    }

    /// How often the gateway was killed after this.
    pub(crate) fn kills_after(&self, at: SystemTime) -> usize {
        let Some(begun) = self.begun else { return 0 };
        let kills = self.lives.iter().filter_map(|life| life.killed);
        kills.filter(|killed| begun + *killed > at).count()
    }

    /// Everything that is known about a message, in order.
    pub(crate) fn history(&self, token: Token) -> String {
        let Some(said) = self.said.get(&token) else { return format!("nobody said {token}") };
        let mut lines: Vec<(Duration, String)> = Vec::new();
        let Said { account, chat, person, event, kind, at } = said;
        lines.push((*at, format!("{person} says it in {account}/{chat}: event {event}, {kind:?}")));
        let concerns = |logged: &&Logged| {
            logged.tokens.contains(&token) || logged.account == *account && logged.chat == *chat
        };
        let after = self.log.iter().filter(|logged| logged.at >= *at);
        lines.extend(after.filter(concerns).map(|logged| (logged.at, logged.what.clone())));
        let last = lines.iter().map(|(at, _)| *at).max().unwrap_or_default();
        for (number, life) in self.lives.iter().enumerate().filter(|(_, life)| {
            life.killed.is_none_or(|killed| killed >= *at) && life.started <= last
        }) {
            lines.push((life.started, format!("life {number} starts")));
            lines.extend(life.killed.map(|killed| (killed, format!("life {number} is killed"))));
        }
        lines.sort_by_key(|(at, _)| *at);
        let lines =
            lines.iter().map(|(at, what)| format!("    {:>9.3} s  {what}", at.as_secs_f64()));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// One numbered word of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) answer: usize,
    pub(crate) word: u16,
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a{:07}:{:03}", self.answer, self.word)
    }
}

/// The whole words in a text, in order.
pub(crate) fn words_in(text: &str) -> Vec<Word> {
    let read = |word: &str| {
        let (answer, word) = word.strip_prefix('a')?.split_once(':')?;
        let is_whole = answer.len() == 7 && word.len() == 3;
        let number = |digits: &str| digits.parse::<u64>().ok();
        let (answer, word) = (number(answer)?, number(word)?);
        is_whole.then_some(Word { answer: answer as usize, word: word as u16 })
    };
    text.split_whitespace().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_an_answer_are_numbered_and_read_back() {
        let mut pages = Pages::default();
        let text = pages.answer(&[Token(3), Token(4)], 2);
        assert_eq!(text, "echo: tok0000003 / tok0000004 a0000000:001 a0000000:002");
        assert_eq!(
            pages.answer(&[Token(3), Token(4)], 9),
            text,
            "the same request, the same answer"
        );
        let word = |word| Word { answer: 0, word };
        assert_eq!(words_in(&text), [word(1), word(2)]);
        assert_eq!(words_in("a0000000:00 a0000000:0021 b0000000:001 and:so"), []);
    }
}
