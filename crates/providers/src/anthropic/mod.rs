//! The messages API of Anthropic, and of those who serve the same.

mod decode;
mod encode;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use reqwest::Url;
use reqwest::header::HeaderMap;
use talaria_agent::{Deltas, Prompt, Provider, Sight};
use talaria_clock::Clock;
use talaria_model::{Cost, Usage};

use crate::exchange::Exchange;
use crate::http::{Http, headers, put};
use crate::openai::used_ids;
use crate::settings::{Settings, SetupError};

/// <https://docs.claude.com/en/api/versioning>
const VERSION: &str = "2023-06-01";

/// A model behind a messages API.
pub struct Anthropic {
    settings: Settings,
    name: String,
    url: Url,
    headers: HeaderMap,
    http: Http,
    clock: Arc<dyn Clock>,
}

impl Anthropic {
    /// Gets ready; nothing is sent yet. The base URL is the one that ends before `/v1/messages`; one
    /// that already ends in `/v1` will do as well.
    pub fn new(settings: Settings, http: Http, clock: Arc<dyn Clock>) -> Result<Self, SetupError> {
        let versioned = settings.base_url.trim_end_matches('/').ends_with("/v1");
        let url = settings.endpoint(if versioned { "/messages" } else { "/v1/messages" })?;
        let unsendable =
            |source| SetupError::Header { provider: settings.provider.clone(), source };
        let mut all = HeaderMap::new();
        put(&mut all, "anthropic-version", VERSION).map_err(unsendable)?;
        if let Some(key) = &settings.key {
            put(&mut all, "x-api-key", key.expose()).map_err(unsendable)?;
        }
        all.extend(headers(&settings.headers).map_err(unsendable)?);
        Ok(Self { name: settings.name(), settings, url, headers: all, http, clock })
    }

    /// The bytes that a prompt becomes on the wire.
    pub fn request(&self, prompt: &Prompt) -> Vec<u8> {
        self.settings.body(&encode::request(prompt, &self.settings))
    }
}

impl Provider for Anthropic {
    fn complete(&self, prompt: Prompt) -> Deltas {
        let exchange = Exchange {
            http: self.http.clone(),
            clock: self.clock.clone(),
            url: self.url.clone(),
            headers: self.headers.clone(),
            body: self.request(&prompt),
            deadlines: self.settings.deadlines,
            secrets: self.settings.secrets(),
        };
        exchange.start(decode::Decoder::new(&self.settings, used_ids(&prompt)))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn sight(&self) -> Sight {
        self.settings.sight
    }

    fn context_window(&self) -> BoxFuture<'_, Option<u64>> {
        let Settings { context_window, assumed_window, .. } = self.settings;
        ready(context_window.or(assumed_window)).boxed()
    }

    fn unfinished(&self, usage: Usage) -> Cost {
        self.settings.pricing.unfinished(usage)
    }
}
