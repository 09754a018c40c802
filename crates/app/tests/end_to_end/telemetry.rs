//! What other programs read of a running gateway: metrics, and traces as a collector takes them off its
//! socket.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use talaria_clock::{Clock, SystemClock};
use talaria_testkit::{Asked, Hold, Reply, ScriptedCall, Truth, VendorSettings, within};

use crate::rig::{HANGS, Rig, run};

/// How often it is looked.
const GLANCE: Duration = Duration::from_millis(20);

/// The value of a sample, by its name and labels as they are written.
fn sample(page: &str, name: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

async fn read(url: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut request = client.get(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test]
async fn metrics_are_for_whoever_has_the_token_and_count_what_passes() {
    let sections = "telemetry: {metrics_token: 0123456789abcdef}\n\
                    agent: {busy_input_mode: queue, busy_ack_enabled: false}\n";
    let account = ["ignored_chats: [noise]"];
    let mut rig = Rig::configured(VendorSettings::default(), &account, sections).await;
    rig.start().await;
    let url = format!("{}/metrics", rig.process().address().await);
    for chat in ["ann", "ben", "cleo"] {
        rig.vendor.say(chat, "hello");
    }
    rig.vendor.happens("noise", "hm", |event| event.kind = Some("group"));
    rig.until_everything_is_answered().await;
    rig.until("every acknowledgement", |truth: &Truth| truth.acked() == truth.happened()).await;
    let token = ("authorization", "Bearer 0123456789abcdef");
    let settled = async {
        loop {
            let (status, page) = read(&url, &[token]).await;
            assert_eq!(status, 200, "{page}");
            let of = |name: &str| sample(&page, name);
            if of("talaria_parcels_total{account=\"bench\",outcome=\"delivered\"}") == Some(3.0)
                && of("talaria_loop_lag_seconds").is_some()
            {
                return page;
            }
            SystemClock.sleep(GLANCE).await;
        }
    };
    let page = within(HANGS, "three deliveries", settled).await;
    for (name, expected) in [
        ("talaria_events_total{account=\"bench\",reception=\"taken_in\"}", 3.0),
        ("talaria_events_total{account=\"bench\",reception=\"ignored\"}", 1.0),
        ("talaria_events_total{account=\"bench\",reception=\"denied\"}", 0.0),
        ("talaria_journal_unread", 0.0),
        ("talaria_outbox_parcels{state=\"ready\"}", 0.0),
        ("talaria_outbox_oldest_seconds{state=\"unsure\"}", 0.0),
        ("talaria_turns_running", 0.0),
        ("talaria_store_up", 1.0),
        ("talaria_sessions", 3.0),
        ("talaria_account_mute_seconds{account=\"bench\"}", 0.0),
        ("talaria_account_deafnesses_total{account=\"bench\"}", 0.0),
        ("talaria_account_breakdowns_total{account=\"bench\"}", 0.0),
        ("talaria_account_state{account=\"bench\",platform=\"loopback\",state=\"connected\"}", 1.0),
    ] {
        assert_eq!(sample(&page, name), Some(expected), "{name} in {page}");
    }
    for name in ["process_resident_memory_bytes", "process_open_fds"] {
        assert!(sample(&page, name).is_some_and(|value| value > 1.0), "{name} in {page}");
    }
    for line in page.lines() {
        let is_comment = line.starts_with("# HELP talaria_")
            || line.starts_with("# TYPE talaria_")
            || line.starts_with("# HELP process_")
            || line.starts_with("# TYPE process_");
        let is_sample =
            line.rsplit_once(' ').is_some_and(|(_, value)| value.parse::<f64>().is_ok());
        assert!(is_comment || is_sample, "{line}");
    }
    assert!(!page.contains("hello") && !page.contains("ann"), "{page}");

    // It is wanted from this machine, too: a proxy looks like it.
    for headers in [
        &[][..],
        &[("host", "gateway.example.com")],
        &[("authorization", "Bearer 0123456789abcdee")],
    ] {
        let (status, told) = read(&url, headers).await;
        assert_eq!(status, 403, "{headers:?}: {told}");
        assert!(told.contains("telemetry.metrics_token"), "{told}");
    }
    let (status, _) = read(&url, &[("x-forwarded-for", "203.0.113.7"), token]).await;
    assert_eq!(status, 200);
    let (ended, told) = run(rig.home.path(), &["metrics"]).await;
    assert!(ended.success() && told.contains("talaria_store_up 1"), "{told}");
    rig.end().await;
}

#[tokio::test]
async fn who_waits_behind_a_turn_that_does_not_end_is_seen_with_how_long() {
    let sections = "agent: {busy_input_mode: queue, busy_ack_enabled: false}\n";
    let mut rig = Rig::configured(VendorSettings::default(), &[], sections).await;
    rig.start().await;
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    rig.vendor.say("ann", "are you there?");
    let home = rig.home.path().to_owned();
    let waits = async {
        loop {
            let (_, page) = run(&home, &["metrics"]).await;
            if sample(&page, "talaria_messages_waiting") == Some(1.0) {
                return page;
            }
            SystemClock.sleep(GLANCE).await;
        }
    };
    let page = within(HANGS, "somebody who waits", waits).await;
    for age in ["talaria_messages_waiting_oldest_seconds", "talaria_turn_oldest_seconds"] {
        let seconds = sample(&page, age);
        assert!(seconds.is_some_and(|age| age > 0.0 && age < 600.0), "{age} in {page}");
    }
    assert_eq!(sample(&page, "talaria_journal_unread"), Some(0.0), "{page}");
    let (_, told) = run(&home, &["status", "--json"]).await;
    let status: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&status["waiting"], &status["turns_in_hand"]), (&1.into(), &1.into()), "{told}");
    let since = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    let (turn, oldest) = (since("turn_since"), since("waiting_since"));
    assert!(turn.ends_with('Z') && turn <= oldest, "{told}");
    let (_, told) = run(&home, &["status"]).await;
    for line in [
        "1 in hand".to_owned(),
        format!("1 at work, one since {turn}"),
        format!("1 behind a turn, the oldest since {oldest}"),
    ] {
        assert!(told.contains(&line), "{line} in {told}");
    }
    rig.llm.hold(Hold::Never);
    rig.until_everything_is_answered().await;
    let (_, page) = run(&home, &["metrics"]).await;
    assert_eq!(sample(&page, "talaria_messages_waiting"), Some(0.0), "{page}");
    assert_eq!(sample(&page, "talaria_messages_waiting_oldest_seconds"), Some(0.0), "{page}");
    rig.end().await;
}

#[tokio::test]
async fn turns_that_wait_for_a_place_are_counted_apart_from_those_that_work() {
    let mut rig =
        Rig::configured(VendorSettings::default(), &[], "limits: {turns_at_once: 1}\n").await;
    rig.start().await;
    let home = rig.home.path().to_owned();
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    for chat in ["ben", "cleo", "dora"] {
        rig.vendor.say(chat, "and I?");
    }
    let waits = async {
        loop {
            let (_, page) = run(&home, &["metrics"]).await;
            if sample(&page, "talaria_turns_waiting") == Some(3.0) {
                return page;
            }
            SystemClock.sleep(GLANCE).await;
        }
    };
    let page = within(HANGS, "three who wait", waits).await;
    assert_eq!(sample(&page, "talaria_turns_running"), Some(1.0), "{page}");
    for age in ["talaria_turns_waiting_oldest_seconds", "talaria_turn_oldest_seconds"] {
        let seconds = sample(&page, age);
        assert!(seconds.is_some_and(|age| age > 0.0 && age < 600.0), "{age} in {page}");
    }
    let (_, told) = run(&home, &["status", "--json"]).await;
    let status: serde_json::Value = serde_json::from_str(&told).unwrap();
    let many = (&status["turns_in_hand"], &status["turns_working"], &status["turns_waiting"]);
    assert_eq!(many, (&4.into(), &1.into(), &3.into()), "{told}");
    let since = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    let (works, oldest) = (since("turn_since"), since("turns_waiting_since"));
    assert!(works.ends_with('Z') && works <= oldest, "{told}");
    let (_, told) = run(&home, &["status"]).await;
    for line in [
        "4 in hand".to_owned(),
        format!("1 at work, one since {works}"),
        format!("3 waiting for a place, the oldest since {oldest}"),
    ] {
        assert!(told.contains(&line), "{line} in {told}");
    }
    rig.llm.hold(Hold::Never);
    rig.until_everything_is_answered().await;
    let (_, page) = run(&home, &["metrics"]).await;
    assert_eq!(sample(&page, "talaria_turns_waiting"), Some(0.0), "{page}");
    assert_eq!(sample(&page, "talaria_turns_waiting_oldest_seconds"), Some(0.0), "{page}");
    rig.end().await;
}

#[tokio::test]
async fn without_a_token_metrics_are_for_this_machine_while_nobody_else_can_come() {
    for (sections, expected) in [("", 200), ("http: {allowed_hosts: [gateway.example.com]}\n", 403)]
    {
        let mut rig = Rig::configured(VendorSettings::default(), &[], sections).await;
        rig.start().await;
        let url = format!("{}/metrics", rig.process().address().await);
        let (status, told) = read(&url, &[]).await;
        assert_eq!(status, expected, "{sections}: {told}");
        for headers in [("host", "gateway.example.com"), ("x-forwarded-for", "203.0.113.7")] {
            assert_eq!(read(&url, &[headers]).await.0, 403, "{sections}, {headers:?}");
        }
        let (ended, told) = run(rig.home.path(), &["metrics"]).await;
        assert!(ended.success() && told.contains("talaria_store_up 1"), "{told}");
        rig.end().await;
    }
}

/// A collector that reads OTLP.
#[derive(Clone, Default)]
struct Desk {
    spans: Arc<Mutex<Vec<Span>>>,
    bytes: Arc<Mutex<Vec<u8>>>,
}

async fn traces(State(desk): State<Desk>, body: Bytes) {
    desk.bytes.lock().unwrap().extend_from_slice(&body);
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    let spans = request
        .resource_spans
        .into_iter()
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans);
    desk.spans.lock().unwrap().extend(spans);
}

impl Desk {
    async fn open() -> (Self, String) {
        let desk = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new().route("/v1/traces", post(traces)).with_state(desk.clone());
        #[expect(clippy::disallowed_methods, reason = "it is a collector and no gateway")]
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        (desk, format!("http://{address}"))
    }

    /// Waits for so many spans of a name.
    async fn until(&self, name: &str, many: usize) -> Vec<Span> {
        let found = async {
            loop {
                let spans = self.spans.lock().unwrap().clone();
                if spans.iter().filter(|span| span.name == name).count() >= many {
                    return spans;
                }
                SystemClock.sleep(GLANCE).await;
            }
        };
        within(HANGS, format!("{many} of {name}"), found).await
    }
}

fn about(span: &Span) -> BTreeMap<&str, &str> {
    span.attributes
        .iter()
        .filter_map(|attribute| match attribute.value.as_ref()?.value.as_ref()? {
            Value::StringValue(text) => Some((attribute.key.as_str(), text.as_str())),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_collector_sees_each_message_from_its_event_to_its_receipt() {
    let (desk, address) = Desk::open().await;
    let sections = format!("telemetry: {{otlp: {address:?}}}\n");
    let mut rig = Rig::configured(VendorSettings::default(), &[], &sections).await;
    rig.llm.script(|asked: &Asked| match asked.returned() {
        None => {
            let arguments = r#"{"query":"whales"}"#.into();
            let call = ScriptedCall { tool: "session_search".into(), arguments };
            Reply::Calls(String::new(), vec![call])
        }
        Some(_) => Reply::Says("a secret answer".into()),
    });
    rig.start().await;
    let mut event = String::new();
    rig.vendor.happens("ann", "a secret question", |happened| event.clone_from(&happened.id));
    rig.vendor.happens("ben", "/status", |_| {});
    let spans = desk.until("message", 2).await;
    let message = spans
        .iter()
        .find(|span| {
            span.name == "message" && about(span).get("talaria.event") == Some(&event.as_str())
        })
        .unwrap();
    let told = about(message);
    assert_eq!((told["talaria.account"], told["talaria.outcome"]), ("bench", "answered"));
    let own: Vec<&Span> = spans.iter().filter(|span| span.trace_id == message.trace_id).collect();
    let named = |name: &str| own.iter().find(|span| span.name == name).copied();
    for name in ["receive", "queue", "turn", "model", "tool session_search", "deliver"] {
        let span = named(name).unwrap_or_else(|| panic!("no {name}"));
        assert!(span.start_time_unix_nano >= message.start_time_unix_nano, "{name}");
        assert!(span.end_time_unix_nano <= message.end_time_unix_nano, "{name}");
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano, "{name}");
        let parent = own.iter().find(|parent| parent.span_id == span.parent_span_id);
        assert!(parent.is_some(), "{name} is not connected");
    }
    let status = spans.iter().find(|span| {
        span.name == "message" && about(span).get("talaria.outcome") == Some(&"handled")
    });
    let status = &status.expect("a command is a trace").trace_id;
    let delivered = |span: &&Span| span.trace_id == *status && span.name == "deliver";
    assert!(spans.iter().any(|span| delivered(&span)), "its answer is in its trace");
    let receipt = about(named("deliver").unwrap())["messaging.message.id"].to_owned();
    let shown = rig.vendor.read(|truth| truth.shown_in("ann").next().unwrap().message.clone());
    assert_eq!(receipt, shown);
    let bytes = desk.bytes.lock().unwrap().clone();
    assert!(!String::from_utf8_lossy(&bytes).contains("secret"), "what was said is in a span");

    // A turn that a death cuts off goes on in the same trace.
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.happens("cleo", "and then", |happened| event.clone_from(&happened.id));
    let spans = desk.until("queue", 2).await;
    let trace = spans.iter().rfind(|span| span.name == "queue").unwrap().trace_id.clone();
    assert_ne!(trace, message.trace_id);
    rig.kill().await;
    rig.llm.hold(Hold::Never);
    rig.start().await;
    rig.until("an answer", |truth: &Truth| truth.shown_in("cleo").count() > 0).await;
    let found = async {
        loop {
            let spans = desk.spans.lock().unwrap().clone();
            if spans.iter().any(|span| span.name == "message" && span.trace_id == trace) {
                return;
            }
            SystemClock.sleep(GLANCE).await;
        }
    };
    within(HANGS, "the end of the trace", found).await;
    rig.end().await;
}

#[tokio::test]
async fn a_collector_that_is_not_there_delays_nobody_and_loses_no_message() {
    let sections = "telemetry: {otlp: 'http://127.0.0.1:9'}\n\
                    agent: {busy_input_mode: queue, busy_ack_enabled: false}\n";
    let mut rig = Rig::configured(VendorSettings::default(), &[], sections).await;
    rig.start().await;
    for number in 0..20 {
        rig.vendor.say(["ann", "ben", "cleo"][number % 3], "hello");
    }
    rig.until_everything_is_answered().await;
    rig.settle().await;
    rig.check();
    let url = format!("{}/metrics", rig.process().address().await);
    let untraced = async {
        while sample(&read(&url, &[]).await.1, "talaria_untraced_total").unwrap_or_default() < 1.0 {
            SystemClock.sleep(GLANCE).await;
        }
    };
    within(HANGS, "what was not told", untraced).await;
    rig.end().await;
}
