//! What a person does on the page, on its way into the journal.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use talaria_model::{
    ChatId, ChoiceId, EventId, FileId, FileRef, Inbound, InboundKind, Message, MessageId, Sender,
    SenderId, Source,
};
use talaria_platform::{Ack, Arrival, Batch, FileError, Verdict};
use tokio::sync::oneshot;

use super::Site;
use super::encode::PageEvent;
use super::refusal::Refusal;
use super::routes::Input;

/// How long a page waits for the commit before it is told to send the same again.
const COMMIT_WITHIN: Duration = Duration::from_secs(2);

/// Files that one message may carry.
const FILES_PER_MESSAGE: usize = 10;

/// The longest name a file may show.
const LONGEST_NAME: usize = 255;

/// A message as the page sends it. The id is the page's own; the same id is the same message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    id: String,
    text: String,
    #[serde(default)]
    files: Vec<Attachment>,
}

/// What an upload answered.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attachment {
    id: FileId,
    name: String,
    mime: String,
    size: u64,
}

/// The choice that was pressed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Press {
    id: String,
    choice: ChoiceId,
}

/// A wish to stop.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Halt {
    id: String,
}

/// It is in the journal.
#[derive(Serialize)]
pub(super) struct Accepted {
    /// Whether it was there before.
    repeated: bool,
}

pub(super) async fn say(
    State(site): State<Arc<Site>>,
    Path(conversation): Path<String>,
    Input(words): Input<Words>,
) -> Result<Json<Accepted>, Refusal> {
    let conversation = conversation_id(&conversation)?;
    if words.text.trim().is_empty() && words.files.is_empty() {
        return Err(Refusal::Malformed("there is nothing in this message"));
    }
    if words.files.len() > FILES_PER_MESSAGE {
        return Err(Refusal::Malformed("too many files in one message"));
    }
    let mut files = Vec::with_capacity(words.files.len());
    for attachment in words.files {
        files.push(stored(&site, attachment).await?);
    }
    let id = event_id(&words.id)?;
    let message = MessageId::new(id.as_str()).ok();
    let said = Message { id: message, text: words.text, files, ..Message::default() };
    let kind = InboundKind::Said(said);
    site.hear(conversation, id, kind).await
}

pub(super) async fn press(
    State(site): State<Arc<Site>>,
    Path(conversation): Path<String>,
    Input(Press { id, choice }): Input<Press>,
) -> Result<Json<Accepted>, Refusal> {
    let conversation = conversation_id(&conversation)?;
    site.hear(conversation, event_id(&id)?, InboundKind::Pressed(choice)).await
}

pub(super) async fn stop(
    State(site): State<Arc<Site>>,
    Path(conversation): Path<String>,
    Input(Halt { id }): Input<Halt>,
) -> Result<Json<Accepted>, Refusal> {
    let conversation = conversation_id(&conversation)?;
    site.hear(conversation, event_id(&id)?, InboundKind::Stopped).await
}

impl Site {
    /// Hands an event to the gateway and waits until it is on disk.
    async fn hear(
        self: &Arc<Self>,
        conversation: ChatId,
        id: EventId,
        kind: InboundKind,
    ) -> Result<Json<Accepted>, Refusal> {
        let inbound = Inbound {
            id,
            at: self.clock.now(),
            from: Sender::new(SenderId::literal("operator")),
            to: self.address(conversation),
            source: Source::default(),
            kind,
        };
        let (told, verdict) = oneshot::channel();
        let (site, echo) = (self.clone(), inbound.clone());
        let ack = Ack::with(move |committed| {
            let verdict = committed.0.into_iter().next();
            // Other pages learn of it here rather than after the wait below, which may have been
            // given up by then. A repeat was shown to them the first time.
            if let Some(Verdict::Journalled(_)) = verdict {
                site.feed.publish(|| PageEvent::heard(&echo));
            }
            // The request may be gone; what is committed stays committed.
            let _ = told.send(verdict);
        });
        let batch = Batch { events: vec![inbound], cursor: None, ack };
        self.heard
            .try_send(Arrival::Batch(batch))
            .map_err(|_| Refusal::TryAgain("the gateway is busy"))?;
        let verdict = tokio::select! {
            verdict = verdict => verdict.ok().flatten(),
            () = self.clock.sleep(COMMIT_WITHIN) => None,
        };
        match verdict {
            Some(Verdict::Journalled(_)) => Ok(Json(Accepted { repeated: false })),
            Some(Verdict::Repeated) => Ok(Json(Accepted { repeated: true })),
            Some(Verdict::Denied) => Err(Refusal::Forbidden("the gateway does not take this")),
            None => Err(Refusal::TryAgain("it could not be stored yet")),
        }
    }
}

/// The conversation an address names. The page makes these ids up, so the shape is ours to choose:
/// one that is the same in an address, a key and a file name.
pub(super) fn conversation_id(text: &str) -> Result<ChatId, Refusal> {
    shaped(text).then(|| ChatId::new(text).ok()).flatten().ok_or(Refusal::NotFound)
}

fn event_id(text: &str) -> Result<EventId, Refusal> {
    shaped(text)
        .then(|| EventId::new(text).ok())
        .flatten()
        .ok_or(Refusal::Malformed("the id is not of the expected shape"))
}

fn shaped(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (8..=64).contains(&id.len()) && id.bytes().all(plain)
}

/// The file an attachment names, once it is certain that we have it.
async fn stored(site: &Site, attachment: Attachment) -> Result<FileRef, Refusal> {
    let Attachment { id, name, mime, size } = attachment;
    if name.is_empty() || name.len() > LONGEST_NAME || mime.len() > LONGEST_NAME {
        return Err(Refusal::Malformed("the file has no usable name"));
    }
    match site.files.read(&id).await {
        Ok(_) => Ok(FileRef::new(id, name, mime, size)),
        Err(FileError::Missing) => Err(Refusal::Malformed("a file of this message is missing")),
        Err(_) => Err(Refusal::TryAgain("a file of this message cannot be read")),
    }
}
