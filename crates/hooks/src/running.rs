//! A process of a hook, and all that it started. It ends with us.

use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// What a hook is told of our environment. Everything else may be a secret.
const PASSED_ON: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// How much of its complaints is kept, in bytes.
const MOST_COMPLAINTS: usize = 4 * 1024;

/// The most that is told of them, in characters.
const LONGEST_REASON: usize = 160;

pub(crate) struct Running {
    pub(crate) child: Child,
    /// Absent once it was ended: the number may be somebody else's then.
    group: Option<Pid>,
}

impl Running {
    pub(crate) fn start(mut command: Command, folder: &Path, name: &str) -> std::io::Result<Self> {
        let child = command
            .current_dir(folder)
            .env_clear()
            .envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .env("TALARIA_HOOK", name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        Ok(Self { child, group })
    }

    pub(crate) fn end(&mut self) {
        if let Some(group) = self.group.take() {
            // Whoever is gone already needs no ending.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// The beginning of what is said. The rest is heard and forgotten, so that nobody waits for us.
pub(crate) async fn begin(from: Option<impl AsyncRead + Unpin>, most: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut from) = from else { return kept };
    let mut piece = vec![0; 8 * 1024];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        let room = most.saturating_sub(kept.len()).min(read);
        kept.extend_from_slice(&piece[..room]);
    }
    kept
}

/// What a hook complained about, as far as that is kept.
pub(crate) async fn complaints(from: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    begin(from, MOST_COMPLAINTS).await
}

/// The last line of what a hook complained about.
pub(crate) fn last_line(complaints: &[u8]) -> String {
    let text = String::from_utf8_lossy(complaints);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect()
}
