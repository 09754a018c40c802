//! The offline demo.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use talaria_agent::{Delta, FinishReason, Prompt, PromptMessage, Provider};
use talaria_clock::{Clock, FakeClock, SystemClock};
use talaria_model::Timestamp;
use talaria_providers::Demo;
use talaria_providers::demo::PACE;

use crate::prompt::{
    Outcome, assistant, call, calling, collect, hello, prompt, prompt_with, result, user,
};

const TOOLS: [&str; 3] = ["ask", "demo_file", "session_search"];

async fn answer(prompt: Prompt) -> Outcome {
    collect(Demo::new(Arc::new(SystemClock), Duration::ZERO).complete(prompt)).await
}

async fn say(text: &str) -> Outcome {
    answer(prompt_with(vec![user(text)], &TOOLS)).await
}

async fn after(tool: &str, output: &str) -> Outcome {
    let messages = vec![
        user("please"),
        calling("", vec![call("demo_1", tool, "{}")], None),
        result("demo_1", output),
    ];
    answer(prompt_with(messages, &TOOLS)).await
}

#[track_caller]
fn only_call(outcome: &Outcome) -> (String, Value) {
    let finished = outcome.finished();
    assert_eq!(finished.reason, FinishReason::ToolCalls);
    let [call] = finished.calls.as_slice() else { panic!("{outcome:?}") };
    (call.tool.clone(), serde_json::from_str(&call.arguments).unwrap())
}

#[tokio::test]
async fn it_goes_by_what_the_person_said_and_not_by_what_stands_in_front() {
    let greeting = say("hello").await.text;
    for read in [
        "[[System note: The earlier conversation ended because nothing was said for a long time.]]\n\nhello",
        "[[System note: a tool]]\n\n[[Replying to your message: \"long [x]] tool\"]]\n\n[Long John] hello",
        "[[Said in this chat since your last answer, not to you]]\n[Bob] ask\n\n[[New message]]\n[Eve] hello",
    ] {
        assert_eq!(say(read).await.text, greeting, "{read}");
    }
    assert!(say("[[System note: x]]\n\n[Alice] long").await.text.chars().count() > 1000);
    assert_ne!(say("[[long]] hello").await.text, greeting, "this is what they said");
}

#[tokio::test]
async fn it_says_what_it_is_and_how_to_get_a_real_model() {
    for said in ["Hello", "hi there", "What is the meaning of life?", "", "model"] {
        let outcome = say(said).await;
        let text = &outcome.text;
        assert_eq!(outcome.finished().reason, FinishReason::Stop);
        for how in ["ANTHROPIC_API_KEY", "config.yaml", "Ollama", "talaria model"] {
            assert!(text.contains(how), "{said:?}: {text}");
        }
        assert!(text.chars().count() < 1000, "{text}");
    }
    for said in ["Hello", "What is the meaning of life?"] {
        let text = say(said).await.text;
        for what in ["demo", "language model", "**tool**", "**ask**", "**long**", "**file**"] {
            assert!(text.contains(what), "{said:?}: {text}");
        }
    }
    assert_ne!(say("Hello").await.text, say("What is the meaning of life?").await.text);
}

#[tokio::test]
async fn it_shows_a_tool_call_and_what_came_of_it() {
    let outcome = say("Use a tool to find the airport").await;
    assert_eq!(only_call(&outcome), ("session_search".to_owned(), json!({ "query": "airport" })));
    assert!(outcome.text.contains("airport"));
    let outcome = after("session_search", "Yesterday, Alice said:\n> the airport is closed").await;
    assert!(outcome.text.contains("> > the airport is closed"), "{}", outcome.text);
    assert_eq!(outcome.finished().reason, FinishReason::Stop);
    assert!(after("session_search", &"é".repeat(5000)).await.text.len() < 1000);
}

#[tokio::test]
async fn it_searches_for_something_said_earlier_when_nothing_else_was_said() {
    let messages = vec![user("Tell me about penguins"), assistant("No."), user("tool")];
    let outcome = answer(prompt_with(messages, &TOOLS)).await;
    assert_eq!(only_call(&outcome).1, json!({ "query": "penguins" }));
    assert_eq!(only_call(&say("tool").await).1, json!({ "query": "hello" }));
}

#[tokio::test]
async fn it_asks_a_question_with_choices_and_reacts_to_the_answer() {
    for said in ["ask", "Ask me something!", "let me choose", "a question please"] {
        let (tool, arguments) = only_call(&say(said).await);
        assert_eq!(tool, "ask");
        assert!(arguments["question"].as_str().unwrap().ends_with('?'));
        assert_eq!(arguments["choices"].as_array().unwrap().len(), 3);
    }
    let phone = after("ask", "The person answered: On my phone").await.text;
    let work = after("ask", "The person answered: At work").await.text;
    let other = after("ask", "The person answered: in the bath").await.text;
    assert_ne!(phone, work);
    assert_ne!(work, other);
}

#[tokio::test]
async fn it_attaches_a_file() {
    for said in ["file", "Send me an attachment"] {
        let (tool, arguments) = only_call(&say(said).await);
        assert_eq!(tool, "demo_file");
        assert_eq!(arguments["name"], "hello-from-talaria.txt");
        assert!(arguments["text"].as_str().unwrap().len() > 100);
    }
    let outcome = after("demo_file", "Attached hello-from-talaria.txt.").await;
    assert!(outcome.text.contains("is attached"));
}

#[tokio::test]
async fn it_writes_a_long_answer_with_every_kind_of_formatting() {
    let text = say("something long please").await.text;
    assert!(text.chars().count() > 6000, "{}", text.chars().count());
    for part in ["# ", "## ", "### ", "|---|", "```rust", "1. ", "- ", "  - ", "> ", "---"] {
        assert!(text.contains(&format!("\n{part}")) || text.starts_with(part), "{part:?}");
    }
}

#[tokio::test]
async fn it_calls_only_what_is_offered() {
    for said in ["tool", "ask", "file"] {
        let outcome = answer(prompt(vec![user(said)])).await;
        assert_eq!(outcome.finished().calls, []);
        assert!(outcome.text.contains("not available"), "{}", outcome.text);
    }
}

#[tokio::test]
async fn it_admits_that_a_tool_failed() {
    let mut failed = result("demo_1", "no index");
    if let PromptMessage::ToolResult { failed, .. } = &mut failed {
        *failed = true;
    }
    let messages =
        vec![user("tool"), calling("", vec![call("demo_1", "session_search", "{}")], None), failed];
    let text = answer(prompt_with(messages, &TOOLS)).await.text;
    assert!(text.contains("did not work") && text.contains("no index"), "{text}");
}

#[tokio::test]
async fn calls_of_one_conversation_have_different_ids() {
    let messages = vec![
        user("ask"),
        calling("", vec![call("demo_1", "ask", "{}")], None),
        result("demo_1", "At work"),
        assistant("Good."),
        user("ask"),
    ];
    let outcome = answer(prompt_with(messages, &TOOLS)).await;
    assert_eq!(outcome.finished().calls[0].id.as_str(), "demo_2");
}

#[tokio::test]
async fn it_estimates_what_it_cost() {
    let usage = say("Hello").await.finished().usage;
    assert!(usage.input > 0 && usage.output > 50, "{usage:?}");
}

#[tokio::test(start_paused = true)]
async fn it_speaks_word_by_word_and_never_for_too_long() {
    let clock = FakeClock::starting(Timestamp::from_millis(0));
    let demo = Demo::new(Arc::new(clock), PACE);
    let mut deltas = demo.complete(hello());
    assert_eq!(deltas.next().await, Some(Ok(Delta::Text("Hello! ".to_owned()))));
    assert_eq!(clock.now(), Timestamp::from_millis(25));
    assert_eq!(deltas.next().await, Some(Ok(Delta::Text("I ".to_owned()))));
    assert_eq!(clock.now(), Timestamp::from_millis(50));
    let began = clock.now();
    collect(demo.complete(prompt(vec![user("long")]))).await.finished();
    let took = clock.now().since(began);
    assert!((5..=11).contains(&took.as_secs()), "{took:?}");
}
