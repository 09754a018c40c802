//! Where platforms send what they have to say: the addresses that the guides name.

use serde_json::json;
use talaria_testkit::scripted::{Reply, Request, Scripted};
use talaria_testkit::vendors::telegram;
use talaria_testkit::{Home, Launch, within};

use crate::rig::{HANGS, binary, run};

/// A Slack that knows one app.
async fn slack() -> Scripted {
    Scripted::listen(|request: &Request| match request.path.rsplit('/').next() {
        Some("auth.test") => Reply::json(&json!({
            "ok": true, "url": "https://subarachnoid.slack.com/", "team": "Team", "team_id": "T1",
            "user": "talaria", "user_id": "UBOT", "bot_id": "B1", "app_id": "A1",
        })),
        _ => Reply::json(&json!({ "ok": true })),
    })
    .await
}

#[tokio::test]
async fn an_account_is_reached_at_its_own_address_and_nobody_else_answers_there() {
    let vendor = slack().await;
    let home = Home::empty().unwrap();
    let account =
        format!("accounts:\n  slack:\n    base_url: {}/\n    allow: [U1]\n", vendor.url());
    home.write("config.yaml", &account).unwrap();
    let mut process = Launch::new(binary())
        .environment("SLACK_BOT_TOKEN", "xoxb-1")
        .environment("SLACK_SIGNING_SECRET", "a-secret-of-slack")
        .start(home.path())
        .unwrap();
    within(HANGS, "the ready line", process.ready()).await.unwrap();
    let listener = process.address().await;
    let client = reqwest::Client::new();
    let post = async |path: &str| {
        let answer = client.post(format!("{listener}{path}")).body("{}").send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let is_open = async { while post("/in/slack").await.0 == 404 {} };
    within(HANGS, "the account to be connected", is_open).await;
    // Nobody has signed it: Slack's own door says so, and not the web chat's.
    for path in ["/in/slack", "/in/slack/"] {
        let (status, body) = post(path).await;
        assert_eq!(status, 401, "{path}: {body}");
        assert!(!body.contains("log in"), "{path}: {body}");
    }
    assert_eq!(post("/in/nobody").await.0, 404);
}

/// A secret is replaced because it leaked: from the moment that the new one applies, the old one is nothing.
#[tokio::test]
async fn a_webhook_secret_that_was_replaced_opens_nothing_any_more() {
    let vendor = telegram::Vendor::open().await;
    let home = Home::empty().unwrap();
    let (old, new) = ("the-secret-that-leaked", "the-secret-that-came-after");
    let config = |secret: &str| {
        format!(
            "model: demo\naccounts:\n  telegram:\n    token: \"{}\"\n    base_url: \"{}\"\n    allow: [7]\n    \
             webhook_url: https://bot.example.org/in/telegram/webhook\n    webhook_secret: {secret}\n",
            telegram::TOKEN,
            vendor.url
        )
    };
    home.write("config.yaml", &config(old)).unwrap();
    let mut process = Launch::new(binary()).start(home.path()).unwrap();
    within(HANGS, "the ready line", process.ready()).await.unwrap();
    let door = format!("{}/in/telegram/webhook", process.address().await);
    let client = reqwest::Client::new();
    let calls = async |secret: &str| {
        let update = vendor.said(7, "hello").to_string();
        let call = client.post(&door).header("x-telegram-bot-api-secret-token", secret);
        let call = call.header("content-type", "application/json").body(update);
        call.send().await.unwrap().status().as_u16()
    };
    let is_open = async { while calls(old).await == 404 {} };
    within(HANGS, "the account to be connected", is_open).await;
    assert_eq!((calls(old).await, calls(new).await), (200, 403));
    home.write("config.yaml", &config(new)).unwrap();
    let (ended, output) = run(home.path(), &["reload"]).await;
    assert!(ended.success(), "{output}");
    assert_eq!((calls(old).await, calls(new).await), (403, 200));
}
