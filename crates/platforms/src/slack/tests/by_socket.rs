//! Socket Mode: the whole suite, and what only a connection can do.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};
use talaria_model::{Addressed, ChatKind, InboundKind};
use talaria_platform::{
    Arrival, Arrivals, Committed, Found, Incoming, LinkError, Proof, Registration, Verdict,
};
use talaria_testkit::platform_contract::{
    PlatformHarness, Said, Shown, Spot, Told, Trouble, Whose,
};
use talaria_testkit::within;

use super::super::Slack;
use super::vendor::{self, PATIENCE, Vendor, said};
use super::{Bench, Lent, at, bench, commit, connect, message_of, post};

/// Slack with connections.
struct Connected(Vendor);

impl Connected {
    /// Slack tells of an event, and knows what becomes of it.
    fn tell(&self, event: &Value) -> BoxFuture<'static, Told> {
        let (connection, envelope) = self.0.world.deliver("events_api", event);
        let world = self.0.world.clone();
        async move {
            world
                .until("some word", |state| {
                    let acked = |ack: &Value| ack["envelope_id"] == json!(envelope);
                    if state.acks.iter().any(|(_, ack)| acked(ack)) {
                        return Some(Told::Safe);
                    }
                    (!state.connections[connection].open).then_some(Told::TryAgain)
                })
                .await
        }
        .boxed()
    }
}

/// A message of a program.
pub(super) fn echoed(number: u64, whose: Whose) -> Value {
    let mut echoed = said(number, "something");
    let event = &mut echoed["event"];
    match whose {
        Whose::Ours => (event["user"], event["bot_id"]) = (json!("UBOT"), json!("BBOTT1")),
        Whose::AnotherBots => {
            (event["user"], event["bot_id"]) = (json!("UOTHER"), json!("BOTHER"));
            event["app_id"] = json!("AOTHER");
        }
    }
    echoed
}

/// What is said among several people. At the top of a channel an answer begins a thread, which is a place of
/// its own.
pub(super) fn said_in(spot: Spot, number: u64, text: &str) -> Option<Value> {
    (spot == Spot::Thread).then(|| {
        vendor::event(json!({
            "type": "app_mention", "channel": "C1", "user": "U1", "text": format!("<@UBOT> {text}"),
            "ts": vendor::ts(number), "thread_ts": vendor::THREAD, "team": "T1",
        }))
    })
}

#[async_trait(?Send)]
impl PlatformHarness for Connected {
    async fn open() -> Self {
        Self(Vendor::open().await)
    }

    fn registration() -> Registration {
        Registration::of::<Slack>()
    }

    fn settings(&self) -> Value {
        self.0.settings()
    }

    fn folder(&self) -> PathBuf {
        self.0.folder()
    }

    async fn attach(&mut self, incoming: Incoming) -> Arrivals {
        let Incoming::Stream(arrivals) = incoming else { panic!("a stream") };
        arrivals
    }

    fn say(&mut self, number: u64, text: &str) -> BoxFuture<'static, Told> {
        self.tell(&said(number, text))
    }

    fn trouble(&mut self, trouble: Trouble) -> Said {
        self.0.meet_posts_with(trouble)
    }

    fn echo(&mut self, number: u64, whose: Whose) -> Said {
        self.0.world.deliver("events_api", &echoed(number, whose));
        Said::Duly
    }

    fn say_in(&mut self, spot: Spot, number: u64, text: &str) -> Option<BoxFuture<'static, Told>> {
        Some(self.tell(&said_in(spot, number, text)?))
    }

    fn spot(&self) -> Option<Spot> {
        self.0.spot()
    }

    fn uploads(&self) -> Option<Vec<Vec<u8>>> {
        Some(self.0.uploads())
    }

    async fn shown(&mut self) -> Shown {
        self.0.shown().await
    }

    async fn disturb(&mut self, number: usize) -> bool {
        let told = match number {
            0 => vendor::Told::Text("this is not JSON".into()),
            1 => vendor::Told::Bytes(vec![1, 2, 3]),
            2 => vendor::Told::Text("[".repeat(100_000)),
            3 => vendor::Told::Text("x".repeat(17 * 1024 * 1024)),
            4 => vendor::Told::Raw(vec![0xff; 64]),
            5 => vendor::Told::Text(r#"{"type":7}"#.into()),
            _ => return false,
        };
        self.0.world.tell(told);
        true
    }

    async fn hung_up(&mut self) {
        self.0.hung_up().await;
    }
}

talaria_testkit::platform_contract!(contract, Connected);

fn fixture(text: &str) -> Value {
    serde_json::from_str(&text.replace("T111", "T1")).unwrap()
}

#[tokio::test]
async fn what_is_of_no_interest_is_acknowledged_at_once() {
    let mut bench = bench().await;
    let world = bench.vendor.world.clone();
    for (kind, payload) in [
        ("events_api", vendor::event(json!({ "type": "reaction_added", "user": { "id": 1 } }))),
        ("events_api", fixture(include_str!("../fixtures/reaction_added.json"))),
        ("events_api", fixture(include_str!("../fixtures/tokens_revoked.json"))),
        ("events_api", fixture(include_str!("../fixtures/join.json"))),
        ("events_api", vendor::event(json!({ "type": "message", "subtype": "channel_topic" }))),
        ("events_api", vendor::event(json!({ "type": "message", "ts": 17, "channel": ["C1"] }))),
        ("events_api", json!("not an event")),
        ("events_api", json!(null)),
        ("slash_commands", json!({ "command": "/talaria" })),
        ("interactive", json!({ "type": "view_submission" })),
        ("interactive", json!([1, 2])),
        ("something_new", json!({})),
    ] {
        let (_, envelope) = world.deliver(kind, &payload);
        let (_, ack) = bench.listen_while(world.acked(&envelope)).await;
        assert_eq!(ack, json!({ "envelope_id": envelope }), "{kind} {payload}");
    }
    world.deliver("events_api", &said(1, "still here"));
    assert_eq!(message_of(&bench.event().await).text, "still here");
}

#[tokio::test]
async fn a_mention_and_the_message_it_is_in_are_one_event() {
    let mut bench = bench().await;
    let world = bench.vendor.world.clone();
    let event = |kind: &str| {
        vendor::event(
            json!({ "type": kind, "channel": "C1", "user": "U1", "ts": "1700000001.000100",
            "text": "<@UBOT> hello" }),
        )
    };
    world.deliver("events_api", &event("message"));
    let first = bench.event().await;
    world.deliver("events_api", &event("app_mention"));
    let second = bench.event().await;
    assert_eq!(first, second, "the journal will see one");
    assert_eq!(first.id.as_str(), "C1:1700000001.000100");
    let message = message_of(&first);
    assert_eq!((message.text.as_str(), message.addressed), ("hello", Addressed::ToUs));
    assert_eq!(first.to, at("C1", ChatKind::Group, Some("1700000001.000100")));
    let first = bench.let_in(first).await;
    assert_eq!(first.source.chat_name.as_deref(), Some("general"));
    assert_eq!(first.source.topic.as_deref(), Some("All of us"));
    assert_eq!(first.from.name.as_deref(), Some("Alice"));
}

#[tokio::test]
async fn events_that_came_together_are_acknowledged_together_after_the_commit() {
    let mut bench = bench().await;
    let world = bench.vendor.world.clone();
    let envelopes: Vec<String> =
        (1..=3).map(|number| world.deliver("events_api", &said(number, "hi")).1).collect();
    let mut heard = 0;
    while heard < 3 {
        let batch = bench.batch().await.unwrap();
        assert!(!world.is_acked(&envelopes[heard]), "before it is stored");
        heard += batch.events.len();
        commit(batch);
    }
    for envelope in &envelopes {
        bench.listen_while(world.acked(envelope)).await;
    }
}

#[tokio::test]
async fn a_slash_command_is_answered_in_private_if_it_is_let_in() {
    let mut bench = bench().await;
    let world = bench.vendor.world.clone();
    let command = |trigger: &str| {
        json!({ "team_id": "T1", "channel_id": "C1", "channel_name": "general", "user_id": "U1",
            "user_name": "alice", "command": "/talaria", "text": "stop", "trigger_id": trigger,
            "response_url": "https://hooks.slack.com/commands/T1/1/x" })
    };
    let (_, envelope) = world.deliver("slash_commands", &command("1.2.a"));
    let batch = bench.batch().await.unwrap();
    assert_eq!(message_of(&batch.events[0]).text, "/stop");
    assert_eq!(batch.events[0].id.as_str(), "slash:1.2.a");
    commit(batch);
    let (_, ack) = bench.listen_while(world.acked(&envelope)).await;
    assert_eq!(ack["payload"]["response_type"], "ephemeral");
    assert_eq!(ack["payload"]["text"], "Working on `/talaria`…");

    let (_, envelope) = world.deliver("slash_commands", &command("1.2.b"));
    let batch = bench.batch().await.unwrap();
    batch.ack.committed(Committed(vec![Verdict::Denied]));
    let (_, ack) = bench.listen_while(world.acked(&envelope)).await;
    assert_eq!(ack, json!({ "envelope_id": envelope }), "a stranger is told nothing");
}

#[tokio::test]
async fn a_slash_command_is_about_what_its_giver_did_last_in_the_chat() {
    let mut bench = bench().await;
    let world = bench.vendor.world.clone();
    world.deliver("events_api", &said(1, "think about it"));
    let said = bench.event().await;
    let command = json!({ "team_id": "T1", "channel_id": "D1", "channel_name": "directmessage",
        "user_id": "U1", "command": "/talaria", "text": "stop", "trigger_id": "1.2.c" });
    world.deliver("slash_commands", &command);
    assert_eq!(bench.event().await.to, said.to);
}

impl Bench {
    /// What a direct chat is to us when a slash command is given in it.
    pub(super) async fn kind_of(&mut self, chat: &str) -> ChatKind {
        let command = json!({ "team_id": "T1", "channel_id": chat, "channel_name": "directmessage",
            "user_id": "U1", "command": "/talaria", "text": "history",
            "trigger_id": format!("1.2.{chat}") });
        self.vendor.world.deliver("slash_commands", &command);
        self.event().await.to.chat.kind
    }
}

#[tokio::test]
async fn a_direct_chat_between_two_others_is_none_with_us() {
    let mut bench = bench().await;
    let world = bench.vendor.world.clone();
    for _ in 0..2 {
        assert_eq!(
            bench.kind_of("D9").await,
            ChatKind::Group,
            "what is said there teaches nothing"
        );
    }
    assert_eq!(bench.kind_of("D1").await, ChatKind::Group, "nothing is known of it");
    world.deliver("events_api", &said(1, "hi"));
    assert_eq!(bench.event().await.to.chat.kind, ChatKind::Dm);
    assert_eq!(bench.kind_of("D1").await, ChatKind::Dm, "Slack tells only of our own");
    assert_eq!(bench.kind_of("D9").await, ChatKind::Group);
}

#[tokio::test]
async fn a_direct_chat_in_which_we_speak_or_are_pressed_is_ours() {
    let mut opened = bench().await;
    opened.outgoing.send(&post(at("U1", ChatKind::Dm, None), 1, "hello")).await.unwrap();
    assert_eq!(opened.kind_of("D1").await, ChatKind::Dm);

    let mut answered = bench().await;
    answered.outgoing.send(&post(at("D1", ChatKind::Group, None), 1, "hello")).await.unwrap();
    answered.outgoing.send(&post(at("D9", ChatKind::Group, None), 2, "hello")).await.unwrap_err();
    assert_eq!(answered.kind_of("D1").await, ChatKind::Dm);
    assert_eq!(answered.kind_of("D9").await, ChatKind::Group);

    let mut pressed = bench().await;
    let press = json!({ "type": "block_actions", "team": { "id": "T1" }, "trigger_id": "9.8.y",
        "user": { "id": "U1" }, "channel": { "id": "D1", "name": "directmessage" },
        "actions": [{ "action_id": "talaria:0", "value": "yes" }] });
    pressed.vendor.world.deliver("interactive", &press);
    assert_eq!(pressed.event().await.to.chat.kind, ChatKind::Dm);
    assert_eq!(pressed.kind_of("D1").await, ChatKind::Dm);
}

#[tokio::test]
async fn a_press_names_its_choice_and_its_place() {
    let mut bench = bench().await;
    let world = bench.vendor.world.clone();
    let press = json!({ "type": "block_actions", "team": { "id": "T1" }, "trigger_id": "9.8.x",
        "user": { "id": "U1", "name": "alice", "team_id": "T1" }, "channel": { "id": "C1", "name": "general" },
        "container": { "type": "message", "message_ts": "2.000000", "channel_id": "C1" },
        "message": { "ts": "2.000000", "thread_ts": "1.000000" },
        "actions": [{ "action_id": "talaria:1", "value": "call-1.2", "type": "button", "action_ts": "1700000009.000001" }] });
    let (_, envelope) = world.deliver("interactive", &press);
    let event = bench.event().await;
    let InboundKind::Pressed(choice) = &event.kind else { panic!("{event:?}") };
    assert_eq!(choice.as_str(), "call-1.2");
    assert_eq!(event.to, at("C1", ChatKind::Group, Some("1.000000")));
    assert_eq!((event.id.as_str(), event.from.id.as_str()), ("act:9.8.x", "U1"));
    let (_, ack) = bench.listen_while(world.acked(&envelope)).await;
    assert_eq!(ack, json!({ "envelope_id": envelope }));
}

#[tokio::test]
async fn a_connection_is_renewed_before_slack_ends_it() {
    let mut bench = bench().await;
    let world = bench.vendor.world.clone();
    let (_, pending) = world.deliver("events_api", &said(1, "before"));
    let batch = bench.batch().await.unwrap();
    world.tell(vendor::Told::Text(
        json!({ "type": "disconnect", "reason": "warning", "debug_info": {} }).to_string(),
    ));
    commit(batch);
    let second =
        world.until("a second connection", |state| (state.connections.len() == 2).then_some(()));
    bench.listen_while(second).await;
    let (by, _) = bench.listen_while(world.acked(&pending)).await;
    assert_eq!(by, 0, "acknowledged where it came from");
    // The old connection still brings something, and then ends.
    let frame = json!({ "envelope_id": "late", "type": "events_api", "payload": said(2, "late") });
    world.tell_by(0, vendor::Told::Text(frame.to_string()));
    assert_eq!(message_of(&bench.event().await).text, "late");
    assert_eq!(bench.listen_while(world.acked("late")).await.0, 0);
    world.tell_by(0, vendor::Told::Close);
    world.deliver("events_api", &said(3, "after"));
    assert_eq!(message_of(&bench.event().await).text, "after");
}

#[tokio::test]
async fn each_reason_to_end_a_connection_is_told() {
    for (reason, is) in
        [("link_disabled", "not authorized"), ("too_many_websockets", "more connections use")]
    {
        let mut bench = bench().await;
        let frame = json!({ "type": "disconnect", "reason": reason });
        bench.vendor.world.tell(vendor::Told::Text(frame.to_string()));
        let end = bench.end().await.to_string();
        assert!(end.starts_with(is), "{reason}: {end}");
    }
    let mut bench = bench().await;
    bench.vendor.world.tell(vendor::Told::Close);
    assert!(matches!(bench.end().await, LinkError::Lost { .. }));
}

#[tokio::test]
async fn tokens_that_were_taken_back_end_the_account() {
    for event in [
        fixture(include_str!("../fixtures/app_uninstalled.json")),
        fixture(&include_str!("../fixtures/tokens_revoked.json").replace("UXXXXXXXX", "UBOT")),
    ] {
        let mut bench = bench().await;
        bench.vendor.world.deliver("events_api", &event);
        assert!(matches!(bench.end().await, LinkError::Unauthorized { .. }));
    }
}

/// Lets some waits pass in no time, and can be put forward. What others see of the time goes back by as
/// much, as if somebody had set it: nothing goes by that.
pub(super) struct Hasty {
    is_short: fn(Duration) -> bool,
    pub(super) ahead: AtomicU64,
}

impl talaria_clock::Clock for Hasty {
    fn now(&self) -> talaria_model::Timestamp {
        let now = talaria_clock::SystemClock.now().as_millis();
        talaria_model::Timestamp::from_millis(now - self.ahead.load(Ordering::Relaxed) as i64)
    }

    fn mark(&self) -> talaria_clock::Mark {
        let ahead = self.ahead.load(Ordering::Relaxed);
        talaria_clock::SystemClock.mark() + Duration::from_millis(ahead)
    }

    fn sleep(&self, wait: Duration) -> talaria_clock::Sleep {
        let wait = if (self.is_short)(wait) { Duration::from_millis(20) } else { wait };
        Box::pin(tokio::time::sleep(wait))
    }
}

pub(super) fn hasty(is_short: fn(Duration) -> bool) -> (Arc<Hasty>, Lent) {
    let clock = Arc::new(Hasty { is_short, ahead: AtomicU64::new(0) });
    let lent = Lent { clock: clock.clone(), ..Lent::default() };
    (clock, lent)
}

impl Bench {
    /// Waits for proof of life.
    async fn alive(&mut self) {
        let alive = async {
            loop {
                match self.arrivals.next().await {
                    Some(Ok(Arrival::Alive)) => break,
                    Some(Ok(Arrival::Batch(batch) | Arrival::Found(batch))) => commit(batch),
                    other => panic!("{:?}", other.map(|other| other.map(|_| ()))),
                }
            }
        };
        within(PATIENCE, "proof of life", alive).await;
    }
}

pub(super) fn is_ping(wait: Duration) -> bool {
    wait == Duration::from_secs(10)
}

#[tokio::test]
async fn another_process_on_the_same_app_is_noticed() {
    let vendor = Vendor::open().await;
    vendor.world.lock().strangers = 1;
    let settings = vendor.settings();
    let (_, lent) = hasty(|wait| wait > Duration::from_secs(60));
    let mut bench = connect(vendor, settings, lent).await;
    let end = bench.end().await;
    assert!(matches!(end, LinkError::Conflict { .. }), "{end}");
    assert_eq!(bench.vendor.world.lock().connections.len(), 2, "it looked twice");
}

#[tokio::test]
async fn a_connection_of_our_own_that_still_counts_is_no_conflict() {
    let vendor = Vendor::open().await;
    vendor.world.lock().strangers = 1;
    let settings = vendor.settings();
    let (_, lent) = hasty(|wait| wait > Duration::from_secs(60));
    let mut bench = connect(vendor, settings, lent).await;
    let world = bench.vendor.world.clone();
    world.lock().strangers = 0;
    let second =
        world.until("it looks again", |state| (state.connections.len() == 2).then_some(()));
    bench.listen_while(second).await;
    world.deliver("events_api", &said(1, "hello"));
    assert_eq!(message_of(&bench.event().await).text, "hello");
}

#[tokio::test]
async fn a_silent_connection_is_asked_for_a_sign_of_life_and_gives_it() {
    let vendor = Vendor::open().await;
    let settings = vendor.settings();
    let (_, lent) = hasty(is_ping);
    let mut bench = connect(vendor, settings, lent).await;
    bench.alive().await;
}

#[tokio::test]
async fn a_connection_that_gives_no_sign_of_life_is_dead() {
    let vendor = Vendor::open().await;
    let settings = vendor.settings();
    let (clock, lent) = hasty(is_ping);
    let mut bench = connect(vendor, settings, lent).await;
    bench.vendor.world.tell(vendor::Told::Freeze);
    let world = bench.vendor.world.clone();
    let frozen = world.until("it is frozen", |state| state.frozen.then_some(()));
    bench.listen_while(frozen).await;
    clock.ahead.store(30_000, Ordering::Relaxed);
    let end = bench.end().await;
    assert!(matches!(end, LinkError::Deaf { .. }), "{end}");
}

#[tokio::test]
async fn a_connection_that_lives_but_brings_nothing_is_noticed_by_our_own_posts() {
    let vendor = Vendor::open().await;
    let settings = vendor.settings();
    let (clock, lent) = hasty(is_ping);
    let mut bench = connect(vendor, settings.clone(), lent.clone()).await;
    let world = bench.vendor.world.clone();
    world.lock().echoes = true;
    let to = at("D1", ChatKind::Dm, None);
    let sent = bench.outgoing.send(&post(to.clone(), 1, "hello")).await.unwrap();
    let ts = sent.message.unwrap();
    bench.listen_while(world.acked(&format!("echo-{ts}"))).await;
    world.lock().echoes = false;
    // The next connection knows that posts there have to come back.
    for (number, began) in [(2, 0), (3, 60_000)] {
        bench.outgoing.send(&post(to.clone(), number, "is anybody there?")).await.unwrap();
        for passed in [20_000, 40_000] {
            clock.ahead.store(began + passed, Ordering::Relaxed);
            bench.alive().await;
        }
        clock.ahead.store(began + 60_000, Ordering::Relaxed);
        let end = bench.end().await;
        assert!(end.to_string().contains("did not come back"), "{end}");
        assert!(
            matches!(end, LinkError::Deaf { until: Proof::Events, .. }),
            "it lived, too: {end}"
        );
        bench = connect(bench.vendor, settings.clone(), lent.clone()).await;
    }
    bench.alive().await;
    world.lock().echoes = true;
    bench.outgoing.send(&post(to, 4, "hello again")).await.unwrap();
    let brought = async {
        while !matches!(bench.arrivals.next().await.unwrap().unwrap(), Arrival::Brought) {}
    };
    within(PATIENCE, "a post of ours that comes back", brought).await;
}

#[tokio::test]
async fn our_own_posts_come_back_as_proof_and_not_as_messages() {
    let mut bench = bench().await;
    let world = bench.vendor.world.clone();
    world.lock().echoes = true;
    let outgoing = bench.outgoing.clone();
    let outbound = post(at("D1", ChatKind::Dm, None), 1, "hello");
    let sent = outgoing.send(&outbound).await.unwrap();
    let ts = sent.message.unwrap().to_string();
    bench.listen_while(world.acked(&format!("echo-{ts}"))).await;
    let requests = bench.vendor.http.requests().len();
    let found = outgoing.find(&outbound).await.unwrap();
    let Found::Shown(receipt) = found else { panic!("{found:?}") };
    assert_eq!(receipt.message.unwrap().as_str(), ts);
    assert_eq!(bench.vendor.http.requests().len(), requests, "nobody had to be asked");
}

#[tokio::test]
async fn somebody_of_another_workspace_is_not_who_has_the_same_id_in_ours() {
    let mut bench = bench().await;
    let world = bench.vendor.world.clone();
    let event = |team: Value| {
        let mut event = vendor::event(json!({ "type": "message", "channel": "CX", "user": "U1",
            "channel_type": "channel", "ts": "1700000005.000100", "text": "hi", "user_team": team }));
        event["is_ext_shared_channel"] = json!(true);
        event["team_id"] = json!("TFAR");
        event
    };
    for (team, expected) in [(json!("T1"), "U1"), (json!("TFAR"), "TFAR:U1"), (json!(null), "U1")] {
        world.deliver("events_api", &event(team));
        assert_eq!(bench.event().await.from.id.as_str(), expected);
    }
}

#[tokio::test]
async fn the_second_workspace_has_its_own_token_and_its_own_people() {
    let vendor = Vendor::open().await;
    let mut settings = vendor.settings();
    settings["bot_token"] = json!("xoxb-1, xoxb-2");
    let mut bench = connect(vendor, settings, Lent::default()).await;
    let world = bench.vendor.world.clone();
    let mut event = vendor::event(json!({ "type": "message", "channel": "C2", "user": "U1",
        "channel_type": "channel", "ts": "1700000005.000100", "text": "<@UBOT> hi" }));
    event["team_id"] = json!("T2");
    event["authorizations"][0]["team_id"] = json!("T2");
    world.deliver("events_api", &event);
    let heard = bench.event().await;
    assert_eq!(heard.from.id.as_str(), "T2:U1");
    assert_eq!(heard.source.space.as_deref(), Some("T2"));
    let sent = bench.outgoing.send(&post(heard.to, 1, "hello")).await;
    assert!(sent.is_ok(), "the other workspace does not know that chat: {sent:?}");
    // Of a chat of which nothing was heard, each workspace is asked.
    let sent = bench.outgoing.send(&post(at("C1", ChatKind::Group, None), 2, "hello")).await;
    assert!(sent.is_ok(), "{sent:?}");
    let mut stranger = vendor::event(json!({ "type": "message", "channel": "C3", "user": "U1",
        "ts": "1700000006.000100", "text": "hi" }));
    stranger["authorizations"][0]["team_id"] = json!("T3");
    let (_, envelope) = world.deliver("events_api", &stranger);
    bench.listen_while(world.acked(&envelope)).await;
}

#[tokio::test]
async fn a_workspace_of_which_we_have_no_token_is_not_taken_for_ours() {
    let mut bench = bench().await;
    let world = bench.vendor.world.clone();
    let mut event = said(1, "hello");
    event["team_id"] = json!("T9");
    event["authorizations"][0]["team_id"] = json!("T9");
    let (_, envelope) = world.deliver("events_api", &event);
    bench.listen_while(world.acked(&envelope)).await;
    let press = json!({ "type": "block_actions", "team": { "id": "T9" }, "trigger_id": "9.8.y",
        "user": { "id": "U1" }, "channel": { "id": "CX", "name": "partners" },
        "actions": [{ "action_id": "talaria:0", "value": "yes" }] });
    world.deliver("interactive", &press);
    assert_eq!(bench.event().await.from.id.as_str(), "T9:U1", "a guest of a shared chat");
}
