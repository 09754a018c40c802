//! `talaria doctor`: looks at everything that commonly goes wrong, says what to do, and does what it can.
//!
//! It only looks, unless it is told to mend. Nothing that it mends can be missed: modes of files, and what
//! a process left behind that is gone. That is done before the rest is looked at, so that what is said of
//! the rest is still so when it is read.

mod access;
mod accounts;
mod configuration;
mod files;
mod gone;
mod hooks;
mod model;
mod network;

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::PathBuf;

use serde::Serialize;
use talaria_admin::api::Status;
use talaria_config::Loaded;
use talaria_machine::{Mode, Private, close, close_command};

use super::print_json;
use crate::cli::DoctorOptions;
use crate::client::Client;
use crate::exit::{Exit, Halt};
use crate::home::Home;

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
struct Finding {
    level: Level,
    /// What it is about.
    about: &'static str,
    text: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// What `--fix` does about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<Remedy>,
    /// Whether that was done.
    mended: bool,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    /// As it should be.
    Good,
    /// It works, and may not be what was meant.
    Warning,
    /// It does not work.
    Problem,
}

/// Something that can be done without asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Remedy {
    /// Closes a file or folder to others.
    Close { path: PathBuf, mode: u32 },
    /// Removes what a process left behind that is gone.
    Remove { path: PathBuf },
    /// Takes out of a lock that nobody holds whom it names. It stays where it is: whoever opens it at this
    /// moment locks the same file.
    Clear { path: PathBuf },
}

impl Remedy {
    fn carry_out(&self) -> io::Result<()> {
        match self {
            Self::Close { path, .. } => close(path),
            Self::Remove { path } => match fs::remove_file(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                done => done,
            },
            Self::Clear { path } => {
                let file = OpenOptions::new().write(true).no_link().open(path)?;
                file.try_lock().map_err(|_| io::Error::other("somebody holds it by now"))?;
                file.set_len(0)
            }
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Close { path, mode } => f.write_str(&close_command(path, Mode::from_bits(*mode))),
            Self::Remove { path } => write!(f, "rm {}", path.display()),
            Self::Clear { path } => write!(f, "truncate -s 0 {}", path.display()),
        }
    }
}

impl Finding {
    fn new(level: Level, about: &'static str, text: impl fmt::Display) -> Self {
        let text = text.to_string();
        Self { level, about, text, hint: None, remedy: None, mended: false }
    }

    fn good(about: &'static str, text: impl fmt::Display) -> Self {
        Self::new(Level::Good, about, text)
    }

    fn warning(about: &'static str, text: impl fmt::Display) -> Self {
        Self::new(Level::Warning, about, text)
    }

    fn problem(about: &'static str, text: impl fmt::Display) -> Self {
        Self::new(Level::Problem, about, text)
    }

    fn hint(self, hint: impl fmt::Display) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }

    fn remedy(self, remedy: Remedy) -> Self {
        Self { remedy: Some(remedy), ..self }
    }

    fn is_bad(&self) -> bool {
        self.level == Level::Problem && !self.mended
    }
}

/// What can be looked at.
struct Patient<'a> {
    home: &'a Home,
    /// The configuration, where it is right.
    loaded: Option<&'a Loaded>,
    /// What the gateway says that runs, if one does.
    status: Option<&'a Status>,
}

/// What was found.
#[derive(Serialize)]
struct Report {
    good: bool,
    findings: Vec<Finding>,
}

pub(crate) async fn doctor(home: &Home, options: DoctorOptions) -> Result<Exit, Halt> {
    let asked = match Client::find(home).await? {
        None => None,
        Some(running) => Some(running.get::<Status>("/v1/status", &[]).await),
    };
    let status = asked.as_ref().and_then(|told| told.as_ref().ok());
    let mut folder = files::look(home, status);
    if options.fix {
        folder.iter_mut().for_each(mend);
    }
    let mut found = Vec::new();
    let loaded = configuration::look(home, status, &mut found);
    found.append(&mut folder);
    let mut findings = match &asked {
        None => gone::look(home, loaded.as_ref(), &found).await,
        Some(Ok(_)) => Vec::new(),
        Some(Err(halt)) => vec![
            Finding::problem("gateway", halt.explained())
                .hint("end it with `talaria stop`, or look at its log"),
        ],
    };
    findings.append(&mut found);
    let patient = Patient { home, loaded: loaded.as_ref(), status };
    findings.extend(access::look(&patient));
    findings.extend(hooks::look(&patient));
    findings.extend(service(home));
    findings.extend(network::look(&patient));
    findings.extend(model::look(&patient).await);
    findings.extend(accounts::look(&patient, options.offline).await);
    if let Some(loaded) = &loaded {
        for finding in &mut findings {
            finding.text = loaded.redact(&finding.text);
            finding.hint = finding.hint.as_deref().map(|hint| loaded.redact(hint));
        }
    }
    let report = Report { good: !findings.iter().any(Finding::is_bad), findings };
    if options.output.json {
        print_json(&report)?;
    } else {
        print(&report, &options)?;
    }
    Ok(if report.good { Exit::Done } else { Exit::Failed })
}

/// Whether the service of this user is the one that this version would install.
fn service(home: &Home) -> Option<Finding> {
    let outdated = super::service::outdated(home)?;
    let text = format_args!("this version would write {} differently", outdated.display());
    let found = Finding::warning("service", text);
    Some(found.hint("`talaria service install` writes it, and starts the service again"))
}

fn mend(finding: &mut Finding) {
    let Some(remedy) = &finding.remedy else { return };
    match remedy.carry_out() {
        Ok(()) => finding.mended = true,
        Err(error) => finding.hint = Some(format!("`{remedy}` does not work: {error}")),
    }
}

fn print(report: &Report, options: &DoctorOptions) -> Result<(), Halt> {
    let mut mendable = 0;
    for finding in &report.findings {
        let mark = match (finding.level, finding.mended) {
            (_, true) => "mended ",
            (Level::Good, _) => "ok     ",
            (Level::Warning, _) => "warning",
            (Level::Problem, _) => "PROBLEM",
        };
        let text = finding.text.replace('\n', "\n          ");
        say!("{mark}  {}: {text}", finding.about);
        if let Some(hint) = finding.hint.as_deref().filter(|_| !finding.mended) {
            say!("         → {hint}");
        }
        match &finding.remedy {
            Some(remedy) if !finding.mended => {
                mendable += 1;
                say!("         → `{remedy}`");
            }
            _ => {}
        }
    }
    if mendable > 0 && !options.fix {
        let what = if mendable == 1 { "that".to_owned() } else { format!("{mendable} of these") };
        say!("\n`talaria doctor --fix` mends {what}.");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_does_what_it_says_and_what_is_gone_already_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "").unwrap();
        let close = Remedy::Close { path: path.clone(), mode: 0o600 };
        let remove = Remedy::Remove { path: path.clone() };
        close.carry_out().unwrap();
        assert_eq!(Mode::of(&path.metadata().unwrap()), Mode::PRIVATE);
        remove.carry_out().unwrap();
        remove.carry_out().unwrap();
        assert!(!path.exists());
        assert!(close.carry_out().is_err());
        assert_eq!(remove.to_string(), format!("rm {}", path.display()));
    }
}
