//! What we do, as Discord takes it. Pure.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use talaria_model::{AccountId, Choice, Content, Notify, OutboundId, Reading};
use talaria_render::{Dialect, read, render};

use super::settings::{LinkPreviews, Mentions};

/// The longest message, in characters.
pub(crate) const LONGEST: usize = 2000;

/// How many files fit into one message.
pub(crate) const FILES: usize = 10;

/// How many bytes of files are put into one request; Discord takes 25 MiB in all.
pub(crate) const REQUEST: u64 = 24 * 1024 * 1024;

const ROW: usize = 5;
const LABEL: usize = 80;
const TITLE: usize = 100;

/// As in https://docs.discord.com/developers/resources/message#message-object-message-flags.
mod flag {
    pub(super) const NO_PREVIEWS: u64 = 1 << 2;
    pub(super) const SILENT: u64 = 1 << 12;
    pub(super) const VOICE: u64 = 1 << 13;
}

/// What a message says, as it is sent. Discord refuses no mark, but it counts the signs that keep it from
/// reading one: a text that does not fit with them goes without.
pub(crate) fn words(content: &Content) -> String {
    let words = render(&read(&content.text, content.reading), Dialect::Discord).text;
    match content.reading {
        Reading::AsItIs if words.chars().count() > LONGEST => content.text.clone(),
        Reading::AsItIs | Reading::Markdown => words,
    }
}

/// Makes a repeat recognisable. It is the same for every try of the same act, whatever its words: an
/// answer that follows a preview of which nobody knows is handed the preview, and takes its place. It is
/// another one where the message was taken away: Discord remembers a nonce longer than its message.
pub(crate) fn nonce(account: &AccountId, id: &OutboundId, request: usize, anew: u32) -> String {
    let mut digest = Sha256::new();
    for piece in [account.as_str(), &id.to_string(), &format!("{request}.{anew}")] {
        digest.update((piece.len() as u64).to_le_bytes());
        digest.update(piece);
    }
    // At most 25 characters are allowed.
    BASE64_URL_SAFE_NO_PAD.encode(&digest.finalize()[..18])
}

/// Whom a message may notify. Left out, Discord would notify everybody who is named in it.
pub(crate) fn allowed(mentions: &Mentions) -> Value {
    let kinds =
        [(mentions.everyone, "everyone"), (mentions.roles, "roles"), (mentions.users, "users")];
    let parse: Vec<&str> = kinds.iter().filter(|(on, _)| *on).map(|(_, kind)| *kind).collect();
    json!({ "parse": parse, "replied_user": mentions.replied_user })
}

/// Buttons under a message.
pub(crate) fn buttons(choices: &[Choice]) -> Value {
    let button = |choice: &Choice| {
        let label = shortened(&choice.label, LABEL);
        let label = if label.is_empty() { "…".into() } else { label };
        json!({ "type": 2, "style": 2, "label": label, "custom_id": choice.id })
    };
    let row = |row: &[Choice]| {
        let buttons: Vec<Value> = row.iter().map(button).collect();
        json!({ "type": 1, "components": buttons })
    };
    choices.chunks(ROW).map(row).collect()
}

/// What of a message goes into one request.
pub(crate) struct Parcel<'a> {
    pub(crate) text: &'a str,
    pub(crate) choices: &'a [Choice],
    /// The message that is answered.
    pub(crate) reply: Option<&'a str>,
    pub(crate) notify: Notify,
    pub(crate) nonce: Option<&'a str>,
    /// Names of the files, in order.
    pub(crate) files: &'a [String],
    pub(crate) mentions: &'a Mentions,
    pub(crate) previews: LinkPreviews,
}

/// A new message.
pub(crate) fn post(parcel: &Parcel<'_>) -> Value {
    let mut body = Map::new();
    body.insert("content".into(), parcel.text.into());
    body.insert("allowed_mentions".into(), allowed(parcel.mentions));
    if let Some(nonce) = parcel.nonce {
        body.insert("nonce".into(), nonce.into());
        body.insert("enforce_nonce".into(), true.into());
    }
    if let Some(reply) = parcel.reply {
        let reference = json!({ "message_id": reply, "fail_if_not_exists": false });
        body.insert("message_reference".into(), reference);
    }
    let mut flags = 0;
    if parcel.notify == Notify::Silently {
        flags |= flag::SILENT;
    }
    if parcel.previews == LinkPreviews::Hidden {
        flags |= flag::NO_PREVIEWS;
    }
    if flags != 0 {
        body.insert("flags".into(), flags.into());
    }
    if !parcel.choices.is_empty() {
        body.insert("components".into(), buttons(parcel.choices));
    }
    if !parcel.files.is_empty() {
        let list = parcel.files.iter().enumerate();
        let list: Vec<Value> =
            list.map(|(at, name)| json!({ "id": at.to_string(), "filename": name })).collect();
        body.insert("attachments".into(), list.into());
    }
    Value::Object(body)
}

/// A message of one recording that is shown as somebody speaking. It may hold nothing else.
pub(crate) fn voice(nonce: &str, seconds: f64, mentions: &Mentions) -> Value {
    // Discord draws it; what it is made of is not checked, and we do not decode the sound.
    let waveform = base64::prelude::BASE64_STANDARD.encode([128u8; 64]);
    json!({
        "flags": flag::VOICE,
        "nonce": nonce,
        "enforce_nonce": true,
        "allowed_mentions": allowed(mentions),
        "attachments": [{
            "id": "0",
            "filename": "voice-message.ogg",
            "duration_secs": (seconds * 100.0).round() / 100.0,
            "waveform": waveform,
        }],
    })
}

/// A changed message. Choices that are gone are taken away, and nobody is notified by mistake: an edit
/// without these words would use Discord's defaults.
pub(crate) fn edit(content: &Content, mentions: &Mentions, previews: LinkPreviews) -> Value {
    let mut body = json!({
        "content": words(content),
        "allowed_mentions": allowed(mentions),
        "components": buttons(&content.choices),
    });
    // Of the flags that we set, Discord lets an edit change this one only, so that no other is lost. Where
    // previews are shown, one that a moderator has taken away stays away.
    if previews == LinkPreviews::Hidden {
        body["flags"] = flag::NO_PREVIEWS.into();
    }
    body
}

/// What a forum post is called that begins with this text.
pub(crate) fn title(markdown: &str) -> String {
    let first = markdown.lines().map(|line| line.trim_start_matches('#').trim());
    let first = first.into_iter().find(|line| !line.is_empty()).unwrap_or("New Post");
    shortened(first, TITLE)
}

/// A name that Discord keeps as it is.
pub(crate) fn file_name(name: &str) -> String {
    let kept = name.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') => c,
        _ => '_',
    });
    let kept: String = kept.collect();
    let kept = kept.trim_start_matches(['_', '.']);
    let cut = kept.len().saturating_sub(120);
    if kept.is_empty() { "file".into() } else { kept[cut..].to_owned() }
}

/// How long a recording is, if it is one that can be sent as a voice message: Opus in Ogg.
pub(crate) fn spoken_seconds(bytes: &[u8]) -> Option<f64> {
    let head = bytes.get(..bytes.len().min(128))?;
    let is_opus = head.starts_with(b"OggS") && head.windows(8).any(|window| window == b"OpusHead");
    if !is_opus {
        return None;
    }
    // The last page counts the samples, of which there are always 48,000 a second.
    let last = bytes.windows(4).rposition(|window| window == b"OggS")?;
    let samples = bytes.get(last + 6..last + 14)?;
    let samples = u64::from_le_bytes(samples.try_into().ok()?);
    let seconds = samples as f64 / 48_000.0;
    (seconds > 0.0 && seconds < 24.0 * 3600.0).then_some(seconds)
}

fn shortened(text: &str, most: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() <= most {
        return words;
    }
    let cut: String = words.chars().take(most - 1).collect();
    format!("{}…", cut.trim_end())
}
