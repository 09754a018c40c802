//! What was said while nobody listened.

use futures::StreamExt;
use serde_json::json;
use talaria_clock::{Clock, SystemClock};
use talaria_model::{
    Addressed, Author, Below, Bystander, ChatKind, Inbound, Overheard, Quote, SenderId,
};
use talaria_platform::{Arrival, Committed, Cursor, LinkError, Verdict};
use talaria_testkit::scripted::{Fault, Reply};
use talaria_testkit::within;

use super::super::ts::Ts;
use super::vendor::{self, PATIENCE, Vendor, event};
use super::{Bench, Lent, at, commit, connect, message_of};

/// A moment so many seconds ago.
fn ago(seconds: u64) -> Ts {
    Ts::at(SystemClock.now()).before(seconds)
}

fn since(seconds: u64) -> Lent {
    let seen = ago(seconds).to_string();
    Lent { cursor: Some(Cursor(json!({ "seen": seen }).to_string())), ..Lent::default() }
}

async fn returning(vendor: Vendor, lent: Lent) -> Bench {
    let settings = vendor.settings();
    connect(vendor, settings, lent).await
}

impl Bench {
    /// Everything until so many events are there, and the last position.
    async fn events(&mut self, number: usize) -> (Vec<Inbound>, Option<Cursor>) {
        let (mut events, mut cursor) = (Vec::new(), None);
        while events.len() < number {
            let batch = self.batch().await.unwrap();
            events.extend(batch.events.clone());
            cursor.clone_from(&batch.cursor);
            commit(batch);
        }
        (events, cursor)
    }
}

fn texts(events: &[Inbound]) -> Vec<&str> {
    events.iter().map(|event| message_of(event).text.as_str()).collect()
}

#[tokio::test]
async fn what_was_said_meanwhile_is_read_direct_chats_first_and_oldest_first() {
    let vendor = Vendor::open().await;
    let world = &vendor.world;
    world.write("C1", &ago(300).to_string(), None, "U2", "third");
    let fourth = ago(200).to_string();
    world.write("C1", &fourth, None, "U2", "<@UBOT> fourth");
    world.write("D1", &ago(100).to_string(), None, "U1", "second");
    world.write("D1", &ago(400).to_string(), None, "U1", "first");
    world.write("D1", &ago(7_200).to_string(), None, "U1", "long known");
    let mut bench = returning(vendor, since(500)).await;
    let (events, _) = bench.events(4).await;
    assert_eq!(texts(&events), ["first", "second", "third", "fourth"]);
    let addressed: Vec<Addressed> =
        events.iter().map(|event| message_of(event).addressed).collect();
    assert_eq!(addressed, [Addressed::ToUs, Addressed::ToUs, Addressed::ToOthers, Addressed::ToUs]);
    assert_eq!(events[0].to.chat.kind, ChatKind::Dm);
    assert_eq!(events[3].source.chat_name.as_deref(), Some("general"));
    assert_eq!(events[3].id.as_str(), format!("C1:{fourth}"), "as it would have been live");
}

#[tokio::test]
async fn after_an_absence_our_own_direct_chats_are_known_again() {
    let vendor = Vendor::open().await;
    vendor.world.write("C1", &ago(100).to_string(), None, "U1", "<@UBOT> and not in D1");
    let mut bench = returning(vendor, since(500)).await;
    bench.events(1).await;
    assert_eq!(bench.kind_of("D1").await, ChatKind::Dm);
    assert_eq!(bench.kind_of("D9").await, ChatKind::Group);
}

#[tokio::test]
async fn threads_are_read_that_we_take_part_in_or_that_grew() {
    let vendor = Vendor::open().await;
    let world = &vendor.world;
    let (ours, new) = (ago(90_000).to_string(), ago(250).to_string());
    world.write("C1", &ours, None, "U1", "<@UBOT> an old question");
    world.write("C1", &ago(100).to_string(), Some(&ours), "U1", "in our thread");
    world.write("C1", &new, None, "U2", "a new topic");
    world.write("C1", &ago(50).to_string(), Some(&new), "U2", "<@UBOT> below it");
    let mut known = at("C1", ChatKind::Group, None);
    known.thread = Some(talaria_model::ThreadId::new(ours.as_str()).unwrap());
    let lent = Lent { conversations: vec![known.clone()], ..since(500) };
    let mut bench = returning(vendor, lent).await;
    let (events, _) = bench.events(3).await;
    assert_eq!(texts(&events), ["a new topic", "in our thread", "below it"]);
    assert_eq!(events[1].to, known);
    assert_eq!(events[1].source.below, Some(Below::Others), "whether it is ours, the gate decides");
}

#[tokio::test]
async fn the_position_stays_until_everything_is_read_although_new_things_happen() {
    let vendor = Vendor::open().await;
    for number in 1..=250 {
        vendor.world.write("D1", &ago(300 - number).to_string(), None, "U1", &format!("{number}"));
    }
    let lent = since(500);
    let before = lent.cursor.clone();
    let mut bench = returning(vendor, lent).await;
    let (events, cursor) = bench.events(1).await;
    assert_eq!(events.len(), 100, "in batches");
    assert_eq!(cursor, before, "a crash here begins again at the same place");
    let mut live = vendor::said(1, "now");
    live["event"]["ts"] = json!(ago(0).to_string());
    let (_, envelope) = bench.vendor.world.deliver("events_api", &live);
    let mut all = events;
    while all.len() < 251 {
        let (events, cursor) = bench.events(1).await;
        assert_eq!(cursor, before);
        all.extend(events);
    }
    assert!(texts(&all).contains(&"now"));
    let world = bench.vendor.world.clone();
    bench.listen_while(world.acked(&envelope)).await;
    let texts: Vec<&str> = texts(&all).into_iter().filter(|text| *text != "now").collect();
    let expected: Vec<String> = (1..=250).map(|number| number.to_string()).collect();
    assert_eq!(texts, expected, "pages come newest first, and are turned round");
    let newest = Some(Cursor(json!({ "seen": newest(&all) }).to_string()));
    let released = async {
        while let Some(Ok(arrival)) = bench.arrivals.next().await {
            let (Arrival::Batch(batch) | Arrival::Found(batch)) = arrival else { continue };
            let cursor = batch.cursor.clone();
            commit(batch);
            if cursor != before {
                return cursor;
            }
        }
        None
    };
    assert_eq!(within(PATIENCE, "the new position", released).await, newest);
}

fn newest(events: &[Inbound]) -> String {
    let newest = events.iter().filter_map(|event| {
        let id = message_of(event).id.as_ref()?;
        Ts::parse(id.as_str())
    });
    newest.max().unwrap().to_string()
}

#[tokio::test]
async fn a_history_that_is_throttled_or_broken_is_asked_again() {
    let vendor = Vendor::open().await;
    vendor.world.write("D1", &ago(100).to_string(), None, "U1", "hello");
    let wait = Reply::status(429, "").with("retry-after", "0");
    vendor.http.fault("users.conversations", Fault::Instead(wait.clone()));
    vendor.http.fault("conversations.history", Fault::Instead(wait));
    let mut bench = returning(vendor, since(500)).await;
    assert_eq!(texts(&bench.events(1).await.0), ["hello"]);
}

#[tokio::test]
async fn a_chat_that_is_not_ours_to_read_does_not_keep_us_from_the_others() {
    let vendor = Vendor::open().await;
    vendor.world.write("C1", &ago(100).to_string(), None, "U1", "hello");
    let refusal = Reply::json(&json!({ "ok": false, "error": "missing_scope" }));
    vendor.http.fault("conversations.history", Fault::Instead(refusal));
    let mut bench = returning(vendor, since(500)).await;
    assert_eq!(texts(&bench.events(1).await.0), ["hello"]);
}

#[tokio::test]
async fn what_was_missed_and_could_not_be_stored_ends_the_connection() {
    let vendor = Vendor::open().await;
    vendor.world.write("D1", &ago(100).to_string(), None, "U1", "hello");
    let mut bench = returning(vendor, since(500)).await;
    drop(bench.batch().await.unwrap());
    assert!(matches!(bench.end().await, LinkError::Lost { .. }));
}

#[tokio::test]
async fn nothing_is_read_that_is_older_than_asked_for_or_at_all_when_told_so() {
    let vendor = Vendor::open().await;
    vendor.world.write("D1", &ago(7_000).to_string(), None, "U1", "too old");
    vendor.world.write("D1", &ago(100).to_string(), None, "U1", "hello");
    let mut settings = vendor.settings();
    settings["catch_up_hours"] = json!(1);
    let mut bench = connect(vendor, settings.clone(), since(100_000)).await;
    assert_eq!(texts(&bench.events(1).await.0), ["hello"]);
    settings["catch_up_hours"] = json!(0);
    let Bench { vendor, .. } = bench;
    let mut bench = connect(vendor, settings, since(100_000)).await;
    bench.vendor.world.deliver("events_api", &vendor::said(1, "live"));
    assert_eq!(texts(&bench.events(1).await.0), ["live"]);
}

#[tokio::test]
async fn the_first_time_nothing_is_read_but_a_position_is_stored() {
    let vendor = Vendor::open().await;
    vendor.world.write("D1", &ago(100).to_string(), None, "U1", "before we came");
    let mut bench = returning(vendor, Lent::default()).await;
    let first = bench.arrivals.next().await.unwrap().unwrap();
    let Arrival::Batch(batch) = first else { panic!("a position") };
    assert!(batch.events.is_empty() && batch.cursor.is_some());
    bench.vendor.world.deliver("events_api", &vendor::said(1, "live"));
    assert_eq!(texts(&bench.events(1).await.0), ["live"]);
}

#[tokio::test]
async fn slack_says_that_it_left_something_out_and_it_is_read() {
    let vendor = Vendor::open().await;
    let mut bench = returning(vendor, Lent::default()).await;
    bench.vendor.world.write("D1", &ago(10).to_string(), None, "U1", "left out");
    let limited = include_str!("../fixtures/rate_limited.json");
    let limited = serde_json::from_str(limited).unwrap();
    bench.vendor.world.deliver("events_api", &limited);
    assert_eq!(texts(&bench.events(1).await.0), ["left out"]);
}

#[tokio::test]
async fn a_connection_that_ended_before_the_next_was_there_leaves_a_gap_that_is_read() {
    let vendor = Vendor::open().await;
    let mut bench = returning(vendor, Lent::default()).await;
    let world = bench.vendor.world.clone();
    world.deliver("events_api", &vendor::said(1, "hello"));
    bench.events(1).await;
    world.write("D1", &ago(5).to_string(), None, "U1", "in between");
    let frame = json!({ "type": "disconnect", "reason": "refresh_requested" });
    world.tell(vendor::Told::Text(frame.to_string()));
    world.tell(vendor::Told::Close);
    let (events, _) = bench.events(1).await;
    assert_eq!(texts(&events), ["in between"]);
    assert_eq!(world.lock().connections.len(), 2);
}

#[tokio::test]
async fn whoever_is_first_asked_in_a_thread_is_told_what_was_said_in_it() {
    let vendor = Vendor::open().await;
    let world = vendor.world.clone();
    let mut bench = returning(vendor, Lent::default()).await;
    world.write("C1", "1700000001.000000", None, "U1", "Where do we eat?");
    world.write("C1", "1700000002.000000", Some("1700000001.000000"), "U2", "Ask <@U1>");
    world.write("C1", "1700000003.000000", Some("1700000001.000000"), "U2", "<@UBOT> and you?");
    let reply = |ts: &str, text: &str| {
        event(json!({ "type": "message", "channel": "C1", "channel_type": "channel", "user": "U2",
            "text": text, "ts": ts, "thread_ts": "1700000001.000000", "parent_user_id": "U1" }))
    };
    world.deliver("events_api", &reply("1700000002.000000", "Ask <@U1>"));
    let (events, _) = bench.events(1).await;
    assert_eq!(message_of(&events[0]).addressed, Addressed::ToOthers);
    world.deliver("events_api", &reply("1700000003.000000", "<@UBOT> and you?"));
    let (mut events, _) = bench.events(1).await;
    assert!(message_of(&events[0]).overheard.is_empty(), "nobody was let in yet");
    let event = bench.let_in(events.remove(0)).await;
    let message = message_of(&event);
    assert_eq!(message.text, "and you?");
    // What a thread is about was chosen by whoever calls us in it.
    let by = |id| Some(Bystander::new(SenderId::literal(id)));
    let begun = Quote::new("Where do we eat?", Author::Named("Alice".into()));
    assert_eq!(message.quote, Some(Quote { by: by("U1"), ..begun }));
    let asked = Overheard::new("Bob", "Ask @Alice");
    assert_eq!(message.overheard, [Overheard { by: by("U2"), ..asked }]);
    assert_eq!(message.reply_to.as_ref().unwrap().as_str(), "1700000001.000000");
    world.deliver("events_api", &reply("1700000004.000000", "hm?"));
    let (mut events, _) = bench.events(1).await;
    let event = bench.let_in(events.remove(0)).await;
    let message = message_of(&event);
    assert!(message.overheard.is_empty(), "told once");
}

#[tokio::test]
async fn a_new_connection_does_not_tell_again_what_the_conversation_holds() {
    let vendor = Vendor::open().await;
    let world = vendor.world.clone();
    let talk = at("D1", ChatKind::Dm, Some("1700000001.000000"));
    let lent = Lent { conversations: vec![talk], ..Lent::default() };
    let mut bench = returning(vendor, lent).await;
    world.write("D1", "1700000001.000000", None, "U1", "Where do we eat?");
    world.write("D1", "1700000002.000000", Some("1700000001.000000"), "U1", "And when?");
    world.deliver(
        "events_api",
        &event(json!({ "type": "message", "channel": "D1", "channel_type": "im", "user": "U1",
            "text": "And when?", "ts": "1700000002.000000", "thread_ts": "1700000001.000000" })),
    );
    let (mut events, _) = bench.events(1).await;
    let event = bench.let_in(events.remove(0)).await;
    assert!(message_of(&event).overheard.is_empty(), "it is in the conversation");
}

#[tokio::test]
async fn an_answer_to_something_we_began_says_what_it_answers() {
    let vendor = Vendor::open().await;
    let world = vendor.world.clone();
    let mut bench = returning(vendor, Lent::default()).await;
    world.write("C1", "1700000001.000000", None, "UBOT", "The build is *red*.");
    world.deliver(
        "events_api",
        &event(
            json!({ "type": "message", "channel": "C1", "channel_type": "channel", "user": "U2",
            "text": "why?", "ts": "1700000002.000000", "thread_ts": "1700000001.000000",
            "parent_user_id": "UBOT" }),
        ),
    );
    let (mut events, _) = bench.events(1).await;
    let event = bench.let_in(events.remove(0)).await;
    let message = message_of(&event);
    assert_eq!(event.source.below, Some(Below::Us));
    let quote = message.quote.as_ref().unwrap();
    assert_eq!((quote.text.as_str(), &quote.author), ("The build is *red*.", &Author::Us));
}

#[tokio::test]
async fn a_stranger_who_calls_us_changes_nothing_for_those_who_are_let_in() {
    let vendor = Vendor::open().await;
    let world = vendor.world.clone();
    let mut bench = returning(vendor, Lent::default()).await;
    let call = |ts: &str, thread: Option<&str>, user: &str| {
        event(json!({ "type": "message", "channel": "C1", "channel_type": "channel", "user": user,
            "text": "<@UBOT> hello", "ts": ts, "thread_ts": thread, "parent_user_id": "U2" }))
    };
    let begun = "1700000001.000000";
    world.write("C1", begun, None, "U2", "<@UBOT> hello");
    world.deliver("events_api", &call(begun, None, "U2"));
    let batch = bench.batch().await.unwrap();
    assert_eq!(message_of(&batch.events[0]).addressed, Addressed::ToUs);
    batch.ack.committed(Committed(vec![Verdict::Denied]));
    world.deliver("events_api", &call("1700000002.000000", Some(begun), "U1"));
    let (mut events, _) = bench.events(1).await;
    assert_eq!(events[0].source.below, Some(Below::Others), "nobody has spoken with us there");
    let event = bench.let_in(events.remove(0)).await;
    let quote = message_of(&event).quote.as_ref().map(|quote| quote.text.as_str());
    assert_eq!(quote, Some("@talaria hello"), "what was said before is told");
    world.deliver("events_api", &call("1700000003.000000", Some(begun), "U1"));
    let (events, _) = bench.events(1).await;
    assert_eq!(message_of(&events[0]).surroundings, None, "and told once");
}
