//! The service control manager. It starts a process, waits until that says which service it is, and is told
//! of every step from there on. It has no watchdog.

use std::ffi::OsString;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use windows_service::service::{
    ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{
    ServiceControlHandlerResult, ServiceStatusHandle, register,
};

use super::Outcome;

/// How long one part of a start may take: a long journal is read again first.
const LONGEST_STEP: Duration = Duration::from_secs(300);

pub(super) const STOPPED_BY: &str = "`sc stop` with the service's name asks it once more; where it hangs, \
     `taskkill /f /pid` with that number ends the process, and Windows may start another";

/// What this process is asked to run as a service.
struct Errand {
    name: String,
    body: fn() -> Outcome,
}

static ERRAND: OnceLock<Errand> = OnceLock::new();
static MANAGER: OnceLock<Manager> = OnceLock::new();
static IS_ASKED_TO_END: AtomicBool = AtomicBool::new(false);
static ORDERS: Mutex<Option<mpsc::UnboundedReceiver<&'static str>>> = Mutex::new(None);

/// The other end.
struct Manager {
    handle: ServiceStatusHandle,
    last: Mutex<Last>,
}

/// What it was told last.
struct Last {
    state: ServiceState,
    step: u32,
}

impl Manager {
    fn tell(&self, state: ServiceState, wait: Duration, exit: ServiceExitCode) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // What has begun to end does not begin to serve.
        if last.state == ServiceState::StopPending && state != ServiceState::Stopped {
            return;
        }
        let is_waiting = matches!(state, ServiceState::StartPending | ServiceState::StopPending);
        last.step = if is_waiting { last.step + 1 } else { 0 };
        last.state = state;
        let accepted = ServiceControlAccept::STOP
            | ServiceControlAccept::SHUTDOWN
            | ServiceControlAccept::PRESHUTDOWN;
        let is_over = matches!(state, ServiceState::StopPending | ServiceState::Stopped);
        let told = self.handle.set_service_status(ServiceStatus {
            service_type: ServiceType::OWN_PROCESS,
            current_state: state,
            controls_accepted: if is_over { ServiceControlAccept::empty() } else { accepted },
            exit_code: exit,
            checkpoint: last.step,
            wait_hint: if is_waiting { wait } else { Duration::ZERO },
            process_id: None,
        });
        if let Err(error) = told {
            tracing::debug!(%error, "the service manager does not listen");
        }
    }
}

fn tell(state: ServiceState, wait: Duration) {
    if let Some(manager) = MANAGER.get() {
        manager.tell(state, wait, ServiceExitCode::NO_ERROR);
    }
}

pub(super) fn starting(_: &str) {
    tell(ServiceState::StartPending, LONGEST_STEP);
}

pub(super) fn ready(_: &str) {
    tell(ServiceState::Running, Duration::ZERO);
}

pub(super) fn stopping(_: &str, longest: Duration) {
    tell(ServiceState::StopPending, longest);
}

pub(super) fn watchdog() -> Option<Duration> {
    None
}

pub(super) fn alive() {}

pub(super) fn restarts_us() -> bool {
    MANAGER.get().is_some()
}

/// What the manager asks for.
pub(crate) struct Orders(Option<mpsc::UnboundedReceiver<&'static str>>);

impl Orders {
    /// Completes when it wants this process to end, and says why.
    pub(crate) async fn next(&mut self) -> &'static str {
        let Some(orders) = &mut self.0 else { return std::future::pending().await };
        match orders.recv().await {
            Some(order) => order,
            None => std::future::pending().await,
        }
    }
}

/// What the manager asks for, for whoever listens first.
pub(crate) fn orders() -> Orders {
    Orders(ORDERS.lock().unwrap_or_else(PoisonError::into_inner).take())
}

pub(super) fn serve_as(name: &str, body: fn() -> Outcome) -> io::Result<()> {
    let errand = ERRAND.get_or_init(|| Errand { name: name.to_owned(), body });
    entry::open(&errand.name).map_err(io::Error::other)
}

/// The door by which Windows comes in.
#[allow(unsafe_code, reason = "the library's macro reads the words that Windows hands over")]
mod entry {
    use windows_service::service_dispatcher;

    use super::serve;

    windows_service::define_windows_service!(begin, serve);

    /// Returns when the service has ended.
    pub(super) fn open(name: &str) -> windows_service::Result<()> {
        service_dispatcher::start(name, begin)
    }
}

fn serve(_: Vec<OsString>) {
    let Some(errand) = ERRAND.get() else { return };
    let (tell, orders) = mpsc::unbounded_channel();
    *ORDERS.lock().unwrap_or_else(PoisonError::into_inner) = Some(orders);
    let heed = move |control| {
        let order = match control {
            ServiceControl::Interrogate => return ServiceControlHandlerResult::NoError,
            ServiceControl::Stop => "the service manager stops it",
            ServiceControl::Shutdown | ServiceControl::Preshutdown => "the machine is shut down",
            _ => return ServiceControlHandlerResult::NotImplemented,
        };
        IS_ASKED_TO_END.store(true, Ordering::SeqCst);
        // Whoever is gone has ended already.
        let _ = tell.send(order);
        ServiceControlHandlerResult::NoError
    };
    let Ok(handle) = register(&errand.name, heed) else { return };
    let last = Mutex::new(Last { state: ServiceState::StartPending, step: 0 });
    let manager = MANAGER.get_or_init(|| Manager { handle, last });
    starting("");
    let outcome = (errand.body)();
    match last_word(outcome, IS_ASKED_TO_END.load(Ordering::SeqCst)) {
        Ok(exit) => manager.tell(ServiceState::Stopped, Duration::ZERO, exit),
        Err(Silent(code)) => abandon(code),
    }
}

/// It goes without a word, because it is to be started again.
#[derive(Debug, PartialEq, Eq)]
struct Silent(u8);

/// What the manager is told at the end. Whom it has asked to end is not started again, however that went.
fn last_word(outcome: Outcome, is_asked_to_end: bool) -> Result<ServiceExitCode, Silent> {
    match outcome {
        Outcome::Done => Ok(ServiceExitCode::NO_ERROR),
        Outcome::StartedAgain(code) if !is_asked_to_end => Err(Silent(code)),
        Outcome::LeftAlone(code) | Outcome::StartedAgain(code) => {
            Ok(ServiceExitCode::ServiceSpecific(code.into()))
        }
    }
}

/// Ends the process without a word. What the manager is told has ended, it leaves alone, whatever the code;
/// it starts again what is gone without a word.
#[expect(clippy::disallowed_methods, reason = "all is closed, and a word would keep it ended")]
fn abandon(code: u8) -> ! {
    std::process::exit(code.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_to_be_started_again_and_was_not_asked_to_end_goes_without_a_word() {
        let specific = |code| Ok(ServiceExitCode::ServiceSpecific(code));
        for (outcome, asked, told) in [
            (Outcome::Done, false, Ok(ServiceExitCode::NO_ERROR)),
            (Outcome::Done, true, Ok(ServiceExitCode::NO_ERROR)),
            (Outcome::LeftAlone(78), false, specific(78)),
            (Outcome::LeftAlone(78), true, specific(78)),
            (Outcome::StartedAgain(75), false, Err(Silent(75))),
            (Outcome::StartedAgain(1), false, Err(Silent(1))),
            (Outcome::StartedAgain(1), true, specific(1)),
        ] {
            assert_eq!(last_word(outcome, asked), told, "{outcome:?} {asked}");
        }
    }
}
