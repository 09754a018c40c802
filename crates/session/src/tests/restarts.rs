//! Processes end and begin again.

use std::time::Duration;

use talaria_model::{ChatKind, EarlierYes, Seq};

use super::{Talk, check, check_with, heard, posted, printed, quiet, rules_with, steering};
use crate::{Effect, Ended, Event, Life, Phase, ResumeReason};

/// What a restart leads to where the one who asked for the turn in hand is not heard any more.
fn restarted_unheard(talk: &mut Talk, ended: Ended) -> Vec<String> {
    let (unheard, yes) = (Some("off the list"), EarlierYes::Counts);
    printed(&talk.tell(Event::Restarted { ended, unheard, yes }))
}

#[test]
fn an_answer_is_told_again_after_a_restart_until_the_agent_has_used_it() {
    let answered = "alice: hello / agent: asks Sure? / press: q2";
    check(
        &format!("{answered} / crash"),
        &["start turn 1, asked", r#"tell turn 1: Chosen(ChoiceId("q2"))"#],
    );
    check(&format!("{answered} / agent: returns call / crash"), &["start turn 1"]);
    check(&format!("{answered} / agent: asks Really? / crash"), &["start turn 1, asked"]);
}

#[test]
fn the_time_a_question_was_open_before_a_restart_does_not_count_against_the_turn() {
    let mut talk = Talk::new(quiet());
    talk.line("alice: hello");
    talk.line("agent: asks Sure?");
    talk.now = talk.now + Duration::from_secs(3600);
    let effects = talk.line("restart");
    let Some(Effect::Start(start)) = effects.first() else { panic!("{effects:?}") };
    assert!(start.deadline.since(talk.now) > Duration::from_secs(1790));
}

#[test]
fn a_restart_goes_on_with_the_turn_and_repeats_what_was_not_taken() {
    check_with(
        steering(),
        "alice: hello / agent: calls pay / alice: quickly / restart",
        &["start turn 1, started pay", "tell turn 1: steer: quickly"],
    );
    check("alice: hello / agent: asks Sure? / restart", &["start turn 1, asked"]);
    check("alice: hello / stop button / restart", &["post 1: Stopped.", "record notice: Stopped."]);
    check(
        "alice: hello / alice: wait / restart",
        &["bind #2 to turn 2", "record alice: wait", "start turn 2"],
    );
}

#[test]
fn three_deaths_during_one_turn_set_it_aside_say_so_and_suspend_the_conversation() {
    let aside = "I was interrupted three times while working on this and have set it aside.";
    check("alice: hello / crash / crash", &["start turn 1"]);
    check("alice: hello / crash / crash / restart / restart", &["start turn 1"]);
    let posted_aside = format!("post 1: {}", &aside[..60]);
    let recorded = format!("record notice: {aside}");
    let script = "alice: hello / crash / crash / crash";
    check(script, &["quarantine #1", &posted_aside, &recorded]);

    let mut talk = Talk::new(quiet());
    talk.play(script);
    assert_eq!(talk.session.life, Life::Suspended);
    let old = talk.session.id.clone();
    let effects = talk.line("alice: again");
    assert_ne!(talk.session.id, old, "the next message begins with a clean slate");
    assert!(posted(&effects)[0].contains("the last one is closed"), "{effects:?}");
}

#[test]
fn a_turn_that_is_left_is_taken_up_again_and_whatever_happens_to_the_process_is_no_death() {
    let restarting =
        "🔄 I am restarting and have not finished this yet; I go on with it afterwards.";
    let recorded = format!("record notice: {restarting}");
    let mut talk = Talk::new(quiet());
    let effects = talk.play("alice: hello / leave");
    assert_eq!(posted(&effects), [restarting]);
    assert!(printed(&effects).contains(&recorded), "{effects:?}");
    for _ in 0..4 {
        assert_eq!(printed(&talk.line("crash")), ["start turn 1"]);
        talk.line("leave");
    }
    let effects = talk.play("away: 4000 / crash");
    assert!(posted(&effects)[0].contains("cut me off"), "{effects:?}");
    let Life::ResumePending { reason, .. } = talk.session.life else {
        panic!("{:?}", talk.session.life)
    };
    assert_eq!(reason, ResumeReason::RestartTimeout);
    let status = posted(&talk.line("alice: /status")).remove(0);
    assert!(status.contains("cut off by a restart"), "{status}");

    for nothing_to_leave in
        ["leave", "alice: hello / agent: asks Sure? / leave", "alice: hello / stop button / leave"]
    {
        check(nothing_to_leave, &[]);
    }
}

#[test]
fn a_turn_that_was_cut_off_long_ago_waits_for_a_word() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: returns c / away: 4000");
    let effects = talk.line("crash");
    assert!(posted(&effects)[0].ends_with("Write to me, and I go on."), "{effects:?}");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Start(_))));
    let Life::ResumePending { reason, .. } = talk.session.life else {
        panic!("{:?}", talk.session.life)
    };
    assert_eq!(reason, ResumeReason::RestartInterrupted);
    let old = talk.session.id.clone();
    let effects = talk.line("alice: go on");
    assert_eq!(talk.session.id, old);
    let read = heard(&effects).remove(0);
    assert!(read.contains("cut off by a crash before you could make use of the tool"), "{read}");
    talk.line("agent: fails no");
    assert!(matches!(talk.session.life, Life::ResumePending { .. }), "only an answer ends it");
    talk.play("alice: please / agent: finishes there");
    assert_eq!(talk.session.life, Life::Continuing);
}

#[test]
fn a_conversation_to_be_resumed_outlives_the_reset_policy_but_its_note_does_not() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: steps hm / away: 4000 / restart");
    let old = talk.session.id.clone();
    let status = posted(&talk.line("alice: /status")).remove(0);
    assert!(status.contains("cut off by a shutdown"), "{status}");
    let effects = talk.play("away: 200000 / alice: still there?");
    assert_eq!(talk.session.id, old);
    assert_eq!(heard(&effects), ["still there?"]);
}

#[test]
fn with_no_freshness_window_every_turn_goes_on() {
    let rules = rules_with(|rules| rules.freshness = Duration::ZERO);
    check_with(rules, "alice: hello / away: 400000 / crash", &["start turn 1"]);
    check("alice: hello / away: 3590 / crash", &["start turn 1"]);
}

#[test]
fn what_waits_goes_on_when_a_turn_does_not() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / alice: /queue more / away: 4000");
    let effects = talk.line("crash");
    let lines = printed(&effects);
    assert_eq!(lines.last().map(String::as_str), Some("start turn 2"));
    assert!(heard(&effects)[0].contains("cut off by a crash"), "{lines:?}");
}

#[test]
fn taking_in_an_event_that_goes_wrong_sets_it_aside_or_ends_the_turn() {
    use crate::Event;
    use talaria_model::Seq;
    let mut talk = Talk::new(quiet());
    let over = Some((Seq(1), super::said("alice", "boom")));
    let effects = talk.tell(Event::Stumbled { over });
    assert_eq!(printed(&effects)[0], "quarantine #1");
    talk.line("alice: hello");
    let effects = talk.tell(Event::Stumbled { over: None });
    assert_eq!(printed(&effects)[0], "abandon turn 1");
    assert_eq!(talk.session.phase, Phase::Idle);
}

#[test]
fn a_turn_in_hand_does_not_begin_again_for_somebody_who_is_not_heard_any_more() {
    let denied = "deny #1: off the list";
    for (script, expected) in [
        ("alice: hello", &[denied][..]),
        ("alice: hello / leave", &[denied]),
        ("alice: hello / crash / crash", &[denied]),
        ("alice: hello / away: 7200", &[denied]),
        ("alice: hello / agent: calls pay / alice: quickly", &[denied, "deny #2: off the list"]),
        ("alice: hello / agent: asks Sure?", &[denied]),
        ("alice: hello / stop button", &[denied]),
        ("alice: hello / agent: finishes hi / alice: /compress", &[]),
    ] {
        for ended in [Ended::Cleanly, Ended::Abruptly] {
            let mut talk = Talk::new(steering());
            talk.play(script);
            assert_eq!(restarted_unheard(&mut talk, ended), expected, "{script}");
            assert_eq!(talk.session.phase, Phase::Idle, "{script}");
        }
    }
}

#[test]
fn what_others_said_is_next_where_a_turn_does_not_begin_again() {
    let mut talk =
        Talk::among(ChatKind::Group, rules_with(|rules| rules.busy = crate::Busy::Queue));
    talk.play("mallory: hello / alice: and me");
    let effects = restarted_unheard(&mut talk, Ended::Cleanly);
    assert_eq!(
        effects,
        ["deny #1: off the list", "bind #2 to turn 2", "record alice: and me", "start turn 2"]
    );
}

#[test]
fn a_question_of_somebody_who_is_not_heard_any_more_is_closed_without_a_word() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: begs 7");
    let effects = restarted_unheard(&mut talk, Ended::Abruptly);
    assert_eq!(effects, ["attest Stopped", "deny #1: off the list"]);
}

#[test]
fn what_was_asked_for_or_said_to_a_turn_is_not_taken_up_of_somebody_who_is_not_heard_any_more() {
    let mut talk = Talk::new(steering());
    talk.play("alice: hello / agent: calls pay / alice: quickly / alice: /history");
    let rows = vec![Seq(2), Seq(3)];
    let effects = talk.tell(Event::Barred { rows, why: "off the list" });
    assert_eq!(printed(&effects), ["deny #2: off the list", "deny #3: off the list"]);
    assert_eq!(printed(&talk.line("restart")), ["start turn 1, started pay"]);
}

#[test]
fn what_only_an_administrator_may_want_is_not_done_after_a_restart() {
    for command in ["/sethome", "/reload", "/platforms pause work"] {
        let mut talk = Talk::new(quiet()).on(crate::Access::own());
        let asked = printed(&talk.line(&format!("alice: {command}")));
        assert!(asked.iter().any(|effect| effect.starts_with("ask")), "{asked:?}");
        for line in ["restart", "crash"] {
            let mut talk = Talk { session: talk.session.clone(), ..Talk::new(quiet()) };
            let effects = talk.line(line);
            assert_eq!(posted(&effects), ["A restart cut that off; say it again."], "{command}");
            assert!(!printed(&effects).iter().any(|effect| effect.starts_with("ask")), "{command}");
        }
    }
}
