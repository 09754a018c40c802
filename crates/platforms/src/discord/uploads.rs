//! Files on their way out, piece by piece: none is held longer than it takes to pass it on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt;
use reqwest::Body;
use reqwest::multipart::{Form, Part};
use serde_json::Value;
use talaria_model::{FileId, FileRef};
use talaria_platform::FileStore;

use super::encode;
use super::outgoing::LARGEST_FILE;
use super::refusal::RestError;
use super::rest::Rest;
use crate::wire::http::{CallError, Reply};

/// What of the end of a recording is looked at. No page of it is longer.
const LAST_PAGE: usize = 64 * 1024;

/// What of its beginning.
const FIRST_PAGE: usize = 128;

/// A file that can be sent.
pub(crate) struct Attachment {
    pub(crate) name: String,
    pub(crate) size: u64,
    mime: String,
    id: FileId,
}

impl Attachment {
    /// The same bytes as somebody speaking.
    pub(crate) fn spoken(&self) -> Self {
        let (name, mime) = ("voice-message.ogg".into(), "audio/ogg".into());
        Self { name, mime, size: self.size, id: self.id.clone() }
    }
}

/// Sends files.
pub(crate) struct Uploads {
    files: Arc<dyn FileStore>,
}

impl Uploads {
    pub(crate) fn of(files: Arc<dyn FileStore>) -> Self {
        Self { files }
    }

    /// The files that can be sent, and the names of those that cannot.
    pub(crate) async fn kept(&self, files: &[FileRef]) -> (Vec<Attachment>, Vec<String>) {
        let (mut kept, mut missing) = (Vec::new(), Vec::new());
        for file in files {
            let is_there = file.size <= LARGEST_FILE && self.files.read(&file.id).await.is_ok();
            match is_there {
                true => kept.push(Attachment {
                    name: encode::file_name(&file.name),
                    size: file.size,
                    mime: file.mime.clone(),
                    id: file.id.clone(),
                }),
                false => missing.push(file.name.clone()),
            }
        }
        (kept, missing)
    }

    /// How long a recording is, if it can be sent as a voice message.
    pub(crate) async fn spoken_seconds(&self, file: &Attachment) -> Option<f64> {
        let mut pieces = self.files.read(&file.id).await.ok()?;
        let (mut first, mut last) = (Vec::new(), Vec::new());
        while let Some(piece) = pieces.next().await {
            let piece = piece.ok()?;
            let missing = FIRST_PAGE.saturating_sub(first.len()).min(piece.len());
            first.extend_from_slice(&piece[..missing]);
            last.extend_from_slice(&piece[missing..]);
            if last.len() > 4 * LAST_PAGE {
                last.drain(..last.len() - 2 * LAST_PAGE);
            }
        }
        first.append(&mut last);
        encode::spoken_seconds(&first)
    }

    /// Asks for something with files.
    pub(crate) async fn upload(
        &self,
        rest: &Rest,
        path: &str,
        body: &Value,
        files: &[Attachment],
    ) -> Result<Reply, RestError> {
        let unreadable = || RestError::Call(CallError::Unreachable("a file cannot be read".into()));
        let json = typed(Part::text(body.to_string()), "application/json");
        let mut form = Form::new().part("payload_json", json);
        let broke = Arc::new(AtomicBool::new(false));
        for (at, file) in files.iter().enumerate() {
            let pieces = self.files.read(&file.id).await.map_err(|_| unreadable())?;
            let broken = broke.clone();
            let pieces = pieces.inspect(move |piece| {
                if piece.is_err() {
                    broken.store(true, Ordering::Relaxed);
                }
            });
            let part = Part::stream_with_length(Body::wrap_stream(pieces), file.size);
            let part = part.file_name(file.name.clone());
            let is_usable = Part::text("").mime_str(&file.mime).is_ok();
            let mime = if is_usable { &file.mime } else { "application/octet-stream" };
            form = form.part(format!("files[{at}]"), typed(part, mime));
        }
        match rest.upload(path, form).await {
            // Half a file is no request.
            Err(RestError::Call(_)) if broke.load(Ordering::Relaxed) => Err(unreadable()),
            sent => sent,
        }
    }
}

fn typed(part: Part, mime: &str) -> Part {
    part.mime_str(mime).expect("a type that was found usable is usable")
}
