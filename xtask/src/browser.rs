//! The web chat in a real Chromium, against the real binary with the demo model.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::stage::{Stage, free_port};
use crate::{installed, shell};

pub(crate) fn run(root: &Path, binary: &Path) -> Result<()> {
    installed::chromium()?;
    installed::browser_packages(root)?;
    let web = root.join("web");
    shell::run(Command::new("npm").current_dir(&web).args(["run", "--silent", "test:unit"]))?;

    let port = free_port()?;
    // Others can write on this account. The test itself is the program behind it.
    let bridge = free_port()?;
    let config = format!(
        "model: demo\nhttp:\n  listen: 127.0.0.1:{port}\n\
         accounts:\n  bridge:\n    platform: loopback\n    address: 127.0.0.1:{bridge}\n"
    );
    let stage = Stage::new(binary, &config)?;
    let restart = restart_script(&stage)?;
    shell::run(&mut Command::new(&restart))?;
    let link = shell::read(&mut stage.talaria(&["open"]))?;
    let screenshots = installed::tools(root).join("screenshots");
    let tested = shell::run(
        Command::new("npm")
            .current_dir(&web)
            .args(["run", "--silent", "test:browser"])
            .env("TALARIA_WEB_URL", link.trim())
            .env("TALARIA_RESTART_COMMAND", &restart)
            .env("TALARIA_BRIDGE_PORT", bridge.to_string())
            .env("TALARIA_SCREENSHOTS", &screenshots),
    );
    // The gateway belongs to a script and not to us, so it is ended by its own command.
    shell::run(&mut stage.talaria(&["stop"]))?;
    tested.with_context(|| {
        let log = fs::read_to_string(stage.path().join("log")).unwrap_or_default();
        format!("the gateway's log:\n{log}")
    })?;
    eprintln!("browser: screenshots are in {}", screenshots.display());
    Ok(())
}

/// A program that kills the stage's gateway, if there is one, and starts it again.
fn restart_script(stage: &Stage) -> Result<std::path::PathBuf> {
    let folder = stage.path().display();
    let binary = stage.binary().display();
    let text = format!(
        "#!/bin/sh\n\
         set -eu\n\
         cd '{folder}'\n\
         if [ -f pid ]; then kill -9 \"$(cat pid)\"; fi\n\
         : > printed\n\
         env -i PATH=\"$PATH\" HOME='{folder}' TALARIA_HOME='{folder}/home' '{binary}' run > printed 2>> log < /dev/null &\n\
         echo $! > pid\n\
         tries=0\n\
         until grep -q ready printed; do\n\
           tries=$((tries + 1)); [ $tries -lt 400 ]; sleep 0.05\n\
         done\n"
    );
    let path = stage.path().join("restart");
    fs::write(&path, text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}
