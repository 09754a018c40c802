//! Why a request is refused, as a status and one short sentence.

use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use talaria_platform::ArchiveError;

/// Why a request is refused, named for what the page must do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Mend the request; sending it again unchanged is useless.
    Malformed(&'static str),
    /// Log in.
    LoginNeeded,
    /// The login token is not valid, was used, or has expired.
    WrongToken,
    /// Nothing: the request did not come from our own page.
    Forbidden(&'static str),
    /// Nothing is there.
    NotFound,
    /// Nothing: the rules say no, in these words.
    Refused(String),
    /// Send less.
    TooLarge,
    /// Nothing: there is no room for more files.
    Full,
    /// Say what it is.
    UnknownType,
    /// Use a name that this gateway answers to.
    WrongHost,
    /// Log in with a right token, which works at once; wait that long with a wrong one.
    TooOften(Duration),
    /// Send exactly the same again in a moment.
    TryAgain(&'static str),
}

#[derive(Serialize)]
struct Told<'a> {
    error: &'a str,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, error) = match &self {
            Self::Malformed(problem) => (StatusCode::BAD_REQUEST, *problem),
            Self::LoginNeeded => (StatusCode::UNAUTHORIZED, "log in first"),
            Self::WrongToken => {
                (StatusCode::UNAUTHORIZED, "this login link was used already or has expired")
            }
            Self::Forbidden(problem) => (StatusCode::FORBIDDEN, *problem),
            Self::NotFound => (StatusCode::NOT_FOUND, "there is nothing here"),
            Self::Refused(told) => (StatusCode::CONFLICT, told.as_str()),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too large"),
            Self::Full => (StatusCode::INSUFFICIENT_STORAGE, "there is no room for more files"),
            Self::UnknownType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unknown kind of content"),
            Self::WrongHost => {
                (StatusCode::MISDIRECTED_REQUEST, "this gateway does not answer to that name")
            }
            Self::TooOften(_) => {
                (StatusCode::TOO_MANY_REQUESTS, "too many wrong login links; a fresh one works")
            }
            Self::TryAgain(problem) => (StatusCode::SERVICE_UNAVAILABLE, *problem),
        };
        let mut response = (status, Json(Told { error })).into_response();
        let wait = match self {
            Self::TooOften(wait) => Some(wait.as_secs().max(1)),
            Self::TryAgain(_) => Some(1),
            _ => None,
        };
        if let Some(seconds) = wait {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<ArchiveError> for Refusal {
    fn from(error: ArchiveError) -> Self {
        tracing::warn!(%error, "the web page could not be shown what was said");
        Self::TryAgain("what was said cannot be read at the moment")
    }
}
