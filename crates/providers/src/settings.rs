//! What both APIs need to know to be called.

use std::collections::BTreeMap;

use reqwest::Url;
use serde::Serialize;
use serde_json::{Map, Value};
use talaria_agent::Sight;
use talaria_model::Secret;

use crate::dial::Dial;
use crate::http::{Deadlines, HeaderError};
use crate::price::Pricing;

/// Where a model is and how it is asked.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// What people call the provider; part of [`talaria_agent::Provider::name`].
    pub provider: String,
    /// The model, as the provider names it.
    pub model: String,
    /// Where the API is.
    pub base_url: String,
    /// The key, where one is needed.
    pub key: Option<Secret>,
    /// Headers sent along; they win over our own.
    pub headers: BTreeMap<String, Secret>,
    /// Fields put into every request; they win over our own, and `null` removes one.
    pub extra_body: Map<String, Value>,
    /// How long the provider may be silent.
    pub deadlines: Deadlines,
    /// How many tokens an answer may have. Anthropic needs a number and gets 8,192; others get one
    /// only when it is set.
    pub max_tokens: Option<u32>,
    /// What chat completions call that limit.
    pub limit_name: LimitName,
    /// How the model is told to think, where the API has a word for it and nobody wishes otherwise.
    pub thinking: Option<Thinking>,
    /// What the model can be told about thinking.
    pub dial: Dial,
    /// What the model costs.
    pub pricing: Pricing,
    /// Whether the model can look at pictures.
    pub sight: Sight,
    /// How many tokens the model reads at most. Where it is not known, a server that speaks chat
    /// completions is asked.
    pub context_window: Option<u64>,
    /// How many it is taken to read when the server does not say either.
    pub assumed_window: Option<u64>,
}

/// Stands where a model that does not see would refuse a picture.
pub(crate) const UNSEEN: &str = "[A picture, which you cannot see]";

/// What chat completions call the limit on an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LimitName {
    /// `max_tokens`, as nearly everybody does.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, as OpenAI itself does since its models think.
    MaxCompletionTokens,
}

/// How a model is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// As much as it finds useful.
    Adaptive,
    /// Up to that many tokens, in addition to the answer.
    Budget(u32),
}

/// Why a provider cannot be called at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The address is none.
    #[error("the address of {provider} is not a URL: {url:?}")]
    Address {
        /// Whose.
        provider: String,
        /// What was given.
        url: String,
    },
    /// A header or the key has characters that cannot be sent.
    #[error("{provider}: {source}")]
    Header {
        /// Whose.
        provider: String,
        /// Which.
        source: HeaderError,
    },
}

impl Settings {
    /// `provider/model`.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }

    /// What a request carries and nobody may see.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        self.key.iter().chain(self.headers.values()).cloned().collect()
    }

    /// The address of one of the API's calls.
    pub(crate) fn endpoint(&self, path: &str) -> Result<Url, SetupError> {
        let wrong =
            || SetupError::Address { provider: self.provider.clone(), url: self.base_url.clone() };
        let url = Url::parse(&format!("{}{path}", self.base_url.trim_end_matches('/')))
            .map_err(|_| wrong())?;
        let usable = matches!(url.scheme(), "http" | "https") && url.has_host();
        if usable { Ok(url) } else { Err(wrong()) }
    }

    /// The bytes of a request, with `extra_body` laid over it.
    pub(crate) fn body(&self, request: &impl Serialize) -> Vec<u8> {
        if self.extra_body.is_empty() {
            return serde_json::to_vec(request).expect("requests are plain data");
        }
        let mut body = serde_json::to_value(request).expect("requests are plain data");
        if let Value::Object(fields) = &mut body {
            for (name, value) in &self.extra_body {
                if value.is_null() {
                    fields.shift_remove(name);
                } else {
                    fields.insert(name.clone(), value.clone());
                }
            }
        }
        body.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_end_in_a_slash() {
        let at = |base_url: &str| {
            let settings = Settings { base_url: base_url.to_owned(), ..Settings::default() };
            settings.endpoint("/chat/completions").map(String::from)
        };
        let expect = Ok("http://localhost:1234/v1/chat/completions".to_owned());
        assert_eq!(at("http://localhost:1234/v1"), expect);
        assert_eq!(at("http://localhost:1234/v1/"), expect);
        assert!(at("localhost:1234").is_err());
        assert!(at("file:///etc/passwd").is_err());
        assert!(at("").is_err());
    }

    #[test]
    fn extra_fields_win_and_null_removes() {
        let extra_body = serde_json::json!({ "a": 2, "b": null, "z": [1] });
        let Value::Object(extra_body) = extra_body else { unreachable!() };
        let settings = Settings { extra_body, ..Settings::default() };
        let body = settings.body(&serde_json::json!({ "a": 1, "b": 1, "c": 1 }));
        assert_eq!(String::from_utf8(body).unwrap(), r#"{"a":2,"c":1,"z":[1]}"#);
    }
}
