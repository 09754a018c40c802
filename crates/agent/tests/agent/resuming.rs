//! A turn that goes on after a restart: nothing that is done is done again, and what cannot be known
//! is said.

use std::sync::Arc;

use serde_json::json;
use talaria_agent::{EffectClass, PromptMessage, ToolError, ToolOutput};
use talaria_model::{AgentEvent, Answer, CallId, Word};

use crate::stage::{Model, Scripted, Stage, briefs, call, calls, file, output, says};

/// A turn with one tool that dies after so many events, and how it goes on.
async fn die_and_go_on(effect: EffectClass, after: usize) -> (Vec<String>, Vec<String>) {
    let wants = calls(vec![call("c1", "tool", json!({}))]);
    let mut stage = Stage::new(Model::new([wants])).with("tool", effect);
    stage.say("do it");
    stage.play_and_die(after).await;
    stage.trace.lock().unwrap().clear();
    stage.with_model(Model::new([says("Done.")]));
    let events = briefs(&stage.play().await);
    (events, stage.trace())
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_recorded_is_not_asked_for_again() {
    for effect in [EffectClass::Pure, EffectClass::Idempotent, EffectClass::Unsafe] {
        let (events, trace) = die_and_go_on(effect, 1).await;
        assert_eq!(trace, ["tool {}"], "{effect:?}: it had not begun");
        assert_eq!(events.last().unwrap(), r#"finished "Done.""#);
    }
}

#[tokio::test(start_paused = true)]
async fn an_idempotent_call_that_had_begun_is_made_again_without_another_announcement() {
    let (events, trace) = die_and_go_on(EffectClass::Idempotent, 2).await;
    assert_eq!(trace, ["tool {}"]);
    assert_eq!(events, ["c1: tool is done", r#"finished "Done.""#]);
}

#[tokio::test(start_paused = true)]
async fn an_unsafe_call_that_had_begun_is_not_made_again_and_both_are_told() {
    let (events, trace) = die_and_go_on(EffectClass::Unsafe, 2).await;
    assert_eq!(trace, Vec::<String>::new());
    assert!(
        events[0].starts_with("c1 failed: This call was started before a restart"),
        "{events:?}"
    );
    assert!(events[1].contains("A restart interrupted `tool`"), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn the_person_is_told_about_an_unsafe_call_although_the_process_dies_again() {
    let wants = calls(vec![call("c1", "pay", json!({}))]);
    let mut stage = Stage::new(Model::new([wants])).with("pay", EffectClass::Unsafe);
    stage.say("pay");
    stage.play_and_die(2).await;
    // The model is told, and then the process dies once more.
    stage.with_model(Model::new([]));
    stage.play_and_die(1).await;
    stage.with_model(Model::new([says("Hm.")]));
    let events = briefs(&stage.play().await);
    assert!(events[0].contains("A restart interrupted `pay`"), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_queryable_call_that_had_begun_is_asked_what_became_of_it() {
    for (outcome, result, trace) in [
        (Ok(Some(output("sent"))), "c1: sent", vec!["mail outcome of c1"]),
        (Ok(None), "c1: mail is done", vec!["mail outcome of c1", "mail {}"]),
        (
            Err(ToolError::Failed("nobody knows".into())),
            "c1 failed: nobody knows",
            vec!["mail outcome of c1"],
        ),
    ] {
        let wants = calls(vec![call("c1", "mail", json!({}))]);
        let mut stage = Stage::new(Model::new([wants]));
        let mut mail = Scripted::new("mail", EffectClass::Queryable, &stage.trace);
        mail.outcome = outcome;
        stage = stage.with_tool(mail);
        stage.say("mail");
        stage.play_and_die(2).await;
        stage.trace.lock().unwrap().clear();
        stage.with_model(Model::new([says("Done.")]));
        let events = briefs(&stage.play().await);
        assert_eq!(events[0], result);
        assert_eq!(stage.trace(), trace);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_returned_is_not_made_again_and_the_ones_behind_it_are() {
    let wants = calls(vec![
        call("c1", "pay", json!({})),
        call("c2", "pay", json!({})),
        call("c3", "look", json!({})),
    ]);
    let mut stage = Stage::new(Model::new([wants]))
        .with("pay", EffectClass::Unsafe)
        .with("look", EffectClass::Pure);
    stage.say("do it");
    stage.play_and_die(3).await;
    assert_eq!(stage.trace(), ["pay {}"]);
    stage.with_model(Model::new([says("Done.")]));
    let events = briefs(&stage.play().await);
    assert_eq!(
        events,
        ["calling c2", "c2: pay is done", "c3: look is done", r#"finished "Done.""#]
    );
    let prompts = stage.model.prompts();
    let results: Vec<_> = prompts[0]
        .messages
        .iter()
        .filter_map(|message| match message {
            PromptMessage::ToolResult { call, .. } => Some(call.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(results, [CallId::literal("c1"), CallId::literal("c2"), CallId::literal("c3")]);
}

#[tokio::test(start_paused = true)]
async fn files_of_tools_go_along_although_the_process_died_in_between() {
    let wants = calls(vec![call("c1", "draw", json!({})), call("c2", "draw", json!({}))]);
    let mut stage = Stage::new(Model::new([wants]));
    let mut draw = Scripted::new("draw", EffectClass::Pure, &stage.trace);
    draw.deed = Arc::new(|scope| {
        let files = vec![file(scope.call.as_str(), "image/png", 3)];
        Ok(ToolOutput { files, ..ToolOutput::text("drawn") })
    });
    stage = stage.with_tool(draw);
    stage.say("an older turn");
    let old = stage.entries.clone();
    stage.say("draw");
    stage.play_and_die(2).await;
    stage.with_model(Model::new([says("Here.")]));
    let events = stage.play().await;
    let Some(AgentEvent::Finished { files, .. }) = events.last() else { panic!("{events:?}") };
    let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["c1", "c2"]);
    assert_eq!(old.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_open_is_not_asked_again() {
    let ask = json!({ "question": "Which?", "choices": ["red", "blue"] });
    let wants = calls(vec![call("c1", "ask", ask)]);
    let mut stage = Stage::new(Model::new([wants]));
    stage.say("help me");
    stage.play_and_die(2).await;
    assert!(stage.asked.is_some());
    stage.with_model(Model::new([says("Fine.")]));
    let mut running = stage.start();
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
    assert_eq!(events, ["c1: The person answered: red", r#"finished "Fine.""#]);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_never_asked_is_asked() {
    let ask = json!({ "question": "Which?" });
    let wants = calls(vec![call("c1", "ask", ask)]);
    let mut stage = Stage::new(Model::new([wants]));
    stage.say("help me");
    stage.play_and_die(1).await;
    stage.with_model(Model::new([says("Fine.")]));
    let mut running = stage.start();
    running
        .control
        .send(Word::Answer {
            to: CallId::literal("c1"),
            answer: Answer::Said("early".into()),
            files: vec![],
        })
        .await
        .unwrap();
    let event = stage.next(&mut running).await.unwrap();
    assert_eq!(briefs(&[event]), ["asked Which?"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_model_had_not_answered_asks_it_once_more() {
    let mut stage = Stage::new(Model::new([]));
    stage.say("hi");
    stage.play_and_die(0).await;
    stage.with_model(Model::new([says("Hello.")]));
    assert_eq!(briefs(&stage.play().await), [r#"finished "Hello.""#]);
    assert_eq!(stage.model.prompts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_prompt_after_a_restart_is_the_prompt_without_one() {
    let replies = || {
        [
            calls(vec![call("c1", "look", json!({})), call("c2", "pay", json!({}))]),
            calls(vec![call("c3", "look", json!({}))]),
            says("Done."),
        ]
    };
    let stage = || {
        let mut stage = Stage::new(Model::new(replies()))
            .with("look", EffectClass::Pure)
            .with("pay", EffectClass::Idempotent);
        stage.say("before");
        stage.record(talaria_model::EntryBody::Aside {
            from: crate::stage::alice(),
            text: "/x".into(),
            files: vec![],
            message: None,
        });
        stage.say("do it");
        stage
    };
    let mut whole = stage();
    let count = whole.play().await.len();
    let expected = whole.model.prompts().pop().unwrap().messages;
    for after in 0..count {
        let mut stage = stage();
        stage.play_and_die(after).await;
        let asked = stage.model.prompts().len();
        let steps = stage
            .entries
            .iter()
            .filter(|entry| matches!(&entry.body, talaria_model::EntryBody::Answered { .. }))
            .count();
        assert!(asked >= steps);
        stage.with_model(Model::new(replies().into_iter().skip(steps)));
        stage.play().await;
        let messages = stage.model.prompts().pop().unwrap().messages;
        assert_eq!(messages, expected, "dead after {after} events");
    }
}
