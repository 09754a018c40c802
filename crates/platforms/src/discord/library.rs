//! Files that people sent, fetched from where Discord keeps them and from nowhere else.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use talaria_fetch::{Ask, Fetcher};
use talaria_model::{Inbound, Media};
use talaria_platform::{ByteStream, ConnectError, FetchError, Library, Surroundings};

use super::api;
use super::lookup::Lookup;
use super::snowflake::Snowflake;
use crate::wire::files;

/// How long a file may take.
const DOWNLOAD: Duration = Duration::from_secs(120);

/// Where Discord keeps files.
const SERVERS: [&str; 2] = ["https://cdn.discordapp.com", "https://media.discordapp.net"];

/// Where pictures that move are kept.
const MOVING: &str = "https://media.discordapp.net";

/// Fetches files.
pub(crate) struct Files {
    lookup: Arc<Lookup>,
    fetcher: Fetcher,
}

/// What a handle names.
enum Handle {
    Attachment { channel: Snowflake, message: Snowflake, id: Snowflake },
    Sticker { id: Snowflake, format: u64 },
}

impl Files {
    pub(crate) fn new(lookup: Arc<Lookup>) -> Result<Self, ConnectError> {
        let configured = Url::parse(&lookup.settings.cdn_url).map_err(|error| {
            let problem = format!("cdn_url is no address: {error}");
            ConnectError::Refused { problem, hint: "leave it out, or correct it".into() }
        })?;
        let proxy = &lookup.settings.proxy;
        let fetcher = files::fetcher(&SERVERS, &configured, proxy, lookup.clock.clone())?;
        Ok(Self { lookup, fetcher })
    }

    /// Where a file is at the moment: addresses are signed and expire.
    async fn renewed(
        &self,
        channel: Snowflake,
        message: Snowflake,
        id: Snowflake,
    ) -> Result<Url, FetchError> {
        let path = format!("/channels/{channel}/messages/{message}");
        let message: api::Message = self.lookup.rest.get(&path).await?;
        let forwarded = message.message_snapshots.iter().flat_map(|it| &it.message.attachments);
        let found = message.attachments.iter().chain(forwarded).find(|file| file.id == id);
        found.and_then(|file| Url::parse(&file.url).ok()).ok_or_else(gone)
    }

    async fn bytes(&self, url: Url) -> Result<Option<ByteStream>, FetchError> {
        let ask = Ask { url, bearer: None, most: self.most(), limit: DOWNLOAD };
        let fetched = self.fetcher.get(ask).await.map_err(files::failed)?;
        match fetched.status.as_u16() {
            200 => Ok(Some(fetched.bytes)),
            403 | 404 | 410 => Ok(None),
            status @ (429 | 500..=599) => {
                let reason = format!("the vendor answered {status}");
                Err(FetchError::Unreachable { reason })
            }
            status => Err(FetchError::Refused { reason: format!("status {status}") }),
        }
    }

    fn most(&self) -> u64 {
        match self.lookup.settings.max_attachment_bytes {
            0 => u64::MAX,
            most => most,
        }
    }

    fn fits(&self, size: Option<u64>) -> Result<(), FetchError> {
        if size.is_some_and(|size| size > self.most()) {
            let reason = format!("the file is larger than {} bytes", self.most());
            return Err(FetchError::Refused { reason });
        }
        Ok(())
    }
}

#[async_trait]
impl Library for Files {
    async fn fetch(&self, media: &Media) -> Result<ByteStream, FetchError> {
        self.fits(media.size)?;
        match parse(&media.handle).ok_or_else(gone)? {
            Handle::Attachment { channel, message, id } => {
                let noted = self.lookup.places.file(id).and_then(|url| Url::parse(&url).ok());
                if let Some(url) = noted
                    && let Some(bytes) = self.bytes(url).await?
                {
                    return Ok(bytes);
                }
                let url = self.renewed(channel, message, id).await?;
                self.bytes(url).await?.ok_or_else(gone)
            }
            Handle::Sticker { id, format } => {
                let base = self.lookup.settings.cdn_url.trim_end_matches('/');
                let is_discord = SERVERS.contains(&base);
                let (base, ending) = match format {
                    4 if is_discord => (MOVING, "gif"),
                    4 => (base, "gif"),
                    _ => (base, "png"),
                };
                let url = Url::parse(&format!("{base}/stickers/{id}.{ending}"));
                self.bytes(url.map_err(|_| gone())?).await?.ok_or_else(gone)
            }
        }
    }

    async fn surroundings(&self, inbound: &Inbound) -> Result<Surroundings, FetchError> {
        let (overheard, quote) =
            tokio::join!(self.lookup.overheard(inbound), self.lookup.quoted(inbound));
        Ok(Surroundings { overheard: overheard?, quote, ..Surroundings::default() })
    }
}

fn parse(handle: &str) -> Option<Handle> {
    let mut parts = handle.split(':');
    let kind = parts.next()?;
    let mut id = || Snowflake::parse(parts.next()?);
    match kind {
        "a" => Some(Handle::Attachment { channel: id()?, message: id()?, id: id()? }),
        "s" => {
            let sticker = id()?;
            Some(Handle::Sticker { id: sticker, format: id()?.0 })
        }
        _ => None,
    }
}

fn gone() -> FetchError {
    FetchError::Refused { reason: "Discord does not have the file any more".into() }
}
