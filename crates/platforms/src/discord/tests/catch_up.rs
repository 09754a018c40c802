//! Sessions: begun, resumed, lost, and what was missed meanwhile.

use futures::StreamExt;
use serde_json::{Value, json};
use talaria_model::{ChatKind, InboundKind};
use talaria_platform::{Arrival, ConnectError, Cursor, LinkError};
use tempfile::TempDir;

use super::vendor::{DM, GENERAL, GUILD, TOKEN, US, Vendor, id_before, message};
use super::{Bench, OURS, QUIET, connect};

const FIRST: u64 = 1_500_000_000_000_000_001;

async fn texts(bench: &mut Bench, most: usize) -> Vec<String> {
    let mut texts = Vec::new();
    while texts.len() < most {
        for inbound in bench.batch().await.unwrap().events {
            let InboundKind::Said(message) = inbound.kind else { panic!("said") };
            texts.push(message.text);
        }
    }
    texts
}

fn position(bench: &Bench) -> Value {
    serde_json::from_str(&bench.cursor.as_ref().expect("a position").0).unwrap()
}

#[tokio::test]
async fn a_session_introduces_itself() {
    let bench = Bench::direct().await;
    let introduced = bench.vendor.truth().introduced.clone();
    let [hello] = introduced.as_slice() else { panic!("once") };
    assert_eq!(hello["op"], 2);
    assert_eq!(hello["d"]["token"], TOKEN);
    assert_eq!(hello["d"]["intents"], 37_377, "guilds, their messages, direct ones, their text");
    assert_eq!(hello["d"]["shard"], json!([0, 1]));
}

#[tokio::test]
async fn a_session_is_resumed_behind_the_last_stored_event() {
    let mut bench = Bench::direct().await;
    let stored = bench.vendor.tell("MESSAGE_CREATE", message(FIRST, DM, "stored"));
    bench.event().await;
    let cursor = bench.cursor.clone();
    bench.vendor.tell("MESSAGE_CREATE", message(FIRST + 1, DM, "not stored"));
    bench.event().await;
    bench.cursor = cursor;
    bench.again(&json!({})).await;
    let introduced = bench.vendor.truth().introduced[1].clone();
    assert_eq!(introduced["op"], 6);
    assert_eq!(introduced["d"]["session_id"], "session-1");
    assert_eq!(introduced["d"]["seq"], stored);
    assert_eq!(texts(&mut bench, 1).await, ["not stored"]);
}

#[tokio::test]
async fn a_session_that_was_begun_is_written_down_before_anybody_speaks() {
    let mut bench = Bench::direct().await;
    let first = bench.arrivals.next().await;
    let Some(Ok(Arrival::Batch(batch))) = first else { panic!("a batch") };
    assert!(batch.events.is_empty());
    let position: Value = serde_json::from_str(&batch.cursor.unwrap().0).unwrap();
    assert_eq!(position["session"]["id"], "session-1");
}

#[tokio::test]
async fn what_was_missed_is_fetched_when_the_session_is_lost() {
    let mut bench = Bench::guild(json!({})).await;
    let seen = id_before(120_000);
    bench.vendor.tell("MESSAGE_CREATE", message(seen, DM, "before"));
    texts(&mut bench, 1).await;
    // Nobody is connected.
    bench.arrivals = Box::pin(futures::stream::empty());
    {
        let mut truth = bench.vendor.truth();
        truth.forgets = true;
        let mut ours = message(id_before(50_000), GENERAL, "I said");
        ours["author"]["id"] = json!(US);
        let missed = [
            (DM, message(id_before(40_000), DM, "second")),
            (GENERAL, message(id_before(60_000), GENERAL, &format!("<@{US}> first"))),
            (GENERAL, ours),
            (GENERAL, message(id_before(20_000), GENERAL, "third")),
            (GENERAL, message(id_before(30 * 3_600_000), GENERAL, "long ago")),
        ];
        for (chat, said) in missed {
            let id = said["id"].as_str().unwrap().parse().unwrap();
            truth.messages.entry(chat.into()).or_default().insert(id, said);
        }
    }
    bench.again(&json!({})).await;
    // Said while we catch up.
    bench.vendor.tell("MESSAGE_CREATE", message(id_before(0), DM, "live"));
    assert_eq!(texts(&mut bench, 4).await, ["first", "second", "third", "live"]);
    let introduced = bench.vendor.truth().introduced.clone();
    assert_eq!((&introduced[1]["op"], &introduced[2]["op"]), (&json!(6), &json!(2)));
    assert_eq!(position(&bench)["session"]["id"], "session-2");
}

#[tokio::test]
async fn catching_up_begins_again_when_it_was_cut_short() {
    let mut bench = Bench::direct().await;
    bench.vendor.tell("MESSAGE_CREATE", message(id_before(120_000), DM, "before"));
    texts(&mut bench, 1).await;
    let seen = position(&bench)["seen"].clone();
    {
        let mut truth = bench.vendor.truth();
        truth.forgets = true;
        let chat = truth.messages.entry(DM.into()).or_default();
        for number in 0..70u64 {
            let id = id_before(60_000) + number;
            chat.insert(id, message(id, DM, &format!("missed {number}")));
        }
    }
    bench.again(&json!({})).await;
    let first = bench.batch().await.unwrap();
    assert!(first.events.len() < 70, "not everything at once");
    assert_eq!(position(&bench)["session"], Value::Null, "nothing to resume yet");
    assert_eq!(position(&bench)["seen"], seen);
    bench.again(&json!({})).await;
    let all = texts(&mut bench, 70).await;
    assert_eq!((all[0].as_str(), all[69].as_str()), ("missed 0", "missed 69"));
    assert_eq!(position(&bench)["session"]["id"], "session-3");
}

/// A channel in which nobody was heard while so many things were said.
async fn away_from_general(limit: u16, said: impl Fn(u64) -> Value, many: u64) -> Bench {
    let with = json!({ "missed_message_backfill": { "limit": limit } });
    let mut bench = Bench::guild(json!({})).await;
    bench.vendor.tell("MESSAGE_CREATE", message(id_before(120_000), DM, "before"));
    texts(&mut bench, 1).await;
    bench.arrivals = Box::pin(futures::stream::empty());
    {
        let mut truth = bench.vendor.truth();
        truth.forgets = true;
        for number in 0..many {
            let id = id_before(60_000) + number;
            let mut said = said(number);
            said["id"] = json!(id.to_string());
            truth.messages.entry(GENERAL.into()).or_default().insert(id, said);
        }
    }
    bench.again(&with).await;
    bench
}

#[tokio::test]
async fn page_after_page_is_read_and_what_is_not_for_us_costs_no_place() {
    // Two pages of our own words, and then somebody asks.
    let said = |number: u64| {
        let mut said = message(1, GENERAL, &format!("<@{US}> {number}"));
        if number < 240 {
            said["author"]["id"] = json!(US);
        }
        said
    };
    let mut bench = away_from_general(5, said, 245).await;
    assert_eq!(texts(&mut bench, 5).await, ["240", "241", "242", "243", "244"]);
}

#[tokio::test]
async fn of_more_than_the_limit_what_was_said_to_us_and_the_newest_stay() {
    let said = |number: u64| match number {
        3 => message(1, GENERAL, &format!("<@{US}> asked early")),
        _ => message(1, GENERAL, &format!("chatter {number}")),
    };
    let mut bench = away_from_general(3, said, 150).await;
    let heard = texts(&mut bench, 3).await;
    assert_eq!(heard, ["asked early", "chatter 148", "chatter 149"], "in their order");
}

#[tokio::test]
async fn beyond_the_last_page_that_is_read_the_newest_is_heard() {
    let said = |number: u64| message(1, GENERAL, &format!("chatter {number}"));
    let mut bench = away_from_general(2, said, 1500).await;
    assert_eq!(texts(&mut bench, 2).await, ["chatter 1498", "chatter 1499"]);
    let asked = bench.vendor.rest.requests_to(&format!("/channels/{GENERAL}/messages"));
    assert_eq!(asked.len(), 11, "ten pages, and the newest");
}

#[tokio::test]
async fn a_thread_of_ours_that_was_archived_meanwhile_is_read_too() {
    let mut bench = Bench::guild(json!({})).await;
    bench.vendor.tell("MESSAGE_CREATE", message(id_before(120_000), DM, "before"));
    texts(&mut bench, 1).await;
    bench.arrivals = Box::pin(futures::stream::empty());
    for (thread, past) in [(OURS, 60_000), (QUIET, 30 * 3_600_000)] {
        let id = id_before(past);
        let mut truth = bench.vendor.truth();
        truth.forgets = true;
        truth.archived.insert(thread.into());
        let described = json!({ "id": thread, "type": 11, "guild_id": GUILD, "parent_id": GENERAL,
            "name": "soup", "last_message_id": id.to_string() });
        truth.channels.insert(thread.into(), described);
        let said = message(id, thread, "more salt");
        truth.messages.entry(thread.into()).or_default().insert(id, said);
    }
    bench.again(&json!({})).await;
    let batch = bench.batch().await.unwrap();
    let [inbound] = batch.events.as_slice() else { panic!("one thing was said") };
    assert_eq!(inbound.to, super::address(OURS, ChatKind::Thread));
    assert_eq!(inbound.source.parent.as_ref().unwrap().as_str(), GENERAL);
    let asked = bench.vendor.rest.requests_to(&format!("/channels/{QUIET}/messages"));
    assert!(asked.is_empty(), "nothing was said there since");
}

#[tokio::test]
async fn what_was_missed_is_left_alone_where_that_is_wanted() {
    let mut bench = Bench::direct().await;
    bench.vendor.tell("MESSAGE_CREATE", message(id_before(120_000), DM, "before"));
    texts(&mut bench, 1).await;
    {
        let mut truth = bench.vendor.truth();
        truth.forgets = true;
        let id = id_before(60_000);
        truth.messages.entry(DM.into()).or_default().insert(id, message(id, DM, "missed"));
    }
    bench.again(&json!({ "missed_message_backfill": { "enabled": false } })).await;
    bench.vendor.tell("MESSAGE_CREATE", message(id_before(0), DM, "live"));
    assert_eq!(texts(&mut bench, 1).await, ["live"]);
}

#[tokio::test]
async fn what_cannot_be_caught_up_with_is_not_passed_by() {
    use talaria_testkit::scripted::{Fault, Reply};
    let mut bench = Bench::direct().await;
    bench.vendor.tell("MESSAGE_CREATE", message(id_before(120_000), DM, "before"));
    texts(&mut bench, 1).await;
    bench.vendor.truth().forgets = true;
    bench.vendor.rest.fault("/messages", Fault::Instead(Reply::Cut));
    bench.again(&json!({})).await;
    bench.vendor.tell("MESSAGE_CREATE", message(id_before(0), DM, "live"));
    assert!(matches!(bench.batch().await, Err(LinkError::Lost { .. })));
}

#[tokio::test]
async fn the_vendor_may_ask_for_another_connection() {
    for frame in [json!({ "op": 7, "d": null }), json!({ "op": 9, "d": true })] {
        let mut bench = Bench::direct().await;
        bench.vendor.tell("MESSAGE_CREATE", message(FIRST, DM, "before"));
        bench.vendor.write(frame.to_string());
        assert_eq!(texts(&mut bench, 1).await, ["before"], "what was said first is not lost");
        assert!(matches!(bench.batch().await, Err(LinkError::Lost { .. })));
    }
}

#[tokio::test]
async fn a_heartbeat_that_is_asked_for_comes_at_once() {
    let (vendor, asked) = Vendor::open().await;
    vendor.truth().interval = 3_600_000;
    let mut bench = Bench::on(vendor, asked, &json!({})).await;
    bench.vendor.write(json!({ "op": 1, "d": null }).to_string());
    bench.until("a heartbeat", |vendor| vendor.connection().state.borrow().beats == 1).await;
}

#[tokio::test]
async fn the_end_of_a_connection_says_what_to_do() {
    for (code, unauthorized) in [(1000, false), (4000, false), (4009, false), (4004, true)] {
        let mut bench = Bench::direct().await;
        bench.vendor.close(code);
        let error = bench.batch().await.err().unwrap();
        let is_unauthorized = matches!(error, LinkError::Unauthorized { .. });
        assert_eq!(is_unauthorized, unauthorized, "{code}: {error}");
    }
}

async fn refused(vendor: &Vendor) -> ConnectError {
    let folder = TempDir::new().unwrap();
    match connect(vendor, &folder, &json!({}), None, Vec::new()).await {
        Ok(_) => panic!("it connects"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_missing_intent_is_for_a_person_to_switch_on() {
    let (vendor, _asked) = Vendor::open().await;
    vendor.truth().flags = 0;
    let ConnectError::Refused { problem, hint } = refused(&vendor).await else { panic!("refused") };
    assert!(problem.contains("Message Content") && hint.contains("Privileged Gateway Intents"));
    assert!(vendor.truth().introduced.is_empty(), "no session is spent on it");
    // And where only the gateway knows.
    vendor.truth().flags = 1 << 18;
    vendor.truth().refuses = Some(4014);
    let ConnectError::Refused { hint, .. } = refused(&vendor).await else { panic!("refused") };
    assert!(hint.contains("Message Content Intent"));
}

#[tokio::test]
async fn without_the_intent_it_is_not_asked_for() {
    let (vendor, asked) = Vendor::open().await;
    vendor.truth().flags = 0;
    let bench = Bench::on(vendor, asked, &json!({ "message_content": false })).await;
    assert_eq!(bench.vendor.truth().introduced[0]["d"]["intents"], 37_377 - 32_768);
}

#[tokio::test]
async fn whoever_cannot_help_is_not_asked_again_and_again() {
    let (vendor, _asked) = Vendor::open().await;
    for code in [4004, 4010, 4011, 4012, 4013] {
        vendor.truth().refuses = Some(code);
        assert!(matches!(refused(&vendor).await, ConnectError::Refused { .. }), "{code}");
    }
    vendor.truth().refuses = Some(4000);
    assert!(matches!(refused(&vendor).await, ConnectError::Unreachable { .. }));
    vendor.truth().refuses = None;
    vendor.truth().endpoint = json!("https://example.org/interactions");
    let ConnectError::Refused { hint, .. } = refused(&vendor).await else { panic!("refused") };
    assert!(hint.contains("Interactions Endpoint URL"));
    vendor.truth().endpoint = Value::Null;
    vendor.truth().starts_left = 3;
    let before = vendor.truth().introduced.len();
    assert!(matches!(refused(&vendor).await, ConnectError::Unreachable { .. }));
    assert_eq!(vendor.truth().introduced.len(), before, "the last sessions of the day are kept");
}

#[tokio::test]
async fn a_gateway_that_is_not_encrypted_does_not_get_the_token() {
    let (vendor, asked) = Vendor::open().await;
    let bench = Bench::on(vendor, asked, &json!({})).await;
    let folder = TempDir::new().unwrap();
    let cursor = json!({ "session": { "id": "s", "url": "http://example.org", "seq": 1 },
        "shard": [0, 1], "seen": "5" });
    let cursor = Some(Cursor(cursor.to_string()));
    // The address of the old session is not one; the vendor is asked for another.
    let link = connect(&bench.vendor, &folder, &json!({}), cursor, Vec::new()).await;
    assert!(link.is_ok());
}

#[tokio::test]
async fn a_position_of_another_shard_or_of_nobody_is_not_resumed() {
    let (vendor, _asked) = Vendor::open().await;
    let folder = TempDir::new().unwrap();
    let other = json!({ "session": { "id": "session-1", "url": vendor.truth().gateway, "seq": 1 },
        "shard": [1, 2], "seen": "5" });
    for cursor in [other.to_string(), "not a position".into()] {
        let cursor = Some(Cursor(cursor));
        let link = connect(&vendor, &folder, &json!({}), cursor, Vec::new()).await;
        assert!(link.is_ok());
    }
    let introduced = vendor.truth().introduced.clone();
    assert!(introduced.iter().all(|hello| hello["op"] == 2), "{introduced:?}");
}
