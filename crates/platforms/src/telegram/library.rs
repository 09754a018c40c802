//! Files that came with messages. Telegram names a path for each and hands it out for an hour; a server
//! on this machine names a file on its disk instead.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use serde_json::json;
use talaria_clock::Clock;
use talaria_fetch::{Fetcher, paced};
use talaria_model::{Inbound, Media};
use talaria_platform::{ByteStream, FetchError, Library, Surroundings};
use tokio_util::io::ReaderStream;

use super::api::FilePath;
use super::client::Client;
use super::encode::arguments;

/// The largest file that Telegram hands out.
const LARGEST: u64 = 20 * 1024 * 1024;

/// The largest file that there is.
const LARGEST_LOCAL: u64 = 2000 * 1024 * 1024;

const ASK: Duration = Duration::from_secs(30);

/// A server on this machine fetches the file before it answers.
const ASK_LOCAL: Duration = Duration::from_secs(600);

const DOWNLOAD: Duration = Duration::from_secs(600);

/// Where the server that is asked keeps files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shelf {
    /// Behind an address.
    Remote,
    /// On a disk that can be read from here.
    Local,
}

/// Fetches files.
pub(super) struct Files {
    pub(super) client: Arc<Client>,
    pub(super) fetcher: Fetcher,
    pub(super) shelf: Shelf,
    pub(super) clock: Arc<dyn Clock>,
}

#[async_trait]
impl Library for Files {
    async fn fetch(&self, media: &Media) -> Result<ByteStream, FetchError> {
        let (largest, patience) = match self.shelf {
            Shelf::Remote => (LARGEST, ASK),
            Shelf::Local => (LARGEST_LOCAL, ASK_LOCAL),
        };
        if media.size.is_some_and(|size| size > largest) {
            return Err(too_large(largest));
        }
        let body = arguments(json!({ "file_id": media.handle }));
        let found = self.client.ask::<FilePath>("getFile", &body, patience).await;
        let FilePath { file_size, file_path } = found.map_err(|failure| failure.of_fetch())?;
        if file_size.is_some_and(|size| size > largest) {
            return Err(too_large(largest));
        }
        let path = file_path.ok_or_else(|| unreachable("Telegram does not say where it is"))?;
        let bytes = match self.shelf {
            Shelf::Local if Path::new(&path).is_absolute() => {
                let bytes = self.open(Path::new(&path)).await?;
                paced(bytes, largest, DOWNLOAD, self.clock.clone())
            }
            Shelf::Local | Shelf::Remote => self.download(&path, largest).await?,
        };
        Ok(bytes)
    }

    /// An update says everything, and a bot can ask for nothing more.
    async fn surroundings(&self, _: &Inbound) -> Result<Surroundings, FetchError> {
        Ok(Surroundings::default())
    }
}

impl Files {
    /// Opens a file of the server on this machine. It keeps those of each bot in a folder named by the
    /// token, and nothing else of the disk is any business of its answers.
    async fn open(&self, path: &Path) -> Result<ByteStream, FetchError> {
        if !self.client.keeps(path) {
            return Err(refused("the server named a file outside of this bot's folder"));
        }
        // The path contains the token, and so would the error.
        let opened = tokio::fs::File::open(path).await;
        let opened = opened.map_err(|error| unreachable(&error.kind().to_string()))?;
        Ok(ReaderStream::new(opened).boxed())
    }

    async fn download(&self, path: &str, largest: u64) -> Result<ByteStream, FetchError> {
        let fetched = self.client.download(&self.fetcher, path, largest, DOWNLOAD).await?;
        if fetched.status.is_success() {
            return Ok(fetched.bytes);
        }
        Err(unreachable(&format!("the file was answered with {}", fetched.status.as_u16())))
    }
}

fn too_large(largest: u64) -> FetchError {
    refused(&format!("the file is larger than {} MB", largest / (1024 * 1024)))
}

fn refused(reason: &str) -> FetchError {
    FetchError::Refused { reason: reason.into() }
}

fn unreachable(reason: &str) -> FetchError {
    FetchError::Unreachable { reason: reason.into() }
}
