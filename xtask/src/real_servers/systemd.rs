//! What `talaria service install` writes, read by systemd itself.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::installed;
use crate::stage::Stage;

pub(super) fn run(binary: &Path) -> Result<()> {
    installed::systemd()?;
    let stage = Stage::new(binary, "agent: {restart_drain_timeout: 30}\n")?;
    // A service runs as whoever its home belongs to.
    let owner = fs::metadata(stage.path())?.uid().to_string();
    for (level, arguments) in [
        ("--user", &["service", "install", "--print"][..]),
        ("--system", &["service", "install", "--print", "--system", "--run-as", &owner]),
    ] {
        let printed = stage.talaria(arguments).output()?;
        ensure!(printed.status.success(), "{arguments:?}: {printed:?}");
        let unit = stage.path().join("talaria.service");
        fs::write(&unit, &printed.stdout)?;
        let verified = Command::new("systemd-analyze")
            .args([level, "--recursive-errors=no", "--man=no", "verify"])
            .arg(&unit)
            // Somebody who is not logged in has none.
            .env("XDG_RUNTIME_DIR", stage.path())
            .output()
            .context("systemd-analyze")?;
        let said = String::from_utf8_lossy(&verified.stderr);
        ensure!(verified.status.success(), "{level}: {said}");
        // It ends well with settings that it does not know, and says so.
        ensure!(!said.contains("talaria.service"), "{level}: {said}");
        println!("systemd takes the {level} unit");
    }
    Ok(())
}
