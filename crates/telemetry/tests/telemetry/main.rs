//! Spans, as a collector reads them off its socket.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use prost::Message as _;
use talaria_clock::SystemClock;
use talaria_gateway::{Cause, Follower, Hop, Received, Reception, Settled, Turning};
use talaria_model::{
    AccountId, ChatKind, EventId, MessageId, OutboundId, Proxy, Secret, Seq, SessionId, Timestamp,
    TurnId,
};
use talaria_telemetry::{Collector, Telemetry};

const HANGS: Duration = Duration::from_secs(30);

/// A collector that reads OTLP as its specification says, or refuses everything.
#[derive(Clone, Default)]
struct Desk {
    taken: Arc<Mutex<Vec<(HeaderMap, ExportTraceServiceRequest)>>>,
    refuses: bool,
}

async fn traces(
    State(desk): State<Desk>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, Vec<u8>) {
    if desk.refuses {
        return (StatusCode::FORBIDDEN, Vec::new());
    }
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    desk.taken.lock().unwrap().push((headers, request));
    (StatusCode::OK, ExportTraceServiceResponse::default().encode_to_vec())
}

/// Serves a collector while something is told to it, and says what it has read.
async fn collected(desk: Desk, tell: impl AsyncFnOnce(&Telemetry)) -> (Desk, u64) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes =
        Router::new().route("/some/where/v1/traces", post(traces)).with_state(desk.clone());
    let collector = Collector {
        base: format!("http://{address}/some/where/").parse().unwrap(),
        proxy: Proxy::None,
        headers: BTreeMap::from([("x-key".to_owned(), Secret::new("opens"))]),
        instance: "here".into(),
        version: "1.2.3",
    };
    let telemetry = Telemetry::open(&collector, Arc::new(SystemClock)).unwrap();
    let told = async {
        // Whoever drives it may break down and begin again.
        tokio::select! {
            biased;
            never = telemetry.work() => match never {},
            () = std::future::ready(()) => {}
        }
        tokio::select! {
            () = async { tell(&telemetry).await; telemetry.flush().await } => {}
            never = telemetry.work() => match never {},
        }
    };
    tokio::select! {
        told = tokio::time::timeout(HANGS, told) => told.expect("it hangs"),
        served = async { axum::serve(listener, routes).await } => served.unwrap(),
    }
    (desk, telemetry.dropped())
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn received(row: u64) -> Hop {
    Hop::Received(Received {
        row: Some(Seq(row)),
        event: EventId::literal("event-7"),
        message: Some(MessageId::literal("m7")),
        account: AccountId::literal("main"),
        platform: "telegram",
        chat: ChatKind::Dm,
        happened: at(1_000),
        begun: at(1_010),
        at: at(1_020),
        reception: Reception::TakenIn,
    })
}

fn hops() -> Vec<Hop> {
    let session = SessionId::literal("s");
    let turn = TurnId { session: session.clone(), number: 1 };
    let turn = Turning { turn, rows: vec![Seq(7)] };
    let parcel = OutboundId { session, delivery: 1, part: 0 };
    vec![
        received(7),
        Hop::Took { turn: turn.clone(), rows: vec![Seq(7)], at: at(1_030) },
        Hop::Decided {
            cause: Cause::Turn(turn.clone()),
            parcels: vec![parcel.clone()],
            at: at(1_500),
        },
        Hop::Ended { turn, because: None, at: at(1_500) },
        Hop::Settled(Settled {
            id: parcel,
            account: AccountId::literal("main"),
            message: Some(MessageId::literal("m8")),
            lost: None,
            decided: at(1_500),
            at: at(1_600),
        }),
    ]
}

fn attribute(span: &Span, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        other => panic!("{other:?} is no text"),
    }
}

#[tokio::test]
async fn a_collector_reads_a_message_from_its_event_to_its_receipt() {
    let (desk, dropped) = collected(Desk::default(), async |telemetry| {
        hops().into_iter().for_each(|hop| telemetry.passed(hop));
    })
    .await;
    assert_eq!(dropped, 0);
    let taken = desk.taken.lock().unwrap();
    let [(headers, request)] = &taken[..] else { panic!("one request, not {}", taken.len()) };
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert_eq!(headers["x-key"], "opens");
    let resource = request.resource_spans[0].resource.as_ref().unwrap();
    let about: Vec<&str> = resource.attributes.iter().map(|about| about.key.as_str()).collect();
    for name in ["service.name", "service.version", "service.instance.id"] {
        assert!(about.contains(&name), "{about:?}");
    }
    let spans = &request.resource_spans[0].scope_spans[0].spans;
    let named = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["receive", "queue", "model", "turn", "deliver", "message"]);
    let message = named("message");
    assert!(
        spans.iter().all(|span| span.trace_id == message.trace_id && span.trace_id.len() == 16)
    );
    assert!(message.parent_span_id.is_empty());
    assert_eq!(message.kind, SpanKind::Server as i32);
    assert_eq!(message.start_time_unix_nano, 1_000_000_000);
    assert_eq!(message.end_time_unix_nano, 1_600_000_000);
    assert_eq!(attribute(message, "messaging.message.id").as_deref(), Some("m7"));
    assert_eq!(attribute(message, "talaria.outcome").as_deref(), Some("answered"));
    for (name, parent) in [("receive", "message"), ("queue", "message"), ("turn", "message")] {
        assert_eq!(named(name).parent_span_id, named(parent).span_id, "{name}");
    }
    let deliver = named("deliver");
    assert_eq!(deliver.parent_span_id, named("turn").span_id);
    assert_eq!(deliver.kind, SpanKind::Client as i32);
    assert_eq!(attribute(deliver, "messaging.message.id").as_deref(), Some("m8"));
}

#[tokio::test]
async fn many_spans_leave_in_batches_and_none_is_lost() {
    let (desk, dropped) = collected(Desk::default(), async |telemetry| {
        for row in 0..3_000 {
            telemetry.passed(received(row));
            telemetry.passed(Hop::Closed { row: Seq(row), how: "handled", at: at(1_100) });
            tokio::task::yield_now().await;
        }
    })
    .await;
    let taken = desk.taken.lock().unwrap();
    let sizes: Vec<usize> = taken
        .iter()
        .map(|(_, request)| request.resource_spans[0].scope_spans[0].spans.len())
        .collect();
    assert_eq!((sizes.iter().sum::<usize>(), dropped), (6_000, 0));
    assert!(sizes.iter().all(|size| *size < 520), "{sizes:?}");
}

#[tokio::test]
async fn nobody_waits_for_a_collector_that_refuses_or_for_work_that_nobody_does() {
    let desk = Desk { refuses: true, ..Desk::default() };
    let (_, dropped) = collected(desk, async |telemetry| {
        hops().into_iter().for_each(|hop| telemetry.passed(hop));
    })
    .await;
    assert_eq!(dropped, 6, "every span is counted");
    let collector = Collector {
        base: "http://127.0.0.1:9".parse().unwrap(),
        proxy: Proxy::None,
        headers: BTreeMap::new(),
        instance: "here".into(),
        version: "1.2.3",
    };
    let telemetry = Telemetry::open(&collector, Arc::new(SystemClock)).unwrap();
    for row in 0..10_000 {
        telemetry.passed(received(row));
    }
    assert_eq!(telemetry.dropped(), 10_000 - 8_192);
}
