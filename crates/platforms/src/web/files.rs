//! Files in and out of the page.

use std::io;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, TryStreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Deserialize;
use talaria_model::{FileId, FileRef};
use talaria_platform::{ByteStream, FileError};

use super::read::Asked;
use super::refusal::Refusal;
use super::{LARGEST_FILE, Site};

/// The name of an uploaded file, percent-encoded because headers are ASCII.
const NAME_HEADER: HeaderName = HeaderName::from_static("x-file-name");

/// The longest name that is kept, in bytes.
const LONGEST_NAME: usize = 200;

/// What RFC 8187 lets stand unescaped in `filename*`.
const PLAIN_IN_FILE_NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The name under which to save a download.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Naming {
    name: Option<String>,
}

/// Keeps the body as a file and says how to refer to it.
pub(super) async fn upload(
    State(site): State<Arc<Site>>,
    request: Request,
) -> Result<Json<FileRef>, Refusal> {
    let headers = request.headers();
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if declared_length(headers).is_some_and(|length| length > LARGEST_FILE) {
        return Err(Refusal::TooLarge);
    }
    let name = text(NAME_HEADER)
        .and_then(|name| percent_decode_str(name).decode_utf8().ok())
        .map(|name| plain_name(&name))
        .ok_or(Refusal::Malformed("the file has no usable name"))?;
    let mime = text(header::CONTENT_TYPE).map(str::to_owned);
    let _permit = site
        .uploads
        .try_acquire()
        .map_err(|_| Refusal::TryAgain("too many uploads at the same time"))?;
    match site.files.save(&name, mime.as_deref(), limited(request.into_body())).await {
        Ok(file) => Ok(Json(file)),
        Err(FileError::TooLarge { .. }) => Err(Refusal::TooLarge),
        Err(FileError::Full { .. }) => Err(Refusal::Full),
        Err(FileError::Broken(error)) if error.kind() == io::ErrorKind::FileTooLarge => {
            Err(Refusal::TooLarge)
        }
        Err(error) => {
            tracing::warn!(%error, "an upload was not kept");
            Err(Refusal::TryAgain("the file could not be kept"))
        }
    }
}

/// The bytes of a file. The browser saves them, except for pictures of a few kinds that it may
/// show; which kind it is, the bytes themselves say.
pub(super) async fn download(
    State(site): State<Arc<Site>>,
    Path(id): Path<String>,
    Asked(Naming { name }): Asked<Naming>,
) -> Result<Response, Refusal> {
    let id = FileId::new(id).map_err(|_| Refusal::NotFound)?;
    let bytes = match site.files.read(&id).await {
        Ok(bytes) => bytes,
        Err(FileError::Missing) => return Err(Refusal::NotFound),
        Err(error) => {
            tracing::warn!(%error, "a file could not be read");
            return Err(Refusal::TryAgain("the file cannot be read at the moment"));
        }
    };
    let (beginning, bytes) = peek(bytes)
        .await
        .map_err(|_| Refusal::TryAgain("the file cannot be read at the moment"))?;
    let (placement, mime) = match picture(&beginning) {
        Some(mime) => ("inline", mime),
        None => ("attachment", "application/octet-stream"),
    };
    let name = plain_name(name.as_deref().unwrap_or("file"));
    let escaped = utf8_percent_encode(&name, PLAIN_IN_FILE_NAME);
    let disposition = HeaderValue::from_str(&format!("{placement}; filename*=UTF-8''{escaped}"))
        .expect("percent-encoded text is ASCII");
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(mime)),
        (header::CONTENT_DISPOSITION, disposition),
        // Whatever the bytes are, they run nothing and reach nothing under our name.
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("sandbox; default-src 'none'; frame-ancestors 'none'"),
        ),
    ];
    Ok((headers, Body::from_stream(bytes)).into_response())
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A body that ends in an error as soon as it is larger than it may be.
fn limited(body: Body) -> ByteStream {
    let mut room = LARGEST_FILE;
    body.into_data_stream()
        .map_err(io::Error::other)
        .map(move |chunk| {
            let chunk = chunk?;
            match room.checked_sub(chunk.len() as u64) {
                Some(left) => room = left,
                None => return Err(io::ErrorKind::FileTooLarge.into()),
            }
            Ok(chunk)
        })
        .boxed()
}

/// Enough of the beginning to tell what a file is, and the whole of it.
async fn peek(mut bytes: ByteStream) -> io::Result<(Vec<u8>, ByteStream)> {
    const ENOUGH: usize = 12;
    let mut read: Vec<io::Result<Bytes>> = Vec::new();
    let mut beginning = Vec::new();
    while beginning.len() < ENOUGH {
        let Some(chunk) = bytes.next().await.transpose()? else { break };
        beginning.extend(chunk.iter().take(ENOUGH));
        read.push(Ok(chunk));
    }
    Ok((beginning, stream::iter(read).chain(bytes).boxed()))
}

/// The kind of picture that begins like this, if a browser may show it.
fn picture(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// A name for display: no folders, no control characters, not too long.
fn plain_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    // Direction marks could make `exe.png` of `gnp.exe`.
    let misleading = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut plain: String = last.chars().filter(|c| !misleading(*c)).collect();
    plain.truncate(plain.floor_char_boundary(LONGEST_NAME));
    match plain.trim_matches([' ', '.']) {
        "" => "file".into(),
        trimmed => trimmed.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_no_folders_and_no_tricks() {
        for (name, expected) in [
            ("notes.txt", "notes.txt"),
            ("../../etc/passwd", "passwd"),
            ("C:\\temp\\x.doc", "x.doc"),
            ("a\u{202e}gnp.exe", "agnp.exe"),
            ("line\r\nbreak", "linebreak"),
            ("..", "file"),
            ("", "file"),
            ("Überblick – 2.pdf", "Überblick – 2.pdf"),
        ] {
            assert_eq!(plain_name(name), expected);
        }
        assert_eq!(plain_name(&"ä".repeat(200)).len(), LONGEST_NAME);
    }

    #[test]
    fn only_four_kinds_of_picture_are_shown() {
        for (beginning, expected) in [
            (&b"\x89PNG\r\n\x1a\n0000"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF\0\0\0\0WEBP", Some("image/webp")),
            (b"<svg xmlns=", None),
            (b"<!doctype html>", None),
            (b"%PDF-1.7", None),
            (b"", None),
        ] {
            assert_eq!(picture(beginning), expected);
        }
    }
}
