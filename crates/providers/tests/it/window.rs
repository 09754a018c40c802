//! How much a model reads, as its server says.

use std::sync::Arc;

use talaria_agent::Provider;
use talaria_clock::FakeClock;
use talaria_model::Timestamp;
use talaria_providers::{Http, OpenAi, Settings};

use crate::clock::HandClock;
use crate::server::{Answer, Server};

fn provider(name: &str, server: &Server) -> OpenAi {
    let settings = Settings {
        provider: name.to_owned(),
        model: "llama3.2".to_owned(),
        base_url: server.url(),
        ..Settings::default()
    };
    OpenAi::new(settings, Http::default(), Arc::new(HandClock::default())).unwrap()
}

async fn window(name: &str, answers: &[&str]) -> Option<u64> {
    let answers: Vec<_> = answers
        .iter()
        .map(|body| match *body {
            "" => Answer::status(404, "not found"),
            body => Answer::status(200, body),
        })
        .collect();
    let server = Server::start(answers);
    provider(name, &server).context_window().await
}

#[tokio::test]
async fn ollama_says_what_it_has_loaded() {
    let loaded = r#"{"models":[{"name":"other","context_length":1024},{"name":"llama3.2:latest","context_length":4096}]}"#;
    assert_eq!(window("ollama", &[loaded]).await, Some(4096));
}

#[tokio::test]
async fn ollama_says_what_it_would_load() {
    let none = r#"{"models":[]}"#;
    let asked_for = r#"{"parameters":"stop \"x\"\nnum_ctx                        8192","model_info":{"llama.context_length":131072}}"#;
    assert_eq!(window("ollama", &[none, asked_for]).await, Some(8192));
    let trained =
        r#"{"model_info":{"general.architecture":"llama","llama.context_length":131072}}"#;
    assert_eq!(window("ollama", &[none, trained]).await, Some(32_768), "memory decides");
    let small = r#"{"model_info":{"gemma.context_length":8192}}"#;
    assert_eq!(window("ollama", &["", small]).await, Some(8192));
    assert_eq!(window("ollama", &["", ""]).await, None);
}

#[tokio::test]
async fn other_servers_say_it_in_their_own_words() {
    let props = r#"{"default_generation_settings":{"n_ctx":65536,"params":{}},"total_slots":4}"#;
    assert_eq!(window("llamacpp", &[props]).await, Some(65_536));
    let loaded = r#"{"data":[{"id":"llama3.2","max_context_length":131072,"loaded_context_length":8192,"state":"loaded"}]}"#;
    assert_eq!(window("lmstudio", &[loaded]).await, Some(8192));
    let unloaded =
        r#"{"data":[{"id":"llama3.2","max_context_length":131072,"state":"not-loaded"}]}"#;
    assert_eq!(window("lmstudio", &[unloaded]).await, Some(32_768));
    for word in ["max_model_len", "context_window", "context_length", "max_context_length"] {
        let list = format!(r#"{{"data":[{{"id":"x"}},{{"id":"llama3.2","{word}":16384}}]}}"#);
        assert_eq!(window("vllm", &[&list]).await, Some(16_384), "{word}");
    }
}

#[tokio::test]
async fn what_is_no_answer_is_none() {
    for body in ["", "{}", "[]", "<html>", r#"{"data":[]}"#, r#"{"data":[{"id":"llama3.2"}]}"#] {
        assert_eq!(window("own", &[body]).await, None, "{body}");
    }
    let absurd = r#"{"data":[{"id":"llama3.2","context_length":1}]}"#;
    assert_eq!(window("own", &[absurd]).await, None);
}

#[tokio::test]
async fn a_server_is_asked_once_and_where_the_number_is_set_not_at_all() {
    let list = r#"{"data":[{"id":"llama3.2","context_length":16384}]}"#;
    let mut server = Server::start([Answer::status(200, list)]);
    let asked = provider("own", &server);
    assert_eq!(asked.context_window().await, Some(16_384));
    assert_eq!(asked.context_window().await, Some(16_384));
    assert_eq!(server.request().await.uri.path(), "/v1/models");

    let silent = Server::start([]);
    let settings =
        Settings { context_window: Some(5), base_url: silent.url(), ..Settings::default() };
    let clock = FakeClock::starting(Timestamp::from_millis(0));
    let set = OpenAi::new(settings, Http::default(), Arc::new(clock)).unwrap();
    assert_eq!(set.context_window().await, Some(5));
}
