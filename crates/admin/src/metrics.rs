//! Numbers about the gateway, as Prometheus reads them. Nothing of what was said and nobody's id is among
//! them, and who may read them is not decided here.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use talaria_gateway::{AccountState, AccountStatus, Gateway, TurnState, TurnStatus};
use talaria_model::Timestamp;
use talaria_platform::Peer;
use talaria_store::{Counts, ParcelState, Queue, Queues};

use crate::api;
use crate::doors::Operator;
use crate::readers::{Reach, may_read};

/// How long the store has to say how much waits.
const PATIENCE: Duration = Duration::from_secs(3);

/// The format that Prometheus has read since its beginning.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the program around the gateway knows of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vitals {
    /// How late a timer rang last, and at the worst in the last minute.
    pub lag: Option<(Duration, Duration)>,
    /// The hooks.
    pub hooks: Vec<HookVitals>,
    /// Hops and spans that no collector was told of; none while nothing is followed.
    pub untraced: Option<u64>,
}

/// How a hook is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookVitals {
    /// Which.
    pub name: String,
    /// Events that it has heard.
    pub heard: u64,
    /// Events over which it failed.
    pub failed: u64,
    /// Events that it was not told, because it had too much to do or is left alone.
    pub untold: u64,
}

#[derive(Clone)]
pub(crate) struct Instruments {
    pub(crate) gateway: Gateway,
    pub(crate) operator: Arc<dyn Operator>,
    pub(crate) reach: Reach,
}

/// Where the numbers are read on the HTTP listener.
pub(crate) fn routes(instruments: Instruments) -> Router {
    Router::new().route("/metrics", get(metrics)).with_state(instruments)
}

async fn metrics(
    State(instruments): State<Instruments>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> Response {
    let Instruments { gateway, operator, reach } = instruments;
    let peer = peer.map(|Extension(peer)| peer);
    let token = operator.metrics_token();
    if !may_read(token.as_deref(), reach, peer, &headers) {
        let problem = "metrics are read with telemetry.metrics_token as a bearer token; without one, only \
                       by programs on this machine, while nobody else can come here; \
                       `talaria metrics` prints them";
        let problem = Json(api::Problem { problem: problem.into() });
        return (StatusCode::FORBIDDEN, problem).into_response();
    }
    let page = page(&gateway, &operator.vitals()).await;
    ([(CONTENT_TYPE, FORMAT)], page).into_response()
}

/// All numbers.
pub(crate) async fn page(gateway: &Gateway, vitals: &Vitals) -> String {
    let (store, clock) = (gateway.store(), gateway.clock());
    let known = tokio::select! {
        known = async { Some((store.counts().await.ok()?, store.queues().await.ok()?)) } => known,
        () = clock.sleep(PATIENCE) => None,
    };
    let now = clock.now();
    let mut page = Page::default();
    page.one(
        "talaria_info",
        "gauge",
        "The program.",
        &[("version", env!("CARGO_PKG_VERSION"))],
        1.0,
    );
    let started = gateway.started().as_millis() as f64 / 1e3;
    page.one("talaria_start_time_seconds", "gauge", "When this run began.", &[], started);
    process(&mut page);
    let help = "Whether the store says what it has.";
    page.one("talaria_store_up", "gauge", help, &[], f64::from(u8::from(known.is_some())));
    if let Some((counts, queues)) = &known {
        stored(&mut page, counts, queues, now);
    }
    let lanes = gateway.lanes_in_memory() as f64;
    page.one("talaria_lanes_in_memory", "gauge", "Sessions that are in memory.", &[], lanes);
    turns(&mut page, &gateway.turns(), now);
    accounts(&mut page, gateway, now);
    own(&mut page, vitals);
    page.text
}

fn turns(page: &mut Page, turns: &[TurnStatus], now: Timestamp) {
    let age = |since: Option<Timestamp>| since.map_or(0.0, |at| now.since(at).as_secs_f64());
    let (many, oldest) = TurnStatus::count(turns, TurnState::Working);
    page.one("talaria_turns_running", "gauge", "Turns that work.", &[], many as f64);
    let help = "How long the turn works that has worked for the longest.";
    page.one("talaria_turn_oldest_seconds", "gauge", help, &[], age(oldest));
    let (many, oldest) = TurnStatus::count(turns, TurnState::Waiting);
    let help = "Turns that wait for a place among those that may run at once.";
    page.one("talaria_turns_waiting", "gauge", help, &[], many as f64);
    let help = "How long the turn waits for a place that has waited for the longest.";
    page.one("talaria_turns_waiting_oldest_seconds", "gauge", help, &[], age(oldest));
}

fn stored(page: &mut Page, counts: &Counts, queues: &Queues, now: Timestamp) {
    let mut count = |name: &str, help: &str, many: u64| {
        page.one(name, "gauge", help, &[], many as f64);
    };
    count("talaria_sessions", "Conversations.", counts.sessions);
    count("talaria_entries", "Entries of transcripts.", counts.entries);
    count("talaria_turns_in_hand", "Turns that have begun and not ended.", counts.turns_in_hand);
    count("talaria_journal_unread", "Messages that no session has taken.", queues.unread.many);
    count("talaria_journal_denied", "Messages that were not let in.", counts.denied);
    count("talaria_journal_quarantined", "Messages that were set aside.", counts.quarantined);
    count("talaria_outbox_failed", "Parcels that will never be delivered.", counts.failed);
    let help = "Messages that wait behind a turn of their session.";
    count("talaria_messages_waiting", help, queues.waiting.many);
    let mut oldest = |name: &str, help: &str, queue: Queue| {
        page.one(name, "gauge", help, &[], age(queue, now));
    };
    let help = "How long the oldest message waits that no session has taken.";
    oldest("talaria_journal_unread_oldest_seconds", help, queues.unread);
    let help = "How long the oldest message waits behind a turn of its session.";
    oldest("talaria_messages_waiting_oldest_seconds", help, queues.waiting);
    let states = [
        (ParcelState::Ready, "ready"),
        (ParcelState::Plain, "plain"),
        (ParcelState::Unsure, "unsure"),
        (ParcelState::Attempting, "attempting"),
        (ParcelState::Previewing, "previewing"),
    ];
    let of = |state| queues.outbox.get(&state).copied().unwrap_or_default();
    page.family("talaria_outbox_parcels", "gauge", "Parcels that have to be delivered.");
    for (state, name) in states {
        page.sample("talaria_outbox_parcels", &[("state", name)], of(state).many as f64);
    }
    let name = "talaria_outbox_oldest_seconds";
    page.family(name, "gauge", "How long the oldest parcel has to be delivered.");
    for (state, label) in states {
        page.sample(name, &[("state", label)], age(of(state), now));
    }
}

fn age(queue: Queue, now: Timestamp) -> f64 {
    queue.oldest.map_or(0.0, |oldest| now.since(oldest).as_secs_f64())
}

fn accounts(page: &mut Page, gateway: &Gateway, now: Timestamp) {
    let mark = gateway.clock().mark();
    let accounts = gateway.accounts();
    let tallies = gateway.tallies();
    let name = "talaria_account_state";
    page.family(name, "gauge", "How an account is doing: one for the state that it is in.");
    for AccountStatus { id, platform, state, .. } in &accounts {
        let labels = [
            ("account", id.as_str()),
            ("platform", platform),
            (
                "state",
                match state {
                    AccountState::Connecting => "connecting",
                    AccountState::Connected => "connected",
                    AccountState::Waiting { .. } => "waiting",
                    AccountState::Deaf { .. } => "deaf",
                    AccountState::Unproven { .. } => "unproven",
                    AccountState::Paused => "paused",
                    AccountState::Contested { .. } => "contested",
                    AccountState::Refused { .. } => "refused",
                    AccountState::Fatal { .. } => "fatal",
                },
            ),
        ];
        page.sample(name, &labels, 1.0);
    }
    let name = "talaria_account_heard_seconds";
    page.family(name, "gauge", "How long ago an account was heard or known to be alive.");
    for AccountStatus { id, heard, .. } in &accounts {
        if let Some(heard) = heard {
            page.sample(name, &[("account", id.as_str())], now.since(*heard).as_secs_f64());
        }
    }
    let name = "talaria_account_mute_seconds";
    page.family(name, "gauge", "For how long nothing that is said on an account gets through.");
    for AccountStatus { id, mute, .. } in &accounts {
        let begun = mute.as_ref().map(|mute| mute.begun);
        let long = begun.map_or(0.0, |begun| mark.since(begun).as_secs_f64());
        page.sample(name, &[("account", id.as_str())], long);
    }
    let name = "talaria_account_deafnesses_total";
    page.family(name, "counter", "How often an account was connected and not heard.");
    for AccountStatus { id, deafnesses, .. } in &accounts {
        page.sample(name, &[("account", id.as_str())], f64::from(*deafnesses));
    }
    let name = "talaria_account_breakdowns_total";
    page.family(name, "counter", "How often an account broke down by a bug.");
    for AccountStatus { id, crashes, .. } in &accounts {
        page.sample(name, &[("account", id.as_str())], f64::from(*crashes));
    }
    let name = "talaria_events_total";
    page.family(name, "counter", "What came in, by what was decided about it.");
    for (account, tally) in &tallies {
        for (reception, many) in [
            ("taken_in", tally.taken_in),
            ("repeated", tally.repeated),
            ("ignored", tally.ignored),
            ("denied", tally.denied),
        ] {
            let labels = [("account", account.as_str()), ("reception", reception)];
            page.sample(name, &labels, many as f64);
        }
    }
    let name = "talaria_parcels_total";
    page.family(name, "counter", "What became of parcels, each time that something did.");
    for (account, tally) in &tallies {
        for (outcome, many) in [
            ("delivered", tally.delivered),
            ("retried", tally.retried),
            ("unsure", tally.unsure),
            ("lost", tally.lost),
        ] {
            let labels = [("account", account.as_str()), ("outcome", outcome)];
            page.sample(name, &labels, many as f64);
        }
    }
}

fn own(page: &mut Page, vitals: &Vitals) {
    if let Some((last, worst)) = vitals.lag {
        let help = "How late a timer rang last.";
        page.one("talaria_loop_lag_seconds", "gauge", help, &[], last.as_secs_f64());
        let help = "How late a timer rang at the worst in the last minute.";
        page.one("talaria_loop_lag_worst_seconds", "gauge", help, &[], worst.as_secs_f64());
    }
    if let Some(untraced) = vitals.untraced {
        let help = "Hops and spans that no collector was told of.";
        page.one("talaria_untraced_total", "counter", help, &[], untraced as f64);
    }
    if !vitals.hooks.is_empty() {
        let name = "talaria_hook_events_total";
        page.family(name, "counter", "Events for hooks, by what came of them.");
        for HookVitals { name: hook, heard, failed, untold } in &vitals.hooks {
            for (outcome, many) in [("heard", heard), ("failed", failed), ("untold", untold)] {
                page.sample(name, &[("hook", hook), ("outcome", outcome)], *many as f64);
            }
        }
    }
}

/// What the operating system knows of the process, where it tells.
fn process(page: &mut Page) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(bytes) = resident(&status) {
        let help = "Memory that the process holds.";
        page.one("process_resident_memory_bytes", "gauge", help, &[], bytes as f64);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        // Looking opens one, too.
        let open = open.count().saturating_sub(1) as f64;
        page.one("process_open_fds", "gauge", "Files and connections that are open.", &[], open);
    }
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    if let Some(most) = most_files(&limits) {
        page.one("process_max_fds", "gauge", "The most of them.", &[], most as f64);
    }
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

fn most_files(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A page of numbers.
#[derive(Debug, Default)]
struct Page {
    text: String,
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(name);
        for (place, (label, value)) in labels.iter().enumerate() {
            self.text.push(if place == 0 { '{' } else { ',' });
            let _ = write!(self.text, "{label}=\"{}\"", escaped(value));
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, labels: &[(&str, &str)], value: f64) {
        self.family(name, kind, help);
        self.sample(name, labels, value);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_tells_is_read() {
        assert_eq!(resident("Name:\tx\nVmRSS:\t   1234 kB\n"), Some(1234 * 1024));
        assert_eq!(resident("Name:\tx\n"), None);
        let limits = "Max open files            1024                 524288               files\n";
        assert_eq!(most_files(limits), Some(1024));
        assert_eq!(most_files("Max open files            unlimited            unlimited\n"), None);
    }

    #[test]
    fn labels_cannot_break_out_of_their_line() {
        let mut page = Page::default();
        page.one("name", "gauge", "Help.", &[("a", "x\"\n\\"), ("b", "y")], 1.5);
        assert_eq!(
            page.text,
            "# HELP name Help.\n# TYPE name gauge\nname{a=\"x\\\"\\n\\\\\",b=\"y\"} 1.5\n"
        );
    }
}
