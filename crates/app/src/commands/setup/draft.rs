//! The two files of a home as they will be: changed in memory, checked as a whole, then written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use talaria_config::{Loaded, Put, Sources, put_in_account, put_variable};
use talaria_machine::{Mode, replace};

use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::start;

/// Files that may have been changed.
pub(super) struct Draft {
    config: Page,
    dotenv: Page,
    /// Variables whose values of this process do not count.
    answered: Vec<String>,
}

struct Page {
    path: PathBuf,
    before: String,
    after: String,
}

impl Page {
    fn open(path: PathBuf) -> Result<Self, Halt> {
        // Whoever has made a link of it wants the file behind the link changed.
        let path = fs::canonicalize(&path).unwrap_or(path);
        let before = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| cannot("read", &path, &error))?,
        };
        Ok(Self { path, after: before.clone(), before })
    }

    fn write(&self, mode: Mode) -> Result<(), Halt> {
        if self.before == self.after {
            return Ok(());
        }
        let written = replace(&self.path, self.after.as_bytes(), mode);
        written.map_err(|error| cannot("write", &self.path, &error))
    }

    /// The mode it has, or the one that is right for a new one.
    fn mode(&self) -> Mode {
        fs::metadata(&self.path).map_or(Mode::PRIVATE, |about| Mode::of(&about))
    }
}

fn cannot(act: &str, path: &Path, error: &io::Error) -> Halt {
    Halt::failed(format_args!("cannot {act} {}: {error}", path.display()))
}

impl Draft {
    pub(super) fn open(home: &Home) -> Result<Self, Halt> {
        Ok(Self {
            config: Page::open(home.path().join("config.yaml"))?,
            dotenv: Page::open(home.path().join(".env"))?,
            answered: Vec::new(),
        })
    }

    /// Puts settings of an account into `config.yaml`.
    pub(super) fn put(&mut self, account: &str, settings: &[(&str, Put)]) -> Result<(), Halt> {
        self.config.after = put_in_account(&self.config.after, account, settings)
            .map_err(|it| Halt::new(Exit::Misused, it).hint("then run this once more"))?;
        Ok(())
    }

    /// Puts a variable into `.env`.
    pub(super) fn keep(&mut self, variable: &str, value: &str) {
        self.dotenv.after = put_variable(&self.dotenv.after, variable, value);
        self.answered.push(variable.to_owned());
    }

    /// What the files lead to.
    pub(super) fn load(&self) -> Result<Loaded, Halt> {
        let files = Sources::default()
            .with_config(self.config.after.as_str())
            .with_dotenv(self.dotenv.after.as_str());
        let texts = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let sources = std::env::vars_os()
            .filter_map(texts)
            .filter(|(name, _)| !self.answered.contains(name))
            .fold(files, |sources, (name, value)| sources.with_variable(name, value));
        talaria_config::load(sources, talaria_platforms::ALL)
            .map_err(|problems| start::misconfigured(problems.iter().as_slice()))
    }

    /// What is different, as people are told: files.
    pub(super) fn changed(&self) -> Vec<&Path> {
        let pages = [&self.config, &self.dotenv].into_iter();
        pages.filter(|page| page.before != page.after).map(|page| page.path.as_path()).collect()
    }

    /// Writes what is different. The secrets first: without them an account would be incomplete.
    pub(super) fn write(&self, home: &Home) -> Result<(), Halt> {
        home.prepare()?;
        self.dotenv.write(Mode::PRIVATE)?;
        self.config.write(self.config.mode())
    }
}
