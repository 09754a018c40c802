//! `talaria service`: lets the operating system start the gateway and keep it running.
//!
//! Windows keeps its services itself, and the library `windows-service` speaks to it. systemd and launchd
//! read files, which are written here and not by a library: none that is kept can say what keeps a gateway
//! honest (readiness, a watchdog, which exit codes mean what, and how long an end may take).

#[cfg(unix)]
mod launchd;
#[cfg_attr(unix, path = "written.rs")]
#[cfg_attr(windows, path = "managed.rs")]
mod system;
#[cfg(unix)]
mod systemd;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use talaria_config::Config;
use talaria_machine::environment;

use crate::cli::{InstallOptions, ServiceCommand, ServiceName};
use crate::ending;
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::start;

/// The shortest time that an end gets.
const SHORTEST_END: Duration = Duration::from_secs(60);

/// What `systemctl --user` finds by what runs the services of this user.
const FOUND_BY: [&str; 2] = ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// A gateway as the operating system is told to run it.
#[derive(Debug, Clone)]
struct Job {
    name: String,
    level: Level,
    program: PathBuf,
    home: PathBuf,
    /// Where programs are found that the gateway starts.
    path: Option<String>,
    /// Whom it runs as, where that is not whoever installs it.
    user: Option<String>,
    /// How long an end may take.
    end: Duration,
}

/// Whose service it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// This user's; it runs while they are logged in, or always where that is allowed.
    User,
    /// The machine's.
    System,
}

pub(crate) async fn service(home: &Home, command: ServiceCommand) -> Result<Exit, Halt> {
    match command {
        ServiceCommand::Install(options) => system::install(home, options).await,
        ServiceCommand::Uninstall(which) => system::uninstall(home, &which).await,
        ServiceCommand::Status(which) => system::status(home, which).await,
    }
}

/// The file of this user's service, if there is one and this version would write it differently.
pub(crate) fn outdated(home: &Home) -> Option<PathBuf> {
    system::outdated(home)
}

fn named(which: &ServiceName) -> Result<(String, Level), Halt> {
    let is_plain = |name: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        !name.is_empty() && name.len() <= 64 && name.bytes().all(plain)
    };
    if !is_plain(&which.name) {
        let problem = format!("{:?} cannot be the name of a service", which.name);
        return Err(Halt::new(Exit::Misused, problem).hint("letters, digits, - and _ can"));
    }
    let level = if which.system { Level::System } else { Level::User };
    Ok((which.name.clone(), level))
}

fn job(home: &Home, options: &InstallOptions) -> Result<Job, Halt> {
    let (name, level) = named(&options.which)?;
    let loaded = start::configuration(home)?;
    let program = std::env::current_exe()
        .map_err(|error| Halt::failed(format_args!("cannot find this program: {error}")))?;
    let job = Job {
        name,
        level,
        program,
        home: home.path().to_owned(),
        path: std::env::var("PATH").ok(),
        user: options.run_as.clone(),
        end: longest_end(loaded.config()),
    };
    let texts = [job.program.to_string_lossy(), job.home.to_string_lossy()];
    let texts =
        texts.iter().map(AsRef::as_ref).chain(job.path.as_deref()).chain(job.user.as_deref());
    if texts.into_iter().any(|text| text.contains(['\n', '\r', '\0', char::REPLACEMENT_CHARACTER]))
    {
        let problem = "a path with a line break or without a name in Unicode";
        return Err(Halt::failed(format_args!("{problem} cannot be written into a service")));
    }
    Ok(job)
}

/// How long a service may take to end: its answers, what they have to be sent, and some more.
fn longest_end(config: &Config) -> Duration {
    ending::longest(config).max(SHORTEST_END)
}

/// Runs a program, which is told no more of our environment than it needs; what it printed.
fn run(words: &[String]) -> Result<String, Halt> {
    let line = words.join(" ");
    let Some((program, rest)) = words.split_first() else { return Ok(String::new()) };
    let found_by = FOUND_BY.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let ran = Command::new(program)
        .args(rest)
        .env_clear()
        .envs(environment())
        .envs(found_by)
        .output()
        .map_err(|error| Halt::failed(format_args!("cannot run `{line}`: {error}")))?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    Err(Halt::failed(format_args!("`{line}` ended with {}: {}", ran.status, said.trim())))
}
