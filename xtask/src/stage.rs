//! A gateway of its own for a test: a fresh home, a free port, no keys of the person who runs it.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// How often a condition is looked at, and how often at most.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: u32 = 400;

/// A home for a gateway, and the programs that run for it. Everything ends with it.
pub(crate) struct Stage {
    folder: TempDir,
    binary: PathBuf,
    children: Vec<Child>,
}

impl Stage {
    /// A home with this configuration.
    pub(crate) fn new(binary: &Path, config: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::create_dir_all(folder.path().join("home"))?;
        fs::write(folder.path().join("home/config.yaml"), config)?;
        Ok(Self { folder, binary: binary.to_owned(), children: Vec::new() })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    /// A talaria command on this home, with nothing of the surrounding environment but the path.
    pub(crate) fn talaria(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("TALARIA_HOME", self.folder.path().join("home"))
            .stdin(Stdio::null())
            .args(arguments);
        command
    }

    /// Keeps a program running for as long as the stage stands.
    pub(crate) fn keep(&mut self, command: &mut Command) -> Result<()> {
        self.children.push(command.spawn().context("a program for the test cannot be started")?);
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A port that nobody listens on at the moment.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Waits until `look` finds something.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    for _ in 0..LOOKS {
        if let Some(found) = look() {
            return Ok(found);
        }
        std::thread::sleep(LOOK);
    }
    bail!("waited in vain for {what}")
}
