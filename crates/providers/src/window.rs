//! How much a model reads, as its server says.
//!
//! Servers on one's own machine decide that when they load a model, and some cut a longer prompt
//! without a word; so they are asked. What was trained is no answer: what was loaded counts.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::future::{Either, select};
use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use talaria_clock::Clock;
use talaria_model::Timestamp;

use crate::http::Http;

/// How long a server on this machine may take; one elsewhere may take ten times as long.
const LIMIT: Duration = Duration::from_millis(300);

/// The most that is read of an answer: hosted providers list hundreds of models.
const LARGEST: usize = 4 * 1024 * 1024;

/// What a server is taken to load when it says no number for a model that could read more.
const CAUTIOUS: u64 = 32_768;

/// The least that can be true.
const LEAST: u64 = 512;

/// How sure a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The server says that this is what it reads.
    Certain(u64),
    /// The model is not loaded yet, and this is a careful guess.
    Guessed(u64),
}

impl Window {
    /// The number.
    pub const fn tokens(self) -> u64 {
        match self {
            Self::Certain(tokens) | Self::Guessed(tokens) => tokens,
        }
    }
}

/// Asks the server at `base_url` how much `model` reads. `provider` is its name in the catalog.
pub(crate) async fn ask(
    http: &Http,
    clock: &dyn Clock,
    provider: &str,
    base_url: &str,
    model: &str,
    headers: &HeaderMap,
) -> Option<Window> {
    let base = base_url.trim_end_matches('/');
    let root = base.strip_suffix("/v1").unwrap_or(base);
    let asking = Asking { http, headers, model };
    let answer = async {
        match provider {
            "ollama" => asking.ollama(root).await,
            "lmstudio" => asking.lmstudio(root).await,
            "llamacpp" => asking.llamacpp(root).await,
            _ => asking.listed(base).await,
        }
    };
    let limit = if is_here(base) { LIMIT } else { LIMIT * 10 };
    match select(Box::pin(answer), clock.sleep(limit)).await {
        Either::Left((window, _)) => window.filter(|window| window.tokens() >= LEAST),
        Either::Right(_) => None,
    }
}

fn is_here(base: &str) -> bool {
    Url::parse(base)
        .is_ok_and(|url| matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]")))
}

struct Asking<'a> {
    http: &'a Http,
    headers: &'a HeaderMap,
    model: &'a str,
}

#[derive(Deserialize)]
struct List<T> {
    data: Vec<T>,
}

impl Asking<'_> {
    async fn get<T: DeserializeOwned>(&self, url: String) -> Option<T> {
        let url = Url::parse(&url).ok()?;
        self.read(self.http.client(&url).ok()?.get(url)).await
    }

    async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Option<T> {
        let response = request.headers(self.headers.clone()).send().await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream().boxed();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.ok()?);
            if body.len() > LARGEST {
                return None;
            }
        }
        serde_json::from_slice(&body).ok()
    }

    /// What is loaded; else what the model's own file asks for; else a guess, because then the
    /// machine's memory decides.
    async fn ollama(&self, root: &str) -> Option<Window> {
        #[derive(Deserialize)]
        struct Loaded {
            models: Vec<Running>,
        }
        #[derive(Deserialize)]
        struct Running {
            name: String,
            #[serde(default)]
            context_length: Option<u64>,
        }
        #[derive(Deserialize)]
        struct Shown {
            #[serde(default)]
            parameters: String,
            #[serde(default)]
            model_info: Map<String, Value>,
        }
        let is_ours =
            |name: &str| name == self.model || name.strip_suffix(":latest") == Some(self.model);
        if let Some(loaded) = self.get::<Loaded>(format!("{root}/api/ps")).await
            && let Some(running) = loaded.models.iter().find(|running| is_ours(&running.name))
            && let Some(tokens) = running.context_length
        {
            return Some(Window::Certain(tokens));
        }
        let url = Url::parse(&format!("{root}/api/show")).ok()?;
        let request = self.http.client(&url).ok()?.post(url).json(&json!({ "model": self.model }));
        let shown: Shown = self.read(request).await?;
        let asked_for = shown
            .parameters
            .lines()
            .find_map(|line| line.trim().strip_prefix("num_ctx")?.trim().parse().ok());
        let trained = || {
            let lengths =
                shown.model_info.iter().filter(|(name, _)| name.ends_with(".context_length"));
            lengths.filter_map(|(_, value)| value.as_u64()).max()
        };
        asked_for
            .map(Window::Certain)
            .or_else(|| trained().map(|tokens| Window::Guessed(tokens.min(CAUTIOUS))))
    }

    async fn lmstudio(&self, root: &str) -> Option<Window> {
        #[derive(Deserialize)]
        struct Model {
            id: String,
            loaded_context_length: Option<u64>,
            max_context_length: Option<u64>,
        }
        let list: List<Model> = self.get(format!("{root}/api/v0/models")).await?;
        let model = list.data.into_iter().find(|model| model.id == self.model)?;
        let guess = |tokens: u64| Window::Guessed(tokens.min(CAUTIOUS));
        model.loaded_context_length.map(Window::Certain).or(model.max_context_length.map(guess))
    }

    async fn llamacpp(&self, root: &str) -> Option<Window> {
        #[derive(Deserialize)]
        struct Props {
            default_generation_settings: Generation,
        }
        #[derive(Deserialize)]
        struct Generation {
            n_ctx: u64,
        }
        let props: Props = self.get(format!("{root}/props")).await?;
        Some(Window::Certain(props.default_generation_settings.n_ctx))
    }

    /// The list of models, where many servers say it, each in its own word.
    async fn listed(&self, base: &str) -> Option<Window> {
        const WORDS: [&str; 5] = [
            "loaded_context_length",
            "context_length",
            "context_window",
            "max_model_len",
            "max_context_length",
        ];
        let list: List<Value> = self.get(format!("{base}/models")).await?;
        let ours = list.data.iter().find(|model| model["id"] == self.model)?;
        WORDS.iter().find_map(|word| ours[word].as_u64()).map(Window::Certain)
    }
}

/// What a server said, for as long as it may be taken to hold.
#[derive(Default)]
pub(crate) struct Measured {
    last: Mutex<Option<(Timestamp, Option<Window>)>>,
}

/// Servers on one's own machine are started anew with other settings.
const HOLDS: Duration = Duration::from_secs(600);

/// Who did not answer is not asked again at once.
const PATIENCE: Duration = Duration::from_secs(300);

impl Measured {
    /// What was said before, or what `ask` says.
    pub(crate) async fn get(
        &self,
        now: Timestamp,
        ask: impl Future<Output = Option<Window>>,
    ) -> Option<u64> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let held = last.filter(|(at, window)| {
            let age = now.since(*at);
            match window {
                Some(Window::Certain(_)) => age < HOLDS,
                Some(Window::Guessed(_)) => false,
                None => age < PATIENCE,
            }
        });
        let window = match held {
            Some((_, window)) => window,
            None => {
                let window = ask.await;
                *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, window));
                window
            }
        };
        window.map(Window::tokens)
    }
}
