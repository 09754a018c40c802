//! What an open page is told.

use talaria_model::{Choice, ChoiceId, Content, Draft, MessageId};
use talaria_platform::SendError;

use super::*;

fn draft(text: &str) -> Act {
    Act::Draft(Content::text(text).into())
}

fn post(text: &str) -> Act {
    Act::Post(Content::text(text))
}

#[tokio::test(start_paused = true)]
async fn an_answer_grows_and_is_then_replaced_by_the_whole() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let mut page = Page::open(&bench, &browser).await;
    bench.send(1, Act::Typing).await;
    assert_eq!(page.next().await, Some(json!({ "kind": "typing", "conversation": CHAT })));
    bench.send(1, draft("*Hel*")).await;
    let shown = json!({
        "kind": "draft", "conversation": CHAT, "delivery": "s1/1", "html": "<p><em>Hel</em></p>",
    });
    assert_eq!(page.next().await, Some(shown));
    bench.send(1, post("*Hello*")).await;
    let shown = json!({
        "kind": "posted", "conversation": CHAT, "id": "s1/1.0", "at": bench.now().as_millis(),
        "delivery": "s1/1", "html": "<p><em>Hello</em></p>", "text": "*Hello*",
    });
    assert_eq!(page.next().await, Some(shown));
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_is_doing_stands_beside_what_it_has_written() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let mut page = Page::open(&bench, &browser).await;
    let doing = Some("searching the web".to_owned());
    bench.send(1, Act::Draft(Draft { content: Content::text("Let me look."), doing })).await;
    let shown = json!({
        "kind": "draft", "conversation": CHAT, "delivery": "s1/1", "html": "<p>Let me look.</p>",
        "doing": "searching the web",
    });
    assert_eq!(page.next().await, Some(shown));
    bench.send(1, draft("Let me look. Found")).await;
    assert_eq!(page.next().await.unwrap().get("doing"), None, "it is over when it writes again");
}

#[tokio::test(start_paused = true)]
async fn the_receipt_names_what_an_edit_can_change() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let mut page = Page::open(&bench, &browser).await;
    let id = OutboundId { session: SessionId::literal("s1"), delivery: 4, part: 0 };
    let posted = Outbound { id, to: at(CHAT), act: post("one") };
    let message = bench.outgoing.send(&posted).await.unwrap().message.unwrap();
    assert_eq!(page.next().await.unwrap()["id"], message.as_str());
    let content = Content {
        text: "two".into(),
        choices: vec![Choice { id: ChoiceId::literal("c"), label: "C".into() }],
        ..Content::default()
    };
    bench.send(5, Act::Edit { message: message.clone(), content }).await;
    let edited = page.next().await.unwrap();
    assert_eq!((&edited["kind"], &edited["id"]), (&json!("edited"), &json!(message.as_str())));
    assert_eq!(edited["choices"][0]["id"], "c");
    bench.send(6, Act::Delete { message: message.clone() }).await;
    let deleted = json!({ "kind": "deleted", "conversation": CHAT, "id": message.as_str() });
    assert_eq!(page.next().await, Some(deleted));
    let react = Act::React { message: MessageId::literal("m"), emoji: "👍".into() };
    let id = OutboundId { session: SessionId::literal("s1"), delivery: 7, part: 0 };
    let refused = bench.outgoing.send(&Outbound { id, to: at(CHAT), act: react }).await;
    assert!(matches!(refused, Err(SendError::Rejected { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_page_that_opens_in_the_middle_sees_the_newest_draft() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    for text in ["a", "a b", "a b c"] {
        bench.send(1, draft(text)).await;
    }
    let mut page = Page::open(&bench, &browser).await;
    assert_eq!(page.next().await.unwrap()["html"], "<p>a b c</p>");
    assert!(page.ready().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_slow_page_skips_the_drafts_between() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let mut page = Page::open(&bench, &browser).await;
    for number in 0..1000 {
        bench.send(1, draft(&number.to_string())).await;
    }
    let shown = page.ready();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0]["html"], "<p>999</p>");
}

#[tokio::test(start_paused = true)]
async fn a_finished_answer_is_never_followed_by_its_draft() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let mut page = Page::open(&bench, &browser).await;
    bench.send(1, draft("half")).await;
    bench.send(1, post("whole")).await;
    let shown = page.ready();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0]["kind"], "posted");
    let mut late = Page::open(&bench, &browser).await;
    assert!(late.ready().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_notice_in_between_does_not_end_a_draft() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    bench.send(1, draft("half")).await;
    bench.send(2, post("by the way")).await;
    let mut page = Page::open(&bench, &browser).await;
    assert_eq!(page.next().await.unwrap()["html"], "<p>half</p>");
}

#[tokio::test(start_paused = true)]
async fn a_draft_that_stands_still_is_not_shown_to_a_page_that_opens() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    bench.send(1, draft("left behind")).await;
    tokio::time::advance(Duration::from_secs(61)).await;
    let mut page = Page::open(&bench, &browser).await;
    assert!(page.ready().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_page_that_falls_behind_is_told_to_read_again() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let mut page = Page::open(&bench, &browser).await;
    for number in 0..200 {
        bench.send(number, post("more")).await;
    }
    assert_eq!(page.next().await, Some(json!({ "kind": "resync" })));
    assert!(page.ready().len() <= 64, "what is kept for a page has a bound");
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_proves_that_it_works() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let mut page = Page::open(&bench, &browser).await;
    let before = bench.now();
    assert_eq!(page.next().await, Some(json!({ "kind": "alive" })));
    assert_eq!(bench.now().since(before), Duration::from_secs(15));
}

#[tokio::test(start_paused = true)]
async fn other_pages_hear_what_was_said_exactly_once() {
    let mut bench = Bench::new().await;
    let browser = bench.login().await;
    let mut page = Page::open(&bench, &browser).await;
    let at = bench.now().as_millis();
    bench.committing(browser.say("hello"), journalled()).await;
    bench.committing(browser.say("hello"), Verdict::Repeated).await;
    let said = json!({
        "kind": "said", "conversation": CHAT, "id": "message-1", "at": at, "text": "hello", "files": [],
    });
    assert_eq!(page.ready(), [said]);
    let press = json!({ "id": "press-001", "choice": "c1" });
    let press = browser.post(&format!("/api/conversations/{CHAT}/press"), &press);
    bench.committing(press, journalled()).await;
    assert_eq!(page.ready(), [json!({ "kind": "pressed", "conversation": CHAT, "choice": "c1" })]);
}

#[tokio::test(start_paused = true)]
async fn sending_needs_nobody_to_watch() {
    let bench = Bench::new().await;
    for number in 0..1000 {
        bench.send(number, post("nobody reads this yet")).await;
    }
}
