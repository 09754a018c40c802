//! The event stream of one open page. That it ends with the login is the guard's business.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use futures::stream;
use tokio::sync::broadcast::error::RecvError;

use super::Site;
use super::encode::PageEvent;
use super::feed::Seat;
use super::refusal::Refusal;

/// How often a silent stream proves that it works.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// Everything that happens from here on.
pub(super) async fn events(State(site): State<Arc<Site>>) -> Result<impl IntoResponse, Refusal> {
    let seat = site.feed.seat().ok_or(Refusal::TryAgain("too many pages are open"))?;
    let listener = Listener {
        drafts_seen: 0,
        ready: VecDeque::from([encoded(&PageEvent::Hello)]),
        // A page that opens in the middle of an answer is shown what there is of it.
        drafts_due: true,
        seat,
        site,
    };
    let events = stream::unfold(listener, |mut listener| async {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(event), listener))
    });
    // Proxies that collect answers before they pass them on let this one through as it comes.
    Ok(([("x-accel-buffering", "no")], Sse::new(events)))
}

struct Listener {
    site: Arc<Site>,
    seat: Seat,
    ready: VecDeque<Event>,
    drafts_seen: u64,
    drafts_due: bool,
}

impl Listener {
    /// The next event, or `None` once the account has ended.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if std::mem::take(&mut self.drafts_due) {
                for draft in self.site.feed.drafts_since(self.drafts_seen) {
                    self.drafts_seen = draft.revision;
                    self.ready.push_back(encoded(&draft.event()));
                }
                continue;
            }
            tokio::select! {
                // In this order, an answer is never followed by a draft of itself.
                biased;
                // The account was disconnected; the page connects again and finds another site.
                () = self.site.heard.closed() => return None,
                event = self.seat.events.recv() => match event {
                    Ok(event) => return Some(encoded(&event)),
                    Err(RecvError::Lagged(_)) => return Some(encoded(&PageEvent::Resync)),
                    Err(RecvError::Closed) => return None,
                },
                _ = self.seat.newest_draft.changed() => self.drafts_due = true,
                () = self.site.clock.sleep(ALIVE_EVERY) => {
                    return Some(encoded(&PageEvent::Alive));
                }
            }
        }
    }
}

fn encoded(event: &PageEvent) -> Event {
    Event::default().json_data(event).expect("a page event is plain data")
}
