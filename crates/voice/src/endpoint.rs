//! Audio APIs as OpenAI's: `/audio/transcriptions` and `/audio/speech`.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use reqwest::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::{Deserialize, Serialize};
use talaria_agent::{Recording, Speaker, Transcriber, VoiceError};
use talaria_fetch::route;
use talaria_model::{Proxy, Secret};
use url::Url;

use crate::sound::{self, Format};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// The longest answer that is read where words are expected, in bytes.
const LONGEST_WORDS: usize = 1024 * 1024;

/// The longest wait that a server can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The most that is told of what a server says, in characters.
const LONGEST_REASON: usize = 160;

/// Where an audio API is.
#[derive(Clone)]
pub struct Endpoint {
    base: Url,
    proxy: Proxy,
    key: Option<(Secret, HeaderValue)>,
    // Reading the machine's certificates takes a while, so a client is made when it is first needed.
    client: Arc<OnceLock<Result<Client, String>>>,
}

/// Why an audio API cannot be called at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The key has characters that cannot be sent.
    #[error("the key has characters that no key may have")]
    Key,
    /// The address cannot be called.
    #[error("the address is not one of a server")]
    Address,
}

impl Endpoint {
    /// An API below an address that includes the version, like `https://api.example.com/v1`. A server on
    /// this machine is reached directly, every other one by way of the proxy.
    pub fn new(mut base: Url, key: Option<Secret>, proxy: Proxy) -> Result<Self, SetupError> {
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(SetupError::Address);
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let key = match key {
            Some(key) => {
                let value = format!("Bearer {}", key.expose());
                let mut value = HeaderValue::from_str(&value).map_err(|_| SetupError::Key)?;
                value.set_sensitive(true);
                Some((key, value))
            }
            None => None,
        };
        Ok(Self { base, proxy, key, client: Arc::default() })
    }

    fn post(&self, path: &str) -> Result<RequestBuilder, VoiceError> {
        let broken = |reason: String| VoiceError::Refused { reason };
        let made = self.client.get_or_init(|| make(&self.base, &self.proxy));
        let client = made.clone().map_err(broken)?;
        let url = self.base.join(path).map_err(|error| broken(error.to_string()))?;
        let request = client.post(url);
        Ok(match &self.key {
            Some((_, value)) => request.header(AUTHORIZATION, value.clone()),
            None => request,
        })
    }

    /// The whole answer, if it is one and not longer than `largest` bytes.
    async fn ask(&self, request: RequestBuilder, largest: usize) -> Result<Vec<u8>, VoiceError> {
        let response = request.send().await.map_err(|error| unreachable(&error))?;
        if response.status().is_success() {
            return body(response, largest).await;
        }
        Err(self.refusal(response).await)
    }

    async fn refusal(&self, response: Response) -> VoiceError {
        let status = response.status();
        let after = response.headers().get(RETRY_AFTER).and_then(|wait| wait.to_str().ok());
        let after = after.and_then(|wait| wait.parse::<f64>().ok());
        let after = after.and_then(|wait| Duration::try_from_secs_f64(wait).ok());
        let after = after.map(|wait| wait.min(LONGEST_WAIT));
        match status {
            // What a server says of a key may hold parts of it.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                VoiceError::Refused { reason: "the audio server does not accept the key".into() }
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
                VoiceError::Unavailable { reason: "the audio server is busy".into(), after }
            }
            status if status.is_server_error() => {
                let reason = format!("the audio server has a problem ({})", status.as_u16());
                VoiceError::Unavailable { reason, after }
            }
            status => {
                let said = body(response, LONGEST_WORDS).await.unwrap_or_default();
                let said = self.told(&said);
                let reason = format!("the audio server refuses it ({}{said})", status.as_u16());
                VoiceError::Refused { reason }
            }
        }
    }

    /// What a server says is wrong, in a few words and without our key.
    fn told(&self, body: &[u8]) -> String {
        let Ok(Problem { error: Told { message } }) = serde_json::from_slice(body) else {
            return String::new();
        };
        let message = match &self.key {
            Some((key, _)) if !key.expose().is_empty() => message.replace(key.expose(), "…"),
            _ => message,
        };
        let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
        format!(": {}", line.chars().take(LONGEST_REASON).collect::<String>())
    }
}

/// How an audio API says what is wrong.
#[derive(Deserialize)]
struct Problem {
    error: Told,
}

#[derive(Deserialize)]
struct Told {
    message: String,
}

/// Redirects are not followed: a key belongs to the address it was configured for.
fn make(base: &Url, proxy: &Proxy) -> Result<Client, String> {
    let told =
        |error: reqwest::Error| format!("no HTTP client could be made: {}", error.without_url());
    route(Client::builder(), proxy, base)
        .map_err(told)?
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("talaria/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(told)
}

async fn body(response: Response, largest: usize) -> Result<Vec<u8>, VoiceError> {
    let mut bytes = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| unreachable(&error))?;
        if bytes.len() + chunk.len() > largest {
            return Err(VoiceError::Refused { reason: "the audio server says too much".into() });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Without the address, which is nobody's business who reads this.
fn unreachable(error: &reqwest::Error) -> VoiceError {
    let reason = match error.is_connect() {
        true => "the audio server cannot be reached",
        false => "the connection to the audio server broke",
    };
    VoiceError::Unavailable { reason: reason.into(), after: None }
}

/// Has recordings written down by an audio API.
pub struct EndpointTranscriber {
    /// Where it is.
    pub endpoint: Endpoint,
    /// The model, as the server names it.
    pub model: String,
    /// The language that is spoken, like `en`; none lets the model find out.
    pub language: Option<String>,
}

#[derive(Deserialize)]
struct Transcribed {
    text: String,
}

#[async_trait]
impl Transcriber for EndpointTranscriber {
    async fn transcribe(&self, recording: &Recording) -> Result<String, VoiceError> {
        // Servers tell formats apart by the ending of the name.
        let name = format!("recording.{}", sound::ending(&recording.name, &recording.mime));
        let file = Part::bytes(recording.bytes.clone()).file_name(name);
        let file = file.mime_str(&recording.mime).or_else(|_| {
            Part::bytes(recording.bytes.clone())
                .file_name("recording.ogg")
                .mime_str("application/octet-stream")
        });
        let file = file.map_err(|error| VoiceError::Refused { reason: error.to_string() })?;
        let form = Form::new()
            .part("file", file)
            .text("model", self.model.clone())
            .text("response_format", "json");
        let form = match &self.language {
            Some(language) => form.text("language", language.clone()),
            None => form,
        };
        let request = self.endpoint.post("audio/transcriptions")?.multipart(form);
        let answer = self.endpoint.ask(request, LONGEST_WORDS).await?;
        let transcribed: Transcribed = serde_json::from_slice(&answer).map_err(|_| {
            VoiceError::Refused { reason: "the audio server answers with no text".into() }
        })?;
        Ok(transcribed.text)
    }
}

/// Has words spoken by an audio API.
pub struct EndpointSpeaker {
    /// Where it is.
    pub endpoint: Endpoint,
    /// The model, as the server names it.
    pub model: String,
    /// The voice, as the server names it.
    pub voice: String,
    /// How it is recorded.
    pub format: Format,
    /// Bytes of one recording.
    pub largest: usize,
}

#[derive(Serialize)]
struct Speech<'a> {
    model: &'a str,
    input: &'a str,
    voice: &'a str,
    response_format: &'static str,
}

#[async_trait]
impl Speaker for EndpointSpeaker {
    async fn speak(&self, words: &str) -> Result<Recording, VoiceError> {
        let speech = Speech {
            model: &self.model,
            input: words,
            voice: &self.voice,
            response_format: self.format.name(),
        };
        let request = self.endpoint.post("audio/speech")?.json(&speech);
        let bytes = self.endpoint.ask(request, self.largest).await?;
        let (ending, mime) = sound::kind(&bytes, self.format);
        Ok(Recording { name: format!("answer.{ending}"), mime: mime.into(), bytes })
    }
}
