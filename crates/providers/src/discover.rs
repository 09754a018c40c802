//! Model servers on this machine.

use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{Either, join_all, select};
use reqwest::{RequestBuilder, Url};
use serde::Deserialize;
use talaria_clock::Clock;

use crate::http::Http;

/// How long the search may take, all servers together.
const LIMIT: Duration = Duration::from_millis(300);

/// The most that is read of a list of models.
const LARGEST_LIST: usize = 256 * 1024;

/// The most models that are remembered of one server.
const MOST_MODELS: usize = 200;

/// What the names of models that cannot talk contain.
const MUTE: [&str; 6] = ["embed", "minilm", "bge-", "rerank", "whisper", "tts"];

/// Where a server may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Its name in the catalog.
    pub provider: &'static str,
    /// Its name in a sentence.
    pub title: &'static str,
    /// Where it would listen.
    pub address: SocketAddr,
}

/// A server that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its name in the catalog.
    pub provider: String,
    /// Its name in a sentence.
    pub title: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its models that can talk, in its own order; at least one.
    pub models: Vec<String>,
}

impl Found {
    /// Where its API is.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

/// The servers people run, on the ports they come with.
pub const USUAL: [Probe; 4] = [
    probe("ollama", "Ollama", 11434),
    probe("lmstudio", "LM Studio", 1234),
    probe("llamacpp", "llama.cpp", 8080),
    probe("vllm", "vLLM", 8000),
];

const fn probe(provider: &'static str, title: &'static str, port: u16) -> Probe {
    let here = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    Probe { provider, title, address: SocketAddr::new(here, port) }
}

/// Asks all of `probes` at once and returns those that answered within 300 ms, in the same order.
pub async fn discover(http: &Http, clock: &dyn Clock, probes: &[Probe]) -> Vec<Found> {
    // Making the client takes its time, which is not the servers'.
    let asked = probes.iter().filter_map(|probe| {
        let url = Url::parse(&format!("http://{}/v1/models", probe.address)).ok()?;
        Some((probe, http.client(&url).ok()?.get(url)))
    });
    let asked: Vec<_> = asked.collect();
    let answers = join_all(asked.into_iter().map(|(probe, request)| async move {
        match select(Box::pin(models(request)), clock.sleep(LIMIT)).await {
            Either::Left((Some(models), _)) if !models.is_empty() => Some(Found {
                provider: probe.provider.to_owned(),
                title: probe.title.to_owned(),
                address: probe.address,
                models,
            }),
            _ => None,
        }
    }));
    answers.await.into_iter().flatten().collect()
}

async fn models(request: RequestBuilder) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct List {
        data: Vec<Model>,
    }
    #[derive(Deserialize)]
    struct Model {
        id: String,
    }
    let response = request.send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream().boxed();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk.ok()?);
        if body.len() > LARGEST_LIST {
            return None;
        }
    }
    let list: List = serde_json::from_slice(&body).ok()?;
    let talking = list.data.into_iter().map(|model| model.id).filter(|id| can_talk(id));
    Some(talking.take(MOST_MODELS).collect())
}

fn can_talk(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    !name.is_empty() && !MUTE.iter().any(|mute| name.contains(mute))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_only_embed_are_told_by_their_names() {
        for mute in ["nomic-embed-text:latest", "all-minilm", "bge-m3", "Qwen3-Embedding-8B"] {
            assert!(!can_talk(mute), "{mute}");
        }
        for talking in ["llama3.2:3b", "qwen/qwen3-8b", "gpt-oss:20b"] {
            assert!(can_talk(talking), "{talking}");
        }
    }
}
