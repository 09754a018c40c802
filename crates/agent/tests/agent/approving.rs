//! Calls that a person is asked about before they are made.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use talaria_agent::{
    Bounds, Danger, EffectClass, Gravity, Reads, Refused, Running, ToolError, Wraps,
};
use talaria_model::{
    AgentEvent, Answer, Approval, Attended, CallId, ChoiceId, Consent, Digest, Lasting, Question,
    Word,
};

use crate::stage::{Model, Scripted, Stage, briefs, call, calls, says};

/// A tool that asks about what it is given, at a price that can change.
fn asking(stage: &Stage, effect: EffectClass, price: &Arc<AtomicU32>) -> Scripted {
    let price = price.clone();
    let gravity = move |arguments: &Value| {
        let price = price.load(Ordering::Relaxed);
        Ok(Gravity::Asks(Danger {
            what: "pays".into(),
            resolved: json!({ "arguments": arguments, "price": price }),
            wraps: Wraps::Nothing,
            reads: Reads::Signs,
        }))
    };
    Scripted { gravity: Arc::new(gravity), ..Scripted::new("pay", effect, &stage.trace) }
}

/// A stage on which the model wants to pay bob.
fn paying(effect: EffectClass) -> (Stage, Arc<AtomicU32>) {
    let wants = calls(vec![call("c1", "pay", json!({ "to": "bob" }))]);
    let stage = Stage::new(Model::new([wants, says("So be it.")]));
    let price = Arc::new(AtomicU32::new(5));
    let tool = asking(&stage, effect, &price);
    let mut stage = stage.with_tool(tool);
    stage.say("pay bob");
    (stage, price)
}

/// Calls like this are never made.
fn refusing(line: &str) -> Bounds {
    Bounds { refused: Refused::new([line]), ..Bounds::default() }
}

/// As far as the question.
async fn asked(stage: &mut Stage, running: &mut Running) -> Question {
    loop {
        match stage.next(running).await.expect("it asks") {
            AgentEvent::Asked(question) => return question,
            AgentEvent::Stepped { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

fn answer(running: &Running, answer: Answer) {
    answer_to("c1", running, answer);
}

fn answer_to(call: &'static str, running: &Running, answer: Answer) {
    let (to, files) = (CallId::literal(call), vec![]);
    running.control.try_send(Word::Answer { to, answer, files }).unwrap();
}

fn yes(question: &Question) -> Answer {
    let digest = question.approval.as_ref().unwrap().digest;
    Answer::Approved { digest, consent: Consent::Once }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_made_after_a_yes_and_recorded_only_then() {
    let (mut stage, _) = paying(EffectClass::Unsafe);
    let mut running = stage.start();
    let question = asked(&mut stage, &mut running).await;
    assert!(stage.trace().is_empty() && stage.started.is_empty());
    assert_eq!(
        question.text,
        "⚠️ May I call `pay`?\n\n`pays`\n\nExactly this:\n\n```\n{\"arguments\":{\"to\":\"bob\"},\"price\":5}\n```"
    );
    let approval = question.approval.as_deref().unwrap();
    assert_eq!(question.choices, approval.choices());
    assert!(matches!(approval.lasting, Lasting::Possible(_)));
    answer(&running, yes(&question));
    let events = stage.finish(&mut running).await;
    assert_eq!(briefs(&events), ["calling c1", "c1: pay is done", "finished \"So be it.\""]);
    assert_eq!(stage.trace(), ["pay {\"to\":\"bob\"}"]);
}

#[tokio::test(start_paused = true)]
async fn everything_but_a_yes_to_exactly_this_is_a_no() {
    let other = Digest::new([9; 32]);
    for (given, told) in [
        (Answer::Denied { reason: String::new() }, "did not approve"),
        (Answer::Denied { reason: "too \"dear\"".into() }, "reason given: \"too \\\"dear\\\"\""),
        (Answer::Expired, "Nobody approved this call in time"),
        (Answer::Said("yes".into()), "did not approve"),
        (Answer::Chosen(ChoiceId::literal("yes")), "did not approve"),
        (Answer::Approved { digest: other, consent: Consent::Always }, "is not what the person"),
    ] {
        let (mut stage, _) = paying(EffectClass::Unsafe);
        let mut running = stage.start();
        asked(&mut stage, &mut running).await;
        answer(&running, given.clone());
        let events = briefs(&stage.finish(&mut running).await);
        assert_eq!(events.len(), 2, "{given:?}: {events:?}");
        assert!(events[0].starts_with("c1 failed: ") && events[0].contains(told), "{events:?}");
        assert!(stage.trace().is_empty(), "{given:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_choice_that_means_yes_is_no_yes_before_the_session_says_so() {
    let (mut stage, _) = paying(EffectClass::Unsafe);
    let mut running = stage.start();
    let question = asked(&mut stage, &mut running).await;
    answer(&running, Answer::Chosen(question.choices[0].id.clone()));
    stage.finish(&mut running).await;
    assert!(stage.trace().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_changes_while_the_person_thinks_is_not_done() {
    for effect in [EffectClass::Unsafe, EffectClass::Pure, EffectClass::Idempotent] {
        let (mut stage, price) = paying(effect);
        let mut running = stage.start();
        let question = asked(&mut stage, &mut running).await;
        price.store(6, Ordering::Relaxed);
        answer(&running, yes(&question));
        let events = briefs(&stage.finish(&mut running).await);
        assert!(events[0].starts_with("c1 failed: What this call would do"), "{events:?}");
        assert!(stage.trace().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_changes_while_the_call_is_recorded_is_not_done() {
    let (mut stage, price) = paying(EffectClass::Unsafe);
    let mut running = stage.start();
    let question = asked(&mut stage, &mut running).await;
    answer(&running, yes(&question));
    let calling = stage.next(&mut running).await.unwrap();
    assert!(matches!(calling, AgentEvent::Calling { .. }));
    price.store(6, Ordering::Relaxed);
    let events = briefs(&stage.finish(&mut running).await);
    assert!(events[0].starts_with("c1 failed: What this call would do"), "{events:?}");
    assert!(stage.trace().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_open_question_is_taken_up_again_after_a_restart_if_it_is_the_same() {
    let (mut stage, price) = paying(EffectClass::Unsafe);
    let mut running = stage.start();
    let question = asked(&mut stage, &mut running).await;
    drop(running);
    let mut again = stage.start();
    answer(&again, yes(&question));
    stage.with_model(Model::new([says("Done.")]));
    let events = briefs(&stage.finish(&mut again).await);
    assert_eq!(events[..2], ["calling c1", "c1: pay is done"]);

    let (mut stage, _) = {
        price.store(5, Ordering::Relaxed);
        paying(EffectClass::Unsafe)
    };
    let mut running = stage.start();
    asked(&mut stage, &mut running).await;
    drop(running);
    let approval = stage.asked.as_mut().unwrap().approval.as_mut().unwrap();
    approval.digest = Digest::new([1; 32]);
    stage.with_model(Model::new([says("Done.")]));
    let mut again = stage.start();
    let events = briefs(&stage.finish(&mut again).await);
    assert!(events[0].starts_with("c1 failed: What this call would do"), "{events:?}");
    assert!(stage.trace().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_question_without_a_binding_is_no_approval_after_a_restart() {
    let (mut stage, _) = paying(EffectClass::Unsafe);
    let mut running = stage.start();
    asked(&mut stage, &mut running).await;
    drop(running);
    stage.asked.as_mut().unwrap().approval = None;
    stage.with_model(Model::new([says("Done.")]));
    let mut again = stage.start();
    let events = briefs(&stage.finish(&mut again).await);
    assert!(events[0].starts_with("c1 failed: "), "{events:?}");
    assert!(stage.trace().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_had_begun_is_not_repeated_and_nobody_is_asked_about_it() {
    let (mut stage, _) = paying(EffectClass::Unsafe);
    let mut running = stage.start();
    let question = asked(&mut stage, &mut running).await;
    answer(&running, yes(&question));
    stage.next(&mut running).await.unwrap();
    drop(running);
    stage.asked = None;
    stage.with_model(Model::new([says("Done.")]));
    let events = briefs(&stage.play().await);
    assert!(
        events[0].starts_with("c1 failed: This call was started before a restart"),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_where_nobody_is_or_where_nobody_could_read_it() {
    let (mut stage, _) = paying(EffectClass::Unsafe);
    stage.attended = Attended::No;
    let events = briefs(&stage.play().await);
    assert!(events[1].contains("nobody is there"), "{events:?}");
    assert!(stage.trace().is_empty());

    let long = calls(vec![call("c1", "pay", json!({ "to": " ".repeat(2_000) }))]);
    let stage = Stage::new(Model::new([long, says("Oh.")]));
    let tool = asking(&stage, EffectClass::Unsafe, &Arc::default());
    let mut stage = stage.with_tool(tool);
    stage.say("pay");
    let events = briefs(&stage.play().await);
    assert!(events[1].contains("too long to be shown"), "{events:?}");
    assert!(stage.trace().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_the_operator_refuses_is_not_even_asked_about() {
    for refused in ["pay", "pay:*bob*", "p*", "pay:*\"price\":5*"] {
        let (mut stage, _) = paying(EffectClass::Unsafe);
        stage.settings.fence.set(refusing(refused));
        let played = stage.play().await;
        let events = briefs(&played);
        assert!(events[1].contains("The operator does not let"), "{refused}: {events:?}");
        assert!(stage.trace().is_empty(), "{refused}");
        assert_eq!(unasked(&played), ["not pay"], "{refused}");
    }
}

/// What is put on record of calls about which nobody is asked.
fn unasked(events: &[AgentEvent]) -> Vec<String> {
    let told = events.iter().filter_map(|event| match event {
        AgentEvent::Calling { unasked, .. } => Some(unasked.as_ref()?.tool.clone()),
        AgentEvent::Called { refused, .. } => Some(format!("not {}", refused.as_ref()?.tool)),
        _ => None,
    });
    told.collect()
}

#[tokio::test(start_paused = true)]
async fn what_reaches_outside_and_is_not_asked_about_is_on_record() {
    for (effect, recorded) in [
        (EffectClass::Unsafe, &["note"][..]),
        (EffectClass::Queryable, &["note"]),
        (EffectClass::Idempotent, &[]),
        (EffectClass::Pure, &[]),
    ] {
        let wants = calls(vec![call("c1", "note", json!({ "to": "bob" }))]);
        let mut stage = Stage::new(Model::new([wants, says("So be it.")])).with("note", effect);
        stage.say("note it");
        assert_eq!(unasked(&stage.play().await), recorded, "{effect:?}");
    }
    let (mut stage, _) = paying(EffectClass::Unsafe);
    let mut running = stage.start();
    let question = asked(&mut stage, &mut running).await;
    answer(&running, yes(&question));
    let asked_about = unasked(&stage.finish(&mut running).await);
    assert!(asked_about.is_empty(), "whoever was asked is on record: {asked_about:?}");
}

#[tokio::test(start_paused = true)]
async fn what_the_operator_refuses_while_a_person_thinks_is_not_done() {
    for refused in ["pay", "pay:*bob*", "pay:*\"price\":5*"] {
        let (mut stage, _) = paying(EffectClass::Unsafe);
        let fence = stage.settings.fence.clone();
        let mut running = stage.start();
        let question = asked(&mut stage, &mut running).await;
        fence.set(refusing(refused));
        answer(&running, yes(&question));
        let finished = stage.finish(&mut running).await;
        let events = briefs(&finished);
        assert!(events[0].contains("The operator does not let"), "{refused}: {events:?}");
        assert!(stage.trace().is_empty(), "{refused}");
        assert_eq!(unasked(&finished), ["not pay"], "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_needs_no_yes_is_refused_up_to_the_moment_at_which_it_begins() {
    let wants = calls(vec![call("c1", "note", json!({ "to": "bob" }))]);
    let stage = Stage::new(Model::new([wants, says("So be it.")]));
    let mut stage = stage.with("note", EffectClass::Unsafe);
    stage.say("note it");
    let fence = stage.settings.fence.clone();
    let mut running = stage.start();
    while !matches!(stage.next(&mut running).await.unwrap(), AgentEvent::Calling { .. }) {}
    // The note that it begins is being written.
    fence.set(refusing("note"));
    let finished = stage.finish(&mut running).await;
    let events = briefs(&finished);
    assert!(events[0].contains("The operator does not let"), "{events:?}");
    assert!(stage.trace().is_empty());
    assert_eq!(unasked(&finished), ["not note"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cannot_say_what_it_would_do_is_not_called() {
    let stage = Stage::new(Model::new([calls(vec![call("c1", "pay", json!({}))]), says("Oh.")]));
    let gravity = |_: &Value| Err(ToolError::Arguments("whom?".into()));
    let tool = Scripted {
        gravity: Arc::new(gravity),
        ..Scripted::new("pay", EffectClass::Unsafe, &stage.trace)
    };
    let mut stage = stage.with_tool(tool);
    stage.say("pay");
    let events = briefs(&stage.play().await);
    assert_eq!(events[1], "c1 failed: the arguments do not fit: whom?");
    assert!(stage.trace().is_empty());
}

#[tokio::test(start_paused = true)]
async fn two_calls_of_one_step_are_two_questions() {
    let both = calls(vec![
        call("c1", "pay", json!({ "to": "bob" })),
        call("c2", "pay", json!({ "to": "bob" })),
    ]);
    let stage = Stage::new(Model::new([both, says("Oh.")]));
    let tool = asking(&stage, EffectClass::Unsafe, &Arc::default());
    let mut stage = stage.with_tool(tool);
    stage.say("pay twice");
    let mut running = stage.start();
    let first = asked(&mut stage, &mut running).await;
    answer(&running, yes(&first));
    assert!(matches!(stage.next(&mut running).await, Some(AgentEvent::Calling { .. })));
    assert!(matches!(stage.next(&mut running).await, Some(AgentEvent::Called { .. })));
    let second = asked(&mut stage, &mut running).await;
    let handle = |question: &Question| -> Approval { *question.approval.clone().unwrap() };
    assert_ne!(handle(&first).handle, handle(&second).handle);
    answer_to("c2", &running, Answer::Denied { reason: String::new() });
    stage.finish(&mut running).await;
    assert_eq!(stage.trace().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_yes_that_was_used_is_no_yes_to_the_same_call_made_anew() {
    let both = calls(vec![
        call("c1", "pay", json!({ "to": "bob" })),
        call("c2", "pay", json!({ "to": "bob" })),
    ]);
    let stage = Stage::new(Model::new([both, says("Oh.")]));
    let tool = asking(&stage, EffectClass::Unsafe, &Arc::default());
    let mut stage = stage.with_tool(tool);
    stage.say("pay twice");
    let mut running = stage.start();
    let first = asked(&mut stage, &mut running).await;
    answer(&running, yes(&first));
    assert!(matches!(stage.next(&mut running).await, Some(AgentEvent::Calling { .. })));
    // The process dies while the first call runs. It is told again what was answered.
    drop(running);
    stage.with_model(Model::new([says("Oh.")]));
    let mut again = stage.start();
    answer(&again, yes(&first));
    let unknown = stage.next(&mut again).await.unwrap();
    assert!(matches!(unknown, AgentEvent::Called { failed: true, .. }), "{unknown:?}");
    let second = asked(&mut stage, &mut again).await;
    assert_eq!(second.approval.as_ref().unwrap().digest, first.approval.as_ref().unwrap().digest);
    answer_to("c2", &again, Answer::Denied { reason: String::new() });
    stage.finish(&mut again).await;
    assert_eq!(stage.trace(), Vec::<String>::new());
}
