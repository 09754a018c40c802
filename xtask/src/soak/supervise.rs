//! The supervisor: starts the gateway, kills it at a bad moment, starts it again.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use talaria_testkit::{GatewayProcess, Home, Launch};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

use super::protocol::{Moment, Order, Report, Verdict};

/// Nothing takes this long unless it hangs.
const HANGS: Duration = Duration::from_secs(300);

/// A moment that does not come is not waited for.
const MOST: Duration = Duration::from_millis(700);

/// What a soak is to do.
pub(super) struct Plan<'a> {
    pub(super) binary: &'a Path,
    pub(super) folder: &'a Path,
    pub(super) kills: u32,
    pub(super) rate: u32,
    pub(super) seed: u64,
}

/// What came of a soak.
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    pub(super) kills: u32,
    /// From the first start to the last kill.
    pub(super) killing: Duration,
    pub(super) took: Duration,
}

/// When a life ends.
#[derive(Debug, Clone, Copy)]
enum End {
    /// So long after the start: early in the recovery, or anywhere.
    After(Duration),
    /// So long after something has happened.
    Upon(Moment, Duration),
}

/// Draws when lives end. Bad moments are likelier than others.
struct Fate {
    dice: StdRng,
    /// Lives that are still to be cut short in their recovery.
    short: u32,
    was_short: bool,
}

impl Fate {
    fn draw(&mut self) -> End {
        if self.short == 0 && self.dice.random_range(0..100) == 0 {
            self.short = 5;
        }
        if self.short > 0 {
            self.short -= 1;
            return End::After(self.millis(2, 60));
        }
        // Besides such a series, no two lives in a row are cut short in their recovery: a turn that
        // dies three times is set aside, and a run in which all are would prove little.
        let was_short = std::mem::take(&mut self.was_short);
        match self.dice.random_range(0..100) {
            0..25 if !was_short => {
                self.was_short = true;
                End::After(self.millis(2, 70))
            }
            25..45 => End::Upon(Moment::Sent, self.millis(0, 4)),
            45..60 => End::Upon(Moment::Streaming, self.millis(5, 90)),
            60..72 => End::Upon(Moment::Bursting, self.millis(0, 12)),
            72..95 => End::After(self.millis(150, 700)),
            _ => End::After(self.millis(900, 1500)),
        }
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_micros(self.dice.random_range(from * 1000..to * 1000))
    }
}

/// Kills as planned and says what came of it.
pub(super) async fn run(plan: &Plan<'_>) -> Result<Outcome> {
    let begun = Instant::now();
    let mut driver = Driver::start(plan).await?;
    let home = Home::empty_below(plan.folder)?;
    home.write("config.yaml", &driver.configuration)?;
    let launch = Launch::new(plan.binary).environment("TALARIA_LOG__LEVEL", "warn");
    let dice = StdRng::seed_from_u64(plan.seed);
    let mut fate = Fate { dice, short: 0, was_short: false };
    for kill in 1..=plan.kills {
        driver.tell(&Order::Begin).await?;
        let process = launch.start(home.path())?;
        match fate.draw() {
            End::After(wait) => sleep(wait).await,
            End::Upon(moment, wait) => {
                driver.until(moment).await?;
                sleep(wait).await;
            }
        }
        end(process).await?;
        driver.tell(&Order::Killed).await?;
        if kill % 100 == 0 {
            eprintln!("  {kill} kills after {:.0} s", begun.elapsed().as_secs_f64());
        }
    }
    let killing = begun.elapsed();
    driver.tell(&Order::Heal).await?;
    driver.tell(&Order::Begin).await?;
    let mut process = launch.start(home.path())?;
    timeout(HANGS, process.ready()).await.context("it did not get ready")??;
    driver.tell(&Order::Settle).await?;
    let settled = match driver.hear().await? {
        Report::Settled(settled) => settled,
        other => bail!("the driver says {other:?} instead of having settled"),
    };
    process.terminate()?;
    let ended = timeout(HANGS, process.ended()).await.context("it did not end")??;
    let output = process.drained().await;
    ensure!(ended.success(), "the gateway ended with {ended}\n{output}");
    driver.tell(&Order::Judge(home.path().to_owned())).await?;
    let mut verdict = match driver.hear().await? {
        Report::Verdict(verdict) => verdict,
        other => bail!("the driver says {other:?} instead of a verdict"),
    };
    if let Err(stuck) = settled {
        verdict.violations.insert(0, format!("{stuck}\n{output}"));
    }
    Ok(Outcome { verdict, kills: plan.kills, killing, took: begun.elapsed() })
}

/// Ends a life as a power cut would. One that has ended by itself is a failure of its own.
async fn end(mut process: GatewayProcess) -> Result<()> {
    if let Ok(ended) = timeout(Duration::ZERO, process.ended()).await {
        bail!("the gateway ended by itself ({})\n{}", ended?, process.drained().await);
    }
    process.kill().await
}

/// The process that keeps the truth.
struct Driver {
    _child: Child,
    orders: ChildStdin,
    reports: Lines<BufReader<ChildStdout>>,
    configuration: String,
}

impl Driver {
    async fn start(plan: &Plan<'_>) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["soak", "driver", "--seed", &plan.seed.to_string()])
            .args(["--rate", &plan.rate.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().context("cannot start the driver")?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (orders, out) = pipes.context("the driver has pipes")?;
        let reports = BufReader::new(out).lines();
        let mut driver = Self { _child: child, orders, reports, configuration: String::new() };
        match driver.hear().await? {
            Report::Open(configuration) => driver.configuration = configuration,
            other => bail!("the driver says {other:?} instead of being open"),
        }
        Ok(driver)
    }

    async fn tell(&mut self, order: &Order) -> Result<()> {
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        self.orders.write_all(&line).await.context("the driver has gone")
    }

    async fn hear(&mut self) -> Result<Report> {
        loop {
            let line = timeout(HANGS, self.reports.next_line()).await;
            let line = line.context("the driver says nothing")??.context("the driver has gone")?;
            match serde_json::from_str(&line).context("a report is JSON")? {
                // A moment that came too late to be waited for.
                Report::Seen => {}
                report => return Ok(report),
            }
        }
    }

    /// Waits for a moment, or until it is too late for it.
    async fn until(&mut self, moment: Moment) -> Result<()> {
        self.tell(&Order::Await(moment)).await?;
        let _ = timeout(MOST, self.reports.next_line()).await;
        Ok(())
    }
}
