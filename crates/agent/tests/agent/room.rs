//! A conversation stays within what the model reads: by a summary, by shortening, and by saying so.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use serde_json::json;
use talaria_agent::{
    Automatic, Delta, EffectClass, FinishReason, Part, PromptMessage, ProviderError,
};
use talaria_model::{AgentEvent, CallId, Cost, EntryBody, Extent, Task, ToolCall, Usage};

use crate::stage::{Model, Reply, Scripted, Stage, brief, briefs, call, calls, output, says, text};

fn answered(text: &str, calls: Vec<ToolCall>, usage: Usage) -> EntryBody {
    EntryBody::Answered {
        text: text.into(),
        files: vec![],
        calls,
        reasoning: None,
        usage,
        cost: Cost::UNKNOWN,
        sent: None,
        extent: Extent::Whole,
    }
}

/// A conversation of so many exchanges, each of two entries of about that length.
fn talked(model: Model, exchanges: usize, length: usize) -> Stage {
    let mut stage = Stage::new(model).with("look", EffectClass::Pure);
    for n in 0..exchanges {
        stage.say(&format!("question {n} {}", "q".repeat(length)));
        stage.record(answered(
            &format!("answer {n} {}", "a".repeat(length)),
            vec![],
            Usage::default(),
        ));
    }
    stage
}

fn words(message: &PromptMessage) -> String {
    match message {
        PromptMessage::User(parts) => parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.clone(),
                Part::Image { .. } => "picture".into(),
            })
            .collect(),
        PromptMessage::Assistant { text, .. } => text.clone(),
        PromptMessage::ToolResult { output, .. } => output.clone(),
    }
}

#[tokio::test(start_paused = true)]
async fn at_half_of_the_window_a_summary_takes_the_place_of_what_is_old() {
    // 30 exchanges of 2,000 characters are about 20,000 tokens.
    let mut stage =
        talked(Model::new([says("THE SUMMARY"), says("Yes.")]).with_window(32_000), 30, 1000);
    stage.say("the newest question");
    let events = stage.play().await;
    assert_eq!(
        briefs(&events),
        [
            "working Compression",
            "compressed 4..=42: THE SUMMARY",
            "working Plain",
            "finished \"Yes.\"",
        ]
    );
    let [summary, answer] = &stage.model.prompts()[..] else { panic!() };
    assert_eq!(summary.system, answer.system);
    assert_eq!(summary.tools, answer.tools);
    let wish = words(summary.messages.last().unwrap());
    assert!(wish.contains("Write a summary"), "{wish}");
    let said: Vec<String> = answer.messages.iter().map(words).collect();
    assert!(
        said[0].starts_with("question 0 ") && said[3].starts_with("answer 1 "),
        "the first stay"
    );
    assert!(said[4].contains("THE SUMMARY"), "{}", said[4]);
    assert!(said[5].starts_with("question 21 "), "{}", said[5]);
    assert_eq!(said.last().unwrap(), "the newest question");
    // The old entries are all still there.
    assert_eq!(stage.entries.len(), 63);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_at_all_is_summarised_and_not_just_dropped() {
    // 80,000 tokens for a model that reads 32,000.
    let mut stage =
        talked(Model::new([says("THE SUMMARY"), says("Yes.")]).with_window(32_000), 40, 3000);
    stage.say("the newest question");
    let events = briefs(&stage.play().await);
    assert!(events[1].starts_with("compressed "), "{events:?}");
    for prompt in stage.model.prompts() {
        let size: usize = prompt.messages.iter().map(|message| words(message).len()).sum();
        assert!(size < 32_000 * 3, "{size}");
    }
    assert!(stage.model.prompts()[1].messages.iter().any(|it| words(it).contains("THE SUMMARY")));
}

#[tokio::test(start_paused = true)]
async fn many_short_entries_are_summarised_too() {
    let mut stage = talked(Model::new([says("S"), says("Yes.")]), 30, 1);
    stage.settings.budget.most_entries = 50;
    stage.say("one more");
    let events = briefs(&stage.play().await);
    assert_eq!(events[1], "compressed 4..=40: S");
}

#[tokio::test(start_paused = true)]
async fn the_summary_is_asked_for_at_the_end_of_what_the_provider_knows_already() {
    let model = Model::new([says("Before."), says("S"), says("After.")]).with_window(64_000);
    let mut stage = talked(model, 40, 1000);
    stage.say("short");
    stage.play().await;
    for _ in 0..10 {
        stage.say(&"q".repeat(1000));
        stage.record(answered(&"a".repeat(1000), vec![], Usage::default()));
    }
    stage.say("one more");
    stage.play().await;
    let prompts = stage.model.prompts();
    let known = &prompts[1].messages[..prompts[1].messages.len() - 1];
    assert!(prompts[2].messages.len() < prompts[0].messages.len());
    assert!(
        prompts[0].messages.starts_with(&known[..60]),
        "the same beginning, message by message"
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_provider_counted_decides_where_it_counted() {
    let counted = Usage { input: 15_000, cache_read: 2_000, ..Usage::default() };
    let mut stage = talked(Model::new([says("S"), says("Yes.")]).with_window(32_000), 15, 10);
    stage.say("one");
    stage.record(answered("two", vec![], counted));
    stage.say("three");
    let events = stage.play().await;
    assert_eq!(brief(&events[0]), "working Compression", "{events:?}");
    // It counted before the summary, which no longer holds.
    let mut again = stage;
    again.with_model(Model::new([says("Yes.")]).with_window(32_000));
    again.say("four");
    let events = again.play().await;
    assert_eq!(briefs(&events), ["finished \"Yes.\""]);
}

#[tokio::test(start_paused = true)]
async fn a_second_summary_stands_for_the_first_as_well() {
    let replies = [says("FIRST"), says("1"), says("SECOND"), says("2")];
    let mut stage = talked(Model::new(replies).with_window(32_000), 30, 1000);
    stage.say("one");
    stage.play().await;
    for n in 30..50 {
        stage.say(&format!("question {n} {}", "q".repeat(1000)));
        stage.record(answered(
            &format!("answer {n} {}", "a".repeat(1000)),
            vec![],
            Usage::default(),
        ));
    }
    stage.say("two");
    let events = stage.play().await;
    assert!(brief(&events[1]).starts_with("compressed 4..="), "{events:?}");
    let prompts = stage.model.prompts();
    assert!(prompts[2].messages.iter().any(|message| words(message).contains("FIRST")));
    let last: Vec<String> = prompts[3].messages.iter().map(words).collect();
    assert!(last.iter().any(|text| text.contains("SECOND")), "{last:#?}");
    assert!(!last.iter().any(|text| text.contains("FIRST")), "{last:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_fails_changes_nothing_and_is_said() {
    let failed: Reply = vec![Err(ProviderError::Unavailable { detail: "overloaded".into() })];
    for (bad, why) in [
        (failed, "has trouble (overloaded)"),
        (says("  "), "wrote none"),
        (says(&"x".repeat(80_000)), "not be shorter"),
        (calls(vec![call("c1", "look", json!({}))]), "wrote none"),
    ] {
        let mut stage =
            talked(Model::new([bad, says("Yes."), says("No.")]).with_window(32_000), 30, 1000);
        stage.say("the question");
        let before = stage.entries.clone();
        let events = briefs(&stage.play().await);
        assert_eq!(events.len(), 4, "{events:?}");
        assert!(events[1].starts_with("not compressed: ") && events[1].contains(why), "{events:?}");
        assert_eq!(events[2..], ["working Plain", "finished \"Yes.\""]);
        assert_eq!(stage.entries[..before.len()], before);
        assert_eq!(stage.entries.len(), before.len() + 1);
        // It is not tried again at once.
        stage.say("again");
        assert_eq!(briefs(&stage.play().await), ["finished \"No.\""]);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_summarised_that_was_not_asked_for_where_it_is_switched_off() {
    let mut stage = talked(Model::new([says("Yes.")]).with_window(32_000), 30, 1000);
    stage.settings.budget.automatic = Automatic::Off;
    stage.say("the question");
    assert_eq!(briefs(&stage.play().await), ["finished \"Yes.\""]);
}

#[tokio::test(start_paused = true)]
async fn somebody_can_ask_for_a_summary_and_say_what_matters() {
    let mut stage = talked(Model::new([says("S")]), 8, 50);
    stage.task = Task::Compress { focus: Some("the garden".into()) };
    stage.say("/compress the garden");
    stage.entries.pop();
    let events = stage.play().await;
    assert_eq!(
        briefs(&events),
        ["working Compression", "compressed 4..=12: S", "working Plain", "finished \"\""]
    );
    let wish = words(stage.model.prompts()[0].messages.last().unwrap());
    assert!(wish.ends_with("the garden"), "{wish}");
}

#[tokio::test(start_paused = true)]
async fn where_there_is_little_there_is_nothing_to_summarise() {
    let mut stage = talked(Model::new([]), 2, 50);
    stage.task = Task::Compress { focus: None };
    let events = briefs(&stage.play().await);
    assert_eq!(events, ["not compressed: There is not enough to summarise yet.", "finished \"\""]);
    assert!(stage.model.prompts().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_summary_can_be_stopped() {
    let mut stage = talked(Model::new([]).with_window(32_000), 30, 1000);
    stage.say("the question");
    let mut running = stage.start();
    stage.next(&mut running).await;
    running.control.try_send(talaria_model::Word::Stop).unwrap();
    let events = briefs(&stage.finish(&mut running).await);
    assert_eq!(events, ["failed Stopped. after \"\""]);
}

#[tokio::test(start_paused = true)]
async fn when_the_model_says_it_is_too_long_there_is_one_summary_and_one_more_try() {
    let too_long = || vec![Err(ProviderError::TooLong)];
    let mut stage = talked(Model::new([too_long(), says("S"), says("Yes.")]), 8, 50);
    stage.say("the question");
    let events = briefs(&stage.play().await);
    assert_eq!(
        events,
        ["working Compression", "compressed 4..=12: S", "working Plain", "finished \"Yes.\""]
    );
    // Twice is the end.
    stage.with_model(Model::new([too_long(), says("T"), too_long()]));
    for _ in 0..10 {
        stage.say("q");
        stage.record(answered("a", vec![], Usage::default()));
    }
    stage.say("another");
    let events = briefs(&stage.play().await);
    assert!(events.last().unwrap().contains("has become too long"), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_first_message_that_is_too_long_is_said_to_be() {
    let mut stage = Stage::new(Model::new([vec![Err(ProviderError::TooLong)]]));
    stage.say(&"long ".repeat(1000));
    let events = briefs(&stage.play().await);
    assert_eq!(events.len(), 1);
    assert!(events[0].contains("/new"), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn old_results_of_a_long_turn_are_shortened_before_the_window_is_full() {
    let wants = |id| calls(vec![call(id, "read", json!({}))]);
    let replies = [wants("c1"), wants("c2"), wants("c3"), wants("c4"), says("Done.")];
    let mut stage = Stage::new(Model::new(replies).with_window(4_000));
    stage.settings.max_steps = 10;
    let mut read = Scripted::new("read", EffectClass::Pure, &stage.trace);
    read.deed = Arc::new(|_| Ok(output(&"r".repeat(50_000))));
    stage = stage.with_tool(read);
    stage.say("read everything");
    let events = stage.play().await;
    for event in &events {
        if let AgentEvent::Called { output, .. } = event {
            assert!(output.len() < 1800, "an eighth of the window at most: {}", output.len());
            assert!(output.contains("bytes were cut out here"));
        }
    }
    // A larger window lets more through, until there is too much of it.
    let replies = [wants("c1"), wants("c2"), wants("c3"), wants("c4"), says("Done.")];
    let mut stage = Stage::new(Model::new(replies).with_window(12_000));
    stage.settings.max_steps = 10;
    let mut read = Scripted::new("read", EffectClass::Pure, &stage.trace);
    read.deed = Arc::new(|_| Ok(output(&"r".repeat(50_000))));
    stage = stage.with_tool(read);
    for _ in 0..9 {
        stage.say(&"q".repeat(1000));
        stage.record(answered(&"a".repeat(1000), vec![], Usage::default()));
    }
    stage.settings.budget.automatic = Automatic::Off;
    stage.say("read everything");
    let events = stage.play().await;
    assert_eq!(brief(events.last().unwrap()), "finished \"Done.\"");
    let prompts = stage.model.prompts();
    let results: Vec<usize> = prompts[4]
        .messages
        .iter()
        .filter(|message| matches!(message, PromptMessage::ToolResult { .. }))
        .map(|message| words(message).len())
        .collect();
    assert!(results[0] < 2200 && results[1] < 2200, "{results:?}");
    assert!(results[2] > 4000 && results[3] > 4000, "{results:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_step_used_and_cost_is_told() {
    let usage = Usage { input: 10, output: 5, ..Usage::default() };
    let finished = |reason, calls, cost| {
        Ok(Delta::Finished { reason, calls, reasoning: None, usage, cost: Cost::known(cost) })
    };
    let wants = vec![call("c1", "look", json!({}))];
    let replies = [
        vec![finished(FinishReason::ToolCalls, wants, 7)],
        vec![text("Done."), finished(FinishReason::Stop, vec![], 8)],
    ];
    let mut stage = Stage::new(Model::new(replies)).with("look", EffectClass::Pure);
    stage.say("look");
    let mut spent = Cost::FREE;
    for event in stage.play().await {
        if let AgentEvent::Stepped { cost, .. } | AgentEvent::Finished { cost, .. } = event {
            spent += cost;
        }
    }
    assert_eq!(spent, Cost::known(15));
}

/// What every provider demands.
fn is_well_formed(messages: &[PromptMessage]) -> bool {
    let mut waiting: Vec<CallId> = Vec::new();
    messages.iter().all(|message| match message {
        PromptMessage::ToolResult { call, .. } => {
            let place = waiting.iter().position(|waiting| waiting == call);
            place.map(|place| waiting.remove(place)).is_some()
        }
        PromptMessage::Assistant { calls, .. } => {
            let closed = waiting.is_empty();
            waiting = calls.iter().map(|call| call.id.clone()).collect();
            closed
        }
        PromptMessage::User(_) => waiting.is_empty(),
    })
}

proptest! {
    #![proptest_config(Config {
        cases: 100,
        rng_seed: RngSeed::Fixed(20261115),
        failure_persistence: None,
        ..Config::default()
    })]

    /// However long the exchanges are: a summary never cuts one in two, never stands for the newest
    /// entries, and leaves every prompt such that a provider can read it.
    #[test]
    fn a_summary_never_cuts_an_exchange_in_two(
        exchanges in prop::collection::vec(0usize..6, 4..20),
        keep_first in 0usize..5,
        keep_last in 0usize..12,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let model = Model::new([says("S"), says("Yes."), says("Yes.")]).with_window(900);
            let mut stage = Stage::new(model).with("look", EffectClass::Pure);
            stage.settings.budget.keep_first = keep_first;
            stage.settings.budget.keep_last = keep_last;
            for steps in exchanges {
                stage.say("question");
                for _ in 0..steps {
                    let wanted = vec![call("c1", "look", json!({})), call("c2", "look", json!({}))];
                    stage.record(answered("", wanted, Usage::default()));
                    for id in ["c1", "c2"] {
                        stage.record(EntryBody::Returned {
                            call: CallId::literal(id),
                            output: "r".repeat(30),
                            files: vec![],
                            failed: false,
                        });
                    }
                }
                stage.record(answered("answer", vec![], Usage::default()));
            }
            stage.say("the newest");
            let before = stage.entries.clone();
            let events = stage.play().await;
            for prompt in stage.model.prompts() {
                assert!(is_well_formed(&prompt.messages), "{:#?}", prompt.messages);
            }
            for event in &events {
                let AgentEvent::Compressed { after, upto, .. } = event else { continue };
                assert!(after < upto);
                let next = before.iter().find(|entry| entry.number > *upto).unwrap();
                assert!(!matches!(next.body, EntryBody::Returned { .. }), "{next:?}");
                assert!(*upto < before.last().unwrap().number, "the newest is never summarised");
            }
        });
    }
}
