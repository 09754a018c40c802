//! Waiting for something that has to happen.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

/// Completes with `future`, or panics with `what` when that takes too long. The limit is no part of
/// what a test asserts: it only keeps a broken one from hanging.
pub async fn within<T>(limit: Duration, what: impl Display, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(limit, future).await {
        Ok(done) => done,
        Err(_) => panic!("waited {limit:?} in vain: {what}"),
    }
}
