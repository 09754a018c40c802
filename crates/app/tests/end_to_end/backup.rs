//! Backups of a home that is in use, and a process that dies while it goes back to one.

use std::fs;
use std::time::Duration;

use talaria_clock::{Clock, SystemClock};
use talaria_testkit::{Home, Launch, VendorSettings, within};

use crate::rig::{HANGS, Rig, binary, run};

#[tokio::test]
async fn a_backup_of_a_running_gateway_is_whole_and_holds_nothing_up() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    for chat in ["ann", "ben", "cleo"] {
        rig.vendor.say(chat, "hello");
    }
    rig.until_everything_is_answered().await;
    let folder = Home::empty().unwrap();
    let backup = folder.file("backup.tar.gz");
    let file = backup.to_str().unwrap();
    for round in 0..10 {
        rig.vendor.say("ann", &format!("again {round}"));
    }
    let (ended, output) = run(rig.home.path(), &["backup", "create", "--to", file]).await;
    assert!(ended.success(), "{output}");
    rig.until_everything_is_answered().await;
    let (ended, output) = run(rig.home.path(), &["backup", "verify", file]).await;
    assert!(ended.success() && output.contains("is whole"), "{output}");
    let (ended, output) = run(rig.home.path(), &["backup", "restore", file]).await;
    assert_eq!(ended.code(), Some(4), "{output}");
    assert!(output.contains("talaria stop"), "{output}");

    // Another machine: what was said is there, and so are the settings.
    let other = Home::empty().unwrap();
    let (ended, output) = run(other.path(), &["backup", "restore", file]).await;
    assert!(ended.success(), "{output}");
    let (ended, output) = run(other.path(), &["sessions", "list"]).await;
    assert!(ended.success(), "{output}");
    assert!(output.contains("3 conversations in all"), "{output}");
    let settings = |home: &Home| fs::read_to_string(home.file("config.yaml")).unwrap();
    assert_eq!(settings(&other), settings(&rig.home));
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn a_gateway_goes_on_from_a_backup() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    rig.end().await;
    let (ended, output) = run(rig.home.path(), &["backup", "create"]).await;
    assert!(ended.success(), "{output}");
    let backup = output.lines().find(|line| line.ends_with(".tar.gz")).unwrap().to_owned();
    fs::write(rig.home.file("state.db"), "destroyed").unwrap();
    rig.vendor.say("ann", "said while nobody listened");
    let (ended, output) = run(rig.home.path(), &["backup", "restore", &backup]).await;
    assert!(ended.success() && output.contains("replaced-"), "{output}");
    rig.start().await;
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn a_death_while_going_back_leaves_all_of_it_or_nothing() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    rig.end().await;
    for number in 0..200 {
        let name = format!("files/f{number}");
        fs::create_dir_all(rig.home.file("files")).unwrap();
        rig.home.write(&name, "before").unwrap();
    }
    let folder = Home::empty().unwrap();
    let backup = folder.file("backup.tar.gz");
    let file = backup.to_str().unwrap();
    let (ended, output) = run(rig.home.path(), &["backup", "create", "--to", file]).await;
    assert!(ended.success(), "{output}");
    let before = fs::read_to_string(rig.home.file("config.yaml")).unwrap();
    // How long it takes here, undisturbed.
    let begun = SystemClock.mark();
    let (ended, output) = run(rig.home.path(), &["backup", "restore", file]).await;
    assert!(ended.success(), "{output}");
    let whole = SystemClock.mark().since(begun);
    let mut went_back = Vec::new();
    for round in 0..13_u32 {
        let after = format!("{before}# changed {round}\n");
        rig.home.write("config.yaml", &after).unwrap();
        for number in 0..200 {
            rig.home.write(&format!("files/f{number}"), "after").unwrap();
        }
        let mut process = Launch::new(binary())
            .arguments(&["backup", "restore", file])
            .start(rig.home.path())
            .unwrap();
        // However far it came by then, all promises hold. The last round lets it finish.
        let died = match round {
            12 => HANGS,
            round => whole * round / 10,
        };
        let _ = tokio::time::timeout(died, process.ended()).await;
        within(HANGS, "its death", process.kill()).await.unwrap();
        // Any command finishes what was decided.
        let (ended, output) = run(rig.home.path(), &["sessions", "list"]).await;
        assert!(ended.success() && output.contains("1 conversation in all"), "{output}");
        let settings = fs::read_to_string(rig.home.file("config.yaml")).unwrap();
        let expected = if settings == before { "before" } else { "after" };
        assert!(settings == before || settings == after, "{settings}");
        for number in 0..200 {
            let text = fs::read_to_string(rig.home.file(&format!("files/f{number}"))).unwrap();
            assert_eq!(text, expected, "round {round}, file {number}");
        }
        went_back.push(settings == before);
    }
    assert_eq!((went_back.first(), went_back.last()), (Some(&false), Some(&true)), "{went_back:?}");
}

#[tokio::test]
async fn backups_taken_under_load_have_everything_that_was_acknowledged_before() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    let folder = Home::empty().unwrap();
    let mut said: Vec<String> = Vec::new();
    for round in 0..3 {
        let mut say = |number: usize| {
            let chat = format!("chat{}", number % 7);
            rig.vendor.happens(&chat, &format!("round {round}, {number}"), |event| {
                said.push(event.id.clone());
            });
        };
        (0..40).for_each(&mut say);
        rig.until("acknowledgements", |truth| truth.acked() == truth.happened()).await;
        let acknowledged = rig.vendor.read(talaria_testkit::Truth::happened);
        assert_eq!(acknowledged, said.len() as u64);
        // What is said meanwhile may be in it or not.
        let backup = folder.file(&format!("{round}.tar.gz"));
        let file = backup.to_str().unwrap();
        let known = said.clone();
        let talk = async {
            for number in 0..40 {
                rig.vendor.happens("meanwhile", &format!("and {number}"), |event| {
                    said.push(event.id.clone());
                });
                SystemClock.sleep(Duration::from_millis(1)).await;
            }
        };
        let arguments = ["backup", "create", "--to", file];
        let ((ended, output), ()) = tokio::join!(run(rig.home.path(), &arguments), talk);
        assert!(ended.success(), "{output}");
        let other = Home::empty().unwrap();
        let (ended, output) = run(other.path(), &["backup", "verify", file]).await;
        assert!(ended.success() && output.contains("is whole"), "{output}");
        let (ended, output) = run(other.path(), &["backup", "restore", file]).await;
        assert!(ended.success(), "{output}");
        for id in known.iter().rev().step_by(9) {
            let (ended, output) = run(other.path(), &["why", id]).await;
            assert!(ended.success() && output.contains("received as"), "{id}: {output}");
        }
    }
    rig.end().await;
}
