//! Setting an account up.

use std::sync::Arc;

use serde_json::{Value, json};
use talaria_clock::SystemClock;
use talaria_model::{ChatKind, Idempotency, Marks};
use talaria_platform::{ConnectError, Platform, Registration, SettingsError};

use super::settings;
use super::vendor::{APPLICATION, Vendor};
use crate::discord::Discord;

async fn remarks(vendor: &Vendor) -> Vec<String> {
    let checked = Discord::check(settings(vendor, &json!({})), Arc::new(SystemClock)).await;
    let checked = checked.unwrap();
    assert_eq!(checked.name.as_deref(), Some("talaria"));
    checked.remarks
}

#[tokio::test]
async fn a_check_says_who_we_are_and_what_is_missing() {
    let (vendor, _asked) = Vendor::open().await;
    let said = remarks(&vendor).await;
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains(&format!("client_id={APPLICATION}")), "the invitation: {said:?}");
    vendor.with_guild();
    assert!(remarks(&vendor).await.is_empty());
    vendor.truth().flags = 0;
    assert!(remarks(&vendor).await[0].contains("Message Content"));
    assert!(vendor.truth().introduced.is_empty(), "nothing is heard or said");
}

#[tokio::test]
async fn a_wrong_token_is_for_a_person_to_change() {
    let (vendor, _asked) = Vendor::open().await;
    let with = json!({ "token": "Bot wrong" });
    let checked = Discord::check(settings(&vendor, &with), Arc::new(SystemClock)).await;
    let Err(ConnectError::Refused { problem, hint }) = checked else { panic!("{checked:?}") };
    assert!(problem.contains("token") && hint.contains("Bot page"));
    assert!(!format!("{problem}{hint}").contains("wrong"), "the token is not shown");
}

#[tokio::test]
async fn a_token_may_be_pasted_with_the_word_before_it() {
    let (vendor, _asked) = Vendor::open().await;
    let with = json!({ "token": format!(" Bot {} ", super::vendor::TOKEN) });
    let checked = Discord::check(settings(&vendor, &with), Arc::new(SystemClock)).await;
    assert!(checked.is_ok(), "{checked:?}");
    let bare = json!({ "token": super::vendor::TOKEN });
    for with in [with, bare] {
        let known_by = Discord::credentials(&settings(&vendor, &with));
        let secrets: Vec<_> = known_by.iter().map(|it| it.secret.expose()).collect();
        assert_eq!(secrets, [super::vendor::TOKEN], "it is the same bot");
    }
}

/// What is told without asking Discord: the setting, the fix, and no secret.
#[test]
fn what_cannot_connect_is_refused_before_anybody_is_asked() {
    let open = |changes: Value| {
        let mut settings = json!({ "token": super::vendor::TOKEN });
        settings.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        Registration::of::<Discord>().open(settings).map(drop)
    };
    let good = json!({ "shard": [1, 2], "allowed_roles": ["901"], "dm_role_auth_guild": "41",
        "channel_prompts": { "41771983423143938": "Be brief." } });
    assert_eq!(open(good), Ok(()));
    for (changes, setting, words) in [
        (json!({ "token": "" }), "token", "Bot page"),
        (json!({ "token": "SECRET" }), "token", "client secret"),
        (json!({ "token": "SECRET.a.b.c" }), "token", "three parts"),
        (json!({ "token": "SECRET.a b.c" }), "token", "three parts"),
        (json!({ "token": "SECRET..c" }), "token", "three parts"),
        (json!({ "shard": [1, 1] }), "shard", "[0, 1]"),
        (json!({ "shard": [0, 0] }), "shard", "[0, 1]"),
        (json!({ "allowed_roles": ["901", "cooks"] }), "allowed_roles[1]", "Developer Mode"),
        (json!({ "dm_role_auth_guild": "Home" }), "dm_role_auth_guild", "Developer Mode"),
        (json!({ "channel_prompts": { "general": "x" } }), "channel_prompts", "Developer Mode"),
        (json!({ "base_url": "discord" }), "base_url", "https://discord.com/api/v10"),
        (json!({ "cdn_url": "data:x" }), "cdn_url", "https://cdn.discordapp.com"),
    ] {
        let error = open(changes.clone()).unwrap_err();
        let told = error.to_string();
        let named = matches!(&error, SettingsError::Unusable { setting: it, .. } if it == setting);
        assert!(named && told.contains(words), "{changes}: {told}");
        assert!(!told.contains("SECRET"), "{changes}: {told}");
    }
}

#[test]
fn what_can_be_done_depends_on_the_chat_and_the_settings() {
    let read = |settings: Value| serde_json::from_value(settings).unwrap();
    let usual = read(json!({ "token": "t" }));
    let can = |settings, chat| Discord::capabilities(settings, chat);
    assert_eq!(can(&usual, ChatKind::Dm), Discord::SPEC.capabilities);
    assert_eq!(can(&usual, ChatKind::Forum).idempotency, Idempotency::None);
    let without = read(json!({ "token": "t", "reactions": false }));
    assert_eq!(can(&without, ChatKind::Group).marks, Marks::Never);
}
