//! systemd's notifications; see sd_notify(3). launchd wants to hear nothing.

use std::io;
use std::time::Duration;

use sd_notify::NotifyState;

use super::Outcome;

pub(super) const STOPPED_BY: &str =
    "`systemctl stop` with its unit's name (`systemctl --user stop` if it is yours) ends it";

pub(super) fn starting(status: &str) {
    tell(&[NotifyState::Status(status)]);
}

pub(super) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// How long it may take stands in the unit.
pub(super) fn stopping(status: &str, _: Duration) {
    tell(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

pub(super) fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

pub(super) fn alive() {
    tell(&[NotifyState::Watchdog]);
}

pub(super) fn restarts_us() -> bool {
    let own = std::process::id().to_string();
    std::env::var("SYSTEMD_EXEC_PID").is_ok_and(|id| id == own)
}

pub(super) fn serve_as(_: &str, _: fn() -> Outcome) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn tell(what: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(what) {
        tracing::debug!(%error, "the service manager does not listen");
    }
}
