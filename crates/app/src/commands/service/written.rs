//! Services that are files: units of systemd and property lists of launchd.

use std::path::{Path, PathBuf};

use talaria_machine::{Mode, belongs_to, replace, user_called};

use super::{Job, Level, job, launchd, named, run, systemd};
use crate::cli::{InstallOptions, ServiceName};
use crate::exit::{Exit, Halt};
use crate::home::Home;

/// What runs services on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Init {
    Systemd,
    Launchd,
}

impl Init {
    fn find() -> Result<Self, Halt> {
        match std::env::consts::OS {
            "linux" => Ok(Self::Systemd),
            "macos" => Ok(Self::Launchd),
            other => Err(Halt::failed(format_args!("there is no service for {other}"))
                .hint("let whatever starts programs there run `talaria run`")),
        }
    }

    fn text(self, job: &Job) -> String {
        match self {
            Self::Systemd => systemd::unit(job),
            Self::Launchd => launchd::plist(job),
        }
    }

    fn file(self, name: &str, level: Level) -> Result<PathBuf, Halt> {
        let unknown = || Halt::failed("it is not known where your files are").hint("set HOME");
        match (self, level) {
            (Self::Systemd, Level::System) => {
                Ok(Path::new("/etc/systemd/system").join(format!("{name}.service")))
            }
            (Self::Systemd, Level::User) => {
                let given = std::env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty());
                let config = given.map(PathBuf::from);
                let config = config.or_else(|| Some(std::env::home_dir()?.join(".config")));
                let folder = config.ok_or_else(unknown)?.join("systemd/user");
                Ok(folder.join(format!("{name}.service")))
            }
            (Self::Launchd, Level::System) => {
                let folder = Path::new("/Library/LaunchDaemons");
                Ok(folder.join(format!("{}.plist", launchd::label(name))))
            }
            (Self::Launchd, Level::User) => {
                let folder = std::env::home_dir().ok_or_else(unknown)?.join("Library/LaunchAgents");
                Ok(folder.join(format!("{}.plist", launchd::label(name))))
            }
        }
    }

    /// What has to be run when the file is there, whether or not it was there before.
    fn begin(self, name: &str, level: Level, file: &Path) -> Vec<Step> {
        match self {
            Self::Systemd => systemd::begin(name, level),
            Self::Launchd => launchd::begin(name, level, file),
        }
    }

    /// What has to be run before the file goes.
    fn end(self, name: &str, level: Level) -> Vec<Vec<String>> {
        match self {
            Self::Systemd => systemd::end(name, level),
            Self::Launchd => launchd::end(name, level),
        }
    }

    fn status(self, name: &str, level: Level) -> Vec<String> {
        match self {
            Self::Systemd => systemd::status(name, level),
            Self::Launchd => launchd::status(name, level),
        }
    }
}

pub(super) async fn install(home: &Home, options: InstallOptions) -> Result<Exit, Halt> {
    let init = Init::find()?;
    let job = job(home, &options)?;
    if job.level == Level::System {
        let Some(user) = &job.user else {
            let problem = "a service of the machine needs somebody to run as";
            return Err(Halt::new(Exit::Misused, problem).hint("add --run-as with a user's name"));
        };
        is_home_of(user, &job.home)?;
    }
    let text = init.text(&job);
    if options.print {
        say!("{}", text.trim_end());
        return Ok(Exit::Done);
    }
    let file = init.file(&job.name, job.level)?;
    write(&file, &text)?;
    say!("Written: {}", file.display());
    begin(&init.begin(&job.name, job.level, &file), run)?;
    say!("The service {} is installed and runs.", job.name);
    if (init, job.level) == (Init::Systemd, Level::User) {
        say!("It ends when you log out, unless `loginctl enable-linger` has been run once.");
    }
    Ok(Exit::Done)
}

/// Refuses a home that the service could not use. One that is not there yet is made by the service, in a
/// folder that has to be that user's.
fn is_home_of(user: &str, home: &Path) -> Result<(), Halt> {
    let Some(number) = user_called(user) else {
        return Err(Halt::new(Exit::Misused, format_args!("there is no user {user}")));
    };
    let there = home.ancestors().find(|folder| folder.exists()).unwrap_or(home);
    let is_theirs = belongs_to(there, number).map_err(|error| {
        Halt::failed(format_args!("it is not known whose {} is: {error}", there.display()))
    })?;
    if is_theirs {
        return Ok(());
    }
    let problem =
        format!("{} does not belong to {user}, who would run the service", there.display());
    Err(Halt::new(Exit::Misused, problem).hint(format_args!(
        "say which home it is: `sudo TALARIA_HOME=~{user}/.talaria talaria service install --system --run-as \
         {user}`"
    )))
}

fn write(file: &Path, text: &str) -> Result<(), Halt> {
    let cannot = |error: std::io::Error| {
        let halt = Halt::failed(format_args!("cannot write {}: {error}", file.display()));
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                halt.hint("run it with sudo, or leave --system out")
            }
            _ => halt,
        }
    };
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    // There is nothing in it that not everybody may know.
    replace(file, text.as_bytes(), Mode::PUBLIC).map_err(cannot)
}

pub(super) async fn uninstall(_: &Home, which: &ServiceName) -> Result<Exit, Halt> {
    let init = Init::find()?;
    let (name, level) = named(which)?;
    let file = init.file(&name, level)?;
    if !file.exists() {
        return Err(Halt::failed(format_args!("there is no service at {}", file.display())));
    }
    for words in init.end(&name, level) {
        // One that does not run cannot be ended, and goes all the same.
        if let Err(halt) = run(&words) {
            say!("{halt}");
        }
    }
    std::fs::remove_file(&file)
        .map_err(|error| Halt::failed(format_args!("cannot remove {}: {error}", file.display())))?;
    say!("The service {name} is gone. Everything that was said is still in the home folder.");
    Ok(Exit::Done)
}

pub(super) async fn status(home: &Home, which: ServiceName) -> Result<Exit, Halt> {
    let init = Init::find()?;
    let (name, level) = named(&which)?;
    let file = init.file(&name, level)?;
    let Ok(written) = std::fs::read_to_string(&file) else {
        let problem = format!("there is no service at {}", file.display());
        return Err(Halt::failed(problem).hint("`talaria service install` makes one"));
    };
    say!("{}", file.display());
    if level == Level::User && differs(init, home, which, &written) {
        say!("This version would write it differently; `talaria service install` does.");
    }
    let words = init.status(&name, level);
    say!("{}", run(&words)?.trim_end());
    Ok(Exit::Done)
}

/// Whether this version would write a service of this user in another way.
fn differs(init: Init, home: &Home, which: ServiceName, written: &str) -> bool {
    let options = InstallOptions { which, run_as: None, print: false };
    // Where programs are found depends on who asks.
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.contains("PATH")).map(str::to_owned).collect()
    };
    job(home, &options).is_ok_and(|job| lines(&init.text(&job)) != lines(written))
}

pub(super) fn outdated(home: &Home) -> Option<PathBuf> {
    let init = Init::find().ok()?;
    let which = ServiceName { name: "talaria".into(), system: false };
    let file = init.file(&which.name, Level::User).ok()?;
    let written = std::fs::read_to_string(&file).ok()?;
    // Another home may have a service of the same name.
    let is_ours = written.contains(&*home.path().to_string_lossy());
    (is_ours && differs(init, home, which, &written)).then_some(file)
}

/// A program that is run, and what it means if that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The service does not run.
    Needed(Vec<String>),
    /// Nothing: what it undoes was not there.
    Undoes(Vec<String>),
}

pub(super) fn begin(
    steps: &[Step],
    mut run: impl FnMut(&[String]) -> Result<String, Halt>,
) -> Result<(), Halt> {
    for step in steps {
        match step {
            Step::Needed(words) => run(words).map(drop)?,
            Step::Undoes(words) => drop(run(words)),
        }
    }
    Ok(())
}

pub(super) fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(|&word| word.to_owned()).collect()
}
