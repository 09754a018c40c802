//! Files that people sent, fetched from Slack when somebody asks for them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use talaria_fetch::{Ask, Fetcher};
use talaria_model::{Inbound, Media};
use talaria_platform::{ByteStream, ConnectError, FetchError, Library, Surroundings};

use super::api::ApiError;
use super::hearing::Hearing;
use super::upload::{self, LARGEST};
use crate::wire::files;

/// How long a file may take.
const LIMIT: Duration = Duration::from_secs(300);

/// Where Slack keeps files; the address that is configured is its own.
const SERVERS: [&str; 2] = ["https://files.slack.com", "https://files.slack-gov.com"];

/// Fetches files of an account.
pub(super) struct Shelves {
    hearing: Arc<Hearing>,
    fetcher: Fetcher,
}

impl Shelves {
    pub(super) fn new(hearing: Arc<Hearing>) -> Result<Self, ConnectError> {
        let (api, clock) = (&hearing.api, hearing.clock.clone());
        let fetcher = files::fetcher(&SERVERS, api.address(), api.http.proxy(), clock)?;
        Ok(Self { hearing, fetcher })
    }
}

#[async_trait]
impl Library for Shelves {
    async fn fetch(&self, media: &Media) -> Result<ByteStream, FetchError> {
        let Self { hearing, fetcher } = self;
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
        let bearer = Some(workspace.token.clone());
        let ask = Ask { url, bearer, most: LARGEST, limit: LIMIT };
        let fetched = fetcher.get(ask).await.map_err(files::failed)?;
        let (status, headers) = (fetched.status, fetched.headers);
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
        Ok(fetched.bytes)
    }

    async fn surroundings(&self, inbound: &Inbound) -> Result<Surroundings, FetchError> {
        Ok(self.hearing.surroundings(inbound).await)
    }
}

fn failed(error: ApiError) -> FetchError {
    match error {
        ApiError::Refused(refusal) => FetchError::Refused { reason: refusal.reason() },
        error => FetchError::Unreachable { reason: error.to_string() },
    }
}
