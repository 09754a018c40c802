//! Why a request is refused, as a status and one short sentence.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use talaria_platform::{ArchiveError, FileError};

use super::wire::Refused;

/// Why a request is refused, named for what the terminal must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Mend the request; sending it again unchanged is useless.
    Malformed(&'static str),
    /// Nothing: policy does not take it.
    Forbidden,
    /// Nothing is there.
    NotFound(&'static str),
    /// Send less.
    TooLarge(&'static str),
    /// Send exactly the same again in a moment.
    TryAgain(&'static str),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, error) = match self {
            Self::Malformed(problem) => (StatusCode::BAD_REQUEST, problem),
            Self::Forbidden => (StatusCode::FORBIDDEN, "the gateway does not take this"),
            Self::NotFound(problem) => (StatusCode::NOT_FOUND, problem),
            Self::TooLarge(problem) => (StatusCode::PAYLOAD_TOO_LARGE, problem),
            Self::TryAgain(problem) => (StatusCode::SERVICE_UNAVAILABLE, problem),
        };
        (status, Json(Refused { error: error.into() })).into_response()
    }
}

impl From<JsonRejection> for Refusal {
    fn from(rejection: JsonRejection) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Self::TooLarge("the request is too large"),
            _ => Self::Malformed("the request is not of the expected shape"),
        }
    }
}

impl From<PathRejection> for Refusal {
    fn from(_: PathRejection) -> Self {
        Self::Malformed("this cannot be a name")
    }
}

impl From<QueryRejection> for Refusal {
    fn from(_: QueryRejection) -> Self {
        Self::Malformed("the question is not of the expected shape")
    }
}

impl From<ArchiveError> for Refusal {
    fn from(error: ArchiveError) -> Self {
        tracing::warn!(%error, "a terminal could not be shown what was said");
        Self::TryAgain("what was said cannot be read at the moment")
    }
}

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Missing => Self::NotFound("there is no such file"),
            FileError::TooLarge { .. } => Self::TooLarge("the file is too large"),
            FileError::Full { .. } => Self::TooLarge("the gateway has no room for more files"),
            FileError::Broken(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                Self::TooLarge("the file is too large")
            }
            FileError::Broken(error) => {
                tracing::warn!(%error, "a terminal's file could not be kept or read");
                Self::TryAgain("the file cannot be kept or read at the moment")
            }
        }
    }
}
