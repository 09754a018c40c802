//! `talaria doctor` with the real binary: what is wrong is found, named and mended.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use talaria_testkit::{Home, Launch, VendorSettings, within};

use crate::rig::{HANGS, Rig, binary, run};

fn mode(home: &Home, name: &str) -> u32 {
    home.file(name).metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn what_others_could_read_and_what_was_left_behind_is_found_and_mended() {
    let home = Home::empty().unwrap();
    home.write("config.yaml", "model: demo\n").unwrap();
    home.write("state.db", "").unwrap();
    home.write("homes.json.next", "{").unwrap();
    fs::set_permissions(home.file("state.db"), fs::Permissions::from_mode(0o644)).unwrap();
    drop(UnixListener::bind(home.file("gateway.sock")).unwrap());
    let locks = home.file(".local/state/talaria/gateway-locks");
    fs::create_dir_all(&locks).unwrap();
    let stale = locks.join("telegram-0.lock");
    fs::write(
        &stale,
        r#"{"pid": 4194304, "started": 1, "command": "talaria", "home": "/x", "account": "work"}"#,
    )
    .unwrap();
    let (ended, output) = run(home.path(), &["doctor", "--offline"]).await;
    assert_eq!(ended.code(), Some(1), "{output}");
    for words in [
        "state.db is open to others (mode 644)",
        "gateway.sock was left behind",
        "homes.json.next was left behind half-written",
        "names account work of a gateway that is gone",
        "`talaria doctor --fix` mends",
        "only the built-in demo answers",
    ] {
        assert!(output.contains(words), "{words}: {output}");
    }
    assert_eq!(mode(&home, "state.db"), 0o644, "it only looks");
    let (ended, output) = run(home.path(), &["doctor", "--offline", "--fix"]).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    assert_eq!(mode(&home, "state.db"), 0o600);
    assert!(!home.file("gateway.sock").exists() && !home.file("homes.json.next").exists());
    assert_eq!(fs::read_to_string(stale).unwrap(), "");
    let (ended, output) = run(home.path(), &["doctor", "--offline"]).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    assert!(!output.contains("--fix"), "{output}");
}

#[tokio::test]
async fn how_the_last_gateway_ended_is_told_and_whether_the_next_can_open_its_store() {
    let home = Home::empty().unwrap();
    home.write("config.yaml", "model: demo\n").unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    home.write("state.db", &"Dear diary, ".repeat(1000)).unwrap();
    let doctor = async || run(home.path(), &["doctor", "--offline"]).await;
    let told = |output: &str, line: &str| assert!(output.contains(line), "{line}: {output}");

    let (ended, output) = doctor().await;
    assert_eq!(ended.code(), Some(1), "{output}");
    told(&output, "ok       gateway: none is running\n");
    told(&output, "PROBLEM  store: ");
    told(&output, "is not a database of this program");
    let (ended, output) = run(home.path(), &["run"]).await;
    assert_eq!(ended.code(), Some(78), "{output}");
    let (_, output) = doctor().await;
    told(&output, "PROBLEM  gateway: none is running; the last one could not start");
    fs::remove_file(home.file("state.db")).unwrap();
    let (ended, output) = doctor().await;
    assert_eq!(ended.code(), Some(0), "it is not in the way any more: {output}");
    told(&output, "warning  gateway: none is running; the last start failed at ");

    let mut process = Launch::new(binary()).start(home.path()).unwrap();
    within(HANGS, "ready", process.ready()).await.unwrap();
    process.kill().await.unwrap();
    let (ended, output) = doctor().await;
    assert_eq!(ended.code(), Some(1), "{output}");
    told(&output, "PROBLEM  gateway: none is running; the last one died without a word");
    told(&output, "ok       store: it can be opened");

    let mut process = Launch::new(binary()).start(home.path()).unwrap();
    within(HANGS, "ready", process.ready()).await.unwrap();
    process.terminate().unwrap();
    within(HANGS, "the end", process.ended()).await.unwrap();
    let (ended, output) = doctor().await;
    assert_eq!(ended.code(), Some(0), "{output}");
    told(&output, "ok       gateway: none is running; the last one ended");
}

/// What is mended is mended before anything else is looked at, so that the report is true when it is read.
#[tokio::test]
async fn what_kept_the_last_gateway_from_starting_is_no_problem_once_it_is_mended() {
    let home = Home::empty().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    home.write("config.yaml", "model: demo\n").unwrap();
    home.write(".env", "SOME_API_KEY=abc\n").unwrap();
    let open =
        || fs::set_permissions(home.file(".env"), fs::Permissions::from_mode(0o644)).unwrap();
    let doctor =
        async |more: &[&str]| run(home.path(), &[&["doctor", "--offline"], more].concat()).await;
    let told = |output: &str, words: &str| assert!(output.contains(words), "{words}: {output}");

    open();
    let (ended, output) = run(home.path(), &["run"]).await;
    assert_eq!(ended.code(), Some(78), "{output}");
    let (ended, output) = doctor(&[]).await;
    assert_eq!(ended.code(), Some(1), "{output}");
    told(&output, "PROBLEM  gateway: none is running; the last one could not start");
    told(&output, "PROBLEM  configuration: .env: holds secrets");
    let close = format!("chmod 600 {}", home.file(".env").display());
    told(&output, &format!("→ run `{close}`, or `talaria doctor --fix`"));
    assert!(!output.contains("config explain"), "{output}");
    assert_eq!(mode(&home, ".env"), 0o644, "it only looks");

    let (ended, output) = doctor(&["--fix"]).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    assert_eq!(mode(&home, ".env"), 0o600);
    told(&output, "mended   home: ");
    told(&output, "ok       configuration: it is right");
    told(&output, "warning  gateway: none is running; the last start failed at ");
    told(&output, "what it named looks right now");
    assert!(!output.contains("PROBLEM"), "{output}");
    for more in [&[][..], &["--fix"]] {
        let (ended, output) = doctor(more).await;
        assert_eq!(ended.code(), Some(0), "{output}");
        told(&output, "what it named looks right now");
        assert!(!output.contains("PROBLEM") && !output.contains("mended"), "{output}");
    }
}

#[tokio::test]
async fn a_start_that_would_fail_again_stays_a_problem() {
    let home = Home::empty().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let somebody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = somebody.local_addr().unwrap();
    home.write("config.yaml", "model: demo\n").unwrap();
    let with_that_port = async |arguments: &[&str]| {
        let launch =
            Launch::new(binary()).environment("TALARIA_HTTP__LISTEN", &address.to_string());
        let mut process = launch.arguments(arguments).start(home.path()).unwrap();
        let ended = within(HANGS, arguments.join(" "), process.ended()).await.unwrap();
        (ended, process.drained().await)
    };
    let doctor = async || run(home.path(), &["doctor", "--offline", "--fix"]).await;
    let (ended, output) = with_that_port(&["run"]).await;
    assert_eq!(ended.code(), Some(1), "whoever has the port may let go of it: {output}");
    let (ended, output) = with_that_port(&["doctor", "--offline", "--fix"]).await;
    assert_eq!(ended.code(), Some(1), "{output}");
    assert!(output.contains("PROBLEM  gateway: none is running; the last one could"), "{output}");
    assert!(output.contains("it would fail again: cannot listen on 127.0.0.1:"), "{output}");
    let (ended, output) = doctor().await;
    assert_eq!(ended.code(), Some(0), "with a port that is free: {output}");

    home.write("config.yaml", "model: demo\nagent: {max_steps: many}\n").unwrap();
    let (ended, output) = run(home.path(), &["run"]).await;
    assert_eq!(ended.code(), Some(78), "{output}");
    let (ended, output) = doctor().await;
    assert_eq!(ended.code(), Some(1), "{output}");
    assert!(output.contains("PROBLEM  gateway: none is running; the last one could"), "{output}");
    assert!(output.contains("→ `talaria config explain agent.max_steps`"), "{output}");
}

/// SQLite follows links, and makes files beside what they lead to.
#[tokio::test]
async fn a_store_that_is_a_link_is_named_and_not_opened() {
    let (home, elsewhere) = (Home::empty().unwrap(), Home::empty().unwrap());
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    home.write("config.yaml", "model: demo\n").unwrap();
    let mut process = Launch::new(binary()).start(home.path()).unwrap();
    within(HANGS, "ready", process.ready()).await.unwrap();
    process.terminate().unwrap();
    within(HANGS, "the end", process.ended()).await.unwrap();
    fs::rename(home.file("state.db"), elsewhere.file("other.db")).unwrap();
    symlink(elsewhere.file("other.db"), home.file("state.db")).unwrap();
    elsewhere.write("words", "somebody's").unwrap();
    fs::remove_file(home.file("gateway.lock")).unwrap();
    symlink(elsewhere.file("words"), home.file("gateway.lock")).unwrap();
    for arguments in [&["doctor", "--offline"][..], &["doctor", "--offline", "--fix"]] {
        let (ended, output) = run(home.path(), arguments).await;
        assert_eq!(ended.code(), Some(1), "{output}");
        let path = home.file("state.db");
        assert!(output.contains(&format!("{} is a link", path.display())), "{output}");
        assert!(!output.contains("it can be opened"), "{output}");
    }
    let (ended, output) = run(home.path(), &["run"]).await;
    assert_eq!(ended.code(), Some(78), "a restart finds the same link: {output}");
    assert!(output.contains("state.db is a link"), "{output}");
    let mut there: Vec<_> = fs::read_dir(elsewhere.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    there.sort();
    assert_eq!(there, ["other.db", "words"], "nothing is left beside what a link leads to");
    assert_eq!(fs::read_to_string(elsewhere.file("words")).unwrap(), "somebody's");
}

#[tokio::test]
async fn a_wrong_setting_is_named_with_its_line() {
    let home = Home::empty().unwrap();
    home.write("config.yaml", "model: demo\nagent:\n  max_steps: many\n").unwrap();
    let (ended, output) = run(home.path(), &["doctor", "--json", "--offline"]).await;
    assert_eq!(ended.code(), Some(1), "{output}");
    let report: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(report["good"], false);
    let findings = report["findings"].as_array().unwrap();
    let named = findings.iter().any(|finding| {
        finding["level"] == "problem"
            && finding["text"].as_str().unwrap().contains("config.yaml:3: agent.max_steps")
    });
    assert!(named, "{output}");
}

#[tokio::test]
async fn a_running_gateway_is_asked_how_its_accounts_are_doing() {
    let mut rig = Rig::new(VendorSettings::default(), &["allow: [ann, bob]"]).await;
    rig.start().await;
    let (ended, output) = run(rig.home.path(), &["doctor"]).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    for words in [
        "bench is connected",
        "everybody is heard on bench",
        "command gating is off in direct chats of bench: all 2 who are named are administrators",
        "nobody is told when an account fails",
    ] {
        assert!(output.contains(words), "{words}: {output}");
    }
    assert!(!output.contains("left behind"), "{output}");
    let (_, _) = run(rig.home.path(), &["platforms", "pause", "bench"]).await;
    let (_, output) = run(rig.home.path(), &["doctor"]).await;
    assert!(output.contains("`talaria platforms resume bench` connects it"), "{output}");
}

#[tokio::test]
async fn what_cannot_be_reached_is_told() {
    let home = Home::empty().unwrap();
    let nobody = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap()
    };
    home.write(
        "config.yaml",
        &format!(
            "model: fake/m\nproviders: {{fake: {{wire: openai, base_url: \"http://{nobody}/v1\", api_key: x}}}}\n\
             accounts: {{telegram: {{token: \"42:abc\", base_url: \"http://{nobody}\", allow: [7]}}}}\n"
        ),
    )
    .unwrap();
    let (ended, output) = run(home.path(), &["doctor"]).await;
    assert_eq!(ended.code(), Some(1), "{output}");
    assert!(output.contains("the server of fake cannot be reached"), "{output}");
    assert!(output.contains("telegram: Telegram cannot be reached"), "{output}");
    assert!(!output.contains("42:abc"), "{output}");
}

#[tokio::test]
async fn hooks_that_cannot_be_run_are_named() {
    let home = Home::empty().unwrap();
    home.write(
        "config.yaml",
        "model: demo
",
    )
    .unwrap();
    let hook = |name: &str, handler: &str, mode: u32| {
        fs::create_dir_all(home.file(&format!("hooks/{name}"))).unwrap();
        home.write(
            &format!("hooks/{name}/HOOK.yaml"),
            "events: ['agent:end']
",
        )
        .unwrap();
        home.write(&format!("hooks/{name}/handler"), handler).unwrap();
        let handler = home.file(&format!("hooks/{name}/handler"));
        fs::set_permissions(handler, fs::Permissions::from_mode(mode)).unwrap();
        for folder in ["hooks".to_owned(), format!("hooks/{name}")] {
            fs::set_permissions(home.file(&folder), fs::Permissions::from_mode(0o700)).unwrap();
        }
    };
    hook(
        "fine",
        "#!/bin/sh
",
        0o700,
    );
    let (_, output) = run(home.path(), &["doctor", "--offline"]).await;
    assert!(output.contains("hooks: all 1 can be run"), "{output}");
    hook(
        "old",
        "#!/nowhere/ruby
",
        0o700,
    );
    hook(
        "plain",
        "#!/bin/sh
",
        0o600,
    );
    let (ended, output) = run(home.path(), &["doctor", "--offline"]).await;
    assert_eq!(ended.code(), Some(1), "{output}");
    assert!(output.contains("old needs /nowhere/ruby, which is not there"), "{output}");
    assert!(
        output.contains("plain is not used") && output.contains("is not executable"),
        "{output}"
    );
}

#[tokio::test]
async fn a_service_that_this_version_would_write_differently_is_named() {
    let home = Home::empty().unwrap();
    home.write("config.yaml", "model: demo\n").unwrap();
    let (ended, unit) = run(home.path(), &["service", "install", "--print"]).await;
    assert!(ended.success(), "{unit}");
    fs::create_dir_all(home.file(".config/systemd/user")).unwrap();
    for (unit, differs) in
        [(unit.clone(), false), (unit.replace("Type=notify", "Type=simple"), true)]
    {
        home.write(".config/systemd/user/talaria.service", &unit).unwrap();
        let (_, output) = run(home.path(), &["doctor", "--offline"]).await;
        assert_eq!(output.contains("service: this version would write"), differs, "{output}");
    }
}
