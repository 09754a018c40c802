//! From a transcript to what a model is asked. Equal transcripts make equal prompts.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use talaria_model::{CallId, Entry, EntryBody, FileRef, TurnId};

use crate::{Attachments, Part, PromptMessage};

/// The most of a text file that is put before the model.
const TEXT_FILE: u64 = 64 * 1024;

/// The largest picture that is put before the model.
const PICTURE: u64 = 5 * 1024 * 1024;

/// What a model is told about a call that a restart cut off.
const INTERRUPTED: &str = "This call was interrupted and gave no result.";

/// Whether a model can look at pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Pictures are sent.
    Pictures,
    /// Pictures are named only.
    TextOnly,
}

/// The conversation as messages. Every call has its result right behind it, as providers demand,
/// even where a turn was cut off. The calls in `open` are left without, because they are about to
/// be made.
pub(crate) async fn messages(
    entries: &[Entry],
    open: &[CallId],
    sight: Sight,
    attachments: &dyn Attachments,
) -> Vec<PromptMessage> {
    let mut messages = Vec::with_capacity(entries.len());
    let mut unanswered: Vec<CallId> = Vec::new();
    for entry in entries {
        match &entry.body {
            EntryBody::Said { text, files, .. } => {
                close(&mut unanswered, &[], &mut messages);
                let mut parts = vec![Part::Text(text.clone())];
                for file in files {
                    parts.push(part(file, sight, attachments).await);
                }
                messages.push(PromptMessage::User(parts));
            }
            EntryBody::Answered { text, calls, reasoning, .. } => {
                close(&mut unanswered, &[], &mut messages);
                unanswered = calls.iter().map(|call| call.id.clone()).collect();
                messages.push(PromptMessage::Assistant {
                    text: text.clone(),
                    calls: calls.clone(),
                    reasoning: reasoning.clone(),
                });
            }
            EntryBody::Returned { call, output, failed, .. } => {
                // A result whose call is not in the window would not be understood.
                if let Some(place) = unanswered.iter().position(|waiting| waiting == call) {
                    unanswered.remove(place);
                    messages.push(PromptMessage::ToolResult {
                        call: call.clone(),
                        output: output.clone(),
                        failed: *failed,
                    });
                }
            }
            EntryBody::Aside { .. } | EntryBody::Noticed { .. } => {}
        }
    }
    close(&mut unanswered, open, &mut messages);
    messages
}

fn close(unanswered: &mut Vec<CallId>, open: &[CallId], messages: &mut Vec<PromptMessage>) {
    for call in unanswered.drain(..).filter(|call| !open.contains(call)) {
        let output = INTERRUPTED.to_owned();
        messages.push(PromptMessage::ToolResult { call, output, failed: true });
    }
}

/// A file as the model sees it: the text, the picture, or at least its name.
pub(crate) async fn part(file: &FileRef, sight: Sight, attachments: &dyn Attachments) -> Part {
    let is_picture =
        matches!(file.mime.as_str(), "image/png" | "image/jpeg" | "image/gif" | "image/webp");
    if is_picture && sight == Sight::Pictures {
        if let Some(bytes) = attachments.load(file, PICTURE).await {
            let base64 = STANDARD.encode(bytes).into();
            return Part::Image { mime: file.mime.clone(), base64 };
        }
    } else if !is_picture
        && let Some(bytes) = attachments.load(file, TEXT_FILE).await
        && let Ok(text) = String::from_utf8(bytes)
        && !text.contains('\0')
    {
        let fence = fence_for(&text);
        return Part::Text(format!("Attached file `{}`:\n\n{fence}\n{text}\n{fence}", file.name));
    }
    Part::Text(format!(
        "[Attached file: {}, {}, {} bytes; its content cannot be shown to you]",
        file.name, file.mime, file.size
    ))
}

/// A fence that the text cannot close.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat((longest + 1).max(3))
}

/// Drops the oldest exchanges until the rest fits into `budget` characters. The turn itself is never
/// cut. The cut moves in steps of many entries, so that the prompt's beginning stays the same for
/// many turns; that holds for entries whose beginning is missing already, too.
pub(crate) fn fit<'a>(entries: &'a [Entry], turn: &TurnId, budget: usize) -> &'a [Entry] {
    const STEP: u32 = 32;
    let is_ours = |entry: &Entry| entry.turn.as_ref() == Some(turn);
    let ours = entries.iter().position(is_ours).unwrap_or(entries.len());
    let mut room = budget;
    let mut first = entries.len();
    while first > 0 {
        let size = size(&entries[first - 1]);
        if size > room {
            break;
        }
        room -= size;
        first -= 1;
    }
    let is_whole = entries.first().is_none_or(|entry| entry.number == 1);
    if first == 0 && is_whole {
        return entries;
    }
    let first = first.min(ours);
    let coarse = entries.get(first).map_or(u32::MAX, |entry| entry.number.next_multiple_of(STEP));
    let begins = |entry: &Entry| matches!(entry.body, EntryBody::Said { .. });
    let at = entries[first..]
        .iter()
        .position(|entry| entry.number >= coarse && begins(entry))
        .or_else(|| entries[first..].iter().position(begins))
        .map_or(entries.len().saturating_sub(1), |offset| first + offset);
    &entries[at.min(ours)..]
}

fn size(entry: &Entry) -> usize {
    match &entry.body {
        EntryBody::Said { text, files, .. } => {
            // A text file is put before the model whole; a picture costs about as much as this.
            let files: u64 = files.iter().map(|file| file.size.min(TEXT_FILE)).sum();
            text.len() + usize::try_from(files).unwrap_or(usize::MAX)
        }
        EntryBody::Answered { text, calls, reasoning, .. } => {
            let calls: usize = calls.iter().map(|call| call.arguments.len()).sum();
            text.len() + calls + reasoning.as_ref().map_or(0, String::len)
        }
        EntryBody::Returned { output, .. } => output.len(),
        EntryBody::Aside { .. } | EntryBody::Noticed { .. } => 0,
    }
}

/// The calls of the last step of this turn that have no result yet and can still get one: a result
/// stands right behind its call, so not after something else was said.
pub(crate) fn open_calls(entries: &[Entry]) -> Vec<talaria_model::ToolCall> {
    let Some(last) = entries.iter().rposition(
        |entry| matches!(&entry.body, EntryBody::Answered { calls, .. } if !calls.is_empty()),
    ) else {
        return Vec::new();
    };
    let EntryBody::Answered { calls, .. } = &entries[last].body else { return Vec::new() };
    let goes_on =
        |entry: &Entry| matches!(entry.body, EntryBody::Said { .. } | EntryBody::Answered { .. });
    if entries[last + 1..].iter().any(goes_on) {
        return Vec::new();
    }
    let returned: BTreeSet<&CallId> = entries[last..]
        .iter()
        .filter_map(|entry| match &entry.body {
            EntryBody::Returned { call, .. } => Some(call),
            _ => None,
        })
        .collect();
    calls.iter().filter(|call| !returned.contains(&call.id)).cloned().collect()
}
