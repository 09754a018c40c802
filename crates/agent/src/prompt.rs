//! From a transcript to what a model is asked. Equal transcripts make equal prompts.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use talaria_model::{CallId, Entry, EntryBody, FileRef, Owner, Shown, TurnId};

use crate::prefix::{Conversation, Seen};
use crate::{Attachments, History, Part, PromptMessage};

/// The most of a text file that is put before the model.
const TEXT_FILE: u64 = 100 * 1024;

/// The largest picture that is put before the model.
const PICTURE: u64 = 5 * 1024 * 1024;

/// About what a picture takes of a prompt, in characters.
pub(crate) const PICTURE_SIZE: usize = 5000;

/// What a model is told about a call that a restart cut off.
const INTERRUPTED: &str = "This call was interrupted and gave no result.";

/// What the model is told of files that are not of whoever said what they came with.
const OF_WHOM_IT_ANSWERS: &str =
    "[[The next file came with the message that this one answers, and is its author's]]";
const OF_WHAT_IT_SHOWS: &str =
    "[[The next file came with another message, which this one shows, and is its author's]]";

/// Whether a model can look at pictures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sight {
    /// Pictures are sent.
    Pictures,
    /// Pictures are named only.
    #[default]
    TextOnly,
}

impl Conversation {
    /// Adds what an entry says. Every call has its result right behind it, as providers demand, even
    /// where a turn was cut off.
    pub(crate) async fn add(&mut self, entry: &Entry, sight: Sight, attachments: &dyn Attachments) {
        if !is_visible(entry) {
            return;
        }
        // Nothing of a turn comes after another has begun.
        if self.turn != entry.turn {
            self.close(&[]);
            self.turn.clone_from(&entry.turn);
        }
        match &entry.body {
            EntryBody::Said { text, files, heard, .. } => {
                self.close(&[]);
                let mut parts = Vec::with_capacity(files.len() + 1);
                for file in files {
                    parts.extend(parts_of(file, sight, attachments).await);
                }
                parts.push(Part::Text(heard.as_ref().unwrap_or(text).clone()));
                self.messages.push(PromptMessage::User(parts));
            }
            EntryBody::Answered { text, calls, reasoning, .. } => {
                self.close(&[]);
                self.unanswered = calls.iter().map(|call| call.id.clone()).collect();
                self.messages.push(PromptMessage::Assistant {
                    text: text.clone(),
                    calls: calls.clone(),
                    reasoning: reasoning.clone(),
                });
            }
            EntryBody::Returned { call, output, failed, .. } => {
                // A result whose call is not in the window would not be understood.
                if let Some(place) = self.unanswered.iter().position(|waiting| waiting == call) {
                    self.unanswered.remove(place);
                    self.messages.push(PromptMessage::ToolResult {
                        call: call.clone(),
                        output: output.clone(),
                        failed: *failed,
                    });
                }
            }
            EntryBody::Summary { text, .. } => {
                self.close(&[]);
                let text = format!(
                    "[[What was said before, in your own summary]]\n\n{text}\n\n[[End of the summary]]"
                );
                self.messages.push(PromptMessage::User(vec![Part::Text(text)]));
            }
            EntryBody::Aside { .. } | EntryBody::Noticed { .. } => {}
        }
    }

    /// Says of calls without a result that they have none. Those in `open` are left, because they are
    /// about to be made.
    pub(crate) fn close(&mut self, open: &[CallId]) {
        for call in self.unanswered.drain(..).filter(|call| !open.contains(call)) {
            let output = INTERRUPTED.to_owned();
            self.messages.push(PromptMessage::ToolResult { call, output, failed: true });
        }
    }
}

/// Whether an entry is for the model.
fn is_visible(entry: &Entry) -> bool {
    !matches!(entry.body, EntryBody::Aside { .. } | EntryBody::Noticed { .. })
}

/// What tells these entries from others.
pub(crate) fn seen(entries: &[&Entry]) -> Vec<Seen> {
    entries.iter().map(|entry| Seen { number: entry.number, at: entry.at }).collect()
}

/// The entries that a prompt is made of, in their order in it: those that the newest summary stands
/// for are left out, and it stands in their place.
pub(crate) fn standing(entries: &[Entry]) -> Vec<&Entry> {
    let is_summary = |entry: &&Entry| matches!(entry.body, EntryBody::Summary { .. });
    let others = || entries.iter().filter(|entry| is_visible(entry) && !is_summary(entry));
    let newest = entries.iter().filter(is_summary).max_by_key(|entry| entry.number);
    let Some(summary) = newest else { return others().collect() };
    let EntryBody::Summary { after, upto, .. } = summary.body else { return others().collect() };
    let head = others().filter(|entry| entry.number <= after);
    let tail = others().filter(|entry| entry.number > upto);
    head.chain([summary]).chain(tail).collect()
}

/// What was said before a turn, and what is its own. A summary that it wrote is not: it stands for
/// what was before.
pub(crate) fn split<'a, 'b>(
    entries: &'b [&'a Entry],
    turn: &TurnId,
) -> (&'b [&'a Entry], &'b [&'a Entry]) {
    let is_ours = |entry: &&Entry| {
        entry.turn.as_ref() == Some(turn) && !matches!(entry.body, EntryBody::Summary { .. })
    };
    entries.split_at(entries.iter().position(is_ours).unwrap_or(entries.len()))
}

/// A file that came with something said, and in front of it that it is not of whoever said that.
pub(crate) async fn parts_of(
    file: &FileRef,
    sight: Sight,
    attachments: &dyn Attachments,
) -> impl Iterator<Item = Part> {
    let whose = match file.owner {
        Owner::Sender => None,
        Owner::Answered => Some(OF_WHOM_IT_ANSWERS),
        Owner::Shown => Some(OF_WHAT_IT_SHOWS),
    };
    let whose = whose.map(|whose| Part::Text(whose.to_owned()));
    whose.into_iter().chain([part(file, sight, attachments).await])
}

/// A file as the model sees it: the text, the picture, or at least its name.
pub(crate) async fn part(file: &FileRef, sight: Sight, attachments: &dyn Attachments) -> Part {
    if file.shown == Shown::Voice {
        return Part::Text(format!(
            "[Voice message: {}, {}, {} bytes; you cannot listen to it]",
            file.name, file.mime, file.size
        ));
    }
    let is_picture =
        matches!(file.mime.as_str(), "image/png" | "image/jpeg" | "image/gif" | "image/webp");
    if is_picture && sight == Sight::Pictures {
        if let Some(bytes) = attachments.load(file, PICTURE).await {
            let base64 = STANDARD.encode(bytes).into();
            return Part::Image { mime: file.mime.clone(), base64 };
        }
    } else if !is_picture
        && !is_sound(file)
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
/// cut, and neither is a summary with what stands before it. The cut moves in steps of many entries,
/// so that the prompt's beginning stays the same for many turns; that holds for entries whose
/// beginning is missing already, too.
pub(crate) fn fit<'a>(
    entries: Vec<&'a Entry>,
    turn: &TurnId,
    budget: usize,
    history: History,
) -> Vec<&'a Entry> {
    let summary = entries.iter().position(|entry| matches!(entry.body, EntryBody::Summary { .. }));
    let kept = summary.map_or(0, |place| place + 1);
    let (head, rest) = entries.split_at(kept);
    let taken: usize = head.iter().map(|entry| size(entry)).sum();
    // Even where a summary leaves no room, the newest words have to find some.
    let room = budget.saturating_sub(taken).max(budget / 4);
    let fitting = fitting(rest, room);
    let rest = match (fitting, history) {
        (0, History::Whole) => rest,
        (fitting, _) => &rest[cut(rest, turn, fitting)..],
    };
    head.iter().chain(rest).copied().collect()
}

/// The place from which on the entries fit.
fn fitting(entries: &[&Entry], mut room: usize) -> usize {
    let mut first = entries.len();
    while first > 0 {
        let size = size(entries[first - 1]);
        if size > room {
            break;
        }
        room -= size;
        first -= 1;
    }
    first
}

/// The place at which to cut, not before `first`: where somebody speaks, and rarely elsewhere than
/// the last time.
fn cut(entries: &[&Entry], turn: &TurnId, first: usize) -> usize {
    const STEP: u32 = 32;
    let is_ours = |entry: &&Entry| entry.turn.as_ref() == Some(turn);
    let ours = entries.iter().position(is_ours).unwrap_or(entries.len());
    let first = first.min(ours);
    let coarse = entries.get(first).map_or(u32::MAX, |entry| entry.number.next_multiple_of(STEP));
    let begins = |entry: &&Entry| matches!(entry.body, EntryBody::Said { .. });
    let at = entries[first..]
        .iter()
        .position(|entry| entry.number >= coarse && begins(entry))
        .or_else(|| entries[first..].iter().position(begins))
        .map_or(entries.len().saturating_sub(1), |offset| first + offset);
    at.min(ours)
}

/// About how many characters an entry takes of a prompt.
pub(crate) fn size(entry: &Entry) -> usize {
    match &entry.body {
        EntryBody::Said { text, files, heard, .. } => {
            // A text file is put before the model whole.
            let files: u64 = files.iter().map(file_size).sum();
            heard.as_ref().unwrap_or(text).len() + usize::try_from(files).unwrap_or(usize::MAX)
        }
        EntryBody::Answered { text, calls, reasoning, .. } => {
            let calls: usize = calls.iter().map(|call| call.arguments.len()).sum();
            text.len() + calls + reasoning.as_ref().map_or(0, String::len)
        }
        EntryBody::Returned { output, .. } => output.len(),
        EntryBody::Summary { text, .. } => text.len(),
        EntryBody::Aside { .. } | EntryBody::Noticed { .. } => 0,
    }
}

fn file_size(file: &FileRef) -> u64 {
    match file.mime.as_str() {
        mime if mime.starts_with("image/") => PICTURE_SIZE as u64,
        // Of what is only named, the name is all there is.
        _ if is_sound(file) => file.name.len() as u64,
        _ => file.size.min(TEXT_FILE),
    }
}

/// Whether a file is something to listen to or to watch, whatever its bytes look like.
fn is_sound(file: &FileRef) -> bool {
    let is_media = file.mime.starts_with("audio/") || file.mime.starts_with("video/");
    is_media || file.shown == Shown::Voice
}

/// The calls of the last step of this turn that have no result yet and can still get one: a result
/// stands right behind its call, so not after something else was said.
pub(crate) fn open_calls(entries: &[&Entry]) -> Vec<talaria_model::ToolCall> {
    let Some(last) = entries.iter().rposition(
        |entry| matches!(&entry.body, EntryBody::Answered { calls, .. } if !calls.is_empty()),
    ) else {
        return Vec::new();
    };
    let EntryBody::Answered { calls, .. } = &entries[last].body else { return Vec::new() };
    let goes_on =
        |entry: &&Entry| matches!(entry.body, EntryBody::Said { .. } | EntryBody::Answered { .. });
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
