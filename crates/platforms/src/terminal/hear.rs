//! What a person does at a terminal, on its way into the journal.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use talaria_model::{
    ChatId, EventId, Inbound, InboundKind, Message, MessageId, Sender, SenderId, Source,
};
use talaria_platform::{Ack, Arrival, Batch, FileError, Verdict};
use tokio::sync::oneshot;

use super::Desk;
use super::audience::Line;
use super::refusal::Refusal;
use super::wire::{
    Doing, Event, FILES_PER_MESSAGE, Heard, LONGEST_TEXT, Press, Said, Say, Stop,
    is_conversation_name,
};

/// How long a terminal waits for the commit before it is told to send the same again.
const COMMIT_WITHIN: Duration = Duration::from_secs(2);

/// The conversation that an address names.
pub(super) type Conversation = Result<Path<String>, PathRejection>;

type Body<T> = Result<Json<T>, JsonRejection>;

pub(super) async fn say(
    State(desk): State<Arc<Desk>>,
    conversation: Conversation,
    body: Body<Say>,
) -> Result<Json<Heard>, Refusal> {
    let (chat, Json(Say { id, text, files })) = (named(conversation)?, body?);
    if text.trim().is_empty() && files.is_empty() {
        return Err(Refusal::Malformed("there is nothing in this message"));
    }
    if text.len() > LONGEST_TEXT {
        return Err(Refusal::TooLarge("the message is too long"));
    }
    if files.len() > FILES_PER_MESSAGE {
        return Err(Refusal::TooLarge("too many files in one message"));
    }
    for file in &files {
        // A message must not refer to what is not there.
        match desk.files.read(&file.id).await {
            Ok(_) => {}
            Err(FileError::Missing) => {
                return Err(Refusal::Malformed("a file of this message is not here"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let message = MessageId::new(id.as_str()).ok();
    let said = Message { id: message, text, files, ..Message::default() };
    desk.hear(chat, id, InboundKind::Said(said)).await
}

pub(super) async fn press(
    State(desk): State<Arc<Desk>>,
    conversation: Conversation,
    body: Body<Press>,
) -> Result<Json<Heard>, Refusal> {
    let (chat, Json(Press { id, choice })) = (named(conversation)?, body?);
    desk.hear(chat, id, InboundKind::Pressed(choice)).await
}

pub(super) async fn stop(
    State(desk): State<Arc<Desk>>,
    conversation: Conversation,
    body: Body<Stop>,
) -> Result<Json<Heard>, Refusal> {
    let (chat, Json(Stop { id })) = (named(conversation)?, body?);
    desk.hear(chat, id, InboundKind::Stopped).await
}

/// The chat of that name.
pub(super) fn named(conversation: Conversation) -> Result<ChatId, Refusal> {
    let Path(name) = conversation?;
    let name = Some(name).filter(|name| is_conversation_name(name));
    name.and_then(|name| ChatId::new(name).ok())
        .ok_or(Refusal::Malformed("a conversation cannot have that name"))
}

impl Desk {
    /// Hands an event to the gateway and waits until it is on disk.
    async fn hear(
        self: &Arc<Self>,
        chat: ChatId,
        id: EventId,
        kind: InboundKind,
    ) -> Result<Json<Heard>, Refusal> {
        let inbound = Inbound {
            id,
            at: self.clock.now(),
            // Whoever reaches the socket is the operator; there is nobody else to be.
            from: Sender::new(SenderId::literal("operator")),
            to: self.address(chat),
            source: Source::default(),
            kind,
        };
        let (told, verdict) = oneshot::channel();
        let (desk, echo) = (self.clone(), inbound.clone());
        let ack = Ack::with(move |committed| {
            let verdict = committed.0.into_iter().next();
            // The other terminals are told here and not after the wait below, which may have been
            // given up by then.
            if let Some(Verdict::Journalled(_)) = verdict {
                desk.echo(echo);
            }
            let _ = told.send(verdict);
        });
        let batch = Batch { events: vec![inbound], cursor: None, ack };
        let stored = async {
            self.heard.send(Arrival::Batch(batch)).await.ok()?;
            verdict.await.ok().flatten()
        };
        let verdict = tokio::select! {
            verdict = stored => verdict,
            () = self.clock.sleep(COMMIT_WITHIN) => None,
        };
        match verdict {
            Some(Verdict::Journalled(_)) => Ok(Json(Heard::Recorded)),
            Some(Verdict::Repeated) => Ok(Json(Heard::Repeated)),
            Some(Verdict::Denied) => Err(Refusal::Forbidden),
            None => Err(Refusal::TryAgain("it could not be stored yet")),
        }
    }

    /// Shows what was said at one terminal to the others.
    fn echo(&self, inbound: Inbound) {
        let Inbound { id, to, kind: InboundKind::Said(Message { text, files, .. }), .. } = inbound
        else {
            return;
        };
        let said = Event::Said(Said { id: Some(id), position: None, text, files });
        if let Some(line) = Line::of(&said, Doing::Busy) {
            self.audience.tell(&to.chat.id, &line);
        }
    }
}
