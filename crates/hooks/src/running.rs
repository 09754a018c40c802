//! A process of a hook: what it is given, and what it says.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use talaria_machine::environment;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// How much of its complaints is kept, in bytes.
const MOST_COMPLAINTS: usize = 4 * 1024;

/// The most that is told of them, in characters.
const LONGEST_REASON: usize = 160;

/// How a program of a hook is run: in its folder, and told no more of our environment than any program
/// needs.
pub(crate) fn command(program: impl AsRef<OsStr>, folder: &Path, name: &str) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .env_clear()
        .envs(environment().filter(|(name, _)| *name != "SHELL"))
        .env("TALARIA_HOOK", name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
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
