//! Programs that the tests need and the product does not, installed when they are missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// The mock of LLM APIs that others wrote and keep; both wire formats are checked against it.
const AIMOCK: &str = "@copilotkit/aimock@1.43.0";

/// Reads `deny.toml`.
const CARGO_DENY: &str = "0.20.2";

/// Where installed programs are kept between runs.
pub(crate) fn tools(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| root.join("target")).join("tools")
}

/// A Chromium, from the system or from its package manager.
pub(crate) fn chromium() -> Result<()> {
    if ["chromium", "chromium-browser", "google-chrome"].iter().any(|name| shell::exists(name)) {
        return Ok(());
    }
    if !shell::exists("apt-get") {
        bail!("the browser test needs Chromium; install it and run this again");
    }
    shell::run(Command::new("apt-get").arg("update"))?;
    shell::run(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args([
        "install",
        "--yes",
        "--no-install-recommends",
        "chromium",
    ]))
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
    need_node()?;
    let folder = tools(root).join("aimock");
    let script = folder.join("node_modules/.bin/llmock");
    if !script.exists() {
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        let install = ["install", "--no-audit", "--no-fund", "--no-save", "--prefix", ".", AIMOCK];
        shell::run(Command::new("npm").current_dir(&folder).args(install))?;
    }
    Ok(script)
}

/// The reader of `deny.toml`, from the system or built once.
pub(crate) fn cargo_deny(root: &Path) -> Result<PathBuf> {
    if shell::exists("cargo-deny") {
        return Ok("cargo-deny".into());
    }
    let folder = tools(root).join(format!("cargo-deny-{CARGO_DENY}"));
    let program = folder.join("bin/cargo-deny");
    if !program.exists() {
        let version = format!("cargo-deny@{CARGO_DENY}");
        // Unoptimized, because it runs for a second and would be built for minutes.
        let install = ["install", "--locked", "--debug", "--no-default-features", &version];
        let build = folder.join("build");
        shell::run(
            shell::cargo(root, &install)
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

fn need_node() -> Result<()> {
    if !shell::exists("node") {
        bail!("these tests need Node 20 or newer; install it, or leave them out with --quick");
    }
    Ok(())
}
