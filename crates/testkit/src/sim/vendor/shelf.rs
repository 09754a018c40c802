//! Files that people sent and that a vendor keeps until somebody asks for them.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use talaria_clock::{Clock, SystemClock};
use talaria_model::{Bystander, Inbound, InboundKind, Media, MediaKind, Message, Overheard, Owner};
use talaria_platform::{ByteStream, FetchError, Library, Surroundings};

use super::{Reach, Vendor};

/// What a vendor does when somebody asks for a file.
#[derive(Debug, Clone)]
pub enum Handing {
    /// Hands it out.
    Hands,
    /// Hands it out after a while.
    HandsAfter(Duration),
    /// Hands out a part, and the connection breaks.
    Breaks,
    /// Hands out a part and nothing more.
    Stalls,
    /// Says nothing at all.
    Never,
    /// Says why not.
    Refuses(FetchError),
    /// Breaks down.
    Panics,
}

pub(super) type Keeper = Box<dyn FnMut(&Media) -> Handing + Send>;

pub(super) struct Shelf(pub(super) Vendor);

impl Vendor {
    /// Somebody sends a file, which stays with the vendor.
    pub fn keep(&self, kind: MediaKind, name: &str, bytes: &[u8]) -> Media {
        let mut truth = self.lock();
        let handle = format!("kept-{}", truth.shelf.len());
        truth.shelf.insert(handle.clone(), Bytes::copy_from_slice(bytes));
        let (name, mime) = (Some(name.to_owned()), Some("text/plain".to_owned()));
        let owner = Owner::Sender;
        Media { handle, kind, name, mime, size: Some(bytes.len() as u64), owner }
    }

    /// Decides about each request for a file from here on.
    pub fn hands_out(&self, keeper: impl FnMut(&Media) -> Handing + Send + 'static) {
        self.lock().keeper = Some(Box::new(keeper));
    }
}

#[async_trait]
impl Library for Shelf {
    async fn fetch(&self, media: &Media) -> Result<ByteStream, FetchError> {
        let Self(vendor) = self;
        let (ground, account) = (&vendor.0.ground, &vendor.0.account);
        ground.points.pass(format!("{account} is asked for {}", media.handle)).await;
        let unreachable = || FetchError::Unreachable { reason: "no route".into() };
        let (handing, bytes) = {
            let mut truth = vendor.lock();
            truth.asked_for.push(media.handle.clone());
            let handing = match (truth.reach, &mut truth.keeper) {
                (Reach::Refused, _) => Handing::Refuses(unreachable()),
                (Reach::Silent, _) => Handing::Never,
                (Reach::Open, Some(keeper)) => keeper(media),
                (Reach::Open, None) => Handing::Hands,
            };
            (handing, truth.shelf.get(&media.handle).cloned())
        };
        ground.log.note(format_args!("{account} {handing:?}"));
        vendor.bump();
        let gone = || FetchError::Refused { reason: "there is no such file".into() };
        let bytes = bytes.ok_or_else(gone)?;
        let part = bytes.slice(..bytes.len() / 2);
        let broken = || Err(io::Error::from(io::ErrorKind::ConnectionReset));
        match handing {
            Handing::Hands => Ok(stream::iter([Ok(bytes)]).boxed()),
            Handing::HandsAfter(time) => {
                SystemClock.sleep(time).await;
                Ok(stream::iter([Ok(bytes)]).boxed())
            }
            Handing::Breaks => Ok(stream::iter([Ok(part), broken()]).boxed()),
            Handing::Stalls => Ok(stream::iter([Ok(part)]).chain(stream::pending()).boxed()),
            Handing::Never => std::future::pending().await,
            Handing::Refuses(error) => Err(error),
            Handing::Panics => panic!("the test says so"),
        }
    }

    /// What surrounds a message is kept like a file, and told as something that its sender has said before.
    async fn surroundings(&self, inbound: &Inbound) -> Result<Surroundings, FetchError> {
        let handle = match &inbound.kind {
            InboundKind::Said(Message { surroundings: Some(handle), .. }) => handle.clone(),
            _ => return Ok(Surroundings::default()),
        };
        let (kind, name) = (MediaKind::Document, None);
        let bytes = self
            .fetch(&Media { handle, kind, name, mime: None, size: None, owner: Owner::Sender })
            .await?;
        let bytes: Vec<Bytes> = bytes
            .try_collect()
            .await
            .map_err(|error| FetchError::Unreachable { reason: error.to_string() })?;
        let text = String::from_utf8_lossy(&bytes.concat()).into_owned();
        let by = Some(Bystander::new(inbound.from.id.clone()));
        let overheard = vec![Overheard { by, ..Overheard::new("somebody", text) }];
        Ok(Surroundings { overheard, ..Surroundings::default() })
    }
}
