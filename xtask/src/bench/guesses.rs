//! Strangers guess pairing codes without end, while people who may are answered on the same account.
//!
//! Half of the guesses come from a few senders, half of them each from another one. They are told as fast as the
//! gateway takes them in, on the connection on which everybody else is heard. An operator makes codes meanwhile,
//! so that there is something to be guessed.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use talaria_testkit::{Vendor, within};
use tokio::time::{Instant, sleep};

use super::figures::Guesses;
use super::gateway::{ACCOUNT, Bench, Opened};
use super::serving::{PEOPLE, chat, served};

/// Nothing here takes this long unless it hangs.
const HANGS: Duration = Duration::from_secs(600);

/// How often it is guessed.
pub(super) const USUAL: usize = 1_000_000;

/// Fewer guesses than this are for trying the benchmark itself.
const FEW_GUESSES: usize = 100_000;

/// How long people are served before anybody guesses.
const QUIET: Duration = Duration::from_secs(12);

/// Between two codes of the operator.
const CODES_EVERY: Duration = Duration::from_secs(2);

/// How many senders guess in the first half.
const FEW: usize = 8;

/// Guesses that may be told and not taken in: whoever may waits behind no more than these.
const AHEAD: u64 = 256;

/// What codes are made of.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// What a person is told who is let in.
const WELCOME: &str = "Paired!";

#[derive(Args)]
pub(crate) struct Options {
    /// How many guesses
    #[arg(long, default_value_t = USUAL)]
    pub(super) guesses: usize,
}

impl Options {
    /// Whether it is only tried, which any binary will do for.
    pub(super) fn is_small(&self) -> bool {
        self.guesses < FEW_GUESSES
    }
}

/// How people who may are answered, in quiet and while others guess.
pub(super) async fn measure(bench: &Bench<'_>, guesses: usize) -> Result<Guesses> {
    let people: Vec<String> =
        (0..PEOPLE).map(|number| format!("{}-person", chat(number))).collect();
    let opened = bench.open_to(&people).await?;
    served(&opened, sleep(QUIET / 4)).await?;
    let stored_first = opened.stored()?;
    let quiet = served(&opened, sleep(QUIET)).await?;
    let (resident, stored) = (opened.usage()?.most_resident, opened.stored()?);

    let begun = Instant::now();
    let mut codes = Vec::new();
    let guessing = tokio::spawn(guess(opened.vendor().clone(), guesses));
    let ended = async {
        let issuing = async {
            loop {
                codes.extend(issue(bench, &opened).await);
                sleep(CODES_EVERY).await;
            }
        };
        tokio::select! {
            _ = guessing => {}
            never = issuing => never,
        }
    };
    let guessed = served(&opened, ended).await?;
    let took = begun.elapsed();
    let (most_resident, stored_last) = (opened.usage()?.most_resident, opened.stored()?);

    let is_welcomed = |opened: &Opened| {
        opened.vendor().read(|truth| truth.shown().iter().any(|shown| shown.text.contains(WELCOME)))
    };
    ensure!(!is_welcomed(&opened), "a guess was right");
    let listed = bench.command(&opened, &["pair", "list", ACCOUNT, "--json"]).await?;
    ensure!(!listed.contains("\"since\""), "a guess let somebody in: {listed}");
    // Who was handed a code is let in behind all of that.
    bench.command(&opened, &["pair", "clear", ACCOUNT]).await?;
    let code = issue(bench, &opened).await;
    let code = code.ok_or_else(|| anyhow::anyhow!("no code is made after the guesses"))?;
    says(opened.vendor(), "newcomer", &code);
    let welcomed = opened
        .vendor()
        .until(|truth| truth.shown_in("newcomer").any(|shown| shown.text.contains(WELCOME)));
    within(Duration::from_secs(60), "the newcomer to be let in", welcomed).await;
    opened.end().await?;

    // What people who may have said is stored as well, and is no guess.
    let by_turn = stored.saturating_sub(stored_first) as f64 / quiet.turns.max(1) as f64;
    let by_turns = (by_turn * guessed.turns as f64) as u64;
    Ok(Guesses {
        quiet,
        guessed,
        tried: (guesses, took),
        codes: codes.len(),
        resident,
        most_resident,
        stored: stored_last,
        stored_by_guesses: stored_last.saturating_sub(stored).saturating_sub(by_turns),
    })
}

/// A code that the operator makes; none while too many are out.
async fn issue(bench: &Bench<'_>, opened: &Opened) -> Option<String> {
    let printed = bench.command(opened, &["pair", "issue", ACCOUNT]).await.ok()?;
    let is_code = |word: &&str| word.len() == 8 && word.bytes().all(|it| ALPHABET.contains(&it));
    let words = printed.split(|c: char| !c.is_ascii_alphanumeric());
    words.into_iter().find(is_code).map(str::to_owned)
}

/// Guesses as fast as the gateway takes it in.
async fn guess(vendor: Arc<Vendor>, guesses: usize) {
    for number in 0..guesses {
        let sender = match number < guesses / 2 {
            true => format!("few{}", number % FEW),
            false => format!("many{number}"),
        };
        let chance: u64 = rand::random();
        let letter = |place: u32| char::from(ALPHABET[(chance >> (5 * place)) as usize % 32]);
        let code: String = (0..8).map(letter).collect();
        says(&vendor, &sender, &code);
        if (number as u64).is_multiple_of(AHEAD / 2) {
            taken_in(&vendor, AHEAD / 2).await;
        }
    }
    taken_in(&vendor, 0).await;
}

fn says(vendor: &Vendor, who: &str, text: &str) {
    vendor.happens(who, text, |event| event.sender = who.to_owned());
}

/// Waits until no more than so many of the events that have happened are not taken in.
async fn taken_in(vendor: &Vendor, but: u64) {
    let happened = vendor.read(|truth| truth.happened());
    let taken = vendor.until(|truth| truth.acked() + but >= happened);
    within(HANGS, "guesses to be taken in", taken).await;
}
