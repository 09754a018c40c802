//! Events that came by a request: handed to the gateway, and the request answered when they are safe.

use std::time::Duration;

use talaria_clock::Clock;
use talaria_model::Inbound;
use talaria_platform::{Ack, Batch, Committed, Cursor, Verdict};
use tokio::sync::oneshot;

/// How long a request waits for the commit. Some vendors wait three seconds for everything together, and
/// all of them deliver again what was not answered; the journal recognises it.
const COMMIT_WITHIN: Duration = Duration::from_millis(2_500);

/// Hands events over and waits until they are stored. None when there is no room for them, or when it
/// takes too long: then the sender is asked to try again.
pub(crate) async fn hand_over(
    events: Vec<Inbound>,
    cursor: Option<Cursor>,
    clock: &dyn Clock,
    put: impl FnOnce(Batch) -> bool,
) -> Option<Vec<Verdict>> {
    let (told, verdicts) = oneshot::channel();
    let ack = Ack::with(move |Committed(verdicts)| {
        // The request may be gone; what is committed stays committed.
        let _ = told.send(verdicts);
    });
    if !put(Batch { events, cursor, ack }) {
        return None;
    }
    tokio::select! {
        biased;
        verdicts = verdicts => verdicts.ok(),
        () = clock.sleep(COMMIT_WITHIN) => None,
    }
}
