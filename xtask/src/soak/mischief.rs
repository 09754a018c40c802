//! The platforms of the soak: what each can do, and what it does wrong.

use std::collections::HashSet;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use talaria_testkit::{Act, Conduct, Refusal, Vendor, VendorSettings, mentioned};

use super::book::{Book, words_in};
use super::check::is_marked;
use super::protocol::Moment;

/// A platform of the soak.
pub(super) struct Platform {
    pub(super) name: &'static str,
    pub(super) settings: VendorSettings,
    /// Lines for the account.
    pub(super) lines: &'static [&'static str],
}

/// Every way in which repeats are dealt with: seen and marked, edited, recognised, and where there is
/// only room for a short mark. One delivers again what was acknowledged.
pub(super) const PLATFORMS: [Platform; 4] = [
    Platform {
        name: "plain",
        settings: VendorSettings { keyed: false, redelivers: 0 },
        lines: &["text_limit: 700"],
    },
    Platform {
        name: "editing",
        settings: VendorSettings { keyed: false, redelivers: 0 },
        lines: &["text_limit: 700", "edits_every: 20", "buttons: 4"],
    },
    Platform {
        name: "keyed",
        settings: VendorSettings { keyed: true, redelivers: 0 },
        lines: &["text_limit: 900", "edits_every: 30", "keyed: true", "buttons: 4"],
    },
    Platform {
        name: "short",
        settings: VendorSettings { keyed: false, redelivers: 7 },
        lines: &["text_limit: 200"],
    },
];

/// Lets a platform misbehave, and keeps a record of what it is asked.
///
/// Each act is lost, or its receipt, at most once, and a marked one is always shown: who resends after
/// each death and once after each doubt has then shown everything.
pub(super) fn corrupt(vendor: &Vendor, platform: &Platform, book: &Book, seed: u64) {
    let (name, book) = (platform.name, book.clone());
    let mut dice = StdRng::seed_from_u64(seed);
    let mut wronged = HashSet::new();
    vendor.script(move |act| {
        let conduct = decide(act, &mut dice, &mut wronged);
        record(name, act, &conduct, &book);
        conduct
    });
}

/// Lets a platform do everything it is asked, and keeps a record of it.
pub(super) fn behave(vendor: &Vendor, platform: &Platform, book: &Book) {
    let (name, book) = (platform.name, book.clone());
    vendor.script(move |act| {
        record(name, act, &Conduct::Does, &book);
        Conduct::Does
    });
}

fn decide(act: &Act, dice: &mut StdRng, wronged: &mut HashSet<String>) -> Conduct {
    let roll = dice.random_range(0..100);
    let conduct = match roll {
        0..4 => Conduct::DoesAndHangsUp,
        4..7 if !is_marked(&act.text) => Conduct::LosesAndHangsUp,
        7..10 if !is_marked(&act.text) => Conduct::DoesSilently,
        10..12 if !is_marked(&act.text) => Conduct::LosesSilently,
        12..15 => Conduct::Refuses(Refusal::Throttled { seconds: 1 }),
        15..22 => return Conduct::DoesAfter(Duration::from_millis(dice.random_range(1..25))),
        _ => return Conduct::Does,
    };
    if wronged.insert(act.id.clone()) { conduct } else { Conduct::Does }
}

fn record(account: &'static str, act: &Act, conduct: &Conduct, book: &Book) {
    let now = book.now();
    let mut pages = book.pages();
    pages.first_act(now);
    let mut tokens = mentioned(&act.text);
    let words = words_in(&act.text);
    for answer in words.iter().filter_map(|word| pages.answers.get(word.answer)) {
        tokens.extend(
            answer
                .tokens
                .iter()
                .filter(|token| !tokens.contains(token))
                .copied()
                .collect::<Vec<_>>(),
        );
    }
    let wrong = !matches!(conduct, Conduct::Does | Conduct::DoesAfter(_));
    pages.faults += usize::from(wrong);
    drop(pages);
    let kind = if act.edits.is_some() { "edit" } else { "post" };
    let part = words.first().zip(words.last()).map(|(first, last)| format!(" {first} to {last}"));
    let mark = if is_marked(&act.text) { ", marked" } else { "" };
    let what = format!("{kind} {}{}{mark}: {conduct:?}", act.id, part.unwrap_or_default());
    book.log(account, &act.chat, tokens, what);
    book.signal(Moment::Sent);
}
