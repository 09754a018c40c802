//! Starts the program again in the place of this one.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::exit::{Exit, Halt};

/// What the name of a program ends with, on Linux, when another one was put in its place.
const REPLACED: &str = " (deleted)";

/// Becomes the program that was started, with the same arguments and the same process id; or ends in
/// a way that makes systemd start it again, if that is who started it.
pub(crate) fn start_again() -> Result<Exit, Halt> {
    if is_systemds() {
        return Ok(Exit::Again);
    }
    let program = std::env::current_exe().map_err(|error| {
        Halt::failed(format_args!("cannot find itself to start again: {error}"))
    })?;
    let error = Command::new(present(program)).args(std::env::args_os().skip(1)).exec();
    Err(Halt::failed(format_args!("cannot start again: {error}")))
}

/// Whether systemd started this process.
pub(crate) fn is_systemds() -> bool {
    let own = std::process::id().to_string();
    std::env::var("SYSTEMD_EXEC_PID").is_ok_and(|id| id == own)
}

/// The program at the path where this one was: a later version, if there is one.
fn present(program: PathBuf) -> PathBuf {
    let name = program.to_string_lossy();
    match name.strip_suffix(REPLACED) {
        Some(name) if !program.exists() => PathBuf::from(name),
        _ => program,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_replaced_is_started_by_its_path() {
        assert_eq!(present("/opt/talaria (deleted)".into()), PathBuf::from("/opt/talaria"));
        assert_eq!(present("/bin/sh".into()), PathBuf::from("/bin/sh"));
    }
}
