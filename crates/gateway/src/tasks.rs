//! The one place where tasks begin and end.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, future};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::chores::keep_doing;
use crate::shared::Shared;

/// How often old rows are forgotten.
const MAINTENANCE: Duration = Duration::from_secs(60 * 60);

/// Every task of a gateway, or of what goes on beside it. All of them end when it stops.
#[derive(Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stopped: CancellationToken,
}

impl Tasks {
    /// Runs `task` until it is done or all of them stop.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stopped = Box::pin(self.stopped.clone().cancelled_owned());
        // Not an async block, which would hold the task twice: as what it was given and as what it
        // waits for. There are thousands of tasks.
        let task = AssertUnwindSafe(Box::pin(task)).catch_unwind().map(|ended| {
            if ended.is_err() {
                tracing::error!("a task panicked; the others go on");
            }
        });
        let task = future::select(stopped, task).map(drop);
        #[expect(clippy::disallowed_methods, reason = "this is the one place")]
        tokio::spawn(self.tracker.track_future(task));
    }

    /// Completes when a task has run, or none will any more.
    pub(crate) async fn breathe(&self) {
        let (breathed, breath) = tokio::sync::oneshot::channel();
        self.spawn(async move {
            let _ = breathed.send(());
        });
        let _ = breath.await;
    }

    /// Ends every task at its next pause.
    pub(crate) fn cancel(&self) {
        self.stopped.cancel();
    }

    /// The same, and waits until they are gone.
    pub(crate) async fn stop(&self) {
        self.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

/// A future that panicked.
pub(crate) struct Panicked;

/// Ends with the word that a future panicked, instead of unwinding.
pub(crate) fn calm<T>(
    future: impl Future<Output = T>,
) -> impl Future<Output = Result<T, Panicked>> {
    AssertUnwindSafe(future).catch_unwind().map(|ended| ended.map_err(|_| Panicked))
}

/// Forgets what is old enough, again and again.
pub(crate) fn spawn_maintenance(shared: &Arc<Shared>) {
    keep_doing(shared, "forgetting what is old", forget_again_and_again);
}

async fn forget_again_and_again(shared: Arc<Shared>) {
    loop {
        shared.clock.sleep(MAINTENANCE).await;
        let now = shared.clock.now();
        let keep = i64::try_from(shared.limits.keep.as_millis()).unwrap_or(i64::MAX);
        let before = talaria_model::Timestamp::from_millis(now.as_millis() - keep);
        match shared.store.prune(before).await {
            Ok(0) => {}
            Ok(rows) => tracing::debug!(rows, "forgot what ended long ago"),
            Err(error) => tracing::warn!(%error, "old rows could not be forgotten"),
        }
    }
}
