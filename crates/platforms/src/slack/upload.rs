//! Files on their way to Slack: an address is asked for, the bytes go there, and only then is the file
//! shared. Until it is shared nobody sees it, so everything before can be done again.

use std::time::Duration;

use reqwest::{StatusCode, Url};
use serde::Deserialize;
use talaria_clock::Clock;
use talaria_model::{FileRef, Secret};
use talaria_platform::{FileError, FileStore};

use super::api::{Api, ApiError, Body};
use super::refusal::is_about_the_token;
use super::wire::File;
use crate::wire::http::{self, CallError};

/// The largest file that Slack takes.
pub(super) const LARGEST: u64 = 1_000_000_000;

/// How long the bytes of a file may take.
const LIMIT: Duration = Duration::from_secs(300);

/// How long we wait in all for a shared file to appear, and between two looks.
const LOOKS: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(700),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// What became of a file.
pub(super) enum Uploaded {
    /// It can be shared.
    Ready { id: String, title: String },
    /// It will never be.
    Impossible { name: String, reason: String },
}

#[derive(Deserialize)]
struct Place {
    upload_url: String,
    file_id: String,
}

/// Brings a file to Slack without showing it to anybody.
pub(super) async fn upload(
    api: &Api,
    token: &Secret,
    files: &dyn FileStore,
    file: &FileRef,
) -> Result<Uploaded, ApiError> {
    let name = file.name.clone();
    let impossible = |reason: &str| {
        Ok(Uploaded::Impossible { name: file.name.clone(), reason: reason.to_owned() })
    };
    let bytes = match files.read(&file.id).await {
        Ok(_) if file.size == 0 => return impossible("it is empty"),
        Ok(bytes) => bytes,
        Err(FileError::Broken(error)) => {
            return Err(ApiError::Call(CallError::Unreachable(error.to_string())));
        }
        Err(error) => return impossible(&error.to_string()),
    };
    let fields = vec![("filename", name.clone()), ("length", file.size.to_string())];
    let asked = api.call::<Place>("files.getUploadURLExternal", token, Body::Form(fields)).await;
    let place = match asked {
        Ok(place) => place,
        // The rest of the message is worth sending.
        Err(ApiError::Refused(refusal)) if !is_about_the_token(&refusal.code) => {
            return impossible(&refusal.reason());
        }
        Err(error) => return Err(error),
    };
    let url = Url::parse(&place.upload_url).ok().filter(|url| api.is_slack(url));
    let Some(url) = url else { return impossible("Slack names an address that is not its own") };
    let request = api
        .http
        .client(&url)?
        .post(url)
        .header("content-type", "application/octet-stream")
        .header("content-length", file.size)
        .body(reqwest::Body::wrap_stream(bytes));
    let reply = http::call(request, LIMIT).await?;
    match reply.status {
        status if status.is_success() => Ok(Uploaded::Ready { id: place.file_id, title: name }),
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            Err(ApiError::Outage(format!("HTTP {}", status.as_u16())))
        }
        status => impossible(&format!("HTTP {}", status.as_u16())),
    }
}

/// What Slack says about a file.
pub(super) async fn about(api: &Api, token: &Secret, id: &str) -> Result<File, ApiError> {
    #[derive(Deserialize)]
    struct Told {
        file: File,
    }
    let fields = vec![("file", id.to_owned())];
    api.call::<Told>("files.info", token, Body::Form(fields)).await.map(|told| told.file)
}

/// The message that shares a file in a chat.
pub(super) async fn shared(
    api: &Api,
    token: &Secret,
    id: &str,
    chat: &str,
) -> Result<Option<String>, ApiError> {
    match about(api, token, id).await {
        Ok(file) => Ok(file.shares.and_then(|shares| shares.in_chat(chat).map(str::to_owned))),
        Err(ApiError::Refused(refusal)) if !is_about_the_token(&refusal.code) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Waits a little for a shared file to appear.
pub(super) async fn appears(
    api: &Api,
    token: &Secret,
    id: &str,
    chat: &str,
    clock: &dyn Clock,
) -> Option<String> {
    for wait in LOOKS {
        match shared(api, token, id, chat).await {
            Ok(Some(ts)) => return Some(ts),
            Ok(None) => clock.sleep(wait).await,
            Err(_) => return None,
        }
    }
    None
}
