//! What the init system is told that started this process, if it listens: systemd's notifications.

use std::convert::Infallible;

use sd_notify::NotifyState;
use talaria_clock::{Clock, SystemClock};
use talaria_gateway::Gateway;

/// How often in its limit a watchdog is fed.
const FED: u32 = 3;

/// This part of its start is over.
pub(crate) fn starting(phase: &str) {
    tell(&[NotifyState::Status(&format!("starting: {phase} done"))]);
}

/// Every account serves, or is known not to.
pub(crate) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// It is ending.
pub(crate) fn stopping(status: &str) {
    tell(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

/// Feeds the watchdog for as long as it is polled and the gateway's tasks run.
pub(crate) async fn feed(gateway: &Gateway) -> Infallible {
    let Some(limit) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    loop {
        // Whoever polls this is one thread. What people wait for runs on the others.
        gateway.breathes().await;
        tell(&[NotifyState::Watchdog]);
        SystemClock.sleep(limit / FED).await;
    }
}

fn tell(what: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(what) {
        tracing::debug!(%error, "the service manager does not listen");
    }
}
