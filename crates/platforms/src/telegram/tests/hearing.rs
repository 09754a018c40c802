//! Long polling: position, acknowledgement, conflicts, albums and presses.

use talaria_model::{Addressed, InboundKind, Seq};

use super::super::poll;
use super::vendor::{Fault, refusal};
use super::*;

fn fixture(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn texts(batch: &Batch) -> Vec<String> {
    let text = |event: &talaria_model::Inbound| match &event.kind {
        InboundKind::Said(message) => message.text.clone(),
        kind => format!("{kind:?}"),
    };
    batch.events.iter().map(text).collect()
}

fn cursor(batch: &Batch) -> &str {
    &batch.cursor.as_ref().expect("a position").0
}

#[tokio::test]
async fn the_first_request_names_what_is_wanted_and_confirms_nothing() {
    let mut bench = Bench::open().await;
    bench.confirm().await;
    let asked = bench.last("getUpdates");
    let heard = json!([
        "message",
        "edited_message",
        "channel_post",
        "callback_query",
        "stopped_message_generation",
    ]);
    assert_eq!(asked, json!({ "timeout": 30, "allowed_updates": heard }));
}

#[tokio::test]
async fn asking_again_is_the_acknowledgement() {
    let mut bench = Bench::open().await;
    bench.vendor.push(said(500, "one"));
    bench.vendor.push(said(501, "two"));
    let batch = bench.batch().await;
    assert_eq!((texts(&batch), cursor(&batch)), (vec!["one".into(), "two".into()], "42:502"));
    assert!(!bench.vendor.truth().is_confirmed(500), "nothing is stored yet");
    commit(batch, &Verdict::Journalled(Seq(1)));
    bench.confirm().await;
    assert_eq!(bench.last("getUpdates")["offset"], 502);
    assert!(bench.vendor.truth().is_confirmed(501));
}

#[tokio::test]
async fn a_connection_begins_at_the_position_of_its_own_bot() {
    for (stored, offset) in [
        (Some("42:502"), json!(502)),
        (Some("43:502"), Value::Null),
        (Some("nonsense"), Value::Null),
        (None, Value::Null),
    ] {
        let vendor = Vendor::open().await;
        let settings = vendor.settings();
        let mut bench = Bench::connect(vendor, settings, stored).await;
        bench.confirm().await;
        assert_eq!(bench.last("getUpdates")["offset"], offset, "{stored:?}");
    }
    assert_eq!(poll::position(42, &poll::cursor(42, 7)), Some(7));
}

#[tokio::test]
async fn a_number_that_starts_anew_is_followed_down() {
    let mut bench = Bench::open().await;
    bench.vendor.push(said(900_000, "before"));
    let batch = bench.batch().await;
    commit(batch, &Verdict::Journalled(Seq(1)));
    bench.vendor.push(said(5, "after a quiet week"));
    let batch = bench.batch().await;
    assert_eq!((texts(&batch), cursor(&batch)), (vec!["after a quiet week".into()], "42:6"));
}

#[tokio::test]
async fn what_makes_no_sense_is_passed_and_keeps_nobody_waiting() {
    let mut bench = Bench::open().await;
    bench.vendor.push(json!({ "update_id": 1, "message": { "text": 5 } }));
    bench.vendor.push(json!({ "update_id": 2, "some_later_kind": { "a": 1 } }));
    bench.vendor.push(said(3, "hello"));
    bench.vendor.push(json!({ "update_id": 4, "message": "?" }));
    let batch = bench.batch().await;
    assert_eq!((texts(&batch), cursor(&batch)), (vec!["hello".into()], "42:5"));
}

#[tokio::test]
async fn a_batch_of_nothing_still_has_a_position() {
    let mut bench = Bench::open().await;
    bench.vendor.push(json!({ "update_id": 7, "some_later_kind": {} }));
    let batch = bench.batch().await;
    assert_eq!((batch.events.len(), cursor(&batch)), (0, "42:8"));
}

#[tokio::test]
async fn an_empty_answer_is_proof_of_life() {
    let mut bench = Bench::open().await;
    bench.vendor.truth().impatient = true;
    assert!(matches!(bench.arrival().await, Ok(Arrival::Alive)));
}

#[tokio::test]
async fn telegram_itself_says_when_we_are_deaf() {
    let mut bench = Bench::open().await;
    bench.vendor.truth().impatient = true;
    bench.vendor.truth().webhook["pending_update_count"] = json!(3);
    let error = bench.arrival().await;
    assert!(matches!(error, Err(LinkError::Deaf { .. })), "nothing comes, and three updates wait");
}

#[tokio::test]
async fn a_second_program_is_a_conflict_that_says_what_to_do() {
    let mut bench = Bench::open().await;
    let folder = TempDir::new().unwrap();
    let other = settings(bench.vendor.settings());
    let other = Telegram::connect(other, ports(folder.path(), None)).await.unwrap();
    let Incoming::Stream(mut other) = other.incoming else { panic!("it polls") };
    let vendor = bench.vendor.state.clone();
    let second = async {
        vendor.until(|truth| truth.polls_in_flight == 1).await;
        tokio::select! {
            _ = other.next() => panic!("the newer one wins"),
            () = std::future::pending() => {}
        }
    };
    let error = tokio::select! {
        arrival = bench.arrivals.as_mut().unwrap().next() => arrival,
        () = second => unreachable!(),
    };
    match error {
        Some(Err(LinkError::Conflict { problem, hint })) => {
            assert_eq!(problem, "another program reads this bot's updates");
            assert!(hint.contains("give one of the two a bot of its own"), "{hint}");
        }
        _ => panic!("a conflict"),
    }
}

#[tokio::test]
async fn a_webhook_that_appears_is_a_conflict() {
    let mut bench = Bench::open().await;
    bench.vendor.truth().webhook["url"] = json!("https://elsewhere.example.org/");
    let error = bench.arrival().await;
    assert!(matches!(error, Err(LinkError::Conflict { .. })));
}

#[tokio::test]
async fn a_token_that_was_revoked_is_said() {
    let mut bench = Bench::open().await;
    bench.vendor.fault("getUpdates", refusal(401, "Unauthorized"));
    assert!(matches!(bench.arrival().await, Err(LinkError::Unauthorized { .. })));
}

#[tokio::test]
async fn a_lost_answer_loses_no_update() {
    let mut bench = Bench::open().await;
    bench.vendor.fault("getUpdates", Fault::Lost);
    bench.vendor.push(said(1, "hello"));
    assert!(matches!(bench.arrival().await, Err(LinkError::Lost { .. })));
    let batch = bench.batch().await;
    assert_eq!(texts(&batch), ["hello"]);
}

#[tokio::test]
async fn a_press_is_answered_once_it_is_stored() {
    let mut bench = Bench::open().await;
    let press = fixture(include_str!("../fixtures/press.json"));
    bench.vendor.push(press.clone());
    let batch = bench.batch().await;
    assert_eq!(texts(&batch), [r#"Pressed(ChoiceId("q1"))"#]);
    assert!(bench.vendor.asked("answerCallbackQuery").is_empty());
    commit(batch, &Verdict::Journalled(Seq(1)));
    let next = bench.arrivals.as_mut().unwrap().next();
    let answered = bench.vendor.state.clone();
    tokio::select! {
        _ = next => panic!("nothing else happened"),
        () = answered.until(|truth| {
            truth.requests.iter().any(|asked| asked.method == "answerCallbackQuery")
        }) => {}
    }
    assert_eq!(
        bench.vendor.asked("answerCallbackQuery"),
        [json!({ "callback_query_id": "4382bfdwdsb323b2d9" })]
    );
}

#[tokio::test]
async fn whoever_may_not_press_is_told_so() {
    let mut bench = Bench::open().await;
    bench.vendor.push(fixture(include_str!("../fixtures/press.json")));
    let batch = bench.batch().await;
    commit(batch, &Verdict::Denied);
    let next = bench.arrivals.as_mut().unwrap().next();
    let answered = bench.vendor.state.clone();
    tokio::select! {
        _ = next => panic!("nothing else happened"),
        () = answered.until(|truth| {
            truth.requests.iter().any(|asked| asked.method == "answerCallbackQuery")
        }) => {}
    }
    assert_eq!(bench.last("answerCallbackQuery")["text"], "You are not allowed to do this.");
}

#[tokio::test]
async fn a_press_that_was_not_stored_is_not_answered() {
    let mut bench = Bench::open().await;
    bench.vendor.push(fixture(include_str!("../fixtures/press.json")));
    drop(bench.batch().await);
    bench.arrivals = None;
    assert!(bench.vendor.asked("answerCallbackQuery").is_empty());
}

#[tokio::test]
async fn a_press_of_an_inline_message_is_nothing_for_us_and_answered() {
    let mut bench = Bench::open().await;
    bench.vendor.push(fixture(include_str!("../fixtures/press_inline.json")));
    let batch = bench.batch().await;
    assert!(batch.events.is_empty());
    commit(batch, &Verdict::Journalled(Seq(1)));
    let next = bench.arrivals.as_mut().unwrap().next();
    let answered = bench.vendor.state.clone();
    tokio::select! {
        _ = next => panic!("nothing else happened"),
        () = answered.until(|truth| {
            truth.requests.iter().any(|asked| asked.method == "answerCallbackQuery")
        }) => {}
    }
}

/// A connection on which every wait is over at once.
async fn hurried(vendor: Vendor) -> (Bench, Arc<Hurried>) {
    let folder = TempDir::new().unwrap();
    let clock = Arc::new(Hurried::default());
    let ports = Ports { clock: clock.clone(), ..ports(folder.path(), None) };
    let link = Telegram::connect(settings(vendor.settings()), ports).await.unwrap();
    let Link { incoming, outgoing, library, .. } = link;
    let Incoming::Stream(arrivals) = incoming else { panic!("it polls") };
    let library = library.unwrap();
    (Bench { vendor, arrivals: Some(arrivals), outgoing, library, folder }, clock)
}

#[tokio::test]
async fn nobody_waits_for_the_rest_of_somebodys_album() {
    let vendor = Vendor::open().await;
    vendor.push(fixture(include_str!("../fixtures/album_first.json")));
    vendor.push(said(4, "hello"));
    let (mut bench, clock) = hurried(vendor).await;
    let batch = bench.batch().await;
    assert_eq!(texts(&batch), ["Our trip", "hello"]);
    assert_eq!(cursor(&batch), "42:5");
    assert!(clock.waits.lock().unwrap().is_empty());
}

#[tokio::test]
async fn all_of_an_album_is_said_to_whom_its_caption_names() {
    let mut bench = Bench::open().await;
    let group = json!({ "id": -1_001_160_242_915_i64, "title": "a", "type": "supergroup" });
    let mut named = fixture(include_str!("../fixtures/album_first.json"));
    named["message"]["chat"] = group.clone();
    named["message"]["caption"] = json!("@tally_bot look");
    named["message"]["caption_entities"] =
        json!([{ "type": "mention", "offset": 0, "length": 10 }]);
    let mut other = said(4, "nice");
    other["message"]["chat"] = group.clone();
    let mut late = fixture(include_str!("../fixtures/album_second.json"));
    late["update_id"] = json!(5);
    late["message"]["chat"] = group.clone();
    let mut end = said(6, "very nice");
    end["message"]["chat"] = group;
    let mut heard = Vec::new();
    for updates in [[named, other], [late, end]] {
        updates.into_iter().for_each(|update| bench.vendor.push(update));
        let batch = bench.batch().await;
        heard.extend(batch.events.iter().map(|event| match &event.kind {
            InboundKind::Said(message) => (message.media.len(), message.addressed),
            kind => panic!("{kind:?}"),
        }));
        commit(batch, &Verdict::Journalled(Seq(1)));
    }
    let (us, others) = (Addressed::ToUs, Addressed::ToOthers);
    assert_eq!(heard, [(1, us), (0, others), (1, us), (0, others)]);
}

#[tokio::test]
async fn topics_are_called_by_their_name() {
    let mut bench = Bench::open().await;
    let told = [
        include_str!("../fixtures/topic_message.json"),
        include_str!("../fixtures/topic_renamed.json"),
        include_str!("../fixtures/topic_reply_to_us.json"),
        include_str!("../fixtures/topic_message.json"),
    ];
    told.into_iter().for_each(|update| bench.vendor.push(fixture(update)));
    let batch = bench.batch().await;
    let topics: Vec<_> = batch.events.iter().map(|event| event.source.topic.as_deref()).collect();
    assert_eq!(topics, [Some("Plans"), Some("Better plans"), Some("Better plans")]);
}

#[tokio::test]
async fn a_group_that_has_moved_is_known_after_a_restart() {
    let mut bench = Bench::open().await;
    bench.vendor.push(fixture(include_str!("../fixtures/migrate_from.json")));
    commit(bench.batch().await, &Verdict::Journalled(Seq(1)));
    let vendor = &bench.vendor;
    let again = Telegram::connect(settings(vendor.settings()), ports(bench.folder.path(), None));
    let Incoming::Stream(mut arrivals) = again.await.unwrap().incoming else { panic!("it polls") };
    bench.arrivals = None;
    let mut update = said(9, "hello");
    update["message"]["chat"] =
        json!({ "id": -1_001_555_296_434_i64, "title": "a", "type": "supergroup" });
    bench.vendor.push(update);
    let before = loop {
        match arrivals.next().await {
            Some(Ok(Arrival::Batch(batch))) if !batch.events.is_empty() => {
                break batch.events[0].source.moved_from.clone();
            }
            Some(Ok(_)) => {}
            _ => panic!("it goes on"),
        }
    };
    assert_eq!(before.unwrap().as_str(), "-599075523");
}
