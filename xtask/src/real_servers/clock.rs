//! The wall clock set back under a gateway that works, by libfaketime. The clock that never jumps is left
//! alone, as it is when somebody sets the time of a machine.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use talaria_testkit::{
    Clutter, FakeLlm, GatewayProcess, Hold, Home, Launch, Truth, Vendor, VendorSettings, within,
};
use tokio::time::{Instant, sleep};

use crate::{installed, shell};

/// How long anything may take, and how often it is looked whether it has happened.
const PATIENCE: Duration = Duration::from_secs(60);
const GLANCE: Duration = Duration::from_millis(50);

/// Every message gets a whole answer, and they can be counted.
const SECTIONS: &str = "agent: {busy_input_mode: queue, busy_ack_enabled: false}\n";

struct World {
    vendor: Vendor,
    llm: FakeLlm,
    home: Home,
    launch: Launch,
}

pub(super) async fn run(binary: &Path) -> Result<()> {
    installed::faketime()?;
    let vendor = Vendor::open(VendorSettings::default()).await?;
    let llm = FakeLlm::open().await?;
    let clutter = Clutter { account: &[], sections: SECTIONS };
    let home = Home::new(vendor.address(), &llm.base_url(), clutter)?;
    let wrapped = ["-m", "-f", "+0", "printenv", "LD_PRELOAD"];
    let library = shell::read(Command::new("faketime").args(wrapped))?;
    let launch = Launch::new(binary)
        .environment("LD_PRELOAD", library.trim())
        .environment("FAKETIME_TIMESTAMP_FILE", &home.file("time").to_string_lossy())
        .environment("FAKETIME_NO_CACHE", "1")
        .environment("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let world = World { vendor, llm, home, launch };
    world.sets("+0")?;
    let mut process = world.start().await?;
    world.talk(5).await?;

    // Somebody is being answered, and the clock goes back by two hours.
    world.llm.hold(Hold::BeforeAnswering);
    let asked = world.llm.requests();
    world.vendor.say("ann", "what time is it?");
    within(PATIENCE, "a turn", world.llm.until_requests(asked + 1)).await;
    let before = world.written_at()?;
    world.sets("-2h")?;
    world.vendor.say("ben", "and now?");
    world.llm.hold(Hold::Never);
    world.talk(5).await?;
    // It goes on writing how it is doing, and does not wait until the clock has caught up.
    let began = Instant::now();
    while world.written_at()? >= before {
        ensure!(began.elapsed() < PATIENCE, "gateway_state.json is not written any more");
        sleep(GLANCE).await;
    }
    // Forward again by as much, over several looks at how late timers ring, and back for the end.
    world.sets("+0")?;
    world.talk(3).await?;
    sleep(Duration::from_secs(1)).await;
    let metrics = Launch::new(binary).arguments(&["metrics"]).start(world.home.path())?;
    let page = metrics.drained().await;
    let name = "talaria_loop_lag_worst_seconds ";
    let worst: f64 = page
        .lines()
        .find_map(|line| line.strip_prefix(name)?.parse().ok())
        .with_context(|| format!("no {name} in\n{page}"))?;
    ensure!(worst < 60.0, "timers are said to be {worst} s late");
    world.sets("-2h")?;
    world.talk(3).await?;
    world.ends(&mut process).await?;
    println!("the clock goes back by two hours: nothing lost, nothing said twice, ended with 0");

    // Started in the past of its own store, and then at the right time again.
    for time in ["-2h", "+0"] {
        world.sets(time)?;
        let mut process = world.start().await?;
        world.talk(3).await?;
        world.ends(&mut process).await?;
    }
    println!("it starts again before and after the clock is right");
    Ok(())
}

impl World {
    /// Sets the wall clock of the gateway, while it runs.
    fn sets(&self, time: &str) -> Result<()> {
        // As a whole: somebody reads it all the time.
        let next = self.home.file("time.next");
        fs::write(&next, time)?;
        Ok(fs::rename(next, self.home.file("time"))?)
    }

    async fn start(&self) -> Result<GatewayProcess> {
        let known = self.vendor.read(Truth::connections);
        let mut process = self.launch.start(self.home.path())?;
        within(PATIENCE, "the ready line", process.ready()).await?;
        self.until("a connection", |truth| truth.connections() > known).await?;
        Ok(process)
    }

    /// Lets so many people speak and waits until all are answered.
    async fn talk(&self, people: usize) -> Result<()> {
        for number in 0..people {
            self.vendor.say(&format!("chat{number}"), "hello");
        }
        self.until("every answer", Truth::is_everything_answered).await?;
        self.until("every acknowledgement", |truth| truth.acked() == truth.happened()).await
    }

    async fn until(&self, what: &str, holds: impl FnMut(&Truth) -> bool) -> Result<()> {
        let done = tokio::time::timeout(PATIENCE, self.vendor.until(holds)).await;
        match done {
            Ok(_) => Ok(()),
            Err(_) => bail!("waited in vain for {what}\n{}", self.vendor.transcript()),
        }
    }

    /// Asks it to end, and looks whether every promise was kept.
    async fn ends(&self, process: &mut GatewayProcess) -> Result<()> {
        process.terminate()?;
        let ended = within(PATIENCE, "the end", process.ended()).await?;
        ensure!(ended.code() == Some(0), "{ended}\n{}", process.output());
        let broken: Vec<_> = self.vendor.check().iter().map(ToString::to_string).collect();
        ensure!(broken.is_empty(), "{}\n{}", broken.join("\n"), self.vendor.transcript());
        let marked = self.vendor.read(Truth::marked);
        ensure!(marked == 0, "{marked} answers are said to be perhaps repeated");
        Ok(())
    }

    /// When `gateway_state.json` was written, by the gateway's own wall clock. Earlier times sort first.
    fn written_at(&self) -> Result<String> {
        let state: Value =
            serde_json::from_slice(&fs::read(self.home.file("gateway_state.json"))?)?;
        Ok(state["updated_at"].as_str().context("no time")?.to_owned())
    }
}
