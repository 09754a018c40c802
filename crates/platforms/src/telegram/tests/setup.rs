//! Setting up: what is asked, what is checked, and what is said about it.

use talaria_model::{Capabilities, Drafts, Edits, Files, Idempotency, Marks, Typing};
use talaria_platform::{Checked, ConnectError, Need, Registration, Secrecy, SettingsError};

use super::vendor::refusal;
use super::*;

async fn check(with: Value) -> Result<Checked, ConnectError> {
    Telegram::check(settings(with), Arc::new(SystemClock)).await
}

fn can(with: Value, chat: ChatKind) -> Capabilities {
    Telegram::capabilities(&settings(with), chat)
}

fn base() -> Value {
    json!({ "token": "42:abc" })
}

#[tokio::test]
async fn a_token_is_checked_live() {
    let vendor = Vendor::open().await;
    let checked = check(vendor.settings()).await.unwrap();
    assert_eq!(checked.name.as_deref(), Some("@tally_bot"));
    assert_eq!(checked.remarks.len(), 1, "{:?}", checked.remarks);
    assert!(checked.remarks[0].contains("/setprivacy"), "{:?}", checked.remarks);
    assert!(vendor.asked("getUpdates").is_empty(), "nothing is heard");
    vendor.truth().me["can_read_all_group_messages"] = json!(true);
    vendor.truth().webhook["url"] = json!("https://other.example.org/path-with-a-secret");
    let remarks = check(vendor.settings()).await.unwrap().remarks;
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    assert!(remarks[0].contains("other.example.org"), "{remarks:?}");
    assert!(!remarks[0].contains("secret"), "{remarks:?}");
}

#[test]
fn however_its_number_is_written_it_is_the_same_bot() {
    for token in ["42:abc", "+42:abc", "0042:abc"] {
        let known_by = Telegram::credentials(&settings(json!({ "token": token })));
        let secrets: Vec<_> = known_by.iter().map(|it| it.secret.expose()).collect();
        assert_eq!(secrets, ["42:abc"], "{token}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_an_account_says_what_to_do() {
    let vendor = Vendor::open().await;
    let with = |field: &str, value: Value| {
        let mut settings = vendor.settings();
        settings[field] = value;
        settings
    };
    let webhook = |url: &str, secret: Value| {
        let mut settings = with("webhook_url", json!(url));
        settings["webhook_secret"] = secret;
        settings
    };
    let mut on_the_cloud = webhook("http://a.example.org/x", json!("s"));
    on_the_cloud["base_url"] = json!("https://api.telegram.org");
    let mut odd_port = webhook("https://a.example.org:9999/x", json!("s"));
    odd_port["base_url"] = json!("https://api.telegram.org");
    for (settings, words) in [
        (with("token", json!("")), "get one from @BotFather"),
        (with("token", json!("not a token")), "get one from @BotFather"),
        (with("token", json!("42:../../x")), "get one from @BotFather"),
        (with("token", json!("43:abc")), "@BotFather"),
        (with("base_url", json!("ftp://x")), "https://host"),
        (with("base_file_url", json!("nowhere")), "https://host"),
        (webhook("https://a.example.org/x", Value::Null), "long random word"),
        (webhook("https://a.example.org/x", json!("no spaces between words")), "letters, digits"),
        (webhook("https://a.example.org/x", json!("fifteen-letters")), "16 to 256"),
        (on_the_cloud, "443, 80, 88 or 8443"),
        (odd_port, "443, 80, 88 or 8443"),
    ] {
        match check(settings.clone()).await {
            Err(ConnectError::Refused { hint, .. } | ConnectError::Fatal { hint, .. }) => {
                assert!(hint.contains(words), "{hint}");
            }
            other => panic!("{settings}: {other:?}"),
        }
    }
}

/// What is told without asking Telegram: the setting, the fix, and no secret.
#[test]
fn what_cannot_connect_is_refused_before_anybody_is_asked() {
    let open = |settings: Value| Registration::of::<Telegram>().open(settings).map(drop);
    let webhook = |url: &str, secret: Value| json!({ "token": "42:abc", "webhook_url": url, "webhook_secret": secret });
    assert_eq!(open(base()), Ok(()));
    assert_eq!(open(webhook("https://a.example.org/x", json!("a-long_word_of_16"))), Ok(()));
    for (settings, setting, words) in [
        (json!({ "token": "SECRET" }), "token", "@BotFather"),
        (json!({ "token": "" }), "token", "@BotFather"),
        (json!({ "token": "42:SECRET key" }), "token", "@BotFather"),
        (json!({ "token": "42:abc", "base_url": "ftp://x" }), "base_url", "https://host"),
        (json!({ "token": "42:abc", "base_file_url": "x" }), "base_file_url", "https://host"),
        (webhook("https://a.example.org/x", Value::Null), "webhook_secret", "long random word"),
        (webhook("https://a.example.org/x", json!("SECRET word")), "webhook_secret", "letters"),
        (webhook("http://a.example.org/x", json!("word")), "webhook_url", "https"),
        (webhook("a.example.org", json!("word")), "webhook_url", "https"),
        (webhook("https://a.example.org:9999/x", json!("word")), "webhook_url", "8443"),
    ] {
        let error = open(settings.clone()).unwrap_err();
        let told = error.to_string();
        let named = matches!(&error, SettingsError::Unusable { setting: it, .. } if it == setting);
        assert!(named && told.contains(words), "{settings}: {told}");
        assert!(!told.contains("SECRET"), "{settings}: {told}");
    }
}

#[tokio::test]
async fn a_server_in_trouble_is_tried_again() {
    let vendor = Vendor::open().await;
    for fault in [
        refusal(502, "Bad Gateway"),
        refusal(429, "Too Many Requests: retry after 1"),
        refusal(500, "Internal Server Error: restart"),
    ] {
        vendor.fault("getMe", fault);
        let checked = check(vendor.settings()).await;
        assert!(matches!(checked, Err(ConnectError::Unreachable { .. })), "{checked:?}");
    }
    vendor.fault("getMe", refusal(400, "Logged out"));
    match check(vendor.settings()).await {
        Err(ConnectError::Refused { hint, .. }) => assert!(hint.contains("10 minutes"), "{hint}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_webhook_ends_when_we_begin_to_ask() {
    let vendor = Vendor::open().await;
    vendor.truth().webhook["url"] = json!("https://other.example.org/");
    let settings = vendor.settings();
    let mut bench = Bench::connect(vendor, settings, None).await;
    assert_eq!(bench.vendor.asked("deleteWebhook"), [json!({ "drop_pending_updates": false })]);
    bench.vendor.push(said(1, "hello"));
    assert_eq!(bench.batch().await.events.len(), 1);
}

#[tokio::test]
async fn a_webhook_that_somebody_sets_again_is_left_to_people() {
    let vendor = Vendor::open().await;
    let folder = TempDir::new().unwrap();
    let connect = || Telegram::connect(settings(vendor.settings()), ports(folder.path(), None));
    let set = |url: &str| vendor.truth().webhook["url"] = json!(url);
    set("https://other.example.org/secret-path");
    assert!(connect().await.is_ok());
    set("https://other.example.org/secret-path");
    match connect().await {
        Err(ConnectError::Refused { problem, hint }) => {
            assert!(problem.contains("to other.example.org,"), "{problem}");
            assert!(!problem.contains("secret-path"), "{problem}");
            assert!(hint.contains("a bot of its own"), "{hint}");
        }
        Ok(_) => panic!("it was ended again"),
        Err(error) => panic!("{error}"),
    }
    assert_eq!(vendor.asked("deleteWebhook").len(), 1);
    set("https://another.example.org/");
    assert!(connect().await.is_ok(), "that is another one");
}

#[test]
fn each_kind_of_chat_has_its_own_limits() {
    let dm = can(base(), ChatKind::Dm);
    let group = can(base(), ChatKind::Group);
    let channel = can(base(), ChatKind::Channel);
    assert_eq!(dm.drafts, Drafts::Every(Duration::from_secs(1)));
    assert_eq!(dm.edits, Edits::Every(Duration::from_secs(1)));
    for can in [group, can(base(), ChatKind::Forum), channel] {
        assert_eq!(can.drafts, Drafts::Never, "drafts are for chats of two");
        assert_eq!(can.edits, Edits::Every(Duration::from_secs(3)));
        let pace = can.pace.chat.unwrap();
        let in_a_minute = 60 / pace.every.as_secs();
        assert!(in_a_minute <= 20, "twenty in a minute");
    }
    assert_ne!(group.typing, Typing::Never);
    assert_eq!(channel.typing, Typing::Never);
    assert_eq!(dm.idempotency, Idempotency::None, "there is no key");
}

#[test]
fn settings_widen_and_narrow_what_it_can_do() {
    let with = |field: &str, value: bool| {
        let mut settings = base();
        settings[field] = json!(value);
        can(settings, ChatKind::Dm)
    };
    assert_eq!(with("drafts", false).drafts, Drafts::Never);
    assert_eq!(can(base(), ChatKind::Dm).marks, Marks::Never);
    assert_eq!(with("reactions", true).marks, Marks::Shown);
    assert_eq!(can(base(), ChatKind::Dm).files, Files::UpTo(50 * 1024 * 1024));
    assert_eq!(with("local_mode", true).files, Files::UpTo(2000 * 1024 * 1024));
}

#[test]
fn only_the_token_has_to_be_known() {
    let asks = Telegram::SPEC.asks;
    let required: Vec<&str> =
        asks.iter().filter(|ask| ask.need == Need::Required).map(|ask| ask.setting).collect();
    assert_eq!(required, ["token"]);
    let variables: Vec<&str> = asks.iter().map(|ask| ask.variable).collect();
    let expected = ["TELEGRAM_BOT_TOKEN", "TELEGRAM_WEBHOOK_URL", "TELEGRAM_WEBHOOK_SECRET"];
    assert_eq!(variables, expected);
    for ask in asks {
        let is_secret = ask.setting == "token" || ask.setting == "webhook_secret";
        assert_eq!(ask.secrecy == Secrecy::Secret, is_secret, "{}", ask.setting);
    }
}
