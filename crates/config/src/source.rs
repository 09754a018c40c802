//! What a configuration is made of: two files and the environment, as they were read.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::finding::{CONFIG_FILE, DOTENV_FILE, Finding, Problems};

/// Larger files are refused: a configuration is written by hand.
const LARGEST_FILE: u64 = 1 << 20;

/// The sources of a configuration. Made by [`Sources::read`], or from text.
#[derive(Clone, Default)]
pub struct Sources {
    pub(crate) config: Option<SourceFile>,
    pub(crate) dotenv: Option<SourceFile>,
    pub(crate) process: Vec<(String, String)>,
    pub(crate) unreadable: Vec<Finding>,
}

/// A file as it was read.
#[derive(Clone)]
pub(crate) struct SourceFile {
    pub(crate) text: String,
    /// The Unix permission bits, where there are any.
    pub(crate) mode: Option<u32>,
    /// Where it is, where it is a file.
    pub(crate) path: Option<PathBuf>,
}

impl Sources {
    /// Reads `config.yaml` and `.env` from the home folder, and takes the environment, which is
    /// `std::env::vars_os()` for a gateway. A file that does not exist is an empty one; a file that
    /// cannot be read is a problem.
    pub fn read(
        home: &Path,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Problems> {
        let mut problems = Vec::new();
        let mut open = |name| {
            let path = home.join(name);
            let read = match name == DOTENV_FILE && path.is_symlink() {
                true => Err(FileError::Linked),
                false => read_file(&path),
            };
            read.unwrap_or_else(|error| {
                problems.push(Finding::about(name, error.to_string()));
                None
            })
        };
        let (config, dotenv) = (open(CONFIG_FILE), open(DOTENV_FILE));
        if !problems.is_empty() {
            return Err(Problems::new(problems));
        }
        Ok(Self { config, dotenv, ..Self::default() }.with_process(environment))
    }

    /// With this text as `config.yaml`.
    pub fn with_config(mut self, text: impl Into<String>) -> Self {
        self.config = Some(SourceFile { text: text.into(), mode: None, path: None });
        self
    }

    /// With this text as `.env`.
    pub fn with_dotenv(mut self, text: impl Into<String>) -> Self {
        self.dotenv = Some(SourceFile { text: text.into(), mode: None, path: None });
        self
    }

    /// With one more variable in the environment of the process.
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.process.push((name.into(), value.into()));
        self
    }

    /// The text of `config.yaml`, if there is one.
    pub fn config_text(&self) -> Option<&str> {
        self.config.as_ref().map(|file| file.text.as_str())
    }

    /// The text of `.env`, if there is one. It holds secrets.
    pub fn dotenv_text(&self) -> Option<&str> {
        self.dotenv.as_ref().map(|file| file.text.as_str())
    }

    fn with_process(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        for (name, value) in variables {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => self.process.push((name, value)),
                // Other programs' variables may hold what they like.
                Err(_) if name.starts_with(crate::known::PREFIX) => {
                    self.unreadable.push(Finding::about(&name, "the value is not UTF-8"));
                }
                Err(_) => {}
            }
        }
        self
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources")
            .field("config", &self.config.is_some())
            .field("dotenv", &self.dotenv.is_some())
            .field("process", &self.process.len())
            .finish()
    }
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("is not a file")]
    NotAFile,
    #[error("is a link; secrets are read only from a file in the home folder itself")]
    Linked,
    #[error("is a link to a file that does not exist")]
    Dangling,
    #[error("is larger than {} KiB, which no configuration needs to be", LARGEST_FILE >> 10)]
    TooLarge,
    #[error("is not UTF-8; byte {at} cannot be read as text")]
    NotText { at: usize },
    #[error("may not be read by this user; check its owner and permissions")]
    NotAllowed,
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
}

fn read_file(path: &Path) -> Result<Option<SourceFile>, FileError> {
    let refuse = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => FileError::NotAllowed,
        _ => FileError::Unreadable(error),
    };
    // Asked before opening, because opening a pipe would wait for its other end.
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return if path.is_symlink() { Err(FileError::Dangling) } else { Ok(None) };
        }
        Err(error) => return Err(refuse(error)),
    };
    if !metadata.is_file() {
        return Err(FileError::NotAFile);
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(refuse)?;
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(refuse)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(FileError::TooLarge);
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| FileError::NotText { at: error.utf8_error().valid_up_to() })?;
    Ok(Some(SourceFile { text, mode: mode(&metadata), path: Some(path.to_owned()) }))
}

#[cfg(unix)]
fn mode(metadata: &std::fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    Some(metadata.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn mode(_: &std::fs::Metadata) -> Option<u32> {
    None
}
