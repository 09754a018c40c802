//! Speaking: acts become requests, answers become receipts.
//!
//! A post can take several requests: a long text and its files, or more files than an album holds. Those
//! that were confirmed are remembered, so that a post which is tried again goes on where it stopped. When
//! the outcome of one is unknown, all of it is forgotten: the resend says that it may be a repeat, and it
//! has to say so of everything that it repeats.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use serde::Deserialize;
use serde_json::Value;
use talaria_clock::Clock;
use talaria_model::{
    Act, Address, Content, FileRef, MessageId, Outbound, OutboundId, Reading, Receipt,
};
use talaria_platform::{FileError, FileStore, Outgoing, SendError};
use talaria_render as markdown;

use super::api::Sent;
use super::client::{Client, Upload};
use super::encode::{self, Done, LinkPreviews, Request, Step};
use super::places::{Bounded, Places};
use super::refusal::{Failure, Repeat};

/// How long Telegram may take to say that a message is there.
const SPEAK: Duration = Duration::from_secs(30);

/// The same for what is only for show.
const SHOW: Duration = Duration::from_secs(10);

/// Slower connections than this many bytes in a second are given up with a file.
const SLOWEST: u64 = 128 * 1024;

/// No file takes longer.
const LONGEST_UPLOAD: Duration = Duration::from_secs(3600);

/// Speaks as a bot.
pub(super) struct Speaker {
    pub(super) client: Arc<Client>,
    pub(super) files: Arc<dyn FileStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) places: Arc<Places>,
    pub(super) previews: LinkPreviews,
    /// Posts of which a part is shown.
    pub(super) begun: Mutex<Bounded<OutboundId, Done>>,
}

/// What a request that creates something answers: a message, or those of an album.
#[derive(Deserialize)]
#[serde(untagged)]
enum Created {
    One(Sent),
    Album(Vec<Sent>),
}

impl Created {
    fn message(self) -> Option<MessageId> {
        let first = match self {
            Self::One(sent) => Some(sent),
            Self::Album(sent) => sent.into_iter().next(),
        };
        // Zero is a message that Telegram will show later, under an id that it does not tell.
        let id = first.map(|sent| sent.message_id).filter(|id| *id != 0)?;
        MessageId::new(id.to_string()).ok()
    }
}

#[async_trait]
impl Outgoing for Speaker {
    async fn send(&self, outbound: &Outbound) -> Result<Receipt, SendError> {
        let to = &outbound.to;
        let message = match &outbound.act {
            Act::Post(content) => self.post(&outbound.id, to, content).await?,
            Act::Edit { message, content } => {
                self.edit(to, message, content).await?;
                Some(message.clone())
            }
            // It fades by itself; a frame without words would say that somebody thinks.
            Act::Draft(draft) if draft.is_blank() => None,
            Act::Draft(draft) => {
                let request = encode::draft(to, &self.chat(to)?, &outbound.id, draft)?;
                self.show(&request, SHOW).await?;
                None
            }
            Act::Delete { message } => {
                let request = encode::delete(&self.chat(to)?, message)?;
                self.unless(&request, &["message to delete not found"]).await?;
                None
            }
            Act::React { message, emoji } => {
                let request = encode::react(&self.chat(to)?, message, emoji)?;
                self.show(&request, SHOW).await?;
                None
            }
            Act::Mark { message, progress } => {
                let request = encode::mark(&self.chat(to)?, message, *progress)?;
                self.show(&request, SHOW).await?;
                None
            }
            // It fades.
            Act::Rest => None,
            Act::Typing => {
                let request = encode::typing(to, &self.chat(to)?)?;
                self.show(&request, SHOW).await?;
                None
            }
        };
        Ok(Receipt { message, at: self.clock.now() })
    }
}

impl Speaker {
    /// The chat by the id that it has by now.
    fn chat(&self, to: &Address) -> Result<Value, SendError> {
        let chat = encode::chat(to)?;
        Ok(chat.as_i64().map_or(chat, |id| self.places.present(id).into()))
    }

    async fn post(
        &self,
        id: &OutboundId,
        to: &Address,
        content: &Content,
    ) -> Result<Option<MessageId>, SendError> {
        let content = &self.with_what_is_kept(content).await?;
        let mut done = self.begun().take(id).unwrap_or_default();
        let sent = self.steps(to, content, &mut done).await;
        match &sent {
            Ok(()) | Err(SendError::Unconfirmed { .. }) => {}
            Err(_) if done == Done::default() => {}
            Err(_) => self.begun().put(id.clone(), done.clone()),
        }
        sent.map(|()| done.message)
    }

    fn begun(&self) -> std::sync::MutexGuard<'_, Bounded<OutboundId, Done>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn steps(
        &self,
        to: &Address,
        content: &Content,
        done: &mut Done,
    ) -> Result<(), SendError> {
        let mut moved = false;
        loop {
            let steps = encode::post(to, &self.chat(to)?, content, done, self.previews)?;
            let Some(step) = steps.into_iter().next() else { return Ok(()) };
            let created = match self.step(&step).await {
                Ok(created) => created,
                // Nothing was said yet: the group is somewhere else by now.
                Err(failure) if !moved && self.follows(to, &failure) => {
                    moved = true;
                    continue;
                }
                Err(failure) => return Err(failure.of_act(Repeat::Visible)),
            };
            done.files += step.request.files.len();
            let message = created.message();
            if step.says || done.message.is_none() {
                done.message = message;
            }
            done.said |= step.says;
        }
    }

    async fn step(&self, step: &Step) -> Result<Created, Failure> {
        let sent = self.create(&step.request).await;
        match (&sent, &step.otherwise) {
            (Err(failure), Some(otherwise)) if is_about_the_form(failure) => {
                self.create(otherwise).await
            }
            _ => sent,
        }
    }

    async fn create(&self, request: &Request) -> Result<Created, Failure> {
        if request.files.is_empty() {
            return self.client.ask(request.method, &request.body, SPEAK).await;
        }
        let broke = Arc::new(AtomicBool::new(false));
        let mut uploads = Vec::with_capacity(request.files.len());
        for (field, file) in &request.files {
            let bytes = self.files.read(&file.id).await;
            let bytes = bytes.map_err(|error| Failure::never_left(&error.to_string()))?;
            let broken = broke.clone();
            let bytes = bytes.inspect(move |piece| {
                if piece.is_err() {
                    broken.store(true, Ordering::Relaxed);
                }
            });
            uploads.push(Upload {
                field: field.clone(),
                name: file.name.clone(),
                mime: file.mime.clone(),
                size: file.size,
                bytes: bytes.boxed(),
            });
        }
        let size: u64 = request.files.iter().map(|(_, file)| file.size).sum();
        let limit = (SPEAK + Duration::from_secs(size / SLOWEST)).min(LONGEST_UPLOAD);
        let sent = self.client.upload(request.method, &request.body, uploads, limit).await;
        // Half a file is no request.
        match sent {
            Err(Failure::Call(_)) if broke.load(Ordering::Relaxed) => {
                Err(Failure::never_left("a file could not be read"))
            }
            sent => sent,
        }
    }

    /// The content without files that are not kept any more; it says which.
    async fn with_what_is_kept(&self, content: &Content) -> Result<Content, SendError> {
        let mut content = content.clone();
        let mut missing = Vec::new();
        let mut kept = Vec::with_capacity(content.files.len());
        for file in std::mem::take(&mut content.files) {
            match self.files.read(&file.id).await {
                Ok(_) => kept.push(file),
                Err(FileError::Broken(error)) => {
                    return Err(SendError::Unreachable { reason: error.to_string() });
                }
                Err(FileError::Missing | FileError::TooLarge { .. } | FileError::Full { .. }) => {
                    missing.push(file);
                }
            }
        }
        content.files = kept;
        if !missing.is_empty() {
            let text = markdown::markdown(&content.text, content.reading);
            content.text = markdown::append(&text, &no_longer_kept(&missing));
            content.reading = Reading::Markdown;
        }
        Ok(content)
    }

    async fn edit(
        &self,
        to: &Address,
        message: &MessageId,
        content: &Content,
    ) -> Result<(), SendError> {
        let chat = self.chat(to)?;
        let request = encode::edit(&chat, message, content, self.previews)?;
        match self.ask(&request, SPEAK).await {
            Err(failure) if failure.says(&["there is no text in the message"]) => {
                let request = encode::edit_caption(&chat, message, content)?;
                self.unless(&request, &["message is not modified"]).await?;
            }
            Err(failure) if !failure.says(&["message is not modified"]) => {
                return Err(failure.of_act(Repeat::Invisible));
            }
            _ => {}
        }
        Ok(())
    }

    async fn ask(&self, request: &Request, limit: Duration) -> Result<Value, Failure> {
        self.client.ask(request.method, &request.body, limit).await
    }

    async fn show(&self, request: &Request, limit: Duration) -> Result<(), SendError> {
        let asked = self.ask(request, limit).await;
        asked.map(|_| ()).map_err(|failure| failure.of_act(Repeat::Invisible))
    }

    /// Asks for something that may be so already, which Telegram says with these words.
    async fn unless(&self, request: &Request, already: &[&str]) -> Result<(), SendError> {
        match self.ask(request, SPEAK).await {
            Err(failure) if !failure.says(already) => Err(failure.of_act(Repeat::Invisible)),
            _ => Ok(()),
        }
    }

    /// Whether the chat has moved, which is remembered.
    fn follows(&self, to: &Address, failure: &Failure) -> bool {
        match (to.chat.id.as_str().parse::<i64>(), failure.moved_to()) {
            (Ok(from), Some(there)) => {
                self.places.moves(from, there);
                true
            }
            _ => false,
        }
    }
}

/// Telegram would take the same bytes as a file.
fn is_about_the_form(failure: &Failure) -> bool {
    failure.is_about_the_picture() || failure.says(&["voice_messages_forbidden"])
}

fn no_longer_kept(files: &[FileRef]) -> String {
    let names: Vec<String> = files.iter().map(|file| markdown::literal(&file.name)).collect();
    format!("(no longer kept: {})", names.join(", "))
}
