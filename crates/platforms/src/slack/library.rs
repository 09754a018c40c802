//! Files that people sent, fetched from Slack when somebody asks for them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use talaria_model::{Inbound, Media};
use talaria_platform::{ByteStream, FetchError, Library, Surroundings};

use super::api::ApiError;
use super::hearing::Hearing;
use super::upload::{self, LARGEST};
use crate::wire::http;

/// How long a file may take.
const LIMIT: Duration = Duration::from_secs(300);

/// Fetches files of an account.
pub(super) struct Shelves(pub(super) Arc<Hearing>);

#[async_trait]
impl Library for Shelves {
    async fn fetch(&self, media: &Media) -> Result<ByteStream, FetchError> {
        let Self(hearing) = self;
        let refused = |reason: String| FetchError::Refused { reason };
        let workspace = media
            .handle
            .split_once('/')
            .and_then(|(team, id)| Some((hearing.workspaces.of_team(team)?, id)));
        let Some((workspace, id)) = workspace else {
            return Err(refused("the app is not installed there any more".into()));
        };
        let file = upload::about(&hearing.api, &workspace.token, id).await.map_err(failed)?;
        if file.size.is_some_and(|size| size > LARGEST) {
            return Err(refused("the file is too large".into()));
        }
        let address = file.url_private_download.or(file.url_private);
        let url = address.and_then(|address| Url::parse(&address).ok());
        let Some(url) = url.filter(|url| hearing.api.takes_token(url)) else {
            return Err(refused("Slack does not keep this file itself".into()));
        };
        let request = http::client(&url)?.get(url).bearer_auth(workspace.token.expose());
        let (status, headers, bytes) = http::stream(request, LIMIT).await?;
        if status.is_server_error() || status.as_u16() == 429 {
            let reason = format!("HTTP {}", status.as_u16());
            return Err(FetchError::Unreachable { reason });
        }
        let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok());
        let is_page = kind.is_some_and(|kind| kind.starts_with("text/html"));
        let is_meant = file.mimetype.as_deref().is_some_and(|kind| kind.starts_with("text/html"));
        // Whoever may not have a file is shown a page to sign in on.
        if !status.is_success() || (is_page && !is_meant) {
            return Err(refused("Slack does not hand this file out; it needs files:read".into()));
        }
        Ok(http::bounded(bytes, LARGEST))
    }

    async fn surroundings(&self, inbound: &Inbound) -> Result<Surroundings, FetchError> {
        Ok(self.0.surroundings(inbound).await)
    }
}

fn failed(error: ApiError) -> FetchError {
    match error {
        ApiError::Refused(refusal) => FetchError::Refused { reason: refusal.reason() },
        error => FetchError::Unreachable { reason: error.to_string() },
    }
}
