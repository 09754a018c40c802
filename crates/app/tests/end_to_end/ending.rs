//! Asked to end, it ends in time, and the next run goes on where it stopped.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talaria_testkit::{Hold, Pace, Truth, VendorSettings, within};

use crate::rig::{HANGS, Rig, insist, run};

#[tokio::test]
async fn asked_to_end_it_finishes_the_turns_in_hand() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.llm.pace(Pace { before: Duration::from_millis(500), ..Pace::default() });
    for n in 0..5 {
        rig.vendor.say(&format!("chat{n}"), "hello");
    }
    rig.llm.until_requests(5).await;
    rig.end().await;
    assert!(rig.vendor.read(Truth::is_everything_answered), "{}", rig.vendor.transcript());
    rig.llm.pace(Pace::default());
    rig.start().await;
    rig.settle().await;
    rig.check();
    assert_eq!(rig.marked(), 0);
}

#[tokio::test]
async fn what_arrives_while_it_ends_is_answered_by_the_next_run() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    rig.process().terminate().unwrap();
    within(HANGS, "the note in the log", rig.process().line(|line| line.contains("ending"))).await;
    rig.vendor.say("ann", "are you there");
    rig.vendor.say("ben", "anybody");
    rig.llm.hold(Hold::Never);
    let ended = within(HANGS, "the gateway to end", rig.process().ended()).await.unwrap();
    assert!(ended.success(), "{ended}");
    rig.start().await;
    rig.until_everything_is_answered().await;
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn a_turn_that_waits_for_a_place_does_not_begin_while_it_ends() {
    let mut rig =
        Rig::configured(VendorSettings::default(), &[], "limits: {turns_at_once: 1}\n").await;
    rig.start().await;
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    for chat in ["ben", "cleo"] {
        rig.vendor.say(chat, "and I?");
    }
    rig.until("everything is stored", |truth| truth.acked() == truth.happened()).await;
    rig.process().terminate().unwrap();
    within(HANGS, "the note in the log", rig.process().line(|line| line.contains("ending"))).await;
    rig.llm.hold(Hold::Never);
    let ended = within(HANGS, "the gateway to end", rig.process().ended()).await.unwrap();
    assert!(ended.success(), "{ended}");
    assert_eq!(rig.llm.requests(), 1, "no turn begins");
    assert!(rig.vendor.read(|truth| truth.shown_in("ann").count()) > 0, "what works is finished");
    rig.start().await;
    rig.until_everything_is_answered().await;
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn asked_twice_it_ends_at_once_and_loses_nothing() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    rig.process().terminate().unwrap();
    within(HANGS, "the note in the log", rig.process().line(|line| line.contains("ending"))).await;
    let ended = insist(rig.process()).await;
    assert_eq!(ended.code(), Some(1));
    assert!(rig.process().output().contains("ending at once"), "{}", rig.process().output());
    rig.llm.hold(Hold::Never);
    rig.start().await;
    rig.until_everything_is_answered().await;
    rig.settle().await;
    rig.check();
}

/// Asks for an end as `timeout` does, which signals its program and then the group that this is in. Of two of a
/// kind the operating system may make one.
async fn signal_twice(rig: &mut Rig) {
    let pid = Pid::from_raw(rig.process().pid().try_into().unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    kill(pid, Signal::SIGINT).unwrap();
    within(HANGS, "the note in the log", rig.process().line(|line| line.contains("ending"))).await;
}

#[tokio::test]
async fn two_signals_right_after_each_other_are_one_and_a_later_one_insists() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    signal_twice(&mut rig).await;
    rig.llm.hold(Hold::Never);
    let ended = within(HANGS, "the gateway to end", rig.process().ended()).await.unwrap();
    assert_eq!(ended.code(), Some(0), "{}", rig.process().output());
    assert!(rig.vendor.read(Truth::is_everything_answered), "{}", rig.vendor.transcript());

    rig.start().await;
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello again");
    rig.llm.until_requests(2).await;
    signal_twice(&mut rig).await;
    assert_eq!(insist(rig.process()).await.code(), Some(1), "{}", rig.process().output());
    rig.llm.hold(Hold::Never);
    rig.start().await;
    rig.until_everything_is_answered().await;
    rig.settle().await;
    rig.check();
    assert_eq!(rig.marked(), 0);
}

#[tokio::test]
async fn whoever_stops_a_gateway_that_hangs_is_told_what_to_do_and_can_do_it() {
    let sections = "agent: {restart_drain_timeout: 1}\n";
    let mut rig = Rig::configured(VendorSettings::default(), &[], sections).await;
    rig.start().await;
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    let pid = Pid::from_raw(rig.process().pid().try_into().unwrap());
    // It hears nothing, not even a signal.
    kill(pid, Signal::SIGSTOP).unwrap();
    let (ended, output) = run(rig.home.path(), &["stop"]).await;
    assert_eq!(ended.code(), Some(1), "{output}");
    let hint = format!("kill -KILL {pid}");
    assert!(output.contains("has not after") && output.contains(&hint), "{output}");
    // What was asked for is done when it can be: here, as soon as it goes on.
    kill(pid, Signal::SIGCONT).unwrap();
    let ended = within(HANGS, "the end", rig.process().ended()).await.unwrap();
    assert_eq!(ended.code(), Some(0), "{}", rig.process().output());
    rig.start().await;
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn a_vendor_that_hangs_up_is_connected_again_and_nothing_is_lost() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    for n in 0..3 {
        rig.vendor.say("ann", "hello");
        rig.vendor.hang_up();
        rig.vendor.say("ann", "still there?");
        rig.until("another connection", |truth| truth.connections() > n + 1).await;
        rig.until_everything_is_answered().await;
    }
    rig.settle().await;
    rig.check();
}
