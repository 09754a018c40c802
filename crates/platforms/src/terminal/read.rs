//! What a terminal reads: the conversations, what was said in one, and what happens in it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use http::header;
use serde::Deserialize;
use talaria_model::{Address, Content, Entry, EntryBody, EventId, Extent, OutboundId};
use talaria_platform::{ArchiveError, Recorded};

use super::Desk;
use super::audience::{Attached, Line};
use super::hear::{Conversation, named};
use super::refusal::Refusal;
use super::wire::{Doing, Event, Kind, LONGEST_HISTORY, Listed, PROTOCOL, Posted, Said};

/// Conversations that are listed.
const CONVERSATIONS: usize = 200;

/// Entries among which the one of a delivery is looked for. It was recorded in the same commit, so
/// it is among the newest.
const RECENT: usize = 32;

/// How often a busy conversation is looked at. A turn may end without saying anything more.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How much of the past to begin with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Past {
    #[serde(default)]
    history: usize,
}

pub(super) async fn conversations(
    State(desk): State<Arc<Desk>>,
) -> Result<Json<Vec<Listed>>, Refusal> {
    let conversations = desk.archive.conversations(CONVERSATIONS).await?;
    Ok(Json(conversations.into_iter().map(Listed::from).collect()))
}

/// The newest entries, a hello, and then everything that happens, a line each.
pub(super) async fn stream(
    State(desk): State<Arc<Desk>>,
    conversation: Conversation,
    past: Result<Query<Past>, QueryRejection>,
) -> Result<Response, Refusal> {
    let (chat, Query(Past { history })) = (named(conversation)?, past?);
    // Attached first: what is said while the past is read comes twice, and never not at all.
    let attached =
        desk.audience.attach(&chat).ok_or(Refusal::TryAgain("too many terminals are attached"))?;
    let at = desk.address(chat);
    let doing = desk.doing(&at).await?.unwrap_or(Doing::Idle);
    if doing == Doing::Idle {
        desk.audience.idle(&at.chat.id);
    }
    let past = match history.min(LONGEST_HISTORY) {
        0 => Vec::new(),
        limit => desk.archive.history(&at, None, limit).await?,
    };
    let hello = Event::Hello { protocol: PROTOCOL, doing };
    let newest = past.len().saturating_sub(1);
    let opening: Vec<Bytes> = past
        .into_iter()
        .enumerate()
        // After everything but the newest, the conversation went on.
        .filter_map(|(index, entry)| {
            remembered(entry, if index == newest { doing } else { Doing::Idle })
        })
        .chain([hello])
        .filter_map(|event| Line::of(&event, doing))
        .map(|line| line.bytes)
        .collect();
    let listener = Listener { desk, at, attached, doing };
    let live = stream::unfold(listener, |mut listener| async {
        let bytes = listener.next().await?;
        Some((bytes, listener))
    });
    let lines = stream::iter(opening).chain(live).map(Ok::<_, std::convert::Infallible>);
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((headers, Body::from_stream(lines)).into_response())
}

/// One attached terminal.
struct Listener {
    desk: Arc<Desk>,
    at: Address,
    attached: Attached,
    doing: Doing,
}

impl Listener {
    /// The next line, or `None` once there is nothing more to wait for here.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let line = tokio::select! {
                // In this order, an answer is never followed by a draft of itself.
                biased;
                line = self.attached.queue.recv() => line?,
                // The account was disconnected; another desk may be open when the terminal returns.
                () = self.desk.heard.closed() => return None,
                _ = self.attached.draft.changed() => {
                    let draft = self.attached.draft.borrow_and_update().clone();
                    let Some(draft) = draft else { continue };
                    draft.line
                }
                () = self.desk.clock.sleep(LOOK_EVERY), if self.doing == Doing::Busy => {
                    match self.desk.doing(&self.at).await {
                        Ok(Some(Doing::Idle)) => {
                            Line::of(&Event::Turned { doing: Doing::Idle }, Doing::Idle)?
                        }
                        // Something was said, and nobody has looked at it yet.
                        Ok(None) => continue,
                        Ok(Some(Doing::Busy)) | Err(_) => continue,
                    }
                }
            };
            self.doing = line.doing;
            return Some(line.bytes);
        }
    }
}

impl Desk {
    /// What a conversation is doing, if it has begun.
    pub(super) async fn doing(&self, at: &Address) -> Result<Option<Doing>, ArchiveError> {
        let conversations = self.archive.conversations(CONVERSATIONS).await?;
        let found = conversations.into_iter().find(|conversation| conversation.at == *at);
        Ok(found.map(|conversation| Listed::from(conversation).doing))
    }

    /// What is posted, with what the past already knows about it.
    pub(super) async fn posted(&self, at: &Address, id: &OutboundId, content: &Content) -> Posted {
        // Unread means busy: the listener looks again.
        let doing = self.doing(at).await.map_or(Doing::Busy, |doing| doing.unwrap_or(Doing::Idle));
        let recent = self.archive.history(at, None, RECENT).await.unwrap_or_default();
        let entry = recent.into_iter().rev().map(|recorded| recorded.entry);
        let kind = match entry.into_iter().find(|entry| was_sent_as(entry, id)) {
            _ if !content.choices.is_empty() => Kind::Question,
            Some(entry) => kind_of(&entry, doing),
            None => Kind::Answer,
        };
        Posted {
            id: Some(id.clone()),
            position: None,
            kind,
            text: talaria_render::markdown(&content.text, content.reading).into_owned(),
            files: content.files.clone(),
            choices: content.choices.clone(),
            doing,
        }
    }
}

impl From<talaria_platform::Conversation> for Listed {
    fn from(conversation: talaria_platform::Conversation) -> Self {
        let talaria_platform::Conversation { at, title, updated, busy } = conversation;
        let doing = if busy { Doing::Busy } else { Doing::Idle };
        Self { id: at.chat.id, title, updated, doing }
    }
}

fn was_sent_as(entry: &Entry, id: &OutboundId) -> bool {
    let sent = match &entry.body {
        EntryBody::Answered { sent, .. } => sent.as_ref(),
        EntryBody::Noticed { sent, .. } => Some(sent),
        EntryBody::Said { .. }
        | EntryBody::Aside { .. }
        | EntryBody::Returned { .. }
        | EntryBody::Summary { .. } => None,
    };
    // All parts of a delivery belong to one entry.
    sent.is_some_and(|sent| sent.session == id.session && sent.delivery == id.delivery)
}

/// What kind of thing an entry is. Inside a turn, the gateway speaks for itself only to ask, and
/// then the turn goes on, or to say why the turn is over.
fn kind_of(entry: &Entry, after: Doing) -> Kind {
    match (&entry.body, &entry.turn, after) {
        (EntryBody::Noticed { choices, .. }, _, _) if !choices.is_empty() => Kind::Question,
        (EntryBody::Noticed { .. }, Some(_), Doing::Busy) => Kind::Question,
        (EntryBody::Noticed { .. }, Some(_), Doing::Idle) => Kind::Failure,
        (EntryBody::Noticed { .. }, None, _) => Kind::Notice,
        (EntryBody::Answered { extent: Extent::BrokenOff, .. }, _, _) => Kind::Failure,
        _ => Kind::Answer,
    }
}

/// An entry as a terminal shows it. `None` for what only the model reads, and for an answer that was
/// withheld.
fn remembered(Recorded { position, entry }: Recorded, doing: Doing) -> Option<Event> {
    let kind = kind_of(&entry, doing);
    let position = Some(position);
    match entry.body {
        EntryBody::Said { text, files, message, .. }
        | EntryBody::Aside { text, files, message, .. } => {
            let id = message.and_then(|message| EventId::new(message.as_str()).ok());
            Some(Event::Said(Said { id, position, text, files }))
        }
        EntryBody::Answered { text, files, sent, .. } => {
            let shown = sent.is_some() && !(text.trim().is_empty() && files.is_empty());
            let choices = Vec::new();
            let posted = Posted { id: sent, position, kind, text, files, choices, doing };
            shown.then_some(Event::Posted(posted))
        }
        EntryBody::Noticed { text, choices, files, sent } => Some(Event::Posted(Posted {
            id: Some(sent),
            position,
            kind,
            text,
            files,
            choices,
            doing,
        })),
        EntryBody::Returned { .. } | EntryBody::Summary { .. } => None,
    }
}
