//! Starts the program again in the place of this one.

use std::path::PathBuf;
use std::process::Command;

use talaria_machine::{Again, become_program, service};

use crate::exit::{Exit, Halt};

/// What the name of a program ends with, on Linux, when another one was put in its place.
const REPLACED: &str = " (deleted)";

/// Becomes the program that was started, with the same arguments and the same process id, or starts it
/// beside this one where a process cannot become another; or ends in a way that makes whoever runs
/// services start it again, if that is who started it.
pub(crate) fn start_again() -> Result<Exit, Halt> {
    if service::restarts_us() {
        return Ok(Exit::Again);
    }
    let program = std::env::current_exe().map_err(|error| {
        Halt::failed(format_args!("cannot find itself to start again: {error}"))
    })?;
    let mut command = Command::new(present(program));
    match become_program(command.args(std::env::args_os().skip(1))) {
        Again::Beside => Ok(Exit::Done),
        Again::Failed(error) => Err(Halt::failed(format_args!("cannot start again: {error}"))),
    }
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
