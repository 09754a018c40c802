//! What a turn has cost that did not come to its end.

use std::time::Duration;

use serde_json::json;
use talaria_agent::{Delta, EffectClass, FinishReason, ProviderError};
use talaria_clock::{Clock, SystemClock};
use talaria_model::{AgentEvent, Cost, Task, Usage, Used, Word};

use crate::stage::{Model, Reply, Scripted, Stage, call, calls, says, text};

/// What each event says that was spent.
fn spent(events: &[AgentEvent]) -> Vec<Cost> {
    let spent = |event: &AgentEvent| match event {
        AgentEvent::Stepped { cost, .. }
        | AgentEvent::Finished { cost, .. }
        | AgentEvent::Compressed { cost, .. }
        | AgentEvent::NotCompressed { cost, .. }
        | AgentEvent::Failed { cost, .. } => Some(*cost),
        _ => None,
    };
    events.iter().filter_map(spent).collect()
}

fn costing(reply: Reply, micros: u64) -> Reply {
    let priced = |delta| match delta {
        Ok(Delta::Finished { reason, calls, reasoning, .. }) => {
            let (usage, cost) = (Usage::default(), Cost::known(micros));
            Ok(Delta::Finished { reason, calls, reasoning, usage, cost })
        }
        delta => delta,
    };
    reply.into_iter().map(priced).collect()
}

/// What a turn says that it used which is stopped after the first piece of its answer.
async fn stopped(model: Model) -> Used {
    let mut stage = Stage::new(model.slow(Duration::from_secs(1)));
    stage.say("a story");
    let mut running = stage.start();
    let control = running.control.clone();
    let stop = async {
        SystemClock.sleep(Duration::from_millis(1500)).await;
        control.send(Word::Stop).await.unwrap();
    };
    let (events, ()) = tokio::join!(stage.finish(&mut running), stop);
    let untold = running.preview.borrow().untold;
    match events.as_slice() {
        [AgentEvent::Failed { usage, cost, .. }] => {
            let told = Used { usage: *usage, cost: *cost };
            assert_eq!(untold, Some(told), "whoever stopped listening could have read the same");
            told
        }
        events => panic!("{events:?}"),
    }
}

fn story() -> Reply {
    vec![text(&"Once upon a time. ".repeat(100)), text(" The end.")]
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_stopped_was_not_free_unless_the_model_is() {
    assert_eq!(stopped(Model::new([story()])).await.cost, Cost::UNKNOWN);
    assert_eq!(stopped(Model::new([story()]).for_free()).await.cost, Cost::FREE);
    let Used { usage, cost } = stopped(Model::new([story()]).priced(2)).await;
    assert_eq!(cost, Cost::estimated(2 * usage.estimated));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_stopped_used_about_what_the_model_read_and_had_written() {
    let nothing_yet = stopped(Model::new([])).await.usage;
    let begun = stopped(Model::new([story()])).await.usage;
    assert!(nothing_yet.estimated > 0, "the prompt was read");
    assert_eq!(begun.estimated - nothing_yet.estimated, 1800 / 3, "what was written so far");
    assert_eq!(begun.counted(), 0, "nobody counted it");
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_a_tool_works_adds_nothing_to_what_was_told() {
    let wants = calls(vec![call("c1", "sleep", json!({}))]);
    let mut stage = Stage::new(Model::new([costing(wants, 7)]));
    let mut sleep = Scripted::new("sleep", EffectClass::Unsafe, &stage.trace);
    sleep.takes = Duration::from_secs(1000);
    stage = stage.with_tool(sleep);
    stage.say("sleep");
    let mut running = stage.start();
    let mut events = vec![stage.next(&mut running).await.unwrap()];
    stage.next(&mut running).await;
    running.control.send(Word::Stop).await.unwrap();
    events.extend(stage.finish(&mut running).await);
    assert_eq!(spent(&events), [Cost::known(7), Cost::FREE]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_may_have_worked_and_one_that_refuses_has_not() {
    let refused = ProviderError::Unauthorized { detail: "no".into() };
    for (error, cost) in [(ProviderError::Cut, Cost::UNKNOWN), (refused, Cost::FREE)] {
        let mut stage = Stage::new(Model::new([vec![Err(error)]]));
        stage.say("hello");
        assert_eq!(spent(&stage.play().await), [cost]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_began_twice_costs_what_both_tries_do() {
    let end = || crate::stage::end(FinishReason::Stop, vec![]);
    let twice = || vec![text("On"), Ok(Delta::Restarted), text("Once"), end()];
    let mut stage = Stage::new(Model::new([costing(twice(), 1_200_000), costing(says("Yes."), 5)]));
    stage.say("hello");
    let events = stage.play().await;
    assert_eq!(spent(&events)[0].to_string(), "at least $1.20");
    assert!(matches!(&events[..], [AgentEvent::Finished { usage, .. }] if usage.estimated > 0));
    stage.say("and again");
    assert_eq!(spent(&stage.play().await), [Cost::known(5)], "it is told once");
    let mut stage = Stage::new(Model::new([costing(twice(), 1_200_000)]).priced(1_000));
    stage.say("hello");
    let cost = spent(&stage.play().await)[0];
    assert!(cost.to_string().starts_with("about $") && cost.micros > 1_200_000, "{cost}");
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_cannot_be_used_has_its_price_too() {
    let failing = vec![Err(ProviderError::Cut)];
    let attempts = [(costing(says(""), 9), Cost::known(9)), (failing, Cost::UNKNOWN)];
    for (attempt, cost) in attempts {
        let mut stage = Stage::new(Model::new([]));
        for number in 0..12 {
            stage.with_model(Model::new([says(&format!("answer {number}"))]));
            stage.say(&"question ".repeat(40));
            stage.play().await;
        }
        stage.with_model(Model::new([attempt]));
        stage.task = Task::Compress { focus: None };
        stage.say("");
        assert_eq!(spent(&stage.play().await), [cost, Cost::FREE]);
    }
}
