//! Bad input and a bad machine: each gives a clear message and loses nothing.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use talaria_testkit::{Home, Launch, Truth, VendorSettings, within};

use crate::rig::{HANGS, Rig, binary, run};

/// Starts on a home that it must refuse: its exit code, and what it printed.
async fn refused(home: &Home) -> (Option<i32>, String) {
    let (ended, output) = run(home.path(), &["run"]).await;
    (ended.code(), output)
}

#[tokio::test]
async fn a_second_instance_on_the_same_home_is_refused_and_the_first_goes_on() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    let (code, output) = refused(&rig.home).await;
    assert_eq!(code, Some(4), "{output}");
    assert!(output.contains("already running"), "{output}");
    assert!(output.contains(&rig.process().pid().to_string()), "{output}");
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    rig.check();
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let home = Home::empty().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let launch = Launch::new(binary()).environment("TALARIA_HTTP__LISTEN", &address);
    let mut process = launch.start(home.path()).unwrap();
    let ended = within(HANGS, "the refusal", process.ended()).await.unwrap();
    let output = process.drained().await;
    assert_eq!(ended.code(), Some(1), "{output}");
    assert!(output.contains(&address) && output.contains("taken"), "{output}");
    assert!(output.contains("http.listen"), "{output}");
}

#[tokio::test]
async fn broken_yaml_is_refused_with_its_line() {
    let home = Home::empty().unwrap();
    home.write("config.yaml", "model: fake/x\nagent:\n  max_steps: [1\n").unwrap();
    let (code, output) = refused(&home).await;
    assert_eq!(code, Some(78), "{output}");
    assert!(output.contains("config.yaml:"), "{output}");
    assert!(output.contains("correct line 3 of config.yaml"), "{output}");
    assert!(!output.contains("config explain"), "{output}");
}

#[tokio::test]
async fn a_wrong_value_is_refused_with_its_field_and_line() {
    let home = Home::empty().unwrap();
    home.write("config.yaml", "agent:\n  max_steps: many\n").unwrap();
    let (code, output) = refused(&home).await;
    assert_eq!(code, Some(78), "{output}");
    assert!(output.contains("agent.max_steps"), "{output}");
    assert!(output.contains("config.yaml:2"), "{output}");
    assert!(output.contains("many"), "{output}");
    // The advice has to work with the file as it is.
    assert!(output.contains("`talaria config explain agent.max_steps`"), "{output}");
    let (ended, output) = run(home.path(), &["config", "explain", "agent.max_steps"]).await;
    assert!(ended.success(), "{output}");
    assert!(output.contains("How often the agent may call the model"), "{output}");
}

#[tokio::test]
async fn the_model_says_where_its_key_was_found() {
    let home = Home::empty().unwrap();
    home.write(".env", "\nANTHROPIC_API_KEY=sk-test\n").unwrap();
    let (ended, output) = run(home.path(), &["model", "--no-test"]).await;
    assert!(ended.success(), "{output}");
    assert!(output.contains("ANTHROPIC_API_KEY is set in .env:2"), "{output}");
    home.write(".env", "").unwrap();
    let launch = Launch::new(binary()).environment("ANTHROPIC_API_KEY", "sk-test");
    let mut process = launch.arguments(&["model", "--no-test"]).start(home.path()).unwrap();
    within(HANGS, "the model", process.ended()).await.unwrap();
    let output = process.drained().await;
    assert!(output.contains("ANTHROPIC_API_KEY is set in the environment"), "{output}");
}

#[tokio::test]
async fn a_provider_may_name_its_model_and_how_it_thinks() {
    let home = Home::empty().unwrap();
    let settings = "model: work\nproviders:\n  work:\n    wire: anthropic\n    \
                    base_url: http://127.0.0.1:9/\n    api_key: x\n    model: thinker-1\n    ";
    home.write("config.yaml", &format!("{settings}thinking: adaptive\n")).unwrap();
    let (ended, output) = run(home.path(), &["model", "--no-test"]).await;
    assert!(ended.success(), "{output}");
    assert!(output.contains("work/thinker-1"), "{output}");
    home.write("config.yaml", &format!("{settings}thinking: deeply\n")).unwrap();
    let (ended, output) = run(home.path(), &["config", "check"]).await;
    assert_eq!(ended.code(), Some(2), "{output}");
    assert!(output.contains("providers.work.thinking"), "{output}");
    assert!(output.contains("adaptive"), "{output}");
}

#[tokio::test]
async fn a_bad_file_does_not_replace_a_good_running_one() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.home.write("config.yaml", "agent:\n  max_steps: many\n").unwrap();
    let (ended, output) = run(rig.home.path(), &["reload"]).await;
    assert!(!ended.success(), "{output}");
    assert!(output.contains("agent.max_steps"), "{output}");
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
}

#[tokio::test]
async fn a_home_that_cannot_be_made_is_named() {
    let home = Home::empty().unwrap();
    home.write("file", "").unwrap();
    let below = home.file("file").join("home");
    let (ended, output) = run(&below, &["run"]).await;
    assert_eq!(ended.code(), Some(78), "{output}");
    assert!(output.contains("file/home"), "{output}");
    assert!(output.contains("TALARIA_HOME"), "{output}");
}

#[tokio::test]
async fn a_home_is_for_nobody_else() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    fs::set_permissions(rig.home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    rig.start().await;
    let mode =
        |name: &str| fs::metadata(rig.home.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(""), 0o700);
    assert_eq!(mode("gateway.sock"), 0o600);
}

#[tokio::test]
async fn a_damaged_database_is_not_tried_again() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    rig.end().await;
    let path = rig.home.file("state.db");
    let mut bytes = fs::read(&path).unwrap();
    // Its header stays: it is known to be ours.
    bytes[100..].fill(0xAA);
    fs::write(&path, &bytes).unwrap();
    let (code, output) = refused(&rig.home).await;
    assert_eq!(code, Some(78), "{output}");
    assert!(output.contains("is damaged"), "{output}");
}

#[tokio::test]
async fn a_database_from_a_newer_version_is_refused_and_left_alone() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    rig.end().await;
    // Bytes 60 to 63 of an SQLite file are its `user_version`, big-endian.
    let path = rig.home.file("state.db");
    let ours = fs::read(&path).unwrap();
    let mut newer = ours.clone();
    newer[60..64].copy_from_slice(&9999u32.to_be_bytes());
    fs::write(&path, &newer).unwrap();
    let (code, output) = refused(&rig.home).await;
    assert_eq!(code, Some(78), "{output}");
    assert!(output.contains("newer"), "{output}");
    assert_eq!(fs::read(&path).unwrap(), newer, "it was touched");
    fs::write(&path, &ours).unwrap();
    rig.start().await;
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn a_damaged_search_database_is_made_again_from_the_truth() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    for damage in ["overwritten", "missing"] {
        rig.start().await;
        let token = rig.vendor.say("ann", "a walrus in the garden");
        rig.until_everything_is_answered().await;
        rig.end().await;
        for name in ["search.db-wal", "search.db-shm"] {
            let _ = fs::remove_file(rig.home.file(name));
        }
        match damage {
            "missing" => fs::remove_file(rig.home.file("search.db")).unwrap(),
            _ => rig.home.write("search.db", &"Z".repeat(8192)).unwrap(),
        }
        rig.start().await;
        let found = async {
            loop {
                let (_, output) = run(rig.home.path(), &["sessions", "search", "walrus"]).await;
                if output.contains(&token.to_string()) {
                    break;
                }
            }
        };
        within(HANGS, format!("what was said to be found ({damage})"), found).await;
        rig.end().await;
    }
    rig.start().await;
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_heals_when_there_is_room() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    // Files that cannot grow look like a full disk to whoever writes them. The signal that comes with
    // it is one that a disk does not send.
    rig.launch = rig.launch.clone().through(&["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    rig.start().await;
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    rig.until("the acknowledgement", |truth| truth.acked() == truth.happened()).await;
    let acked = rig.vendor.read(Truth::acked);

    limit_files(rig.process().pid(), "4096").await;
    rig.vendor.say("ann", "is there room");
    rig.vendor.say("ben", "for me");
    let told = |line: &str| line.contains("cannot take anything in");
    within(HANGS, "the note in the log", rig.process().line(told)).await;
    assert_eq!(rig.vendor.read(Truth::acked), acked, "acknowledged what it could not store");

    limit_files(rig.process().pid(), "unlimited").await;
    rig.until_everything_is_answered().await;
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn a_disk_that_fills_while_the_model_thinks_loses_nothing_even_after_a_kill() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.launch = rig.launch.clone().through(&["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    rig.start().await;
    rig.llm.hold(talaria_testkit::Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    limit_files(rig.process().pid(), "4096").await;
    rig.llm.hold(talaria_testkit::Hold::Never);
    let told = |line: &str| line.contains("cannot be made durable");
    within(HANGS, "the note in the log", rig.process().line(told)).await;
    assert_eq!(rig.vendor.read(|truth| truth.shown().len()), 0, "sent what it could not store");
    rig.kill().await;
    rig.start().await;
    rig.until_everything_is_answered().await;
    rig.settle().await;
    rig.check();
    assert_eq!(rig.marked(), 0);
}

#[tokio::test]
async fn the_pulse_tells_whether_anything_can_be_taken_in() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.launch = rig.launch.clone().through(&["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    rig.start().await;
    let pulse = format!("{}/healthz", rig.process().address().await);
    let becomes = async |expected: u16| {
        let answer = async {
            loop {
                let answer = reqwest::get(&pulse).await.unwrap();
                if answer.status() == expected {
                    break answer.text().await.unwrap();
                }
            }
        };
        within(HANGS, format!("the pulse to be {expected}"), answer).await
    };
    assert_eq!(becomes(204).await, "");
    limit_files(rig.process().pid(), "4096").await;
    assert_eq!(becomes(503).await, r#"{"problem":"the store does not take writes"}"#);
    limit_files(rig.process().pid(), "unlimited").await;
    assert_eq!(becomes(204).await, "");
}

/// Sets how large the files of a process may grow.
async fn limit_files(pid: u32, limit: &str) {
    let set = tokio::process::Command::new("prlimit")
        .args(["--pid", &pid.to_string(), &format!("--fsize={limit}:unlimited")])
        .status();
    let set = within(Duration::from_secs(10), "prlimit", set).await.unwrap();
    assert!(set.success(), "prlimit: {set}");
}
