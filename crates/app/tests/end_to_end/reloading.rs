//! The configuration changes while the real binary runs: by itself when a file is saved, target by target
//! when somebody asks, and back again where it does not work.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use talaria_testkit::vendors::telegram;
use talaria_testkit::{Vendor, VendorSettings, within};

use crate::rig::{HANGS, Rig, run};

/// A gateway that applies what is saved.
async fn watching() -> Rig {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.launch = rig.launch.clone().environment("TALARIA_WATCH_CONFIG", "true");
    rig.start().await;
    rig
}

fn config(rig: &Rig) -> String {
    fs::read_to_string(rig.home.file("config.yaml")).unwrap()
}

async fn logged(rig: &mut Rig, what: &'static str) {
    let line = rig.process().line(move |line| line.contains(what));
    within(HANGS, what, line).await;
}

async fn answers(rig: &Rig, text: &str) {
    rig.vendor.say("ann", text);
    rig.until_everything_is_answered().await;
}

#[tokio::test]
async fn a_broken_file_that_is_saved_leaves_the_running_gateway_alone_and_its_line_is_named() {
    let mut rig = watching().await;
    let good = config(&rig);
    answers(&rig, "before").await;
    rig.home.write("config.yaml", &format!("{good}limits:\n  turns_at_once: many\n")).unwrap();
    let line = good.lines().count() + 2;
    let named = format!("config.yaml:{line}: limits.turns_at_once");
    let found = rig.process().line(move |line| line.contains("so the running one stays"));
    within(HANGS, "the error", found).await;
    assert!(rig.process().output().contains(&named), "{}", rig.process().output());
    answers(&rig, "still there").await;
    let (ended, output) = run(rig.home.path(), &["status"]).await;
    assert!(ended.success() && output.contains(&named), "{output}");
    for command in [&["config", "plan"][..], &["config", "apply"], &["reload"]] {
        let (ended, output) = run(rig.home.path(), command).await;
        assert_eq!(ended.code(), Some(2), "{output}");
        assert!(output.contains(&named), "{output}");
    }
    // Not even YAML.
    rig.home.write("config.yaml", "model: [\n").unwrap();
    let is_the_second = |line: &str| line.contains("config.yaml:") && !line.contains("limits.");
    within(HANGS, "the next error", rig.process().line(is_the_second)).await;
    answers(&rig, "and still").await;
    let (ended, output) = run(rig.home.path(), &["status"]).await;
    assert!(ended.success() && output.contains("config.yaml:"), "{output}");
    assert!(!output.contains("limits.turns_at_once"), "{output}");
    let (ended, output) = run(rig.home.path(), &["config", "apply"]).await;
    assert_eq!(ended.code(), Some(2), "{output}");
    rig.home.write("config.yaml", &format!("{good}compression: {{enabled: false}}\n")).unwrap();
    logged(&mut rig, "this applies change=\"compression.enabled").await;
    let (ended, output) = run(rig.home.path(), &["status"]).await;
    assert!(ended.success() && !output.contains("is wrong"), "{output}");
    answers(&rig, "after").await;
    rig.check();
}

#[tokio::test]
async fn a_plan_says_what_each_change_does_and_changes_nothing() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    let (ended, output) = run(rig.home.path(), &["config", "plan"]).await;
    assert!(ended.success() && output.contains("Nothing is different"), "{output}");
    let changed =
        config(&rig).replace("allow_everyone: true", "allow: [ann-person]\n    text_limit: 500");
    rig.home.write("config.yaml", &format!("{changed}limits: {{turns_at_once: 7}}\n")).unwrap();
    for _ in 0..2 {
        let (ended, output) = run(rig.home.path(), &["config", "plan"]).await;
        assert!(ended.success(), "{output}");
        for (setting, effect) in [
            ("accounts.bench.allow ", "applies at once"),
            ("accounts.bench.text_limit", "connects bench anew"),
            ("limits.turns_at_once", "after a restart"),
        ] {
            let line = output.lines().find(|line| line.starts_with(setting));
            let line = line.unwrap_or_else(|| panic!("{setting}: {output}"));
            assert!(line.contains(effect), "{line}");
        }
    }
    assert_eq!(rig.vendor.read(|truth| truth.connections()), 1);
    let (ended, output) = run(rig.home.path(), &["config", "apply"]).await;
    assert!(ended.success() && output.contains("bench: connected"), "{output}");
    assert!(output.contains("limits.turns_at_once: 1000 → 7 (after a restart)"), "{output}");
    assert_eq!(rig.vendor.read(|truth| truth.connections()), 2);
    answers(&rig, "hello").await;
    rig.check();
}

#[tokio::test]
async fn an_account_that_does_not_work_with_its_new_settings_goes_back_to_its_old_ones() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    answers(&rig, "before").await;
    let good = config(&rig);
    let address = rig.vendor.address().to_string();
    // A port that nobody listens on.
    let nobody = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().to_string()
    };
    rig.home.write("config.yaml", &good.replace(&address, &nobody)).unwrap();
    let (ended, output) = run(rig.home.path(), &["config", "apply"]).await;
    assert_eq!(ended.code(), Some(1), "{output}");
    assert!(output.contains("bench: rolled back to its old settings"), "{output}");
    for command in [&["config", "apply", "--json"][..], &["reload", "--json"]] {
        let (ended, output) = run(rig.home.path(), command).await;
        assert_eq!(ended.code(), Some(1), "{output}");
        let told: Value = serde_json::from_str(&output).unwrap();
        assert_eq!(told["accounts"][0]["rolled_back"], true, "{output}");
    }
    answers(&rig, "after").await;
    let (_, output) = run(rig.home.path(), &["config", "plan"]).await;
    assert!(output.contains("bench runs with older settings"), "{output}");
    rig.home.write("config.yaml", &good).unwrap();
    let (ended, output) = run(rig.home.path(), &["config", "apply"]).await;
    assert!(ended.success() && output.contains("bench: connected"), "{output}");
    answers(&rig, "at last").await;
    let added = format!(
        "accounts:\n  second:\n    platform: loopback\n    address: \"{nobody}\"\n    \
         allow_everyone: true\n"
    );
    rig.home.write("config.yaml", &good.replace("accounts:\n", &added)).unwrap();
    let (ended, output) = run(rig.home.path(), &["config", "apply", "--json"]).await;
    assert_eq!(ended.code(), Some(1), "an account that does not work: {output}");
    assert!(output.contains("not connected"), "{output}");
    rig.check();
}

/// The same bot under another name: whoever has it lets go of it first.
#[tokio::test]
async fn an_account_that_is_renamed_goes_on_with_the_same_bot_at_once() {
    let telegram = telegram::Vendor::open().await;
    telegram.truth().keeps_time = true;
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.launch = rig.launch.clone().environment("TALARIA_WATCH_CONFIG", "true");
    let before = config(&rig);
    let named = |name: &str| {
        let account = format!(
            "accounts:\n  {name}:\n    platform: telegram\n    token: \"{}\"\n    base_url: \"{}\"\n    \
             allow: [7]\n",
            telegram::TOKEN,
            telegram.url
        );
        before.replace("accounts:\n", &account)
    };
    let is_answered = async |text: &str| {
        telegram.push(telegram.said(7, text));
        let says = |message: &Value| message["text"].as_str().is_some_and(|it| it.contains(text));
        let answered = telegram.until(|truth| truth.messages.values().any(says));
        within(HANGS, text.to_owned(), answered).await;
    };
    rig.home.write("config.yaml", &named("telegram")).unwrap();
    rig.start().await;
    is_answered("under one name").await;
    // Behind the one that is taken out in the order of names, and then before it.
    for name in ["zebra", "family"] {
        rig.home.write("config.yaml", &named(name)).unwrap();
        let connected = format!("account=\"{name}\" outcome=\"connected\"");
        let line = rig.process().line(move |line| line.contains(&connected));
        within(HANGS, name.to_owned(), line).await;
        is_answered(name).await;
    }
    let (_, output) = run(rig.home.path(), &["platforms"]).await;
    let family = output.lines().find(|line| line.starts_with("family"));
    assert!(family.is_some_and(|line| line.contains("connected")), "{output}");
    assert!(!output.contains("zebra") && !output.contains("in use"), "{output}");
    assert!(!rig.process().output().contains("in use by"), "{}", rig.process().output());
}

#[tokio::test]
async fn an_account_that_is_written_down_is_connected_and_one_that_is_taken_out_is_not() {
    let mut rig = watching().await;
    let before = config(&rig);
    let second = Vendor::open(VendorSettings::default()).await.unwrap();
    let account = format!(
        "  second:\n    platform: loopback\n    address: \"{}\"\n    allow_everyone: true\n",
        second.address()
    );
    rig.home
        .write("config.yaml", &before.replace("accounts:\n", &format!("accounts:\n{account}")))
        .unwrap();
    second.say("bob", "hello");
    within(HANGS, "an answer", second.until(|truth| truth.is_everything_answered())).await;
    rig.home.write("config.yaml", &before).unwrap();
    logged(&mut rig, "outcome=\"taken out\"").await;
    let (_, output) = run(rig.home.path(), &["status"]).await;
    assert!(!output.contains("second"), "{output}");
    assert_eq!(rig.vendor.read(|truth| truth.connections()), 1, "the other one goes on");
    answers(&rig, "hello").await;
    rig.check();
}

#[tokio::test]
async fn a_start_with_a_broken_file_takes_the_last_configuration_that_worked() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.end().await;
    let good = config(&rig);
    rig.home.write("config.yaml", &format!("{good}limits:\n  turns_at_once: many\n")).unwrap();
    rig.start().await;
    let output = rig.process().output();
    let line = good.lines().count() + 2;
    assert!(output.contains(&format!("config.yaml:{line}: limits.turns_at_once")), "{output}");
    assert!(output.contains("starting with the last configuration that worked"), "{output}");
    answers(&rig, "hello").await;
    let (_, output) = run(rig.home.path(), &["status"]).await;
    assert!(output.contains("an older one applies"), "{output}");
    rig.home.write("config.yaml", &good).unwrap();
    let (ended, output) = run(rig.home.path(), &["reload"]).await;
    assert!(ended.success(), "{output}");
    let (_, output) = run(rig.home.path(), &["status"]).await;
    assert!(!output.contains("an older one applies"), "{output}");
    rig.check();
}

/// Whoever was taken out of a list in the same minute in which somebody mistyped a number stays out.
#[tokio::test]
async fn a_start_with_an_older_configuration_lets_nobody_do_more_than_the_file_that_is_there() {
    let mut rig = Rig::new(VendorSettings::default(), &["allow: [mallory-person]"]).await;
    let good = config(&rig).replace("    allow_everyone: true\n", "");
    rig.home.write("config.yaml", &good).unwrap();
    rig.start().await;
    rig.vendor.say("mallory", "while I may");
    rig.until_everything_is_answered().await;
    rig.end().await;
    let connected = rig.vendor.read(|truth| truth.connections());
    let wrong = "limits:\n  turns_at_once: many\n";
    let revoked = good.replace("mallory-person", "ann-person");
    for (file, because) in [
        (format!("{revoked}{wrong}"), "somebody was put out"),
        (format!("{good}roles: {{friends: {{tools: [session_search]}}}}\n{wrong}"), "a role came"),
        (format!("{good}quick_commands: {{x: [}}\n"), "nobody can read it"),
    ] {
        rig.home.write("config.yaml", &file).unwrap();
        let mut process = rig.launch.start(rig.home.path()).unwrap();
        within(HANGS, "the ready line", process.ready()).await.unwrap();
        let output = process.output();
        assert!(output.contains("not connected before it is right"), "{because}: {output}");
        let (_, output) = run(rig.home.path(), &["platforms"]).await;
        let bench = output.lines().find(|line| line.starts_with("bench"));
        assert!(bench.is_some_and(|line| line.contains("paused")), "{because}: {output}");
        let (ended, output) = run(rig.home.path(), &["chat", "hello"]).await;
        assert!(ended.success(), "the operator is answered: {output}");
        assert_eq!(rig.vendor.read(|truth| truth.connections()), connected, "{because}");
        process.terminate().unwrap();
        within(HANGS, "the end", process.ended()).await.unwrap();
    }
    rig.home.write("config.yaml", &format!("{revoked}{wrong}")).unwrap();
    let mut process = rig.launch.start(rig.home.path()).unwrap();
    within(HANGS, "the ready line", process.ready()).await.unwrap();
    rig.vendor.say_plainly("mallory", "and now?");
    rig.home.write("config.yaml", &revoked).unwrap();
    let (ended, output) = run(rig.home.path(), &["reload"]).await;
    assert!(ended.success(), "{output}");
    rig.until("a connection", |truth| truth.connections() > connected).await;
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    assert_eq!(rig.vendor.read(|truth| truth.shown_in("mallory").count()), 1, "they stay out");
}

/// Files that others can read, or that may not be ours, are refused however well an older one worked.
#[tokio::test]
async fn secrets_that_are_refused_are_not_replaced_by_older_ones() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.home.write(".env", "A_KEY=first\n").unwrap();
    rig.start().await;
    rig.end().await;
    let secrets = rig.home.file(".env");
    fs::set_permissions(&secrets, fs::Permissions::from_mode(0o644)).unwrap();
    let (ended, output) = run(rig.home.path(), &["run"]).await;
    assert_eq!(ended.code(), Some(78), "{output}");
    assert!(output.contains("chmod 600"), "{output}");
    let elsewhere = rig.home.file("elsewhere");
    fs::rename(&secrets, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &secrets).unwrap();
    let (ended, output) = run(rig.home.path(), &["run"]).await;
    assert_eq!(ended.code(), Some(78), "{output}");
    assert!(output.contains("is a link"), "{output}");
}

/// A token is replaced because it leaked: nothing else that does not work brings it back.
#[tokio::test]
async fn a_credential_that_was_replaced_is_not_taken_up_again() {
    let telegram = telegram::Vendor::open().await;
    telegram.truth().keeps_time = true;
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    let before = config(&rig);
    let with = |token: &str| {
        let account = format!(
            "accounts:\n  family:\n    platform: telegram\n    token: \"{token}\"\n    base_url: \"{}\"\n    \
             allow: [7]\n",
            telegram.url
        );
        before.replace("accounts:\n", &account)
    };
    rig.home.write("config.yaml", &with(telegram::TOKEN)).unwrap();
    rig.start().await;
    let mistyped = telegram::TOKEN.replace(':', ":x");
    rig.home.write("config.yaml", &with(&mistyped)).unwrap();
    let (ended, output) = run(rig.home.path(), &["reload"]).await;
    assert_eq!(ended.code(), Some(1), "{output}");
    assert!(output.contains("not connected") && !output.contains("rolled back"), "{output}");
    let asked = telegram.asked("getUpdates").len();
    let (_, output) = run(rig.home.path(), &["platforms"]).await;
    let family = output.lines().find(|line| line.starts_with("family"));
    assert!(family.is_some_and(|line| line.contains("refused")), "{output}");
    assert_eq!(telegram.asked("getUpdates").len(), asked, "nobody asks with the old one");
}

/// Two accounts swap their bots in one save: each lets go of its own before either takes the other's.
#[tokio::test]
async fn two_accounts_that_swap_their_tokens_are_connected_at_once() {
    let telegram = telegram::Vendor::open().await;
    telegram.truth().keeps_time = true;
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    let before = config(&rig);
    // The vendor knows one of the two bots only, so that it can be told which account has it.
    let unknown = telegram::TOKEN.replace(':', ":x");
    let with = |alpha: &str, beta: &str| {
        let account = |name: &str, token: &str| {
            format!(
                "  {name}:\n    platform: telegram\n    token: \"{token}\"\n    base_url: \"{}\"\n    \
                 allow: [7]\n",
                telegram.url
            )
        };
        let accounts = format!("accounts:\n{}{}", account("alpha", alpha), account("beta", beta));
        before.replace("accounts:\n", &accounts)
    };
    rig.home.write("config.yaml", &with(telegram::TOKEN, &unknown)).unwrap();
    rig.start().await;
    for (alpha, beta, has_it) in
        [(unknown.as_str(), telegram::TOKEN, "beta"), (telegram::TOKEN, unknown.as_str(), "alpha")]
    {
        rig.home.write("config.yaml", &with(alpha, beta)).unwrap();
        let (_, output) = run(rig.home.path(), &["reload"]).await;
        assert!(!output.contains("in use"), "{output}");
        let (_, output) = run(rig.home.path(), &["platforms"]).await;
        for name in ["alpha", "beta"] {
            let line = output.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            assert_eq!(line.contains("connected"), name == has_it, "{output}");
        }
    }
}

/// One account hangs with its new settings: whoever was taken off a list in the same save is not heard
/// meanwhile, and it goes back although the one who wanted all this has hung up.
#[tokio::test]
async fn an_account_that_hangs_keeps_nobody_in_and_goes_back_although_nobody_waits() {
    let telegram = telegram::Vendor::open().await;
    telegram.truth().keeps_time = true;
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    let before = config(&rig);
    let at = |url: &str| {
        let account = format!(
            "accounts:\n  family:\n    platform: telegram\n    token: \"{}\"\n    base_url: \"{url}\"\n    \
             allow: [7]\n",
            telegram::TOKEN
        );
        before.replace("accounts:\n", &account)
    };
    rig.home.write("config.yaml", &at(&telegram.url)).unwrap();
    rig.start().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hangs = at(&format!("http://{}", silent.local_addr().unwrap()));
    let save = hangs.replace("allow_everyone: true", "allow: [1001]");
    rig.home.write("config.yaml", &save).unwrap();
    let asker = rig.launch.clone().arguments(&["reload"]).start(rig.home.path()).unwrap();
    let (_held, _) = within(HANGS, "the account to be moved", silent.accept()).await.unwrap();
    rig.vendor.happens("from-bob", "hello", |event| event.sender = "1002".into());
    rig.vendor.happens("from-ann", "hello", |event| event.sender = "1001".into());
    let is_shown = |chat: &'static str| {
        move |truth: &talaria_testkit::Truth| truth.shown().iter().any(|it| it.chat == chat)
    };
    let heard = rig.vendor.until(is_shown("from-ann"));
    within(HANGS, "an answer to somebody on the list", heard).await;
    assert!(!rig.vendor.read(is_shown("from-bob")), "who was taken off it is heard");
    let output = rig.process().output();
    assert!(!output.contains("the old ones are back"), "it does not hang any more: {output}");
    asker.kill().await.unwrap();
    logged(&mut rig, "the old ones are back").await;
    telegram.push(telegram.said(7, "still there"));
    let says =
        |message: &Value| message["text"].as_str().is_some_and(|it| it.contains("still there"));
    let answered = telegram.until(|truth| truth.messages.values().any(says));
    within(HANGS, "an answer by the old settings", answered).await;
    let (_, output) = run(rig.home.path(), &["audit"]).await;
    assert!(output.contains("family.base_url"), "{output}");
}

#[tokio::test]
async fn a_paused_account_stays_paused_until_it_is_resumed_whether_a_gateway_runs_or_not() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    answers(&rig, "before").await;
    let (ended, output) = run(rig.home.path(), &["platforms", "pause", "bench"]).await;
    assert!(ended.success() && output.contains("bench is paused"), "{output}");
    rig.vendor.say("ann", "while it is paused");
    rig.end().await;
    let mut process = rig.launch.start(rig.home.path()).unwrap();
    within(HANGS, "the ready line", process.ready()).await.unwrap();
    let (_, output) = run(rig.home.path(), &["status"]).await;
    assert!(
        output.lines().any(|line| line.starts_with("bench") && line.contains("paused")),
        "{output}"
    );
    assert_eq!(rig.vendor.read(|truth| truth.connections()), 1);
    let (ended, output) = run(rig.home.path(), &["platforms", "--json"]).await;
    assert!(ended.success(), "{output}");
    let listed: Value = serde_json::from_str(&output).unwrap();
    let accounts = listed["accounts"].as_array().unwrap();
    let bench = accounts.iter().find(|account| account["name"] == "bench").unwrap();
    assert_eq!((&bench["platform"], &bench["state"]), (&"loopback".into(), &"paused".into()));
    assert!(listed["platforms"].as_array().unwrap().len() > 3, "{output}");
    let (ended, output) = run(rig.home.path(), &["platforms", "resume", "nobody"]).await;
    assert_eq!(ended.code(), Some(1), "{output}");
    assert!(output.contains("there is no account nobody"), "{output}");
    process.terminate().unwrap();
    within(HANGS, "the end", process.ended()).await.unwrap();
    let line = async || {
        let (_, output) = run(rig.home.path(), &["platforms"]).await;
        let found = output.lines().find(|line| line.starts_with("bench"));
        found.unwrap_or_else(|| panic!("{output}")).to_owned()
    };
    assert!(line().await.contains("paused"));
    let (ended, output) = run(rig.home.path(), &["platforms", "resume", "bench"]).await;
    assert!(ended.success() && output.contains("be connected at the next start"), "{output}");
    assert!(line().await.contains("not running"));
    rig.start().await;
    rig.until_everything_is_answered().await;
    rig.check();
}
