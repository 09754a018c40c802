//! One turn of the agent: drives it, makes what it does durable, passes on what it is told.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use talaria_agent::{Preview, Running, Turn};
use talaria_clock::Sleep;
use talaria_model::{AgentEvent, Failure, OutboundId, TurnId, Word};
use talaria_session::Start;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::lane::{Lane, calm};
use crate::preview::Live;
use crate::shared::Shared;

/// How long an agent has to stop by itself. People expect a stop within a second.
const STOP_GRACE: Duration = Duration::from_millis(700);

/// The way to a turn. Dropping it abandons the turn.
pub(crate) struct TurnHandle {
    pub(crate) turn: TurnId,
    words: mpsc::Sender<Word>,
    stopped: CancellationToken,
    abandoned: CancellationToken,
}

impl TurnHandle {
    /// Passes a word on. A stop always gets through; a steer that finds no room is still in the
    /// session and begins the next turn.
    pub(crate) fn tell(&self, word: Word) {
        if word == Word::Stop {
            self.stopped.cancel();
        } else if self.words.try_send(word).is_err() {
            tracing::debug!(turn = %self.turn, "the agent is not listening");
        }
    }
}

impl Drop for TurnHandle {
    fn drop(&mut self) {
        self.abandoned.cancel();
    }
}

/// Starts a turn in a task of its own.
pub(crate) fn start(
    shared: &Arc<Shared>,
    lane: Arc<Lane>,
    start: Start,
    delivery: u32,
) -> TurnHandle {
    let (words, heard) = mpsc::channel(32);
    let handle = TurnHandle {
        turn: start.turn.clone(),
        words,
        stopped: CancellationToken::new(),
        abandoned: CancellationToken::new(),
    };
    let (stopped, abandoned) = (handle.stopped.clone(), handle.abandoned.clone());
    let task = {
        let shared = shared.clone();
        async move {
            let turn = InProgress { shared, lane, start, heard, stopped };
            tokio::select! {
                biased;
                () = abandoned.cancelled() => {}
                () = turn.run(delivery) => {}
            }
        }
    };
    shared.tasks.spawn(task);
    handle
}

/// Counts a turn while it works. One that waits for a person does not hold up an ending.
struct InHand(Arc<Shared>);

impl InHand {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.turns.fetch_add(1, Ordering::Relaxed);
        Self(shared.clone())
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.turns.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A place among the turns that may run at once.
struct Place {
    _permit: Option<OwnedSemaphorePermit>,
    _in_hand: InHand,
}

struct InProgress {
    shared: Arc<Shared>,
    lane: Arc<Lane>,
    start: Start,
    heard: mpsc::Receiver<Word>,
    stopped: CancellationToken,
}

impl InProgress {
    async fn run(mut self, mut delivery: u32) {
        let stopped = self.stopped.clone();
        let begun = tokio::select! {
            biased;
            () = stopped.cancelled() => None,
            begun = async { (self.place().await, self.begin().await) } => Some(begun),
        };
        let Some((place, Running { preview, mut events, control })) = begun else {
            let event = AgentEvent::Failed { failure: Failure::Stopped, said: String::new() };
            self.lane.agent(self.start.turn.clone(), event).await;
            return;
        };
        let mut place = Some(place);
        let mut live = self.show(delivery, &preview);
        let mut grace: Option<Sleep> = None;
        loop {
            let event = tokio::select! {
                biased;
                Some(word) = self.heard.recv() => {
                    if let Word::Answer(_) = word {
                        place = Some(self.place().await);
                    }
                    // An agent that does not listen will see a steer in its next turn.
                    let _ = control.try_send(word);
                    continue;
                }
                () = stopped.cancelled(), if grace.is_none() => {
                    grace = Some(self.shared.clock.sleep(STOP_GRACE));
                    let _ = control.try_send(Word::Stop);
                    continue;
                }
                () = passed(&mut grace) => failed(Failure::Stopped, &preview),
                event = calm(events.next()) => match event {
                    Ok(Some(event)) => event,
                    Ok(None) => failed(sorry("The agent ended without an answer."), &preview),
                    Err(()) => {
                        tracing::error!(turn = %self.start.turn, "the agent panicked");
                        let text = "Something went wrong inside me; the log has the details.";
                        failed(sorry(text), &preview)
                    }
                },
            };
            let ends = matches!(event, AgentEvent::Finished { .. } | AgentEvent::Failed { .. });
            if matches!(event, AgentEvent::Asked(_)) {
                // While a person is asked, somebody else may have the place.
                place = None;
            }
            let next = self.lane.agent(self.start.turn.clone(), event).await;
            match next {
                Some(next) if !ends && next == delivery => {}
                Some(next) if !ends => {
                    delivery = next;
                    live = self.show(delivery, &preview);
                }
                _ => break,
            }
        }
        drop((live, place));
    }

    /// Waits for a place among the turns that may run at once.
    async fn place(&self) -> Place {
        let _in_hand = InHand::new(&self.shared);
        Place { _permit: self.shared.turn_permits.clone().acquire_owned().await.ok(), _in_hand }
    }

    async fn begin(&self) -> Running {
        let session = &self.start.turn.session;
        let limit = self.shared.limits.history;
        let entries = loop {
            match self.shared.store.history(session, limit).await {
                Ok(entries) => break entries,
                Err(error) => {
                    tracing::warn!(turn = %self.start.turn, %error, "the transcript cannot be read");
                    self.shared.clock.sleep(Duration::from_secs(1)).await;
                }
            }
        };
        let agent = self.shared.agent.read().unwrap_or_else(PoisonError::into_inner).clone();
        agent.start(Turn {
            id: self.start.turn.clone(),
            at: self.start.to.clone(),
            from: self.start.from.clone(),
            entries,
            started: self.start.started.clone(),
            asked: self.start.asked.clone(),
            limit: self.start.deadline.since(self.shared.clock.now()),
        })
    }

    fn show(&self, delivery: u32, preview: &watch::Receiver<Preview>) -> Live {
        let session = self.start.turn.session.clone();
        let id = OutboundId { session, delivery, part: 0 };
        crate::chats::show(&self.shared, self.start.to.clone(), id, preview.clone())
    }
}

/// Completes when the grace is over, and never when there is none.
async fn passed(grace: &mut Option<Sleep>) {
    match grace {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
}

fn sorry(text: &str) -> Failure {
    Failure::Model(text.to_owned())
}

fn failed(failure: Failure, preview: &watch::Receiver<Preview>) -> AgentEvent {
    AgentEvent::Failed { failure, said: preview.borrow().text.clone() }
}
