//! Services that Windows keeps. They are the machine's: it has none of a single user, so whoever installs
//! one needs a prompt that was started as administrator.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use talaria_clock::{Clock, SystemClock};
use talaria_machine::service::installed::{self, Found, Unknown, Wanted, own_account};

use super::{Job, Level, job, named, run};
use crate::cli::{InstallOptions, ServiceName};
use crate::ending;
use crate::exit::{Exit, Halt};
use crate::home::Home;

/// How often it is looked what has become of a service.
const LOOK: Duration = Duration::from_millis(200);

/// How long a start may take: a long journal is read again first.
const START: Duration = Duration::from_secs(300);

pub(super) async fn install(home: &Home, options: InstallOptions) -> Result<Exit, Halt> {
    let job = job(home, &options)?;
    need_the_machine(job.level)?;
    let wanted = wanted(&job);
    if options.print {
        let words: Vec<_> = wanted.words.iter().map(|word| word.to_string_lossy()).collect();
        say!("name     {}", wanted.name);
        say!("program  {} {}", wanted.program.display(), words.join(" "));
        say!("account  {}", wanted.account);
        return Ok(Exit::Done);
    }
    home.prepare()?;
    // One that runs is not changed under its feet.
    match end(&job.name, job.end).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        ended => ended.map_err(|error| refused("change", &job.name, &error))?,
    }
    let unknown =
        installed::install(&wanted).map_err(|error| refused("install", &job.name, &error))?;
    for what in unknown {
        match what {
            Unknown::StartingAgain => say!("This machine does not start it again when it dies."),
            Unknown::WaitingAtShutdown => say!("This machine does not wait for it at a shutdown."),
        }
    }
    let_in(&job, &wanted.account)?;
    installed::start(&job.name).map_err(|error| refused("start", &job.name, &error))?;
    is_ready(&job.name).await?;
    say!("The service {} is installed and runs.", job.name);
    Ok(Exit::Done)
}

pub(super) async fn uninstall(home: &Home, which: &ServiceName) -> Result<Exit, Halt> {
    let (name, level) = named(which)?;
    need_the_machine(level)?;
    let account = found(&name)?.account;
    end(&name, ending::longest_on(home)).await.map_err(|error| refused("end", &name, &error))?;
    // While there is somebody of this name. A home that does not let them in any more needs no change.
    let _ = run(&[
        "icacls".to_owned(),
        home.path().display().to_string(),
        "/remove".to_owned(),
        account,
        "/q".to_owned(),
    ]);
    installed::uninstall(&name).map_err(|error| refused("uninstall", &name, &error))?;
    say!("The service {name} is gone. Everything that was said is still in the home folder.");
    Ok(Exit::Done)
}

/// Windows keeps what a service is made of, and it is set anew with every installation.
pub(super) fn outdated(_: &Home) -> Option<std::path::PathBuf> {
    None
}

pub(super) async fn status(_: &Home, which: ServiceName) -> Result<Exit, Halt> {
    let (name, level) = named(&which)?;
    need_the_machine(level)?;
    let Found { state, process, command, account, ended } = found(&name)?;
    say!("name     {name}");
    match process {
        Some(process) => say!("state    {state} (process {process})"),
        None => say!("state    {state}"),
    }
    if let Some(ended) = ended {
        say!("ended    {ended}");
    }
    say!("program  {command}");
    say!("account  {account}");
    Ok(Exit::Done)
}

fn need_the_machine(level: Level) -> Result<(), Halt> {
    match level {
        Level::System => Ok(()),
        Level::User => Err(Halt::new(Exit::Misused, "Windows has no services of a single user")
            .hint("add --system, in a prompt that was started as administrator")),
    }
}

fn wanted(job: &Job) -> Wanted {
    let words: [OsString; 5] = [
        "run".into(),
        "--as-service".into(),
        job.name.clone().into(),
        "--home".into(),
        job.home.clone().into(),
    ];
    Wanted {
        name: job.name.clone(),
        title: format!("Talaria gateway ({})", job.name),
        about: "Carries conversations between messaging platforms and an AI agent.".to_owned(),
        program: job.program.clone(),
        words: words.into(),
        // With no rights but to its own home: an agent is not to be the machine's administrator.
        account: job.user.clone().unwrap_or_else(|| own_account(&job.name)),
        end: job.end,
    }
}

/// Lets the account of a service use the home, and run the program wherever it is.
fn let_in(job: &Job, account: &str) -> Result<(), Halt> {
    let grants = [
        (job.home.display().to_string(), format!("{account}:(OI)(CI)F")),
        (job.program.display().to_string(), format!("{account}:RX")),
    ];
    for (path, grant) in grants {
        run(&["icacls".to_owned(), path, "/grant".to_owned(), grant, "/q".to_owned()])?;
    }
    Ok(())
}

fn found(name: &str) -> Result<Found, Halt> {
    installed::find(name).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Halt::failed(format_args!("there is no service {name}"))
            .hint("`talaria service install --system` makes one"),
        _ => refused("look at", name, &error),
    })
}

/// Ends a service and returns when it has.
async fn end(name: &str, patience: Duration) -> io::Result<()> {
    if !installed::stop(name)? {
        return Ok(());
    }
    let begun = SystemClock.mark();
    while installed::find(name)?.state != "stopped" {
        if SystemClock.mark().since(begun) > patience {
            return Err(io::ErrorKind::TimedOut.into());
        }
        SystemClock.sleep(LOOK).await;
    }
    Ok(())
}

/// Returns when it serves.
async fn is_ready(name: &str) -> Result<(), Halt> {
    let begun = SystemClock.mark();
    loop {
        let Found { state, ended, .. } = found(name)?;
        let problem = match state {
            "running" => return Ok(()),
            "stopped" => format!("it ended {}", ended.unwrap_or_else(|| "at once".to_owned())),
            _ if SystemClock.mark().since(begun) > START => "it does not become ready".to_owned(),
            _ => {
                SystemClock.sleep(LOOK).await;
                continue;
            }
        };
        return Err(Halt::failed(format_args!("the service {name} is installed, but {problem}"))
            .hint("`talaria logs` tells why"));
    }
}

fn refused(act: &str, name: &str, error: &io::Error) -> Halt {
    let halt = Halt::failed(format_args!("cannot {act} the service {name}: {error}"));
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            halt.hint("use a prompt that was started as administrator")
        }
        _ => halt,
    }
}
