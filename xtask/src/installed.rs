//! Programs that the tests need and the product does not, installed when they are missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// The mock of LLM APIs that others wrote and keep; both wire formats are checked against it.
const AIMOCK: &str = "@copilotkit/aimock@1.43.0";

/// Reads `deny.toml`.
const CARGO_DENY: &str = "0.20.2";

/// Reads `.cargo/mutants.toml`.
const CARGO_MUTANTS: &str = "27.1.0";

/// Where installed programs are kept between runs.
pub(crate) fn tools(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| root.join("target")).join("tools")
}

/// The oldest Node that runs the mock and the browser test.
const NODE: u32 = 20;

/// A Chromium, from the system or from its package manager.
pub(crate) fn chromium() -> Result<()> {
    if ["chromium", "chromium-browser", "google-chrome"].iter().any(|name| shell::exists(name)) {
        return Ok(());
    }
    apt("the browser test needs Chromium", &["chromium"])
}

/// systemd's own tools, which need no running systemd.
pub(crate) fn systemd() -> Result<()> {
    if shell::exists("systemd-analyze") {
        return Ok(());
    }
    apt("reading the unit of the service needs systemd-analyze", &["systemd"])
}

/// What lets a program see another time.
pub(crate) fn faketime() -> Result<()> {
    if shell::exists("faketime") {
        return Ok(());
    }
    apt("setting the clock of one program back needs faketime", &["faketime"])
}

/// The C compiler that makes programs for Windows.
pub(crate) fn mingw(compiler: &str) -> Result<()> {
    if shell::exists(compiler) {
        return Ok(());
    }
    apt("looking at the program for Windows needs mingw", &["gcc-mingw-w64-x86-64"])
}

/// Installs packages of Debian and its relatives: as root, or through sudo.
fn apt(need: &str, packages: &[&str]) -> Result<()> {
    let install = ["install", "--yes", "--no-install-recommends"];
    let by_hand = format!("apt-get update && apt-get install {}", packages.join(" "));
    if !shell::exists("apt-get") {
        bail!("{need}; install it and run this again (on Debian: {by_hand})");
    }
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root && !shell::exists("sudo") {
        bail!("{need}; as root, run `{by_hand}`, and then this again");
    }
    let command = || {
        let mut command = Command::new(if is_root { "env" } else { "sudo" });
        // sudo keeps the environment to itself.
        command.args((!is_root).then_some("env"));
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        command
    };
    shell::run(command().arg("update"))
        .and_then(|()| shell::run(command().args(install).args(packages)))
        .with_context(|| format!("{need}; as root, run `{by_hand}`, and then this again"))
}

/// The packages of the browser test.
pub(crate) fn browser_packages(root: &Path) -> Result<()> {
    need_node()?;
    let web = root.join("web");
    let present = web.join("node_modules/playwright-core/package.json").exists();
    if present {
        return Ok(());
    }
    shell::run(Command::new("npm").current_dir(web).args(["ci", "--no-audit", "--no-fund"]))
}

/// The LLM mock; returns the script to run with Node.
pub(crate) fn aimock(root: &Path) -> Result<PathBuf> {
    Ok(node_packages(root, "aimock", &[AIMOCK])?.join("node_modules/.bin/llmock"))
}

/// Packages for Node in a folder of their own, which is returned.
pub(crate) fn node_packages(root: &Path, name: &str, packages: &[&str]) -> Result<PathBuf> {
    need_node()?;
    once(root, name, packages, |folder| {
        let install = ["install", "--no-audit", "--no-fund", "--no-save", "--prefix", "."];
        shell::run(Command::new("npm").current_dir(folder).args(install).args(packages))
    })
}

/// Packages for Python in an environment of their own, whose interpreter is returned.
pub(crate) fn python_packages(root: &Path, name: &str, packages: &[&str]) -> Result<PathBuf> {
    need_python()?;
    let folder = once(root, name, packages, |folder| {
        shell::run(Command::new("python3").current_dir(folder).args(["-m", "venv", "."]))?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        shell::run(Command::new(folder.join("bin/python")).args(install).args(packages))
    })?;
    Ok(folder.join("bin/python"))
}

/// Fills a folder, unless it was filled with the same packages before.
fn once(
    root: &Path,
    name: &str,
    packages: &[&str],
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let folder = tools(root).join(name);
    let (stamp, list) = (folder.join("packages"), packages.join("\n"));
    if std::fs::read_to_string(&stamp).is_ok_and(|present| present == list) {
        return Ok(folder);
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    fill(&folder)?;
    // Written last: a folder that was filled by half is filled again.
    std::fs::write(stamp, list)?;
    Ok(folder)
}

/// The reader of `deny.toml`, from the system or built once.
pub(crate) fn cargo_deny(root: &Path) -> Result<PathBuf> {
    cargo_command(root, "cargo-deny", CARGO_DENY, &["--no-default-features"])
}

/// Changes the code in small ways and looks whether a test notices.
pub(crate) fn cargo_mutants(root: &Path) -> Result<PathBuf> {
    cargo_command(root, "cargo-mutants", CARGO_MUTANTS, &[])
}

/// A command of cargo's: the one that is there, or one that is built from its source.
fn cargo_command(root: &Path, name: &str, version: &str, features: &[&str]) -> Result<PathBuf> {
    if shell::exists(name) {
        return Ok(name.into());
    }
    let folder = tools(root).join(format!("{name}-{version}"));
    let program = folder.join("bin").join(name);
    if !program.exists() {
        let version = format!("{name}@{version}");
        // Unoptimized, because it does little itself and would be built for minutes.
        let install = ["install", "--locked", "--debug", &version];
        let build = folder.join("build");
        shell::run(
            shell::cargo(root, &install)
                .args(features)
                .env("CARGO_PROFILE_DEV_DEBUG", "0")
                .env_remove("CARGO_TARGET_DIR")
                .arg("--root")
                .arg(&folder)
                .arg("--target-dir")
                .arg(&build),
        )?;
        std::fs::remove_dir_all(build)?;
    }
    Ok(program)
}

/// A Node that is new enough, from the system or from its package manager.
fn need_node() -> Result<()> {
    let need = format!("these tests need Node {NODE} or newer with npm (--quick leaves them out)");
    if !shell::exists("node") || !shell::exists("npm") {
        apt(&need, &["nodejs", "npm"])?;
    }
    let printed = shell::read(Command::new("node").arg("--version"))?;
    match major(&printed) {
        Some(version) if version >= NODE => Ok(()),
        _ => bail!(
            "{need}; this one is {}: install a newer one, such as from nodejs.org",
            printed.trim()
        ),
    }
}

/// A Python that can make environments, from the system or from its package manager.
fn need_python() -> Result<()> {
    let mut makes = Command::new("python3");
    makes.args(["-c", "import ensurepip, venv"]).stderr(std::process::Stdio::null());
    if makes.status().is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let need = "these tests need Python 3.11 or newer with venv (--quick leaves them out)";
    apt(need, &["python3", "python3-venv"])
}

/// The first number of a version such as `v20.11.1`.
fn major(version: &str) -> Option<u32> {
    version.trim().trim_start_matches('v').split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_are_compared_by_their_first_number() {
        for (printed, expected) in
            [("v20.11.1\n", Some(20)), ("v8.0.0", Some(8)), ("22", Some(22)), ("none", None)]
        {
            assert_eq!(major(printed), expected);
        }
    }
}
