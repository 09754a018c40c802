//! What both APIs must make of the same troubles.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use talaria_agent::{Delta, Provider, ProviderError};
use talaria_clock::{Clock, SystemClock};
use talaria_model::Secret;
use talaria_providers::{Anthropic, Deadlines, Http, OpenAi, Settings};

use crate::clock::HandClock;
use crate::prompt::{Outcome, collect, hello};
use crate::server::{Answer, Server};

const DEADLINES: Deadlines =
    Deadlines { first_token: Duration::from_secs(120), idle: Duration::from_secs(60) };

#[derive(Debug, Clone, Copy)]
enum Api {
    OpenAi,
    Anthropic,
}

const BOTH: [Api; 2] = [Api::OpenAi, Api::Anthropic];

impl Api {
    fn provider(self, url: String, clock: Arc<dyn Clock>) -> Arc<dyn Provider> {
        let settings = Settings {
            provider: "test".to_owned(),
            model: "model".to_owned(),
            base_url: url,
            key: Some(Secret::new("sk-canary")),
            deadlines: DEADLINES,
            ..Settings::default()
        };
        match self {
            Self::OpenAi => Arc::new(OpenAi::new(settings, Http::default(), clock).unwrap()),
            Self::Anthropic => Arc::new(Anthropic::new(settings, Http::default(), clock).unwrap()),
        }
    }

    /// A sign of life that is not a token yet.
    fn preamble(self) -> &'static str {
        match self {
            Self::OpenAi => {
                r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#
            }
            Self::Anthropic => {
                r#"{"type":"message_start","message":{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}"#
            }
        }
    }

    fn says(self, text: &str) -> String {
        match self {
            Self::OpenAi => {
                serde_json::json!({ "choices": [{ "index": 0, "delta": { "content": text } }] })
            }
            Self::Anthropic => serde_json::json!({ "type": "content_block_delta", "index": 0,
                "delta": { "type": "text_delta", "text": text } }),
        }
        .to_string()
    }

    fn calls_half(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &[
                r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":"{\"city\":"}}]}}]}"#,
            ],
            Self::Anthropic => &[
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"look","input":{}}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"city\":"}}"#,
            ],
        }
    }

    /// The model ended, for want of space.
    fn ends(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => {
                &[r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#, "[DONE]"]
            }
            Self::Anthropic => &[
                r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":5}}"#,
                r#"{"type":"message_stop"}"#,
            ],
        }
    }

    fn stops(self) -> &'static str {
        match self {
            Self::OpenAi => r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            Self::Anthropic => {
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}"#
            }
        }
    }
}

async fn ask(api: Api, answer: Answer) -> Outcome {
    let server = Server::start([answer]);
    collect(api.provider(server.url(), Arc::new(SystemClock)).complete(hello())).await
}

fn said(api: Api) -> Answer {
    Answer::events(&[api.preamble(), &api.says("Hel"), &api.says("lo")])
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_back() {
    for api in BOTH {
        let limited = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#;
        let outcome = ask(api, Answer::status(429, limited).header("retry-after", "7")).await;
        let after = Some(Duration::from_secs(7));
        assert_eq!(outcome.error(), &ProviderError::RateLimited { after }, "{api:?}");
        let outcome = ask(api, Answer::status(429, limited)).await;
        assert_eq!(outcome.error(), &ProviderError::RateLimited { after: None }, "{api:?}");
    }
}

#[tokio::test]
async fn trouble_on_their_side_is_trouble_on_their_side() {
    for api in BOTH {
        for status in [500, 502, 503, 529] {
            let outcome = ask(api, Answer::status(status, "<html>oops</html>")).await;
            let detail = format!("HTTP {status}");
            assert_eq!(outcome.error(), &ProviderError::Unavailable { detail }, "{api:?}");
        }
    }
}

#[tokio::test]
async fn a_refused_key_is_not_shown_even_if_they_repeat_it() {
    for api in BOTH {
        let refused = r#"{"error":{"message":"Incorrect API key provided: sk-canary"}}"#;
        let outcome = ask(api, Answer::status(401, refused)).await;
        let detail = "HTTP 401: Incorrect API key provided: …".to_owned();
        assert_eq!(outcome.error(), &ProviderError::Unauthorized { detail }, "{api:?}");
    }
}

#[tokio::test]
async fn an_unknown_model_is_refused_for_good() {
    for api in BOTH {
        let outcome =
            ask(api, Answer::status(404, r#"{"error":{"message":"no such model"}}"#)).await;
        let detail = "HTTP 404: no such model".to_owned();
        assert_eq!(outcome.error(), &ProviderError::Rejected { detail }, "{api:?}");
    }
}

#[tokio::test]
async fn an_over_long_context_is_told_apart() {
    let variants = [
        (Api::OpenAi, r#"{"error":{"code":"context_length_exceeded","message":"too many"}}"#),
        (
            Api::Anthropic,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 2 tokens > 1 maximum"}}"#,
        ),
    ];
    for (api, body) in variants {
        assert_eq!(ask(api, Answer::status(400, body)).await.error(), &ProviderError::TooLong);
    }
}

#[tokio::test]
async fn an_account_without_credit_is_told_apart() {
    let variants = [
        (Api::OpenAi, 429, r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#),
        (
            Api::Anthropic,
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
        ),
    ];
    for (api, status, body) in variants {
        let outcome = ask(api, Answer::status(status, body)).await;
        assert!(matches!(outcome.error(), ProviderError::NoCredit { .. }), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for api in BOTH {
        let elsewhere = Answer::status(307, "").header("location", "http://example.org/");
        let outcome = ask(api, elsewhere).await;
        let detail = "HTTP 307".to_owned();
        assert_eq!(outcome.error(), &ProviderError::Rejected { detail });
    }
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    for api in BOTH {
        let closed = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            format!("http://{}/v1", listener.local_addr().unwrap())
        };
        let outcome = collect(api.provider(closed, Arc::new(SystemClock)).complete(hello())).await;
        assert!(matches!(outcome.error(), ProviderError::Unreachable { .. }), "{outcome:?}");
        assert!(outcome.error().to_string().contains("refused"), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_first_token_that_never_comes_has_its_own_deadline() {
    for api in BOTH {
        let silences = [
            Answer::nothing().hangs(),
            Answer::events(&[]).bytes(b": keep-alive\n\n").hangs(),
            Answer::events(&[api.preamble()]).hangs(),
        ];
        for silence in silences {
            let mut server = Server::start([silence]);
            let clock = HandClock::default();
            let deltas = api.provider(server.url(), Arc::new(clock.clone())).complete(hello());
            let (outcome, ()) = tokio::join!(collect(deltas), async {
                server.request().await;
                clock.pass(DEADLINES.idle);
                clock.pass(DEADLINES.first_token);
            });
            let waited = DEADLINES.first_token;
            assert_eq!(outcome.error(), &ProviderError::NoFirstToken { waited }, "{api:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_stalls_has_another_deadline() {
    for api in BOTH {
        let server = Server::start([said(api).hangs()]);
        let clock = HandClock::default();
        let mut deltas = api.provider(server.url(), Arc::new(clock.clone())).complete(hello());
        let mut text = String::new();
        while text != "Hello" {
            match deltas.next().await {
                Some(Ok(Delta::Text(more))) => text.push_str(&more),
                other => panic!("{api:?}: {other:?}"),
            }
        }
        clock.pass(DEADLINES.first_token);
        clock.pass(DEADLINES.idle);
        let waited = DEADLINES.idle;
        assert_eq!(deltas.next().await, Some(Err(ProviderError::Stalled { waited })), "{api:?}");
        assert_eq!(deltas.next().await, None);
    }
}

#[tokio::test]
async fn a_cut_stream_is_an_error_and_not_an_answer() {
    for api in BOTH {
        for cut in [said(api), said(api).breaks()] {
            let outcome = ask(api, cut).await;
            assert_eq!(outcome.text, "Hello", "{api:?}");
            assert_eq!(outcome.error(), &ProviderError::Cut, "{api:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_of_nothing_is_an_error_and_not_an_empty_answer() {
    for api in BOTH {
        let nothing = [
            Answer::nothing(),
            Answer::events(&[]).breaks(),
            Answer::events(&[api.preamble()]),
            Answer::status(200, "\n\n"),
        ];
        for nothing in nothing {
            assert_eq!(ask(api, nothing).await.error(), &ProviderError::Cut, "{api:?}");
        }
    }
    let outcome = ask(Api::OpenAi, Answer::events(&["[DONE]"])).await;
    assert_eq!(outcome.error(), &ProviderError::Cut);
}

#[tokio::test]
async fn garbage_is_garbage() {
    for api in BOTH {
        let garbage = [
            Answer::events(&["{not json"]),
            Answer::events(&[api.preamble(), "\u{fffd}\u{0}"]),
            Answer::status(200, "<!doctype html><title>Sign in to the network</title>"),
            Answer::status(200, "{\"unexpected\": true}"),
            Answer::status(200, "{\"cut\": "),
            Answer::events(&[]).bytes(&vec![b'x'; 2 * 1024 * 1024]),
        ];
        for garbage in garbage {
            let outcome = ask(api, garbage).await;
            let error = outcome.error();
            assert!(matches!(error, ProviderError::Garbled { .. }), "{api:?}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_without_fields_is_a_cut_stream() {
    for api in BOTH {
        let outcome = ask(api, Answer::status(200, "just\nwords\n\n")).await;
        assert_eq!(outcome.error(), &ProviderError::Cut, "{api:?}");
    }
}

#[tokio::test]
async fn a_truncated_call_is_never_a_call() {
    for api in BOTH {
        let truncated = Answer::events(&[api.preamble()]).data(api.calls_half()).data(api.ends());
        let outcome = ask(api, truncated).await;
        let tool = "look".to_owned();
        assert_eq!(outcome.error(), &ProviderError::TruncatedCall { tool }, "{api:?}");
        let cut = Answer::events(&[api.preamble()]).data(api.calls_half());
        assert_eq!(ask(api, cut).await.error(), &ProviderError::Cut, "{api:?}");
    }
}

#[tokio::test]
async fn an_error_in_the_middle_of_the_stream_is_typed_too() {
    for api in BOTH {
        let overloaded =
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        let outcome = ask(api, said(api).data(&[overloaded])).await;
        let detail = "Overloaded".to_owned();
        assert_eq!(outcome.text, "Hello", "{api:?}");
        assert_eq!(outcome.error(), &ProviderError::Unavailable { detail }, "{api:?}");
    }
}

#[tokio::test]
async fn an_answer_that_ended_is_whole_whatever_happens_to_the_connection() {
    for api in BOTH {
        for ended in [said(api).data(&[api.stops()]), said(api).data(&[api.stops()]).breaks()] {
            let outcome = ask(api, ended).await;
            assert_eq!(outcome.text, "Hello", "{api:?}");
            outcome.finished();
        }
    }
}

#[tokio::test]
async fn a_server_that_never_hangs_up_does_not_hold_up_the_answer() {
    for api in BOTH {
        let server = Server::start([said(api).data(&[api.stops()]).hangs()]);
        let clock = HandClock::default();
        let mut deltas = api.provider(server.url(), Arc::new(clock.clone())).complete(hello());
        let finish = async {
            loop {
                match deltas.next().await {
                    Some(Ok(Delta::Text(_))) => {}
                    Some(Ok(Delta::Finished { .. })) => break,
                    other => panic!("{api:?}: {other:?}"),
                }
            }
        };
        let tail = async {
            loop {
                clock.pass(Duration::from_secs(5));
                tokio::task::yield_now().await;
            }
        };
        tokio::select! { () = finish => {}, () = tail => {} }
    }
}

#[tokio::test]
async fn the_key_goes_where_it_belongs() {
    for api in BOTH {
        let mut server = Server::start([said(api).data(&[api.stops()])]);
        let provider = api.provider(server.url(), Arc::new(SystemClock));
        collect(provider.complete(hello())).await.finished();
        let request = server.request().await;
        let header = |name: &str| request.headers.get(name).map(|value| value.to_str().unwrap());
        match api {
            Api::OpenAi => {
                assert_eq!(request.uri.path(), "/v1/chat/completions");
                assert_eq!(header("authorization"), Some("Bearer sk-canary"));
            }
            Api::Anthropic => {
                assert_eq!(request.uri.path(), "/v1/messages");
                assert_eq!(header("x-api-key"), Some("sk-canary"));
                assert_eq!(header("anthropic-version"), Some("2023-06-01"));
                assert_eq!(header("authorization"), None);
            }
        }
        assert_eq!(header("content-type"), Some("application/json"));
        assert_eq!(header("accept-encoding"), None);
        assert!(request.body.contains(r#""model":"model""#), "{}", request.body);
        assert_eq!(provider.name(), "test/model");
    }
}
