//! What goes wrong: answers that are lost, late or "no", and connections that break.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use talaria_testkit::mentioned;
use talaria_testkit::scripted::{Fault, Reply};
use talaria_testkit::vendors::slack::Told;
use talaria_testkit::vendors::{Act, Verb};
use tokio::sync::watch;
use tokio::time::Instant;

use super::limits::{Meter, later};
use super::places::{DISCORD, SLACK, TELEGRAM, Vendors};
use crate::soak::book::Book;
use crate::soak::check::is_marked;

/// How the vendors behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// As documented.
    Good,
    /// They also lose, delay and refuse.
    Bad,
}

/// What was counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// What went wrong without anybody having asked too much.
    pub(crate) faults: AtomicUsize,
    /// Who was refused because of having asked too much.
    pub(crate) refused: Mutex<HashMap<(&'static str, Verb), usize>>,
    /// Connections that broke.
    pub(crate) broken: AtomicUsize,
}

/// Makes the vendors behave like this from here on.
pub(crate) fn set(vendors: &Vendors, mood: Mood, book: &Book, tally: &Arc<Tally>, seed: u64) {
    let conduct = |account: &'static str, salt: u64| {
        let (book, tally) = (book.clone(), tally.clone());
        let dice = Mutex::new(StdRng::seed_from_u64(seed ^ salt << 40));
        let mut meter = Meter::default();
        let mut wronged = HashSet::new();
        move |act: &Act| {
            if let Err(wait) = meter.take(account, act, Instant::now()) {
                note(&book, account, act, "asked too much");
                let mut refused = tally.refused.lock().expect("nobody panics with it");
                *refused.entry((account, act.verb)).or_default() += 1;
                return Some(Fault::Instead(later(account, wait)));
            }
            let mut dice = dice.lock().expect("nobody panics with it");
            let fault = match mood {
                Mood::Good => None,
                Mood::Bad => decide(account, act, &mut dice, &mut wronged),
            };
            let what = match &fault {
                None => "done".to_owned(),
                Some(fault) => outline(fault),
            };
            if fault.as_ref().is_some_and(|fault| !matches!(fault, Fault::Slowly(_))) {
                tally.faults.fetch_add(1, Ordering::Relaxed);
            }
            note(&book, account, act, &what);
            fault
        }
    };
    vendors.telegram.conduct(conduct(TELEGRAM, 1));
    vendors.discord.rest.conduct(conduct(DISCORD, 2));
    vendors.slack.http.conduct(conduct(SLACK, 3));
}

fn note(book: &Book, account: &'static str, act: &Act, what: &str) {
    if !matches!(act.verb, Verb::Post | Verb::Edit | Verb::Delete) {
        return;
    }
    let mark = if is_marked(&act.text) { ", marked" } else { "" };
    let verb = act.verb;
    let about = act.message.as_deref().unwrap_or_default();
    let words = crate::soak::book::words_in(&act.text);
    let part = words.first().zip(words.last()).map(|(first, last)| format!(" {first} to {last}"));
    let line = format!("{verb:?} {about}{}{mark}: {what}", part.unwrap_or_default());
    book.log(account, &act.chat, mentioned(&act.text), line);
}

fn outline(fault: &Fault) -> String {
    let reply = |reply: &Reply| match reply {
        Reply::Answer { status, .. } => status.to_string(),
        Reply::Cut => "cut".to_owned(),
        Reply::Silence => "silence".to_owned(),
    };
    match fault {
        Fault::Instead(instead) => format!("not done, {}", reply(instead)),
        Fault::Afterwards(after) => format!("done, {}", reply(after)),
        Fault::Slowly(wait) => format!("done after {wait:?}"),
    }
}

/// Each act is lost, or its receipt, at most once, and a marked one is always shown.
fn decide(
    account: &str,
    act: &Act,
    dice: &mut StdRng,
    wronged: &mut HashSet<(String, String)>,
) -> Option<Fault> {
    let roll = dice.random_range(0..1000);
    if act.verb == Verb::Listen {
        return (roll < 30).then(|| match roll % 3 {
            0 => Fault::Instead(Reply::status(502, "<html>Bad Gateway</html>")),
            1 => Fault::Instead(later(account, Duration::from_secs(1))),
            _ => Fault::Instead(Reply::Cut),
        });
    }
    if !matches!(act.verb, Verb::Post | Verb::Edit | Verb::Draft | Verb::Sign) {
        return None;
    }
    let fault = match roll {
        0..30 => Fault::Instead(later(account, Duration::from_secs(1))),
        30..98 if is_marked(&act.text) => return None,
        30..50 => Fault::Instead(outage(account)),
        50..65 => Fault::Afterwards(outage(account)),
        65..75 => Fault::Instead(Reply::Cut),
        75..90 => Fault::Afterwards(Reply::Cut),
        90..93 => Fault::Instead(Reply::Silence),
        93..98 => Fault::Afterwards(Reply::Silence),
        98..350 => return Some(Fault::Slowly(Duration::from_millis(dice.random_range(5..250)))),
        _ => return None,
    };
    wronged.insert((act.chat.clone(), act.text.clone())).then_some(fault)
}

fn outage(account: &str) -> Reply {
    match account {
        TELEGRAM => Reply::status(502, "<html>Bad Gateway</html>"),
        DISCORD => Reply::status(503, "upstream connect error"),
        _ => Reply::json(&json!({ "ok": false, "error": "internal_error" })),
    }
}

/// How far connections may be broken.
pub(crate) struct Reach<Known> {
    /// Whether every chat has been heard of. Before, no session is forgotten: nobody can list a bot's
    /// direct chats on Discord.
    pub(crate) known: Known,
    /// For how long people talk. A connection that is there and says nothing is noticed after half a
    /// minute.
    pub(crate) time: Duration,
}

/// Breaks connections until there is quiet.
pub(crate) async fn disturb(
    vendors: Arc<Vendors>,
    tally: Arc<Tally>,
    reach: Reach<impl Fn() -> bool>,
    mut quiet: watch::Receiver<bool>,
    seed: u64,
) {
    let mut dice = StdRng::seed_from_u64(seed ^ 0x33);
    let can_wait = reach.time >= Duration::from_secs(60);
    loop {
        let wait = Duration::from_millis(dice.random_range(1_500..4_000));
        if tokio::time::timeout(wait, quiet.wait_for(|quiet| *quiet)).await.is_ok() {
            return;
        }
        if !vendors.is_connected() {
            continue;
        }
        tally.broken.fetch_add(1, Ordering::Relaxed);
        let linked = || vendors.slack.world.lock().connections.iter().any(|one| one.open);
        match dice.random_range(0..8) {
            0 => vendors.discord.close(4000),
            1 => vendors.discord.write(json!({ "op": 7, "d": null }).to_string()),
            2 if (reach.known)() => {
                vendors.discord.truth().forgets = true;
                vendors.discord.close(4000);
            }
            // It is there and says nothing any more.
            3 if can_wait => {
                vendors.discord.truth().answers = false;
                tokio::time::sleep(Duration::from_secs(12)).await;
                vendors.discord.truth().answers = true;
            }
            4 | 5 if linked() => {
                let notice = json!({ "type": "disconnect", "reason": "refresh_requested" });
                vendors.slack.world.tell(Told::Text(notice.to_string()));
            }
            6 if linked() => drop(vendors.slack.world.tell(Told::Close)),
            7 if can_wait && linked() => drop(vendors.slack.world.tell(Told::Freeze)),
            _ => {}
        }
    }
}
