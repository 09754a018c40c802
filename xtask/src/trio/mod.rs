//! `cargo xtask trio`: the release binary with Telegram, Discord and Slack at once.
//!
//! The vendors are loopback servers that speak the documented wire formats and keep the truth; people
//! talk on all three while answers stream, vendors fail, connections break and the gateway is killed.
//! At the end everything heals, the world comes to rest, and what people can read is judged by the
//! soak's judge, what the vendors were asked by what they document.
#![allow(clippy::disallowed_methods, reason = "a run lives in real time and in tasks of its own")]

mod limits;
mod mischief;
mod people;
pub(crate) mod places;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use talaria_testkit::vendors::{Call, Verb};
use talaria_testkit::{FakeLlm, GatewayProcess, Home, Launch, Token};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::shell;
use crate::soak::book::Book;
use crate::soak::check::{self, Evidence};
use crate::soak::protocol::Moment;
use crate::soak::{database, model};
use mischief::{Mood, Tally};
use people::People;
use places::Vendors;

/// Nothing takes this long unless it hangs.
const HANGS: Duration = Duration::from_secs(60);

/// How long the world may take to come to rest when nothing goes wrong any more.
const PATIENCE: Duration = Duration::from_secs(420);

/// How often it is looked whether it has.
const GLANCE: Duration = Duration::from_millis(300);

/// How often the vendors tell what waits to be told.
const TICK: Duration = Duration::from_millis(100);

/// At most so many violations are told in full.
const TOLD: usize = 5;

#[derive(Args)]
pub(crate) struct Options {
    /// How many people talk, each in a conversation of their own
    #[arg(long, default_value_t = 1_000)]
    conversations: usize,
    /// For how many seconds they talk
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// How often the gateway is killed
    #[arg(long, default_value_t = 4)]
    kills: u32,
    /// Nothing goes wrong
    #[arg(long)]
    calm: bool,
    /// How much is made of a vendor being asked for more than it documents, or sooner than it said
    #[arg(long, value_enum, default_value_t = Manners::Edits)]
    manners: Manners,
    /// What chance is drawn from; a fresh one if left out
    #[arg(long)]
    seed: Option<u64>,
    /// Use this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    if options.binary.is_none() && cfg!(debug_assertions) {
        return again_optimised(root);
    }
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            shell::run(&mut shell::cargo(root, &["build", "--release", "--package", "talaria"]))?;
            shell::built(root, "release")
        }
    };
    let plan = Plan {
        conversations: options.conversations,
        time: Duration::from_secs(options.seconds),
        kills: options.kills,
        mood: if options.calm { Mood::Good } else { Mood::Bad },
        manners: options.manners,
        seed: options.seed.unwrap_or_else(rand::random),
    };
    go(root, &binary, &plan)
}

/// What CI runs, with a binary that is there.
pub(crate) fn run_short(root: &Path, binary: &Path) -> Result<()> {
    let time = Duration::from_secs(12);
    let (mood, manners) = (Mood::Bad, Manners::Edits);
    go(root, binary, &Plan { conversations: 60, time, kills: 2, mood, manners, seed: 5 })
}

/// The same command, built in earnest: slow vendors would hide what they measure.
fn again_optimised(root: &Path) -> Result<()> {
    shell::run(&mut shell::cargo(root, &["build", "--release", "--package", "xtask"]))?;
    let xtask = shell::built(root, "release").with_file_name("xtask");
    shell::run(Command::new(xtask).args(std::env::args_os().skip(1)))
}

/// What a run is to do.
struct Plan {
    conversations: usize,
    time: Duration,
    kills: u32,
    mood: Mood,
    manners: Manners,
    seed: u64,
}

/// What is made of too much being asked of a vendor, which refuses it and loses nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Manners {
    /// It is counted
    Counted,
    /// No edit may be one too many
    Edits,
    /// Nothing may be one too many
    Everything,
}

impl Manners {
    fn insist(self, verb: Verb) -> bool {
        match self {
            Self::Counted => false,
            Self::Edits => verb == Verb::Edit,
            Self::Everything => true,
        }
    }
}

/// What came of it.
struct Outcome {
    messages: usize,
    answers: usize,
    marked: usize,
    set_aside: usize,
    given_up: usize,
    faults: usize,
    broken: usize,
    /// What a vendor refused because of too much having been asked.
    refused: HashMap<(&'static str, Verb), usize>,
    /// What came sooner than a vendor had said.
    impatient: Vec<(Verb, String)>,
    /// Why parcels were given up.
    reasons: Vec<String>,
    /// What each vendor was asked for.
    asked: Vec<(&'static str, Vec<Call>)>,
    violations: Vec<String>,
    settling: Duration,
    took: Duration,
}

fn go(root: &Path, binary: &Path, plan: &Plan) -> Result<()> {
    let Plan { conversations, time, kills, seed, .. } = plan;
    eprintln!("trio: {conversations} conversations in {time:?} with {kills} kills, --seed {seed}");
    let folder = folder(root)?;
    let outcome = tokio::runtime::Runtime::new()?.block_on(play(binary, &folder, plan))?;
    print(&outcome);
    ensure!(outcome.answers > 0, "nothing was answered");
    let mut outcome = outcome;
    for ((account, verb), times) in &outcome.refused {
        if plan.manners.insist(*verb) {
            let what = format!("{account} was asked too much {times} times: {verb:?}");
            outcome.violations.push(what);
        }
    }
    let hasty = outcome.impatient.iter().filter(|(verb, _)| plan.manners.insist(*verb));
    outcome.violations.extend(hasty.map(|(_, what)| what.clone()));
    if !outcome.violations.is_empty() {
        let list = outcome.violations.join("\n\n");
        bail!("{} promises were broken, --seed {seed}\n\n{list}", outcome.violations.len());
    }
    println!(
        "nothing lost, nothing repeated unmarked, nothing out of order, nothing edited too often"
    );
    Ok(())
}

fn folder(root: &Path) -> Result<PathBuf> {
    // On the disk that the project is on: in memory, every commit would be free.
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let folder = target.join("trio");
    std::fs::create_dir_all(&folder).context("no place for the run's files")?;
    Ok(folder)
}

fn print(outcome: &Outcome) {
    let on = |account: &str, verb| {
        let calls = outcome.asked.iter().filter(|(name, _)| *name == account);
        calls.flat_map(|(_, calls)| calls).filter(|call| call.act.verb == verb).count()
    };
    let refused = |account: &str| {
        let all = outcome.refused.iter().filter(|((name, _), _)| *name == account);
        all.map(|(_, times)| times).sum::<usize>()
    };
    let hasty = |account: &str| {
        outcome.impatient.iter().filter(|(_, what)| what.starts_with(account)).count()
    };
    let verbs = [
        ("posts", Verb::Post),
        ("edits", Verb::Edit),
        ("drafts", Verb::Draft),
        ("signs", Verb::Sign),
        ("deleted", Verb::Delete),
    ];
    let accounts = outcome.asked.iter().map(|(account, _)| *account);
    let accounts: Vec<&str> = accounts.collect();
    let row = |what: &str, count: &dyn Fn(&str) -> usize| {
        let counts = accounts.iter().map(|account| count(account));
        let cells: String = counts.clone().map(|count| format!("{count:>10}")).collect();
        println!("{what:<16}{cells}{:>10}", counts.sum::<usize>());
    };
    let head: String = accounts.iter().map(|account| format!("{account:>10}")).collect();
    println!("{:<16}{head}{:>10}", "", "all");
    for (what, verb) in verbs {
        row(what, &|account| on(account, verb));
    }
    row("asked too much", &refused);
    row("asked too soon", &hasty);
    let all = |what: &str, count: usize, note: &str| println!("{what:<46}{count:>10}  {note}");
    all("messages", outcome.messages, "");
    all("answers", outcome.answers, "whole ones");
    all("marked repeats", outcome.marked, "");
    all("set aside", outcome.set_aside, "each after three deaths and with a notice");
    all("given up", outcome.given_up, "each seen by then");
    all("faults", outcome.faults, "");
    all("broken connections", outcome.broken, "");
    all("seconds", outcome.took.as_secs() as usize, "");
    all("seconds to rest", outcome.settling.as_secs() as usize, "");
    outcome.reasons.iter().for_each(|reason| println!("given up: {reason}"));
    for ((account, verb), times) in &outcome.refused {
        println!("asked too much: {account}, {verb:?}, {times} times");
    }
}

async fn play(binary: &Path, folder: &Path, plan: &Plan) -> Result<Outcome> {
    let began = Instant::now();
    let book = Book::new();
    let llm = FakeLlm::open().await?;
    model::teach(&llm, &book, plan.seed);
    let vendors = Arc::new(Vendors::open().await);
    let tally = Arc::<Tally>::default();
    mischief::set(&vendors, plan.mood, &book, &tally, plan.seed);
    let home = Home::empty_below(folder)?;
    home.write("config.yaml", &configuration(&llm, &vendors)?)?;
    let launch = Launch::new(binary).environment("TALARIA_LOG__LEVEL", "warn");
    let mut life =
        Life { launch, home, vendors: vendors.clone(), book: book.clone(), process: None };
    life.begin().await?;

    let telling = vendors.clone();
    let telling = tokio::spawn(async move {
        loop {
            telling.go_on();
            sleep(TICK).await;
        }
    });
    let mut people = People::gather(&vendors, &book, plan.conversations, plan.time, plan.seed);
    let quiet = watch::Sender::new(plan.mood == Mood::Good);
    let disturbing = tokio::spawn(mischief::disturb(
        vendors.clone(),
        tally.clone(),
        mischief::Reach { known: people.all_have_begun(), time: plan.time },
        quiet.subscribe(),
        plan.seed,
    ));
    life.kill_now_and_then(plan).await?;
    timeout(HANGS + plan.time, people.silence()).await.context("somebody is never heard")?;
    quiet.send_replace(true);
    disturbing.await?;
    mischief::set(&vendors, Mood::Good, &book, &tally, plan.seed);

    let healed = Instant::now();
    let settled = settle(&people, &vendors, &book, life.home.path()).await?;
    let settling = healed.elapsed();
    telling.abort();
    let (home, output) = life.end().await?;
    let mut outcome = judge(&home, &vendors, &book, &tally)?;
    if let Err(stuck) = settled {
        outcome.violations.insert(0, format!("{stuck}\n{output}"));
    }
    Ok(Outcome { settling, took: began.elapsed(), ..outcome })
}

pub(crate) fn configuration(llm: &FakeLlm, vendors: &Vendors) -> Result<String> {
    // Half an answer that gave way to another message could not be told from one that was lost.
    Ok(format!(
        "agent:\n  busy_input_mode: steer\nmodel: fake/test-model\nproviders:\n  fake:\n    wire: openai\n    \
         base_url: \"{}\"\n    api_key: x\n{}",
        llm.base_url(),
        vendors.accounts()?
    ))
}

/// The gateway, which lives and dies.
struct Life {
    launch: Launch,
    home: Home,
    vendors: Arc<Vendors>,
    book: Book,
    process: Option<GatewayProcess>,
}

impl Life {
    async fn begin(&mut self) -> Result<()> {
        self.book.begin_life();
        let mut process = self.launch.start(self.home.path())?;
        let ready = async {
            process.ready().await?;
            while !self.vendors.is_connected() {
                sleep(TICK).await;
            }
            anyhow::Ok(())
        };
        if timeout(HANGS, ready).await.is_err() {
            bail!("it did not connect to all three\n{}", process.output());
        }
        self.process = Some(process);
        Ok(())
    }

    /// Kills it at bad moments, spread over the time in which people talk.
    async fn kill_now_and_then(&mut self, plan: &Plan) -> Result<()> {
        let mut dice = StdRng::seed_from_u64(plan.seed ^ 0x44);
        for kill in 0..plan.kills {
            sleep(plan.time / (plan.kills + 1)).await;
            let moment = [Moment::Streaming, Moment::Bursting][kill as usize % 2];
            // A moment that does not come is not waited for.
            let _ = timeout(Duration::from_secs(2), self.book.next(moment)).await;
            sleep(Duration::from_millis(dice.random_range(0..900))).await;
            let Some(mut process) = self.process.take() else { bail!("there is no gateway") };
            if let Ok(ended) = timeout(Duration::ZERO, process.ended()).await {
                bail!("the gateway ended by itself ({})\n{}", ended?, process.drained().await);
            }
            process.kill().await?;
            self.book.end_life();
            self.begin().await?;
        }
        Ok(())
    }

    async fn end(mut self) -> Result<(Home, String)> {
        let mut process = self.process.take().context("there is no gateway")?;
        process.terminate()?;
        let ended = timeout(HANGS, process.ended()).await.context("it did not end")??;
        let output = process.drained().await;
        ensure!(ended.success(), "the gateway ended with {ended}\n{output}");
        Ok((self.home, output))
    }
}

/// Waits until everything has been answered that ever will be, or says what is missing.
async fn settle(
    people: &People,
    vendors: &Vendors,
    book: &Book,
    home: &Path,
) -> Result<Result<(), String>> {
    let last = timeout(HANGS, people.conclude()).await.context("somebody is never heard")?;
    let last: HashSet<Token> = last.into_iter().collect();
    let answered = || check::answered(&evidence(vendors, book));
    let rest = async {
        while !vendors.is_everything_heard() || !last.is_subset(&answered()) {
            sleep(GLANCE).await;
        }
        // What can be read may still be a preview.
        while database::undelivered(home)? > 0 {
            sleep(GLANCE).await;
        }
        anyhow::Ok(())
    };
    if let Ok(rest) = timeout(PATIENCE, rest).await {
        return rest.map(Ok);
    }
    let missing = last.difference(&answered()).min().copied();
    let history = missing.map(|token| book.pages().history(token));
    let history = history.unwrap_or_else(|| "something was not acknowledged".into());
    Ok(Err(format!("the world did not come to rest within {PATIENCE:?}\n{history}")))
}

fn evidence(vendors: &Vendors, book: &Book) -> Evidence {
    let shown = vendors.shown();
    let pages = book.pages();
    Evidence {
        said: pages.said.clone(),
        others: pages.others.clone(),
        answers: pages.answers.clone(),
        shown,
        ..Evidence::default()
    }
}

fn judge(home: &Home, vendors: &Vendors, book: &Book, tally: &Tally) -> Result<Outcome> {
    let record = database::read(home.path())?;
    let evidence = evidence(vendors, book).with(&record, &book.pages());
    let judgement = check::judge(&evidence);
    let mut violations = record.complaints;
    let (mut asked, mut impatient) = (Vec::new(), Vec::new());
    for (account, calls) in vendors.calls() {
        let calls = calls.all();
        violations.extend(limits::judge(account, &calls));
        impatient.extend(limits::impatient(account, &calls, &book.starts()));
        asked.push((account, calls));
    }
    let pages = book.pages();
    for (told, violation) in judgement.violations.iter().enumerate() {
        let history = violation.token.filter(|_| told < TOLD);
        let history = history.map(|token| format!("\n{}", pages.history(token)));
        violations.push(format!("{violation}{}", history.unwrap_or_default()));
    }
    Ok(Outcome {
        messages: pages.said.len(),
        answers: judgement.answers,
        marked: judgement.marked,
        set_aside: judgement.set_aside,
        given_up: record.given_up.values().map(Vec::len).sum(),
        faults: pages.faults + tally.faults.load(Ordering::Relaxed),
        refused: tally.refused.lock().expect("nobody panics with it").clone(),
        broken: tally.broken.load(Ordering::Relaxed),
        impatient,
        reasons: record.given_up.values().flatten().cloned().collect(),
        asked,
        violations,
        settling: Duration::ZERO,
        took: Duration::ZERO,
    })
}
