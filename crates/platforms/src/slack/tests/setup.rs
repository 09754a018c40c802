//! What a person is told who sets an account up.

use std::sync::Arc;

use serde_json::{Value, json};
use talaria_clock::SystemClock;
use talaria_platform::{Checked, ConnectError, Credential, Platform, Registration, SettingsError};
use talaria_testkit::scripted::{Fault, Reply};

use super::super::Slack;
use super::vendor::Vendor;

async fn check(settings: Value) -> Result<Checked, ConnectError> {
    Slack::check(serde_json::from_value(settings).unwrap(), Arc::new(SystemClock)).await
}

#[tokio::test]
async fn an_app_that_is_set_up_says_who_it_is() {
    let vendor = Vendor::open().await;
    let checked = check(vendor.settings()).await.unwrap();
    assert_eq!(checked.name.as_deref(), Some("@talaria in Team T1"));
    assert_eq!(checked.remarks, Vec::<String>::new());
    assert!(vendor.world.lock().connections.is_empty(), "nothing is heard meanwhile");
    let checked = check(vendor.request_settings()).await.unwrap();
    assert!(checked.remarks[0].contains("/in/<account>"), "{:?}", checked.remarks);
}

#[tokio::test]
async fn missing_scopes_are_named() {
    let vendor = Vendor::open().await;
    vendor.world.lock().scopes = Some("chat:write,im:history");
    let checked = check(vendor.settings()).await.unwrap();
    let [remark] = &checked.remarks[..] else { panic!("{:?}", checked.remarks) };
    assert!(remark.contains("reactions:write") && remark.contains("install it again"), "{remark}");
    assert!(!remark.contains("chat:write"), "{remark}");
}

#[tokio::test]
async fn what_is_wrong_is_said_with_what_to_do() {
    let vendor = Vendor::open().await;
    let with = |name: &str, value: &str| {
        let mut settings = vendor.settings();
        settings[name] = json!(value);
        settings
    };
    let by_requests = |secret: &str| {
        let mut settings = vendor.request_settings();
        settings["signing_secret"] = json!(secret);
        settings
    };
    for (settings, expected) in [
        (with("bot_token", "xoxp-1"), "begins with xoxb-"),
        (with("bot_token", " , "), "holds 0 tokens"),
        (with("bot_token", "xoxb-wrong"), "invalid_auth"),
        (with("bot_token", "xoxb-old"), "account_inactive"),
        (with("bot_token", "xoxb-1,xoxb-1"), "two bot tokens"),
        (with("app_token", "xoxb-1"), "begins with xapp-"),
        (with("app_token", "xapp-wrong"), "not_allowed_token_type"),
        (with("app_token", ""), "app_token is missing, and so is signing_secret"),
        (with("base_url", "slack"), "base_url"),
        (by_requests("fifteen-letters"), "signing_secret is shorter than 16 characters"),
    ] {
        match check(settings.clone()).await {
            Err(
                ConnectError::Refused { problem, hint } | ConnectError::Fatal { problem, hint },
            ) => {
                assert!(problem.contains(expected), "{problem:?} for {expected:?}");
                assert!(!hint.is_empty() && !format!("{problem}{hint}").contains("wrong"));
            }
            other => panic!("{other:?} for {expected:?}"),
        }
    }
}

#[tokio::test]
async fn a_token_that_expires_or_belongs_to_an_organization_is_refused() {
    let vendor = Vendor::open().await;
    let who = |extra: Value| {
        let mut who = json!({ "ok": true, "team": "T", "user": "talaria", "team_id": "T1",
            "user_id": "UBOT", "bot_id": "B1" });
        who.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        Fault::Instead(Reply::json(&who))
    };
    for (extra, expected) in [
        (json!({ "expires_in": 43_200 }), "expires"),
        (json!({ "is_enterprise_install": true }), "organization"),
        (json!({ "bot_id": null }), "not that of a bot"),
    ] {
        vendor.http.fault("auth.test", who(extra));
        match check(vendor.settings()).await {
            Err(ConnectError::Refused { problem, .. }) => assert!(problem.contains(expected)),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_slack_that_is_down_or_busy_is_tried_again() {
    let vendor = Vendor::open().await;
    for reply in
        [Reply::status(503, ""), Reply::Cut, Reply::status(429, "").with("retry-after", "3")]
    {
        vendor.http.fault("auth.test", Fault::Instead(reply));
        let checked = check(vendor.settings()).await;
        assert!(matches!(checked, Err(ConnectError::Unreachable { .. })), "{checked:?}");
    }
}

#[tokio::test]
async fn tokens_of_two_apps_are_refused() {
    let vendor = Vendor::open().await;
    let who = json!({ "ok": true, "team": "T", "user": "talaria", "team_id": "T1", "user_id": "UBOT",
        "bot_id": "B1", "app_id": "A2" });
    vendor.http.fault("auth.test", Fault::Instead(Reply::json(&who)));
    let settings = serde_json::from_value(vendor.settings()).unwrap();
    let connected = Slack::connect(settings, super::ports(&vendor, super::Lent::default())).await;
    match connected {
        Err(ConnectError::Refused { problem, .. }) => {
            assert!(problem.contains("two different apps"))
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("connected"),
    }
}

/// What is told without asking Slack: the setting, the fix, and no secret.
#[test]
fn what_cannot_connect_is_refused_before_anybody_is_asked() {
    let both = json!({ "bot_token": "xoxb-SECRET", "app_token": "xapp-SECRET" });
    let open = |changes: Value| {
        let mut settings = both.clone();
        settings.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        Registration::of::<Slack>().open(settings).map(drop)
    };
    assert_eq!(open(json!({})), Ok(()));
    assert_eq!(open(json!({ "app_token": null, "signing_secret": "SECRET-of-16-chars" })), Ok(()));
    for (changes, setting, words) in [
        (json!({ "app_token": null }), "app_token", "signing_secret"),
        (json!({ "app_token": "" }), "app_token", "Socket Mode"),
        (json!({ "app_token": "xoxb-SECRET" }), "app_token", "xapp-"),
        (json!({ "bot_token": "xapp-SECRET" }), "bot_token", "xoxb-"),
        (json!({ "bot_token": "xoxb-SECRET,SECRET" }), "bot_token", "xoxb-"),
        (json!({ "bot_token": "," }), "bot_token", "0 tokens"),
        (json!({ "base_url": "slack.com" }), "base_url", "https://slack.com/api/"),
    ] {
        let error = open(changes.clone()).unwrap_err();
        let told = error.to_string();
        let named = matches!(&error, SettingsError::Unusable { setting: it, .. } if it == setting);
        assert!(named && told.contains(words), "{changes}: {told}");
        assert!(!told.contains("SECRET"), "{changes}: {told}");
    }
}

#[test]
fn however_tokens_are_written_they_are_the_same_credentials() {
    let known_by = |settings: Value| -> Vec<(String, String)> {
        let settings = serde_json::from_value(settings).unwrap();
        let shown = |it: Credential| (it.name, it.secret.expose().to_owned());
        Slack::credentials(&settings).into_iter().map(shown).collect()
    };
    let owned = |(name, secret): (&str, &str)| (name.to_owned(), secret.to_owned());
    let secret = "a-secret-of-16-letters";
    for bot_token in ["xoxb-1", " xoxb-1", "xoxb-1,", ",xoxb-1 ,", "xoxb-1\n"] {
        let known = known_by(json!({ "bot_token": bot_token, "signing_secret": secret }));
        assert_eq!(known, [("bot_token", "xoxb-1")].map(owned), "{bot_token:?}");
    }
    let several = json!({ "bot_token": "xoxb-1, xoxb-2", "app_token": " xapp-1 " });
    assert_eq!(
        known_by(several),
        [
            ("bot_token (1 of 2)", "xoxb-1"),
            ("bot_token (2 of 2)", "xoxb-2"),
            ("app_token", "xapp-1")
        ]
        .map(owned)
    );
}

#[test]
fn a_token_is_never_shown() {
    let settings = json!({ "bot_token": "xoxb-private", "app_token": "xapp-private",
        "signing_secret": "private" });
    let settings: super::super::Settings = serde_json::from_value(settings).unwrap();
    assert!(!format!("{settings:?}").contains("private"));
}
