//! The people of the soak: what they say, where, and how fast.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use talaria_testkit::{Token, Vendor};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::book::{Book, Kind, Said, words_in};
use super::mischief::PLATFORMS;
use super::model::{ASK_ME, AT_LENGTH, QUESTION, REFUSE, SLOWLY, WITH_A_TOOL};
use super::protocol::Moment;

/// Messages in one chat before the next chat begins: a conversation, but not an endless one.
const CONVERSATION: usize = 14;

/// How often somebody who was asked looks for the question.
const GLANCE: Duration = Duration::from_millis(40);

/// How a person talks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Says one thing after the other, and sometimes many at once.
    Talker,
    /// In a group, with others.
    Grouper,
    /// Wants to be asked, and answers.
    Asker,
    /// Stops answers and begins anew.
    Unruly,
    /// Talks where nobody listens.
    Outsider,
}

/// Who there is, on each platform.
const MANNERS: [Manner; 7] = [
    Manner::Talker,
    Manner::Talker,
    Manner::Talker,
    Manner::Grouper,
    Manner::Asker,
    Manner::Unruly,
    Manner::Outsider,
];

/// Where nobody listens.
pub(super) const LOBBY: &str = "lobby";

/// How much is said there. Beyond 1,000 of a day and account, what nobody listens to is not written down.
const IN_VAIN: usize = 900;

/// Everybody who talks. Dropping it silences them.
pub(super) struct People {
    quiet: watch::Sender<bool>,
    talking: JoinSet<Person>,
    silent: Vec<Person>,
}

/// The people in a group.
const GROUP: [&str; 3] = ["ann", "ben", "cem"];

impl People {
    /// Lets them talk, all together so many times a second.
    pub(super) fn gather(vendors: &Arc<[Vendor]>, book: &Book, rate: u32, seed: u64) -> Self {
        let quiet = watch::Sender::new(false);
        let mut talking = JoinSet::new();
        let crowd = (PLATFORMS.len() * MANNERS.len()) as f64;
        let pause = Duration::from_secs_f64(crowd / f64::from(rate.max(1)));
        for platform in 0..PLATFORMS.len() {
            for (place, manner) in MANNERS.into_iter().enumerate() {
                let seed = seed ^ ((platform * MANNERS.len() + place) as u64) << 8;
                let person = Person {
                    platform,
                    name: format!("p{place}"),
                    manner,
                    vendors: vendors.clone(),
                    book: book.clone(),
                    dice: StdRng::seed_from_u64(seed),
                    quiet: quiet.subscribe(),
                    pause,
                    chats: Vec::new(),
                };
                talking.spawn(person.talk());
            }
        }
        Self { quiet, talking, silent: Vec::new() }
    }

    /// Asks them to begin nothing new.
    pub(super) fn hush(&self) {
        self.quiet.send_replace(true);
    }

    /// Waits until they have ended what they were at.
    pub(super) async fn silence(&mut self) {
        self.hush();
        while let Some(person) = self.talking.join_next().await {
            self.silent.extend(person.ok());
        }
    }

    /// Lets everybody say one more thing in every chat. What a person says in a chat is answered in
    /// order, so nothing that was still to come can come after its answer.
    pub(super) fn conclude(&self) -> Vec<Token> {
        self.silent.iter().flat_map(Person::conclude).collect()
    }
}

struct Saying<'a> {
    book: &'a Book,
    platform: usize,
    chat: &'a str,
    /// Who says it in a group.
    person: Option<&'a str>,
}

impl Saying<'_> {
    /// Says it with a token behind it.
    fn say(&self, vendor: &Vendor, text: &str, kind: Kind) -> Token {
        let at = self.book.now();
        let token = self.book.pages().mint();
        let text = format!("{text} {token}");
        let number = match self.person {
            Some(person) => vendor.say_in_group(self.chat, person, &text),
            None => vendor.say_plainly(self.chat, &text),
        };
        self.book.pages().said.insert(token, self.said(number, kind, at));
        token
    }

    /// Something without a token.
    fn note(&self, number: u64, kind: Kind) {
        let at = self.book.now();
        self.book.pages().others.push(self.said(number, kind, at));
    }

    fn said(&self, number: u64, kind: Kind, at: Duration) -> Said {
        let account = PLATFORMS[self.platform].name;
        let chat = self.chat.to_owned();
        let person = self.person.map_or_else(|| format!("{chat}-person"), str::to_owned);
        Said { account, chat, person, event: format!("e{number}"), kind, at }
    }
}

struct Person {
    platform: usize,
    name: String,
    manner: Manner,
    vendors: Arc<[Vendor]>,
    book: Book,
    dice: StdRng,
    quiet: watch::Receiver<bool>,
    pause: Duration,
    chats: Vec<String>,
}

impl Person {
    /// Talks until there is quiet.
    async fn talk(mut self) -> Self {
        let mut said = CONVERSATION;
        let mut in_vain = 0;
        loop {
            let wait = self.pause.mul_f64(self.dice.random_range(0.2..1.8));
            let hushed = self.quiet.wait_for(|quiet| *quiet);
            if tokio::time::timeout(wait, hushed).await.is_ok() {
                return self;
            }
            if said >= CONVERSATION {
                said = 0;
                self.chats.push(format!("{}-{}", self.name, self.chats.len()));
            }
            said += match self.manner {
                Manner::Talker => self.chatter(None, Kind::Talk),
                Manner::Grouper => {
                    let person = GROUP[self.dice.random_range(0..GROUP.len())];
                    self.chatter(Some(person), Kind::Talk)
                }
                Manner::Unruly => self.misbehave(),
                Manner::Asker => self.be_asked().await,
                Manner::Outsider if in_vain == IN_VAIN => continue,
                Manner::Outsider => {
                    in_vain += 1;
                    self.speak_in_vain()
                }
            };
        }
    }

    fn conclude(&self) -> Vec<Token> {
        let people: &[Option<&str>] = match self.manner {
            Manner::Grouper => &GROUP.map(Some),
            Manner::Outsider => &[],
            _ => &[None],
        };
        let everywhere =
            self.chats.iter().flat_map(|chat| people.iter().map(move |person| (chat, *person)));
        let say = |(chat, person): (&String, Option<&str>)| {
            let saying = Saying { book: &self.book, platform: self.platform, chat, person };
            saying.say(self.vendor(), "and finally", Kind::Talk)
        };
        everywhere.map(say).collect()
    }

    fn vendor(&self) -> &Vendor {
        &self.vendors[self.platform]
    }

    fn say(&self, person: Option<&str>, text: &str, kind: Kind) -> Token {
        let chat = self.chats.last().expect("a chat was begun");
        let saying = Saying { book: &self.book, platform: self.platform, chat, person };
        saying.say(self.vendor(), text, kind)
    }

    fn command(&self, text: &str, kind: Kind) {
        let chat = self.chats.last().expect("a chat was begun");
        let number = self.vendor().say_plainly(chat, text);
        let saying = Saying { book: &self.book, platform: self.platform, chat, person: None };
        saying.note(number, kind);
    }

    /// Says something, or several things at once; says how many.
    fn chatter(&mut self, person: Option<&str>, kind: Kind) -> usize {
        match self.dice.random_range(0..100) {
            0..10 => {
                let burst = self.dice.random_range(3..9);
                for n in 0..burst {
                    self.say(person, "one of many", kind);
                    if n == burst / 2 {
                        self.book.signal(Moment::Bursting);
                    }
                }
                return burst;
            }
            10..24 => drop(self.say(person, SLOWLY, kind)),
            24..32 => drop(self.say(person, AT_LENGTH, kind)),
            32..40 => drop(self.say(person, WITH_A_TOOL, kind)),
            40..43 if person.is_none() && kind == Kind::Talk => {
                self.say(person, REFUSE, Kind::Refused);
            }
            43..47 if person.is_none() && kind == Kind::Talk => {
                self.command("/status", Kind::Status);
            }
            _ => drop(self.say(person, "hello", kind)),
        }
        1
    }

    fn misbehave(&mut self) -> usize {
        match self.dice.random_range(0..10) {
            0 | 1 => self.command("/stop", Kind::Control),
            2 => self.command("/new", Kind::Control),
            _ => return self.chatter(None, Kind::Unruly),
        }
        1
    }

    fn speak_in_vain(&self) -> usize {
        let person = Some(self.name.as_str());
        let number = self.vendor().say_in_group(LOBBY, &self.name, "is anybody there?");
        let saying = Saying { book: &self.book, platform: self.platform, chat: LOBBY, person };
        saying.note(number, Kind::Unheard);
        1
    }

    /// Says something that makes the model ask, waits for the question and answers it.
    async fn be_asked(&mut self) -> usize {
        let platform = self.platform;
        let chat = self.chats.last().expect("a chat was begun").clone();
        let vendors = self.vendors.clone();
        let set_aside = || {
            let is_it = |text: &str| text.contains("set it aside");
            vendors[platform]
                .read(|truth| truth.shown_in(&chat).filter(|shown| is_it(&shown.text)).count())
        };
        let before = set_aside();
        let token = self.say(None, ASK_ME, Kind::Talk);
        let name = token.to_string();
        let asked = || {
            vendors[platform].read(|truth| {
                let mut shown = truth.shown_in(&chat);
                let is_it = |text: &str| text.contains(QUESTION) && text.contains(&name);
                shown.find(|shown| is_it(&shown.text)).map(|shown| shown.choices.clone())
            })
        };
        // It can be set aside before it asks. Earlier messages may have been, too.
        let is_over = || set_aside() > before;
        let choices = loop {
            match asked() {
                Some(choices) => break choices,
                None if is_over() => {
                    // The next chat has a fresh start.
                    return CONVERSATION;
                }
                None => tokio::time::sleep(GLANCE).await,
            }
        };
        let number = match choices.get(self.dice.random_range(0..3)) {
            Some(choice) => self.vendor().press(&chat, &choice.id),
            None => self.vendor().say_plainly(&chat, "2"),
        };
        let saying = Saying { book: &self.book, platform, chat: &chat, person: None };
        saying.note(number, Kind::Press);
        // Whatever is said before the answer could be taken for another one.
        let answered = || {
            let texts: Vec<String> = vendors[platform]
                .read(|truth| truth.shown_in(&chat).map(|shown| shown.text.clone()).collect());
            let pages = self.book.pages();
            let mut words = texts.iter().flat_map(|text| words_in(text));
            words.any(|word| {
                pages.answers.get(word.answer).is_some_and(|answer| answer.tokens.contains(&token))
            })
        };
        while !answered() && !is_over() {
            tokio::time::sleep(GLANCE).await;
        }
        2
    }
}
