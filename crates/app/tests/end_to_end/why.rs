//! What became of each message: asked of the running gateway for all of them, and of the store.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use talaria_clock::{Clock, SystemClock};
use talaria_testkit::{Asked, Hold, Reply, Truth, VendorSettings, within};

use crate::questions::asks;
use crate::rig::{HANGS, Rig, insist, run};

/// How often it is looked.
const GLANCE: Duration = Duration::from_millis(20);

/// How many messages there are, of each kind.
const ANSWERED: usize = 40;
const IGNORED: usize = 460;
// More than an account writes down in a day.
const DENIED: usize = 1100;

async fn ask(client: &reqwest::Client, what: &str) -> Value {
    let url = reqwest::Url::parse_with_params("http://talaria/v1/why", [("what", what)]).unwrap();
    let answer = client.get(url).send().await.unwrap();
    let status = answer.status();
    let body = answer.text().await.unwrap();
    assert!(status.is_success(), "{what}: {status} {body}");
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn every_message_has_an_answer_to_why() {
    let settings = VendorSettings { redelivers: 20, ..VendorSettings::default() };
    let mut rig = Rig::new(settings, &["ignored_chats: [noise]"]).await;
    let written = std::fs::read_to_string(rig.home.file("config.yaml")).unwrap();
    let listed = written.replace("allow_everyone: true", "allow: [ann, ben]");
    assert_ne!(written, listed);
    rig.home.write("config.yaml", &listed).unwrap();
    rig.start().await;

    let mut expected: BTreeMap<String, &str> = BTreeMap::new();
    let mut newest = String::new();
    let mut say = |chat: &str, sender: &str, text: String, outcome: &'static str| {
        rig.vendor.happens(chat, &text, |event| {
            event.sender = sender.to_owned();
            event.kind = (chat == "noise").then_some("group");
            newest.clone_from(&event.id);
            expected.insert(event.id.clone(), outcome);
        });
        newest.clone()
    };
    for number in 0..IGNORED {
        say("noise", "ann", format!("noise \u{1b}[2J{number}"), "ignored");
    }
    let mut unwritten = String::new();
    for number in 0..DENIED {
        unwritten = say("mallory", "mallory", format!("let me in {number}"), "not let in");
    }
    say("ann", "ann", "/status".into(), "handled without a turn");
    for number in 0..ANSWERED {
        say("ben", "ben", format!("question {number}"), "answered");
    }
    let all = |truth: &Truth| truth.acked() == truth.happened();
    rig.until("every acknowledgement", all).await;
    let client = reqwest::Client::builder()
        .unix_socket(rig.home.file("gateway.sock"))
        .no_proxy()
        .build()
        .unwrap();
    // Repeats reach us with the next connection.
    rig.vendor.hang_up();

    let settled = async {
        for (id, expected) in &expected {
            loop {
                let told = ask(&client, id).await;
                let decision = &told["decisions"][0];
                let outcome = decision["outcome"].as_str().unwrap();
                if outcome == *expected {
                    assert!(decision["timeline"][0]["at"].is_string(), "{told}");
                    assert!(decision.get("text").is_none(), "{told}");
                    match outcome {
                        "ignored" | "not let in" => {
                            assert!(decision["reason"].is_string(), "{told}")
                        }
                        _ => {
                            let part = &decision["parts"][0];
                            assert!(part["message"].is_string(), "{told}");
                            assert!(part["settled"].is_string(), "{told}");
                            assert!(part["took_ms"].is_u64(), "{told}");
                        }
                    }
                    break;
                }
                // What waits its turn is answered in time.
                assert!(
                    ["waits to be read", "waits for its turn", "is being answered"]
                        .contains(&outcome)
                        || outcome.contains("under way"),
                    "{id}: {told}"
                );
                SystemClock.sleep(GLANCE).await;
            }
        }
    };
    within(HANGS * 3, "an answer for every message", settled).await;
    let repeated = async {
        while !ask(&client, &newest).await.to_string().contains("delivered again") {
            SystemClock.sleep(GLANCE).await;
        }
    };
    within(HANGS, "a repeat to be known", repeated).await;

    let (ended, output) = run(rig.home.path(), &["why", "bench:mallory"]).await;
    assert!(ended.success() && output.contains("on no list and not paired"), "{output}");
    assert!(!output.contains("let me in"), "{output}");
    let (ended, output) = run(rig.home.path(), &["why", "bench:noise", "--text"]).await;
    assert!(ended.success() && output.contains("noise \\u{1b}[2J4"), "{output}");
    assert!(!output.contains('\u{1b}'), "it reaches the terminal: {output:?}");
    let (ended, output) = run(rig.home.path(), &["why", "never-heard-of"]).await;
    assert_eq!(ended.code(), Some(1), "{output}");
    assert!(output.contains("nothing is known"), "{output}");

    rig.end().await;
    // One too many of that day to be in the journal, and nobody runs who remembers it.
    let (ended, output) = run(rig.home.path(), &["why", &unwritten]).await;
    assert!(
        ended.success() && output.contains("not let in: the sender is on no list and not paired"),
        "{output}"
    );
    assert!(output.contains("written down in short"), "{output}");
    let (ended, output) = run(rig.home.path(), &["why", &newest]).await;
    assert!(ended.success(), "{output}");
    assert!(output.contains("answered") && output.contains("delivered as message"), "{output}");
    let is_moment =
        |line: &str| line.contains(" ms  part ") && line.contains(" delivered as message");
    assert!(output.lines().any(is_moment), "{output}");
    let is_part = |line: &str| line.starts_with("    part ") && line.contains(" after ");
    assert!(output.lines().any(is_part), "{output}");
}

#[tokio::test]
async fn why_names_what_kept_somebody_from_an_answer() {
    let sections = "timezone: UTC\nbudgets: {guest: {messages: 1}}\n";
    let account = ["allow_admin_from: [zed]"];
    let mut rig = Rig::configured(VendorSettings::default(), &account, sections).await;
    rig.llm.script(|asked: &Asked| Reply::Says(format!("You said {:?}.", asked.said())));
    rig.start().await;
    let told = async |who: &str, text: &str, many: usize| {
        let mut id = String::new();
        rig.vendor.happens(who, text, |event| {
            event.sender = who.to_owned();
            id.clone_from(&event.id);
        });
        let shown = |truth: &Truth| truth.shown_in(who).count() >= many;
        rig.until("what somebody is told", shown).await;
        let known = async {
            loop {
                let (ended, output) = run(rig.home.path(), &["why", &id]).await;
                assert!(ended.success(), "{output}");
                assert!(!output.contains(text), "{output}");
                if !output.contains("under way") && !output.contains("is being answered") {
                    return output;
                }
                SystemClock.sleep(GLANCE).await;
            }
        };
        within(HANGS, "what is known", known).await
    };
    let output = told("ann", "/restart", 1).await;
    assert!(output.contains("a command that was refused: the command is for admin"), "{output}");
    let output = told("ann", "/nothing", 2).await;
    assert!(output.contains("handled without a turn: there is no such command"), "{output}");
    let output = told("ann", "one", 3).await;
    assert!(output.contains("→ answered\n"), "{output}");
    let output = told("ann", "another", 4).await;
    assert!(output.contains("no whole answer: a budget is used up"), "{output}");
    rig.end().await;

    // Nobody is let in any more, but whoever has a code.
    let written = std::fs::read_to_string(rig.home.file("config.yaml")).unwrap();
    let closed = written.replace("    allow_everyone: true\n", "");
    assert_ne!(closed, written);
    rig.home.write("config.yaml", &closed).unwrap();
    rig.start().await;
    let told = async |text: &str| {
        let mut id = String::new();
        rig.vendor.happens("mallory", text, |event| {
            event.sender = "mallory".to_owned();
            id.clone_from(&event.id);
        });
        id
    };
    let knock = told("let me in").await;
    rig.until("a code", |truth: &Truth| truth.shown_in("mallory").count() == 1).await;
    let (ended, output) = run(rig.home.path(), &["why", &knock]).await;
    assert!(ended.success() && output.contains("on no list and not paired"), "{output}");
    assert!(output.contains("was given a code") && output.contains("part pairing_"), "{output}");
    let code = rig.vendor.read(|truth| truth.shown_in("mallory").next().unwrap().text.clone());
    let code = code.split('`').nth(1).unwrap().to_owned();
    let wrong = told("ABCD2345").await;
    let known = async {
        loop {
            let (_, output) = run(rig.home.path(), &["why", &wrong]).await;
            if output.contains("said a wrong code") || output.contains("was answered lately") {
                return output;
            }
            SystemClock.sleep(GLANCE).await;
        }
    };
    within(HANGS, "what is known", known).await;
    rig.end().await;
    // What is written down is known without a gateway, but never the code.
    let (ended, output) = run(rig.home.path(), &["why", &knock, "--text"]).await;
    assert!(ended.success() && output.contains("delivered as message"), "{output}");
    assert!(!output.contains(&code), "{output}");
}

/// What is said of the newest message in a chat, once these words are part of it.
async fn told(home: &Path, chat: &str, words: &str) -> String {
    let place = format!("bench:{chat}");
    let mut last = String::new();
    let looking = async {
        loop {
            let (ended, output) = run(home, &["why", &place]).await;
            last.clone_from(&output);
            if ended.success() && output.contains(words) {
                return output;
            }
            SystemClock.sleep(GLANCE).await;
        }
    };
    let found = tokio::time::timeout(HANGS, looking).await;
    found.unwrap_or_else(|_| panic!("in vain: {words:?} about {chat}\n{last}"))
}

#[tokio::test]
async fn a_message_is_being_answered_only_while_somebody_answers_it() {
    let sections = "agent: {busy_input_mode: queue, busy_ack_enabled: false}\n\
                    limits: {turns_at_once: 1}\n";
    let mut rig = Rig::configured(VendorSettings::default(), &[], sections).await;
    rig.start().await;
    let home = rig.home.path().to_owned();
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    told(&home, "ann", "→ is being answered").await;
    rig.vendor.say("ben", "and I?");
    let output = told(&home, "ben", "→ waits for a place").await;
    assert!(output.contains("a place: behind 1 turn that works elsewhere"), "{output}");
    rig.vendor.say("cleo", "and I?");
    let output = told(&home, "cleo", "→ waits for a place").await;
    assert!(output.contains("behind 1 turn that works and 1 that waits elsewhere"), "{output}");
    rig.process().terminate().unwrap();
    within(HANGS, "the note in the log", rig.process().line(|line| line.contains("ending"))).await;
    rig.vendor.say("dora", "too late?");
    let goes_on = "→ its turn is in hand, and goes on at the next start";
    told(&home, "dora", &format!("{goes_on}: the gateway is ending")).await;
    told(&home, "ann", "→ is being answered").await;
    let ended = insist(rig.process()).await;
    assert_eq!(ended.code(), Some(1));
    // Nobody answers anybody.
    for chat in ["ann", "ben", "cleo", "dora"] {
        told(&home, chat, goes_on).await;
    }
    rig.llm.hold(Hold::Never);
    rig.start().await;
    rig.until_everything_is_answered().await;
    told(&home, "ann", "→ answered\n").await;
    rig.end().await;
}

#[tokio::test]
async fn a_turn_that_asks_somebody_waits_for_them_with_a_gateway_and_without() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.llm.script(asks);
    rig.start().await;
    let home = rig.home.path().to_owned();
    rig.vendor.say_plainly("ann", "paint it");
    told(&home, "ann", "→ waits for a person: its question is not answered yet").await;
    rig.end().await;
    told(&home, "ann", "→ waits for a person, and for the next start").await;
}

#[tokio::test]
async fn what_is_said_later_about_a_message_is_part_of_its_record() {
    let sections =
        "agent: {busy_input_mode: queue, busy_ack_enabled: false, restart_drain_timeout: 1}\n";
    let account = ["allow_admin_from: [ann-person, cleo]"];
    let mut rig = Rig::configured(VendorSettings::default(), &account, sections).await;
    rig.start().await;
    let home = rig.home.path().to_owned();
    let delivered = |output: &str| {
        let is_part =
            |line: &&str| line.contains("    part ") && line.contains("delivered as message");
        output.lines().filter(is_part).count()
    };
    // A command whose answer has to be found out.
    rig.vendor.say_plainly("ann", "/search heron");
    let output = told(&home, "ann", " delivered as message").await;
    assert!(output.contains("→ handled without a turn"), "{output}");
    assert!(output.contains("the gateway answered as") && delivered(&output) == 1, "{output}");

    // A turn that an end cuts off.
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ben", "hello");
    rig.llm.until_requests(1).await;
    rig.process().terminate().unwrap();
    let ended = within(HANGS, "the end", rig.process().ended()).await.unwrap();
    assert!(ended.success(), "{ended}");
    let output =
        told(&home, "ben", "goes on at the next start: an end of the gateway left it").await;
    assert!(output.contains("left by an end of the gateway, told as"), "{output}");
    assert_eq!(delivered(&output), 1, "{output}");
    rig.llm.hold(Hold::Never);
    rig.start().await;
    rig.until_everything_is_answered().await;
    let output = told(&home, "ben", "→ answered\n").await;
    let place = |words: &str| output.find(words).unwrap_or_else(|| panic!("{words}: {output}"));
    assert!(place("left by an end") < place("taken up again"), "{output}");
    assert!(place("taken up again") < place("the model answered"), "{output}");
    assert_eq!(delivered(&output), 2, "{output}");

    // A restart that somebody asked for.
    rig.vendor.happens("cleo", "/restart", |event| event.sender = "cleo".into());
    let back = |truth: &Truth| truth.shown_in("cleo").any(|shown| shown.text.contains("I am back"));
    rig.until("it to be back", back).await;
    let output = told(&home, "cleo", " delivered as message").await;
    assert!(output.contains("→ handled without a turn"), "{output}");
    assert!(output.contains("the gateway answered as"), "{output}");
    rig.end().await;
}

#[tokio::test]
async fn a_message_that_is_answered_with_the_rest_of_what_its_sender_said_is_answered() {
    let sections = "agent: {busy_input_mode: interrupt, busy_ack_enabled: false}\n";
    let mut rig = Rig::configured(VendorSettings::default(), &[], sections).await;
    rig.llm.script(|asked: &Asked| Reply::Says(format!("You said {:?}.", asked.said())));
    rig.start().await;
    let home = rig.home.path().to_owned();
    let mut first = String::new();
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.happens("ann", "one", |event| first.clone_from(&event.id));
    rig.llm.until_requests(1).await;
    rig.vendor.say_plainly("ann", "two");
    rig.llm.until_requests(2).await;
    told(&home, "ann", "→ is being answered").await;
    let (ended, output) = run(&home, &["why", &first]).await;
    assert!(ended.success() && output.contains("→ is being answered"), "{output}");
    rig.llm.hold(Hold::Never);
    told(&home, "ann", "→ answered\n").await;
    let (ended, output) = run(&home, &["why", &first]).await;
    assert!(ended.success() && output.contains("→ answered\n"), "{output}");
    rig.end().await;
}
