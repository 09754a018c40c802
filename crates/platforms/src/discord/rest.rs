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
use crate::wire::http::{self, CallError, Reply};

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
    pub(crate) fn new(base: &Url, token: Secret, clock: Arc<dyn Clock>) -> Result<Self, CallError> {
        Ok(Self {
            client: http::client(base)?,
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

    /// Whether the account is told to go without encryption, as to a server on this machine.
    pub(crate) fn is_unencrypted(&self) -> bool {
        self.base.starts_with("http://")
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
