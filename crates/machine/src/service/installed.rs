//! Services as the service control manager keeps them.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use windows_service::Error;
use windows_service::service::{
    Service, ServiceAccess, ServiceAction, ServiceActionType, ServiceErrorControl, ServiceExitCode,
    ServiceFailureActions, ServiceFailureResetPeriod, ServiceInfo, ServiceStartType, ServiceState,
    ServiceType,
};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};

/// How often it is started again at once, and how long after that.
const SOON: Duration = Duration::from_millis(500);
const LATER: Duration = Duration::from_secs(10);

/// How long it has to work until it counts as working again.
const WORKS_AGAIN: Duration = Duration::from_secs(60 * 60);

/// What the manager answers; see winerror.h.
const NO_SUCH_SERVICE: i32 = 1060;
const NOT_STARTED: i32 = 1062;
const ALREADY_RUNNING: i32 = 1056;
const UNKNOWN_SETTING: i32 = 124;

/// A service as it is to be.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// What commands call it.
    pub name: String,
    /// What people see.
    pub title: String,
    /// What it is for.
    pub about: String,
    /// The program and its words.
    pub program: PathBuf,
    /// Its words.
    pub words: Vec<OsString>,
    /// The account that it runs as, which needs no password.
    pub account: String,
    /// How long its end may take when the machine is shut down.
    pub end: Duration,
}

/// A service as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What it does, in a word.
    pub state: &'static str,
    /// Its process, while it has one.
    pub process: Option<u32>,
    /// The words that it is started with.
    pub command: String,
    /// The account that it runs as.
    pub account: String,
    /// How it ended last, where that was not as it should.
    pub ended: Option<String>,
}

/// The account of a service of this name, which Windows makes with the service. It has no password and no
/// rights but those that it is given by name.
pub fn own_account(name: &str) -> String {
    format!("NT SERVICE\\{name}")
}

/// What a manager may not know how to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// To start again what died.
    StartingAgain,
    /// To wait at a shutdown for as long as it takes.
    WaitingAtShutdown,
}

/// Installs a service, or changes the one that is there. It is not started by this. Says what the manager
/// does not know how to do: that of Windows knows all of it.
pub fn install(wanted: &Wanted) -> io::Result<Vec<Unknown>> {
    let manager = manager(ServiceManagerAccess::CONNECT | ServiceManagerAccess::CREATE_SERVICE)?;
    let described = ServiceInfo {
        name: wanted.name.clone().into(),
        display_name: wanted.title.clone().into(),
        service_type: ServiceType::OWN_PROCESS,
        start_type: ServiceStartType::AutoStart,
        error_control: ServiceErrorControl::Normal,
        executable_path: wanted.program.clone(),
        launch_arguments: wanted.words.clone(),
        dependencies: Vec::new(),
        account_name: Some(wanted.account.clone().into()),
        account_password: None,
    };
    let access = ServiceAccess::CHANGE_CONFIG | ServiceAccess::START | ServiceAccess::QUERY_STATUS;
    let service = match manager.open_service(&wanted.name, access) {
        Ok(service) => {
            service.change_config(&described).map_err(explained)?;
            service
        }
        Err(error) if is(&error, NO_SUCH_SERVICE) => {
            manager.create_service(&described, access).map_err(explained)?
        }
        Err(error) => return Err(explained(error)),
    };
    service.set_description(&wanted.about).map_err(explained)?;
    let again = |delay| ServiceAction { action_type: ServiceActionType::Restart, delay };
    let starts_again = service
        .update_failure_actions(ServiceFailureActions {
            reset_period: ServiceFailureResetPeriod::After(WORKS_AGAIN),
            reboot_msg: None,
            command: None,
            // The last one is for all further times.
            actions: Some(vec![again(SOON), again(SOON), again(LATER)]),
        })
        // Who ends and says so is left alone.
        .and_then(|()| service.set_failure_actions_on_non_crash_failures(false));
    let waits = service.set_preshutdown_timeout(wanted.end);
    let mut unknown = Vec::new();
    for (what, done) in
        [(Unknown::StartingAgain, starts_again), (Unknown::WaitingAtShutdown, waits)]
    {
        match done {
            Err(error) if is(&error, UNKNOWN_SETTING) => unknown.push(what),
            done => done.map_err(explained)?,
        }
    }
    Ok(unknown)
}

/// Starts a service; one that runs stays as it is.
pub fn start(name: &str) -> io::Result<()> {
    match open(name, ServiceAccess::START)?.start::<OsString>(&[]) {
        Err(error) if !is(&error, ALREADY_RUNNING) => Err(explained(error)),
        _ => Ok(()),
    }
}

/// Asks a service to end. Says whether it ran.
pub fn stop(name: &str) -> io::Result<bool> {
    match open(name, ServiceAccess::STOP)?.stop() {
        Ok(_) => Ok(true),
        Err(error) if is(&error, NOT_STARTED) => Ok(false),
        Err(error) => Err(explained(error)),
    }
}

/// Takes a service out. One that runs is gone when it has ended.
pub fn uninstall(name: &str) -> io::Result<()> {
    open(name, ServiceAccess::DELETE)?.delete().map_err(explained)
}

/// How a service is. One that is not there is an error of the kind `NotFound`.
pub fn find(name: &str) -> io::Result<Found> {
    let service = open(name, ServiceAccess::QUERY_STATUS | ServiceAccess::QUERY_CONFIG)?;
    let status = service.query_status().map_err(explained)?;
    let config = service.query_config().map_err(explained)?;
    let ended = match status.exit_code {
        // It has not ended since it was installed.
        ServiceExitCode::Win32(0 | 1077) => None,
        ServiceExitCode::Win32(code) => {
            Some(io::Error::from_raw_os_error(code.cast_signed()).to_string())
        }
        ServiceExitCode::ServiceSpecific(code) => Some(format!("with code {code}")),
    };
    let account = config.account_name.unwrap_or_default().to_string_lossy().into_owned();
    Ok(Found {
        state: in_words(status.current_state),
        process: status.process_id.filter(|pid| *pid != 0),
        command: config.executable_path.to_string_lossy().into_owned(),
        account,
        ended,
    })
}

fn in_words(state: ServiceState) -> &'static str {
    match state {
        ServiceState::Stopped => "stopped",
        ServiceState::StartPending => "starting",
        ServiceState::StopPending => "ending",
        ServiceState::Running => "running",
        ServiceState::ContinuePending | ServiceState::PausePending | ServiceState::Paused => {
            "paused"
        }
    }
}

fn manager(access: ServiceManagerAccess) -> io::Result<ServiceManager> {
    ServiceManager::local_computer(None::<&str>, access).map_err(explained)
}

fn open(name: &str, access: ServiceAccess) -> io::Result<Service> {
    manager(ServiceManagerAccess::CONNECT)?.open_service(name, access).map_err(explained)
}

fn is(error: &Error, code: i32) -> bool {
    matches!(error, Error::Winapi(error) if error.raw_os_error() == Some(code))
}

fn explained(error: Error) -> io::Error {
    match error {
        error if is(&error, NO_SUCH_SERVICE) => io::ErrorKind::NotFound.into(),
        Error::Winapi(error) => error,
        other => io::Error::other(other),
    }
}
