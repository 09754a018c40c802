//! How somebody unknown comes to be heard: a code, told one way and said back the other.
//!
//! A stranger's message gets a code, and the operator approves it; or an administrator makes a code,
//! and whoever says it first is let in. The book of an account is pure: time and chance are arguments.
//! Codes are kept as salted digests, compared in constant time, good for one hour and for one use.
//! Everything in the book has a bound, so nobody can make it grow.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};
use talaria_model::{Address, RoleId, Sender, SenderId, Timestamp, WITHHELD};

use crate::access::{Reach, Strangers};

/// What codes are made of: no letter or digit can be taken for another.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// How long a code is.
const LENGTH: usize = 8;

/// How long a code is good for.
pub const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// How often somebody may ask.
pub const ASK_EVERY: Duration = Duration::from_secs(10 * 60);

/// What whoever puts somebody out, or clears their request, is told of that.
pub const ASKED_LATELY: &str =
    "A stranger is answered once in ten minutes at most: who asked lately waits for another code.";

/// How many may ask at the same time. The oldest is not pushed out by the newest.
pub const MOST_REQUESTS: usize = 3;

/// How often the operator may mistype a code.
pub const MOST_FAILURES: u32 = 5;

/// How often one sender may say a wrong code.
pub const MOST_GUESSES: u32 = 5;

/// How often all of them together may, until every code is void. The limit is on the codes: whoever
/// guesses may have any number of names.
pub const MOST_GUESSES_OF_ALL: u32 = 100;

/// How long whoever failed too often is not listened to.
pub const LOCKOUT: Duration = Duration::from_secs(60 * 60);

/// How many codes of administrators may be out at the same time.
pub const MOST_ISSUED: usize = 16;

/// How many people can have been let in.
pub const MOST_GUESTS: usize = 4096;

/// How many senders are remembered who were let in by a list and have come. The rest comes without a record.
const MOST_MET: usize = 4096;

/// How many senders are remembered who asked lately. While there are so many, nobody else gets a code.
const MOST_REMEMBERED: usize = 1024;

/// How many senders are remembered who said wrong codes. One who is forgotten for others still counts
/// among all.
const MOST_GUESSERS: usize = 256;

/// The longest name that is kept of somebody, in characters.
const LONGEST_NAME: usize = 64;

/// Randomness for one code: its name, its salt, its letters.
#[derive(Clone, Copy)]
pub struct Chance(pub [u8; 32]);

/// A code as people are told it. It cannot be printed or written by accident. What tells it is
/// confidential, so that it is kept until it has been told and no longer; the book keeps its digest.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(String);

impl Code {
    fn of(chance: &[u8]) -> Self {
        // 256 is a multiple of 32, so every letter is as likely as the next.
        let letter = |byte: &u8| char::from(ALPHABET[usize::from(byte % 32)]);
        Self(chance.iter().take(LENGTH).map(letter).collect())
    }

    /// The code that a stranger says and nothing else: in one piece, as it was told, or in two halves with a dash
    /// between them, in letters of any size. Whoever says two words greets, and does not guess.
    pub fn said(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_halved = text.find('-') == Some(LENGTH / 2) && text.len() == LENGTH + 1;
        (text.len() == LENGTH || is_halved).then(|| Self::read(text)).flatten()
    }

    /// What somebody may mean who types a code: letters of any size, spaces and dashes between them.
    /// None if that cannot be one.
    pub fn read(typed: &str) -> Option<Self> {
        let mut code = String::with_capacity(LENGTH);
        for letter in typed.chars() {
            if letter.is_whitespace() || letter == '-' {
                continue;
            }
            let letter = letter.to_ascii_uppercase();
            let is_ours = u8::try_from(letter).is_ok_and(|byte| ALPHABET.contains(&byte));
            if !is_ours || code.len() == LENGTH {
                return None;
            }
            code.push(letter);
        }
        (code.len() == LENGTH).then_some(Self(code))
    }

    /// The letters, for the one line that tells somebody.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A text in which the code stands where it was [`WITHHELD`].
    pub fn told_in(&self, text: &str) -> String {
        text.replace(WITHHELD, &self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(…)")
    }
}

/// What somebody typed for a code. It is neither printed nor written down: written, it is empty.
/// Nobody needs it after a restart, which takes back every wish that was not carried out.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct TypedCode(String);

impl TypedCode {
    /// As it was typed.
    pub fn new(typed: impl Into<String>) -> Self {
        Self(typed.into())
    }

    /// As it was typed, for the one line that compares it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Serialize for TypedCode {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("")
    }
}

impl fmt::Debug for TypedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TypedCode(…)")
    }
}

/// A code as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Sealed {
    salt: String,
    digest: String,
}

impl Sealed {
    fn of(code: &Code, salt: &[u8]) -> Self {
        let salt = hex(salt);
        let digest = digest(&salt, code);
        Self { salt, digest }
    }

    fn opens(&self, code: &Code) -> Choice {
        digest(&self.salt, code).as_bytes().ct_eq(self.digest.as_bytes())
    }
}

fn digest(salt: &str, code: &Code) -> String {
    let digest = Sha256::new().chain_update(salt).chain_update(&code.0).finalize();
    hex(&digest)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Somebody who asks to be let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingRequest {
    /// Names the request. It says nothing about the code.
    pub id: String,
    /// Who.
    pub sender: SenderId,
    /// As they call themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where they are told.
    pub at: Address,
    /// When they asked.
    pub asked: Timestamp,
    /// Until when the code is good.
    pub expires: Timestamp,
    code: Sealed,
}

/// A code that an administrator has made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// Names it. It says nothing about the code.
    pub id: String,
    /// Who made it.
    pub by: String,
    /// The administrator who did; none where it was the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin: Option<Issuer>,
    /// Where whoever says it will be heard.
    pub reach: Reach,
    /// Until when it is good.
    pub expires: Timestamp,
    code: Sealed,
}

/// An administrator of an account who makes a code there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issuer {
    /// Who.
    pub sender: SenderId,
    /// Their roles on the platform, for which that vouches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleId>,
}

/// Somebody who was let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// As they called themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Since when.
    pub since: Timestamp,
    /// By whom.
    pub by: String,
    /// Where they are heard.
    pub reach: Reach,
}

/// Somebody who said a wrong code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Guesser {
    sender: SenderId,
    wrong: u32,
    last: Timestamp,
}

/// Who asks to be let in on an account and who was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestBook {
    requests: Vec<PairingRequest>,
    issued: Vec<Issued>,
    guests: BTreeMap<SenderId, Grant>,
    /// Who was answered lately, the latest last.
    answered: VecDeque<(SenderId, Timestamp)>,
    /// Codes that the operator mistyped in a row.
    failures: u32,
    locked_until: Option<Timestamp>,
    /// Who said wrong codes lately.
    guessers: Vec<Guesser>,
    /// Wrong codes that were said while those that are out are out.
    guesses: u32,
    /// Who was let in by a list and has come.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    met: BTreeSet<SenderId>,
}

/// What a stranger is told who has said something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This code.
    Code(Code),
    /// Too many others ask at the moment.
    Full,
    /// The code was right: they are let in.
    LetIn(Grant),
    /// Nothing.
    Silence(Silence),
}

/// Why a stranger is told nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// Strangers are ignored.
    Unwelcome,
    /// They were answered lately.
    Lately,
    /// Too many were.
    Crowded,
    /// The account gives out no codes for a while.
    Locked,
    /// They said a wrong code.
    Wrong,
    /// They said too many.
    Barred,
    /// That was one wrong code too many: every code that was out is void.
    Void,
}

/// Why the operator's wish is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No request has that code.
    #[error(
        "no open request has that code; {} and the account is locked for an hour",
        wrong_ones(*left)
    )]
    NoSuchCode {
        /// How often it may still be mistyped.
        left: u32,
    },
    /// Too many wrong codes.
    #[error(
        "too many wrong codes: pairing is locked until the hour is over; `talaria pair clear ACCOUNT` or \
         `/pair clear` ends that, and a code that you make and hand on works all the same"
    )]
    Locked {
        /// Until when.
        until: Timestamp,
    },
    /// That cannot be a code.
    #[error("that is no code: a code has 8 letters and digits")]
    NotACode,
    /// They are no administrator any more.
    #[error("you are no administrator any more")]
    NotYours,
    /// They are no administrator everywhere.
    #[error("you may let people in to direct chats only: in groups you are no administrator")]
    NotThatFar,
    /// Too many codes are out.
    #[error("too many codes are out already; wait, or clear them")]
    TooManyCodes,
    /// Too many people were let in.
    #[error("too many people have been let in already; revoke somebody first")]
    TooManyGuests,
}

fn wrong_ones(left: u32) -> String {
    match left {
        1 => "one more wrong one".to_owned(),
        left => format!("{left} more wrong ones"),
    }
}

/// What a book loses that is gone back to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lapsed {
    /// Requests and codes that were still good.
    pub codes: usize,
    /// Who was let in, and is not by now.
    pub put_out: Vec<SenderId>,
}

impl GuestBook {
    /// Who asks to be let in.
    pub fn requests(&self, now: Timestamp) -> impl Iterator<Item = &PairingRequest> {
        self.requests.iter().filter(move |request| request.expires > now)
    }

    /// Which codes of administrators are out.
    pub fn issued(&self, now: Timestamp) -> impl Iterator<Item = &Issued> {
        self.issued.iter().filter(move |issued| issued.expires > now)
    }

    /// Who was let in.
    pub fn guests(&self) -> impl Iterator<Item = (&SenderId, &Grant)> {
        self.guests.iter()
    }

    /// Where somebody is heard who was let in.
    pub fn reach(&self, sender: &SenderId) -> Option<Reach> {
        self.guests.get(sender).map(|grant| grant.reach)
    }

    /// Whether somebody whom a list lets in comes for the first time, as far as that is remembered.
    pub fn is_news(&self, sender: &SenderId) -> bool {
        self.met.len() < MOST_MET && !self.met.contains(sender)
    }

    /// Remembers that somebody has come whom a list lets in. Returns whether that was news.
    pub fn meet(&mut self, sender: &SenderId) -> bool {
        self.is_news(sender) && self.met.insert(sender.clone())
    }

    /// Until when the account gives out no codes and takes none from the operator.
    pub fn locked_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.locked_until.filter(|until| *until > now)
    }

    /// Whether what somebody says who is not let in would change nothing and be answered by nothing. It
    /// is cheap to know, because anybody can say anything any number of times.
    pub fn is_deaf_to(
        &self,
        sender: &SenderId,
        text: &str,
        strangers: Strangers,
        now: Timestamp,
    ) -> bool {
        self.silence_for(sender, text, strangers, now).is_some()
    }

    /// Why that is so, if it is.
    pub fn silence_for(
        &self,
        sender: &SenderId,
        text: &str,
        strangers: Strangers,
        now: Timestamp,
    ) -> Option<Silence> {
        if Code::said(text).is_some() && self.issued(now).next().is_some() {
            let is_barred = self.guessers.iter().any(|guesser| {
                let lately = guesser.last <= now && now < guesser.last + LOCKOUT;
                guesser.sender == *sender && guesser.wrong >= MOST_GUESSES && lately
            });
            return is_barred.then_some(Silence::Barred);
        }
        if strangers == Strangers::Ignore {
            return Some(Silence::Unwelcome);
        }
        let is_fresh = |at: Timestamp| at <= now && now < at + ASK_EVERY;
        let is_locked =
            self.locked_until.is_some_and(|until| until > now && until <= now + LOCKOUT);
        // They stand in the order of time: when the first and the last still count, so do all of them.
        let is_crowded = self.answered.len() >= MOST_REMEMBERED
            && self.answered.front().is_some_and(|(_, at)| is_fresh(*at))
            && self.answered.back().is_some_and(|(_, at)| is_fresh(*at));
        if is_locked {
            return Some(Silence::Locked);
        }
        if self.answered.iter().any(|(known, at)| known == sender && is_fresh(*at)) {
            return Some(Silence::Lately);
        }
        is_crowded.then_some(Silence::Crowded)
    }

    /// Somebody who is not let in has said something in a direct chat. A code that was handed on counts
    /// even where strangers are ignored.
    pub fn said(
        &mut self,
        (sender, at): (&Sender, &Address),
        text: &str,
        strangers: Strangers,
        chance: Chance,
        now: Timestamp,
    ) -> Answer {
        self.tidy(now);
        match (Code::said(text), strangers) {
            (Some(code), _) if !self.issued.is_empty() => self.redeem(sender, &code, now),
            (_, Strangers::Pair) => self.ask(sender, at, chance, now),
            (_, Strangers::Ignore) => Answer::Silence(Silence::Unwelcome),
        }
    }

    fn ask(&mut self, sender: &Sender, at: &Address, chance: Chance, now: Timestamp) -> Answer {
        if self.locked_until.is_some() {
            return Answer::Silence(Silence::Locked);
        }
        if self.answered.iter().any(|(known, _)| *known == sender.id) {
            return Answer::Silence(Silence::Lately);
        }
        if self.answered.len() >= MOST_REMEMBERED {
            return Answer::Silence(Silence::Crowded);
        }
        self.answered.push_back((sender.id.clone(), now));
        // Who asks again gets another code, and the first is void.
        self.requests.retain(|request| request.sender != sender.id);
        if self.requests.len() >= MOST_REQUESTS {
            return Answer::Full;
        }
        let (id, code, sealed) = mint(chance);
        self.requests.push(PairingRequest {
            id,
            sender: sender.id.clone(),
            name: sender.name.as_deref().map(shown),
            at: at.clone(),
            asked: now,
            expires: now + LIFETIME,
            code: sealed,
        });
        Answer::Code(code)
    }

    fn redeem(&mut self, sender: &Sender, code: &Code, now: Timestamp) -> Answer {
        let known = self.guessers.iter().position(|guesser| guesser.sender == sender.id);
        if known.is_some_and(|place| self.guessers[place].wrong >= MOST_GUESSES) {
            return Answer::Silence(Silence::Barred);
        }
        // Every code is looked at, so that time does not tell which one was nearly right.
        let right = opened(self.issued.iter().map(|issued| &issued.code), code);
        if let Some(place) = right.filter(|_| self.guests.len() < MOST_GUESTS) {
            let Issued { by, reach, .. } = self.issued.remove(place);
            self.guessers.retain(|guesser| guesser.sender != sender.id);
            let name = sender.name.as_deref().map(shown);
            let grant = Grant { name, since: now, by, reach };
            self.let_in(sender.id.clone(), grant.clone());
            return Answer::LetIn(grant);
        }
        self.guesses = self.guesses.saturating_add(1);
        match known {
            Some(place) => {
                let guesser = &mut self.guessers[place];
                (guesser.wrong, guesser.last) = (guesser.wrong.saturating_add(1), now);
            }
            None => {
                self.guessers.drain(..(self.guessers.len() + 1).saturating_sub(MOST_GUESSERS));
                self.guessers.push(Guesser { sender: sender.id.clone(), wrong: 1, last: now });
            }
        }
        if self.guesses >= MOST_GUESSES_OF_ALL {
            self.issued.clear();
            self.guesses = 0;
            return Answer::Silence(Silence::Void);
        }
        Answer::Silence(Silence::Wrong)
    }

    /// The operator lets in who was given this code.
    pub fn approve(
        &mut self,
        typed: &str,
        reach: Reach,
        by: &str,
        now: Timestamp,
    ) -> Result<PairingRequest, Refusal> {
        self.tidy(now);
        if let Some(until) = self.locked_until {
            return Err(Refusal::Locked { until });
        }
        let code = Code::read(typed).ok_or(Refusal::NotACode)?;
        let Some(place) = opened(self.requests.iter().map(|request| &request.code), &code) else {
            self.failures += 1;
            if self.failures >= MOST_FAILURES {
                let until = now + LOCKOUT;
                (self.failures, self.locked_until) = (0, Some(until));
                return Err(Refusal::Locked { until });
            }
            return Err(Refusal::NoSuchCode { left: MOST_FAILURES - self.failures });
        };
        if self.guests.len() >= MOST_GUESTS {
            return Err(Refusal::TooManyGuests);
        }
        self.failures = 0;
        let request = self.requests.remove(place);
        let name = request.name.clone();
        let grant = Grant { name, since: now, by: by.to_owned(), reach };
        self.let_in(request.sender.clone(), grant);
        Ok(request)
    }

    /// The operator makes a code to hand on.
    pub fn issue(
        &mut self,
        reach: Reach,
        by: &str,
        chance: Chance,
        now: Timestamp,
    ) -> Result<Code, Refusal> {
        self.issue_for(None, reach, by, chance, now)
    }

    /// The same for an administrator, whose code is good for as long as they are one.
    pub fn issue_for(
        &mut self,
        admin: Option<Issuer>,
        reach: Reach,
        by: &str,
        chance: Chance,
        now: Timestamp,
    ) -> Result<Code, Refusal> {
        self.tidy(now);
        if self.issued.len() >= MOST_ISSUED {
            return Err(Refusal::TooManyCodes);
        }
        let (id, code, sealed) = mint(chance);
        let expires = now + LIFETIME;
        self.issued.push(Issued { id, by: by.to_owned(), admin, reach, expires, code: sealed });
        Ok(code)
    }

    /// Forgets the codes of administrators who may let nobody in that far any more.
    pub fn void(&mut self, may_let_in: impl Fn(&Issuer, Reach) -> bool) {
        let is_good = |issued: &Issued| {
            issued.admin.as_ref().is_none_or(|admin| may_let_in(admin, issued.reach))
        };
        self.issued.retain(is_good);
    }

    /// Puts somebody out. What they asked for in the meantime goes with them.
    pub fn revoke(&mut self, sender: &SenderId) -> Option<Grant> {
        self.requests.retain(|request| request.sender != *sender);
        self.guests.remove(sender)
    }

    /// Forgets who asks and every code that is out; says how many those were. A lockout ends with that: what
    /// could be guessed is void.
    pub fn clear(&mut self, now: Timestamp) -> usize {
        let many = self.void_all(now);
        (self.failures, self.locked_until) = (0, None);
        many
    }

    fn void_all(&mut self, now: Timestamp) -> usize {
        self.tidy(now);
        let many = self.requests.len() + self.issued.len();
        self.requests.clear();
        self.issued.clear();
        self.guesses = 0;
        many
    }

    /// Makes this book, which is a copy of long ago, the one that counts. No code of it does: who used it
    /// since cannot be told. What the present book is stricter about stays so: who is not let in by it is
    /// not let in, nobody is heard in more places than by both, and who may not try still may not.
    pub fn go_back(&mut self, present: Option<&Self>, now: Timestamp) -> Lapsed {
        let codes = self.void_all(now);
        let Some(present) = present else { return Lapsed { codes, put_out: Vec::new() } };
        let mut put_out = Vec::new();
        self.guests.retain(|sender, grant| match present.reach(sender) {
            Some(Reach::Everywhere) => true,
            Some(Reach::Direct) => {
                grant.reach = Reach::Direct;
                true
            }
            None => {
                put_out.push(sender.clone());
                false
            }
        });
        self.failures = self.failures.max(present.failures);
        self.locked_until = self.locked_until.max(present.locked_until(now));
        self.guessers.clone_from(&present.guessers);
        self.answered.clone_from(&present.answered);
        self.met.clone_from(&present.met);
        Lapsed { codes, put_out }
    }

    fn let_in(&mut self, sender: SenderId, grant: Grant) {
        self.requests.retain(|request| request.sender != sender);
        self.guests.insert(sender, grant);
    }

    /// Forgets what is over. A moment that lies ahead was written by a clock that was set back since,
    /// and counts as over.
    fn tidy(&mut self, now: Timestamp) {
        let is_fresh = |at: Timestamp, time: Duration| at <= now && now < at + time;
        self.requests.retain(|request| is_fresh(request.asked, LIFETIME));
        self.issued.retain(|issued| issued.expires > now && issued.expires <= now + LIFETIME);
        self.answered.retain(|(_, at)| is_fresh(*at, ASK_EVERY));
        self.guessers.retain(|guesser| is_fresh(guesser.last, LOCKOUT));
        self.locked_until =
            self.locked_until.filter(|until| *until > now && *until <= now + LOCKOUT);
        if self.issued.is_empty() {
            self.guesses = 0;
        }
    }
}

fn mint(Chance(chance): Chance) -> (String, Code, Sealed) {
    let code = Code::of(&chance[24..]);
    let sealed = Sealed::of(&code, &chance[8..24]);
    (hex(&chance[..8]), code, sealed)
}

/// The place of the one that a code opens. All of them are tried.
fn opened<'a>(sealed: impl Iterator<Item = &'a Sealed>, code: &Code) -> Option<usize> {
    let mut right = None;
    for (place, sealed) in sealed.enumerate() {
        if bool::from(sealed.opens(code)) {
            right = Some(place);
        }
    }
    right
}

/// A name as an operator can be shown it: on one line, short, and without what hides or turns letters.
pub fn shown(name: &str) -> String {
    let hides = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
    };
    let visible: String = name.chars().filter(|c| !hides(*c)).take(LONGEST_NAME).collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
