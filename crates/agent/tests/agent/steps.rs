//! One turn: the model, its tools, and the limits of both.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use talaria_agent::{
    Delta, EffectClass, FinishReason, Preview, PromptMessage, ProviderError, ToolError, ToolOutput,
};
use talaria_model::AgentEvent;

use crate::stage::{
    Model, Scripted, Stage, brief, briefs, call, calls, end, file, output, says, text,
};

#[tokio::test(start_paused = true)]
async fn an_answer_without_tools_is_one_event() {
    let mut stage = Stage::new(Model::new([says("Hello.")]));
    stage.say("hi");
    assert_eq!(briefs(&stage.play().await), [r#"finished "Hello.""#]);
}

#[tokio::test(start_paused = true)]
async fn tools_are_called_in_order_and_their_results_shown_to_the_model() {
    let wants = calls(vec![
        call("c1", "look", json!({ "at": 1 })),
        call("c2", "write", json!({ "at": 2 })),
        call("c3", "look", json!({ "at": 3 })),
    ]);
    let mut stage = Stage::new(Model::new([wants, says("Done.")]))
        .with("look", EffectClass::Pure)
        .with("write", EffectClass::Idempotent);
    stage.say("do it");
    let events = stage.play().await;
    assert_eq!(
        briefs(&events),
        [
            r#"stepped "" ["look", "write", "look"]"#,
            "c1: look is done",
            "calling c2",
            "c2: write is done",
            "c3: look is done",
            r#"finished "Done.""#,
        ]
    );
    assert_eq!(stage.trace(), [r#"look {"at":1}"#, r#"write {"at":2}"#, r#"look {"at":3}"#]);
    let prompts = stage.model.prompts();
    let results: Vec<_> = prompts[1]
        .messages
        .iter()
        .filter_map(|message| match message {
            PromptMessage::ToolResult { call, output, failed } => {
                Some((call.as_str(), output.as_str(), *failed))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        results,
        [
            ("c1", "look is done", false),
            ("c2", "write is done", false),
            ("c3", "look is done", false)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn only_a_tool_with_effects_is_announced() {
    for (effect, announced) in [
        (EffectClass::Pure, false),
        (EffectClass::Idempotent, true),
        (EffectClass::Queryable, true),
        (EffectClass::Unsafe, true),
    ] {
        let wants = calls(vec![call("c1", "tool", json!({}))]);
        let mut stage = Stage::new(Model::new([wants, says("Done.")])).with("tool", effect);
        stage.say("do it");
        let events = briefs(&stage.play().await);
        assert_eq!(events.contains(&"calling c1".to_owned()), announced, "{effect:?}: {events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_does_not_begin_before_its_announcement_is_durable() {
    let wants = calls(vec![call("c1", "pay", json!({}))]);
    let mut stage = Stage::new(Model::new([wants, says("Done.")])).with("pay", EffectClass::Unsafe);
    stage.say("pay");
    let mut running = stage.start();
    stage.next(&mut running).await;
    let announced = stage.next(&mut running).await.unwrap();
    assert_eq!(brief(&announced), "calling c1");
    assert_eq!(stage.trace(), Vec::<String>::new(), "it waits until the next event is asked for");
    stage.finish(&mut running).await;
    assert_eq!(stage.trace(), ["pay {}"]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_and_arguments_that_do_not_fit_go_back_to_the_model() {
    let mut bad = call("c2", "look", json!({}));
    bad.arguments = "{\"at\": ".into();
    let ask = call("c3", "ask", json!({ "question": 7 }));
    let wants = calls(vec![call("c1", "fly", json!({})), bad, ask]);
    let mut stage = Stage::new(Model::new([wants, says("Sorry.")])).with("look", EffectClass::Pure);
    stage.say("do it");
    let events = briefs(&stage.play().await);
    assert_eq!(events[1], r#"c1 failed: there is no tool named "fly""#);
    assert!(events[2].starts_with("c2 failed: the arguments do not fit"), "{events:?}");
    assert!(events[3].starts_with("c3 failed: the arguments do not fit"), "{events:?}");
    assert_eq!(events[4], r#"finished "Sorry.""#);
    assert_eq!(stage.trace(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_tells_the_model() {
    let wants = calls(vec![call("c1", "look", json!({}))]);
    let mut stage = Stage::new(Model::new([wants, says("It is dark.")]));
    let mut look = Scripted::new("look", EffectClass::Pure, &stage.trace);
    look.deed = Arc::new(|_| Err(ToolError::Failed("it is dark".into())));
    stage = stage.with_tool(look);
    stage.say("look");
    let events = briefs(&stage.play().await);
    assert_eq!(events[1..], ["c1 failed: it is dark", r#"finished "It is dark.""#]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_tells_the_model_and_the_turn_goes_on() {
    let wants = calls(vec![call("c1", "look", json!({}))]);
    let mut stage = Stage::new(Model::new([wants, says("It broke.")]));
    let mut look = Scripted::new("look", EffectClass::Pure, &stage.trace);
    look.deed = Arc::new(|_| panic!("the test says so"));
    stage = stage.with_tool(look);
    stage.say("look");
    let events = briefs(&stage.play().await);
    assert!(events[1].starts_with("c1 failed: "), "{events:?}");
    assert_eq!(events[2], r#"finished "It broke.""#);
}

#[tokio::test(start_paused = true)]
async fn a_long_result_is_cut_at_a_character() {
    let wants = calls(vec![call("c1", "read", json!({}))]);
    let mut stage = Stage::new(Model::new([wants, says("Long.")]));
    let mut read = Scripted::new("read", EffectClass::Pure, &stage.trace);
    read.deed = Arc::new(|_| Ok(output(&"ä".repeat(100_000))));
    stage = stage.with_tool(read);
    stage.say("read");
    let events = stage.play().await;
    let AgentEvent::Called { output, .. } = &events[1] else { panic!("{events:?}") };
    assert!(output.len() < 66 * 1024, "{}", output.len());
    assert!(output.contains("bytes were cut out here"), "{}", output.len());
}

#[tokio::test(start_paused = true)]
async fn a_model_that_never_stops_calling_is_stopped() {
    let again = || calls(vec![call("c1", "look", json!({}))]);
    let mut stage =
        Stage::new(Model::new((0..10).map(|_| again()))).with("look", EffectClass::Pure);
    stage.say("loop");
    let events = stage.play().await;
    assert_eq!(
        brief(events.last().unwrap()),
        r#"failed I stopped after 4 steps without reaching an answer. after """#
    );
    assert_eq!(stage.model.prompts().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn steps_taken_before_a_restart_count() {
    let again = || calls(vec![call("c1", "look", json!({}))]);
    let mut stage =
        Stage::new(Model::new((0..10).map(|_| again()))).with("look", EffectClass::Pure);
    stage.say("loop");
    stage.play_and_die(6).await;
    stage.with_model(Model::new((0..10).map(|_| again())));
    let events = stage.play().await;
    assert_eq!(stage.model.prompts().len(), 1, "{:?}", briefs(&events));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_takes_too_long_ends_with_what_it_has() {
    let slow = vec![text("Once upon"), text(" a time")];
    let mut stage = Stage::new(Model::new([slow]).slow(Duration::from_secs(1000)));
    stage.say("a story");
    let events = stage.play().await;
    assert_eq!(
        briefs(&events),
        [r#"failed I stopped after 30 minutes, the limit for one answer. after "Once upon""#]
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_ends_the_turn() {
    let wants = calls(vec![call("c1", "sleep", json!({}))]);
    let mut stage = Stage::new(Model::new([wants]));
    let mut sleep = Scripted::new("sleep", EffectClass::Pure, &stage.trace);
    sleep.takes = Duration::from_secs(1_000_000);
    stage = stage.with_tool(sleep);
    stage.say("sleep");
    let events = briefs(&stage.play().await);
    assert!(events[1].contains("30 minutes"), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_starts_again_is_shown_and_told_from_its_beginning() {
    let fickle = vec![
        text("A wrong"),
        Ok(Delta::Restarted),
        text("A right one"),
        end(FinishReason::Stop, vec![]),
    ];
    let mut stage = Stage::new(Model::new([fickle]).slow(Duration::from_secs(1)));
    stage.say("hi");
    let mut running = stage.start();
    let preview = running.preview.clone();
    let watch = async {
        let mut seen = Vec::new();
        let mut preview = preview;
        while preview.changed().await.is_ok() {
            seen.push(preview.borrow_and_update().clone());
        }
        seen
    };
    let play = async {
        let events = stage.finish(&mut running).await;
        drop(running);
        events
    };
    let (seen, events) = tokio::join!(watch, play);
    assert_eq!(briefs(&events), [r#"finished "A right one""#]);
    let mut texts: Vec<_> = seen.iter().map(|preview: &Preview| preview.text.as_str()).collect();
    texts.dedup();
    assert_eq!(texts, ["", "A wrong", "", "A right one"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_model_thinks_between_tags_is_not_said() {
    let pieces = ["<thi", "nk>The person", " greets.</th", "ink>\n\nHello, ", "<think> is a tag."];
    let mut deltas: Vec<_> = pieces.into_iter().map(text).collect();
    deltas.push(end(FinishReason::Stop, vec![]));
    let mut stage = Stage::new(Model::new([deltas]).slow(Duration::from_secs(1)));
    stage.say("hi");
    let mut running = stage.start();
    let mut preview = running.preview.clone();
    let watch = async {
        let mut seen = Vec::new();
        while preview.changed().await.is_ok() {
            seen.push(preview.borrow_and_update().clone());
        }
        seen
    };
    let play = async {
        let events = stage.finish(&mut running).await;
        drop(running);
        events
    };
    let (seen, events) = tokio::join!(watch, play);
    assert_eq!(briefs(&events), [r#"finished "Hello, <think> is a tag.""#]);
    let doing = seen.iter().find_map(|preview| preview.doing.as_deref());
    assert_eq!(doing, Some("thinking"));
    assert!(!seen.iter().any(|preview| preview.text.contains("person")), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_whole_says_so() {
    for (reason, note) in [
        (FinishReason::Length, "cut off at the model's limit"),
        (FinishReason::Refused, "declined to go on"),
    ] {
        let mut stage = Stage::new(Model::new([vec![text("Half"), end(reason, vec![])]]));
        stage.say("hi");
        let events = briefs(&stage.play().await);
        assert!(events[0].starts_with(r#"finished "Half"#), "{events:?}");
        assert!(events[0].contains(note), "{events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_provider_is_one_sentence_and_keeps_what_was_said() {
    let cut = vec![text("Once upon"), Err(ProviderError::Cut)];
    let mut stage = Stage::new(Model::new([cut]));
    stage.say("a story");
    assert_eq!(
        briefs(&stage.play().await),
        [
            r#"failed The connection broke in the middle of the answer. Please try again. after "Once upon""#
        ]
    );
    let mut stage = Stage::new(Model::new([vec![text("Once upon")]]));
    stage.say("a story");
    let events = briefs(&stage.play().await);
    assert!(events[0].contains("The connection broke"), "a stream that just ends was cut");
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_a_tool_is_not_said_again_when_the_turn_fails() {
    let first = vec![
        text("Let me look."),
        end(FinishReason::ToolCalls, vec![call("c1", "look", json!({}))]),
    ];
    let second = vec![Err(ProviderError::TooLong)];
    let mut stage = Stage::new(Model::new([first, second])).with("look", EffectClass::Pure);
    stage.say("look");
    let events = briefs(&stage.play().await);
    assert!(events.last().unwrap().ends_with(r#"after """#), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn files_of_tools_go_along_with_the_answer() {
    let wants = calls(vec![call("c1", "draw", json!({})), call("c2", "draw", json!({}))]);
    let mut stage = Stage::new(Model::new([wants, says("Here.")]));
    let mut draw = Scripted::new("draw", EffectClass::Idempotent, &stage.trace);
    draw.deed = Arc::new(|scope| {
        let files = vec![file(scope.call.as_str(), "image/png", 3)];
        Ok(ToolOutput { files, ..ToolOutput::text("drawn") })
    });
    stage = stage.with_tool(draw);
    stage.say("draw");
    let events = stage.play().await;
    let Some(AgentEvent::Finished { files, .. }) = events.last() else { panic!("{events:?}") };
    let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["c1", "c2"]);
}

#[tokio::test(start_paused = true)]
async fn what_it_is_doing_is_shown_while_it_does_it() {
    let wants = calls(vec![call("c1", "look", json!({}))]);
    let mut stage = Stage::new(Model::new([wants, says("Done.")]));
    let mut look = Scripted::new("look", EffectClass::Pure, &stage.trace);
    look.takes = Duration::from_secs(10);
    stage = stage.with_tool(look);
    stage.say("look");
    let mut running = stage.start();
    stage.next(&mut running).await;
    let waiting = tokio::time::timeout(Duration::from_secs(5), stage.next(&mut running)).await;
    assert!(waiting.is_err());
    assert_eq!(running.preview.borrow().doing.as_deref(), Some("using look"));
    stage.next(&mut running).await;
    stage.finish(&mut running).await;
    assert_eq!(running.preview.borrow().doing, None);
}
