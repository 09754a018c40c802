//! The moments at which a process can die: before and after everything that others can see or that
//! survives it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// Counts the moments and dies at the one it is told. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Points(Arc<Inner>);

#[derive(Default)]
struct Inner {
    count: Mutex<Count>,
    died: watch::Sender<bool>,
}

#[derive(Default)]
struct Count {
    passed: Vec<String>,
    dies_at: Option<usize>,
    dead: bool,
}

impl Points {
    /// A moment. It does not pass when the process dies here.
    pub(crate) async fn pass(&self, name: &str) {
        let dead = {
            let mut count = self.0.count.lock().unwrap_or_else(PoisonError::into_inner);
            let here = count.passed.len();
            count.passed.push(name.to_owned());
            if count.dies_at == Some(here) {
                count.dead = true;
                self.0.died.send_replace(true);
            }
            count.dead
        };
        if dead {
            std::future::pending::<()>().await;
        }
    }

    /// The process dies, here and at every later moment.
    pub(crate) fn die(&self) {
        self.0.count.lock().unwrap_or_else(PoisonError::into_inner).dead = true;
        self.0.died.send_replace(true);
    }

    /// Begins to count from zero, for a process that dies at that moment.
    pub(crate) fn begin(&self, dies_at: Option<usize>) {
        let mut count = self.0.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count = Count { dies_at, ..Count::default() };
        self.0.died.send_replace(false);
    }

    /// Completes when the process has died.
    pub(crate) async fn died(&self) {
        let mut died = self.0.died.subscribe();
        died.wait_for(|died| *died).await.expect("we hold the other end");
    }

    /// The moments that passed.
    pub(crate) fn passed(&self) -> Vec<String> {
        self.0.count.lock().unwrap_or_else(PoisonError::into_inner).passed.clone()
    }
}
