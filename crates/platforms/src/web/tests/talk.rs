//! What a person does, on its way to the gateway, and what was said before.

use std::time::Duration;

use talaria_model::{
    CallId, Choice, ChoiceId, Cost, EventId, InboundKind, MessageId, Sender, SenderId, ToolCall,
    Usage,
};

use super::*;

fn operator() -> Sender {
    Sender::new(SenderId::literal("operator"))
}

#[tokio::test(start_paused = true)]
async fn a_message_is_acknowledged_only_after_the_commit() {
    let mut bench = Bench::new().await;
    let browser = bench.login().await;
    let routes = bench.routes.clone();
    let mut answer = Box::pin(routes.oneshot(browser.say("hello")));
    assert!(answer.as_mut().now_or_never().is_none());
    let batch = bench.heard().await;
    assert!(answer.as_mut().now_or_never().is_none(), "it was heard and is not stored yet");
    batch.ack.committed(Committed(vec![journalled()]));
    assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn the_pages_id_is_the_id_of_the_event() {
    let mut bench = Bench::new().await;
    let browser = bench.login().await;
    let now = bench.now();
    let (status, body, inbound) = bench.committing(browser.say("hello"), journalled()).await;
    assert_eq!((status, body), (StatusCode::OK, json!({ "repeated": false })));
    assert_eq!(inbound.id, EventId::literal("message-1"));
    assert_eq!(inbound.at, now);
    assert_eq!(inbound.from, operator());
    let InboundKind::Said(message) = inbound.kind else { panic!("something was said") };
    assert_eq!((message.text.as_str(), message.files.len()), ("hello", 0));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_accepted_and_said_to_be_one() {
    let mut bench = Bench::new().await;
    let browser = bench.login().await;
    let (status, body, _) = bench.committing(browser.say("hello"), Verdict::Repeated).await;
    assert_eq!((status, body), (StatusCode::OK, json!({ "repeated": true })));
}

#[tokio::test(start_paused = true)]
async fn what_policy_denies_is_forbidden() {
    let mut bench = Bench::new().await;
    let browser = bench.login().await;
    let (status, _, _) = bench.committing(browser.say("hello"), Verdict::Denied).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_acknowledgement_means_send_it_again() {
    let mut bench = Bench::new().await;
    let browser = bench.login().await;
    let routes = bench.routes.clone();
    let (answer, ()) = futures::join!(routes.oneshot(browser.say("hello")), async {
        drop(bench.heard().await);
    });
    let answer = answer.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.headers().contains_key(header::RETRY_AFTER));
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_takes_too_long_means_send_it_again() {
    let mut bench = Bench::new().await;
    let browser = bench.login().await;
    let (before, routes) = (bench.now(), bench.routes.clone());
    let (answer, batch) = futures::join!(routes.oneshot(browser.say("hello")), bench.heard());
    assert_eq!(answer.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(bench.now().since(before), Duration::from_secs(2));
    // It is stored after all: other pages are told although nobody waits for it any more.
    let mut page = Page::open(&bench, &browser).await;
    batch.ack.committed(Committed(vec![journalled()]));
    assert_eq!(page.next().await.unwrap()["kind"], "said");
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_does_not_keep_up_is_not_flooded() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let before = bench.now();
    let answers =
        futures::future::join_all((0..100).map(|_| bench.status(browser.say("hello")))).await;
    assert!(answers.iter().all(|status| *status == StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(bench.now().since(before), Duration::from_secs(2));
    let mut waiting = bench.arrivals;
    let queued = std::iter::from_fn(|| waiting.next().now_or_never().flatten()).count();
    assert_eq!(queued, 64);
}

#[tokio::test(start_paused = true)]
async fn pressing_and_stopping_are_events_of_their_own() {
    let mut bench = Bench::new().await;
    let browser = bench.login().await;
    let body = json!({ "id": "press-001", "choice": "c1" });
    let press = browser.post(&format!("/api/conversations/{CHAT}/press"), &body);
    let (status, _, inbound) = bench.committing(press, journalled()).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(inbound.kind, InboundKind::Pressed(ChoiceId::literal("c1")));
    let body = json!({ "id": "stop-0001" });
    let stop = browser.post(&format!("/api/conversations/{CHAT}/stop"), &body);
    let (status, _, inbound) = bench.committing(stop, journalled()).await;
    assert_eq!((status, inbound.kind), (StatusCode::OK, InboundKind::Stopped));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_a_message_is_refused() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    for body in [
        json!({ "id": "message-1", "text": "  " }),
        json!({ "id": "message-1" }),
        json!({ "id": "short", "text": "hi" }),
        json!({ "id": "with space", "text": "hi" }),
        json!({ "id": "x".repeat(65), "text": "hi" }),
        json!({ "id": "message-1", "text": "hi", "files": [{ "id": "00", "name": "a", "mime": "a/b", "size": 1 }] }),
        json!(["message-1"]),
    ] {
        let request = browser.post(&say_path(), &body);
        assert_eq!(bench.status(request).await, StatusCode::BAD_REQUEST, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_opening_tells_what_a_page_needs() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let state = json_of(bench.ask(browser.get("/api/state")).await).await;
    assert_eq!(state["who"], "operator");
    assert_eq!(state["largest_file"], 25 * 1024 * 1024);
    let command = json!({
        "name": "title",
        "arguments": "[TITLE]",
        "help": "show or set the title",
        "to": "everyone",
    });
    assert_eq!(state["commands"], json!([command]));
    let listed = json!([{ "id": CHAT, "title": "<b>a title</b>", "updated": 9, "busy": true }]);
    assert_eq!(state["conversations"], listed);
    assert_eq!(json_of(bench.ask(browser.get("/api/conversations")).await).await, listed);
}

#[tokio::test(start_paused = true)]
async fn history_is_told_in_the_shapes_of_the_page() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let sent = |delivery| OutboundId { session: SessionId::literal("s1"), delivery, part: 0 };
    let call = CallId::literal("call-1");
    bench.shelf.record(EntryBody::Said {
        from: operator(),
        text: "<i>hi</i>".into(),
        files: Vec::new(),
        heard: Some("[System note: what only the model reads]\n\n<i>hi</i>".into()),
        message: Some(MessageId::literal("message-1")),
        forwarded: None,
    });
    bench.shelf.record(EntryBody::Answered {
        text: "**Yes** <script>".into(),
        files: Vec::new(),
        calls: vec![ToolCall {
            id: call.clone(),
            tool: "session_search".into(),
            arguments: "{}".into(),
        }],
        reasoning: Some("secret thoughts".into()),
        usage: Usage::default(),
        cost: Cost::FREE,
        sent: Some(sent(1)),
        extent: talaria_model::Extent::Whole,
    });
    bench.shelf.record(EntryBody::Returned {
        call,
        output: "x".repeat(5000),
        files: Vec::new(),
        failed: false,
    });
    bench.shelf.record(EntryBody::Noticed {
        text: "Which?".into(),
        choices: vec![Choice { id: ChoiceId::literal("c1"), label: "This".into() }],
        files: Vec::new(),
        sent: sent(2),
    });
    bench.shelf.record(aside("This"));
    let path = format!("/api/conversations/{CHAT}/history");
    let items = json_of(bench.ask(browser.get(&path)).await).await;
    assert_eq!(
        items[0],
        json!({
            "position": 1, "at": 7, "kind": "said", "id": "message-1", "text": "<i>hi</i>",
            "files": [],
        })
    );
    assert_eq!(
        items[1],
        json!({
            "position": 2, "at": 7, "kind": "posted", "delivery": "s1/1",
            "html": "<p><strong>Yes</strong> &lt;script&gt;</p>", "text": "**Yes** <script>",
            "calls": [{ "id": "call-1", "tool": "session_search", "arguments": "{}" }],
        })
    );
    assert_eq!(items[2]["kind"], "returned");
    assert_eq!(items[2]["output"].as_str().unwrap().chars().count(), 4001, "cut and marked");
    assert_eq!(items[3]["choices"], json!([{ "id": "c1", "label": "This" }]));
    assert_eq!(items[3]["delivery"], "s1/2");
    assert_eq!((&items[4]["kind"], &items[4]["text"]), (&json!("said"), &json!("This")));
    assert!(!items.to_string().contains("secret thoughts"));
    assert!(!items.to_string().contains("only the model"));
    let piece = json_of(bench.ask(browser.get(&format!("{path}?before=3&limit=1"))).await).await;
    assert_eq!(piece.as_array().map(Vec::len), Some(1));
    assert_eq!(piece[0]["position"], 2);
    let unknown = bench.status(browser.get(&format!("{path}?after=3"))).await;
    assert_eq!(unknown, StatusCode::BAD_REQUEST);
}

fn aside(text: &str) -> EntryBody {
    let message = Some(MessageId::literal("message-2"));
    EntryBody::Aside { from: operator(), text: text.into(), files: Vec::new(), message }
}

#[tokio::test(start_paused = true)]
async fn what_was_not_said_and_what_only_the_model_reads_keep_their_places_and_show_nothing() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let (usage, cost) = (Usage::default(), Cost::FREE);
    bench.shelf.record(EntryBody::Answered {
        text: "NO_REPLY".into(),
        files: Vec::new(),
        calls: Vec::new(),
        reasoning: None,
        usage,
        cost,
        sent: None,
        extent: talaria_model::Extent::Whole,
    });
    let text = "a summary that people did not write".into();
    bench.shelf.record(EntryBody::Summary { after: 0, upto: 1, text, usage, cost });
    let path = format!("/api/conversations/{CHAT}/history");
    let items = json_of(bench.ask(browser.get(&path)).await).await;
    assert_eq!(
        items,
        json!([
            { "position": 1, "at": 7, "kind": "withheld" },
            { "position": 2, "at": 7, "kind": "summarised" },
        ])
    );
}

#[tokio::test(start_paused = true)]
async fn a_search_marks_the_match_without_html() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    bench.shelf.record(aside("words"));
    let hits = json_of(bench.ask(browser.get("/api/search?q=%3Cwords%3E")).await).await;
    let excerpt =
        json!([{ "around": "before " }, { "match": "<words>" }, { "around": " <after>" }]);
    assert_eq!(hits[0]["excerpt"], excerpt);
    assert_eq!(hits[0]["conversation"], CHAT);
    for path in ["/api/search", "/api/search?q=", "/api/search?q=%20", "/api/search?q=a&x=b"] {
        assert_eq!(bench.status(browser.get(path)).await, StatusCode::BAD_REQUEST, "{path}");
    }
    let long = format!("/api/search?q={}", "x".repeat(201));
    assert_eq!(bench.status(browser.get(&long)).await, StatusCode::BAD_REQUEST);
}
