//! `talaria service`: lets the operating system start the gateway and keep it running.
//!
//! The files are written here and not by a library: none that is kept can say what keeps a gateway honest
//! (readiness, a watchdog, which exit codes mean what, and how long an end may take).

mod launchd;
mod systemd;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use talaria_config::Config;

use crate::cli::{InstallOptions, ServiceCommand, ServiceName};
use crate::ending;
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::replace::replace;
use crate::start;

/// Readable by everybody: there is nothing in it that is not.
const PUBLIC: u32 = 0o644;

/// The shortest time that an end gets.
const SHORTEST_END: Duration = Duration::from_secs(60);

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

pub(crate) fn service(home: &Home, command: ServiceCommand) -> Result<Exit, Halt> {
    let init = Init::find()?;
    match command {
        ServiceCommand::Install(options) => install(home, init, options),
        ServiceCommand::Uninstall(which) => uninstall(init, &which),
        ServiceCommand::Status(which) => status(home, init, which),
    }
}

fn install(home: &Home, init: Init, options: InstallOptions) -> Result<Exit, Halt> {
    let job = job(home, &options)?;
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
    replace(file, text.as_bytes(), PUBLIC).map_err(cannot)
}

fn uninstall(init: Init, which: &ServiceName) -> Result<Exit, Halt> {
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

fn status(home: &Home, init: Init, which: ServiceName) -> Result<Exit, Halt> {
    let (name, level) = named(&which)?;
    let file = init.file(&name, level)?;
    let Ok(written) = std::fs::read_to_string(&file) else {
        let problem = format!("there is no service at {}", file.display());
        return Err(Halt::failed(problem).hint("`talaria service install` makes one"));
    };
    say!("{}", file.display());
    let options = InstallOptions { which, run_as: None, print: false };
    if let Ok(job) = job(home, &options)
        && level == Level::User
        && init.text(&job) != written
    {
        say!("This version would write it differently; `talaria service install` does.");
    }
    let words = init.status(&name, level);
    say!("{}", run(&words)?.trim_end());
    Ok(Exit::Done)
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
    if level == Level::System && job.user.is_none() {
        let problem = "a service of the machine needs somebody to run as";
        return Err(Halt::new(Exit::Misused, problem).hint("add --run-as with a user's name"));
    }
    Ok(job)
}

/// How long a service may take to end: its answers, what they have to be sent, and some more.
fn longest_end(config: &Config) -> Duration {
    ending::longest(config).max(SHORTEST_END)
}

/// A program that is run, and what it means if that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// The service does not run.
    Needed(Vec<String>),
    /// Nothing: what it undoes was not there.
    Undoes(Vec<String>),
}

fn begin(
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

/// Runs a program; what it printed.
fn run(words: &[String]) -> Result<String, Halt> {
    let line = words.join(" ");
    let Some((program, rest)) = words.split_first() else { return Ok(String::new()) };
    let ran = Command::new(program)
        .args(rest)
        .output()
        .map_err(|error| Halt::failed(format_args!("cannot run `{line}`: {error}")))?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    Err(Halt::failed(format_args!("`{line}` ended with {}: {}", ran.status, said.trim())))
}

fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(|&word| word.to_owned()).collect()
}
