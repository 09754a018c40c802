//! People: what they say, and how they answer when they are asked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use talaria_model::{Address, Author, ChoiceId, InboundKind, MediaKind, Message, SenderId};

use crate::sim::check::Origin;
use crate::sim::{Files, Life, MEDDLER, Vendor};
use crate::{Dice, Token, mentioned};

/// What somebody says or does of their own accord.
#[derive(Debug, Clone)]
pub(super) struct Speech {
    /// At which vendor.
    pub(super) vendor: usize,
    /// Who.
    pub(super) who: String,
    /// Where.
    pub(super) at: Address,
    /// What.
    pub(super) what: Saying,
}

/// What can be said.
#[derive(Debug, Clone)]
pub(super) enum Saying {
    /// Words for the agent, among them this one.
    Words(&'static str),
    /// The same, by a command that says what is to become of it.
    By(&'static str),
    /// Words of somebody else.
    PassedOn(&'static str),
    /// Words with a file.
    WithFile,
    /// Words with a file that has to be fetched.
    WithMedia,
    /// A command.
    Command(&'static str),
    /// The stop button.
    Stop,
    /// The platform delivers something old again.
    Replay,
}

/// People, and what they said so far.
pub(super) struct People {
    pub(super) said: BTreeMap<Token, Origin>,
    dice: Dice,
    last: u64,
    /// What of each vendor's changes they have looked at.
    looked: Vec<u64>,
    /// Questions they have read.
    read: BTreeSet<(usize, String)>,
    /// What they are about to do.
    about: Vec<(Duration, usize, String, Address, Reaction)>,
}

#[derive(Debug, Clone)]
enum Reaction {
    Press(ChoiceId),
    Type(&'static str),
    Tell,
}

impl People {
    pub(super) fn new(dice: Dice, vendors: usize) -> Self {
        Self {
            said: BTreeMap::new(),
            dice,
            last: 0,
            looked: vec![0; vendors],
            read: BTreeSet::new(),
            about: Vec::new(),
        }
    }

    /// Somebody speaks.
    pub(super) fn speak(&mut self, vendor: &Vendor, files: &Files, speech: &Speech) {
        let who = speech.who.as_str();
        match &speech.what {
            Saying::Words(verb) => {
                let token = self.token(who, &speech.at);
                let text = match *verb {
                    "" => format!("hello from {who} {token}"),
                    verb => format!("please {verb} for {who} {token}"),
                };
                self.does(vendor, who, &speech.at, text, vec![]);
            }
            Saying::By(command) => {
                let token = self.token(who, &speech.at);
                let text = format!("{command} hello from {who} {token}");
                self.does(vendor, who, &speech.at, text, vec![]);
            }
            Saying::PassedOn(words) => {
                let text = format!("{words} {}", self.token(who, &speech.at));
                let forwarded = Some(Author::Named("Eve".into()));
                let message = Message { text, forwarded, ..Message::default() };
                vendor.does(who, speech.at.clone(), InboundKind::Said(message));
            }
            Saying::WithFile => {
                let token = self.token(who, &speech.at);
                let inside = self.token(who, &speech.at);
                let file = files.put("note.txt", format!("inside is {inside}").as_bytes());
                self.does(vendor, who, &speech.at, format!("a file {token}"), vec![file]);
            }
            Saying::WithMedia => {
                let token = self.token(who, &speech.at);
                let media = vendor.keep(MediaKind::Document, "note.txt", b"nothing in particular");
                let text = format!("a file {token}");
                let around = vendor.keep(MediaKind::Document, "around", b"what was said before");
                let surroundings = self.dice.one_in(2).then_some(around.handle);
                let message =
                    Message { text, media: vec![media], surroundings, ..Message::default() };
                vendor.does(who, speech.at.clone(), InboundKind::Said(message));
            }
            Saying::Command(command) => {
                self.does(vendor, who, &speech.at, (*command).into(), vec![]);
            }
            Saying::Stop => {
                vendor.does(who, speech.at.clone(), InboundKind::Stopped);
            }
            Saying::Replay => {
                let ids: Vec<_> = vendor
                    .truth(|truth| truth.happened.iter().map(|event| event.id.clone()).collect());
                if !ids.is_empty() {
                    vendor.repeat(self.dice.pick(&ids));
                }
            }
        }
    }

    fn does(
        &mut self,
        vendor: &Vendor,
        who: &str,
        at: &Address,
        text: String,
        files: Vec<talaria_model::FileRef>,
    ) {
        let message = Message { text, files, ..Message::default() };
        vendor.does(who, at.clone(), InboundKind::Said(message));
    }

    fn token(&mut self, who: &str, at: &Address) -> Token {
        self.last += 1;
        let token = Token(self.last);
        let from = SenderId::new(who).expect("a sender");
        self.said.insert(token, Origin { from, at: at.clone() });
        token
    }

    /// Looks at what is new on all screens; whoever is asked something thinks of an answer.
    pub(super) fn look(&mut self, life: &Life) {
        for (place, vendor) in life.vendors.iter().enumerate() {
            let news: Vec<_> = vendor.truth(|truth| {
                let is_new = |changed: u64| changed > self.looked[place];
                let new = truth.shown.iter().filter(|shown| is_new(shown.changed));
                new.map(|shown| (shown.to.clone(), shown.content.clone(), shown.changed)).collect()
            });
            for (at, content, changed) in news {
                self.looked[place] = self.looked[place].max(changed);
                let begs = content.text.contains("May I call");
                let asks = begs
                    || content.text.contains("Which one for")
                    || content.text.contains("What about");
                let Some(token) = mentioned(&content.text).first().copied().filter(|_| asks) else {
                    continue;
                };
                let kind = match begs {
                    true => "may",
                    false if content.text.contains("Which") => "which",
                    false => "what",
                };
                let is_news = self.read.insert((place, format!("{kind} {token}")));
                if let Some(origin) = self.said.get(&token).cloned().filter(|_| is_news) {
                    let choice = match content.choices.as_slice() {
                        [] => None,
                        choices if begs => Some(self.dice.pick(choices).id.clone()),
                        [first, ..] => Some(first.id.clone()),
                    };
                    if begs {
                        self.decide(life, place, &origin, &at, choice);
                        continue;
                    }
                    let numbered = content.text.contains("1.");
                    self.think(life, place, &origin, &at, choice, numbered);
                }
            }
        }
    }

    fn think(
        &mut self,
        life: &Life,
        vendor: usize,
        asked: &Origin,
        at: &Address,
        choice: Option<ChoiceId>,
        numbered: bool,
    ) {
        let now = life.ground.time.elapsed();
        let who = asked.from.to_string();
        let soon = |dice: &mut Dice| now + Duration::from_millis(dice.below(20_000));
        let reaction = |dice: &mut Dice| match &choice {
            Some(choice) if !dice.one_in(4) => Reaction::Press(choice.clone()),
            _ if numbered && !dice.one_in(3) => Reaction::Type("1"),
            _ => Reaction::Tell,
        };
        let dice = &mut self.dice;
        if dice.one_in(6) {
            // Somebody else thinks that they are meant.
            let at_ = at.clone();
            let meddler = (soon(dice), vendor, MEDDLER.to_owned(), at_, reaction(dice));
            if matches!(meddler.4, Reaction::Press(_)) {
                self.about.push(meddler);
            }
        }
        if dice.one_in(8) {
            return;
        }
        let times = if dice.one_in(6) { 2 } else { 1 };
        for _ in 0..times {
            let doing = (soon(dice), vendor, who.clone(), at.clone(), reaction(dice));
            self.about.push(doing);
        }
    }

    /// Somebody is asked whether something may be done, and says one thing or another, or nothing. So may
    /// others, whom nobody asked.
    fn decide(
        &mut self,
        life: &Life,
        vendor: usize,
        asked: &Origin,
        at: &Address,
        choice: Option<ChoiceId>,
    ) {
        let now = life.ground.time.elapsed();
        let words = [
            "yes",
            "yes",
            "👍",
            "no",
            "/approve",
            "/approve session",
            "/approve always",
            "/deny no",
        ];
        let mut about = |dice: &mut Dice, who: String| {
            let soon = now + Duration::from_millis(dice.below(20_000));
            let reaction = match &choice {
                Some(choice) if !dice.one_in(3) => Reaction::Press(choice.clone()),
                _ if dice.one_in(6) => Reaction::Tell,
                _ => {
                    let word: &'static str = dice.pick::<&str>(&words);
                    Reaction::Type(word)
                }
            };
            self.about.push((soon, vendor, who, at.clone(), reaction));
        };
        if self.dice.one_in(3) {
            about(&mut self.dice, MEDDLER.to_owned());
        }
        if !self.dice.one_in(6) {
            about(&mut self.dice, asked.from.to_string());
        }
    }

    /// When somebody will do something next.
    pub(super) fn next(&self) -> Option<Duration> {
        self.about.iter().map(|(at, ..)| *at).min()
    }

    /// Does what is due.
    pub(super) fn act(&mut self, life: &Life) {
        let now = life.ground.time.elapsed();
        while let Some(place) = self.about.iter().position(|(at, ..)| *at <= now) {
            let (_, vendor, who, at, reaction) = self.about.remove(place);
            let vendor = &life.vendors[vendor];
            match reaction {
                Reaction::Press(choice) => {
                    vendor.does(&who, at, InboundKind::Pressed(choice));
                }
                Reaction::Type(text) => self.does(vendor, &who, &at, text.into(), vec![]),
                Reaction::Tell => {
                    let token = self.token(&who, &at);
                    self.does(vendor, &who, &at, format!("blue I say {token}"), vec![]);
                }
            }
        }
    }
}
