//! What a turn is told while it runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use talaria_agent::{EffectClass, FinishReason, Part, PromptMessage};
use talaria_model::{AgentEvent, Answer, CallId, ChoiceId, Word};

use crate::stage::{
    Files, Model, Scripted, Stage, brief, briefs, call, calls, end, file, says, text,
};

fn ask(id: &'static str) -> crate::stage::Reply {
    calls(vec![call(id, "ask", json!({ "question": "Which?", "choices": ["red", "blue"] }))])
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_model_speaks_keeps_what_it_said() {
    let slow = vec![text("Once"), text(" upon"), text(" a time")];
    let mut stage = Stage::new(Model::new([slow]).slow(Duration::from_secs(1)));
    stage.say("a story");
    let mut running = stage.start();
    let control = running.control.clone();
    let stop = async {
        talaria_clock::Clock::sleep(&talaria_clock::SystemClock, Duration::from_millis(2500)).await;
        control.send(Word::Stop).await.unwrap();
    };
    let (events, ()) = tokio::join!(stage.finish(&mut running), stop);
    assert_eq!(briefs(&events), [r#"failed Stopped. after "Once upon""#]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_a_tool_works_ends_the_turn_at_once() {
    let mut stage = Stage::new(Model::new([calls(vec![call("c1", "sleep", json!({}))])]));
    let mut sleep = Scripted::new("sleep", EffectClass::Unsafe, &stage.trace);
    sleep.takes = Duration::from_secs(1000);
    stage = stage.with_tool(sleep);
    stage.say("sleep");
    let mut running = stage.start();
    stage.next(&mut running).await;
    stage.next(&mut running).await;
    running.control.send(Word::Stop).await.unwrap();
    assert_eq!(briefs(&stage.finish(&mut running).await), [r#"failed Stopped. after """#]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_it_asks_ends_the_turn() {
    let mut stage = Stage::new(Model::new([ask("c1")]));
    stage.say("help me");
    let mut running = stage.start();
    stage.next(&mut running).await;
    assert_eq!(brief(&stage.next(&mut running).await.unwrap()), "asked Which?");
    running.control.send(Word::Stop).await.unwrap();
    assert_eq!(briefs(&stage.finish(&mut running).await), [r#"failed Stopped. after """#]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_nobody_holds_any_more_ends() {
    let mut stage = Stage::new(Model::new([]));
    stage.say("hi");
    let mut running = stage.start();
    let (control, _) = tokio::sync::mpsc::channel(1);
    running.control = control;
    assert_eq!(briefs(&stage.finish(&mut running).await), [r#"failed Stopped. after """#]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_becomes_the_result_of_the_call_that_asked() {
    for (answer, result) in [
        (None, "c1: The person answered: blue"),
        (Some(Answer::Said("green".into())), "c1: The person answered: green"),
        (
            Some(Answer::Chosen(ChoiceId::literal("c1.2"))),
            "c1: The person answered: something else",
        ),
        (Some(Answer::Expired), "c1: The person answered: (nobody answered in time)"),
    ] {
        let mut stage = Stage::new(Model::new([ask("c1"), says("Fine.")]));
        stage.say("help me");
        let mut running = stage.start();
        stage.next(&mut running).await;
        let asked = stage.next(&mut running).await.unwrap();
        let AgentEvent::Asked(question) = asked else { panic!("{asked:?}") };
        assert_eq!(question.call.as_str(), "c1");
        assert_eq!(question.choices[1].label, "blue");
        let pressed = Answer::Chosen(question.choices[1].id.clone());
        let answer = Word::Answer {
            to: CallId::literal("c1"),
            answer: answer.unwrap_or(pressed),
            files: vec![],
        };
        running.control.send(answer).await.unwrap();
        let events = briefs(&stage.finish(&mut running).await);
        assert_eq!(events, [result, r#"finished "Fine.""#]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_nothing_is_not_taken_for_the_next_question() {
    let mut stage = Stage::new(Model::new([ask("c1"), says("Fine.")]).slow(Duration::from_secs(1)));
    stage.say("help me");
    let mut running = stage.start();
    running
        .control
        .send(Word::Answer {
            to: CallId::literal("c1"),
            answer: Answer::Said("too early".into()),
            files: vec![],
        })
        .await
        .unwrap();
    stage.next(&mut running).await;
    assert_eq!(brief(&stage.next(&mut running).await.unwrap()), "asked Which?");
    running
        .control
        .send(Word::Answer {
            to: CallId::literal("c1"),
            answer: Answer::Said("red".into()),
            files: vec![],
        })
        .await
        .unwrap();
    let events = briefs(&stage.finish(&mut running).await);
    assert_eq!(events[0], "c1: The person answered: red");
}

#[tokio::test(start_paused = true)]
async fn the_time_a_person_takes_is_not_the_turns() {
    let slow = vec![text("I thought long."), end(FinishReason::Stop, vec![])];
    let mut stage = Stage::new(Model::new([ask("c1"), slow]).slow(Duration::from_secs(500)));
    stage.say("help me");
    let mut running = stage.start();
    stage.next(&mut running).await;
    stage.next(&mut running).await;
    let control = running.control.clone();
    let answer = async {
        talaria_clock::Clock::sleep(&talaria_clock::SystemClock, Duration::from_secs(36_000)).await;
        control
            .send(Word::Answer {
                to: CallId::literal("c1"),
                answer: Answer::Expired,
                files: vec![],
            })
            .await
            .unwrap();
    };
    // Eight minutes before the question, and two times eight after it: within thirty.
    let (events, ()) = tokio::join!(stage.finish(&mut running), answer);
    assert_eq!(brief(events.last().unwrap()), r#"finished "I thought long.""#);
}

#[tokio::test(start_paused = true)]
async fn a_question_does_not_give_a_turn_more_time_than_it_had() {
    let slow = vec![text("I thought"), text(" too long."), end(FinishReason::Stop, vec![])];
    let mut stage = Stage::new(Model::new([ask("c1"), slow]).slow(Duration::from_secs(800)));
    stage.say("help me");
    let mut running = stage.start();
    stage.next(&mut running).await;
    stage.next(&mut running).await;
    let control = running.control.clone();
    control
        .send(Word::Answer { to: CallId::literal("c1"), answer: Answer::Expired, files: vec![] })
        .await
        .unwrap();
    let events = stage.finish(&mut running).await;
    let last = brief(events.last().unwrap());
    assert!(last.contains("30 minutes") && last.ends_with(r#"after "I thought""#), "{last}");
}

#[tokio::test(start_paused = true)]
async fn what_is_said_while_it_works_is_taken_up_before_the_next_step() {
    let wants = calls(vec![call("c1", "look", json!({}))]);
    let mut stage = Stage::new(Model::new([wants, says("Done.")])).with("look", EffectClass::Pure);
    stage.say("look");
    let mut running = stage.start();
    stage.next(&mut running).await;
    stage.steer(&running, 7, "and hurry");
    stage.steer(&running, 8, "please");
    let events = briefs(&stage.finish(&mut running).await);
    assert_eq!(events, ["c1: look is done", "took [7, 8]", r#"finished "Done.""#]);
    let prompts = stage.model.prompts();
    let last = &prompts[1].messages[prompts[1].messages.len() - 2..];
    let said = |text: &str| PromptMessage::User(vec![Part::Text(text.into())]);
    assert_eq!(last, [said("and hurry"), said("please")]);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_during_the_last_step_is_left_for_the_next_turn() {
    let slow = vec![text("Done."), end(FinishReason::Stop, vec![])];
    let mut stage = Stage::new(Model::new([slow]).slow(Duration::from_secs(1)));
    stage.say("look");
    let mut running = stage.start();
    stage.steer(&running, 7, "and hurry");
    let events = briefs(&stage.finish(&mut running).await);
    assert_eq!(events, ["took [7]", r#"finished "Done.""#], "said before the first step");

    let slow = vec![text("Done."), end(FinishReason::Stop, vec![])];
    let mut stage = Stage::new(Model::new([slow]).slow(Duration::from_secs(2)));
    stage.say("look");
    let mut running = stage.start();
    let late = tokio::time::timeout(Duration::from_secs(1), stage.next(&mut running)).await;
    assert!(late.is_err(), "it is speaking");
    stage.steer(&running, 7, "and hurry");
    let events = briefs(&stage.finish(&mut running).await);
    assert_eq!(events, [r#"finished "Done.""#], "nobody says that it was taken up");
}

#[tokio::test(start_paused = true)]
async fn what_is_said_while_it_asks_is_kept_for_the_next_step() {
    let mut stage = Stage::new(Model::new([ask("c1"), says("Fine.")]));
    stage.say("help me");
    let mut running = stage.start();
    stage.next(&mut running).await;
    stage.next(&mut running).await;
    stage.steer(&running, 9, "by the way");
    running
        .control
        .send(Word::Answer {
            to: CallId::literal("c1"),
            answer: Answer::Said("red".into()),
            files: vec![],
        })
        .await
        .unwrap();
    let events = briefs(&stage.finish(&mut running).await);
    assert_eq!(events, ["c1: The person answered: red", "took [9]", r#"finished "Fine.""#]);
}

#[tokio::test(start_paused = true)]
async fn it_is_told_when_others_work_for_the_turn() {
    let wants = calls(vec![call("c1", "delegate", json!({}))]);
    let mut stage = Stage::new(Model::new([wants, says("Done.")]));
    let tool = Scripted::new("delegate", EffectClass::Pure, &stage.trace);
    stage = stage.with_delegating(tool);
    stage.say("let others do it");
    assert_eq!(
        briefs(&stage.play().await),
        [
            "stepped \"\" [\"delegate\"]",
            "working SubWork",
            "c1: delegate is done",
            "working Plain",
            "finished \"Done.\"",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn files_sent_with_an_answer_reach_the_model() {
    let wants = calls(vec![call("c1", "ask", json!({ "question": "Which?" }))]);
    let mut stage = Stage::new(Model::new([wants, says("Done.")]));
    let notes = file("notes.txt", "text/plain", 5);
    stage.files = Arc::new(Files(HashMap::from([(notes.id.clone(), b"green".to_vec())])));
    stage.say("ask me");
    let mut running = stage.start();
    stage.next(&mut running).await;
    stage.next(&mut running).await;
    let answer = Answer::Said("this".into());
    running
        .control
        .send(Word::Answer { to: CallId::literal("c1"), answer, files: vec![notes] })
        .await
        .unwrap();
    let events = briefs(&stage.finish(&mut running).await);
    assert!(
        events[0].contains("The person answered: this") && events[0].contains("green"),
        "{events:?}"
    );
}
