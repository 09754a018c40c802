//! What a message consists of besides its text: files that are named, and everything else as a short
//! line in brackets.

use serde_json::Value;
use talaria_model::{Media, MediaKind, Owner};

use super::api::{File, Location, Message, PhotoSize, Sticker};

/// The longest text that is taken from a message of blocks.
const LONGEST_RICH: usize = 64 * 1024;

/// The files of a message. They stay where they are.
pub(super) fn media(message: &Message) -> Option<Media> {
    // An animation is sent as a document, too, and a moving photo as a photo.
    if let Some(animation) = &message.animation {
        return Some(file(animation, MediaKind::Animation));
    }
    if let Some(photo) = largest(&message.photo) {
        return Some(Media {
            handle: photo.file_id.clone(),
            kind: MediaKind::Photo,
            name: None,
            mime: Some("image/jpeg".into()),
            size: photo.file_size,
            owner: Owner::default(),
        });
    }
    if let Some(sticker) = &message.sticker {
        return Some(drawn(sticker));
    }
    let files = [
        (&message.video, MediaKind::Video),
        (&message.video_note, MediaKind::Video),
        (&message.voice, MediaKind::Voice),
        (&message.audio, MediaKind::Audio),
        (&message.document, MediaKind::Document),
    ];
    files.into_iter().find_map(|(found, kind)| found.as_ref().map(|found| file(found, kind)))
}

fn largest(sizes: &[PhotoSize]) -> Option<&PhotoSize> {
    sizes.iter().max_by_key(|size| size.width.saturating_mul(size.height))
}

fn file(file: &File, kind: MediaKind) -> Media {
    let usual = match kind {
        MediaKind::Voice => Some("audio/ogg"),
        MediaKind::Video | MediaKind::Animation => Some("video/mp4"),
        _ => None,
    };
    // A picture that was sent as a file is still a picture.
    let is_picture = |mime: &str| mime.starts_with("image/") && !mime.contains("svg");
    let kind = match (kind, file.mime_type.as_deref()) {
        (MediaKind::Document, Some(mime)) if is_picture(mime) => MediaKind::Photo,
        (kind, _) => kind,
    };
    Media {
        handle: file.file_id.clone(),
        kind,
        name: file.file_name.clone(),
        mime: file.mime_type.clone().or(usual.map(str::to_owned)),
        size: file.file_size,
        owner: Owner::default(),
    }
}

fn drawn(sticker: &Sticker) -> Media {
    let mime = match (sticker.is_animated, sticker.is_video) {
        (true, _) => "application/x-tgsticker",
        (_, true) => "video/webm",
        _ => "image/webp",
    };
    Media {
        handle: sticker.file_id.clone(),
        kind: MediaKind::Sticker,
        name: None,
        mime: Some(mime.into()),
        size: sticker.file_size,
        owner: Owner::default(),
    }
}

/// What a message says that has no text: the emoji of a sticker, the words of blocks, or a line in
/// brackets. None for a message that says nothing to anybody.
pub(super) fn said(message: &Message) -> Option<String> {
    if let Some(rich) = &message.rich_message {
        return Some(flat(rich));
    }
    if let Some(sticker) = &message.sticker {
        return Some(sticker.emoji.clone().unwrap_or_default());
    }
    if let Some(venue) = &message.venue {
        let place = message.location.as_ref().map(|at| format!(" ({})", point(at)));
        let place = place.unwrap_or_default();
        return Some(format!("[venue: {}, {}{place}]", venue.title, venue.address));
    }
    if let Some(location) = &message.location {
        return Some(format!("[location: {}]", point(location)));
    }
    if let Some(contact) = &message.contact {
        let last = contact.last_name.as_deref().map(|last| format!(" {last}")).unwrap_or_default();
        return Some(format!("[contact: {}{last}, {}]", contact.first_name, contact.phone_number));
    }
    if let Some(poll) = &message.poll {
        let options: Vec<&str> = poll.options.iter().map(|option| option.text.as_str()).collect();
        return Some(format!("[poll: {} ({})]", poll.question, options.join("; ")));
    }
    if let Some(dice) = &message.dice {
        return Some(format!("[dice: {} {}]", dice.emoji, dice.value));
    }
    if let Some(checklist) = &message.checklist {
        let tasks: Vec<&str> = checklist.tasks.iter().map(|task| task.text.as_str()).collect();
        return Some(format!("[checklist: {} ({})]", checklist.title, tasks.join("; ")));
    }
    if let Some(game) = &message.game {
        return Some(format!("[game: {}]", game.title));
    }
    if let Some(invoice) = &message.invoice {
        return Some(format!("[invoice: {}]", invoice.title));
    }
    let named = [
        (message.story.is_some(), "[story]"),
        (message.paid_media.is_some(), "[paid media]"),
        (message.giveaway.is_some(), "[giveaway]"),
    ];
    named.into_iter().find_map(|(there, line)| there.then(|| line.to_owned()))
}

/// What kind of file it is, for a message that is quoted.
pub(super) fn named(media: &Media) -> String {
    let kind = match media.kind {
        MediaKind::Photo => "photo",
        MediaKind::Video => "video",
        MediaKind::Animation => "animation",
        MediaKind::Audio => "audio",
        MediaKind::Voice => "voice message",
        MediaKind::Sticker => "sticker",
        MediaKind::Document => "document",
    };
    match &media.name {
        Some(name) => format!("[{kind}: {name}]"),
        None => format!("[{kind}]"),
    }
}

fn point(at: &Location) -> String {
    format!("{}, {}", at.latitude, at.longitude)
}

/// The words of a message of blocks, one block a line.
fn flat(rich: &Value) -> String {
    let mut lines = Vec::new();
    blocks(&rich["blocks"], &mut lines);
    let mut text = lines.join("\n");
    text.truncate(text.floor_char_boundary(LONGEST_RICH));
    text
}

fn blocks(blocks: &Value, lines: &mut Vec<String>) {
    for block in blocks.as_array().into_iter().flatten() {
        let words = ["summary", "text", "expression"].map(|field| inline(&block[field])).concat();
        lines.extend(Some(words).filter(|words| !words.is_empty()));
        for item in block["items"].as_array().into_iter().flatten() {
            let first = lines.len();
            self::blocks(&item["blocks"], lines);
            if let (Some(line), Some(label)) = (lines.get_mut(first), item["label"].as_str()) {
                line.insert_str(0, &format!("{label} "));
            }
        }
        self::blocks(&block["blocks"], lines);
        for row in block["cells"].as_array().into_iter().flatten() {
            let cells = row.as_array().into_iter().flatten().map(|cell| inline(&cell["text"]));
            lines.push(cells.collect::<Vec<_>>().join(" | "));
        }
        for below in ["caption", "credit"] {
            let words = inline(&block[below]);
            lines.extend(Some(words).filter(|words| !words.is_empty()));
        }
    }
}

/// Running text: a string, several of them, or one with a form.
fn inline(text: &Value) -> String {
    match text {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(inline).collect(),
        Value::Object(formed) => {
            let shown = ["text", "alternative_text", "expression"];
            let shown: String =
                shown.iter().filter_map(|field| formed.get(*field)).map(inline).collect();
            match formed.get("url").and_then(Value::as_str) {
                Some(url) if url != shown => format!("{shown} ({url})"),
                _ => shown,
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
