//! What a setting is, and where that came from.

use std::time::Duration;

use talaria_config::{LogFormat, Sources, Wire, load};
use talaria_model::AccountId;

use crate::{loaded, platforms};

/// The setting as `config show` prints it.
fn check(yaml: &str, variables: &[&str], path: &str, expect: &str) {
    let loaded = loaded(yaml, variables);
    let line = loaded.show().into_iter().find(|line| line.path == path);
    let line =
        line.map_or(format!("no {path}"), |line| format!("{} ({})", line.value, line.origin));
    assert_eq!(line, expect, "{yaml:?} {variables:?}");
}

#[test]
fn each_layer_overrides_the_one_below_it() {
    check("", &[], "agent.turn_limit", "30m (default)");
    check("agent:\n  turn_limit: 45m", &[], "agent.turn_limit", "45m (config.yaml:2)");
    check(
        "agent: {turn_limit: 45m}",
        &["TALARIA_AGENT__TURN_LIMIT=1h"],
        "agent.turn_limit",
        "1h (environment TALARIA_AGENT__TURN_LIMIT)",
    );
    let sources = || {
        Sources::default()
            .with_config("agent: {turn_limit: 45m}")
            .with_dotenv("\nTALARIA_AGENT__TURN_LIMIT=50m")
    };
    let from_dotenv = load(sources(), &platforms::ALL).expect("right");
    assert_eq!(from_dotenv.origin("agent.turn_limit").expect("a setting").to_string(), ".env:2");
    assert_eq!(from_dotenv.config().agent.turn_limit, Duration::from_secs(50 * 60));
    let from_process = sources().with_variable("TALARIA_AGENT__TURN_LIMIT", "55m");
    let from_process = load(from_process, &platforms::ALL).expect("right");
    assert_eq!(from_process.config().agent.turn_limit, Duration::from_secs(55 * 60));
}

#[test]
fn nothing_configured_is_a_configuration() {
    let loaded = load(Sources::default(), &platforms::ALL).expect("right");
    let config = loaded.config();
    assert_eq!(config.model, None);
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:8420");
    assert_eq!(config.agent.max_steps, 90);
    assert_eq!(config.agent.question_limit, Duration::from_secs(86_400));
    assert_eq!(config.files.limit.bytes(), 25_000_000);
    assert!(config.group_sessions_per_user && !config.thread_sessions_per_user);
    assert_eq!(config.limits.pending_per_session, 64);
    let accounts: Vec<&str> = config.accounts.keys().map(AccountId::as_str).collect();
    assert_eq!(accounts, ["desk"], "what starts always is there");
    assert_eq!(loaded.warnings(), []);
}

#[test]
fn a_value_is_what_its_setting_says_it_is() {
    check("model: 4711", &[], "model", "4711 (config.yaml:1)");
    check("fallback: [0123, 1e5, yes]", &[], "fallback", r#"["0123","1e5","yes"] (config.yaml:1)"#);
    check("agent: {max_steps: 5}", &[], "agent.max_steps", "5 (config.yaml:1)");
    check("agent: {turn_limit: 120s}", &[], "agent.turn_limit", "2m (config.yaml:1)");
    check("files: {quota: 1.5 gb}", &[], "files.quota", "1500MB (config.yaml:1)");
    check("group_sessions_per_user: no", &[], "group_sessions_per_user", "false (config.yaml:1)");
    check("log: {format: \"json\"}", &[], "log.format", "json (config.yaml:1)");
    check(
        "agent:\n  instructions: |\n    Be\n    brief.\n",
        &[],
        "agent.instructions",
        r#""Be\nbrief.\n" (config.yaml:2)"#,
    );
    check(
        "providers: {p: {extra_body: {a: [1, x, ~]}}}",
        &[],
        "providers.p.extra_body",
        r#"{"a":[1,"x",null]} (config.yaml:1)"#,
    );
}

#[test]
fn nothing_behind_a_key_leaves_the_default() {
    check("agent:\nmodel:\nlog:\n  level: ~", &[], "log.level", "info (default)");
    check("model: x", &["TALARIA_MODEL="], "model", "x (config.yaml:1)");
}

#[test]
fn variables_are_read_by_the_type_of_their_setting() {
    check(
        "",
        &["TALARIA_FALLBACK=a/b, c"],
        "fallback",
        r#"["a/b","c"] (environment TALARIA_FALLBACK)"#,
    );
    check(
        "",
        &["TALARIA_FALLBACK=['a, b', c]"],
        "fallback",
        r#"["a, b","c"] (environment TALARIA_FALLBACK)"#,
    );
    check(
        "",
        &["TALARIA_GROUP_SESSIONS_PER_USER=0"],
        "group_sessions_per_user",
        "false (environment TALARIA_GROUP_SESSIONS_PER_USER)",
    );
    check("", &["TALARIA_MODEL={not: yaml"], "model", "{not: yaml (environment TALARIA_MODEL)");
    check(
        "",
        &["TALARIA_AGENT={max_steps: 7}"],
        "agent.max_steps",
        "7 (environment TALARIA_AGENT)",
    );
    check(
        "agent: {max_steps: 6}",
        &["TALARIA_AGENT={max_steps: 7, turn_limit: 1m}", "TALARIA_AGENT__MAX_STEPS=8"],
        "agent.max_steps",
        "8 (environment TALARIA_AGENT__MAX_STEPS)",
    );
    check(
        "",
        &["TALARIA_PROVIDERS__P__EXTRA_BODY={a: 1}"],
        "providers.p.extra_body",
        r#"{"a":1} (environment TALARIA_PROVIDERS__P__EXTRA_BODY)"#,
    );
    check("", &["TALARIA_HOME=/somewhere"], "model", "(not set) (default)");
}

#[test]
fn a_dash_in_a_name_is_an_underscore_in_its_variable() {
    let yaml = "accounts:\n  my-bird: {platform: pigeon, token: t, allow_everyone: true}";
    check(
        yaml,
        &["TALARIA_ACCOUNTS__MY_BIRD__BASE_URL=https://x.example"],
        "accounts.my-bird.base_url",
        "https://x.example (environment TALARIA_ACCOUNTS__MY_BIRD__BASE_URL)",
    );
}

#[test]
fn variables_alone_can_make_an_account() {
    let loaded = loaded(
        "",
        &[
            "TALARIA_ACCOUNTS__PIGEON__TOKEN=t",
            "TALARIA_ACCOUNTS__PIGEON__ALLOW=1,2",
            "TALARIA_ACCOUNTS__SECOND__PLATFORM=pigeon",
            "TALARIA_ACCOUNTS__SECOND__TOKEN=u",
            "TALARIA_ACCOUNTS__THIRD={platform: owl, password: wise, allow_everyone: true}",
            "TALARIA_ACCOUNTS={fourth: {platform: pigeon, token: v, allow: [3]}}",
        ],
    );
    let accounts = &loaded.config().accounts;
    let names: Vec<&str> = accounts.keys().map(AccountId::as_str).collect();
    assert_eq!(names, ["desk", "fourth", "pigeon", "second", "third"]);
    let access = &accounts[&AccountId::literal("pigeon")].access;
    assert!(!access.is_open());
    assert_eq!(access.allow.iter().map(|sender| sender.as_str()).collect::<Vec<_>>(), ["1", "2"]);
}

#[test]
fn accounts_are_opened_with_what_their_platform_declares() {
    let loaded = loaded(
        "
accounts:
  pigeon:
    token: 0123
    allow: [42]
    allow_admin_from: [42]
    group_allow_admin_from: [42]
    route: {by: map, password: 12345}
    roofs: [{name: red, key: k}, {name: 7}]
    bags: {left: l, right: 1e5}
    spare_keys: [a, 1]
  home-bird: {platform: pigeon, token: t2, route: {by: sight, looks: 3}, allow_everyone: true}
  owl: {enabled: false}
  desk: {plant: fern}
",
        &[],
    );
    let account = |name| &loaded.config().accounts[&AccountId::literal(name)];
    let limit = |name| {
        account(name)
            .account
            .as_ref()
            .map(|account| account.can(talaria_model::ChatKind::Dm).text.max)
    };
    assert_eq!(limit("pigeon"), Some(5 + 1 + 2 + 2));
    assert_eq!(limit("home-bird"), Some(3));
    assert!(account("home-bird").access.is_open());
    assert_eq!(account("home-bird").platform.label, "Carrier pigeon");
    assert_eq!(limit("owl"), None, "it is disabled, and may be half written");
    assert!(limit("desk").is_some());
    assert_eq!(loaded.warnings(), []);
}

#[test]
fn a_platform_that_starts_always_is_there_once_under_its_own_name_unless_switched_off() {
    let names = |yaml| {
        let loaded = loaded(yaml, &[]);
        let accounts = loaded.config().accounts.iter();
        accounts.map(|(name, it)| format!("{name} {}", it.account.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(names("accounts: {desk: {enabled: false}}"), ["desk false"]);
    let problems =
        load(Sources::default().with_config("accounts: {mine: {platform: desk}}"), &platforms::ALL)
            .expect_err("there cannot be two");
    assert_eq!(
        problems.to_string(),
        "config.yaml:1: accounts.mine: cannot be a second Desk, which is always there once; \
         set it up as accounts.desk"
    );
}

#[test]
fn a_providers_key_is_found_where_it_is_kept() {
    let sources = Sources::default()
        .with_config(
            "providers:\n  a: {wire: anthropic, api_key: ka}\n  b: {base_url: 'http://[::1]:1/v1', api_key_env: B_KEY, headers: {x-a.b: h}}",
        )
        .with_dotenv("B_KEY=kb\nC_KEY=from-file\nEMPTY=")
        .with_variable("C_KEY", "from-process");
    let loaded = load(sources, &platforms::ALL).expect("right");
    let providers = &loaded.config().providers;
    assert_eq!(providers["a"].wire, Some(Wire::Anthropic));
    assert_eq!(providers["a"].api_key.as_ref().map(|key| key.expose()), Some("ka"));
    assert_eq!(providers["b"].api_key.as_ref().map(|key| key.expose()), Some("kb"));
    assert_eq!(providers["b"].headers["x-a.b"].expose(), "h");
    assert_eq!(loaded.config().log.format, LogFormat::Text);
    let environment = loaded.environment();
    let key = environment.get("C_KEY").expect("set");
    assert_eq!(
        (key.value.expose(), key.origin.to_string().as_str()),
        ("from-process", "environment C_KEY")
    );
    assert_eq!(environment.get("B_KEY").expect("set").origin.to_string(), ".env:1");
    assert!(environment.get("EMPTY").is_none() && environment.get("NONE").is_none());
}

#[test]
fn anchors_and_merges_work_and_keep_their_place() {
    let yaml = "x-common: &common\n  allow: [7]\n  token: t\naccounts:\n  pigeon:\n    <<: *common\n    enabled: true\n";
    check(yaml, &[], "accounts.pigeon.allow", r#"["7"] (config.yaml:6)"#);
    assert_eq!(loaded(yaml, &[]).warnings(), []);
}

#[test]
fn what_an_account_answers_is_said_by_the_account() {
    use talaria_config::{AllowBots, EditedMessages};
    let yaml = "accounts:\n  pigeon: {token: t, allow: [1], require_mention: false, ignored_chats: [-100, '-100:7'], allow_bots: mentions, edited_messages: answer}";
    let loaded = loaded(yaml, &["TALARIA_ACCOUNTS__PIGEON__ALLOWED_CHATS=a,b"]);
    let mut accounts = loaded.config().accounts.values();
    let pigeon = accounts.find(|account| account.platform.name == "pigeon").expect("an account");
    let hearing = &pigeon.hearing;
    assert!(!hearing.require_mention && !hearing.observe_unmentioned);
    assert_eq!(hearing.allow_bots, AllowBots::Mentions);
    assert_eq!(hearing.edited_messages, EditedMessages::Answer);
    assert_eq!(hearing.ignored_chats.iter().collect::<Vec<_>>(), ["-100", "-100:7"]);
    assert_eq!(hearing.allowed_chats.iter().collect::<Vec<_>>(), ["a", "b"]);
}
