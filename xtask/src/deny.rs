//! What the product is built from: licences, sources and banned crates, as `deny.toml` says. The tool
//! that reads it is tried on a planted violation first, so that it cannot pass by looking away.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{installed, shell};

/// What is looked at. Advisories would need a database from the network.
const CHECKS: [&str; 4] = ["check", "bans", "licenses", "sources"];

pub(crate) fn run(root: &Path) -> Result<()> {
    let tool = installed::cargo_deny(root)?;
    let rules = root.join("deny.toml");
    bites(&tool, &rules).context("deny.toml does not hold anything back")?;
    let mut check = check(&tool, root, &rules);
    shell::run(check.arg("--locked").args(CHECKS).args(["--hide-inclusion-graph"]))
}

fn check(tool: &Path, folder: &Path, rules: &Path) -> Command {
    let mut command = Command::new(tool);
    command.current_dir(folder).arg("--offline").arg("--config").arg(rules);
    command
}

/// Insists that a crate that is banned and one whose licence is not allowed are both found.
fn bites(tool: &Path, rules: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    plant(
        folder.path(),
        "app",
        "MIT",
        "serde_yaml = { path = '../serde_yaml' }\ngrabby = { path = '../grabby' }",
    )?;
    plant(folder.path(), "serde_yaml", "MIT", "")?;
    plant(folder.path(), "grabby", "AGPL-3.0-only", "")?;
    let output = check(tool, &folder.path().join("app"), rules).args(CHECKS).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success(), "a planted violation was let through:\n{said}");
    for expected in ["serde_yaml", "AGPL-3.0-only"] {
        ensure!(said.contains(expected), "{expected} was not found:\n{said}");
    }
    Ok(())
}

fn plant(folder: &Path, name: &str, licence: &str, dependencies: &str) -> Result<()> {
    let folder = folder.join(name);
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("src/lib.rs"), "")?;
    fs::write(
        folder.join("Cargo.toml"),
        format!(
            "[package]\nname = '{name}'\nversion = '1.0.0'\nedition = '2024'\nlicense = '{licence}'\n\
             [dependencies]\n{dependencies}\n"
        ),
    )?;
    Ok(())
}
