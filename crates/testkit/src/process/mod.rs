//! The real binary, from outside: started, watched, measured and killed.

mod home;
mod usage;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use home::{Clutter, Home};
pub use usage::Usage;

/// How many lines of output are kept.
const KEPT: usize = 2000;

/// How to start the binary.
#[derive(Debug, Clone)]
pub struct Launch {
    binary: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    /// A command that runs the binary, for limits that only a parent can set.
    through: Vec<String>,
}

impl Launch {
    /// `talaria run`, listening on a free port.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self {
            binary: binary.into(),
            arguments: vec!["run".into()],
            environment: vec![
                ("TALARIA_HTTP__LISTEN".into(), "127.0.0.1:0".into()),
                // What a test writes applies when the test says so.
                ("TALARIA_WATCH_CONFIG".into(), "false".into()),
            ],
            through: Vec::new(),
        }
    }

    /// With other arguments than `run`.
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        self
    }

    /// With this in the environment.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Started by this command.
    pub fn through(mut self, command: &[&str]) -> Self {
        self.through = command.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Starts it on a home. Nothing of the tester's own environment gets in.
    pub fn start(&self, home: &Path) -> anyhow::Result<GatewayProcess> {
        let mut command = match self.through.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.binary);
                command
            }
            None => Command::new(&self.binary),
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .args(&self.arguments)
            .env_clear()
            .env("PATH", path)
            .env("HOME", home)
            .env("TALARIA_HOME", home)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let started = Instant::now();
        let mut child =
            command.spawn().with_context(|| format!("cannot start {}", self.binary.display()))?;
        let output = Arc::new(Output::default());
        let streams = (child.stdout.take(), child.stderr.take());
        let mut readers = JoinSet::new();
        if let (Some(out), Some(err)) = streams {
            readers.spawn(collect(out, output.clone()));
            readers.spawn(collect(err, output.clone()));
        }
        Ok(GatewayProcess { child, output, readers, started })
    }
}

/// A running binary. Dropping it kills it.
pub struct GatewayProcess {
    child: Child,
    output: Arc<Output>,
    readers: JoinSet<()>,
    started: Instant,
}

#[derive(Default)]
struct Output {
    lines: Mutex<VecDeque<(Instant, String)>>,
    written: watch::Sender<u64>,
}

impl Output {
    fn find<T>(&self, read: impl Fn(Instant, &str) -> Option<T>) -> Option<T> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().find_map(|(at, line)| read(*at, line))
    }
}

async fn collect(from: impl AsyncRead + Unpin, output: Arc<Output>) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let mut kept = output.lines.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((Instant::now(), line));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        drop(kept);
        output.written.send_modify(|lines| *lines += 1);
    }
}

impl GatewayProcess {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or(0)
    }

    /// Completes with the time from the start to the ready line. An error if it ends instead.
    pub async fn ready(&mut self) -> anyhow::Result<Duration> {
        let ready = self.line(|line| line.contains(" is ready"));
        tokio::select! {
            (at, _) = ready => Ok(at - self.started),
            ended = self.child.wait() => {
                bail!("it ended ({}) before it was ready:\n{}", ended?, self.output())
            }
        }
    }

    /// Completes with the first line of output like this, and when it was written.
    pub fn line<F: Fn(&str) -> bool>(
        &self,
        is: F,
    ) -> impl Future<Output = (Instant, String)> + use<F> {
        let output = self.output.clone();
        async move {
            let mut written = output.written.subscribe();
            loop {
                if let Some(found) = output.find(|at, line| is(line).then(|| (at, line.to_owned())))
                {
                    return found;
                }
                // The sender lives in `output`.
                let _ = written.changed().await;
            }
        }
    }

    /// The address of the web page, once it is printed: `http://127.0.0.1:8420`.
    pub async fn address(&self) -> String {
        let (_, line) = self.line(|line| address_in(line).is_some()).await;
        address_in(&line).unwrap_or_default()
    }

    /// When it was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Everything it wrote, for a failing test to print.
    pub fn output(&self) -> String {
        let lines = self.output.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// Everything it wrote until it ended.
    pub async fn drained(mut self) -> String {
        while self.readers.join_next().await.is_some() {}
        self.output()
    }

    /// What it uses.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(self.pid())
    }

    /// Ends it as a power cut would: `kill -9`.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.child.start_kill()?;
        self.child.wait().await?;
        Ok(())
    }

    /// Asks it to end, as a service manager does.
    pub fn terminate(&self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.pid())?;
        kill(Pid::from_raw(pid), Signal::SIGTERM).context("it has ended already")
    }

    /// Completes when it has ended.
    pub async fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        Ok(self.child.wait().await?)
    }
}

fn address_in(line: &str) -> Option<String> {
    const HOST: &str = "http://127.0.0.1:";
    let (_, rest) = line.split_once(HOST)?;
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!port.is_empty()).then(|| format!("{HOST}{port}"))
}
