//! Chat completions, as OpenAI defined them and most others serve them.

mod decode;
mod encode;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use reqwest::Url;
use reqwest::header::HeaderMap;
use talaria_agent::{Deltas, Prompt, PromptMessage, Provider, Sight};
use talaria_clock::Clock;
use talaria_model::{Cost, Usage};

use crate::exchange::Exchange;
use crate::http::{Http, headers, put};
use crate::settings::{Settings, SetupError};
use crate::window::{self, Measured};

/// A model behind a chat completions API.
pub struct OpenAi {
    settings: Settings,
    name: String,
    url: Url,
    headers: HeaderMap,
    http: Http,
    clock: Arc<dyn Clock>,
    measured: Measured,
}

impl OpenAi {
    /// Gets ready; nothing is sent yet. The base URL is the one that ends before
    /// `/chat/completions`, usually in `/v1`.
    pub fn new(settings: Settings, http: Http, clock: Arc<dyn Clock>) -> Result<Self, SetupError> {
        let url = settings.endpoint("/chat/completions")?;
        let unsendable =
            |source| SetupError::Header { provider: settings.provider.clone(), source };
        let mut all = HeaderMap::new();
        if let Some(key) = &settings.key {
            put(&mut all, "authorization", &format!("Bearer {}", key.expose()))
                .map_err(unsendable)?;
        }
        all.extend(headers(&settings.headers).map_err(unsendable)?);
        Ok(Self {
            name: settings.name(),
            settings,
            url,
            headers: all,
            http,
            clock,
            measured: Measured::default(),
        })
    }

    /// The bytes that a prompt becomes on the wire.
    pub fn request(&self, prompt: &Prompt) -> Vec<u8> {
        self.settings.body(&encode::request(prompt, &self.settings))
    }
}

impl Provider for OpenAi {
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
        if let Some(window) = self.settings.context_window {
            return ready(Some(window)).boxed();
        }
        let Settings { provider, base_url, model, assumed_window, .. } = &self.settings;
        let ask = window::ask(&self.http, &*self.clock, provider, base_url, model, &self.headers);
        let measured = self.measured.get(self.clock.now(), ask);
        measured.map(|window| window.or(*assumed_window)).boxed()
    }

    fn unfinished(&self, usage: Usage) -> Cost {
        self.settings.pricing.unfinished(usage)
    }
}

/// The call ids that a conversation has used.
pub(crate) fn used_ids(prompt: &Prompt) -> BTreeSet<String> {
    prompt
        .messages
        .iter()
        .filter_map(|message| match message {
            PromptMessage::Assistant { calls, .. } => Some(calls),
            _ => None,
        })
        .flatten()
        .map(|call| call.id.as_str().to_owned())
        .collect()
}
