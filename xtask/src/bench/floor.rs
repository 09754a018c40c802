//! The floor: the least that a durable answer can cost. One call of the model, the answer put together
//! from its stream, one synced commit; nothing else.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use talaria_testkit::{FakeLlm, Usage};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;

use super::sample::Sample;

#[derive(Args)]
pub(crate) struct Options {
    /// Where the model is
    url: String,
    /// A file with the request to make
    request: PathBuf,
    /// Where to make the database
    database: PathBuf,
}

/// How many turns to take, and how many at a time.
#[derive(Serialize, Deserialize)]
struct Order {
    turns: usize,
    at_once: usize,
}

/// The floor in a process of its own.
pub(super) struct Floor {
    child: Child,
    pipes: Mutex<(ChildStdin, Lines<BufReader<ChildStdout>>)>,
    _folder: tempfile::TempDir,
}

impl Floor {
    /// Starts it with the request that the gateway made last, so that both make the same call.
    pub(super) async fn start(folder: &Path, llm: &FakeLlm) -> Result<Self> {
        let folder = tempfile::tempdir_in(folder)?;
        let request = folder.path().join("request.json");
        std::fs::write(&request, llm.last_request())?;
        let mut child = tokio::process::Command::new(std::env::current_exe()?)
            .args(["bench", "floor"])
            .arg(format!("{}/chat/completions", llm.base_url()))
            .arg(&request)
            .arg(folder.path().join("floor.db"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take().context("the floor has no input")?;
        let stdout = child.stdout.take().context("the floor has no output")?;
        let pipes = Mutex::new((stdin, BufReader::new(stdout).lines()));
        let floor = Self { child, pipes, _folder: folder };
        floor.round(200, 8).await?;
        Ok(floor)
    }

    pub(super) async fn round(&self, turns: usize, at_once: usize) -> Result<Sample> {
        let pid = self.child.id().context("the floor has ended")?;
        let before = Usage::of(pid)?.processor;
        let mut pipes = self.pipes.lock().await;
        let order = serde_json::to_string(&Order { turns, at_once })?;
        pipes.0.write_all(format!("{order}\n").as_bytes()).await?;
        let line = pipes.1.next_line().await?.context("the floor has ended")?;
        let sample: Sample = serde_json::from_str(&line)?;
        Ok(Sample { processor: Usage::of(pid)?.processor - before, ..sample })
    }
}

/// The process: carries out one order per line.
pub(super) fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let turn = Arc::new(Turn {
        client: reqwest::Client::builder().no_proxy().build()?,
        url: options.url.clone(),
        request: std::fs::read(&options.request)?.into(),
        writer: writer(&options.database)?,
    });
    for line in std::io::stdin().lock().lines() {
        let order: Order = serde_json::from_str(&line?)?;
        let sample = runtime.block_on(carry_out(turn.clone(), order))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(&sample)?)?;
        out.flush()?;
    }
    Ok(())
}

struct Turn {
    client: reqwest::Client,
    url: String,
    request: bytes::Bytes,
    writer: mpsc::Sender<(String, oneshot::Sender<()>)>,
}

impl Turn {
    async fn take(&self) -> Result<()> {
        let stream = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .body(self.request.clone())
            .send()
            .await?
            .error_for_status()?
            .text()
            .await?;
        let answer = answer(&stream)?;
        let (written, durable) = oneshot::channel();
        self.writer.send((answer, written)).await?;
        Ok(durable.await?)
    }
}

/// The text of a streamed answer.
fn answer(stream: &str) -> Result<String> {
    #[derive(Deserialize)]
    struct Chunk {
        choices: Vec<Choice>,
    }
    #[derive(Deserialize)]
    struct Choice {
        delta: Delta,
    }
    #[derive(Deserialize)]
    struct Delta {
        content: Option<String>,
    }
    let mut answer = String::new();
    let events = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    for event in events.take_while(|event| *event != "[DONE]") {
        let chunk: Chunk = serde_json::from_str(event)?;
        answer.extend(chunk.choices.into_iter().filter_map(|choice| choice.delta.content));
    }
    Ok(answer)
}

async fn carry_out(turn: Arc<Turn>, order: Order) -> Result<Sample> {
    let left = Arc::new(AtomicUsize::new(order.turns));
    let begun = Instant::now();
    let mut workers = JoinSet::new();
    for _ in 0..order.at_once {
        let (turn, left) = (turn.clone(), left.clone());
        workers.spawn(async move {
            let mut latencies = Vec::new();
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
            {
                let begun = Instant::now();
                turn.take().await?;
                latencies.push(begun.elapsed());
            }
            anyhow::Ok(latencies)
        });
    }
    let mut latencies = Vec::with_capacity(order.turns);
    while let Some(worker) = workers.join_next().await {
        latencies.extend(worker??);
    }
    Ok(Sample::of(latencies, begun.elapsed(), Default::default()))
}

/// One thread, one connection, one synced commit per turn.
fn writer(path: &Path) -> Result<mpsc::Sender<(String, oneshot::Sender<()>)>> {
    let database = Connection::open(path)?;
    database.pragma_update(None, "journal_mode", "wal")?;
    database.pragma_update(None, "synchronous", "full")?;
    database.execute("CREATE TABLE turn (id INTEGER PRIMARY KEY, answer TEXT NOT NULL)", ())?;
    let (sender, mut orders) = mpsc::channel::<(String, oneshot::Sender<()>)>(1024);
    std::thread::spawn(move || {
        while let Some((answer, written)) = orders.blocking_recv() {
            let row = database
                .prepare_cached("INSERT INTO turn (answer) VALUES (?1)")
                .and_then(|mut insert| insert.execute([answer]));
            if row.is_ok() {
                // Whoever waited may be gone; the row is there all the same.
                let _ = written.send(());
            }
        }
    });
    Ok(sender)
}
