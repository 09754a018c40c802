//! Commands that a person types, with whatever they find.

use std::path::Path;
use std::time::Duration;

use talaria_testkit::{Conduct, Hold, Home, Launch, Refusal, Reply, VendorSettings, within};

use crate::rig::{HANGS, Rig, binary, run};

#[tokio::test]
async fn a_model_that_cannot_be_used_is_named_with_its_line() {
    for (yaml, expected) in [
        ("agent: {}\nmodel: nosuch/foo\n", "config.yaml:2: model: \"nosuch/foo\" cannot be used"),
        ("model: gpt-x\n", "config.yaml:1: model: \"gpt-x\" cannot be used"),
        (
            "model: demo\n\nfallback: [demo, nosuch/foo]\n",
            "config.yaml:3: fallback[1]: \"nosuch/foo\" cannot be used",
        ),
    ] {
        let home = Home::empty().unwrap();
        home.write("config.yaml", yaml).unwrap();
        for command in [&["run"][..], &["config", "check"], &["model", "--no-test"]] {
            let (ended, output) = run(home.path(), command).await;
            let code = if command == ["run"] { 78 } else { 2 };
            assert_eq!(ended.code(), Some(code), "{output}");
            assert!(output.contains(expected), "{command:?}: {output}");
        }
    }
}

#[tokio::test]
async fn the_configuration_in_the_readme_passes_with_the_keys_that_it_uses() {
    let readme = include_str!("../../../../README.md");
    let (_, block) = readme.split_once("```yaml\n").unwrap();
    let (yaml, _) = block.split_once("```").unwrap();
    let home = Home::empty().unwrap();
    let check = async |yaml: &str| {
        home.write("config.yaml", yaml).unwrap();
        let launch = Launch::new(binary()).arguments(&["config", "check"]);
        let launch = launch.environment("ANTHROPIC_API_KEY", "k-anthropic");
        let launch = launch.environment("OPENROUTER_API_KEY", "k-openrouter");
        let mut process = launch.start(home.path()).unwrap();
        let ended = within(HANGS, "the check", process.ended()).await.unwrap();
        (ended.code(), process.drained().await)
    };
    let (code, output) = check(yaml).await;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("warning") && output.contains("HOME_SERVER_KEY"), "{output}");
    let used = yaml.replace("anthropic/claude-sonnet-4-5", "home-server/some-model");
    assert_ne!(used, yaml);
    let (code, output) = check(&used).await;
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("\"HOME_SERVER_KEY\" is not set"), "{output}");
}

#[tokio::test]
async fn a_check_tells_what_is_odd_besides_what_is_wrong() {
    let home = Home::empty().unwrap();
    home.write("config.yaml", "agnet: {}\nagent:\n  max_steps: many\n").unwrap();
    let (ended, output) = run(home.path(), &["config", "check"]).await;
    assert_eq!(ended.code(), Some(2), "{output}");
    assert!(output.contains("did you mean agent?"), "{output}");
    assert!(output.contains("config.yaml:3: agent.max_steps"), "{output}");
}

#[tokio::test]
async fn a_running_gateway_is_asked_and_not_its_broken_file() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.home.write("config.yaml", "model: demo\nagent:\n  max_steps: many\n").unwrap();
    let (ended, output) = run(rig.home.path(), &["open"]).await;
    assert!(ended.success(), "{output}");
    assert!(output.contains("#login="), "{output}");
    let (ended, output) = run(rig.home.path(), &["reload"]).await;
    assert_eq!(ended.code(), Some(2), "{output}");
    assert!(output.contains("the running one stays"), "{output}");
    assert!(output.contains("config.yaml:3: agent.max_steps"), "{output}");
}

/// Runs a command whose output goes to a disk that is full.
async fn run_into_full_disk(home: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let through = ["sh", "-c", "exec \"$0\" \"$@\" > /dev/full"];
    let launch = Launch::new(binary()).through(&through).arguments(arguments);
    let mut process = launch.start(home).unwrap();
    let ended = within(HANGS, arguments.join(" "), process.ended()).await.unwrap();
    (ended.code(), process.drained().await)
}

#[tokio::test]
async fn output_that_cannot_be_written_is_a_failure() {
    let home = Home::empty().unwrap();
    home.write("config.yaml", "model: demo\n").unwrap();
    for command in [
        &["config", "show"][..],
        &["config", "schema"],
        &["config", "check"],
        &["config", "explain", "model"],
        &["platforms"],
        &["platforms", "--json"],
        &["model", "--no-test"],
        &["sessions", "list"],
        &["completions", "bash"],
        &["chat", "hello"],
    ] {
        let (code, output) = run_into_full_disk(home.path(), command).await;
        assert_eq!(code, Some(1), "{command:?}: {output}");
        assert!(output.contains("cannot write to standard output"), "{command:?}: {output}");
    }
}

#[tokio::test]
async fn whoever_only_looks_makes_no_home() {
    let home = Home::empty().unwrap();
    let none = home.file("none");
    for (command, expected) in [
        (&["sessions", "list"][..], "There are no conversations yet."),
        (&["sessions", "search", "walrus"], "Nothing was found."),
        (&["config", "show"], "agent.turn_limit"),
        (&["config", "check"], "good"),
        (&["model", "--no-test"], "demo"),
        (&["status"], "start one with `talaria`"),
        (&["stop"], "no gateway is running"),
    ] {
        let (_, output) = run(&none, command).await;
        assert!(output.contains(expected), "{command:?}: {output}");
        assert!(!none.exists(), "{command:?}");
    }
    let (ended, output) = run(&none, &["stop"]).await;
    assert_eq!(ended.code(), Some(1));
    assert!(!output.contains("start one"), "{output}");
}

#[tokio::test]
async fn a_gateway_that_is_ending_says_so_at_once() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    rig.process().terminate().unwrap();
    within(HANGS, "the note in the log", rig.process().line(|line| line.contains("ending"))).await;
    let asked = run(rig.home.path(), &["chat", "anybody there?"]);
    let (ended, output) = within(Duration::from_secs(2), "the refusal", asked).await;
    assert_eq!(ended.code(), Some(1), "{output}");
    assert!(output.contains("the gateway is ending"), "{output}");
    rig.llm.hold(Hold::Never);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_a_failure() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.llm.script(|_| Reply::Breaks("Once upon a time".into()));
    let (ended, output) = run(rig.home.path(), &["chat", "a story"]).await;
    assert!(output.contains("Once upon a time"), "{output}");
    assert!(output.contains("broke in the middle"), "{output}");
    assert_eq!(ended.code(), Some(1), "{output}");
}

#[tokio::test]
async fn what_could_not_be_delivered_is_listed_with_its_reason() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.vendor.script(|_| Conduct::Refuses(Refusal::Gone("kicked".into())));
    rig.vendor.say("ann", "hello");
    let listed = async {
        loop {
            let (_, output) = run(rig.home.path(), &["status"]).await;
            // It is counted and listed one after the other, and can happen in between.
            if output.contains("NOT DELIVERED") && output.contains("1 could not be delivered") {
                return output;
            }
        }
    };
    let output = within(HANGS, "the loss, counted and listed", listed).await;
    assert!(output.contains("ann") && output.contains("gone"), "{output}");
    let (_, output) = run(rig.home.path(), &["status", "--json"]).await;
    assert!(output.contains("\"losses\"") && output.contains("\"told\": false"), "{output}");
}
