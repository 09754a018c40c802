//! What was going on when a gateway was told to end: `logs/shutdown-<time>.json`.
//!
//! Written before it begins to end, so that it is there whatever happens then, and again when it has. It
//! names turns and chats, and nothing that anybody said.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use talaria_clock::{Clock, SystemClock, rfc3339};
use talaria_gateway::{ChoreDump, Chores, Drained, Gateway};
use talaria_machine::{Mode, command_line, parent, replace};

use crate::aside::aside;
use crate::ending::Why;
use crate::home::Home;

/// How many of these files are kept.
const KEPT: usize = 20;

/// How many sessions and chats are listed.
const LISTED: usize = 1000;

/// How many of them the log names.
const NAMED: usize = 20;

/// How far it is looked who started whom.
const ANCESTORS: usize = 8;

/// What was going on.
#[derive(Clone, Serialize)]
pub(crate) struct Report {
    #[serde(skip)]
    path: PathBuf,
    /// Held by whoever writes it, so that what is written last stays.
    #[serde(skip)]
    pen: Arc<Mutex<()>>,
    at: String,
    why: Why,
    version: &'static str,
    pid: u32,
    uptime_seconds: u64,
    /// Who started this process, and who started them.
    ancestors: Vec<Ancestor>,
    #[serde(flatten)]
    at_first: InHand,
    /// What it waited for when it was cut off.
    at_the_end: Option<InHand>,
    /// What came of it; missing when the process was killed meanwhile.
    ended: Option<Ended>,
}

/// What a process has in hand.
#[derive(Clone, Serialize)]
pub(crate) struct InHand {
    turns: Vec<Turn>,
    accounts: Vec<Account>,
    tasks: Tasks,
    /// What goes on beside the gateway.
    chores: Vec<Chore>,
    /// The sessions that are in memory.
    lanes: Vec<Lane>,
    /// The chats with something to deliver or to show.
    chats: Vec<Chat>,
}

#[derive(Clone, Serialize)]
struct Ancestor {
    pid: u32,
    argv: Vec<String>,
}

#[derive(Clone, Serialize)]
struct Turn {
    turn: String,
    account: String,
    chat: String,
    state: &'static str,
    for_seconds: u64,
}

#[derive(Clone, Serialize)]
struct Account {
    name: String,
    platform: Option<&'static str>,
    state: Option<String>,
    since: Option<String>,
    heard: Option<String>,
    mute: Option<String>,
    generation: u64,
    order: &'static str,
    orders: u64,
    speaks: bool,
}

#[derive(Clone, Serialize)]
struct Lane {
    session: String,
    phase: &'static str,
    since: String,
    waiting: usize,
}

#[derive(Clone, Serialize)]
struct Chat {
    account: String,
    chat: String,
    thread: Option<String>,
    pace: &'static str,
    parcels: usize,
    growing: usize,
}

#[derive(Clone, Serialize)]
struct Chore {
    name: &'static str,
    /// How often; more than once means that it broke down.
    begun: u32,
    is_done: bool,
}

#[derive(Clone, Serialize)]
struct Tasks {
    in_runtime: usize,
    not_polled_yet: usize,
    threads: usize,
    sessions_in_memory: usize,
}

/// What came of an end.
#[derive(Clone, Serialize)]
#[serde(rename_all = "snake_case", tag = "how")]
enum Ended {
    /// It came to its end.
    Finished {
        at: String,
        waited_millis: u64,
        /// Sessions whose turns go on in the next run.
        left: Vec<String>,
        unsent: bool,
        clean: bool,
    },
    /// It did not, and was given up.
    CutOff { at: String, after_seconds: u64 },
}

impl InHand {
    /// What is in hand at this moment.
    pub(crate) fn of(gateway: &Gateway, chores: &Chores, redact: &dyn Fn(&str) -> String) -> Self {
        let now = SystemClock.now();
        let runtime = tokio::runtime::Handle::current().metrics();
        let turns = gateway.turns().into_iter().map(|status| Turn {
            turn: status.turn.to_string(),
            account: status.to.account.to_string(),
            chat: status.to.chat.id.to_string(),
            state: status.state.as_str(),
            for_seconds: now.since(status.since).as_secs(),
        });
        let dump = gateway.dump();
        let statuses = gateway.accounts();
        let accounts = dump.accounts.into_iter().map(|account| {
            let status = statuses.iter().find(|status| status.id == account.id);
            Account {
                name: account.id.to_string(),
                platform: status.map(|status| status.platform),
                state: status.map(|status| redact(&format!("{:?}", status.state))),
                since: status.map(|status| rfc3339(status.since)),
                heard: status.and_then(|status| status.heard).map(rfc3339),
                mute: status.and_then(|status| status.mute.as_ref()).map(|mute| redact(&mute.why)),
                generation: account.generation,
                order: account.order,
                orders: account.orders,
                speaks: account.speaks,
            }
        });
        let chores = chores.all().into_iter();
        let lanes = dump.lanes.into_iter().map(|lane| Lane {
            session: lane.key.to_string(),
            phase: lane.doing.as_str(),
            since: rfc3339(lane.since),
            waiting: lane.waiting,
        });
        let chats = dump.chats.into_iter().map(|chat| Chat {
            account: chat.to.account.to_string(),
            chat: chat.to.chat.id.to_string(),
            thread: chat.to.thread.map(|thread| thread.to_string()),
            pace: chat.pace,
            parcels: chat.parcels,
            growing: chat.growing,
        });
        Self {
            turns: turns.collect(),
            accounts: accounts.collect(),
            tasks: Tasks {
                in_runtime: runtime.num_alive_tasks(),
                not_polled_yet: runtime.global_queue_depth(),
                threads: runtime.num_workers(),
                sessions_in_memory: gateway.lanes_in_memory(),
            },
            chores: chores
                .map(|ChoreDump { name, begun, is_done }| Chore { name, begun, is_done })
                .collect(),
            lanes: lanes.take(LISTED).collect(),
            chats: chats.take(LISTED).collect(),
        }
    }

    /// What an end may wait for, in one line.
    pub(crate) fn in_words(&self) -> String {
        let turns = self.turns.iter().map(|turn| {
            let Turn { account, chat, state, for_seconds, .. } = turn;
            format!("a turn in {account}:{chat}, {state} for {for_seconds} s")
        });
        let lanes = self.lanes.iter().filter(|lane| lane.phase != "idle" || lane.waiting > 0);
        let lanes = lanes.map(|lane| format!("the session {}, {}", lane.session, lane.phase));
        let chats = self.chats.iter().filter(|chat| chat.pace != "resting");
        let chats =
            chats.map(|chat| format!("the chat {}:{}, {}", chat.account, chat.chat, chat.pace));
        let mut words: Vec<String> = turns.chain(lanes).chain(chats).collect();
        let more = words.len().saturating_sub(NAMED);
        words.truncate(NAMED);
        if more > 0 {
            words.push(format!("{more} more"));
        }
        match words.is_empty() {
            true => "no turn, session or chat".to_owned(),
            false => words.join("; "),
        }
    }
}

impl Report {
    /// What was going on when an end began.
    pub(crate) fn new(
        home: &Home,
        uptime: Duration,
        why: Why,
        at_first: InHand,
        redact: &dyn Fn(&str) -> String,
    ) -> Self {
        let now = SystemClock.now();
        let name = format!("shutdown-{}.json", rfc3339(now).replace([':', '.'], "-"));
        Self {
            path: home.logs().join(name),
            pen: Arc::default(),
            at: rfc3339(now),
            why: why.told_with(redact),
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            uptime_seconds: uptime.as_secs(),
            ancestors: ancestors(redact),
            at_first,
            at_the_end: None,
            ended: None,
        }
    }

    /// The same when it came to its end.
    pub(crate) fn finished(&self, drained: &Drained) -> Self {
        let ended = Ended::Finished {
            at: rfc3339(SystemClock.now()),
            waited_millis: u64::try_from(drained.waited.as_millis()).unwrap_or(u64::MAX),
            left: drained.left.iter().map(ToString::to_string).collect(),
            unsent: drained.unsent,
            clean: drained.clean,
        };
        Self { ended: Some(ended), ..self.clone() }
    }

    /// The same when it did not, and was given up with this still in hand.
    pub(crate) fn cut_off(&self, after: Duration, left: InHand) -> Self {
        let ended =
            Ended::CutOff { at: rfc3339(SystemClock.now()), after_seconds: after.as_secs() };
        Self { ended: Some(ended), at_the_end: Some(left), ..self.clone() }
    }

    /// Writes it, and throws the oldest away.
    pub(crate) async fn write(&self) {
        let report = self.clone();
        if let Some(Err(error)) = aside(move || report.try_to_write()).await {
            tracing::warn!(%error, "what goes on at the end could not be written down");
        }
    }

    fn try_to_write(&self) -> std::io::Result<()> {
        let _one_at_a_time = self.pen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(folder) = self.path.parent() else { return Ok(()) };
        std::fs::create_dir_all(folder)?;
        replace(&self.path, &serde_json::to_vec_pretty(self)?, Mode::PRIVATE)?;
        for old in too_many(folder)? {
            std::fs::remove_file(old)?;
        }
        Ok(())
    }
}

fn too_many(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut reports = Vec::new();
    for file in std::fs::read_dir(folder)? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        if name.starts_with("shutdown-") && name.ends_with(".json") {
            reports.push(file.path());
        }
    }
    // The names are times.
    reports.sort();
    reports.truncate(reports.len().saturating_sub(KEPT));
    Ok(reports)
}

fn ancestors(redact: &dyn Fn(&str) -> String) -> Vec<Ancestor> {
    let parents = std::iter::successors(parent(std::process::id()), |pid| parent(*pid));
    parents
        .take_while(|pid| *pid != 0)
        .take(ANCESTORS)
        .map(|pid| {
            let words = command_line(pid).unwrap_or_default();
            Ancestor { pid, argv: words.iter().map(|word| redact(word)).collect() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_hand(phase: &'static str) -> InHand {
        let turn = Turn {
            turn: "s1/1".into(),
            account: "bench".into(),
            chat: "ann".into(),
            state: "working",
            for_seconds: 30,
        };
        let lane = |session: &str, phase| Lane {
            session: session.to_owned(),
            phase,
            since: String::new(),
            waiting: 0,
        };
        let chat = |chat: &str, pace| Chat {
            account: "bench".into(),
            chat: chat.to_owned(),
            thread: None,
            pace,
            parcels: 1,
            growing: 0,
        };
        let tasks = Tasks { in_runtime: 1, not_polled_yet: 0, threads: 2, sessions_in_memory: 2 };
        InHand {
            turns: vec![turn],
            accounts: vec![],
            tasks,
            chores: vec![],
            lanes: vec![lane("ann's", phase), lane("ben's", "idle")],
            chats: vec![chat("ann", "carrying"), chat("ben", "resting")],
        }
    }

    #[test]
    fn an_end_names_what_it_waits_for_and_not_what_is_at_rest() {
        let words = in_hand("stopping").in_words();
        let expected = "a turn in bench:ann, working for 30 s; the session ann's, stopping; the chat bench:ann, carrying";
        assert_eq!(words, expected);
        let many = InHand { turns: vec![in_hand("idle").turns[0].clone(); 100], ..in_hand("idle") };
        assert!(many.in_words().ends_with("; 81 more"), "{}", many.in_words());
    }

    #[tokio::test]
    async fn what_was_in_hand_when_an_end_was_cut_off_is_written_beside_what_was_at_first() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let keep = |text: &str| text.to_owned();
        let report = Report::new(&home, Duration::ZERO, Why::Stop, in_hand("thinking"), &keep);
        let cut_off = report.cut_off(Duration::from_secs(20), in_hand("stopping"));
        report.write().await;
        cut_off.write().await;
        let text = std::fs::read_to_string(&report.path).unwrap();
        let told: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(told["ended"]["how"], "cut_off");
        assert_eq!(told["lanes"][0]["phase"], "thinking");
        assert_eq!(told["at_the_end"]["lanes"][0]["phase"], "stopping");
    }

    #[test]
    fn only_the_newest_reports_are_kept_and_nothing_else_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..KEPT + 3 {
            let name = format!("shutdown-2026-01-01T00-00-{n:02}-000Z.json");
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::write(folder.path().join("gateway.log"), "").unwrap();
        let gone = too_many(folder.path()).unwrap();
        let gone: Vec<_> = gone.iter().map(|path| path.file_name().unwrap().to_owned()).collect();
        assert_eq!(gone.len(), 3);
        assert_eq!(gone[2], "shutdown-2026-01-01T00-00-02-000Z.json");
    }
}
