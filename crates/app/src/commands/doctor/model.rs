//! The model that answers: whether there is one, and whether its server can be reached.

use std::sync::Arc;
use std::time::Duration;

use talaria_clock::{Clock, SystemClock};
use talaria_providers::{Chosen, Http, Wire};
use url::Url;

use super::{Finding, Patient};
use crate::model;

/// How long a server may take to say anything.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn look(patient: &Patient<'_>) -> Vec<Finding> {
    let Some(loaded) = patient.loaded else { return Vec::new() };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let http = Http::by(loaded.config().network.proxy.clone());
    let chain = match model::choice(loaded, &http, &clock).await {
        Ok(choice) => choice.chain,
        Err(finding) => return vec![Finding::problem("model", finding)],
    };
    let mut findings = vec![match chain.first.wire {
        Wire::Demo => Finding::warning("model", "only the built-in demo answers").hint(
            "set `model`, or the API key of a provider; `talaria model` shows what is chosen",
        ),
        Wire::OpenAi | Wire::Anthropic => Finding::good(
            "model",
            format_args!("{}, because {}", model::name(&chain), model::why(&chain, loaded)),
        ),
    }];
    let servers = std::iter::once(&chain.first).chain(&chain.then);
    let tried = futures::future::join_all(servers.map(|chosen| reach(chosen, &http))).await;
    findings.extend(tried.into_iter().flatten());
    findings
}

/// Whether a server answers anything at all. Whether it takes the key, only a question would show.
async fn reach(chosen: &Chosen, http: &Http) -> Option<Finding> {
    if chosen.wire == Wire::Demo {
        return None;
    }
    let provider = &chosen.settings.provider;
    let tried = async {
        let url: Url =
            chosen.settings.base_url.parse().map_err(|_| "its address is none".to_owned())?;
        let client = http.client(&url).map_err(|error| error.to_string())?;
        let asked = client.head(url).timeout(PATIENCE).send().await;
        asked.map_err(|error| error.without_url().to_string())
    };
    let error = tried.await.err()?;
    let finding = Finding::problem(
        "model",
        format_args!("the server of {provider} cannot be reached: {error}"),
    );
    Some(finding.hint(format_args!(
        "check providers.{provider}.base_url and the network; `talaria model` asks it something"
    )))
}
