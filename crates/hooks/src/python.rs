//! A hook in Python: one process that stays, is started when there is something to hear, and started
//! again when it has died.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures::StreamExt;
use serde::Deserialize;
use serde_json::Value;
use talaria_clock::{Clock, Mark};
use talaria_machine::{PYTHON, Started};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio_util::codec::{FramedRead, LinesCodec};

use crate::running::{command, last_line};
use crate::{Call, Ears, Hook, HookError, LONGEST_ANSWER, LONGEST_RUN};

/// What runs the handler. It is handed over with the command, so that nobody can have changed it.
const HOST: &str = include_str!("host.py");

/// How much one process does at once; what somebody waits for always finds room.
const AT_ONCE: usize = 32;
const TOLD_AT_ONCE: usize = AT_ONCE / 2;

/// How much of its complaints is kept, in bytes.
const MOST_COMPLAINTS: usize = 4 * 1024;

struct Host {
    running: Started,
    stdin: ChildStdin,
    /// What it has not taken yet.
    unsent: VecDeque<u8>,
    lines: FramedRead<ChildStdout, LinesCodec>,
    stderr: ChildStderr,
    complaints: Vec<u8>,
    /// Whether there is more to come of them.
    complains: bool,
}

#[derive(Deserialize)]
struct Said {
    id: u64,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error: Option<String>,
}

enum Heard {
    Line(String),
    /// It took a part of what it is told, or complained about something.
    Nothing,
    Died(HookError),
}

impl Host {
    fn start(hook: &Hook) -> Result<Self, HookError> {
        let failed =
            |error: std::io::Error| HookError::Failed(format!("{PYTHON} cannot be run: {error}"));
        let mut command = command(PYTHON, &hook.folder, &hook.name);
        command.args(["-u", "-B", "-c", HOST]).arg(hook.handler.path());
        let mut running = Started::start(command).map_err(failed)?;
        let (stdin, stdout, stderr) = (running.stdin(), running.stdout(), running.stderr());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(HookError::Failed(format!("{PYTHON} has no pipes")));
        };
        let lines = FramedRead::new(stdout, LinesCodec::new_with_max_length(LONGEST_ANSWER));
        let (unsent, complaints) = (VecDeque::new(), Vec::new());
        Ok(Self { running, stdin, unsent, lines, stderr, complaints, complains: true })
    }

    fn tell(&mut self, id: u64, call: &Call) {
        // The line is an object; its id goes first.
        self.unsent.extend(format!("{{\"id\":{id},").into_bytes());
        self.unsent.extend(&call.line.as_bytes()[1..]);
    }

    /// Listens and speaks at once: neither side may wait for the other to listen.
    async fn hear(&mut self) -> Heard {
        let mut piece = [0; 1024];
        tokio::select! {
            biased;
            line = self.lines.next() => match line {
                Some(Ok(line)) => Heard::Line(line),
                Some(Err(error)) => Heard::Died(HookError::Garbled(error.to_string())),
                None => Heard::Died(HookError::Failed(self.last_words().await)),
            },
            read = self.stderr.read(&mut piece), if self.complains => {
                match read {
                    Ok(read @ 1..) => self.keep(&piece[..read]),
                    _ => self.complains = false,
                }
                Heard::Nothing
            }
            written = self.stdin.write_buf(&mut self.unsent), if !self.unsent.is_empty() => {
                match written {
                    Ok(1..) => Heard::Nothing,
                    _ => Heard::Died(HookError::Failed(self.last_words().await)),
                }
            }
        }
    }

    /// The newest complaints are kept.
    fn keep(&mut self, piece: &[u8]) {
        self.complaints.extend_from_slice(piece);
        let over = self.complaints.len().saturating_sub(MOST_COMPLAINTS);
        self.complaints.drain(..over);
    }

    async fn last_words(&mut self) -> String {
        // What it left running could keep the pipe open.
        self.running.end();
        let rest = crate::running::complaints(Some(&mut self.stderr)).await;
        self.keep(&rest);
        match last_line(&self.complaints) {
            line if line.is_empty() => "it ended".into(),
            line => format!("it ended: {line}"),
        }
    }
}

struct Serving<'a> {
    hook: &'a Hook,
    clock: &'a dyn Clock,
    host: Option<Host>,
    pending: HashMap<u64, (Call, Mark)>,
    last: u64,
}

pub(crate) async fn serve(hook: &Arc<Hook>, ears: &mut Ears, clock: Arc<dyn Clock>) {
    let clock = clock.as_ref();
    let mut serving = Serving { hook, clock, host: None, pending: HashMap::new(), last: 0 };
    loop {
        let open = serving.pending.len();
        let next = serving.pending.values().map(|(_, deadline)| *deadline).min();
        let late = async {
            match next {
                Some(deadline) => clock.sleep(deadline.since(clock.mark())).await,
                None => std::future::pending().await,
            }
        };
        let host = &mut serving.host;
        let heard = async {
            match host {
                Some(host) => host.hear().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(call) = ears.asked.recv(), if open < AT_ONCE => match call.listener.is_gone() {
                true => hook.pass_over(call),
                false => serving.begin(call),
            },
            heard = heard => serving.heard(heard),
            () = late => serving.expire(),
            Some(call) = ears.told.recv(), if open < TOLD_AT_ONCE => serving.begin(call),
            else => return,
        }
    }
}

impl Serving<'_> {
    fn begin(&mut self, call: Call) {
        if self.host.is_none() {
            match Host::start(self.hook) {
                Ok(host) => self.host = Some(host),
                Err(error) => return self.hook.settle(call, Err(error), self.clock),
            }
        }
        let Some(host) = &mut self.host else { return };
        self.last += 1;
        host.tell(self.last, &call);
        let deadline = self.clock.mark() + call.limit;
        self.pending.insert(self.last, (call, deadline));
    }

    fn heard(&mut self, heard: Heard) {
        let line = match heard {
            Heard::Nothing => return,
            Heard::Died(error) => return self.end(&error),
            Heard::Line(line) => line,
        };
        match serde_json::from_str::<Said>(&line) {
            Ok(Said { id, result, error }) => {
                // What came too late is of no interest.
                if let Some((call, _)) = self.pending.remove(&id) {
                    let answer = error.map_or(Ok(result), |error| Err(HookError::Failed(error)));
                    self.hook.settle(call, answer, self.clock);
                }
            }
            Err(error) => self.end(&HookError::Garbled(error.to_string())),
        }
    }

    /// Gives up on what took too long. A process that hangs or does not listen is ended.
    fn expire(&mut self) {
        let now = self.clock.mark();
        let late = self.pending.extract_if(|_, (_, deadline)| *deadline <= now);
        let late: Vec<(Call, Mark)> = late.map(|(_, call)| call).collect();
        let is_deaf = self.host.as_ref().is_some_and(|host| !host.unsent.is_empty());
        let hangs = is_deaf || late.iter().any(|(call, _)| call.limit >= LONGEST_RUN);
        for (call, _) in late {
            self.hook.settle(call, Err(HookError::Late), self.clock);
        }
        if hangs || self.hook.lock().rests() {
            self.end(&HookError::Late);
        }
    }

    fn end(&mut self, error: &HookError) {
        self.host = None;
        for (_, (call, _)) in self.pending.drain() {
            self.hook.settle(call, Err(error.clone()), self.clock);
        }
    }
}
