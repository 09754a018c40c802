//! How a gateway ends: turns in hand are finished, and what is not finished in time is left to the next
//! run, in writing and before it is cut off.

use std::time::Duration;

use futures::FutureExt;
use talaria_model::Timestamp;
use talaria_session::{Begun, Farewell, ResumeReason, SessionKey};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::shared::Shared;

/// How often it is looked whether everything is done.
const LOOK: Duration = Duration::from_millis(20);

/// How long sessions have to write down that they leave something.
const WRITING: Duration = Duration::from_secs(5);

/// The same when nothing is waited for.
const HURRIED_WRITING: Duration = Duration::from_secs(2);

/// Whoever has waited for this long for a turn that did not begin is told why.
const LONG_WAIT: Duration = Duration::from_secs(5);

/// How a gateway is to end.
#[derive(Debug, Clone)]
pub struct Drain {
    /// How long turns that work get to finish. No turn begins meanwhile, also none that waits for a place;
    /// what is said is taken in and answered by the next run.
    pub patience: Duration,
    /// How long what was said gets to leave afterwards.
    pub flush: Duration,
    /// Whether there is a next run right away.
    pub reason: ResumeReason,
    /// There is none after all once this is cancelled.
    pub for_good: CancellationToken,
    /// Waits for nothing any more once this is cancelled.
    pub hurried: CancellationToken,
}

impl Drain {
    /// For good, with so much time for turns in hand.
    pub fn within(patience: Duration) -> Self {
        Self {
            patience,
            flush: Duration::from_secs(10),
            reason: ResumeReason::ShutdownTimeout,
            for_good: CancellationToken::new(),
            hurried: CancellationToken::new(),
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drained {
    /// The sessions whose turns go on in the next run.
    pub left: Vec<SessionKey>,
    /// How long turns were waited for.
    pub waited: Duration,
    /// Whether something that could have left has not.
    pub unsent: bool,
    /// Whether the store knows that this was no death.
    pub clean: bool,
}

/// The word to a lane that the process is about to end.
pub(crate) struct Leaving {
    pub(crate) reason: ResumeReason,
    tells: Tells,
    /// Where sessions are named that leave a turn. Closed when all have looked.
    pub(crate) left: mpsc::UnboundedSender<SessionKey>,
}

/// Who is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tells {
    /// Whoever is cut off or has waited.
    Those,
    /// Nobody: there is no time for it.
    Nobody,
}

impl Leaving {
    /// Whether people hear of a turn that is left.
    pub(crate) fn farewell(&self, turn: Begun, began: Timestamp, now: Timestamp) -> Farewell {
        let matters = turn == Begun::Yes || now.since(began) >= LONG_WAIT;
        match self.tells {
            Tells::Those if matters => Farewell::Said,
            Tells::Those | Tells::Nobody => Farewell::Unsaid,
        }
    }
}

pub(crate) async fn drain(shared: &Shared, drain: Drain) -> Drained {
    let clock = &shared.clock;
    let begun = clock.now();
    shared.draining.cancel();
    let done = until(shared, || shared.turns.len() == 0);
    let in_time = tokio::select! {
        biased;
        () = done => true,
        () = drain.hurried.cancelled() => false,
        () = clock.sleep(drain.patience) => false,
    };
    let waited = clock.now().since(begun);
    shared.intake_closed.cancel();
    let left = leave(shared, &drain).await;
    if !in_time {
        tracing::info!(turns = left.len(), "leaving turns for the next run");
    }
    let door = || shared.accounts.all().iter().any(|account| account.door.is_busy());
    let sent = until(shared, || !door() && !shared.chats.busy());
    let sent = tokio::select! {
        biased;
        () = sent => true,
        () = drain.hurried.cancelled() => false,
        () = clock.sleep(drain.flush) => false,
    };
    shared.tasks.stop().await;
    crate::glimpses::keep(shared).await;
    let closed = shared.store.close().await;
    if let Err(error) = &closed {
        tracing::warn!(%error, "the store could not be closed; the next run will check it");
    }
    Drained { left, waited, unsent: !sent, clean: closed.is_ok() }
}

async fn until(shared: &Shared, holds: impl Fn() -> bool) {
    while !holds() {
        shared.clock.sleep(LOOK).await;
    }
}

/// Lets every session that has a turn in hand write down that it goes on in the next run, and cuts the
/// turn off.
async fn leave(shared: &Shared, drain: &Drain) -> Vec<SessionKey> {
    let hurried = drain.hurried.is_cancelled();
    let (left, mut leaving) = mpsc::unbounded_channel();
    let reason = match drain.for_good.is_cancelled() {
        true => ResumeReason::ShutdownTimeout,
        false => drain.reason,
    };
    shared.lanes.leave_all(|| Leaving {
        reason,
        tells: if hurried { Tells::Nobody } else { Tells::Those },
        left: left.clone(),
    });
    drop(left);
    let mut sessions = Vec::new();
    let all = async {
        while let Some(key) = leaving.recv().await {
            sessions.push(key);
        }
    };
    let soon = shared.clock.sleep(if hurried { HURRIED_WRITING } else { WRITING });
    tokio::select! {
        biased;
        () = all.fuse() => {}
        () = soon => tracing::warn!("not every session could write down what it leaves"),
    }
    sessions
}
