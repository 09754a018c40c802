//! `kill -9` while something is received, thought about, streamed or sent: nothing is lost, nothing
//! is repeated without saying so, and order holds.
//!
//! When to kill is decided by what the peers have seen, plus a few random milliseconds. Nothing that
//! is asserted depends on the milliseconds.

use std::time::Duration;

use talaria_testkit::{Conduct, Dice, Hold, Pace, Truth, VendorSettings, complete};

use crate::rig::Rig;

/// How often the process dies in each test.
const KILLS: usize = 10;

/// An account that can show an answer while it grows.
const EDITS: &[&str] = &["edits_every: 20"];

#[tokio::test]
async fn killed_while_receiving_it_loses_and_repeats_nothing() {
    let mut dice = Dice::thrown();
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    for _ in 0..KILLS {
        rig.start().await;
        let before = rig.vendor.read(Truth::happened);
        for n in 0..6 {
            rig.vendor.say(["ann", "ben", "cem"][n % 3], "hello");
        }
        let told = before + dice.below(6) + 1;
        match dice.below(2) {
            0 => rig.until("the messages to be told", |truth| truth.told() >= told).await,
            _ => rig.until("an acknowledgement", |truth| truth.acked() >= told).await,
        }
        dice.pause(Duration::from_millis(8)).await;
        rig.kill().await;
        rig.start().await;
        rig.until_everything_is_answered().await;
        rig.end().await;
    }
    rig.start().await;
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn what_a_vendor_delivers_again_after_a_kill_is_not_answered_again() {
    let mut dice = Dice::thrown();
    let settings = VendorSettings { redelivers: 5, ..VendorSettings::default() };
    let mut rig = Rig::new(settings, &[]).await;
    for _ in 0..KILLS {
        rig.start().await;
        let before = rig.vendor.read(Truth::happened);
        for n in 0..4 {
            rig.vendor.say(["ann", "ben"][n % 2], "hello");
        }
        rig.until("an acknowledgement", |truth| truth.acked() > before).await;
        dice.pause(Duration::from_millis(20)).await;
        rig.kill().await;
        rig.start().await;
        rig.until_everything_is_answered().await;
        rig.end().await;
    }
    rig.start().await;
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn killed_while_thinking_it_answers_after_the_restart() {
    let mut dice = Dice::thrown();
    let mut rig = Rig::new(VendorSettings::default(), EDITS).await;
    for _ in 0..KILLS {
        rig.start().await;
        rig.llm.hold(Hold::BeforeAnswering);
        let asked = rig.llm.requests();
        for chat in ["ann", "ben", "cem"] {
            rig.vendor.say(chat, "hello");
        }
        rig.llm.until_requests(asked + 1 + dice.below(3)).await;
        dice.pause(Duration::from_millis(5)).await;
        rig.kill().await;
        rig.llm.hold(Hold::Never);
        rig.start().await;
        rig.until_everything_is_answered().await;
        rig.end().await;
    }
    rig.start().await;
    rig.settle().await;
    rig.check();
    assert_eq!(rig.marked(), 0, "nothing was on its way when it died");
}

#[tokio::test]
async fn killed_while_streaming_it_completes_what_is_visible() {
    let mut dice = Dice::thrown();
    let mut rig = Rig::new(VendorSettings::default(), EDITS).await;
    stream_and_kill(&mut rig, &mut dice).await;
    let chats = rig.vendor.read(|truth| truth.shown_in("ann").count());
    assert!(chats >= KILLS, "{}", rig.vendor.transcript());
}

#[tokio::test]
async fn killed_while_streaming_to_a_vendor_that_knows_repeats_it_completes_what_is_visible() {
    let mut dice = Dice::thrown();
    let settings = VendorSettings { keyed: true, ..VendorSettings::default() };
    let mut rig = Rig::new(settings, &["edits_every: 20", "keyed: true"]).await;
    stream_and_kill(&mut rig, &mut dice).await;
    assert_eq!(rig.marked(), 0, "a repeat that nobody sees needs no mark");
}

async fn stream_and_kill(rig: &mut Rig, dice: &mut Dice) {
    rig.llm.pace(Pace { filler: 40, between: Duration::from_millis(4), ..Pace::default() });
    for _ in 0..KILLS {
        rig.start().await;
        let token = rig.vendor.say("ann", "hello");
        let edits = dice.below(5) as usize;
        rig.until("a preview", |truth| {
            let grown = truth.shown().last().is_some_and(|shown| shown.edits >= edits);
            truth.is_begun(token) && grown || truth.is_answered(token)
        })
        .await;
        dice.pause(Duration::from_millis(10)).await;
        rig.kill().await;
        rig.start().await;
        rig.until_everything_is_answered().await;
        rig.end().await;
    }
    rig.llm.pace(Pace::default());
    rig.start().await;
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn killed_before_a_preview_is_confirmed_it_leaves_no_half_answer_behind() {
    for keyed in [false, true] {
        let settings = VendorSettings { keyed, ..VendorSettings::default() };
        let key = format!("keyed: {keyed}");
        let mut rig = Rig::new(settings, &["edits_every: 20", &key]).await;
        for conduct in [Conduct::DoesSilently, Conduct::LosesSilently] {
            rig.start().await;
            rig.llm.pace(Pace { filler: 20, ..Pace::default() });
            rig.llm.hold(Hold::After(12));
            rig.vendor.script(move |_| conduct.clone());
            let acts = rig.vendor.read(|truth| truth.acts().len());
            rig.vendor.say("ann", "hello");
            rig.until("the preview", |truth| truth.acts().len() > acts).await;
            rig.kill().await;
            rig.vendor.behave();
            rig.llm.hold(Hold::Never);
            rig.start().await;
            rig.until_everything_is_answered().await;
            rig.end().await;
        }
        rig.start().await;
        rig.settle().await;
        rig.check();
        let marks = if keyed { 0 } else { 2 };
        assert_eq!(rig.marked(), marks, "{}", rig.vendor.transcript());
    }
}

#[tokio::test]
async fn killed_while_sending_it_sends_again_and_says_so() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    send_and_kill(&mut rig).await;
    assert_eq!(rig.marked(), KILLS, "each of these may have arrived: all have to say so");
}

#[tokio::test]
async fn killed_while_sending_to_a_vendor_that_knows_repeats_it_sends_again_unseen() {
    let settings = VendorSettings { keyed: true, ..VendorSettings::default() };
    let mut rig = Rig::new(settings, &["keyed: true"]).await;
    send_and_kill(&mut rig).await;
    assert_eq!(rig.marked(), 0, "a repeat that nobody sees needs no mark");
}

async fn send_and_kill(rig: &mut Rig) {
    let mut dice = Dice::thrown();
    for n in 0..KILLS {
        rig.start().await;
        let lost = n % 2 == 0;
        rig.vendor.script(
            move |_| {
                if lost { Conduct::LosesSilently } else { Conduct::DoesSilently }
            },
        );
        let token = rig.vendor.say("ann", "hello");
        let sent = move |truth: &Truth| {
            truth.acts().iter().filter(|act| complete(&act.text).contains(&token)).count()
        };
        rig.until("the answer to be sent", |truth| sent(truth) == 1).await;
        dice.pause(Duration::from_millis(3)).await;
        rig.kill().await;
        rig.vendor.behave();
        rig.start().await;
        rig.until("the answer to be sent again", |truth| sent(truth) == 2).await;
        rig.until_everything_is_answered().await;
        rig.end().await;
    }
    rig.start().await;
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn killed_while_the_last_edit_is_sent_it_edits_again() {
    let mut rig = Rig::new(VendorSettings::default(), EDITS).await;
    for n in 0..KILLS {
        rig.start().await;
        rig.llm.pace(Pace { filler: 20, ..Pace::default() });
        rig.llm.hold(Hold::After(12));
        let lost = n % 2 == 0;
        rig.vendor.script(move |act| match complete(&act.text).is_empty() {
            true => Conduct::Does,
            false if lost => Conduct::LosesSilently,
            false => Conduct::DoesSilently,
        });
        let token = rig.vendor.say("ann", "hello");
        rig.until("the preview", |truth| truth.is_begun(token)).await;
        rig.llm.hold(Hold::Never);
        let sent = move |truth: &Truth| {
            truth.acts().iter().any(|act| complete(&act.text).contains(&token))
        };
        rig.until("the last edit", sent).await;
        rig.kill().await;
        rig.vendor.behave();
        rig.start().await;
        rig.until_everything_is_answered().await;
        rig.end().await;
    }
    rig.start().await;
    rig.settle().await;
    rig.check();
    assert_eq!(rig.marked(), 0, "an edit can be repeated unseen");
}

#[tokio::test]
async fn fifty_messages_in_flight_survive_a_kill() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.llm.hold(Hold::BeforeAnswering);
    for n in 0..50 {
        rig.vendor.say(&format!("chat{n}"), "hello");
    }
    rig.llm.until_requests(50).await;
    rig.kill().await;
    rig.llm.hold(Hold::Never);
    rig.start().await;
    rig.until_everything_is_answered().await;
    rig.settle().await;
    rig.check();
    assert_eq!(rig.marked(), 0, "nothing was on its way when it died");
    assert_eq!(rig.vendor.read(|truth| truth.shown().len()), 100);
}

#[tokio::test]
async fn fifty_messages_survive_a_kill_at_any_moment() {
    let mut dice = Dice::thrown();
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    for n in 0..50 {
        rig.vendor.say(&format!("chat{n}"), "hello");
    }
    let shown = dice.below(25) as usize;
    rig.until("some answers", |truth| truth.shown().len() >= shown).await;
    rig.kill().await;
    rig.start().await;
    rig.until_everything_is_answered().await;
    rig.settle().await;
    rig.check();
}

#[tokio::test]
async fn a_turn_during_which_the_process_dies_three_times_is_set_aside() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    for deaths in 1..=3 {
        rig.start().await;
        rig.llm.until_requests(deaths).await;
        rig.kill().await;
    }
    rig.llm.hold(Hold::Never);
    rig.start().await;
    let told =
        |truth: &Truth| truth.shown().iter().any(|shown| shown.text.contains("set it aside"));
    rig.until("the person to be told", told).await;
    let token = rig.vendor.say("ann", "something else");
    rig.until("the next message to be answered", |truth| truth.is_answered(token)).await;
}
