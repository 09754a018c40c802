//! What is recorded tells later what became of each message.

use talaria_model::{About, Entry, EntryBody, Extent, Seq};

use super::{Talk, quiet, rules_with, said};
use crate::{Acks, Busy, Effect, Event};

/// What was recorded: of which kind, in which turn, why, and about what.
fn recorded(effects: &[Effect]) -> Vec<String> {
    let entries = effects.iter().filter_map(|effect| match effect {
        Effect::Record { entry, .. } => Some(entry),
        _ => None,
    });
    entries.map(print).collect()
}

fn print(Entry { turn, body, because, about, .. }: &Entry) -> String {
    let kind = match body {
        EntryBody::Said { .. } => "said",
        EntryBody::Aside { .. } => "aside",
        EntryBody::Answered { extent: Extent::BrokenOff, .. } => "broken off",
        EntryBody::Answered { .. } => "answered",
        EntryBody::Noticed { .. } => "noticed",
        EntryBody::Returned { .. } | EntryBody::Summary { .. } => "else",
    };
    let turn = turn.as_ref().map(|turn| format!(" in turn {}", turn.number));
    let because = because.as_ref().map(|because| format!(" because {because:?}"));
    let about = about.as_ref().map(|about| match about {
        About::Row(seq) => format!(" about {seq}"),
        About::Left(turn) => format!(" left {}", turn.number),
        About::Again(turn) => format!(" again {}", turn.number),
    });
    [Some(kind.to_owned()), turn, because, about].into_iter().flatten().collect()
}

#[track_caller]
fn check(talk: &mut Talk, script: &str, expected: &[&str]) {
    assert_eq!(recorded(&talk.play(script)), expected, "after {script:?}");
}

#[test]
fn a_turn_that_is_interrupted_says_so_whether_it_had_said_anything_or_not() {
    let ends = ["broken off in turn 1 because Interrupted", "said in turn 2"];
    for script in [
        "alice: hello / away: 5 / alice: wait / agent: stopped Once upon",
        "alice: hello / away: 5 / alice: wait / agent: stopped ",
        "alice: hello / away: 5 / alice: wait / crash",
    ] {
        check(&mut Talk::new(quiet()), script, &ends);
    }
}

#[test]
fn a_turn_that_is_taken_again_is_followed_to_the_one_that_answers() {
    let mut talk = Talk::new(quiet());
    check(&mut talk, "alice: one / alice: two / agent: stopped x", &["said in turn 2 again 1"]);
    check(&mut talk, "agent: finishes both", &["answered in turn 2"]);
}

#[test]
fn a_turn_that_a_restart_cut_off_long_ago_says_so() {
    let cut_off = ["noticed in turn 1 because CutOff"];
    check(&mut Talk::new(quiet()), "alice: hello / away: 4000 / crash", &cut_off);
}

#[test]
fn what_somebody_is_told_in_place_of_an_answer_is_about_what_they_said() {
    let mut talk = Talk::new(quiet());
    let rows = vec![(Seq(1), said("alice", "hello")), (Seq(2), said("alice", "and this"))];
    let effects = talk.tell(Event::Unaffordable { rows, why: "Nothing is left.".into() });
    let told = ["aside", "aside", "noticed because OverBudget about #2"];
    assert_eq!(recorded(&effects), told);

    let over = Some((Seq(3), said("alice", "odd")));
    let effects = Talk::new(quiet()).tell(Event::Stumbled { over });
    assert_eq!(recorded(&effects), ["noticed about #3"]);

    check(&mut Talk::new(quiet()), "press: q1", &["noticed about #1"]);
}

#[test]
fn that_something_waits_is_about_it() {
    let acks = || rules_with(|rules| rules.acks = Acks::Sent);
    for (busy, script) in [
        (Busy::Interrupt, "alice: hello / away: 5 / alice: wait"),
        (Busy::Queue, "alice: hello / away: 5 / alice: wait"),
        (Busy::Steer, "alice: hello / away: 5 / alice: wait"),
        (Busy::Interrupt, "alice: hello / away: 5 / alice: /steer wait"),
    ] {
        let mut talk = Talk::new(crate::Rules { busy, ..acks() });
        check(&mut talk, script, &["noticed about #2"]);
    }
}
