//! Runs a program that the configuration names, to its end.
//!
//! No shell reads what it is given. It gets no secrets in its environment and a folder of its own, and
//! nothing that it leaves running outlives it.

use std::path::Path;
use std::process::Stdio;

use talaria_agent::VoiceError;
use talaria_machine::{SCRATCH, Started, environment, find_program};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// How much of its complaints is kept, in bytes.
const MOST_COMPLAINTS: usize = 4 * 1024;

/// The most that is told of them, in characters.
const LONGEST_REASON: usize = 160;

/// Runs a program in a folder, tells it `input`, and says what it printed, which may not be more than
/// `largest` bytes.
pub(crate) async fn run(
    words: &[String],
    folder: &Path,
    input: &[u8],
    largest: usize,
) -> Result<Vec<u8>, VoiceError> {
    let refused = |reason: String| VoiceError::Refused { reason };
    let [name, arguments @ ..] = words else { return Err(refused("there is no program".into())) };
    let failed = |error: std::io::Error| refused(format!("`{name}` cannot be run: {error}"));
    let mut command = Command::new(name);
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(environment().filter(|(name, _)| *name != "SHELL"))
        .envs(SCRATCH.map(|name| (name, folder)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = Started::start(command).map_err(failed)?;
    let (stdin, stdout, stderr) = (running.stdin(), running.stdout(), running.stderr());
    let tell = async move {
        if let Some(mut stdin) = stdin {
            // One that does not want to hear it all has its reasons.
            let _ = stdin.write_all(input).await;
        }
    };
    // What it leaves running keeps the pipes open, so its own end is the end of what it says.
    let said = async {
        let (printed, complaints, ()) =
            tokio::join!(begin(stdout, largest + 1), begin(stderr, MOST_COMPLAINTS), tell);
        (printed, complaints)
    };
    let (status, (printed, complaints)) = {
        tokio::pin!(said);
        tokio::select! {
            said = &mut said => {
                let status = running.wait().await;
                running.end();
                (status, said)
            }
            status = running.wait() => {
                running.end();
                (status, said.await)
            }
        }
    };
    let status = status.map_err(failed)?;
    if !status.success() {
        let complaint = String::from_utf8_lossy(&complaints);
        let line = complaint.lines().map(str::trim).rfind(|line| !line.is_empty());
        let line: String = line.unwrap_or_default().chars().take(LONGEST_REASON).collect();
        let why = if line.is_empty() { String::new() } else { format!(": {line}") };
        return Err(refused(format!("`{name}` ended with {status}{why}")));
    }
    if printed.len() > largest {
        return Err(refused(format!("`{name}` printed more than {largest} bytes")));
    }
    Ok(printed)
}

/// The beginning of what is said. The rest is heard and forgotten, so that nobody waits for us.
async fn begin(from: Option<impl AsyncRead + Unpin>, most: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut from) = from else { return kept };
    let mut piece = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        let room = most.saturating_sub(kept.len()).min(read);
        kept.extend_from_slice(&piece[..room]);
    }
    kept
}

/// Whether there is such a program on this machine that we may run.
pub fn is_there(program: &str) -> bool {
    find_program(program).is_some()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_is_there_when_it_can_be_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("whisper");
        let path = program.to_str().expect("a path");
        assert!(!is_there(path), "nothing is there");
        fs::write(&program, "#!/bin/sh\n").expect("writes");
        for (mode, expected) in [(0o644, false), (0o755, true)] {
            fs::set_permissions(&program, Permissions::from_mode(mode)).expect("changes");
            assert_eq!(is_there(path), expected, "mode {mode:o}");
        }
        assert!(!is_there(folder.path().to_str().expect("a path")), "a folder is no program");
        assert!(is_there("sh"), "found by its name");
        assert!(!is_there("no-program-is-called-so"));
    }
}
