//! What open pages are told as it happens.
//!
//! Events are queued for each page, up to a bound; a page that falls behind is told to read
//! everything again. Drafts are not queued: only the newest of each conversation is kept, so a slow
//! page skips the ones between.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use talaria_clock::Clock;
use talaria_model::{ChatId, OutboundId, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, watch};

use super::encode::{self, PageEvent};

/// Pages open at the same time.
const SEATS: usize = 32;

/// Events a page may be behind.
const BACKLOG: usize = 64;

/// Conversations whose drafts are kept. The one that has been quiet longest gives way.
const DRAFTS: usize = 64;

/// A draft that has not grown for this long is not shown to a page that opens.
const DRAFT_FADES: Duration = Duration::from_secs(60);

/// Tells open pages what happens.
pub(super) struct Feed {
    clock: Arc<dyn Clock>,
    seats: Arc<Semaphore>,
    events: broadcast::Sender<Arc<PageEvent>>,
    drafts: Mutex<HashMap<ChatId, Arc<Draft>>>,
    newest: watch::Sender<u64>,
}

/// An answer as far as it has grown.
pub(super) struct Draft {
    /// Grows with every draft of any conversation.
    pub(super) revision: u64,
    conversation: ChatId,
    delivery: String,
    text: String,
    doing: Option<String>,
    at: Timestamp,
    html: OnceLock<String>,
}

/// A page's place in the feed.
pub(super) struct Seat {
    pub(super) events: broadcast::Receiver<Arc<PageEvent>>,
    pub(super) newest_draft: watch::Receiver<u64>,
    _permit: OwnedSemaphorePermit,
}

impl Feed {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            seats: Arc::new(Semaphore::new(SEATS)),
            events: broadcast::Sender::new(BACKLOG),
            drafts: Mutex::default(),
            newest: watch::Sender::new(0),
        }
    }

    /// A place for one more page, unless all are taken.
    pub(super) fn seat(&self) -> Option<Seat> {
        let permit = self.seats.clone().try_acquire_owned().ok()?;
        Some(Seat {
            events: self.events.subscribe(),
            newest_draft: self.newest.subscribe(),
            _permit: permit,
        })
    }

    /// Tells every open page. Makes the event only if there is one.
    pub(super) fn publish(&self, event: impl FnOnce() -> PageEvent) {
        if self.events.receiver_count() > 0 {
            // The last page may close between the question and the sending.
            let _ = self.events.send(Arc::new(event()));
        }
    }

    /// Shows an answer as far as it has grown.
    pub(super) fn draft(
        &self,
        conversation: &ChatId,
        id: &OutboundId,
        shown: &talaria_model::Draft,
    ) {
        let mut drafts = self.drafts.lock().unwrap_or_else(PoisonError::into_inner);
        if drafts.len() >= DRAFTS && !drafts.contains_key(conversation) {
            let quietest = drafts.values().min_by_key(|draft| draft.revision);
            if let Some(quietest) = quietest.map(|draft| draft.conversation.clone()) {
                drafts.remove(&quietest);
            }
        }
        let revision = *self.newest.borrow() + 1;
        let draft = Draft {
            revision,
            conversation: conversation.clone(),
            delivery: encode::delivery(id),
            text: shown.content.text.clone(),
            doing: shown.doing.clone(),
            at: self.clock.now(),
            html: OnceLock::new(),
        };
        drafts.insert(conversation.clone(), Arc::new(draft));
        self.newest.send_replace(revision);
    }

    /// Forgets the draft of a delivery that is complete.
    pub(super) fn settle(&self, conversation: &ChatId, id: &OutboundId) {
        let mut drafts = self.drafts.lock().unwrap_or_else(PoisonError::into_inner);
        let delivery = encode::delivery(id);
        if drafts.get(conversation).is_some_and(|draft| draft.delivery == delivery) {
            drafts.remove(conversation);
        }
    }

    /// The drafts that have grown since `revision`, in order.
    pub(super) fn drafts_since(&self, revision: u64) -> Vec<Arc<Draft>> {
        let now = self.clock.now();
        let drafts = self.drafts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut grown: Vec<_> = drafts
            .values()
            .filter(|draft| draft.revision > revision && now.since(draft.at) < DRAFT_FADES)
            .cloned()
            .collect();
        grown.sort_by_key(|draft| draft.revision);
        grown
    }
}

impl Draft {
    /// As the page reads it. Rendered once, by the first page that wants it.
    pub(super) fn event(&self) -> PageEvent {
        let html = self.html.get_or_init(|| encode::html(&self.text)).clone();
        PageEvent::Draft {
            conversation: self.conversation.clone(),
            delivery: self.delivery.clone(),
            html,
            doing: self.doing.clone(),
        }
    }
}
