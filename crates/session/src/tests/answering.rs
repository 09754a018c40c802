//! One person, one turn after another.

use std::time::Duration;

use talaria_model::{Act, AgentEvent, Cost, EntryBody, Failure, Usage};

use super::{Talk, check, check_with, file, posted, print, quiet, said, steering, told_of};
use crate::{Effect, Event, Phase};

#[test]
fn a_message_starts_a_turn() {
    check("alice: hello", &["bind #1 to turn 1", "record alice: hello", "start turn 1"]);
}

#[test]
fn an_answer_is_recorded_and_posted_together() {
    check("alice: hello / agent: finishes hi", &["post 1: hi", "record answer: hi"]);
}

#[test]
fn what_was_said_before_the_tools_ran_is_a_message_of_its_own() {
    check(
        "alice: hello / agent: steps Let me look. / agent: finishes Found it.",
        &["post 2: Found it.", "record answer: Found it."],
    );
}

#[test]
fn an_empty_answer_is_not_silence() {
    check(
        "alice: hello / agent: finishes ",
        &[
            "post 1: The model returned an empty answer.",
            "record notice: The model returned an empty answer.",
        ],
    );
}

#[test]
fn an_answer_that_says_nothing_is_kept_and_not_delivered() {
    check("alice: hello / agent: finishes [SILENT]", &["record answer: [SILENT]"]);
    check("alice: hello / agent: finishes *no reply*.", &["record answer: *no reply*."]);
}

#[test]
fn stopping_keeps_what_was_said_so_far() {
    check(
        "alice: hello / alice: /stop / agent: stopped Once upon",
        &["post 1: Once upon  *Stopped.*", "record answer: Once upon\n\n*Stopped.*"],
    );
}

#[test]
fn a_question_waits_for_an_answer_by_button_number_label_or_words() {
    let asked = "alice: hello / agent: asks Sure?";
    check(asked, &["post 1: Sure?", "record notice: Sure?"]);
    for (line, answer) in [
        ("press: q2", r#"Chosen(ChoiceId("q2"))"#),
        ("alice: 2", r#"Chosen(ChoiceId("q2"))"#),
        ("alice: no", r#"Chosen(ChoiceId("q2"))"#),
        ("alice: 👍", r#"Chosen(ChoiceId("q1"))"#),
        ("alice: cancel", r#"Chosen(ChoiceId("q2"))"#),
        ("alice: /approve", r#"Chosen(ChoiceId("q1"))"#),
        ("alice: /deny", r#"Chosen(ChoiceId("q2"))"#),
        ("alice: /deny too dear", r#"Said("No. too dear")"#),
        ("alice: 3", r#"Said("3")"#),
        ("alice: maybe", r#"Said("maybe")"#),
        ("alice sends a.png: no", r#"Chosen(ChoiceId("q2")) +a.png"#),
        ("alice sends a.png: ", r#"Said("") +a.png"#),
    ] {
        let mut talk = Talk::new(quiet());
        talk.play(asked);
        let effects = talk.line(line);
        assert_eq!(effects.last().map(print), Some(format!("tell turn 1: {answer}")), "{line}");
        assert!(matches!(talk.session.phase, Phase::Thinking(_)));
    }
}

#[test]
fn files_sent_with_an_answer_are_recorded_and_told_again_after_a_restart() {
    let mut talk = Talk::new(quiet());
    let effects = talk.play("alice: hello / agent: asks Which? / alice sends a.png: this one");
    let aside = effects.iter().find_map(|effect| match effect {
        Effect::Record { entry, .. } => Some(entry.body.clone()),
        _ => None,
    });
    let Some(EntryBody::Aside { files, .. }) = aside else { panic!("{effects:?}") };
    assert_eq!(files, [file("a.png")]);
    let again = talk.line("crash");
    assert_eq!(again.last().map(print).as_deref(), Some(r#"tell turn 1: Said("this one") +a.png"#));
}

#[test]
fn a_verdict_needs_an_open_question() {
    let texts = |script: &str| posted(&Talk::new(quiet()).play(script));
    assert_eq!(texts("alice: /approve"), ["No question is open."]);
    assert_eq!(texts("alice: hello / alice: /deny"), ["No question is open."]);
}

#[test]
fn a_button_of_an_old_question_is_refused_visibly() {
    check(
        "press: q1",
        &[
            "ignore #1: the question is not open any more",
            "post 1: That question is not open any more.",
            "record notice: That question is not open any more.",
        ],
    );
}

#[test]
fn a_question_that_nobody_answers_expires() {
    check("alice: hello / agent: asks Sure? / later: 86401", &["tell turn 1: Expired"]);
}

#[test]
fn a_turn_that_is_stopping_asks_nothing() {
    check("alice: hello / alice: /stop / agent: asks Sure?", &[]);
}

#[test]
fn the_time_a_person_takes_to_answer_does_not_count_against_the_turn() {
    let mut talk = Talk::new(quiet());
    talk.line("alice: hello");
    let before = talk.session.hand().expect("a turn").deadline;
    talk.line("agent: asks Sure?");
    talk.now = talk.now + Duration::from_secs(3600);
    talk.line("press: q1");
    let after = talk.session.hand().expect("a turn").deadline;
    assert_eq!(after.since(before), Duration::from_secs(3601));
}

#[test]
fn a_full_session_has_room_for_an_answer() {
    let mut talk = Talk::new(steering());
    talk.line("alice: hello");
    for _ in 0..talk.session.rules.room {
        talk.line("alice: more");
    }
    assert!(!talk.session.has_room());
    talk.line("agent: asks Sure?");
    assert!(talk.session.has_room());
}

#[test]
fn late_words_of_an_ended_turn_change_nothing() {
    let mut talk = Talk::new(quiet());
    talk.line("alice: hello");
    let turn = talk.session.hand().expect("a turn").turn.clone();
    talk.line("alice: /new");
    let before = talk.session.clone();
    let (usage, cost) = (Usage::default(), Cost::UNKNOWN);
    let event = AgentEvent::Failed { failure: Failure::Stopped, said: String::new(), usage, cost };
    assert_eq!(talk.tell(Event::Agent { turn, event }), []);
    assert_eq!(talk.session.phase, before.phase);
    assert_eq!(talk.session.entries, before.entries);
}

#[test]
fn session_ids_say_when_they_began() {
    let id = Talk::new(quiet()).session.id.to_string();
    assert!(id.starts_with("20261115_093000_"), "{id}");
    assert_eq!(id.len(), 24);
}

#[test]
fn what_a_turn_uses_is_added_up() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: steps x / agent: finishes hi");
    assert_eq!(talk.session.usage.input, 200);
    assert_eq!(talk.session.usage.output, 20);
    assert_eq!(talk.session.cost.to_string(), "$0.0020");
    assert_eq!(talk.session.prompt, 100);
}

#[test]
fn a_message_keeps_its_id_and_the_first_speaker_is_the_origin() {
    let mut talk = Talk::new(quiet());
    let mut inbound = said("alice", "hello");
    told_of(&mut inbound, "m1");
    inbound.source.chat_name = Some("Home".into());
    let effects = talk.arrive(inbound);
    let Some(Effect::Record { entry, .. }) = effects.get(1) else { panic!("{effects:?}") };
    let EntryBody::Said { message, heard, .. } = &entry.body else { panic!("{entry:?}") };
    assert_eq!(message.as_ref().map(|id| id.as_str()), Some("m1"));
    assert_eq!(heard, &None);
    talk.line("bob: hi");
    let origin = talk.session.origin.as_ref().expect("an origin");
    assert_eq!(origin.from.id.as_str(), "alice");
    assert_eq!(talk.session.name.as_deref(), Some("Home"));
}

#[test]
fn a_conversation_is_called_after_the_first_words_and_not_after_a_command() {
    let mut talk = Talk::new(quiet());
    talk.line("alice: /help");
    assert_eq!(talk.session.title, "");
    talk.line("alice: What is a\nblue whale?");
    assert_eq!(talk.session.title, "What is a");
    talk.play("agent: finishes An animal. / alice: And a red one?");
    assert_eq!(talk.session.title, "What is a");
}

#[test]
fn a_turn_past_its_limit_is_abandoned_with_a_reason() {
    check(
        "alice: hello / later: 1801",
        &[
            "abandon turn 1",
            "post 1: I stopped after 30 minutes, the limit for one answer.",
            "record notice: I stopped after 30 minutes, the limit for one answer.",
        ],
    );
}

#[test]
fn a_turn_of_which_nothing_is_heard_is_given_up_when_somebody_speaks_or_time_passes() {
    let rules = || super::rules_with(|rules| rules.turn_limit = Duration::from_secs(86_400));
    let gone = "post 2: I gave up on this answer: nothing was heard of it for 30 min";
    for last in ["later: 1800", "away: 1800 / bob: hello?"] {
        let mut talk = Talk::new(rules());
        talk.play("alice: hello / later: 600 / agent: steps still here");
        let effects = talk.play(last);
        let lines = super::printed(&effects);
        assert_eq!(lines[..2], ["abandon turn 1".to_owned(), gone.to_owned()], "{last}");
        assert_eq!(
            effects.iter().any(|effect| matches!(effect, Effect::Start(_))),
            last.contains("bob")
        );
    }
    let mut talk = Talk::new(rules());
    talk.play("alice: hello / later: 1000 / agent: steps still here");
    assert_eq!(
        talk.session.wake_at().map(|at| at.since(talk.now)),
        Some(Duration::from_secs(1800))
    );
    assert_eq!(talk.play("later: 1000"), []);
}

#[test]
fn a_steer_becomes_part_of_the_turn_when_the_agent_took_it() {
    check_with(
        steering(),
        "alice: hello / alice: and in French / agent: took 2",
        &["bind #2 to turn 1", "record alice: and in French"],
    );
}

#[test]
fn files_of_a_step_go_out_with_its_words() {
    let mut talk = Talk::new(quiet());
    talk.line("alice: hello");
    let turn = talk.session.hand().expect("a turn").turn.clone();
    let event = AgentEvent::Stepped {
        text: "Your cat.".into(),
        files: vec![file("cat")],
        calls: vec![],
        reasoning: None,
        usage: Usage::default(),
        cost: Cost::FREE,
    };
    let effects = talk.tell(Event::Agent { turn, event });
    let [Effect::Post(outbound), Effect::Record { entry, .. }] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    let Act::Post(content) = &outbound.act else { panic!("{outbound:?}") };
    assert_eq!((content.text.as_str(), &content.files), ("Your cat.", &vec![file("cat")]));
    let EntryBody::Answered { files, .. } = &entry.body else { panic!("{entry:?}") };
    assert_eq!(*files, [file("cat")]);
}

#[test]
fn what_an_answer_used_counts_even_if_it_broke_off() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: fails no");
    assert_eq!((talk.session.usage.input, talk.session.cost), (100, Cost::known(1_000)));
    talk.play("alice: sum it up / agent: finishes yes / alice: /compress / agent: declines no");
    assert_eq!(talk.session.cost, Cost::known(3_000));
}

#[test]
fn an_answer_that_was_cut_short_is_not_free() {
    for script in [
        "alice: hello / alice: /stop / agent: stopped Once",
        "alice: hello / away: 5 / alice: wait / agent: stopped Once",
        "alice: hello / agent: stopped Once",
    ] {
        let mut talk = Talk::new(quiet());
        let effects = talk.play(script);
        assert_eq!(talk.session.cost, Cost::known(1_000), "{script}");
        assert_eq!(talk.session.usage.output, 10, "{script}");
        let recorded = effects.iter().any(|effect| match effect {
            Effect::Record { entry, .. } => matches!(&entry.body,
                EntryBody::Answered { cost, usage, .. }
                    if *cost == Cost::known(1_000) && usage.output == 10),
            _ => false,
        });
        assert!(recorded, "{script}: {effects:?}");
    }
    for script in ["alice: hello / later: 1801", "alice: hello / alice: /stop / crash"] {
        let mut talk = Talk::new(quiet());
        talk.play("alice: first / agent: finishes 1");
        talk.play(script);
        assert_eq!(talk.session.cost.to_string(), "at least $0.0010", "{script}");
    }
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: steps Sure? / agent: asks Sure? / alice: /new");
    let asked = "alice: hello / agent: steps x / agent: asks Sure?";
    talk.play(asked);
    assert_eq!(talk.session.cost, Cost::known(1_000), "nothing is used while a person is asked");
}

#[test]
fn a_block_of_code_that_was_cut_off_ends_before_the_reason() {
    let effects =
        Talk::new(quiet()).play("alice: hello / alice: /stop / agent: stopped ```\nlet x");
    assert_eq!(posted(&effects), ["```\nlet x\n```\n\n*Stopped.*"]);
}
