//! A million messages that wait when the gateway starts: how much memory it takes to work them off,
//! and whether each conversation is worked off in order.
//!
//! The rows are put into the store through its own contract before the gateway starts, as a gateway
//! leaves them that was killed behind a platform that had much to tell.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use talaria_model::{
    AccountId, Address, Chat, ChatId, ChatKind, EventId, Inbound, InboundKind, Message, Sender,
    SenderId, Source, Timestamp,
};
use talaria_session::{Scope, SessionKey};
use talaria_store::{Delivered, JournalState, Store};
use talaria_store_sqlite::SqliteStore;
use talaria_testkit::{
    Clutter, Conduct, FakeLlm, GatewayProcess, Home, Launch, Reply, Token, Vendor, VendorSettings,
    mentioned,
};
use tokio::sync::watch;
use tokio::time::{Instant, interval, timeout};

/// Rows of one commit.
const BATCH: u64 = 1000;

/// How often memory is looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// Nothing takes this long unless it hangs.
const HANGS: Duration = Duration::from_secs(30 * 60);

/// How much waits, and for whom.
#[derive(Debug, Clone, Copy)]
pub(super) struct Backlog {
    pub(super) rows: u64,
    pub(super) sessions: u64,
    /// The most megabytes the gateway may use.
    pub(super) ceiling: u64,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Outcome {
    filled: Duration,
    ready: Duration,
    first_act: Duration,
    drained: Duration,
    acts: u64,
    resident_when_ready: u64,
    most_resident: u64,
    resident_at_last: u64,
}

impl Outcome {
    pub(super) fn print(&self, backlog: Backlog) {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let Backlog { rows, sessions, ceiling } = backlog;
        println!(
            "backlog            {rows} rows of {sessions} sessions, written in {:.0} s",
            self.filled.as_secs_f64()
        );
        println!("start to ready     {:.0} ms", self.ready.as_secs_f64() * 1e3);
        println!("start to first act {:.0} ms", self.first_act.as_secs_f64() * 1e3);
        println!(
            "worked off         in {:.1} s, {:.0} rows a second, {} answers, each session in order",
            self.drained.as_secs_f64(),
            rows as f64 / self.drained.as_secs_f64(),
            self.acts
        );
        println!(
            "resident           {:.0} MB when ready, {:.0} MB at most, {:.0} MB at the end; ceiling {ceiling} MB",
            megabytes(self.resident_when_ready),
            megabytes(self.most_resident),
            megabytes(self.resident_at_last)
        );
    }
}

/// Fills a store, lets the gateway work it off, and insists on order and on the ceiling.
pub(super) async fn run(binary: &Path, folder: &Path, backlog: Backlog) -> Result<Outcome> {
    let llm = FakeLlm::open().await?;
    llm.script(|asked| {
        let tokens = mentioned(&asked.said());
        let named: Vec<String> = tokens.iter().map(ToString::to_string).collect();
        Reply::Says(format!("echo: {}", named.join(" ")))
    });
    let vendor = Vendor::open(VendorSettings::default()).await?;
    let progress = Arc::new(Progress::new(backlog));
    let watching = progress.clone();
    vendor.script(move |act| {
        watching.take(&act.chat, &mentioned(&act.text));
        Conduct::Does
    });
    // Each message is to be answered, not to interrupt the answer to the one before it.
    let steer = Clutter { sections: "agent: {busy_input_mode: steer}\n", ..Clutter::default() };
    let home = Home::below(folder, vendor.address(), &llm.base_url(), steer)?;
    let begun = Instant::now();
    fill(home.path(), backlog).await?;
    let filled = begun.elapsed();
    eprintln!("  written; the gateway starts");

    let started = Instant::now();
    let launch = Launch::new(binary).environment("TALARIA_LOG__LEVEL", "warn");
    let mut process = launch.start(home.path())?;
    let ready = timeout(HANGS, process.ready()).await.context("it did not get ready")??;
    let resident_when_ready = process.usage()?.resident;
    let drained = timeout(HANGS, progress.drain(&process, backlog)).await;
    let drained = drained.context("it was not worked off")?.with_context(|| {
        let wrong = progress.lock().wrong.clone();
        let chat = wrong.map(|(chat, _)| chat).unwrap_or_default();
        let shown = vendor.read(|truth| {
            truth.shown_in(&chat).map(|shown| format!("    {}", shown.text)).collect::<Vec<_>>()
        });
        format!("{chat} can read:\n{}\n{}", shown.join("\n"), process.output())
    })?;
    let usage = process.usage()?;
    process.terminate()?;
    let ended = timeout(HANGS, process.ended()).await.context("it did not end")??;
    ensure!(ended.success(), "the gateway ended with {ended}\n{}", process.drained().await);
    let state = progress.lock();
    let outcome = Outcome {
        filled,
        ready,
        first_act: state.first_act.map_or(Duration::ZERO, |at| at - started),
        drained,
        acts: state.acts,
        resident_when_ready,
        most_resident: usage.most_resident,
        resident_at_last: usage.resident,
    };
    Ok(outcome)
}

async fn fill(home: &Path, backlog: Backlog) -> Result<()> {
    let store = SqliteStore::open(home)?;
    let account = AccountId::literal("bench");
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let at = Timestamp::from_millis(i64::try_from(now)?);
    let mut row = 0;
    while row < backlog.rows {
        let end = (row + BATCH).min(backlog.rows);
        let events = (row..end).map(|row| event(&account, backlog, row, at));
        let events = events.collect::<Result<_>>()?;
        let cursor = Some(end.to_string());
        store.admit(Delivered { account: account.clone(), events, cursor, at }).await?;
        row = end;
    }
    store.close().await?;
    Ok(())
}

fn event(
    account: &AccountId,
    backlog: Backlog,
    row: u64,
    at: Timestamp,
) -> Result<(SessionKey, Inbound, JournalState)> {
    let chat = chat_of(row % backlog.sessions);
    let token = Token(row);
    let text = format!("one of the many things that people said while nobody was there {token}");
    let inbound = Inbound {
        id: EventId::new(format!("e{}", row + 1))?,
        at,
        from: Sender::new(SenderId::new(format!("{chat}-person"))?),
        to: Address {
            account: account.clone(),
            chat: Chat { id: ChatId::new(chat)?, kind: ChatKind::Dm },
            thread: None,
        },
        kind: InboundKind::Said(Message { text, ..Message::default() }),
        source: Source::default(),
    };
    Ok((SessionKey::of(&inbound, Scope::default()), inbound, JournalState::Unread))
}

fn chat_of(session: u64) -> String {
    format!("chat{session}")
}

/// How much has been worked off, and whether in order.
struct Progress {
    sessions: u64,
    state: Mutex<State>,
    answered: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// The token that each session's next answer has to begin with.
    next: HashMap<String, u64>,
    /// The first chat that got something else, and what.
    wrong: Option<(String, String)>,
    first_act: Option<Instant>,
    acts: u64,
}

impl Progress {
    fn new(backlog: Backlog) -> Self {
        let next = (0..backlog.sessions).map(|session| (chat_of(session), session)).collect();
        let state = Mutex::new(State { next, ..State::default() });
        Self { sessions: backlog.sessions, state, answered: watch::Sender::new(0) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, chat: &str, tokens: &[Token]) {
        let mut state = self.lock();
        state.acts += 1;
        state.first_act.get_or_insert_with(Instant::now);
        let mut next = state.next.get(chat).copied();
        for token in tokens {
            if next != Some(token.0) {
                let expected = next.map(|next| Token(next).to_string());
                let expected = expected.unwrap_or_else(|| "nothing".to_owned());
                let wrong = format!("{chat} got {token} where {expected} was next");
                state.wrong.get_or_insert_with(|| (chat.to_owned(), wrong));
            }
            next = Some(token.0 + self.sessions);
        }
        state.next.extend(next.map(|next| (chat.to_owned(), next)));
        drop(state);
        self.answered.send_modify(|answered| *answered += tokens.len() as u64);
    }

    /// Waits until all is answered; says how long it took.
    async fn drain(&self, process: &GatewayProcess, backlog: Backlog) -> Result<Duration> {
        let begun = Instant::now();
        let mut answered = self.answered.subscribe();
        let mut glances = interval(GLANCE);
        let mut told = 0;
        loop {
            if let Some((_, wrong)) = &self.lock().wrong {
                anyhow::bail!("{wrong}");
            }
            let most = process.usage()?.most_resident;
            ensure!(
                most <= backlog.ceiling * 1_000_000,
                "the gateway uses {:.0} MB with {} of {} rows worked off; the ceiling is {} MB",
                most as f64 / 1e6,
                *answered.borrow(),
                backlog.rows,
                backlog.ceiling
            );
            let done = *answered.borrow_and_update();
            if done >= backlog.rows {
                return Ok(begun.elapsed());
            }
            if done / 100_000 > told {
                told = done / 100_000;
                let megabytes = most as f64 / 1e6;
                eprintln!("  {done} rows worked off, {megabytes:.0} MB at most");
            }
            glances.tick().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(taken: &[(&str, &[u64])]) -> Option<(String, String)> {
        let progress = Progress::new(Backlog { rows: 6, sessions: 2, ceiling: 1 });
        for (chat, tokens) in taken {
            let tokens: Vec<Token> = tokens.iter().map(|token| Token(*token)).collect();
            progress.take(chat, &tokens);
        }
        progress.lock().wrong.take()
    }

    #[test]
    fn each_session_has_to_be_worked_off_in_order_and_once() {
        assert_eq!(wrong(&[("chat1", &[1]), ("chat0", &[0, 2]), ("chat1", &[3, 5])]), None);
        assert!(wrong(&[("chat0", &[2])]).is_some());
        assert!(wrong(&[("chat0", &[0]), ("chat0", &[0])]).is_some());
        assert!(wrong(&[("chat0", &[0, 4])]).is_some());
        assert!(wrong(&[("chat0", &[1])]).is_some());
        assert!(wrong(&[("elsewhere", &[0])]).is_some());
    }
}
