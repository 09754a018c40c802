//! Going back to a backup brings nothing back that was used, revoked or ended since it was taken.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use reqwest::StatusCode;
use talaria_testkit::{Asked, Home, Reply, ScriptedCall, Truth, VendorSettings};

use crate::rig::{Rig, run};

const ANN: &str = "ann";
const EVE: &str = "eve";

/// A model that runs a program whenever it is asked to note something, and says what came of it.
fn wants(asked: &Asked) -> Reply {
    match asked.returned() {
        Some(came) => Reply::Says(format!("It came to this: {came}")),
        None if asked.said().contains("note it") => {
            let arguments = r#"{"name":"note","args":["noted"]}"#.to_owned();
            let call = ScriptedCall { tool: "run_program".into(), arguments };
            Reply::Calls(String::new(), vec![call])
        }
        None => Reply::Says(format!("You said {:?}.", asked.said())),
    }
}

/// A gateway where two are on a list, others are let in by a code, and everybody is asked before a program
/// runs.
struct Place {
    rig: Rig,
    backups: Home,
}

impl Place {
    async fn new() -> Self {
        let backups = Home::empty().unwrap();
        let program = backups.file("note");
        let text = format!("#!/bin/sh\necho \"$@\" >> {}\n", backups.file("runs").display());
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let sections = format!(
            "agent:\n  busy_ack_enabled: false\n  programs:\n    note: {{program: {}, about: keeps a \
             note, free_arguments: true, always: true}}\n",
            program.display()
        );
        let account =
            ["buttons: 4", "allow: [ann-person, eve-person]", "unauthorized_dm_behavior: pair"];
        let mut rig = Rig::configured(VendorSettings::default(), &account, &sections).await;
        let written = fs::read_to_string(rig.home.file("config.yaml")).unwrap();
        let closed = written.replace("    allow_everyone: true\n", "");
        rig.home.write("config.yaml", &closed).unwrap();
        rig.llm.script(wants);
        rig.start().await;
        Self { rig, backups }
    }

    fn ran(&self) -> usize {
        fs::read_to_string(self.backups.file("runs")).unwrap_or_default().lines().count()
    }

    async fn done(&self, arguments: &[&str]) -> String {
        let (ended, output) = run(self.rig.home.path(), arguments).await;
        assert!(ended.success(), "{arguments:?}: {output}");
        output
    }

    async fn refused(&self, arguments: &[&str]) -> String {
        let (ended, output) = run(self.rig.home.path(), arguments).await;
        assert!(!ended.success(), "{arguments:?}: {output}");
        output
    }

    fn backup(&self) -> String {
        self.backups.file("backup.tar.gz").to_str().unwrap().to_owned()
    }

    /// What was shown in a chat with these words in it.
    fn shown(&self, chat: &str, words: &str) -> Vec<String> {
        self.rig.vendor.read(|truth| {
            let texts = truth.shown_in(chat).map(|shown| shown.text.clone());
            texts.filter(|text| text.contains(words)).collect()
        })
    }

    /// Says something and waits until these words are shown in the chat once more.
    async fn says(&self, chat: &str, text: &str, words: &str) -> String {
        let before = self.shown(chat, words).len();
        self.rig.vendor.say_plainly(chat, text);
        self.told(chat, words, before + 1).await
    }

    async fn told(&self, chat: &str, words: &str, times: usize) -> String {
        let enough = |truth: &Truth| {
            truth.shown_in(chat).filter(|shown| shown.text.contains(words)).count() >= times
        };
        self.rig.until(&format!("{words:?} in {chat}"), enough).await;
        self.shown(chat, words).pop().unwrap()
    }

    /// Somebody is let in by a code that is handed on to them.
    async fn lets_in(&self, who: &str) {
        let issued = self.issued().await;
        self.says(who, &issued, "Paired!").await;
    }

    async fn issued(&self) -> String {
        self.done(&["pair", "issue", "bench"]).await.trim_start().chars().take(8).collect()
    }

    /// Asks for the program: the choices that are offered.
    async fn asks(&self, chat: &str) -> Vec<(String, String)> {
        self.says(chat, "note it", "May I call").await;
        self.rig.vendor.read(|truth| {
            let asked = truth.shown_in(chat).filter(|shown| !shown.choices.is_empty()).last();
            let choices = asked.unwrap().choices.iter();
            choices.map(|choice| (choice.label.clone(), choice.id.clone())).collect()
        })
    }

    fn press(&self, chat: &str, choices: &[(String, String)], label: &str) {
        let (_, id) = choices.iter().find(|(known, _)| known == label).unwrap();
        self.rig.vendor.press(chat, id);
    }

    async fn browser(&mut self) -> Browser {
        let address = self.rig.process().address().await;
        Browser { client: reqwest::Client::builder().no_proxy().build().unwrap(), address }
    }

    async fn link(&self) -> String {
        self.done(&["open"]).await.trim().rsplit_once("#login=").unwrap().1.to_owned()
    }
}

/// Somebody with the page before them.
struct Browser {
    client: reqwest::Client,
    address: String,
}

impl Browser {
    /// The cookie that a link is good for.
    async fn login(&self, link: &str) -> Result<String, StatusCode> {
        let body = format!(r#"{{"token":"{link}"}}"#);
        let login = self.client.post(format!("{}/api/login", self.address));
        let answer = login.header("content-type", "application/json").body(body).send();
        let answer = answer.await.unwrap();
        let Some(cookie) = answer.headers().get("set-cookie") else { return Err(answer.status()) };
        let cookie = cookie.to_str().unwrap().split(';').next().unwrap();
        Ok(cookie.split_once('=').unwrap().1.to_owned())
    }

    async fn status(&self, cookie: &str) -> StatusCode {
        // A cookie is named after the port, which is another one after each start.
        let (_, port) = self.address.rsplit_once(':').unwrap();
        let state = self.client.get(format!("{}/api/state", self.address));
        let state = state.header("cookie", format!("talaria-login-{port}={cookie}"));
        state.send().await.unwrap().status()
    }
}

#[tokio::test]
async fn what_was_used_revoked_or_ended_since_a_backup_stays_so() {
    let mut place = Place::new().await;
    for guest in ["ben", "cleo"] {
        place.lets_in(guest).await;
    }
    let asked = place.says("dora", "hello", "pairing code").await;
    let given: String =
        asked.split_once("talaria pair approve bench").unwrap().1.trim_start()[..8].to_owned();
    let issued = place.issued().await;
    let open = place.asks(ANN).await;
    let always = place.asks(EVE).await;
    place.press(EVE, &always, "Always approve exactly this");
    place.told(EVE, "It came to this", 1).await;
    assert_eq!(place.ran(), 1);
    let (link, unused) = (place.link().await, place.link().await);
    let browser = place.browser().await;
    let cookie = browser.login(&link).await.unwrap();
    assert_eq!(browser.status(&cookie).await, StatusCode::OK);
    place.done(&["backup", "create", "--to", &place.backup()]).await;

    // Everything is used, revoked or decided after that.
    place.done(&["pair", "approve", "bench", &given]).await;
    place.says("fay", &issued, "Paired!").await;
    place.done(&["pair", "revoke", "bench", "ben-person"]).await;
    let granted = place.done(&["approvals", "list"]).await;
    place.done(&["approvals", "revoke", granted.split_whitespace().next().unwrap()]).await;
    place.press(ANN, &open, "Deny");
    place.told(ANN, "It came to this", 1).await;
    let verified = place.done(&["audit", "--verify"]).await;
    let mark = verified.split_once("Mark: ").unwrap().1.lines().next().unwrap().to_owned();
    place.rig.kill().await;
    place.rig.start().await;
    let browser = place.browser().await;
    assert_eq!(browser.status(&cookie).await, StatusCode::OK, "a login outlasts a restart");
    place.rig.kill().await;

    let output = place.done(&["backup", "restore", &place.backup()]).await;
    let void = "Void: pairing codes and requests (2), open approvals (1), lasting approvals (1).";
    assert!(output.contains(void), "{output}");
    assert!(output.contains("so they stay out:\n    bench:ben-person"), "{output}");
    assert!(!output.contains("not known"), "{output}");
    place.rig.start().await;

    // The question of then has come to its end, and its buttons approve nothing.
    place.told(ANN, "nobody answered in time", 1).await;
    place.told(ANN, "It came to this", 2).await;
    for label in ["Approve once", "Approve in this conversation", "Always approve exactly this"] {
        place.press(ANN, &open, label);
    }
    place.says(ANN, "still there?", "You said \"still there?\"").await;
    // What was approved for good is asked about again.
    let again = place.asks(EVE).await;
    place.press(EVE, &again, "Deny");
    place.told(EVE, "It came to this", 2).await;
    assert_eq!(place.ran(), 1, "{}", place.rig.vendor.transcript());
    // No code lets anybody in.
    place.refused(&["pair", "approve", "bench", &given]).await;
    place.rig.vendor.say_plainly("gus", &issued);
    // Who was put out is a stranger, who was not is heard.
    place.says("ben", "hello again", "pairing code").await;
    place.says("cleo", "hello again", "You said \"hello again\"").await;
    place.says(ANN, "and now?", "You said \"and now?\"").await;
    assert!(place.shown("gus", "Paired!").is_empty() && place.shown("ben", "You said").is_empty());
    let listed = place.done(&["pair", "list", "--json"]).await;
    let list: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let guests = list[0]["guests"].as_array().unwrap();
    assert_eq!(guests.len(), 1, "{listed}");
    assert_eq!(guests[0]["sender"], "cleo-person", "{listed}");
    // Nobody is logged in, and no link of before is good.
    let browser = place.browser().await;
    assert_eq!(browser.status(&cookie).await, StatusCode::UNAUTHORIZED);
    assert_eq!(browser.login(&unused).await, Err(StatusCode::UNAUTHORIZED));
    let cookie = browser.login(&place.link().await).await.unwrap();
    assert_eq!(browser.status(&cookie).await, StatusCode::OK);
    // Nothing was taken out of the record.
    place.done(&["audit", "--verify", "--seen", &mark]).await;
    let record = place.done(&["audit"]).await;
    assert!(record.contains("went_back") && record.contains("let in by the backup"), "{record}");
}

#[tokio::test]
async fn whom_a_backup_lets_in_is_said_where_nobody_knows_what_happened_since() {
    let mut place = Place::new().await;
    place.lets_in("ben").await;
    place.done(&["backup", "create", "--to", &place.backup()]).await;
    place.done(&["pair", "revoke", "bench", "ben-person"]).await;
    place.rig.end().await;
    fs::write(place.rig.home.file("state.db"), "destroyed").unwrap();
    let settings = fs::read_to_string(place.rig.home.file("config.yaml")).unwrap();
    let fewer = settings.replace("[ann-person, eve-person]", "[ann-person]");
    place.rig.home.write("config.yaml", &fewer).unwrap();

    let output = place.done(&["backup", "restore", &place.backup()]).await;
    assert!(output.contains("since the backup was taken is not known"), "{output}");
    assert!(output.contains("puts one out:\n    bench:ben-person"), "{output}");
    assert!(output.contains("were not by yours:\n    bench:eve-person"), "{output}");
    let record = place.done(&["audit", "--json"]).await;
    for subject in ["bench:ben-person", "bench:eve-person"] {
        assert!(record.contains(&format!("\"subject\": \"{subject}\"")), "{record}");
    }
    assert!(record.contains("whether they were put out since is not known"), "{record}");
    place.rig.start().await;
    place.says("ben", "hello", "You said \"hello\"").await;
}

#[tokio::test]
async fn a_backup_that_nobody_went_past_brings_back_everybody() {
    let mut place = Place::new().await;
    place.lets_in("ben").await;
    let always = place.asks(EVE).await;
    place.press(EVE, &always, "Always approve exactly this");
    place.told(EVE, "It came to this", 1).await;
    place.done(&["backup", "create", "--to", &place.backup()]).await;
    place.rig.end().await;
    let output = place.done(&["backup", "restore", &place.backup(), "--json"]).await;
    let told: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(told["void"]["since"], "known", "{output}");
    assert_eq!(told["void"]["put_out"], serde_json::json!([]), "{output}");
    assert_eq!(told["void"]["asked_again"], 0, "{output}");
    place.rig.start().await;
    place.says("ben", "hello", "You said \"hello\"").await;
    place.says(EVE, "note it", "It came to this").await;
    assert_eq!(place.ran(), 2, "what is still approved for good is not asked about");
}
