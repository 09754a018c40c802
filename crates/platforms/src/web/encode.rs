//! Acts and entries as the page reads them.
//!
//! Text that the agent wrote goes out as HTML made by `render`, which is safe to insert, and as the
//! Markdown it came from, for copying. Text that a person typed goes out as it is, for the page to
//! show as text.

use serde::Serialize;
use talaria_model::{
    CallId, ChatId, Choice, ChoiceId, Content, EntryBody, EventId, FileRef, Inbound, InboundKind,
    MessageId, OutboundId, Timestamp,
};
use talaria_platform::Recorded;
use talaria_render::markdown;

/// How much of a tool's arguments and output the page is shown.
const TOOL_EXCERPT: usize = 4000;

/// What an open page is told.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum PageEvent {
    /// The stream is open. Read everything again: what happened before is not told.
    Hello,
    /// Something was missed. Read everything again.
    Resync,
    /// Nothing happened, and the connection works.
    Alive,
    /// An answer as far as it has grown, and what the agent does when it is not writing.
    Draft {
        conversation: ChatId,
        delivery: String,
        html: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        doing: Option<String>,
    },
    /// We said something.
    Posted {
        conversation: ChatId,
        id: String,
        at: Timestamp,
        #[serde(flatten)]
        spoken: Spoken,
    },
    /// Something we said has changed.
    Edited {
        conversation: ChatId,
        id: MessageId,
        #[serde(flatten)]
        spoken: Spoken,
    },
    /// Something we said is gone.
    Deleted { conversation: ChatId, id: MessageId },
    /// A person said something, here or on another page.
    Said { conversation: ChatId, id: EventId, at: Timestamp, text: String, files: Vec<FileRef> },
    /// A person chose an answer, here or on another page.
    Pressed { conversation: ChatId, choice: ChoiceId },
    /// A person asked for the turn to stop, here or on another page.
    Stopped { conversation: ChatId },
    /// An answer is being worked on.
    Typing { conversation: ChatId },
}

/// Something we say.
#[derive(Debug, Serialize)]
pub(super) struct Spoken {
    /// The delivery, the same for its drafts, all its parts and its entry in the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery: Option<String>,
    html: String,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileRef>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    choices: Vec<Choice>,
}

/// One entry of the history.
#[derive(Debug, Serialize)]
pub(super) struct Item {
    position: u64,
    at: Timestamp,
    #[serde(flatten)]
    body: ItemBody,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum ItemBody {
    /// A person spoke. The id is the one that the page gave it.
    Said {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<MessageId>,
        text: String,
        files: Vec<FileRef>,
    },
    /// We spoke, called tools, or both.
    Posted {
        #[serde(flatten)]
        spoken: Spoken,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Call>,
    },
    /// A tool returned.
    Returned { call: CallId, output: String, failed: bool },
    /// The agent reads a summary in place of what is older.
    Summarised,
    /// Nothing was said. It keeps its place, because a page counts what it is sent.
    Withheld,
}

/// A tool that was used.
#[derive(Debug, Serialize)]
struct Call {
    id: CallId,
    tool: String,
    arguments: String,
}

impl PageEvent {
    pub(super) fn posted(
        conversation: &ChatId,
        id: &OutboundId,
        content: &Content,
        at: Timestamp,
    ) -> Self {
        let spoken = Spoken::of(Some(delivery(id)), content);
        Self::Posted { conversation: conversation.clone(), id: id.to_string(), at, spoken }
    }

    pub(super) fn edited(conversation: &ChatId, id: &MessageId, content: &Content) -> Self {
        let spoken = Spoken::of(None, content);
        Self::Edited { conversation: conversation.clone(), id: id.clone(), spoken }
    }

    pub(super) fn deleted(conversation: &ChatId, id: &MessageId) -> Self {
        Self::Deleted { conversation: conversation.clone(), id: id.clone() }
    }

    /// An answer that was growing comes to nothing.
    pub(super) fn undrafted(conversation: &ChatId, id: &OutboundId) -> Self {
        Self::Draft {
            conversation: conversation.clone(),
            delivery: delivery(id),
            html: String::new(),
            doing: None,
        }
    }

    pub(super) fn typing(conversation: &ChatId) -> Self {
        Self::Typing { conversation: conversation.clone() }
    }

    /// What a person did, for the other pages.
    pub(super) fn heard(inbound: &Inbound) -> Self {
        let conversation = inbound.to.chat.id.clone();
        match &inbound.kind {
            InboundKind::Said(message) | InboundKind::Edited(message) => Self::Said {
                conversation,
                id: inbound.id.clone(),
                at: inbound.at,
                text: message.text.clone(),
                files: message.files.clone(),
            },
            InboundKind::Pressed(choice) => Self::Pressed { conversation, choice: choice.clone() },
            InboundKind::Stopped => Self::Stopped { conversation },
        }
    }
}

impl Spoken {
    fn of(delivery: Option<String>, content: &Content) -> Self {
        Self {
            delivery,
            html: html(&markdown(&content.text, content.reading)),
            text: markdown(&content.text, content.reading).into_owned(),
            files: content.files.clone(),
            choices: content.choices.clone(),
        }
    }
}

impl From<Recorded> for Item {
    fn from(Recorded { position, entry }: Recorded) -> Self {
        let body = match entry.body {
            EntryBody::Said { text, files, message, .. }
            | EntryBody::Aside { text, files, message, .. } => {
                ItemBody::Said { id: message, text, files }
            }
            EntryBody::Answered { calls, sent: None, .. } if calls.is_empty() => ItemBody::Withheld,
            EntryBody::Answered { text, files, calls, sent, .. } => {
                let calls = calls.into_iter().map(|call| Call {
                    id: call.id,
                    tool: call.tool,
                    arguments: excerpt(call.arguments),
                });
                let content = Content { text, files, ..Content::default() };
                let spoken = Spoken::of(sent.as_ref().map(delivery), &content);
                ItemBody::Posted { spoken, calls: calls.collect() }
            }
            EntryBody::Noticed { text, choices, files, sent } => {
                let content = Content { text, choices, files, ..Content::default() };
                let spoken = Spoken::of(Some(delivery(&sent)), &content);
                ItemBody::Posted { spoken, calls: Vec::new() }
            }
            EntryBody::Returned { call, output, failed, .. } => {
                ItemBody::Returned { call, output: excerpt(output), failed }
            }
            EntryBody::Summary { .. } => ItemBody::Summarised,
        };
        Self { position, at: entry.at, body }
    }
}

/// What all drafts and parts of one delivery have in common.
pub(super) fn delivery(id: &OutboundId) -> String {
    format!("{}/{}", id.session, id.delivery)
}

/// Markdown as HTML that is safe to insert into the page.
pub(super) fn html(markdown: &str) -> String {
    talaria_render::html(&talaria_render::parse(markdown))
}

fn excerpt(mut text: String) -> String {
    if text.len() > TOOL_EXCERPT {
        text.truncate(text.floor_char_boundary(TOOL_EXCERPT));
        text.push('…');
    }
    text
}
