//! Requests to Discord's REST interface.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::multipart::Form;
use reqwest::{Client, Method, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;
use talaria_clock::Clock;
use talaria_model::Secret;
use tokio::sync::Semaphore;

use super::limits::{Limits, Route};
use super::refusal::{RestError, read};
use super::snowflake::Snowflake;
use crate::wire::http::{self, CallError, Http, Reply};

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// How long an upload may take.
const UPLOAD: Duration = Duration::from_secs(60);

/// How many things are looked up at once for messages on their way in.
const LOOKUPS: usize = 16;

/// Discord turns away programs that do not introduce themselves in this form.
const AGENT: &str = concat!(
    "DiscordBot (https://github.com/talaria-gateway/talaria, ",
    env!("CARGO_PKG_VERSION"),
    ")"
);

/// Asks Discord.
pub(crate) struct Rest {
    /// The way to Discord, for its gateway, too.
    pub(crate) http: Http,
    client: Client,
    base: String,
    token: Secret,
    clock: Arc<dyn Clock>,
    limits: Mutex<Limits>,
    pub(crate) lookups: Semaphore,
}

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Credentials {
    /// The bot.
    Token,
    /// Whoever knows the path.
    Path,
}

/// What is asked with.
enum Body {
    Nothing,
    Json(Value),
    Form(Form),
}

impl Rest {
    pub(crate) fn new(
        base: &Url,
        token: Secret,
        http: Http,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, CallError> {
        Ok(Self {
            client: http.client(base)?,
            http,
            base: base.as_str().trim_end_matches('/').to_owned(),
            token,
            clock,
            limits: Mutex::default(),
            lookups: Semaphore::new(LOOKUPS),
        })
    }

    /// The token, for the one frame that carries it.
    pub(crate) fn token(&self) -> &Secret {
        &self.token
    }

    /// Whether this is an address that Discord may name for its gateway.
    pub(crate) fn may_name(&self, url: &Url) -> bool {
        Url::parse(&self.base).is_ok_and(|base| may_name(&base, url))
    }

    /// Looks something up; many at once wait for each other, so that there is room for what is said.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, RestError> {
        loop {
            let wait = self.limits().look_up(self.clock.now());
            let Some(wait) = wait else { break };
            self.clock.sleep(wait).await;
        }
        let reply = self.call(Method::GET, path, Body::Nothing, Credentials::Token).await?;
        reply.json().map_err(|_| RestError::senseless())
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Result<Reply, RestError> {
        self.call(Method::POST, path, Body::Json(body), Credentials::Token).await
    }

    /// Posts without a body.
    pub(crate) async fn signal(&self, path: &str) -> Result<Reply, RestError> {
        self.call(Method::POST, path, Body::Nothing, Credentials::Token).await
    }

    pub(crate) async fn upload(&self, path: &str, form: Form) -> Result<Reply, RestError> {
        self.call(Method::POST, path, Body::Form(form), Credentials::Token).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Result<Reply, RestError> {
        self.call(Method::PATCH, path, Body::Json(body), Credentials::Token).await
    }

    pub(crate) async fn put(&self, path: &str, body: Option<Value>) -> Result<Reply, RestError> {
        let body = body.map_or(Body::Nothing, Body::Json);
        self.call(Method::PUT, path, body, Credentials::Token).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Reply, RestError> {
        self.call(Method::DELETE, path, Body::Nothing, Credentials::Token).await
    }

    /// Answers an interaction. Its token is the right to do so, and it counts against no limit.
    pub(crate) async fn answer(
        &self,
        interaction: Snowflake,
        token: &str,
        answer: Value,
    ) -> Result<Reply, RestError> {
        let path = format!("/interactions/{interaction}/{token}/callback");
        self.call(Method::POST, &path, Body::Json(answer), Credentials::Path).await
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Body,
        credentials: Credentials,
    ) -> Result<Reply, RestError> {
        let route = Route::of(method.as_str(), path);
        if credentials == Credentials::Token
            && let Some(after) = self.limits().wait(&route, self.clock.now())
        {
            return Err(RestError::Throttled { after, everything: false });
        }
        let mut request =
            self.client.request(method, format!("{}{path}", self.base)).header("user-agent", AGENT);
        if credentials == Credentials::Token {
            request = request.header("authorization", format!("Bot {}", self.token.expose()));
        }
        let (request, limit) = match body {
            Body::Nothing => (request, ANSWER),
            Body::Json(body) => (request.json(&body), ANSWER),
            Body::Form(form) => (request.multipart(form), UPLOAD),
        };
        let reply = http::call(request, limit).await?;
        let now = self.clock.now();
        self.limits().learn(&route, &reply.headers, now);
        let answer = read(reply);
        if let Err(error) = &answer {
            self.limits().refused(&route, error, now);
        }
        answer
    }

    fn limits(&self) -> std::sync::MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether what is at an address may name another one for its gateway, to which the token goes. Discord names
/// no server but its own; what stands in its place, as in tests, is believed, and where it is not reached by an
/// encrypted address, neither need its gateway be.
fn may_name(base: &Url, url: &Url) -> bool {
    let is_discord = |host: &str| host.ends_with(".discord.gg");
    let stands_in = !base.host_str().is_some_and(|host| {
        ["discord.com", "discordapp.com"].iter().any(|discord| {
            host.strip_suffix(discord).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    });
    let may_be_open = base.scheme() == "http" && url.scheme() == "ws";
    let is_encrypted = url.scheme() == "wss";
    (is_encrypted || may_be_open) && (stands_in || url.host_str().is_some_and(is_discord))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discord_names_no_gateway_but_its_own() {
        let may =
            |base: &str, url: &str| may_name(&Url::parse(base).unwrap(), &Url::parse(url).unwrap());
        for (url, expect) in [
            ("wss://gateway.discord.gg", true),
            ("wss://gateway-us-east1-c.discord.gg", true),
            ("ws://gateway.discord.gg", false),
            ("https://gateway.discord.gg", false),
            ("wss://gateway.discord.gg.example.org", false),
            ("wss://gateway.discord.gg@example.org", false),
            ("wss://evildiscord.gg", false),
            ("wss://169.254.169.254", false),
            ("wss://localhost", false),
        ] {
            for base in ["https://discord.com/api/v10", "https://canary.discord.com/api/v10"] {
                assert_eq!(may(base, url), expect, "{base} {url}");
            }
        }
        // What the operator put in the place of Discord may be anywhere.
        assert!(may("https://discord.example.org/api", "wss://gateway.example.org"));
        assert!(may("https://notdiscord.com/api", "wss://gateway.example.org"));
        assert!(!may("https://discord.example.org/api", "ws://gateway.example.org"));
        assert!(may("http://127.0.0.1:9", "ws://127.0.0.1:10"));
    }
}
