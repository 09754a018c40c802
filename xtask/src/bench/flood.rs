//! Strangers ask without end and hold connections for nothing, while people who may are served.
//!
//! The strangers are a process of their own, so that what they cost themselves is not measured on the
//! clock of those who are served.

use std::io::Write;
use std::ops::Range;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use talaria_testkit::within;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::figures::{Flood, Served};
use super::gateway::{Bench, Opened};
use super::sample::Sample;

/// Nothing here takes this long unless it hangs.
const HANGS: Duration = Duration::from_secs(120);

/// How often strangers ask, all together.
const REQUESTS: usize = 50_000;

/// Connections that they hold for nothing.
const IDLE: usize = 5_000;

/// How long people are served before each flood.
const QUIET: Duration = Duration::from_secs(12);

/// How many floods there are. One moment at which the disk is slow decides no more than one of them.
const ROUNDS: usize = 3;

/// Between two messages on the platform, and between two views of the page.
const BEAT: Duration = Duration::from_millis(10);

/// Chats in which messages are sent, in turn: few enough to stay in memory.
const CHATS: usize = 200;

/// What the strangers say when their connections are open.
const OPEN: &str = "open";

/// How long somebody who was turned out stays away before holding another connection for nothing, at
/// least and at most.
const AWAY: Range<u64> = 2_500..7_500;

/// Strangers who ask at the same time.
const ASKING: usize = 200;

/// How many milliseconds a stranger waits for an answer before trying another connection. No two
/// strangers act in step.
const IMPATIENCE: Range<u64> = 50..150;

/// What strangers ask for, in turn: the page, its secrets, a login, a webhook of nobody.
const ASKED: [&str; 5] = [
    "GET /api/state HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "GET /api/conversations HTTP/1.1\r\nhost: HOST\r\ncookie: talaria=forged\r\n\r\n",
    "POST /api/login HTTP/1.1\r\nhost: HOST\r\ncontent-type: application/json\r\ncontent-length: 17\r\n\r\n{\"token\":\"wrong\"}",
    "POST /in/nobody HTTP/1.1\r\nhost: HOST\r\ncontent-length: 2\r\n\r\n{}",
    "GET / HTTP/1.1\r\nhost: HOST\r\n\r\n",
];

#[derive(Args)]
pub(crate) struct Options {
    /// Where they ask
    address: String,
}

/// What the strangers saw.
#[derive(Debug, Serialize, Deserialize)]
struct Seen {
    /// Requests that were made.
    asked: usize,
    /// Of them, those that were answered at once.
    answered: usize,
    took: Duration,
}

/// The strangers, in a process of their own: one line when their connections are open, one when they
/// have asked everything.
pub(super) fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut idle = JoinSet::new();
        for _ in 0..IDLE {
            let stream = TcpStream::connect(&options.address).await?;
            idle.spawn(hold(stream, options.address.clone()));
        }
        println!("{OPEN}");
        std::io::stdout().flush()?;
        let begun = Instant::now();
        let left = Arc::new(AtomicUsize::new(REQUESTS));
        let mut asking = JoinSet::new();
        for _ in 0..ASKING {
            asking.spawn(ask(options.address.clone(), left.clone()));
        }
        let mut answered = 0;
        while let Some(one) = asking.join_next().await {
            answered += one?;
        }
        let seen = Seen { asked: REQUESTS, answered, took: begun.elapsed() };
        println!("{}", serde_json::to_string(&seen)?);
        Ok(())
    })
}

/// Holds a connection until it is closed, then another.
async fn hold(mut stream: TcpStream, address: String) {
    loop {
        let mut closed = [0; 1];
        let _ = stream.read(&mut closed).await;
        loop {
            sleep(Duration::from_millis(rand::random_range(AWAY))).await;
            if let Ok(again) = TcpStream::connect(&address).await {
                stream = again;
                break;
            }
        }
    }
}

/// Asks until all have asked enough; how many answers came.
async fn ask(address: String, left: Arc<AtomicUsize>) -> usize {
    let mut connection: Option<TcpStream> = None;
    let mut answered = 0;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let take = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |it| it.checked_sub(1));
        let Ok(number) = take else { return answered };
        let words = ASKED[number % ASKED.len()].replace("HOST", &address);
        let exchange = async {
            let mut stream = match connection.take() {
                Some(stream) => stream,
                None => TcpStream::connect(&address).await?,
            };
            stream.write_all(words.as_bytes()).await?;
            let read = stream.read(&mut buffer).await?;
            // An answer that comes in pieces costs the stranger a new connection.
            let is_whole = !buffer[..read].starts_with(b"HTTP/1.1 200");
            std::io::Result::Ok((read, is_whole.then_some(stream)))
        };
        let impatience = Duration::from_millis(rand::random_range(IMPATIENCE));
        if let Ok(Ok((read, stream))) = timeout(impatience, exchange).await {
            answered += usize::from(read > 0);
            connection = stream.filter(|_| read > 0);
        }
    }
}

/// How people who may are served, in quiet and in the flood: the middle of several rounds.
pub(super) async fn measure(bench: &Bench<'_>) -> Result<Flood> {
    let mut opened = bench.open().await?;
    let page = Page::open(bench, &mut opened).await?;
    bench.warm_up(&opened).await?;
    served(&opened, &page, sleep(QUIET / 4)).await?;
    let mut before = None;
    let mut resident = Vec::new();
    let (mut turns, mut views) = (Vec::new(), Vec::new());
    let mut refused = (0, 0, Duration::ZERO);
    for _ in 0..ROUNDS {
        let quiet = served(&opened, &page, sleep(QUIET)).await?;
        before.get_or_insert(opened.usage()?.most_resident);
        let mut strangers = Strangers::gather(&page.address).await?;
        let flooded = served(&opened, &page, strangers.ended()).await?;
        let seen = strangers.seen.take().context("the strangers have ended early")?;
        eprintln!("turns: {} | {}", quiet.turns, flooded.turns);
        resident.push(opened.usage()?.most_resident);
        turns.push((quiet.turns, flooded.turns));
        views.push((quiet.views, flooded.views));
        refused = (seen.asked, seen.answered, seen.took);
    }
    opened.end().await?;
    let (turns, views) = (middle(turns), middle(views));
    let quiet = Served { turns: turns.0, views: views.0 };
    let flooded = Served { turns: turns.1, views: views.1 };
    let before = before.unwrap_or_default();
    Ok(Flood { quiet, flooded, refused, before, resident })
}

/// The round in which the flood mattered neither most nor least.
fn middle(mut rounds: Vec<(Sample, Sample)>) -> (Sample, Sample) {
    let ratio = |(quiet, flooded): &(Sample, Sample)| {
        flooded.p99.as_secs_f64() / quiet.p99.as_secs_f64().max(1e-9)
    };
    rounds.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
    rounds.swap_remove(ROUNDS / 2)
}

/// Takes turns on the platform and looks at the page until something ends, both at an even pace: waiting
/// for one answer would let the next ones off.
async fn served(opened: &Opened, page: &Page, until: impl Future<Output = ()>) -> Result<Served> {
    let (mut turns, mut views) = (JoinSet::new(), JoinSet::new());
    let before = opened.usage()?.processor;
    let begun = Instant::now();
    let mut until = std::pin::pin!(until);
    let mut beat = tokio::time::interval(BEAT);
    let mut chats = (0..CHATS).cycle();
    loop {
        tokio::select! {
            () = &mut until => break,
            _ = beat.tick() => {
                let chat = chats.next().unwrap_or_default();
                turns.spawn(opened.ask(&format!("served{chat}")));
                views.spawn(page.clone().view());
            }
        }
    }
    let took = begun.elapsed();
    let (turns, views) = (all(turns).await?, all(views).await?);
    let processor = opened.usage()?.processor - before;
    let of = |latencies| Sample::of(latencies, took, processor);
    Ok(Served { turns: of(turns), views: of(views) })
}

async fn all(mut asked: JoinSet<Result<Duration>>) -> Result<Vec<Duration>> {
    let mut latencies = Vec::with_capacity(asked.len());
    while let Some(one) = within(HANGS, "an answer", asked.join_next()).await {
        latencies.push(one??);
    }
    Ok(latencies)
}

/// Somebody who is logged in to the page.
#[derive(Clone)]
struct Page {
    address: String,
    cookie: String,
}

impl Page {
    async fn open(bench: &Bench<'_>, opened: &mut Opened) -> Result<Self> {
        let address = opened.address().await?;
        let link = bench.command(opened, &["open"]).await?;
        let token = link.trim().rsplit_once("#login=").context("a login link")?.1;
        let body = serde_json::json!({ "token": token }).to_string();
        let login = format!(
            "POST /api/login HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let answer = exchange(&address, &login).await?;
        let cookie = answer
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: ")?.split(';').next())
            .with_context(|| format!("the login is refused: {answer}"))?
            .to_owned();
        Ok(Self { address, cookie })
    }

    /// Looks at the page on a connection of its own; how long that took.
    async fn view(self) -> Result<Duration> {
        let begun = Instant::now();
        let request = format!(
            "GET /api/state HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\nconnection: close\r\n\r\n",
            self.address, self.cookie
        );
        let answer = exchange(&self.address, &request).await?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "the page is refused: {answer}");
        Ok(begun.elapsed())
    }
}

async fn exchange(address: &str, request: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// The process of the strangers.
struct Strangers {
    lines: Lines<BufReader<ChildStdout>>,
    seen: Option<Seen>,
    _child: Child,
}

impl Strangers {
    /// Starts it and waits until all the idle connections are open.
    async fn gather(address: &str) -> Result<Self> {
        // They stand for other machines: what they cost themselves is not to be missing here.
        let mut child = Command::new("nice")
            .args(["-n", "19"])
            .arg(std::env::current_exe()?)
            .args(["bench", "strangers", address])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let open = within(HANGS, "the idle connections", lines.next_line()).await?;
        ensure!(open.as_deref() == Some(OPEN), "the strangers ended: {open:?}");
        Ok(Self { lines, seen: None, _child: child })
    }

    /// Completes when they have asked everything.
    async fn ended(&mut self) {
        let line = within(HANGS, "the flood to end", self.lines.next_line()).await;
        self.seen = line.ok().flatten().and_then(|line| serde_json::from_str(&line).ok());
    }
}
