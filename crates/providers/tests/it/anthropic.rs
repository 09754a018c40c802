//! Messages.

use std::sync::Arc;

use serde_json::{Value, json};
use talaria_agent::{FinishReason, Part, PromptMessage, Provider, ProviderError, Sight};
use talaria_clock::SystemClock;
use talaria_model::Usage;
use talaria_providers::{Anthropic, Http, Settings, Thinking};

use crate::prompt::{
    Outcome, assistant, call, calling, collect, hello, prompt, prompt_with, result, user,
};
use crate::server::{Answer, Server};

fn settings(base_url: String) -> Settings {
    Settings {
        provider: "anthropic".to_owned(),
        model: "claude".to_owned(),
        base_url,
        sight: Sight::Pictures,
        ..Settings::default()
    }
}

fn provider(settings: Settings) -> Anthropic {
    Anthropic::new(settings, Http::default(), Arc::new(SystemClock)).unwrap()
}

fn offline() -> Anthropic {
    provider(settings("http://localhost".to_owned()))
}

fn body(prompt: &talaria_agent::Prompt) -> Value {
    serde_json::from_slice(&offline().request(prompt)).unwrap()
}

async fn ask(answer: Answer) -> Outcome {
    let server = Server::start([answer]);
    collect(provider(settings(server.url())).complete(hello())).await
}

const START: &str = r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":10,"cache_read_input_tokens":200,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn begins(index: u64, block: Value) -> String {
    json!({ "type": "content_block_start", "index": index, "content_block": block }).to_string()
}

fn goes_on(index: u64, delta: Value) -> String {
    json!({ "type": "content_block_delta", "index": index, "delta": delta }).to_string()
}

fn ends(reason: &str) -> String {
    json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": 15 } })
    .to_string()
}

#[test]
fn a_request_is_written_as_the_api_wants_it() {
    let mut refused = result("c2", "no such city");
    if let PromptMessage::ToolResult { failed, .. } = &mut refused {
        *failed = true;
    }
    let picture = Part::Image { mime: "image/png".to_owned(), base64: "iVBORw0KGgo=".into() };
    let messages = vec![
        user("What is the weather?"),
        calling(
            "Let me see.",
            vec![call("c1", "look", r#"{"city": "Oslo"}"#), call("c2", "look", "{}")],
            None,
        ),
        result("c1", "rain"),
        refused,
        user("Also in Rome."),
        assistant("Rain."),
        PromptMessage::User(vec![Part::Text("And here?".to_owned()), picture]),
    ];
    let body = body(&prompt_with(messages, &["look", "ask"]));
    let pretty = serde_json::to_string_pretty(&body).unwrap() + "\n";
    assert_eq!(pretty, include_str!("golden/anthropic_request.json"));
}

#[test]
fn the_arguments_of_a_call_go_back_byte_for_byte() {
    let messages = vec![
        user("Look"),
        calling("", vec![call("c1", "look", r#"{ "b":1.50,"a" : [ ] }"#)], None),
        result("c1", "seen"),
    ];
    let request = String::from_utf8(offline().request(&prompt(messages))).unwrap();
    assert!(request.contains(r#""input":{ "b":1.50,"a" : [ ] }}"#), "{request}");
}

#[test]
fn messages_of_the_same_side_are_one_and_results_come_first() {
    let messages = vec![
        user("One"),
        user("Two"),
        calling("", vec![call("c1", "look", "{}"), call("c2", "look", "{}")], None),
        user("Meanwhile"),
        result("c1", "1"),
        result("c2", "2"),
        assistant("Three"),
        assistant("Four"),
    ];
    let body = body(&prompt(messages));
    let shape: Vec<String> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            let kinds = message["content"].as_array().unwrap().iter().map(|it| it["type"].as_str());
            format!(
                "{}: {}",
                message["role"],
                kinds.map(Option::unwrap).collect::<Vec<_>>().join(" ")
            )
        })
        .collect();
    assert_eq!(
        shape,
        [
            "\"user\": text text",
            "\"assistant\": tool_use tool_use",
            "\"user\": tool_result tool_result text",
            "\"assistant\": text text",
        ]
    );
}

#[test]
fn what_the_api_refuses_is_left_out_or_made_to_fit() {
    let messages = vec![
        calling(" ", vec![call("functions.look:0", "look", "{}")], None),
        result("functions.look:0", ""),
        user(" \n"),
    ];
    let body = body(&prompt(messages));
    assert_eq!(
        body["messages"],
        json!([
            { "role": "user", "content": [{ "type": "text",
                "text": "(Earlier messages are not shown.)",
                "cache_control": { "type": "ephemeral" } }] },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "functions_look_0", "name": "look", "input": {} }] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "functions_look_0", "content": "",
                    "cache_control": { "type": "ephemeral" } }] },
        ])
    );
}

#[test]
fn a_budget_for_thinking_comes_on_top_of_the_answer() {
    let body = |max_tokens, thinking| {
        let settings = Settings { max_tokens, thinking, ..settings("http://localhost".to_owned()) };
        serde_json::from_slice::<Value>(&provider(settings).request(&hello())).unwrap()
    };
    assert_eq!(body(None, None)["max_tokens"], 8192);
    assert_eq!(body(None, None).get("thinking"), None);
    assert_eq!(body(Some(100), None)["max_tokens"], 100);
    let budget = body(Some(100), Some(Thinking::Budget(2048)));
    assert_eq!(budget["max_tokens"], 2148);
    assert_eq!(budget["thinking"], json!({ "type": "enabled", "budget_tokens": 2048 }));
    let adaptive = body(None, Some(Thinking::Adaptive));
    assert_eq!(adaptive["max_tokens"], 8192);
    assert_eq!(adaptive["thinking"], json!({ "type": "adaptive" }));
}

fn without_breakpoints(request: &[u8]) -> String {
    let text = String::from_utf8(request.to_vec()).unwrap();
    text.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

#[test]
fn the_prefix_stays_the_same_from_turn_to_turn() {
    let kept =
        r#"{"from":"anthropic","kept":[{"type":"thinking","thinking":"Hm.","signature":"c2ln"}]}"#;
    let messages = vec![
        user("One"),
        calling(
            "Let me see.",
            vec![call("c1", "look", r#"{"city":"Oslo"}"#)],
            Some(kept.to_owned()),
        ),
        result("c1", "rain"),
        assistant("Rain."),
        user("Two"),
        calling("", vec![call("c2", "look", "{}")], None),
        result("c2", "sun"),
        assistant("Sun."),
        user("Three"),
    ];
    let tools = &["ask", "look"];
    let request = |until: usize| offline().request(&prompt_with(messages[..until].to_vec(), tools));
    // A request is made whenever it is the model's turn.
    let turns = [1, 3, 5, 7, 9];
    for pair in turns.windows(2) {
        let before = without_breakpoints(&request(pair[0]));
        let after = without_breakpoints(&request(pair[1]));
        let shared = before.strip_suffix("]}").unwrap();
        assert!(after.starts_with(shared), "\n{before}\n{after}");
        let fixed = |request: &[u8]| {
            let text = String::from_utf8(request.to_vec()).unwrap();
            text[..text.find(r#""messages":"#).unwrap()].to_owned()
        };
        assert_eq!(fixed(&request(pair[0])), fixed(&request(pair[1])));
    }
}

#[test]
fn there_are_never_more_than_four_breakpoints() {
    let mut messages = Vec::new();
    for turn in 0..5 {
        messages.push(user(&format!("Question {turn}")));
        let request = offline().request(&prompt_with(messages.clone(), &["ask", "look"]));
        let count = String::from_utf8(request).unwrap().matches("cache_control").count();
        assert_eq!(count, if turn == 0 { 3 } else { 4 });
        messages.push(assistant(&format!("Answer {turn}")));
    }
}

#[tokio::test]
async fn text_and_usage_come_through() {
    let outcome = ask(Answer::events(&[
        START,
        &begins(0, json!({ "type": "text", "text": "" })),
        r#"{"type":"ping"}"#,
        &goes_on(0, json!({ "type": "text_delta", "text": "Hél" })),
        &goes_on(0, json!({ "type": "text_delta", "text": "lo" })),
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"something_new","field":1}"#,
        &ends("end_turn"),
        STOP,
    ]))
    .await;
    assert_eq!(outcome.text, "Héllo");
    assert_eq!(outcome.finished().reason, FinishReason::Stop);
    assert_eq!(
        outcome.finished().usage,
        Usage { input: 25, output: 15, cache_read: 200, cache_write: 10, ..Usage::NONE }
    );
}

#[tokio::test]
async fn calls_are_put_together() {
    let json_delta = |index, text: &str| {
        goes_on(index, json!({ "type": "input_json_delta", "partial_json": text }))
    };
    let outcome = ask(Answer::events(&[
        START,
        &begins(0, json!({ "type": "text", "text": "Let me see." })),
        &begins(1, json!({ "type": "tool_use", "id": "c1", "name": "look", "input": {} })),
        &json_delta(1, ""),
        &json_delta(1, "{\"city\": "),
        &json_delta(1, "\"Oslo\"}"),
        &begins(2, json!({ "type": "tool_use", "id": "c2", "name": "ask", "input": {} })),
        &begins(3, json!({ "type": "tool_use", "id": "c3", "name": "look", "input": { "a": 1 } })),
        &begins(4, json!({ "type": "server_tool_use", "id": "s1", "name": "web", "input": {} })),
        &ends("tool_use"),
        STOP,
    ]))
    .await;
    assert_eq!(outcome.text, "Let me see.");
    let calls = [
        call("c1", "look", "{\"city\": \"Oslo\"}"),
        call("c2", "ask", "{}"),
        call("c3", "look", "{\"a\":1}"),
    ];
    assert_eq!(outcome.finished().calls, calls);
    assert_eq!(outcome.finished().reason, FinishReason::ToolCalls);
}

#[tokio::test]
async fn signed_thoughts_go_back_before_the_text_that_led_to_a_call() {
    let answer = Answer::events(&[
        START,
        &begins(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        &goes_on(0, json!({ "type": "thinking_delta", "thinking": "Let me " })),
        &goes_on(0, json!({ "type": "thinking_delta", "thinking": "look." })),
        &goes_on(0, json!({ "type": "signature_delta", "signature": "c2lnbmVk" })),
        &begins(1, json!({ "type": "redacted_thinking", "data": "ZGFyaw==" })),
        &begins(2, json!({ "type": "text", "text": "One moment." })),
        &begins(3, json!({ "type": "tool_use", "id": "c1", "name": "look", "input": {} })),
        &ends("tool_use"),
        STOP,
    ]);
    let outcome = ask(answer).await;
    assert_eq!(outcome.thought, "Let me look.");
    let Some(kept) = outcome.finished().reasoning.clone() else { panic!("{outcome:?}") };
    let messages = vec![
        user("Hello"),
        calling("One moment.", vec![call("c1", "look", "{}")], Some(kept.clone())),
        result("c1", "seen"),
    ];
    let sent = body(&prompt(messages.clone()));
    assert_eq!(
        sent["messages"][1]["content"],
        json!([
            { "type": "thinking", "thinking": "Let me look.", "signature": "c2lnbmVk" },
            { "type": "redacted_thinking", "data": "ZGFyaw==" },
            { "type": "text", "text": "One moment." },
            { "type": "tool_use", "id": "c1", "name": "look", "input": {} },
        ])
    );
    let elsewhere =
        Settings { provider: "minimax".to_owned(), ..settings("http://localhost".to_owned()) };
    let request = provider(elsewhere).request(&prompt(messages));
    assert!(!String::from_utf8(request).unwrap().contains("thinking"));
}

#[tokio::test]
async fn thoughts_before_a_plain_answer_are_not_kept() {
    let outcome = ask(Answer::events(&[
        START,
        &begins(0, json!({ "type": "thinking", "thinking": "Hm.", "signature": "s" })),
        &begins(1, json!({ "type": "text", "text": "Yes." })),
        &ends("end_turn"),
        STOP,
    ]))
    .await;
    assert_eq!((outcome.thought.as_str(), outcome.text.as_str()), ("Hm.", "Yes."));
    assert_eq!(outcome.finished().reasoning, None);
}

#[tokio::test]
async fn reasons_to_end_are_told_apart() {
    for (reason, expect) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("pause_turn", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("refusal", FinishReason::Refused),
    ] {
        let outcome = ask(Answer::events(&[START, &ends(reason), STOP])).await;
        assert_eq!(outcome.finished().reason, expect, "{reason}");
    }
}

#[tokio::test]
async fn a_call_whose_arguments_never_came_is_not_a_call_without_arguments() {
    let outcome = ask(Answer::events(&[
        START,
        &begins(0, json!({ "type": "tool_use", "id": "c1", "name": "look", "input": {} })),
        &ends("max_tokens"),
        STOP,
    ]))
    .await;
    assert_eq!(outcome.error(), &ProviderError::TruncatedCall { tool: "look".to_owned() });
}

#[tokio::test]
async fn an_answer_in_one_piece_is_an_answer() {
    let whole = json!({ "type": "message", "role": "assistant", "stop_reason": "tool_use",
        "content": [{ "type": "text", "text": "Yes." },
            { "type": "tool_use", "id": "c1", "name": "look", "input": { "city": "Oslo" } }],
        "usage": { "input_tokens": 3, "output_tokens": 2 } });
    let outcome = ask(Answer::status(200, &whole.to_string())).await;
    assert_eq!(outcome.text, "Yes.");
    assert_eq!(outcome.finished().calls, [call("c1", "look", r#"{"city":"Oslo"}"#)]);
    assert_eq!(outcome.finished().usage, Usage { input: 3, output: 2, ..Usage::default() });
}

#[tokio::test]
async fn the_address_may_name_the_version_or_not() {
    for path in ["", "/", "/v1", "/v1/"] {
        let mut server = Server::start([Answer::events(&[START, &ends("end_turn"), STOP])]);
        let base_url = format!("http://{}{path}", server.address);
        collect(provider(settings(base_url)).complete(hello())).await.finished();
        assert_eq!(server.request().await.uri.path(), "/v1/messages", "{path:?}");
    }
}
