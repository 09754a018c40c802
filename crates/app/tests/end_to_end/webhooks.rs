//! Where platforms send what they have to say: the addresses that the guides name.

use serde_json::json;
use talaria_testkit::scripted::{Reply, Request, Scripted};
use talaria_testkit::{Home, Launch, within};

use crate::rig::{HANGS, binary};

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
