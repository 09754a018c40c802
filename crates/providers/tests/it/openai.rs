//! Chat completions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use talaria_agent::{FinishReason, Part, Prompt, PromptMessage, Provider, ProviderError, Sight};
use talaria_clock::SystemClock;
use talaria_model::{Secret, Usage};
use talaria_providers::{Http, LimitName, OpenAi, Settings};

use crate::prompt::{
    Outcome, assistant, call, calling, collect, hello, prompt, prompt_with, result, user,
};
use crate::server::{Answer, Server};

fn settings(base_url: String) -> Settings {
    Settings {
        provider: "deepseek".to_owned(),
        model: "model".to_owned(),
        base_url,
        sight: Sight::Pictures,
        ..Settings::default()
    }
}

fn provider(settings: Settings) -> OpenAi {
    OpenAi::new(settings, Http::default(), Arc::new(SystemClock)).unwrap()
}

async fn ask(answer: Answer) -> Outcome {
    let server = Server::start([answer]);
    collect(provider(settings(server.url())).complete(hello())).await
}

fn delta(delta: Value) -> String {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }).to_string()
}

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const TOOL_CALLS: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;

async fn ask_deltas(deltas: &[Value]) -> Outcome {
    let mut answer = Answer::events(&[]);
    for said in deltas {
        answer = answer.data(&[&delta(said.clone())]);
    }
    ask(answer.data(&[STOP, "[DONE]"])).await
}

fn pretty(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap();
    serde_json::to_string_pretty(&value).unwrap() + "\n"
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
        assistant("Rain."),
        PromptMessage::User(vec![Part::Text("And here?".to_owned()), picture]),
    ];
    let body = provider(settings("http://localhost/v1".to_owned()))
        .request(&prompt_with(messages, &["look", "ask"]));
    assert_eq!(pretty(&body), include_str!("golden/openai_request.json"));
}

#[test]
fn a_limit_is_sent_only_when_one_is_set_and_under_the_right_name() {
    let body = |max_tokens, limit_name| {
        let settings =
            Settings { max_tokens, limit_name, ..settings("http://localhost/v1".to_owned()) };
        serde_json::from_slice::<Value>(&provider(settings).request(&hello())).unwrap()
    };
    let unlimited = body(None, LimitName::MaxTokens);
    assert_eq!(unlimited.get("max_tokens"), None);
    assert_eq!(unlimited.get("tools"), None);
    assert_eq!(body(Some(100), LimitName::MaxTokens)["max_tokens"], 100);
    let newer = body(Some(100), LimitName::MaxCompletionTokens);
    assert_eq!(newer["max_completion_tokens"], 100);
    assert_eq!(newer.get("max_tokens"), None);
}

#[test]
fn extra_fields_and_headers_go_along() {
    let Value::Object(extra_body) = json!({ "stream_options": null, "reasoning_effort": "low" })
    else {
        unreachable!()
    };
    let settings = Settings { extra_body, ..settings("http://localhost/v1".to_owned()) };
    let body: Value = serde_json::from_slice(&provider(settings).request(&hello())).unwrap();
    assert_eq!(body.get("stream_options"), None);
    assert_eq!(body["reasoning_effort"], "low");
}

#[tokio::test]
async fn extra_headers_win_over_ours() {
    let mut server = Server::start([Answer::events(&[&delta(json!({ "content": "x" })), STOP])]);
    let headers = BTreeMap::from([
        ("X-Title".to_owned(), Secret::new("Talaria")),
        ("authorization".to_owned(), Secret::new("Token abc")),
    ]);
    let key = Some(Secret::new("sk"));
    let settings = Settings { headers, key, ..settings(server.url()) };
    collect(provider(settings).complete(hello())).await.finished();
    let request = server.request().await;
    assert_eq!(request.headers["x-title"], "Talaria");
    assert_eq!(request.headers["authorization"], "Token abc");
}

#[test]
fn a_header_that_cannot_be_sent_is_found_before_anything_is_sent() {
    let headers = BTreeMap::from([("x-bad".to_owned(), Secret::new("a\nb"))]);
    let settings = Settings { headers, ..settings("http://localhost/v1".to_owned()) };
    let error = OpenAi::new(settings, Http::default(), Arc::new(SystemClock)).err().unwrap();
    assert_eq!(error.to_string(), "deepseek: the header \"x-bad\" cannot be sent");
}

#[tokio::test]
async fn text_and_usage_come_through() {
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 100, "completion_tokens": 20,
        "prompt_tokens_details": { "cached_tokens": 64 },
        "completion_tokens_details": { "reasoning_tokens": 12 } } });
    let outcome = ask(Answer::events(&[
        &delta(json!({ "role": "assistant", "content": "" })),
        &delta(json!({ "content": "Hél" })),
        &delta(json!({ "content": "lo", "tool_calls": null })),
        STOP,
        &usage.to_string(),
        "[DONE]",
    ]))
    .await;
    assert_eq!(outcome.text, "Héllo");
    assert_eq!(outcome.finished().reason, FinishReason::Stop);
    let usage = Usage { input: 36, output: 20, cache_read: 64, reasoning: 12, ..Usage::NONE };
    assert_eq!(outcome.finished().usage, usage);
}

#[tokio::test]
async fn calls_are_put_together() {
    let outcome = ask(Answer::events(&[
        &delta(json!({ "content": "Let me see." })),
        &delta(json!({ "tool_calls": [{ "index": 0, "id": "c1", "type": "function",
            "function": { "name": "look", "arguments": "" } }] })),
        &delta(
            json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{\"city\":" } }] }),
        ),
        &delta(json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "\"Oslo\"}" } }] })),
        &delta(json!({ "tool_calls": [{ "index": 1, "id": "c2",
            "function": { "name": "look", "arguments": { "city": "Rome" } } }] })),
        TOOL_CALLS,
        "[DONE]",
    ]))
    .await;
    let calls =
        [call("c1", "look", r#"{"city":"Oslo"}"#), call("c2", "look", r#"{"city":"Rome"}"#)];
    assert_eq!(outcome.finished().calls, calls);
    assert_eq!(outcome.finished().reason, FinishReason::ToolCalls);
}

#[tokio::test]
async fn what_is_called_counts_more_than_the_reason() {
    let called =
        json!({ "tool_calls": [{ "index": 0, "id": "c1", "function": { "name": "look" } }] });
    let outcome = ask_deltas(&[called]).await;
    assert_eq!(outcome.finished().reason, FinishReason::ToolCalls);
    assert_eq!(outcome.finished().calls, [call("c1", "look", "{}")]);
}

#[tokio::test]
async fn an_id_that_was_used_before_is_replaced() {
    let again =
        json!({ "tool_calls": [{ "index": 0, "id": "c1", "function": { "name": "look" } }] });
    let server = Server::start([Answer::events(&[&delta(again), TOOL_CALLS])]);
    let messages =
        vec![user("Look"), calling("", vec![call("c1", "look", "{}")], None), result("c1", "seen")];
    let outcome = collect(provider(settings(server.url())).complete(prompt(messages))).await;
    assert_eq!(outcome.finished().calls[0].id.as_str(), "c1-2");
}

#[tokio::test]
async fn thoughts_arrive_under_every_name() {
    for thought in [
        json!({ "reasoning_content": "Hm." }),
        json!({ "reasoning": "Hm." }),
        json!({ "reasoning": "Hm.", "reasoning_content": "Hm." }),
        json!({ "content": "<think>Hm.</think>" }),
        json!({ "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "Hm." }] }] }),
    ] {
        let outcome = ask_deltas(&[thought.clone(), json!({ "content": "Yes." })]).await;
        assert_eq!((outcome.thought.as_str(), outcome.text.as_str()), ("Hm.", "Yes."), "{thought}");
        assert_eq!(outcome.finished().reasoning, None);
    }
}

#[tokio::test]
async fn what_a_server_wants_to_see_again_goes_back_to_it_and_to_nobody_else() {
    let signed = json!({ "google": { "thought_signature": "c2ln" } });
    let server = Server::start([Answer::events(&[
        &delta(json!({ "reasoning_content": "" })),
        &delta(json!({ "reasoning_content": "Let me " })),
        &delta(json!({ "reasoning_content": "look." })),
        &delta(
            json!({ "reasoning_details": [{ "type": "reasoning.text", "index": 0, "text": "a" }] }),
        ),
        &delta(json!({ "reasoning_details": [
            { "type": "reasoning.text", "index": 0, "text": "b", "signature": "s" } ] })),
        &delta(json!({ "reasoning_details": [{ "type": "reasoning.encrypted", "data": "x" }] })),
        &delta(json!({ "tool_calls": [{ "index": 0, "id": "c1", "extra_content": signed,
            "function": { "name": "look", "arguments": "{}" } }] })),
        TOOL_CALLS,
    ])]);
    let outcome = collect(provider(settings(server.url())).complete(hello())).await;
    let Some(kept) = outcome.finished().reasoning.clone() else { panic!("{outcome:?}") };
    let messages = vec![
        user("Hello"),
        calling("", vec![call("c1", "look", "{}")], Some(kept)),
        result("c1", "seen"),
    ];
    let sent = |name: &str| {
        let settings =
            Settings { provider: name.to_owned(), ..settings("http://localhost/v1".to_owned()) };
        let body = provider(settings).request(&prompt(messages.clone()));
        serde_json::from_slice::<Value>(&body).unwrap()["messages"][2].clone()
    };
    let answer = json!({
        "role": "assistant",
        "content": null,
        "reasoning_content": "Let me look.",
        "reasoning_details": [
            { "type": "reasoning.text", "index": 0, "text": "ab", "signature": "s" },
            { "type": "reasoning.encrypted", "data": "x" },
        ],
        "tool_calls": [{ "id": "c1", "type": "function",
            "function": { "name": "look", "arguments": "{}" }, "extra_content": signed }],
    });
    assert_eq!(sent("deepseek"), answer);
    assert_eq!(
        sent("mistral"),
        json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "c1",
            "type": "function", "function": { "name": "look", "arguments": "{}" } }] })
    );
}

#[tokio::test]
async fn reasons_to_end_are_told_apart() {
    for (reason, expect) in [
        ("stop", FinishReason::Stop),
        ("length", FinishReason::Length),
        ("content_filter", FinishReason::Refused),
        ("something_else", FinishReason::Stop),
    ] {
        let end = json!({ "choices": [{ "delta": { "content": "x" }, "finish_reason": reason }] });
        let outcome = ask(Answer::events(&[&end.to_string(), "[DONE]"])).await;
        assert_eq!(outcome.finished().reason, expect, "{reason}");
    }
}

#[tokio::test]
async fn an_end_without_a_reason_will_do_if_something_was_said() {
    let outcome = ask(Answer::events(&[&delta(json!({ "content": "Yes." })), "[DONE]"])).await;
    assert_eq!(outcome.finished().reason, FinishReason::Stop);
}

#[tokio::test]
async fn what_follows_the_end_is_not_heard() {
    let more = delta(json!({ "content": "more" }));
    let outcome = ask(Answer::events(&[
        &delta(json!({ "content": "Yes." })),
        STOP,
        "[DONE]",
        "[DONE]",
        &more,
        "garbage",
    ]))
    .await;
    assert_eq!(outcome.text, "Yes.");
    outcome.finished();
}

#[tokio::test]
async fn errors_in_the_stream_have_many_shapes() {
    for (error, expect) in [
        (
            r#"{"id":"x","choices":[{"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"upstream"}}"#,
            ProviderError::Unavailable { detail: "HTTP 502: upstream".to_owned() },
        ),
        (
            r#"{"object":"error","message":"maximum context length is 5","code":400}"#,
            ProviderError::TooLong,
        ),
        (r#"{"error":{"code":429,"message":"slow"}}"#, ProviderError::RateLimited { after: None }),
        (
            r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#,
            ProviderError::Unavailable { detail: "the model failed".to_owned() },
        ),
    ] {
        assert_eq!(ask(Answer::events(&[error])).await.error(), &expect, "{error}");
    }
    let named = Answer::events(&[]).bytes(b"event: error\ndata: out of memory\n\n");
    let detail = "out of memory".to_owned();
    assert_eq!(ask(named).await.error(), &ProviderError::Unavailable { detail });
}

#[tokio::test]
async fn an_answer_in_one_piece_is_an_answer() {
    let whole = json!({ "object": "chat.completion", "choices": [{ "index": 0, "message": {
            "role": "assistant", "content": "<think>Hm.</think>Yes.", "tool_calls": [{ "id": "c1",
                "type": "function", "function": { "name": "look", "arguments": "{}" } }] },
            "finish_reason": "tool_calls" }],
        "usage": { "prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": null } });
    let outcome = ask(Answer::status(200, &whole.to_string())).await;
    assert_eq!((outcome.thought.as_str(), outcome.text.as_str()), ("Hm.", "Yes."));
    assert_eq!(outcome.finished().calls, [call("c1", "look", "{}")]);
    assert_eq!(outcome.finished().usage, Usage { input: 3, output: 2, ..Usage::default() });
}

#[tokio::test]
async fn an_error_with_status_200_is_an_error() {
    let outcome = ask(Answer::status(200, r#"{"error":{"code":402,"message":"pay"}}"#)).await;
    assert!(matches!(outcome.error(), ProviderError::NoCredit { .. }), "{outcome:?}");
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_ended() {
    let much = delta(json!({ "content": "x".repeat(900_000) }));
    let outcome = ask(Answer::events(&[&much, &much, &much, &much, &much, STOP])).await;
    assert!(matches!(outcome.error(), ProviderError::Garbled { .. }));
    assert_eq!(outcome.text.len(), 4_500_000);
}

#[tokio::test]
async fn comments_names_and_odd_line_ends_do_no_harm() {
    let outcome = ask(Answer::events(&[])
        .bytes(b": OPENROUTER PROCESSING\r\n\r\n")
        .bytes(b"event: message\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"\xC3")
        .bytes(b"\xA9\"}}]}\r")
        .bytes(b"\n\r\n")
        .data(&[STOP, "[DONE]"]))
    .await;
    assert_eq!(outcome.text, "é");
}

#[tokio::test]
async fn only_the_first_of_several_answers_is_heard() {
    let two = json!({ "choices": [{ "index": 1, "delta": { "content": "no" } },
        { "index": 0, "delta": { "content": "yes" } }] });
    assert_eq!(ask(Answer::events(&[&two.to_string(), STOP])).await.text, "yes");
}

#[test]
fn a_longer_conversation_begins_with_the_same_bytes() {
    let mut messages = vec![user("One"), assistant("Two")];
    let provider = provider(settings("http://localhost/v1".to_owned()));
    let tools = &["look"];
    let before: Prompt = prompt_with(messages.clone(), tools);
    messages.push(user("Three"));
    let before = provider.request(&before);
    let after = provider.request(&prompt_with(messages, tools));
    let shared = before.strip_suffix(b"]}").unwrap();
    assert!(after.starts_with(shared), "{}", String::from_utf8_lossy(&after));
}

#[tokio::test]
async fn what_an_answer_cost_is_told() {
    use talaria_model::Cost;
    use talaria_providers::{Price, Pricing};
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":10,"cost":0.00078,"prompt_tokens_details":{"cached_tokens":600}}}"#;
    let cost = async |pricing| {
        let said = delta(json!({ "content": "x" }));
        let server = Server::start([Answer::events(&[&said, STOP, usage, "[DONE]"])]);
        let settings = Settings { pricing, ..settings(server.url()) };
        collect(provider(settings).complete(hello())).await.finished().cost
    };
    let price = Price {
        input: 1_000_000,
        output: 10_000_000,
        cache_read: Some(100_000),
        ..Price::default()
    };
    assert_eq!(cost(Pricing::Reported(None)).await, Cost::known(780));
    assert_eq!(cost(Pricing::Listed(price)).await, Cost::known(400 + 60 + 100));
    assert_eq!(cost(Pricing::Free).await, Cost::FREE);
    assert_eq!(cost(Pricing::Unknown).await, Cost::UNKNOWN);
}

#[test]
fn a_model_that_does_not_see_reads_that_there_was_a_picture() {
    let picture = Part::Image { mime: "image/png".to_owned(), base64: "iVBORw0KGgo=".into() };
    let message = PromptMessage::User(vec![picture, Part::Text("What is it?".to_owned())]);
    let settings =
        Settings { sight: Sight::TextOnly, ..settings("http://localhost/v1".to_owned()) };
    let body = provider(settings).request(&prompt(vec![message]));
    let body: Value = serde_json::from_slice(&body).unwrap();
    let read = &body["messages"][1]["content"];
    assert_eq!(read, "[A picture, which you cannot see]\n\nWhat is it?");
}
