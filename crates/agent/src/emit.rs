//! A turn loop written as a plain async function that hands out events one at a time.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::Stream;
use futures::stream::StreamExt;

use talaria_model::AgentEvent;

use crate::Events;

/// Hands events to whoever drives the turn.
#[derive(Clone)]
pub struct Emitter {
    slot: Arc<Mutex<Option<AgentEvent>>>,
}

impl Emitter {
    /// Hands out one event and completes when the next one is asked for.
    pub async fn emit(&self, event: AgentEvent) {
        let mut event = Some(event);
        std::future::poll_fn(|_| {
            let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(event) = event.take() {
                debug_assert!(slot.is_none(), "a turn emits one event at a time");
                *slot = Some(event);
            }
            // No waker is kept: the driver polls again exactly when it wants the next event.
            if slot.is_some() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }
}

/// Makes the events of a turn from its loop. The loop advances only while an event is asked for.
pub fn events<F, Fut>(body: F) -> Events
where
    F: FnOnce(Emitter) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let emitter = Emitter { slot: Arc::default() };
    Driven { slot: emitter.slot.clone(), body: Some(Box::pin(body(emitter))) }.boxed()
}

struct Driven {
    slot: Arc<Mutex<Option<AgentEvent>>>,
    body: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Stream for Driven {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        let Some(body) = self.body.as_mut() else { return Poll::Ready(None) };
        let ended = body.as_mut().poll(context).is_ready();
        let event = self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        if ended {
            self.body = None;
        }
        match event {
            Some(event) => Poll::Ready(Some(event)),
            None if ended => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use talaria_model::Seq;

    fn took(n: u64) -> AgentEvent {
        AgentEvent::Took { seqs: vec![Seq(n)] }
    }

    #[tokio::test]
    async fn the_loop_waits_between_events_until_the_next_is_asked_for() {
        let reached = Arc::new(AtomicU32::new(0));
        let inside = reached.clone();
        let mut events = events(|emitter| async move {
            emitter.emit(took(1)).await;
            inside.store(1, Ordering::SeqCst);
            emitter.emit(took(2)).await;
            inside.store(2, Ordering::SeqCst);
        });
        assert_eq!(events.next().await, Some(took(1)));
        assert_eq!(reached.load(Ordering::SeqCst), 0);
        assert_eq!(events.next().await, Some(took(2)));
        assert_eq!(reached.load(Ordering::SeqCst), 1);
        assert_eq!(events.next().await, None);
        assert_eq!(reached.load(Ordering::SeqCst), 2);
        assert_eq!(events.next().await, None);
    }
}
