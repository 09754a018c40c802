//! Calls of the Web API: one request, one answer, and a name for everything that can go wrong.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use talaria_model::{Proxy, Secret};
use talaria_platform::SettingsError;

use crate::wire::http::{self, CallError, Http, Reply};

/// How long one call may take.
const LIMIT: Duration = Duration::from_secs(20);

/// How long we wait when Slack asks us to wait and does not say how long.
const USUAL_WAIT: Duration = Duration::from_secs(30);

/// Where the methods are.
#[derive(Debug, Clone)]
pub(super) struct Api {
    base: Url,
    pub(super) http: Http,
}

/// What a method is told. Some methods only read forms.
#[derive(Debug, Clone)]
pub(super) enum Body {
    Json(Value),
    Form(Vec<(&'static str, String)>),
}

/// Why a method did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ApiError {
    /// There was no answer.
    Call(CallError),
    /// Slack asks us to wait.
    Throttled(Duration),
    /// Slack answered, but not with the outcome: it may or may not have happened.
    Outage(String),
    /// Slack said no.
    Refused(Refusal),
}

/// Slack's no.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Refusal {
    /// Slack's word for it, such as `channel_not_found`.
    #[serde(rename = "error")]
    pub(super) code: String,
    /// The permission that is missing.
    pub(super) needed: Option<String>,
    #[serde(rename = "response_metadata")]
    hints: Hints,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Hints {
    messages: Vec<String>,
}

impl Refusal {
    pub(super) fn of(code: impl Into<String>) -> Self {
        Self { code: code.into(), ..Self::default() }
    }

    /// In Slack's words, with what helps.
    pub(super) fn reason(&self) -> String {
        let mut reason = self.code.clone();
        if let Some(needed) = &self.needed {
            reason.push_str(&format!(" (needs the scope {needed})"));
        }
        // Points at the offending block. It is not cut here: a secret that it repeats would be known to nobody
        // by its first half.
        if let Some(message) = self.hints.messages.first() {
            reason.push_str(&format!(": {message}"));
        }
        reason
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::Throttled(after) => write!(f, "asked to wait {} s", after.as_secs()),
            Self::Outage(what) => f.write_str(what),
            Self::Refused(refusal) => f.write_str(&refusal.reason()),
        }
    }
}

impl From<CallError> for ApiError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl Api {
    pub(super) fn at(base: &str, proxy: Proxy) -> Result<Self, SettingsError> {
        let unusable = || {
            let hint = "leave it out, or write one such as https://slack.com/api/";
            SettingsError::unusable("base_url", "is not an http or https address", hint)
        };
        let slash = if base.ends_with('/') { "" } else { "/" };
        let base = Url::parse(&format!("{base}{slash}")).map_err(|_| unusable())?;
        match base.scheme() {
            "http" | "https" => Ok(Self { base, http: Http::by(proxy) }),
            _ => Err(unusable()),
        }
    }

    /// Calls a method with a token.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        token: &Secret,
        body: Body,
    ) -> Result<T, ApiError> {
        let (_, answer) = self.call_with_headers(method, token, body).await?;
        serde_json::from_slice(&answer).map_err(|_| {
            ApiError::Outage(format!("{method} answered something else than expected"))
        })
    }

    /// The same with the headers and the bytes of the answer, which is known to say `ok`.
    pub(super) async fn call_with_headers(
        &self,
        method: &str,
        token: &Secret,
        body: Body,
    ) -> Result<(HeaderMap, Vec<u8>), ApiError> {
        let url = self.base.join(method).map_err(|error| {
            ApiError::Call(CallError::Unreachable(format!("{method} is no address: {error}")))
        })?;
        let request = self.http.client(&url)?.post(url).bearer_auth(token.expose());
        let request = match body {
            Body::Json(json) => request
                .header("content-type", "application/json; charset=utf-8")
                .body(json.to_string()),
            Body::Form(fields) => request.form(&fields),
        };
        let reply = http::call(request, LIMIT).await?;
        accepted(&reply)?;
        Ok((reply.headers, reply.body))
    }

    /// Whether a token may be sent to this address: it is where the methods are, or where Slack keeps
    /// its files.
    pub(super) fn takes_token(&self, url: &Url) -> bool {
        let keeps_files = matches!(url.host_str(), Some("files.slack.com" | "files.slack-gov.com"));
        self.is_ours(url) || (url.scheme() == "https" && keeps_files)
    }

    /// Where it is asked.
    pub(super) fn address(&self) -> &Url {
        &self.base
    }

    /// Whether this is an address of Slack, to which something without a token may be sent.
    pub(super) fn is_slack(&self, url: &Url) -> bool {
        let is_slack = url
            .host_str()
            .is_some_and(|host| host.ends_with(".slack.com") || host.ends_with(".slack-gov.com"));
        self.is_ours(url) || (url.scheme() == "https" && is_slack)
    }

    /// Whether this is an address that Slack may name to connect to. Whoever knows it hears everything, so
    /// Slack itself names no server but its own; what stands in its place, as in tests, is believed, and
    /// where it is not reached by an encrypted address, neither need this one be.
    pub(super) fn may_name(&self, url: &Url) -> bool {
        let is_slack =
            |host: &str| [".slack.com", ".slack-gov.com"].iter().any(|slack| host.ends_with(slack));
        let stands_in = !matches!(self.base.host_str(), Some("slack.com" | "slack-gov.com"));
        let is_encrypted = url.scheme() == "wss";
        let may_be_open = self.base.scheme() == "http" && url.scheme() == "ws";
        (is_encrypted || may_be_open) && (stands_in || url.host_str().is_some_and(is_slack))
    }

    fn is_ours(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }
}

/// Methods answer 200 whatever they say, except when they ask us to wait or are broken.
fn accepted(reply: &Reply) -> Result<(), ApiError> {
    #[derive(Deserialize)]
    struct Outcome {
        ok: bool,
    }
    if reply.status == StatusCode::TOO_MANY_REQUESTS {
        return Err(ApiError::Throttled(reply.retry_after().unwrap_or(USUAL_WAIT)));
    }
    if reply.status.is_redirection() || reply.status.is_client_error() {
        return Err(ApiError::Refused(Refusal::of(format!("HTTP {}", reply.status.as_u16()))));
    }
    if !reply.status.is_success() {
        return Err(ApiError::Outage(format!("HTTP {}", reply.status.as_u16())));
    }
    match reply.json::<Outcome>() {
        Ok(Outcome { ok: true }) => Ok(()),
        Ok(Outcome { ok: false }) => {
            let refusal: Refusal = reply.json().unwrap_or_default();
            Err(match refusal.code.as_str() {
                "ratelimited" | "rate_limited" => {
                    ApiError::Throttled(reply.retry_after().unwrap_or(USUAL_WAIT))
                }
                _ => ApiError::Refused(refusal),
            })
        }
        Err(_) => Err(ApiError::Outage("the answer is not JSON".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slack_says_is_told_whole() {
        let hint = format!("[ERROR] {}", "x".repeat(300));
        let hints = Hints { messages: vec![hint.clone(), "and more".into()] };
        let needed = Some("chat:write".to_owned());
        let refusal = Refusal { hints, needed, ..Refusal::of("missing_scope") };
        for (error, told) in [
            (
                ApiError::Refused(refusal),
                format!("missing_scope (needs the scope chat:write): {hint}"),
            ),
            (ApiError::Throttled(Duration::from_secs(3)), "asked to wait 3 s".into()),
            (ApiError::Outage("HTTP 503".into()), "HTTP 503".into()),
        ] {
            assert_eq!(error.to_string(), told);
        }
    }

    #[test]
    fn a_token_goes_to_slack_and_nowhere_else() {
        let api = Api::at("https://slack.com/api", Proxy::None).unwrap();
        let url = |text: &str| Url::parse(text).unwrap();
        for (address, takes_token, is_slack) in [
            ("https://files.slack.com/files-pri/T1-F1/a.png", true, true),
            ("https://slack.com/files/a.png", true, true),
            ("https://hooks.slack.com/actions/T1/1/x", false, true),
            ("http://files.slack.com/a.png", false, false),
            ("https://files.slack.com.example.org/a.png", false, false),
            ("https://evilslack.com/a.png", false, false),
            ("https://example.org/files.slack.com", false, false),
            ("https://files.slack.com@example.org/", false, false),
        ] {
            assert_eq!(api.takes_token(&url(address)), takes_token, "{address}");
            assert_eq!(api.is_slack(&url(address)), is_slack, "{address}");
        }
        let local = Api::at("http://127.0.0.1:9", Proxy::None).unwrap();
        assert!(local.takes_token(&url("http://127.0.0.1:9/files/x")));
        assert!(!local.takes_token(&url("http://127.0.0.1:10/files/x")));
    }

    #[test]
    fn slack_names_no_server_to_connect_to_but_its_own() {
        let may = |base: &str, url: &str| {
            Api::at(base, Proxy::None).unwrap().may_name(&Url::parse(url).unwrap())
        };
        for (url, expect) in [
            ("wss://wss-primary.slack.com/link/?ticket=1&app_id=2", true),
            ("wss://wss-primary.slack-gov.com/link/?ticket=1", true),
            ("ws://wss-primary.slack.com/link/?ticket=1", false),
            ("https://wss-primary.slack.com/link/?ticket=1", false),
            ("wss://wss-primary.slack.com.example.org/link", false),
            ("wss://wss-primary.slack.com@example.org/link", false),
            ("wss://evilslack.com/link", false),
            ("wss://169.254.169.254/link", false),
            ("wss://localhost/link", false),
        ] {
            assert_eq!(may("https://slack.com/api/", url), expect, "{url}");
            assert_eq!(may("https://slack-gov.com/api/", url), expect, "{url}");
        }
        // What the operator put in the place of Slack may be anywhere.
        assert!(may("https://slack.example.org/api/", "wss://sockets.example.org/"));
        assert!(!may("https://slack.example.org/api/", "ws://sockets.example.org/"));
        assert!(may("http://127.0.0.1:9/", "ws://127.0.0.1:10/"));
    }

    #[test]
    fn an_address_that_is_none_is_refused() {
        for base in ["", "slack.com", "ftp://slack.com", "file:///etc"] {
            assert!(Api::at(base, Proxy::None).is_err(), "{base:?}");
        }
    }
}
