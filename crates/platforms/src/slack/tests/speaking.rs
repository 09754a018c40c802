//! What is said, shown, changed and found again.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::json;
use talaria_clock::{Clock, Sleep, SystemClock};
use talaria_model::{
    Act, ChatKind, Choice, ChoiceId, Content, Media, MediaKind, MessageId, Owner, Progress,
    SenderId, Seq, Timestamp, Whispers,
};
use talaria_platform::{Committed, FetchError, Found, Platform, SendError, Verdict};
use talaria_testkit::scripted::{Fault, Reply};

use super::super::Slack;
use super::vendor::{Upload, Vendor, event, said};
use super::{Bench, Lent, act, at, bench, connect, file, message_of, post};

fn home() -> talaria_model::Address {
    at("D1", ChatKind::Dm, Some("1700000001.000100"))
}

fn choices() -> Vec<Choice> {
    let choice =
        |id: &'static str, label: &str| Choice { id: ChoiceId::literal(id), label: label.into() };
    vec![choice("yes", "Do it"), choice("no", "Leave it")]
}

impl Bench {
    async fn send(&self, act_: Act) -> Result<talaria_model::Receipt, SendError> {
        self.outgoing.send(&act(home(), 7, act_)).await
    }
}

#[tokio::test]
async fn a_post_is_in_its_thread_and_says_which_delivery_it_is() {
    let bench = bench().await;
    let sent = bench.outgoing.send(&post(home(), 7, "**hello**")).await.unwrap();
    let posted = bench.vendor.world.message(sent.message.unwrap().as_str()).unwrap();
    assert_eq!(posted.text, "*hello*");
    assert_eq!(posted.thread.as_deref(), Some("1700000001.000100"));
    assert_eq!(
        posted.metadata,
        json!({ "event_type": "talaria_delivery",
            "event_payload": { "id": "20261115_093000_0badcafe/7.0" } })
    );
}

#[tokio::test]
async fn each_failure_of_a_post_says_what_to_do() {
    let bench = bench().await;
    let json = |code: &str| Reply::json(&json!({ "ok": false, "error": code }));
    for (fault, expected) in [
        (Reply::status(429, "").with("retry-after", "7"), "asked to wait 7 s"),
        (Reply::status(429, ""), "asked to wait 30 s"),
        (json("ratelimited"), "asked to wait 30 s"),
        (Reply::status(502, "<html>"), "no confirmation: HTTP 502"),
        (Reply::status(200, "<html>"), "no confirmation: the answer is not JSON"),
        (Reply::Cut, "no confirmation: "),
        (json("fatal_error"), "no confirmation: fatal_error"),
        (json("is_archived"), "the chat is gone: is_archived"),
        (json("invalid_blocks"), "the formatting was not accepted: invalid_blocks"),
        (json("restricted_action"), "refused: restricted_action"),
        (json("token_revoked"), "not authorized: token_revoked"),
        (Reply::status(302, "").with("location", "https://example.org/"), "refused: HTTP 302"),
    ] {
        bench.vendor.http.fault("chat.postMessage", Fault::Instead(fault.clone()));
        let sent = bench.outgoing.send(&post(home(), 7, "hello")).await;
        let error = sent.expect_err("it failed").to_string();
        assert!(error.starts_with(expected), "{error:?} for {fault:?}");
    }
    assert_eq!(
        bench.vendor.http.requests_to("chat.postMessage").len(),
        12,
        "nothing is repeated here"
    );
}

#[tokio::test]
async fn a_chat_that_takes_no_metadata_gets_the_post_without() {
    let bench = bench().await;
    let refusal = Reply::json(&json!({ "ok": false, "error": "metadata_too_large" }));
    bench.vendor.http.fault("chat.postMessage", Fault::Instead(refusal));
    let sent = bench.outgoing.send(&post(home(), 7, "hello")).await.unwrap();
    let posted = bench.vendor.world.message(sent.message.unwrap().as_str()).unwrap();
    assert!(posted.metadata.is_null());
}

/// Lets every wait of an account without a connection pass at once.
struct Impatient;

impl Clock for Impatient {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn sleep(&self, wait: Duration) -> Sleep {
        // Deadlines stay; only the time that Slack is given passes faster.
        let short = wait > Duration::from_secs(3) && wait <= Duration::from_secs(10);
        Box::pin(tokio::time::sleep(if short { Duration::ZERO } else { wait }))
    }
}

#[tokio::test]
async fn a_post_whose_answer_was_lost_is_found_in_its_thread_and_in_its_chat() {
    let vendor = Vendor::open().await;
    let settings = vendor.request_settings();
    let lent = Lent { clock: Arc::new(Impatient), ..Lent::default() };
    let bench = connect(vendor, settings, lent).await;
    for (number, to) in [(1, home()), (2, at("C1", ChatKind::Group, None))] {
        let outbound = post(to, number, "hello");
        bench.vendor.http.fault("chat.postMessage", Fault::Afterwards(Reply::Cut));
        let sent = bench.outgoing.send(&outbound).await;
        assert!(matches!(sent, Err(SendError::Unconfirmed { .. })), "{sent:?}");
        let found = bench.outgoing.find(&outbound).await.unwrap();
        let Found::Shown(receipt) = found else { panic!("{found:?}") };
        let posted = bench.vendor.world.message(receipt.message.unwrap().as_str()).unwrap();
        assert_eq!(posted.text, "hello");
        let other = post(outbound.to, 9, "hello");
        assert_eq!(
            bench.outgoing.find(&other).await,
            Ok(Found::Absent),
            "the same words, said anew"
        );
    }
}

#[tokio::test]
async fn a_post_that_never_arrived_is_absent_and_one_nobody_can_look_for_is_unknown() {
    let vendor = Vendor::open().await;
    let settings = vendor.request_settings();
    let lent = Lent { clock: Arc::new(Impatient), ..Lent::default() };
    let bench = connect(vendor, settings, lent).await;
    let outbound = post(home(), 1, "hello");
    bench.vendor.http.fault("chat.postMessage", Fault::Instead(Reply::Cut));
    assert!(bench.outgoing.send(&outbound).await.is_err());
    assert_eq!(bench.outgoing.find(&outbound).await, Ok(Found::Absent));
    let asked = bench.vendor.http.requests_to("conversations.replies").len();
    assert_eq!(asked, 2, "it may only have been slow, so it is looked for again");
    let refusal = Reply::json(&json!({ "ok": false, "error": "missing_scope" }));
    bench.vendor.http.fault("conversations.replies", Fault::Instead(refusal));
    assert_eq!(bench.outgoing.find(&outbound).await, Ok(Found::Unknown));
    let typing = act(home(), 1, Act::Typing);
    assert_eq!(bench.outgoing.find(&typing).await, Ok(Found::Unknown));
}

#[tokio::test]
async fn a_question_has_buttons_and_an_edit_takes_them_away() {
    let bench = bench().await;
    let question = Content { choices: choices(), ..Content::text("Run `rm -rf build`?") };
    let sent = bench.send(Act::Post(question)).await.unwrap().message.unwrap();
    let posted = bench.vendor.world.message(sent.as_str()).unwrap();
    assert_eq!(posted.blocks[0]["text"]["text"], "Run `rm -rf build`?");
    assert_eq!(posted.blocks[1]["elements"][1]["value"], "no");
    let content = Content::text("Run `rm -rf build`? Done.");
    bench.send(Act::Edit { message: sent.clone(), content }).await.unwrap();
    let posted = bench.vendor.world.message(sent.as_str()).unwrap();
    assert!(posted.blocks.is_null(), "text without blocks removes them");
}

#[tokio::test]
async fn edits_and_deletions_may_be_repeated() {
    let bench = bench().await;
    let message = bench.send(Act::Post(Content::text("hello"))).await.unwrap().message.unwrap();
    let edit = || Act::Edit { message: message.clone(), content: Content::text("bye") };
    bench.vendor.http.fault("chat.update", Fault::Afterwards(Reply::Cut));
    assert!(matches!(bench.send(edit()).await, Err(SendError::Unreachable { .. })));
    assert_eq!(bench.send(edit()).await.unwrap().message, Some(message.clone()));
    let delete = || Act::Delete { message: message.clone() };
    assert!(bench.send(delete()).await.is_ok());
    assert!(bench.send(delete()).await.is_ok(), "what is gone is gone");
    let content = Content::text("x".repeat(4_001));
    let message = bench.send(Act::Post(Content::text("hello"))).await.unwrap().message.unwrap();
    let long = bench.send(Act::Edit { message, content }).await;
    assert!(matches!(long, Err(SendError::Unreadable { .. })), "{long:?}");
}

#[tokio::test]
async fn progress_is_a_reaction_that_takes_the_place_of_the_one_before() {
    let bench = bench().await;
    let message = MessageId::literal("1700000001.000100");
    let mark = |progress| Act::Mark { message: message.clone(), progress };
    for (progress, expected) in [
        (Progress::Seen, vec!["eyes"]),
        (Progress::Seen, vec!["eyes"]),
        (Progress::Done, vec!["white_check_mark"]),
        (Progress::Nothing, vec![]),
        (Progress::Seen, vec!["eyes"]),
        (Progress::Failed, vec!["x"]),
    ] {
        bench.send(mark(progress)).await.unwrap();
        let reactions = bench.vendor.world.lock().reactions.clone();
        let names: Vec<&str> = reactions.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, expected, "{progress:?}");
    }
    let react = |emoji: &str| Act::React { message: message.clone(), emoji: emoji.into() };
    assert!(bench.send(react("🎉")).await.is_ok());
    assert!(matches!(bench.send(react("𓀀")).await, Err(SendError::Rejected { .. })));
}

#[tokio::test]
async fn what_the_app_may_not_do_is_tried_once() {
    let bench = bench().await;
    let refusal = json!({ "ok": false, "error": "missing_scope", "needed": "reactions:write" });
    bench.vendor.http.fault("reactions.add", Fault::Instead(Reply::json(&refusal)));
    let message = MessageId::literal("1700000001.000100");
    let react = || Act::React { message: message.clone(), emoji: "👀".into() };
    for _ in 0..2 {
        assert!(matches!(bench.send(react()).await, Err(SendError::Rejected { .. })));
    }
    assert_eq!(bench.vendor.http.requests_to("reactions.add").len(), 1);
}

#[tokio::test]
async fn a_status_stands_at_the_thread_or_at_the_newest_message() {
    let vendor = Vendor::open().await;
    let mut settings = vendor.settings();
    settings["dm_top_level_threads_as_sessions"] = json!(false);
    let mut bench = connect(vendor, settings, Lent::default()).await;
    let flat = at("D1", ChatKind::Dm, None);
    let sent = bench.outgoing.send(&act(flat.clone(), 1, Act::Typing)).await;
    assert!(matches!(sent, Err(SendError::Rejected { .. })), "there is nothing to show it at");
    let mut event = said(4, "hello");
    event["event"].as_object_mut().unwrap().remove("thread_ts");
    bench.vendor.world.deliver("events_api", &event);
    let heard = bench.event().await;
    assert_eq!(heard.to, flat);
    bench.outgoing.send(&act(flat, 1, Act::Typing)).await.unwrap();
    bench.send(Act::Typing).await.unwrap();
    let statuses = bench.vendor.world.lock().statuses.clone();
    let newest = message_of(&heard).id.clone().unwrap().to_string();
    let expected = [newest, "1700000001.000100".to_owned()].map(|at| (at, "is thinking...".into()));
    assert_eq!(statuses, expected);
}

#[tokio::test]
async fn somebody_s_id_stands_for_the_direct_chat_with_them() {
    let bench = bench().await;
    for number in 1..=2 {
        let outbound = post(at("U1", ChatKind::Dm, None), number, "hello");
        let sent = bench.outgoing.send(&outbound).await.unwrap();
        let posted = bench.vendor.world.message(sent.message.unwrap().as_str()).unwrap();
        assert_eq!(posted.chat, "D1");
    }
    assert_eq!(bench.vendor.http.requests_to("conversations.open").len(), 1);
    let nobody = post(at("U404", ChatKind::Dm, None), 3, "hello");
    let sent = bench.outgoing.send(&nobody).await;
    assert!(matches!(sent, Err(SendError::Gone { .. })), "{sent:?}");
}

#[tokio::test]
async fn a_command_in_a_chat_that_we_are_not_in_is_answered_to_its_giver() {
    let mut bench = bench().await;
    let world = bench.vendor.world.clone();
    let elsewhere = at("C9", ChatKind::Group, None);
    let sent = bench.outgoing.send(&post(elsewhere.clone(), 1, "hello")).await;
    assert!(matches!(sent, Err(SendError::Gone { .. })), "{sent:?}");
    let command = json!({ "team_id": "T1", "channel_id": "C9", "channel_name": "secret",
        "user_id": "U1", "command": "/talaria", "text": "help", "trigger_id": "1.2.d",
        "response_url": format!("{}/hooks/1", bench.vendor.http.url()) });
    world.deliver("slash_commands", &command);
    bench.event().await;
    for number in 2..=6 {
        let sent = bench.outgoing.send(&post(elsewhere.clone(), number, "the list")).await.unwrap();
        assert_eq!(sent.message, None, "it cannot be changed");
        assert_eq!(bench.vendor.shown().await.text, "the list");
    }
    let sent = bench.outgoing.send(&post(elsewhere, 7, "more")).await;
    assert!(matches!(sent, Err(SendError::Gone { .. })), "five times and no more: {sent:?}");
}

impl Bench {
    /// Somebody gives a command where we are not, and is let in or not.
    async fn asked_elsewhere(&mut self, user: &str, verdict: Verdict) {
        let command = json!({ "team_id": "T1", "channel_id": "C9", "channel_name": "secret",
            "user_id": user, "command": "/talaria", "text": "what is it?",
            "trigger_id": format!("1.2.{user}"),
            "response_url": format!("{}/hooks/{user}", self.vendor.http.url()) });
        self.vendor.world.deliver("slash_commands", &command);
        let batch = self.batch().await.unwrap();
        batch.ack.committed(Committed(vec![verdict]));
    }

    /// Says something where we are not, and tells who reads it.
    async fn read_elsewhere_by(&self, delivery: u32, whispered_to: Option<&'static str>) -> String {
        let whispered_to = whispered_to.map(SenderId::literal);
        let content = Content { whispered_to, ..Content::text("for one person") };
        let outbound = act(at("C9", ChatKind::Group, None), delivery, Act::Post(content));
        let before = self.vendor.http.requests_to("/hooks/").len();
        let sent = self.outgoing.send(&outbound).await;
        let read = self.vendor.http.requests_to("/hooks/").split_off(before);
        match (sent, read.as_slice()) {
            (Ok(_), [one]) => one.path.replace("/hooks/", ""),
            (Err(SendError::Gone { .. }), []) => "nobody".to_owned(),
            (sent, read) => panic!("{sent:?}, and {} requests", read.len()),
        }
    }
}

const LET_IN: Verdict = Verdict::Journalled(Seq(1));

#[tokio::test]
async fn a_stranger_s_command_gets_nobody_s_answer() {
    let mut bench = bench().await;
    bench.asked_elsewhere("U7", Verdict::Denied).await;
    assert_eq!(bench.read_elsewhere_by(1, None).await, "nobody");
    bench.asked_elsewhere("U1", LET_IN).await;
    bench.asked_elsewhere("U7", Verdict::Denied).await;
    assert_eq!(bench.read_elsewhere_by(2, None).await, "U1");
    // Slack delivers again what it thinks was not heard, and the journal does not say whose it was.
    bench.asked_elsewhere("U7", Verdict::Repeated).await;
    assert_eq!(bench.read_elsewhere_by(3, None).await, "U1");
}

#[tokio::test]
async fn where_two_have_asked_only_what_is_known_to_be_for_one_of_them_is_said() {
    let mut bench = bench().await;
    for user in ["U1", "U2"] {
        bench.asked_elsewhere(user, LET_IN).await;
    }
    for (delivery, (to, reader)) in (1..).zip([
        (None, "nobody"),
        (Some("U1"), "U1"),
        (Some("U2"), "U2"),
        (Some("U3"), "nobody"),
    ]) {
        assert_eq!(bench.read_elsewhere_by(delivery, to).await, reader, "for {to:?}");
    }
}

#[tokio::test]
async fn what_is_for_one_person_is_not_said_to_the_only_one_who_asked() {
    let mut bench = bench().await;
    bench.asked_elsewhere("U2", LET_IN).await;
    assert_eq!(bench.read_elsewhere_by(1, Some("U1")).await, "nobody");
    assert_eq!(bench.read_elsewhere_by(2, Some("T2:U2")).await, "nobody", "of another workspace");
    assert_eq!(bench.read_elsewhere_by(3, None).await, "U2");
}

#[tokio::test]
async fn an_address_for_answers_that_is_not_slack_s_is_not_used() {
    let mut bench = bench().await;
    let command = json!({ "team_id": "T1", "channel_id": "C9", "channel_name": "secret",
        "user_id": "U1", "command": "/talaria", "text": "help", "trigger_id": "1.2.e",
        "response_url": "http://169.254.169.254/latest" });
    bench.vendor.world.deliver("slash_commands", &command);
    bench.event().await;
    let sent = bench.outgoing.send(&post(at("C9", ChatKind::Group, None), 1, "secret")).await;
    assert!(matches!(sent, Err(SendError::Gone { .. })), "{sent:?}");
}

#[tokio::test]
async fn files_are_shared_in_one_message_with_their_text() {
    let bench = bench().await;
    bench.vendor.world.lock().share_after = 1;
    let files = vec![file("a.png", 5), file("b.png", 5)];
    let sent = bench.send(Act::Post(Content { files, ..Content::text("**Look**") })).await.unwrap();
    let ts = sent.message.expect("Slack says where it is").to_string();
    let state = bench.vendor.world.lock();
    assert_eq!(state.messages.len(), 1);
    for (name, upload) in [("a.png", "a.png"), ("b.png", "b.png")] {
        let shared = state.files.values().find(|shared| shared.name == name).unwrap();
        assert_eq!(shared.bytes, upload.as_bytes());
        assert_eq!(shared.shared, Some(("D1".to_owned(), ts.clone())));
        assert_eq!(shared.comment, "*Look*");
    }
    assert_eq!(state.messages[0].thread.as_deref(), Some("1700000001.000100"));
}

#[tokio::test]
async fn a_file_that_cannot_be_sent_is_named_and_the_rest_is_sent() {
    let bench = bench().await;
    let files = vec![file("a.png", 5), file("lost.png", 5), file("empty.png", 0)];
    bench.send(Act::Post(Content { files, ..Content::text("Look") })).await.unwrap();
    let text = bench.vendor.shown().await.text;
    assert!(text.starts_with("Look\n\n(not sent here: lost.png; empty.png)"), "{text:?}");
    let refusal = Reply::json(&json!({ "ok": false, "error": "file_uploads_disabled" }));
    bench.vendor.http.fault("getUploadURLExternal", Fault::Instead(refusal));
    let content = Content { files: vec![file("a.png", 5)], ..Content::default() };
    bench.outgoing.send(&act(home(), 8, Act::Post(content))).await.unwrap();
    assert_eq!(bench.vendor.shown().await.text, "(not sent here: a.png)");
}

#[tokio::test]
async fn files_whose_confirmation_was_lost_are_not_shared_twice() {
    let bench = bench().await;
    let content = Content { files: vec![file("a.png", 5)], ..Content::text("Look") };
    let outbound = act(home(), 7, Act::Post(content.clone()));
    bench.vendor.http.fault("completeUploadExternal", Fault::Afterwards(Reply::Cut));
    let sent = bench.outgoing.send(&outbound).await;
    assert!(matches!(sent, Err(SendError::Unconfirmed { .. })), "{sent:?}");
    let found = bench.outgoing.find(&outbound).await.unwrap();
    assert!(matches!(found, Found::Shown(_)), "{found:?}");
    assert!(bench.outgoing.send(&outbound).await.is_ok());
    assert_eq!(bench.vendor.world.lock().messages.len(), 1);

    // The bytes may travel as often as they like: nobody has seen them.
    let outbound = act(home(), 8, Act::Post(content));
    bench.vendor.http.fault("/upload/", Fault::Instead(Reply::Cut));
    let sent = bench.outgoing.send(&outbound).await;
    assert!(matches!(sent, Err(SendError::Unreachable { .. })), "{sent:?}");
    assert!(bench.outgoing.send(&outbound).await.is_ok());
    assert_eq!(bench.vendor.world.lock().messages.len(), 2);
}

#[tokio::test]
async fn a_question_comes_below_its_files_and_repeats_without_them() {
    let bench = bench().await;
    let content =
        Content { files: vec![file("a.png", 5)], choices: choices(), ..Content::text("Keep it?") };
    let outbound = act(home(), 7, Act::Post(content));
    let refusal = Reply::status(429, "").with("retry-after", "1");
    bench.vendor.http.fault("chat.postMessage", Fault::Instead(refusal));
    let sent = bench.outgoing.send(&outbound).await;
    assert!(matches!(sent, Err(SendError::Throttled { .. })), "{sent:?}");
    bench.outgoing.send(&outbound).await.unwrap();
    let state = bench.vendor.world.lock();
    let texts: Vec<&str> = state.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, ["", "Keep it?"], "one message with the file, one with the buttons");
}

fn picture() -> Media {
    Media {
        handle: "T1/F7".into(),
        kind: MediaKind::Photo,
        name: Some("a.png".into()),
        mime: Some("image/png".into()),
        size: Some(3),
        owner: Owner::default(),
    }
}

#[tokio::test]
async fn a_file_that_somebody_sent_is_fetched() {
    let bench = bench().await;
    let upload = Upload { bytes: b"abc".to_vec(), ..Upload::default() };
    bench.vendor.world.lock().files.insert("F7".into(), upload);
    let mut bytes = bench.library.fetch(&picture()).await.unwrap();
    let mut all = Vec::new();
    while let Some(piece) = bytes.next().await {
        all.extend_from_slice(&piece.unwrap());
    }
    assert_eq!(all, b"abc");
}

#[tokio::test]
async fn a_file_that_slack_does_not_hand_out_is_refused() {
    let bench = bench().await;
    let refused =
        |fetched: Result<_, FetchError>| matches!(fetched, Err(FetchError::Refused { .. }));
    assert!(refused(bench.library.fetch(&picture()).await.map(drop)), "there is none");
    bench.vendor.world.lock().files.insert("F7".into(), Upload::default());
    bench.vendor.world.lock().signs_out = true;
    assert!(refused(bench.library.fetch(&picture()).await.map(drop)), "a page to sign in on");
    let elsewhere = |address: &str| {
        Reply::json(&json!({ "ok": true, "file": { "id": "F7", "url_private": address } }))
    };
    for address in
        ["https://example.org/a.png", "http://files.slack.com/a.png", "file:///etc/passwd"]
    {
        bench.vendor.http.fault("files.info", Fault::Instead(elsewhere(address)));
        assert!(refused(bench.library.fetch(&picture()).await.map(drop)), "{address}");
    }
    let gone = Media { handle: "T9/F7".into(), ..picture() };
    assert!(refused(bench.library.fetch(&gone).await.map(drop)));
    bench.vendor.http.fault("files.info", Fault::Instead(Reply::status(503, "")));
    let fetched = bench.library.fetch(&picture()).await.map(drop);
    assert!(matches!(fetched, Err(FetchError::Unreachable { .. })));
}

/// What concerns one person in a channel.
fn whisper(thread: Option<&'static str>, delivery: u32) -> talaria_model::Outbound {
    let content =
        Content { whispered_to: Some(SenderId::literal("U1")), ..Content::text("**Queued**") };
    act(at("C1", ChatKind::Group, thread), delivery, Act::Post(content))
}

#[tokio::test]
async fn what_concerns_one_person_is_read_by_nobody_else() {
    let mut bench = bench().await;
    let world = bench.vendor.world.clone();
    let thread = "1700000001.000100";
    let sent = bench.outgoing.send(&whisper(Some(thread), 1)).await.unwrap();
    assert_eq!(sent.message, None, "it cannot be named");
    world.deliver(
        "events_api",
        &event(json!({ "type": "message", "channel": "C1", "channel_type": "channel",
            "user": "U1", "text": "<@UBOT> and?", "ts": "1700000002.000100", "thread_ts": thread,
            "parent_user_id": "U1" })),
    );
    bench.event().await;
    bench.outgoing.send(&whisper(Some(thread), 2)).await.unwrap();
    let of_another_workspace = SenderId::literal("T2:U2");
    let content = Content { whispered_to: Some(of_another_workspace), ..Content::text("hm") };
    let to = at("C1", ChatKind::Group, None);
    bench.outgoing.send(&act(to, 3, Act::Post(content))).await.unwrap();
    let whispered: Vec<_> = world.lock().whispers.clone();
    let whispered: Vec<_> = whispered
        .iter()
        .map(|one| (one.user.as_str(), one.thread.as_deref(), one.text.as_str()))
        .collect();
    // Slack shows nothing in a thread in which nobody has answered yet.
    let queued = "*Queued*";
    assert_eq!(whispered, [("U1", None, queued), ("U1", Some(thread), queued), ("U2", None, "hm")]);
    assert!(world.lock().messages.is_empty());
    let found = bench.outgoing.find(&whisper(None, 9)).await;
    assert!(matches!(found, Ok(Found::Unknown)), "nobody can look for it: {found:?}");
}

#[tokio::test]
async fn everybody_reads_what_slack_does_not_whisper() {
    let bench = bench().await;
    let world = bench.vendor.world.clone();
    let refuse = |code: &str| {
        let reply = Reply::json(&json!({ "ok": false, "error": code }));
        bench.vendor.http.fault("chat.postEphemeral", Fault::Instead(reply));
    };
    for (number, code) in (1..).zip(["user_not_in_channel", "restricted_action", "unknown_method"])
    {
        refuse(code);
        let sent = bench.outgoing.send(&whisper(None, number)).await.unwrap();
        let posted = world.message(sent.message.unwrap().as_str()).unwrap();
        assert_eq!((posted.chat.as_str(), posted.text.as_str()), ("C1", "*Queued*"), "{code}");
    }
    refuse("fatal_error");
    let unsure = bench.outgoing.send(&whisper(None, 7)).await.unwrap_err();
    assert!(matches!(unsure, SendError::Unconfirmed { .. }), "{unsure}");
    assert_eq!(world.lock().messages.len(), 3, "what may have been read is not said aloud");
    assert!(world.lock().whispers.is_empty());
}

#[test]
fn nothing_is_whispered_where_there_is_nobody_else() {
    let settings = || serde_json::from_value(json!({ "bot_token": "xoxb-1" })).unwrap();
    let can = |kind| Slack::capabilities(&settings(), kind).whispers;
    assert_eq!(can(ChatKind::Dm), Whispers::Never);
    assert_eq!(can(ChatKind::Group), Whispers::Shown);
}
