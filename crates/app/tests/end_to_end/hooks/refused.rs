//! A guard that is refused: what it guards does not happen, and everybody who looks is told why.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use talaria_testkit::{VendorSettings, within};

use super::{hook, says};
use crate::rig::{HANGS, Rig, run};

/// Says something that is denied, and waits until it is. Its id.
async fn denied(rig: &Rig, text: &str) -> String {
    let mut id = String::new();
    rig.vendor.happens("ann", text, |event| {
        event.sender = "ann".into();
        id.clone_from(&event.id);
    });
    let is_denied = async {
        while !run(rig.home.path(), &["why", &id]).await.1.contains("→ ignored: the hook guard") {
            tokio::task::yield_now().await;
        }
    };
    within(HANGS, "a denial", is_denied).await;
    id
}

#[tokio::test]
async fn what_a_refused_hook_guards_is_denied_and_it_is_named_wherever_somebody_looks() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    let guard = "events: [pre_dispatch, agent:end]\non_failure: deny\n";
    hook(&rig.home, "hooks/guard/HOOK.yaml", guard);
    hook(&rig.home, "hooks/guard/handler", "#!/bin/sh\ntouch ran\n");
    let open_to_all = fs::Permissions::from_mode(0o777);
    fs::set_permissions(rig.home.file("hooks/guard/handler"), open_to_all).unwrap();
    rig.start().await;
    let expected = "guard is not used: others may write to ";
    let meanwhile = "; pre_dispatch is denied meanwhile";
    let banner = rig.process().output();
    assert!(banner.contains("\n  refused    hook ") && banner.contains(expected), "{banner}");
    assert!(banner.contains(meanwhile), "{banner}");
    let hello = denied(&rig, "hello").await;
    assert_eq!(says(&rig, "ann", "/stop", 1).await, "Nothing is running.");
    for looks in [["status"].as_slice(), &["hooks", "list"], &["doctor", "--offline"]] {
        let (_, output) = run(rig.home.path(), looks).await;
        assert!(output.contains(expected) && output.contains(meanwhile), "{looks:?}: {output}");
    }
    let (_, output) = run(rig.home.path(), &["status", "--json"]).await;
    let status: Value = serde_json::from_str(&output).unwrap();
    let [refused] = status["refused_hooks"].as_array().unwrap().as_slice() else {
        panic!("{status}")
    };
    assert_eq!((&refused["name"], &refused["denies"]), (&json!("guard"), &json!(["pre_dispatch"])));
    rig.end().await;
    let (_, output) = run(rig.home.path(), &["why", &hello]).await;
    let why = "ignored: the hook guard denies what it cannot decide: it is refused";
    assert!(output.contains(why), "{output}");
    assert!(!rig.home.file("hooks/guard/ran").exists(), "it was run");
}

#[tokio::test]
async fn a_guard_that_is_no_yaml_denies_every_command_but_those_that_act_at_once() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    hook(&rig.home, "hooks/guard/HOOK.yaml", "events: ['command:new'\non_failure: deny\n");
    hook(&rig.home, "hooks/guard/handler", "#!/bin/sh\n");
    rig.start().await;
    let banner = rig.process().output();
    assert!(banner.contains("everything that hooks are asked about is denied"), "{banner}");
    denied(&rig, "/help").await;
    assert_eq!(says(&rig, "ann", "/stop", 1).await, "Nothing is running.");
    rig.end().await;
    rig.vendor.read(|truth| assert_eq!(truth.shown_in("ann").count(), 1));
}
