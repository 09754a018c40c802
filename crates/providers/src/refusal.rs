//! What a provider said instead of an answer, and what that means for the caller.
//!
//! Providers agree neither on the shape of an error nor on its words. This is the one place that
//! knows them; it decides for every status and every text, and never fails itself.

use std::time::Duration;

use serde_json::Value;
use talaria_agent::ProviderError;

/// How much of a provider's own words is passed on.
const LONGEST_DETAIL: usize = 300;

/// A prompt that is too long, in the words of OpenAI and OpenRouter, Anthropic, Gemini, xAI, Groq and
/// Cerebras, llama.cpp, LM Studio, Moonshot, MiniMax, Z.AI, and Amazon.
const TOO_LONG: [&str; 17] = [
    "context_length_exceeded",
    "context length exceeded",
    "maximum context length",
    "exceeds the context window",
    "prompt is too long",
    "exceed context limit",
    "exceeds the maximum number of tokens",
    "maximum prompt length",
    "reduce the length of the messages",
    "exceed_context_size_error",
    "exceeds the available context size",
    "greater than the context length",
    "exceeded model token limit",
    "context window exceeds limit",
    "prompt exceeds max length",
    "input is too long",
    "request too large",
];

/// An account without money, in the words of Anthropic, DeepSeek and Z.AI, and OpenRouter.
const NO_CREDIT: [&str; 4] = [
    "credit balance is too low",
    "insufficient balance",
    "insufficient credits",
    "billing_not_active",
];

/// What an error response means for the caller. Every status and every body has an answer.
pub fn understand(status: u16, body: &[u8]) -> ProviderError {
    Refusal::read(status, body).error()
}

/// An error as a provider sent it.
#[derive(Debug, Default)]
pub(crate) struct Refusal {
    /// The HTTP status, or the one that the error itself names.
    pub(crate) status: Option<u16>,
    /// `type` and `code`, in lower case.
    kinds: Vec<String>,
    /// In the provider's words.
    message: String,
    /// When to come back.
    pub(crate) after: Option<Duration>,
}

impl Refusal {
    /// Reads the body of an error, whatever it is.
    pub(crate) fn read(status: u16, body: &[u8]) -> Self {
        let mut refusal = match serde_json::from_slice(body) {
            Ok(value) => Self::of(&value),
            Err(_) => Self { message: spoken(body), ..Self::default() },
        };
        refusal.status = Some(status);
        refusal
    }

    /// Reads an error object: the value of `error`, or what surrounds it.
    pub(crate) fn of(value: &Value) -> Self {
        let value = match value {
            // Gemini wraps the error into a list.
            Value::Array(values) => values.first().unwrap_or(&Value::Null),
            other => other,
        };
        let error = value.get("error").unwrap_or(value);
        let mut refusal = Self::default();
        for field in ["type", "code", "status"] {
            match error.get(field) {
                Some(Value::String(kind)) => refusal.kinds.push(kind.to_ascii_lowercase()),
                Some(Value::Number(number)) => {
                    let status = number.as_u64().and_then(|number| u16::try_from(number).ok());
                    refusal.status = status.filter(|status| (400..600).contains(status));
                }
                _ => {}
            }
        }
        refusal.message =
            [Some(error), error.get("message"), error.get("detail"), error.get("error")]
                .into_iter()
                .flatten()
                .find_map(Value::as_str)
                .map_or_else(|| error.to_string(), str::to_owned);
        refusal
    }

    /// What the caller must do. Every refusal has an answer.
    pub(crate) fn error(self) -> ProviderError {
        let words = self.message.to_ascii_lowercase();
        let is = |kinds: &[&str]| self.kinds.iter().any(|kind| kinds.contains(&kind.as_str()));
        let says =
            |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase)) || is(phrases);
        let status = self.status;
        let detail = self.detail();
        if status == Some(413) || is(&["request_too_large"]) || says(&TOO_LONG) {
            ProviderError::TooLong
        } else if status == Some(402)
            || is(&["insufficient_quota", "billing_error"])
            || says(&NO_CREDIT)
        {
            ProviderError::NoCredit { detail }
        } else if matches!(status, Some(401 | 403))
            || is(&["authentication_error", "permission_error", "invalid_api_key"])
            || words.contains("api key not valid")
        {
            ProviderError::Unauthorized { detail }
        } else if status == Some(429)
            || is(&["rate_limit_error", "rate_limit_exceeded", "resource_exhausted"])
        {
            ProviderError::RateLimited { after: self.after }
        } else if matches!(status, None | Some(408 | 409 | 425 | 500..))
            && !is(&["invalid_request_error", "not_found_error"])
            || is(&["overloaded_error", "api_error", "server_error", "timeout_error"])
        {
            ProviderError::Unavailable { detail }
        } else {
            ProviderError::Rejected { detail }
        }
    }

    fn detail(&self) -> String {
        let words = plain(&self.message);
        match self.status {
            Some(status) if words.is_empty() => format!("HTTP {status}"),
            Some(status) => format!("HTTP {status}: {words}"),
            None => words,
        }
    }
}

/// Text for a person to read: one line, not too long, nothing that moves a cursor. What it repeats of our
/// secrets is taken out by others, who know a secret only as a whole: it is not cut in a word.
pub(crate) fn plain(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > LONGEST_DETAIL {
            line.truncate(end_of_word(&line, LONGEST_DETAIL));
            line.push('…');
            break;
        }
    }
    line
}

/// The last place, at most here, at which a line can be cut without leaving the beginning of what may be a key.
fn end_of_word(line: &str, most: usize) -> usize {
    let of_a_key = |c: char| c.is_ascii_graphic() && !"\"'`,;(){}[]<>".contains(c);
    let (kept, left_out) = line.split_at(line.floor_char_boundary(most));
    match left_out.starts_with(of_a_key) {
        true => kept.trim_end_matches(of_a_key).trim_end().len(),
        false => kept.len(),
    }
}

/// The words of a body that is not JSON; a web page has none.
fn spoken(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    if text.trim_start().starts_with('<') { String::new() } else { text.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(status: u16, body: &str, expect: &str) {
        let error = Refusal::read(status, body.as_bytes()).error();
        let kind = format!("{error:?}");
        assert_eq!(kind.split([' ', '{']).next(), Some(expect), "{status} {body}: {error:?}");
    }

    #[test]
    fn every_refusal_says_what_to_do() {
        check(
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            "TooLong",
        );
        check(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#,
            "TooLong",
        );
        check(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length"}}"#,
            "TooLong",
        );
        check(
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}"#,
            "TooLong",
        );
        check(
            400,
            r#"[{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]"#,
            "TooLong",
        );
        check(
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}"#,
            "TooLong",
        );
        check(
            400,
            r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}"#,
            "TooLong",
        );
        check(413, "Request Entity Too Large", "TooLong");
        check(
            429,
            r#"{"error":{"message":"Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 60000.","type":"tokens","code":"rate_limit_exceeded"}}"#,
            "TooLong",
        );

        check(
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            "NoCredit",
        );
        check(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
            "NoCredit",
        );
        check(
            402,
            r#"{"error":{"message":"Insufficient Balance","type":"unknown_error"}}"#,
            "NoCredit",
        );
        check(402, "", "NoCredit");

        check(
            401,
            r#"{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            "Unauthorized",
        );
        check(
            403,
            r#"{"type":"error","error":{"type":"permission_error","message":"no"}}"#,
            "Unauthorized",
        );
        check(
            400,
            r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
            "Unauthorized",
        );

        check(
            429,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit"}}"#,
            "RateLimited",
        );
        check(
            429,
            r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED"}}]"#,
            "RateLimited",
        );
        check(429, "slow down", "RateLimited");

        check(
            500,
            r#"{"error":{"message":"The server had an error","type":"server_error"}}"#,
            "Unavailable",
        );
        check(502, "<html><body>Bad Gateway</body></html>", "Unavailable");
        check(
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "Unavailable",
        );
        check(408, "", "Unavailable");

        check(
            404,
            r#"{"error":{"message":"The model `gpt-0` does not exist","type":"invalid_request_error","code":"model_not_found"}}"#,
            "Rejected",
        );
        check(404, r#"{"error":"model \"nope\" not found, try pulling it first"}"#, "Rejected");
        check(
            422,
            r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden"}]},"type":"invalid_request_error","code":null}"#,
            "Rejected",
        );
        check(400, r#"{"detail":"bad"}"#, "Rejected");
        check(302, "", "Rejected");
    }

    #[test]
    fn an_error_in_the_middle_of_a_stream_has_its_own_status() {
        let of = |json: &str| Refusal::of(&serde_json::from_str(json).unwrap()).error();
        let overloaded =
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        assert_eq!(of(overloaded), ProviderError::Unavailable { detail: "Overloaded".to_owned() });
        let upstream = r#"{"error":{"code":502,"message":"Provider disconnected"}}"#;
        let detail = "HTTP 502: Provider disconnected".to_owned();
        assert_eq!(of(upstream), ProviderError::Unavailable { detail });
        assert_eq!(
            of(r#"{"error":{"code":"rate_limit_exceeded","message":"slow"}}"#),
            ProviderError::RateLimited { after: None }
        );
        assert!(matches!(of("{}"), ProviderError::Unavailable { .. }));
    }

    #[test]
    fn a_key_is_shown_whole_or_not_at_all_so_that_whoever_takes_it_out_knows_it() {
        let key = "sk-canary+5d41/402a.bc4b=";
        for (before, after) in [(" ", " is wrong"), ("\"", "\"}"), ("（", "）"), (" ", "")] {
            for length in 250..310 {
                let text =
                    format!("{}{before}{key}{after} {}", "x ".repeat(length / 2), "y ".repeat(40));
                let line = plain(&text);
                assert!(line.contains(key) || !line.contains("sk-c"), "{length}: {line}");
                assert!(line.ends_with('…') && line.len() > 250, "{length}: {line}");
            }
        }
        assert_eq!(plain(&"x".repeat(5000)), "…", "all of it may be one");
    }

    #[test]
    fn the_words_are_one_short_line() {
        assert_eq!(plain("a\n\tb\u{1b}[31m  c"), "a b [31m c");
        assert!(plain(&"word ".repeat(500)).len() < LONGEST_DETAIL + 10);
        assert!(plain(&"é".repeat(5000)).len() < LONGEST_DETAIL + 10);
    }

    proptest! {
        #[test]
        fn any_status_and_any_body_has_an_answer(
            status in any::<u16>(),
            body in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            Refusal::read(status, &body).error();
        }

        #[test]
        fn any_json_has_an_answer(status in any::<u16>(), field in "[a-z]{0,6}", text in ".{0,40}") {
            let body = serde_json::json!({ "error": { "type": text, "code": status, field: [text] } });
            Refusal::read(status, body.to_string().as_bytes()).error();
            Refusal::of(&body).error();
        }
    }
}
