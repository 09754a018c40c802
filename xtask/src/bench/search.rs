//! How fast a large store is searched: ten thousand conversations with a million entries, each reset once,
//! and questions of many kinds in scopes of every size.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use talaria_model::{
    AccountId, Address, Chat, ChatId, ChatKind, Cost, Entry, EntryBody, Extent, Sender, SenderId,
    SessionId, Source, Timestamp, Usage,
};
use talaria_session::{Origin, Retired, Rules, Session, SessionKey};
use talaria_store::{Commit, Owner, Retirement, SearchScope, Store, Wanted};
use talaria_store_sqlite::SqliteStore;

use super::language::{Dice, Language, WORDS, ideograph};

const SESSIONS: usize = 10_000;
const ENTRIES: u32 = 104;
const QUESTIONS: usize = 1_000;
const ACCOUNTS: usize = 4;
const PEOPLE: usize = 2_500;
const LIMIT: usize = 20;
const KINDS: usize = 10;
const HOUR: i64 = 60 * 60 * 1000;

/// How long questions took, in order of length.
pub(super) async fn ask(folder: &Path) -> Result<Vec<Duration>> {
    let place = tempfile::tempdir_in(folder)?;
    let store = SqliteStore::open(place.path())?;
    let language = Language::new(&mut Dice(1));
    fill(&store, &language).await?;
    record_last(&store, &language).await?;
    catch_up(&store).await?;
    let mut dice = Dice(99);
    let mut times = Vec::with_capacity(QUESTIONS);
    for number in 0..QUESTIONS {
        let text = question(&language, &mut dice, number);
        let wanted = Wanted::new(scope(&mut dice, number / KINDS), text, LIMIT);
        let begun = Instant::now();
        store.search(&wanted).await?;
        times.push(begun.elapsed());
    }
    times.sort();
    Ok(times)
}

fn id<T, E: std::fmt::Debug>(text: String, new: impl Fn(String) -> Result<T, E>) -> T {
    new(text).expect("an id")
}

fn person(number: usize) -> SenderId {
    id(format!("person-{}", number % PEOPLE), SenderId::new)
}

/// The conversation with this number. A person has several, in several chats.
fn key(number: usize) -> SessionKey {
    let (kind, member) = match number / PEOPLE % 4 {
        0 | 1 => (ChatKind::Dm, None),
        _ => (ChatKind::Group, Some(person(number))),
    };
    SessionKey {
        account: id(format!("account-{}", number % ACCOUNTS), AccountId::new),
        kind,
        chat: Some(id(format!("chat-{number}"), ChatId::new)),
        thread: None,
        member,
        side: None,
    }
}

/// The session in that conversation, in one of its lives.
fn session(language: &Language, dice: &mut Dice, number: usize, life: u32, at: i64) -> Session {
    let (key, at) = (key(number), Timestamp::from_millis(at));
    let chat = Chat { id: key.chat.clone().expect("a chat"), kind: key.kind };
    let place = Address { account: key.account.clone(), chat, thread: None };
    let from = Sender::new(person(number));
    let origin = Origin { from, at: place.clone(), source: Source::default() };
    let mut session = Session::begin(key, place, at, Rules::default());
    session.origin = Some(Arc::new(origin));
    session.id = id(format!("2026{life:04}_{number:06}_0badcafe"), SessionId::new);
    session.title = language.text(dice, 4);
    session
}

fn entry(language: &Language, dice: &mut Dice, number: u32, at: i64) -> Entry {
    let many = if number % 2 == 1 { 4 + dice.below(24) } else { 12 + dice.below(90) };
    let text = language.text(dice, many);
    let body = if number % 2 == 1 {
        let from = Sender::named(SenderId::literal("person"), "A Person");
        EntryBody::Said {
            from,
            text,
            files: Vec::new(),
            heard: None,
            message: None,
            forwarded: None,
        }
    } else {
        EntryBody::Answered {
            text,
            files: Vec::new(),
            calls: Vec::new(),
            reasoning: None,
            usage: Usage { input: 1000, output: 100, ..Usage::default() },
            cost: Cost::known(900),
            sent: None,
            extent: Extent::Whole,
        }
    };
    Entry {
        number,
        at: Timestamp::from_millis(at),
        turn: None,
        body,
        because: None,
        about: None,
        resumed: None,
    }
}

/// Two lives in four visits each, so that conversations interleave as they do. Each is reset once.
async fn fill(store: &SqliteStore, language: &Language) -> Result<()> {
    let mut dice = Dice(7);
    let share = ENTRIES / 8;
    for visit in 0..8u32 {
        for number in 0..SESSIONS {
            let at = i64::from(visit) * HOUR + number as i64;
            let session = session(language, &mut dice, number, visit / 4, at);
            let mut commit = Commit::of(session.clone(), Timestamp::from_millis(at));
            if visit == 4 {
                let past = self::session(language, &mut dice, number, 0, at).past();
                commit.retired = Some(Retirement { past, why: Retired::New });
            }
            let from = share * (visit % 4);
            let numbers = from + 1..=from + share;
            commit.entries =
                numbers.map(|n| (session.id.clone(), entry(language, &mut dice, n, at))).collect();
            store.commit(commit).await?;
        }
    }
    Ok(())
}

/// One question of each kind in turn.
fn question(language: &Language, dice: &mut Dice, number: usize) -> String {
    match number % KINDS {
        // A rare word, a usual one, a common one.
        0 => language.between(dice, 20_000, WORDS).into(),
        1 => language.between(dice, 200, 5_000).into(),
        2 => language.between(dice, 0, 40).into(),
        3 => format!("{} {}", language.between(dice, 0, 60), language.between(dice, 0, 60)),
        4 => {
            format!("{} {}", language.between(dice, 100, 2_000), language.between(dice, 100, 2_000))
        }
        5 => format!("{} {}", language.between(dice, 0, 40), language.between(dice, 10_000, WORDS)),
        // The beginning of a word, and a part of one.
        6 => language.between(dice, 500, WORDS).chars().take(4).collect(),
        7 => loop {
            let word = language.between(dice, 500, WORDS);
            if word.len() >= 7 {
                break word[1..6].into();
            }
        },
        8 => (0..2).map(|_| ideograph(dice)).collect(),
        // What nobody said.
        _ => format!("zqx{:x}", dice.next() >> 40),
    }
}

fn scope(dice: &mut Dice, number: usize) -> SearchScope {
    let of = dice.below(SESSIONS);
    let key = key(of);
    match number % 4 {
        0 => SearchScope::Conversation(key),
        1 => SearchScope::Owner(Owner::Person { account: key.account, person: person(of) }),
        2 => SearchScope::Accounts(vec![key.account]),
        _ => SearchScope::Everything,
    }
}

/// The last entry says this.
const LAST: &str = "zqxlast";

async fn record_last(store: &SqliteStore, language: &Language) -> Result<()> {
    let session = session(language, &mut Dice(8), 0, 1, 8 * HOUR);
    let mut last = entry(language, &mut Dice(8), u32::MAX, 8 * HOUR);
    last.body = EntryBody::Aside {
        from: Sender::new(person(0)),
        text: LAST.into(),
        files: Vec::new(),
        message: None,
    };
    let mut commit = Commit::of(session.clone(), last.at);
    commit.entries.push((session.id, last));
    store.commit(commit).await?;
    Ok(())
}

/// Asks until the index has taken up everything.
async fn catch_up(store: &SqliteStore) -> Result<()> {
    let last = Wanted::new(SearchScope::Everything, LAST, 1);
    while store.search(&last).await?.is_empty() {}
    Ok(())
}
