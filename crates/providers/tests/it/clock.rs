//! A clock whose waits end when the test says so.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use talaria_clock::{Clock, Sleep};
use talaria_model::Timestamp;
use tokio::sync::oneshot;

#[derive(Clone, Default)]
pub(crate) struct HandClock {
    waits: Arc<Mutex<Vec<Wait>>>,
}

type Wait = (Duration, oneshot::Sender<()>);

impl HandClock {
    /// How many waits are not over.
    pub(crate) fn waiting(&self) -> usize {
        self.waits.lock().unwrap().iter().filter(|(_, end)| !end.is_closed()).count()
    }

    /// Ends the waits of that length.
    pub(crate) fn pass(&self, length: Duration) {
        let mut waits = self.waits.lock().unwrap();
        for (wait, end) in std::mem::take(&mut *waits) {
            if wait == length {
                let _ = end.send(());
            } else {
                waits.push((wait, end));
            }
        }
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_794_735_000_000)
    }

    fn sleep(&self, wait: Duration) -> Sleep {
        let (end, ended) = oneshot::channel();
        self.waits.lock().unwrap().push((wait, end));
        Box::pin(async move {
            // Nobody ends it: it does not end.
            if ended.await.is_err() {
                std::future::pending().await
            }
        })
    }
}
