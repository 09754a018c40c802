//! What `talaria why` says of hooks: which of them did what, and nobody's words.

use serde_json::{Value, json};
use talaria_testkit::VendorSettings;

use super::{hook, python, says};
use crate::rig::{Rig, run};

#[tokio::test]
async fn why_names_the_hook_that_rewrote_decided_or_failed_also_when_the_gateway_is_gone() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    let manifest = "events: [pre_dispatch, 'command:help']\ntimeout: 10s\non_failure: deny\n";
    hook(&rig.home, "hooks/frail/HOOK.yaml", manifest);
    let frail = "#!/bin/sh\ncase $1 in command:help) exit 1;; esac\n\
                 if grep -q boom; then echo 'boom goes my password' >&2; exit 1; fi\n";
    hook(&rig.home, "hooks/frail/handler", frail);
    python(
        &rig.home,
        "gate",
        "events: [pre_dispatch, 'command:*']\ntimeout: 10s\n",
        "    if event_type == 'command:deploy':
        return {'decision': 'handled', 'message': 'Deployed'}
    if 'password' in context.get('text', ''):
        return {'action': 'rewrite', 'text': 'my ******'}",
    );
    rig.start().await;
    let mut ids = Vec::new();
    for (number, text) in ["my password", "boom", "/deploy", "/help"].into_iter().enumerate() {
        rig.vendor.happens("ann", text, |event| {
            event.sender = "ann".into();
            ids.push(event.id.clone());
        });
        // What was dropped is behind us when the next thing is answered.
        if text != "boom" {
            let many = number + usize::from(number == 0);
            rig.until("an answer", |truth| truth.shown_in("ann").count() >= many).await;
        }
    }
    assert_eq!(says(&rig, "ann", "/stop", 4).await, "Nothing is running.");
    rig.end().await;
    let rewrote = json!([{"hook": "gate", "did": "rewrote"}]);
    let failed = json!([{"hook": "frail", "did": "failed", "because": "it went wrong"}]);
    let handled = json!([{"hook": "gate", "did": "handled"}]);
    let cannot = "the hook frail denies what it cannot decide: it went wrong";
    for (id, hooks, reason, line) in [
        (&ids[0], &rewrote, None, "hook gate: rewrote it"),
        (&ids[1], &failed, Some(cannot), "hook frail: failed to decide: it went wrong"),
        (&ids[2], &handled, Some("the hook gate handled the command"), "hook gate: handled it"),
        (&ids[3], &failed, Some(cannot), "hook frail: failed to decide: it went wrong"),
    ] {
        let (ended, output) = run(rig.home.path(), &["why", id, "--json"]).await;
        assert!(ended.success(), "{output}");
        let told: Value = serde_json::from_str(&output).unwrap();
        let told = &told["decisions"][0];
        assert_eq!((&told["hooks"], told["reason"].as_str()), (hooks, reason), "{output}");
        let (_, output) = run(rig.home.path(), &["why", id]).await;
        assert!(output.contains(line) && !output.contains("password"), "{output}");
    }
}
