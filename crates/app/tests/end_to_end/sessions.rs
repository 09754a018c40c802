//! What was said, from the command line: the running gateway tells it, or the store when none runs.

use serde_json::Value;
use talaria_testkit::{Asked, Reply, VendorSettings};

use crate::rig::{Rig, run};

/// A model that says what it was told, quoted.
fn quotes(asked: &Asked) -> Reply {
    Reply::Says(format!("You said {:?}.", asked.said()))
}

async fn rig() -> Rig {
    let mut rig = Rig::as_installed(VendorSettings::default(), &[]).await;
    rig.llm.script(quotes);
    rig.start().await;
    rig
}

/// Runs a command that succeeds, and gives back what it printed.
async fn done(rig: &Rig, arguments: &[&str]) -> String {
    let (ended, output) = run(rig.home.path(), arguments).await;
    assert!(ended.success(), "{arguments:?}: {output}");
    output
}

async fn json(rig: &Rig, arguments: &[&str]) -> Value {
    let output = done(rig, arguments).await;
    serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
}

#[tokio::test]
async fn conversations_are_told_the_same_whether_a_gateway_runs_or_not() {
    let mut rig = rig().await;
    done(&rig, &["chat", "the heron flies at dawn"]).await;
    done(&rig, &["chat", "--conversation", "garden", "plant the quinces"]).await;
    done(&rig, &["chat", "--conversation", "garden", "/new"]).await;
    done(&rig, &["chat", "--conversation", "garden", "water the medlars"]).await;
    for said in ["/search quinces", "/search quinces", "/branch"] {
        done(&rig, &["chat", said]).await;
    }
    for running in [true, false] {
        let listed = json(&rig, &["sessions", "list", "--json"]).await;
        let titles: Vec<&str> = listed["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|session| session["title"].as_str().unwrap())
            .collect();
        assert_eq!(titles, ["the heron flies at dawn #2", "water the medlars"], "{running}");
        assert_eq!(listed["totals"]["sessions"], 4, "{listed}");
        assert_eq!(listed["totals"]["turns"], 3, "{listed}");
        let past = json(&rig, &["sessions", "list", "--past", "--json"]).await;
        assert_eq!(past["sessions"].as_array().unwrap().len(), 4);

        let shown = done(&rig, &["sessions", "show", "the heron flies at dawn"]).await;
        assert!(shown.contains("You said \"the heron flies at dawn\"."), "{shown}");
        assert!(shown.contains("used     1 turn,"), "{shown}");
        let earlier = json(&rig, &["sessions", "show", "plant the quinces", "--json"]).await;
        assert_eq!(earlier["session"]["over"], "somebody began anew");
        let id = earlier["session"]["id"].as_str().unwrap();
        let by_id = json(&rig, &["sessions", "show", id, "--json"]).await;
        assert_eq!(by_id, earlier);

        let listed = done(&rig, &["sessions", "list"]).await;
        assert!(
            listed.contains("4 conversations in all (--past lists earlier ones too), 3 turns"),
            "{listed}"
        );
        let nowhere = done(&rig, &["sessions", "list", "--account", "nowhere"]).await;
        assert_eq!(nowhere.trim(), "There are no conversations on nowhere.");

        let found = json(&rig, &["sessions", "search", "quinces", "--json"]).await;
        let kinds: Vec<&str> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found["entry"]["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds.len(), 2, "what commands answered is not found: {found}");
        assert!(kinds.contains(&"said") && kinds.contains(&"answered"), "{found}");
        let none = done(&rig, &["sessions", "search", "quinces", "--account", "bench"]).await;
        assert_eq!(none.trim(), "Nothing was found.");

        let (ended, refused) = run(rig.home.path(), &["sessions", "show", "walrus"]).await;
        assert!(!ended.success());
        assert!(refused.contains("there is no conversation called \"walrus\""), "{refused}");
        let (ended, refused) = run(rig.home.path(), &["sessions", "show", "20"]).await;
        assert!(!ended.success(), "every id begins like that");
        assert!(refused.contains("could be any of these"), "{refused}");
        if running {
            rig.end().await;
        }
    }
}

#[tokio::test]
async fn moments_are_told_as_the_clock_on_the_wall_shows_them() {
    let rig = rig().await;
    rig.home
        .write("config.yaml", &{
            let written = std::fs::read_to_string(rig.home.file("config.yaml")).unwrap();
            format!("{written}timezone: Pacific/Kiritimati\n")
        })
        .unwrap();
    done(&rig, &["chat", "/restart"]).await;
    done(&rig, &["chat", "the heron flies at dawn"]).await;
    let told = json(&rig, &["sessions", "list", "--json"]).await;
    let told = told["sessions"][0]["updated"].as_str().unwrap();
    assert!(told.ends_with('Z'), "programs are told in UTC: {told}");
    let at: jiff::Timestamp = told.parse().unwrap();
    let there = at.in_tz("Pacific/Kiritimati").unwrap().strftime("%Y-%m-%d %H:%M").to_string();
    let listed = done(&rig, &["sessions", "list"]).await;
    assert!(listed.contains(&there), "{there} in {listed}");
    let lives = done(&rig, &["chat", "/sessions"]).await;
    assert!(lives.contains(&there[..10]), "{there} in {lives}");
}

#[tokio::test]
async fn a_whole_conversation_is_written_as_lines_of_json_or_as_markdown() {
    let mut rig = rig().await;
    for n in 0..3 {
        done(&rig, &["chat", &format!("line number {n}")]).await;
    }
    done(&rig, &["chat", "/undo"]).await;
    let target = rig.home.file("out.md");
    for running in [true, false] {
        let lines = done(&rig, &["sessions", "export", "line number 0"]).await;
        let lines: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["session"]["title"], "line number 0");
        let texts: Vec<&str> =
            lines[1..].iter().map(|line| line["entry"]["text"].as_str().unwrap()).collect();
        assert_eq!(texts[..2], ["line number 0", "You said \"line number 0\"."]);
        assert!(!texts.contains(&"line number 2"), "it was taken back: {texts:?}");
        let all = done(&rig, &["sessions", "export", "line number 0", "--taken-back"]).await;
        assert!(all.contains("\"taken_back\":\"2"), "{all}");

        let path = target.to_str().unwrap();
        let arguments =
            ["sessions", "export", "line number 0", "--format", "markdown", "--output", path];
        done(&rig, &arguments).await;
        let page = std::fs::read_to_string(&target).unwrap();
        assert!(page.starts_with("# line number 0\n\n- id: `"), "{page}");
        assert!(page.contains("\nYou said \"line number 1\".\n"), "{page}");
        let (ended, _) = run(rig.home.path(), &arguments).await;
        assert!(!ended.success(), "what is there already is not overwritten");
        std::fs::remove_file(&target).unwrap();
        if running {
            rig.end().await;
        }
    }
}

#[tokio::test]
async fn a_conversation_is_renamed_and_stays_found() {
    let mut rig = rig().await;
    done(&rig, &["chat", "the first title"]).await;
    done(&rig, &["chat", "/new"]).await;
    done(&rig, &["chat", "another one"]).await;
    // One that its chat is not in any more, while the gateway runs.
    let renamed = done(&rig, &["sessions", "rename", "the first", "  Herons\n and quinces "]).await;
    assert!(renamed.contains("is called “Herons and quinces”."), "{renamed}");
    done(&rig, &["sessions", "show", "herons"]).await;
    rig.end().await;
    done(&rig, &["sessions", "rename", "another", "medlars"]).await;
    rig.start().await;
    let listed = json(&rig, &["sessions", "list", "--json"]).await;
    assert_eq!(listed["sessions"][0]["title"], "medlars");
    let (ended, refused) = run(rig.home.path(), &["sessions", "rename", "medlars", " "]).await;
    assert!(!ended.success());
    assert!(refused.contains("a title needs"), "{refused}");
}

#[tokio::test]
async fn what_is_old_is_forgotten_for_good_and_only_then() {
    let mut rig = rig().await;
    done(&rig, &["chat", "the first one"]).await;
    let young = done(&rig, &["sessions", "prune", "--older-than", "1h"]).await;
    assert_eq!(young.trim(), "There is nothing that old.");
    let in_memory = done(&rig, &["sessions", "prune", "--older-than", "0s"]).await;
    assert_eq!(in_memory.trim(), "There is nothing that old.", "a gateway has it in memory");
    rig.end().await;
    let looked =
        json(&rig, &["sessions", "prune", "--older-than", "0s", "--dry-run", "--json"]).await;
    assert_eq!((&looked["sessions"], &looked["dry_run"]), (&1.into(), &true.into()), "{looked}");
    assert_eq!(looked["some"][0]["title"], "the first one");
    done(&rig, &["sessions", "show", "the first"]).await;
    let forgotten = json(&rig, &["sessions", "prune", "--older-than", "0s", "--json"]).await;
    assert_eq!(forgotten["sessions"], 1, "{forgotten}");
    let (ended, _) = run(rig.home.path(), &["sessions", "show", "the first"]).await;
    assert!(!ended.success());
    // The chat goes on with a fresh conversation.
    rig.start().await;
    let answer = done(&rig, &["chat", "and again"]).await;
    assert!(answer.contains("and again"), "{answer}");
}

/// Anybody who may write can write what a terminal obeys: colours, another title, what is in the clipboard.
#[tokio::test]
async fn what_was_said_is_shown_and_not_obeyed() {
    let mut rig = Rig::as_installed(VendorSettings::default(), &[]).await;
    rig.start().await;
    let evil = "before\u{1b}[2J\u{9b}31m\u{1b}]52;c;eA==\u{7}\u{202e}after";
    rig.vendor.say_plainly("ann", evil);
    rig.until("an answer", |truth| truth.shown_in("ann").count() == 1).await;
    let listed = json(&rig, &["sessions", "list", "--json"]).await;
    let id = listed["sessions"][0]["id"].as_str().unwrap().to_owned();
    let is_obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    for command in [
        &["sessions", "show", &id][..],
        &["sessions", "show", &id, "--json"],
        &["sessions", "search", "after"],
        &["sessions", "export", &id],
        &["sessions", "list"],
    ] {
        let shown = done(&rig, command).await;
        assert!(shown.contains("after"), "{command:?}: {shown}");
        assert!(!shown.contains(is_obeyed), "{command:?}: {shown:?}");
    }
    let shown = json(&rig, &["sessions", "show", &id, "--json"]).await;
    let said = shown["entries"][0]["text"].as_str().unwrap();
    assert!(said.contains('\u{202e}'), "programs read what was said: {said:?}");
}
