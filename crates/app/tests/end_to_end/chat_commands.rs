//! Commands that only the program around the gateway can carry out, given in a chat.

use std::os::unix::fs::PermissionsExt;

use talaria_testkit::{Asked, Clutter, FakeLlm, GatewayProcess, Home, Launch, Reply, Vendor};
use talaria_testkit::{VendorSettings, within};

use crate::rig::{HANGS, binary, run};

struct Place {
    home: Home,
    process: GatewayProcess,
    llm: FakeLlm,
    vendor: Vendor,
}

impl Place {
    async fn with(sections: &str) -> Self {
        let vendor = Vendor::open(VendorSettings::default()).await.unwrap();
        let llm = FakeLlm::open().await.unwrap();
        llm.script(|asked: &Asked| Reply::Says(format!("You said {:?}.", asked.said())));
        let clutter = Clutter { sections, ..Clutter::default() };
        let home = Home::new(vendor.address(), &llm.base_url(), clutter).unwrap();
        let mut process = Launch::new(binary()).start(home.path()).unwrap();
        within(HANGS, "the ready line", process.ready()).await.unwrap();
        Self { home, process, llm, vendor }
    }

    async fn says(&self, text: &str) -> String {
        let (ended, output) = run(self.home.path(), &["chat", text]).await;
        assert!(ended.success(), "{text}: {output}");
        output
    }

    fn configure(&self, change: impl FnOnce(String) -> String) {
        let written = std::fs::read_to_string(self.home.file("config.yaml")).unwrap();
        self.home.write("config.yaml", &change(written)).unwrap();
    }
}

#[tokio::test]
async fn a_command_of_the_configuration_runs_a_program_or_stands_for_a_text() {
    let place = Place::with(
        "quick_commands:\n  \
           greet: {type: exec, command: echo 'hello there', help: says hello}\n  \
           keys: {type: exec, command: 'echo $0 token-of-the-vendor; env', shell: true}\n  \
           short: {type: alias, target: Be short}\n\
         agent: {instructions: x}\n",
    )
    .await;
    assert_eq!(place.says("/greet").await, "```\nhello there\n```");
    assert_eq!(place.says("/greet $(id)").await, "```\nhello there\n```");
    let printed = place.says("/keys").await;
    assert!(!printed.contains("TALARIA_HOME"), "the environment is not passed on: {printed}");
    assert!(place.says("/short please").await.contains("Be short please"));
    let help = place.says("/help").await;
    assert!(help.contains("/greet") && help.contains("says hello"), "{help}");
}

#[tokio::test]
async fn the_configuration_is_read_again_and_the_models_with_it() {
    let place = Place::with("").await;
    let models = place.says("/model").await;
    assert!(models.contains("fake/test-model"), "{models}");
    place.configure(|written| written.replace("fake/test-model", "fake/other-model"));
    let reloaded = place.says("/reload").await;
    assert!(reloaded.contains("model: fake/test-model → fake/other-model"), "{reloaded}");
    assert!(place.says("/model").await.contains("fake/other-model"));
    place.configure(|written| format!("{written}timezone: Nowhere\n"));
    let refused = place.says("/reload").await;
    assert!(refused.contains("stays as it was") && refused.contains("Nowhere"), "{refused}");
    assert!(place.says("still there?").await.contains("still there?"));
}

#[tokio::test]
async fn a_restart_that_would_not_come_back_is_refused() {
    let place = Place::with("").await;
    let ready = place.process.output().matches("is ready").count();
    for wrong in ["timezone: Nowhere\n", "fallback: [nobody/knows]\n"] {
        let mut right = String::new();
        place.configure(|written| {
            right.clone_from(&written);
            format!("{written}{wrong}")
        });
        let refused = place.says("/restart").await;
        assert!(refused.contains("I stay as I am"), "{refused}");
        assert!(refused.contains(wrong.split(':').next().unwrap()), "{refused}");
        assert!(place.says("still there?").await.contains("still there?"));
        place.configure(|_| right);
    }
    assert_eq!(place.process.output().matches("is ready").count(), ready);
    assert!(place.says("/restart").await.contains("back"));
}

#[tokio::test]
async fn who_is_heard_changes_without_a_restart() {
    let place = Place::with("").await;
    place.configure(|written| written.replace("allow_everyone: true", "allow: [1001]"));
    let reloaded = place.says("/reload").await;
    assert!(reloaded.contains("These apply at once") && reloaded.contains(".allow"), "{reloaded}");
    assert!(!reloaded.contains("/restart"), "{reloaded}");
    let heard = |chat: &str| {
        let chat = chat.to_owned();
        place.vendor.until(move |truth| truth.shown().iter().any(|shown| shown.chat == chat))
    };
    place.vendor.happens("from-bob", "hello", |event| event.sender = "1002".into());
    place.vendor.happens("from-ann", "hello", |event| event.sender = "1001".into());
    within(HANGS, "an answer to somebody on the list", heard("from-ann")).await;
    let strange =
        place.vendor.read(|truth| truth.shown().iter().any(|shown| shown.chat == "from-bob"));
    assert!(!strange, "somebody else is not heard any more");
    place.configure(|written| written.replace("allow: [1001]", "allow: [1001, 1002]"));
    place.says("/reload").await;
    place.vendor.happens("from-bob", "hello again", |event| event.sender = "1002".into());
    within(HANGS, "an answer to somebody new", heard("from-bob")).await;
    // The record has who let it apply, and what it was.
    let (_, record) = run(place.home.path(), &["audit"]).await;
    let row = record.lines().find(|line| line.contains("configuration")).unwrap_or_default();
    assert!(row.contains("terminal:operator") && row.contains("bench.allow"), "{record}");
    assert!(row.contains('→'), "{record}");
}

#[tokio::test]
async fn the_home_of_an_account_is_kept_for_nobody_else_to_read() {
    let place = Place::with("").await;
    let set = place.says("/sethome").await;
    assert!(set.contains("This chat is the home of its account."), "{set}");
    let file = place.home.file("homes.json");
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("\"terminal\""), "{written}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    place.says("/new").await;
    place.says("where is home?").await;
    let asked = String::from_utf8(place.llm.last_request()).unwrap();
    assert!(asked.contains("The home of terminal is chat terminal:main."), "{asked}");
    let (_, record) = run(place.home.path(), &["audit"]).await;
    assert!(record.contains("terminal:operator") && record.contains("home: main"), "{record}");
}

#[tokio::test]
async fn a_restart_keeps_the_process_and_everything_that_was_said() {
    let mut place = Place::with("").await;
    let before = place.process.pid();
    place.says("remember the heron").await;
    let ready = place.process.output().matches("is ready").count();
    let restarted = place.says("/restart").await;
    assert!(restarted.contains("back"), "{restarted}");
    assert!(place.process.output().matches("is ready").count() > ready);
    assert_eq!(place.process.pid(), before);
    let history = place.says("/history").await;
    assert!(history.contains("remember the heron"), "{history}");
    place.process.terminate().unwrap();
    let ended = within(HANGS, "the end", place.process.ended()).await.unwrap();
    assert!(ended.success(), "{ended}");
}
