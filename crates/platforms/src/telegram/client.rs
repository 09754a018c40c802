//! Requests to the Bot API. The token is part of every address, so no address ever leaves this file.

use std::time::Duration;

use reqwest::multipart::{Form, Part};
use reqwest::{Body, RequestBuilder, Url};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use talaria_fetch::{Ask, Fetched, Fetcher};
use talaria_model::{Proxy, Secret};
use talaria_platform::{ByteStream, FetchError};

use super::api::Envelope;
use super::refusal::{Failure, Refusal};
use crate::wire::files;
use crate::wire::http::{self, CallError, Http};

/// The address of the API, and the token that opens it.
pub(super) struct Client {
    http: reqwest::Client,
    base: String,
    files: Url,
    token: Secret,
    bot: i64,
}

/// A file on its way to the API.
pub(super) struct Upload {
    /// The name of the form field.
    pub(super) field: String,
    pub(super) name: String,
    pub(super) mime: String,
    pub(super) size: u64,
    pub(super) bytes: ByteStream,
}

impl Client {
    /// A client of the server at an address, whose files are at another or the same.
    pub(super) fn new(
        base: &Url,
        files: &Url,
        token: Secret,
        bot: i64,
        proxy: &Proxy,
    ) -> Result<Self, CallError> {
        let http = Http::by(proxy.clone()).client(base)?;
        let base = base.as_str().trim_end_matches('/').to_owned();
        Ok(Self { http, base, files: files.clone(), token, bot })
    }

    /// Who the token belongs to.
    pub(super) fn bot(&self) -> i64 {
        self.bot
    }

    /// Whether a file lies in the folder that a server on this machine keeps for this bot.
    pub(super) fn keeps(&self, path: &std::path::Path) -> bool {
        use std::path::Component;
        let token = self.token.expose();
        let folders = [token.to_owned(), token.replace(':', "~")];
        let is_plain =
            path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let is_ours = path.components().any(|part| {
            matches!(part, Component::Normal(name) if folders.iter().any(|folder| name == folder.as_str()))
        });
        path.is_absolute() && is_plain && is_ours
    }

    /// Calls a method with these arguments.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        arguments: &Map<String, Value>,
        limit: Duration,
    ) -> Result<T, Failure> {
        answer(self.post(method)?.json(arguments), limit).await
    }

    /// Calls a method with these arguments and files.
    pub(super) async fn upload<T: DeserializeOwned>(
        &self,
        method: &str,
        arguments: &Map<String, Value>,
        uploads: Vec<Upload>,
        limit: Duration,
    ) -> Result<T, Failure> {
        let mut form = Form::new();
        for (name, value) in arguments {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            form = form.text(name.clone(), text);
        }
        for Upload { field, name, mime, size, bytes } in uploads {
            let is_usable = Part::text("").mime_str(&mime).is_ok();
            let mime = if is_usable { &mime } else { "application/octet-stream" };
            let part = Part::stream_with_length(Body::wrap_stream(bytes), size).file_name(name);
            let part =
                part.mime_str(mime).map_err(|error| Failure::never_left(&error.to_string()))?;
            form = form.part(field, part);
        }
        answer(self.post(method)?.multipart(form), limit).await
    }

    /// Asks for the bytes of a file, by the path that `getFile` named.
    pub(super) async fn download(
        &self,
        fetcher: &Fetcher,
        path: &str,
        most: u64,
        limit: Duration,
    ) -> Result<Fetched, FetchError> {
        let unusable = || FetchError::Refused { reason: "the file has an unusable path".into() };
        let mut url = self.files.clone();
        {
            let mut segments = url.path_segments_mut().map_err(|()| unusable())?;
            segments.pop_if_empty().push("file").push(&format!("bot{}", self.token.expose()));
            for segment in path.split('/') {
                if matches!(segment, "" | "." | "..") {
                    return Err(unusable());
                }
                segments.push(segment);
            }
        }
        fetcher.get(Ask { url, bearer: None, most, limit }).await.map_err(files::failed)
    }

    fn post(&self, method: &str) -> Result<RequestBuilder, Failure> {
        let url = format!("{}/bot{}/{method}", self.base, self.token.expose());
        let url = Url::parse(&url).map_err(|_| Failure::never_left("the address is unusable"))?;
        Ok(self.http.post(url))
    }
}

/// The number before the colon of a token, if it is one.
pub(super) fn bot(token: &Secret) -> Option<i64> {
    let (id, key) = token.expose().split_once(':')?;
    let is_key = !key.is_empty()
        && key.len() <= 80
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    id.parse().ok().filter(|id| *id > 0 && is_key)
}

/// A token with its number as Telegram writes it: `042:x` and `+42:x` name the same bot.
pub(super) fn canonical(token: &Secret) -> Secret {
    let key = token.expose().split_once(':').map(|(_, key)| key);
    match (bot(token), key) {
        (Some(bot), Some(key)) => Secret::new(format!("{bot}:{key}")),
        _ => token.clone(),
    }
}

async fn answer<T: DeserializeOwned>(
    request: RequestBuilder,
    limit: Duration,
) -> Result<T, Failure> {
    let reply = http::call(request, limit).await.map_err(Failure::Call)?;
    let status = reply.status.as_u16();
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(&reply.body) else {
        // A proxy in front of the API answers with a page of its own.
        return Err(match reply.status.is_success() {
            true => Failure::Unreadable,
            false => Failure::Refused(Refusal {
                code: status,
                description: reply.status.canonical_reason().unwrap_or("no reason").to_owned(),
                retry_after: reply.retry_after(),
                migrate_to: None,
            }),
        });
    };
    if !envelope.ok {
        let wait = envelope.parameters.retry_after.map(Duration::from_secs);
        return Err(Failure::Refused(Refusal {
            code: envelope.error_code.unwrap_or(status),
            description: envelope.description.unwrap_or_default(),
            retry_after: wait.or_else(|| reply.retry_after()),
            migrate_to: envelope.parameters.migrate_to_chat_id,
        }));
    }
    let result = envelope.result.map_or("null", |result| result.get());
    serde_json::from_str(result).map_err(|_| Failure::Unreadable)
}
