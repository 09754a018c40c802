//! One person from two identities, with one budget, through kill -9 and a reload, with the real binary.

use talaria_testkit::{Asked, Reply, ScriptedCall, Truth, VendorSettings};

use crate::rig::{Rig, run};

fn sections(messages: u32) -> String {
    format!(
        "timezone: UTC\n\
         people: {{ann: {{identities: [bench/ann, bench/annie], role: family}}}}\n\
         roles: {{family: {{tools: [ask], models: [], budget: {{messages: {messages}}}}}}}\n\
         budgets: {{guest: {{messages: 1}}}}\n"
    )
}

/// What is told to somebody who says this, once it is so much.
async fn says(rig: &Rig, who: &str, text: &str, many: usize) -> String {
    rig.vendor.happens(who, text, |event| event.sender = who.into());
    let chat = who.to_owned();
    let shown = move |truth: &Truth| truth.shown_in(&chat).count() >= many;
    rig.until("what somebody is told", shown).await;
    rig.vendor.read(|truth| truth.shown_in(who).map(|shown| shown.text.clone()).last().unwrap())
}

async fn done(rig: &Rig, arguments: &[&str]) -> String {
    let (ended, output) = run(rig.home.path(), arguments).await;
    assert!(ended.success(), "{arguments:?}: {output}");
    output
}

#[tokio::test]
async fn a_person_has_one_budget_on_all_their_identities_whatever_happens_to_the_process() {
    let account = ["allow: [ann, annie]"];
    let mut rig = Rig::configured(VendorSettings::default(), &account, &sections(2)).await;
    rig.llm.script(|asked: &Asked| Reply::Says(format!("You said {:?}.", asked.said())));
    rig.start().await;
    assert!(says(&rig, "ann", "one", 1).await.contains("one"));
    assert!(says(&rig, "annie", "two", 1).await.contains("two"));
    let asked = rig.llm.requests();
    let told = says(&rig, "ann", "three", 2).await;
    assert!(told.starts_with("Your budget of 2 messages a day is used up: 2 today."), "{told}");
    assert_eq!(rig.llm.requests(), asked, "no model was asked");
    assert!(says(&rig, "zoe", "me too", 1).await.contains("me too"), "a guest has one");
    assert!(says(&rig, "zoe", "and again", 2).await.starts_with("Your budget of 1 message a day"));

    rig.kill().await;
    let offline = done(&rig, &["people"]).await;
    assert!(offline.contains("bench/ann, bench/annie"), "{offline}");
    rig.start().await;
    let told = says(&rig, "annie", "four", 2).await;
    assert!(told.starts_with("Your budget of 2 messages"), "{told}");
    let listed = done(&rig, &["people"]).await;
    for part in ["ann", "family", "2 messages", "bench/ann, bench/annie", "bench/zoe"] {
        assert!(listed.contains(part), "{listed}");
    }
    let json = done(&rig, &["people", "--json"]).await;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["people"][0]["today"]["messages"], 2, "{json}");
    assert_eq!(json["people"][0]["budget"]["messages"], 2, "{json}");

    let written = std::fs::read_to_string(rig.home.file("config.yaml")).unwrap();
    let more = written.replace(&sections(2), &sections(3));
    assert_ne!(more, written);
    rig.home.write("config.yaml", &more).unwrap();
    done(&rig, &["reload"]).await;
    let told = says(&rig, "ann", "/whoami", 3).await;
    assert!(told.contains("I know you as ann, whose role is family."), "{told}");
    assert!(told.contains("Left of your budget today: 1 of 3 messages."), "{told}");
    assert!(says(&rig, "ann", "five", 4).await.contains("five"));
    let told = says(&rig, "ann", "/model fake/other", 5).await;
    assert_eq!(told, "Your role does not let you choose `fake/other`.");
    rig.end().await;
}

#[tokio::test]
async fn a_tool_that_a_role_does_not_name_is_neither_offered_nor_called() {
    let account = ["allow: [ann]"];
    let mut rig = Rig::configured(VendorSettings::default(), &account, &sections(9)).await;
    rig.llm.script(|asked: &Asked| match asked.returned() {
        None => {
            let arguments = r#"{"query":"secrets"}"#.into();
            let call = ScriptedCall { tool: "session_search".into(), arguments };
            Reply::Calls(String::new(), vec![call])
        }
        Some(answer) => Reply::Says(answer),
    });
    rig.start().await;
    let told = says(&rig, "ann", "search", 1).await;
    assert!(told.contains("does not let them use this tool"), "{told}");
    let request: serde_json::Value = serde_json::from_slice(&rig.llm.last_request()).unwrap();
    let offered: Vec<_> =
        request["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(offered, ["ask"]);
    let told = says(&rig, "zoe", "search", 1).await;
    assert!(!told.contains("does not let them use this tool"), "{told}");
    rig.end().await;
}
