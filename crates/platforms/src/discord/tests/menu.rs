//! The menu of slash commands.

use std::sync::Arc;

use serde_json::{Value, json};
use talaria_clock::{Clock, Sleep, SystemClock};
use talaria_model::{Secret, Timestamp};
use talaria_platform::{MenuItem, Offered};
use tempfile::TempDir;

use super::settings;
use super::vendor::{APPLICATION, TOKEN, Vendor};
use crate::discord::commands::{Menu, Synced};
use crate::discord::rest::Rest;
use crate::discord::snowflake::Snowflake;
use crate::wire::http::Http;

/// Waits for nothing: the pauses are for Discord's sake.
struct Hurry;

impl Clock for Hurry {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn sleep(&self, _: std::time::Duration) -> Sleep {
        Box::pin(std::future::ready(()))
    }
}

fn command(name: &str, arguments: &str) -> MenuItem {
    MenuItem {
        name: name.into(),
        aliases: Vec::new(),
        arguments: arguments.into(),
        help: format!("Does {name}."),
        to: Offered::Everyone,
    }
}

fn menu(vendor: &Vendor, folder: &TempDir, with: Value, items: Vec<MenuItem>) -> Menu {
    let settings = Arc::new(settings(vendor, &with));
    let clock = Arc::new(Hurry);
    let rest =
        Rest::new(&settings.address().unwrap(), Secret::new(TOKEN), Http::default(), clock.clone())
            .unwrap();
    Menu {
        rest: Arc::new(rest),
        clock,
        settings,
        application: Snowflake::parse(APPLICATION).unwrap(),
        folder: folder.path().to_owned(),
        items: items.into(),
    }
}

fn asked(vendor: &Vendor) -> Vec<String> {
    vendor.rest.requests_to("/commands").iter().map(|request| request.method.clone()).collect()
}

#[tokio::test]
async fn the_menu_is_changed_where_it_differs_and_left_alone_otherwise() {
    let (vendor, _asked) = Vendor::open().await;
    let folder = TempDir::new().unwrap();
    let both = || vec![command("new", ""), command("model", "[name]")];
    let synced = menu(&vendor, &folder, json!({}), both()).sync().await;
    assert_eq!(synced, Ok(Synced::Changed(2)));
    let model = vendor.truth().commands[1].clone();
    assert_eq!(model["options"][0]["name"], "args");
    assert_eq!(model["contexts"], json!([0, 1]));

    assert_eq!(menu(&vendor, &folder, json!({}), both()).sync().await, Ok(Synced::Unchanged));
    assert_eq!(asked(&vendor), ["GET", "POST", "POST"], "the digest is enough");

    let elsewhere = TempDir::new().unwrap();
    assert_eq!(menu(&vendor, &elsewhere, json!({}), both()).sync().await, Ok(Synced::Unchanged));
    assert_eq!(asked(&vendor)[3..], ["GET"], "and so is a look, when the digest is lost");

    let other = vec![command("new", "[title]"), command("stop", "")];
    let synced = menu(&vendor, &folder, json!({}), other).sync().await;
    assert_eq!(synced, Ok(Synced::Changed(3)));
    assert_eq!(asked(&vendor)[4..], ["GET", "DELETE", "PATCH", "POST"], "room is made first");
    let names: Vec<Value> =
        vendor.truth().commands.iter().map(|command| command["name"].clone()).collect();
    assert_eq!(names, ["new", "stop"]);
}

#[tokio::test]
async fn in_bulk_it_is_one_request_and_none_when_nothing_differs() {
    let (vendor, _asked) = Vendor::open().await;
    let with = || json!({ "command_sync_policy": "bulk", "hide_slash_commands": true });
    for folder in [TempDir::new().unwrap(), TempDir::new().unwrap()] {
        menu(&vendor, &folder, with(), vec![command("new", "")]).sync().await.unwrap();
    }
    assert_eq!(asked(&vendor), ["GET", "PUT", "GET"]);
    assert_eq!(vendor.truth().commands[0]["default_member_permissions"], "0");
}

#[tokio::test]
async fn without_a_list_or_a_wish_the_menu_is_not_touched() {
    let (vendor, _asked) = Vendor::open().await;
    let folder = TempDir::new().unwrap();
    let off = json!({ "command_sync_policy": "off" });
    assert_eq!(menu(&vendor, &folder, off, vec![command("new", "")]).sync().await, Ok(Synced::Off));
    assert_eq!(menu(&vendor, &folder, json!({}), Vec::new()).sync().await, Ok(Synced::Off));
    assert!(asked(&vendor).is_empty());
}

#[tokio::test]
async fn what_cannot_be_a_command_is_not_offered_and_a_failure_keeps_the_old_menu() {
    use super::vendor::problem;
    use talaria_testkit::scripted::{Fault, Reply};
    let (vendor, _asked) = Vendor::open().await;
    let folder = TempDir::new().unwrap();
    let odd = || {
        let hidden = MenuItem { to: Offered::Administrators, ..command("restart", "") };
        vec![command("New", ""), command("a b", ""), command("", ""), hidden, command("new", "")]
    };
    vendor.rest.fault("/commands", Fault::Instead(problem(400, 30034, "Max daily creates")));
    assert!(menu(&vendor, &folder, json!({}), odd()).sync().await.is_err());
    let later = json!({ "retry_after": 0.01, "global": false, "message": "later" });
    vendor.rest.fault("/commands", Fault::Instead(Reply::json(&json!([]))));
    vendor.rest.fault("/commands", Fault::Instead(Reply::status(429, later.to_string())));
    // The bucket is full again by then.
    let synced = async {
        loop {
            match menu(&vendor, &folder, json!({}), odd()).sync().await {
                Ok(synced) => return synced,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    assert_eq!(synced.await, Synced::Changed(1));
    assert_eq!(vendor.truth().commands.len(), 1);
}

#[tokio::test]
async fn the_menu_is_kept_while_the_account_is_connected() {
    use futures::StreamExt;
    let (vendor, _asked) = Vendor::open().await;
    let folder = TempDir::new().unwrap();
    let link = super::connect(&vendor, &folder, &json!({}), None, vec![command("new", "")]).await;
    let Ok(talaria_platform::Link { incoming, .. }) = link else { panic!("connected") };
    let talaria_platform::Incoming::Stream(mut arrivals) = incoming else { panic!("a stream") };
    let listening = async {
        while vendor.truth().commands.is_empty() {
            arrivals.next().await;
        }
    };
    talaria_testkit::within(super::PATIENCE, "a command", listening).await;
    assert_eq!(vendor.truth().commands[0]["name"], "new");
}
