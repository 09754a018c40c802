//! One process per home, whatever takes its place, and with which word it ends.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use talaria_clock::{Clock, SystemClock};
use talaria_testkit::{GatewayProcess, Hold, Home, Launch, Pace, Truth, VendorSettings, within};
use tokio_util::sync::CancellationToken;

use crate::rig::{HANGS, Rig, binary, insist, run};

/// A home whose answers get so many seconds when the gateway is to end.
const HURRIED: &str =
    "agent: {busy_input_mode: queue, busy_ack_enabled: false, restart_drain_timeout: 1}\n";

/// A gateway that systemd seems to have started.
fn as_service() -> Launch {
    Launch::new(binary()).through(&["sh", "-c", "SYSTEMD_EXEC_PID=$$ exec \"$0\" \"$@\""])
}

fn send(process: &GatewayProcess, signal: Signal) {
    kill(Pid::from_raw(process.pid().try_into().unwrap()), signal).unwrap();
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// What the only gateway so far that has ended wrote down about that.
fn report(home: &Path) -> Value {
    let files = std::fs::read_dir(home.join("logs")).unwrap().map(|file| file.unwrap().path());
    let mut reports = files.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    json(&reports.next().unwrap())
}

/// How long a start takes at this moment.
async fn start_of_a_fresh_home() -> Duration {
    let home = Home::empty().unwrap();
    let mut process = Launch::new(binary()).start(home.path()).unwrap();
    within(HANGS, "ready", process.ready()).await.unwrap()
}

/// Starts a second gateway on the home and waits until it is the one that is heard.
async fn replace(rig: &mut Rig) -> GatewayProcess {
    let launch = rig.launch.clone().arguments(&["run", "--replace"]);
    let mut next = launch.start(rig.home.path()).unwrap();
    within(HANGS, "the ready line of the next one", next.ready()).await.unwrap();
    next
}

#[tokio::test]
async fn a_second_gateway_on_a_home_is_refused_and_told_who_has_it() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    let record = json(&rig.home.file("gateway.pid"));
    assert_eq!(record["pid"], rig.process().pid());
    assert_eq!(record["kind"], "talaria-gateway");
    assert_eq!(record["argv"][1], "run");
    assert_eq!(record["version"], env!("CARGO_PKG_VERSION"));
    assert!(record["start_time"].is_u64(), "{record}");
    // Whatever it starts inherits what it blocks, and could not be ended.
    let status = std::fs::read_to_string(format!("/proc/{}/status", rig.process().pid())).unwrap();
    assert!(status.contains("SigBlk:\t0000000000000000"), "{status}");

    let (ended, output) = run(rig.home.path(), &["run"]).await;
    assert_eq!(ended.code(), Some(4), "{output}");
    assert!(output.contains(&format!("process {}", rig.process().pid())), "{output}");
    assert!(output.contains("--replace"), "{output}");
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    rig.end().await;
    assert!(!rig.home.file("gateway.pid").exists());
    // Whoever is refused says why in the log of another, and nothing else.
    let log = std::fs::read_to_string(rig.home.file("logs/gateway.log")).unwrap();
    assert_eq!(log.matches("\"phase\":\"configuration\"").count(), 1, "{log}");
    assert_eq!(log.matches("it has not started").count(), 1, "{log}");
    assert!(log.contains("is already running on"), "{log}");
}

#[tokio::test]
async fn a_record_that_a_dead_gateway_left_is_nobody() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.kill().await;
    assert!(rig.home.file("gateway.pid").exists());
    // Whoever has the number now is left alone.
    let mut record = json(&rig.home.file("gateway.pid"));
    record["pid"] = std::process::id().into();
    rig.home.write("gateway.pid", &record.to_string()).unwrap();
    let (ended, output) = run(rig.home.path(), &["stop"]).await;
    assert_eq!(ended.code(), Some(1), "{output}");
    rig.launch = rig.launch.clone().arguments(&["run", "--replace"]);
    rig.start().await;
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    assert_eq!(json(&rig.home.file("gateway.pid"))["pid"], rig.process().pid());
}

#[tokio::test]
async fn a_gateway_that_is_replaced_finishes_what_it_does_and_nothing_is_lost() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.llm.pace(Pace { before: Duration::from_millis(300), ..Pace::default() });
    let launch = rig.launch.clone().arguments(&["run", "--replace"]);
    let (over, mut load) = (CancellationToken::new(), 0);
    let next = async {
        rig.until("load", |truth| truth.happened() > 20).await;
        let mut next = launch.start(rig.home.path()).unwrap();
        within(HANGS, "the ready line of the next one", next.ready()).await.unwrap();
        over.cancel();
        next
    };
    // Somebody speaks all the while.
    let speaking = async {
        while !over.is_cancelled() {
            rig.vendor.say(&format!("chat{}", load % 7), "hello");
            load += 1;
            SystemClock.sleep(Duration::from_millis(20)).await;
        }
    };
    let (next, ()) = tokio::join!(next, speaking);
    assert!(load > 20, "{load}");
    let ended = within(HANGS, "the end", rig.process().ended()).await.unwrap();
    assert_eq!(ended.code(), Some(0), "{}", rig.process().output());
    let log = rig.process().output();
    assert!(log.contains(&format!("process {} takes over", next.pid())), "{log}");
    assert!(!rig.home.file(".gateway-takeover.json").exists(), "read and thrown away");
    rig.succeed(next);
    for n in 0..20 {
        rig.vendor.say(&format!("chat{}", n % 7), "and again");
    }
    rig.until_everything_is_answered().await;
    rig.settle().await;
    rig.check();
    assert_eq!(rig.marked(), 0);
}

#[tokio::test]
async fn a_gateway_that_does_not_answer_is_killed_by_the_one_that_replaces_it() {
    let mut rig = Rig::configured(VendorSettings::default(), &[], HURRIED).await;
    rig.start().await;
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    // It hears nothing, not even a signal.
    send(rig.process(), Signal::SIGSTOP);
    rig.vendor.say("ann", "anybody?");
    let next = replace(&mut rig).await;
    let ended = within(HANGS, "the end", rig.process().ended()).await.unwrap();
    assert_eq!(ended.code(), None, "killed");
    rig.succeed(next);
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn a_wrong_configuration_replaces_nobody_and_is_not_tried_again() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.home.write("config.yaml", "agent:\n  max_steps: many\n").unwrap();
    for arguments in [&["run", "--replace"][..], &["run"], &[]] {
        let (ended, output) = run(rig.home.path(), arguments).await;
        assert_eq!(ended.code(), Some(78), "{output}");
        assert!(output.contains("agent.max_steps"), "{output}");
    }
    let (ended, output) = run(rig.home.path(), &["config", "check"]).await;
    assert_eq!(ended.code(), Some(2), "{output}");
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    let (ended, output) = run(Home::empty().unwrap().path(), &["run", "--nonsense"]).await;
    assert_eq!(ended.code(), Some(2), "{output}");
}

/// A file does not become a folder by itself; what a link leads to may be mounted later.
#[tokio::test]
async fn a_home_that_is_no_folder_is_not_tried_again_and_nobody_touches_it() {
    let place = Home::empty().unwrap();
    place.write("notes", "mine").unwrap();
    for name in ["notes", "notes/below"] {
        let home = place.file(name);
        let (ended, output) = run(&home, &["run"]).await;
        assert_eq!(ended.code(), Some(78), "{output}");
        assert!(output.contains("notes is not a folder"), "{output}");
        let (ended, output) = run(&home, &["doctor", "--offline", "--fix"]).await;
        assert_eq!(ended.code(), Some(1), "{output}");
        assert!(output.contains("PROBLEM  home: "), "{output}");
        assert!(output.contains("notes is not a folder"), "{output}");
    }
    assert_eq!(std::fs::read_to_string(place.file("notes")).unwrap(), "mine");
    std::os::unix::fs::symlink(place.file("not mounted"), place.file("link")).unwrap();
    let (ended, output) = run(&place.file("link"), &["run"]).await;
    assert_eq!(ended.code(), Some(1), "{output}");
}

#[tokio::test]
async fn a_store_of_a_newer_version_keeps_the_gateway_that_can_use_it() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    let store = rusqlite::Connection::open(rig.home.file("state.db")).unwrap();
    store.pragma_update(None, "user_version", 9999).unwrap();
    drop(store);
    let (ended, output) = run(rig.home.path(), &["run", "--replace"]).await;
    assert_eq!(ended.code(), Some(78), "{output}");
    assert!(output.contains("has version 9999") && output.contains("restore a backup"), "{output}");
    assert!(!rig.home.file(".gateway-takeover.json").exists());
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    rig.end().await;
}

#[tokio::test]
async fn a_signal_behind_the_back_of_systemd_ends_in_a_restart_and_a_planned_one_does_not() {
    let as_service = as_service();
    // The parent is the shell's parent, this test: it stands for systemd.
    let home = Home::empty().unwrap();
    let mut service = as_service.start(home.path()).unwrap();
    within(HANGS, "ready", service.ready()).await.unwrap();
    service.terminate().unwrap();
    assert_eq!(service.ended().await.unwrap().code(), Some(0), "its manager ended it");

    let mut service = as_service.start(home.path()).unwrap();
    within(HANGS, "ready", service.ready()).await.unwrap();
    let pid = service.pid().to_string();
    let sent = tokio::process::Command::new("sh").args(["-c", "kill -TERM $0", &pid]).status();
    assert!(sent.await.unwrap().success());
    assert_eq!(service.ended().await.unwrap().code(), Some(75), "{}", service.output());

    let mut service = as_service.start(home.path()).unwrap();
    within(HANGS, "ready", service.ready()).await.unwrap();
    let (ended, output) = run(home.path(), &["stop"]).await;
    assert!(ended.success(), "{output}");
    assert_eq!(service.ended().await.unwrap().code(), Some(0), "{}", service.output());

    let mut service = as_service.start(home.path()).unwrap();
    within(HANGS, "ready", service.ready()).await.unwrap();
    send(&service, Signal::SIGUSR1);
    assert_eq!(service.ended().await.unwrap().code(), Some(75), "systemd starts it again");
}

#[tokio::test]
async fn a_service_that_is_stopped_stays_so_however_hurried_its_end_is() {
    for more in 1..=2 {
        let mut rig = Rig::new(VendorSettings::default(), &[]).await;
        rig.launch = as_service();
        rig.start().await;
        assert_eq!(json(&rig.home.file("gateway.pid"))["service"], true);
        rig.llm.hold(Hold::BeforeAnswering);
        rig.vendor.say("ann", "hello");
        rig.llm.until_requests(1).await;
        let stopping = Launch::new(binary()).arguments(&["stop"]);
        let mut stopping = stopping.start(rig.home.path()).unwrap();
        let begun = stopping.line(|line| line.contains("The gateway is ending"));
        within(HANGS, "the word that it ends", begun).await;
        for _ in 0..more {
            // One that has gone hears no more.
            let _ = rig.process().terminate();
        }
        let ended = within(HANGS, "the end", rig.process().ended()).await.unwrap();
        assert_eq!(ended.code(), Some(0), "{more}: {}", rig.process().output());
        let ended = within(HANGS, "the end of stop", stopping.ended()).await.unwrap();
        assert!(ended.success(), "{}", stopping.output());
        if more == 1 {
            let why = json(&rig.home.file("gateway_state.json"))["exit_reason"].to_string();
            assert!(why.contains("asked to stop; ended at once"), "{why}");
        }
        rig.llm.hold(Hold::Never);
        rig.start().await;
        rig.until_everything_is_answered().await;
        rig.settle().await;
        rig.check();
    }
}

#[tokio::test]
async fn a_service_that_is_started_again_and_again_waits_until_it_has_ended_well() {
    let as_service = as_service();
    let home = Home::empty().unwrap();
    let mut first = Launch::new(binary()).start(home.path()).unwrap();
    within(HANGS, "ready", first.ready()).await.unwrap();
    for _ in 0..5 {
        let mut service = as_service.start(home.path()).unwrap();
        let ended = within(HANGS, "a refusal", service.ended()).await.unwrap();
        assert_eq!(ended.code(), Some(4), "{}", service.output());
        assert!(!service.output().contains("started too often"), "{}", service.output());
    }
    let mut service = as_service.start(home.path()).unwrap();
    let waits = service.line(|line| line.contains("started too often"));
    within(HANGS, "the note in the log", waits).await;
    // Who waits can be ended.
    service.terminate().unwrap();
    let ended = within(HANGS, "the end", service.ended()).await.unwrap();
    assert_eq!(ended.code(), Some(0), "{}", service.output());

    first.terminate().unwrap();
    assert_eq!(first.ended().await.unwrap().code(), Some(0));
    assert!(!home.file(".gateway-starts.json").exists(), "it ended well");
}

#[tokio::test]
async fn a_service_whose_starts_cannot_be_counted_waits_and_can_be_ended_meanwhile() {
    let place = Home::empty().unwrap();
    let link = place.file("link");
    std::os::unix::fs::symlink(place.file("not mounted"), &link).unwrap();
    let uncountable = Home::empty().unwrap();
    let counter = uncountable.file(".gateway-starts.json");
    std::fs::create_dir(&counter).unwrap();
    let private: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    for folder in [uncountable.path(), &counter] {
        std::fs::set_permissions(folder, private.clone()).unwrap();
    }
    for (home, word) in [
        (link, "it cannot start, and waits for 10 s"),
        (uncountable.path().to_owned(), "starts cannot be counted; it waits"),
    ] {
        let mut service = as_service().start(&home).unwrap();
        let waits = service.line(|line| line.contains(word));
        within(HANGS, word, waits).await;
        service.terminate().unwrap();
        let ended = within(HANGS, "the end", service.ended()).await.unwrap();
        assert_eq!(ended.code(), Some(0), "{}", service.output());
    }
}

/// A file that nobody can read to its end, like all files on a disk that hangs.
fn hangs(path: &Path) {
    let _ = std::fs::remove_file(path);
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}

#[tokio::test]
async fn a_signal_is_heeded_although_the_disk_hangs_that_would_say_what_it_is_for() {
    let home = Home::empty().unwrap();
    let mut process = Launch::new(binary()).start(home.path()).unwrap();
    within(HANGS, "ready", process.ready()).await.unwrap();
    hangs(&home.file(".gateway-planned-stop.json"));
    process.terminate().unwrap();
    let ended = within(HANGS, "the end", process.ended()).await.unwrap();
    assert_eq!(ended.code(), Some(0), "{}", process.output());
}

#[tokio::test]
async fn a_second_signal_ends_a_process_that_hangs_in_its_end() {
    let home = Home::empty().unwrap();
    let mut process = Launch::new(binary()).start(home.path()).unwrap();
    within(HANGS, "ready", process.ready()).await.unwrap();
    hangs(&home.file("gateway.pid"));
    process.terminate().unwrap();
    let stopped = async {
        while json(&home.file("gateway_state.json"))["gateway_state"] != "stopped" {
            SystemClock.sleep(Duration::from_millis(20)).await;
        }
    };
    within(HANGS, "its last words", stopped).await;
    let ended = insist(&mut process).await;
    assert_eq!(ended.code(), Some(1), "{}", process.output());
}

#[tokio::test]
async fn what_is_not_finished_in_time_is_left_in_writing_and_people_are_told() {
    let mut rig = Rig::configured(VendorSettings::default(), &[], HURRIED).await;
    rig.start().await;
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    rig.process().terminate().unwrap();
    let ended = within(HANGS, "the end", rig.process().ended()).await.unwrap();
    assert_eq!(ended.code(), Some(0), "{}", rig.process().output());
    let report = report(rig.home.path());
    assert_eq!(report["why"]["name"], "SIGTERM", "{report}");
    assert_eq!(report["why"]["sender"]["pid"], std::process::id(), "{report}");
    assert_eq!(report["turns"][0]["account"], "bench", "{report}");
    assert_eq!(report["turns"][0]["chat"], "ann", "{report}");
    let bench = |account: &&Value| account["name"] == "bench" && account["state"] == "Connected";
    assert!(report["accounts"].as_array().unwrap().iter().any(|it| bench(&it)), "{report}");
    assert_eq!(report["lanes"][0]["phase"], "thinking", "{report}");
    assert!(report["tasks"]["in_runtime"].as_u64().unwrap() > 5, "{report}");
    let chores = report["chores"].as_array().unwrap();
    assert!(
        chores.iter().any(|chore| chore["name"] == "upkeep" && chore["begun"] == 1),
        "{report}"
    );
    assert_eq!(report["ended"]["how"], "finished", "{report}");
    assert_eq!(report["ended"]["left"].as_array().unwrap().len(), 1, "{report}");
    let told: Vec<String> =
        rig.vendor.read(|truth| truth.shown_in("ann").map(|shown| shown.text.clone()).collect());
    assert!(told.len() == 1 && told[0].contains("have not finished this yet"), "{told:?}");
    rig.llm.hold(Hold::Never);
    rig.start().await;
    rig.until_everything_is_answered().await;
    rig.settle().await;
    // That notice answers nothing, and there is nothing else to complain about.
    let complaints: Vec<_> = rig.vendor.check().iter().map(ToString::to_string).collect();
    assert!(complaints.len() == 1 && complaints[0].contains("have not finished"), "{complaints:?}");
    assert_eq!(rig.marked(), 0);
}

#[tokio::test]
async fn what_is_said_during_the_last_answer_is_stored_and_answered_after_a_restart() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    let restarting = Launch::new(binary()).arguments(&["restart"]);
    let mut restarting = restarting.start(rig.home.path()).unwrap();
    let ending = rig.process().line(|line| line.contains("ending to start again"));
    within(HANGS, "the note in the log", ending).await;
    for n in 0..10 {
        rig.vendor.say(&format!("chat{n}"), "are you there?");
    }
    rig.until("everything is stored", |truth| truth.acked() == truth.happened()).await;
    assert_eq!(rig.llm.requests(), 1, "no turn begins");
    rig.llm.hold(Hold::Never);
    let ended = within(HANGS, "the restart", restarting.ended()).await.unwrap();
    let output = restarting.drained().await;
    assert!(ended.success() && output.contains("It is back"), "{output}");
    rig.until_everything_is_answered().await;
    rig.settle().await;
    rig.check();
    assert_eq!(rig.marked(), 0);
}

#[tokio::test]
async fn a_restart_under_load_loses_nothing_and_is_hardly_noticed() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    let pid = rig.process().pid();
    let before = start_of_a_fresh_home().await;
    let said = async {
        for n in 0..250 {
            rig.vendor.say(&format!("chat{}", n % 25), "hello");
            SystemClock.sleep(Duration::from_millis(20)).await;
        }
    };
    let restarted = async {
        rig.until("load", |truth| truth.happened() > 100).await;
        let (ended, output) = run(rig.home.path(), &["restart"]).await;
        assert!(ended.success(), "{output}");
    };
    tokio::join!(said, restarted);
    rig.until_everything_is_answered().await;
    // How long we said nothing at all while somebody spoke to us all the time.
    let gap = rig.vendor.read(|truth| {
        let times = truth.acts().windows(2).map(|acts| acts[1].at - acts[0].at);
        times.max().unwrap()
    });
    let drained = report(rig.home.path())["ended"]["waited_millis"].as_u64().unwrap();
    let start = start_of_a_fresh_home().await.max(before);
    println!(
        "the longest silence: {gap:?}, {drained} ms for turns in hand; a start takes {start:?}"
    );
    // What turns in hand took and what any start takes on this machine is no part of the second.
    let granted = Duration::from_secs(1) + Duration::from_millis(drained) + start;
    assert!(gap <= granted, "{gap:?} of {granted:?}");
    rig.settle().await;
    rig.check();
    assert_eq!(rig.marked(), 0);
    assert_eq!(rig.process().pid(), pid);
    assert!(rig.vendor.read(Truth::connections) >= 2);
}

#[tokio::test]
async fn a_signal_at_any_moment_of_a_start_ends_it_in_good_order() {
    let mut rig = Rig::configured(VendorSettings::default(), &[], HURRIED).await;
    rig.start().await;
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    rig.end().await;
    // A turn is in hand all the while; three deaths would set it aside.
    let phases = ["configuration", "home", "store", "doors", "model", "work of the last run"];
    for (round, phase) in phases.into_iter().chain(["store", "model", "model"]).enumerate() {
        let mut process = rig.launch.start(rig.home.path()).unwrap();
        let passed =
            process.line(move |line| line.contains("starting phase=") && line.contains(phase));
        within(HANGS, phase, passed).await;
        process.terminate().unwrap();
        let ended = within(HANGS, "the end", process.ended()).await.unwrap();
        let output = process.drained().await;
        assert_eq!(ended.code(), Some(0), "{phase}: {output}");
        assert!(!output.contains("ended abruptly"), "{round}, {phase}: {output}");
        let state = json(&rig.home.file("gateway_state.json"));
        assert_eq!(state["gateway_state"], "stopped", "{phase}: {state}");
        if phase != "configuration" {
            let why = state["exit_reason"].as_str().unwrap();
            assert!(why.contains("SIGTERM"), "{phase}: {state}");
        }
        assert!(!rig.home.file("gateway.pid").exists(), "{phase}");
    }
    rig.llm.hold(Hold::Never);
    rig.start().await;
    assert!(!rig.process().output().contains("ended abruptly"));
    rig.until_everything_is_answered().await;
    rig.settle().await;
    let complaints: Vec<_> = rig.vendor.check().iter().map(ToString::to_string).collect();
    let is_farewell = |complaint: &String| complaint.contains("have not finished");
    assert!(complaints.iter().all(is_farewell), "{complaints:?}");
    assert_eq!(rig.marked(), 0);
}

#[tokio::test]
async fn a_start_waits_for_a_command_that_only_reads() {
    let home = Home::empty().unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(home.path(), private).unwrap();
    home.write("gateway.lock", "").unwrap();
    let lock = std::fs::File::open(home.file("gateway.lock")).unwrap();
    lock.lock().unwrap();
    let mut process = Launch::new(binary()).start(home.path()).unwrap();
    let held = SystemClock.sleep(Duration::from_millis(500));
    tokio::select! {
        ended = process.ended() => panic!("{ended:?}"),
        () = held => drop(lock),
    }
    within(HANGS, "ready", process.ready()).await.unwrap();
}
