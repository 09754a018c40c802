//! Runs other programs and says what it runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The folder of the workspace.
pub(crate) fn root() -> Result<PathBuf> {
    // Of the checkout that this runs in, also where another one has built it into the same folder.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Ok(here.parent().context("xtask lies in the workspace")?.to_owned())
}

/// The binary as a profile builds it.
pub(crate) fn built(root: &Path, profile: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| root.join("target")).join(profile).join("talaria")
}

/// A cargo command in the workspace.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root).args(arguments);
    command
}

/// Runs to the end and insists on success.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    eprintln!("→ {line}");
    let status = command.status().with_context(|| format!("cannot run {line}"))?;
    if !status.success() {
        bail!("{line} ended with {status}");
    }
    Ok(())
}

/// Runs to the end, insists on success, and returns what it printed.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot run {line}"))?;
    if !output.status.success() {
        bail!("{line} ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{line} printed no text"))
}

/// Whether a program is there to be run.
pub(crate) fn exists(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn line(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    std::iter::once(name.to_string_lossy()).chain(arguments).collect::<Vec<_>>().join(" ")
}
