//! Orders to read the configuration again. They are carried out beside whoever gives them: an account that
//! has let go of its old settings must come to its new ones, or back, although the one who asked has hung
//! up meanwhile.

use std::convert::Infallible;
use std::sync::Arc;

use talaria_admin::api;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::desk::Desk;
use crate::reload;

/// How many may wait; others wait to be among them.
const WAITING: usize = 8;

/// What is told to whoever waits for an order that nobody finished.
const UNFINISHED: &str = "it is not known what became of it: the gateway is ending, or something went wrong inside; \
     `talaria logs` has the details";

/// The orders that were given and are not carried out yet.
pub(crate) struct Orders {
    given: mpsc::Sender<Order>,
    taken: Mutex<mpsc::Receiver<Order>>,
}

struct Order {
    by: String,
    told: oneshot::Sender<Result<api::Reloaded, String>>,
}

impl Default for Orders {
    fn default() -> Self {
        let (given, taken) = mpsc::channel(WAITING);
        Self { given, taken: Mutex::new(taken) }
    }
}

impl Orders {
    /// Gives an order in somebody's name and waits for what comes of it.
    pub(crate) async fn give(&self, by: &str) -> Result<api::Reloaded, String> {
        let (told, done) = oneshot::channel();
        let order = Order { by: by.to_owned(), told };
        self.given.send(order).await.map_err(|_| UNFINISHED.to_owned())?;
        done.await.unwrap_or_else(|_| Err(UNFINISHED.to_owned()))
    }
}

/// Carries out one order after the other.
pub(crate) async fn carry_out(desk: Arc<Desk>) -> Infallible {
    let mut taken = desk.orders.taken.lock().await;
    loop {
        let order = taken.recv().await;
        let Order { by, told } = order.expect("the desk has the other end");
        let done = reload::apply(&desk, &by).await;
        // Whoever asked may be gone.
        let _ = told.send(done);
    }
}
