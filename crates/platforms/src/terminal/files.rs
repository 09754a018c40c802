//! Files in and out of a terminal.

use std::io;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, TryStreamExt};
use http::header;
use serde::Deserialize;
use talaria_model::{FileId, FileRef};
use talaria_platform::ByteStream;

use super::Desk;
use super::refusal::Refusal;
use super::wire::LARGEST_FILE;

/// The longest name that is kept, in bytes.
const LONGEST_NAME: usize = 200;

/// The name of a file. Display only, so it has no folders.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Naming {
    name: String,
}

/// Keeps the body as a file and says how to refer to it.
pub(super) async fn upload(
    State(desk): State<Arc<Desk>>,
    naming: Result<Query<Naming>, QueryRejection>,
    body: Body,
) -> Result<Json<FileRef>, Refusal> {
    let Query(Naming { name }) = naming?;
    let usable = |name: &str| {
        !name.trim().is_empty()
            && name.len() <= LONGEST_NAME
            && !name.contains(|c: char| c.is_control() || c == '/')
    };
    if !usable(&name) {
        return Err(Refusal::Malformed("the file has no usable name"));
    }
    let mime = mime_guess::from_path(&name).first();
    let mime = mime.as_ref().map(|mime| mime.essence_str());
    Ok(Json(desk.files.save(&name, mime, limited(body)).await?))
}

/// The bytes of a file.
pub(super) async fn download(
    State(desk): State<Arc<Desk>>,
    id: Result<Path<FileId>, PathRejection>,
) -> Result<Response, Refusal> {
    let Path(id) = id?;
    let bytes = desk.files.read(&id).await?;
    let headers = [(header::CONTENT_TYPE, "application/octet-stream")];
    Ok((headers, Body::from_stream(bytes)).into_response())
}

/// A body that ends in an error as soon as it is larger than it may be.
fn limited(body: Body) -> ByteStream {
    let mut room = LARGEST_FILE;
    let bytes = body.into_data_stream().map_err(io::Error::other);
    let bytes = bytes.map(move |chunk| {
        let chunk = chunk?;
        match room.checked_sub(chunk.len() as u64) {
            Some(left) => room = left,
            None => return Err(io::ErrorKind::FileTooLarge.into()),
        }
        Ok(chunk)
    });
    bytes.boxed()
}
