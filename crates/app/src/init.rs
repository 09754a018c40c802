//! What whoever runs services is told, if it started this process and listens.

use std::convert::Infallible;
use std::time::Duration;

use talaria_clock::{Clock, SystemClock};
use talaria_gateway::Gateway;
use talaria_machine::service;

/// How often in its limit a watchdog is fed.
const FED: u32 = 3;

/// This part of its start is over.
pub(crate) fn starting(phase: &str) {
    service::starting(&format!("starting: {phase} done"));
}

/// Every account serves, or is known not to.
pub(crate) fn ready(status: &str) {
    service::ready(status);
}

/// It is ending, which takes no longer than this.
pub(crate) fn stopping(status: &str, longest: Duration) {
    service::stopping(status, longest);
}

/// Feeds the watchdog for as long as it is polled and the gateway's tasks run.
pub(crate) async fn feed(gateway: &Gateway) -> Infallible {
    let Some(limit) = service::watchdog() else { return std::future::pending().await };
    loop {
        // Whoever polls this is one thread. What people wait for runs on the others.
        gateway.breathes().await;
        service::alive();
        SystemClock.sleep(limit / FED).await;
    }
}
