//! The Events API: the whole suite, and what only requests can do.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use talaria_clock::{Clock, SystemClock};
use talaria_model::{ChatKind, Seq};
use talaria_platform::{
    Arrival, Arrivals, Committed, Incoming, LinkError, Registration, Surface, Verdict,
};
use talaria_testkit::platform_contract::{
    Forged, PlatformHarness, Said, Shown, Spot, Told, Trouble, Whose,
};
use talaria_testkit::scripted::{Fault, Reply};
use talaria_testkit::within;
use tower::ServiceExt;

use super::super::Slack;
use super::by_socket::{echoed, hasty, is_ping, said_in};
use super::vendor::{SECRET, Vendor, event, said};
use super::{Bench, Lent, PATIENCE, at, commit, connect, message_of, post};

/// Slack, sending requests.
struct Sending {
    vendor: Vendor,
    routes: Option<Router>,
}

fn signed(kind: &str, body: &str, secret: &str, at: i64) -> Request<Body> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("v0:{at}:{body}").as_bytes());
    let hex: String =
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    Request::post("/")
        .header("content-type", kind)
        .header("x-slack-request-timestamp", at.to_string())
        .header("x-slack-signature", format!("v0={hex}"))
        .body(Body::from(body.to_owned()))
        .unwrap()
}

fn now() -> i64 {
    SystemClock.now().as_millis() / 1000
}

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

async fn ask(routes: Router, request: Request<Body>) -> (StatusCode, String) {
    let response = routes.oneshot(request).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

impl Sending {
    /// Slack sends an event, and knows what becomes of it.
    fn tell(&self, event: &Value) -> BoxFuture<'static, Told> {
        let routes = self.routes.clone().expect("somebody listens");
        let body = event.to_string();
        async move {
            match ask(routes, signed(JSON, &body, SECRET, now())).await.0 {
                StatusCode::OK => Told::Safe,
                StatusCode::SERVICE_UNAVAILABLE => Told::TryAgain,
                status => panic!("{status}"),
            }
        }
        .boxed()
    }
}

#[async_trait(?Send)]
impl PlatformHarness for Sending {
    async fn open() -> Self {
        Self { vendor: Vendor::open().await, routes: None }
    }

    fn registration() -> Registration {
        Registration::of::<Slack>()
    }

    fn settings(&self) -> Value {
        self.vendor.request_settings()
    }

    fn folder(&self) -> PathBuf {
        self.vendor.folder()
    }

    async fn attach(&mut self, incoming: Incoming) -> Arrivals {
        let Incoming::Served { on, routes, arrivals } = incoming else { panic!("requests") };
        assert_eq!(on, Surface::Webhook);
        self.routes = Some(routes);
        arrivals
    }

    fn say(&mut self, number: u64, text: &str) -> BoxFuture<'static, Told> {
        self.tell(&said(number, text))
    }

    fn trouble(&mut self, trouble: Trouble) -> Said {
        self.vendor.meet_posts_with(trouble)
    }

    fn echo(&mut self, number: u64, whose: Whose) -> Said {
        // What is heard of it is answered only when somebody has stored it.
        tokio::spawn(self.tell(&echoed(number, whose)));
        Said::Duly
    }

    fn say_in(&mut self, spot: Spot, number: u64, text: &str) -> Option<BoxFuture<'static, Told>> {
        Some(self.tell(&said_in(spot, number, text)?))
    }

    fn spot(&self) -> Option<Spot> {
        self.vendor.spot()
    }

    fn uploads(&self) -> Option<Vec<Vec<u8>>> {
        Some(self.vendor.uploads())
    }

    async fn forge(&mut self, number: usize, forged: Forged) -> Option<u16> {
        let body = match forged {
            Forged::Event => said(99, "hello").to_string(),
            Forged::Nonsense => "[".repeat(1000),
        };
        let mut request = match number {
            0 => Request::post("/").body(Body::from(body.clone())).unwrap(),
            1 => signed(JSON, &body, "another secret", now()),
            2 => signed(JSON, &body, SECRET, now() - 301),
            3 => signed(JSON, &format!("{body} "), SECRET, now()),
            4 => signed(JSON, &body, SECRET, now()),
            _ => return None,
        };
        match number {
            // Signed, and changed after that.
            3 => *request.body_mut() = Body::from(body),
            4 => drop(request.headers_mut().remove("x-slack-request-timestamp")),
            _ => {}
        }
        Some(ask(self.routes.clone().expect("somebody listens"), request).await.0.as_u16())
    }

    async fn shown(&mut self) -> Shown {
        self.vendor.shown().await
    }

    async fn disturb(&mut self, number: usize) -> bool {
        let good = said(99, "hello").to_string();
        let request = match number {
            0 => signed(JSON, "this is not JSON", SECRET, now()),
            1 => signed(JSON, &"[".repeat(100_000), SECRET, now()),
            2 => signed(JSON, &good, "another secret", now()),
            3 => signed(JSON, &good, SECRET, now() - 301),
            4 => Request::post("/").body(Body::from(good)).unwrap(),
            5 => signed(JSON, &"x".repeat(3 * 1024 * 1024), SECRET, now()),
            6 => signed(FORM, "payload=%7B%22type%22%3A7%7D", SECRET, now()),
            7 => signed(FORM, "command=%2Ftalaria", SECRET, now()),
            8 => signed(FORM, "%", SECRET, now()),
            _ => return false,
        };
        ask(self.routes.clone().expect("somebody listens"), request).await;
        true
    }

    async fn hung_up(&mut self) {
        self.routes = None;
    }
}

talaria_testkit::platform_contract!(contract, Sending);

async fn bench() -> Bench {
    let vendor = Vendor::open().await;
    let settings = vendor.request_settings();
    connect(vendor, settings, Lent::default()).await
}

impl Bench {
    async fn ask(&self, request: Request<Body>) -> (StatusCode, String) {
        ask(self.routes.clone().unwrap(), request).await
    }
}

#[tokio::test]
async fn slack_s_question_whether_we_are_here_is_answered() {
    let bench = bench().await;
    let question = json!({ "token": "Jhj5dZrVaK7ZwHHjRyZWjbDl", "type": "url_verification",
        "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P" });
    let (status, body) = bench.ask(signed(JSON, &question.to_string(), SECRET, now())).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body, "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P");
    let (status, _) = bench.ask(signed(FORM, "ssl_check=1&token=x", SECRET, now())).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn who_does_not_know_the_secret_is_not_heard() {
    let bench = bench().await;
    for request in [
        signed(JSON, &said(1, "hi").to_string(), "guess", now()),
        signed(JSON, &said(1, "hi").to_string(), SECRET, now() - 301),
        signed(JSON, r#"{"type":"url_verification","challenge":"x"}"#, "guess", now()),
    ] {
        assert_eq!(bench.ask(request).await, (StatusCode::UNAUTHORIZED, String::new()));
    }
}

/// A body that begins and never ends.
fn endless() -> Body {
    let begins = stream::iter([Ok::<_, std::convert::Infallible>("{".repeat(1000))]);
    Body::from_stream(begins.chain(stream::pending()))
}

#[tokio::test]
async fn atk_038_what_cannot_be_slack_s_is_refused_before_its_body_is_read() {
    let bench = bench().await;
    let recorded = now() - 301;
    let (at, early) = (now().to_string(), recorded.to_string());
    let signature = format!("v0={}", "0".repeat(64));
    let time = ("x-slack-request-timestamp", at.as_str());
    let sign = ("x-slack-signature", signature.as_str());
    for headers in [
        vec![],
        vec![time],
        vec![sign],
        vec![time, time, sign],
        vec![time, sign, sign],
        vec![time, ("x-slack-signature", "v0=00")],
        vec![("x-slack-request-timestamp", early.as_str()), sign],
        vec![("x-slack-request-timestamp", "soon"), sign],
    ] {
        let request = headers
            .iter()
            .fold(Request::post("/"), |request, (name, value)| request.header(*name, *value));
        let refused = bench.ask(request.body(endless()).unwrap()).now_or_never();
        assert_eq!(refused, Some((StatusCode::UNAUTHORIZED, String::new())), "{headers:?}");
    }
}

#[tokio::test]
async fn atk_038_bodies_that_are_held_back_take_bounded_memory_and_keep_nobody_out() {
    let mut bench = bench().await;
    let forged = |body: Body| {
        let mut request = signed(JSON, "", "guess", now());
        *request.body_mut() = body;
        request
    };
    let large = forged(Body::from(vec![b'x'; 1024 * 1024 + 1]));
    assert_eq!(bench.ask(large).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let nearly = || {
        let begins = stream::iter([Ok::<_, std::convert::Infallible>(vec![b'x'; 1024 * 1024 - 1])]);
        Body::from_stream(begins.chain(stream::pending()))
    };
    let routes = bench.routes.clone().unwrap();
    let mut held: Vec<_> = (0..40).map(|_| ask(routes.clone(), forged(nearly())).boxed()).collect();
    for asking in &mut held {
        assert_eq!(asking.now_or_never(), None, "it is waited for");
    }
    let asking = ask(routes, signed(JSON, &said(1, "hi").to_string(), SECRET, now()));
    let (answered, _) = tokio::join!(asking, bench.event());
    assert_eq!(answered.0, StatusCode::OK);
    let mut held: Vec<_> = held.iter_mut().map(|asking| asking.now_or_never()).collect();
    held.retain(Option::is_none);
    assert!((7..=8).contains(&held.len()), "{} are still held", held.len());
}

const COMMAND: &str = "team_id=T1&channel_id=C1&channel_name=general&user_id=U1&user_name=alice&command=%2Ftalaria\
                       &text=title+A+%26+B&response_url=https%3A%2F%2Fhooks.slack.com%2Fx&trigger_id=1.2.z";

#[tokio::test]
async fn a_command_with_which_slack_only_looks_whether_we_are_here_is_not_given() {
    let mut bench = bench().await;
    let routes = bench.routes.clone().unwrap();
    let asked = signed(FORM, &format!("{COMMAND}&ssl_check=1"), SECRET, now());
    tokio::select! {
        answered = ask(routes, asked) => assert_eq!(answered, (StatusCode::OK, String::new())),
        batch = bench.batch() => panic!("{:?}", batch.unwrap().events),
    }
}

#[tokio::test]
async fn whoever_gives_a_command_and_is_not_let_in_is_told_nothing() {
    let mut bench = bench().await;
    let routes = bench.routes.clone().unwrap();
    let hearing = async {
        let batch = bench.batch().await.unwrap();
        batch.ack.committed(Committed(vec![Verdict::Denied]));
    };
    let asking = ask(routes, signed(FORM, COMMAND, SECRET, now()));
    let (answered, ()) = tokio::join!(asking, hearing);
    assert_eq!(answered, (StatusCode::OK, String::new()));
}

#[tokio::test]
async fn a_command_comes_as_a_form_and_is_answered_in_private() {
    let mut bench = bench().await;
    let routes = bench.routes.clone().unwrap();
    let asking = ask(routes, signed(FORM, COMMAND, SECRET, now()));
    let hearing = async {
        let batch = bench.batch().await.unwrap();
        assert_eq!(message_of(&batch.events[0]).text, "/title A & B");
        commit(batch);
    };
    let ((status, body), ()) = tokio::join!(asking, hearing);
    assert_eq!(status, StatusCode::OK);
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["response_type"], "ephemeral");
}

#[tokio::test]
async fn whoever_gave_a_command_can_be_answered_even_if_slack_hung_up_before_it_was_stored() {
    let mut bench = bench().await;
    let elsewhere = at("C9", ChatKind::Group, None);
    for (number, (user, verdict)) in
        (1..).zip([("U7", Verdict::Denied), ("U1", Verdict::Journalled(Seq(1)))])
    {
        let form = format!(
            "team_id=T1&channel_id=C9&channel_name=secret&user_id={user}&command=%2Ftalaria&text=hi\
             &response_url={}%2Fhooks%2F{user}&trigger_id=1.2.{user}",
            bench.vendor.http.url()
        );
        let routes = bench.routes.clone().unwrap();
        let batch = tokio::select! {
            answered = ask(routes, signed(FORM, &form, SECRET, now())) => panic!("{answered:?}"),
            batch = bench.batch() => batch.unwrap(),
        };
        batch.ack.committed(Committed(vec![verdict]));
        let sent = bench.outgoing.send(&post(elsewhere.clone(), number, "hello")).await;
        assert_eq!(sent.is_ok(), user == "U1", "{user}: {sent:?}");
    }
    assert_eq!(bench.vendor.http.requests_to("/hooks/U1").len(), 1);
}

#[tokio::test]
async fn a_press_comes_as_a_form_with_json_in_it() {
    let mut bench = bench().await;
    let press = json!({ "type": "block_actions", "team": { "id": "T1" }, "trigger_id": "1.2",
        "user": { "id": "U1" }, "channel": { "id": "D1" },
        "actions": [{ "action_id": "talaria:0", "value": "yes" }] });
    let press = press.to_string();
    let encoded = percent_encoding::utf8_percent_encode(&press, percent_encoding::NON_ALPHANUMERIC);
    let routes = bench.routes.clone().unwrap();
    let asking = ask(routes, signed(FORM, &format!("payload={encoded}"), SECRET, now()));
    let hearing = async { bench.event().await };
    let ((status, body), event) = tokio::join!(asking, hearing);
    assert_eq!((status, body.as_str()), (StatusCode::OK, ""));
    assert_eq!(event.id.as_str(), "act:1.2");
}

#[tokio::test]
async fn nothing_is_asked_before_a_message_is_stored_so_a_slow_slack_and_strangers_cost_nothing() {
    let mut bench = bench().await;
    let before = bench.vendor.http.requests().len();
    bench.vendor.http.conduct(|_| Some(Fault::Instead(Reply::Silence)));
    let mention = event(json!({ "type": "app_mention", "channel": "C1", "user": "U2",
        "text": "<@UBOT> what does <@U1> say in <#C9>?", "ts": "1700000003.000000",
        "thread_ts": "1700000001.000000", "parent_user_id": "U1" }));
    let routes = bench.routes.clone().unwrap();
    let asking = ask(routes, signed(JSON, &mention.to_string(), SECRET, now()));
    let ((status, _), event) = tokio::join!(asking, bench.event());
    assert_eq!(status, StatusCode::OK);
    assert_eq!(message_of(&event).text, "what does @U1 say in #C9?");
    assert!(message_of(&event).surroundings.is_some());
    assert_eq!(bench.vendor.http.requests().len(), before);
}

#[tokio::test]
async fn who_is_let_in_is_read_with_names_and_with_what_was_said_before() {
    let mut bench = bench().await;
    let world = bench.vendor.world.clone();
    world.write("C1", "1700000001.000000", None, "U1", "Where do we eat?");
    let mention = event(json!({ "type": "app_mention", "channel": "C1", "user": "U2",
        "text": "<@UBOT> what does <@U1> say?", "ts": "1700000003.000000",
        "thread_ts": "1700000001.000000", "parent_user_id": "U1" }));
    let routes = bench.routes.clone().unwrap();
    let asking = ask(routes, signed(JSON, &mention.to_string(), SECRET, now()));
    let (_, event) = tokio::join!(asking, bench.event());
    let event = bench.let_in(event).await;
    let message = message_of(&event);
    assert_eq!(message.text, "what does @Alice say?");
    assert_eq!(event.from.name.as_deref(), Some("Bob"));
    assert!(event.source.chat_name.is_some());
    let begun = message.quote.as_ref().map(|quote| quote.text.as_str());
    assert_eq!(begun, Some("Where do we eat?"));
}

#[tokio::test]
async fn an_address_that_no_request_reaches_is_noticed_by_our_own_posts() {
    let vendor = Vendor::open().await;
    let settings = vendor.request_settings();
    let (clock, lent) = hasty(is_ping);
    let mut bench = connect(vendor, settings, lent).await;
    let to = at("D1", ChatKind::Dm, None);
    let Some(Ok(Arrival::Found(beginning))) = bench.arrivals.next().await else { panic!("begins") };
    commit(beginning);
    // Nothing is known where nothing of ours has ever come back.
    let sent = bench.outgoing.send(&post(to.clone(), 1, "hello")).await.unwrap();
    clock.ahead.store(100_000, Ordering::Relaxed);
    let mut echo = echoed(1, Whose::Ours);
    echo["event"]["ts"] = json!(sent.message.unwrap());
    let brought = signed(JSON, &echo.to_string(), SECRET, now());
    assert_eq!(bench.ask(brought).await.0, StatusCode::OK);
    let arrival = bench.arrivals.next().await;
    assert!(matches!(arrival, Some(Ok(Arrival::Brought))), "that Slack reaches us is told");
    bench.outgoing.send(&post(to, 2, "is anybody there?")).await.unwrap();
    clock.ahead.store(105_000, Ordering::Relaxed);
    let spoken = signed(JSON, &said(2, "not yet").to_string(), SECRET, now());
    let routes = bench.routes.clone().unwrap();
    let (heard, (status, _)) = tokio::join!(bench.event(), ask(routes, spoken));
    assert_eq!((message_of(&heard).text.as_str(), status), ("not yet", StatusCode::OK));
    clock.ahead.store(160_000, Ordering::Relaxed);
    let end = bench.end().await;
    assert!(matches!(end, LinkError::Deaf { .. }), "{end}");
    assert!(end.to_string().contains("did not come back"), "{end}");
}

#[tokio::test]
async fn who_does_not_know_the_secret_proves_nothing_and_neither_does_what_is_looked_up() {
    let vendor = Vendor::open().await;
    let settings = vendor.request_settings();
    let mut bench = connect(vendor, settings, Lent::default()).await;
    let Some(Ok(Arrival::Found(beginning))) = bench.arrivals.next().await else { panic!("begins") };
    commit(beginning);
    let forged = signed(JSON, &said(1, "hi").to_string(), "guess", now());
    assert_eq!(bench.ask(forged).await.0, StatusCode::UNAUTHORIZED);
    assert!(bench.arrivals.next().now_or_never().is_none());
    bench.vendor.world.write("D1", &format!("{}.000000", now() - 5), None, "U1", "left out");
    let limited = json!({ "type": "app_rate_limited", "team_id": "T1", "minute_rate_limited": 1 });
    let limited = signed(JSON, &limited.to_string(), SECRET, now());
    assert_eq!(bench.ask(limited).await.0, StatusCode::OK);
    let looked_up = async {
        loop {
            match bench.arrivals.next().await {
                Some(Ok(Arrival::Found(batch))) if !batch.events.is_empty() => break batch,
                Some(Ok(Arrival::Found(batch))) => commit(batch),
                Some(Ok(Arrival::Brought)) => {}
                other => panic!("{:?}", other.map(|other| other.map(|_| ()))),
            }
        }
    };
    let batch = within(PATIENCE, "what was left out", looked_up).await;
    assert_eq!(message_of(&batch.events[0]).text, "left out");
}
