//! A program is run only after a person has said yes to exactly that.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use talaria_testkit::{Asked, Reply, ScriptedCall, VendorSettings};

use crate::rig::{Rig, run};

/// A model that wants to run a program, once, and then says what came of it.
fn wants(asked: &Asked) -> Reply {
    match asked.returned() {
        None => Reply::Calls(
            String::new(),
            vec![ScriptedCall {
                tool: "run_program".into(),
                arguments: r#"{"name":"note","args":["; rm -rf /","$(id)"]}"#.into(),
            }],
        ),
        Some(answer) => Reply::Says(format!("It came to this: {answer}")),
    }
}

struct Place {
    rig: Rig,
    /// Where the program leaves a line each time it runs.
    runs: PathBuf,
    program: PathBuf,
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap().keep();
        let (program, runs) = (folder.join("note"), folder.join("runs"));
        let text = format!(
            "#!/bin/sh\nfor a in \"$@\"; do echo \"<$a>\"; done | tee -a {}\n",
            runs.display()
        );
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let sections = format!(
            "agent:\n  busy_ack_enabled: false\n  programs:\n    note: {{program: {}, about: keeps a \
             note, free_arguments: true, always: true}}\n",
            program.display()
        );
        let mut rig = Rig::configured(
            VendorSettings::default(),
            &["buttons: 4", "allow: [ann-person, ben-person]"],
            &sections,
        )
        .await;
        rig.llm.script(wants);
        rig.start().await;
        Self { rig, runs, program }
    }

    fn ran(&self) -> String {
        std::fs::read_to_string(&self.runs).unwrap_or_default()
    }

    async fn asks(&self, chat: &str) -> Vec<(String, String)> {
        self.rig.vendor.say_plainly(chat, "note it");
        let asks = |truth: &talaria_testkit::Truth| {
            truth
                .shown()
                .iter()
                .any(|shown| shown.chat == chat && shown.text.contains("May I call"))
        };
        self.rig.until("the question", asks).await;
        self.rig.vendor.read(|truth| {
            let shown = truth.shown();
            let asked = shown.iter().rfind(|shown| !shown.choices.is_empty()).unwrap();
            assert!(asked.text.contains(r#""; rm -rf /","$(id)""#), "{}", asked.text);
            asked.choices.iter().map(|choice| (choice.label.clone(), choice.id.clone())).collect()
        })
    }

    async fn press(&self, chat: &str, choices: &[(String, String)], label: &str) {
        let (_, id) = choices.iter().find(|(known, _)| known == label).unwrap();
        self.rig.vendor.press(chat, id);
        let came = |truth: &talaria_testkit::Truth| {
            truth
                .shown()
                .iter()
                .any(|shown| shown.chat == chat && shown.text.contains("It came to this"))
        };
        self.rig.until("the end", came).await;
    }
}

#[tokio::test]
async fn a_program_runs_after_a_yes_with_its_arguments_as_they_are() {
    let mut place = Place::new().await;
    let choices = place.asks("ann").await;
    assert_eq!(place.ran(), "");
    place.rig.kill().await;
    place.rig.start().await;
    place.press("ann", &choices, "Approve once").await;
    assert_eq!(place.ran(), "<; rm -rf />\n<$(id)>\n");
}

#[tokio::test]
async fn a_program_does_not_run_after_a_no_nor_when_it_is_another_by_then() {
    let place = Place::new().await;
    let choices = place.asks("ann").await;
    place.press("ann", &choices, "Deny").await;
    let choices = place.asks("ben").await;
    std::fs::write(&place.program, "#!/bin/sh\necho something else >> runs\n").unwrap();
    place.press("ben", &choices, "Approve once").await;
    assert_eq!(place.ran(), "");
    let told = place.rig.vendor.read(|truth| {
        truth.shown().iter().any(|shown| shown.text.contains("not what the person was asked about"))
    });
    assert!(told, "{}", place.rig.vendor.transcript());
}

#[tokio::test]
async fn what_the_operator_takes_back_while_somebody_thinks_is_not_done() {
    for (says, becomes, told) in [
        ("agent:\n", "approvals: {deny: [run_program]}\nagent:\n", "The operator does not let"),
        ("    note: {", "    other: {", "there is no program"),
    ] {
        let place = Place::new().await;
        let choices = place.asks("ann").await;
        let home = &place.rig.home;
        let before = std::fs::read_to_string(home.file("config.yaml")).unwrap();
        home.write("config.yaml", &before.replace(says, becomes)).unwrap();
        let (ended, output) = run(home.path(), &["reload"]).await;
        assert!(ended.success(), "{output}");
        place.press("ann", &choices, "Approve once").await;
        assert_eq!(place.ran(), "", "{becomes}");
        let is_told = place
            .rig
            .vendor
            .read(|truth| truth.shown().iter().any(|shown| shown.text.contains(told)));
        assert!(is_told, "{}", place.rig.vendor.transcript());
        let (_, recorded) = run(home.path(), &["audit"]).await;
        let denied = recorded.lines().filter(|line| line.contains("denied")).count();
        assert_eq!(denied, 1, "it is on record: {recorded}");
    }
}

#[tokio::test]
async fn what_is_approved_for_good_is_listed_and_can_be_revoked() {
    let place = Place::new().await;
    let choices = place.asks("ann").await;
    place.press("ann", &choices, "Always approve exactly this").await;
    let once = place.ran();
    place.rig.vendor.say_plainly("ann", "and again");
    let twice = |truth: &talaria_testkit::Truth| {
        truth.shown().iter().filter(|shown| shown.text.contains("It came to this")).count() == 2
    };
    place.rig.until("the second answer", twice).await;
    assert_eq!(place.ran(), format!("{once}{once}"), "nobody was asked");
    let home = place.rig.home.path();
    let (ended, listed) = run(home, &["approvals", "list"]).await;
    assert!(ended.success() && listed.contains("run_program, for"), "{listed}");
    let id = listed.split_whitespace().next().unwrap();
    let (ended, revoked) = run(home, &["approvals", "revoke", &id[..12]]).await;
    assert!(ended.success() && revoked.contains("asked about again"), "{revoked}");
    let (_, listed) = run(home, &["approvals", "list"]).await;
    assert!(listed.contains("Nothing was approved for good."), "{listed}");
}

#[tokio::test]
async fn a_program_that_others_can_change_is_refused_with_its_line() {
    let place = Place::new().await;
    std::fs::set_permissions(&place.program, std::fs::Permissions::from_mode(0o777)).unwrap();
    let (ended, told) = run(place.rig.home.path(), &["config", "check"]).await;
    assert!(!ended.success() && told.contains("agent.programs.note.program"), "{told}");
    assert!(told.contains("can be changed by others"), "{told}");
}

#[tokio::test]
async fn why_tells_who_approved_what_a_message_led_to() {
    let place = Place::new().await;
    let choices = place.asks("ann").await;
    let home = place.rig.home.path();
    let (ended, waits) = run(home, &["why", "bench:ann"]).await;
    assert!(ended.success() && waits.contains("somebody was asked to approve it"), "{waits}");
    assert!(waits.contains("→ waits for a person: somebody has to approve it"), "{waits}");
    place.press("ann", &choices, "Approve once").await;
    let (ended, told) = run(home, &["why", "bench:ann"]).await;
    assert!(ended.success(), "{told}");
    for part in ["approval asked for by bench:", "approved by bench:", "run_program", ", once"] {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert!(!told.contains("rm -rf") && !told.contains("note it"), "{told}");
}
