//! Variables by which platforms are known everywhere.

use talaria_config::{Loaded, Origin, Sources, load};
use talaria_model::AccountId;

use crate::{loaded, platforms, problems};

fn names(loaded: &Loaded) -> Vec<&str> {
    loaded.config().accounts.keys().map(AccountId::as_str).collect()
}

fn origin(loaded: &Loaded, path: &str) -> String {
    loaded.origin(path).map(Origin::to_string).unwrap_or_default()
}

fn value(loaded: &Loaded, path: &str) -> String {
    let line = loaded.show().into_iter().find(|line| line.path == path);
    line.map(|line| line.value.to_string()).unwrap_or_default()
}

#[test]
fn an_account_appears_when_all_is_there_that_it_needs() {
    assert_eq!(names(&loaded("", &[])), ["desk"]);
    assert_eq!(names(&loaded("", &["OWL_HOURS=day", "OWL_ALLOWED_USERS=7"])), ["desk"]);
    let owl = loaded("", &["OWL_PASSWORD=wise-owl", "OWL_HOURS=day", "OWL_ALLOWED_USERS=7, 8"]);
    assert_eq!(names(&owl), ["desk", "owl"]);
    assert_eq!(value(&owl, "accounts.owl.awake"), "day");
    assert_eq!(origin(&owl, "accounts.owl.password"), "environment OWL_PASSWORD");
    let account = &owl.config().accounts[&AccountId::literal("owl")];
    assert_eq!(account.access.allow.len(), 2);
    let open = loaded("", &["OWL_PASSWORD=wise-owl", "OWL_ALLOW_ALL_USERS=yes"]);
    let account = &open.config().accounts[&AccountId::literal("owl")];
    assert!(account.access.is_open());
    assert!(!open.redact("it says wise-owl").contains("wise-owl"));
}

#[test]
fn the_file_is_overridden_and_our_own_variable_wins() {
    let yaml = "accounts: {owl: {password: wise-file, awake: day}}";
    let said = loaded(yaml, &["OWL_HOURS=night"]);
    assert_eq!(value(&said, "accounts.owl.awake"), "night");
    assert_eq!(origin(&said, "accounts.owl.password"), "config.yaml:1");
    let both = loaded(yaml, &["OWL_HOURS=night", "TALARIA_ACCOUNTS__OWL__AWAKE=day"]);
    assert_eq!(origin(&both, "accounts.owl.awake"), "environment TALARIA_ACCOUNTS__OWL__AWAKE");
    // What the process says wins over what `.env` says, by whatever name.
    let sources = Sources::default()
        .with_config(yaml)
        .with_dotenv("TALARIA_ACCOUNTS__OWL__AWAKE=day\nOWL_PASSWORD=wise-dotenv\n")
        .with_variable("OWL_HOURS", "night");
    let layered = load(sources, &platforms::ALL).unwrap();
    assert_eq!(origin(&layered, "accounts.owl.awake"), "environment OWL_HOURS");
    assert_eq!(origin(&layered, "accounts.owl.password"), ".env:2");
    let explained = said.explain("accounts.owl.awake").unwrap().to_string();
    assert!(explained.contains("OWL_HOURS or TALARIA_ACCOUNTS__OWL__AWAKE"), "{explained}");
    let off = loaded("accounts: {owl: {enabled: false}}", &["OWL_PASSWORD=wise"]);
    assert!(off.config().accounts[&AccountId::literal("owl")].account.is_none());
}

#[test]
fn they_are_for_the_account_that_is_named_like_its_platform() {
    let yaml = "accounts: {barn: {platform: owl, password: wise-barn, allow: [1]}}";
    let barn = loaded(yaml, &["OWL_PASSWORD=wise-other"]);
    assert_eq!(names(&barn), ["barn", "desk"]);
    let warnings: Vec<String> = barn.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("OWL_PASSWORD is ignored"), "{warnings:?}");
    let both = "accounts: {barn: {platform: owl, password: wise-barn}, owl: {}}";
    assert_eq!(names(&loaded(both, &["OWL_PASSWORD=wise-other"])), ["barn", "desk", "owl"]);
}

#[test]
fn what_is_wrong_with_one_names_it_and_not_its_value() {
    let wrong = problems("", &["OWL_PASSWORD=wise", "OWL_HOURS=noon"]);
    assert!(wrong.starts_with("OWL_HOURS: accounts.owl.awake: \"noon\" is not one of"), "{wrong}");
    let unwise = problems("", &["OWL_PASSWORD=canary"]);
    assert!(unwise.contains("accounts.owl") && !unwise.contains("canary"), "{unwise}");
}
