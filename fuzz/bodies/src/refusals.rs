//! What providers say instead of an answer.

use talaria_agent::ProviderError;
use talaria_providers::understand;

use crate::bytes::Bytes;

/// Longer than anything a person is to read in one line.
const TOO_LONG: usize = 600;

pub(crate) fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let status = bytes.below(1000) as u16;
    let body = bytes.rest();
    let error = understand(status, body);
    assert_eq!(error, understand(status, body), "not the same twice");
    for line in [error.to_string(), error.sentence()] {
        assert!(line.len() < TOO_LONG, "{} bytes of words", line.len());
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    let _ = error.retry();
    let is_refused = |error: &ProviderError| {
        matches!(
            error,
            ProviderError::Unauthorized { .. }
                | ProviderError::NoCredit { .. }
                | ProviderError::TooLong
        )
    };
    match status {
        401 | 403 => assert!(is_refused(&error), "{status} is {error:?}"),
        402 => assert!(matches!(error, ProviderError::NoCredit { .. } | ProviderError::TooLong)),
        413 => assert_eq!(error, ProviderError::TooLong),
        429 => assert!(
            is_refused(&error) || matches!(error, ProviderError::RateLimited { .. }),
            "{status} is {error:?}"
        ),
        _ => {}
    }
}
