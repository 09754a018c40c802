//! The driver: a process of its own that plays the people, the platforms and the model, and keeps the
//! truth about all of them. It survives every gateway.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use talaria_admin::api::{Decision, Part};
use talaria_admin::why::{self, Words};
use talaria_store_sqlite::SqliteStore;
use talaria_testkit::{FakeLlm, Token, Vendor};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, stdin, stdout};

use super::book::{Book, Kind, Said};
use super::check::{self, Evidence, Visible};
use super::mischief::{self, PLATFORMS};
use super::people::{LOBBY, People};
use super::protocol::{Order, Report, Verdict};
use super::{database, model};

/// How long the world may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often the driver looks whether it has.
const GLANCE: Duration = Duration::from_millis(300);

/// One start in so many loses its connections for a moment.
const HANG_UPS: u32 = 40;

/// Of so many messages it is asked what became of them.
const WONDERED: usize = 1000;

/// At most so many violations are told in full.
const TOLD: usize = 5;

#[derive(Args)]
pub(super) struct Options {
    /// What chance is drawn from
    #[arg(long)]
    pub(super) seed: u64,
    /// Messages a second
    #[arg(long)]
    pub(super) rate: u32,
}

/// Plays until it has judged.
pub(super) async fn run(options: &Options) -> Result<()> {
    let mut world = World::open(options).await?;
    report(&Report::Open(world.configuration())).await?;
    let mut orders = BufReader::new(stdin()).lines();
    let mut pending = None;
    loop {
        let line = match pending.take() {
            Some(line) => line,
            None => match orders.next_line().await? {
                Some(line) => line,
                None => return Ok(()),
            },
        };
        match serde_json::from_str(&line).context("an order is JSON")? {
            Order::Begin => world.begin(),
            Order::Killed => world.book.end_life(),
            Order::Await(moment) => {
                // The next order says that nobody waits any more.
                tokio::select! {
                    () = world.book.next(moment) => report(&Report::Seen).await?,
                    line = orders.next_line() => pending = line?,
                }
            }
            Order::Heal => world.heal(),
            Order::Settle => {
                let settled = world.settle().await;
                report(&Report::Settled(settled)).await?;
            }
            Order::Judge(home) => {
                let mut verdict = world.judge(&home)?;
                verdict.violations.extend(world.wonder(&home).await?);
                report(&Report::Verdict(verdict)).await?;
                return Ok(());
            }
        }
    }
}

async fn report(report: &Report) -> Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    let mut out = stdout();
    out.write_all(&line).await?;
    Ok(out.flush().await?)
}

struct World {
    book: Book,
    vendors: Arc<[Vendor]>,
    llm: FakeLlm,
    people: People,
    dice: StdRng,
    healed: bool,
}

impl World {
    async fn open(options: &Options) -> Result<Self> {
        let Options { seed, rate } = *options;
        let book = Book::new();
        let llm = FakeLlm::open().await?;
        model::teach(&llm, &book, seed);
        let mut vendors = Vec::new();
        for (place, platform) in PLATFORMS.iter().enumerate() {
            let vendor = Vendor::open(platform.settings).await?;
            mischief::corrupt(&vendor, platform, &book, seed ^ (place as u64 + 1) << 32);
            vendors.push(vendor);
        }
        let vendors: Arc<[Vendor]> = vendors.into();
        let people = People::gather(&vendors, &book, rate, seed);
        let dice = StdRng::seed_from_u64(seed ^ 0x22);
        Ok(Self { book, vendors, llm, people, dice, healed: false })
    }

    fn configuration(&self) -> String {
        // Half an answer that gave way to another message could not be told from one that was lost.
        let mut text = format!(
            "agent:\n  busy_input_mode: steer\nmodel: fake/test-model\nproviders:\n  fake:\n    wire: openai\n    \
             base_url: \"{}\"\n    api_key: x\naccounts:\n",
            self.llm.base_url()
        );
        for (platform, vendor) in PLATFORMS.iter().zip(self.vendors.iter()) {
            text += &format!(
                "  {}:\n    platform: loopback\n    address: \"{}\"\n    allow_everyone: true\n    \
                 ignored_chats: [{LOBBY}]\n",
                platform.name,
                vendor.address()
            );
            for line in platform.lines {
                text += &format!("    {line}\n");
            }
        }
        text
    }

    fn begin(&mut self) {
        self.book.begin_life();
        if !self.healed && self.dice.random_range(0..HANG_UPS) == 0 {
            let vendors = self.vendors.clone();
            let place = self.dice.random_range(0..vendors.len());
            let wait = Duration::from_millis(self.dice.random_range(50..300));
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                vendors[place].hang_up();
            });
        }
    }

    fn heal(&mut self) {
        self.healed = true;
        for (vendor, platform) in self.vendors.iter().zip(&PLATFORMS) {
            mischief::behave(vendor, platform, &self.book);
        }
        self.people.hush();
    }

    /// Waits until everything has been answered that ever will be, or says what is missing.
    async fn settle(&mut self) -> Result<(), String> {
        if tokio::time::timeout(PATIENCE, self.people.silence()).await.is_err() {
            return Err("somebody still waits to be asked something".into());
        }
        let last: HashSet<Token> = self.people.conclude().into_iter().collect();
        let rest = async {
            loop {
                let answered = check::answered(&self.evidence());
                let heard = self
                    .vendors
                    .iter()
                    .all(|vendor| vendor.read(|truth| truth.acked() == truth.happened()));
                if heard && last.is_subset(&answered) {
                    return;
                }
                tokio::time::sleep(GLANCE).await;
            }
        };
        if tokio::time::timeout(PATIENCE, rest).await.is_ok() {
            return Ok(());
        }
        let answered = check::answered(&self.evidence());
        let missing = last.difference(&answered).min();
        let history = missing.map(|token| self.book.pages().history(*token));
        Err(format!(
            "the world did not come to rest within {PATIENCE:?}\n{}",
            history.unwrap_or_else(|| "something was not acknowledged".into())
        ))
    }

    fn evidence(&self) -> Evidence {
        let mut shown = Vec::new();
        for (vendor, platform) in self.vendors.iter().zip(&PLATFORMS) {
            vendor.read(|truth| {
                shown.extend(truth.shown().iter().map(|shown| Visible {
                    account: platform.name,
                    chat: shown.chat.clone(),
                    text: shown.text.clone(),
                }));
            });
        }
        let pages = self.book.pages();
        Evidence {
            said: pages.said.clone(),
            others: pages.others.clone(),
            answers: pages.answers.clone(),
            shown,
            ..Evidence::default()
        }
    }

    /// Asks what became of messages, as an operator would. Every one of them has to be known, with an end.
    async fn wonder(&mut self, home: &Path) -> Result<Vec<String>> {
        let store = SqliteStore::open(home).context("the store opens")?;
        let mut said: Vec<Said> = {
            let pages = self.book.pages();
            pages.said.values().chain(&pages.others).cloned().collect()
        };
        said.shuffle(&mut self.dice);
        let all = said.len();
        let (mut dropped, others): (Vec<_>, Vec<_>) =
            said.into_iter().partition(|said| said.kind == Kind::Unheard);
        // What was dropped is asked about whatever the dice say.
        let rest = dropped.split_off(dropped.len().min(WONDERED / 4));
        ensure!(
            all < WONDERED || !dropped.is_empty(),
            "nothing was dropped that could be asked about"
        );
        let asked: Vec<Said> =
            dropped.into_iter().chain(others).chain(rest).take(WONDERED).collect();
        eprintln!("asked what became of {} of {all} messages", asked.len());
        let mut violations = Vec::new();
        for said in asked {
            let Said { account, event, .. } = &said;
            // Nobody runs who could have seen what is not written down.
            let told = why::why(&store, None, event, Words::Hidden).await;
            let known = told.ok().and_then(|told| {
                told.decisions
                    .into_iter()
                    .find(|told| told.account == *account && told.event == *event)
            });
            if !known.as_ref().is_some_and(|told| self.is_true(told, &said)) {
                violations.push(format!("what became of it is told wrong: {said:?}: {known:?}"));
            }
        }
        Ok(violations)
    }

    /// Whether what is told of something is what came of it, as those saw it to whom it went.
    fn is_true(&self, told: &Decision, said: &Said) -> bool {
        let is_explained = match said.kind {
            Kind::Unheard => told.reason.is_some() && told.turn.is_none() && told.parts.is_empty(),
            Kind::Talk | Kind::Refused => told.turn.is_some() || told.reason.is_some(),
            Kind::Unruly | Kind::Status | Kind::Control | Kind::Press => true,
        };
        let vendor = PLATFORMS.iter().position(|platform| platform.name == said.account);
        let vendor = vendor.map(|place| &self.vendors[place]);
        let is_there = |message: &str| {
            vendor.is_some_and(|vendor| {
                vendor.read(|truth| truth.shown_in(&said.chat).any(|it| it.message == message))
            })
        };
        let is_over = |part: &Part| match (part.state.as_str(), &part.message) {
            ("delivered", Some(message)) => is_there(message),
            ("refused for good" | "given up", _) => true,
            _ => false,
        };
        is_explained && !told.timeline.is_empty() && told.parts.iter().all(is_over)
    }

    fn judge(&self, home: &Path) -> Result<Verdict> {
        let record = database::read(home)?;
        let evidence = self.evidence().with(&record, &self.book.pages());
        let judgement = check::judge(&evidence);
        let mut violations = record.complaints;
        for (vendor, platform) in self.vendors.iter().zip(&PLATFORMS) {
            let seen = vendor.read(|truth| truth.seen_on_the_wire().to_vec());
            violations.extend(seen.iter().map(|seen| format!("{}: {seen}", platform.name)));
        }
        let pages = self.book.pages();
        for (told, violation) in judgement.violations.iter().enumerate() {
            let history = violation.token.filter(|_| told < TOLD).map(|token| {
                let said = evidence.said.get(&token);
                let place = said.map(|said| (said.account.to_owned(), said.chat.clone()));
                let given_up = place.and_then(|place| record.given_up.get(&place));
                let given_up = given_up.map(|given_up| given_up.join("\n    ")).unwrap_or_default();
                format!("\n{}\n    {given_up}", pages.history(token))
            });
            violations.push(format!("{violation}{}", history.unwrap_or_default()));
        }
        let recoveries = pages.lives.iter();
        let recoveries = recoveries.filter_map(|life| Some(life.first_act? - life.started));
        Ok(Verdict {
            messages: pages.said.len(),
            answers: judgement.answers,
            others: pages.others.len(),
            marked: judgement.marked,
            set_aside: judgement.set_aside,
            faults: pages.faults,
            given_up: record.given_up.values().map(Vec::len).sum(),
            recoveries: recoveries.collect(),
            violations,
        })
    }
}
