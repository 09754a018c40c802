//! The release binary, driven through a loopback vendor.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use talaria_testkit::{
    Clutter, FakeLlm, GatewayProcess, Hold, Home, Launch, Pace, Truth, Usage, Vendor,
    VendorSettings, within,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::figures::{Figures, Killed, Known};
use super::sample::Sample;

/// No step of the benchmark takes this long unless it hangs.
const HANGS: Duration = Duration::from_secs(60);

/// Turns of one conversation before the next begins: long enough to carry a history.
const CONVERSATION: usize = 10;

/// What people say, around the token.
const SAID: &str = "what would you bring along for a week of walking by the sea";

/// The account that the vendor is behind.
pub(super) const ACCOUNT: &str = "bench";

pub(super) struct Bench<'a> {
    launch: Launch,
    folder: &'a Path,
    model: String,
}

/// A gateway and its vendor.
pub(super) struct Opened {
    process: GatewayProcess,
    vendor: Arc<Vendor>,
    home: Home,
    chats: AtomicUsize,
}

impl Opened {
    pub(super) async fn end(mut self) -> Result<()> {
        self.process.terminate()?;
        within(HANGS, "the gateway to end", self.process.ended()).await?;
        Ok(())
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(super) fn usage(&self) -> Result<Usage> {
        self.process.usage()
    }

    /// Where it listens: `127.0.0.1:8420`.
    pub(super) async fn address(&mut self) -> Result<String> {
        let address = within(HANGS, "the address", self.process.address()).await;
        Ok(address.strip_prefix("http://").context("an address on this machine")?.to_owned())
    }

    /// Says something; how long the answer takes.
    pub(super) fn ask(
        &self,
        chat: &str,
    ) -> impl Future<Output = Result<Duration>> + Send + 'static {
        let answer = self.vendor.ask(chat, SAID);
        async move { Ok(answer.await?.after) }
    }

    /// Everybody who writes to it.
    pub(super) fn vendor(&self) -> &Arc<Vendor> {
        &self.vendor
    }

    /// How large its state is on the disk.
    pub(super) fn stored(&self) -> Result<u64> {
        let files = ["state.db", "state.db-wal"].map(|name| self.home.file(name));
        Ok(files.iter().filter_map(|file| Some(file.metadata().ok()?.len())).sum())
    }

    fn fresh_chat(&self) -> String {
        format!("chat{}", self.chats.fetch_add(1, Ordering::Relaxed))
    }
}

impl<'a> Bench<'a> {
    pub(super) fn new(binary: &Path, folder: &'a Path, llm: &FakeLlm) -> Self {
        let launch = Launch::new(binary).environment("TALARIA_LOG__LEVEL", "warn");
        Self { launch, folder, model: llm.base_url() }
    }

    /// A gateway on a home of its own, connected to a vendor of its own.
    pub(super) async fn open(&self) -> Result<Opened> {
        let vendor = Arc::new(Vendor::open(VendorSettings::default()).await?);
        let home = Home::below(self.folder, vendor.address(), &self.model, Clutter::default())?;
        let process = self.start(&home, &vendor).await?;
        Ok(Opened { process, vendor, home, chats: AtomicUsize::new(0) })
    }

    /// The same, where nobody is heard but these people. Others get a code when they ask for it.
    pub(super) async fn open_to(&self, people: &[String]) -> Result<Opened> {
        let vendor = Arc::new(Vendor::open(VendorSettings::default()).await?);
        let home = Home::below(self.folder, vendor.address(), &self.model, Clutter::default())?;
        let open = std::fs::read_to_string(home.file("config.yaml"))?;
        let listed = format!("allow: [{}]\n    unauthorized_dm_behavior: pair", people.join(", "));
        let closed = open.replace("allow_everyone: true", &listed);
        ensure!(closed != open, "everybody is heard");
        home.write("config.yaml", &closed)?;
        let process = self.start(&home, &vendor).await?;
        Ok(Opened { process, vendor, home, chats: AtomicUsize::new(0) })
    }

    async fn start(&self, home: &Home, vendor: &Vendor) -> Result<GatewayProcess> {
        let known = vendor.read(Truth::connections);
        let mut process = self.launch.start(home.path())?;
        within(HANGS, "the ready line", process.ready()).await?;
        let connected = vendor.until(|truth| truth.connections() > known);
        within(HANGS, "the gateway to connect", connected).await;
        Ok(process)
    }

    /// From nothing to ready, several times, each on a new home.
    pub(super) async fn start_cold(&self, figures: &mut Figures) -> Result<()> {
        for _ in 0..9 {
            let vendor = Vendor::open(VendorSettings::default()).await?;
            let home = Home::below(self.folder, vendor.address(), &self.model, Clutter::default())?;
            let mut process = self.launch.start(home.path())?;
            let ready = within(HANGS, "the ready line", process.ready()).await?;
            let address = within(HANGS, "the address", process.address()).await;
            let answered = pulse(&address, process.started()).await?;
            within(HANGS, "the gateway to connect", vendor.until(|truth| truth.connections() > 0))
                .await;
            figures.cold_starts.push((ready, answered));
            figures.idle.push(process.usage()?.resident);
            process.terminate()?;
            within(HANGS, "the gateway to end", process.ended()).await?;
        }
        Ok(())
    }

    pub(super) async fn warm_up(&self, opened: &Opened) -> Result<()> {
        self.round(opened, 500, 8).await?;
        // Ends in the middle of a conversation: the floor will repeat this request.
        let chat = opened.fresh_chat();
        for _ in 0..CONVERSATION / 2 {
            within(HANGS, "an answer", opened.vendor.ask(&chat, SAID)).await?;
        }
        Ok(())
    }

    /// Takes that many turns, so many at once, each seen from the vendor: from the moment a message
    /// is sent to the moment its answer is there.
    pub(super) async fn round(
        &self,
        opened: &Opened,
        turns: usize,
        at_once: usize,
    ) -> Result<Sample> {
        let before = opened.process.usage()?.processor;
        let begun = Instant::now();
        let left = Arc::new(AtomicUsize::new(turns));
        let mut people = JoinSet::new();
        for person in 0..at_once {
            let (vendor, left) = (opened.vendor.clone(), left.clone());
            let conversations = turns / at_once / CONVERSATION + 2;
            let chats: Vec<String> = (0..conversations).map(|_| opened.fresh_chat()).collect();
            people.spawn(async move {
                let mut latencies = Vec::new();
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_ok()
                {
                    // Not everybody begins a new conversation at the same moment.
                    let said = latencies.len() + person % CONVERSATION;
                    let chat = &chats[said / CONVERSATION % chats.len()];
                    latencies.push(vendor.ask(chat, SAID).await?.after);
                }
                anyhow::Ok(latencies)
            });
        }
        let mut latencies = Vec::with_capacity(turns);
        let answers = async {
            while let Some(person) = people.join_next().await {
                latencies.extend(person??);
            }
            anyhow::Ok(())
        };
        within(HANGS, "a round of answers", answers).await?;
        let took = begun.elapsed();
        Ok(Sample::of(latencies, took, opened.process.usage()?.processor - before))
    }

    /// Memory of a gateway that has spoken in 1,000 chats, then in 10,000, and is quiet again.
    pub(super) async fn know_many(&self, figures: &mut Figures) -> Result<()> {
        let opened = self.open().await?;
        figures.known.push(Known { sessions: 0, resident: opened.process.usage()?.resident });
        let mut known = 0;
        for sessions in [1_000, 10_000] {
            greet(&opened, sessions - known).await?;
            known = sessions;
            self.until_idle(&opened).await?;
            let resident = opened.process.usage()?.resident;
            figures.known.push(Known { sessions, resident });
        }
        opened.end().await
    }

    /// What another command on the same home prints.
    pub(super) async fn command(&self, opened: &Opened, arguments: &[&str]) -> Result<String> {
        let launch = self.launch.clone().arguments(arguments);
        let mut asked = launch.start(opened.home.path())?;
        asked.ended().await?;
        Ok(asked.drained().await)
    }

    /// Waits until no session is in memory any more.
    async fn until_idle(&self, opened: &Opened) -> Result<()> {
        let idle = async {
            loop {
                let status = self.command(opened, &["status", "--json"]).await?;
                if status.replace(' ', "").contains("\"sessions_in_memory\":0") {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        within(HANGS, "the sessions to leave memory", idle).await
    }

    /// 1,000 people at once, and a model that thinks for three seconds.
    pub(super) async fn fly_many(&self, llm: &FakeLlm, figures: &mut Figures) -> Result<()> {
        let opened = self.open().await?;
        llm.pace(Pace { before: Duration::from_secs(3), ..Pace::default() });
        let begun = Instant::now();
        let answers: Vec<_> =
            (0..1000).map(|_| opened.vendor.ask(&opened.fresh_chat(), SAID)).collect();
        let last = async {
            let mut last = begun;
            for answer in answers {
                last = last.max(answer.await?.at);
            }
            anyhow::Ok(last)
        };
        let last = within(HANGS, "1,000 answers", last).await?;
        llm.pace(Pace::default());
        figures.in_flight = (last - begun, opened.process.usage()?.most_resident);
        opened.end().await
    }

    /// 50 people wait for the model when the gateway is killed.
    pub(super) async fn kill_in_flight(&self, llm: &FakeLlm, figures: &mut Figures) -> Result<()> {
        let opened = self.open().await?;
        llm.hold(Hold::BeforeAnswering);
        let asked = llm.requests();
        for _ in 0..50 {
            opened.vendor.say(&opened.fresh_chat(), SAID);
        }
        within(HANGS, "50 requests", llm.until_requests(asked + 50)).await;
        let Opened { process, vendor, home, .. } = opened;
        process.kill().await?;
        llm.hold(Hold::Never);
        let begun = Instant::now();
        let process = self.start(&home, &vendor).await?;
        within(HANGS, "50 answers", vendor.until(Truth::is_everything_answered)).await;
        let took = begun.elapsed();
        let violations = vendor.check();
        ensure!(violations.is_empty(), "{violations:?}");
        let answered = vendor.read(|truth| truth.shown().len());
        figures.killed = Killed { answered, took };
        Opened { process, vendor, home, chats: AtomicUsize::new(0) }.end().await
    }
}

/// One turn in each of so many new chats.
async fn greet(opened: &Opened, chats: usize) -> Result<()> {
    let left = Arc::new(AtomicUsize::new(chats));
    let mut people = JoinSet::new();
    for _ in 0..super::CROWD {
        let (vendor, left) = (opened.vendor.clone(), left.clone());
        let names: Vec<String> =
            (0..chats / super::CROWD * 2).map(|_| opened.fresh_chat()).collect();
        people.spawn(async move {
            for name in names {
                let more = left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
                if more.is_err() {
                    break;
                }
                vendor.ask(&name, SAID).await?;
            }
            anyhow::Ok(())
        });
    }
    let all = async {
        while let Some(person) = people.join_next().await {
            person??;
        }
        anyhow::Ok(())
    };
    within(HANGS, "the chats to be answered", all).await
}

/// Asks for a pulse until there is one; says how long after `started` it came.
async fn pulse(address: &str, started: Instant) -> Result<Duration> {
    let host = address.strip_prefix("http://").context("an address on this machine")?;
    let asked = async {
        loop {
            if let Ok(mut stream) = TcpStream::connect(host).await {
                let request =
                    format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
                stream.write_all(request.as_bytes()).await?;
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await?;
                if answer.starts_with("HTTP/1.1 204") {
                    return anyhow::Ok(started.elapsed());
                }
            }
            tokio::task::yield_now().await;
        }
    };
    within(HANGS, "a pulse", asked).await
}
