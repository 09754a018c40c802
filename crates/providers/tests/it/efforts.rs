//! How hard a model is to think, in the words of each API.

use std::sync::Arc;

use serde_json::{Value, json};
use talaria_agent::Prompt;
use talaria_clock::SystemClock;
use talaria_model::Effort;
use talaria_providers::{Anthropic, Dial, Http, OpenAi, Settings, Thinking, Wire};

use crate::prompt::{hello, prompt_with, user};

fn settings(provider: &str, wire: Wire, model: &str) -> Settings {
    Settings {
        provider: provider.to_owned(),
        model: model.to_owned(),
        base_url: "http://localhost/v1".to_owned(),
        dial: Dial::of(provider, wire, model),
        ..Settings::default()
    }
}

fn openai(provider: &str, model: &str, prompt: &Prompt) -> Value {
    let settings = settings(provider, Wire::OpenAi, model);
    let provider = OpenAi::new(settings, Http::default(), Arc::new(SystemClock)).unwrap();
    serde_json::from_slice(&provider.request(prompt)).unwrap()
}

fn anthropic(settings: Settings, effort: Option<Effort>) -> Value {
    let provider = Anthropic::new(settings, Http::default(), Arc::new(SystemClock)).unwrap();
    let body = provider.request(&Prompt { effort, ..hello() });
    serde_json::from_slice(&body).unwrap()
}

fn claude(model: &str, effort: Effort) -> Value {
    anthropic(settings("anthropic", Wire::Anthropic, model), Some(effort))
}

#[test]
fn chat_completions_are_told_by_a_word() {
    let told = |provider, model, effort| {
        let body = openai(provider, model, &Prompt { effort: Some(effort), ..hello() });
        (body["reasoning_effort"].clone(), body["thinking"]["type"].clone())
    };
    assert_eq!(told("openai", "gpt-5-mini", Effort::High), (json!("high"), Value::Null));
    assert_eq!(told("openai", "gpt-5.1", Effort::Off), (json!("none"), Value::Null));
    assert_eq!(told("openai", "gpt-4o", Effort::High), (Value::Null, Value::Null));
    assert_eq!(told("openrouter", "x/y", Effort::Max), (json!("max"), Value::Null));
    assert_eq!(told("own", "model", Effort::XHigh), (json!("high"), Value::Null));
    assert_eq!(told("deepseek", "deepseek-v4-pro", Effort::Max), (json!("max"), json!("enabled")));
    assert_eq!(told("deepseek", "deepseek-v4-pro", Effort::Off), (Value::Null, json!("disabled")));
    assert_eq!(told("zai", "glm-4.7", Effort::Off), (Value::Null, json!("disabled")));
}

#[test]
fn nothing_is_said_where_nobody_wishes_anything() {
    for (provider, model) in [("openai", "gpt-5-mini"), ("deepseek", "x"), ("own", "x")] {
        let body = openai(provider, model, &hello());
        assert_eq!(body.get("reasoning_effort"), None);
        assert_eq!(body.get("thinking"), None);
    }
}

#[test]
fn the_newer_models_of_openai_do_not_think_beside_tools() {
    let with_tools = prompt_with(vec![user("Hello")], &["look"]);
    for effort in [None, Some(Effort::High)] {
        let prompt = Prompt { effort, ..with_tools.clone() };
        assert_eq!(openai("openai", "gpt-5.5", &prompt)["reasoning_effort"], "none");
    }
    assert_eq!(openai("openai", "gpt-5.5", &hello()).get("reasoning_effort"), None);
    assert_eq!(openai("openai", "gpt-4.1", &with_tools).get("reasoning_effort"), None);
}

#[test]
fn claude_is_told_in_the_words_of_its_generation() {
    let body = claude("claude-sonnet-5", Effort::XHigh);
    assert_eq!(body["thinking"], json!({ "type": "adaptive" }));
    assert_eq!(body["output_config"], json!({ "effort": "xhigh" }));
    let body = claude("claude-sonnet-5", Effort::Off);
    assert_eq!(body["thinking"], json!({ "type": "disabled" }));
    assert_eq!(body.get("output_config"), None);
    let body = claude("claude-fable-5", Effort::Off);
    assert_eq!(body["thinking"], json!({ "type": "adaptive" }));
    assert_eq!(body["output_config"], json!({ "effort": "low" }));
    let body = claude("claude-opus-4-5", Effort::Max);
    assert_eq!(body.get("thinking"), None);
    assert_eq!(body["output_config"], json!({ "effort": "high" }));
    let body = claude("claude-haiku-4-5-20251001", Effort::Medium);
    assert_eq!(body["thinking"], json!({ "type": "enabled", "budget_tokens": 8192 }));
    assert_eq!(body["max_tokens"], 8192 + 8192, "the thoughts come on top of the answer");
    assert_eq!(body.get("output_config"), None);
}

#[test]
fn a_wish_wins_over_what_is_set() {
    let mut settings = settings("anthropic", Wire::Anthropic, "claude-haiku-4-5");
    settings.thinking = Some(Thinking::Budget(4000));
    assert_eq!(anthropic(settings.clone(), None)["thinking"]["budget_tokens"], 4000);
    assert_eq!(
        anthropic(settings.clone(), Some(Effort::High))["thinking"]["budget_tokens"],
        16_384
    );
    assert_eq!(anthropic(settings, Some(Effort::Off)).get("thinking"), None);
}
