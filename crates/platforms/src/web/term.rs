//! How long a login lasts, and what breaks off when it ends. It does not know what that says.

use std::sync::Arc;

use axum::body::Body;
use futures::{StreamExt, stream};
use talaria_clock::Clock;
use talaria_model::Timestamp;
use tokio::sync::watch;

use super::pass::Key;

/// What is left of a login: it is over when it expires, and when all logins are ended.
///
/// It begins with the look at the key that recognised the login, so that no end is missed, however late
/// somebody begins to wait for it. Without anybody left who could end it, it is over as well.
#[derive(Clone)]
pub(super) struct Term {
    clock: Arc<dyn Clock>,
    until: Timestamp,
    key: watch::Receiver<Key>,
}

/// Why a body breaks off.
#[derive(Debug, thiserror::Error)]
#[error("the login has ended")]
struct Over;

impl Term {
    /// Until then, or until there is another key than the last one that was seen in `key`.
    pub(super) fn new(clock: Arc<dyn Clock>, until: Timestamp, key: watch::Receiver<Key>) -> Self {
        Self { clock, until, key }
    }

    pub(super) fn is_over(&self) -> bool {
        self.clock.now() >= self.until || self.key.has_changed().unwrap_or(true)
    }

    /// A body that breaks off as soon as the login is over: with an error, so that nobody takes what there is
    /// of it for the whole.
    pub(super) fn bind(&self, body: Body) -> Body {
        let over = Box::pin(self.clone().over());
        let pieces = stream::try_unfold(
            (over, body.into_data_stream()),
            |(mut over, mut pieces)| async move {
                tokio::select! {
                    // In this order, nothing that was already there gets through afterwards either.
                    biased;
                    () = &mut over => Err(axum::Error::new(Over)),
                    piece = pieces.next() => {
                        Ok(piece.transpose()?.map(|piece| (piece, (over, pieces))))
                    }
                }
            },
        );
        Body::from_stream(pieces)
    }

    async fn over(mut self) {
        let expired = self.clock.sleep(self.until.since(self.clock.now()));
        tokio::select! {
            () = expired => {}
            _ = self.key.changed() => {}
        }
    }
}
