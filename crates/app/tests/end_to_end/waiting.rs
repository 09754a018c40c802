//! A setting that only a restart changes is told of until there was one, or until it is set back.

use std::fs;

use serde_json::{Value, json};
use talaria_testkit::VendorSettings;

use crate::rig::{Rig, run};

/// Runs a command that has to work, and says what it printed.
async fn done(rig: &Rig, arguments: &[&str]) -> String {
    let (ended, output) = run(rig.home.path(), arguments).await;
    assert!(ended.success(), "{arguments:?}: {output}");
    output
}

/// What a plan says of the only setting that is different.
async fn planned(rig: &Rig) -> Option<String> {
    let output = done(rig, &["config", "plan"]).await;
    let line = output.lines().find(|line| line.starts_with("limits.turns_at_once"));
    assert_eq!(line.is_none(), output.contains("Nothing is different"), "{output}");
    line.map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "))
}

async fn status(rig: &Rig) -> Value {
    let output = done(rig, &["status", "--json"]).await;
    serde_json::from_str::<Value>(&output).unwrap()["waits_for_restart"].clone()
}

#[tokio::test]
async fn what_waits_for_a_restart_is_told_until_it_is_done_or_taken_back() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    let good = fs::read_to_string(rig.home.file("config.yaml")).unwrap();
    let configure = |rig: &Rig, turns: u32| {
        let changed = format!("{good}limits: {{turns_at_once: {turns}}}\n");
        rig.home.write("config.yaml", &changed).unwrap();
    };
    configure(&rig, 7);
    assert_eq!(planned(&rig).await.unwrap(), "1000 7 after a restart");
    assert_eq!(status(&rig).await, json!([]), "nobody has read it");
    done(&rig, &["config", "apply"]).await;
    assert_eq!(planned(&rig).await.unwrap(), "1000 7 waits for a restart");
    let output = done(&rig, &["config", "plan"]).await;
    assert!(output.contains("`talaria restart`") && !output.contains("config apply"), "{output}");
    let waits = json!({"path": "limits.turns_at_once", "running": "1000", "configured": "7"});
    assert_eq!(status(&rig).await, json!([waits]));
    let output = done(&rig, &["status"]).await;
    assert!(output.contains("wait for a restart"), "{output}");
    assert!(output.contains("limits.turns_at_once: 1000 → 7"), "{output}");
    let output = done(&rig, &["doctor", "--offline"]).await;
    assert!(output.contains("wait for a restart: limits.turns_at_once"), "{output}");

    // Once more before it runs: what runs is still the first.
    configure(&rig, 8);
    assert_eq!(planned(&rig).await.unwrap(), "1000 8 after a restart");
    rig.home.write("config.yaml", &good).unwrap();
    assert_eq!(planned(&rig).await, None);
    done(&rig, &["config", "apply"]).await;
    assert_eq!(status(&rig).await, json!([]), "it was set back");
    let output = done(&rig, &["doctor", "--offline"]).await;
    assert!(!output.contains("wait for a restart"), "{output}");

    configure(&rig, 7);
    done(&rig, &["reload"]).await;
    assert_eq!(planned(&rig).await.unwrap(), "1000 7 waits for a restart");
    done(&rig, &["restart"]).await;
    assert_eq!((planned(&rig).await, status(&rig).await), (None, json!([])));
}

#[tokio::test]
async fn a_plan_for_programs_says_in_json_what_is_wrong() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    for problem in ["no gateway is running", "agent.max_steps"] {
        let (ended, output) = run(rig.home.path(), &["config", "plan", "--json"]).await;
        let told: Value = serde_json::from_str(&output).unwrap();
        assert!(told["problem"].as_str().unwrap().contains(problem), "{output}");
        let code = if problem.starts_with("agent") { 2 } else { 1 };
        assert_eq!(ended.code(), Some(code), "{output}");
        if code == 1 {
            rig.start().await;
            rig.home.write("config.yaml", "agent: {max_steps: many}\n").unwrap();
        }
    }
}

#[tokio::test]
async fn doctor_says_one_thing_about_the_configuration_when_an_older_one_applies() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    let good = fs::read_to_string(rig.home.file("config.yaml")).unwrap();
    let said = async |rig: &Rig| {
        let (_, output) = run(rig.home.path(), &["doctor", "--offline", "--json"]).await;
        let report: Value = serde_json::from_str(&output).unwrap();
        let findings = report["findings"].as_array().unwrap().clone();
        let about = findings.into_iter().filter(|finding| finding["about"] == "configuration");
        about.collect::<Vec<Value>>()
    };
    let says = |finding: &Value, words: &str| finding.to_string().contains(words);
    rig.home.write("config.yaml", &format!("{good}limits: {{turns_at_once: many}}\n")).unwrap();
    let (ended, _) = run(rig.home.path(), &["reload"]).await;
    assert_eq!(ended.code(), Some(2));
    let [wrong] = &said(&rig).await[..] else { panic!("{:?}", said(&rig).await) };
    assert!(says(wrong, "limits.turns_at_once") && says(wrong, "with an older one"), "{wrong}");

    rig.home.write("config.yaml", &good).unwrap();
    let [unread] = &said(&rig).await[..] else { panic!("{:?}", said(&rig).await) };
    assert!(says(unread, "\"problem\"") && says(unread, "talaria reload"), "{unread}");
    assert!(!says(unread, "it is right"), "{unread}");
    let (ended, _) = run(rig.home.path(), &["reload"]).await;
    assert!(ended.success());
    let [right] = &said(&rig).await[..] else { panic!("{:?}", said(&rig).await) };
    assert!(says(right, "it is right"), "{right}");
}
